# SPDX-License-Identifier: Apache-2.0
"""Two maps element by element: the rule is one element-wise layer (docs/kpu.md 1.9).

*Sums.*  alu = (a - za) * p + (b - zb) * q with p = w[4] + arg_x and q = w[8] + arg_x: both weights
have 8 bits, but arg_x has 24, so p / q meets the ratio of the scales far better than 2^-14.  All
65,536 pairs of bytes are compared with exact arithmetic; the ones that round otherwise are counted.
A difference first turns b around, 255 - b, which is exact.  *Products* are exact integers, *maxima
and minima* are of bytes that have been brought to the output's scale.

*Constants.*  One number is a table.  One number for each channel is a depthwise layer.  A constant
map lies in storage, and the layer brings it into the AI RAM.
"""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import BatchNorm
from openkpu.compiler.form import functions, reference
from openkpu.compiler.form.graph import Elementwise, Tensor
from openkpu.compiler.lowering import copies, requant, spread
from openkpu.compiler.lowering.device import Held
from openkpu.compiler.lowering.lower import (
    Disordered,
    State,
    Unable,
    copy_fit,
    offset,
    stored,
    zero_terms,
)
from openkpu.compiler.lowering.nodes import lower_table
from openkpu.layer.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY

MOST_MUL = (1 << 23) - 1
CANDIDATES = 8  # pairs of weights that are tried, nearest ratios first
NEAR = (0, -1, 1)  # factors that are tried around the exact one
ONE_SIDED = 255  # the most that two weights of 8 bits differ


def lower_elementwise_node(state: State, node: Elementwise) -> None:
    """Layers of a sum, difference, product, maximum or minimum."""
    names = list(node.inputs)
    constants = [state.graph.tensors[n].data is not None for n in names]
    if any(constants):
        _constant(state, node, constants.index(True))
        return
    a, b = (state.held(n) for n in names)
    y = state.graph.tensors[node.outputs[0]]
    if a.where.shape != b.where.shape:
        if a.where.shape == y.shape:
            a, b = spread.over(state, node, (names[0], names[1]), a, b)
        elif b.where.shape == y.shape:
            b, a = spread.over(state, node, (names[1], names[0]), b, a)
        else:
            raise Unable(f"operands {a.where.shape} and {b.where.shape}: both are spread")
    if not _alike(a, b):
        a, b = (copies.plain_map(state, node, n, m) for n, m in zip(names, (a, b), strict=True))
    if not _alike(a, b):
        # the one that lies otherwise than a map of its own does
        plain = np.array_equal(a.where.reshape(-1), np.arange(a.where.size))
        raise Disordered(names[1 if plain else 0], "its two operands lie in different orders")
    if b.place.buffer in state.fresh and names[0] != names[1]:  # a layer brings its first map only
        if a.place.buffer in state.fresh:
            state.bring(node, a.place)
        names.reverse()
        a, b = b, a
    _two(state, node, names, a, b)


def _alike(a: Held, b: Held) -> bool:
    """Do the elements of both lie at the same places of maps of the same size?"""
    return a.place.shape == b.place.shape and np.array_equal(a.where, b.where)


def _two(state: State, node: Elementwise, names: list[str], a: Held, b: Held) -> None:
    ta, tb = (state.graph.tensors[n] for n in names)
    y = state.graph.tensors[node.outputs[0]]
    if node.how in ("add", "sub"):
        signs = [1, 1]
        if node.how == "sub":
            signs[names.index(node.inputs[1]) if names[0] != names[1] else 1] = -1
        _sum(state, node, (ta, tb), (a, b), signs, y)
    elif node.how == "mul":
        _product(state, node, (ta, tb), (a, b), y)
    else:
        _extreme(state, node, (ta, tb), (a, b), y)


def _fields(kind: int) -> dict[str, Any]:
    return {"kernel": 3, "depthwise": True, "elementwise": 1, "ew_op": kind}


def _end(
    state: State,
    node: Elementwise,
    maps: tuple[Held, Held],
    y: Tensor,
    weights: tuple[int, int],
    fit: requant.Fit,
    fields: dict[str, Any],
    constant: npt.NDArray[np.uint8] | None = None,
) -> None:
    """The layer and where its output lies."""
    a, b = maps
    c = a.place.shape[0]
    nine = np.zeros((c, 9), dtype=np.int64)
    nine[:, 4], nine[:, 8] = weights
    bn = np.repeat(fit.bn[:1], c)
    fit = requant.Fit(bn, fit.act, fit.missed, fit.edges)
    dst = state.room(y.name, a.place.shape)
    more: dict[str, Any] = {"src2": b.place, "constant": constant}
    state.layer(node, a.place, dst, weights=nine, fit=fit, **more, **fields)
    zero, clamp = stored(y, node.clamp)
    state.put(y.name, Held(dst, b.where, zero, clamp))


