# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the operations that run on the CPU, numpy only.

Floats are float32 as on the K210.  Poolings add up in the vendor's order; matrix products are taken
in float64 and rounded once, so these can differ from the vendor's in the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

F32 = np.float32
Floats = npt.NDArray[np.float32]
Padding = tuple[int, int]  # before, after
PadMode = Literal["constant", "reflect", "symmetric", "edge"]


def round_half_away(x: npt.NDArray) -> npt.NDArray:
    """C's roundf."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def to_u8(x: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Clamped to 0..255; not a number becomes 0."""
    return np.nan_to_num(np.clip(x, 0, 255), nan=0.0).astype(np.uint8)


def carry_shift(value: npt.NDArray[np.int64], shift: int) -> npt.NDArray[np.int64]:
    """Right shift that rounds as kpu_carry_shift of the v3 driver does."""
    if shift <= 0:
        return value << min(63, -shift)
    value = value >> min(62, shift - 1)
    half = value >> 1
    return np.where(value & 1, half + np.where(value < 0, -1, 1), half)


def mul_shift(value: npt.NDArray[np.int64], mul: int, shift: int) -> npt.NDArray[np.int64]:
    """value * mul >> shift (0..63) as a 32-bit integer, halves up: nncase 0.2's quantised CPU code.

    Not the rounding of its KPU kernel, which is half to even.
    """
    product = value * np.int64(mul)
    if shift:
        product = (product + (np.int64(1) << np.int64(shift - 1))) >> np.int64(shift)
    return wrap32(product)


