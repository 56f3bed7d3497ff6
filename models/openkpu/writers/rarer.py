# SPDX-License-Identifier: Apache-2.0
"""The rarer operators in all formats: functions of a writer, ``TfliteModel`` or ``OnnxModel``.

As everywhere, shapes are (N, C, H, W) and weights (O, C / groups, KH, KW).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from openkpu.writers import Pair, Quant, Value, Weights
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.tflite_model import AXES, TfliteModel

Model = TfliteModel | OnnxModel


def write_prelu(m: Model, x: Value, slopes: npt.ArrayLike, out: Quant) -> Value:
    """PRELU or PRelu with a slope (C,) for each channel, in steps of 1 / 64."""
    steps = np.rint(np.asarray(slopes) * 64).astype(np.int64)
    zero = 0 if m.dtype == np.int8 else 128
    data = np.clip(steps, -127, 127) + zero
    if isinstance(m, TfliteModel):
        alpha = m.value((1, 1, data.size), Quant(1 / 64, zero), data=data.reshape(1, 1, -1))
        y = m.value(x.shape, out)
        m.op("PRELU", [x, alpha], [y])
        return y
    lines = (data.size,) + (1,) * (len(x.shape) - 2)
    words = m.array(data.reshape(lines), m.dtype), *m._parameters(Quant(1 / 64, zero))
    (alpha,) = m.node("DequantizeLinear", words)
    (y,) = m.node("PRelu", [m.dequantised(x), alpha])
    return m.quantised(y, x.shape, out)


def transposed(
    m: Model,
    x: Value,
    weights: Weights,
    out: Quant,
    stride: Pair,
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    rest: Pair = (0, 0),
    groups: int = 1,
    dilation: Pair = (1, 1),
    act: str | None = None,
) -> Value:
    """TRANSPOSE_CONV or ConvTranspose; ``pads`` are left out, ``rest`` is added behind the end.

    TFLite has no groups and no dilation, and pads that follow from the size: those of SAME.
    """
    o, inner, *kernel = weights.data.shape
    size = [
        (n - 1) * s + (k - 1) * d + 1 - pads[i] - pads[i + 2] + rest[i]
        for i, (n, s, k, d) in enumerate(zip(x.shape[2:], stride, kernel, dilation, strict=True))
    ]
    if isinstance(m, TfliteModel):
        y = m.value((1, o, *size), out)
        shape = m.integers([1, *size, o])
        data = weights.data.transpose(0, 2, 3, 1)
        extra = m._weights(weights, x, data, 0)
        kind = tflite.Padding.SAME if any(pads) else tflite.Padding.VALID
        fields: dict[str, Any] = {"padding": kind, "strideH": stride[0], "strideW": stride[1]}
        words = [shape, extra[0], x, *extra[1:]]
        m.op("TRANSPOSE_CONV", words, [y], "TransposeConvOptions", **fields)
        return y
    each = o // groups
    data = weights.data.reshape(groups, each, inner, *kernel).transpose(0, 2, 1, 3, 4)
    data = np.ascontiguousarray(data.reshape(groups * inner, each, *kernel))
    scale = np.asarray(weights.scale, np.float32)
    assert groups == 1 or scale.ndim == 0, "one scale, where there are groups"
    zero = m.array(np.full(scale.shape, weights.zero_point), data.dtype)
    where: dict[str, Any] = {"axis": 1} if scale.ndim else {}
    words = [m.array(data, data.dtype, "w"), m.array(scale, np.float32, "scale"), zero]
    (w,) = m.node("DequantizeLinear", words, **where)
    inputs = [m.dequantised(x), w]
    if weights.bias is not None:
        steps = np.float32(x.quant.scale) * scale
        words = [m.array(weights.bias, np.int32, "b"), m.array(steps, np.float32, "scale")]
        words.append(m.array(np.zeros(steps.shape), np.int32, "zero"))
        where = {"axis": 0} if steps.ndim else {}
        inputs += m.node("DequantizeLinear", words, **where)
    fields = {"strides": list(stride), "pads": list(pads), "group": groups}
    fields |= {"dilations": list(dilation), "output_padding": list(rest)}
    (y,) = m.node("ConvTranspose", inputs, kernel_shape=kernel, **fields)
    return m.quantised(m._clipped(y, act), (1, o, *size), out)


def write_product(m: Model, a: Value, b: Value, out: Quant, turned: bool = False) -> Value:
    """BATCH_MATMUL, MatMul or QLinearMatMul of two computed tensors, their axes as in the file.

    ``turned``: the second one is (..., N, K); ONNX has a Transpose for it.
    """
    last = b.shape[-2] if turned else b.shape[-1]
    shape = (*a.shape[:-1], last)
    if isinstance(m, TfliteModel):
        y = m.value(_from_file(shape), out)
        m.op("BATCH_MATMUL", [a, b], [y], "BatchMatMulOptions", adjY=turned)
        return Value(y.name, shape, out)
    if turned:
        axes = [*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2]
        b = m._moved("Transpose", b, [b.shape[i] for i in axes], perm=axes)
    if m.operators:
        every = [*m._triple(a), *m._triple(b), *m._parameters(out)]
        (y,) = m.node("QLinearMatMul", every)
        return Value(y, shape, out)
    (y,) = m.node("MatMul", [m.dequantised(a), m.dequantised(b)])
    return m.quantised(y, shape, out)


def matrix(m: Model, shape: Sequence[int], quant: Quant) -> Value:
    """An input whose axes are the file's, whatever its rank."""
    if isinstance(m, TfliteModel):
        return Value(m.input(_from_file(shape), quant).name, tuple(shape), quant)
    return m.input(shape, quant)


