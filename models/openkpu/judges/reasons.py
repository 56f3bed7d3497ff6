# SPDX-License-Identifier: Apache-2.0
"""Why a runtime's integer is not the exact one: other roundings, computed again.

Every explanation is a computation that gives the runtime's integer, or a bound on the distance of
the exact real number to a half. The first that fits counts.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form import reference, rounding
from openkpu.compiler.form.graph import Conv, Dense, Elementwise, Graph, Host, Node, Pool, Table
from openkpu.compiler.form.rarer import Deconv, Prelu, Product

Array = npt.NDArray
Explained = dict[str, npt.NDArray[np.bool_]]
FINE = 1 << 24  # parts of a step in which real numbers are seen
NEAR = 2**-10
SUMS = (Conv, Dense, Deconv)  # with weights, a factor for each channel and a bias
ROUNDED = (*SUMS, Elementwise, Pool, Prelu, Product)


def explain(
    graph: Graph, node: Node, x: list[Array], mine: Array, theirs: Array, reasons: tuple[str, ...]
) -> Explained:
    """Places of the output where one of the reasons explains the difference; "none" are the others.

    ``x``: values of the node's inputs, int64; ``mine`` and ``theirs``: its output.
    """
    left = mine != theirs
    found: Explained = {}
    for reason in reasons:
        if not left.any():
            break
        fits = left & RULES[reason](graph, node, x, theirs)
        found[reason] = fits
        left = left & ~fits
    found["none"] = left
    return found


def _two(graph: Graph, node: Node, x: list[Array], theirs: Array) -> npt.NDArray[np.bool_]:
    """TFLite's reference kernels; of averages, and between pixels, halves away from zero."""
    if not isinstance(node, ROUNDED) and getattr(node, "how", "") != "linear":
        return np.zeros(theirs.shape, bool)
    if isinstance(node, Pool) and node.operator == "MEAN":
        return _mean(graph, node, x) == theirs
    return reference.compute(graph, node, x, reference.TWO) == theirs


