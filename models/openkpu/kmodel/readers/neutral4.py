# SPDX-License-Identifier: Apache-2.0
"""v4 operations that any target has, without the products: element-wise, moves, reductions.

Field order and arithmetic are those of the runtime of nncase 0.2 (neutral_ops_body.h and
neutral_kernels.h of v0.2.0-beta1 to beta4) as it is built for the host.  Where the same runtime
built for the K210 rounds in another way (quantize), the host's way counts.
"""

from __future__ import annotations

import struct

from openkpu.kmodel.operations import moves
from openkpu.kmodel.operations import operations as ops
from openkpu.kmodel.program import Operation, View
from openkpu.kmodel.readers import nnil
from openkpu.kmodel.readers.names import BINARY_V4, REDUCE, RESIZE_MODES, UNARY_V4
from openkpu.kmodel.readers.node4 import BYTES, FLOAT, Node


def _operands(n: Node, dtype: str) -> dict:
    """What float and quantised element-wise operations of two tensors have in common."""
    views = [n.range(what, dtype) for what in ("input a", "input b", "output")]
    op = n.choice(BINARY_V4, "binary operator")
    shapes = [n.shape("shape") for _ in range(3)]
    a, b, out = (n.shaped(v, s, "tensor") for v, s in zip(views, shapes, strict=True))
    return {"offset": n.offset, "op": op, "a": a, "b": b, "dst": out}


def read_binary(n: Node) -> Operation:
    """0x00."""
    return ops.Binary(**_operands(n, FLOAT), clamp=n.clamp())


def read_quantized_binary(n: Node) -> Operation:
    """0x11."""
    views = _operands(n, BYTES)
    a, b, out = (n.fixed(what) for what in ("input a", "input b", "output"))
    return ops.QuantBinary(**views, a_param=a, b_param=b, out_param=out)


def read_concat(n: Node) -> Operation:
    """0x01; inner size in bytes."""
    out = n.range("output", BYTES)
    inner, outer = n.c.u32("inner size"), n.c.u32("outer size")
    count = n.c.count("inputs", 20)
    inputs = [n.range("input", BYTES) for _ in range(count)]
    dims = [n.c.i32("dimension") for _ in range(count)]
    sources = [
        n.shaped(view, (outer, inner * dim), "input")
        for view, dim in zip(inputs, dims, strict=True)
    ]
    dst = View(out.space, out.start, (outer, inner * sum(dims)))
    return moves.Concat(offset=n.offset, sources=tuple(sources), dst=dst)


def read_dequantize(n: Node) -> Operation:
    """0x03: (x - zero point) * (1 / scale)."""
    src, dst = n.range("input", BYTES), n.range("output", FLOAT)
    zero, scale = n.c.i32("zero point"), n.c.f32("scale")
    with ops.np.errstate(all="ignore"):
        step = float(ops.F32(1) / ops.F32(scale))
    return ops.Dequantize(offset=n.offset, src=src, dst=dst, scale=step, zero=zero)


def read_quantize(n: Node) -> Operation:
    """0x06: x * scale + zero point, halves away from zero."""
    src, dst = n.range("input", FLOAT), n.range("output", BYTES)
    zero, scale = n.c.i32("zero point"), n.c.f32("scale")
    return ops.Quantize(offset=n.offset, src=src, dst=dst, scale=scale, bias=float(zero))


def read_pad(n: Node) -> Operation:
    """0x05; elements of the input's type, whatever the pad value says of its own."""
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    pads = tuple(n.pad("padding") for _ in range(4))
    n.c.u32("pad value type")
    raw = bytes(n.c.array("u1", 4, "pad value"))
    value = struct.unpack("<f", raw)[0] if src.dtype == FLOAT else raw[0]
    out = tuple(size + sum(p) for size, p in zip(shape, pads, strict=True))
    return moves.Pad(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, out, "output"),
        pads=pads,
        value=float(value),
    )


