# SPDX-License-Identifier: Apache-2.0
"""openkpu quantise, and CALIBRATION at compile and sim."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from models.tests.quantised import exported
from models.tests.quantised.exported import ACTIVATIONS, DYNAMO, OLD, Exported
from openkpu import files
from openkpu.compiler import okpu
from openkpu_tools.commands import sim
from openkpu_tools.commands.compiled import compile as compile_command
from openkpu_tools.commands.compiled import quantise
from scripts.tests.conftest import Refused

pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

RNG = np.random.default_rng(5)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small classifier."""
    path = tmp_path / "net.onnx"
    path.write_bytes(exported.classifier(OLD, "silu"))
    return path


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """30 samples of it."""
    path = tmp_path / "x.npy"
    rng = np.random.default_rng(1)  # of its own: the tests before it in a process differ
    np.save(path, rng.normal(0, 1, (30, 3, 16, 16)).astype(np.float32))
    return path


def test_quantise(
    model: Path, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A QDQ model is written, and a report of every layer; what compile makes of both models is
    the same."""
    out, report = tmp_path / "q.onnx", tmp_path / "q.json"
    words = [str(model), "--calibration", str(given)]
    assert quantise.main([*words, "-o", str(out), "--report", str(report)]) == 0
    said = capsys.readouterr().out
    assert "quantised with 30 samples, minmax" in said
    assert "Sigmoid, mul" in said and "same class in" in said
    assert "QuantizeLinear" in {n.op_type for n in onnx.load(out).graph.node}
    found = json.loads(report.read_text())
    assert found["samples"] == 30
    assert [row["operator"] for row in found["layers"]].count("Conv") == 2
    for row in found["layers"]:
        assert 20 < row["through"] <= 99.9 and row["own"] >= row["through"] - 1, row
    assert found["outputs"][0]["same"] >= 27
    programs = []
    for more in (words, [str(out)]):
        path = tmp_path / f"net{len(programs)}.okpu"
        assert compile_command.main([*more, "-o", str(path)]) == 0
        programs.append(okpu.load_okpu(path))
    listings = [[p.network.layers for p in program.device_parts] for program in programs]
    assert listings[0] == listings[1]
    assert "signal to noise" in capsys.readouterr().out


def test_samples_and_method(
    model: Path, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fewer samples, spread over all: of two halves of different size both count."""
    array = np.load(given)
    array[15:] *= 4
    np.save(given, array)
    ranges = []
    for more in ([], ["--samples", "2"], ["--method", "percentile"], ["--method", "entropy"]):
        out = tmp_path / "q.onnx"
        assert quantise.main([str(model), "--calibration", str(given), *more, "-o", str(out)]) == 0
        data = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
        ranges.append(float(data["x_scale"]))
    said = capsys.readouterr().out
    assert "quantised with 2 samples, minmax" in said and "30 samples, percentile" in said
    assert ranges[1] > ranges[0] / 2, "the second sample is of the larger half"
    assert ranges[3] < ranges[2] <= ranges[0]


def pictures(folder: Path, count: int, size: tuple[int, int] = (20, 24)) -> None:
    """Pictures in two folders, with what else lies in such folders."""
    image_module = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
    for i in range(count):
        inside = folder / "ab"[i % 2]
        inside.mkdir(parents=True, exist_ok=True)
        pixels = np.zeros((*size, 3), np.uint8)
        pixels[:, i + 4 :] = 255
        image_module.fromarray(pixels).save(inside / f"{i}.{'png' if i % 3 else 'jpg'}")
    (folder / "labels.txt").write_text("a\nb\n")


def test_folder(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pictures by the rules of IMAGE: MEAN and SCALE change what the input's scale is."""
    folder = tmp_path / "pictures"
    pictures(folder, 6)
    scales = []
    for more in ([], ["--mean", "127.5", "--scale", "0.0078125"], ["--scale", "1", "--bgr"]):
        out, words = tmp_path / "q.onnx", [str(model), "--calibration", str(folder)]
        assert quantise.main([*words, *more, "-o", str(out)]) == 0
        data = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
        scales.append(float(data["x_scale"]) * 255)
    assert "quantised with 6 samples" in capsys.readouterr().out
    assert scales == pytest.approx([1, 2, 255], rel=0.05)


def test_program_converts_pictures_as_it_was_calibrated(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MEAN, SCALE and BGR of a compile go with the program; other ones at sim are those of sim."""
    folder, out, y = tmp_path / "pictures", tmp_path / "net.okpu", tmp_path / "y.npy"
    pictures(folder, 2)
    how = ["--mean", "10,20,30", "--scale", "0.02", "--bgr"]
    words = [str(model), "--calibration", str(folder), *how, "-o", str(out)]
    assert compile_command.main(words) == 0
    results = []
    for more in ([], how, ["--scale", "0.02"]):
        capsys.readouterr()
        words = ["--model", str(out), "--golden", "--image", str(folder / "a" / "0.jpg")]
        assert sim.main([*words, *more, "--output", str(y)]) == 0
        said = "pictures as those that calibrated it: mean 10,20,30, scale 0.02, BGR"
        assert (said in capsys.readouterr().out) == (not more)
        results.append(np.load(y))
    assert np.array_equal(results[0], results[1]) and not np.array_equal(*results[1:])


def test_sim(model: Path, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A float model on the golden model of the device, its inputs and outputs float."""
    x = np.load(given)[:4]
    np.save(tmp_path / "some.npy", x)
    words = ["--model", str(model), "--calibration", str(given), "--golden"]
    words += ["--input", str(tmp_path / "some.npy"), "--output", str(tmp_path / "y.npy")]
    assert sim.main(words) == 0
    assert "quantised with 30 samples, minmax" in capsys.readouterr().out
    found = np.load(tmp_path / "y.npy")
    real = np.concatenate([exported.run(model.read_bytes(), {"x": one[None]})[0] for one in x])
    assert found.dtype == np.float32 and found.shape == real.shape
    assert np.abs(found - real).max() < 0.1 * np.abs(real).max()


def test_several_inputs(tmp_path: Path, refused: Refused) -> None:
    """An .npz with an array for each; a .npy does not say which."""
    m = Exported(DYNAMO)
    a, b = m.input(1, 4, 8, 8, name="a"), m.input(1, 4, 8, 8, name="b")
    path = tmp_path / "net.onnx"
    path.write_bytes(m.done(m.node("Add", m.conv(a, 4, 4), b)))
    arrays = {n: RNG.normal(0, 1, (5, 4, 8, 8)).astype(np.float32) for n in "ab"}
    files.save_arrays(tmp_path / "x.npz", arrays)
    assert quantise.main([str(path), "--calibration", str(tmp_path / "x.npz")]) == 0
    np.save(tmp_path / "x.npy", arrays["a"])
    words = ["quantise", str(path), "--calibration", str(tmp_path / "x.npy")]
    refused(words, "expected a .npz")


def bad(case: str) -> bytes:
    """A model that cannot be quantised."""
    m = Exported(DYNAMO)
    x = m.input(1, 3, 8, 8)
    y = m.conv(x, 3, 4)
    if case == "nan":
        m.constants["val_0"][1, 2, 1, 0] = np.nan
    if case == "operator":
        y = m.node("Hardmax", y)
    return m.done(y)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("nan", "constant 'val_0': it has a NaN or an infinity"),
        ("operator", "(Hardmax): no such operator here"),
    ],
)
def test_bad_models(case: str, text: str, tmp_path: Path, refused: Refused) -> None:
    path, x = tmp_path / "bad.onnx", tmp_path / "x.npy"
    path.write_bytes(bad(case))
    np.save(x, np.ones((2, 3, 8, 8), np.float32))
    refused(["quantise", str(path), "--calibration", str(x)], text)


def test_dynamic_shape(tmp_path: Path, refused: Refused) -> None:
    """An open size is fixed by SHAPE."""
    m = Exported(OLD)
    y = m.conv(m.input(1, 3, 12, 12), 3, 4)
    model = onnx.load_model_from_string(m.done(y))
    for axis, name in ((2, "h"), (3, "w")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    path, x = tmp_path / "net.onnx", tmp_path / "x.npy"
    path.write_bytes(model.SerializeToString())
    np.save(x, RNG.normal(0, 1, (3, 3, 10, 10)).astype(np.float32))
    refused(["quantise", str(path), "--calibration", str(x)], "--shape=1x3xNxN fixes it")
    assert quantise.main([str(path), "--calibration", str(x), "--shape", "1x3x10x10"]) == 0


def test_warning_says_what_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One weight of a channel is large, all others are lost beside it: 16 bits would keep them."""
    m = Exported(OLD)
    y = m.conv(m.input(1, 4, 8, 8), 4, 4, bias=False)
    weights = m.constants["val_0"]
    weights *= 0.004
    weights[:, 0, 1, 1] = 40.0
    path, x = tmp_path / "net.onnx", tmp_path / "x.npy"
    path.write_bytes(m.done(ACTIVATIONS["relu"](m, y)))
    array = RNG.normal(0, 1, (20, 4, 8, 8)).astype(np.float32)
    array[:, 0] *= 1e-5
    np.save(x, array)
    assert quantise.main([str(path), "--calibration", str(x)]) == 0
    lines = [s for s in capsys.readouterr().out.splitlines() if s.startswith("warning")]
    assert len(lines) == 1 and "'/net/Conv_0'" in lines[0]
    assert "its weights are too coarse, --wide=/net/Conv_0 gives them 16 bits" in lines[0]
