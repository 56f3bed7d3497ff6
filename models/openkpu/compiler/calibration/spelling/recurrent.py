# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN unrolled: a product for the inputs of all steps, then the steps one by one.

The device has neither loops nor state. The length of the sequence is known when the network is
compiled, so that each step becomes operators of its own, whose tensors have scales of their own;
ONNX's description of the operators has the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.calibration.spelling.nodes import Spelled

CELLS = {"GRU": 3, "LSTM": 4, "RNN": 1}  # parts of the weights
DEFAULT = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}
FUNCTIONS = frozenset(("Relu", "Sigmoid", "Tanh"))
WAYS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
FULL = 4  # channels of a vector that share a row of the AI RAM: parts of such sizes are maps
BIAS, LENGTHS, HIDDEN, CELL, PEEPHOLES = 3, 4, 5, 6, 7  # inputs behind data and weights


def unroll(net: Net) -> None:
    """Spell the cells of a network; CompileError for one that has more than its steps."""
    made: list[Any] = []
    for node in net.nodes:
        made += _Cell(net, node).nodes if node.op_type in CELLS else [node]
    net.nodes = made


class _Cell(Spelled):
    """One operator; ``nodes`` take its place."""

    def __init__(self, net: Net, node: Any) -> None:
        super().__init__(net, node)
        self.kind = node.op_type
        self.x = node.input[0]
        if len(net.shapes.get(self.x, ())) != 3:
            raise self.refuse("an input without a known shape, expected steps, batch and numbers")
        self.steps, self.batch, self.size = net.shapes[self.x]
        self.weights, self.back = (self._known(at, name) for at, name in ((1, "W"), (2, "R")))
        way = attribute(node, "direction", b"forward").decode()
        self.ways = WAYS[way]
        self.hidden = self.back.shape[2]
        self.bias = np.zeros((len(self.ways), 2 * CELLS[self.kind] * self.hidden))
        if self._has(BIAS):
            self.bias = self._known(BIAS, "B")
        self._check()
        self.functions = self._functions()
        self.read = self.hidden  # numbers of a state that the model has
        states = [node.input[at] for at in (HIDDEN, CELL) if self._has(at)]
        if all(name in net.constants for name in states):
            self._fill()
        flat = self.make("Reshape", self.x, self.numbers(-1, self.size))
        ends = [self._direction(d, sign, flat) for d, sign in enumerate(self.ways)]
        self._outputs(ends)

    def _has(self, at: int) -> bool:
        return at < len(self.node.input) and bool(self.node.input[at])

    def _known(self, at: int, what: str) -> npt.NDArray:
        data = self.net.constant(self.node, at)
        if data is None:
            raise self.refuse(f"{what} is computed, expected a constant")
        return data

    def _check(self) -> None:
        """What would change the formulas, or the steps."""
        parts, ways = CELLS[self.kind], len(self.ways)
        want = {
            "W": (self.weights, (ways, parts * self.hidden, self.size)),
            "R": (self.back, (ways, parts * self.hidden, self.hidden)),
        }
        want["B"] = self.bias, (ways, 2 * parts * self.hidden)
        for what, (data, shape) in want.items():
            if data.shape != shape:
                raise self.refuse(f"{what} of shape {data.shape}, expected {shape}")
        if self._has(LENGTHS):
            lengths = self._known(LENGTHS, "sequence_lens")
            if (lengths != self.steps).any():
                found = lengths.reshape(-1).tolist()
                raise self.refuse(f"sequence_lens {found}, expected {self.steps} of each")
        if self._has(PEEPHOLES) and self._known(PEEPHOLES, "P").any():
            raise self.refuse("it has peepholes, expected none")
        for name in ("clip", "input_forget", "layout"):
            if attribute(self.node, name, 0):
                raise self.refuse(f"{name} {attribute(self.node, name, 0)}, expected none")

    def _fill(self) -> None:
        """Further numbers in each state, with weights of 0, up to a multiple of ``FULL``."""
        more, count, ways = -self.hidden % FULL, self.hidden, len(self.ways)
        at_end = ((0, 0), (0, 0), (0, more), (0, 0))

        def filled(data: npt.NDArray, ends: tuple[tuple[int, int], ...]) -> npt.NDArray:
            parts = data.reshape(ways, -1, count, *data.shape[2:])
            found = np.pad(parts, ends[: parts.ndim])
            return found.reshape(ways, -1, *found.shape[3:])

        self.weights, self.bias = filled(self.weights, at_end), filled(self.bias, at_end)
        self.back = filled(self.back, (*at_end[:3], (0, more)))
        self.hidden += more

    def _functions(self) -> list[tuple[str, ...]]:
        """The activations of each direction."""
        usual = DEFAULT[self.kind]
        given = [v.decode() for v in attribute(self.node, "activations", [])]
        given = given or list(usual * len(self.ways))
        if len(given) != len(usual) * len(self.ways) or not set(given) <= FUNCTIONS:
            raise self.refuse(f"activations {', '.join(given)}, expected Relu, Sigmoid or Tanh")
        return [tuple(given[i : i + len(usual)]) for i in range(0, len(given), len(usual))]

    # -------------------------------------------------------------------- nodes
    def _parts(self, x: str, count: int) -> list[str]:
        h = self.hidden
        return [self.part(x, i * h, (i + 1) * h, 1) for i in range(count)]

    def _dense(self, x: str, weights: npt.NDArray, bias: npt.NDArray, name: str) -> str:
        if x in self.net.constants:  # a first state
            return self._constant(f"{name}.first", self.net.constants[x] @ weights.T + bias)
        inputs = [self._constant(f"{name}.weights", weights), self._constant(f"{name}.bias", bias)]
        return self.make("Gemm", x, *inputs, transB=1)

    def _constant(self, name: str, data: npt.NDArray) -> str:
        """A constant of this cell, one for all steps."""
        name = f"{self.node.name}/{name}"
        return name if name in self.net.constants else self.net.put(name, data)

    # -------------------------------------------------------------------- steps
    def _begin(self, at: int, direction: int) -> str | None:
        """The state before the first step; None: zeros."""
        if not self._has(at):
            return None
        name = self.node.input[at]
        data = self.net.constants.get(name)
        if data is not None:
            state = np.pad(np.asarray(data)[direction], ((0, 0), (0, self.hidden - self.read)))
            return self._constant(f"state{at}.{direction}", state) if state.any() else None
        one = self.part(name, direction, direction + 1, 0)
        return self.make("Reshape", one, self.numbers(self.batch, self.hidden))

    def _direction(self, at: int, sign: int, flat: str) -> tuple[str, str, str | None]:
        """(all states (steps * batch, H), the last one, the last state of the cell)."""
        rows = self.batch
        ahead, behind = np.split(self.bias[at], 2)
        # what is added to the state's product alone: of GRU's last part, before it is reset
        inner = np.zeros_like(behind)
        if self.kind == "GRU" and attribute(self.node, "linear_before_reset", 0):
            inner[2 * self.hidden :] = behind[2 * self.hidden :]
        seen = self._dense(flat, self.weights[at], ahead + behind - inner, f"in{at}")
        h, c = self._begin(HIDDEN, at), self._begin(CELL, at) if self.kind == "LSTM" else None
        states: dict[int, str] = {}
        for step in range(self.steps)[::sign]:
            x = self.part(seen, step * rows, (step + 1) * rows, 0)
            if self.kind == "LSTM":
                h, c = self._lstm(at, x, h, c)
            elif self.kind == "GRU":
                h = self._gru(at, x, h, inner)
            else:
                h = self.make(self.functions[at][0], self._with_state(at, x, h, inner))
            states[step] = h
        assert h is not None
        return self.joined([states[i] for i in range(self.steps)], 0), h, c

    def _with_state(self, at: int, x: str, h: str | None, inner: npt.NDArray) -> str:
        return (
            x
            if h is None
            else self.make("Add", x, self._dense(h, self.back[at], inner, f"back{at}"))
        )

    def _lstm(self, at: int, x: str, h: str | None, c: str | None) -> tuple[str, str]:
        f, g, last = self.functions[at]
        size = self.hidden
        x = self._with_state(at, x, h, np.zeros(4 * size))
        # gates are input, output, forget; then what is new
        gates = self._parts(self.make(f, self.part(x, 0, 3 * size, 1)), 3)
        new = self.make("Mul", gates[0], self.make(g, self.part(x, 3 * size, 4 * size, 1)))
        c = new if c is None else self.make("Add", self.make("Mul", gates[2], c), new)
        return self.make("Mul", gates[1], self.make(last, c)), c

    def _gru(self, at: int, x: str, h: str | None, inner: npt.NDArray) -> str:
        f, g = self.functions[at]
        size, back = self.hidden, self.back[at]
        before = bool(attribute(self.node, "linear_before_reset", 0))
        gates, new = (self.part(x, a * size, b * size, 1) for a, b in ((0, 2), (2, 3)))
        if h is None:  # the state is 0
            update, reset = self._parts(self.make(f, gates), 2)
            if inner.any():
                offset = self._constant(f"inner{at}", inner[2 * size :].reshape(1, -1))
                new = self.make("Add", new, self.make("Mul", reset, offset))
            return self._mixed(update, self.make(g, new), None)
        if before:
            product = self._dense(h, back, inner, f"back{at}")
            ahead, more = (self.part(product, a * size, b * size, 1) for a, b in ((0, 2), (2, 3)))
        else:
            zeros = np.zeros(2 * size)
            ahead, more = self._dense(h, back[: 2 * size], zeros, f"gates{at}"), ""
        update, reset = self._parts(self.make(f, self.make("Add", gates, ahead)), 2)
        if before:
            more = self.make("Mul", reset, more)
        else:
            rest = self.make("Mul", reset, h)
            more = self._dense(rest, back[2 * size :], np.zeros(size), f"new{at}")
        return self._mixed(update, self.make(g, self.make("Add", new, more)), h)

    def _mixed(self, update: str, new: str, h: str | None) -> str:
        """(1 - update) * new + update * h."""
        one = self._constant("one", np.ones((1, 1)))
        fresh = self.make("Mul", self.make("Sub", one, update), new)
        return fresh if h is None else self.make("Add", fresh, self.make("Mul", update, h))

    def _outputs(self, ends: list[tuple[str, str, str | None]]) -> None:
        """Y (steps, directions, batch, H), Y_h and Y_c (directions, batch, H), where read."""
        sizes = self.batch, self.read
        wanted = [*self.node.output, "", ""][: 3 if self.kind == "LSTM" else 2]
        for at, name in enumerate(wanted):
            if not name or not (self.net.readers(name) or name in self.net.outputs):
                continue
            if at:
                shape = (len(ends), *sizes)
                whole = self.joined([self.part(str(end[at]), 0, self.read, 1) for end in ends], 0)
            else:
                shape = (self.steps, len(ends), *sizes)
                each = self.numbers(self.steps, 1, *sizes)
                states = [self.part(end[0], 0, self.read, 1) for end in ends]
                if len(ends) > 1:
                    states = [self.make("Reshape", state, each) for state in states]
                whole = self.joined(states, 1)
            self.make("Reshape", whole, self.numbers(*shape), to=name)
