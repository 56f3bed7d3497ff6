# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX Runtime, or its quantiser, has for fewer cases, spelled out in others."""

from __future__ import annotations

from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.onnx.shared import padded_ends

REDUCED = {
    "ReduceL1": ("Abs", "ReduceSum"),
    "ReduceL2": ("Mul", "ReduceSum", "Sqrt"),
    "ReduceMin": ("Neg", "ReduceMax", "Neg"),
    "ReduceSumSquare": ("Mul", "ReduceSum"),
}
SPREAD = frozenset(("Add", "Sub", "Mul", "Div", "Max", "Min"))


def spell_pads(model: Any) -> None:
    """SAME of a dilated convolution as numbers: ONNX Runtime has it for others alone."""
    import onnx
    from onnx import helper

    nodes = [n for n in model.graph.node if n.op_type == "Conv"]
    fields = [{a.name: helper.get_attribute_value(a) for a in n.attribute} for n in nodes]
    found = [
        (node, its)
        for node, its in zip(nodes, fields, strict=True)
        if max(its.get("dilations", [1])) > 1 and its.get("auto_pad", b"").startswith(b"SAME_")
    ]
    if not found:
        return
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info)
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
    sizes |= {t.name: list(t.dims) for t in graph.initializer}
    for node, its in found:
        x, w = (sizes.get(tensor, [])[2:] for tensor in node.input[:2])
        steps = its.get("strides", [1] * len(x))
        if not x or not all(x) or not len(x) == len(w) == len(steps) == len(its["dilations"]):
            continue  # ONNX Runtime says what it is that it cannot run
        ends = [
            padded_ends(*axis, its["auto_pad"].decode())
            for axis in zip(x, w, steps, its["dilations"], strict=True)
        ]
        del node.attribute[[a.name for a in node.attribute].index("auto_pad")]
        pads = [first for first, _ in ends] + [last for _, last in ends]
        node.attribute.append(helper.make_attribute("pads", pads))


def spell_sums(net: Net) -> None:
    """Sum of more than two as sums of two; Concat without constants that have no elements."""
    from onnx import helper

    made: list[Any] = []
    for node in net.nodes:
        if node.op_type == "Concat":
            kept = [n for n in node.input if n not in net.constants or net.constants[n].size]
            if kept:
                node.input[:] = kept
        if node.op_type != "Sum" or len(node.input) < 3:
            made.append(node)
            continue
        so_far = node.input[0]
        for i, name in enumerate(node.input[1:], 1):
            last = i == len(node.input) - 1
            y = node.output[0] if last else f"{node.output[0]}/{i}"
            label = node.name if last else f"{node.name}/{i}"
            made.append(helper.make_node("Add", [so_far, name], [y], label))
            net.floats.add(y)
            shapes = [net.shapes.get(n) for n in (so_far, name)]
            if all(shapes):
                net.shapes[y] = np.broadcast_shapes(*shapes)  # pyright: ignore
            so_far = y
    net.nodes = made


def spell_expands(net: Net) -> None:
    """An Expand whose readers spread their operands anyway."""
    for node in [n for n in net.nodes if n.op_type == "Expand"]:
        x, name = node.input[0], node.output[0]
        readers = net.readers(name)
        others = [[i for i in n.input if i != name] for n in readers]
        full = net.shapes.get(name)
        spread = all(
            n.op_type in SPREAD and [net.shapes.get(i) for i in rest] == [full]
            for n, rest in zip(readers, others, strict=True)
        )
        if not readers or not spread or name in net.outputs or x not in net.shapes:
            continue
        for reader in readers:
            reader.input[:] = [x if n == name else n for n in reader.input]
        net.nodes = [n for n in net.nodes if n is not node]


def spell_reductions(net: Net) -> None:
    """Reductions of squares and of absolute numbers, and minima, by the ones that readers have."""
    from onnx import helper

    made: list[Any] = []
    for node in net.nodes:
        if node.op_type not in REDUCED:
            made.append(node)
            continue
        steps, x, shape = REDUCED[node.op_type], node.input[0], net.shapes.get(node.input[0])
        for i, kind in enumerate(steps):
            last = i == len(steps) - 1
            y = node.output[0] if last else f"{node.output[0]}/{i}"
            inputs = [x, x] if kind == "Mul" else [x]
            fields = {}
            if kind.startswith("Reduce"):
                inputs += node.input[1:]
                given = attribute(node, "axes", None)
                if kind == "ReduceSum" and given is not None:  # an input since opset 13
                    axes = f"{node.output[0]}/axes"
                    net.constants[axes] = np.array(given, np.int64)
                    net.shapes[axes] = net.constants[axes].shape
                    inputs.append(axes)
                fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
                fields = {k: v for k, v in fields.items() if k != "axes" or kind != "ReduceSum"}
                shape = net.shapes.get(node.output[0])
            label = node.name if last else f"{node.name}/{i}"
            made.append(helper.make_node(kind, inputs, [y], label, **fields))
            net.floats.add(y)
            if shape is not None:
                net.shapes[y] = shape
            x = y
    net.nodes = made


def spell_logarithms(net: Net) -> None:
    """log(softmax(x)) as one operator: bytes of the softmax would lose what is small."""
    for node in list(net.nodes):
        maker = net.maker(node.input[0]) if node.op_type == "Log" else None
        if maker is not None and maker.op_type == "Softmax" and net.alone(node.input[0]):
            maker.op_type, maker.output[0] = "LogSoftmax", node.output[0]
            net.nodes = [n for n in net.nodes if n is not node]


def spell_lrn(net: Net) -> None:
    """LRN, x / (bias + alpha / size * sum of squares of its neighbours)^beta, as a square, a 1x1
    convolution that adds up the channels, a function and a product."""
    from onnx import helper

    made: list[Any] = []
    for node in net.nodes:
        x, y = node.input[0] if node.input else "", node.output[0]
        shape = net.shapes.get(x, ())
        if node.op_type != "LRN" or len(shape) != 4:
            made.append(node)
            continue
        size, alpha, beta, bias = (
            attribute(node, name, default)
            for name, default in (("size", 1), ("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
        )
        apart = np.arange(shape[1])[None] - np.arange(shape[1])[:, None]
        near = (apart >= -((size - 1) // 2)) & (apart <= size // 2)
        weights = net.put(f"{node.name}.neighbours", near[..., None, None] * (alpha / size))
        offset = net.put(f"{node.name}.bias", np.full(shape[1], bias))
        power = net.put(f"{node.name}.power", np.array(-beta))
        steps = (
            ("Mul", [x, x], f"{y}/square"),
            ("Conv", [f"{y}/square", weights, offset], f"{y}/sum"),
            ("Pow", [f"{y}/sum", power], f"{y}/factor"),
            ("Mul", [x, f"{y}/factor"], y),
        )
        for kind, inputs, output in steps:
            label = node.name if output == y else f"{node.name}/{kind.lower()}"
            made.append(helper.make_node(kind, inputs, [output], label))
            net.shapes[output] = shape
            net.floats.add(output)
    net.nodes = made
