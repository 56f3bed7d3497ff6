# SPDX-License-Identifier: Apache-2.0
"""Predictor: what registers and memories must hold, from what a passive observer sees.

It receives the host's transfers, the data that the bench loads into the memories, and hardware
resets. When the host pushes a layer or starts a list, the golden model runs the job at once in the
mirror of the memories. Every byte that the job writes is tracked until the device has provably
written it: after an earlier reset or error the byte may have any of a few values.
"""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyuvm import ConfigDB, uvm_analysis_port, uvm_subscriber

from openkpu.arithmetic.words import to_stored
from openkpu.layer import airam
from openkpu.layer.argument import WORDS, LayerArg
from openkpu.layer.golden import run_layer
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import (
    AI,
    AI_RAM,
    COUNTERS,
    EIGHT_BIT_MODE,
    FIFO_CTRL,
    PERF,
    Ctrl,
    Err,
    Int,
)
from openkpu_tb.handle import Handle
from openkpu_tb.uvm.agents import Bytes, Memory

Mask = npt.NDArray[np.bool_]
STOPPING = (*range(Err.BAD_SIZE, Err.BUS_ERROR + 1), Err.LIST_CHANGED, Err.WATCHDOG, Err.BAD_ACCESS)
PERF_INFERENCES = PERF + 8 * COUNTERS.index("inferences")
BUS_BYTES = 4  # of a bus word of 32 bits
MEMORIES = ("ai_ram", "storage")
MOST_ROW = 0x7FFF  # bits of the first row in AI_SPARE_ROWS
FLUSH = 4  # fifo_ctrl: 0 in this bit empties the layer FIFO


@dataclass
class Write:
    """Bytes that a job of the device writes: those of ``mask`` in a span of a memory."""

    where: str  # "storage" or "ai_ram"
    span: slice
    mask: Mask
    before: Bytes
    after: Bytes
    inference: int  # of its job


@dataclass
class PredictedProduct:
    """A product of float16 that the device is to compute: its operands as bytes."""

    arg: LayerArg
    weights: Bytes
    x: Bytes


