# SPDX-License-Identifier: Apache-2.0
"""TFLite models that cannot be read: one line with node, operator and reason."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.compiler import source
from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.file import parse_tflite
from openkpu.compiler.tflite.raw import RawModel, RawTensor

pytest.importorskip("tflite", reason="make setup GROUPS=models brings tflite")
from models.tests.readers.single_operators import build
from openkpu.writers import Quant
from openkpu.writers.flat import Operator
from openkpu.writers.tflite_model import TfliteModel

Change = Callable[[RawModel], None]


def refusal(data: bytes, change: Change | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The line of the error for a model, or for one that was changed after parsing."""
    if change:
        raw = parse_tflite(data, "net.tflite")
        change(raw)
        monkeypatch.setattr(tflite, "parse_tflite", lambda *_: raw)
    with pytest.raises(CompileError) as error:
        tflite.read_tflite(data, "net.tflite")
    text = str(error.value)
    print(text)
    assert text.startswith("net.tflite: ") and "\n" not in text and len(text) < 300
    return text


def weights(raw: RawModel) -> RawTensor:
    return next(t for t in raw.tensors if t.data is not None and t.dtype == "int8")


def of(which: Callable[[RawModel], RawTensor], **fields: object) -> Change:
    """Other fields of a tensor."""

    def change(raw: RawModel) -> None:
        for name, value in fields.items():
            setattr(which(raw), name, value)

    return change


def given(raw: RawModel) -> RawTensor:
    return raw.tensors[raw.inputs[0]]


def operator(**fields: object) -> Change:
    """Another operator, or other tensors of it."""

    def change(raw: RawModel) -> None:
        raw.operators[0] = dataclasses.replace(raw.operators[0], **fields)

    return change


def option(name: str, value: int) -> Change:
    """Another value of an option."""

    def change(raw: RawModel) -> None:
        setattr(raw.operators[0].options, name, lambda: value)

    return change


def weight_is_input(raw: RawModel) -> None:
    number = raw.operators[0].inputs[1]
    raw.tensors[number].data = None
    raw.tensors[number].scale = np.ones(1)
    raw.tensors[number].zero = np.zeros(1, np.int64)
    raw.tensors[number].shape = (1, *raw.tensors[number].shape[1:])
    raw.inputs.append(number)


