# SPDX-License-Identifier: Apache-2.0
"""Pictures in, boxes and classes out, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from models.kmodel import KmodelError
from models.kmodel.__main__ import main
from models.kmodel.build import build_v0, build_v1, build_v5, chain
from models.kmodel.images import image_input, open_image
from models.kmodel.program import Tensor, View
from models.kmodel.results import (
    FACE,
    VOC,
    Box,
    Detector,
    decode_region,
    decode_yolox,
    draw,
    known_detector,
    overlap,
    report,
    top_classes,
)

PIL = pytest.importorskip("PIL.Image", reason="pictures need Pillow")
RNG = np.random.default_rng(3)


@pytest.fixture()
def photo(tmp_path: Path) -> Path:
    """A picture whose corners have colours of their own."""
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[:30, :40] = 250, 10, 20
    pixels[30:, 40:] = 5, 200, 90
    PIL.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def tensor(*shape: int, dtype: str = "u1") -> Tensor:
    return Tensor("input0", View("input0", 0, shape, dtype))


def test_picture_becomes_planes(photo: Path) -> None:
    image = open_image(photo)
    array, note = image_input(image, tensor(1, 3, 60, 80))
    assert note == "" and array.dtype == np.uint8 and array.shape == (1, 3, 60, 80)
    assert array[0, :, 0, 0].tolist() == [250, 10, 20]
    assert array[0, :, 59, 79].tolist() == [5, 200, 90]
    array, note = image_input(image, tensor(1, 3, 60, 80), bgr=True)
    assert note == "blue first" and array[0, :, 0, 0].tolist() == [20, 10, 250]


def test_picture_is_resized_and_scaled(photo: Path) -> None:
    image = open_image(photo)
    array, note = image_input(image, tensor(1, 3, 30, 20, dtype="<f4"))
    assert "resized from 80 x 60 to 20 x 30" in note and "pixels * 0.00392157 + 0" in note
    assert array.shape == (1, 3, 30, 20) and np.allclose(array[0, :, 0, 0] * 255, [250, 10, 20])
    array, _ = image_input(image, tensor(3, 60, 80, dtype="<f4"), scale=2, bias=-1)
    assert array[:, 0, 0].tolist() == [499, 19, 39]
    grey, _ = image_input(image, tensor(1, 1, 60, 80))
    assert abs(int(grey[0, 0, 0, 0]) - round(0.299 * 250 + 0.587 * 10 + 0.114 * 20)) <= 1
    signed, _ = image_input(image, tensor(1, 3, 60, 80, dtype="i1"))
    assert signed[0, :, 0, 0].tolist() == [122, -118, -108]


@pytest.mark.parametrize("shape", [(1, 4, 5, 6), (2, 3, 5, 6), (10,), (1, 10)])
def test_input_that_is_no_picture(photo: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(KmodelError, match="no picture"):
        image_input(open_image(photo), tensor(*shape))


def test_unreadable_pictures(tmp_path: Path, photo: Path) -> None:
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "half.png").write_bytes(photo.read_bytes()[:60])
    for name in ("absent.png", "text.png", "half.png", ""):
        with pytest.raises(KmodelError) as caught:
            open_image(tmp_path / name)
        assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)
    raw = bytearray(photo.read_bytes())
    for _ in range(200):
        raw[int(RNG.integers(0, len(raw)))] = int(RNG.integers(0, 256))
        (tmp_path / "bad.png").write_bytes(raw)
        try:
            open_image(tmp_path / "bad.png")
        except KmodelError as err:
            assert "\n" not in str(err)


# --------------------------------------------------------------------------------------- boxes
def test_region_decoding() -> None:
    """One box put into an output by hand comes out where it belongs."""
    output = np.full((1, 30, 15, 20), -20.0, np.float32)
    data = output.reshape(5, 6, 15, 20)
    data[2, :5, 7, 4] = 0.0, 0.0, np.log(0.5), 0.0, 3.0
    data[2, :5, 7, 5] = -9.0, 0.0, np.log(0.5), 0.0, 2.0  # nearly the same box, weaker
    data[0, :5, 1, 15] = 0.0, 0.0, 0.0, 0.0, 1.0
    boxes = decode_region(output, FACE)
    assert [round(b.score, 3) for b in boxes] == [0.953, 0.731]
    (x, y), (w, h) = (4.5 / 20, 7.5 / 15), (3.99987 / 2 / 20, 5.3658 / 15)
    want = x - w / 2, y - h / 2, x + w / 2, y + h / 2
    assert np.allclose([boxes[0].x0, boxes[0].y0, boxes[0].x1, boxes[0].y1], want)
    assert known_detector(output) is FACE
    assert report(output, 320, 240)[1] == boxes


def test_region_classes_and_thresholds() -> None:
    detector = Detector((1.0, 1.0), ("cat", "dog"), threshold=0.4, nms=1.1)
    output = np.zeros((7, 2, 2), np.float32)
    output[4:] = np.array([4.0, 0.0, 9.0])[:, None, None]
    assert [b.name for b in decode_region(output, detector)] == ["dog"] * 4
    assert decode_region(output, Detector((1.0, 1.0), ("cat", "dog"), threshold=0.99)) == []
    with pytest.raises(KmodelError, match="has 30 channels"):
        decode_region(output, FACE)
    output[:] = np.nan
    assert decode_region(output, detector) == []


def test_yolox_decoding() -> None:
    output = np.full((1, 21, 7), -9.0, np.float32)  # 32 x 32: 16 + 4 + 1 cells
    output[0, 17] = 0.5, 0.25, 0.0, np.log(2.0), 5.0, -9.0, 5.0
    (box,) = decode_yolox(output, 32, 32, ("a", "b"))
    assert box.name == "b" and box.score == pytest.approx(0.9933**2, abs=1e-3)
    centre = (box.x0 + box.x1) / 2 * 32, (box.y0 + box.y1) / 2 * 32
    assert centre == pytest.approx((24.0, 4.0)) and (box.y1 - box.y0) * 32 == pytest.approx(32)
    with pytest.raises(KmodelError, match="yolox"):
        decode_yolox(output, 64, 64)


def test_overlap() -> None:
    a = Box("x", 1, 0, 0, 2, 2)
    assert overlap(a, a) == 1 and overlap(a, Box("x", 1, 1, 0, 3, 2)) == pytest.approx(1 / 3)
    assert overlap(a, Box("x", 1, 2, 2, 3, 3)) == 0


def test_top_classes_and_shapes() -> None:
    scores = np.array([[0.1, 0.7, 0.0, 0.2, np.nan, 0.05]], np.float32)
    best = top_classes(scores, 3, ("a", "b"))
    assert [(i, name) for i, name, _ in best] == [(1, "b"), (3, "3"), (0, "a")]
    assert report(scores, 8, 8)[0] == "classes"
    assert report(np.zeros((1, 4, 6, 6)), 48, 48)[0] == "tensor"
    assert known_detector(np.zeros((1, 125, 7, 10))) is VOC


def test_drawing_marks_the_picture(photo: Path) -> None:
    image = open_image(photo)
    marked = draw(image, [Box("face", 0.9, 0.25, 0.25, 0.75, 0.75), Box("far", 1, -3, 2, -1, 9)])
    before, after = np.asarray(image), np.asarray(marked)
    assert not np.array_equal(before, after) and np.array_equal(before, np.asarray(image))
    assert np.array_equal(before[50:, 65:79], after[50:, 65:79])  # nothing outside the boxes
    assert (after[15, 22:58] != before[15, 22:58]).any()


def test_detector_files(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"anchors": [1, 2, 3, 4], "classes": ["a"], "threshold": 0.2}')
    assert Detector.load(path) == Detector((1.0, 2.0, 3.0, 4.0), ("a",), 0.2, 0.3)
    for text in (
        "",
        "[]",
        "{}",
        '{"anchors": [1], "classes": ["a"]}',
        '{"anchors": 3}',
        "[" * 99999,
    ):
        path.write_text(text)
        with pytest.raises(KmodelError, match=r"d\.json"):
            Detector.load(path)
    with pytest.raises(KmodelError, match="absent"):
        Detector.load(tmp_path / "absent")


# ------------------------------------------------------------------------------------- command
@pytest.fixture()
def models(tmp_path: Path) -> dict[str, Path]:
    """A detector-shaped and a classifier-shaped model of one layer each."""
    found = {}
    for name, c, size, o, build in (
        ("detector", 3, 16, 12, build_v0),
        ("classes", 1, 1, 7, build_v1),
    ):
        x = RNG.integers(0, 256, (c, size, size), dtype=np.uint8)
        layers = chain(RNG, [{"o": o, "kernel": 1, "pool": 0, "depthwise": False}], x)
        found[name] = tmp_path / name
        found[name].write_bytes(build(layers, 0.1, -5.0))
    found["v5"] = tmp_path / "v5"
    found["v5"].write_bytes(build_v5(b"", [], [], layers))
    return found


def test_command_prints_tables(models: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    assert main([str(models["detector"])]) == 0
    text = capsys.readouterr().out
    assert "kmodel v0" in text and "L00" in text and "(3, 16, 16)@0 -> (12, 16, 16)" in text
    assert main([str(models["detector"]), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["kpu_layers"] == 1 and info["kpu_macs"] == 3 * 12 * 256
    assert main([str(models["v5"]), "--functions"]) == 0
    assert "function 0" in capsys.readouterr().out


def test_command_runs_pictures(
    models: dict[str, Path], photo: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    side = tmp_path / "d.json"
    side.write_text('{"anchors": [1, 1, 3, 3], "classes": ["a"], "threshold": 0.0, "nms": 1}')
    arguments = ["--image", str(photo), "--detector", str(side), "--png", str(tmp_path / "o.png")]
    assert main([str(models["detector"]), *arguments]) == 0
    text = capsys.readouterr().out
    assert "resized from 80 x 60 to 16 x 16" in text and "a 0." in text
    assert open_image(tmp_path / "o.png").size == (80, 60)
    assert main([str(models["classes"]), "--image", str(photo), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    scores = [score for *_, score in info["result"]["classes"]]
    assert len(scores) == 5 and scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{tmp}/absent"], "absent"),
        (["{detector}", "--image", "{tmp}/absent.png"], "absent.png"),
        (["{detector}", "--image", "{detector}"], "no picture"),
        (["{detector}", "--image", "{photo}", "--detector", "{photo}"], "no detector"),
        (["{detector}", "--image", "{photo}", "--png", "{tmp}/no/o.png"], "o.png"),
        (["{detector}", "--image", "{photo}", "--png", "{tmp}/o.gif"], "ends in .png"),
        (["{detector}", "--functions"], "has no functions"),
        (["{v5}", "--image", "{photo}"], "0 inputs"),
    ],
)
def test_command_says_one_line_and_status_2(
    arguments: list[str],
    text: str,
    models: dict[str, Path],
    photo: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    names = {**models, "tmp": tmp_path, "photo": photo}
    assert main([a.format(**names) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("kmodel: ") and text in err
