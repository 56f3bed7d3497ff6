# SPDX-License-Identifier: Apache-2.0
"""kmodel v4 (nncase 0.2), docs/kpu.md 4."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable

import numpy as np

from . import nnil
from . import operations as ops
from .binary import Blob, Cursor
from .layers import ACT_BYTES, ARG_BYTES, make_layer, read_arg, table_bytes
from .names import BINARY_V4, REDUCE, RESIZE_MODES, UNARY_V4, words
from .operations import FULL
from .products import Conv2d, MatMul, QuantMatMul
from .program import RAM_BYTES, Operation, Program, Tensor, Upload, View

SPACES = {0: "const", 1: "main", 2: "kpu"}
DTYPES = {0: "<f4", 1: "u1"}
NAMES = words(
    "binary concat conv2d dequantize matmul pad quantize reduce reduce_window2d memory_copy "
    "resize_image softmax transpose strided_slice unary quantized_binary quantized_conv2d "
    "quantized_matmul table_lookup1d conv2d_transpose nnil_unary_method"
)
KPU_UPLOAD, KPU_CONV2D = 0x2001, 0x2002


@dataclasses.dataclass
class Node:
    """One node's body while it is read."""

    c: Cursor
    offset: int
    eight_bit: bool = True

    def range(self, what: str) -> View:
        """A memory range as a vector."""
        at = self.c.position
        space, dtype, start, size = self.c.read("4I", what)
        if space not in SPACES or dtype not in DTYPES:
            raise self.c.blob.error(
                at, f"{what} in memory {space} of type {dtype}, expected 0..2 and 0..1"
            )
        item = 4 if dtype == 0 else 1
        if size % item:
            raise self.c.blob.error(at, f"{what} of {size} bytes of float")
        return View(SPACES[space], start, (size // item,), DTYPES[dtype])

    def shaped(self, view: View, shape: tuple[int, ...], what: str) -> View:
        """The range as a tensor of ``shape``, whose size must be right."""
        view_shape = view.flat(*shape)
        if view_shape.count != view.count or any(n < 1 for n in shape):
            raise self.c.error(f"{what} of {view.count} elements for shape {list(shape)}")
        return view_shape

    def shape(self, what: str) -> tuple[int, int, int, int]:
        return self.c.read("4i", what)

    def pad(self, what: str) -> tuple[int, int]:
        return self.c.read("2i", what)

    def clamp(self) -> tuple[float, float]:
        """Fused activation; the largest float means none."""
        low, high = self.c.read("2f", "fused activation")
        return FULL if low < -3.4e38 and high > 3.4e38 else (low, high)

    def choice(self, names: tuple[str, ...], what: str) -> str:
        at, value = self.c.position, self.c.u32(what)
        if value >= len(names):
            raise self.c.blob.error(at, f"{what} {value} is not supported")
        return names[value]


def _binary(n: Node) -> Operation:
    a, b, out = n.range("input a"), n.range("input b"), n.range("output")
    op = n.choice(BINARY_V4, "binary operator")
    shapes = [n.shape("shape") for _ in range(3)]
    a, b, out = (n.shaped(v, s, "tensor") for v, s in zip((a, b, out), shapes, strict=True))
    return ops.Binary(offset=n.offset, op=op, a=a, b=b, dst=out, clamp=n.clamp())


def _quantized_binary(n: Node) -> Operation:
    a, b, out = n.range("input a"), n.range("input b"), n.range("output")
    op = n.choice(BINARY_V4, "binary operator")
    shapes = [n.shape("shape") for _ in range(3)]
    a, b, out = (n.shaped(v, s, "tensor") for v, s in zip((a, b, out), shapes, strict=True))
    params = [n.c.read("3i", "scale") for _ in range(3)]
    return ops.QuantBinary(
        offset=n.offset,
        op=op,
        a=a,
        b=b,
        dst=out,
        a_param=params[0],
        b_param=params[1],
        out_param=params[2],
    )


def _concat(n: Node) -> Operation:
    out = n.range("output")
    inner, outer = n.c.u32("inner size"), n.c.u32("outer size")
    count = n.c.count("inputs", 20)
    inputs = [n.range("input") for _ in range(count)]
    dims = [n.c.i32("dimension") for _ in range(count)]
    sources = []
    for view, dim in zip(inputs, dims, strict=True):
        flat = View(view.space, view.start, (view.size,))
        sources.append(n.shaped(flat, (outer, inner * dim), "input"))
    dst = View(out.space, out.start, (outer, inner * sum(dims)))
    return ops.Concat(offset=n.offset, sources=tuple(sources), dst=dst)


def _conv_body(n: Node) -> dict:
    """What float and quantised convolutions have in common."""
    src, out = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    groups, o = n.c.i32("groups"), n.c.i32("output channels")
    pads = n.pad("padding h"), n.pad("padding w")
    kh, kw, sh, sw, dh, dw = n.c.read("6i", "window")
    if min(groups, o, kh, kw) < 1 or shape[1] % groups or max(o, kh, kw) > 1 << 16:
        raise n.c.error(f"{o} channels in {groups} groups, window {kh} x {kw}, input {shape}")
    return {
        "src": n.shaped(src, shape, "input"),
        "out": out,
        "groups": groups,
        "pads": pads,
        "stride": (sh, sw),
        "dilation": (dh, dw),
        "kernel": (o, shape[1] // groups, kh, kw),
    }


def _conv_output(n: Node, body: dict) -> View:
    src, (o, _, kh, kw) = body["src"], body["kernel"]
    if min(*body["stride"], *body["dilation"]) < 1:
        raise n.c.error(f"stride {body['stride']}, dilation {body['dilation']}")
    size = [
        ops.k.out_size(*args)
        for args in zip(
            src.shape[2:],
            (kh, kw),
            body["stride"],
            body["dilation"],
            body["pads"],
            strict=True,
        )
    ]
    return n.shaped(body["out"], (src.shape[0], o, *size), "output")


def _conv2d(n: Node) -> Operation:
    body = _conv_body(n)
    clamp = n.clamp()
    kernel = body["kernel"]
    weights = n.c.array("<f4", int(np.prod(kernel, dtype=object)), "weights").reshape(kernel)
    return Conv2d(
        offset=n.offset,
        src=body["src"],
        dst=_conv_output(n, body),
        weights=weights,
        bias=n.c.array("<f4", kernel[0], "bias"),
        groups=body["groups"],
        stride=body["stride"],
        dilation=body["dilation"],
        pads=body["pads"],
        clamp=clamp,
    )


def _quantized_conv2d(n: Node) -> Operation:
    body = _conv_body(n)
    in_offset, filter_offset, mul, shift, out_offset = n.c.read("5i", "scale")
    kernel = body["kernel"]
    bias = n.c.array("<i4", kernel[0], "bias")
    weights = n.c.array("u1", int(np.prod(kernel, dtype=object)), "weights").reshape(kernel)
    return Conv2d(
        offset=n.offset,
        src=body["src"],
        dst=_conv_output(n, body),
        weights=weights,
        bias=bias,
        groups=body["groups"],
        stride=body["stride"],
        dilation=body["dilation"],
        pads=body["pads"],
        offsets=(in_offset, filter_offset),
        out_param=(out_offset, mul, shift),
    )


def _dequantize(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    zero, scale = n.c.i32("zero point"), n.c.f32("scale")
    with np.errstate(all="ignore"):
        step = float(np.float32(1) / np.float32(scale))
    return ops.Dequantize(offset=n.offset, src=src, dst=dst, scale=step, zero=zero)


def _quantize(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    zero, scale = n.c.i32("zero point"), n.c.f32("scale")
    return ops.Quantize(offset=n.offset, src=src, dst=dst, scale=scale, bias=float(zero))


def _matrices(n: Node) -> tuple[View, View, View, int]:
    a, b, out = n.range("input a"), n.range("input b"), n.range("output")
    rows, inner, columns = n.c.read("3i", "sizes")
    return (
        n.shaped(a, (rows, inner), "input a"),
        n.shaped(b, (inner, columns), "input b"),
        n.shaped(out, (rows, columns), "output"),
        columns,
    )


def _matmul(n: Node) -> Operation:
    a, b, out, columns = _matrices(n)
    clamp = n.clamp()
    bias = n.c.array("<f4", columns, "bias")
    return MatMul(offset=n.offset, a=a, b=b, bias=bias, dst=out, clamp=clamp)


def _quantized_matmul(n: Node) -> Operation:
    a, b, out, columns = _matrices(n)
    a_offset, b_offset, mul, shift, offset = n.c.read("5i", "scale")
    return QuantMatMul(
        offset=n.offset,
        a=a,
        b=b,
        dst=out,
        offsets=(a_offset, b_offset),
        out_param=(offset, mul, shift),
        bias=n.c.array("<i4", columns, "bias"),
    )


def _pad(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    pads = tuple(n.pad("padding") for _ in range(4))
    dtype = n.c.u32("pad value type")
    raw = bytes(n.c.array("u1", 4, "pad value"))
    value = struct.unpack("<f", raw)[0] if src.dtype == "<f4" else raw[0]
    if dtype not in DTYPES:
        raise n.c.error(f"pad value of type {dtype}")
    out = tuple(size + sum(p) for size, p in zip(shape, pads, strict=True))
    return ops.Pad(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, out, "output"),
        pads=pads,
        value=float(value),
    )


def _reduce(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
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
    )


def _reduce_window(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    op = n.choice(REDUCE, "reduce operator")
    shape = n.shape("input shape")
    pads = n.pad("padding h"), n.pad("padding w")
    kh, kw, sh, sw, dh, dw = n.c.read("6i", "window")
    initial = n.c.f32("initial value")
    if min(sh, sw, dh, dw) < 1:
        raise n.c.error(f"stride ({sh}, {sw}), dilation ({dh}, {dw})")
    size = [
        ops.k.out_size(*args)
        for args in zip(shape[2:], (kh, kw), (sh, sw), (dh, dw), pads, strict=True)
    ]
    return ops.ReduceWindow(
        offset=n.offset,
        op=op,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, (*shape[:2], *size), "output"),
        window=(kh, kw),
        stride=(sh, sw),
        dilation=(dh, dw),
        pads=pads,
        initial=initial,
        clamp=n.clamp(),
    )


def _memory_copy(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    if src.space == "kpu" or dst.space == "kpu":
        raise n.c.error("a copy of AI RAM is not supported")
    return ops.Copy(offset=n.offset, src=src, dst=dst)


def _resize(n: Node) -> Operation:
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


def _softmax(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    inner, outer, beta = n.c.i32("inner size"), n.c.i32("outer size"), n.c.f32("beta")
    return ops.Softmax(
        offset=n.offset,
        src=n.shaped(src, (outer, inner), "input"),
        dst=n.shaped(dst, (outer, inner), "output"),
        axis=1,
        beta=beta,
    )


def _transpose(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    shape, perm = n.shape("input shape"), n.shape("permutation")
    if sorted(perm) != [0, 1, 2, 3]:
        raise n.c.error(f"permutation {list(perm)}")
    return ops.Transpose(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, tuple(shape[p] for p in perm), "output"),
        perm=perm,
    )


def _strided_slice(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    begin, end, stride = (n.shape(what) for what in ("begin", "end", "strides"))
    if 0 in stride:
        raise n.c.error(f"strides {list(stride)}")
    parts = map(ops.k.slice_axis, begin, end, stride)
    out = tuple(len(range(max(0, size))[part]) for size, part in zip(shape, parts, strict=True))
    return ops.StridedSlice(
        offset=n.offset,
        src=n.shaped(src, shape, "input"),
        dst=n.shaped(dst, out, "output"),
        begin=begin,
        end=end,
        stride=stride,
    )


def _unary(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    op = n.choice(UNARY_V4, "unary operator")
    return ops.Unary(offset=n.offset, op=op, src=src, dst=dst)


def _table_lookup(n: Node) -> Operation:
    src, table, dst = n.range("input"), n.range("table"), n.range("output")
    return ops.TableLookup(offset=n.offset, src=src, dst=dst, table=table)


def _nnil(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    at = n.c.position
    code = nnil.decode(bytes(n.c.array("u1", n.c.left, "code")))
    if isinstance(code, str):
        raise n.c.blob.error(at, f"nnil_unary_method: {code}")
    return nnil.NnilUnary(offset=n.offset, src=src, dst=dst, code=code)


def _upload(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    return Upload(
        offset=n.offset, src=n.shaped(src, shape, "input"), base=kpu_row(n.c.blob, n.offset, dst)
    )


def kpu_row(blob: Blob, offset: int, view: View) -> int:
    """AI RAM row of a range that must be there."""
    if view.space != "kpu" or view.start % 64:
        raise blob.error(offset, f"{view} is not a row of the AI RAM")
    return view.start // 64


def _kpu_conv2d(n: Node) -> Operation:
    out = n.range("main memory output")
    batches, _ = n.c.read("2i", "batches")
    arg = read_arg(n.c.blob, n.c.take(ARG_BYTES, "layer argument"))
    # the address fields hold the padding before each table
    weight_bytes, bn_bytes = table_bytes(arg, n.eight_bit)
    places = []
    for skip, size, what in (
        (arg.bwsx_base_addr, bn_bytes, "batch norm"),
        (arg.active_addr, ACT_BYTES, "activation table"),
        (arg.para_start_addr, weight_bytes, "weights"),
    ):
        n.c.take(skip, f"padding before {what}")
        places.append(n.c.take(size, what))
    return make_layer(
        n.c.blob,
        n.offset,
        arg,
        bn=places[0],
        act=places[1],
        weights=places[2],
        eight_bit=n.eight_bit,
        batches=batches,
        main_out=n.shaped(out, (batches, *arg.out_shape), "output") if out.count else None,
    )


READERS: dict[int, Callable[[Node], Operation]] = {
    0x0: _binary,
    0x1: _concat,
    0x2: _conv2d,
    0x3: _dequantize,
    0x4: _matmul,
    0x5: _pad,
    0x6: _quantize,
    0x7: _reduce,
    0x8: _reduce_window,
    0x9: _memory_copy,
    0xA: _resize,
    0xB: _softmax,
    0xC: _transpose,
    0xD: _strided_slice,
    0xE: _unary,
    0xF: _quantized_binary,
    0x10: _quantized_conv2d,
    0x11: _quantized_matmul,
    0x12: _table_lookup,
    0x14: _nnil,
    KPU_UPLOAD: _upload,
    KPU_CONV2D: _kpu_conv2d,
}


def read_v4(blob: Blob) -> Program:
    """A v4 file; KmodelError for what is wrong with it."""
    head = blob.cursor(8, None, "header")
    flags, target, constants, main_size = head.read("4I", "header")
    if target > 1:
        raise blob.error(12, f"target {target}, expected 1 (K210) or 0 (CPU)")
    nodes = head.count("node count", 8)
    in_count, out_count = head.count("input count", 32), head.count("output count", 16)
    head.u32("reserved")
    node = Node(head, head.position)
    ranges = [node.range("input") for _ in range(in_count)]
    shapes = [node.shape("input shape") for _ in range(in_count)]
    outputs = [node.range("output") for _ in range(out_count)]
    data = head.array("u1", constants, "constants")
    headers = [head.read("2I", f"node header {i}") for i in range(nodes)]
    operations: list[Operation] = []
    inputs, sizes = [], {"main": main_size, "kpu": RAM_BYTES, "const": constants}
    for i, (view, shape) in enumerate(zip(ranges, shapes, strict=True)):
        op = _input(blob, i, view, shape)
        operations.append(op)
        inputs.append(Tensor(f"input{i}", op.src))
        sizes[f"input{i}"] = op.src.size
    for index, (opcode, size) in enumerate(headers):
        start = head.take(size, f"body of node {index} (opcode 0x{opcode:x})")
        reader = READERS.get(opcode)
        name = NAMES[opcode] if opcode < len(NAMES) else f"kpu 0x{opcode:x}"
        if reader is None:
            known = name if opcode < len(NAMES) else "unknown"
            raise blob.error(start, f"operation {known} (opcode 0x{opcode:x}) is not supported")
        operations.append(reader(Node(blob.cursor(start, size, name), start)))
    return Program(
        file=blob.name,
        version=4,
        eight_bit=True,
        sizes=sizes,
        inputs=inputs,
        outputs=[Tensor(f"output{i}", _shape_of(operations, v)) for i, v in enumerate(outputs)],
        operations=operations,
        constants={"const": data},
        detail=f"flags {flags}" if flags else "",
    )


def _input(blob: Blob, index: int, view: View, shape: tuple[int, ...]) -> Upload | ops.Copy:
    """The driver's own copy of an input to where the model wants it."""
    place = 40 + 16 * index
    if any(n < 1 for n in shape):
        raise blob.error(place, f"input {index} of shape {list(shape)}")
    source = View(f"input{index}", 0, shape, view.dtype)
    if view.space == "kpu":
        if view.dtype != "u1":
            raise blob.error(place, f"input {index} of float in the AI RAM")
        base = kpu_row(blob, place, view)
        return Upload(offset=place, src=source, base=base, implicit=True)
    if source.count != view.count or view.space != "main":
        raise blob.error(place, f"input {index}: {view} for shape {list(shape)}")
    return ops.Copy(offset=place, src=source, dst=view.flat(*shape))


def _shape_of(operations: list[Operation], view: View) -> View:
    """An output range with the shape that its last writer gave it."""
    shapes: dict[tuple[str, int], tuple[int, ...]] = {}
    for op in operations:
        dst = getattr(op, "main_out", None) or getattr(op, "dst", None)
        if isinstance(dst, View):
            src, shape = getattr(op, "src", None), dst.shape
            if isinstance(src, View) and len(shape) == 1:
                shape = shapes.get((src.space, src.start), shape)
            if np.prod(shape, dtype=object) != dst.count:
                shape = dst.shape
            shapes[dst.space, dst.start] = shape
    shape = shapes.get((view.space, view.start), view.shape)
    return view.flat(*shape) if np.prod(shape, dtype=object) == view.count else view
