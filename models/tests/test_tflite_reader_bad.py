# SPDX-License-Identifier: Apache-2.0
"""TFLite models that cannot be read: one line with node, operator and reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.compiler import source
from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.file import RawModel, RawTensor, parse

pytest.importorskip("tflite")
from models.tests.single_operators import build

Change = Callable[[RawModel], None]


def refusal(data: bytes, change: Change | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The line of the error for a model, or for one that was changed after parsing."""
    if change:
        raw = parse(data, "net.tflite")
        change(raw)
        monkeypatch.setattr(tflite, "parse", lambda *_: raw)
    with pytest.raises(CompileError) as error:
        tflite.read(data, "net.tflite")
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
    "control-flow": (operator(operator="WHILE"), "(WHILE): control flow"),
    "unknown": (operator(operator="LSTM"), "(LSTM): no such operator here"),
    "dynamic": (of(given, dynamic=True), "its shape is dynamic"),
    "batch": (of(given, shape=(4, 12, 14, 8)), "a batch of 4, expected 1"),
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
            tflite.read(bytes(bad), "net.tflite")
        except CompileError as error:
            assert "\n" not in str(error)


def test_operators_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(raw: RawModel) -> None:
        raw.operators[0].operator = "UNIQUE"

    line = refusal(build("tanh", "tflite"), other, monkeypatch)
    assert "(UNIQUE): no such operator here" in line


def test_files(tmp_path: Path) -> None:
    """A path that is none, an empty file, another kind, a shape for a model that has one."""
    config = configs.load("k210")
    (tmp_path / "empty.tflite").write_bytes(b"")
    (tmp_path / "other.tflite").write_bytes(b"nothing of that kind")
    (tmp_path / "good.tflite").write_bytes(build("conv1x1", "tflite"))
    for name, text in (("none", "No such file"), ("empty", "is empty"), ("other", "no TFLite")):
        with pytest.raises(CompileError, match=text):
            source.read_program(tmp_path / f"{name}.tflite", config)
    with pytest.raises(CompileError, match="a shape fixes"):
        source.read_program(tmp_path / "good.tflite", config, (1, 8, 12, 14))
    assert source.read_program(tmp_path / "good.tflite", config).layers == 1
