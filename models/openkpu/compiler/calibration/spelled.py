# SPDX-License-Identifier: Apache-2.0
"""Operators of a float ONNX model in the form in which the readers have them.

Some are spelled out, because ONNX Runtime or its quantiser has them for fewer cases; layer
normalisations, which exporters before opset 17 write as nine operators, are joined.  With m the
mean of x and v that of (x - m)^2 they are (x - m) / sqrt(v + epsilon), with a factor and a term.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.curves import TAIL
from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.onnx.shared import padded_ends

NORMALISED = 17  # the first opset with LayerNormalization
FAR, MASK = -50.0, -1e6  # what is no score, and what stands for an infinity
MOVES = TAIL - {"Concat"}
REDUCED = {
    "ReduceL1": ("Abs", "ReduceSum"),
    "ReduceL2": ("Mul", "ReduceSum", "Sqrt"),
    "ReduceMin": ("Neg", "ReduceMax", "Neg"),
    "ReduceSumSquare": ("Mul", "ReduceSum"),
}
BIASED = ("Conv", "Gemm")  # masks may have become their bias
LEAST = 1e-3  # lengths below it count as no length
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


def spell_masks(net: Net) -> None:
    """Masks of attention: numbers far below 0 that are added to scores, or chosen in their place,
    in front of a softmax, as one sum each; ``scales.limit_masks`` gives them their reach."""
    from onnx import helper

    _merge_masks(net)
    for node in list(net.nodes):
        name, found = node.output[0], _mask_of(net, node)
        softmaxes = [n for n in net.readers(name) if n.op_type == "Softmax"]
        scored, inner = _scores(net, name), node.op_type in BIASED
        if found is None or not (scored or softmaxes) or (inner and not scored):
            continue
        before, data = found
        target = name
        if not scored:  # they have another use as well: the softmax gets a sum of its own
            target, scored = f"{name}/scores", {f"{name}/scores"}
            for reader in softmaxes:
                reader.input[:] = [target if n == name else n for n in reader.input]
        data = np.maximum(np.asarray(data, np.float64), MASK)
        if len(scored) == 1:
            data = _above(data, net.shapes.get(name, ()), softmaxes)
        mask = net.put(f"{node.name}.mask", data)
        at = next(i for i, n in enumerate(net.nodes) if n is node)
        if inner:  # its bias was the mask
            bias = np.asarray(net.constant(node, 2))
            node.input[2] = net.put(f"{node.name}.bias", np.where(bias <= FAR, 0, bias))
            node.output[0] = before
        label = node.name if target == name and not inner else f"{node.name}/mask"
        made = helper.make_node("Add", [before, mask], [target], label)
        net.nodes[at : at + (target == name and not inner)] = [made]
        if inner:
            net.nodes[at : at + 2] = [node, made]
        for tensor in (before, target):
            net.floats.add(tensor)
            if name in net.shapes:
                net.shapes.setdefault(tensor, net.shapes[name])
        net.masked |= dict.fromkeys(scored, (before, mask))


def _merge_masks(net: Net) -> None:
    """(s + a) + b as s + (a + b), where one of the constants is a mask."""
    for node in net.nodes:
        if node.op_type != "Add":
            continue
        first = next((net.maker(n) for n in node.input if n not in net.constants), None)
        if first is None or first.op_type != "Add" or not net.alone(first.output[0]):
            continue
        pairs = [[net.constants.get(n) for n in each.input] for each in (first, node)]
        known = [next((v for v in pair if v is not None), None) for pair in pairs]
        one, two = known
        if one is None or two is None or not (one.size and two.size):
            continue
        if min(one.min(), two.min()) > FAR:
            continue
        both = np.maximum(one.astype(np.float64), MASK) + np.maximum(two.astype(np.float64), MASK)
        scores = next(n for n in first.input if n not in net.constants)
        node.input[:] = [scores, net.put(f"{node.name}.both", both)]
    net.nodes = [n for n in net.nodes if n.op_type != "Add" or _used(net, n)]


def _used(net: Net, node: Any) -> bool:
    return bool(net.readers(node.output[0])) or node.output[0] in net.outputs


def _mask_of(net: Net, node: Any) -> tuple[str, npt.NDArray] | None:
    """(scores, what is added to them) of a node that puts some of them far below the others."""
    found = [net.constants.get(name) for name in node.input]
    known = [v if v is not None and v.size else None for v in found]
    if node.op_type == "Add":
        place = next((i for i, v in enumerate(known) if v is not None), None)
        if place is not None and np.asarray(known[place]).min() <= FAR:
            return node.input[1 - place], np.asarray(known[place])
    if node.op_type == "Sub" and known[1] is not None and known[1].max() >= -FAR:
        return node.input[0], -known[1]
    if node.op_type == "Where" and known[0] is not None:
        place = next((i for i in (1, 2) if known[i] is not None), None)
        if place is not None and np.asarray(known[place]).max() <= FAR:
            masked = known[0].astype(bool) == (place == 1)
            return node.input[3 - place], np.where(masked, np.asarray(known[place]), 0.0)
    if node.op_type in BIASED and float(attribute(node, "beta", 1.0)) == 1.0:
        bias = known[2] if len(known) > 2 else None
        if bias is not None and bias.ndim == 1 and bias.min() <= FAR:
            pixels = len(net.shapes.get(node.output[0], ())) - 2 if node.op_type == "Conv" else 0
            data = np.where(bias <= FAR, bias, 0.0).reshape(-1, *[1] * pixels)
            return f"{node.output[0]}/unmasked", data
    return None


def _above(data: npt.NDArray, shape: tuple[int, ...], softmaxes: list[Any]) -> npt.NDArray:
    """The same but for what is added to all scores of a softmax, which changes nothing; not where
    float32 loses the scores beside it."""
    axes = {int(attribute(n, "axis", -1)) % max(len(shape), 1) for n in softmaxes}
    if len(axes) != 1 or data.ndim > len(shape):
        return data
    data = data.reshape((1,) * (len(shape) - data.ndim) + data.shape)
    most = data.max(axis=axes.pop(), keepdims=True)
    return data - np.where(most > MASK, most, 0)


def _scores(net: Net, name: str) -> set[str]:
    """The tensors from here to a softmax, where only moves lie between; none for another use."""
    found, left = {name}, net.readers(name)
    while left:
        node = left.pop()
        if node.op_type == "Softmax":
            continue
        if node.op_type not in MOVES:
            return set()
        found |= {*node.output}
        left += net.readers(node.output[0])
    return found if name not in net.outputs and net.readers(name) else set()


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


class _Other(Exception):
    """It is no layer normalisation."""


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


RULES = (
    *(spell_sums, spell_expands, spell_masks),
    *(join_normalisations, join_lengths, spell_reductions, spell_terms),
)
