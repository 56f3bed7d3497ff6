# SPDX-License-Identifier: Apache-2.0
"""Einsum of one or two tensors as transpositions, a matrix product and sums."""

from __future__ import annotations

import math
from typing import Any

from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.calibration.spelling.nodes import Spelled
from openkpu.compiler.errors import CompileError


def spell_einsum(net: Net) -> None:
    """Spell every Einsum; CompileError for one whose equation is none of these."""
    made: list[Any] = []
    for node in net.nodes:
        made += _Einsum(net, node).nodes if node.op_type == "Einsum" else [node]
    net.nodes = made


class _Einsum(Spelled):
    """One operator; ``nodes`` take its place."""

    def __init__(self, net: Net, node: Any) -> None:
        super().__init__(net, node)
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
        self._ordered(names[0], terms[0], result, to=node.output[0])

    def refuse(self, what: str) -> CompileError:
        return super().refuse(f"equation {self.equation!r}: {what}")

    def _terms(self) -> tuple[list[str], str]:
        """The letters of each operand and of the result."""
        left, arrow, result = self.equation.partition("->")
        terms = left.split(",")
        if not arrow:  # each letter that occurs once, in their order
            result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
        if len(terms) != len(self.node.input) or len(terms) > 2:
            raise self.refuse(f"{len(self.node.input)} operands, expected one or two")
        for term, name in zip(terms, self.node.input, strict=True):
            shape = self.net.shapes.get(name)
            if shape is None or len(shape) != len(term) or not term.isalpha():
                raise self.refuse(f"operand of shape {shape}, expected a letter for each axis")
            if len(set(term)) < len(term):
                raise self.refuse("a diagonal, expected each letter once in an operand")
        if len(set(result)) < len(result) or not set(result) <= set("".join(terms)):
            raise self.refuse("expected letters of the operands in the result, each once")
        return terms, result

    # -------------------------------------------------------------------- nodes
    def _shape_of(self, letters: str) -> tuple[int, ...]:
        return tuple(self.sizes[c] for c in letters)

    def _ordered(self, name: str, term: str, order: str, to: str = "") -> str:
        """The axes in another order."""
        return self.turned(name, tuple(term.index(c) for c in order), to)

    def _summed(self, name: str, term: str, wanted: str) -> tuple[str, str]:
        """Without the axes that nothing else has."""
        axes = tuple(i for i, c in enumerate(term) if c not in wanted)
        if not axes:
            return name, term
        left = "".join(c for c in term if c in wanted)
        if name in self.net.constants:
            return self.net.put(f"{name}/sum", self.net.constants[name].sum(axes)), left
        return self.make("ReduceSum", name, self.numbers(*axes), keepdims=0), left

    def _product(self, names: list[str], terms: list[str], result: str) -> tuple[str, str]:
        """Matrices (both's letters, one's own, summed) by (both's, summed, the other's own)."""
        a, b = terms
        both = "".join(c for c in result if c in a and c in b)
        summed = "".join(c for c in a if c in b and c not in result)
        rows = "".join(c for c in result if c in a and c not in b)
        columns = "".join(c for c in result if c in b and c not in a)
        if names[0] in self.net.constants:  # weights are the second operand
            names, a, b, rows, columns = names[::-1], b, a, columns, rows
        batch = self._shape_of(both)
        count = [math.prod(self._shape_of(letters)) for letters in (rows, summed, columns)]
        first = self._ordered(names[0], a, both + rows + summed)
        second = self._ordered(names[1], b, both + summed + columns)
        first = self.reshaped(first, (*batch, count[0], count[1]))
        second = self.reshaped(second, (*batch, count[1], count[2]))
        letters = both + rows + columns
        return self.reshaped(self.make("MatMul", first, second), self._shape_of(letters)), letters
