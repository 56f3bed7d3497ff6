# SPDX-License-Identifier: Apache-2.0
"""ENDS: a network up to given tensors, so that a tail that nothing here computes is left out."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("tflite", reason="make setup GROUPS=models brings tflite")
import onnx
from onnx import TensorProto, helper

from models.tests.readers.single_operators import build
from models.tests.readers.test_onnx_exporters import File
from openkpu import configs
from openkpu.compiler import okpu, source
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Table
from openkpu.compiler.tflite.file import parse_tflite
from openkpu.writers import Quant
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.tflite_model import TfliteModel

SMALL = configs.load_config("small")


def detector(tail: str, domain: str = "") -> bytes:
    """Convolution, ReLU, and an operator that nothing here has, which needs two results of them."""
    f = File()
    x = f.node("Conv", "x", f.put(np.random.default_rng(1).normal(0, 0.3, (4, 3, 3, 3))))
    flat = f.node("Flatten", f.node("Relu", x))
    y = f.node(tail, flat, f.put([1], np.int64), domain=domain)
    model = onnx.load_model_from_string(f.data(y, (1, 3, 8, 8), (None, None)))
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return model.SerializeToString()


def request(tmp_path: Path) -> Request:
    rng = np.random.default_rng(2)
    np.save(tmp_path / "x.npy", rng.normal(0, 1, (4, 3, 8, 8)).astype(np.float32))
    return Request(str(tmp_path / "x.npy"))


@pytest.mark.parametrize(("tail", "domain"), [("CumSum", ""), ("Magic", "org.example")])
def test_float_tail(tail: str, domain: str, tmp_path: Path) -> None:
    """The refusal says how the network ends in front of the operator, and so it does."""
    path, asked = tmp_path / "net.onnx", request(tmp_path)
    path.write_bytes(detector(tail, domain))
    with pytest.raises(CompileError) as error:
        source.read_program(path, SMALL, None, asked)
    (ends,) = re.findall(r"--ends=(\S+) ends the network in front of it", str(error.value))
    program = source.read_program(path, SMALL, None, asked, ends=ends.split(","))
    assert program.graph.outputs == [ends] and program.graph.tensors[ends].shape == (1, 4 * 36)


def test_two_ends_in_another_order(tmp_path: Path) -> None:
    """Results have the order of ENDS; what none of them needs is left out."""
    path, asked = tmp_path / "net.onnx", request(tmp_path)
    path.write_bytes(detector("CumSum"))
    first, second, third, _ = (n.output[0] for n in onnx.load(path).graph.node)
    program = source.read_program(path, SMALL, None, asked, ends=(second, first))
    assert program.graph.outputs == [second, first]
    assert all(third not in node.outputs for node in program.graph.nodes)


@pytest.mark.parametrize("kind", ["tflite", "qdq"])
def test_quantised(kind: str, tmp_path: Path) -> None:
    """The inner tensor of a quantised model is its result, with the bytes that it had inside."""
    suffix = "tflite" if kind == "tflite" else "onnx"
    path = tmp_path / f"net.{suffix}"
    path.write_bytes(build("fully", kind))
    whole = source.read_graph(path)
    inner = whole.nodes[0].outputs[0]
    if kind == "tflite":
        raw = parse_tflite(path.read_bytes(), "net")
        inner = raw.tensors[raw.operators[0].outputs[0]].name
    part = source.read_graph(path, ends=[inner])
    assert len(part.nodes) < len(whole.nodes) and len(part.outputs) == 1
    rng = np.random.default_rng(3)
    feed = {n: rng.integers(-128, 128, whole.tensors[n].shape) for n in whole.inputs}
    seen = dataclasses.replace(whole, outputs=[inner])
    found = reference.evaluate(part, feed)[part.outputs[0]]
    np.testing.assert_array_equal(found, reference.evaluate(seen, feed)[inner])


@pytest.mark.parametrize("kind", ["tflite", "qdq"])
def test_an_input_that_is_not_needed(kind: str, tmp_path: Path) -> None:
    """Nobody is asked for the input of what was left out."""
    path = tmp_path / f"net.{'tflite' if kind == 'tflite' else 'onnx'}"
    m = TfliteModel(np.int8) if kind == "tflite" else OnnxModel(kind, np.int8, opset=14)
    shape, quant = (1, 8, 10, 7), Quant(0.05, 3)
    first = m.unary("tanh", m.input(shape, quant), Quant(1 / 128, 0))
    y = m.binary("add", first, m.input(shape, quant), Quant(0.09, -5))
    path.write_bytes(m.finish([y]))
    whole = source.read_graph(path)
    inner = next(n for n in whole.nodes if isinstance(n, Table)).outputs[0]
    assert len(whole.inputs) == 2
    assert source.read_graph(path, ends=[inner]).inputs == whole.inputs[:1]


def test_wrong_ends(tmp_path: Path) -> None:
    path, asked = tmp_path / "net.onnx", request(tmp_path)
    path.write_bytes(detector("CumSum"))
    name = onnx.load(path).graph.node[1].output[0]
    with pytest.raises(CompileError, match=rf"--ends={name}s: no node writes it; did you mean"):
        source.read_program(path, SMALL, None, asked, ends=[f"{name}s"])
    with pytest.raises(CompileError, match=f"--ends={name},{name}: {name} is there twice"):
        source.read_program(path, SMALL, None, asked, ends=[name, name])
    with pytest.raises(CompileError, match="--ends=x: no node writes it; "):
        source.read_program(path, SMALL, None, asked, ends=["x"])
    path.write_bytes(build("conv1x1", "qdq"))
    made = tmp_path / "net.okpu"
    made.write_bytes(okpu.dumps(source.read_program(path, SMALL)))
    with pytest.raises(CompileError, match="--ends is of a model, this is compiled"):
        source.read_program(made, SMALL, ends=["a"])
