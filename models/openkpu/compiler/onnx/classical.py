# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain ai.onnx.ml, as scikit-learn's exporter writes them, in ONNX's own words
(docs/compiler.md 2): Scaler, Normalizer, LinearRegressor, and LinearClassifier without its label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu.compiler.errors import CompileError
from openkpu.words import option

DOMAIN = "ai.onnx.ml"
NUMBERS = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}  # what makes numbers of a class's score
AXES_ARE_INPUTS = 13  # of ReduceSum, from this opset on


class Spelled:
    """One node of the domain, and the nodes and constants in its place."""

    def __init__(self, graph: Any, node: Any, where: str, opset: int) -> None:
        from onnx import helper

        self.graph, self.node, self.where, self.opset = graph, node, where, opset
        self.fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.nodes: list[Any] = []

    def refuse(self, what: str) -> CompileError:
        """An error that names the node."""
        name = self.node.name or self.node.output[0]
        return CompileError(what, node=name, operator=self.node.op_type, where=self.where)

    def constant(self, what: str, data: Any) -> str:
        """The name of these numbers."""
        from onnx import numpy_helper

        name = f"{self.node.output[0]}/{what}"
        self.graph.initializer.append(numpy_helper.from_array(data, name))
        return name

    def numbers(self, field: str, default: list[float]) -> Any:
        """A list of floats of the node."""
        return np.array(self.fields.get(field, default), np.float32)

    def word(self, field: str, default: str) -> str:
        """A word of the node."""
        return self.fields.get(field, default.encode()).decode()

    def put(self, kind: str, inputs: list[str], output: str = "", **fields: Any) -> str:
        """A node with this output, or one between others; the name of its output."""
        from onnx import helper

        made = output or f"{self.node.output[0]}/{kind}{len(self.nodes)}"
        name = (self.node.name or output) if output else made  # names of tensors are unique
        self.nodes.append(helper.make_node(kind, inputs, [made], name, **fields))
        return made

    def linear(self, rows: int, output: str) -> str:
        """Products with ``rows`` rows of coefficients, and the intercepts."""
        weights, first = self.numbers("coefficients", []), self.numbers("intercepts", [0.0] * rows)
        if rows < 1 or not weights.size or weights.size % rows or first.size != rows:
            what = f"{weights.size} coefficients and {first.size} intercepts"
            raise self.refuse(f"{what}, expected as many for each of {rows} results")
        columns = np.ascontiguousarray(weights.reshape(rows, -1).T)
        product = self.put("MatMul", [self.node.input[0], self.constant("coefficients", columns)])
        return self.put("Add", [product, self.constant("intercepts", first)], output)


def scaler(s: Spelled) -> None:
    """(x - offset) * scale, with which pipelines begin."""
    shifted = s.put("Sub", [s.node.input[0], s.constant("offset", s.numbers("offset", [0.0]))])
    s.put("Mul", [shifted, s.constant("scale", s.numbers("scale", [1.0]))], s.node.output[0])


def normalizer(s: Spelled) -> None:
    """Vectors by their length, or by the sum of their numbers without sign."""
    x, y, norm = s.node.input[0], s.node.output[0], s.word("norm", "MAX")
    if norm == "L2":
        s.put("LpNormalization", [x], y, axis=-1, p=2)
    elif norm == "L1":
        if any(n.op_type == "Softmax" and n.output[0] == x for n in s.graph.node):
            s.put("Identity", [x], y)  # its sum is 1
            return
        fields: dict[str, Any] = {} if s.opset >= AXES_ARE_INPUTS else {"axes": [-1]}
        axes = [] if fields else [s.constant("axis", np.array([-1], np.int64))]
        total = s.put("ReduceSum", [s.put("Abs", [x]), *axes], keepdims=1, **fields)
        s.put("Div", [x, total], y)
    else:
        raise s.refuse(f"norm {norm}, expected L1 or L2")


def linear_regressor(s: Spelled) -> None:
    """Sums of products."""
    if (kind := s.word("post_transform", "NONE")) != "NONE":
        raise s.refuse(f"post_transform {kind}, expected NONE")
    s.linear(s.fields.get("targets", 1), s.node.output[0])


def linear_classifier(s: Spelled) -> None:
    """The scores of the classes; CompileError where the label of the largest one is wanted."""
    label, scores = s.node.output[0], s.node.output[1] if len(s.node.output) > 1 else ""
    readers = {x: n for n in s.graph.node for x in n.input}
    if label in readers or label in {v.name for v in s.graph.output} or not scores:
        after = readers.get(scores)
        end = after.output[0] if after and after.op_type == "Normalizer" else scores
        hint = f"; {option('ends', end)} leaves it out" if end else ""
        raise s.refuse(
            f"the label {label!r} of a class, expected the scores of classes alone{hint}"
        )
    labels = max(len(s.fields.get(f"classlabels_{kind}", [])) for kind in ("ints", "strings"))
    kind = s.word("post_transform", "NONE")
    if kind not in ("NONE", *NUMBERS):
        raise s.refuse(f"post_transform {kind}, expected NONE, {' or '.join(NUMBERS)}")
    made = s.linear(labels, "" if kind in NUMBERS else scores)
    if kind in NUMBERS:
        s.put(NUMBERS[kind], [made], scores, **({"axis": -1} if kind == "SOFTMAX" else {}))


OPERATORS: dict[str, Callable[[Spelled], None]] = {
    "Scaler": scaler,
    "Normalizer": normalizer,
    "LinearRegressor": linear_regressor,
    "LinearClassifier": linear_classifier,
}


def spell(graph: Any, where: str, opset: int) -> None:
    """Put operators of ONNX in the places of those of the domain (``onnx.GraphProto``).

    CompileError for one whose numbers do not fit, or that gives what is no number.
    """
    at = 0
    while at < len(graph.node):
        node, made = graph.node[at], None
        if node.domain == DOMAIN and node.op_type in OPERATORS and node.input and node.output:
            made = Spelled(graph, node, where, opset)
            OPERATORS[node.op_type](made)
            rest = list(graph.node)
            del graph.node[:]
            graph.node.extend([*rest[:at], *made.nodes, *rest[at + 1 :]])
        at += len(made.nodes) if made else 1
