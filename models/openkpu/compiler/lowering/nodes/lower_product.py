# SPDX-License-Identifier: Apache-2.0
"""Products of two computed tensors: the rule is a 1x1 convolution whose weights come with the data.

The device reads one operand of a product as a map, its last axis along the channels, and the other
one as weights out of storage.  So the second operand must be on the host before the task list
begins: what a list computes leaves it, and the host writes its bytes where the weights of the
layer lie (``DevicePart.weights``).  Attention has the softmax between its two products anyway.

A product of several matrices (heads) is one layer for each of them where its channels fill rows of
their own, or one layer for all with weights of 0 between; the fewer cycles count.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.compiler.form.graph import Graph, Node
from openkpu.compiler.form.rarer import Product
from openkpu.compiler.lowering import costs, requant
from openkpu.compiler.lowering.device import Given, Held, Place
from openkpu.compiler.lowering.lower import Disordered, State, Unable, offset, stored, zero_terms
from openkpu.layer.layout import Layout

MOST_OUTPUTS, MOST_1X1 = 1024, 9216
Ints = npt.NDArray[np.int64]


def maps(node: Node) -> tuple[str, ...]:
    """The inputs of a node that lie in the AI RAM."""
    return node.inputs[:1] if isinstance(node, Product) else node.inputs


def waits(node: Node, there: set[str]) -> bool:
    """Must the node wait until the host has what it reads as weights?"""
    return isinstance(node, Product) and node.inputs[1] not in there


def staged(state: State, graph: Graph, name: str) -> Held:
    """Where the host writes a first operand: channels (matrix, last axis), pixels the rows."""
    tensor = graph.tensors[name]
    *lead, m, k = tensor.shape
    count = math.prod(lead)
    made = state.new((count * k, *_pixels(m)))
    where = (np.arange(count)[:, None, None] * k + np.arange(k)) * m + np.arange(m)[:, None]
    return Held(made, where.reshape(tensor.shape), tensor.zero + offset(tensor))


def _pixels(m: int) -> tuple[int, int]:
    """Lines and columns of ``m`` rows of a matrix, the fewest rows of the AI RAM."""
    found = [(Layout(1, m // w, w).rows * (64 // Layout(1, 1, w).groups), w)
             for w in range(1, min(m, 960) + 1) if m % w == 0 and m // w <= 512]  # fmt: skip
    if not found:
        raise Unable(f"{m} rows of a matrix, expected a number of lines and columns")
    wide = min(found)[1]
    return m // wide, wide


def lower_product_node(state: State, node: Product) -> None:
    """Layers of a product; its second operand is written as weights."""
    costs.fewest(state, node, (functools.partial(_layers, together=False), _layers))


def _layers(state: State, node: Product, together: bool = True) -> None:
    a, b, y = (state.graph.tensors[n] for n in (*node.inputs, *node.outputs))
    held = state.held(a.name)
    c, height, width = held.place.shape
    pixels = height * width
    m, k = a.shape[-2:]
    n, count = y.shape[-1], math.prod(y.shape[:-2])
    at = np.broadcast_to(held.where, (*y.shape[:-2], m, k)).reshape(count, m, k)
    rows, channels = at[:, :, 0] % pixels, at[:, 0, :] // pixels
    same = (rows == rows[0]).all() and len(np.unique(rows[0])) == m
    if not same or not np.array_equal(channels[:, None] * pixels + rows[:, :, None], at):
        raise Disordered(a.name, "its last axis does not lie along the channels of a map")
    each = round_up(n, held.place.groups)
    number = np.arange(math.prod(b.shape)).reshape(b.shape)
    number = np.swapaxes(number, -1, -2) if node.turned else number
    number = np.broadcast_to(number, (*y.shape[:-2], k, n)).reshape(count, k, n)
    dst = state.room(y.name, (count * each, height, width))
    pieces = [np.arange(count)] if together else [np.array([i]) for i in range(count)]
    for piece in pieces:
        used = channels[piece]
        low = int(used.min()) // held.place.groups * held.place.groups
        high = min(round_up(int(used.max()) + 1, held.place.groups), c)
        src = held.place.part(low, high - low)
        out = dst.part(int(piece[0]) * each, each * len(piece))
        if out.shape[0] > MOST_OUTPUTS or src.shape[0] > MOST_1X1:
            raise Unable(f"a product of {src.shape[0]} by {out.shape[0]}: too large for a layer")
        places = np.full(b.shape, -1).reshape(-1)
        for i, matrix in enumerate(piece):
            outputs = (i * each + np.arange(n)) * src.shape[0]
            found = outputs + (used[i] - low)[:, None]  # (K, N)
            own = number[matrix].reshape(-1)
            if (places[own] >= 0).any():
                raise Unable("one matrix is the weights of several places, expected one each")
            places[own] = found.reshape(-1)
        _layer(state, node, held, src, out, places, int(k))
    channel = (np.arange(count) * each)[:, None, None] + np.arange(n)
    zero, clamp = stored(y, node.clamp)
    where = (channel * pixels + rows[:, :, None]).reshape(y.shape)
    state.put(y.name, Held(dst, where, zero, clamp))


def _layer(
    state: State, node: Product, held: Held, src: Place, out: Place, places: Ints, k: int
) -> None:
    """A layer; ``places``: of each element of the second operand the weight that it is, or -1."""
    a, b, y = (state.graph.tensors[n] for n in (*node.inputs, *node.outputs))
    zero_b, (zero, clamp) = b.zero + offset(b), stored(y, node.clamp)
    ends = [
        (x - held.zero) * (w - zero_b) for x in (*held.span, held.zero) for w in (0, 255, zero_b)
    ]
    reach = np.array([k * min(ends)]), np.array([k * max(ends)])
    one = requant.fit([a.exact * b.exact / y.exact], [0], zero, clamp, reach)
    fit = requant.Fit(np.repeat(one.bn, out.shape[0]), one.act, one.missed, one.edges)
    size = out.shape[0] * src.shape[0]
    blank = np.full(size, zero_b)
    terms = zero_terms(-zero_b, held.zero, 1)
    spec = state.layer(node, src, out, weights=blank, fit=fit, **terms)
    spec.given = Given(b.name, places.reshape(b.shape), offset(b), zero_b, size)
