# SPDX-License-Identifier: Apache-2.0
"""Leaky ReLUs with a slope for each channel: the rule is two layers, or three.

The first layer, a depthwise one with a factor for each channel, writes the change by the slope of a
number below zero as a distance from the zero point, and 0 for the others.

*Two layers.*  The second one is an element-wise sum of the input and FAR times the distance taken
away.  A number of 0 or more stays as it is, one below lies about FAR * distance below zero, where
the input itself, smaller than FAR, does not matter: one line of the activation gives the byte, and
the other segments are the table of the positive numbers.

*Three layers* are for slopes below zero, and where the segments do not do: a table of the positive
numbers, and a sum or, channel by channel, a difference of both.  The cheaper way counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.compiler.form import functions
from openkpu.compiler.form.rarer import Prelu
from openkpu.compiler.lowering import costs, requant, segments
from openkpu.compiler.lowering.device import Held, Place
from openkpu.compiler.lowering.lower import Disordered, State, Unable, offset
from openkpu.compiler.lowering.nodes import lower_table
from openkpu.layer.elementwise import ADD

FAR = 254  # weights that differ by no more than 255: 1 and -FAR
TINY = Fraction(1, 1 << 10)  # a factor that gives 0 of every byte, for slopes of 0
Ints = npt.NDArray[np.int64]


def lower_prelu_node(state: State, node: Prelu) -> None:
    """Layers of a leaky ReLU whose slopes belong to channels."""
    held = state.held(node.inputs[0])
    if held.span[0] >= held.zero:  # nothing is below zero
        _one(state, node)
        return
    ways = [_three] if (node.slopes < 0).any() else [_two, _three]
    costs.fewest(state, node, ways)


def _channels(state: State, node: Prelu) -> Ints:
    """The tensor's channel of each channel of its map; -1 of the ones that are none."""
    held = state.held(node.inputs[0])
    shape = [1] * held.where.ndim
    shape[node.axis] = len(node.slopes)
    of_tensor = np.broadcast_to(np.arange(len(node.slopes)).reshape(shape), held.where.shape)
    of_map = held.where // int(np.prod(held.place.shape[1:]))
    found = np.full(held.place.shape[0], -1)
    found[of_map] = of_tensor
    if not np.array_equal(found[of_map], of_tensor):
        raise Disordered(node.inputs[0], "its channels do not lie as channels of a map")
    return found


def _distances(state: State, node: Prelu, most: int) -> Place:
    """A map of how far below the zero point numbers below zero come to lie, at most ``most``."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    held, channels = state.held(x.name), _channels(state, node)
    slopes = [abs(Fraction(float(s))) * x.exact / y.exact for s in node.slopes]
    low, high = held.zero - held.span[1], held.zero - held.span[0]
    ends = np.full(len(slopes), low), np.full(len(slopes), high)
    fit = requant.fit([s or TINY for s in slopes], [0] * len(slopes), 0, (0, most), ends)
    spread = requant.Fit(fit.bn[np.maximum(channels, 0)], fit.act, fit.missed, fit.edges)
    dst = state.new(held.place.shape)
    # alu = (zero - x), the weight being -1
    terms: dict[str, Any] = {"arg_x": -1, "arg_w": -held.zero, "arg_add": held.zero}
    weights = np.zeros(held.place.shape[0], dtype=np.int64)
    state.layer(node, held.place, dst, weights=weights, fit=spread, depthwise=True, **terms)
    return dst


def _ready(state: State, node: Prelu) -> Held:
    """The input, in the AI RAM: layers with two maps bring none."""
    held = state.held(node.inputs[0])
    if held.place.buffer in state.fresh:
        state.bring(node, held.place)
    return held


def _positive(state: State, node: Prelu) -> Ints:
    """Bytes of the output for all bytes of the input, as if it were 0 where it is below."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    table = functions.table_of(lambda r: max(r, Fraction(0)), x, y)
    return np.asarray(table, dtype=np.int64) + offset(y)


def _put(state: State, node: Prelu, held: Held, dst: Place) -> None:
    y = state.graph.tensors[node.outputs[0]]
    state.put(y.name, Held(dst, held.where, y.zero + offset(y)))


