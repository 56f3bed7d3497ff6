# SPDX-License-Identifier: Apache-2.0
"""Sequences of the virtual sequencer: layers, networks, streams.

Each one leaves the device idle and compares all of both memories (``compares`` False: it does not).
What is not given is drawn from the generator of the virtual sequencer, which the seed begins.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from pyuvm import uvm_sequence

from openkpu.arithmetic.integers import round_up
from openkpu.arithmetic.words import to_stored
from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.layer.argument import MOST_DILATED_POOL, LayerArg, LayerError
from openkpu.layer.vectors import VectorLayer
from openkpu.network.kept import spare_register, unused_parts
from openkpu.network.network import Network, Storage
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI, FIFO_DATA_OUT, Ctrl, Err
from openkpu_tb.device.device import DeviceError, Tables
from openkpu_tb.device.inference_stream import WIDEST, finish_stream
from openkpu_tb.device.simulation import SLOW
from openkpu_tb.device.spare import draw_spare
from openkpu_tb.handle import Handle

LIMIT = 2_000_000  # cycles of any single wait
INFERENCES = "PERF_INFERENCES"
SPARE_ROWS = "AI_SPARE_ROWS"


@dataclass(frozen=True)
class Sizes:
    """How large what is drawn may be."""

    layer: Limits
    shape: tuple[int, int, int]  # of a network's input: fewer than this
    layers: int  # of a network
    images: int  # of a stream


LARGE = Sizes(Limits(), (9, 24, 40), 6, 4)
SMALL = Sizes(Limits(channels=6, size=12), (4, 9, 12), 3, 3)


def sizes() -> Sizes:
    """Those for the simulator that runs."""
    return SMALL if SLOW else LARGE


class DeviceSequence(uvm_sequence):
    """Base: what a sequence on the virtual sequencer has at hand."""

    compares = True
    sequencer: Any  # a VirtualSequencer, which imports this

    @property
    def device(self):
        """The device through the agents."""
        return self.sequencer.device

    @property
    def rng(self) -> np.random.Generator:
        """The generator of all sequences."""
        return self.sequencer.rng

    @property
    def registers(self):
        """The register model."""
        return self.sequencer.registers

    def n(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most - 1``."""
        return int(self.rng.integers(least, most))

    async def pre_body(self) -> None:
        used, name = self.sequencer.used, type(self).__name__
        used[name] = used.get(name, 0) + 1
        self.sequencer.ap.write(name)

    async def post_body(self) -> None:
        if self.compares:
            await self.sequencer.storage.read_all()

    async def run(self, sequence: uvm_sequence) -> None:
        """Another sequence on the same sequencer."""
        await sequence.start(self.sequencer)

    def limits(self, channels: int | None = None, size: int | None = None) -> Limits:
        """Those of this simulator and device; at most so many channels."""
        found = dataclasses.replace(sizes().layer, dilation=int(self.device.tb.dilation.value))
        channels = min(channels or found.channels, found.channels)
        return dataclasses.replace(found, channels=channels, size=size or found.size)

    # ------------------------------------------------------------ what they need
    async def idle(self, limit: int = LIMIT) -> None:
        """Read AI_STATUS until the device is idle; DeviceTimeout after ``limit`` cycles."""
        await self.device.read_until(AI["AI_STATUS"], lambda v: not v & 1, limit, "AI_STATUS")

    async def error(self, code: int | None = None) -> DeviceError | None:
        """The error there is, cleared; AssertionError when it is not the one expected."""
        error = await self.device.error()
        found = error.code if error else 0
        assert code is None or found == code, f"{error}, expected error {code}"
        await self.device.clear()
        return error

    def draw_layer(self, **fixed: object) -> VectorLayer:
        """A random legal layer; draws that leave nothing of a map are drawn again."""
        return self._draw(random_layer, **fixed)

    def draw_task(self) -> VectorLayer:
        """A random task of any kind."""
        others = (random_elementwise, random_pool, random_product)
        return self._draw(others[self.n(0, 3)] if self.rng.random() < 0.5 else random_layer)

    def _draw(self, make: Callable[..., VectorLayer], **fixed: object) -> VectorLayer:
        limits, rows = self.limits(), self.device.back.ram_rows
        for _ in range(1000):
            try:
                return make(self.rng, limits=limits, ram_rows=rows, **fixed)
            except LayerError:
                continue
        raise AssertionError("no legal layer in a thousand draws")

    def draw_network(self, count: int) -> tuple[Network, np.ndarray]:
        """(network, ``count`` images): layers one behind the other, or a list of all kinds."""
        size = sizes()
        shape = tuple(
            self.n(least, most) for least, most in zip((1, 4, 4), size.shape, strict=True)
        )
        rows, number = self.device.back.ram_rows, self.n(1, size.layers + 1)
        if self.rng.random() < 0.4:
            kinds = [str(kind) for kind in self.rng.choice(KINDS, number)]
            few = self.limits(channels=12)
            network, _ = random_list(self.rng, kinds, shape, limits=few, ram_rows=rows)
        else:
            network, _ = random_network(
                self.rng,
                shape=shape,
                layers=number,
                fc_last=bool(self.rng.random() < 0.5),
                eight_bit=bool(self.rng.random() < 0.6),
                limits=self.limits(),
            )
            network.place(rows)
        images = self.rng.integers(0, 256, (count, *shape), dtype=np.uint8)
        return network, images

    async def spare(self, layers: Sequence[LayerArg]) -> None:
        """Rows in which weights may wait during the next job: any that its maps do not use, or
        none; rows that do not exist are refused, and the register model keeps what it had."""
        ram_rows = self.device.back.ram_rows
        rows = draw_spare(self.rng, unused_parts(layers, ram_rows), ram_rows)
        has = bool(int(self.device.tb.weights_wait.value))
        await self.device.configure({SPARE_ROWS: spare_register(rows.part)})
        if rows.beyond:
            await self.device.spare(rows.beyond)
            await self.error(Err.BAD_CONFIG if has else Err.NONE)
        found, expected = await self.device.look(SPARE_ROWS), spare_register(rows.part) * has
        assert found == expected, f"{SPARE_ROWS} is {found:#x}, expected {expected:#x}"

    async def place(self, network: Network, images: np.ndarray, continuous: bool) -> Storage:
        """A network somewhere in storage, and its registers written through the register model."""
        size = network.storage(images, continuous=True, align=WIDEST).data.size
        room = self.device.back.storage_bytes - size
        assert room >= 0, f"storage has {-room} bytes too few for the network"
        base = WIDEST * self.n(0, room // WIDEST + 1)
        storage = network.storage(images, base=base, continuous=continuous, align=WIDEST)
        await self.device.back.load_storage(storage.base, storage.data)
        await self.spare(network.layers)
        await self.device.configure(storage.registers)
        return storage


class LayerSequence(DeviceSequence):
    """A layer that the host pushes: tables into storage, map into the AI RAM, calc_done."""

    def __init__(self, name: str = "layer", layer: VectorLayer | None = None) -> None:
        super().__init__(name)
        self.layer = layer

    async def prepare(self, layer: VectorLayer, **fields: int) -> list[int]:
        """Everything but the push; the words."""
        device = self.device
        tables = Tables(layer.weights, layer.bn, layer.act)
        size = sum(part.nbytes + 8 for part in (tables.weights, tables.bn, tables.act))
        at = 8 * self.n(0, (device.back.storage_bytes - size) // 8)
        arg = (await device.place_tables(layer.arg, tables, at)).replace(**fields)
        await device.load_map(arg.in_layout, layer.x)
        if layer.x2 is not None:
            await device.load_map(arg.in_layouts[1], layer.x2)
        await self.spare([arg])
        await device.configure({"eight_bit_mode": int(layer.eight_bit)})
        return [int(word) for word in arg.encode()]

    async def body(self) -> None:
        self.layer = self.layer or self.draw_task()
        await self.device.push(await self.prepare(self.layer, int_en=1))
        await self.device.finish(LIMIT)
        await self.idle()


class DistantTapsSequence(LayerSequence):
    """A layer whose taps are ``far`` pixels apart; a device that has not so much refuses it, and
    its memories stay as they are (docs/kpu.md 1.16)."""

    def __init__(self, name: str = "distant taps", far: int = 2) -> None:
        super().__init__(name)
        self.far = far

    async def body(self) -> None:
        pool = self.n(0, MOST_DILATED_POOL + 1)
        kind = {"kernel": 3, "pool": pool, "fc": False, "dilation": self.far}
        self.layer = self.draw_layer(**kind)
        await self.device.push(await self.prepare(self.layer, int_en=1))
        if self.far <= int(self.device.tb.dilation.value):
            await self.device.finish(LIMIT)
        else:
            error = await self.device.refusal(LIMIT)
            assert error.code == Err.BAD_FLAGS, f"{error}, expected BAD_FLAGS"
        await self.idle()


class ResultFifoSequence(LayerSequence):
    """A layer whose map also comes out of fifo_data_out, read as it fills; compared at once."""

    async def body(self) -> None:
        self.layer = layer = self.layer or self.draw_task()
        device, size = self.device, layer.y.size
        top: Handle = cocotb.top
        words = await self.prepare(layer, int_en=1, send_data_out=1)
        await device.push(words)
        got, start = bytearray(), int(top.cycle.value)
        while len(got) < size:
            spent = int(top.cycle.value) - start
            assert spent < LIMIT, f"{len(got)} of {size} results in {spent} cycles"
            held = await device.read(AI["AI_STATUS"]) >> 16 & 31
            reads = [Transfer(FIFO_DATA_OUT + 4 * (i % 2), False) for i in range(2 * held)]
            for transfer in await device.transfer(*reads) if reads else []:
                got += transfer.data.to_bytes(4, "little")
        await device.finish(LIMIT)
        await self.idle()
        stored = to_stored(layer.y.view(np.uint8), bool(layer.arg.out32))
        padded = bytes(stored) + bytes(-size % 8)
        assert bytes(got) == padded, f"{layer.arg}: the stream of results differs"


class BurstSequence(LayerSequence):
    """Several layers at once; only the last one has an interrupt."""

    async def body(self) -> None:
        device, row, at, words, args = self.device, 0, 0, [], []
        eight_bit = bool(self.rng.random() < 0.7)
        layers = [self.draw_layer(eight_bit=eight_bit) for _ in range(self.n(2, 6))]
        for number, layer in enumerate(layers):
            tables = Tables(layer.weights, layer.bn, layer.act)
            arg = await device.place_tables(layer.arg, tables, at)
            at = arg.active_addr + round_up(layer.act.nbytes, 8)
            arg = arg.replace(image_src_addr=row, int_en=int(number == len(layers) - 1))
            row += arg.in_layout.rows
            arg = arg.replace(image_dst_addr=row)
            row += arg.out_layout.rows
            await device.load_map(arg.in_layout, layer.x)
            words += [int(word) for word in arg.encode()]
            args.append(arg)
        assert row <= device.back.ram_rows and at <= device.back.storage_bytes
        await self.spare(args)
        await device.configure({"eight_bit_mode": int(eight_bit)})
        await device.push(words)
        await device.finish(LIMIT)
        await self.idle()


class NetworkSequence(DeviceSequence):
    """Task lists: one inference after the other, each started by the host."""

    continuous = False
    network: Network  # what is not given is there from ``prepare`` on
    images: np.ndarray

    def __init__(
        self,
        name: str = "network",
        network: Network | None = None,
        images: np.ndarray | None = None,
    ) -> None:
        super().__init__(name)
        self.draws = network is None or images is None
        if network is not None and images is not None:
            self.network, self.images = network, images

    async def prepare(self) -> Storage:
        """Network, images and registers in place."""
        if self.draws:
            self.network, self.images = self.draw()
            self.draws = False
        await self.device.configure({"AI_INF_LEFT": 0})
        return await self.place(self.network, self.images, self.continuous)

    def draw(self) -> tuple[Network, np.ndarray]:
        """A random network and its images, where none are given."""
        return self.draw_network(self.n(1, sizes().images + 1))

    async def body(self) -> None:
        storage = await self.prepare()
        for number in range(len(self.images)):
            pixels = storage.registers["AI_PIX_ADR"] + number * storage.registers["AI_PIX_STRIDE"]
            await self.device.configure(
                {"AI_PIX_ADR": pixels, "AI_RES_ADR": storage.results[number]}
            )
            await self.device.start()
            await self.device.finish(LIMIT)
            await self.idle()
            assert await self.device.look(INFERENCES) == 1


class StreamSequence(NetworkSequence):
    """Continuous inference: images one after the other without the host."""

    continuous = True

    async def body(self) -> None:
        storage = await self.prepare()
        await self.device.start()
        await finish_stream(self.device, len(self.images), LIMIT)
        await self.idle()
        await self.moved_on(storage)

    async def moved_on(self, storage: Storage) -> None:
        """Registers that the device moves on by itself, through the register model."""
        count, r = len(self.images), storage.registers
        expected = {
            "AI_CNN_MODE": 1,
            "AI_INF_LEFT": 0,
            INFERENCES: count,
            "PERF_LAYERS": count * len(self.network.layers),
        }
        expected["AI_TAKEN_ADR"] = r["AI_PIX_ADR"] + (count - 1) * r["AI_PIX_STRIDE"]
        found = {name: await self.device.look(name) for name in expected}
        assert found == expected, f"after a stream: {found}, expected {expected}"


class StoppedStreamSequence(StreamSequence):
    """A stream that the host stops: finished results are exact, the next image is dropped."""

    async def body(self) -> None:
        await self.prepare()
        device = self.device
        await device.start()
        await device.wait_at_most(self.n(1, 4000))
        await device.write(AI["AI_CTRL"], Ctrl.STOP)
        await self.idle()
        done = await device.look(INFERENCES)
        assert 1 <= done <= len(self.images), f"{done} of {len(self.images)} inferences"
        await device.clear()


JOBS = (
    *(LayerSequence, BurstSequence, ResultFifoSequence, NetworkSequence, StreamSequence),
    StoppedStreamSequence,
)
