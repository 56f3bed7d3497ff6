# SPDX-License-Identifier: Apache-2.0
"""Constants of a TFLite file that has only the numbers that are not 0.

The file names an order of the axes, those of blocks behind the others, and for each level either a
size or, for each place of the level above, which of its places there are.  The numbers lie in the
order of the last level.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
SPARSE = 1  # a level's format: places; 0 is a size
MOST = 1 << 28  # numbers of a constant, of all that a file has 2 GiB


def dense_values(
    sparsity: Any, shape: tuple[int, ...], values: npt.NDArray
) -> npt.NDArray[np.generic]:
    """The whole constant; ``values``: the numbers that the file has.

    ValueError for numbers, sizes or places that do not go together.
    """
    order = [sparsity.TraversalOrder(i) for i in range(sparsity.TraversalOrderLength())]
    blocks = [sparsity.BlockMap(i) for i in range(sparsity.BlockMapLength())]
    rank, count = len(shape), sparsity.DimMetadataLength()
    if math.prod(shape) > MOST:
        raise ValueError(f"a sparse constant {shape}, expected at most {MOST} numbers")
    fits = sorted(order) == list(range(rank + len(blocks))) and count == len(order)
    if not fits or any(not 0 <= b < rank for b in blocks):
        raise ValueError(f"levels {order} of blocks {blocks} of a sparse constant {shape}")
    levels = [sparsity.DimMetadata(i) for i in range(count)]
    at, places = np.zeros(1, np.int64), np.zeros((1, 0), np.int64)
    for level in levels:
        at, parents, found = _level(level, at, math.prod(shape))
        places = np.concatenate([places[parents], found[:, None]], axis=1)
    if len(at) != values.size or (at >= values.size).any():
        raise ValueError(f"{values.size} numbers of a sparse constant, expected {len(at)}")
    index = np.zeros((len(at), rank), np.int64)
    for axis in range(rank):
        index[:, axis] = places[:, order.index(axis)]
    for i, axis in enumerate(blocks):
        level = order.index(rank + i)
        index[:, axis] = index[:, axis] * levels[level].DenseSize() + places[:, level]
    if (index >= shape).any() or (index < 0).any():
        raise ValueError(f"a place beyond {shape} of a sparse constant")
    made = np.zeros(shape, values.dtype)
    made[tuple(index.T)] = values[at]
    return made


def _level(level: Any, at: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """(places of this level, which of ``at`` each is below, its number along the axis)."""
    if level.Format() != SPARSE:
        size = level.DenseSize()
        if not 0 < size <= most or len(at) * size > most:
            raise ValueError(f"a level of {size} in a sparse constant of {most} numbers")
        found = np.tile(np.arange(size), len(at))
        parents = np.repeat(np.arange(len(at)), size)
        return at[parents] * size + found, parents, found
    segments = _vector(level.ArraySegmentsType(), level.ArraySegments())
    places = _vector(level.ArrayIndicesType(), level.ArrayIndices())
    first, last = segments[at], segments[at + 1]
    if (first < 0).any() or (last < first).any() or (last > len(places)).any():
        raise ValueError("segments of a sparse constant that do not follow each other")
    counts = last - first
    if counts.sum() > most:
        raise ValueError(f"{counts.sum()} places in a sparse constant of {most} numbers")
    parents = np.repeat(np.arange(len(at)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    below = np.repeat(first, counts) + np.arange(counts.sum()) - starts
    return below, parents, places[below]


def _vector(kind: int, table: Any) -> Ints:
    """Integers of 8, 16 or 32 bits."""
    import tflite

    names = {v: k for k, v in vars(tflite.SparseIndexVector).items() if isinstance(v, int)}
    vector = getattr(tflite, names.get(kind, ""), None)
    if not isinstance(vector, type) or table is None:
        raise ValueError(f"places of type {kind} in a sparse constant")
    made: Any = vector()
    made.Init(table.Bytes, table.Pos)
    return np.array([made.Values(i) for i in range(made.ValuesLength())], np.int64)
