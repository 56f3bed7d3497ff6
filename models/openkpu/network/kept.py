# SPDX-License-Identifier: Apache-2.0
"""Weights in the AI RAM: kept there over the inferences of a stream (docs/kpu.md 1.14),
and rows for weights that wait until the weight buffer has room (AI_SPARE_ROWS).

Rows that no map of a network uses hold the weights of some layers, in the format of the storage.
They are copied there once, by pooling tasks with unused results, and read by every inference
instead of the weights in storage.  prediction/keeping.py chooses the layers, ``bring`` makes the
tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import ROW_BYTES
from openkpu.layer.pool_layer import pool_layer
from openkpu.network.task_list import TaskList

LINES, CHANNELS = 512, 4  # of a map that brings weights: its result has one row
MAXIMUM = 1  # pool_task
SPARE_MOST = 0x7FFF  # rows that AI_SPARE_ROWS can hold


def size(network: TaskList, number: int) -> int:
    """Bytes of the weights of a layer, from the first load to the end of the last one."""
    arg = network.layers[number]
    return arg.weights_end(network.eight_bit and not arg.fp16) - arg.para_start_addr


def kept_rows(network: TaskList, number: int) -> int:
    """Rows of the AI RAM that they take."""
    return ceil_div(size(network, number), ROW_BYTES)


def free_rows(layers: Sequence[LayerArg], ram_rows: int) -> list[tuple[int, int]]:
    """(first row, rows) of each part of the AI RAM that no map of the layers uses."""
    maps = [m for arg in layers for m in (*arg.in_layouts, arg.out_layout)]
    found, at = [], 0
    for first, behind in sorted((m.base, m.base + m.rows) for m in maps):
        if first > at:
            found.append((at, first - at))
        at = max(at, behind)
    return [*found, (at, ram_rows - at)] if at < ram_rows else found


def unused_parts(
    layers: Sequence[LayerArg], ram_rows: int, kept: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """(first row, rows) of each part of the AI RAM that neither a map of the layers nor one of the
    ``kept`` parts (first row, rows) uses."""
    free = []
    for first, rows in free_rows(layers, ram_rows):
        at = first
        for begin, count in sorted(kept):
            if at < begin + count and begin < first + rows:
                free.append((at, begin - at))
                at = begin + count
        free.append((at, first + rows - at))
    return [part for part in free if part[1] > 0]


def spare_rows(
    layers: Sequence[LayerArg], ram_rows: int, kept: Sequence[tuple[int, int]] = ()
) -> tuple[int, int]:
    """(first row, rows) of the largest of the ``unused_parts``, for AI_SPARE_ROWS; (0, 0): none.

    The register holds at most 32,767 rows, and a word of two rows begins at an even one.
    """
    free = unused_parts(layers, ram_rows, kept)
    even = [(at + at % 2, min(SPARE_MOST, count - at % 2)) for at, count in free]
    found = max(even, key=lambda part: part[1], default=(0, 0))
    return found if found[1] > 0 else (0, 0)


def spare_register(part: tuple[int, int]) -> int:
    """AI_SPARE_ROWS for such a part."""
    return part[1] << 16 | part[0]


def kept_fault(network: TaskList, ram_rows: int) -> str | None:
    """What is wrong with the places of kept weights; None: nothing."""
    taken = [
        (m.base, m.base + m.rows, f"a map of layer {i}")
        for i, arg in enumerate(network.layers)
        for m in (*arg.in_layouts, arg.out_layout)
    ]
    for number, row in network.kept.items():
        if not 0 <= number < len(network.layers):
            return f"kept weights of layer {number}, there are {len(network.layers)} layers"
        if not size(network, number):
            return f"layer {number}: kept weights, but it has none"
        behind = row + kept_rows(network, number)
        if row < 0 or behind > ram_rows:
            return f"layer {number}: kept weights in rows {row}..{behind - 1} of {ram_rows}"
        for first, end, what in taken:
            if first < behind and row < end:
                return (
                    f"layer {number}: kept weights in rows {row}..{behind - 1}, where {what} lies"
                )
        taken.append((row, behind, f"the kept weights of layer {number}"))
    return None


def moved_weights(network: TaskList) -> list[LayerArg]:
    """The layers as the device gets them: kept weights named by their place in the AI RAM."""
    return [
        arg.replace(kept_weights=1, para_start_addr=network.kept[i] * ROW_BYTES)
        if i in network.kept
        else arg
        for i, arg in enumerate(network.layers)
    ]


def put(network: TaskList, ram: npt.NDArray[np.uint8]) -> None:
    """Write kept weights, and the results of ``bring``'s tasks, to an AI RAM of flat bytes."""
    for task, data in _tasks(network):
        base = task.image_src_addr * ROW_BYTES
        ram[base : base + data.size] = data
        lines = data.reshape(task.i_ch_num, -1)
        at = task.image_dst_addr * ROW_BYTES
        for channel, line in enumerate(lines):
            ram[at + 16 * channel] = line.max()


def weights(network: TaskList, number: int, ram: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The weight bytes (n,) of a layer with kept weights, as the AI RAM holds them."""
    at = network.kept[number] * ROW_BYTES
    arg = network.layers[number]
    return ram[at : at + arg.weight_count * arg.weight_size(network.eight_bit)].copy()


def bring(network: TaskList, weights_at: int) -> list[LayerArg]:
    """Layers that bring the kept weights into the AI RAM, for the host to run before a stream.

    ``weights_at``: address of the network's weights in storage.  Each is a pooling task that loads
    its map, the weights, and leaves up to four bytes in the first row of the network's input.
    """
    return [
        task.replace(map_load_addr=weights_at + task.map_load_addr) for task, _ in _tasks(network)
    ]


def _tasks(network: TaskList) -> list[tuple[LayerArg, npt.NDArray[np.uint8]]]:
    """Tasks whose map_load_addr is an offset into the weights, and the bytes of each."""
    found = []
    scratch = network.layers[0].image_src_addr
    for number, row in sorted(network.kept.items()):
        at, left = network.layers[number].para_start_addr, size(network, number)
        while left:
            whole = left // ROW_BYTES
            lines = min(whole, LINES)
            channels = min(CHANNELS, whole // LINES) if whole > LINES else 1
            shape = (channels, lines, ROW_BYTES) if whole else (1, 1, left)
            count = int(np.prod(shape))
            task = pool_layer(shape, MAXIMUM, None, src=row, dst=scratch).replace(
                load_map=1, map_load_addr=at
            )
            found.append((task, network.weights[at : at + count]))
            row, at, left = row + shape[0] * shape[1], at + count, left - count
    return found


def scatter(
    rng: np.random.Generator, network: TaskList, ram_rows: int, share: float = 1.0
) -> dict[int, int]:
    """Random places for the weights of some layers, each with the probability ``share``: rows that
    are free, at either end of them or between."""
    found: dict[int, int] = {}
    free = free_rows(network.layers, ram_rows)
    for number in (int(n) for n in rng.permutation(len(network.layers))):
        need = kept_rows(network, number)
        fits = [part for part in free if part[1] >= need > 0]
        if not fits or rng.random() >= share:
            continue
        first, count = part = fits[int(rng.integers(0, len(fits)))]
        at = first + int(rng.choice([0, count - need, int(rng.integers(0, count - need + 1))]))
        free.remove(part)
        free += [(first, at - first), (at + need, first + count - at - need)]
        found[number] = at
    return found
