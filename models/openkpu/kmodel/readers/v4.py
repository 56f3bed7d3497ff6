# SPDX-License-Identifier: Apache-2.0
"""kmodel v4 (nncase 0.2): the container and what runs on the KPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openkpu.kmodel.operations import moves
from openkpu.kmodel.operations import operations as ops
from openkpu.kmodel.program import RAM_BYTES, ModelTensor, Operation, Program, Upload, View
from openkpu.kmodel.readers import neutral4 as neutral
from openkpu.kmodel.readers import products4 as products
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.readers.layers import ACT_BYTES, ARG_BYTES, make_layer, read_arg, table_bytes
from openkpu.kmodel.readers.node4 import Node, kpu_row
from openkpu.kmodel.readers.shapes import concatenated


def _upload(n: Node) -> Operation:
    src, dst = n.range("input"), n.range("output")
    shape = n.shape("input shape")
    return Upload(
        offset=n.offset, src=n.shaped(src, shape, "input"), base=kpu_row(n.c.blob, n.offset, dst)
    )


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


READERS: dict[int, tuple[str, Callable[[Node], Operation]]] = {
    0x00: ("binary", neutral.read_binary),
    0x01: ("concat", neutral.read_concat),
    0x02: ("conv2d", products.read_conv2d),
    0x03: ("dequantize", neutral.read_dequantize),
    0x04: ("matmul", products.read_matmul),
    0x05: ("pad", neutral.read_pad),
    0x06: ("quantize", neutral.read_quantize),
    0x07: ("reduce", neutral.read_reduce),
    0x08: ("reduce_window2d", products.read_reduce_window2d),
    0x09: ("memory_copy", neutral.read_memory_copy),
    0x0A: ("resize_image", neutral.read_resize_image),
    0x0B: ("softmax", neutral.read_softmax),
    0x0C: ("transpose", neutral.read_transpose),
    0x0D: ("strided_slice", neutral.read_strided_slice),
    0x0E: ("unary", neutral.read_unary),
    0x0F: ("quantized_conv2d", products.read_quantized_conv2d),
    0x10: ("quantized_matmul", products.read_quantized_matmul),
    0x11: ("quantized_binary", neutral.read_quantized_binary),
    0x12: ("table_lookup1d", neutral.read_table_lookup1d),
    0x13: ("conv2d_transpose", products.read_conv2d_transpose),
    0x14: ("nnil_unary_method", neutral.read_nnil_unary_method),
    0x1001: ("cpu_conv2d", products.read_cpu_conv2d(False, False)),
    0x1002: ("cpu_depthwise_conv2d", products.read_cpu_conv2d(True, False)),
    0x1003: ("cpu_reduce_window2d", products.read_cpu_reduce_window2d),
    0x1004: ("cpu_quantized_conv2d", products.read_cpu_conv2d(False, True)),
    0x1005: ("cpu_quantized_depthwise_conv2d", products.read_cpu_conv2d(True, True)),
    0x2001: ("kpu_upload", _upload),
    0x2002: ("kpu_conv2d", _kpu_conv2d),
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
        inputs.append(ModelTensor(f"input{i}", op.src))
        sizes[f"input{i}"] = op.src.size
    for index, (opcode, size) in enumerate(headers):
        name, reader = READERS.get(opcode, ("unknown", None))
        what = f"body of node {index} ({name}, opcode 0x{opcode:x})"
        body = head.body(size, what, name, last=index == nodes - 1)
        if reader is None:
            raise blob.error(
                body.position, f"operation unknown (opcode 0x{opcode:x}) is not supported"
            )
        operations.append(reader(Node(body, body.position)))
    return Program(
        file=blob.name,
        version=4,
        eight_bit=True,
        sizes=sizes,
        inputs=inputs,
        outputs=[
            ModelTensor(f"output{i}", _shape_of(operations, v)) for i, v in enumerate(outputs)
        ],
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
            src, shape = getattr(op, "src", None), _stored(dst)
            if isinstance(src, View) and len(shape) == 1:
                shape = shapes.get((src.space, src.start), shape)
            if isinstance(op, moves.Concat):  # in bytes, whatever the elements are
                parts = [shapes.get((part.space, part.start)) for part in op.sources]
                if (joined := concatenated(op, parts)) is not None:
                    shapes[dst.space, dst.start] = joined
                    continue
            if np.prod(shape, dtype=object) != dst.count:
                shape = _stored(dst)
            shapes[dst.space, dst.start] = shape
    shape = shapes.get((view.space, view.start), view.shape)
    return view.flat(*shape) if np.prod(shape, dtype=object) == view.count else view


def _stored(view: View) -> tuple[int, ...]:
    """The shape in the order of memory: (N, H, W, C) for a map that the CPU target made."""
    if view.strides is None:
        return view.shape
    places = zip(view.strides, view.shape, strict=True)
    order = [axis for *_, axis in sorted((-s, -n, axis) for axis, (s, n) in enumerate(places))]
    return tuple(view.shape[axis] for axis in order)
