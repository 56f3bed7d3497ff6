# SPDX-License-Identifier: Apache-2.0
"""Integer products with a K too large for one layer: sums of several layers, added on the device.

docs/kpu.md 1.10.  K is cut into parts; the layer of each part stores its sums of 32 bits.
Element-wise layers add them up, exact modulo 2^32.  The words are a map of bytes in storage order,
so the next byte of a word is the next pixel; reading a map from one byte before its beginning
aligns each byte with the next lower one of its word:

    class   of each byte, from both sums: 0 no carry, 1 propagates a carry, 2 generates one
    masked  the class, 0 for the highest byte of a word, so that no carry leaves the word
    low     the sum of both bytes modulo 256
    pairs   class of two bytes, the byte's own unless that is 1
    triples the same of three, which are all bytes of a word below its highest one
    words   low, and 1 more where the triple below is 2: the new sums

``plan_deep`` makes the tiles, ``append`` the layers of one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.arithmetic.params import ACT_WORDS, BN_BYTES, SEGMENTS, ActTable, BatchNorm
from openkpu.arithmetic.words import BYTES
from openkpu.layer.argument import LIST_BYTES, LayerArg, LayerError
from openkpu.layer.elementwise import ADD, MINIMUM, WEIGHTS, A, B
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, map_bytes
from openkpu.network.network import Network
from openkpu.products.matmul import K_MAX, Tile, layer_of, product_parts, tables, tile_size

DEEPEST = 1 << 17  # of K: up to there a sum of int8 fits its word
MAPS = 5  # of one size in the AI RAM while words are added
HIGHEST = 512  # lines of a map


@dataclasses.dataclass(frozen=True)
class DeepTile(Tile):
    """Rows ``m`` of A and C, columns ``n`` of B and C; ``arg`` is the first product's layer."""

    ks: tuple[slice, ...]  # columns of A, rows of B of each product
    products: tuple[LayerArg, ...]
    ram_rows: int


@dataclasses.dataclass(frozen=True)
class Step:
    """An element-wise layer of an addition.

    ``a``, ``b``: places of its maps, ``to``: of its output; b is None with one map only.
    ``scale``: factor of b.  ``segments`` of the activation: start, mul, shift, add;
    the first one is for everything up to the start of the second.
    """

    op: int
    a: int
    b: int | None
    to: int
    scale: int
    segments: tuple[tuple[int, int, int, int], ...]


SAME = ((0, 1, 0, 0),)
COPY = Step(ADD, 0, None, 1, 0, SAME)
CLASS = Step(ADD, 0, 1, 2, 1, ((0, 0, 0, 0), (254, 1, 0, 0), (255, 0, 0, 2)))
LOW = Step(ADD, 0, 1, 3, 1, ((0, 1, 0, 0), (255, 0, 0, 0), (256, 1, 0, 0)))
MASKED = Step(MINIMUM, 0, 2, 4, 1, SAME)
# a is the class of the bytes below, b has the weight 3: 3 to 5 select a's class, more gives 2
_CHOICE = ((0, 0, 0, 0), (3, 1, 0, 0), (5, 0, 0, 2))
PAIRS = Step(ADD, 0, 4, 2, 3, _CHOICE)
TRIPLES = Step(ADD, 0, 2, 4, 3, _CHOICE)
# low has the weight 3: a third of the sum, rounded, is 1 more where a is 2; 256 becomes 0
ADDED = Step(ADD, 0, 3, 1, 3, ((0, 21846, 16, 0), (766, 0, 0, 0)))
MASK = (255, 255, 255, 0)


def shape_of(words: int) -> tuple[int, int, int]:
    """(C, H, W) of the map of bytes that holds so many words; it may have more bytes than that."""
    lines = ceil_div(words * BYTES, ROW_BYTES)
    channels = ceil_div(lines, HIGHEST)
    return channels, ceil_div(lines, channels), ROW_BYTES


def rows_of(words: int) -> int:
    """Rows of the AI RAM that an addition needs."""
    c, h, _ = shape_of(words)
    return MAPS * c * h


def plan_deep(
    m: int,
    k: int,
    n: int,
    *,
    signed_a: bool = True,
    signed_b: bool = True,
    part: int = K_MAX,
    ram_rows: int = AI_RAM_ROWS,
) -> list[DeepTile]:
    """Tiles of a product, rows of A before columns of B; each adds up all parts of K.

    ``part``: largest K of a layer; K is larger.  LayerError for K above 131072, or for a product
    with a part that does not fit an AI RAM of ``ram_rows`` rows.
    """
    if k > DEEPEST:
        raise LayerError("BAD_SIZE", f"K = {k}, a product has {DEEPEST} at most")
    if k <= part:
        raise LayerError("BAD_SIZE", f"K = {k}, one layer holds {part}: there is nothing to add up")
    most = ceil_div(k, ceil_div(k, part))
    size = tile_size(
        m, most, n, ram_rows, lambda rows, columns: rows_of(rows * columns) <= ram_rows
    )
    ks = tuple(slice(at, at + count) for at, count in product_parts(k, most))
    kind = {"signed_a": signed_a, "signed_b": signed_b, "ram_rows": ram_rows}
    tiles = []
    for j, columns in product_parts(n, size[1]):
        for i, rows in product_parts(m, size[0]):
            layers = tuple(layer_of(rows, k.stop - k.start, columns, **kind) for k in ks)
            place = slice(i, i + rows), slice(j, j + columns)
            tiles.append(DeepTile(*place, layers[0], ks, layers, ram_rows))
    return tiles


