# SPDX-License-Identifier: Apache-2.0
"""Host agent for a bench whose clock Verilog makes: drives a slave port, and listens to it.

In such a bench a register read at the rising edge is old on one simulator and new on the other; so
everything happens on the falling edge, where both show what the next rising edge will take. The
driver pipelines: the next address goes out in the data phase of the transfer before.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cocotb.triggers import FallingEdge, RisingEdge, Timer
from cocotb.types import LogicArray
from cocotb_bus.drivers import BusDriver
from cocotb_bus.monitors import BusMonitor

from openkpu_tb.ahb.protocol import ERROR, IDLE, NONSEQ, OKAY, RETRY, SPLIT
from openkpu_tb.ahb.signals import Signals, named_signals
from openkpu_tb.handle import Handle

__all__ = ["ERROR", "OKAY", "RETRY", "SPLIT", "AhbHostDriver", "AhbHostMonitor", "AhbTimeout"]
__all__ += ["Transfer"]
PINS = ["hsel", "haddr", "htrans", "hwrite", "hsize", "hwdata", "hready", "hresp", "hrdata"]
MAX_CYCLES = 200  # without an answer


class AhbTimeout(AssertionError):
    """A transfer did not end."""


@dataclass
class Transfer:
    """One access: ``size`` as HSIZE (0 byte, 1 half, 2 word); data right-aligned.

    The driver and the monitor fill in ``resp`` and the data of a read.
    """

    addr: int
    write: bool
    data: int = 0
    size: int = 2
    resp: int = OKAY

    @property
    def lane(self) -> int:
        """Bit of the 32-bit bus where this transfer's data begin."""
        return 8 * (self.addr & 3)

    @property
    def mask(self) -> int:
        return (1 << (8 << self.size)) - 1

    def take(self, bus_word: LogicArray) -> None:
        """Set ``data`` from the whole word on the bus; ValueError for unknown bits in its lanes."""
        bits = str(bus_word)
        end = len(bits) - self.lane
        self.data = int(bits[max(end - (8 << self.size), 0) : end], 2)


class AhbHostDriver(BusDriver):
    """Performs lists of transfers; ``await driver.send(transfers)`` returns when all are done.

    AhbTimeout when the slave hangs, ValueError when what was read holds unknown bits.
    ``hready`` is the HREADY of the whole bus.
    """

    _signals = ()  # Signals finds them
    entity: Handle  # cocotb-bus says what all handles have, and no more
    clock: Handle

    def __init__(self, entity: Handle, signals: Signals | str, clock: Handle) -> None:
        super().__init__(entity, None, clock)
        self.bus = named_signals(signals).connect(entity, PINS)
        self.active = False

    async def _driver_send(self, transaction: Sequence[Transfer], sync: bool = True) -> None:
        while self.active:  # somebody else's transfers are under way
            await FallingEdge(self.clock)
        self.active = True
        try:
            await self._perform(deque(transaction))
        finally:
            self.bus.hsel.value, self.bus.htrans.value = 0, IDLE
            self.active = False

    async def _perform(self, todo: deque[Transfer]) -> None:
        bus, edge = self.bus, FallingEdge(self.clock)
        address: Transfer | None = None  # on the pins, not taken yet
        data: Transfer | None = None
        waited = 0
        selected = True  # the pins may show a transfer
        while todo or address or data:
            await edge
            ready = int(bus.hready.value)
            if data is not None:
                if data.write and not waited:  # else the pins have it
                    # a misaligned transfer reaches beyond the word
                    bus.hwdata.value = (data.data & data.mask) << data.lane & 0xFFFFFFFF
                if ready:
                    data.resp = int(bus.hresp.value)
                    if not data.write and data.resp == OKAY:
                        data.take(bus.hrdata.value)
                    data = None
            if address is None and todo:
                address = todo.popleft()
                bus.hsel.value, bus.htrans.value = 1, NONSEQ
                bus.haddr.value, bus.hsize.value = address.addr, address.size
                bus.hwrite.value = int(address.write)
                selected = True
            elif address is None and selected:
                bus.hsel.value, bus.htrans.value = 0, IDLE
                selected = False
            waited = 0 if ready else waited + 1
            if waited > MAX_CYCLES:
                raise AhbTimeout(f"no answer after {MAX_CYCLES} cycles: {data or address}")
            if ready:
                data, address = address, None


class AhbHostMonitor(BusMonitor):
    """Reports every finished transfer on the port; sleeps while the pin ``busy`` is low.

    Without ``busy`` it looks at every cycle.
    """

    _signals = ()  # Signals finds them

    def __init__(
        self,
        entity: Handle,
        signals: Signals | str,
        clock: Handle,
        busy: Handle | None,
        callback: Callable[[Transfer], None],
    ) -> None:
        self._busy = busy
        super().__init__(entity, None, clock, callback=callback)
        self.bus = named_signals(signals).connect(entity, PINS)

    async def _monitor_recv(self) -> None:
        bus = self.bus
        data: Transfer | None = None
        await FallingEdge(self.clock)  # at time 0 nothing has a value yet
        while True:
            if data is None and self._busy is not None and not int(self._busy.value):
                await RisingEdge(self._busy)
            else:
                await FallingEdge(self.clock)
            await Timer(1, "ns")  # the driver has put its values on the pins by now
            if not int(bus.hready.value):
                continue
            if data is not None:
                data.resp = int(bus.hresp.value)
                if data.resp == OKAY:
                    data.take((bus.hwdata if data.write else bus.hrdata).value)
                self._recv(data)
                data = None
            if int(bus.hsel.value) and int(bus.htrans.value) & 2:
                data = Transfer(
                    int(bus.haddr.value), bool(int(bus.hwrite.value)), size=int(bus.hsize.value)
                )
