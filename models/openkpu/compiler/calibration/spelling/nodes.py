# SPDX-License-Identifier: Apache-2.0
"""Nodes that take the place of one: each with a name and a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.errors import CompileError


class Spelled:
    """An operator of a network and the ``nodes`` in its place."""

    def __init__(self, net: Net, node: Any) -> None:
        self.net, self.node, self.nodes = net, node, []

    def refuse(self, what: str) -> CompileError:
        return CompileError(what, node=self.node.name, operator=self.node.op_type)

    def numbers(self, *numbers: int) -> str:
        """A constant of integers."""
        data = np.array(numbers, np.int64)
        name = f"{self.node.name}/{'_'.join(map(str, numbers))}"
        self.net.constants[name], self.net.shapes[name] = data, data.shape
        return name

    def make(self, kind: str, *inputs: str, to: str = "", **fields: Any) -> str:
        """A node; its output's name."""
        from onnx import helper

        label = f"{self.node.name}/{kind.lower()}{len(self.nodes)}"
        output = to or label
        self.nodes.append(helper.make_node(kind, inputs, [output], label, **fields))
        self.net.shapes[output] = self._shape(kind, inputs, fields)
        self.net.floats.add(output)
        return output

    def _shape(self, kind: str, inputs: tuple[str, ...], fields: dict[str, Any]) -> tuple[int, ...]:
        first, *rest = shapes = [self.net.shapes[name] for name in inputs]
        if kind == "Reshape":
            return np.empty(first, bool).reshape(self.net.constants[inputs[1]]).shape
        if kind == "Gemm":
            return first[0], rest[0][0]
        if kind == "MatMul":
            batch = np.broadcast_shapes(first[:-2], rest[0][:-2])
            return (*batch, first[-2], rest[0][-1])
        if kind == "Transpose":
            return tuple(first[a] for a in fields["perm"])
        if kind == "ReduceSum":  # whose axes go
            gone = self.net.constants[inputs[1]].tolist()
            return tuple(n for i, n in enumerate(first) if i not in gone)
        if kind == "Slice":
            begin, end, (axis,) = (self.net.constants[n].tolist() for n in inputs[1:4])
            return tuple(end[0] - begin[0] if i == axis else n for i, n in enumerate(first))
        if kind == "Concat":
            axis, total = fields["axis"], sum(s[fields["axis"]] for s in shapes)
            return tuple(total if i == axis else n for i, n in enumerate(first))
        return np.broadcast_shapes(*shapes)

    def part(self, x: str, first: int, last: int, axis: int) -> str:
        """Part of a tensor along an axis; the tensor itself where that is all."""
        if (first, last) == (0, self.net.shapes[x][axis]):
            return x
        return self.make("Slice", x, *(self.numbers(n) for n in (first, last, axis)))

    def joined(self, names: list[str], axis: int) -> str:
        """Tensors one behind the other."""
        return names[0] if len(names) == 1 else self.make("Concat", *names, axis=axis)

    def reshaped(self, x: str, shape: tuple[int, ...], to: str = "") -> str:
        """The same elements; of a constant a constant."""
        if self.net.shapes[x] == shape and not to:
            return x
        if x in self.net.constants and not to:
            return self.net.put(f"{x}/flat", self.net.constants[x].reshape(shape))
        return self.make("Reshape", x, self.numbers(*shape), to=to)

    def turned(self, x: str, perm: tuple[int, ...], to: str = "") -> str:
        """The axes in another order; of a constant a constant."""
        if perm == tuple(range(len(perm))) and not to:
            return x
        if x in self.net.constants and not to:
            return self.net.put(f"{x}/turned", self.net.constants[x].transpose(perm))
        return self.make("Transpose", x, to=to, perm=perm)
