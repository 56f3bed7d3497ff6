# SPDX-License-Identifier: Apache-2.0
"""Float models as exporters and quantisers spell them: results joined at the end, layer norms of
nine operators, masks of attention, lengths, branches of zeros, float16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
import onnx
from onnx import numpy_helper

from models.tests.readers.test_onnx_exporters import File
from models.tests.readers.test_onnx_reader import run
from openkpu import configs
from openkpu.compiler import agree, build, okpu, source
from openkpu.compiler.calibration import precision, prepare, quantise
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph, Host
from openkpu.compiler.onnx import translate

Shape = tuple[int, ...]
Make = Callable[[File, str], str]
MAP, ROWS = (1, 8, 6, 4), (1, 12, 8)
RNG = np.random.default_rng(6)
GAIN, TERM = RNG.uniform(0.5, 2, 8), RNG.normal(0, 1, 8)


def linear(f: File, x: str, shape: Shape, seed: int = 1) -> str:
    """A convolution of a map, a product of rows."""
    w = np.random.default_rng(seed).normal(0, 0.4, (8, 8))
    return (
        f.node("Conv", x, f.put(w[..., None, None]))
        if len(shape) == 4
        else f.node("MatMul", x, f.put(w))
    )


def normalised(axis: int, square: str, gain: bool) -> Make:
    """LayerNorm as PyTorch exports it before opset 17, of rows or of a map's channels."""

    def make(f: File, x: str) -> str:
        less = f.node("Sub", x, f.node("ReduceMean", x, axes=[axis]))
        power = f.node("Pow", less, f.put(2.0)) if square == "Pow" else f.node("Mul", less, less)
        root = f.node("Sqrt", f.node("Add", f.node("ReduceMean", power, axes=[axis]), f.put(1e-5)))
        y, spread = f.node("Div", less, root), (8, 1, 1) if axis == 1 else (8,)
        if not gain:
            return y
        y = f.node("Mul", y, f.put(GAIN.reshape(spread)))
        return f.node("Add", y, f.put(TERM.reshape(spread)))

    return make


def lengths(f: File, x: str) -> str:
    """torch.nn.functional.normalize."""
    size = f.node("Clip", f.node("ReduceL2", x, axes=[2], keepdims=1), f.put(1e-12))
    return f.node("Div", x, f.node("Expand", size, f.put([*ROWS], np.int64)))


def several(kind: str) -> Make:
    return lambda f, x: f.node(kind, x, axes=[1], keepdims=1)


def sums(f: File, x: str) -> str:
    return f.node("Sum", x, f.node("Tanh", x), f.node("Sigmoid", x), x)


def terms(f: File, x: str) -> str:
    """LayerNormalization of two axes: its numbers have two as well."""
    shape = ROWS[1:]
    inputs = [f.put(RNG.uniform(0.5, 2, shape)), f.put(RNG.normal(0, 1, shape))]
    return f.node("LayerNormalization", x, *inputs, axis=1)


def excited(f: File, x: str) -> str:
    """Squeeze and excite with expand_as."""
    y = f.node("Sigmoid", linear(f, f.node("GlobalAveragePool", x), MAP, 2))
    return f.node("Mul", x, f.node("Expand", y, f.put([*MAP], np.int64)))


def zeros(f: File, x: str) -> str:
    """A residual branch that is not trained yet."""
    return f.node("Add", x, f.node("Conv", x, f.put(np.zeros((8, 8, 1, 1)))))


def neighbours(f: File, x: str) -> str:
    x = f.node("LRN", x, size=5, alpha=0.5, beta=0.75, bias=2.0)
    return f.node("LRN", x, size=3, alpha=0.9, beta=0.5)


CASES: dict[str, tuple[Shape, Make, str]] = {
    "rows": (ROWS, normalised(-1, "Pow", True), "LayerNormalization"),
    "rows, no numbers": (ROWS, normalised(2, "Mul", False), "LayerNormalization"),
    "channels": (MAP, normalised(1, "Pow", True), "LayerNormalization"),
    "lengths": (ROWS, lengths, "LpNormalization"),
    "greatest length": (MAP, several("ReduceL2"), "ReduceSum"),
    "absolute numbers": (MAP, several("ReduceL1"), "ReduceSum"),
    "squares": (ROWS, several("ReduceSumSquare"), "ReduceSum"),
    "least": (MAP, several("ReduceMin"), "ReduceMax"),
    "sums": (MAP, sums, "Add"),
    "two axes": (ROWS, terms, "LayerNormalization"),
    "excited": (MAP, excited, "Mul"),
    "zeros": (MAP, zeros, "Add"),
    "neighbours": (MAP, neighbours, "Pow"),
}