def wrap32(value: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The low 32 bits as a signed number."""
    return value.astype(np.int32).astype(np.int64)


def divide_rounded(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(a + b / 2) / b with C's division; by zero it is -1, as the K210's core divides."""
    divisor = np.where(b == 0, 1, b)

    def quotient(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.sign(x) * np.sign(divisor) * (np.abs(x) // np.abs(divisor))

    half = np.sign(b) * (np.abs(b) // 2)
    return np.where(b == 0, -1, quotient(wrap32(a + half)))


def smaller(a: npt.NDArray, b: npt.NDArray) -> npt.NDArray:
    """C++'s std::min: the first unless the second is less, also with not-a-number."""
    return np.where(b < a, b, a)


def larger(a: npt.NDArray, b: npt.NDArray) -> npt.NDArray:
    """C++'s std::max: the first unless it is less than the second."""
    return np.where(a < b, b, a)


# ------------------------------------------------------------------------- element by element
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": smaller,
    "max": larger,
    "pow": np.power,
    "floor_div": np.floor_divide,
    "floor_mod": np.mod,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
UNARY = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": lambda x: np.vectorize(math.erf, otypes=[F32])(x),
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "logical_not": lambda x: (x == 0).astype(x.dtype),
    "neg": np.negative,
    "round": np.rint,
    "rsqrt": lambda x: F32(1) / np.sqrt(x),
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
    "sigmoid": lambda x: F32(1) / (F32(1) + np.exp(-x)),
}


def softmax_floats(x: Floats, axis: int, beta: float, floor: float = -math.inf) -> Floats:
    """exp(beta * (x - max)) / sum; ``floor`` is the least maximum (the v3 driver's is FLT_MIN)."""
    top = np.maximum(x.max(axis=axis, keepdims=True), F32(floor))
    e = np.exp((x - top) * F32(beta))
    return (e / e.sum(axis=axis, keepdims=True, dtype=np.float64)).astype(F32)


def l2_normalise(x: Floats) -> Floats:
    """x / |x| with the driver's least square sum."""
    total = max(F32(np.square(x, dtype=np.float64).sum()), F32(1e-10))
    return x * (F32(1) / np.sqrt(F32(total)))


# --------------------------------------------------------------------------------- reductions
# as std::min and std::max do, fmin and fmax pass over what is not a number
REDUCE = {"mean": np.add, "min": np.fmin, "max": np.fmax, "sum": np.add}
IDENTITY = {"mean": 0.0, "sum": 0.0, "min": math.inf, "max": -math.inf}


def reduce(
    x: npt.NDArray,
    op: str,
    axes: tuple[int, ...],
    keep: bool,
    initial: float,
    reciprocal: bool = False,
) -> npt.NDArray:
    """Reduction over ``axes`` that starts from ``initial``; mean divides the sum by the count, or
    multiplies it by the count's ``reciprocal``.

    Sums of floats run in float32 in the order of memory, as the vendor's loop has them.
    """
    order = [i for i in range(x.ndim) if i not in axes] + sorted(axes)
    kept = [x.shape[i] for i in order[: x.ndim - len(axes)]]
    flat = x.transpose(order).reshape(*kept, -1)
    start = np.full((*kept, 1), initial, x.dtype)
    if REDUCE[op] is np.add:
        out = np.cumsum(np.concatenate([start, flat], axis=-1), axis=-1, dtype=x.dtype)[..., -1]
    else:
        out = REDUCE[op](REDUCE[op].reduce(flat, axis=-1), start[..., 0])
    if op == "mean":
        count = x.dtype.type(max(1, math.prod(x.shape[a] for a in axes)))
        out = out * (x.dtype.type(1) / count) if reciprocal else out / count
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return out.astype(x.dtype).reshape(shape if keep else kept)


def out_size(size: int, window: int, stride: int, dilation: int, pad: Padding) -> int:
    """Positions of a window of ``window`` taps along ``size``."""
    span = (window - 1) * dilation + 1
    return (size + pad[0] + pad[1] - span + stride) // stride


def window_taps(
    x: npt.NDArray,
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple[Padding, Padding],
    fill: float,
) -> Iterator[tuple[int, int, npt.NDArray]]:
    """(ky, kx, pixels under that tap (..., oh, ow)); outside the map there is ``fill``."""
    oh, ow = (
        out_size(n, k, s, d, p)
        for n, k, s, d, p in zip(x.shape[-2:], window, stride, dilation, pads, strict=True)
    )
    padded = pad_axes(x, ((0, 0),) * (x.ndim - 2) + pads, fill)
    for ky in range(window[0]):
        for kx in range(window[1]):
            top, left = ky * dilation[0], kx * dilation[1]
            yield (
                ky,
                kx,
                padded[
                    ...,
                    top : top + (oh - 1) * stride[0] + 1 : stride[0],
                    left : left + (ow - 1) * stride[1] + 1 : stride[1],
                ],
            )


def reduce_window(
    x: npt.NDArray,
    op: str,
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple[Padding, Padding],
    initial: float,
    clamp: tuple[float, float],
) -> npt.NDArray:
    """Pooling of (N, C, H, W); pixels outside do not count, not even for the mean."""
    total: npt.NDArray | None = None
    for _, _, pixels in window_taps(x.astype(F32), window, stride, dilation, pads, IDENTITY[op]):
        if total is None:
            total = np.full(pixels.shape, initial, F32)
        REDUCE[op](total, pixels, out=total)
    assert total is not None, "a window has a tap"
    if op == "mean":
        ones = np.ones((1, 1, *x.shape[2:]), F32)
        total /= sum(p for *_, p in window_taps(ones, window, stride, dilation, pads, 0.0))
    return np.clip(total, *clamp).astype(x.dtype)


# ---------------------------------------------------------------------------------- products
def conv2d_float64(
    x: npt.NDArray,
    weights: npt.NDArray,
    bias: npt.NDArray,
    groups: int,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple[Padding, Padding],
) -> npt.NDArray:
    """Convolution of (N, C, H, W) by (O, C/groups, kh, kw) in float64 (exact for 8-bit data)."""
    n, _, _, _ = x.shape
    o, inner, kh, kw = weights.shape
    x = x.astype(np.float64).reshape(n, groups, inner, *x.shape[2:])
    w = weights.astype(np.float64).reshape(groups, o // groups, inner, kh, kw)
    total = None
    for ky, kx, pixels in window_taps(x, (kh, kw), stride, dilation, pads, 0.0):
        part = np.einsum("goi,ngihw->ngohw", w[..., ky, kx], pixels, optimize=True)
        total = part if total is None else total + part
    assert total is not None, "a window has a tap"
    total = total.reshape(n, o, *total.shape[3:])
    return total + bias.astype(np.float64)[:, None, None]


def conv2d_transpose(
    x: npt.NDArray,
    weights: npt.NDArray,
    shape: tuple[int, ...],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple[Padding, Padding],
) -> npt.NDArray:
    """(N, C, H, W) spread by (groups, O/groups, C/groups, kh, kw) over a map of ``shape``.

    Padding before moves the map up and left; what falls outside is dropped.
    """
    groups, outer, inner, kh, kw = weights.shape
    n, _, h, w = x.shape
    x = x.astype(np.float64).reshape(n, groups, inner, h, w)
    out = np.zeros((n, groups, outer, *shape[2:]))
    for ky in range(kh):
        for kx in range(kw):
            rows, columns = (
                np.arange(size) * s - p[0] + d * at
                for size, s, p, d, at in zip((h, w), stride, pads, dilation, (ky, kx), strict=True)
            )
            ys, xs = (
                (places >= 0) & (places < limit)
                for places, limit in zip((rows, columns), shape[2:], strict=True)
            )
            part = np.einsum(
                "goi,ngihw->ngohw",
                weights[..., ky, kx].astype(np.float64),
                x[..., ys, :][..., xs],
                optimize=True,
            )
            out[..., rows[ys][:, None], columns[xs]] += part
    return out.reshape(shape)


# ---------------------------------------------------------------------------------- movement
def pad_axes(
    x: npt.NDArray, pads: tuple[Padding, ...], value: npt.ArrayLike, mode: PadMode = "constant"
) -> npt.NDArray:
    """Padding of every axis; negative amounts cut."""
    cut = tuple(
        slice(max(0, -before), n - max(0, -after))
        for n, (before, after) in zip(x.shape, pads, strict=True)
    )
    grow = [(max(0, before), max(0, after)) for before, after in pads]
    if mode == "constant":
        return np.pad(x[cut], grow, constant_values=value)
    return np.pad(x[cut], grow, mode=mode)


def nearest(size: int, out: int, align: bool, half: bool) -> npt.NDArray[np.intp]:
    """Source index of every output index, nearest neighbour."""
    scale = _scale(size, out, align)
    at = (np.arange(out, dtype=F32) + F32(0.5 if half else 0)) * scale
    index = round_half_away(at) if align else np.floor(at)
    return np.clip(index, 0, size - 1).astype(np.intp)


def _scale(size: int, out: int, align: bool) -> np.float32:
    if align and out > 1:
        return F32(size - 1) / F32(out - 1)
    return F32(size) / F32(out)


def resize_nearest(x: npt.NDArray, oh: int, ow: int, align: bool = False, half: bool = False):
    """(N, C, H, W) -> (N, C, oh, ow)."""
    rows = nearest(x.shape[2], oh, align, half)
    columns = nearest(x.shape[3], ow, align, half)
    return x[:, :, rows[:, None], columns]


def resize_bilinear(
    x: npt.NDArray, oh: int, ow: int, align: bool, half: bool, rounding: bool
) -> npt.NDArray:
    """(N, C, H, W) -> (N, C, oh, ow); ``rounding`` adds a half before an integer result."""

    def axis(size: int, out: int) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:
        at = np.arange(out, dtype=F32) * _scale(size, out, align)
        if half:
            at = (np.arange(out, dtype=F32) + F32(0.5)) * _scale(size, out, align) - F32(0.5)
        low = np.clip(np.floor(at), 0, size - 1).astype(np.intp)
        high = np.minimum(np.maximum(low, np.ceil(at).astype(np.intp)), size - 1)
        return low, high, (at - low).astype(F32)

    y0, y1, fy = axis(x.shape[2], oh)
    x0, x1, fx = axis(x.shape[3], ow)
    fy = fy[:, None]
    v = x.astype(F32)
    out = (
        v[:, :, y0[:, None], x0] * ((1 - fy) * (1 - fx))
        + v[:, :, y1[:, None], x0] * (fy * (1 - fx))
        + v[:, :, y0[:, None], x1] * ((1 - fy) * fx)
        + v[:, :, y1[:, None], x1] * (fy * fx)
    )
    if x.dtype == F32:
        return out
    return to_u8(np.floor(out + F32(0.5 if rounding else 0)))


def slice_axis(begin: int, end: int, stride: int) -> slice:
    """A C-style range (end is exclusive, -1 before the first for negative strides)."""
    if stride < 0 and end < 0:
        return slice(begin, None, stride)
    return slice(begin, end, stride)
