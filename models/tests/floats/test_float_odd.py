# SPDX-License-Identifier: Apache-2.0
"""Float models and samples that exporters and users have besides the usual ones: near the float
model in ONNX Runtime, or refused in one line that names the cause (docs/compiler.md 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.quantised.exported import DYNAMO, OLD, Exported, window
from models.tests.quantised.test_float_models import made
from openkpu import configs
from openkpu.compiler import source
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.errors import CompileError

onnx = pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")


def start(m: Exported) -> str:
    return m.conv(m.input(1, 3, 9, 12), 3, 6)


def joined(m: Exported, x: str, y: str) -> bytes:
    """A concatenation gives both one scale, which has negative numbers; 12 channels behind it."""
    return m.done(m.conv(m.node("Concat", x, y, axis=1), 12, 4))


def relu_joined(m: Exported) -> bytes:
    x = start(m)
    return joined(m, m.node("Relu", m.conv(x, 6, 6)), x)


def sum_joined(m: Exported) -> bytes:
    x = start(m)
    return joined(m, m.node("Relu", m.node("Add", m.conv(x, 6, 6), x)), x)


def pool_joined(m: Exported) -> bytes:
    x = start(m)
    return joined(m, m.node("MaxPool", m.node("Relu", m.conv(x, 6, 6)), **window(3, 1)), x)


def relu_of_pool(m: Exported) -> bytes:
    x = start(m)
    return joined(m, m.node("Relu", m.node("MaxPool", x, **window(3, 1))), x)


def clips(m: Exported) -> bytes:
    """The range of each has 0 in it, which lies beside the limits."""
    x = start(m)
    high = m.node("Clip", m.conv(x, 6, 6), m.const(0.5), m.const(1.5))
    low = m.node("Clip", m.conv(x, 6, 6), m.const(-1.5), m.const(-0.5))
    return joined(m, high, low)


def two_limits(m: Exported) -> bytes:
    x = start(m)
    return joined(m, m.node("Clip", m.node("Relu", m.conv(x, 6, 6)), m.const(0.3)), x)


LIMITED: list[Callable[[Exported], bytes]] = [
    relu_joined,
    sum_joined,
    pool_joined,
    relu_of_pool,
    clips,
    two_limits,
]


@pytest.mark.parametrize("make", LIMITED)
def test_limits_stay(make: Callable[[Exported], bytes]) -> None:
    """A ReLU or clip limits its numbers, however far the scale of its result reaches."""
    assert made(make(Exported(DYNAMO))).decibels() > 30


@pytest.mark.parametrize("limits", [("Relu",), ("Clip", -0.5, 0.5)])
def test_limit_of_an_input(limits: tuple) -> None:
    """What comes first may be a limit."""
    m = Exported(DYNAMO)
    kind, *ends = limits
    x = m.node(kind, m.input(1, 4, 8, 8), *(m.const(v) for v in ends))
    assert made(m.done(m.conv(x, 4, 8))).decibels() > 30


def test_infinity_inside_a_function() -> None:
    """1 / (1 + exp(-100 x)) has infinities on the way to 0 and 1."""
    m = Exported(DYNAMO)
    y = m.node("Exp", m.node("Neg", m.node("Mul", start(m), m.const(100.0))))
    y = m.node("Div", m.const(1.0), m.node("Add", y, m.const(1.0)))
    assert made(m.done(m.conv(y, 6, 4))).decibels() > 20


def test_output_that_is_an_input() -> None:
    m = Exported(DYNAMO)
    x = m.input(1, 3, 8, 8)
    with pytest.raises(CompileError, match="output 'x' is an input or a constant, expected"):
        prepare.prepared(m.done(m.conv(x, 3, 4), x), "net")


def test_numbers_that_float32_does_not_hold(tmp_path: Path) -> None:
    """In the samples, and in what the float model makes of them."""
    m = Exported(DYNAMO)
    data = m.done(m.node("Relu", m.conv(m.input(1, 3, 8, 8), 3, 4)))
    (tmp_path / "net.onnx").write_bytes(data)
    np.save(tmp_path / "x.npy", np.full((2, 3, 8, 8), 1e300))
    request = Request(str(tmp_path / "x.npy"))
    with pytest.raises(CompileError, match=r"input 'x' has numbers of 1e[+]300, expected numbers"):
        source.read_program(tmp_path / "net.onnx", configs.load_config("k210"), None, request)
    feeds = {"x": np.ones((1, 3, 8, 8), np.float32)}
    many = [feeds, {"x": np.full((1, 3, 8, 8), 3e38, np.float32)}]
    with pytest.raises(CompileError, match=r"sample 2 of the calibration makes .* of '\w+'"):
        quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")


# ------------------------------------------------------------------- what comes to nothing
def one_conv(m: Exported, x: str, **fields: Any) -> str:
    return m.node("Conv", x, m.const(m.rng.normal(0, 0.3, (4, 3, 3, 3))), **fields)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda m, x: one_conv(m, x, pads=[1 << 31] * 4), r"run it: .*'node_conv_0'.*[Oo]verflow"),
        (lambda m, x: m.conv(x, 5, 4), r"run it: .*'node_conv_0'.* C: 3 kernel channels: 5"),
        (
            lambda m, x: m.node("Reshape", m.conv(x, 3, 4), m.const([1, 7], np.int64)),
            r"run it: .*'node_reshape_1'.* cannot be reshaped",
        ),
        (lambda m, x: m.node("Relu", m.const(np.ones((1, 4)))), r"'relu_0_0' is constant, exp"),
        (
            lambda m, x: m.node("CumSum", x, m.const(1, np.int64)),
            r"'node_cumsum_0' \(CumSum\): no such operator",
        ),
        (
            lambda m, x: m.node("Clip", m.conv(x, 3, 4), m.input(name="low")),
            r"'node_clip_1' \(Clip\): its lower limit 'low' is an input of the model, exp",
        ),
        (
            lambda m, x: m.node("Clip", x, "", m.input(name="high")),
            r"'node_clip_0' \(Clip\): its upper limit 'high' is an input of the model, exp",
        ),
        (
            lambda m, x: m.node("Conv", x, m.const(np.zeros((0, 3, 3, 3)))),
            r"'node_conv_0' \(Conv\): constant 'val_0' of shape \(0, 3, 3, 3\), expected sizes",
        ),
        (
            lambda m, x: m.node("Conv", x, m.const(np.ones((2, 3, 3, 3))), m.const(np.zeros(0))),
            r"'node_conv_0' \(Conv\): constant 'val_1' of shape \(0,\), expected sizes of 1",
        ),
        (
            lambda m, x: m.node("Split", x, m.const([3, 0], np.int64), axis=1, outputs=2)[0],
            r"'node_split_0' \(Split\): a result of shape \(1, 0, 8, 8\), expected siz",
        ),
        (
            lambda m, x: m.node(
                "MatMul", m.const(np.ones((5, 192))), m.node("Reshape", x, m.const([-1], np.int64))
            ),
            r"'node_matmul_1' \(MatMul\): a constant in front of a computed matrix, expected i",
        ),
        (
            lambda m, x: m.node(
                "Gemm", m.const(np.ones((5, 6))), m.node("Relu", m.input(6, 4, name="b"))
            ),
            r"'node_gemm_1' \(Gemm\): operand A, 'val_0', is a constant, expected weights",
        ),
        (
            lambda m, x: m.node(
                "Gemm", m.input(2, 6, name="a"), *(m.const(np.ones(n)) for n in ((6, 4), (2, 1)))
            ),
            r"'node_gemm_0' \(Gemm\): operand C of shape \(2, 1\), expected one number, or",
        ),
    ],
)
def test_refused_in_one_line(
    make: Callable[[Exported, str], str], text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where ONNX Runtime fails its error is one line, with the node."""
    m = Exported(DYNAMO)
    data = m.done(make(m, m.input(1, 3, 8, 8)))
    feeds = [{"x": np.ones((1, 3, 8, 8), np.float32)}]
    with pytest.raises(CompileError, match=text) as error:
        quantise.quantised_net(prepare.prepared(data, "net"), feeds, "minmax", "net")
    assert "\n" not in str(error.value) and str(error.value).startswith("net: ")
    assert not capfd.readouterr().err


