# SPDX-License-Identifier: Apache-2.0
"""Fully connected nodes: the rule is one layer, a vector or a 1x1 convolution.

A tensor (..., K) whose last axis lies along the channels of a map, and whose other axes lie along
its pixels in any order, is a 1x1 convolution.  A tensor (1, K) that lies anyhow in one map is a
vector in the map's order: the weights change their places instead of the elements, and what lies
between them has the weight 0.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Dense
from openkpu.compiler.lowering import copies, requant
from openkpu.compiler.lowering.device import Held
from openkpu.compiler.lowering.lower import (
    Disordered,
    State,
    factors_of,
    is_wide,
    reach_of,
    shares,
    signed_weights,
    stored,
    zero_terms,
)

MOST_1X1, MOST_VECTOR, MOST_OUTPUTS = 9216, 1024, 1024  # channels


def lower_dense_node(state: State, node: Dense) -> None:
    """A layer of a fully connected node."""
    name = node.inputs[0]
    held, y = state.held(name), state.graph.tensors[node.outputs[0]]
    at = held.where.reshape(-1, held.where.shape[-1])  # (pixels, K)
    c, height, width = held.place.shape
    if len(np.unique(at[0])) < at.shape[1]:
        raise Disordered(name, "some of its input's elements are there twice")
    pixels, channels = at[:, 0] % (height * width), at[0] // (height * width)
    rows = (channels * height * width) + pixels[:, None]
    weights = node.weights - node.w_zero[:, None]
    o = len(weights)
    few = height * width <= 2 * len(at) or c > MOST_VECTOR
    if np.array_equal(rows, at) and few and c <= MOST_1X1:
        effective = np.zeros((o, c), dtype=np.int64)
        effective[:, channels] = weights
        shape, index = (o, height, width), np.arange(o) * height * width + pixels[:, None]
        fields = {}
    elif len(at) == 1:
        effective = np.zeros((o, c * height * width), dtype=np.int64)
        effective[:, at[0]] = weights
        shape, index = (o, 1, 1), np.arange(o)[None]
        fields = {"fc": True}
    else:
        raise Disordered(name, "its last axis does not lie along the channels of a map")
    fit = _fit(state, node, held, effective)
    src = held.place
    if is_wide(effective, state.bits):
        parts = shares(effective.reshape(o, c, -1), state.bits)
        src, copied = copies.stacked(state, node, src, held.zero, [(0, 0)] * len(parts))
        effective = np.zeros((o, src.shape[0], parts[0].shape[2]), np.int64)
        for at, part in zip(copied, parts, strict=True):
            effective[:, at] = part
        effective = effective.reshape(o, -1)
    data, arg_x = signed_weights(effective, state.bits)
    terms: dict[str, Any] = zero_terms(arg_x, held.zero, effective.shape[1] if fields else 1)
    dst = state.room(y.name, shape)
    for first in range(0, o, MOST_OUTPUTS):
        part = slice(first, first + MOST_OUTPUTS)
        some = dataclasses.replace(fit, bn=fit.bn[part])
        if first:  # counted once
            some = dataclasses.replace(some, missed=0, edges=0)
        into = dst.part(first, len(some.bn))
        state.layer(node, src, into, weights=data[part], fit=some, **fields, **terms)
    zero, clamp = stored(y, node.clamp)
    state.put(y.name, Held(dst, index.reshape(y.shape), zero, clamp))


def _fit(state: State, node: Dense, held: Held, effective: npt.NDArray[np.int64]) -> requant.Fit:
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    zero, clamp = stored(y, node.clamp)
    reach = reach_of(effective, held.span, held.zero)
    return requant.fit(factors_of(x, node.w_scale, y), node.bias.tolist(), zero, clamp, reach)