def _from_file(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that ``TfliteModel`` turns into this one."""
    shape = tuple(int(n) for n in shape)
    return tuple(shape[AXES[i]] for i in range(4)) if len(shape) == 4 else shape


def blocks(m: Model, x: Value, block: int, apart: bool, mode: str = "DCR") -> Value:
    """Depth to space, or with ``apart`` space to depth."""
    _, c, h, w = x.shape
    b = block
    shape = (1, c * b * b, h // b, w // b) if apart else (1, c // (b * b), h * b, w * b)
    if isinstance(m, TfliteModel):
        y = m.value(shape, x.quant)
        kind, options = ("SPACE_TO_DEPTH", "SpaceToDepthOptions")
        if not apart:
            kind, options = ("DEPTH_TO_SPACE", "DepthToSpaceOptions")
        m.op(kind, [x], [y], options, blockSize=b)
        return y
    if apart:
        return m._moved("SpaceToDepth", x, shape, blocksize=b)
    return m._moved("DepthToSpace", x, shape, blocksize=b, mode=mode)


def resized(m: Model, x: Value, size: Pair, how: str = "asymmetric") -> Value:
    """Nearest resizing to any size; ``how``: asymmetric, half_pixel or align_corners."""
    shape = (*x.shape[:2], *size)
    if isinstance(m, TfliteModel):
        y = m.value(shape, x.quant)
        fields: dict[str, Any] = {
            "alignCorners": how == "align_corners",
            "halfPixelCenters": how == "half_pixel",
        }
        options = "ResizeNearestNeighborOptions"
        m.op("RESIZE_NEAREST_NEIGHBOR", [x, m.integers(size)], [y], options, **fields)
        return y
    words = ["", "", m.array(shape, np.int64)]
    rounding = {"asymmetric": "floor", "half_pixel": "round_prefer_floor"}
    fields = {
        "mode": "nearest",
        "nearest_mode": rounding.get(how, "round_prefer_ceil"),
        "coordinate_transformation_mode": how,
    }
    return m._moved("Resize", x, shape, *words, **fields)