@pytest.mark.parametrize("kind", ["DOUBLE", "BFLOAT16", "UINT8"])
def test_type_of_the_input(kind: str, tmp_path: Path) -> None:
    """No quantised model for that: the type is named."""
    m = Exported(OLD)
    model = onnx.load_from_string(m.done(m.node("Cast", m.input(1, 3, 8, 8), to=1)))
    model.graph.input[0].type.tensor_type.elem_type = getattr(onnx.TensorProto, kind)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    np.save(tmp_path / "x.npy", np.ones((2, 3, 8, 8), np.float32))
    given = configs.load_config("k210"), None, Request(str(tmp_path / "x.npy"))
    word = {"DOUBLE": "float64"}.get(kind, kind.lower())
    with pytest.raises(CompileError, match=rf"input 'x' is {word}, expected float32"):
        source.read_program(tmp_path / "net.onnx", *given)


def flattened(m: Exported, y: str) -> str:
    """x.view(x.size(0), -1), as the older exporter writes it."""
    size = m.node("Gather", m.node("Shape", y), m.const(0, np.int64))
    sizes = m.node("Unsqueeze", size, m.const([0], np.int64)), m.const([-1], np.int64)
    return m.linear(m.node("Reshape", y, m.node("Concat", *sizes, axis=0)), 4 * 64, 5)


