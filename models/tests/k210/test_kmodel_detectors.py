# SPDX-License-Identifier: Apache-2.0
"""Detectors with several outputs, and the ones that are guessed."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_real import shared
from openkpu.kmodel import KmodelError, Program, load_kmodel, loads_kmodel, run_kmodel
from openkpu.kmodel.__main__ import main
from openkpu.kmodel.build import build_v0, build_v3, chain_layers
from openkpu.kmodel.operations.operations import Dequantize, Unary
from openkpu.kmodel.results.guess import FACE, VOC, ends_as_region, guess
from openkpu.kmodel.results.results import (
    Detector,
    decode_maps,
    decode_region,
    hint,
    load_detector,
    report,
)

RNG = np.random.default_rng(12)
# darknet's yolo v3 and its tiny one, pixels of a 416 x 416 input
NINE = (10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326)
SIX = (10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319)
NAMES = ("cat", "dog")


def empty(h: int, w: int, anchors: int = 3, classes: int = 2) -> np.ndarray:
    """A map in which nothing is found."""
    return np.full((1, anchors * (5 + classes), h, w), -20.0, np.float32)


def plant(output: np.ndarray, anchor: int, y: int, x: int, kind: int, classes: int = 2) -> None:
    """A certain box of exactly the anchor's size at the middle of a cell."""
    cell = output.reshape(-1, 5 + classes, *output.shape[2:])[anchor, :, y, x]
    cell[:4] = 0
    cell[4] = cell[5 + kind] = 20


