# SPDX-License-Identifier: Apache-2.0
"""kmodel v3 (nncase 0.1), run as the driver of kendryte-standalone-sdk runs it (kpu.h, kpu.c)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.operations import moves
from openkpu.kmodel.operations import operations as ops
from openkpu.kmodel.operations.operations import FULL
from openkpu.kmodel.operations.products import FullyConnected
from openkpu.kmodel.program import (
    RAM_BYTES,
    KpuLayer,
    ModelTensor,
    Operation,
    Program,
    Upload,
    View,
)
from openkpu.kmodel.readers.binary import Blob, Cursor
from openkpu.kmodel.readers.layers import make_layer, read_arg
from openkpu.kmodel.readers.shapes import concatenated

FLT_MIN = float(np.finfo(np.float32).tiny)
CLAMPS = {0: FULL, 1: (0.0, float("inf")), 2: (0.0, 6.0)}  # linear, relu, relu6
NAMES = {
    3: "global_max_pool2d",
    4: "quantized_global_max_pool2d",
    6: "quantized_global_average_pool2d",
    7: "max_pool2d",
    10: "quantized_average_pool2d",
    19: "quantized_fully_connected",
    21: "quantized_tensorflow_flatten",
}


def main(start: int, *shape: int, dtype: str = "<f4") -> View:
    return View("main", start, shape, dtype)


def _bytes(start: int, *shape: int) -> View:
    return main(start, *shape, dtype="u1")


@dataclasses.dataclass
class Body:
    """One layer's body while it is read."""

    cursor: Cursor
    offset: int
    eight_bit: bool
    flags: int

    def words(self, names: str) -> list[int]:
        """u32 values named in the space-separated list."""
        return [self.cursor.u32(name) for name in names.split()]

    def ints(self, names: str) -> list[int]:
        return [self.cursor.i32(name) for name in names.split()]

    def shape(self, what: str) -> tuple[int, int, int, int]:
        """(1, C, H, W); stored width, height, channels."""
        w, h, c = self.words(f"{what}.width {what}.height {what}.channels")
        return 1, c, h, w

    def quant(self) -> tuple[float, float]:
        return self.cursor.f32("scale"), self.cursor.f32("bias")


def _add(b: Body) -> Operation:
    x, y, out, count = b.words("in_a in_b out count")
    return ops.Binary(
        offset=b.offset, op="add", a=main(x, count), b=main(y, count), dst=main(out, count)
    )


def _quant_add(b: Body) -> Operation:
    x, y, out, count = b.words("in_a in_b out count")
    params = [
        (offset, mul, shift)
        for offset, mul, shift in (b.ints("offset mul shift") for _ in range(3))
    ]
    return ops.QuantAdd(
        offset=b.offset,
        a=_bytes(x, count),
        b=_bytes(y, count),
        dst=_bytes(out, count),
        a_param=params[0],
        b_param=params[1],
        out_param=params[2],
    )


def _gap(b: Body) -> Operation:
    src, out, size, channels = b.words("in out kernel_size channels")
    return ops.Reduce(
        offset=b.offset,
        op="mean",
        src=main(src, channels, size),
        dst=main(out, channels),
        axes=(1,),
        keep=False,
        initial=0.0,
    )


def _pool(op: str, view: Callable[..., View], activation: bool) -> Callable[[Body], Operation]:
    def read(b: Body) -> Operation:
        src, out = b.words("in out")
        in_shape, out_shape = b.shape("in_shape"), b.shape("out_shape")
        kw, kh, sw, sh, pw, ph = b.words("kernel_w kernel_h stride_w stride_h pad_w pad_h")
        if activation:  # stored, but the vendor's driver does not apply it
            b.cursor.u32("activation")
        # the far padding is whatever makes the stated output size
        after = [
            (n - 1) * s + k - size - p
            for n, s, k, size, p in zip(
                out_shape[2:], (sh, sw), (kh, kw), in_shape[2:], (ph, pw), strict=True
            )
        ]
        return ops.ReduceWindow(
            offset=b.offset,
            op=op,
            src=view(src, *in_shape),
            dst=view(out, *out_shape),
            window=(kh, kw),
            stride=(sh, sw),
            dilation=(1, 1),
            pads=((ph, after[0]), (pw, after[1])),
            initial=0.0,
        )

    return read


def _quantize(b: Body) -> Operation:
    src, out, count = b.words("in out count")
    scale, bias = b.quant()
    return ops.Quantize(
        offset=b.offset,
        src=main(src, count),
        dst=_bytes(out, count),
        scale=scale,
        bias=bias,
        inverse=True,
    )


def _dequantize(b: Body) -> Operation:
    src, out, count = b.words("in out count")
    scale, bias = b.quant()
    return ops.Dequantize(
        offset=b.offset, src=_bytes(src, count), dst=main(out, count), scale=scale, bias=bias
    )


