# SPDX-License-Identifier: Apache-2.0
"""Normalisations in the form in which ONNX Runtime and its quantiser have them.

Layer normalisations, which exporters before opset 17 write as nine operators, are joined.  With m
the mean of x and v that of (x - m)^2 they are (x - m) / sqrt(v + epsilon), with a factor and a
term.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.net import Net, attribute

NORMALISED = 17  # the first opset with LayerNormalization
LEAST = 1e-3  # lengths below it count as no length


def spell_groups(model: Any) -> None:
    """GroupNormalization as PyTorch spells it: ONNX Runtime has no kernel for it, and the function
    that it calls instead has operators that nothing here reads."""
    import onnx
    from onnx import helper, numpy_helper

    nodes = list(model.graph.node)
    if not any(node.op_type == "GroupNormalization" for node in nodes):
        return
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
    sizes |= {t.name: list(t.dims) for t in inferred.initializer}

    def spelled(node: Any) -> list[Any]:
        x, scale, bias = node.input
        shape = sizes.get(x, [])
        fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        groups = fields.get("num_groups", 0)
        if len(shape) < 3 or groups < 1 or not shape[1] or shape[1] % groups:
            return [node]  # ONNX Runtime says what is wrong with it
        name = node.output[0]

        def constant(what: str, data: npt.NDArray) -> str:
            model.graph.initializer.append(numpy_helper.from_array(data, f"{name}/{what}"))
            return f"{name}/{what}"

        def made(kind: str, *inputs: str, **more: Any) -> Any:
            output = f"{name}/{len(found)}" if more.pop("inner", True) else name
            found.append(helper.make_node(kind, inputs, [output], f"{node.name}{output}", **more))
            return output

        found: list[Any] = []
        flat = constant("flat", np.array([shape[0], groups, -1]))
        ones, zeros = (constant(f"all{v:g}", np.full(groups, v, np.float32)) for v in (1.0, 0.0))
        normal = made(
            "InstanceNormalization",
            made("Reshape", x, flat),
            ones,
            zeros,
            epsilon=fields.get("epsilon", 1e-5),
        )
        normal = made("Reshape", normal, constant("shape", np.array(shape)))
        a_channel = constant("channels", np.array([shape[1], *[1] * (len(shape) - 2)]))
        scale, bias = (made("Reshape", v, a_channel) for v in (scale, bias))
        made("Add", made("Mul", normal, scale), bias, inner=False)
        return found

    del model.graph.node[:]
    for node in nodes:
        model.graph.node.extend(spelled(node) if node.op_type == "GroupNormalization" else [node])


class _Other(Exception):
    """It is no layer normalisation."""


def join_lengths(net: Net) -> None:
    """Vectors by their lengths: ReduceL2, a lower limit, Expand, Div."""
    from onnx import helper

    for node in [n for n in net.nodes if n.op_type == "ReduceL2"]:
        try:
            axes = _axes(net, node)
        except _Other:
            continue
        used, name = [node], node.output[0]
        while net.alone(name) and _limits(net, net.readers(name)[0]):
            used.append(net.readers(name)[0])
            name = used[-1].output[0]
        end = net.readers(name)[0] if net.alone(name) else None
        if end is None or end.op_type != "Div" or [*end.input] != [node.input[0], name]:
            continue
        whole = net.shapes.get(end.output[0]) == net.shapes.get(node.input[0])
        if len(axes) != 1 or not whole:
            continue
        ends = [node.input[0]], [*end.output]
        made = helper.make_node("LpNormalization", *ends, end.name, axis=axes[0], p=2)
        at = next(i for i, n in enumerate(net.nodes) if n is end)
        net.nodes[at] = made
        net.nodes = [n for n in net.nodes if not any(n is u for u in used)]


def _limits(net: Net, node: Any) -> bool:
    """Does a node no more than keep a length from 0?"""
    if node.op_type not in ("Clip", "Max", "Add", "Expand"):
        return False
    if node.op_type == "Expand":
        return True
    if node.op_type == "Clip" and (len(node.input) < 2 or any(node.input[2:])):
        return False
    known = [net.constants.get(name) for name in node.input[: 2 + (node.op_type != "Clip")]]
    known = known[1:] if node.op_type == "Clip" else known
    numbers = [float(v.reshape(())) for v in known if v is not None and v.size == 1]
    return len(numbers) == 1 and 0 <= numbers[0] <= LEAST


def spell_terms(net: Net) -> None:
    """Terms of a LayerNormalization of several axes as a sum behind it: ONNX Runtime's quantiser
    has one axis for them."""
    from onnx import helper

    for node in [n for n in net.nodes if n.op_type == "LayerNormalization"]:
        term = net.constant(node, 2)
        if term is None or term.ndim < 2:
            continue
        name, term_name = node.output[0], node.input[2]
        del node.input[2:]
        if not term.any():
            continue
        node.output[0] = f"{name}/normal"
        net.floats.add(node.output[0])
        net.shapes[node.output[0]] = net.shapes.get(name, ())
        made = helper.make_node("Add", [node.output[0], term_name], [name], f"{node.name}/term")
        net.nodes.insert(net.nodes.index(node) + 1, made)


def join_normalisations(net: Net) -> None:
    """One LayerNormalization for the operators of each."""
    for node in [n for n in net.nodes if n.op_type == "ReduceMean"]:
        try:
            _join(net, node)
        except _Other:
            continue


def _join(net: Net, mean: Any) -> None:
    """Replace the operators that begin with this mean; _Other where it begins something else."""
    x, axes = mean.input[0], _axes(net, mean)
    less = net.readers(mean.output[0])
    if not less or any(n.op_type != "Sub" or [*n.input] != [x, mean.output[0]] for n in less):
        raise _Other
    apart = {n.output[0] for n in less}
    readers = [n for name in sorted(apart) for n in net.readers(name)]
    square = [n for n in readers if n.op_type in ("Pow", "Mul")]
    ends = [n for n in readers if n.op_type == "Div" and n.input[0] in apart]
    if len(readers) != 2 or len(square) != 1 or len(ends) != 1:
        raise _Other
    (square, end), two = (square[0], ends[0]), net.constant(square[0], 1)
    if square.op_type == "Pow" and (two is None or two.size != 1 or float(two.reshape(())) != 2):
        raise _Other
    if square.op_type == "Mul" and not {*square.input} <= apart:
        raise _Other
    power = _one(net, square, "ReduceMean")
    more = _one(net, power, "Add")
    root = _one(net, more, "Sqrt")
    epsilon = next((net.constants[n] for n in more.input if n in net.constants), None)
    if _axes(net, power) != axes or epsilon is None or epsilon.size != 1:
        raise _Other
    if end.input[1] != root.output[0] or not net.alone(root.output[0]):
        raise _Other
    used = [mean, *less, square, power, more, root]
    if any(name in net.outputs for n in used for name in n.output):
        raise _Other
    rank = len(net.shapes[x])
    order = [*(i for i in range(rank) if i not in axes), *axes]
    sizes = tuple(net.shapes[x][i] for i in axes)
    numbers = {"Mul": np.ones(sizes), "Add": np.zeros(sizes)}
    for kind in numbers:  # the factor, and the term behind it
        if (found := _behind(net, end, kind, order, sizes)) is not None:
            used.append(end)
            end, numbers[kind] = found
    _put(net, (x, order, end), list(numbers.values()), float(epsilon.reshape(())))
    net.nodes = [n for n in net.nodes if not any(n is u for u in used)]
    for opset in net.model.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = max(opset.version, NORMALISED)


def _behind(
    net: Net, node: Any, kind: str, order: list[int], sizes: tuple[int, ...]
) -> tuple[Any, npt.NDArray] | None:
    """The product or sum that alone reads a result, and its numbers for each normalised one."""
    if not net.alone(node.output[0]):
        return None
    (reader,) = net.readers(node.output[0])
    data = next((net.constants[n] for n in reader.input if n in net.constants), None)
    if reader.op_type != kind or data is None or data.ndim > len(order):
        return None
    data = data.reshape((1,) * (len(order) - data.ndim) + data.shape).transpose(order)
    if any(n > 1 for n in data.shape[: len(order) - len(sizes)]):
        return None
    data = data.reshape(data.shape[len(order) - len(sizes) :])
    return reader, np.broadcast_to(data, sizes)


def _put(
    net: Net, ends: tuple[str, list[int], Any], numbers: list[npt.NDArray], epsilon: float
) -> None:
    """The operator, of axes that are brought behind the others, in place of the last node."""
    from onnx import helper

    (x, order, end), made = ends, []
    name, label = end.output[0], end.name
    rank, count = len(order), numbers[0].ndim
    turned = order != list(range(rank))
    inner, result = (f"{name}/turned", f"{name}/normal") if turned else (x, name)
    if turned:
        made.append(helper.make_node("Transpose", [x], [inner], f"{label}/turned", perm=order))
    inputs = [inner, *(net.put(f"{label}.numbers", n) for n in numbers)]
    fields = {"axis": rank - count, "epsilon": epsilon}
    made.append(helper.make_node("LayerNormalization", inputs, [result], label, **fields))
    if turned:
        back = [order.index(i) for i in range(rank)]
        made.append(helper.make_node("Transpose", [result], [name], f"{label}/back", perm=back))
        sizes = tuple(net.shapes[x][i] for i in order)
        net.shapes |= {inner: sizes, result: sizes}
        net.floats |= {inner, result}
    at = next(i for i, n in enumerate(net.nodes) if n is end)
    net.nodes[at : at + 1] = made


def _axes(net: Net, node: Any) -> list[int]:
    """The axes of a mean that keeps them."""
    shape = net.shapes.get(node.input[0], ())
    given = attribute(node, "axes", None)
    if len(node.input) > 1:
        given = net.constant(node, 1)
    if given is None or not shape or not attribute(node, "keepdims", 1):
        raise _Other
    return sorted({int(a) % len(shape) for a in np.reshape(given, -1)})


def _one(net: Net, node: Any, kind: str) -> Any:
    """The one reader of a result."""
    found = net.readers(node.output[0])
    if len(found) != 1 or found[0].op_type != kind or node.output[0] in net.outputs:
        raise _Other
    return found[0]