def read_reduce(n: Node) -> Operation:
    """0x07; the mean multiplies the sum by 1 / count."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    op = n.choice(REDUCE, "reduce operator")
    shape, out = n.shape("input shape"), n.shape("output shape")
    axes = tuple(i for i in range(4) if out[i] == 1 and shape[i] != 1)
    return ops.Reduce(
        offset=n.offset,
        op=op,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, out, "output"),
        axes=axes,
        keep=True,
        initial=n.c.f32("initial value"),
        reciprocal=True,
    )


def read_memory_copy(n: Node) -> Operation:
    """0x09: what the input has, as it is.

    The runtime copies whole words of four bytes; here up to three bytes after them come too.
    """
    src, dst = n.range("input"), n.range("output")
    if src.space == "kpu" or dst.space == "kpu":
        raise n.c.error("a copy of AI RAM is not supported")
    if src.size > dst.size:
        raise n.c.error(f"{src.size} bytes into {dst.size}")
    dst = View(dst.space, dst.start, src.shape, src.dtype)
    return ops.Copy(offset=n.offset, src=src, dst=dst)


def read_resize_image(n: Node) -> Operation:
    """0x0A; align_corners counts for bilinear only."""
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    oh, ow = n.c.read("2i", "output size")
    mode = n.choice(RESIZE_MODES, "resize mode")
    align = n.c.u8("align_corners")
    return ops.Resize(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, (*shape[:2], oh, ow), "output"),
        mode=mode,
        align=bool(align) and mode == "bilinear",
    )


def read_softmax(n: Node) -> Operation:
    """0x0B."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    inner, outer, beta = n.c.i32("inner size"), n.c.i32("outer size"), n.c.f32("beta")
    return ops.Softmax(
        offset=n.offset,
        src=n.shaped(src, (outer, inner), "input"),
        dst=n.shaped(dst, (outer, inner), "output"),
        axis=1,
        beta=beta,
    )


def read_transpose(n: Node) -> Operation:
    """0x0C."""
    src, dst = n.range("input"), n.range("output")
    shape, perm = n.shape("input shape"), n.shape("permutation")
    if sorted(perm) != [0, 1, 2, 3]:
        raise n.c.error(f"permutation {list(perm)}")
    return moves.Transpose(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, tuple(shape[p] for p in perm), "output"),
        perm=perm,
    )


def read_strided_slice(n: Node) -> Operation:
    """0x0D; the compiler has worked the masks into begin and end, the runtime passes them over."""
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    begin, end, stride = (n.shape(what) for what in ("begin", "end", "strides"))
    n.c.read("5i", "masks")
    if 0 in stride or any(s > 0 > e for s, e in zip(stride, end, strict=True)):
        raise n.c.error(f"strides {list(stride)} to {list(end)}")
    parts = map(ops.k.slice_axis, begin, end, stride)
    out = tuple(len(range(max(0, size))[part]) for size, part in zip(shape, parts, strict=True))
    return moves.StridedSlice(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, out, "output"),
        begin=begin,
        end=end,
        stride=stride,
    )


def read_unary(n: Node) -> Operation:
    """0x0E."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    op = n.choice(UNARY_V4, "unary operator")
    return ops.Unary(offset=n.offset, op=op, src=src, dst=dst)


def read_table_lookup1d(n: Node) -> Operation:
    """0x12."""
    at = n.c.position
    src, table, dst = n.range("input"), n.range("table", BYTES), n.range("output", BYTES)
    if src.dtype != BYTES:
        raise n.c.blob.error(at, f"input of type {src.kind}, expected u8")
    return ops.TableLookup(offset=n.offset, src=src, dst=dst, table=table)


def read_nnil_unary_method(n: Node) -> Operation:
    """0x14."""
    src, dst = n.range("input", FLOAT), n.range("output", FLOAT)
    at = n.c.position
    code = nnil.decode_nnil(bytes(n.c.array("u1", n.c.left, "code")))
    if isinstance(code, str):
        raise n.c.blob.error(at, f"nnil_unary_method: {code}")
    return nnil.NnilUnary(offset=n.offset, src=src, dst=dst, code=code)