def _sum(
    state: State,
    node: Prelu,
    maps: tuple[Place, Place],
    dst: Place,
    weights: tuple[int, npt.ArrayLike],
    act: ActTable,
    mul: int,
    fields: dict[str, int],
) -> None:
    """An element-wise layer whose v is ``mul`` times the weighted sum."""
    c = maps[0].shape[0]
    nine = np.zeros((c, 9), dtype=np.int64)
    nine[:, 4], nine[:, 8] = weights
    fit = requant.Fit(BatchNorm.make(np.full(c, mul), 0, 0).pack(), act.pack(), 0, 0)
    kind: dict[str, Any] = {"kernel": 3, "depthwise": True, "elementwise": 1, "ew_op": ADD}
    kind |= fields
    state.layer(node, maps[0], dst, weights=nine, fit=fit, src2=maps[1], **kind)


def _one(state: State, node: Prelu) -> None:
    held, name = state.held(node.inputs[0]), node.outputs[0]
    lower_table.bytes_of(state, node, held, _positive(state, node), name)
    _put(state, node, held, state.tensors[name].place)


# -------------------------------------------------------------------------------- two layers
def _two(state: State, node: Prelu) -> None:
    held, y = _ready(state, node), state.graph.tensors[node.outputs[0]]
    zero = y.zero + offset(y)
    act = _joined(_positive(state, node), held, zero)
    distances = _distances(state, node, zero)
    dst = state.room(y.name, held.place.shape)
    # a - zx - FAR * distance
    fields = {"arg_x": -FAR, "arg_add": -held.zero}
    weights = FAR + 1, 0
    _sum(state, node, (held.place, distances), dst, weights, act, segments.STEP, fields)
    _put(state, node, held, dst)


def _joined(positive: Ints, held: Held, zero: int) -> ActTable:
    """Segments of v = STEP * (x - zx - FAR * distance); Unable where there are too few."""
    (low, high), zx = held.span, held.zero
    least = zx - low  # the most that the input itself takes away
    plain = segments.fit(positive[zx : high + 1]) if high >= zx else None
    if least > FAR - 2 or plain is None:
        raise Unable("no activation of 16 segments holds both ends")
    used = int((plain.start < segments.HIGHEST).sum())
    if used + 2 > segments.SEGMENTS:
        raise Unable("no activation of 16 segments holds both ends")
    step = segments.STEP
    for bits in (32, 31, 30):  # of the line below zero, whose slope has 15 bits
        slope = round((1 << bits) / (FAR * step))
        line = [-(zero * FAR + (least + 1) // 2) * step, slope, bits, 0]
        rows = [[segments.LOWEST, 0, 0, 0], line]
        fields = plain.start, plain.mul, plain.shift, plain.add
        ends = [[int(v[i]) for v in fields] for i in range(used)]
        ends[0][0] = max(ends[0][0], 1 - step)  # behind the last number below zero
        fill = [[segments.HIGHEST, 0, 0, 0]] * (segments.SEGMENTS - len(rows) - used)
        start, mul, shift, add = zip(*rows, *ends, *fill, strict=True)
        act = ActTable.make(start, mul, shift, add)
        if _gives(act, positive, held, zero):
            return act
    raise Unable("no line below zero gives every byte")


def _gives(act: ActTable, positive: Ints, held: Held, zero: int) -> bool:
    """Is every byte right, of each input and each distance that it may have?"""
    (low, high), zx = held.span, held.zero
    rule = Activation(act)
    x = np.arange(max(zx, low), high + 1)
    if not np.array_equal(rule((x - zx) * segments.STEP), positive[x]):
        return False
    below, distance = np.arange(low, zx) - zx, np.arange(zero + 1)
    v = (below[:, None] - FAR * distance) * segments.STEP
    return bool((rule(v.reshape(-1)).reshape(v.shape) == zero - distance).all())


# ------------------------------------------------------------------------------ three layers
def _three(state: State, node: Prelu) -> None:
    held, y = _ready(state, node), state.graph.tensors[node.outputs[0]]
    channels = _channels(state, node)
    name = state.graph.fresh(y.name + "~positive")
    lower_table.bytes_of(state, node, held, _positive(state, node), name)
    positive = state.tensors.pop(name).place
    distances = _distances(state, node, 255)
    dst = state.room(y.name, held.place.shape)
    # with arg_x = -1 the stored 0 is -1, and 2 is 1
    signs = np.where(node.slopes[np.maximum(channels, 0)] < 0, 2, 0)
    act = ActTable.make(
        [segments.LOWEST, 0, 255 * segments.STEP] + [segments.HIGHEST] * 13,
        [0, 1, 0] + [0] * 13,
        [0, segments.STEP_BITS, 0] + [0] * 13,
        [0, 0, 255] + [0] * 13,
    )
    fields = {"arg_x": -1}
    _sum(state, node, (positive, distances), dst, (2, signs), act, segments.STEP, fields)
    _put(state, node, held, dst)
