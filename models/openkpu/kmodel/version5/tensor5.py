# SPDX-License-Identifier: Apache-2.0
"""Tensor functions of the v5 byte code: what each takes from the stack and the registers.

Every function gets the machine at its instruction and the operands of the instruction, and adds an
operation to the trace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from openkpu.arithmetic.integers import round_up
from openkpu.kmodel.operations import moves
from openkpu.kmodel.operations import operations as ops
from openkpu.kmodel.operations.products import Conv2d, MatMul
from openkpu.kmodel.program import Operation, View
from openkpu.kmodel.readers.names import BINARY_V5, PAD_MODES, REDUCE, RESIZE_MODES
from openkpu.kmodel.version5.container5 import DTYPES
from openkpu.kmodel.version5.stackvm import Machine


def unary_like(m: Machine, make: Callable[..., Operation], dtype: int, *registers: int) -> None:
    """Output address on top, input below; the same shape."""
    shape, in_strides, out_strides = registers
    out, src = m.address(), m.address()
    extent = m.shape(shape)
    m.trace.add(
        make(
            offset=m.at.offset,
            src=m.view(src, dtype, extent, in_strides),
            dst=m.result(out, dtype, extent, out_strides),
        )
    )


def binary(m: Machine, dtype: int, *operands: Any) -> None:
    stated = None
    if m.dialect.binary_shape:
        stated, operands = m.shape(operands[4]), operands[:4] + operands[5:]
    a_shape, a_strides, b_shape, b_strides, out_strides, op, low, high = operands
    out, b, a = m.address(), m.address(), m.address()
    va = m.view(a, dtype, m.shape(a_shape), a_strides)
    vb = m.view(b, dtype, m.shape(b_shape), b_strides)
    try:
        result = ops.np.broadcast_shapes(va.shape, vb.shape)
    except ValueError:
        raise m.fail(f"{va} and {vb} do not broadcast") from None
    if stated not in (None, result):
        raise m.fail(f"{va} and {vb} make {list(result)}, the code says {list(stated)}")
    m.trace.add(
        ops.Binary(
            offset=m.at.offset,
            op=m.choice(BINARY_V5, op, "binary operator"),
            a=va,
            b=vb,
            dst=m.result(out, dtype, result, out_strides),
            clamp=m.clamp(low, high),
        )
    )


def broadcast(m: Machine, dtype: int, shape: int, strides: int, out_shape: int, out: int) -> None:
    dst, src = m.address(), m.address()
    view = m.view(src, dtype, m.shape(shape), strides)
    result = m.shape(out_shape)
    grown = (1,) * max(0, len(result) - len(view.shape)) + view.shape
    steps = view.strides or _dense(view.shape)
    steps = (0,) * (len(grown) - len(view.shape)) + steps
    for n, r in zip(grown, result, strict=False):
        if len(grown) != len(result) or n not in (1, r):
            raise m.fail(f"{list(view.shape)} to {list(result)}")
    steps = tuple(0 if n == 1 else s for n, s in zip(grown, steps, strict=True))
    wide = dataclasses.replace(view, shape=result, strides=steps)
    m.trace.add(ops.Copy(offset=m.at.offset, src=wide, dst=m.result(dst, dtype, result, out)))


def call(m: Machine, function: int, module: int, sources: int, results: int) -> None:
    def tensor() -> View:
        strides, shape, dtype = m.integer(), m.integer(), m.integer()
        return m.view(m.address(), dtype, m.shape(shape), strides)

    outputs = [tensor() for _ in range(results)][::-1]
    inputs = [tensor() for _ in range(sources)][::-1]
    callee = m.model.function(module, function, m.at.offset)
    for what, views, parameters in (
        ("inputs", inputs, callee.inputs),
        ("outputs", outputs, callee.outputs),
    ):
        if len(views) != len(parameters):
            raise m.fail(f"{len(views)} {what}, function takes {len(parameters)}")
        for view, parameter in zip(views, parameters, strict=True):
            if view.count * view.item != parameter.range.size:
                raise m.fail(f"{view} for a parameter of {parameter.range.size} bytes")
    staged = [_staged(m, view) for view in (*inputs, *outputs)]
    for view, dense in zip(inputs, staged, strict=False):
        if view is not dense:
            m.trace.add(ops.Copy(offset=m.at.offset, src=view, dst=dense))
    m.trace.run(callee, staged[:sources], staged[sources:], m.depth + 1)
    for view, dense in zip(outputs, staged[sources:], strict=True):
        if view is not dense:
            m.trace.add(ops.Copy(offset=m.at.offset, src=dense, dst=view))


def _staged(m: Machine, view: View) -> View:
    """The tensor itself, or a temporary place for it when it has gaps."""
    if view.dense:
        return view
    start = round_up(m.trace.temporary, 8)
    m.trace.temporary = start + view.count * view.item
    return View("temp", start, view.shape, view.dtype)


def conv2d(m: Machine, dtype: int, *operands: Any) -> None:
    shape, strides, kernel, kernel_strides, bias_strides, out_strides = operands[:6]
    groups, sh, sw, dh, dw, low, high = operands[6:]
    pad_w, pad_h = m.padding(), m.padding()
    out, bias, weights, src = (m.address() for _ in range(4))
    source = m.view(src, dtype, m.shape(shape), strides)
    w = m.view(weights, dtype, m.shape(kernel), kernel_strides)
    if len(w.shape) != 4 or len(source.shape) != 4:
        raise m.fail(f"{source} by {w}")
    window = w.shape[2:]
    result = _window(m, source, window, (sh, sw), (dh, dw), (pad_h, pad_w))
    m.trace.add(
        Conv2d(
            offset=m.at.offset,
            src=source,
            dst=m.result(out, dtype, (source.shape[0], w.shape[0], *result), out_strides),
            weights=w,
            bias=m.view(bias, dtype, (w.shape[0],), bias_strides),
            groups=groups,
            stride=(sh, sw),
            dilation=(dh, dw),
            pads=(pad_h, pad_w),
            clamp=m.clamp(low, high),
        )
    )


def _window(
    m: Machine,
    source: View,
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple,
) -> list[int]:
    if len(source.shape) != 4 or min(*window, *stride, *dilation) < 1:
        raise m.fail(f"window {window}, stride {stride}, dilation {dilation} of {source}")
    return [
        max(0, ops.k.out_size(*args))
        for args in zip(source.shape[2:], window, stride, dilation, pads, strict=True)
    ]


def convert(m: Machine, dtype: int, result: int, shape: int, strides: int, out: int) -> None:
    dst, src = m.address(), m.address()
    extent = m.shape(shape)
    m.trace.add(
        ops.Copy(
            offset=m.at.offset,
            src=m.view(src, dtype, extent, strides),
            dst=m.result(dst, result, extent, out),
        )
    )


def scaled(m: Machine, kind: str, dtype: int, result: int, *registers: int) -> None:
    """quantize and dequantize: bias and scale on top, then output and input."""
    shape, strides, out_strides = registers
    bias, scale = m.number(), m.number()
    out, src = m.address(), m.address()
    extent = m.shape(shape)
    source = m.view(src, dtype, extent, strides)
    target = m.result(out, result, extent, out_strides)
    floats = [view.dtype[-2] == "f" for view in (source, target)]
    if floats != [kind == "quantize", kind == "dequantize"]:
        raise m.fail(f"of {source} to {target}")
    at = m.at.offset
    if kind == "quantize":
        if target.item != 1:
            raise m.fail(f"to {target.dtype} is not supported")
        m.trace.add(
            ops.Quantize(offset=at, src=source, dst=target, scale=scale, bias=bias, half_even=True)
        )
    else:
        m.trace.add(ops.Dequantize(offset=at, src=source, dst=target, scale=scale, bias=bias))


def gather(m: Machine, dtype: int, *registers: int) -> None:
    shape, out_shape, strides, out_strides, indices_shape, axis = registers
    indices, out, src = m.address(), m.address(), m.address()
    extent = m.shape(indices_shape)
    m.trace.add(
        moves.Gather(
            offset=m.at.offset,
            src=m.view(src, dtype, m.shape(shape), strides),
            indices=View(indices.space, indices.offset, extent, "<i4"),
            dst=m.result(out, dtype, m.shape(out_shape), out_strides),
            axis=axis,
        )
    )


def lut1d(m: Machine, dtype: int, shape: int, strides: int, out_strides: int, length: int) -> None:
    m.number()
    m.number()
    out, table, src = m.address(), m.address(), m.address()
    if DTYPES.get(dtype) != "u1":
        raise m.fail(f"data type {dtype} is not supported")
    extent = m.shape(shape)
    m.trace.add(
        ops.TableLookup(
            offset=m.at.offset,
            src=m.view(src, dtype, extent, strides),
            dst=m.result(out, dtype, extent, out_strides),
            table=View(table.space, table.offset, (length,)),
        )
    )


def matmul(m: Machine, *operands: Any) -> None:
    a_shape, a_strides, b_shape, b_strides, bias_strides, out_strides, low, high = operands
    m.shape(bias_strides)
    out, bias, b, a = (m.address() for _ in range(4))
    va = m.view(a, 9, m.shape(a_shape), a_strides)
    vb = m.view(b, 9, m.shape(b_shape), b_strides)
    if len(va.shape) != 2 or len(vb.shape) != 2:
        raise m.fail(f"{va} by {vb}")
    result = va.shape[0], vb.shape[1]
    m.trace.add(
        MatMul(
            offset=m.at.offset,
            a=va,
            b=vb,
            bias=View(bias.space, bias.offset, (result[1],), "<f4"),
            dst=m.result(out, 9, result, out_strides),
            clamp=m.clamp(low, high),
        )
    )


def padding(m: Machine, dtype: int, *registers: int) -> None:
    shape, strides, out_strides, paddings, mode = registers
    value = m.number()
    out, src = m.address(), m.address()
    source = m.view(src, dtype, m.shape(shape), strides)
    pads = m.paddings(paddings)
    if len(pads) != len(source.shape):
        raise m.fail(f"{len(pads)} paddings for {source}")
    result = tuple(n + sum(p) for n, p in zip(source.shape, pads, strict=True))
    m.trace.add(
        moves.Pad(
            offset=m.at.offset,
            src=source,
            dst=m.result(out, dtype, result, out_strides),
            pads=pads,
            value=value if source.dtype[-2] == "f" else int(value) & 0xFF,
            mode=m.choice(PAD_MODES, mode, "pad mode"),
        )
    )


def reduction(m: Machine, dtype: int, *registers: int) -> None:
    shape, strides, out_strides, op, axes, keep = registers
    initial = m.number()
    out, src = m.address(), m.address()
    source = m.view(src, dtype, m.shape(shape), strides)
    rank = len(source.shape)
    over = tuple(a + rank if a < 0 else a for a in m.shape(axes))
    result = [1 if i in over else n for i, n in enumerate(source.shape)]
    if not keep:
        result = [n for i, n in enumerate(source.shape) if i not in over]
    m.trace.add(
        ops.Reduce(
            offset=m.at.offset,
            op=m.choice(REDUCE, op, "reduce operator"),
            src=source,
            dst=m.result(out, dtype, tuple(result), out_strides),
            axes=over,
            keep=m.flag(keep),
            initial=initial,
        )
    )


def reduce_window(m: Machine, dtype: int, op: int, *operands: Any) -> None:
    shape, strides, out_strides, kh, kw, sh, sw, dh, dw, low, high = operands
    pad_w, pad_h = m.padding(), m.padding()
    out, initial, src = m.address(), m.number(), m.address()
    source = m.view(src, dtype, m.shape(shape), strides)
    size = _window(m, source, (kh, kw), (sh, sw), (dh, dw), (pad_h, pad_w))
    m.trace.add(
        ops.ReduceWindow(
            offset=m.at.offset,
            op=m.choice(REDUCE, op, "reduce operator"),
            src=source,
            dst=m.result(out, dtype, (*source.shape[:2], *size), out_strides),
            window=(kh, kw),
            stride=(sh, sw),
            dilation=(dh, dw),
            pads=(pad_h, pad_w),
            initial=initial,
            clamp=m.clamp(low, high),
        )
    )


def resize(m: Machine, dtype: int, *registers: int) -> None:
    shape, strides, out_strides, align, half, mode = registers
    out, src = m.address(), m.address()
    width, height = m.integer(), m.integer()
    source = m.view(src, dtype, m.shape(shape), strides)
    if len(source.shape) != 4:
        raise m.fail(f"{source}")
    result = *source.shape[:2], height, width
    m.trace.add(
        ops.Resize(
            offset=m.at.offset,
            src=source,
            dst=m.result(out, dtype, result, out_strides),
            mode=m.choice(RESIZE_MODES, mode, "resize mode"),
            align=m.flag(align),
            half=m.flag(half),
            rounding=True,
        )
    )


def strided_slice(m: Machine, dtype: int, *registers: int) -> None:
    shape, strides, out_strides, begins, ends, steps = registers
    out, src = m.address(), m.address()
    source = m.view(src, dtype, m.shape(shape), strides)
    begin, end, step = m.shape(begins), m.shape(ends), m.shape(steps)
    if {len(begin), len(end), len(step)} != {len(source.shape)} or 0 in step:
        raise m.fail(f"{list(begin)} to {list(end)} by {list(step)} of {source}")
    parts = map(ops.k.slice_axis, begin, end, step)
    result = tuple(len(range(n)[part]) for n, part in zip(source.shape, parts, strict=True))
    m.trace.add(
        moves.StridedSlice(
            offset=m.at.offset,
            src=source,
            dst=m.result(out, dtype, result, out_strides),
            begin=begin,
            end=end,
            stride=step,
        )
    )


def softmax(m: Machine, dtype: int, *operands: Any) -> None:
    shape, strides, out_strides, axis, beta = operands
    rank = len(m.shape(shape))

    def make(offset: int, src: View, dst: View) -> Operation:
        place = axis + rank if axis < 0 else axis
        return ops.Softmax(offset=offset, src=src, dst=dst, axis=place, beta=beta)

    unary_like(m, make, dtype, shape, strides, out_strides)


def transpose(m: Machine, dtype: int, *registers: int) -> None:
    shape, strides, out_strides, order = registers
    out, src = m.address(), m.address()
    source = m.view(src, dtype, m.shape(shape), strides)
    perm = m.shape(order)
    if sorted(perm) != list(range(len(source.shape))):
        raise m.fail(f"permutation {list(perm)} of {source}")
    result = tuple(source.shape[p] for p in perm)
    m.trace.add(
        moves.Transpose(
            offset=m.at.offset,
            src=source,
            dst=m.result(out, dtype, result, out_strides),
            perm=perm,
        )
    )


def unary(m: Machine, dtype: int, shape: int, strides: int, out_strides: int, op: int) -> None:
    name = m.choice(m.dialect.unary, op, "unary operator")
    if name == "bitwise_not":
        raise m.fail("bitwise_not is not supported")

    def make(offset: int, src: View, dst: View) -> Operation:
        return ops.Unary(offset=offset, src=src, dst=dst, op=name)

    unary_like(m, make, dtype, shape, strides, out_strides)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


TENSOR: dict[str, Callable[..., None]] = {
    "BINARY": binary,
    "BROADCAST": broadcast,
    "CALL": call,
    "CONV2D": conv2d,
    "CONVERT": convert,
    "COPY": lambda m, *o: unary_like(m, ops.Copy, *o),
    "DEQUANTIZE": lambda m, *o: scaled(m, "dequantize", *o),
    "GATHER": gather,
    "LUT1D": lut1d,
    "MATMUL": matmul,
    "PAD": padding,
    "QUANTIZE": lambda m, *o: scaled(m, "quantize", *o),
    "REDUCE": reduction,
    "REDUCE_WINDOW2D": reduce_window,
    "RESIZE_IMAGE": resize,
    "SIGMOID": lambda m, *o: unary_like(m, lambda **v: ops.Unary(op="sigmoid", **v), *o),
    "SLICE": strided_slice,
    "SOFTMAX": softmax,
    "TRANSPOSE": transpose,
    "UNARY": unary,
}