def pixels(box, size: int = 416) -> tuple[float, ...]:
    """Centre and size, rounded."""
    x0, y0, x1, y1 = (v * size for v in (box.x0, box.y0, box.x1, box.y1))
    return tuple(round(v, 2) for v in ((x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0))


def test_all_outputs_are_decoded_each_with_its_anchors() -> None:
    """Six anchors in pixels: the large ones are the coarse map's, whichever comes first."""
    coarse, fine = empty(13, 13), empty(26, 26)
    plant(coarse, 1, 6, 2, 0)
    plant(fine, 2, 20, 5, 1)
    for outputs in ((coarse, fine), (fine, coarse)):
        boxes, notes = decode_maps(outputs, Detector(SIX, NAMES), 416, 416)
        assert {(b.name, pixels(b)) for b in boxes} == {
            ("cat", (2.5 * 32, 6.5 * 32, 135, 169)),
            ("dog", (5.5 * 16, 20.5 * 16, 37, 58)),
        }
        assert notes == [
            'anchors taken as pixels of the input (the largest is 344); "unit" in the side file '
            "decides"
        ]


def test_nine_anchors_are_split_by_size() -> None:
    """Over three maps; two of them have those of their strides."""
    maps = [empty(13, 13), empty(26, 26), empty(52, 52)]
    for output, (y, x) in zip(maps, ((6, 6), (3, 20), (40, 8)), strict=True):
        plant(output, 1, y, x, 0)
    want = {(156, 198), (62, 45), (16, 30)}
    detector = Detector(NINE, NAMES, unit="pixels")
    boxes, notes = decode_maps(maps, detector, 416, 416)
    assert {pixels(box)[2:] for box in boxes} == want and not notes
    shuffled = np.array(NINE).reshape(-1, 2)[RNG.permutation(9)].ravel().tolist()
    boxes, _ = decode_maps(maps, dataclasses.replace(detector, anchors=tuple(shuffled)), 416, 416)
    assert {pixels(box)[2:] for box in boxes} == want
    boxes, _ = decode_maps(maps[:2], detector, 416, 416)
    assert {pixels(box)[2:] for box in boxes} == {(156, 198), (62, 45)}
    boxes, _ = decode_maps([maps[2], maps[0]], detector, 416, 416)
    assert {pixels(box)[2:] for box in boxes} == {(16, 30), (156, 198)}


def test_anchors_by_output_in_every_unit() -> None:
    """Cells of each map, pixels, fractions: the same boxes; what is assumed is said."""
    coarse, fine = empty(7, 10, 1), empty(14, 20, 1)
    plant(coarse, 0, 3, 3, 0)
    plant(fine, 0, 1, 17, 1)
    sizes = np.array([[96, 64], [32, 48]])  # pixels of 320 x 224
    for unit, scale, said in (
        ("cells", np.array([[32, 32], [16, 16]]), ""),
        ("pixels", 1, "pixels of the input (the largest is 96)"),
        ("fractions", np.array([320, 224]), "fractions of the input (none is above 0.3"),
    ):
        anchors = tuple(map(tuple, (sizes / scale).tolist()))
        for given in (unit, None):
            detector = Detector((), NAMES, outputs=anchors, unit=given)
            boxes, notes = decode_maps((coarse, fine), detector, 320, 224)
            found = {
                (b.name, round((b.x1 - b.x0) * 320), round((b.y1 - b.y0) * 224)) for b in boxes
            }
            assert found == {("cat", 96, 64), ("dog", 32, 48)}, unit
            assert (len(notes) == 1 and said in notes[0]) if said and not given else not notes


def test_classes_by_sigmoid_or_softmax() -> None:
    """v3 trains every class by itself; one map is v2 unless the side file says otherwise."""
    one = empty(2, 2, 1)
    one.reshape(7, 2, 2)[:, 0, 0] = 0, 0, 0, 0, 20, 1.0, 0.5
    soft = np.exp(1.0) / (np.exp(1.0) + np.exp(0.5))
    sig = 1 / (1 + np.exp(-1.0))
    two = [one, empty(4, 4, 1)]
    for outputs, scores, want in (
        ([one], None, soft),
        ([one], "sigmoid", sig),
        (two, None, sig),
        (two, "softmax", soft),
    ):
        anchors = ((1.0, 1.0),) * len(outputs)
        detector = Detector((), NAMES, outputs=anchors, unit="cells", scores=scores)
        (box,) = decode_maps(outputs, detector, 64, 64)[0]
        assert box.name == "cat" and box.score == pytest.approx(want)


def test_overlaps_are_removed_across_maps() -> None:
    coarse, fine = empty(1, 1, 1), empty(3, 3, 1)
    plant(coarse, 0, 0, 0, 0)
    plant(fine, 0, 1, 1, 0)
    detector = Detector((), NAMES, outputs=((16.0, 16.0),) * 2, unit="pixels")
    assert len(decode_maps((coarse, fine), detector, 96, 96)[0]) == 1
    plant(fine, 0, 1, 1, 1)
    fine.reshape(7, 3, 3)[5, 1, 1] = -20
    assert len(decode_maps((coarse, fine), detector, 96, 96)[0]) == 2  # of another class


def test_one_map_is_read_as_before() -> None:
    """Anchors in cells; a further output that is no map is said; channels may come last."""
    output = RNG.normal(size=(1, 30, 7, 10)).astype(np.float32)
    want = decode_region(output, FACE)
    assert decode_maps([output], FACE, 320, 240) == (want, []) and want
    features = np.zeros((1, 64, 7, 10))
    boxes, notes = decode_maps([features, output], FACE, 320, 240)
    assert boxes == want
    assert notes == ["output [1, 64, 7, 10] not decoded, no map for these anchors"]
    turned = output.transpose(0, 2, 3, 1)
    assert decode_maps([turned], FACE, 320, 240)[0] == want


@pytest.mark.parametrize(
    ("detector", "shapes", "text"),
    [
        (Detector(SIX[:6], NAMES), [(13, 13), (26, 26)], "3 anchors for maps that have 3 and 3"),
        (Detector(NINE, NAMES), [(13, 13), (30, 30)], "9 anchors for maps that have 3 and 3"),
        (Detector(SIX, NAMES), [(13, 13), (13, 13)], "6 anchors for maps that have 3 and 3"),
        (Detector(SIX, ("a",)), [(13, 13), (26, 26)], "has 36 channels"),
        (
            Detector((), NAMES, outputs=(SIX[:6], SIX[:4])),
            [(13, 13), (26, 26)],
            "anchors for 2 outputs of 21 and 14 channels",
        ),
        (Detector((), NAMES, outputs=(SIX[:6],)), [(13, 13), (26, 26)], "anchors for 1 outputs"),
        (Detector(SIX, NAMES), [], "42 channels"),
    ],
)
def test_outputs_that_do_not_fit(
    detector: Detector, shapes: list[tuple[int, int]], text: str
) -> None:
    outputs = [empty(*shape) for shape in shapes]
    with pytest.raises(KmodelError) as caught:
        report(outputs, 416, 416, detector)
    assert text in str(caught.value) and all(
        str(list(o.shape)) in str(caught.value) for o in outputs
    )


def test_hint_of_two_maps() -> None:
    text = hint([empty(8, 8), empty(16, 16)])
    assert text is not None and "maps of 21 channels, 8 x 8 and 21 channels, 16 x 16" in text
    assert "yolo v3" in text and "anchors by output" in text


# ------------------------------------------------------------------------------------- side files
def test_side_files(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    side = {"outputs": [{"anchors": [1, 2]}, {"anchors": [3, 4]}], "classes": ["猫"]}
    path.write_text(json.dumps({**side, "unit": "pixels", "scores": "softmax"}))
    found = load_detector(path)
    assert found == Detector(
        (), ("猫",), outputs=((1.0, 2.0), (3.0, 4.0)), unit="pixels", scores="softmax"
    )
    for change, text in (
        ({"anchors": [1, 2]}, "both for all outputs and by output"),
        ({"outputs": [{"anchors": [1]}]}, "pairs of anchors"),
        ({"outputs": [{}]}, "'anchors' is missing"),
        ({"outputs": [[1, 2]]}, "no detector description"),
        ({"outputs": []}, "'anchors' is missing"),
        ({"outputs": 3}, "no detector description"),
        ({"treshold": 0.9}, "unknown key 'treshold', expected anchors, outputs, unit, scores, cl"),
        ({"priors": [[10]], "steps": [8]}, "unknown key 'outputs', expected priors, steps"),
        ({"threshold": 2}, "threshold 2, expected a finite number from 0 to 1"),
        ({"threshold": -0.1}, "threshold -0.1, expected"),
        ({"threshold": None}, "'None', expected a number"),
        ({"threshold": "0.5"}, "'0.5', expected a number"),
        ({"nms": True}, "'True', expected a number"),
        ({"nms": 40}, "nms 40, expected"),
        ({"classes": [None]}, "classes are a list of at least one name"),
        ({"classes": [["a"]]}, "classes are a list"),
        ({"outputs": [{"anchors": [True, 2]}]}, "'True', expected a number"),
        ({"outputs": [{"anchors": [1, 2], "mask": [0]}]}, "unknown key 'mask', expected anchors"),
        ({"unit": "inches"}, "unit 'inches', expected cells, pixels, fractions"),
        ({"unit": 3}, "unit 3, expected cells"),
        ({"scores": "max"}, "scores 'max', expected softmax, sigmoid"),
        ({"outputs": [{"anchors": [1, -2]}]}, "anchors above 0"),
        ({"outputs": [{"anchors": [1, float("nan")]}]}, "anchors above 0"),
    ):
        path.write_text(json.dumps({**side, **change}))
        with pytest.raises(KmodelError, match=r"d\.json") as caught:
            load_detector(path)
        assert text in str(caught.value) and "\n" not in str(caught.value)
    for content, text in (
        ('{"anchors": [1, 2], "classes": ["a"], "anchors": [3, 4]}', "'anchors' is there twice"),
        ("[]", "expected an object with anchors"),
        ("null", "expected an object with anchors"),
        ('"anchors"', "expected an object with anchors"),
    ):
        path.write_text(content)
        with pytest.raises(KmodelError, match=text):
            load_detector(path)


# ----------------------------------------------------------------------------------------- guesses
def one_layer(c: int, size: tuple[int, int], o: int, **shape) -> Program:
    """A layer and a dequantisation to both signs."""
    x = RNG.integers(0, 256, (c, *size), dtype=np.uint8)
    layers = chain_layers(RNG, [{"o": o, "kernel": 1, "pool": 0, "depthwise": False, **shape}], x)
    return loads_kmodel(build_v0(layers, 0.1, -5.0))


def test_a_guess_wants_input_and_last_layers_too() -> None:
    output, fine = np.zeros((1, 30, 7, 10)), np.zeros((1, 30, 15, 20))
    program = one_layer(16, (7, 10), 30)
    found = guess([output], 320, 240, program)
    assert found is not None and found.what == "anchors of the 1-class face detector"
    assert found.note() == (
        "anchors of the 1-class face detector assumed; --detector=side.json gives yours"
    )
    assert guess([fine], 320, 240, one_layer(16, (15, 20), 30)) is not None
    assert guess([output], 320, 224, program) is None  # another size of picture
    assert guess([output], 320, 240, None) is None
    assert guess([output, output], 320, 240, program) is None
    assert guess([fine], 320, 240, program) is None  # not what the last layer makes
    assert guess([np.zeros((1, 30, 8, 10))], 320, 240, one_layer(16, (8, 10), 30)) is None
    kernel3 = one_layer(16, (7, 10), 30, kernel=3)
    assert guess([output], 320, 240, kernel3) is None
    voc = guess([np.zeros((1, 125, 7, 10))], 320, 240, one_layer(16, (7, 10), 125))
    assert voc is not None and "20-class tiny yolo" in voc.what


def test_a_map_that_is_dequantised_by_channel() -> None:
    """The 20 classes of an early nncase: no shape in the file, boxes all the same."""
    x = RNG.integers(0, 256, (3, 240, 320), dtype=np.uint8)
    half = {"o": 4, "kernel": 1, "pool": 5, "depthwise": False}
    shapes = [half] * 4 + [{"o": 4, "kernel": 3, "pool": 0, "depthwise": False}]
    shapes += [half, {"o": 125, "kernel": 1, "pool": 0, "depthwise": False}]
    layers = chain_layers(RNG, shapes, x)
    last = layers[-1].y
    assert last.shape == (125, 7, 10)
    pairs = [v for i in range(125) for v in (0.05 + i / 1000, -6.0)]
    body = struct.pack("<5I250f", 1, 0, 65536, 125, 70, *pairs)
    operations = [*((layer, None) for layer in layers[:-1]), (layers[-1], 0), (24, body)]
    program = loads_kmodel(build_v3(operations, [(65536, 4 * last.size)], 1 << 18))
    assert program.outputs[0].shape == (1, 125, 7, 10)
    outputs = list(run_kmodel(program, x).outputs.values())
    kind, boxes, notes = report(outputs, 320, 240, program=program)
    assert kind == "boxes" and boxes == decode_region(outputs[0], VOC)
    assert notes == (
        "anchors of the 20-class tiny yolo of VOC assumed; --detector=side.json gives yours",
    )
    *before, op = program.operations
    program.operations = [*before, dataclasses.replace(op, biases=(0.0,) * 125)]
    assert guess(outputs, 320, 240, program) is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("positive", {"scale": 0.1, "bias": 0.0}),
        ("negative", {"scale": 0.1, "bias": -50.0}),
    ],
)
def test_a_region_has_both_signs(name: str, change: dict) -> None:
    program = one_layer(16, (7, 10), 30)
    assert ends_as_region(program, (1, 30, 7, 10))
    *before, last = program.operations
    assert isinstance(last, Dequantize)
    program.operations = [*before, dataclasses.replace(last, **change)]
    assert not ends_as_region(program, (1, 30, 7, 10))
    program.operations = [*before, last, last]
    assert not ends_as_region(program, (1, 30, 7, 10))
    sigmoid = Unary(offset=0, op="sigmoid", src=last.dst, dst=last.dst)
    program.operations = [*before, last, sigmoid]
    assert not ends_as_region(program, (1, 30, 7, 10))
    program.operations = []
    assert not ends_as_region(program, (1, 30, 7, 10))


