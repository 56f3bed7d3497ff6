# SPDX-License-Identifier: Apache-2.0
"""The host's side as the vendor's driver does it (docs/kpu.md 3), on a running tb_top.

The file of the model lies in storage as it does in a K210's memory; the tables' addresses are its
own offsets plus that place. The device itself moves whole maps between storage and AI RAM as it
runs the layers (``maps`` "dma"); a K210's driver (``maps`` "window") writes and reads them through
the window of the AI RAM, as this one does with what is no whole map. Layers run

* ``layers``: one by one, each with its own interrupt (sequence 2 of docs/kpu.md 3),
* ``burst``: up to twelve at a time with the almost-empty interrupt (sequence 1),
* ``tasks``: as a task list through the AI_* registers, input and result in storage.

With "window" a map for main memory comes through fifo_data_out in the first two. A loop here
replaces the DMA channel that empties it and looks at AI_STATUS; on a chip that is a request
line.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt
from cocotb.triggers import First, RisingEdge, Timer

from openkpu.arithmetic.integers import round_up
from openkpu.kmodel import KpuStep, Segment
from openkpu.kmodel.residence.map_plan import MapPlan, maps_to_bring, segment_parts, size_of
from openkpu.layer import airam
from openkpu.layer.airam import bytes_of
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout, map_bytes
from openkpu.words import MAPS
from openkpu_tb.core.registers import (
    AI,
    EIGHT_BIT_MODE,
    FIFO_DATA_OUT,
    FIFO_THRESHOLD,
    INTERRUPT_CLEAR,
    INTERRUPT_MASK,
    INTERRUPT_STATUS,
    Int,
    Kpu,
)
from openkpu_tb.device import ram_window
from openkpu_tb.device.device import Device, DeviceTimeout
from openkpu_tb.device.simulation import SLOW

Bytes = npt.NDArray[np.uint8]
Beat = Callable[[int], None]

BURST = 12  # layers that are pushed at a time
ALL = int(Kpu.CALC_DONE | Kpu.ALMOST_EMPTY | Kpu.ALMOST_FULL)
THRESHOLDS = BURST | 1 << 4  # almost full at 12 layers, almost empty at 1
FILE_AT = 0x100  # where the file begins in storage
RESULT_ALIGN = 16  # bytes: a multiple of every bus word
CHUNK = 4096  # transfers handed to the bus driver at a time
POLL = 128  # cycles between two looks at AI_STATUS
CLOCK = 10  # ns, as in tb_top


def storage_bytes(file_bytes: int, layers: int, largest_map: int, moved: int = 0) -> int:
    """Storage that a model needs: file, task list of a segment, its input and its result, and
    ``moved`` bytes of maps that its layers load and store."""
    return (
        round_up(FILE_AT + file_bytes, 64)
        + round_up(96 * layers, 64)
        + 2 * round_up(largest_map, 64)
        + moved
    )


class Driver:
    """Runs segments of a model's layers; tracks which AI RAM bytes are known."""

    def __init__(
        self, device: Device, file: bytes, *, fast: bool = False, maps: str = "window"
    ) -> None:
        """``fast``: maps go through the back door instead of the host's window or the DMA."""
        assert maps in MAPS, maps
        self.device, self.file, self.fast = device, file, fast
        self.dma = maps == "dma" and not fast
        self.stored: dict[Layout, Bytes] = {}  # maps that the last segment left in storage
        self.known = np.zeros(AI_RAM_ROWS * ROW_BYTES, dtype=bool)  # bytes the host can vouch for
        self.ram = airam.new_ram()  # and their values
        self.host_cycles = 0  # spent on moving maps through the window
        self.moved_by_host = 0  # bytes of maps that the host moved through the window
        self.moved = 0  # and that the device moved as layers ran
        self.began: int | None = None  # cycle of the first access since ``forget``
        self.ended = 0  # cycle in which the last byte of a map or result had arrived
        self.seen: list[int] = []  # KPU interrupts in the order they were served

    def forget(self) -> None:
        """Another run begins: what was counted, ``began`` and ``ended`` anew."""
        self.host_cycles, self.moved, self.moved_by_host, self.began, self.ended = 0, 0, 0, None, 0

    async def load_file(self) -> None:
        """Put the model's file into storage."""
        await self.device.back.load_storage(FILE_AT, np.frombuffer(self.file, dtype=np.uint8))

    # -------------------------------------------------------------------- maps
    async def _send(self, transfers: Sequence[ram_window.Transfer]) -> None:
        """Perform transfers, and count the cycles."""
        start = int(self.device.tb.cycle.value)
        for at in range(0, len(transfers), CHUNK):
            await self.device.transfer(*transfers[at : at + CHUNK])
        self.ended = int(self.device.tb.cycle.value)
        self.host_cycles += self.ended - start

    async def upload(self, layout: Layout, x: Bytes) -> None:
        """A dense map (C, H, W) into the AI RAM."""
        airam.pack_map(self.ram, layout.base, x)
        self.known[bytes_of(layout)] = True
        if self.fast:
            rows = slice(layout.base * ROW_BYTES, (layout.base + layout.rows) * ROW_BYTES)
            await self.device.back.load_ram(layout.base, self.ram[rows])
        else:
            self.moved_by_host += x.size
            await self._send(ram_window.writes(ram_window.spans(layout), x))

    async def download(self, layout: Layout) -> Bytes:
        """A dense map out of the AI RAM, or out of storage when the last segment left it there."""
        if layout in self.stored:
            return self.stored[layout]
        if self.fast:
            y, unknown = await self.device.read_map(layout)
            assert not unknown.any(), f"unknown bits in the map at row {layout.base}"
        else:
            transfers = ram_window.reads(ram_window.spans(layout))
            await self._send(transfers)
            self.moved_by_host += size_of(layout)
            y = ram_window.collect_bytes(transfers).reshape(
                layout.channels, layout.height, layout.width
            )
        return y

    def holds(self, layout: Layout) -> bool:
        """The whole of a map was written by the device or by ``upload``."""
        return bool(self.known[bytes_of(layout)].all())

    def known_map(self, layout: Layout) -> Bytes:
        """A map as the host believes it to be."""
        return self.ram[bytes_of(layout)]

    def learn(self, layout: Layout, y: Bytes) -> None:
        """A map that the device has written."""
        airam.write_rows(self.ram, layout, y)
        self.known[bytes_of(layout)] = True

    async def bring_up(
        self, segment: Segment, plan: MapPlan | None = None, heads: Collection[int] = ()
    ) -> set[int]:
        """Upload the data that the layers read, unless the device has them or the segment makes
        them; with a plan whole maps are written to storage, from where the layers load them.

        Layers ``heads`` begin a task list, which brings their map: those of them are returned whose
        map comes from the CPU.
        """
        brought = set()
        args = [step.arg for step in segment.steps]

        def lacks(at: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
            return ~self.known[at] | (self.ram[at] != segment.ram[at])

        for number, layout, at in maps_to_bring(args, lacks, plan is not None):
            if layout is None:
                await self._upload_rows(at, segment.ram)
            elif plan is None or layout != args[number].in_layout:
                await self.upload(layout, segment.ram[at])
            else:
                if number in heads:
                    brought.add(number)
                else:
                    x = segment.ram[at]
                    self.moved += x.size
                    await self.device.back.load_storage(plan.load(number, layout), x.reshape(-1))
                self.learn(layout, segment.ram[at])
        return brought

    async def _upload_rows(self, at: npt.NDArray[np.int32], ram: Bytes) -> None:
        """Single bytes of a map that is partly the device's own work."""
        self.ram[at], self.known[at] = ram[at], True
        if self.fast:
            for row in np.unique(at // ROW_BYTES):
                data = self.ram[row * ROW_BYTES : (row + 1) * ROW_BYTES]
                await self.device.back.load_ram(int(row), data)
        else:
            self.moved_by_host += at.size
            await self._send(ram_window.writes([(int(i), 1) for i in at], ram[at]))

    # ------------------------------------------------------------------ layers
    def argument(self, step: KpuStep, **fields: int) -> list[int]:
        """A layer's words with the addresses of its tables in storage."""
        arg = step.arg
        placed = arg.replace(
            para_start_addr=FILE_AT + arg.para_start_addr,
            bwsx_base_addr=FILE_AT + arg.bwsx_base_addr,
            active_addr=FILE_AT + arg.active_addr,
            **fields,
        )
        return [int(word) for word in placed.encode()]

    async def run(
        self, way: str, segment: Segment, limit: int, beat: Beat | None = None
    ) -> dict[int, Bytes]:
        """Run a segment; the dense maps that came back from it, by place in the segment.

        DeviceError when the device reports one, DeviceTimeout after ``limit`` cycles of a wait.
        """
        if self.began is None:
            self.began = int(self.device.tb.cycle.value)
        if way == "tasks":  # the device loads the first map itself
            first = segment.steps[0].arg.in_layout
            self.learn(first, segment.ram[bytes_of(first)])
        self.stored = {}
        plan = self._plan(way, segment) if self.dma else MapPlan(0)
        heads = [part[0] for part in segment_parts(segment.to_main)] if way == "tasks" else []
        brought = await self.bring_up(segment, plan if self.dma else None, heads)
        found: dict[int, Bytes] = {}
        for part in segment_parts(segment.to_main):
            steps = [segment.steps[i] for i in part]
            fields = [plan.fields(i) for i in part]
            if way == "layers":
                for step, more in zip(steps, fields, strict=True):
                    y = await self.run_layer(step, limit, beat, more)
            elif way == "burst":
                y = await self.run_burst(steps, limit, beat, fields)
            else:
                layout = steps[0].arg.in_layout
                known = part[0] in brought | {0}
                x = self.known_map(layout) if known else await self.download(layout)
                y = await self.run_tasks(steps, x, limit, beat, fields)
                if self.dma:
                    self.stored[steps[-1].arg.out_layout] = y
            for i in set(part) & set(plan.stores):
                self.ended = self.device.woke
                stored = self.stored[plan.stores[i][1]] = await self._stored(*plan.stores[i])
                y = stored if i == part[-1] and steps[-1].to_main else y
            if y is not None:
                found[part[-1]] = y
        return found

    def _plan(self, way: str, segment: Segment) -> MapPlan:
        """Which maps leave by store_map: those for main memory, and maps that the CPU reads next.

        The last map of a task list leaves by AI_RES_ADR.
        """
        steps = segment.steps
        largest = max(
            map_bytes(s) for step in steps for s in (step.arg.in_shape, step.arg.out_shape)
        )
        plan = MapPlan(storage_bytes(len(self.file), len(steps), largest))
        args = [step.arg for step in steps]
        if way == "tasks":
            ends = [part[-1] for part in segment_parts(segment.to_main)]
            plan.store_wanted(args, segment.wanted, ends)
        else:
            plan.store_all(args, segment.to_main, segment.wanted)
        return plan

    async def _stored(self, at: int, layout: Layout) -> Bytes:
        """A map that a layer has stored."""
        shape = layout.channels, layout.height, layout.width
        y, unknown = await self.device.back.read_storage(at, map_bytes(shape))
        assert not unknown.any(), f"unknown bits in the map that was stored at {at:#x}"
        self.moved += y.size
        return y.reshape(shape)

    async def _prepare(self, eight_bit: bool) -> None:
        """Nothing pending, all masked but errors, width of the weights."""
        values = {INTERRUPT_CLEAR: ALL, INTERRUPT_MASK: ALL, AI["AI_INT_MASK"]: int(Int.DONE)}
        await self.device.write_many(values | {EIGHT_BIT_MODE: int(eight_bit)})

    async def _serve(self) -> int:
        """The interrupt: what it says, cleared. DeviceError when it is an error's."""
        status = await self.device.read(INTERRUPT_STATUS)
        await self.device.write(INTERRUPT_CLEAR, ALL)
        if not status:
            await self._check_error()
            raise AssertionError("an interrupt without a cause")
        self.seen.append(status)
        return status

    async def _check_error(self) -> None:
        """Raise the device's error, if any; a soft reset first drops the layers behind it, which
        the device would run once the error is acknowledged."""
        error = await self.device.error()
        if error:
            await self.device.soft_reset()
            await self.device.clear()
            raise error

    async def run_layer(
        self,
        step: KpuStep,
        limit: int,
        beat: Beat | None = None,
        more: dict[str, int] | None = None,
    ) -> Bytes | None:
        """Sequence 2: one layer and its calc_done, or its map through the FIFO.

        ``more``: further fields of its argument; with store_map among them there is no FIFO.
        """
        device, fields = self.device, {"send_data_out": 0, **(more or {})}
        await self._prepare(step.eight_bit)
        if step.to_main and not fields.get("store_map"):
            await device.push(self.argument(step, **fields | {"send_data_out": 1}))
            return (await self._receive(step.arg, limit, beat)).reshape(step.arg.out_shape)
        await device.write(INTERRUPT_MASK, int(Kpu.ALMOST_EMPTY | Kpu.ALMOST_FULL))
        await device.push(self.argument(step, int_en=1, **fields))
        await device.wait(limit, beat)
        status = await self._serve()
        assert status == Kpu.CALC_DONE, f"interrupt status {status}, expected calc_done alone"
        return None

    async def run_burst(
        self,
        steps: Sequence[KpuStep],
        limit: int,
        beat: Beat | None = None,
        fields: Sequence[dict[str, int]] = (),
    ) -> Bytes | None:
        """Sequence 1: bursts of twelve layers; the last one ends it by FIFO or calc_done.

        ``fields``: further ones of each argument.
        """
        device, last = self.device, steps[-1]
        more = list(fields) or [{} for _ in steps]
        out = last.to_main and not more[-1].get("store_map")
        await self._prepare(last.eight_bit)
        await device.write(FIFO_THRESHOLD, THRESHOLDS)
        todo = [
            self.argument(
                s, **{"send_data_out": int(out and s is last)} | own, int_en=int(s is last)
            )
            for s, own in zip(steps, more, strict=True)
        ]

        async def push() -> None:
            burst, todo[:] = todo[:BURST], todo[BURST:]
            await device.push([word for words in burst for word in words])
            rest = ALL if out else int(Kpu.ALMOST_EMPTY | Kpu.ALMOST_FULL)
            mask = int(Kpu.CALC_DONE | Kpu.ALMOST_FULL) if todo else rest
            await device.write(INTERRUPT_MASK, mask)

        await push()
        while todo:
            await device.wait(limit, beat)
            status = await self._serve()
            assert status == Kpu.ALMOST_EMPTY, f"interrupt status {status}, expected almost_empty"
            await push()
        if out:
            return (await self._receive(last.arg, limit, beat)).reshape(last.arg.out_shape)
        await device.wait(limit, beat)
        status = await self._serve()
        assert status == Kpu.CALC_DONE, f"interrupt status {status}, expected calc_done alone"
        return None

    async def _receive(self, arg: LayerArg, limit: int, beat: Beat | None) -> Bytes:
        """The DMA channel: 64-bit words out of fifo_data_out, the last one padded."""
        device, tb = self.device, self.device.tb
        size = map_bytes(arg.out_shape)
        words, found = (size + 7) // 8, []
        start = looked = int(tb.cycle.value)
        while len(found) < 2 * words:
            status = await device.read(AI["AI_STATUS"])
            held = status >> 16 & 31
            now = int(tb.cycle.value)
            if status & 2:
                await self._check_error()
            if held:
                take = 2 * min(held, words - len(found) // 2)
                reads = [
                    ram_window.Transfer(FIFO_DATA_OUT + 4 * (i & 1), False) for i in range(take)
                ]
                found += [t.data for t in await device.transfer(*reads)]
                start = now
                continue
            if now - start > limit:
                raise DeviceTimeout(f"{len(found) // 2} of {words} result words in {limit} cycles")
            if beat and now - looked > 1 << (15 if SLOW else 21):
                looked = now
                beat(now - start)
            await First(RisingEdge(tb.irq), Timer(POLL * CLOCK, "ns"))
        data = np.array(found, dtype="<u4").view(np.uint8)
        self.ended = int(tb.cycle.value)
        self.moved += size
        assert not data[size:].any(), f"padding of the last result word: {data[size:]}"
        return data[:size].copy()

    # --------------------------------------------------------------- task list
    async def run_tasks(
        self,
        steps: Sequence[KpuStep],
        x: Bytes,
        limit: int,
        beat: Beat | None = None,
        fields: Sequence[dict[str, int]] = (),
    ) -> Bytes:
        """Layers as one inference of the task-list mode on map ``x``; the result from storage.

        ``fields``: further ones of each argument.
        """
        device, last = self.device, steps[-1].arg
        more = list(fields) or [{} for _ in steps]
        args = [s.arg.replace(**own) for s, own in zip(steps, more, strict=True)]
        words = np.concatenate([arg.encode() for arg in args]).astype("<u8").view(np.uint8)
        size = map_bytes(last.out_shape)
        at_list = round_up(FILE_AT + len(self.file), 64)
        at_pixels = round_up(at_list + words.size, 64)
        at_result = round_up(at_pixels + x.size, RESULT_ALIGN)
        await device.back.load_storage(at_list, words)
        await device.back.load_storage(at_pixels, x.reshape(-1))
        await self._prepare(steps[0].eight_bit)
        await device.configure(
            {
                "AI_INT_MASK": 0,
                "AI_CNN_MODE": 1,
                "AI_INF_LEFT": 0,
                "AI_PIX_ADR": at_pixels,
                "AI_WGT_ADR": FILE_AT,
                "AI_BIAS_ADR": FILE_AT,
                "AI_LIST_ADR": at_list,
                "AI_LIST_LEN": len(steps),
                "AI_RES_ADR": at_result,
                "eight_bit_mode": int(steps[0].eight_bit),
            }
        )
        await device.start()
        await device.finish(limit, beat)
        self.ended = device.woke
        y, unknown = await device.back.read_storage(at_result, size)
        self.moved += x.size + size
        assert not unknown.any(), "unknown bits in the result"
        return y.reshape(last.out_shape)