def graph_of(
    data: bytes, shape: Shape, scale: float = 1.0
) -> tuple[Graph, list[dict[str, np.ndarray]]]:
    rng = np.random.default_rng(3)
    many = [{"x": rng.normal(0, scale, shape).astype(np.float32)} for _ in range(8)]
    made = quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")
    return translate.read_onnx(made, "net"), many


@pytest.mark.parametrize("name", CASES)
def test_spelled(name: str) -> None:
    """The form is another one, the numbers nearly those of the float model, the device's bytes
    those of the reference."""
    shape, make, kind = CASES[name]
    f = File()
    y = (
        linear(f, make(f, linear(f, "x", shape)), shape, 7)
        if name not in ("squares",)
        else make(f, "x")
    )
    if kind == "ReduceMax" or name in ("greatest length", "absolute numbers"):
        f = File()
        y = make(f, linear(f, "x", shape))
    data = f.data(y, shape, (None,))
    kinds = {n.op_type for n in prepare.prepared(data, "net").nodes}
    assert kind in kinds and not kinds & {
        "ReduceL2",
        "ReduceL1",
        "Sum",
        "Expand",
        "ReduceMin",
        "LRN",
    }
    graph, many = graph_of(data, shape, 0.01 if name == "zeros" else 1.0)
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, many[0]) == []
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert found.shape == want.shape
    assert np.abs(found - want).mean() < 0.02 * np.abs(want).max()


@pytest.mark.parametrize("factor", [8**-0.5, 0.02])
@pytest.mark.parametrize("mask", ["-inf", "-1e9", "chosen", "chosen where not"])
def test_masks(mask: str, factor: float) -> None:
    """Attention that sees what is before: the masked scores have no share, the others their own."""
    f = File()
    x = f.node("MatMul", "x", f.put(np.random.default_rng(5).normal(0, 0.4, (8, 8))))
    turned = f.node("Transpose", x, perm=[0, 2, 1])
    scores = f.node("Mul", f.node("MatMul", x, turned), f.put(factor))
    later = np.triu(np.ones((12, 12)), 1)
    if mask.startswith("chosen"):
        far = f.put(-np.inf)
        condition = f.put(later == (mask == "chosen"), np.bool_)
        ends = [far, scores] if mask == "chosen" else [scores, far]
        scores = f.node("Where", condition, *ends)
    else:
        scores = f.node("Add", scores, f.put(np.where(later, float(mask), 0)))
    y = f.node("MatMul", f.node("Softmax", scores, axis=-1), x)
    data = f.data(y, ROWS, (None,))
    graph, many = graph_of(data, ROWS)
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert np.abs(found - want).max() < 0.06 * np.abs(want).max()
    np.testing.assert_allclose(found[0, 0], want[0, 0], atol=0.03 * np.abs(want).max())


def test_neighbours_are_exact() -> None:
    """The sum of squares as it is spelled, in float: windows of five and of three channels."""
    f = File()
    data = f.data(neighbours(f, linear(f, "x", MAP)), MAP, (None,))
    feed = {"x": RNG.normal(0, 3, MAP).astype(np.float32)}
    (found,), (want,) = (
        run(prepare.prepared(data, "net").done().SerializeToString(), feed),
        run(data, feed),
    )
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_an_infinity_elsewhere_is_refused() -> None:
    f = File()
    y = f.node("Add", f.node("Conv", "x", f.put(np.ones((8, 8, 1, 1)))), f.put(-np.inf))
    with pytest.raises(CompileError, match="it has a NaN or an infinity, expected finite numbers"):
        prepare.prepared(f.data(y, MAP, MAP), "net")


