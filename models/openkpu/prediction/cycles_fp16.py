# SPDX-License-Identifier: Apache-2.0
"""A product of float16 matrices: steps of fp16_steps, sums that leave through fp16_round.

docs/architecture.md 15.9. A step takes a word of B and a number of each of some rows of A; a
group's last step waits until the sums of the group before have left.
"""

from __future__ import annotations

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_shape import Shape

FIRST = 5  # from run_start to the first step: start, request, answer, FIFO
ROW_SEEN = 2  # from the last word of a row of weights to the step that uses it
ROW_FREED = 1  # from a ring's last step to the word that may take its place
HELD = 10  # from a group's last step to the next one's, besides a cycle for each move of the sums
WRITTEN = 16  # from a layer's last step to the end of the last write, besides these moves
ROUNDED = 64  # sums of a lane's holding register that leave one after the other


def group(config: Config) -> tuple[int, int]:
    """(columns of B, rows of A) of a group of sums; ValueError without lanes for them."""
    if not config.fp16_lanes:
        raise ValueError(f"a product of float16, configuration {config.name} has fp16_lanes = 0")
    columns = min(config.fp16_lanes, config.path_bytes // 2, 32)
    return columns, config.fp16_lanes // columns


def predict_fp16_layer(shape: Shape, front: Front, start: int) -> tuple[int, int]:
    """(cycle in which everything is written, steps of the lanes); ``start``: cycle of run_start."""
    columns, rows = group(shape.config)
    moves = min(shape.config.fp16_lanes, ROUNDED)
    parts = shape.config.n_z // rows  # groups of rows of A that share rows of weights
    groups = ceil_div(shape.arg.o_ch_num, rows)
    column_groups = ceil_div(shape.arg.i_row_wid * shape.arg.i_col_high, 2 * columns)
    now, free = start + FIRST, 0  # next step; the last sums have left
    for at in range(groups):
        base = at // parts * shape.on.steps  # row of weights
        for _ in range(column_groups):
            for row in range(shape.on.steps):
                now = max(now, front.row(base + row) + ROW_SEEN)
                now += min(9, shape.arg.i_ch_num - 9 * row)
            now = max(now - 1, free) + 1
            free = now - 1 + HELD + moves
        if at % parts == parts - 1 or at == groups - 1:
            front.rows_freed.extend([now - 1 + ROW_FREED] * shape.on.steps)
    return now - 1 + WRITTEN + moves, groups * column_groups * shape.arg.i_ch_num
