# SPDX-License-Identifier: Apache-2.0
"""Passive observer of a running tb_top that fills the functional coverage model.

It sees the host's transfers on the pins, the descriptor of every layer that ends (a register of
tb_top), the knobs and counters of the AHB fabric, and the dumps of the memories; nothing of what a
test intends. The pins do not show which numbers a product of float16 has met: the caller that runs
the golden model beside the device reports them (``expect``, ``note``). A layer counts when a memory
was read back after its end and before a reset: unread results prove nothing. The test compares the
bytes that were read back, and a test that fails leaves no coverage.
"""

import atexit
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from openkpu_tb.ahb.host_agent import OKAY, AhbHostMonitor, Transfer
from openkpu_tb.core import descriptor
from openkpu_tb.core.backdoor import LOOKS
from openkpu_tb.core.registers import AI, AI_RAM, FIFO_DATA_OUT, LAYER_ARGUMENT_FIFO, Ctrl, Err
from openkpu_tb.coverage.instrument import BINS
from openkpu_tb.coverage.model import (
    ACCESSES,
    MODES,
    TRAFFIC,
    Bin,
    classify,
    dilation_bins,
    move_bins,
    register_words,
    task,
    wait_bins,
)
from openkpu_tb.handle import Handle

if TYPE_CHECKING:  # needs cocotb-coverage, a simulation that nobody counts does not
    from openkpu_tb.coverage.sampler import Sampler

READ, WRITE, RESET, READ_BUSY, WRITE_BUSY = ACCESSES
ERRORS = [error for error in Err if error]
MODE_OF = {0: "host", 1: "list", 2: "stream", 3: "list"}  # by AI_CNN_MODE when started
REFUSING = ("loss_prob", "retry_prob", "split_prob", "rival_prob")  # knobs of the fabric
WAITING = ("rd_wait", "seq_wait", "wr_wait", "wait_prob")

Place = tuple[int, int]

_sampler: "Sampler | None" = None
_collector: "Collector | None" = None


def attach(tb: Handle) -> None:
    """Observe ``tb`` until the cocotb test ends; the bins are written when the process does."""
    global _collector
    if _collector is None:
        atexit.register(sampler().save, Path(os.environ[BINS]))
    if _collector is None or _collector.over:
        _collector = Collector(tb, sampler())


def sampler() -> "Sampler":
    """The sampler of this process: the coverage database is one for all who fill it."""
    from openkpu_tb.coverage.sampler import Sampler  # needs cocotb-coverage

    global _sampler
    if _sampler is None:
        _sampler = Sampler()
    return _sampler


def note(found: list[tuple[str, Bin]]) -> None:
    """Bins, with their crosses, that count when a memory is read back next; without an observer
    nothing."""
    if _collector is not None:
        _collector.pending += found


