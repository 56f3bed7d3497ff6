# SPDX-License-Identifier: Apache-2.0
"""The rarer nodes computed exactly, and what they must be; ``reference`` and ``check`` use it.

Like all of the reference, this module is independent of the device and of the passes' rewrites.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form import between
from openkpu.compiler.form import rounding as two
from openkpu.compiler.form.exact import scaled_once
from openkpu.compiler.form.graph import OF_FLOATS, Host, Move, Node, Tensor
from openkpu.compiler.form.rarer import Deconv, Prelu, Product

Array = npt.NDArray


# ------------------------------------------------------------------------- the reference
def _deconv(node: Deconv, inputs: list[Tensor], y: Tensor, x: list[Array], twice: bool) -> Array:
    """Every input pixel adds its kernel where it lies in the result."""
    values = x[0][0] - inputs[0].zero
    weights = node.weights - node.w_zero[:, None, None, None]
    (_, height, width), (o, inner, kh, kw) = values.shape, weights.shape
    (sy, sx), (dy, dx), each = node.strides, node.dilation, o // node.groups
    full = node.full_size(height, width)
    _, _, oh, ow = y.shape
    sums = np.zeros((o, max(full[0], node.pads[0] + oh), max(full[1], node.pads[1] + ow)), np.int64)
    groups = values.reshape(node.groups, inner, height * width)
    for ky in range(kh):
        for kx in range(kw):
            taps = weights[:, :, ky, kx].reshape(node.groups, each, inner)
            part = np.matmul(taps, groups).reshape(o, height, width)
            lines = slice(ky * dy, ky * dy + (height - 1) * sy + 1, sy)
            columns = slice(kx * dx, kx * dx + (width - 1) * sx + 1, sx)
            sums[:, lines, columns] += part
    top, left = node.pads
    sums = sums[:, top : top + oh, left : left + ow] + node.bias[:, None, None]
    found = np.empty(sums.shape, dtype=np.int64)
    for i, line in enumerate(sums):
        factor = inputs[0].exact * Fraction(float(node.w_scale[i])) / y.exact
        double = two.double_of(inputs[0].step, node.w_scale[i], y.step)
        found[i] = two.multiply(line, double) if twice else scaled_once(line, factor)
    return np.clip(found[None] + y.zero, *node.clamp)


def _prelu(node: Prelu, inputs: list[Tensor], y: Tensor, x: list[Array], twice: bool) -> Array:
    values = np.moveaxis(x[0] - inputs[0].zero, node.axis, 0)
    found = np.empty(values.shape, dtype=np.int64)
    factor = inputs[0].exact / y.exact
    for i, (line, slope) in enumerate(zip(values, node.slopes, strict=True)):
        if twice and node.step:  # slopes are integers as well
            share = two.double_of(inputs[0].step, node.step, y.step)
            below = two.multiply(line * round(slope / node.step), share)
            above = two.multiply(line, inputs[0].step / y.step)
            found[i] = np.where(line < 0, below, above)
            continue
        below = scaled_once(line, factor * Fraction(float(slope)))
        found[i] = np.where(line < 0, below, scaled_once(line, factor))
    return np.clip(np.moveaxis(found, 0, node.axis) + y.zero, *y.limits)


def _product(node: Product, inputs: list[Tensor], y: Tensor, x: list[Array], twice: bool) -> Array:
    a, b = (v - t.zero for v, t in zip(x, inputs, strict=True))
    b = np.swapaxes(b, -1, -2) if node.turned else b
    factor = inputs[0].exact * inputs[1].exact / y.exact
    sums = np.matmul(a, b)
    double = two.double_of(inputs[0].step, inputs[1].step, y.step)
    found = two.multiply(sums, double) if twice else scaled_once(sums, factor)
    return np.clip(found + y.zero, *node.clamp)


RULES: dict[type[Node], Callable[..., Array]] = {
    Deconv: _deconv,
    Prelu: _prelu,
    Product: _product,
}


def take(node: Move, values: Array) -> Array:
    """Move "take": the elements at these places of each axis."""
    return values[np.ix_(*node.places)]


def softmax(node: Host, real: Array) -> Array:
    """Powers of e as shares of their sum along ``axis``; float64, as the next ones."""
    powers = np.exp(real * node.beta - (real * node.beta).max(axis=node.axis, keepdims=True))
    return powers / powers.sum(axis=node.axis, keepdims=True)


def logsoftmax(node: Host, real: Array) -> Array:
    """The logarithm of it."""
    apart = real * node.beta - (real * node.beta).max(axis=node.axis, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis=node.axis, keepdims=True))


def l2norm(node: Host, real: Array) -> Array:
    """Vectors along ``axis`` by their lengths, which count as ``epsilon`` at least."""
    power = np.sqrt((real * real).sum(axis=node.axis, keepdims=True))
    return real / np.maximum(power, node.epsilon)


def linear(node: Host, real: Array) -> Array:
    """Sums of shares of lines and columns."""
    assert node.lines is not None and node.columns is not None
    return node.lines @ real @ node.columns.T


def linear_bytes(node: Host, x: Tensor, y: Tensor, values: Array, twice: bool) -> Array:
    """The same of bytes, rounded once; TFLite's kernels have shares of their own, and a tie goes
    away from 0 of the bytes with their zero point."""
    if twice and node.coordinates in between.COORDINATES and x.same_numbers(y):
        ends = zip(x.size, y.size, strict=True)
        lines, columns = (between.kernel_shares(n, out, node.coordinates) for n, out in ends)
        found = lines @ values.astype(np.float64) @ columns.T
        return np.clip(np.copysign(np.floor(np.abs(found) + 0.5), found), *y.limits).astype(
            np.int64
        )
    steps = linear(node, (values - x.zero).astype(np.float64)) * (x.step / y.step)
    return np.clip(np.rint(steps) + y.zero, *y.limits).astype(np.int64)


def layernorm(node: Host, real: Array) -> Array:
    """Each vector of the last axes, from ``axis`` on, normalised; float64."""
    axes = tuple(range(node.axis, real.ndim))
    apart = real - real.mean(axis=axes, keepdims=True)
    power = np.sqrt((apart * apart).mean(axis=axes, keepdims=True) + node.epsilon)
    found = apart / power
    found = found if node.gain is None else found * node.gain
    return found if node.offset is None else found + node.offset


def of_two(node: Host, inputs: list[Tensor], x: list[Array]) -> Array:
    """The square of a difference, or a quotient, float64; 0 / 0 is 0, other n / 0 infinite."""
    one, other = ((v - t.zero) * t.step for v, t in zip(x, inputs, strict=True))
    if node.how == "sqdiff":
        return (one - other) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(one / other, posinf=np.inf, neginf=-np.inf)


def of_floats(node: Host, real: Array) -> Array:
    """Floats and a constant, element by element, rounded to float32 as every runtime does."""
    rules = {"plus": np.add, "minus": np.subtract, "times": np.multiply, "over": np.divide}
    x, other = real.astype(np.float32), np.asarray(node.gain, np.float32)
    with np.errstate(all="ignore"):
        return rules[node.how](x, other).astype(np.float64)


REALS: dict[str, Callable[[Host, Array], Array]] = {
    **dict.fromkeys(OF_FLOATS, of_floats),
    "softmax": softmax,
    "logsoftmax": logsoftmax,
    "l2norm": l2norm,
    "layernorm": layernorm,
    "linear": linear,
}


# ------------------------------------------------------------------------------ the check
def check_floats(node: Host, x: Tensor, y: Tensor) -> str | None:
    """What is wrong with a Host of floats and a constant."""
    if (x.dtype, y.dtype) != ("float32", "float32"):
        return f"{x.dtype} to {y.dtype}, expected float32 to float32"
    if node.gain is None or node.gain.dtype.kind != "f" or not np.isfinite(node.gain).all():
        return "gain: expected finite floats"
    try:
        same = np.broadcast_shapes(x.shape, node.gain.shape) == x.shape == y.shape
    except ValueError:
        same = False
    return None if same else f"{x.shape} and {node.gain.shape} to {y.shape}"


def check_two(inputs: list[Tensor], y: Tensor) -> str | None:
    """What is wrong with a Host of two tensors."""
    for tensor in (*inputs, y):
        if not tensor.quantised:
            return f"{tensor.name!r} is {tensor.dtype} without a scale, expected int8 or uint8"
    a, b = (t.shape for t in inputs)
    try:
        want = np.broadcast_shapes(a, b)
    except ValueError:
        return f"shapes {a} and {b} do not go together"
    return None if y.shape == want else f"output {y.shape}, expected {want}"


def check_linear(node: Host, x: Tensor, y: Tensor) -> str | None:
    """What is wrong with a Host "linear"."""
    if len(x.shape) != 4 or node.lines is None or node.columns is None:
        return f"{x.shape}, expected a map, and shares of its lines and columns"
    for shares, size in ((node.lines, x.shape[2]), (node.columns, x.shape[3])):
        if shares.ndim != 2 or shares.shape[1] != size or not np.isfinite(shares).all():
            return f"shares {shares.shape}, expected finite ones of {size}"
    want = (*x.shape[:2], len(node.lines), len(node.columns))
    return None if y.shape == want else f"output {y.shape}, expected {want}"


def _check_deconv(node: Deconv, inputs: list[Tensor], y: Tensor) -> str | None:
    (x,) = inputs
    for tensor in (x, y):
        if len(tensor.shape) != 4 or tensor.shape[0] != 1:
            return f"{tensor.name!r} is {tensor.shape}, expected (1, C, H, W)"
    if node.weights.ndim != 4:
        return f"weights {node.weights.shape}, expected (O, C / groups, kh, kw)"
    o, c = len(node.weights), node.weights.shape[1] * node.groups
    if x.shape[1] != c or y.shape[1] != o or node.groups < 1 or o % node.groups:
        return f"weights {node.weights.shape} in {node.groups} groups do not fit {x.shape}"
    if min(*node.strides, *node.dilation) < 1 or min(node.pads) < 0:
        return f"strides {node.strides}, dilation {node.dilation}, pads {node.pads}"
    full, spans = node.full_size(*x.size), zip(node.kernel, node.dilation, strict=True)
    for pad, size, most, (k, d), s in zip(
        node.pads, y.size, full, spans, node.strides, strict=True
    ):
        # a kernel's width may be left out, and a stride's rest be added, at either end
        if pad > (k - 1) * d or pad + size > most + s - 1 + (k - 1) * d:
            return f"pads {node.pads} and output {y.size} do not fit a full result of {full}"
    return None


def _check_prelu(node: Prelu, inputs: list[Tensor], y: Tensor) -> str | None:
    (x,) = inputs
    if x.shape != y.shape or not 0 <= node.axis < len(x.shape):
        return f"output {y.shape} along axis {node.axis}, expected that of {x.shape}"
    if node.slopes.shape != (x.shape[node.axis],) or not np.isfinite(node.slopes).all():
        return f"slopes {node.slopes.shape}, expected {x.shape[node.axis]} finite numbers"
    return None


def _check_product(node: Product, inputs: list[Tensor], y: Tensor) -> str | None:
    a, b = (t.shape for t in inputs)
    b = (*b[:-2], *b[:-3:-1]) if node.turned else b
    try:
        want = np.matmul(np.empty(a, np.bool_), np.empty(b, np.bool_)).shape
    except ValueError:
        return f"shapes {a} and {b} do not go together"
    return None if y.shape == want else f"output {y.shape}, expected {want}"


def check_take(node: Move, x: Tensor, y: Tensor) -> str | None:
    """What is wrong with a Move "take"."""
    if len(node.places) != len(x.shape):
        return f"places along {len(node.places)} axes, expected {len(x.shape)}"
    for places, size in zip(node.places, x.shape, strict=True):
        if not places or min(places) < 0 or max(places) >= size:
            return f"places {places} of an axis of {size}"
    want = tuple(len(places) for places in node.places)
    return None if y.shape == want else f"output {y.shape}, expected {want}"


# tensors that it reads, and the rule
CHECKS: dict[type[Node], tuple[int, Callable[..., str | None]]] = {
    Deconv: (1, _check_deconv),
    Prelu: (1, _check_prelu),
    Product: (2, _check_product),
}
