# SPDX-License-Identifier: Apache-2.0
"""A smaller map spread over the places of a larger one, as an element-wise node broadcasts it.

One pixel for each channel is spread by pooling tasks: the maximum of windows that see that pixel
and padding, which counts for nothing, is the pixel, and as many windows as the window has places
see it.  One channel for all is spread by a 1x1 convolution with a weight of 1 for each output
channel.  The result lies where the larger map does, with what lies around it there.
"""

from __future__ import annotations

import numpy as np

from openkpu.compiler.form.graph import Node
from openkpu.compiler.lowering import copies
from openkpu.compiler.lowering.device import Geometry, Held, Place
from openkpu.compiler.lowering.lower import Disordered, State, Unable, copy_fit, zero_terms
from openkpu.layer.pool_tasks import MAXIMUM, MOST_KERNEL, MOST_PAD

GROWS = min(MOST_KERNEL - 1, MOST_PAD)  # pixels that a pooling task adds


def over(
    state: State, node: Node, names: tuple[str, str], full: Held, small: Held
) -> tuple[Held, Held]:
    """(the larger tensor, the smaller one in a map like that one's); ``names`` of both."""
    size, want = full.where.shape, small.where.shape
    want = (1,) * (len(size) - len(want)) + want
    if len(size) != 4 or any(n not in (1, m) for n, m in zip(want, size, strict=True)):
        raise Unable(f"operands {size} and {small.where.shape}: neither is spread over the other")
    if small.where.ndim != 4:
        small = Held(small.place, small.where.reshape(want), small.zero, small.span)
    geometry = full.geometry()
    if geometry is None or geometry.step != (1, 1):
        full = copies.plain_map(state, node, names[0], full)
        geometry = full.geometry()
    found = small.geometry()
    for name, lies in zip(names, (geometry, found), strict=True):
        if lies is None:
            raise Disordered(name, f"operand {name!r} does not lie as a map does")
    assert geometry is not None and found is not None
    whole = want[2:] == size[2:]
    if whole and (found.step, found.turned) != (geometry.step, geometry.turned):
        raise Unable("its operands lie in different orders")
    if want[2:] == (1, 1):
        small = copies.cropped(state, node, names[1], small, found)  # no pixel beside it
    elif not whole or not _same_places(full, geometry, small, found):
        small = copies.cropped(state, node, names[1], small, found)
        full = copies.cropped(state, node, names[0], full, geometry)
        geometry = full.geometry()
        assert geometry is not None
    found = small.geometry()
    assert found is not None
    channels, count = _per_channel(geometry, found), full.place.shape[0]
    place, high, wide = small.place, *full.place.shape[1:]
    if not np.array_equal(channels, np.arange(place.shape[0])) or place.shape[0] != count:
        place = state.new((count, *place.shape[1:]))
        _chosen(state, node, small, channels, place)
    while place.shape[1:] != (high, wide):
        place = _grown(state, node, place, (high, wide), small.zero)
    return full, Held(place, full.where, small.zero, small.span)


def _same_places(a: Held, one: Geometry, b: Held, other: Geometry) -> bool:
    return a.place.shape[1:] == b.place.shape[1:] and one.start == other.start


def _per_channel(full: Geometry, small: Geometry) -> np.ndarray:
    """For each channel of the larger place that of the smaller one; any where it has none."""
    count = int(full.channels.max()) + 1
    found = np.zeros(count, np.int64)
    found[full.channels] = small.channels
    return found


def _chosen(state: State, node: Node, small: Held, channels: np.ndarray, dst: Place) -> None:
    """Channels of a map in this order, also one of them several times."""
    weights = np.zeros((dst.shape[0], small.place.shape[0]), np.int64)
    weights[np.arange(len(channels)), channels] = 1
    fit = copy_fit(small.zero, dst.shape[0])
    state.layer(node, small.place, dst, weights=weights, fit=fit, **zero_terms(0, small.zero, 1))


def _grown(state: State, node: Node, src: Place, size: tuple[int, int], zero: int) -> Place:
    """The map with more lines and columns, each as its only one or the last one was."""
    have = src.shape[1:]
    add = [min(want - n, GROWS) for want, n in zip(size, have, strict=True)]
    dst = state.new((src.shape[0], have[0] + add[0], have[1] + add[1]))
    pads = (add[0], add[1], add[0], add[1])
    state.pool(node, src, dst, MAXIMUM, (add[0] + 1, add[1] + 1), (1, 1), pads, zero)
    return dst