def test_results_joined_at_the_end() -> None:
    """Scores beside boxes in pixels: each keeps its scale, the host joins numbers; parts of one
    range are joined as bytes."""
    for factor, ends in ((300.0, 2), (1.0, 0)):
        f = File()
        boxes = f.node("Mul", linear(f, "x", MAP), f.put(factor))
        scores = f.node("Sigmoid", linear(f, "x", MAP, 2))
        both = f.node("Concat", boxes, scores if ends else linear(f, "x", MAP, 3), axis=1)
        y = f.node(
            "Transpose", f.node("Reshape", both, f.put([1, 16, -1], np.int64)), perm=[0, 2, 1]
        )
        data = f.data(y, MAP, (None,))
        graph, many = graph_of(data, MAP)
        program = build.build_program(graph, configs.load_config("small"))
        assert agree.faults(graph, program, many[0]) == []
        found = reference.evaluate(graph, many[0])[graph.outputs[0]]
        (want,) = run(data, many[0])
        hosts = [n for n in graph.nodes if isinstance(n, Host) and n.how in ("dequantize", "table")]
        assert len(hosts) == (ends or 1)
        if ends:
            assert (
                np.abs(found - want)[..., 8:].max() < 0.02 and len(np.unique(found[..., 8:])) > 40
            )


