# SPDX-License-Identifier: Apache-2.0
"""The rarer operators of TFLite, of bytes and of floats, beside LiteRT; constants of rank 0."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from openkpu import configs
from openkpu.compiler import agree, build, okpu, run
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.between import COORDINATES, shares
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite import file, raw
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.judges import Judgement
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.flat import FlatTensor
from openkpu.writers.tflite_model import TfliteModel

ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
lite = pytest.importorskip(
    "ai_edge_litert.interpreter", reason="make setup GROUPS=test brings LiteRT"
)
Q = Quant(0.05, 3)
Make = Callable[[TfliteModel, Value], Value]


def transposed(kernel: int, stride: int, same: bool) -> Make:
    def make(m: TfliteModel, x: Value) -> Value:
        rng, (_, c, h, w) = np.random.default_rng(3), x.shape
        data = rng.integers(-127, 128, (4, kernel, kernel, c)).astype(np.int8)
        more = 0 if same else max(kernel - stride, 0)
        size = h * stride + more, w * stride + more
        scales = rng.uniform(0.003, 0.005, 4).astype(np.float32)
        weights = m.add_tensor(
            FlatTensor("w", data.shape, data.dtype, data, scales.tolist(), [0] * 4, 0)
        )
        y = m.value((1, 4, *size), Quant(0.2, -4))
        m.op(
            "TRANSPOSE_CONV",
            [m.integers([1, *size, 4]), weights, x],
            [y],
            "TransposeConvOptions",
            padding=0 if same else 1,
            strideH=stride,
            strideW=stride,
        )
        return y

    return make


def blocks(kind: str) -> Make:
    def make(m: TfliteModel, x: Value) -> Value:
        _, c, h, w = x.shape
        deep = kind == "DEPTH_TO_SPACE"
        shape = (1, c // 4, 2 * h, 2 * w) if deep else (1, 4 * c, h // 2, w // 2)
        y = m.value(shape, Q)
        options = "DepthToSpaceOptions" if deep else "SpaceToDepthOptions"
        m.op(kind, [x], [y], options, blockSize=2)
        return y

    return make


def tiled(*times: int) -> Make:
    """``times`` in the model's order of axes."""

    def make(m: TfliteModel, x: Value) -> Value:
        n, h, w, c = times
        y = m.value([a * b for a, b in zip(x.shape, (n, c, h, w), strict=True)], Q)
        m.op("TILE", [x, m.integers(times)], [y], "TileOptions")
        return y

    return make


def repeated(m: TfliteModel, x: Value) -> Value:
    """Lines twice, as Keras 3 writes UpSampling2D: an axis of its own is tiled."""
    _, c, h, w = x.shape
    apart = m.value((1, h, 1, w, c), Q)
    m.op("RESHAPE", [x, m.integers([1, h, 1, w, c])], [apart], "ReshapeOptions")
    twice = m.value((1, h, 2, w, c), Q)
    m.op("TILE", [apart, m.integers([1, 1, 2, 1, 1])], [twice], "TileOptions")
    y = m.value((1, c, 2 * h, w), Q)
    m.op("RESHAPE", [twice, m.integers([1, 2 * h, w, c])], [y], "ReshapeOptions")
    return y


def resized(align: bool, half: bool) -> Make:
    def make(m: TfliteModel, x: Value) -> Value:
        y = m.value((1, x.shape[1], 11, 7), Q)
        size = m.integers([11, 7])
        how = {"alignCorners": align, "halfPixelCenters": half}
        options = "ResizeNearestNeighborOptions"
        m.op("RESIZE_NEAREST_NEIGHBOR", [x, size], [y], options, "", **how)
        return y

    return make


def gelu(approximate: bool) -> Make:
    def make(m: TfliteModel, x: Value) -> Value:
        y = m.value(x.shape, Quant(0.04, -110))
        m.op("GELU", [x], [y], "GeluOptions", approximate=approximate)
        return y

    return make


def product(turned: bool) -> Make:
    """Each of 8 channels by itself turned around; both operands are computed."""

    def make(m: TfliteModel, x: Value) -> Value:
        _, c, h, w = x.shape
        rows = m.reshape(x, (1, h * w, c))
        if turned:
            y = m.value((1, h * w, h * w), Quant(1.5, 5))
            m.op("BATCH_MATMUL", [rows, rows], [y], "BatchMatMulOptions", adjY=True)
        else:
            y = m.value((1, c, c), Quant(2.5, 5))
            m.op("BATCH_MATMUL", [rows, rows], [y], "BatchMatMulOptions", adjX=True)
        return y

    return make


