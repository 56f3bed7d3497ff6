# SPDX-License-Identifier: Apache-2.0
"""A per-beat AHB 2.0 master in Python, for benches with a cocotb clock.

It asks for the bus, forms bursts of every legal kind, rebuilds a burst that the arbiter cut short,
and repeats what was answered RETRY or SPLIT. An ERROR answer ends the beat it belongs to; the rest
of the burst continues.
"""

import random
from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.protocol import BUSY, ERROR, IDLE, NONSEQ, RETRY, SEQ, SPLIT
from openkpu_tb.ahb.signals import Signals
from openkpu_tb.handle import Handle

PINS = ["hbusreq", "hlock", "hgrant", "haddr", "htrans", "hwrite", "hsize", "hburst", "hprot"]
PINS += ["hwdata", "hready", "hresp", "hrdata"]
FIXED = {4: (3, 2), 8: (5, 4), 16: (7, 6)}  # beats: (INCRn, WRAPn)


@dataclass
class Beat:
    """One transfer: ``data`` holds what is written, or what was read; ``size`` as HSIZE."""

    addr: int
    write: bool
    size: int = 2
    data: int = 0
    error: bool = False
    wrap: int = 0  # beats of the WRAP burst that begins here, else 0


class BeatMaster:
    """Drives the master port ``signals`` of ``dut``; ``run`` performs beats in order.

    ``clock`` is ``dut.clk`` by default; ``busy``: chance (0..1) of BUSY before a beat of a burst.
    """

    def __init__(
        self,
        dut: Handle,
        rng: random.Random,
        busy: float = 0.0,
        *,
        signals: Signals | None = None,
        clock: Handle | None = None,
    ) -> None:
        self.bus = (signals or Signals()).connect(dut, PINS)
        self.clock = dut.clk if clock is None else clock
        self.rng, self.busy = rng, busy
        self.lanes = len(self.bus.hwdata) // 8
        for pin in ("hbusreq", "hlock", "haddr", "htrans", "hwrite", "hsize", "hburst", "hwdata"):
            getattr(self.bus, pin).value = 0
        self.bus.hprot.value = 3

    def _burst(self, queue: list[Beat]) -> tuple[int, int]:
        """(HBURST, beats) for a burst that begins with queue[0]."""
        first = queue[0]
        if first.wrap:
            return FIXED[first.wrap][1], first.wrap
        run = 1
        while (
            run < min(len(queue), 16)
            and queue[run].addr == first.addr + (run << first.size)
            and queue[run].addr >> 10 == first.addr >> 10
            and (queue[run].write, queue[run].size) == (first.write, first.size)
            and not queue[run].wrap
        ):
            run += 1
        choices = [(0, 1), (1, self.rng.randint(1, run))]
        choices += [(FIXED[n][0], n) for n in FIXED if n <= run]
        return self.rng.choice(choices)

    async def run(self, beats: list[Beat], limit: int = 100_000) -> int:
        """Perform all beats; returns the cycles taken. AssertionError after ``limit`` cycles."""
        bus, queue = self.bus, list(beats)
        own, left, hburst = False, 0, 0
        in_address: Beat | None = None  # None: IDLE or BUSY
        in_data: Beat | None = None
        for cycle in range(limit):
            bus.hbusreq.value = int(bool(queue) or in_address is not None)
            await RisingEdge(self.clock)
            hready, hresp = int(bus.hready.value), int(bus.hresp.value)
            if in_data and hresp in (RETRY, SPLIT) and not hready:
                queue = [in_data] + ([in_address] if in_address else []) + queue
                in_data, in_address, left = None, None, 0
                queue[0].wrap = 0
                bus.htrans.value = IDLE
                continue
            if not hready:
                continue
            if in_data:
                in_data.error = hresp == ERROR
                if not in_data.write and not in_data.error:
                    shift = 8 * (in_data.addr % self.lanes)
                    word = bus.hrdata.value
                    bits = word[shift + (8 << in_data.size) - 1 : shift]
                    in_data.data = int(bits)
            if in_address and in_address.write:
                bus.hwdata.value = in_address.data << (8 * (in_address.addr % self.lanes))
            in_data, in_address = in_address, None
            own = bool(int(bus.hgrant.value))
            if not own:
                left = 0  # the rest continues as new bursts from where this one stopped
            if not queue and not in_data:
                bus.htrans.value = IDLE
                return cycle
            if not queue or not own:
                bus.htrans.value = IDLE
                continue
            if left == 0:
                hburst, left = self._burst(queue)
                trans = NONSEQ
            elif self.busy and self.rng.random() < self.busy:
                trans = BUSY
            else:
                trans = SEQ
            beat = queue[0]
            bus.htrans.value, bus.haddr.value, bus.hburst.value = trans, beat.addr, hburst
            bus.hwrite.value, bus.hsize.value = int(beat.write), beat.size
            if trans != BUSY:
                in_address = queue.pop(0)
                left -= 1
        raise AssertionError(f"{len(queue)} of {len(beats)} beats not done in {limit} cycles")
