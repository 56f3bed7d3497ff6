# SPDX-License-Identifier: Apache-2.0
"""Einsum of one or two tensors as transpositions, a matrix product and sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.errors import CompileError


def spell_einsum(net: Net) -> None:
    """Spell every Einsum; CompileError for one whose equation is none of these."""
    made: list[Any] = []
    for node in net.nodes:
        made += _Einsum(net, node).nodes if node.op_type == "Einsum" else [node]
    net.nodes = made


class _Einsum:
    """One operator; ``nodes`` take its place."""

    def __init__(self, net: Net, node: Any) -> None:
        self.net, self.node, self.nodes = net, node, []
        self.equation = attribute(node, "equation", b"").decode().replace(" ", "")
        terms, result = self._terms()
        names = list(node.input)
        self.sizes = {
            letter: size
            for name, term in zip(names, terms, strict=True)
            for letter, size in zip(term, net.shapes[name], strict=True)
        }
        others = [*terms[1:], ""][0]
        names[0], terms[0] = self._summed(names[0], terms[0], others + result)
        if len(names) == 2:
            names[1], terms[1] = self._summed(names[1], terms[1], terms[0] + result)
            names[0], terms[0] = self._product(names, terms, result)
        self._turned(names[0], terms[0], result, to=node.output[0])

    def _refuse(self, what: str) -> CompileError:
        text = f"equation {self.equation!r}: {what}"
        return CompileError(text, node=self.node.name, operator="Einsum")

    def _terms(self) -> tuple[list[str], str]:
        """The letters of each operand and of the result."""
        left, arrow, result = self.equation.partition("->")
        terms = left.split(",")
        if not arrow:  # each letter that occurs once, in their order
            result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
        if len(terms) != len(self.node.input) or len(terms) > 2:
            raise self._refuse(f"{len(self.node.input)} operands, expected one or two")
        for term, name in zip(terms, self.node.input, strict=True):
            shape = self.net.shapes.get(name)
            if shape is None or len(shape) != len(term) or not term.isalpha():
                raise self._refuse(f"operand of shape {shape}, expected a letter for each axis")
            if len(set(term)) < len(term):
                raise self._refuse("a diagonal, expected each letter once in an operand")
        if len(set(result)) < len(result) or not set(result) <= set("".join(terms)):
            raise self._refuse("expected letters of the operands in the result, each once")
        return terms, result

    # -------------------------------------------------------------------- nodes
    def _shape(self, letters: str) -> tuple[int, ...]:
        return tuple(self.sizes[c] for c in letters)

    def _make(self, kind: str, *inputs: str, shape: tuple[int, ...], to: str, **fields: Any) -> str:
        from onnx import helper

        label = f"{self.node.name}/{kind.lower()}{len(self.nodes)}"
        output = to or label
        self.nodes.append(helper.make_node(kind, inputs, [output], label, **fields))
        self.net.shapes[output] = shape
        self.net.floats.add(output)
        return output

    def _numbers(self, numbers: tuple[int, ...]) -> str:
        data = np.array(numbers, np.int64)
        name = f"{self.node.name}/{'_'.join(map(str, numbers))}"
        self.net.constants[name], self.net.shapes[name] = data, data.shape
        return name

    def _turned(self, name: str, term: str, order: str, to: str = "") -> str:
        """The axes in another order; a constant is computed."""
        perm = tuple(term.index(c) for c in order)
        if name in self.net.constants and not to:
            return self.net.put(f"{name}/{order}", self.net.constants[name].transpose(perm))
        if term == order and not to:
            return name
        return self._make("Transpose", name, shape=self._shape(order), to=to, perm=perm)

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        if self.net.shapes[name] == shape:
            return name
        if name in self.net.constants:
            return self.net.put(f"{name}/flat", self.net.constants[name].reshape(shape))
        return self._make("Reshape", name, self._numbers(shape), shape=shape, to="")

    def _summed(self, name: str, term: str, wanted: str) -> tuple[str, str]:
        """Without the axes that nothing else has."""
        axes = tuple(i for i, c in enumerate(term) if c not in wanted)
        if not axes:
            return name, term
        left = "".join(c for c in term if c in wanted)
        if name in self.net.constants:
            return self.net.put(f"{name}/sum", self.net.constants[name].sum(axes)), left
        shape = self._shape(left)
        numbers = self._numbers(axes)
        return self._make("ReduceSum", name, numbers, shape=shape, to="", keepdims=0), left

    def _product(self, names: list[str], terms: list[str], result: str) -> tuple[str, str]:
        """Matrices (both's letters, one's own, summed) by (both's, summed, the other's own)."""
        a, b = terms
        both = "".join(c for c in result if c in a and c in b)
        summed = "".join(c for c in a if c in b and c not in result)
        rows = "".join(c for c in result if c in a and c not in b)
        columns = "".join(c for c in result if c in b and c not in a)
        if names[0] in self.net.constants:  # weights are the second operand
            names, a, b, rows, columns = names[::-1], b, a, columns, rows
        batch = self._shape(both)
        count = [math.prod(self._shape(letters)) for letters in (rows, summed, columns)]
        first = self._turned(names[0], a, both + rows + summed)
        second = self._turned(names[1], b, both + summed + columns)
        first = self._reshaped(first, (*batch, count[0], count[1]))
        second = self._reshaped(second, (*batch, count[1], count[2]))
        shape = (*batch, count[0], count[2])
        product = self._make("MatMul", first, second, shape=shape, to="")
        letters = both + rows + columns
        return self._reshaped(product, self._shape(letters)), letters
