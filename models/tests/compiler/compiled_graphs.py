# SPDX-License-Identifier: Apache-2.0
"""Graphs of the intermediate form for tests of the compiler, and what the golden model makes of
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import configs
from openkpu.compiler import build, run
from openkpu.compiler.form import reference
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import (
    RANGE,
    Conv,
    Dense,
    Elementwise,
    Graph,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
    window_size,
)
from openkpu.compiler.program import DevicePart, Program
from openkpu.writers import Pads, explicit_pads


class Maker:
    """A graph in the making; every tensor of one type."""

    def __init__(self, seed: int = 1, dtype: str = "int8") -> None:
        self.rng, self.dtype = np.random.default_rng(seed), dtype
        self.graph = Graph(f"test{seed}")

    def tensor(
        self, *shape: int, scale: float | None = None, zero: int | None = None, data: object = None
    ) -> Tensor:
        """A tensor with a scale and zero point of its own, unless they are given."""
        scale = float(np.float32(self.rng.uniform(0.02, 0.06))) if scale is None else scale
        low, high = RANGE[self.dtype]
        zero = int(self.rng.integers(low + 20, high - 20)) if zero is None else zero
        made = Tensor(f"t{len(self.graph.tensors)}", self.dtype, shape, scale, zero)
        made.data = None if data is None else np.asarray(data)
        return self.graph.add_tensor(made)

    def input(self, *shape: int, **how: Any) -> Tensor:
        made = self.tensor(*shape, **how)
        made.layout = "NCHW" if len(shape) == 4 else ""
        self.graph.inputs.append(made.name)
        return made

    def bytes(self, *shape: int) -> npt.NDArray[np.int64]:
        return self.rng.integers(*RANGE[self.dtype], shape, endpoint=True)

    def node(
        self, kind: type[Node], inputs: Sequence[Tensor], output: Tensor, **how: object
    ) -> Tensor:
        names, number = tuple(t.name for t in inputs), len(self.graph.nodes)
        self.graph.nodes.append(kind(f"n{number}", kind.__name__, names, (output.name,), **how))
        return output

    def _products(self, x: Tensor, o: int, taps: int, y: Tensor) -> dict[str, object]:
        """Scales that spread the sums over the output's bytes, and biases."""
        assert x.scale is not None and y.scale is not None
        spread = np.sqrt(taps) * 74 * 60 * float(x.scale)
        scale = self.rng.uniform(0.7, 1.4, o) * float(y.scale) * 50 / spread
        bias = self.rng.integers(-5000, 5000, o)
        scales = scale.astype(np.float32).astype(np.float64)
        return {"w_scale": scales, "w_zero": np.zeros(o, np.int64), "bias": bias}

    def conv(
        self,
        x: Tensor,
        o: int,
        kernel: tuple[int, int],
        strides: tuple[int, int] = (1, 1),
        pads: Pads = "same",
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        clamp: tuple[int, int] | None = None,
    ) -> Tensor:
        """A convolution; SAME as TensorFlow pads."""
        size = x.shape[2], x.shape[3]
        edges = explicit_pads(size, kernel, strides, pads, dilation)
        out = window_size(size, kernel, strides, edges, dilation)
        y = self.tensor(1, o, *out)
        weights = self.rng.integers(-127, 128, (o, x.shape[1] // groups, *kernel))
        how = {"strides": strides, "pads": edges, "dilation": dilation, "groups": groups}
        how |= self._products(x, o, weights[0].size, y)
        return self.node(Conv, [x], y, weights=weights, clamp=clamp or y.limits, **how)

    def dense(self, x: Tensor, o: int) -> Tensor:
        k = x.shape[-1]
        y = self.tensor(*x.shape[:-1], o)
        how = self._products(x, o, k, y)
        weights = self.rng.integers(-127, 128, (o, k))
        return self.node(Dense, [x], y, weights=weights, clamp=y.limits, **how)

    def pool(
        self,
        x: Tensor,
        how: str,
        kernel: tuple[int, int],
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        count_pads: bool = False,
        same: bool = True,
    ) -> Tensor:
        out = window_size((x.shape[2], x.shape[3]), kernel, strides, pads)
        numbers = {"scale": x.scale, "zero": x.zero} if same else {}
        y = self.tensor(1, x.shape[1], *out, **numbers)
        fields = {"strides": strides, "pads": pads, "count_pads": count_pads}
        return self.node(Pool, [x], y, how=how, kernel=kernel, clamp=y.limits, **fields)

    def both(self, how: str, a: Tensor, b: Tensor, **numbers: Any) -> Tensor:
        shape = np.broadcast_shapes(a.shape, b.shape)
        y = self.tensor(*shape, **numbers)
        return self.node(Elementwise, [a, b], y, how=how, clamp=y.limits)

    def table(self, x: Tensor, table: npt.NDArray[np.int64]) -> Tensor:
        return self.node(Table, [x], self.tensor(*x.shape), table=table)

    def move(
        self, inputs: Sequence[Tensor], shape: Sequence[int], how: str, **fields: object
    ) -> Tensor:
        x = inputs[0]
        y = self.tensor(*shape, scale=x.scale, zero=x.zero)
        return self.node(Move, inputs, y, how=how, **fields)

    def done(self, *outputs: Tensor) -> Graph:
        self.graph.outputs = [t.name for t in outputs]
        return check_graph(self.graph)


def compiled(graph: Graph, config: str = "k210") -> Program:
    """The program for a configuration."""
    return build.build_program(graph, configs.load_config(config))


def layers(program: Program) -> list[str]:
    """What each layer is: "3x3", "1x1 dw p5", "3x3 by 2", "pool", "add"."""
    found = []
    for part in program.device_parts:
        for arg in part.network.layers:
            words = ["pool"] if arg.pool_task else [f"{arg.kernel}x{arg.kernel}"]
            words = ["ew"] if arg.elementwise else words
            words += ["dw"] if arg.depthwise and not arg.elementwise else []
            words += ["fc"] if arg.fc else []
            words += [f"p{arg.pool_type}"] if arg.pool_type else []
            words += [f"by {arg.dilation}"] if arg.dilation > 1 else []
            found.append(" ".join(words))
    return found


def alone(program: Program) -> bool:
    """Is it one task list, and nothing for the host?"""
    return len(program.parts) == 1 and isinstance(program.parts[0], DevicePart)


def differs(graph: Graph, program: Program, inferences: int = 2) -> tuple[int, int]:
    """(bytes of outputs that differ from the reference, by how much at most)."""
    rng, wrong, most = np.random.default_rng(7), 0, 0
    for _ in range(inferences):
        values = {}
        for name in graph.inputs:
            tensor = graph.tensors[name]
            values[name] = rng.integers(*tensor.limits, tensor.shape, endpoint=True)
        want, found = reference.evaluate(graph, values), run.run_program(program, values)
        for name in graph.outputs:
            apart = np.abs(want[name] - found[name])
            wrong, most = wrong + int((apart > 0).sum()), max(most, int(apart.max()))
            low, high = np.percentile(want[name], (2, 98))
            assert high > low or want[name].size < 16, "outputs that are all alike test nothing"
    return wrong, most


def equal(graph: Graph, program: Program) -> None:
    """Every byte of every output is the reference's.

    Where edges of requantisation lie at another sum (few, and the report counts them) a byte may
    meet one and be one step off.
    """
    reports = program.reports.values()
    missed, edges = sum(r.missed for r in reports), sum(r.edges for r in reports)
    wrong, most = differs(graph, program)
    assert missed <= edges / 100, (missed, edges)
    assert wrong == 0 or (missed and wrong <= 2 and most == 1), (wrong, most, missed)
