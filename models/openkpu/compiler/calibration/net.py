# SPDX-License-Identifier: Apache-2.0
"""A float ONNX graph that is rewritten before it is quantised: its nodes, constants and shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.terminal import printable


class Net:
    """A model of ONNX with what its rewriting asks for; ``model`` is written on ``done``."""

    def __init__(self, model: Any) -> None:
        from onnx import helper, numpy_helper, shape_inference

        self.model = shape_inference.infer_shapes(model, data_prop=True)
        graph = self.model.graph
        self.nodes: list[Any] = list(graph.node)
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.inputs = [v for v in graph.input if v.name not in self.constants]
        self.outputs = [v.name for v in graph.output]
        self.shapes: dict[str, tuple[int, ...]] = {n: v.shape for n, v in self.constants.items()}
        self.empty: dict[str, tuple[int, ...]] = {}  # shapes with a size of 0
        self.floats = {n for n, v in self.constants.items() if v.dtype == np.float32}
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = value.type.tensor_type
            sizes = tuple(d.dim_value for d in kind.shape.dim)
            if kind.HasField("shape") and all(n > 0 for n in sizes):
                self.shapes[value.name] = sizes
            elif any(d.HasField("dim_value") and not d.dim_value for d in kind.shape.dim):
                self.empty[value.name] = sizes
            if kind.elem_type and helper.tensor_dtype_to_np_dtype(kind.elem_type) == np.float32:
                self.floats.add(value.name)
        # scores that a mask puts far below others: the tensor in front of it, and the mask
        self.masked: dict[str, tuple[str, str]] = {}
        self.head: set[str] = set()  # nodes at inputs that stay float (``curves.float_head``)
        # (nodes by what they read, by what they write) while ``fixed``
        self._index: tuple[dict[str, list[Any]], dict[str, Any]] | None = None
        self._name()

    def _name(self) -> None:
        """Every node has a name of its own: the model's, or that of its first output."""
        taken: set[str] = set()
        for node in self.nodes:
            label, number = printable(node.name or node.output[0]), 1
            node.name = printable(node.name)
            while node.name in taken or not node.name:
                node.name = label if number == 1 else f"{label}.{number}"
                number += 1
            taken.add(node.name)

    @contextlib.contextmanager
    def fixed(self) -> Iterator[None]:
        """An index for ``maker`` and ``readers`` while no node changes: unrolled loops have
        thousands, and a search through all of them for each is too long."""
        read: dict[str, list[Any]] = {}
        made: dict[str, Any] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                read.setdefault(name, []).append(node)
            for name in node.output:
                made.setdefault(name, node)
        self._index = read, made
        try:
            yield
        finally:
            self._index = None

    def maker(self, name: str) -> Any:
        """The node that writes a tensor, or None."""
        if self._index is not None:
            return self._index[1].get(name)
        return next((n for n in self.nodes if name in n.output), None)

    def readers(self, name: str) -> list[Any]:
        """The nodes that read a tensor."""
        if self._index is not None:
            return list(self._index[0].get(name, ()))
        return [n for n in self.nodes if name in n.input]

    def alone(self, name: str) -> bool:
        """Is a tensor read once, and no output?"""
        return len(self.readers(name)) == 1 and name not in self.outputs

    def constant(self, node: Any, at: int) -> npt.NDArray | None:
        """The constant at input ``at``, or None."""
        return self.constants.get(node.input[at]) if at < len(node.input) else None

    def put(self, name: str, data: npt.NDArray) -> str:
        """A new constant of float32, by this name or one like it."""
        made, number = name, 1
        while made in self.shapes:
            made, number = f"{name}.{number}", number + 1
        self.constants[made] = np.array(data, np.float32, order="C")
        self.shapes[made] = data.shape
        return made

    def done(self) -> Any:
        """The model as it is now, without constants that nothing reads."""
        from onnx import helper, numpy_helper

        used = {n for node in self.nodes for n in node.input} | set(self.outputs)
        kept = [(n, v) for n, v in self.constants.items() if n in used]
        graph = helper.make_graph(
            self.nodes,
            self.model.graph.name,
            self.inputs,
            list(self.model.graph.output),
            [numpy_helper.from_array(v, n) for n, v in kept],
        )
        made = helper.make_model(graph, opset_imports=list(self.model.opset_import))
        made.ir_version = self.model.ir_version
        return made


def attribute(node: Any, name: str, default: Any) -> Any:
    """An attribute of a node, or the default."""
    from onnx import helper

    found = next((a for a in node.attribute if a.name == name), None)
    return default if found is None else helper.get_attribute_value(found)
