# SPDX-License-Identifier: Apache-2.0
"""The official int8 models of MLPerf Tiny: every node against the exact reference, and cycles.

The files are not part of the project; without them these tests skip and say so.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.compiler import run, source
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.program import DevicePart, Program
from openkpu.network.network import Network
from openkpu.prediction.cycles_model import predict_network

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
# most cycles of the task list on k210, most seconds of the compilation
MODELS = {
    "pretrainedResnet_quant": 28_500,
    "vww_96_int8": 38_500,
    "kws_ref_model": 15_000,
    "ad01_int8": 36_300,
    "pretrainedResnet_large_int8": 160_000,
    "str_ww_ref_model": 28_000,
}
EXACT = ("vww_96_int8", "kws_ref_model", "ad01_int8")  # every byte of the result
SECONDS = 20  # on a busy machine; 5 are the aim


def model(name: str) -> Path:
    path = SHARED / "real" / "mlperf_tiny" / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is not there; OPENKPU_SHARED names another place")
    return path


def node_by_node(graph: Graph, program: Program, seed: int) -> dict[str, tuple[int, int, int]]:
    """(bytes that differ, by how much, bytes) of each node, computed from what the golden model
    of the device has as its inputs."""
    rng, values = np.random.default_rng(seed), {}
    (name,) = graph.inputs

    def runner(part: DevicePart, network: Network, first: np.ndarray) -> run.Maps:
        found = run.golden_maps(part, network, first)
        values.update({t.tensor: t.tensor_of(found) for t in part.taps})
        return found

    x = {name: rng.integers(-128, 128, graph.tensors[name].shape)}
    values |= run.run_program(program, x, runner)
    found = {}
    for node in graph.nodes:
        (output,) = node.outputs
        if output not in values or any(n not in values for n in node.inputs):
            continue
        want = reference.compute(graph, node, [values[n] for n in node.inputs])
        apart = np.abs(want - values[output])
        found[node.name] = int((apart > 0).sum()), int(apart.max()), want.size
    return found


@pytest.mark.parametrize("name", MODELS)
def test_cycles_and_bytes(name: str) -> None:
    """One task list, as fast as it was, the result exact where all nodes are."""
    path, config = model(name), configs.load_config("k210")
    began = time.process_time()
    program = source.read_program(path, config)
    took = time.process_time() - began
    (part,) = program.device_parts
    cycles = predict_network(config, part.network).cycles
    missed = {k: r.missed for k, r in program.reports.items() if r.missed}
    differ = node_by_node(program.graph, program, 1)
    print(f"{name}: {cycles} cycles, {took:.1f} s, missed {missed}")
    assert cycles <= MODELS[name] and took < SECONDS
    assert 2 * len(differ) >= len([r for r in program.rows if r.macs])
    for node, (wrong, most, count) in differ.items():
        if node in missed:
            assert most <= 1 and wrong <= count / 1000, (node, wrong, count)
        else:
            assert not wrong, node
    if name in EXACT:
        assert sum(missed.values()) <= 1
    assert {r.runs for k, r in program.reports.items() if "phases" not in k} <= {"device", "host"}
    conv = [row for row in program.rows if row.macs]
    assert all(program.reports[row.name].runs == "device" for row in conv)