def half_weights(m: Exported, y: str) -> str:
    """Weights of float16 in the file, and one that nothing reads."""
    m.const(np.full(7, np.nan))
    weights = m.const(m.rng.normal(0, 0.3, (4, 4, 3, 3)), np.float16)
    return m.node("Conv", y, m.node("Cast", weights, to=1), pads=[1] * 4)


@pytest.mark.parametrize("make", [flattened, half_weights])
def test_what_is_computed_beforehand(make: Callable[[Exported, str], str]) -> None:
    m = Exported(OLD)
    assert made(m.done(make(m, m.conv(m.input(1, 3, 8, 8), 3, 4)))).decibels() > 30


def factors(m: Exported, turned: bool) -> bytes:
    """Gemm with a factor for the product and one for the bias, of a row or of a column."""
    x = m.input(12, 1) if turned else m.input(1, 12)
    weights, bias = (m.const(m.rng.normal(0, 0.4, shape)) for shape in ((9, 12), (9,)))
    how = {"alpha": -0.7, "beta": 3.0, "transA": int(turned), "transB": 1}
    y = m.node("Relu", m.node("Gemm", x, weights, bias, **how))
    return m.done(m.linear(y, 9, 4))


@pytest.mark.parametrize("turned", [False, True])
def test_factors_of_a_product(turned: bool) -> None:
    found = made(factors(Exported(DYNAMO), turned))
    assert found.decibels() > 30
    assert not [n for n in found.graph.nodes if getattr(n, "how", "") == "table"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 9), (9,)])
def test_bias_of_a_product(shape: tuple[int, ...]) -> None:
    """C of Gemm: one number, or one for each output."""
    m = Exported(DYNAMO)
    weights, bias = m.const(m.rng.normal(0, 0.4, (12, 9))), m.const(np.full(shape, 0.7))
    y = m.node("Gemm", m.input(1, 12), weights, bias)
    found = made(m.done(m.linear(m.node("Relu", y), 9, 4)))
    assert found.decibels() > 25


def padded(m: Exported, mode: str, value: float | None) -> bytes:
    x = start(m)
    words = [m.const([0, 0, 2, 1, 0, 0, 0, 3], np.int64)]
    words += [] if value is None else [m.const(value)]
    return m.done(m.conv(m.node("Pad", x, *words, mode=mode), 6, 4))


@pytest.mark.parametrize(
    ("mode", "value"),
    [("constant", 0.77), ("constant", -3.1), ("reflect", None), ("edge", None), ("constant", 0.0)],
)
def test_padding(mode: str, value: float | None) -> None:
    """With a number, which becomes one of the input's steps, and with the map's own elements."""
    assert made(padded(Exported(DYNAMO), mode, value)).decibels() > 28


