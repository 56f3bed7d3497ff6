# SPDX-License-Identifier: Apache-2.0
"""AHB 2.0 arbiter, decoder and storage in Python, for block tests of a master.

At each clock edge the responder samples the master's signals of the ending cycle and drives the
bus for the next one. Faults are drawn at random with given probabilities, or planned
by address: wait states, loss of the grant, foreign transfers, RETRY, SPLIT, ERROR.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from cocotb.triggers import RisingEdge
from cocotb_bus.drivers import BusDriver

from openkpu_tb.ahb.protocol import ERROR, OKAY, RETRY, SPLIT
from openkpu_tb.ahb.signals import Signals, named_signals
from openkpu_tb.handle import Handle

__all__ = ["ERROR", "OKAY", "RETRY", "SPLIT", "AhbResponder", "Faults"]
PINS = ["hbusreq", "hlock", "hgrant", "haddr", "htrans", "hwrite", "hsize", "hburst", "hprot"]
PINS += ["hwdata", "hready", "hresp", "hrdata"]


@dataclass
class Faults:
    """Probabilities (0..1) of disturbances on the bus, drawn per beat or per cycle."""

    wait: float = 0.0  # a beat gets 1 .. max_wait wait states
    max_wait: int = 3
    lose: float = 0.0  # per cycle: the grant goes away ...
    regain: float = 1.0  # ... and per cycle: it comes back
    retry: float = 0.0
    split: float = 0.0
    split_cycles: int = 9  # cycles without grant after SPLIT
    # answer of a beat, given (addr, write); None: by the probabilities above
    answer: Callable[[int, bool], int | None] = field(default=lambda addr, write: None)
    one_cycle: bool = False  # ERROR comes, against the protocol, in one cycle with HREADY high


@dataclass
class _Beat:
    addr: int
    write: bool
    size: int
    waits: int
    answer: int
    second: bool = False


class AhbResponder(BusDriver):
    """Storage behind the master port ``signals`` of ``entity``: reads and writes ``memory``.

    ``memory`` maps byte addresses to bytes; a byte never written reads as ``default(addr)``.
    ``reads`` and ``writes`` list every byte address that a finished beat touched, in order.
    """

    _signals = ()  # Signals finds them
    entity: Handle  # cocotb-bus says what all handles have, and no more
    clock: Handle

    def __init__(
        self,
        entity: Handle,
        signals: Signals | str,
        clock: Handle,
        rng: random.Random,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(entity, None, clock)
        self.bus = named_signals(signals).connect(entity, PINS)
        self.rng, self.faults = rng, faults or Faults()
        self.lanes = len(self.bus.hwdata) // 8
        self.memory: dict[int, int] = {}
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.beats = 0  # finished with OKAY
        self.answers = [0, 0, 0, 0]  # beats by answer
        self.granted = True  # False: the grant is withheld (a test may set it)
        self.stuck = False  # True: no data phase ends (a test may set it)
        self.reset()

    @staticmethod
    def default(addr: int) -> int:
        """What a byte of the storage holds before anything is written to it."""
        return (addr * 0x9E3779B1 >> 13) & 0xFF

    def read_byte(self, addr: int) -> int:
        return self.memory.get(addr, self.default(addr))

    def read_bytes(self, addr: int, count: int) -> bytes:
        return bytes(self.read_byte(a) for a in range(addr, addr + count))

    def reset(self) -> None:
        """Put the bus at rest: granted, ready, nothing in the data phase."""
        self.beat: _Beat | None = None
        self.foreign = 0  # wait states of somebody else's transfer
        self.own = False
        self.away = 0  # cycles for which a split master is masked
        self._drive(grant=True, ready=True, resp=OKAY)

    def _drive(self, grant: bool, ready: bool, resp: int, data: int | None = None) -> None:
        noise = self.rng.getrandbits(8 * self.lanes) if data is None else data
        self.grant, self.ready, self.resp = grant, ready, resp
        self.bus.hgrant.value = int(grant)
        self.bus.hready.value = int(ready)
        self.bus.hresp.value = resp
        self.bus.hrdata.value = noise

    def start(self):
        """Run for ever; returns the coroutine for cocotb.start_soon."""
        return self._run()

    async def _run(self) -> None:
        while True:
            await RisingEdge(self.clock)
            self._edge()

    def _lane_mask(self, beat: _Beat) -> range:
        low = beat.addr % self.lanes
        return range(low, low + (1 << beat.size))

    def _finish(self, beat: _Beat) -> None:
        base = beat.addr - beat.addr % self.lanes
        lanes = self._lane_mask(beat)
        if beat.write:
            data = int(self.bus.hwdata.value)
            for lane in lanes:
                self.memory[base + lane] = data >> 8 * lane & 0xFF
        (self.writes if beat.write else self.reads).extend(base + lane for lane in lanes)
        self.beats += 1

    def _accept(self) -> None:
        """The address phase ends with this edge."""
        faults, rng = self.faults, self.rng
        self.beat = None
        self.foreign = 0
        if self.own and int(self.bus.htrans.value) & 2:
            addr, write = int(self.bus.haddr.value), bool(int(self.bus.hwrite.value))
            answer = faults.answer(addr, write)
            if answer is None:
                draw = rng.random()
                answer = RETRY if draw < faults.retry else OKAY
                answer = SPLIT if faults.retry <= draw < faults.retry + faults.split else answer
            waits = rng.randint(1, faults.max_wait) if rng.random() < faults.wait else 0
            second = faults.one_cycle and answer == ERROR
            self.beat = _Beat(addr, write, int(self.bus.hsize.value), waits, answer, second)
            self.answers[answer] += 1
        elif not self.own and rng.random() < faults.wait:
            self.foreign = rng.randint(1, faults.max_wait)

    def _edge(self) -> None:
        faults, rng = self.faults, self.rng
        if self.ready:
            if self.beat and self.beat.answer == OKAY:
                self._finish(self.beat)
            self._accept()
            self.own = self.grant
        # the next cycle
        beat = self.beat
        ready, resp, data = True, OKAY, None
        if beat is None:
            ready = self.foreign == 0
            self.foreign = max(0, self.foreign - 1)
        elif beat.waits or (self.stuck and not beat.second):
            beat.waits = max(0, beat.waits - 1)
            ready = False
        elif beat.answer != OKAY:
            ready, resp = beat.second, beat.answer
            if beat.answer == SPLIT and not beat.second:
                self.away = faults.split_cycles
            beat.second = True
        elif not beat.write:
            base = beat.addr - beat.addr % self.lanes
            data = int.from_bytes(self.read_bytes(base, self.lanes), "little")
            lanes = self._lane_mask(beat)
            mask = sum(0xFF << 8 * lane for lane in lanes)
            data = data & mask | rng.getrandbits(8 * self.lanes) & ~mask
        grant = rng.random() >= faults.lose if self.grant else rng.random() < faults.regain
        grant = grant and self.granted and self.away == 0
        self.away = max(0, self.away - 1)
        self._drive(grant, ready, resp, data)
