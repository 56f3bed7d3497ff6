# SPDX-License-Identifier: Apache-2.0
"""Products of matrices as task lists: a tile is a layer, and the device runs them alone.

docs/kpu.md 1.10, 1.12, 1.13: the first tile's columns of B are the network's input, the last tile's
C is its result.  The others read B from storage (``load_map``), unless the map of the tile before
is the one that they need, and write C there (``store_map``).  ``split_tiles`` cuts tiles that one
list does not hold, ``network_of`` makes a list of tiles, ``maps_of`` finds their C after a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.arithmetic.params import BN_BYTES
from openkpu.arithmetic.words import to_stored
from openkpu.layer.argument import LIST_BYTES
from openkpu.layer.layout import map_bytes
from openkpu.network.network import MOST_LAYERS, Network, NetworkRun
from openkpu.products import matmul_deep
from openkpu.products.matmul import Tile, matmul_operands, tables
from openkpu.products.matmul_deep import DeepTile
from openkpu.products.matmul_fp16 import NONE

STORAGE = 1 << 28  # most bytes of a list: a simulator holds them with ease
WIDEST = 16  # bytes of the widest bus word: maps that are stored are aligned to the bus
AnyTile = TypeVar("AnyTile", bound=Tile)
Rows = tuple[int, int]  # of A: the first one, and the one behind the last


def split_tiles(
    tiles: Sequence[AnyTile], *, most_layers: int = MOST_LAYERS, most_bytes: int = STORAGE
) -> list[list[AnyTile]]:
    """The tiles of each list, in their order: as few lists as layers and bytes of storage allow.

    A tile that needs more bytes than that has a list of its own.
    """
    found: list[list[AnyTile]] = []
    used, rows = 0, set[Rows]()  # bytes of the list that is filled; rows of A that it has
    for tile in tiles:
        here = found[-1] if found else []
        more = _bytes(tile, here[-1] if here else None, _rows(tile) not in rows)
        count = sum(map(layers_of, here)) + layers_of(tile)
        if not here or count > most_layers or used + more > most_bytes:
            here, used, rows = [], 0, set()
            found.append(here)
            more = _bytes(tile, None, True)
        here.append(tile)
        rows.add(_rows(tile))
        used += more
    return found


def network_of(tiles: Sequence[Tile], a: npt.NDArray, b: npt.NDArray) -> Network:
    """The task list of tiles of A B; its input is that of ``input_of``.

    A (M, K) and B (K, N) as ``plan_matmul`` had them.  The same rows of A are in storage once.
    """
    network = Network()
    first: dict[Rows, int] = {}  # the layer that brought these rows of A
    for number, tile in enumerate(tiles):
        if isinstance(tile, DeepTile):
            matmul_deep.append(network, tile, a, b, last=number == len(tiles) - 1)
            continue
        weights, x = matmul_operands(tile, a, b)
        load = number > 0 and not _in_place(tiles[number - 1], tile)
        arg = tile.arg.replace(load_map=int(load), store_map=int(number < len(tiles) - 1))
        if load:
            network.loaded[number] = x
        if _rows(tile) in first:
            network.add_like(arg, first[_rows(tile)])
        else:
            bn_act = (NONE, NONE) if arg.fp16 else tables(arg.o_ch_num)
            network.add(arg, weights, *bn_act)
            first[_rows(tile)] = number
    return network


def input_of(tiles: Sequence[Tile], a: npt.NDArray, b: npt.NDArray) -> npt.NDArray[np.uint8]:
    """(K, h, w) bytes: the input map of ``network_of``."""
    first = tiles[0]
    if isinstance(first, DeepTile):
        return matmul_deep.deep_operands(first, 0, a, b)[1]
    return matmul_operands(first, a, b)[1]


def maps_of(run: NetworkRun, network: Network) -> dict[int, npt.NDArray[np.uint8]]:
    """Bytes (n,) that each layer with store_map leaves in storage, by layer."""
    return {
        i: to_stored(result.y.view(np.uint8), bool(arg.out32))
        for i, (arg, result) in enumerate(zip(network.layers, run.layers, strict=True))
        if arg.store_map
    }


def put(
    c: npt.NDArray,
    tiles: Sequence[Tile],
    stored: Mapping[int, npt.NDArray[np.uint8]],
    last: npt.NDArray[np.uint8],
) -> None:
    """Write the tiles of a list into C (M, N): those in storage (``maps_of``), then the result."""
    for tile, number in zip(tiles, results_of(tiles), strict=True):
        y = last if tile is tiles[-1] else stored[number]
        place = c[tile.m, tile.n]
        place[:] = y.view(c.dtype)[: place.size].reshape(place.shape)


def layers_of(tile: Tile) -> int:
    """Layers of a tile in its list."""
    return matmul_deep.layers_of(tile) if isinstance(tile, DeepTile) else 1


def results_of(tiles: Sequence[Tile]) -> list[int]:
    """The layers of a list that give C: the last one of each tile."""
    return [count - 1 for count in itertools.accumulate(map(layers_of, tiles))]


def _rows(tile: Tile) -> Rows:
    return tile.m.start, tile.m.stop


def _in_place(before: Tile, tile: Tile) -> bool:
    """Is the map that the tile before read the one that this tile needs?

    The output of a layer shares no row with its input (the device refuses it), so that map is
    untouched; but rows of A may be so few that their columns of B are a map of another shape.
    """
    return before.n == tile.n and before.arg.in_layout == tile.arg.in_layout


def _bytes(tile: Tile, before: Tile | None, new_rows: bool) -> int:
    """Bytes of storage of a tile behind another one (None: first of a list), each part aligned."""
    if isinstance(tile, DeepTile):
        return matmul_deep.tile_storage_bytes(tile, WIDEST)
    arg = tile.arg
    parts = [LIST_BYTES, map_bytes(arg.out_shape)]
    if before is None or not _in_place(before, tile):
        parts.append(map_bytes(arg.in_shape))
    if new_rows:
        weights = arg.weight_count * arg.weight_size(True)
        parts += [weights, BN_BYTES * sum(arg.table_words)]
    return sum(round_up(size, WIDEST) for size in parts)