def deep_operands(
    tile: DeepTile, number: int, a: npt.NDArray, b: npt.NDArray
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(weight bytes, input map) of a product of a tile."""
    k = tile.ks[number]
    weights = np.ascontiguousarray(a[tile.m, k]).view(np.uint8).reshape(-1)
    x = np.ascontiguousarray(b[k, tile.n]).view(np.uint8)
    return weights, x.reshape(tile.products[number].in_shape)


def layers_of(tile: DeepTile) -> int:
    """How many layers ``append`` adds."""
    return len(tile.ks) + 1 + 6 * (len(tile.ks) - 1)


def append(network: Network, tile: DeepTile, a: npt.NDArray, b: npt.NDArray, *, last: bool) -> None:
    """Append the layers of a tile; the output of the last one begins with C's words.

    ``last``: it is the last tile of the network, and its output is the network's result.
    """
    sums = []
    for number, arg in enumerate(tile.products):
        weights, x = deep_operands(tile, number, a, b)
        at = len(network.layers)
        if at:
            network.loaded[at] = x
        network.add(arg.replace(load_map=int(at > 0), store_map=1), weights, *tables(arg.o_ch_num))
        sums.append(at)
    words = (tile.m.stop - tile.m.start) * (tile.n.stop - tile.n.start)
    append_sum(network, sums, shape_of(words), ram_rows=tile.ram_rows, last=last)


def append_sum(
    network: Network,
    sums: Sequence[int],
    shape: tuple[int, int, int],
    *,
    ram_rows: int = AI_RAM_ROWS,
    last: bool,
) -> None:
    """Append layers that add up the words stored by the layers ``sums``, two or more.

    ``shape``: (C, H, 64) of the words as bytes, from ``shape_of``.
    """
    first: dict[Step, int] = {}  # the first layer with a step's tables

    def add(step: Step, source: tuple[int, int] | None = None, *, store: bool = False) -> int:
        """Append a layer; ``source``: its first map is a layer's stored map, from a byte on."""
        number = len(network.layers)
        arg = _layer(step, shape, ram_rows)
        arg = arg.replace(load_map=int(source is not None or step is MASKED), store_map=int(store))
        if source is not None:
            network.relayed[number] = source
        if step in first:
            network.add_like(arg, first[step])
        else:
            first[step] = number
            network.add(arg, *_tables(step, shape[0]))
        return number

    mask = np.resize(np.array(MASK, dtype=np.uint8), shape)
    add(COPY, (sums[0], 0))
    for number, other in enumerate(sums[1:], 2):
        add(CLASS, (other, 0))
        add(LOW)
        network.loaded[len(network.layers)] = mask
        masked = add(MASKED, store=True)
        add(PAIRS, (masked, -1))
        triples = add(TRIPLES, (masked, -2), store=True)
        add(ADDED, (triples, -1), store=number == len(sums) and not last)


def _layer(step: Step, shape: tuple[int, int, int], ram_rows: int) -> LayerArg:
    """The layer of a step; maps are consecutive."""
    rows = shape[0] * shape[1]
    return LayerArg.make(
        *shape,
        kernel=3,
        depthwise=True,
        src=rows * step.a,
        dst=rows * step.to,
        ram_rows=ram_rows,
        elementwise=1,
        ew_op=step.op,
        ew_one=int(step.b is None),
        image_src2_addr=0 if step.b is None else rows * step.b,
    )


def _tables(
    step: Step, channels: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """(weights, batch norm, activation) of a step."""
    weights = np.zeros((channels, WEIGHTS), dtype=np.uint8)
    weights[:, A] = 1
    weights[:, B] = step.scale
    given = np.array(step.segments)
    full = np.concatenate([given, np.repeat(given[-1:], SEGMENTS - len(given), axis=0)])
    full[len(given) :, 0] = (1 << 35) - 1  # segments that no sum reaches
    act = ActTable.make(*full.T)
    return weights.reshape(-1), BatchNorm.make(np.ones(channels), 0, 0).pack(), act.pack()


def tile_storage_bytes(tile: DeepTile, align: int) -> int:
    """Upper bound of the storage bytes of a tile, each part aligned."""
    c, h, w = shape_of((tile.m.stop - tile.m.start) * (tile.n.stop - tile.n.start))
    size, adds = c * h * w, len(tile.ks) - 1
    blobs = [LIST_BYTES * layers_of(tile), *([size] * (4 * adds + 1)), *([2 * align] * 2 * adds)]
    for arg in tile.products:
        blobs += [map_bytes(arg.in_shape), size + 2 * align, arg.weight_count]
        blobs.append(BN_BYTES * sum(arg.table_words))
    blobs += [BN_BYTES * (c + ACT_WORDS) + WEIGHTS * c + 2 * align] * 7
    return sum(round_up(blob, align) for blob in blobs)
