# SPDX-License-Identifier: Apache-2.0
"""Shapes that a file does not state: of results that lie in memory as their sources do.

v3 and v4 give most operations a number of elements only, and a concatenation two extents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy.typing as npt

from openkpu.kmodel.operations.moves import Concat
from openkpu.kmodel.program import Program

Shape = tuple[int, ...]


def concatenated(op: Concat, parts: Sequence[Shape | None]) -> Shape | None:
    """The map (N, C, H, W) that sources of these shapes make; None when they make none.

    Channels are meant wherever they can be: (1, 1, H, W) has several axes of the same place.
    """
    shapes = [part for part in parts if part is not None and len(part) == 4]
    if len(shapes) < len(op.sources) or not shapes:
        return None
    for axis in (1, 2, 3, 0):
        others = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
        outer = math.prod(shapes[0][:axis])
        inner = [math.prod(shape[axis:]) for shape in shapes]
        widths = {view.shape[1] / n for view, n in zip(op.sources, inner, strict=True) if n}
        if len(others) == 1 and outer == op.sources[0].shape[0] and widths in ({1.0}, {4.0}):
            total = sum(shape[axis] for shape in shapes)
            return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    return None


def output_map(output: npt.NDArray, program: Program) -> npt.NDArray:
    """An output of C x HW elements as (1, C, H, W) of the KPU's last map of that size, else as it
    is."""
    if output.ndim >= 4:
        return output
    for op in reversed(program.kpu_layers):
        c, h, w = op.arg.out_shape
        flat = output.shape in ((c * h * w,), (1, c * h * w)) and h * w > 1
        if flat or (output.shape[-2:] == (c, h * w) and output.size == c * h * w):
            return output.reshape(1, c, h, w)
    return output