def _requantize(b: Body) -> Operation:
    src, out, count = b.words("in out count")
    table = bytes(b.cursor.array("u1", 256, "table"))
    return ops.TableLookup(
        offset=b.offset, src=_bytes(src, count), dst=_bytes(out, count), table=table
    )


def _vector(make: Callable[[int, View, View], Operation]) -> Callable[[Body], Operation]:
    def read(b: Body) -> Operation:
        src, out, count = b.words("in out channels")
        return make(b.offset, main(src, count), main(out, count))

    return read


def _concat(b: Body) -> Operation:
    out = b.cursor.u32("out")
    ranges = [b.words("start size") for _ in range(b.cursor.count("inputs", 8))]
    sources = tuple(_bytes(start, 1, size) for start, size in ranges)
    total = sum(size for _, size in ranges)
    return moves.Concat(offset=b.offset, sources=sources, dst=_bytes(out, 1, total))


def _fully_connected(b: Body) -> Operation:
    src, out, inner, outer, kind = b.words("in out in_channels out_channels activation")
    if kind not in CLAMPS:
        raise b.cursor.error(f"activation {kind}, expected 0, 1 or 2")
    weights = b.cursor.array("<f4", inner * outer, "weights").reshape(outer, inner)
    return FullyConnected(
        offset=b.offset,
        a=main(src, 1, inner),
        b=weights,
        bias=b.cursor.array("<f4", outer, "biases"),
        dst=main(out, 1, outer),
        transposed=True,
        clamp=CLAMPS[kind],
    )


def _flatten(b: Body) -> Operation:
    src, out = b.words("in out")
    shape = b.shape("shape")
    dst = main(out, shape[0], shape[2], shape[3], shape[1])
    return moves.Transpose(offset=b.offset, src=main(src, *shape), dst=dst, perm=(0, 2, 3, 1))


def _resize(view: Callable[..., View]) -> Callable[[Body], Operation]:
    def read(b: Body) -> Operation:
        src, out = b.words("in out")
        shape = b.shape("in_shape")
        width, height, _ = b.words("out_width out_height align_corners")
        dst = view(out, *shape[:2], height, width)
        return ops.Resize(offset=b.offset, src=view(src, *shape), dst=dst, mode="nearest")

    return read


def _channelwise(b: Body) -> Operation:
    src, out, channels, size = b.words("in out channels channel_size")
    pairs = b.cursor.array("<f4", 2 * channels, "quantisation").reshape(-1, 2)
    return ops.ChannelwiseDequantize(
        offset=b.offset,
        src=_bytes(src, channels, size),
        dst=main(out, channels, size),
        scales=tuple(map(float, pairs[:, 0])),
        biases=tuple(map(float, pairs[:, 1])),
    )


def _conv(b: Body) -> Operation:
    out, layer, weights, bn, act = b.words("main_mem_out layer weights bn act")
    arg = read_arg(b.cursor.blob, layer)
    return make_layer(
        b.cursor.blob,
        b.offset,
        arg,
        weights=weights,
        bn=bn,
        act=act,
        eight_bit=b.eight_bit,
        main_out=_bytes(out, 1, *arg.out_shape) if b.flags & 1 else None,
    )


def _add_padding(b: Body) -> Operation:
    src, row, channels = b.words("in kpu_address channels")
    return moves.PadPixels(offset=b.offset, src=_bytes(src, channels), base=row)


def _remove_padding(b: Body) -> Operation:
    src, out, channels = b.words("in out channels")
    view = dataclasses.replace(_bytes(src, channels), strides=(16,))
    return ops.Copy(offset=b.offset, src=view, dst=_bytes(out, channels))


def _upload(b: Body) -> Operation:
    src, row, w, h, c = b.words("in kpu_address width height channels")
    return Upload(offset=b.offset, src=_bytes(src, 1, c, h, w), base=row)


READERS: dict[int, tuple[str, Callable[[Body], Operation]]] = {
    1: ("add", _add),
    2: ("quant_add", _quant_add),
    5: ("global_average_pool2d", _gap),
    8: ("quant_max_pool2d", _pool("max", _bytes, False)),
    9: ("average_pool2d", _pool("mean", main, True)),
    11: ("quantize", _quantize),
    12: ("dequantize", _dequantize),
    13: ("requantize", _requantize),
    14: ("l2_normalization", _vector(lambda o, s, d: ops.L2Norm(offset=o, src=s, dst=d))),
    15: (
        "softmax",
        _vector(lambda o, s, d: ops.Softmax(offset=o, src=s, dst=d, axis=0, floor=FLT_MIN)),
    ),
    16: ("concat", _concat),
    17: ("quant_concat", _concat),
    18: ("fully_connected", _fully_connected),
    20: ("tensorflow_flatten", _flatten),
    22: ("resize_nearest_neighbor", _resize(main)),
    23: ("quant_resize_nearest_neighbor", _resize(_bytes)),
    24: ("channelwise_dequantize", _channelwise),
    25: ("logistic", _vector(lambda o, s, d: ops.Unary(offset=o, op="sigmoid", src=s, dst=d))),
    10240: ("k210_conv", _conv),
    10241: ("k210_add_padding", _add_padding),
    10242: ("k210_remove_padding", _remove_padding),
    10243: ("k210_upload", _upload),
}