# ---------------------------------------------------------------------------- sums
def _sum(
    state: State,
    node: Elementwise,
    tensors: tuple[Tensor, Tensor],
    maps: tuple[Held, Held],
    signs: list[int],
    y: Tensor,
    constant: npt.NDArray[np.uint8] | None = None,
) -> None:
    turned = list(maps)
    for i, sign in enumerate(signs):
        if sign < 0:
            turned[i] = _negative(state, node, maps[i])
    factors = [t.exact / y.exact for t in tensors]
    zero, clamp = stored(y, node.clamp)
    zeros, spans = (turned[0].zero, turned[1].zero), (turned[0].span, turned[1].span)
    found = best_sum((factors[0], factors[1]), zeros, spans, zero, clamp)
    (weights, arg_x), fit = found
    p, q = (w + arg_x for w in weights)
    add = -(turned[0].zero * p + turned[1].zero * q)
    fields = {**_fields(ADD), "arg_x": arg_x, "arg_add": add}
    _end(state, node, (turned[0], turned[1]), y, weights, fit, fields, constant)


def _negative(state: State, node: Elementwise, held: Held) -> Held:
    """255 - byte, whose zero point is 255 - zero."""
    name = state.graph.fresh(node.outputs[0] + "~negative")
    lower_table.bytes_of(state, node, held, 255 - np.arange(256), name)
    turned = _opposite(held)
    turned.place = state.tensors.pop(name).place
    return turned


@functools.lru_cache(maxsize=4096)  # of every sum of a network: lists that are cut try them anew
def best_sum(
    factors: tuple[Fraction, Fraction],
    zeros: tuple[int, int],
    spans: tuple[tuple[int, int], tuple[int, int]],
    zero: int,
    clamp: tuple[int, int],
) -> tuple[tuple[tuple[int, int], int], requant.Fit]:
    """((weights, arg_x), tables) of byte = round((a - za) * A + (b - zb) * B) + zero, and how many
    pairs of bytes come out otherwise."""
    a, b = (np.arange(s[0], s[1] + 1) - z for s, z in zip(spans, zeros, strict=True))
    exact = _exact_sums(a, b, factors, zero, clamp)
    best = None
    for weights, arg_x in _ratios(factors):
        fit = _sum_fit(a, b, factors, (weights, arg_x), zero, clamp, exact)
        if best is None or fit.missed < best[1].missed:
            best = (weights, arg_x), fit
        if not fit.missed:
            break
    assert best is not None
    if best[1].missed and best[1].steps > 1:
        high, low = max(factors), min(factors)
        raise Unable(
            f"one operand's scale is {float(high / low):.4g} times the other's, and no pair of"
            f" weights comes nearer than {best[1].steps} steps; expected scales that are nearer"
        )
    return best


def _exact_sums(
    a: npt.NDArray,
    b: npt.NDArray,
    factors: tuple[Fraction, Fraction],
    zero: int,
    clamp: tuple[int, int],
) -> npt.NDArray[np.int64]:
    common = factors[0].denominator * factors[1].denominator
    one, two = (int(f * common) for f in factors)
    sums = a.astype(object)[:, None] * one + b.astype(object)[None] * two
    return np.clip(reference.nearest_even(sums, common) + zero, *clamp)


def _ratios(factors: tuple[Fraction, Fraction]) -> list[tuple[tuple[int, int], int]]:
    """Weights and arg_x whose p / q is nearest to the ratio of the factors, best first."""
    swap = factors[0] < factors[1]
    high, low = (factors[1], factors[0]) if swap else (factors[0], factors[1])
    found = []
    over = high / low - 1
    for apart in range(ONE_SIDED + 1):
        if not over or not apart:
            if not apart:
                found.append((float(over), apart, 1 << 12))
            continue
        q = round(apart / over)
        if 0 < q < 1 << 22:
            found.append((abs(float(Fraction(apart, q) - over) / float(1 + over)), apart, q))
    found.append((float(low / high), 1, 0))  # the smaller one counts for nothing
    # of exact ratios the smallest numbers, whose factor is the likeliest to be exact as well
    found.sort(key=lambda f: (f[0], -f[1] if f[0] else f[1]))
    chosen = []
    for _, apart, q in found[:CANDIDATES]:
        weights = (0, apart) if swap else (apart, 0)
        chosen.append((weights, q))
    return chosen


