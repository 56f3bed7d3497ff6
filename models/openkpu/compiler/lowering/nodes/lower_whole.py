# SPDX-License-Identifier: Apache-2.0
"""Convolutions with a single output pixel: the rule is a fully connected layer.

The last layer of a classifier of signals is often a kernel as large as its map.  What it reads is a
vector, so its weights become those of a fully connected layer in the order in which the map lies;
taps in the padding are left out.  Groups (a depthwise kernel has one for each channel) are cut into
layers, each from the channels of some groups: larger ones have weights of 0 for what is between
other groups, smaller ones have to be started.  The number with fewest predicted cycles is chosen.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from openkpu.arithmetic.integers import round_up
from openkpu.compiler.form.graph import Conv
from openkpu.compiler.lowering import costs, requant
from openkpu.compiler.lowering.device import Held, Place
from openkpu.compiler.lowering.lower import (
    State,
    Unable,
    factors_of,
    reach_of,
    signed_weights,
    stored,
    zero_terms,
)
from openkpu.layer.argument import LayerArg, LayerError

MOST_OUTPUTS = 1024
WHOLE = 4  # output channels that share a row


@dataclasses.dataclass(frozen=True)
class Piece:
    """Some of the outputs, and the channels of the map that they read."""

    first: int
    count: int
    place: Place
    low: int  # first channel of ``place`` in the whole map


def possible(state: State, node: Conv) -> bool:
    """Is there one output pixel, of a map that has more than one?"""
    x, y = (state.graph.tensors[n] for n in (node.inputs[0], node.outputs[0]))
    return y.size == (1, 1) and x.size != (1, 1)


def lower_whole_node(state: State, node: Conv) -> None:
    """Fully connected layers; Unable where no number of them has room."""
    held, o = state.held(node.inputs[0]), len(node.weights)
    ways = [n for n in range(1, node.groups + 1) if node.groups % n == 0]
    best, least = None, costs.UNABLE
    for number in ways:
        pieces = _pieces(node, held, number)
        if pieces is None:
            continue
        cost = sum(_cost(state, piece) for piece in pieces[:1]) * len(pieces)
        if cost < least:
            best, least = pieces, cost
    if best is None:
        raise Unable("a kernel as large as its map, and no fully connected layer has room for it")
    y = state.graph.tensors[node.outputs[0]]
    dst = state.room(y.name, (o, 1, 1))
    for piece in best:
        _layer(state, node, held, piece, dst.part(piece.first, piece.count))
    zero, clamp = stored(y, node.clamp)
    state.put(y.name, Held(dst, np.arange(o).reshape(1, o, 1, 1), zero, clamp))


def _pieces(node: Conv, held: Held, number: int) -> list[Piece] | None:
    """The outputs in ``number`` parts of whole groups; None where they do not fill rows."""
    o, (c, height, width) = len(node.weights), held.place.shape
    count, inner = o // number, held.where.shape[1] // number
    if count > MOST_OUTPUTS or (number > 1 and count % WHOLE):
        return None
    found = []
    for i in range(number):
        channels = held.where[0, i * inner : (i + 1) * inner] // (height * width)
        low = int(channels.min()) // held.place.groups * held.place.groups
        high = min(round_up(int(channels.max()) + 1, held.place.groups), c)
        found.append(Piece(i * count, count, held.place.part(low, high - low), low))
    return found


def _cost(state: State, piece: Piece) -> int:
    try:
        arg = LayerArg.make(*piece.place.shape, piece.count, fc=True)
    except LayerError:
        return costs.UNABLE
    return costs.list_cycles(state.config, [arg])


def _layer(state: State, node: Conv, held: Held, piece: Piece, dst: Place) -> None:
    """The fully connected layer of a part of the outputs."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    part = slice(piece.first, piece.first + piece.count)
    weights = node.weights[part] - node.w_zero[part, None, None, None]
    each, inner = len(node.weights) // node.groups, weights.shape[1]
    groups = np.arange(part.start, part.stop) // each
    channels = groups[:, None] * inner + np.arange(inner)  # (outputs, C / groups)
    pixels = int(np.prod(held.place.shape[1:]))
    effective = np.zeros((piece.count, int(np.prod(piece.place.shape))), dtype=np.int64)
    for ky in range(node.kernel[0]):
        for kx in range(node.kernel[1]):
            line, column = (
                ky * node.dilation[0] - node.pads[0],
                kx * node.dilation[1] - node.pads[1],
            )
            if 0 <= line < x.size[0] and 0 <= column < x.size[1]:
                at = held.where[0, channels, line, column] - piece.low * pixels
                outputs = np.arange(piece.count)[:, None]
                np.add.at(effective, (outputs, at), weights[:, :, ky, kx])
    data, arg_x = signed_weights(effective, state.bits)
    zero, clamp = stored(y, node.clamp)
    reach = reach_of(effective, held.span, held.zero)
    factors = factors_of(x, node.w_scale[part], y)
    fit = requant.fit(factors, node.bias[part].tolist(), zero, clamp, reach)
    terms = zero_terms(arg_x, held.zero, effective.shape[1])
    state.layer(node, piece.place, dst, weights=data, fit=fit, fc=True, **terms)
