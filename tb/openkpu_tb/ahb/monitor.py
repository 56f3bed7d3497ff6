# SPDX-License-Identifier: Apache-2.0
"""Passive monitor of an AHB 2.0 master port that asserts the rules of the protocol.

The rule numbers are those of the checkers; a master that uses BUSY or WRAP breaks two of them.
Every finished beat becomes a transaction of the cocotb-bus monitor; every violation is recorded in
``violations`` and fails the test at ``check``.
"""

from collections import Counter
from dataclasses import dataclass

from cocotb.triggers import RisingEdge
from cocotb_bus.monitors import BusMonitor

from openkpu_tb.ahb.protocol import BUSY, ERROR, IDLE, NONSEQ, OKAY, RETRY, SEQ, SPLIT
from openkpu_tb.ahb.signals import Signals, named_signals
from openkpu_tb.handle import Handle

PINS = ["hbusreq", "hlock", "hgrant", "haddr", "htrans", "hwrite", "hsize", "hburst", "hprot"]
PINS += ["hwdata", "hready", "hresp", "hrdata"]
FIXED_BEATS = {0: 1, 3: 4, 5: 8, 7: 16}
BURST_NAMES = {0: "SINGLE", 1: "INCR", 3: "INCR4", 5: "INCR8", 7: "INCR16"}
CONTROL = ("htrans", "haddr", "hwrite", "hsize", "hburst", "hprot")


@dataclass(frozen=True)
class DoneBeat:
    """A transfer that ended with OKAY, in cycle ``cycle``."""

    cycle: int
    addr: int
    write: bool
    size: int


