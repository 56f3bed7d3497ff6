# SPDX-License-Identifier: Apache-2.0
"""A network image: what lies in memory from a base address on (docs/driver.md, "The image").

A header, descriptions of the tensors, maps that layers load or store (inputs, outputs, constants),
the task list, weights, biases, tables of places; behind the image room for inputs and results.
All numbers are words of 32 bits, little endian, and addresses in the image are offsets from its
beginning.
"""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.configs import N_X, Config
from openkpu.layer.layout import map_bytes
from openkpu.network.kept import spare_register
from openkpu.network.moves import place_moves
from openkpu.network.network import ALIGN, Network
from openkpu.prediction.spare import rows_of_network

MAGIC, VERSION = 0x4E504B4F, 2  # the bytes O, K, P, N
FIELDS, TENSOR_FIELDS = 32, 16
EIGHT_BIT, RELOCATABLE, WORDS = 1, 2, 4  # flags
CRC_FROM = 12  # bytes of the header that its checksum leaves out
NOWHERE = 0xFFFFFFFF  # of a table of places: no element, the byte is the tensor's filler
TYPES = ("uint8", "int8", "int32", "uint32")
END = 1 << 32  # of the address space
COUNTS = (1, 1 << 16)  # images that there may be room for


class ExportError(ValueError):
    """A network that cannot be exported: one line."""


@dataclasses.dataclass
class Tensor:
    """An input or output, and where its map lies."""

    name: str
    output: bool
    shape: tuple[int, ...]  # in the model's own order
    dtype: str
    layer: int = -1  # that loads or stores the map; -1: the input or the result of the list
    add: int = 0  # stored byte less integer
    fill: int = 0  # byte of what lies between
    # of an input for each byte of the map the element, of an output for each element the byte of
    # the map; NOWHERE: the filler. None: in order
    places: npt.NDArray[np.uint32] | None = None
    scale: float | None = None
    zero: int = 0
    map_shape: tuple[int, int, int] = (0, 0, 0)
    offset: int = 0  # of its map in the image
    size: int = 0  # bytes of its map

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape))


@dataclasses.dataclass
class Image:
    """A network placed in memory."""

    data: npt.NDArray[np.uint8]  # what is loaded at ``base``
    base: int
    memory: int  # bytes from ``base`` on with the room behind the image
    config: Config
    network: Network  # as placed: its layers have the addresses of the maps in storage
    tensors: list[Tensor]
    count: int
    input: int  # offsets of the first input and result, and what is from one to the next
    input_stride: int
    result: int
    result_stride: int
    relocatable: bool
    written: bool = False  # maps in it: of inputs and outputs beside the first
    before: list[str] = dataclasses.field(default_factory=list)  # nodes left to the user
    after: list[str] = dataclasses.field(default_factory=list)

    @property
    def input_bytes(self) -> int:
        return map_bytes(self.network.in_shape)

    @property
    def result_bytes(self) -> int:
        return map_bytes(self.network.out_shape)


def config_word(config: Config) -> int:
    """AI_CONFIG of a device (docs/registers.md)."""
    log2 = config.bus_bytes.bit_length() - 1
    return N_X | config.n_y << 8 | config.n_z << 16 | log2 << 24


def alignment(config: Config) -> int:
    """Bytes that the base of an image is a multiple of."""
    return max(ALIGN, config.bus_bytes)