def _sum_fit(
    a: npt.NDArray,
    b: npt.NDArray,
    factors: tuple[Fraction, Fraction],
    how: tuple[tuple[int, int], int],
    zero: int,
    clamp: tuple[int, int],
    exact: npt.NDArray[np.int64],
) -> requant.Fit:
    """Tables, with the pairs that they miss."""
    (wa, wb), arg_x = how
    p, q = wa + arg_x, wb + arg_x
    low, high = clamp
    # the factor that suits both, by how much each moves the result
    share = Fraction(int(max(abs(a))) + 1) * factors[0], Fraction(int(max(abs(b))) + 1) * factors[1]
    ratios = [f / w if w else Fraction(0) for f, w in zip(factors, (p, q), strict=True)]
    share = tuple(s if w else Fraction(0) for s, w in zip(share, (p, q), strict=True))
    factor = (ratios[0] * share[0] + ratios[1] * share[1]) / (share[0] + share[1])
    most = int(max(abs(a))) * p + int(max(abs(b))) * q
    bits = requant.MOST_F
    if factor > MOST_MUL or factor * most + 600 > requant.ADD_ROOM:
        raise requant.Apart(factor * most)
    while factor * (1 << bits) > MOST_MUL or (factor * most + 600) * (1 << bits) > requant.ADD_ROOM:
        bits -= 1
    shift = 0
    while shift < 15 and factor * (1 << bits) * (2 << shift) <= MOST_MUL:
        shift += 1
    alu = a.astype(np.int64)[:, None] * p + b.astype(np.int64)[None] * q
    act = requant.requant_line(bits, low, high, zero)
    # v below which the result is less, and from which on it is more, than the exact one
    byte = np.arange(256, dtype=np.int64)
    half, odd = (1 << bits) >> 1, (byte - zero) % 2
    edges = (byte - low) * (1 << bits) - half + odd
    edges[: low + 1] = -requant.V_ROOM
    least = edges[exact]
    most = np.where(exact >= high, requant.V_ROOM, edges[np.minimum(exact + 1, 255)] - 1)
    best = None
    for near in NEAR:
        mul = round(factor * (1 << (bits + shift))) + near
        found = ((alu * mul) >> shift).reshape(-1)
        ideal = (zero - low) << bits
        add, missed = _meet(least.reshape(-1) - found, most.reshape(-1) - found, ideal)
        if best is None or missed < best[0]:
            best = missed, mul, add
        if not missed:
            break
    assert best is not None
    missed, mul, add = best
    if abs(add) >= requant.ADD_ROOM:
        raise requant.Apart(factor * int(np.abs(alu).max()))
    norm = BatchNorm.make([mul], [shift], [add]).pack()
    given = low + np.searchsorted(edges[low + 1 : high + 1], ((alu * mul) >> shift) + add, "right")
    return requant.Fit(norm, act.pack(), missed, exact.size, int(np.abs(given - exact).max()))


def _meet(least: npt.NDArray[np.int64], most: npt.NDArray[np.int64], ideal: int) -> tuple[int, int]:
    """(a number inside as many of the ranges as possible, as near to ``ideal`` as it may be; in how
    many it is not)."""
    begins, ends = np.sort(least), np.sort(most)
    inside = np.arange(1, begins.size + 1) - np.searchsorted(ends, begins, side="left")
    at = int(np.argmax(inside))
    # where so many meet
    behind = int(ends[np.searchsorted(ends, begins[at], side="left")])
    following = int(begins[at + 1]) - 1 if at + 1 < begins.size else behind
    add = min(max(ideal, int(begins[at])), min(behind, max(following, int(begins[at]))))
    return add, begins.size - int(inside[at])


