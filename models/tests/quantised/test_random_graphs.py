# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs: reader, exact reference, golden model and foreign runtime agree.

Each identifier is a block of ten seeds; the first one is quick, the second of every push, the
others of the nightly run. A failure names the seed and the format; the model then is
``random_graph(seed, form, dtype)``.
"""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.quantised.random_graphs import random_graph
from models.tests.readers.single_operators import FORMATS
from openkpu import configs
from openkpu.compiler import build, run
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.program import Program
from openkpu.compiler.tflite import translate as tflite
from openkpu.judges import Judgement, litert, ort

BLOCKS = range(40)
PUSH = [f"block1-{form}" for form in FORMATS]
LATER = [f"block{b}-{form}" for b in BLOCKS if b >= 2 for form in FORMATS]


def dtype_of(seed: int) -> type:
    """Every third one is unsigned."""
    return np.int8 if seed % 3 else np.uint8


def model(seed: int, form: str) -> tuple[bytes, Graph]:
    """The file and its graph."""
    data, name = random_graph(seed, form, dtype_of(seed)), f"seed {seed} {form}"
    read = tflite.read_tflite if form == "tflite" else onnx_reader.read_onnx
    return data, read(data, name)


def inputs_of(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """Random bytes."""
    rng = np.random.default_rng(seed)
    tensors = [graph.tensors[name] for name in graph.inputs]
    return {t.name: rng.integers(*t.limits, t.shape, endpoint=True) for t in tensors}


def judged(seed: int, form: str, kind: str) -> Judgement | None:
    """The runtime's judgement; None of a kernel that it does not have."""
    data, graph = model(seed, form)
    kinds: dict[str, tuple[str, ...]] = {**litert.KERNELS} if form == "tflite" else {**ort.WAYS}
    found, values = Judgement(graph.name, kind, kinds[kind]), inputs_of(graph, seed)
    try:
        if form == "tflite":
            theirs = litert.LitertRunner(data, kind).run(graph, values)
        else:
            theirs = ort.OrtRunner(data, kind, graph).run(graph, values)
    except Exception as error:  # of onnxruntime, which has no common base
        assert "NOT_IMPLEMENTED" in str(error), graph.name  # some QLinear kernels of int8
        return None
    found.take(graph, values, theirs)
    return found


@pytest.mark.tier(check=PUSH, nightly=LATER)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"block{b}")
def test_foreign_runtimes(block: int, form: str) -> None:
    """Every difference is explained, and every node is compared."""
    pytest.importorskip(
        "ai_edge_litert" if form == "tflite" else "onnxruntime",
        reason="make setup GROUPS=test brings LiteRT and onnxruntime",
    )
    some = 0
    for seed in range(10 * block, 10 * block + 10):
        for kind in ("reference", "xnnpack") if form == "tflite" else ("plain", "optimised"):
            found = judged(seed, form, kind)
            if found is None:
                continue
            some += 1
            wrong = [row for row in found.rows.values() if row.reasons["none"]]
            assert not wrong, (found.model, kind, wrong)
            assert found.ends.values > 0 and found.total.worst <= 2, found.model
    assert some >= 10


def is_exact(program: Program) -> bool:
    """Does the compiler say that every byte is the exact one (docs/compiler.md)?"""
    return not any(report.steps for report in program.reports.values())


@pytest.mark.tier(check=PUSH, nightly=LATER)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"block{b}")
def test_golden(block: int, form: str) -> None:
    """The golden model gives the reference's bytes, where the compiler says so; few graphs are
    refused, in one line."""
    exact = refused = 0
    for seed in range(10 * block, 10 * block + 10):
        _, graph = model(seed, form)
        values = inputs_of(graph, seed)
        try:
            program = build.build_program(
                graph, configs.load_config(("k210", "small", "nano")[seed % 3])
            )
        except CompileError as error:
            refused += 1
            assert "\n" not in str(error)
            continue
        want, found = reference.evaluate(graph, values), run.run_program(program, values)
        for name in graph.outputs:
            assert found[name].shape == want[name].shape, graph.name
            if is_exact(program):
                exact += 1
                assert np.array_equal(found[name], want[name]), graph.name
    assert exact >= 1 and refused <= 4