def image(
    network: Network, config: Config, base: int, tensors: list[Tensor], count: int = 1
) -> Image:
    """Place a network for ``count`` inputs and results at a time.

    ExportError for a base that is not aligned, and what would not lie below 4 GiB.  The network
    fits the configuration (``check`` of whoever runs it).
    """
    align = alignment(config)
    if base % align:
        raise ExportError(f"base {base:#x}, expected a multiple of {align}")
    if not COUNTS[0] <= count <= COUNTS[1]:
        raise ExportError(f"room for {count} images, expected {COUNTS[0]} to {COUNTS[1]}")
    if network.kept:
        raise ExportError(f"layer {min(network.kept)}: kept weights, expected none in firmware")
    tensors = [dataclasses.replace(t) for t in tensors]
    head = round_up(4 * (FIELDS + TENSOR_FIELDS * len(tensors)), 64)
    given = {t.layer for t in tensors if not t.output}
    moved = place_moves(network, base + head, align, given)
    placed = dataclasses.replace(network, layers=moved.layers)
    places = [t.places for t in tensors if t.places is not None]
    parts = [moved.maps, placed.task_list(), network.weights, network.biases, *map(_bytes, places)]
    offsets, blobs = [head], []
    for part in parts:
        blobs.append(np.pad(part, (0, round_up(part.size, align) - part.size)))
        offsets.append(offsets[-1] + blobs[-1].size)
    size = offsets[-1]
    each = map_bytes(network.in_shape), map_bytes(network.out_shape)
    strides = [round_up(n, align) for n in each]
    starts = [round_up(size, 64), round_up(size, 64) + round_up(count * strides[0], 64)]
    memory = round_up(starts[1] + count * strides[1], 64)
    if base + memory > END:
        raise ExportError(f"{memory} bytes from {base:#x} on, expected them to end below 4 GiB")
    relocatable = not any(arg.load_map or arg.store_map for arg in placed.layers)
    written = any(a.store_map or (a.load_map and i in given) for i, a in enumerate(placed.layers))
    made = Image(
        *(np.zeros(0, np.uint8), base, memory, config, placed, tensors, count),
        *(starts[0], strides[0], starts[1], strides[1], relocatable, written),
    )
    tables = iter(offsets[4:])
    words = []
    for tensor in tensors:
        _locate(made, tensor)
        words.append(_tensor_words(tensor, next(tables) if tensor.places is not None else 0))
    inner = head + moved.stored, head + moved.constant
    words = [_header(made, size, head, offsets, inner), *words]
    flat = np.zeros(head // 4, dtype="<u4")
    flat[: sum(map(len, words))] = np.concatenate([np.array(w, dtype="<u4") for w in words])
    body = np.concatenate(blobs)
    flat[3] = zlib.crc32(body[moved.constant :].tobytes())
    flat[2] = zlib.crc32(flat.tobytes()[CRC_FROM:])
    made.data = np.concatenate([flat.view(np.uint8), body])
    return made


def _locate(made: Image, tensor: Tensor) -> None:
    """Set where the map of a tensor lies, and its size and shape."""
    layers, at = made.network.layers, tensor.layer
    if tensor.output:
        tensor.map_shape = layers[at].out_shape
        tensor.offset = made.result if at < 0 else layers[at].map_store_addr - made.base
    else:
        tensor.map_shape = layers[max(at, 0)].in_shape
        tensor.offset = made.input if at < 0 else layers[at].map_load_addr - made.base
    tensor.size = map_bytes(tensor.map_shape)


def _tensor_words(tensor: Tensor, table: int) -> list[int]:
    kind = TYPES.index(tensor.dtype) if tensor.dtype in TYPES else len(TYPES)
    words = [int(tensor.output), tensor.offset, tensor.size, *tensor.map_shape]
    words += [tensor.add & 0xFF, tensor.fill, tensor.elements, table, kind]
    return words + [0] * (TENSOR_FIELDS - len(words))


def _header(
    made: Image, size: int, head: int, offsets: list[int], inner: tuple[int, int]
) -> list[int]:
    network = made.network
    flags = EIGHT_BIT * network.eight_bit | WORDS * network.words
    flags |= RELOCATABLE if made.relocatable else 0
    words = [MAGIC, VERSION, 0, 0, size, made.memory, made.base, config_word(made.config)]
    words += [int(flags), len(network.layers), *offsets[1:4]]
    words += [max(ALIGN, made.config.bus_bytes), len(made.tensors), head]
    words += [made.input, made.input_bytes, made.input_stride]
    words += [made.result, made.result_bytes, made.result_stride, made.count]
    words += [spare_register(rows_of_network(made.config, network)), *inner]
    return words + [0] * (FIELDS - len(words))


def _bytes(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
