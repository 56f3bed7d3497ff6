# SPDX-License-Identifier: Apache-2.0
"""The ways to compute a convolution, and the cheapest of them: the rule is that a place counts from
which the device's window sees many taps of the node.

A way has an anchor for each axis (``axes``), copies of the map that bring the other taps into the
window, the distance of the device's taps, and a pool or a layer that picks the pixels of a stride.
``lower_conv`` makes layers of it.
"""

from __future__ import annotations

import dataclasses
import itertools

from openkpu.compiler.form.graph import Conv
from openkpu.compiler.lowering import copies
from openkpu.compiler.lowering.axes import Axis
from openkpu.compiler.lowering.device import Geometry, Held
from openkpu.compiler.lowering.lower import State
from openkpu.layer.layout import Layout

OVERHEAD = 70  # cycles of a layer, about
MOST_3X3, MOST_1X1 = 1024, 9216
MOST_MOVED = 64  # pixels of a copy: a layer for each
# pools that pick, by stride and by the first pixel's rest
PICKS = {((2, 2), (0, 0)): 5, ((2, 2), (0, 1)): 6, ((4, 4), (0, 0)): 7}


@dataclasses.dataclass(frozen=True)
class Plan:
    """A way to compute the node, with its approximate cycles."""

    cost: float
    rows: dict[int, dict[int, int]]
    columns: dict[int, dict[int, int]]
    kernel: int
    pool: int
    step: tuple[int, int]  # of a pooling task behind it
    shift: tuple[int, int]  # of a copy before that
    shift_pool: int
    start: tuple[int, int]  # of the output in the last map
    banded: bool  # its copies do not fit the AI RAM at a time
    far: int  # pixels from one tap of the device to the next

    @property
    def shifts(self) -> list[tuple[int, int]]:
        return [(ty, tx) for ty in self.rows for tx in self.columns]

    def taps(self) -> list[tuple[int, int, int, int, int]]:
        """(number of the copy, tap's line, column on the device, ky, kx)."""
        at, found = 1 if self.kernel == 3 else 0, []
        for number, (ty, tx) in enumerate(self.shifts):
            lines, columns = self.rows[ty].items(), self.columns[tx].items()
            for (dy, ky), (dx, kx) in itertools.product(lines, columns):
                found.append((number, at + dy, at + dx, ky, kx))
        return found


def cheapest(
    state: State, node: Conv, held: Held, geometry: Geometry, *, depthwise: bool
) -> Plan | None:
    """The cheapest way, of those whose copies fit the AI RAM if there are any; None for none.

    The device's taps are neighbours, or, where that takes no copy, as far apart as the node's, up
    to the configuration's largest dilation (docs/kpu.md 1.16).
    """
    rows, columns = (Axis.of(node, i, geometry, held.place.shape[1 + i]) for i in (0, 1))
    outputs = rows.outputs, columns.outputs
    found = []
    apart = {axis.dilation for axis in (rows, columns) if axis.taps > 1}
    apart = sorted(far for far in apart if 1 < far <= state.config.dilation)
    for reach, far in ((1, 1), (0, 1), *((1, far) for far in apart)):
        lines = [(a, c) for a in rows.anchors() if (c := rows.cover(a, reach, far))]
        across = [(a, c) for a in columns.anchors() if (c := columns.cover(a, reach, far))]
        for (ay, ry), (ax, rx) in itertools.product(lines, across):
            start = rows.place(ay), columns.place(ax)
            strides = rows.stride, columns.stride
            if far > 1 and (list(ry), list(rx)) != ([0], [0]):
                continue
            plan = _way(state, node, held, start, (ry, rx), far, depthwise, strides, outputs)
            found += [plan] if plan else []
    return min(found, key=lambda p: (p.banded, p.cost), default=None)


def _way(
    state: State,
    node: Conv,
    held: Held,
    start: tuple[int, int],
    covers: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]],
    far: int,
    depthwise: bool,
    strides: tuple[int, int],
    outputs: tuple[int, int],
) -> Plan | None:
    """A plan with outputs from pixel ``start`` on; None for one that the device cannot do."""
    c, height, width = held.place.shape
    count = len(covers[0]) * len(covers[1])
    kernel = 3 if any(d for cover in covers for taps in cover.values() for d in taps) else 1
    far = far if kernel == 3 else 1
    channels = c * count if count > 1 else c
    if not depthwise and channels > (MOST_3X3 if kernel == 3 else MOST_1X1):
        return None
    if depthwise and (count > 1 or (0 not in covers[0] or 0 not in covers[1])):
        return None
    rows = Layout(c, height, width).rows + Layout(c * count, height, width).rows
    banded = count > 1 and rows > state.config.ai_ram_rows
    if any(abs(t) > MOST_MOVED for cover in covers for t in cover):
        return None
    moved = [max(abs(ty), abs(tx)) for ty in covers[0] for tx in covers[1]]
    pool, step, shift, shift_pool = 0, (1, 1), (0, 0), 0
    sizes = height, width
    if strides != (1, 1):
        rest = start[0] % strides[0], start[1] % strides[1]
        pool = PICKS.get((strides, rest), 0) if far == 1 else 0
        if pool:
            start = start[0] // strides[0], start[1] // strides[1]
            sizes = height // strides[0], width // strides[1]
            if start[0] + outputs[0] > sizes[0] or start[1] + outputs[1] > sizes[1]:
                pool = 0
                start = start[0] * strides[0] + rest[0], start[1] * strides[1] + rest[1]
                sizes = height, width
        if not pool:
            last = [p + (n - 1) * s for p, n, s in zip(start, outputs, strides, strict=True)]
            if strides == (2, 2) and rest == (1, 1) and last[0] < height and last[1] < width:
                shift, shift_pool = (1, 1), 5
                if last[0] // 2 >= height // 2 or last[1] // 2 >= width // 2:
                    return None
            else:
                shift, step = (rest[0], rest[1]), strides
            start = start[0] // strides[0], start[1] // strides[1]
    o = len(node.weights)
    lanes = state.config.macs
    out_pixels = sizes[0] * sizes[1]
    taps = 9 if kernel == 3 else 1
    macs = (o if depthwise else o * channels) * taps * out_pixels
    macs = macs if not depthwise else macs * (9 if kernel == 1 else 1)
    macs = macs if not depthwise or far == 1 else macs * state.config.n_z  # a channel at a time
    bytes_ = (1 if depthwise else channels) * o * taps
    cost = max(macs / lanes, bytes_ / state.config.bus_bytes) + OVERHEAD
    layers = sum(max(m, 1) for m in moved) if count > 1 or moved != [0] else 0
    near = max(moved) <= 1
    if layers and near and c * count <= copies.FEW:
        cost += OVERHEAD + 9 * c * c * count * height * width / lanes
    else:
        cost += layers * (OVERHEAD + 9 * c * height * width / lanes)
    if shift != (0, 0):
        cost += max(shift) * (OVERHEAD + 9 * o * out_pixels / lanes)
    if step != (1, 1):
        if far > 1 and not state.config.pool_lanes:
            return None
        cost += OVERHEAD + o * out_pixels / state.config.path_bytes
    return Plan(cost, *covers, kernel, pool, step, shift, shift_pool, start, banded, far)
