# SPDX-License-Identifier: Apache-2.0
"""Pictures in, boxes and classes out, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from openkpu.kmodel import KmodelError
from openkpu.kmodel.__main__ import main
from openkpu.kmodel.build import build_v0, build_v1, build_v5, chain_layers
from openkpu.kmodel.images import image_input, open_image
from openkpu.kmodel.program import ModelTensor, View
from openkpu.kmodel.results.results import (
    FACE,
    FACE_PRIORS,
    Box,
    Detector,
    PriorDetector,
    box_overlap,
    decode_priors,
    decode_region,
    decode_yolox,
    draw_boxes,
    hint,
    load_detector,
    report,
    top_classes,
)

PIL = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
RNG = np.random.default_rng(3)


@pytest.fixture()
def photo(tmp_path: Path) -> Path:
    """A picture whose corners have colours of their own."""
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[:30, :40] = 250, 10, 20
    pixels[30:, 40:] = 5, 200, 90
    PIL.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def tensor(*shape: int, dtype: str = "u1") -> ModelTensor:
    return ModelTensor("input0", View("input0", 0, shape, dtype))


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
    assert report(output, 320, 240, FACE) == ("boxes", boxes, ())


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


def test_priors_stand_where_the_training_code_puts_them() -> None:
    """Numbers worked out by hand: 320 x 240, steps 8, 16, 32, 64, cells at the edge rounded up."""
    boxes = FACE_PRIORS.boxes(320, 240)
    assert len(boxes) == 4420 == 3 * 40 * 30 + 2 * 20 * 15 + 2 * 10 * 8 + 3 * 5 * 4
    for index, pixels in {
        0: (4, 4, 10, 10),  # first cell of step 8, first size
        2: (4, 4, 24, 24),
        3: (12, 4, 10, 10),  # to the right
        120: (4, 12, 10, 10),  # next row
        3600: (8, 8, 32, 32),  # step 16
        4200: (16, 16, 64, 64),  # step 32
        4200 + 2 * 70 + 1: (16, 7.5 * 32, 96, 96),  # its last row ends below the picture
        4360 + 3 * 7 + 2: (2.5 * 64, 1.5 * 64, 256, 240),  # step 64: clipped to the height
        4360 + 3 * 15: (32, 3.5 * 64, 128, 128),
    }.items():
        want = np.minimum(np.array(pixels) / (320, 240, 320, 240), 1)
        assert np.allclose(boxes[index], want), index
    assert FACE_PRIORS.count(640, 480) == 3 * 80 * 60 + 2 * 40 * 30 + 2 * 20 * 15 + 3 * 10 * 8


def prior_outputs(width: int = 320, height: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Nothing found: places 0, background certain."""
    count = FACE_PRIORS.count(width, height)
    scores = np.zeros((1, 1, count, 2), np.float32)
    scores[..., 0] = 1
    return np.zeros(4 * count, np.float32), scores


def test_prior_decoding() -> None:
    """A box put into the outputs by hand comes out where it belongs, whichever output is first."""
    places, scores = prior_outputs()
    at = 4200 + 2 * 23 + 1  # step 32: cell 3 of row 2, 96 pixels
    places.reshape(-1, 4)[at] = 5.0, -2.5, 5 * np.log(0.5), 5 * np.log(0.25)
    scores[0, 0, at] = 0.1, 0.9
    scores[0, 0, at + 1] = 0.35, 0.65  # the next cell, another place: stays
    places.reshape(-1, 4)[at - 1] = places.reshape(-1, 4)[at]
    scores[0, 0, at - 1] = 0.41, 0.59  # not above the threshold
    for outputs in ((places, scores), (scores, places)):
        kind, boxes, notes = report(outputs, 320, 240)
        assert notes[0].startswith("priors of the RFB and slim face detectors assumed; --detector=")
        assert kind == "boxes" and [round(b.score, 3) for b in boxes] == [0.9, 0.65]
    x, y = 3.5 * 32 + 0.1 * 5 * 96, 2.5 * 32 - 0.1 * 2.5 * 96
    want = (x - 24) / 320, (y - 12) / 240, (x + 24) / 320, (y + 12) / 240
    assert np.allclose([boxes[0].x0, boxes[0].y0, boxes[0].x1, boxes[0].y1], want, atol=1e-6)
    assert boxes[0].name == "face"


def test_overlapping_priors_leave_the_best() -> None:
    places, scores = prior_outputs()
    for at, score in ((4200 + 1, 0.8), (4200 + 3, 0.7), (4200 + 5, 0.95)):
        scores[0, 0, at, 1] = score  # 96 pixels, 32 apart: neighbours overlap by a half
    boxes = decode_priors((places, scores), FACE_PRIORS, 320, 240)
    assert [round(b.score, 2) for b in boxes] == [0.95, 0.8]
    logits = scores.copy()
    logits[0, 0, 4205] = -1.0, 3.0  # no probabilities: through a softmax
    (best, *_) = decode_priors((places, logits), FACE_PRIORS, 320, 240)
    assert best.score == pytest.approx(1 / (1 + np.exp(-4)))


def test_face_priors_are_known_for_other_sizes_of_input() -> None:
    places, scores = prior_outputs(640, 480)
    scores[0, 0, 0, 1] = 1.0
    (box,) = report((places, scores), 640, 480)[1]
    # 10 pixels around (4, 4)
    assert (box.x0, box.x1, box.y1) == pytest.approx((-1 / 640, 9 / 640, 9 / 480))
    assert report((places, scores), 320, 240)[0] == "tensor"
    assert report((places, scores[..., :1]), 640, 480)[0] == "tensor"
    assert report(places, 640, 480)[0] == "tensor"


