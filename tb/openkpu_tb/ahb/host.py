# SPDX-License-Identifier: Apache-2.0
"""Host side of an AHB or AHB-Lite slave: pipelined transfers pin by pin, built on cocotb-bus.

Use ``read``/``write`` for one register access at a time, or ``run`` for a list of transfers whose
address phases overlap the data phases before them.
"""

import random
from dataclasses import dataclass

import cocotb
from cocotb.triggers import RisingEdge, ValueChange
from cocotb_bus.drivers import BusDriver

from openkpu_tb.ahb.protocol import BUSY, ERROR, IDLE, NONSEQ, OKAY, SEQ
from openkpu_tb.ahb.signals import Signals, Unconnected, named_signals
from openkpu_tb.handle import Handle

__all__ = ["BUSY", "ERROR", "IDLE", "NONSEQ", "OKAY", "SEQ", "AhbHost", "Transfer"]
PINS = ["hsel", "haddr", "htrans", "hwrite", "hsize", "hburst", "hprot", "hwdata"]
PINS += ["hready_in", "hready_out", "hresp", "hrdata"]


@dataclass
class Transfer:
    """One address phase and, if it is a transfer, its data phase.

    ``data`` is the value for the addressed bytes, right aligned; ``prot`` is HPROT; ``sel`` False
    addresses another slave (``foreign`` wait states). After the run: ``resp``, ``data`` of a read,
    ``waits``.
    """

    addr: int
    write: bool = False
    size: int = 2
    data: int = 0
    trans: int = NONSEQ
    sel: bool = True
    foreign: int = 0
    prot: int = 3
    resp: int | None = None
    waits: int = 0


class AhbHost(BusDriver):
    """Drives the slave port ``signals`` of ``entity``, at the rising edge; 32 bits of data.

    hready_in is the bus's HREADY, an input of the slave; hready_out is the slave's own. A bench
    with several slaves derives the one from the other; with ``feedback`` the host does, for a slave
    that is alone. A bus without hready_in (None) has hready_out for both.
    ``entity.other_phase`` and ``entity.other_ready``, where they exist, stand for another slave
    that owns the data phase.
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
        feedback: bool = False,
    ) -> None:
        super().__init__(entity, None, clock)
        self.bus = named_signals(signals).connect(entity, PINS)
        if isinstance(self.bus.hready_in, Unconnected):
            self.bus.hready_in = self.bus.hready_out
        elif feedback:
            cocotb.start_soon(self._feed_back())
        self.other = hasattr(entity, "other_phase")
        for n in ("hsel", "haddr", "htrans", "hwrite", "hsize", "hburst", "hwdata"):
            getattr(self.bus, n).value = 0
        self._other(False, True)

    async def _feed_back(self) -> None:
        while True:
            self.bus.hready_in.value = self.bus.hready_out.value
            await ValueChange(self.bus.hready_out)

    def _other(self, phase: bool, ready: bool) -> None:
        if self.other:
            self.entity.other_phase.value = int(phase)
            self.entity.other_ready.value = int(ready)

    def _address(self, t: Transfer | None) -> None:
        bus = self.bus
        if t is None:
            t = Transfer(random.getrandbits(32), trans=IDLE, write=bool(random.getrandbits(1)))
        bus.hsel.value, bus.haddr.value, bus.htrans.value = int(t.sel), t.addr, t.trans
        bus.hwrite.value, bus.hsize.value = int(t.write), t.size
        bus.hprot.value = t.prot

    def _data(self, t: Transfer | None) -> None:
        word = random.getrandbits(32)
        if t and t.write:
            shift = 8 * (t.addr & 3)
            mask = ((1 << (8 << t.size)) - 1) << shift & 0xFFFFFFFF
            word = word & ~mask | t.data << shift & mask
        self.bus.hwdata.value = word

    async def run(
        self, transfers: list[Transfer], cancel: bool = False, limit: int = 100_000
    ) -> None:
        """All transfers in order; ``cancel``: after ERROR the next address phase becomes IDLE.

        AssertionError when an answer breaks the protocol, or after ``limit`` cycles.
        """
        queue, prior = list(transfers), (True, OKAY)
        ap: Transfer | None = None
        dp: Transfer | None = None
        for _ in range(limit):
            if not queue and ap is None and dp is None:
                break
            await RisingEdge(self.clock)
            ready, resp = int(self.bus.hready_in.value), int(self.bus.hresp.value)
            mine = dp is not None and dp.sel
            if dp is not None and not mine:
                ready_other = dp.foreign == 0
                assert ready == ready_other
                dp.foreign -= not ready_other
            elif dp is None or not dp.trans & 2:
                assert ready and resp == OKAY, "IDLE or BUSY must be answered OKAY at once"
            elif resp == ERROR:
                assert ready == (prior == (0, ERROR)), "ERROR takes two cycles"
            else:
                assert prior != (0, ERROR)
            prior = (ready, resp)
            if ready:
                if dp:
                    dp.resp = resp
                    if mine and not dp.write and resp == OKAY and dp.trans & 2:
                        value = self.bus.hrdata.value
                        lanes = str(value)[::-1][8 * (dp.addr & 3) :][: 8 << dp.size]
                        assert set(lanes) <= {"0", "1"}, f"read data {value}"
                        dp.data = int(lanes[::-1], 2)
                dp, ap = ap, queue.pop(0) if queue else None
                self._address(ap)
                self._data(dp)
            else:
                assert dp is not None, "a cycle without a data phase has HREADY high"
                dp.waits += 1
                if resp == ERROR and cancel and ap is not None and ap.trans & 2:
                    queue.insert(0, ap)
                    ap = Transfer(ap.addr, trans=IDLE)
                    self._address(ap)
            other = dp if dp is not None and not dp.sel else None
            self._other(other is not None, other is None or other.foreign == 0)
        else:
            raise AssertionError(f"transfers not finished after {limit} cycles")

    async def write(self, addr: int, data: int, size: int = 2) -> int:
        """One write; returns the response."""
        t = Transfer(addr, True, size, data)
        await self.run([t])
        assert t.resp is not None
        return t.resp

    async def read(self, addr: int, size: int = 2) -> int:
        """One read; AssertionError when the answer is not OKAY."""
        t = Transfer(addr, False, size)
        await self.run([t])
        assert t.resp == OKAY, f"read of {addr:#x} was refused"
        return t.data
