# SPDX-License-Identifier: Apache-2.0
"""Sequences of products of float16, and of layers that move their own maps (docs/kpu.md).

Products need a build with lanes. Maps that are read lie at any byte address of storage, maps that
are written at any bus word.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.generators.generate import Limits
from openkpu.generators.generate_fp16 import LEAST, random_fp16
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.layer import fp16_tasks
from openkpu.layer.argument import WORDS, LayerArg
from openkpu.layer.layout import map_bytes
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network, NetworkError, Storage
from openkpu.products.matmul_fp16 import NONE, layer_of
from openkpu_tb.device.inference_stream import WIDEST, host_layers
from openkpu_tb.uvm.sequences.job import (
    LIMIT,
    LayerSequence,
    NetworkSequence,
    StreamSequence,
    sizes,
)

BUS_WORD = 4  # bytes; what a map's place in storage is a multiple of
ROOM = 128  # bytes that a map may be moved by
TOP = 65504.0
# what makes an element of each value: numbers of a row of A and of a column of B
OPERANDS: dict[str, tuple[list[float], list[float]]] = {
    "ordinary": ([1.5, -2.0], [0.25, 3.0]),
    "subnormal operand": ([3 * LEAST, 1.0], [1.0, 0.5]),
    "infinite operand": ([np.inf, 1.0], [-2.0, 1.0]),
    "NaN operand": ([np.nan, 1.0], [0.0, 1.0]),
    "NaN made": ([np.inf, 1.0], [0.0, 1.0]),
    "cancelled to zero": ([TOP, -TOP], [TOP, TOP]),
    "tie to even, down": ([2048.0, 1.0], [1.0, 1.0]),
    "tie to even, up": ([2050.0, 1.0], [1.0, 1.0]),
    "subnormal result": ([LEAST, LEAST], [1.0, 4.0]),
    "rounded to zero": ([LEAST, LEAST], [-LEAST, -LEAST]),
    "overflow": ([TOP, TOP], [1.0, 1.0]),
    "highest number": ([TOP, 0.0], [1.0, 1.0]),
}
# 2^24 and an even, an odd number of the last bit of float32, and a half of it
WIDE_TIES: dict[str, tuple[list[float], list[float]]] = {
    "tie to even, down": ([4096.0, 1.0], [4096.0, 1.0]),
    "tie to even, up": ([4096.0, 3.0], [4096.0, 1.0]),
}


def aimed(rng: np.random.Generator, value: str, m: int, k: int, n: int, wide: bool) -> VectorLayer:
    """A product with an element of ``value`` in its last row and column, and one inside.

    ``m``, ``n`` and ``k`` are two at least; sums of other rows with other columns are ordinary.
    """
    left, right = WIDE_TIES.get(value, OPERANDS[value]) if wide else OPERANDS[value]
    a = rng.choice([0.5, 1.0, -2.0], (m, k))
    b = rng.choice([0.25, 1.0, -1.5], (k, n))
    for row in (m - 1, int(rng.integers(m - 1))):
        a[row] = [*left, *[0.0] * (k - 2)]
    for column in (n - 1, int(rng.integers(n - 1))):
        b[:, column] = [*right, *[0.0] * (k - 2)]
    arg = layer_of(m, k, n, wide=wide)
    x = b.astype(np.float16).view(np.uint8).reshape(arg.in_shape)
    weights = a.astype(np.float16).view(np.uint8).reshape(-1)
    y = fp16_tasks.task(arg, x, weights)
    return VectorLayer("aimed", value, arg.encode(), arg, weights, NONE, NONE, x, y, True)


class Float16Sequence(LayerSequence):
    """A product of float16 that the host pushes: any numbers, or an element of a value."""

    def __init__(self, name: str = "float16", value: str | None = None, wide: bool = True) -> None:
        super().__init__(name)
        self.value, self.wide = value, wide

    async def body(self) -> None:
        self.layer = product(self.rng, self.device.back.ram_rows, self.value, self.wide)
        await super().body()


class Float16NetworkSequence(NetworkSequence):
    """A product as a task list, once for each of some matrices B."""

    def __init__(self, name: str = "float16s", value: str | None = None, wide: bool = True) -> None:
        super().__init__(name)
        self.value, self.wide = value, wide

    def draw(self) -> tuple[Network, np.ndarray]:
        layer = product(self.rng, self.device.back.ram_rows, self.value, self.wide)
        image = layer.x.view(np.uint8)
        more = self.rng.integers(0, 256, (self.n(0, sizes().images), *image.shape), dtype=np.uint8)
        return Network.single(layer), np.concatenate([image[None], more])


class Float16StreamSequence(Float16NetworkSequence, StreamSequence):
    """The same in one continuous run."""


def product(rng: np.random.Generator, ram_rows: int, value: str | None, wide: bool) -> VectorLayer:
    """A product whose elements are ``value`` (None: any), of a size for this simulator."""
    limits = Limits(channels=min(20, sizes().layer.channels))
    if value is None:
        return random_fp16(rng, limits=limits, wide=wide, ram_rows=ram_rows)
    m, k = (int(n) for n in rng.integers(2, limits.channels + 1, 2))
    columns = (int(rng.integers(2, 9)), int(rng.integers(9, 40)), 32)
    return aimed(rng, value, m, k, int(rng.choice(columns)), wide)


def scattered(rng: np.random.Generator, network: Network, storage: Storage) -> Storage:
    """The same with the maps that layers load and store behind everything else, at any place."""
    data, list_at = bytearray(storage.data.tobytes()), storage.registers["AI_LIST_ADR"]
    for number, arg in enumerate(network.layers):
        fields = {}
        for what, shape in (("load", arg.in_shape), ("store", arg.out_shape)):
            if not getattr(arg, f"{what}_map"):
                continue
            unit = max(int(rng.choice((1, BUS_WORD, ROOM // 2))), BUS_WORD * (what == "store"))
            end = storage.base + len(data)
            at = round_up(end + int(rng.integers(ROOM)), unit)
            data += rng.integers(0, 256, at - end, dtype=np.uint8).tobytes()
            stale = rng.integers(0, 256, map_bytes(shape), dtype=np.uint8)
            data += (network.loaded[number] if what == "load" else stale).tobytes()
            fields[f"map_{what}_addr"] = at
        place = list_at - storage.base + 8 * WORDS * number
        row = np.frombuffer(bytes(data[place : place + 8 * WORDS]), dtype="<u8")
        moved = LayerArg.decode(row).replace(**fields)
        data[place : place + 8 * WORDS] = moved.encode().astype("<u8").tobytes()
    data += bytes(-len(data) % WIDEST)
    return dataclasses.replace(storage, data=np.frombuffer(bytes(data), np.uint8))


class MovedNetworkSequence(NetworkSequence):
    """Task lists whose tasks, of all kinds, load and store their maps themselves."""

    def __init__(self, name: str = "moved", kinds: tuple[str, ...] = KINDS) -> None:
        super().__init__(name)
        self.kinds = kinds

    def draw(self) -> tuple[Network, np.ndarray]:
        network, image = self.draw_moves()
        more = self.rng.integers(0, 256, (self.n(0, sizes().images), *image.shape), dtype=np.uint8)
        return network, np.concatenate([image[None], more])

    def draw_moves(self) -> tuple[Network, npt.NDArray[np.uint8]]:
        """A list whose tasks mostly move a map, and an image; convolutions get theirs in bands."""
        limits = self.limits(channels=8, size=12)
        wide = self.rng.random() < 0.5
        for _ in range(1000):
            shape = (self.n(1, 4), self.n(1, 6), self.n(64, 90) if wide else self.n(1, 16))
            if "float16" in self.kinds:  # as the map of a matrix
                shape = (*shape[:1], *((2, 64) if wide else (1, 2 * shape[2])))
            kinds = [str(kind) for kind in self.rng.choice(self.kinds, self.n(2, 7))]
            rows = self.device.back.ram_rows
            try:
                return random_list(self.rng, kinds, shape, limits=limits, ram_rows=rows, moves=0.6)
            except NetworkError:
                continue
        raise AssertionError("no list of tasks in a thousand draws")

    async def place(self, network: Network, images: np.ndarray, continuous: bool) -> Storage:
        back = self.device.back
        size = network.storage(images, continuous=continuous, align=WIDEST).data.size
        for arg in network.layers:
            size += arg.load_map * map_bytes(arg.in_shape) + arg.store_map * map_bytes(
                arg.out_shape
            )
            size += 4 * ROOM
        room = back.storage_bytes - size
        assert room >= 0, f"storage has {-room} bytes too few for the list"
        base = WIDEST * self.n(0, room // WIDEST + 1)
        storage = network.storage(images, base=base, continuous=continuous, align=WIDEST)
        storage = scattered(self.rng, network, storage)
        await back.load_storage(storage.base, storage.data)
        await self.spare(network.layers)
        await self.device.configure(storage.registers)
        return storage


class MovedStreamSequence(MovedNetworkSequence, StreamSequence):
    """The same in one continuous run: each inference uses the same places."""


class MovedLayersSequence(MovedNetworkSequence):
    """The same tasks pushed by the host at once; the first loads its map, the last stores its."""

    async def body(self) -> None:
        device = self.device
        storage = await self.prepare()
        args = host_layers(self.network, storage)
        await device.push([int(word) for arg in args for word in arg.encode()])
        await device.finish(LIMIT)
        await self.idle()


FLOAT16 = (Float16Sequence, Float16NetworkSequence, Float16StreamSequence)
MOVED = (MovedLayersSequence, MovedNetworkSequence, MovedStreamSequence)