def test_no_guess_is_silent() -> None:
    yolox = np.full((1, 21, 7), -9.0, np.float32)  # 32 x 32: 16 + 4 + 1 cells
    kind, _, notes = report(yolox, 32, 32)
    assert kind == "boxes"
    assert notes == ("a yolox of strides 8, 16 and 32 assumed; --detector=side.json gives yours",)
    (note,) = report(np.full((1, 21, 85), -9.0, np.float32), 32, 32).notes
    assert "with the classes of COCO assumed" in note
    kind, _, notes = report(
        np.zeros((1, 30, 7, 10), np.float32), 320, 240, program=one_layer(16, (7, 10), 30)
    )
    assert kind == "boxes" and "face detector assumed" in notes[0]
    assert VOC.channels == 125


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("face_detect_v3_8bit.kmodel", "anchors of the 1-class face detector assumed"),
        ("face_detect_v0_16bit.model.bin", "anchors of the 1-class face detector assumed"),
        ("face_rfb320_v4.kmodel", "priors of the RFB and slim face detectors assumed"),
        ("yolox_nano_224_v5.kmodel", "a yolox of strides 8, 16 and 32 with the classes of COCO"),
    ],
)
def test_published_detectors_are_known(name: str, text: str) -> None:
    program = load_kmodel(shared(f"real/{name}"))
    _, _, height, width = program.inputs[0].shape
    outputs = [np.zeros(t.shape, t.dtype) for t in program.outputs]
    found = guess(outputs, width, height, program)
    assert found is not None and text in found.note()