def read_v3(blob: Blob) -> Program:
    """A v3 file; KmodelError for what is wrong with it."""
    head = blob.cursor(0, None, "header")
    head.u32("version")
    flags, arch = head.u32("flags"), head.u32("arch")
    if arch:
        raise blob.error(8, f"architecture {arch}, expected 0 (K210)")
    count = head.count("layer count", 8)
    head.u32("max_start_address")
    main_size = head.u32("main_mem_usage")
    outputs = [head.read("2I", "output") for _ in range(head.count("output count", 8))]
    headers = [head.read("2I", f"layer header {i}") for i in range(count)]
    if not headers:
        raise KmodelError(f"{blob.name}: a model without layers")
    operations = []
    for index, (kind, size) in enumerate(headers):
        name, _ = READERS.get(kind, (NAMES.get(kind, "unknown"), None))
        what = f"body of layer {index} ({name}, type {kind})"
        body = head.body(size, what, name, last=index == count - 1)
        operations.append(_read_layer(kind, body, bool(flags & 1)))
    source = _input(blob, operations)
    program = Program(
        file=blob.name,
        version=3,
        eight_bit=bool(flags & 1),
        sizes={"input0": source.size, "main": main_size, "kpu": RAM_BYTES},
        inputs=[ModelTensor("input0", source)],
        outputs=[
            ModelTensor(f"output{i}", _output(operations, start, size))
            for i, (start, size) in enumerate(outputs)
        ],
        operations=operations,
    )
    return program


def _read_layer(kind: int, cursor: Cursor, eight_bit: bool) -> Operation:
    start = cursor.position
    if kind not in READERS:
        raise cursor.blob.error(start, f"operation {cursor.what} (type {kind}) is not supported")
    flags = cursor.u32("flags")
    return READERS[kind][1](Body(cursor, start, eight_bit, flags))


def _input(blob: Blob, operations: list[Operation]) -> View:
    """The model input; the driver's own upload or copy of it becomes the first operation."""
    first = operations[0]
    if isinstance(first, KpuLayer):
        source = View("input0", 0, (1, *first.arg.in_shape))
        upload = Upload(
            offset=first.offset, src=source, base=first.arg.image_src_addr, implicit=True
        )
        operations.insert(0, upload)
        return source
    target = getattr(first, "a", None) or getattr(first, "src", None)
    if not isinstance(target, View) or not isinstance(
        first, (FullyConnected, ops.Quantize, Upload, moves.PadPixels)
    ):
        raise blob.error(first.offset, f"a model cannot begin with {first.name}")
    source = dataclasses.replace(target, space="input0", start=0)
    operations.insert(0, ops.Copy(offset=first.offset, src=source, dst=target))
    return source


# element-wise: the result lies in memory as the map that it was made of
KEEPING = (
    ops.Quantize,
    ops.Dequantize,
    ops.ChannelwiseDequantize,
    ops.TableLookup,
    ops.L2Norm,
    ops.Softmax,
    ops.Unary,
    ops.Copy,
    ops.Binary,
    ops.QuantAdd,
)


def _output(operations: list[Operation], start: int, size: int) -> View:
    """An output as the last operation that writes there left it; bytes when nobody does."""
    shapes: dict[int, tuple[int, ...]] = {}
    last: tuple[int, ...] = ()  # the KPU's last map
    found: View | None = None
    for op in operations:
        dst = op.main_out if isinstance(op, KpuLayer) else getattr(op, "dst", None)
        if isinstance(op, KpuLayer):
            last = (1, *op.arg.out_shape)
        if not isinstance(dst, View) or dst.space != "main":
            continue
        known = _shape_kept(op, shapes)
        if isinstance(op, ops.ChannelwiseDequantize) and len(known or ()) < 4:
            known = last if _is_flat(dst, last) else None
        if known and np.prod(known, dtype=object) == dst.count:
            dst = dst.flat(*known)
        shapes[dst.start] = dst.shape
        if dst.start == start and dst.size == size:
            found = dst
    return found or View("main", start, (size,))


def _shape_kept(op: Operation, shapes: dict[int, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that the result has because its sources have it, by where those begin; None when
    the operation changes the layout or nothing is known of them."""
    if isinstance(op, moves.Concat):
        return concatenated(op, [shapes.get(view.start) for view in op.sources])
    if not isinstance(op, KEEPING):
        return None
    source = getattr(op, "src", None) or getattr(op, "a", None)
    if not isinstance(source, View) or source.space != "main" or not source.dense:
        return None
    return shapes.get(source.start)


def _is_flat(view: View, shape: tuple[int, ...]) -> bool:
    """Whether (C, H * W) or so is a map of (1, C, H, W)."""
    return len(shape) == 4 and view.shape[-2:] == (shape[1], shape[2] * shape[3])
