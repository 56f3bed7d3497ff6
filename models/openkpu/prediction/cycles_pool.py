# SPDX-License-Identifier: Apache-2.0
"""A pooling task: pieces of 16 columns through pool_walk, pool_columns, pool_pick and pool_write.

docs/architecture.md 15.9. The array rests meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.pool_tasks import window_of

PIECE = 16  # columns of a piece
SETUP = 14  # from the start to the walk: pool_setup makes a product a bit a cycle
READ = 3  # from the walk's step to the piece in its FIFO
PIECES = 6  # that the FIFO holds, or that are on their way
WRITTEN = 16  # from the last pick to the end of the task: twelve registers, a word, its write


def picks(arg: LayerArg, lanes: int) -> list[int]:
    """Windows that end in each piece of a line, as cycles of ``lanes`` windows."""
    if arg.pool_all:
        return [1] * ceil_div(arg.i_row_wid, PIECE)
    window = window_of(arg)
    end = window.kw - 1 - window.left
    last = end + (arg.o_row_wid - 1) * window.sx
    found = []
    for piece in range(last // PIECE + 1):
        count = 0
        while end // PIECE == piece and end <= last:
            count, end = count + 1, end + window.sx
        found.append(max(1, ceil_div(count, lanes)))
    return found


def rest_behind(arg: LayerArg, lanes: int) -> bool:
    """The last bytes of an output line lie in two pieces: the second one costs a cycle."""
    window, width = window_of(arg), arg.o_row_wid
    if arg.pool_all:
        return False
    end, place = window.kw - 1 - window.left, 0
    left = width
    while left:
        piece = end // PIECE
        count = min(lanes, left, ceil_div(PIECE * (piece + 1) - end, window.sx))
        left -= count
        if not left:
            return place % PIECE + count > PIECE
        place, end = place + count, end + count * window.sx
    return False


def bound_by_reads(config: Config, arg: LayerArg) -> bool:
    """The lines of a window take longer than its columns, and than the picks of a piece."""
    window = window_of(arg)
    line = picks(arg, config.pool_lanes)
    columns = min(arg.i_row_wid, PIECE) if arg.pool_all else window.kw
    return window.kh >= max(columns, sum(line) / len(line))


def predict_pool_task(
    config: Config,
    arg: LayerArg,
    start: int,
    whole: Callable[[int, int], None] | None = None,
) -> int:
    """The cycle in which everything is written; ``start``: that of run_start; ``whole`` is told of
    each channel that is written, with the cycle of its last write."""
    lanes = config.pool_lanes
    lines = arg.i_col_high if arg.pool_all else window_of(arg).kh
    columns = min(arg.i_row_wid, PIECE) if arg.pool_all else window_of(arg).kw
    line = picks(arg, lanes)
    behind = int(rest_behind(arg, lanes))
    read = start + SETUP - 1  # last step of the walk
    popped = taken = sent = picked = start  # the last of each stage
    pops: deque[int] = deque([0] * PIECES, PIECES)
    for line_number in range(arg.o_ch_num * arg.o_col_high):
        for number, cycles in enumerate(line):
            for _line in range(lines):
                read = max(read, pops[0]) + 1
                popped = max(read + READ, popped + 1, taken)
                pops.append(popped)
            # the columns of this piece go on when those of the one before have
            taken = max(popped + 1, sent)
            sent = max(taken + columns, picked)
            picked = sent + cycles + (behind if number == len(line) - 1 else 0)
        if whole is not None and line_number % arg.o_col_high == arg.o_col_high - 1:
            whole(picked + WRITTEN - 1, 1)
    return picked + WRITTEN