class AhbMonitor(BusMonitor):
    """Watches the master port ``signals`` of ``entity``; counts in ``bursts`` NONSEQ by HBURST.

    ``reset`` (by default ``entity.rst``) is active at ``reset_level``. A master without arbitration
    (AHB-Lite) has no hbusreq, hlock, hgrant: None in ``signals``.
    """

    _signals = ()  # Signals finds them
    entity: Handle  # cocotb-bus says what all handles have, and no more
    clock: Handle

    def __init__(
        self,
        entity: Handle,
        signals: Signals | str,
        clock: Handle,
        *,
        reset: Handle | None = None,
        reset_level: int = 1,
    ) -> None:
        self.reset_pin = entity.rst if reset is None else reset
        self.reset_level = reset_level
        self.violations: list[str] = []
        self.bursts: Counter[str] = Counter()
        self.broken = 0  # bursts that lost the grant
        self.cycle = 0
        self.done: list[DoneBeat] = []
        super().__init__(entity, None, clock)
        self.bus = named_signals(signals).connect(entity, PINS)

    def _fail(self, rule: int, text: str) -> None:
        self.violations.append(f"cycle {self.cycle}: rule {rule}: {text}")

    def abandon(self) -> None:
        """The master gives up what it has on the bus, because the bus is dead.

        Until nothing of that is left a burst may be cut, and what was refused need not come again.
        """
        self.given_up, self.again = True, None
        if self.burst:
            self.burst["broken"] = True

    def check(self) -> None:
        """Fail when any rule was broken."""
        assert not self.violations, "\n".join(self.violations[:10])

    def _sample(self) -> dict[str, int] | None:
        values = {}
        for name in PINS:
            value = getattr(self.bus, name).value
            if name in ("hwdata", "hrdata"):
                values[name] = value
                continue
            try:
                values[name] = int(value)
            except ValueError:
                self._fail(23, f"{name} is {value}")
                return None
        return values

    async def _monitor_recv(self) -> None:
        self.own, self.data, self.burst, self.again = False, None, None, None
        self.given_up = False
        past = None
        while True:
            await RisingEdge(self.clock)
            self.cycle += 1
            if int(self.reset_pin.value) == self.reset_level:
                self.own, self.data, self.burst, self.again, past = False, None, None, None, None
                continue
            now = self._sample()
            if now is None:
                continue
            self._steady(past, now)
            self._burst_rules(past, now)
            error = past is not None and not past["hready"] and past["hresp"] == ERROR
            self._advance(now, second=error)
            past = now

    def _steady(self, past: dict | None, now: dict) -> None:
        """Rules 1, 2, 3, 15, 19: what may change from one cycle to the next."""
        if past is None:
            if now["htrans"] != IDLE:
                self._fail(1, "not IDLE after reset")
            return
        if now["htrans"] != IDLE and not self.own:
            self._fail(15, "a transfer without ownership of the bus")
        if now["hlock"]:
            self._fail(22, "HLOCK")
        if past["hready"]:
            return
        if past["hresp"] == OKAY:
            changed = [n for n in CONTROL if now[n] != past[n]]
            if changed and past["htrans"] != IDLE:
                self._fail(2, f"{changed} changed while HREADY was low")
        elif past["hresp"] in (RETRY, SPLIT) and now["htrans"] != IDLE:
            self._fail(19, "not IDLE in the second cycle of RETRY or SPLIT")
        elif past["hresp"] == ERROR and now["htrans"] != IDLE:
            self._fail(21, "not IDLE in the second cycle of ERROR")
        if self.data and self.data["hwrite"] and now["hwdata"] != past["hwdata"]:
            self._fail(3, "HWDATA changed during a wait state")

    def _burst_rules(self, past: dict | None, now: dict) -> None:
        """Rules 4..13, 17, 18, 20, seen when an address phase first appears."""
        fresh = past is None or past["hready"] or past["htrans"] != now["htrans"]
        if not fresh:
            return
        size = 1 << now["hsize"]
        if now["htrans"] in (NONSEQ, SEQ):
            if now["haddr"] % size:
                self._fail(12, f"address {now['haddr']:#x} is not aligned to {size}")
            if 8 * size > len(self.bus.hwdata):
                self._fail(13, f"HSIZE {now['hsize']} is wider than the bus")
        burst = self.burst
        if now["htrans"] == BUSY:
            self._fail(6, "BUSY is never used by this master")
        elif now["htrans"] == SEQ:
            if burst is None:
                self._fail(4, "SEQ without a burst")
                return
            control = tuple(now[n] for n in ("hwrite", "hsize", "hburst", "hprot"))
            if control != burst["control"]:
                self._fail(9, "control changed inside a burst")
            if now["haddr"] != burst["next"]:
                self._fail(7, f"address {now['haddr']:#x}, expected {burst['next']:#x}")
            if now["haddr"] >> 10 != burst["first"] >> 10:
                self._fail(11, f"burst crosses 1 KB at {now['haddr']:#x}")
            if burst["left"] == 0:
                self._fail(10, "more beats than HBURST says")
            assert past is not None, "the burst began in a cycle before"
            if now["hburst"] == 1 and not past["hbusreq"]:
                self._fail(17, "INCR went on without HBUSREQ")
        else:
            if burst and burst["left"] not in (0, None) and not burst["broken"]:
                self._fail(10, f"{burst['left']} beats of a burst are missing")
            self.burst = None
        if now["htrans"] == NONSEQ:
            if now["hburst"] not in BURST_NAMES:
                self._fail(5, f"HBURST {now['hburst']}")
            beats = FIXED_BEATS.get(now["hburst"])
            end = now["haddr"] + (beats or 1) * size - 1
            if end >> 10 != now["haddr"] >> 10:
                self._fail(11, f"burst of {beats} at {now['haddr']:#x} crosses 1 KB")
            if self.again:
                key = tuple(now[n] for n in ("haddr", "hwrite", "hsize"))
                if key != self.again:
                    self._fail(20, f"{self.again} was to be retried, not {key}")
                self.again = None
            self.burst = {
                "control": tuple(now[n] for n in ("hwrite", "hsize", "hburst", "hprot")),
                "first": now["haddr"],
                "next": now["haddr"],
                "left": beats,
                "broken": False,
            }
            self.bursts[BURST_NAMES.get(now["hburst"], "?")] += 1

    def _advance(self, now: dict, second: bool) -> None:
        """The effect of the edge at the end of this cycle; ``second``: an ERROR began before it."""
        if not now["hready"]:
            if now["hresp"] != OKAY and self.data:
                if now["hresp"] in (RETRY, SPLIT) and not self.given_up:
                    self.again = tuple(self.data[n] for n in ("haddr", "hwrite", "hsize"))
                if self.burst:
                    self.burst["broken"] = True
            return
        if self.data and now["hresp"] == OKAY:
            beat = DoneBeat(
                self.cycle, self.data["haddr"], bool(self.data["hwrite"]), self.data["hsize"]
            )
            self.done.append(beat)
            self._recv(beat)
        elif self.data and now["hresp"] == ERROR and not second:
            self.abandon()  # ERROR in one cycle: what follows is on the bus already
        self.data = now if now["htrans"] & 2 and self.own else None
        if self.data and self.burst:
            self.burst["next"] += 1 << now["hsize"]
            if self.burst["left"]:
                self.burst["left"] -= 1
        self.given_up = self.given_up and self.data is not None
        self.own = bool(now["hgrant"])
        if not self.own and self.burst and self.burst["left"] != 0:
            self.broken += not self.burst["broken"]
            self.burst["broken"] = True