def dilated(stride: int, **pads: Any) -> bytes:
    m = Exported(DYNAMO)
    x, weights = start(m), m.const(m.rng.normal(0, 0.3, (6, 6, 3, 3)))
    y = m.node("Conv", x, weights, dilations=[2, 2], strides=[stride] * 2, **pads)
    return m.done(m.conv(y, 6, 4))


@pytest.mark.parametrize(
    ("how", "stride", "pads"),
    [
        ("SAME_UPPER", 1, [2, 2, 2, 2]),
        ("SAME_UPPER", 2, [2, 1, 2, 2]),
        ("SAME_LOWER", 2, [2, 2, 2, 1]),
    ],
)
def test_dilation_with_same_padding(how: str, stride: int, pads: list[int]) -> None:
    """ONNX Runtime has no SAME of dilated taps: nine lines and twelve columns, spelled out."""
    nets = [
        prepare.prepared(dilated(stride, **fields), "net")
        for fields in ({"auto_pad": how}, {"pads": pads})
    ]
    said = [[sorted(map(str, node.attribute)) for node in net.nodes] for net in nets]
    assert said[0] == said[1]


def focus(m: Exported) -> bytes:
    """The stem of YOLOv5: every second pixel of four places, as channels, and a convolution."""
    x, parts = m.input(1, 3, 12, 16), []
    for column, line in ((0, 0), (0, 1), (1, 0), (1, 1)):  # its own order
        y = x
        for axis, first in ((2, line), (3, column)):
            words = ([first], [1 << 40], [axis], [2])
            y = m.node("Slice", y, *(m.const(w, np.int64) for w in words))
        parts.append(y)
    return m.done(m.conv(m.node("Concat", *parts, axis=1), 12, 8))


def test_focus() -> None:
    """ONNX Runtime's optimisation would make a Gather of it, which no file has."""
    net = prepare.prepared(focus(Exported(DYNAMO)), "net")
    assert {n.op_type for n in net.nodes} <= {"Slice", "Concat", "Conv", "Identity"}
    assert made(focus(Exported(DYNAMO))).decibels() > 30


def refused(m: Exported, y: str, tmp_path: Path, x: np.ndarray) -> str:
    """The error of a model with these samples."""
    (tmp_path / "net.onnx").write_bytes(m.done(y))
    np.save(tmp_path / "x.npy", x)
    given = configs.load_config("k210"), None, Request(str(tmp_path / "x.npy"))
    with pytest.raises(CompileError) as error:
        source.read_program(tmp_path / "net.onnx", *given)
    return str(error.value)


def test_end_is_named_as_in_the_file(tmp_path: Path) -> None:
    """An operator that is refused behind the quantisation: the hint works with the user's file."""
    m = Exported(DYNAMO)
    x = start(m)
    y = m.node("GatherElements", x, m.const(np.zeros((1, 6, 9, 12)), np.int64), axis=1)
    text = refused(m, y, tmp_path, np.random.default_rng(1).normal(0, 1, (4, 3, 9, 12)))
    assert f"ends={x} ends the network" in text.replace("ENDS", "ends")


def test_samples_without_any_range(tmp_path: Path) -> None:
    m = Exported(OLD)
    text = refused(m, m.conv(m.input(1, 3, 9, 12), 3, 6), tmp_path, np.zeros((3, 3, 9, 12)))
    assert text.endswith("x.npy: 3 samples of nothing but zeros, expected inputs as in use")


def test_batch_is_named_where_one_inference_fails(tmp_path: Path) -> None:
    """The file runs; what does not run is one inference of it."""
    m = Exported(DYNAMO)
    y = m.node("Reshape", m.conv(m.input(4, 3, 6, 6), 3, 8), m.const([2, 16, 6, 6], np.int64))
    text = refused(m, y, tmp_path, np.random.default_rng(1).normal(0, 1, (4, 3, 6, 6)))
    assert "the file has a batch of 4" in text and "a model with a batch of 1 runs" in text
