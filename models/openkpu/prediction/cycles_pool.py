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
# called for complete channels of a map: cycle of their last write, how many, share of the reads of
# the AI RAM that the layer has used
Whole = Callable[[int, int, float], None]


def piece_columns(lanes: int) -> int:
    """Columns of a piece: four for each of the ``lanes``, a read at most."""
    return min(4 * lanes, BLOCK)


def picks(arg: LayerArg, lanes: int) -> list[int]:
    """Windows that end in each piece of a line, in cycles of ``lanes`` of them."""
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


def predict_pool_task(
    config: Config, arg: LayerArg, start: int, whole: Whole = lambda at, channels, used: None
) -> tuple[int, bool]:
    """(cycle in which everything is written; the reads bound it: the lines of a window take longer
    than its columns, and than the picks of a piece). ValueError without an engine for pools.

    ``start``: cycle of run_start. A piece needs the maximum of lines, columns and picks.
    """
    if not (lanes := config.pool_lanes):
        raise ValueError(f"a pooling task, configuration {config.name} has pool_lanes = 0")
    lines, columns, setup = arg.i_col_high, min(arg.i_row_wid, piece_columns(lanes)), SETUP_ALL
    if not arg.pool_all:
        lines, columns, setup = window_of(arg).kh, window_of(arg).kw, SETUP
    line = picks(arg, lanes)
    channel = arg.o_col_high * sum(max(lines, columns, count) for count in line)
    first = start + setup + late_reads(config) + min(lines, columns)
    blocks = ceil_div(len(line) * piece_columns(lanes), BLOCK)
    used = lines * blocks * arg.o_col_high / channel
    for number in range(arg.o_ch_num):
        whole(first + channel * (number + 1) + WRITTEN - 1, 1, used)
    by_reads = lines >= max(columns, sum(line) / len(line))
    return first + channel * arg.o_ch_num + WRITTEN, by_reads
