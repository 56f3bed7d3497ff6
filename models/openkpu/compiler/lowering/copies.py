# SPDX-License-Identifier: Apache-2.0
"""Moved copies of maps, by layers whose kernel has a single tap.

A depthwise 3x3 layer with one weight of 1 and the rest 0 moves a map by one line and one column;
what comes in at the edge is the zero point, as padding is.  Larger steps are several such layers.
Where channels do not fill the rows of the AI RAM, a full convolution with one tap for each output
channel makes all copies at once.  A part of a map's lines is copied channel group by channel group,
because a group's lines follow each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.compiler.form.graph import Node
from openkpu.compiler.lowering.device import Geometry, Held, Place, indices
from openkpu.compiler.lowering.lower import Disordered, State, copy_fit, one_tap, zero_terms
from openkpu.layer.layout import Layout
from openkpu.layer.pool_tasks import MAXIMUM

Shift = tuple[int, int]
FEW = 64  # output channels up to which one full convolution makes all copies


def moved_map(state: State, node: Node, src: Place, zero: int, by: Shift, dst: Place) -> None:
    """``dst[y][x] = src[y + dy][x + dx]``, the zero point outside; any distance."""
    while max(map(abs, by)) > 1:
        step = tuple(int(np.sign(n)) for n in by)
        middle = state.new(src.shape)
        moved_map(state, node, src, zero, (step[0], step[1]), middle)
        src, by = middle, (by[0] - step[0], by[1] - step[1])
    c = src.shape[0]
    kernel = 1 if by == (0, 0) else 3
    weights = one_tap(c, *by) if kernel == 3 else np.ones(c, dtype=np.int64)
    terms = zero_terms(0, zero, kernel * kernel)
    fields: dict[str, Any] = {"kernel": kernel, "depthwise": True}
    state.layer(node, src, dst, weights=weights, fit=copy_fit(zero, c), **fields, **terms)


def stacked(
    state: State, node: Node, src: Place, zero: int, shifts: list[Shift]
) -> tuple[Place, list[npt.NDArray[np.int64]]]:
    """(map with a copy for each shift, channels of each copy in it)."""
    c, height, width = src.shape
    near = max(max(map(abs, s)) for s in shifts) <= 1
    if c % src.groups or (near and c * len(shifts) <= FEW):
        if not near:
            src = filled(state, node, src, zero)
            return stacked(state, node, src, zero, shifts)
        dst = state.new((c * len(shifts), height, width))
        weights = np.zeros((len(shifts), c, c, 3, 3), dtype=np.int64)
        for number, (dy, dx) in enumerate(shifts):
            weights[number, np.arange(c), np.arange(c), 1 + dy, 1 + dx] = 1
        fit = copy_fit(zero, c * len(shifts))
        state.layer(node, src, dst, weights=weights, fit=fit, kernel=3, **zero_terms(0, zero, 9))
        return dst, [np.arange(c) + c * n for n in range(len(shifts))]
    dst = state.new((c * len(shifts), height, width))
    made: dict[Shift, Place] = {(0, 0): src}
    for number, shift in sorted(enumerate(shifts), key=lambda s: max(map(abs, s[1]))):
        part = dst.part(c * number, c)
        # from the copy that is nearest, which may be the map itself
        start = min(made, key=lambda m: max(abs(shift[0] - m[0]), abs(shift[1] - m[1])))
        inward = [m for m in made if _toward(m, shift)]
        start = min(inward, key=lambda m: max(abs(shift[0] - m[0]), abs(shift[1] - m[1])))
        moved_map(state, node, made[start], zero, (shift[0] - start[0], shift[1] - start[1]), part)
        made[shift] = part
    return dst, [np.arange(c) + c * n for n in range(len(shifts))]


def _toward(made: Shift, shift: Shift) -> bool:
    """Does ``made`` lie on the way from (0, 0) to ``shift``, so that nothing it lost is needed?"""
    return all(
        0 <= m * np.sign(s) <= abs(s) if s else m == 0 for m, s in zip(made, shift, strict=True)
    )


def filled(state: State, node: Node, src: Place, zero: int) -> Place:
    """The map with channels that fill its rows; further ones hold the zero point."""
    c = src.shape[0]
    full = round_up(c, src.groups)
    if full == c:
        return src
    dst = state.new((full, *src.shape[1:]))
    weights = np.eye(full, c, dtype=np.int64)
    terms = zero_terms(0, zero, 1)
    state.layer(node, src, dst, weights=weights, fit=copy_fit(zero, full), **terms)
    return dst


def chosen_channels(
    state: State, node: Node, src: Place, zero: int, channels: npt.NDArray[np.int64], dst: Place
) -> None:
    """``channels`` of a map in this order, by a convolution with one weight for each."""
    weights = np.zeros((dst.shape[0], src.shape[0]), dtype=np.int64)
    weights[np.arange(len(channels)), channels] = 1
    terms = zero_terms(0, zero, 1)
    state.layer(node, src, dst, weights=weights, fit=copy_fit(zero, dst.shape[0]), **terms)


def picked(
    state: State, node: Node, src: Place, zero: int, by: Shift, pool: int, dst: Place
) -> None:
    """``dst[y][x] = src[s * y + dy][s * x + dx]``, by a pool that picks; dy and dx at most 1."""
    c = src.shape[0]
    terms = {"kernel": 3, "depthwise": True, "pool": pool, **zero_terms(0, zero, 9)}
    state.layer(node, src, dst, weights=one_tap(c, *by), fit=copy_fit(zero, c), **terms)


def on_grid(state: State, node: Node, held: Held, geometry: Geometry) -> Held:
    """A tensor whose pixels lie some steps apart, in a map where they are neighbours."""
    src, (sy, sx), size = held.place, geometry.step, geometry.size
    if (sy, sx) == (1, 1):
        return held
    c, height, width = src.shape
    (y0, x0), rest = geometry.start, (geometry.start[0] % sy, geometry.start[1] % sx)
    start = y0 // sy, x0 // sx
    half = height // 2, width // 2
    fits = all(s + n <= h for s, n, h in zip(start, size, half, strict=True))
    if (sy, sx) == (2, 2) and fits:
        dst = state.new((c, *half))
        picked(state, node, src, held.zero, rest, 5, dst)
    else:
        if rest != (0, 0):
            middle = state.new(src.shape)
            moved_map(state, node, src, held.zero, rest, middle)
            src = middle
        dst = state.new((c, ceil_div(height, sy), ceil_div(width, sx)))
        state.pool(node, src, dst, MAXIMUM, (1, 1), (sy, sx))
    where = indices(dst, geometry.channels, start, size, geometry.turned)
    return Held(dst, where, held.zero, held.span)


def cropped(state: State, node: Node, name: str, held: Held, geometry: Geometry) -> Held:
    """The tensor in a map of its own size, nothing around it."""
    if geometry.step != (1, 1):
        held = on_grid(state, node, held, geometry)
        geometry = held.geometry() or geometry
    (y0, x0), (h, w), src = geometry.start, geometry.size, held.place
    if (h, w) == src.shape[1:]:
        return held
    if x0:
        dst = state.new(src.shape)
        moved_map(state, node, src, held.zero, (0, x0), dst)
        src = dst
    c, _, wide = src.shape
    layout, part = Layout(*src.shape), Layout(c, h, w)
    if (layout.groups, layout.row_len) != (part.groups, part.row_len):
        raise Disordered(name, f"lines of {wide} pixels lie otherwise than those of {w}")
    dst = state.new((c, h, w))
    for first in range(0, c, layout.groups):
        count = min(layout.groups, c - first)
        row = src.row + first // layout.groups * layout.channel_rows + y0 * layout.row_len
        lines = Place(src.buffer, row, (count, h, w))
        moved_map(state, node, lines, held.zero, (0, 0), dst.part(first, count))
    where = indices(dst, geometry.channels, (0, 0), (h, w), geometry.turned)
    return Held(dst, where, held.zero, held.span)


def plain_map(state: State, node: Node, name: str, held: Held) -> Held:
    """The tensor in a map of its own size, its channels in their order; as it is where it lies so,
    or where it does not lie as a map does."""
    geometry = held.geometry()
    if geometry is None:
        return held
    held = cropped(state, node, name, held, geometry)
    geometry = held.geometry()
    assert geometry is not None
    src, count = held.place, len(geometry.channels)
    if np.array_equal(geometry.channels, np.arange(src.shape[0])):
        return held
    dst = state.new((count, *src.shape[1:]))
    chosen_channels(state, node, src, held.zero, geometry.channels, dst)
    where = indices(dst, np.arange(count), geometry.start, geometry.size, geometry.turned)
    return Held(dst, where, held.zero, held.span)