def half(data: bytes) -> bytes:
    """The model with weights, inputs and results of float16."""
    m = onnx.load_model_from_string(data)
    for tensor in m.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in (*m.graph.input, *m.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return m.SerializeToString()


def test_float16() -> None:
    f = File()
    data = f.data(f.node("Relu", linear(f, f.node("Tanh", linear(f, "x", MAP)), MAP, 2)), MAP, MAP)
    graph, many = graph_of(half(data), MAP)
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert graph.tensors["x"].dtype == "float32" and np.abs(found - want).max() < 0.05


@pytest.mark.parametrize("kind", ["Add", "Max", "Clip"])
def test_a_divisor_that_is_no_length(kind: str) -> None:
    """x / (1 + |x|) and x / max(1, |x|) are not x / |x|."""
    f = File()
    x = f.node("MatMul", "x", f.put(np.random.default_rng(4).normal(0, 0.2, (8, 8))))
    size = f.node(kind, f.node("ReduceL2", x, axes=[2], keepdims=1), f.put(1.0))
    data = f.data(f.node("Div", x, size), ROWS, ROWS)
    assert "LpNormalization" not in {n.op_type for n in prepare.prepared(data, "net").nodes}
    graph, many = graph_of(data, ROWS)
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert np.abs(found - want).max() < 0.05 * np.abs(want).max()


def test_a_map_without_a_batch() -> None:
    """Three channels are no batch of three signals."""
    f = File()
    w = f.put(np.random.default_rng(4).normal(0, 0.3, (5, 3, 3, 3)))
    y = f.node("Conv", f.node("Unsqueeze", "x", f.put([0], np.int64)), w)
    graph, many = graph_of(f.data(y, (3, 8, 8), (1, 5, 6, 6)), (3, 8, 8))
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    assert graph.batch == 1 and found.shape == (1, 5, 6, 6)


def test_batch_of_signals() -> None:
    """As a batch of maps: one inference after the other."""
    f = File()
    y = f.node("Conv", "x", f.put(RNG.normal(0, 0.4, (5, 8, 3))))
    graph, many = graph_of(f.data(y, (4, 8, 12), (4, 5, 10)), (1, 8, 12))
    assert graph.tensors["x"].shape == (1, 8, 12)
    assert reference.evaluate(graph, many[0])[graph.outputs[0]].shape == (1, 5, 10)


def test_widths_of_square_products(tmp_path: Path) -> None:
    """Square weights of MatMul and of Gemm, either way round: 16 bits are no worse than 8."""
    f, rng = File(), np.random.default_rng(2)
    w = [f.put(rng.normal(0, 0.5, (8, 8))) for _ in range(3)]
    y = f.node("Relu", f.node("Gemm", "x", w[0], transB=0))
    y = f.node("Gemm", f.node("Relu", f.node("MatMul", y, w[1])), w[2], transB=1)
    (tmp_path / "net.onnx").write_bytes(f.data(y, (5, 8), (5, 8)))
    np.save(tmp_path / "x.npy", rng.normal(0, 1, (40, 8)).astype(np.float32).reshape(8, 5, 8))
    request = Request(str(tmp_path / "x.npy"))
    found = source.quantised_model(tmp_path / "net.onnx", request, configs.load_config("k210"))
    rows = [r for r in precision.measure_precision(found).rows if r.narrow is not None]
    assert len(rows) == 3 and all((r.wide or 0) <= (r.narrow or 0) == r.own for r in rows)


def test_a_result_of_rank_0() -> None:
    """One number without axes: the program file holds it."""
    f = File()
    y = f.node("Gemm", "x", f.put(RNG.normal(0, 1, (8, 1))))
    data = f.data(f.node("Squeeze", y), (1, 8), ())
    graph, _ = graph_of(data, (1, 8))
    program = build.build_program(graph, configs.load_config("k210"))
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    (name,) = again.graph.outputs
    assert again.graph.tensors[name].shape == ()


def test_one_picture_calibrates(tmp_path: Path) -> None:
    """As a folder with it alone."""
    image = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings pillow")
    f = File()
    y = f.node("Conv", "x", f.put(np.random.default_rng(4).normal(0, 0.3, (4, 3, 3, 3))))
    (tmp_path / "net.onnx").write_bytes(f.data(y, (1, 3, 8, 8), (1, 4, 6, 6)))
    (tmp_path / "folder").mkdir()
    pixels = np.random.default_rng(5).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    for name in ("one.PNG", "folder/one.png"):
        image.fromarray(pixels).save(tmp_path / name, format="PNG")
    config = configs.load_config("k210")
    found = [
        source.quantised_model(tmp_path / "net.onnx", Request(str(tmp_path / name)), config)
        for name in ("one.PNG", "folder")
    ]
    assert found[0].data == found[1].data


CHANNELS = np.array([0, 0, -1e4, 0, 0, -1e4, 0, 0])
LATER = np.triu(np.ones((12, 12)), 1)
PADDED = np.where(np.arange(12) > 9, -1e9, 0.0)


def softmax_of(kind: str, *data: np.ndarray | float) -> Make:
    """Scores of attention, then sums or differences with constants."""

    def make(f: File, x: str) -> str:
        x = f.node("MatMul", x, f.put(np.random.default_rng(2).normal(0, 0.4, (8, 8))))
        y = f.node("Mul", f.node("MatMul", x, f.node("Transpose", x, perm=[0, 2, 1])), f.put(0.35))
        for one in data:
            y = f.node(kind, y, f.put(one))
        return f.node("MatMul", f.node("Softmax", y, axis=-1), x)

    return make


def classes(kind: str) -> Make:
    """Scores of classes; a bias switches some off."""

    def make(f: File, x: str) -> str:
        w = np.random.default_rng(2).normal(0, 0.5, (8, 8))
        if kind == "Conv":
            y = f.node("Conv", x, f.put(w[..., None, None]), f.put(CHANNELS + 0.3))
            return f.node("Softmax", y, axis=1)
        return f.node(
            "Softmax", f.node("Add", f.node("MatMul", x, f.put(w)), f.put(CHANNELS)), axis=-1
        )

    return make


MASKS: dict[str, tuple[Shape, Make]] = {
    "bias of rows": (ROWS, classes("MatMul")),
    "bias of a map": (MAP, classes("Conv")),
    "two masks": (ROWS, softmax_of("Add", LATER * -1e9, PADDED)),
    "all alike": (ROWS, softmax_of("Add", -2000.0)),
    "rows": (
        ROWS,
        softmax_of("Add", np.repeat(np.where(np.arange(12) > 8, -1e4, 0)[:, None], 12, 1)),
    ),
    "a column of rows": (ROWS, softmax_of("Add", np.where(np.arange(12) > 8, -1e4, 0)[:, None])),
    "a difference": (ROWS, softmax_of("Sub", LATER * 1e9)),
    "not so far": (ROWS, softmax_of("Add", LATER * -999)),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_in_other_forms(name: str) -> None:
    shape, make = MASKS[name]
    f = File()
    data = f.data(make(f, "x"), shape, (None,))
    graph, many = graph_of(data, shape)
    assert (
        agree.faults(graph, build.build_program(graph, configs.load_config("small")), many[0]) == []
    )
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert np.abs(found - want).max() < 0.08 * np.abs(want).max()


def test_a_length_that_is_spread_over_more() -> None:
    """The quotient has the larger shape."""
    f = File()
    size = f.node("Expand", f.node("ReduceL2", "x", axes=[2]), f.put([*ROWS], np.int64))
    graph, many = graph_of(f.data(f.node("Div", "x", size), (1, 1, 8), ROWS), (1, 1, 8))
    assert reference.evaluate(graph, many[0])[graph.outputs[0]].shape == ROWS