# ----------------------------------------------------------------------------------------- command
def two_outputs(tmp_path: Path) -> Path:
    """Two maps, 16 x 16 and 8 x 8, of 12 channels: 2 x (5 + 1)."""
    x = RNG.integers(0, 256, (3, 16, 16), dtype=np.uint8)
    shapes = [
        {"o": 12, "kernel": 1, "pool": 0, "depthwise": False},
        {"o": 12, "kernel": 1, "pool": 1, "depthwise": False},
    ]
    first, second = chain_layers(RNG, shapes, x)
    deq = [
        (12, struct.pack("<4I2f", 1, at, out, layer.y.size, 0.02, -2.0))
        for at, out, layer in ((0, 16384, first), (4096, 32768, second))
    ]
    places = [(16384, 4 * first.y.size), (32768, 4 * second.y.size)]
    path = tmp_path / "two.kmodel"
    path.write_bytes(build_v3([(first, 0), (second, 4096), *deq], places, 65536))
    return path


def test_command_shows_boxes_of_both(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    image = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
    path, photo, side = two_outputs(tmp_path), tmp_path / "p.png", tmp_path / "d.json"
    program = load_kmodel(path)
    assert [t.shape for t in program.outputs] == [(1, 12, 16, 16), (1, 12, 8, 8)]
    image.fromarray(RNG.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(photo)
    anchors = {"classes": ["thing"], "threshold": 0.0, "nms": 1, "unit": "cells"}
    by_output = {"outputs": [{"anchors": [1, 1, 2, 2]}, {"anchors": [3, 3, 4, 4]}]}
    side.write_text(json.dumps(anchors | by_output))
    words = [str(path), "--image", str(photo), "--detector", str(side), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert len(found["boxes"]) == 2 * 256 + 2 * 64 and found["assumed"] == []
    side.write_text(json.dumps(anchors | {"anchors": [1, 1, 2, 2], "unit": "pixels"}))
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "2 anchors for maps that have 2 and 2" in err and err.count("\n") == 1
    assert main(words[:3]) == 0
    printed = capsys.readouterr().out
    assert "output [1, 12, 16, 16]: " in printed and "output [1, 12, 8, 8]: " in printed
    assert "maps of 12 channels, 16 x 16 and 12 channels, 8 x 8 cells" in printed


def test_outputs_of_nothing() -> None:
    """A model may have none, or one of no elements."""
    assert report([], 8, 8).kind == "tensor" and hint([]) is None
    assert report([np.zeros((0,))], 8, 8).kind == "tensor"