# ------------------------------------------------------------------------ products
def _product(
    state: State,
    node: Elementwise,
    tensors: tuple[Tensor, Tensor],
    maps: tuple[Held, Held],
    y: Tensor,
    constant: npt.NDArray[np.uint8] | None = None,
) -> None:
    za, zb = maps[0].zero, maps[1].zero
    zero, clamp = stored(y, node.clamp)
    factor = tensors[0].exact * tensors[1].exact / y.exact
    ends = [
        (m.span[i] - m.zero) * (n.span[j] - n.zero)
        for m, n in [maps]
        for i in (0, 1)
        for j in (0, 1)
    ]
    reach = np.array([min(ends)]), np.array([max(ends)])
    fit = requant.fit([factor], [0], zero, clamp, reach)
    # (a - za) * (b - zb) with zb <= za; else a is the one that is there twice, which src2 is
    if zb > za:
        for held in maps:  # a layer brings its first map only
            if held.place.buffer in state.fresh:
                state.bring(node, held.place)
        if constant is not None:
            constant = _brought(state, node, maps[0], constant)
        maps, (za, zb) = (maps[1], maps[0]), (zb, za)
    n = max(zb, (za + 1) // 2)
    weights = n - zb, 2 * n - za
    fields = {**_fields(MULTIPLY), "arg_x": -n, "arg_add": za * zb}
    _end(state, node, maps, y, weights, fit, fields, constant)


def _brought(state: State, node: Elementwise, held: Held, constant: npt.NDArray[np.uint8]) -> None:
    """A constant map in the AI RAM, by a layer of its own."""
    c, place = held.place.shape[0], held.place
    terms: dict[str, Any] = {"depthwise": True, **zero_terms(0, held.zero, 1)}
    fit = copy_fit(held.zero, c)
    state.layer(node, place, place, weights=np.ones(c), fit=fit, constant=constant, **terms)


def _opposite(held: Held) -> Held:
    """A map as it is when its bytes become 255 - byte."""
    span = 255 - held.span[1], 255 - held.span[0]
    return Held(held.place, held.where, 255 - held.zero, span)


# ----------------------------------------------------------------- maxima and minima
def _extreme(
    state: State,
    node: Elementwise,
    tensors: tuple[Tensor, Tensor],
    maps: tuple[Held, Held],
    y: Tensor,
    constant: npt.NDArray[np.uint8] | None = None,
) -> None:
    """Both in the numbers of the output; ``constant`` is the first one's map."""
    ready = []
    for tensor, held in zip(tensors, maps, strict=True):
        if tensor.same_numbers(y):
            ready.append(held)
            continue
        table = functions.requantise(tensor, y) + offset(y)
        name = state.graph.fresh(node.outputs[0] + "~scaled")
        lower_table.bytes_of(state, node, held, table, name)
        found = state.tensors.pop(name)
        ready.append(Held(found.place, held.where, y.zero + offset(y)))
    zero, clamp = stored(y, node.clamp)
    reach = np.array([-zero]), np.array([255 - zero])
    fit = requant.fit([Fraction(1)], [0], zero, clamp, reach)
    kind = MAXIMUM if node.how == "max" else MINIMUM
    fields = {**_fields(kind), "arg_add": -zero}
    _end(state, node, (ready[0], ready[1]), y, (1, 1), fit, fields, constant)


# ----------------------------------------------------------------------- constants
def _constant(state: State, node: Elementwise, which: int) -> None:
    """One operand is a constant."""
    constant, x = (state.graph.tensors[node.inputs[i]] for i in (which, 1 - which))
    y = state.graph.tensors[node.outputs[0]]
    assert constant.data is not None
    real = constant.data.astype(np.int64) - constant.zero
    if x.shape != y.shape:
        raise Unable("the constant is larger than the computed operand")
    if len(np.unique(real)) == 1:
        _table(state, node, x, y, which, int(real.flat[0]) * constant.exact)
        return
    held = state.held(x.name)
    full = np.broadcast_to(real, y.shape)
    if node.how in ("add", "sub", "mul") and len(y.shape) == 4:
        each = full[0].reshape(y.shape[1], -1)
        if (each == each[:, :1]).all() and held.geometry() is not None:
            _channels(state, node, which, held, each[:, 0], (x, constant, y))
            return
    if np.unique(held.where).size < held.where.size:
        raise Disordered(x.name, "elements with a constant each lie at the same place")
    numbers = constant.data.astype(np.int64)
    if node.how == "mul":
        constant = _raised(constant, held)
        numbers = real + constant.zero
    elif node.how in ("max", "min"):  # rounding keeps an order, so it may come first
        table = functions.requantise(constant, y)
        numbers = table[numbers - constant.limits[0]]
        constant = dataclasses.replace(y, name=constant.name)
    stored_map = np.full(int(np.prod(held.place.shape)), 0, dtype=np.uint8)
    bytes_ = np.broadcast_to(numbers, y.shape) + offset(constant)
    stored_map[held.where.reshape(-1)] = bytes_.reshape(-1)
    stored_map = stored_map.reshape(held.place.shape)
    place = state.new(held.place.shape)
    if held.place.buffer in state.fresh:
        state.bring(node, held.place)
    span = int(bytes_.min()), int(bytes_.max())
    other = Held(place, held.where, constant.zero + offset(constant), span)
    if node.how == "mul":
        _product(state, node, (constant, x), (other, held), y, stored_map)
        return
    if node.how in ("max", "min"):
        _extreme(state, node, (constant, x), (other, held), y, stored_map)
        return
    if node.how == "sub" and which == 1:  # the constant itself turns around
        stored_map = 255 - stored_map
        other = _opposite(other)
        _sum(state, node, (constant, x), (other, held), [1, 1], y, stored_map)
        return
    signs = [1, -1 if node.how == "sub" else 1]
    _sum(state, node, (constant, x), (other, held), signs, y, stored_map)


def _raised(constant: Tensor, held: Held) -> Tensor:
    """A constant factor whose bytes lie as high as they may: its zero point is then not below that
    of the map, which a product asks for; as low as they may where it would be below even so."""
    assert constant.data is not None
    real = constant.data.astype(np.int64) - constant.zero
    highest, lowest = 255 - max(int(real.max()), 0), max(-int(real.min()), 0)
    zero = highest if highest >= held.zero else lowest
    return dataclasses.replace(constant, zero=zero - offset(constant))


def _table(
    state: State, node: Elementwise, x: Tensor, y: Tensor, which: int, number: Fraction
) -> None:
    rule = {
        "add": lambda r: r + number,
        "sub": lambda r: (r - number) if which else (number - r),
        "mul": lambda r: r * number,
        "max": lambda r: max(r, number),
        "min": lambda r: min(r, number),
    }
    table = np.clip(functions.table_of(rule[node.how], x, y), *node.clamp) + offset(y)
    held = state.held(x.name)
    lower_table.bytes_of(state, node, held, table, y.name)
    zero, span = stored(y, node.clamp)
    state.put(y.name, Held(state.tensors[y.name].place, held.where, zero, span))


def _channels(
    state: State,
    node: Elementwise,
    which: int,
    held: Held,
    numbers: npt.NDArray[np.int64],
    tensors: tuple[Tensor, Tensor, Tensor],
) -> None:
    """A number for each channel: a depthwise 1x1 layer."""
    x, constant, y = tensors
    geometry = held.geometry()
    assert geometry is not None
    zero, clamp = stored(y, node.clamp)
    c = held.place.shape[0]
    sign = np.ones(len(numbers), dtype=np.int64)
    if node.how == "mul":
        sign = np.sign(numbers)
        each = [abs(int(n)) or 1 for n in numbers]
        factors = [n * constant.exact * x.exact / y.exact for n in each]
        bias = [Fraction(0)] * len(numbers)
    else:
        factors = [x.exact / y.exact] * len(numbers)
        ratio = constant.exact / x.exact
        signs = (1, 1) if node.how == "add" else (1, -1) if which else (-1, 1)
        sign = sign * signs[0]
        bias = [int(n) * ratio * signs[1] for n in numbers]
    low, high = held.span[0] - held.zero, held.span[1] - held.zero
    ends = np.stack([sign * low, sign * high])
    fit = requant.fit(factors, bias, zero, clamp, (ends.min(axis=0), ends.max(axis=0)))
    weights = np.ones(c, dtype=np.int64)
    weights[geometry.channels] = sign + 1
    bn = np.repeat(fit.bn[:1], c)
    bn[geometry.channels] = fit.bn
    fit = requant.Fit(bn, fit.act, fit.missed, fit.edges)
    # alu = (x - zero) * (w - 1)
    terms: dict[str, Any] = {"arg_x": -1, "arg_w": -held.zero, "arg_add": held.zero}
    dst = state.room(y.name, held.place.shape)
    state.layer(node, held.place, dst, weights=weights, fit=fit, depthwise=True, **terms)
    state.put(y.name, Held(dst, held.where, zero, clamp))
