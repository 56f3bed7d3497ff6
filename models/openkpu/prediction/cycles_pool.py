# SPDX-License-Identifier: Apache-2.0
"""A pooling task: pieces of a line through pool_walk, pool_columns, pool_pick and pool_write.

docs/architecture.md 15.9. The array rests meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.pool_tasks import window_of
from openkpu.prediction.cycles_shape import late_reads

BLOCK = 16  # columns of a read
SETUP = 12  # from the start to the first piece: pool_setup makes a product a bit a cycle
SETUP_ALL = 17  # ... whose second factor has ten bits instead of five
WRITTEN = 16  # from the last pick to the end of the task: twelve registers, a page, its write


def piece_columns(lanes: int) -> int:
    """Columns of a piece: four for each of the ``lanes``, a read at most."""
    return min(4 * lanes, BLOCK)


def picks(arg: LayerArg, lanes: int) -> list[int]:
    """Windows that end in each piece of a line, as cycles of ``lanes`` windows."""
    size = piece_columns(lanes)
    if arg.pool_all:
        return [1] * ceil_div(arg.i_row_wid, size)
    window = window_of(arg)
    first = window.kw - 1 - window.left
    ends = range(first, first + arg.o_row_wid * window.sx, window.sx)
    counts = [0] * (ends[-1] // size + 1)
    for end in ends:
        counts[end // size] += 1
    return [max(1, ceil_div(count, lanes)) for count in counts]


def _lanes(config: Config) -> int:
    """Windows that are divided at a time; ValueError without an engine for them."""
    if not config.pool_lanes:
        raise ValueError(f"a pooling task, configuration {config.name} has pool_lanes = 0")
    return config.pool_lanes


def bound_by_reads(config: Config, arg: LayerArg) -> bool:
    """The lines of a window take longer than its columns, and than the picks of a piece."""
    lanes = _lanes(config)
    lines, columns = _window(arg, lanes)
    line = picks(arg, lanes)
    return lines >= max(columns, sum(line) / len(line))


def _window(arg: LayerArg, lanes: int) -> tuple[int, int]:
    """Lines and columns of each piece."""
    if arg.pool_all:
        return arg.i_col_high, min(arg.i_row_wid, piece_columns(lanes))
    return window_of(arg).kh, window_of(arg).kw


def predict_pool_task(
    config: Config,
    arg: LayerArg,
    start: int,
    whole: Callable[[int, int, float], None] = lambda at, channels, used: None,
) -> int:
    """The cycle in which everything is written; ``start``: that of run_start; ``whole`` is called
    for each written channel, with the cycle of its last write and the share of the reads of the
    AI RAM.  A piece needs the maximum of its lines, its columns and its picks.
    """
    lanes = _lanes(config)
    lines, columns = _window(arg, lanes)
    line = picks(arg, lanes)
    channel = arg.o_col_high * sum(max(lines, columns, count) for count in line)
    first = (
        start + (SETUP_ALL if arg.pool_all else SETUP) + late_reads(config) + min(lines, columns)
    )
    blocks = ceil_div(len(line) * piece_columns(lanes), BLOCK)
    used = lines * blocks * arg.o_col_high / channel
    for number in range(arg.o_ch_num):
        whole(first + channel * (number + 1) + WRITTEN - 1, 1, used)
    return first + channel * arg.o_ch_num + WRITTEN