def _mean(graph: Graph, node: Pool, x: list[Array]) -> Array:
    """MEAN: the sum times one factor, which has the number of elements in it."""
    (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
    return np.clip(_scaled(graph, node, _sums(node, x[0], source.zero)) + y.zero, *node.clamp)


def _sums(node: Pool, x: Array, zero: int) -> Array:
    """Of the windows of a map, which lie side by side."""
    (kh, kw), (_, c, h, w) = node.kernel, x.shape
    return (x - zero).reshape(1, c, h // kh, kh, w // kw, kw).sum(axis=(3, 5))


def _scaled(graph: Graph, node: Pool, sums: Array) -> Array:
    """Averages by one factor of 31 bits, divided by the count, and two roundings."""
    (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
    count = node.kernel[0] * node.kernel[1]
    assert source.scale is not None and y.scale is not None
    factor, exponent = rounding.mantissa(source.scale / y.scale)
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    return rounding.scaled_twice(sums, (factor << shift) // count, exponent - shift)


def _unlimited(graph: Graph, node: Node, x: list[Array]) -> Array:
    """The exact number in steps of 1 / FINE of the output's, without zero point and clamp."""
    (name,) = node.outputs
    tensor = graph.tensors[name]
    assert tensor.scale is not None
    fine = dataclasses.replace(tensor, scale=tensor.scale / FINE, zero=0)
    other = dataclasses.replace(graph, tensors={**graph.tensors, name: fine})
    wide = dataclasses.replace(node, clamp=(-(1 << 62), 1 << 62))  # pyright: ignore
    return reference.compute(other, wide, x)


def _float32(graph: Graph, node: Node, x: list[Array], theirs: Array) -> npt.NDArray[np.bool_]:
    """The sum as float32, times a factor of float32, rounded to even (XNNPACK, MLAS)."""
    if not isinstance(node, SUMS):
        return np.zeros(theirs.shape, bool)
    (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
    assert source.scale is not None and y.scale is not None
    # sums: the node with factors of 1
    name = y.name
    ones = dataclasses.replace(
        node, w_scale=np.ones(len(node.weights)), clamp=(-(1 << 62), 1 << 62)
    )
    plain = {
        source.name: dataclasses.replace(source, scale=1.0),
        name: dataclasses.replace(y, scale=1.0, zero=0),
    }
    other = dataclasses.replace(graph, tensors={**graph.tensors, **plain})
    sums = reference.compute(other, ones, x).astype(np.float32)
    factors = np.float32(source.scale) * node.w_scale.astype(np.float32) / np.float32(y.scale)
    spread = [1] * sums.ndim
    spread[-1 if isinstance(node, Dense) else 1] = len(factors)
    steps = np.rint(sums * factors.astype(np.float32).reshape(spread)).astype(np.int64)
    return np.clip(steps + y.zero, *node.clamp) == theirs


def _fixed(graph: Graph, node: Node, x: list[Array], theirs: Array) -> npt.NDArray[np.bool_]:
    """The optimised kernels cut the product before they shift and round it (ruy): off by less than
    a unit of what is shifted out, a step's 2^-n for a factor of 2^-n. Their MEAN rounds the
    zero point's share by itself."""
    if isinstance(node, Pool) and node.operator == "MEAN":
        (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
        share = round(source.zero * (source.scale or 0) / (y.scale or 1))
        found = _scaled(graph, node, _sums(node, x[0], 0)) + y.zero - share
        return np.clip(found, *node.clamp) == theirs
    if not isinstance(node, SUMS):
        return np.zeros(theirs.shape, bool)
    (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
    assert source.scale is not None and y.scale is not None
    factors = source.scale * node.w_scale / y.scale
    spread = [1] * theirs.ndim
    spread[-1 if isinstance(node, Dense) else 1] = len(factors)
    unit = np.minimum(np.exp2(np.ceil(np.log2(factors))), 0.25)  # more would explain any step
    return _either(graph, node, x, theirs, unit.reshape(spread))


def _half(graph: Graph, node: Node, x: list[Array], theirs: Array) -> npt.NDArray[np.bool_]:
    """One of the two integers around a number that is nearly between them."""
    if isinstance(node, Table) and node.function == "requantise":
        return _table_half(graph, node, x, theirs)
    if not isinstance(node, ROUNDED):
        return np.zeros(theirs.shape, bool)
    return _either(graph, node, x, theirs, np.float64(NEAR))


def _either(graph: Graph, node: Node, x: list[Array], theirs: Array, near: Array | float) -> Array:
    """Is theirs an integer to which the real number may be rounded: the nearest one, or each of two
    where it is so close to a half?  The bias is the model's own, and so are the ends of a clamp."""
    (y,) = graph.of(node.outputs)
    real = _real(graph, node, x)
    low = np.floor(real)
    part = real - low
    found = np.zeros(theirs.shape, bool)
    for clamp in _clamps(graph, node):
        found |= (part < 0.5 + near) & (np.clip(low + y.zero, *clamp) == theirs)
        found |= (part > 0.5 - near) & (np.clip(low + 1 + y.zero, *clamp) == theirs)
    return found


def _real(graph: Graph, node: Node, x: list[Array]) -> Array:
    """The real number in steps of the output's, without zero point and clamp; float64."""
    if isinstance(node, Prelu):
        (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
        spread = [1] * x[0].ndim
        spread[node.axis] = len(node.slopes)
        values = (x[0] - source.zero) * (source.step / y.step)
        return np.where(values < 0, values * node.slopes.reshape(spread), values)
    real = _unlimited(graph, node, x) / FINE
    rest = graph.rests.get(node.name)
    if rest is not None and isinstance(node, SUMS):
        (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
        spread = [1] * real.ndim
        spread[-1 if isinstance(node, Dense) else 1] = len(rest)
        real = real + (rest * node.w_scale * source.step / y.step).reshape(spread)
    return real


def _clamps(graph: Graph, node: Node) -> list[tuple[int, int]]:
    """The clamp of a node, and the ones that it has where the real ends of an activation are nearly
    between two integers."""
    (y,) = graph.of(node.outputs)
    clamp = getattr(node, "clamp", y.limits)
    ends: list[list[int]] = []
    for mine, real in zip(clamp, graph.ends.get(y.name, (-np.inf, np.inf)), strict=True):
        ends.append([mine])
        if np.isfinite(real) and abs((real / y.step) % 1 - 0.5) < NEAR:
            low = int(np.floor(real / y.step)) + y.zero
            both = [n for n in (low, low + 1) if y.limits[0] <= n <= y.limits[1]]
            ends[-1] = [mine, *(n for n in both if n != mine)] if mine in both else [mine]
    return [(low, high) for low in ends[0] for high in ends[1] if low <= high]


def _table_half(graph: Graph, node: Table, x: list[Array], theirs: Array) -> Array:
    (source,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
    assert source.scale is not None and y.scale is not None
    real = (x[0] - source.zero) * (source.scale / y.scale)
    low = np.floor(real)
    near = np.abs(real - low - 0.5) < NEAR
    either = [np.clip(low + n + y.zero, *y.limits) == theirs for n in (0, 1)]
    return near & (either[0] | either[1])


def _function(graph: Graph, node: Node, x: list[Array], theirs: Array) -> npt.NDArray[np.bool_]:
    """A step of a table or of what the processor computes in float."""
    if not isinstance(node, (Table, Host)) or getattr(node, "how", "") in ("argmax", "argmin"):
        return np.zeros(theirs.shape, bool)
    return np.abs(reference.compute(graph, node, x) - theirs) <= 1


RULES = {"two": _two, "float32": _float32, "half": _half, "fixed": _fixed, "function": _function}