def test_hints_say_what_is_there() -> None:
    text = hint(np.zeros((1, 35, 8, 10)))
    assert text is not None and "35 channels, 8 x 10 cells" in text and "5 x (5 + 2)" in text
    assert "--detector=side.json" in text
    text = hint([np.zeros(4 * 77), np.zeros((1, 77, 4))])
    assert text is not None and "77 priors and 3 class(es): --detector=side.json" in text
    for shape in ((1, 256, 1, 1), (10,), (1, 3, 8, 8), (0,)):
        assert hint(np.zeros(shape)) is None
    assert hint([np.zeros(3), np.zeros(5)]) is None


def test_overlap() -> None:
    a = Box("x", 1, 0, 0, 2, 2)
    assert box_overlap(a, a) == 1 and box_overlap(a, Box("x", 1, 1, 0, 3, 2)) == pytest.approx(
        1 / 3
    )
    assert box_overlap(a, Box("x", 1, 2, 2, 3, 3)) == 0


def test_top_classes_and_shapes() -> None:
    scores = np.array([[0.1, 0.7, 0.0, 0.2, np.nan, 0.05]], np.float32)
    best = top_classes(scores, 3, ("a", "b"))
    assert [(i, name) for i, name, _ in best] == [(1, "b"), (3, "3"), (0, "a")]
    assert report(scores, 8, 8)[0] == "classes"
    assert report(np.zeros((1, 4, 6, 6)), 48, 48)[0] == "tensor"


def test_drawing_marks_the_picture(photo: Path) -> None:
    image = open_image(photo)
    marked = draw_boxes(
        image, [Box("face", 0.9, 0.25, 0.25, 0.75, 0.75), Box("far", 1, -3, 2, -1, 9)]
    )
    before, after = np.asarray(image), np.asarray(marked)
    assert not np.array_equal(before, after) and np.array_equal(before, np.asarray(image))
    assert np.array_equal(before[50:, 65:79], after[50:, 65:79])  # nothing outside the boxes
    assert (after[15, 22:58] != before[15, 22:58]).any()


def test_detector_files(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"anchors": [1, 2, 3, 4], "classes": ["a"], "threshold": 0.2}')
    assert load_detector(path) == Detector((1.0, 2.0, 3.0, 4.0), ("a",), 0.2, 0.3)
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
            load_detector(path)
    with pytest.raises(KmodelError, match="absent"):
        load_detector(tmp_path / "absent")


SSD = {
    "priors": [[10, [16, 8]], [32]],
    "steps": [8, 16],
    "variances": [0.5, 0.25],
    "classes": ["cat", "dog"],
}


def test_prior_files(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(SSD))
    found = load_detector(path)
    assert isinstance(found, PriorDetector) and found == PriorDetector(
        (((10, 10), (16, 8)), ((32, 32),)), (8, 16), ("cat", "dog"), (0.5, 0.25), 0.6, 0.3
    )
    count = 2 * 2 * 2 + 1
    assert found.count(16, 16) == count
    places, scores = np.zeros((count, 4)), np.zeros((count, 3))
    scores[3] = 0.2, 0.1, 0.7
    places[3] = 0.5, 0, 0, 0
    (box,) = report((places, scores), 16, 16, found)[1]
    # the second prior of the second cell, moved by a quarter of its width
    assert box.name == "dog" and box.x0 * 16 == pytest.approx(12 + 4 - 8)
    assert (box.y0 * 16, box.y1 * 16) == pytest.approx((0, 8))
    with pytest.raises(KmodelError, match=r"\[9, 4\]: these priors .* 9 x 4 and 9 x 3 elements"):
        report((places,), 16, 16, found)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("priors", [[10]], "1 lists of priors for 2 steps"),
        ("priors", [[10], []], "above 0"),
        ("priors", [[10], [-3]], "above 0"),
        ("priors", [[10], [[1, 2, 3]]], "too many values"),
        ("priors", [[10], ["12"]], "prior of '12'"),
        ("priors", 3, "a part is of another type"),
        ("steps", [8, 0], "above 0"),
        ("steps", [8, 16.5], "step of 16.5"),
        ("steps", [8, float("inf")], "no detector description"),
        ("steps", [], "for 0 steps"),
        ("variances", [0.1], "not enough values"),
        ("variances", [0.1, float("nan")], "above 0"),
        ("classes", [], "classes are a list"),
        ("classes", "face", "classes are a list"),
        ("threshold", float("nan"), "finite"),
        ("nms", "x", "no detector description"),
        ("steps", None, "'steps' is missing"),
        ("classes", None, "'classes' is missing"),
    ],
)
def test_prior_files_that_are_wrong(tmp_path: Path, key: str, value: object, text: str) -> None:
    data = {**SSD, key: value}
    if value is None:
        del data[key]
    path = tmp_path / "d.json"
    path.write_text(json.dumps(data))
    with pytest.raises(KmodelError, match=text) as caught:
        load_detector(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


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
        layers = chain_layers(RNG, [{"o": o, "kernel": 1, "pool": 0, "depthwise": False}], x)
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


def test_command_says_how_to_read_a_map(
    models: dict[str, Path], photo: Path, capsys: pytest.CaptureFixture
) -> None:
    detector, out = models["detector"], photo.with_name("found.png")
    assert main([str(detector), "--image", str(photo), "--png", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "output [1, 12, 16, 16]: " in printed and out.exists()
    assert "a map of 12 channels, 16 x 16 cells" in printed and "2 x (5 + 1)" in printed
    assert "--detector=side.json with its anchors" in printed
    assert main([str(detector), "--image", str(photo), "--json"]) == 0
    assert "12 channels" in json.loads(capsys.readouterr().out)["result"]["hint"]


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
    assert out == "" and err.count("\n") == 1 and err.startswith("error: ") and text in err
