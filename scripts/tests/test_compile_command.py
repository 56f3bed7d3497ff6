# SPDX-License-Identifier: Apache-2.0
"""openkpu compile, and make sim with a quantised model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openkpu import digits
from openkpu.compiler import okpu
from openkpu_tools.commands import compile as command
from openkpu_tools.commands import sim

FOLDER = Path(digits.__file__).parent
TFLITE, ONNX = FOLDER / "residual_int8.tflite", FOLDER / "separable_qdq.onnx"


@pytest.mark.parametrize("model", [TFLITE, ONNX], ids=lambda p: p.suffix)
def test_program_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file is written that holds the model; the table names every node."""
    path = tmp_path / "net.okpu"
    assert command.main([str(model), "-o", str(path)]) == 0
    said = capsys.readouterr().out
    program = okpu.load(path)
    assert all(row.name[-30:] in said for row in program.rows)
    assert f"{program.layers} layers in 1 task list" in said and "predicted on k210" in said


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, status 2, nothing written."""
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(TFLITE.read_bytes()[:300])
    path = tmp_path / "net.okpu"
    for words, text in (
        ([str(bad), "-o", str(path)], "bad.tflite"),
        ([str(tmp_path / "none.onnx"), "-o", str(path)], "No such file"),
        ([str(TFLITE), "-o", str(tmp_path / "net.txt")], ".okpu"),
        ([str(TFLITE), "--shape", "1xa"], "expected a shape"),
        ([str(TFLITE), "--config", "huge"], "huge"),
    ):
        assert command.main(words) == 2
        error = capsys.readouterr().err
        assert text in error and error.count("\n") == 1 and not path.exists()


@pytest.mark.parametrize("compiled", [False, True])
def test_golden(compiled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """INPUT in integers and in floats, OUTPUT in the model's type and shape."""
    model = TFLITE
    if compiled:
        model = tmp_path / "net.okpu"
        assert command.main([str(TFLITE), "-o", str(model)]) == 0
    program = okpu.loads(model.read_bytes(), "net") if compiled else None
    whole = np.random.default_rng(1).integers(-128, 128, (3, 8, 8, 1)).astype(np.int8)
    results = []
    for i in range(2):
        if program is not None and i:
            (tensor,) = program.inputs
            whole = ((whole - float(tensor.zero)) * tensor.scale).astype(np.float32)
        np.save(tmp_path / "x.npy", whole)
        words = ["--model", str(model), "--golden", "--input", str(tmp_path / "x.npy")]
        assert sim.main([*words, "--output", str(tmp_path / "y.npy")]) == 0
        results.append(np.load(tmp_path / "y.npy"))
    assert results[0].shape == (3, 10) and results[0].dtype == np.int8
    assert np.array_equal(*results)
    assert "3 inferences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--image", "x.png"], "IMAGE and"),
        (["--via", "tasks"], "VIA and"),
        (["--rounding", "trunc"], "ROUNDING and"),
        (["--input", "x.npy", "--images", "2"], "INPUT and IMAGES"),
    ],
)
def test_options_of_kmodels(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of another shape or type: nothing is written."""
    out = tmp_path / "y.npy"
    for array in (np.zeros((1, 9, 8, 1), np.int8), np.zeros((1, 8, 8, 1), np.int32)):
        np.save(tmp_path / "x.npy", array)
        words = ["--model", str(TFLITE), "--golden", "--input", str(tmp_path / "x.npy")]
        assert sim.main([*words, "--output", str(out)]) == 2
        error = capsys.readouterr().err
        assert "expected" in error and error.count("\n") == 1 and not out.exists()
