# SPDX-License-Identifier: Apache-2.0
"""Float TFLite models: written as ONNX they compute what LiteRT computes; quantised they run."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.readers.single_operators import CASES, SHAPE
from openkpu import configs
from openkpu.compiler import build, run
from openkpu.compiler.calibration import prepare, quantise, samples
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Quant
from openkpu.writers.flat import FlatTensor, Operator
from openkpu.writers.tflite_model import TfliteModel

ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

WITHOUT = {"requantise"}  # operators that no float model has
FUNCTIONS = {"leaky-relu", "logistic", "tanh", "hard-swish", "relu"}
NOTHING = {
    "argmax",
    "concat",
    "split",
    "slice",
    "pad",
    "resize",
    *FUNCTIONS,
}  # alone they leave nothing for the device
FORMS = ("float32", "float16", "int8")  # of constants


def floating(m: TfliteModel, form: str) -> TfliteModel:
    """A quantised model of the writer as a float one: maps float32, constants in a form."""
    added: list[Operator] = []
    for number, tensor in enumerate(list(m.tensors)):
        if not len(tensor.scales):
            continue
        data = tensor.data
        if data is None:
            tensor.dtype, tensor.scales, tensor.zero_points = np.dtype(np.float32), (), ()
            continue
        if form == "int8" and tensor.dtype == np.int8 and tensor.name[0] == "w":
            continue  # weights alone are bytes
        spread = [1] * data.ndim
        if len(tensor.scales) > 1:
            spread[tensor.axis] = -1
        scale, zero = (np.reshape(v, spread) for v in (tensor.scales, tensor.zero_points))
        real = ((data - zero.astype(float)) * scale).astype(np.float32)
        tensor.dtype, tensor.scales, tensor.zero_points = np.dtype(np.float32), (), ()
        tensor.data = real
        if form == "float16":  # as converters write them: DEQUANTIZE in front
            half = FlatTensor(f"{tensor.name}h", tensor.shape, np.dtype(np.float16))
            half.data, tensor.data = real.astype(np.float16), None
            source = m.add_tensor(half)
            added.append(Operator("DEQUANTIZE", [source], [number], "", {}))
    m.operators = added + m.operators
    return m


def model(case: str, form: str) -> bytes:
    """A case of one operator."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, Quant(0.05, 3))
    outputs = CASES[case](m, x, np.random.default_rng(1), 0)
    return floating(m, form).finish(outputs)


def litert(data: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What LiteRT makes of it."""
    runtime = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="make setup GROUPS=test brings LiteRT"
    )
    kinds = runtime.OpResolverType
    interpreter = runtime.Interpreter(
        model_content=data, experimental_op_resolver_type=kinds.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [c for c in CASES if c not in WITHOUT])
@pytest.mark.tier(check=["*-float16", "*-int8"])
def test_same_numbers(case: str, form: str) -> None:
    """The ONNX model against LiteRT; its bytes against the reference where it is quantised."""
    data = model(case, form)
    assert float_form.is_float(data, case)
    made = float_form.converted(data, case)
    session = ort.InferenceSession(made, providers=["CPUExecutionProvider"])
    shapes = [tuple(v.shape) for v in session.get_inputs()]
    rng = np.random.default_rng(2)
    given = [[rng.normal(0, 2, s).astype(np.float32) for s in shapes] for _ in range(6)]
    names = [v.name for v in session.get_inputs()]
    for arrays in given[:2]:
        mine = session.run(None, dict(zip(names, arrays, strict=True)))
        theirs = litert(data, arrays)
        assert len(mine) == len(theirs)
        near = 0.1 if form == "int8" else 1e-4
        for one, other in zip(mine, theirs, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=near, atol=near)
    net = prepare.prepared(made, case)
    feeds = [dict(zip(names, arrays, strict=True)) for arrays in given]
    graph = translate.read_onnx(quantise.quantised_net(net, feeds, "minmax", case), case)
    if case not in NOTHING:
        program = build.build_program(graph, configs.load_config("k210"))
        taken = samples.taken_inputs(net)
        inside = {t.name: v for t, v in zip(taken.inputs, _turned(given[0]), strict=True)}
        want, found = reference.evaluate(graph, inside), run.run_program(program, inside)
        for name in graph.outputs:
            assert np.array_equal(want[name], found[name])


def _turned(arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [a.transpose(0, 3, 1, 2) if a.ndim == 4 else a for a in arrays]


def test_refused() -> None:
    """An operator that is none of these, in one line with its name."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, Quant(0.05, 3))
    y = m.value(x.shape, Quant(0.05, 3))
    m.op("CUMSUM", [x, m.integers(1)], [y], "CumsumOptions")
    with pytest.raises(CompileError, match=r"CUMSUM.*no such operator"):
        float_form.converted(floating(m, "float32").finish([y]), "net")


def test_nan() -> None:
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, Quant(0.05, 3))
    outputs = CASES["conv3x3"](m, x, np.random.default_rng(1), 0)
    floating(m, "float32")
    weights = next(t for t in m.tensors if t.name[0] == "w")
    assert weights.data is not None
    weights.data[1, 2, 0, 3] = np.nan
    with pytest.raises(CompileError, match=r"weights 'w.*has a NaN"):
        float_form.converted(m.finish(outputs), "nan")


def test_quantised_is_none() -> None:
    """A model of bytes, also one whose ends are float."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, Quant(0.05, 3))
    data = m.finish(CASES["conv3x3"](m, x, np.random.default_rng(1), 0))
    assert not float_form.is_float(data, "int8")
