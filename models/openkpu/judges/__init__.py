# SPDX-License-Identifier: Apache-2.0
"""Foreign runtimes as judges: LiteRT and ONNX Runtime run a model, each difference is explained.

A runtime's values of every tensor are shown beside those of the exact reference (docs/compiler.md).
Node by node: each node of the graph is computed exactly from what *the runtime* gave its inputs, so
that a difference counts where it arises and not again behind it. ``REASONS`` says what explains a
difference; what nothing explains is a fault of one of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph, Host, Move
from openkpu.judges.reasons import Explained, explain

Values = Mapping[str, npt.NDArray]
REASONS = {
    "two": "two roundings: TFLite's reference kernels round twice, with factors of 31 bits",
    "float32": "the runtime multiplies the sum by a factor of float32 and rounds that",
    "half": "the exact number is within 2^-10 of a half: float32, or another rule for ties",
    "fixed": "fixed point that is cut and then rounded: within a unit of it of a half",
    "function": "a step of a function that the runtime approximates",
    "none": "not explained",
}


@dataclasses.dataclass
class JudgedNode:
    """One node: how many of its values differ from the exact ones, and why."""

    node: str
    operator: str
    values: int = 0
    differ: int = 0
    worst: int = 0  # steps
    reasons: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    def add(self, mine: npt.NDArray, theirs: npt.NDArray, why: Explained) -> None:
        """Count one tensor."""
        self.values += mine.size
        self.differ += int((mine != theirs).sum())
        self.worst = max(self.worst, int(np.abs(mine - theirs).max(initial=0)))
        for reason, places in why.items():
            self.reasons[reason] += int(places.sum())


def _wide(values: npt.NDArray) -> npt.NDArray:
    return values if values.dtype.kind == "f" else values.astype(np.int64)


def _pulled_back(graph: Graph, theirs: Values) -> Values:
    """Also the tensors that only the graph has, in front of a move to one that the runtime has: the
    difference belongs to the node before."""
    found = dict(theirs)
    for node in reversed(graph.nodes):
        if not isinstance(node, Move) or node.how not in ("reshape", "transpose"):
            continue
        (before,), (behind,) = graph.of(node.inputs), graph.of(node.outputs)
        if behind.name not in found or before.name in found or before.name in graph.inputs:
            continue
        value = found[behind.name].reshape(behind.shape)
        if node.how == "transpose":
            value = value.transpose(np.argsort(node.axes))
        found[before.name] = value.reshape(before.shape)
    return found


@dataclasses.dataclass
class Judgement:
    """A model in a runtime: a row for each node, and the outputs at the very end."""

    model: str
    runtime: str
    reasons: tuple[str, ...]  # of REASONS: what this runtime may do
    rows: dict[str, JudgedNode] = dataclasses.field(default_factory=dict)
    ends: JudgedNode = dataclasses.field(
        default_factory=lambda: JudgedNode("outputs", "end to end")
    )

    @property
    def total(self) -> JudgedNode:
        """All rows together."""
        found = JudgedNode("all nodes", "")
        for row in self.rows.values():
            found.values += row.values
            found.differ += row.differ
            found.worst = max(found.worst, row.worst)
            for reason, count in row.reasons.items():
                found.reasons[reason] += count
        return found

    def take(self, graph: Graph, inputs: Values, theirs: Values) -> None:
        """Compare one run: the graph's inputs, and the runtime's tensors by the graph's names."""
        constants = [t for t in graph.tensors.values() if t.data is not None]
        values = {t.name: reference.held(np.asarray(t.data), t) for t in constants}
        values |= {name: _wide(np.asarray(inputs[name])) for name in graph.inputs}
        theirs = _pulled_back(graph, theirs)
        for node in graph.nodes:
            x = [values[name] for name in node.inputs]
            (name,) = node.outputs
            values[name] = mine = reference.compute(graph, node, x)
            if name not in theirs or graph.tensors[name].dtype == "float32":
                continue
            found = np.asarray(theirs[name]).reshape(mine.shape).astype(np.int64)
            row = self.rows.setdefault(node.name, JudgedNode(node.name, node.operator))
            row.add(mine, found, explain(graph, node, x, mine, found, self.reasons))
            values[name] = found
        exact = reference.evaluate(graph, inputs)
        for name in graph.outputs:
            last = graph.maker(name)
            if isinstance(last, Host) and last.how == "dequantize":  # its bytes are compared
                (step,) = graph.of(last.inputs)
                if name in theirs and step.name not in theirs and step.scale:
                    whole = np.rint(theirs[name] / step.scale) + step.zero
                    theirs = {**theirs, step.name: whole.astype(np.int64)}
                name = step.name
            if name in theirs and graph.tensors[name].dtype != "float32":
                found = np.asarray(theirs[name]).reshape(exact[name].shape).astype(np.int64)
                self.ends.add(exact[name], found, {})
