# SPDX-License-Identifier: Apache-2.0
"""The rarer TFLite operators: PRELU, TRANSPOSE_CONV, RESIZE_NEAREST_NEIGHBOR, DEPTH_TO_SPACE,
SPACE_TO_DEPTH, BATCH_MATMUL; and what the host computes: RESIZE_BILINEAR, LOG_SOFTMAX,
L2_NORMALIZATION."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu.compiler.form.between import shares
from openkpu.compiler.form.graph import Host, Move, Tensor
from openkpu.compiler.form.rarer import Deconv, Prelu, Product
from openkpu.compiler.tflite.raw import RawOperator
from openkpu.compiler.tflite.reader import TO_NCHW, TfliteReader, nchw

SAME, VALID = 0, 1


def _options(r: TfliteReader, op: RawOperator) -> Any:
    if op.options is None:
        raise r.refuse("its options are not in the file")
    return op.options


def tflite_prelu(r: TfliteReader, op: RawOperator) -> None:
    """One slope, or one for each channel."""
    x, y, raw = r.quantised(op, 0), r.quantised_output(op), r.constant(op, 1, "alpha")
    if raw.dtype not in ("int8", "uint8") or raw.scale.size != 1:
        raise r.refuse(f"alpha {raw.name!r} of {raw.dtype}, expected int8 or uint8 with one scale")
    rank = len(x.shape)
    channels = r.raw(op, 0).shape[-1]
    if raw.values.size not in (1, channels) or (raw.shape and raw.shape[-1] != raw.values.size):
        raise r.refuse(f"alpha {raw.shape}, expected one slope, or one for each of {channels}")
    steps = raw.values.astype(np.int64).reshape(-1) - int(raw.zero[0])
    slopes = np.broadcast_to(steps * float(raw.scale[0]), channels).copy()
    axis = 1 if rank == 4 else rank - 1
    r.node(Prelu, [x], y, slopes=slopes, axis=axis, step=float(raw.scale[0]))


def transpose_conv(
    weights_of: Callable[..., Any], bias_of: Callable[..., Any], clamp_of: Callable[..., Any]
) -> Callable[[TfliteReader, RawOperator], None]:
    """Input 0 is the output's shape, 1 the weights, 2 the map, 3 a bias."""

    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, y, o = r.quantised(op, 2), r.quantised_output(op), _options(r, op)
        shape = r.constant(op, 1, "weights").shape
        if len(shape) != 4 or len(x.shape) != 4 or x.shape[1] != shape[3]:
            raise r.refuse(f"weights {shape} do not fit the input {x.shape}")
        if tuple(r.integers(op, 0, "output shape")) != r.model.tensors[op.outputs[0]].shape:
            raise r.refuse("an output shape that is not the output's")
        weights, scale, zero = weights_of(r, op, 0, shape[0])
        strides = o.StrideH(), o.StrideW()
        if min(strides) < 1 or o.Padding() not in (SAME, VALID):
            raise r.refuse(f"strides {strides}, padding {o.Padding()}, expected SAME or VALID")
        ends = zip(x.size, shape[1:3], strides, y.size, strict=True)
        pads = [max((n - 1) * s + k - out, 0) // 2 for n, k, s, out in ends]
        fused = getattr(o, "FusedActivationFunction", int)()
        r.node(
            Deconv,
            *([x], y),
            weights=np.ascontiguousarray(weights.transpose(TO_NCHW)),
            w_scale=scale,
            w_zero=zero,
            bias=bias_of(r, op, scale * x.step, y, 3),
            clamp=clamp_of(r, fused, y),
            strides=strides,
            pads=(pads[0], pads[1]),
        )

    return handler


def nearest(size: int, outputs: int, *, align: bool = False, half: bool = False) -> tuple[int, ...]:
    """The pixel that each output takes, computed in float32 as TFLite's kernel does."""
    one = np.float32(1)
    scale = np.float32(size) / np.float32(outputs)
    if align and outputs > 1:
        scale = np.float32(size - 1) / np.float32(outputs - 1)
    at = (np.arange(outputs, dtype=np.float32) + (one / 2 if half else 0)) * scale
    places = np.floor(at + one / 2) if align else np.floor(at)
    return tuple(int(n) for n in np.clip(places, 0, size - 1))


def resize(r: TfliteReader, op: RawOperator) -> None:
    x, o = r.input(op, 0), _options(r, op)
    if len(x.shape) != 4:
        raise r.refuse(f"input {x.shape}, expected rank 4")
    size, y = r.integers(op, 1, "size"), r.output(op)
    if tuple(size) != y.size:
        raise r.refuse(f"size {size}, the output has {y.size}")
    how = {"align": bool(o.AlignCorners()), "half": bool(o.HalfPixelCenters())}
    ends = [nearest(n, out, **how) for n, out in zip(x.size, y.size, strict=True)]
    places = ((0,), tuple(range(x.shape[1])), *ends)
    r.node(Move, [x], y, how="take", places=places)


def resize_bilinear(r: TfliteReader, op: RawOperator) -> None:
    x, o = r.quantised(op, 0), _options(r, op)
    if len(x.shape) != 4:
        raise r.refuse(f"input {x.shape}, expected rank 4")
    size, y = r.integers(op, 1, "size"), r.quantised_output(op)
    if tuple(size) != y.size:
        raise r.refuse(f"size {size}, the output has {y.size}")
    how = "align_corners" if o.AlignCorners() else "asymmetric"
    how = "half_pixel" if o.HalfPixelCenters() else how
    lines, columns = (shares(n, out, how) for n, out in zip(x.size, y.size, strict=True))
    r.node(Host, [x], y, how="linear", lines=lines, columns=columns, coordinates=how)


def log_softmax(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.quantised(op, 0), r.output(op)
    r.node(Host, [x], y, how="logsoftmax", axis=r.axis(len(x.shape), -1))


LEAST_LENGTH = 1e-6  # of a vector, as TFLite's kernel has it


def l2_normalization(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.quantised(op, 0), r.output(op)
    if _options(r, op).FusedActivationFunction():
        raise r.refuse("a fused activation, expected none")
    r.node(Host, [x], y, how="l2norm", axis=r.axis(len(x.shape), -1), epsilon=LEAST_LENGTH)


def tile(r: TfliteReader, op: RawOperator) -> None:
    """A tensor several times along its axes, as Keras' UpSampling2D repeats pixels."""
    x, shape = r.input(op, 0), r.raw(op, 0).shape
    times = r.integers(op, 1, "multiples")
    if len(times) != len(shape) or min(times, default=1) < 1:
        raise r.refuse(f"multiples {times}, expected {len(shape)} of 1 or more")
    y = r.output(op)
    if len(shape) == 4:
        times = [times[a] for a in TO_NCHW]
    places = tuple(tuple(range(n)) * m for n, m in zip(x.shape, times, strict=True))
    r.node(Move, [x], y, how="take", places=places)


def depth_to_space(r: TfliteReader, op: RawOperator) -> None:
    """Channels (line, column, channel) become pixels."""
    x, y, b = r.input(op, 0), r.output(op), int(_options(r, op).BlockSize())
    _, c, h, w = x.shape
    if b < 1 or c % (b * b):
        raise r.refuse(f"block of {b}, the input has {c} channels")
    each = c // (b * b)
    _through(r, x, y, (b, b, each, h, w), (2, 3, 0, 4, 1))


def space_to_depth(r: TfliteReader, op: RawOperator) -> None:
    """Pixels become channels (line, column, channel)."""
    x, y, b = r.input(op, 0), r.output(op), int(_options(r, op).BlockSize())
    _, c, h, w = x.shape
    if b < 1 or h % b or w % b:
        raise r.refuse(f"block of {b}, the input has {h} lines of {w}")
    _through(r, x, y, (c, h // b, b, w // b, b), (2, 4, 0, 1, 3))


def _through(
    r: TfliteReader, x: Tensor, y: Tensor, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """Reshaped, transposed, reshaped to the output."""
    first = r.between(x, shape, x.name)
    r.node(Move, [x], first, how="reshape")
    second = r.transposed(first, axes)
    r.node(Move, [second], y, how="reshape")


def batch_matmul(r: TfliteReader, op: RawOperator) -> None:
    """A product of two computed tensors."""
    a, b, o = r.model_order(r.quantised(op, 0)), r.quantised(op, 1), _options(r, op)
    b = r.model_order(b)
    if a.data is not None or b.data is not None:
        raise r.refuse("a constant operand, expected two computed tensors")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise r.refuse(f"inputs {a.shape} and {b.shape}, expected matrices")
    if o.AdjX():
        axes = (*range(len(a.shape) - 2), len(a.shape) - 1, len(a.shape) - 2)
        a = r.transposed(a, axes)
    y = r.quantised_output(op)
    raw, turned = r.model.tensors[op.outputs[0]].shape, bool(o.AdjY())
    into = y if len(raw) != 4 else r.between(y, raw, y.name)
    r.node(Product, [a, b], into, clamp=y.limits, turned=turned)
    if into is not y:
        r.transposed(into, TO_NCHW, y)
    assert y.shape == nchw(raw)


HANDLERS: dict[str, Callable[[TfliteReader, RawOperator], None]] = {
    "PRELU": tflite_prelu,
    "RESIZE_NEAREST_NEIGHBOR": resize,
    "RESIZE_BILINEAR": resize_bilinear,
    "LOG_SOFTMAX": log_softmax,
    "L2_NORMALIZATION": l2_normalization,
    "TILE": tile,
    "DEPTH_TO_SPACE": depth_to_space,
    "SPACE_TO_DEPTH": space_to_depth,
    "BATCH_MATMUL": batch_matmul,
}