class Predictor(uvm_subscriber):
    """Mirror of registers and memories; its export receives the host's transfers.

    ``products`` publishes the products of float16 among the layers.
    """

    def build_phase(self) -> None:
        self.tb: Handle = ConfigDB().get(self, "", "TB")
        self.products = uvm_analysis_port("products", self)
        self.doubtful: list[Write] = []  # where the doubt is from
        self.reset_export = self.uvm_AnalysisImp("reset_export", self, lambda _: self.reset())
        self.layers = self.inferences = self.count = 0
        self.waited = 0  # bytes that were weights, certainly
        self.open: list[Write] = []
        self.reset()

    # at time 0 the bench does not know its sizes yet
    @cached_property
    def ram(self) -> Bytes:
        """The AI RAM as it must be."""
        return airam.new_ram(int(self.tb.ram_rows.value))

    @cached_property
    def storage(self) -> Bytes:
        """The storage as it must be."""
        return np.zeros(4 * int(self.tb.store_words.value), dtype=np.uint8)

    @cached_property
    def valid(self) -> dict[str, Mask]:
        """Bytes whose content is defined."""
        return {name: np.zeros(self.mirror(name).size, dtype=bool) for name in MEMORIES}

    @cached_property
    def doubt(self) -> dict[str, Mask]:
        """Bytes that an interrupted job may have written."""
        return {name: np.zeros(self.mirror(name).size, dtype=bool) for name in MEMORIES}

    @cached_property
    def waiting(self) -> Mask:
        """Bytes of the AI RAM in which weights may have waited since they were looked at."""
        return np.zeros(self.ram.size, dtype=bool)

    def mirror(self, where: str) -> Bytes:
        """The expected content of a memory."""
        return self.ram if where == "ai_ram" else self.storage

    def reset(self) -> None:
        """A hardware reset: registers begin anew, what was at work is in doubt."""
        self.registers: dict[int, int] = {}
        self.low = 0
        self.words: list[int] = []
        self.spare = slice(0, 0)  # bytes of the AI RAM: AI_SPARE_ROWS
        self._end(0)

    # ---------------------------------------------------------------- memories
    def memory(self, event: Memory) -> None:
        """The bench put something into a memory."""
        span = slice(event.addr, event.addr + event.data.size)
        if event.written:
            self.mirror(event.where)[span] = event.data
            self.valid[event.where][span] = True
            self.doubt[event.where][span] = False

    def settle(self, where: str, span: slice, found: Bytes) -> None:
        """Bytes in doubt, or where weights waited, were looked at: they are what was found."""
        if where == "ai_ram" and self.waiting[span].any():
            free = self.waiting[span]
            self.waited += int((self.ram[span][free] != found[free]).sum())
            self.ram[span][free] = found[free]
            self.valid[where][span] |= free
            self.doubt[where][span] &= ~free
            free[:] = False
        doubt = self.doubt[where][span]
        if doubt.any():
            self.mirror(where)[span][doubt] = found[doubt]
            self.valid[where][span] |= doubt
            doubt[:] = False
        if self.doubtful and not any(part.any() for part in self.doubt.values()):
            self.doubtful = []

    def _end(self, kept: int | None = None) -> None:
        """The job is over: whole, or from inference ``kept`` on in doubt."""
        if kept is not None:
            late = [write for write in self.open if write.inference >= kept]
            self.doubtful += late
            for write in late:
                self.doubt[write.where][write.span] |= write.mask
        self.open = []
        self.running = self.stopping = False

    # --------------------------------------------------------------- transfers
    def write(self, tt: Transfer) -> None:
        """A transfer on the host's bus."""
        if tt.resp:
            return
        if not tt.write:
            self._read(tt)
        elif tt.addr >= AI_RAM:
            span = slice(tt.addr - AI_RAM, tt.addr - AI_RAM + (1 << tt.size))
            self.ram[span] = np.frombuffer(tt.data.to_bytes(1 << tt.size, "little"), np.uint8)
            self.valid["ai_ram"][span] = True
        elif tt.addr == 0:
            self.low = tt.data
        elif tt.addr == 4:
            self.words.append(tt.data << 32 | self.low)
            if len(self.words) == WORDS:
                self._layer(LayerArg.decode(self.words), 0, 0)
                self.words = []
        else:
            self.registers[tt.addr] = tt.data
            if tt.addr == AI["AI_SPARE_ROWS"]:
                self._spare_rows(tt.data)
            elif tt.addr == AI["AI_CTRL"]:
                self._command(tt.data)
            elif tt.addr == FIFO_CTRL and not tt.data & FLUSH:
                self.words = []

    def _spare_rows(self, value: int) -> None:
        """Rows that exist may hold any weights from now on; others are not stored."""
        first, rows = value & MOST_ROW, value >> 16
        if int(self.tb.weights_wait.value) and (not rows or first + rows <= self.ram.size // 64):
            self.spare = slice(64 * first, 64 * (first + rows))

    def _command(self, value: int) -> None:
        if value & Ctrl.SOFT_RESET:
            self.words = []
            self._end(0)
        if value & Ctrl.STOP:
            self.stopping = True
        r = {name: self.registers.get(addr, 0) for name, addr in AI.items()}
        unaligned = (r["AI_RES_ADR"] | r["AI_RES_STRIDE"]) % BUS_BYTES
        startable = r["AI_CNN_MODE"] and r["AI_LIST_LEN"] and not unaligned
        # a start while another job is not known to be over is one that the device refuses
        if value & Ctrl.START and startable and not self.running and not self.words:
            self.open, self.running, self.stopping = [], True, False
            self._list()

    def _read(self, tt: Transfer) -> None:
        """Answers that show the progress of the device."""
        if tt.addr == AI["AI_STATUS"] and not tt.data & 1 and not self.stopping:
            if not tt.data >> 1 & 1:
                self._end()
        elif tt.addr == AI["AI_ERR_CODE"] and tt.data in STOPPING:
            self.running = False
        elif tt.addr == AI["AI_ERR_INFO"] and not self.running:
            self._end(tt.data >> 24)
        elif tt.addr == PERF_INFERENCES and (self.stopping or tt.data == self.count):
            self._end(tt.data)
        elif tt.addr == AI["AI_INT_STATUS"] and tt.data & Int.DONE and self.count == 1:
            self._end()

    # -------------------------------------------------------------------- jobs
    def _layer(
        self,
        arg: LayerArg,
        weights_at: int,
        bias_at: int,
        inference: int = 0,
        **place: bool,
    ) -> bool:
        """Run a layer in the mirror; False when the device must refuse it.

        ``place``: ``first`` and ``last`` of a task list.
        """
        eight_bit = bool(self.registers.get(EIGHT_BIT_MODE, 0))
        code = arg.device_code(
            eight_bit=eight_bit,
            ram_rows=self.ram.size // 64,
            fp16_lanes=int(self.tb.fp16_lanes.value),
            dilation=int(self.tb.dilation.value),
            bus_bytes=BUS_BYTES,
            **place,
        )
        if code:
            return False
        self.waiting[self.spare] = True
        count = arg.weight_count * arg.weight_size(eight_bit)
        weights = self._at(weights_at + arg.para_start_addr, count)
        bn, act = (8 * words for words in arg.table_words)
        tables = (
            self._at(bias_at + at, size).view("<u8")
            for at, size in ((arg.bwsx_base_addr, bn), (arg.active_addr, act))
        )
        if arg.load_map:
            pixels = self._at(arg.map_load_addr, int(np.prod(arg.in_shape)))
            self._map(arg.in_layout, pixels.reshape(arg.in_shape), inference)
        x, *second = (airam.read_rows(self.ram, m) for m in arg.in_layouts)
        x2 = second[0] if second else None
        if arg.fp16:
            self.products.write(PredictedProduct(arg, weights, x))
        y = run_layer(arg, x, weights, *tables, x2=x2, eight_bit=eight_bit).y
        self._map(arg.out_layout, y, inference)
        if arg.store_map:
            self._result(arg.map_store_addr, y.view(np.uint8), bool(arg.out32), inference)
        self.layers += 1
        return True

    def _result(self, at: int, y: Bytes, words: bool, inference: int) -> None:
        """A map into the storage."""
        stored = to_stored(y, words)
        self._put("storage", at, stored, np.ones(stored.size, dtype=bool), inference)

    def _map(self, layout: airam.Layout, y: Bytes, inference: int) -> None:
        """A map into the AI RAM."""
        after, mask = airam.new_ram(layout.rows), airam.new_ram(layout.rows)
        own = dataclasses.replace(layout, base=0)
        airam.write_rows(after, own, y)
        airam.write_rows(mask, own, np.ones(y.shape, dtype=np.uint8))
        self._put("ai_ram", 64 * layout.base, after, mask.astype(bool), inference)

    def _put(self, where: str, at: int, after: Bytes, mask: Mask, inference: int) -> None:
        span = slice(at, at + after.size)
        mirror = self.mirror(where)
        self.open.append(Write(where, span, mask, mirror[span].copy(), after, inference))
        mirror[span][mask] = after[mask]
        self.valid[where][span] |= mask
        self.doubt[where][span] &= ~mask

    def _at(self, addr: int, size: int) -> Bytes:
        return np.ascontiguousarray(self.storage[addr : addr + size])

    def _list(self) -> None:
        """Run the task list in the mirror, as often as mode and AI_INF_LEFT say."""
        r = {name: self.registers.get(addr, 0) for name, addr in AI.items()}
        count = self.count = 1 + (r["AI_INF_LEFT"] if r["AI_CNN_MODE"] & 3 == 2 else 0)
        pixels, following = r["AI_PIX_ADR"], r["AI_NPIX_ADR"]
        for number in range(count):
            result = r["AI_RES_ADR"] + number * r["AI_RES_STRIDE"]
            if not self._inference(r, number, pixels, result):
                return
            pixels, following = following, following + r["AI_PIX_STRIDE"]

    def _inference(self, r: dict[str, int], number: int, pixels: int, result: int) -> bool:
        words = self._at(r["AI_LIST_ADR"], 96 * r["AI_LIST_LEN"]).view("<u8").reshape(-1, WORDS)
        args = [LayerArg.decode(row) for row in words]
        first, last = args[0], args[-1]
        image = self._at(pixels, int(np.prod(first.in_shape)))
        self._map(first.in_layout, image.reshape(first.in_shape), number)
        for i, arg in enumerate(args):
            place = {"first": i == 0, "last": i == len(args) - 1}
            if not self._layer(arg, r["AI_WGT_ADR"], r["AI_BIAS_ADR"], number, **place):
                return False
        y = airam.unpack_map(self.ram, last.image_dst_addr, last.out_shape)
        self._result(result, y, bool(last.out32), number)
        self.inferences += 1
        return True
