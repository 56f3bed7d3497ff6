# SPDX-License-Identifier: Apache-2.0
"""Detectors with a grid of anchors that have no size, and their description (docs/models.md 3)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from openkpu.checkout import ROOT
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.images import open_image
from openkpu.kmodel.results.anchors import FACE_GRIDS, AnchorDetector
from openkpu.kmodel.results.results import draw_boxes, hint, load_detector, report

SIDE = {
    "strides": [8, 16],
    "per_cell": [2, 3],
    "keypoints": 1,
    "classes": ["cat", "dog"],
    "threshold": 0.6,
}


def outputs(detector: AnchorDetector, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs in which nothing is found."""
    count = detector.count(width, height)
    scores = np.full((1, count, len(detector.classes)), -9.0, np.float32)
    return np.zeros((1, count, detector.numbers), np.float32), scores


@pytest.mark.parametrize("order", ["xywh", "yxhw"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_anchors(order: str, turned: bool, scale: float, tmp_path: Path) -> None:
    """The second anchor of cell (2, 1) of stride 8, and the last one of stride 16, on 40 x 24
    pixels: 5 x 3 cells of two anchors, then 3 x 2 cells of three, those at the edge as well."""
    path = tmp_path / "d.json"
    path.write_text(json.dumps({**SIDE, "order": order, "scale": scale}))
    detector = load_detector(path)
    assert isinstance(detector, AnchorDetector) and detector.count(40, 24) == 30 + 18
    places, scores = outputs(detector, 40, 24)

    def put(anchor: int, score: tuple[float, float], *pairs: tuple[float, float]) -> None:
        ordered = [pair if order == "xywh" else pair[::-1] for pair in pairs]
        places[0, anchor], scores[0, anchor] = np.reshape(ordered, -1) / scale, score

    put((1 * 5 + 2) * 2 + 1, (-2, 2), (1, -2), (6, 4), (-3, 5))
    put(47, (3, 1), (0, 0), (10, 8), (0, 0))
    put(46, (2.5, 1), (1, 0), (10, 8), (0, 0))  # hidden by the one before
    put(0, (4, 1), (0, 0), (-3, 8), (0, 0))  # without a size
    put(3, (0.3, 0.1), (0, 0), (5, 5), (0, 0))  # below the threshold
    kind, boxes, notes = report((places, scores)[:: -1 if turned else 1], 40, 24, detector)
    assert kind == "boxes" and not notes
    assert [b.name for b in boxes] == ["cat", "dog"]
    assert [b.score for b in boxes] == pytest.approx([1 / (1 + np.exp(-3)), 1 / (1 + np.exp(-2))])
    assert [boxes[0].x0 * 40, boxes[0].x1 * 40] == pytest.approx([40 - 5, 40 + 5])
    assert [boxes[0].y0 * 24, boxes[0].y1 * 24] == pytest.approx([24 - 4, 24 + 4])
    assert [boxes[1].x0 * 40, boxes[1].y0 * 24] == pytest.approx([20 + 1 - 3, 12 - 2 - 2])
    ((x, y),) = boxes[1].points
    assert (x * 40, y * 24) == pytest.approx((20 - 3, 12 + 5))
    assert str(boxes[1]).endswith(", points 0.425,0.708")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("strides", [8], "2 numbers per_cell for 1 strides"),
        ("strides", [], "for 0 strides"),
        ("strides", [8, 0], "above 0"),
        ("strides", [8, 16.5], "stride of 16.5"),
        ("per_cell", [2, -1], "above 0"),
        ("per_cell", 2, "a part is of another type"),
        ("keypoints", -1, "keypoints from 0"),
        ("keypoints", "six", "expected a number"),
        ("scale", 0, "above 0"),
        ("scale", float("inf"), "above 0"),
        ("order", "wxyh", "order 'wxyh', expected xywh or yxhw"),
        ("order", ["xywh"], "no detector description"),
        ("classes", [], "classes are a list"),
        ("threshold", 2, "finite number from 0 to 1"),
        ("anchors", [1, 2], "unknown key 'anchors'"),
        ("per_cell", None, "'per_cell' is missing"),
        ("classes", None, "'classes' is missing"),
    ],
)
def test_side_files_that_are_wrong(tmp_path: Path, key: str, value: object, text: str) -> None:
    data = {**SIDE, key: value}
    if value is None:
        del data[key]
    path = tmp_path / "d.json"
    path.write_text(json.dumps(data))
    with pytest.raises(KmodelError, match=text) as caught:
        load_detector(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_outputs_that_do_not_fit() -> None:
    detector = AnchorDetector((8,), (1,), ("a",))
    with pytest.raises(KmodelError, match=r"\[1, 9, 1\]: these anchors .* 4 x 4 and 4 x 1"):
        report((np.zeros((1, 9, 4)), np.zeros((1, 9, 1))), 16, 16, detector)


@pytest.mark.parametrize("size", FACE_GRIDS)
def test_face_detectors_are_guessed(size: tuple[int, int]) -> None:
    """By the numbers of both outputs and the size of the input; the assumption is said."""
    height, width = size
    places, scores = outputs(FACE_GRIDS[size], width, height)
    places[0, 5, :4], scores[0, 5] = (0, 0, 20, 20), 2
    kind, boxes, (note,) = report([scores, places], width, height)
    assert kind == "boxes" and [b.name for b in boxes] == ["face"] and len(boxes[0].points) == 6
    assert "MediaPipe's face detector" in note and note.endswith(
        "; --detector=side.json gives yours"
    )
    assert report([places, scores], width + 8, height).kind == "tensor"
    assert report([places[:, 1:], scores[:, 1:]], width, height).kind == "tensor"


def test_hint() -> None:
    """Outputs that no guess fits: what may describe them."""
    said = hint([np.zeros((1, 56, 16)), np.zeros((1, 56, 1))])
    assert said is not None and said.startswith("perhaps 56 anchors with 6 keypoint(s) and 1 class")


def test_the_page_has_the_guess() -> None:
    """What docs/models.md gives for BlazeFace is what is assumed without it."""
    text = (ROOT / "docs/models.md").read_text()
    (side,) = re.findall(r'\{"strides": \[8, 16\].*?\}', text)
    assert AnchorDetector.of(json.loads(side)) == FACE_GRIDS[128, 128]


def test_keypoints_are_drawn(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (80, 80), "black").save(tmp_path / "p.png")
    detector = AnchorDetector((80,), (1,), ("a",), 1)
    places, scores = outputs(detector, 80, 80)
    places[0, 0], scores[0, 0] = (0, 0, 60, 60, 12, -9), 5
    image = open_image(tmp_path / "p.png")
    drawn = np.asarray(draw_boxes(image, report((places, scores), 80, 80, detector).found))
    assert drawn[31, 52].any() and not drawn[45, 45].any()