class Collector:
    """Observes one cocotb test.

    ``listen`` False: somebody else watches, and calls ``transfer``, ``layer``, ``read_back`` and
    ``hardware_reset``.
    """

    def __init__(self, tb: Handle, sample: Callable[[str, Bin], None], listen: bool = True) -> None:
        self.tb, self.sample = tb, sample
        self.words = register_words()
        self.mode = MODES[0]  # how the device was last started
        self.written: set[int] = set()  # words since the hardware reset
        self.worked = False  # since then
        self.refused = 0  # lost grants, RETRY and SPLIT at the end of the last layer
        self.begun = 0  # the same when the device was started
        self.before = ""  # kind of the task that ended last since the device was started
        self.pending: list[tuple[str, Bin]] = []  # bins of layers that ended, with their crosses
        # products of float16 to come: first rows of input and output, and what their numbers hit
        self.products: list[tuple[Place, list[tuple[str, Bin]]]] = []
        if not listen:
            return
        AhbHostMonitor(tb, "s", tb.clk, tb.s_busy, self.transfer)
        self._tasks = [cocotb.start_soon(t()) for t in (self._layers, self._dumps, self._resets)]

    @property
    def over(self) -> bool:
        """The test that it observed has ended."""
        return self._tasks[0].done()

    # ------------------------------------------------------------------- layers
    async def _layers(self) -> None:
        while True:
            await RisingEdge(self.tb.layer_done)
            await RisingEdge(self.tb.clk)  # samples the descriptor
            await FallingEdge(self.tb.clk)
            self.layer(int(self.tb.layer_ran.value))

    def layer(self, ran: int) -> None:
        """A layer has ended: {from a task list, descriptor}."""
        mode = self.mode if ran >> descriptor.TOTAL else MODES[0]
        before, self.refused = self.refused, self._refusals()
        run = (mode, self._traffic(before), Err.NONE.name)
        fields = descriptor.unpack(ran & ((1 << descriptor.TOTAL) - 1))
        found = classify(fields)
        self.pending += [found, ("run", run)]
        if found[0] == "float16":
            self.pending += self._product((fields["src"], fields["dst"]))
        last, self.before = self.before, task(*found)
        self.pending += [("moves", bin) for bin in move_bins(fields, self.before, mode)]
        self.pending += [("dilation", bin) for bin in dilation_bins(fields)]
        if int(self.tb.weights_wait.value):
            ways = int(self.tb.ring_ran.value)
            self.pending += [("waits", bin) for bin in wait_bins(fields, mode, ways)]
        if last and mode != MODES[0]:
            self.pending.append(("order", (self.before, last, mode)))

    def expect(self, place: Place, found: list[tuple[str, Bin]]) -> None:
        """A product of float16 that the device is to compute, and the bins that it will hit."""
        self.products.append((place, found))

    def _product(self, place: Place) -> list[tuple[str, Bin]]:
        """Bins of the product that has ended; those before it have not been computed."""
        places = [there for there, _ in self.products]
        if place not in places:
            return []
        at = places.index(place)
        (_, found), self.products = self.products[at], self.products[at + 1 :]
        return found

    async def _dumps(self) -> None:
        while True:
            await RisingEdge(self.tb.bd_go)
            if int(self.tb.bd_cmd.value) in LOOKS:
                self.read_back()

    def read_back(self) -> None:
        """A memory was looked at: the layers that ended before count."""
        for cross, bin in self.pending:
            self.sample(cross, bin)
        self.pending.clear()

    async def _resets(self) -> None:
        while True:
            await RisingEdge(self.tb.rst)
            self.hardware_reset()

    def hardware_reset(self) -> None:
        """Registers have their reset values; what ended before and was not looked at is lost."""
        self.pending.clear()
        self.products.clear()
        self.written.clear()
        self.mode, self.worked, self.refused, self.begun = MODES[0], False, 0, 0
        self.before = ""

    def _knob(self, names: tuple[str, ...]) -> bool:
        return any(int(getattr(self.tb, f"cfg_{name}").value) for name in names)

    def _refusals(self) -> int:
        return int(self.tb.refusals.value) + int(self.tb.losses.value)

    def _traffic(self, before: int) -> str:
        """State of the bus: as the fabric is set; refusals when there were any since ``before``."""
        if self._knob(REFUSING) and self._refusals() > before:
            return TRAFFIC[2]
        return TRAFFIC[1] if self._knob(WAITING) else TRAFFIC[0]

    # ---------------------------------------------------------------- registers
    def transfer(self, transfer: Transfer) -> None:
        """A transfer of the host has ended."""
        if transfer.resp != OKAY:
            return
        if transfer.addr >= AI_RAM:
            if not transfer.write:
                self.read_back()
            return
        word = self.words[transfer.addr]
        busy = bool(int(self.tb.device_busy.value))
        if transfer.write:
            self.sample("register", (word.name, WRITE_BUSY if busy else WRITE))
            self.written.add(transfer.addr)
            self._command(transfer, busy)
            return
        self.sample("register", (word.name, READ_BUSY if busy else READ))
        fresh = not self.worked and transfer.addr not in self.written
        if fresh and transfer.data == word.reset:
            self.sample("register", (word.name, RESET))
        if transfer.addr & ~7 == FIFO_DATA_OUT:
            self.read_back()
        if transfer.addr == AI["AI_ERR_CODE"] and transfer.data in ERRORS:
            self.sample("run", (self.mode, self._traffic(self.begun), Err(transfer.data).name))

    def _command(self, transfer: Transfer, busy: bool) -> None:
        """A write that starts or stops a run; a busy device continues in the mode of its start."""
        mode = None
        if transfer.addr & ~7 == LAYER_ARGUMENT_FIFO:
            mode = None if busy and self.worked else MODES[0]
            self.worked = True
        elif transfer.addr == AI["AI_CTRL"]:
            if transfer.data & Ctrl.SOFT_RESET:
                self.pending.clear()
                self.products.clear()
            if transfer.data & Ctrl.START and (not busy or transfer.data & Ctrl.SOFT_RESET):
                mode, self.worked = MODE_OF[int(self.tb.cnn_mode.value)], True
        if mode is not None:
            self.mode, self.begun, self.before = mode, self._refusals(), ""
