# SPDX-License-Identifier: Apache-2.0
"""The rarer operators out of files: read, compiled, and beside the foreign runtimes."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import compiled, equal
from models.tests.readers.rarer_operators import CASES, EVERY, build
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.tflite import translate as tflite
from openkpu.judges import litert, ort

FEW = 2.5 / 100  # of the values may be one step off: the runtimes round in other ways


def read(case: str, form: str, dtype: type = np.int8) -> tuple[bytes, Graph]:
    """A case's file and its graph."""
    data = build(case, form, dtype)
    reader = tflite.read_tflite if form == "tflite" else onnx_reader.read_onnx
    return data, reader(data, case)


def split(name: str) -> tuple[str, str]:
    case, _, form = name.rpartition("-")
    return case, form


@pytest.mark.parametrize("name", EVERY)
def test_golden(name: str) -> None:
    """Every byte is the reference's, and nothing but order is left to the host."""
    case, form = split(name)
    _, graph = read(case, form)
    program = compiled(graph, "small")
    runs = {program.reports[n.name].runs for n in graph.nodes if n.name in program.reports}
    assert runs <= {"device", "host"}
    products = [r for r in program.rows if r.macs]
    assert all(program.reports[r.name].runs == "device" for r in products)
    equal(graph, program)


@pytest.mark.check
@pytest.mark.parametrize("name", EVERY)
def test_golden_of_uint8(name: str) -> None:
    case, form = split(name)
    _, graph = read(case, form, np.uint8)
    equal(graph, compiled(graph, "nano"))


@pytest.mark.parametrize("name", EVERY)
def test_foreign(name: str) -> None:
    """LiteRT's and ONNX Runtime's numbers: one step off in few places."""
    case, form = split(name)
    data, graph = read(case, form)
    rng = np.random.default_rng(5)
    tensors = [graph.tensors[n] for n in graph.inputs]
    values = {t.name: rng.integers(*t.limits, t.shape, endpoint=True) for t in tensors}
    if form == "tflite":
        pytest.importorskip("ai_edge_litert", reason="make setup GROUPS=test brings LiteRT")
        theirs = litert.LitertRunner(data, "reference").run(graph, values)
    else:
        pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings it")
        try:
            theirs = ort.OrtRunner(data, "plain", graph).run(graph, values)
        except Exception as error:  # of onnxruntime, which has no common base
            assert "NOT_IMPLEMENTED" in str(error) and form == "qoperator", case
            pytest.skip("onnxruntime has no such kernel")
    mine = reference.evaluate(graph, values)
    compared = 0
    for output in graph.outputs:
        if output in theirs:
            apart = np.abs(mine[output] - theirs[output].astype(np.int64))
            compared += apart.size
            assert apart.max() <= 1, case
            assert (apart > 0).mean() <= FEW, (case, float((apart > 0).mean()))
    assert compared


def test_every_format() -> None:
    """No case is without a format."""
    assert all(forms for _, forms in CASES.values())
