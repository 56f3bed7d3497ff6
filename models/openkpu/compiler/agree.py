# SPDX-License-Identifier: Apache-2.0
"""Does a compiled graph compute what it says?  Byte for byte, node by node, against the reference.

The passes are judged by the reference of the graph before and after them.  Then every node is
computed from the device's own inputs of the node, so that a node within a step (docs/compiler.md)
does not hide later differences: an exact node must be equal, another one within the steps of its
report.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from openkpu.compiler import run
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.program import DevicePart, Program
from openkpu.network.network import Network

Values = dict[str, npt.NDArray]


def faults(
    graph: Graph,
    program: Program,
    inputs: Mapping[str, npt.NDArray],
    runner: run.Runner = run.golden_maps,
) -> list[str]:
    """A line for each node, and each output, that is not what it should be."""
    wrong = []
    before, after = (reference.evaluate(g, inputs) for g in (graph, program.graph))
    for name in graph.outputs:
        if not np.array_equal(before[name], after[name]):
            wrong.append(f"{name}: a pass changes {_apart(before[name], after[name])}")
    device = _device(program, inputs, runner)
    constants = [t for t in program.graph.tensors.values() if t.data is not None]
    values: Values = {t.name: reference.held(np.asarray(t.data), t) for t in constants}
    values |= {name: np.asarray(inputs[name]) for name in program.graph.inputs}
    for node in program.graph.nodes:
        (name,) = node.outputs
        want = reference.compute(program.graph, node, [values[n] for n in node.inputs])
        found = device.get(name, want)
        report = program.reports.get(node.name)
        steps = report.steps if report else 0
        most = int(np.abs(found - want).max(initial=0)) if want.dtype.kind in "iu" else 0
        if most > steps:
            wrong.append(
                f"{node.name} ({node.kind} {node.describe()}): {_apart(want, found)},"
                f" {steps} steps allowed"
            )
        values[name] = found
    for name in graph.outputs:
        if not np.array_equal(device[name], values[name]):
            wrong.append(f"{name}: an output that is not what was computed")
    return wrong


def _apart(want: npt.NDArray, found: npt.NDArray) -> str:
    apart = np.abs(np.asarray(want, np.int64) - np.asarray(found, np.int64))
    return f"{int((apart > 0).sum())} of {apart.size} bytes by up to {int(apart.max())}"


def _device(program: Program, inputs: Mapping[str, npt.NDArray], runner: run.Runner) -> Values:
    """All tensors that cross the bus, and the ones that are the map of one layer."""
    taps: Values = {}

    def seen(part: DevicePart, network: Network, x: npt.NDArray[np.uint8]) -> run.Maps:
        maps = runner(part, network, x)
        for port in part.taps:
            if all(i in maps for i in port.layers):
                taps[port.tensor] = port.tensor_of(maps)
        return maps

    return taps | run.run_program(program, inputs, seen)
