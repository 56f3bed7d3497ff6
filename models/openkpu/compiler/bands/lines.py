# SPDX-License-Identifier: Apache-2.0
"""Which lines of its input a layer reads for some lines of its output: the halo of a band.

A 3x3 layer that reads a part of a map pads at the edges of the part.  So the part has a further
line on each side where the map continues, a dilated layer as many as its taps are apart, and the
output lines that use the false padding are computed in vain: they are next to the requested lines.
"""

from __future__ import annotations

import dataclasses

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.layer.argument import LayerArg

OVERLAPPING = (8, 9)  # pools of stride 1


@dataclasses.dataclass(frozen=True)
class Window:
    """Lines of the input that are read, and of the output that come of them."""

    low: int
    high: int
    first: int
    behind: int
    pads: tuple[int, int] = (0, 0)  # above and below, of a pooling task


def bandable(arg: LayerArg) -> bool:
    """Can the layer compute some lines of its output from some of its input?"""
    return not (arg.fc or arg.pool_all or arg.pool_type in OVERLAPPING)


def window(arg: LayerArg, first: int, behind: int) -> Window:
    """For lines ``first`` to ``behind`` (excluded) of the output of a layer on whole maps."""
    height, outputs = arg.i_col_high, arg.o_col_high
    if (first, behind) == (0, outputs):
        return Window(0, height, 0, outputs, (arg.pool_top, arg.pool_bottom))
    if arg.pool_task:
        low, high = first * arg.pool_sy - arg.pool_top, (behind - 1) * arg.pool_sy - arg.pool_top
        high += arg.pool_kh
        pads = max(0, -low), max(0, high - height)
        return Window(max(0, low), min(high, height), first, behind, pads)
    stride = POOL_STRIDE[arg.pool_type]
    halo = 0 if arg.elementwise else ceil_div(arg.edge, stride)  # of lines of the output
    above = min(halo, first)
    # a pool that picks sees the line below its last pixel in the window anyway
    reach = 0 if arg.pool_type in PICKS and stride > 1 else halo
    below = min(reach, outputs - behind)
    high = height if behind + max(reach, 1) > outputs else stride * (behind + below)
    return Window(stride * (first - above), high, first - above, behind + below)