def between(height: int, width: int, align: bool = False, half: bool = True) -> Make:
    """Linear resizing, as Keras' UpSampling2D and Resizing have it with half pixels."""

    def make(m: TfliteModel, x: Value) -> Value:
        y = m.value((1, x.shape[1], height, width), Q)
        how = {"alignCorners": align, "halfPixelCenters": half}
        size = m.integers([height, width])
        m.op("RESIZE_BILINEAR", [x, size], [y], "ResizeBilinearOptions", "", **how)
        return y

    return make


def along(kind: str, scale: float, zero: int, options: str = "") -> Make:
    """LOG_SOFTMAX and L2_NORMALIZATION, with the scale that LiteRT asks for."""

    def make(m: TfliteModel, x: Value) -> Value:
        y = m.value(x.shape, Quant(scale, zero))
        m.op(kind, [x], [y], options)
        return y

    return make


def unpacked(axis: int, at: int) -> Make:
    """A part of ``unstack``, and what it is with its axis again."""

    def make(m: TfliteModel, x: Value) -> Value:
        inside = [x.shape[a] for a in (0, 2, 3, 1)]
        count = inside.pop(axis)
        parts = [m.value(inside, Q) for _ in range(count)]
        m.op("UNPACK", [x], parts, "UnpackOptions", num=count, axis=axis)
        return parts[at]

    return make


def layered(make: Make) -> Make:
    """Between two convolutions."""

    def both(m: TfliteModel, x: Value) -> Value:
        weights = Weights(np.random.default_rng(4).integers(-9, 9, (8, 8, 1, 1)).astype("i1"), 0.02)
        return m.conv(make(m, m.conv(x, weights, Q)), weights, Quant(0.06, 9))

    return both


# beside LiteRT alone: there is nothing for the device in them
MOVED = ("gelu", "tiled", "resized", "repeated", "depth", "space", "unpacked", "between")
HOSTED = ("log softmax", "vectors")
CASES: dict[str, Make] = {
    "between": between(12, 8),
    "between, thrice": between(18, 4),
    "between, less": between(4, 3),
    "between, corners": between(11, 7, align=True, half=False),
    "between, from the edge": between(12, 7, half=False),
    "between, one": between(1, 1),
    "log softmax": along("LOG_SOFTMAX", 16 / 256, 127, "LogSoftmaxOptions"),
    "vectors": along("L2_NORMALIZATION", 1 / 128, 0, "L2NormOptions"),
    "unpacked channel": unpacked(-1, 5),
    "unpacked line": unpacked(1, 2),
    "unpacked column": unpacked(2, 3),
    "transposed 3x3 by 2": transposed(3, 2, True),
    "transposed 3x3 by 2, valid": transposed(3, 2, False),
    "transposed 2x2 by 2": transposed(2, 2, True),
    "transposed 2x2 by 3": transposed(2, 3, True),
    "depth to space": blocks("DEPTH_TO_SPACE"),
    "space to depth": blocks("SPACE_TO_DEPTH"),
    "tiled": tiled(1, 2, 1, 3),
    "repeated": repeated,
    "resized": resized(False, False),
    "resized, corners": resized(True, False),
    "resized, half": resized(False, True),
    "gelu": gelu(False),
    "gelu with tanh": gelu(True),
    "product": product(False),
    "product, turned": product(True),
}


def written(name: str) -> tuple[TfliteModel, Value]:
    m = TfliteModel(np.int8)
    x = m.input((1, 8, 6, 4), Q)
    return m, CASES[name](m, x)


def runtime(data: bytes) -> Any:
    kinds = lite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    found = lite.Interpreter(model_content=data, experimental_op_resolver_type=kinds, num_threads=1)
    found.allocate_tensors()
    return found


def theirs(interpreter: Any, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize("name", CASES)
def test_of_bytes(name: str) -> None:
    """Within the runtime's own roundings of LiteRT; the program's bytes are the reference's."""
    m, y = written(name)
    data = m.finish([y])
    graph, interpreter = tflite.read_tflite(data, "net"), runtime(data)
    program = None
    if not name.startswith((*MOVED, *HOSTED)):
        program = build.build_program(graph, configs.load_config("k210"))
    reasons = ("two",) if name.startswith("between") else ("two", "half", "fixed", "function")
    found = Judgement("net", "optimised", reasons)
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 6, 4, 8))
        want = theirs(interpreter, x.astype(np.int8)).astype(np.int64)
        given = {graph.inputs[0]: x.transpose(0, 3, 1, 2)}
        mine = reference.evaluate(graph, given)
        last = want.transpose(0, 3, 1, 2) if want.ndim == 4 else want
        found.take(graph, given, {graph.outputs[0]: last})
        if program is not None:
            made = run.run_program(program, given)[graph.outputs[0]]
            steps = sum(r.missed for r in program.reports.values())
            assert np.abs(made - mine[graph.outputs[0]]).max() <= (1 if steps else 0)
    assert found.total.values > 0 and not found.total.reasons["none"], found.total


BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "no shares": ({"lines": None}, "expected a map, and shares of its lines and columns"),
    "other shares": ({"lines": "a0"}, "damaged|shares"),
    "another kind": ({"how": "lined"}, "'lined', expected one of softmax"),
    "two inputs": ({"inputs": ["t0", "t0"]}, "2 inputs and 1 outputs, expected 1 and 1"),
    "no tensor": ({"inputs": ["nowhere"]}, "tensor 'nowhere' is not in the graph"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_program_file_with_a_broken_node(name: str) -> None:
    """Fields of the host's nodes are checked when a file is loaded."""
    fields, text = BROKEN[name]
    m = TfliteModel(np.int8)
    y = layered(CASES["between"])(m, m.input((1, 8, 6, 4), Q))
    graph = tflite.read_tflite(m.finish([y]), "net")
    data = okpu.dumps(build.build_program(graph, configs.load_config("k210")))
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w") as new:
        for entry in old.namelist():
            content = old.read(entry)
            if entry == okpu.NAME:
                whole = json.loads(content)
                (node,) = [n for part in whole["parts"] for n in part.get("host", ())]
                node.update(fields)
                content = json.dumps(whole).encode()
            new.writestr(entry, content)
    with pytest.raises(CompileError, match=rf"^net\.okpu: .*({text})") as error:
        okpu.loads_okpu(changed.getvalue(), "net.okpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("size, outputs", [(5, 10), (5, 15), (7, 4), (3, 11), (1, 4), (6, 1)])
def test_shares_of_pixels(size: int, outputs: int, coordinates: str) -> None:
    """What LiteRT makes of a line of ones between zeros: the exact shares but for float32."""
    m = TfliteModel(np.int8)
    x = m.input((1, size, size, 1), Q)
    y = m.value((1, size, outputs, 1), Q)
    how = {"alignCorners": "align" in coordinates, "halfPixelCenters": "half" in coordinates}
    ends = [x, m.integers([outputs, 1])], [y], "ResizeBilinearOptions"
    m.op("RESIZE_BILINEAR", *ends, "", **how)
    data = floating(m, "float32").finish([y])
    ones = np.eye(size, dtype=np.float32).reshape(1, size, 1, size)
    found = theirs(runtime(data), ones).reshape(outputs, size)
    np.testing.assert_allclose(shares(size, outputs, coordinates), found, atol=1e-5)


@pytest.mark.parametrize("name", ["between, thrice", "log softmax", "vectors"])
def test_on_the_host(name: str) -> None:
    """Between two layers, in a program file as well: the reference's bytes."""
    m = TfliteModel(np.int8)
    graph = tflite.read_tflite(m.finish([layered(CASES[name])(m, m.input((1, 8, 6, 4), Q))]), "net")
    program = build.build_program(graph, configs.load_config("k210"))
    assert [r.runs for r in program.reports.values()] == ["device", "host", "device"]
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    given = {graph.inputs[0]: np.random.default_rng(5).integers(-128, 128, (1, 8, 6, 4))}
    assert agree.faults(graph, program, given) == []
    (name,) = graph.outputs
    np.testing.assert_array_equal(
        run.run_program(again, given)[name], run.run_program(program, given)[name]
    )


@pytest.mark.parametrize("name", CASES)
def test_of_floats(name: str) -> None:
    """The ONNX model computes LiteRT's numbers, and can be quantised."""
    m, y = written(name)
    data = floating(m, "float32").finish([y])
    made = float_form.converted(data, "net")
    session, interpreter = ort.InferenceSession(made), runtime(data)
    (given,), rng = session.get_inputs(), np.random.default_rng(2)
    many = [rng.normal(0, 2, (1, 6, 4, 8)).astype(np.float32) for _ in range(6)]
    for x in many[:3]:
        (mine,) = session.run(None, {given.name: x})
        np.testing.assert_allclose(mine, theirs(interpreter, x), rtol=1e-4, atol=1e-4)
    feeds = [{given.name: x} for x in many]
    made = quantise.quantised_net(prepare.prepared(made, "net"), feeds, "minmax", "net")
    assert translate.read_onnx(made, "net").nodes


@pytest.mark.parametrize("how", ["add", "sub", "mul"])
def test_constant_of_rank_0(how: str) -> None:
    """One number without axes, as Keras' Rescaling and hard sigmoid have it; in a program file."""
    m = TfliteModel(np.int8)
    x = m.input((1, 8, 6, 4), Q)
    number = m.constant(np.array(77, np.int8), Quant(0.02, -5))
    weights = Weights(np.full((8, 8, 1, 1), 3, np.int8), 0.01)
    y = m.conv(m.binary(how, x, number, Quant(0.15, 2)), weights, Quant(0.2, 0))
    data = m.finish([y])
    graph = tflite.read_tflite(data, "net")
    assert any(t.data is not None and t.data.size == 1 for t in graph.tensors.values())
    program = build.build_program(graph, configs.load_config("k210"))
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    given = np.random.default_rng(5).integers(-128, 128, (1, 6, 4, 8))
    inside = {graph.inputs[0]: given.transpose(0, 3, 1, 2)}
    found = run.run_program(again, inside)[graph.outputs[0]].transpose(0, 2, 3, 1)
    want = theirs(runtime(data), given.astype(np.int8)).astype(np.int64)
    assert np.abs(found - want).max() <= 1


def wrong_size(m: TfliteModel, x: Value) -> Value:
    y = m.value((1, 8, 12, 8), Q)
    m.op("RESIZE_BILINEAR", [x, m.integers([12, 9])], [y], "ResizeBilinearOptions")
    return y


def wrong_count(m: TfliteModel, x: Value) -> Value:
    y = m.value((1, 4, 8), Q)
    m.op("UNPACK", [x], [y], "UnpackOptions", num=1, axis=1)
    return y


def limited(m: TfliteModel, x: Value) -> Value:
    y = m.value(x.shape, Quant(1 / 128, 0))
    m.op("L2_NORMALIZATION", [x], [y], "L2NormOptions", fusedActivationFunction=5)
    return y


REFUSED = {
    "RESIZE_BILINEAR": (
        wrong_size,
        r"size \[12, 9\], the output has \(12, 8\)|input .*and the output's size",
    ),
    "UNPACK": (wrong_count, r"1 outputs, axis 1 of \(1, 6, 4, 8\) has 6"),
    "L2_NORMALIZATION": (limited, "(a )?fused activation"),
}


@pytest.mark.parametrize("form", ["int8", "float32"])
@pytest.mark.parametrize("kind", REFUSED)
def test_refused(kind: str, form: str) -> None:
    make, text = REFUSED[kind]
    m = TfliteModel(np.int8)
    y = make(m, m.input((1, 8, 6, 4), Q))
    read = tflite.read_tflite if form == "int8" else float_form.converted
    with pytest.raises(CompileError, match=rf"^net: node '\S+' \({kind}\): ({text})") as error:
        read((m if form == "int8" else floating(m, form)).finish([y]), "net")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("times", [[1, 0, 1, 1], [2, 2]])
def test_tiles_that_are_none(times: list[int]) -> None:
    for form in ("int8", "float32"):
        m = TfliteModel(np.int8)
        x = m.input((1, 8, 6, 4), Q)
        y = m.value(x.shape, Q)
        m.op("TILE", [x, m.integers(times)], [y], "TileOptions")
        read = tflite.read_tflite if form == "int8" else float_form.converted
        with pytest.raises(CompileError, match=r"\(TILE\): multiples \[.*expected 4 of 1 or more"):
            read((m if form == "int8" else floating(m, form)).finish([y]), "net")


@pytest.mark.parametrize("same", [True, False])
def test_transposed_convolution_of_mediapipe(same: bool) -> None:
    """Its own operator computes what TFLite's does, and has the bias as an input."""
    m = TfliteModel(np.int8)
    y = transposed(2, 2, same)(m, m.input((1, 8, 6, 4), Q))
    model = file.parse_tflite(floating(m, "float32").finish([y]), "net")
    (op,) = model.operators
    _, weights, x = op.inputs
    bias = dataclasses.replace(model.tensors[x], name="bias", shape=(4,), open=())
    model.tensors.append(dataclasses.replace(bias, data=np.arange(4, dtype=np.float32)))
    options = file.MediaPipeOptions(struct.pack("<3i", 1 if same else 2, 2, 2))
    own = dataclasses.replace(op, operator=raw.TRANSPOSED_BIAS, options=options)
    own = dataclasses.replace(own, inputs=[x, weights, len(model.tensors) - 1])
    found = []
    for operator in (op, own):
        made = dataclasses.replace(model, operators=[operator])
        session = ort.InferenceSession(float_form.write_float_onnx(made, "net"))
        given = np.random.default_rng(1).normal(0, 1, (1, 6, 4, 8)).astype(np.float32)
        found += session.run(None, {session.get_inputs()[0].name: given})
    np.testing.assert_allclose(found[1], found[0] + np.arange(4), rtol=1e-5, atol=1e-5)
