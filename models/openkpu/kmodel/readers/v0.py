# SPDX-License-Identifier: Apache-2.0
"""kmodel v0 ("model.bin" of the Model Compiler) and v1: nothing but KPU layers (docs/kpu.md 4)."""

from __future__ import annotations

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.operations.operations import Dequantize
from openkpu.kmodel.program import (
    RAM_BYTES,
    KpuLayer,
    ModelTensor,
    Operation,
    Program,
    Quant,
    Upload,
    View,
)
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.readers.layers import ACT_BYTES, make_layer, read_arg, table_bytes
from openkpu.layer.argument import LayerArg

# offset of its entry, argument, offsets of weights, batch norm and activation
Layer = tuple[int, LayerArg, int, int, int]


def read_v0(blob: Blob) -> Program:
    """A v0 file: 24-byte header, then six words per layer that say where its tables are."""
    head = blob.cursor(0, None, "header")
    head.u32("magic")
    count = head.count("layer count", 24)
    table = head.u32("layer table offset")
    eight_bit = head.u32("eight_bit_mode")
    if eight_bit > 1:
        raise blob.error(12, f"eight_bit_mode = {eight_bit}, expected 0 or 1")
    quant = Quant(head.f32("output scale"), head.f32("output bias"))
    rows = blob.cursor(table, 24 * count, "layer table")
    layers = []
    for index in range(count):
        at = rows.position
        reg, act, bn, bn_bytes, weights, weight_bytes = rows.read("6I", f"layer {index}")
        arg = read_arg(blob, reg)
        blob.bytes(act, ACT_BYTES, "activation table")
        want = table_bytes(arg, bool(eight_bit))
        if (weight_bytes, bn_bytes) != want:
            raise blob.error(
                at,
                f"layer {index}: {weight_bytes} bytes of weights and {bn_bytes} of batch norm, "
                f"expected {want[0]} and {want[1]}",
            )
        layers.append((at, arg, weights, bn, act))
    return _kpu_only(blob, 0, bool(eight_bit), layers, None, quant)


def read_v1(blob: Blob) -> Program:
    """A v1 file: 20-byte header, 28 bytes per layer, arguments one after the other."""
    head = blob.cursor(0, None, "header")
    head.u32("version")
    flags = head.u32("flags")
    count = head.count("layer count", 28 + 96)
    head.u32("max_start_address")
    arguments = head.u32("layers_argument_start")
    eight_bit = bool(flags & 1)
    layers: list[Layer] = []
    in_quant: Quant | None = None
    out_quant = Quant(1.0, 0.0)  # a file without layers is refused below
    for index in range(count):
        at = head.position
        weights, bn, act = head.read("3I", f"layer {index}")
        in_scale, in_bias, out_scale, out_bias = head.read("4f", f"layer {index}")
        in_quant = in_quant or Quant(in_scale, in_bias)
        out_quant = Quant(out_scale, out_bias)
        layers.append((at, read_arg(blob, arguments + 96 * index), weights, bn, act))
    return _kpu_only(blob, 1, eight_bit, layers, in_quant, out_quant)


def _kpu_only(
    blob: Blob,
    version: int,
    eight_bit: bool,
    layers: list[Layer],
    in_quant: Quant | None,
    out_quant: Quant,
) -> Program:
    """Upload, all layers, and the last one's map as float."""
    if not layers:
        raise KmodelError(f"{blob.name}: a model without layers")
    first, last = layers[0][1], layers[-1][1]
    source = View("input0", 0, (1, *first.in_shape))
    stored = View("main", 0, (1, *last.out_shape))
    result = View("output0", 0, stored.shape, "<f4")
    operations: list[Operation] = [
        Upload(offset=layers[0][0], src=source, base=first.image_src_addr, implicit=True)
    ]
    for index, (at, arg, weights, bn, act) in enumerate(layers):
        operations.append(
            make_layer(
                blob,
                at,
                arg,
                weights=weights,
                bn=bn,
                act=act,
                eight_bit=eight_bit,
                main_out=stored if index == len(layers) - 1 else None,
            )
        )
    assert isinstance(operations[-1], KpuLayer)
    operations.append(
        Dequantize(
            offset=layers[-1][0],
            src=stored,
            dst=result,
            scale=out_quant.scale,
            bias=out_quant.bias,
        )
    )
    sizes = {"input0": source.size, "main": stored.size, "output0": result.size, "kpu": RAM_BYTES}
    return Program(
        file=blob.name,
        version=version,
        eight_bit=eight_bit,
        sizes=sizes,
        inputs=[ModelTensor("input0", source, in_quant)],
        outputs=[ModelTensor("output0", result, out_quant)],
        operations=operations,
    )
