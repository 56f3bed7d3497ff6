# SPDX-License-Identifier: Apache-2.0
"""v4 operations with a window or a matrix product, and those of the CPU target (NHWC maps).

Field order and arithmetic are those of nncase 0.2 (neutral_ops_body.h, cpu_ops_body.h and the
kernels beside them, v0.2.0-beta1 to beta4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from openkpu.kmodel.operations import operations as ops
from openkpu.kmodel.operations.products import FULL, Conv2d, Conv2dTranspose, MatMul, QuantMatMul
from openkpu.kmodel.program import Operation, View
from openkpu.kmodel.readers.names import REDUCE
from openkpu.kmodel.readers.node4 import BYTES, FLOAT, Node

KERNEL_MAX = 1 << 16


@dataclasses.dataclass
class Window:
    """Padding, taps, stride and dilation as a body has them."""

    pads: tuple[tuple[int, int], tuple[int, int]]
    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]

    @classmethod
    def read(cls, n: Node) -> Window:
        """KmodelError for a window without taps, or that does not move."""
        pads = n.pad("padding h"), n.pad("padding w")
        kh, kw, sh, sw, dh, dw = n.c.read("6i", "window")
        if min(kh, kw, sh, sw, dh, dw) < 1 or max(kh, kw) > KERNEL_MAX:
            raise n.c.error(f"window ({kh}, {kw}), stride ({sh}, {sw}), dilation ({dh}, {dw})")
        return cls(pads, (kh, kw), (sh, sw), (dh, dw))

    def output(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Height and width of the result."""
        fields = size, self.size, self.stride, self.dilation, self.pads
        return tuple(ops.k.out_size(*args) for args in zip(*fields, strict=True))


def _channels(n: Node, groups: int, inputs: int, outputs: int) -> None:
    if min(groups, outputs) < 1 or outputs > KERNEL_MAX or inputs % groups or outputs % groups:
        raise n.c.error(f"{outputs} channels in {groups} groups out of {inputs}")


