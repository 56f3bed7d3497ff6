# SPDX-License-Identifier: Apache-2.0
"""A product of float16 matrices: steps of fp16_steps, sums that leave through fp16_round.

docs/architecture.md 15.9. A step takes a word of B and a number of each of some rows of A; a
group's last step waits until the sums of the group before have left.
"""

from __future__ import annotations

import dataclasses

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_shape import Shape

FIRST = 5  # from run_start to the first step: start, request, answer, FIFO
ROW_SEEN = 2  # from the last word of a row of weights to the step that uses it
ROW_FREED = 1  # from a ring's last step to the word that may take its place
HELD = 10  # from a group's last step to the next one's, besides a cycle for each move of the sums
LEAVES = 10  # from a layer's last step to the first sum's leaving
WRITTEN = 7  # from the last one's to the end of its write
ROUNDED = 64  # sums of a lane's holding register that leave one after the other


@dataclasses.dataclass
class Floats:
    """What a layer took: cycles of steps, and of waits."""

    end: int  # everything is written
    steps: int
    weights: int = 0  # cycles in which rows of A had not come
    output: int = 0  # ... in which sums had not left, and the end of the write


def group(config: Config) -> tuple[int, int]:
    """(columns of B, rows of A) of a group of sums; ValueError without lanes for them."""
    if not config.fp16_lanes:
        raise ValueError(f"a product of float16, configuration {config.name} has fp16_lanes = 0")
    columns = min(config.fp16_lanes, config.path_bytes // 2, 32)
    return columns, config.fp16_lanes // columns


def predict_fp16_layer(shape: Shape, front: Front, start: int) -> Floats:
    """One layer; ``start``: cycle of run_start."""
    config, arg = shape.config, shape.arg
    columns, rows = group(config)
    moves = min(config.fp16_lanes, ROUNDED)
    parts = config.n_z // rows  # groups of rows of A that share rows of weights
    row_groups, column_groups = ceil_div(arg.o_ch_num, rows), ceil_div(shape.row_bytes, 2 * columns)
    deep = arg.i_ch_num
    found = Floats(0, row_groups * column_groups * deep)
    now = start + FIRST  # next step
    free = 0  # the last sums have left
    for at in range(row_groups):
        base = at // parts * shape.steps  # row of weights
        for _ in range(column_groups):
            for row in range(shape.steps):
                ready = max(now, front.row(base + row) + ROW_SEEN)
                found.weights += ready - now
                now = ready + min(9, deep - 9 * row)
            last = max(now - 1, free)
            found.output += last - (now - 1)
            now, free = last + 1, last + HELD + moves
        if at % parts == parts - 1 or at == row_groups - 1:
            front.free_rows(now - 1 + ROW_FREED, shape.steps)
    found.end = now - 1 + LEAVES + moves - 1 + WRITTEN
    found.output += found.end - now
    return found