NAN = np.array([np.nan] * 5)
BAD: dict[str, tuple[Change, str]] = {
    "custom": (operator(operator="CUSTOM Mine"), "(CUSTOM Mine): a custom operator"),
    "control-flow": (operator(operator="IF"), "(IF): control flow"),
    "unknown": (operator(operator="LSTM"), "(LSTM): no such operator here"),
    "dynamic": (of(given, dynamic=True), "its shape is dynamic"),
    "batch": (of(given, shape=(4, 12, 14, 8)), "is (4, 8, 12, 14), expected (1, C, H, W)"),
    "scale-zero": (of(given, scale=np.zeros(1)), "scale 0.0, expected one above 0"),
    "scale-negative": (of(given, scale=np.array([-1.0])), "scale -1.0"),
    "scale-nan": (of(weights, scale=NAN), "no finite number above 0"),
    "no-scale": (of(given, scale=np.zeros(0)), "has no scale, expected one"),
    "two-scales": (of(given, scale=np.ones(2)), "has 2 scales"),
    "zero-point": (of(given, zero=np.array([300])), "zero point 300, expected -128..127"),
    "int16": (of(given, dtype="int16"), "is int16, expected int8 or uint8"),
    "bfloat16": (of(given, dtype="bfloat16"), "is bfloat16"),
    "float": (of(given, dtype="float32", scale=np.zeros(0)), "a float model"),
    "int4": (of(weights, dtype="int4"), "of int4, expected int8 or uint8"),
    "float-weights": (of(weights, dtype="float32"), "of float32, expected int8 or uint8"),
    "sparse": (of(weights, fault="sparse, expected a dense tensor"), "sparse"),
    "variable": (of(given, fault="a variable, expected a tensor without a state"), "a variable"),
    "weight-is-input": (weight_is_input, "computed or an input, expected a constant"),
    "weights-missing": (operator(inputs=[0]), "weights 1 is not there"),
    "activation": (option("FusedActivationFunction", 4), "fused activation TANH"),
    "padding": (option("Padding", 7), "padding 7, expected SAME or VALID"),
    "stride": (option("StrideH", 0), "strides (0, 1)"),
    "no-options": (operator(options=None), "its options are not in the file"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, text = BAD[name]
    line = refusal(build("conv3x3", "tflite"), change, monkeypatch)
    assert text in line
    if name not in ("dynamic", "batch", "scale-zero", "scale-negative", "zero-point"):
        whole = ("no-scale", "two-scales", "int16", "bfloat16", "float", "variable")
        assert "node '" in line or name in whole


@pytest.mark.parametrize("case", ["add", "average-2x2", "concat", "pad", "softmax", "logistic"])
def test_what_is_no_model(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other bytes, a file cut short anywhere, one with another version, changed bytes."""
    assert "no TFLite model" in refusal(b"", None, monkeypatch)
    assert "no TFLite model" in refusal(b"not a model at all", None, monkeypatch)
    good = build(case, "tflite")
    for size in (8, 20, 100, len(good) // 2):
        refusal(good[:size], None, monkeypatch)
    rng = np.random.default_rng(len(good))
    for _ in range(60):
        bad = bytearray(good)
        for at in rng.integers(8, len(bad), 3):
            bad[at] = int(rng.integers(256))
        try:
            tflite.read_tflite(bytes(bad), "net.tflite")
        except CompileError as error:
            assert "\n" not in str(error)


def test_operators_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(raw: RawModel) -> None:
        raw.operators[0].operator = "UNIQUE"

    line = refusal(build("tanh", "tflite"), other, monkeypatch)
    assert "(UNIQUE): no such operator here" in line


@pytest.mark.parametrize("outputs", [[], [-1]])
def test_operator_without_an_output(outputs: list[int]) -> None:
    """Neither reader gets it: of a quantised model, of a float one."""
    for dtype in (np.int8, np.float32):
        m = TfliteModel(np.int8)
        x = m.input((1, 4, 4, 2), Quant(0.05, 3))
        m.tensors[0].dtype = np.dtype(dtype)
        m.operators.append(Operator("TANH", [0], outputs, "", {}))
        with pytest.raises(CompileError, match=r"TANH without an output|tensor that is not there"):
            parse_tflite(m.finish([x]), "net")


def test_files(tmp_path: Path) -> None:
    """A path that is none, an empty file, another kind, a shape for a model that has one."""
    config = configs.load_config("k210")
    (tmp_path / "empty.tflite").write_bytes(b"")
    (tmp_path / "other.tflite").write_bytes(b"nothing of that kind")
    (tmp_path / "good.tflite").write_bytes(build("conv1x1", "tflite"))
    for name, text in (("none", "No such file"), ("empty", "is empty"), ("other", "no TFLite")):
        with pytest.raises(CompileError, match=text):
            source.read_program(tmp_path / f"{name}.tflite", config)
    with pytest.raises(CompileError, match="--shape=1x8x10x7, the model's input is 1x10x7x8"):
        source.read_program(tmp_path / "good.tflite", config, (1, 8, 10, 7))
    assert source.read_program(tmp_path / "good.tflite", config).layers == 1


def mixed(how: str) -> bytes:
    """A batch of three, and an operator that puts inferences together."""
    m = TfliteModel(np.int8)
    x = m.input((3, 4, 6, 5), Quant(0.05, 3))
    if how == "concat":
        y = m.concat([x, x], x.quant, axis=0)
    elif how == "reshape":
        y = m.reshape(m.mean(x, x.quant, keep=False), (1, 12))
    elif how == "other":
        y = m.binary("add", x, m.input((1, 4, 6, 5), Quant(0.05, 3)), Quant(0.1, 0))
    else:
        y = m.value((6, 4, 3, 5) if how == "transpose" else x.shape, x.quant)
        axes = m.integers([1, 0, 2, 3] if how == "transpose" else [0, 1, 2, 3])
        m.op("TRANSPOSE", [x, axes], [y], "TransposeOptions")
    return m.finish([y])


@pytest.mark.parametrize("how", ["concat", "reshape", "other", "transpose"])
def test_batch_that_is_mixed(how: str) -> None:
    """One inference at a time would be another result."""
    with pytest.raises(CompileError, match="batch of 3"):
        tflite.read_tflite(mixed(how), "net.tflite")
    assert tflite.read_tflite(mixed("none"), "net.tflite").batch == 3


def moved(operator: str, shape: tuple[int, ...], numbers: list[int], **fields: int) -> bytes:
    """An operator that moves the elements of a vector (1, 6) or of (6, 4)."""
    m = TfliteModel(np.int8)
    x = m.input((6, 4), Quant(0.05, 3))
    y = m.value(shape, x.quant)
    extra, options = [m.integers(numbers)], f"{operator.title().replace('_', '')}Options"
    if operator == "STRIDED_SLICE":
        extra = [m.integers(v) for v in (numbers, [n + 1 for n in numbers], [1, 1])]
    m.op(operator, [x, *extra] if operator != "SQUEEZE" else [x], [y], options, "", **fields)
    return m.finish([m.unary("requantise", y, Quant(0.08, 0))])


@pytest.mark.parametrize(
    ("operator", "shape", "numbers", "text"),
    [
        ("RESHAPE", (4, 6), [3, 8], "shape [3, 8], the output is [4, 6]"),
        ("RESHAPE", (4, 6), [-1, -1], "shape [-1, -1]"),
        ("RESHAPE", (4, 6), [24], "shape [24]"),
        ("SQUEEZE", (4, 6), [], "expected the same sizes but for those of 1"),
        ("EXPAND_DIMS", (1, 4, 6), [0], "expected the same sizes but for those of 1"),
        ("STRIDED_SLICE", (1,), [9, 0], "begin 9 of axis 0, which has 6"),
    ],
)
def test_shapes_that_contradict(
    operator: str, shape: tuple[int, ...], numbers: list[int], text: str
) -> None:
    """What an operator says, and the shape of its output in the file."""
    fields = {"shrinkAxisMask": 3} if operator == "STRIDED_SLICE" else {}
    with pytest.raises(CompileError, match=re.escape(text)):
        tflite.read_tflite(moved(operator, shape, numbers, **fields), "net.tflite")
    if operator == "RESHAPE":
        for good in ([4, 6], [-1, 6], [4, -1]):
            assert tflite.read_tflite(moved(operator, (4, 6), good), "net.tflite").nodes