def _weights(n: Node, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return n.c.array(dtype, int(np.prod(shape, dtype=object)), "weights").reshape(shape)


class Scale(TypedDict):
    """Fields of a quantised product."""

    offsets: tuple[int, int]
    out_param: tuple[int, int, int]


def _scale(n: Node) -> Scale:
    """Offsets of both factors, then factor, shift and offset of the result."""
    first, second, mul = n.c.read("3i", "scale")
    shift = n.shift("output shift")
    return {"offsets": (first, second), "out_param": (n.c.i32("output offset"), mul, shift)}


def _conv(n: Node, dtype: str) -> tuple[dict, Window, View, tuple[int, ...]]:
    """What float and quantised convolutions have in common, up to the window."""
    src, out = n.range("input", dtype), n.range("output", dtype)
    shape = n.shape("input shape")
    groups, o = n.c.i32("groups"), n.c.i32("output channels")
    window = Window.read(n)
    _channels(n, groups, shape[1], o)
    fields = {
        "offset": n.offset,
        "src": n.shaped(src, shape, "input"),
        "groups": groups,
        "stride": window.stride,
        "dilation": window.dilation,
        "pads": window.pads,
    }
    return fields, window, out, (o, shape[1] // groups, *window.size)


def _result(n: Node, fields: dict, window: Window, out: View, channels: int) -> View:
    src = fields["src"]
    return n.shaped(out, (src.shape[0], channels, *window.output(src.shape[2:])), "output")


def read_conv2d(n: Node) -> Operation:
    """0x02: fused activation, weights, bias."""
    fields, window, out, kernel = _conv(n, FLOAT)
    clamp = n.clamp()
    weights = _weights(n, FLOAT, kernel)
    bias = n.c.array(FLOAT, kernel[0], "bias")
    dst = _result(n, fields, window, out, kernel[0])
    return Conv2d(**fields, dst=dst, weights=weights, bias=bias, clamp=clamp)


def read_quantized_conv2d(n: Node) -> Operation:
    """0x0F: scale, bias, weights."""
    fields, window, out, kernel = _conv(n, BYTES)
    scale = _scale(n)
    bias = n.c.array("<i4", kernel[0], "bias")
    weights = _weights(n, BYTES, kernel)
    dst = _result(n, fields, window, out, kernel[0])
    return Conv2d(**fields, dst=dst, weights=weights, bias=bias, **scale)


def read_conv2d_transpose(n: Node) -> Operation:
    """0x13.  The bias is stored, but the vendor's kernel does not add it."""
    src, out = n.range("input", FLOAT), n.range("output", FLOAT)
    shape, out_shape = n.shape("input shape"), n.shape("output shape")
    groups = n.c.i32("groups")
    window = Window.read(n)
    clamp = n.clamp()
    _channels(n, groups, shape[1], out_shape[1])
    kernel = groups, out_shape[1] // groups, shape[1] // groups, *window.size
    weights = _weights(n, FLOAT, kernel)
    n.c.array(FLOAT, out_shape[1], "bias")
    return Conv2dTranspose(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(out, out_shape, "output"),
        weights=weights,
        stride=window.stride,
        dilation=window.dilation,
        pads=window.pads,
        clamp=clamp,
    )


def _matrices(n: Node, dtype: str) -> tuple[dict, int]:
    a, b, out = (n.range(what, dtype) for what in ("input a", "input b", "output"))
    rows, inner, columns = n.c.read("3i", "sizes")
    fields = {
        "offset": n.offset,
        "a": n.shaped(a, (rows, inner), "input a"),
        "b": n.shaped(b, (inner, columns), "input b"),
        "dst": n.shaped(out, (rows, columns), "output"),
    }
    return fields, columns


def read_matmul(n: Node) -> Operation:
    """0x04."""
    fields, columns = _matrices(n, FLOAT)
    return MatMul(**fields, clamp=n.clamp(), bias=n.c.array(FLOAT, columns, "bias"))


def read_quantized_matmul(n: Node) -> Operation:
    """0x10."""
    fields, columns = _matrices(n, BYTES)
    return QuantMatMul(**fields, **_scale(n), bias=n.c.array("<i4", columns, "bias"))


def read_reduce_window2d(n: Node) -> Operation:
    """0x08."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    op = n.choice(REDUCE, "reduce operator")
    shape = n.shape("input shape")
    window = Window.read(n)
    initial = n.c.f32("initial value")
    return ops.ReduceWindow(
        offset=n.offset,
        op=op,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, (*shape[:2], *window.output(shape[2:])), "output"),
        window=window.size,
        stride=window.stride,
        dilation=window.dilation,
        pads=window.pads,
        initial=initial,
        clamp=n.clamp(),
    )


# ---------------------------------------------------------------------- the CPU target: NHWC
def _planes(n: Node, view: View, shape: tuple[int, ...], what: str) -> View:
    """A map (N, H, W, C) as (N, C, H, W) in place."""
    batch, h, w, c = n.shaped(view, shape, what).shape
    return dataclasses.replace(view, shape=(batch, c, h, w), strides=(h * w * c, 1, w * c, c))


def read_cpu_conv2d(depthwise: bool, quantised: bool) -> Callable[[Node], Operation]:
    """0x1001, 0x1002, 0x1004, 0x1005: weights (O, kh, kw, C), or (C, kh, kw) depthwise, then bias.

    Quantised: the offsets are taken away, not added as in 0x0F.
    """
    dtype = BYTES if quantised else FLOAT

    def read(n: Node) -> Operation:
        src, out = n.range("input", dtype), n.range("output", dtype)
        batch, h, w, c = shape = n.shape("input shape")
        o = c if depthwise else n.c.i32("output channels")
        window = Window.read(n)
        groups = c if depthwise else 1
        _channels(n, groups, c, o)
        offsets, out_param, clamp = (0, 0), None, FULL
        if quantised:
            scale = _scale(n)
            offsets, out_param = (-scale["offsets"][0], -scale["offsets"][1]), scale["out_param"]
        else:
            clamp = n.clamp()
        weights = _weights(n, dtype, (o, *window.size, c // groups)).transpose(0, 3, 1, 2)
        oh, ow = window.output((h, w))
        return Conv2d(
            offset=n.offset,
            src=_planes(n, src, shape, "input"),
            dst=_planes(n, out, (batch, oh, ow, o), "output"),
            weights=weights,
            bias=n.c.array("<i4" if quantised else FLOAT, o, "bias"),
            groups=groups,
            stride=window.stride,
            dilation=window.dilation,
            pads=window.pads,
            offsets=offsets,
            out_param=out_param,
            clamp=clamp,
        )

    return read


def read_cpu_reduce_window2d(n: Node) -> Operation:
    """0x1003; without the sum."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    op = n.choice(REDUCE[:3], "reduce operator")
    batch, h, w, c = shape = n.shape("input shape")
    window = Window.read(n)
    initial = n.c.f32("initial value")
    oh, ow = window.output((h, w))
    return ops.ReduceWindow(
        offset=n.offset,
        op=op,
        src=_planes(n, src, shape, "input"),
        dst=_planes(n, dst, (batch, oh, ow, c), "output"),
        window=window.size,
        stride=window.stride,
        dilation=window.dilation,
        pads=window.pads,
        initial=initial,
        clamp=n.clamp(),
    )
