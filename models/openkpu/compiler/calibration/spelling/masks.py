# SPDX-License-Identifier: Apache-2.0
"""Masks of attention as one sum each, in whatever form an exporter writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.curves import FLOAT_RESULTS, TAIL
from openkpu.compiler.calibration.net import Net, attribute

FAR, MASK = -50.0, -1e6  # what is no score, and what stands for an infinity
MOVES = TAIL - {"Concat"}
BIASED = ("Conv", "Gemm")  # masks may have become their bias


def spell_masks(net: Net) -> None:
    """Masks of attention: numbers far below 0 that are added to scores, or chosen in their place,
    in front of a softmax, as one sum each; ``scales.limit_masks`` gives them their reach."""
    from onnx import helper

    _merge_masks(net)
    for node in list(net.nodes):
        name, found = node.output[0], _mask_of(net, node)
        if found is None:
            continue
        softmaxes = [n for n in net.readers(name) if n.op_type in FLOAT_RESULTS]
        scored, inner = _scores(net, name), node.op_type in BIASED
        if not (scored or softmaxes) or (inner and not scored):
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
    with net.fixed():
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
        if node.op_type in FLOAT_RESULTS:
            continue
        if node.op_type not in MOVES:
            return set()
        found |= {*node.output}
        left += net.readers(node.output[0])
    return found if name not in net.outputs and net.readers(name) else set()
