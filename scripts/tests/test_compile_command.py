# SPDX-License-Identifier: Apache-2.0
"""openkpu compile, and make sim with a quantised model."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.compiler import okpu
from openkpu.compiler.source import read_program
from openkpu.prediction.cycles_model import predict_network
from openkpu_tools.commands import compile as command
from openkpu_tools.commands import compiled_page, predict, sim

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
            assert tensor.scale is not None
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
        (["--layers", "3-7"], "--layers and"),
        (["--via", "tasks"], "--via and"),
        (["--rounding", "trunc"], "--rounding and"),
        (["--input", __file__, "--images", "2"], "--input and --images"),
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


def picture(path: Path, size: tuple[int, int] = (8, 8)) -> np.ndarray:
    """A picture in colours, and its grey bytes."""
    image_module = pytest.importorskip("PIL.Image", reason="pictures need Pillow")
    pixels = np.random.default_rng(4).integers(0, 256, (*size, 3), dtype=np.uint8)
    image = image_module.fromarray(pixels)
    image.save(path)
    return np.asarray(image.convert("L"))


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pixels as bytes, or as numbers by MEAN and SCALE; names of classes; RAW bytes."""
    grey = picture(tmp_path / "x.png")
    (tensor,) = read_program(TFLITE, configs.load("small")).inputs
    (tmp_path / "names.txt").write_text("\n".join(f"digit {i}" for i in range(10)))
    assert tensor.scale is not None
    real = (grey - 100.0) * 0.01
    quantised = np.clip(np.rint(real / tensor.scale) + tensor.zero, -128, 127)
    cases = [
        ([], grey.astype(np.int64) - 128),
        (["--mean", "100", "--scale", "0.01"], quantised),
    ]
    for more, pixels in cases:
        np.save(tmp_path / "x.npy", pixels.astype(np.int8)[None, :, :, None])
        results = []
        for words in (
            ["--image", str(tmp_path / "x.png"), *more],
            ["--input", str(tmp_path / "x.npy")],
        ):
            words += ["--output", str(tmp_path / "y.npy"), "--labels", str(tmp_path / "names.txt")]
            assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 0
            results.append(np.load(tmp_path / "y.npy"))
        assert np.array_equal(*results)
    assert "digit 3: " in capsys.readouterr().out
    words = ["--input", str(tmp_path / "x.npy"), "--raw", "--output", str(tmp_path / "raw.npy")]
    assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 0
    raw = np.load(tmp_path / "raw.npy")
    assert raw.dtype == np.uint8 and raw.shape == (1, 10, 1, 1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--mean", "1"], "--mean without --image"),
        (["--raw"], "--raw without --output"),
        (["--image", __file__, "--input", __file__], "--image and --input"),
        (["--image", "none.png"], "none.png"),
        (["--labels", "none.txt"], "none.txt"),
        (["--labels", str(FOLDER / "README.md")], "names, expected 10"),
        (["--shape", "1x8x8x1"], "a shape fixes"),
    ],
)
def test_bad_options(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1


def test_options_of_quantised_models(capsys: pytest.CaptureFixture[str]) -> None:
    """With digits or a kmodel they are refused."""
    for words in (["--labels", __file__], ["--raw"], ["--mean", "1"], ["--shape", "1x2"]):
        assert sim.main(["--golden", *words]) == 2
        assert "without a TFLite or ONNX --model" in capsys.readouterr().err


def test_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cycles of the task list; options of kmodels are refused."""
    report = tmp_path / "r.json"
    assert predict.main(["--model", str(TFLITE), "--report", str(report)]) == 0
    said = capsys.readouterr().out
    program = read_program(TFLITE, configs.load("small"))
    found = json.loads(report.read_text())
    assert len(found["layers"]) == program.layers and found["via"] == "tasks"
    (part,) = program.device_parts
    whole = predict_network(configs.load("small"), part.network).cycles
    assert found["totals"]["end_to_end_cycles"] == whole and "1 nodes on the host" in said
    assert predict.main(["--model", str(TFLITE), "--via", "layers"]) == 2
    assert "--via and" in capsys.readouterr().err


def test_report(tmp_path: Path) -> None:
    """Layers, and where each node runs."""
    report = tmp_path / "r.json"
    assert sim.main(["--model", str(ONNX), "--golden", "--report", str(report)]) == 0
    nodes = json.loads(report.read_text())["totals"]["nodes"]
    assert {n["runs"] for n in nodes} == {"device", "host", "index"}
    assert sum(n["layers"] for n in nodes) == read_program(ONNX, configs.load("small")).layers
    assert all(n["cycles"] > 0 and n["weights"] > 0 for n in nodes if n["macs"])


def test_page(tmp_path: Path) -> None:
    """Well-formed, with a box and a row for each node, and names that are no markup."""
    page = tmp_path / "page.html"
    assert command.main([str(TFLITE), "--html", str(page)]) == 0
    program = read_program(TFLITE, configs.load("k210"))
    text = page.read_text()
    drawn = text[text.index("<svg") : text.index("</svg>") + 6]
    boxes = ElementTree.fromstring(drawn).findall("rect")
    assert len(boxes) == len(program.rows) + 1 and text.count("<tr") == len(program.rows) + 1
    program.rows[0].name = "<b>&"
    assert "<b>&" not in compiled_page.page(program, configs.load("k210"))
    assert sim.main(["--model", str(TFLITE), "--golden", "--html", str(page)]) == 0
    assert "on small" in page.read_text()
