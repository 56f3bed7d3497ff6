# SPDX-License-Identifier: Apache-2.0
"""Published models and compiled networks with outputs of the vendor's simulator, end to end.

The files are not part of the project; without them these tests skip and say so.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from openkpu.kmodel import (
    LayerEvent,
    Program,
    load_functions,
    load_kmodel,
    loads_kmodel,
    run_kmodel,
)
from openkpu.kmodel.images import image_input, open_image
from openkpu.kmodel.results.results import (
    COCO_CLASSES,
    FACE,
    Box,
    box_overlap,
    decode_region,
    decode_yolox,
    hint,
    report,
    top_classes,
)
from openkpu.layer.vectors import load_file

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
# a middle of the face in each portrait, as fractions of the picture, and its size
FACES = {"test1": (0.57, 0.5), "test2": (0.53, 0.45), "test10": (0.47, 0.46)}


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there; OPENKPU_SHARED names another place")
    return path


def picture(program: Program, name: str, bgr: bool = False) -> np.ndarray:
    pytest.importorskip("PIL", reason="make setup GROUPS=models brings Pillow")
    image = open_image(shared(f"real/images/{name}"))
    return image_input(image, program.inputs[0], bgr=bgr)[0]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    ("model", "layers", "low", "high"),
    [
        ("face_detect_v3_8bit.kmodel", 23, 0.90, 0.96),
        ("face_detect_v0_16bit.model.bin", 16, 0.81, 0.83),
    ],
)
def test_faces_are_found(model: str, layers: int, low: float, high: float, face: str) -> None:
    program = load_kmodel(shared(f"real/{model}"))
    result = run_kmodel(program, picture(program, f"{face}.jpg"))
    assert result.layers == layers
    (box,) = decode_region(result.output, FACE)
    print(model, face, box)
    assert low < box.score < high
    x, y = FACES[face]
    assert box.x0 < x < box.x1 and box.y0 < y < box.y1
    assert abs((box.x0 + box.x1) / 2 - x) < 0.1 and abs((box.y0 + box.y1) / 2 - y) < 0.1


# found with this model by an independent decoder on another reading of the pictures' pixels
RFB = {
    "test1.jpg": Box("face", 0.74, 0.40, 0.24, 0.77, 0.76),
    "test10.jpg": Box("face", 0.94, 0.29, 0.24, 0.64, 0.73),
}


@pytest.mark.parametrize("name", RFB)
def test_rfb_finds_the_portrait(name: str) -> None:
    program = load_kmodel(shared("real/face_rfb320_v4.kmodel"))
    result = run_kmodel(program, picture(program, name))
    assert result.layers == 52
    kind, boxes, notes = report(list(result.outputs.values()), 320, 240, program=program)
    assert notes == (
        "priors of the RFB and slim face detectors assumed; --detector=side.json gives yours",
    )
    print(name, *boxes)
    assert kind == "boxes" and len(boxes) == 1
    assert boxes[0].score == pytest.approx(RFB[name].score, abs=0.05)
    assert box_overlap(boxes[0], RFB[name]) > 0.9


def test_rfb_finds_the_crowd() -> None:
    program = load_kmodel(shared("real/face_rfb320_v4.kmodel"))
    result = run_kmodel(program, picture(program, "nncase_face.jpg"))
    boxes = report(list(result.outputs.values()), 320, 240, program=program).found
    print(len(boxes), "faces, best", boxes[0])
    assert 76 <= len(boxes) <= 80 and boxes[0].score > 0.985
    # heads of a crowd in rows: small, and not one over the other
    assert all(0.01 < b.x1 - b.x0 < 0.05 and 0.02 < b.y1 - b.y0 < 0.07 for b in boxes)
    assert max(box_overlap(a, b) for a in boxes for b in boxes if a is not b) <= 0.3
    # the quantised softmax: probabilities of both classes make about 1
    scores = result.outputs["output1"].reshape(-1, 2)
    assert np.abs(scores.sum(axis=1) - 1).max() < 0.03


def test_five_class_detector_runs() -> None:
    """Its anchors are not published: the map is there, and how to have it read."""
    program = load_kmodel(shared("real/detect5_v3.kmodel"))
    result = run_kmodel(program, picture(program, "nncase_face.jpg"))
    assert result.layers == 30 and result.output.shape == (1, 35, 8, 10)
    assert np.isfinite(result.output).all() and result.output.std() > 1
    assert report(result.output, 320, 256, program=program) == ("tensor", None, ())
    text = hint(result.output)
    assert text is not None and "35 channels, 8 x 10 cells" in text


def test_digits_are_read() -> None:
    program = load_kmodel(shared("real/mnist_sipeed_v3.kmodel"))
    found = [
        top_classes(run_kmodel(program, picture(program, f"mnist_train_{i}.jpg")).output)[0][0]
        for i in range(10)
    ]
    assert found == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_digit_layers_equal_the_recorded_ones() -> None:
    """Maps between the layers, as recorded with a real digit."""
    program = load_kmodel(shared("real/mnist_sipeed_v3.kmodel"))
    recorded = load_file(shared("real/real_mnist_v3_digit5.npz"))
    events: list[LayerEvent] = []
    run_kmodel(program, recorded[0].x[None], hook=events.append)
    for event, layer in zip(events, recorded, strict=True):
        assert (
            np.array_equal(event.x, layer.x) or event.index == 2
        )  # only pixel (0, 0) counts there
        assert np.array_equal(event.x[:, 0, 0], layer.x[:, 0, 0])
        assert np.array_equal(event.y[:, 0, 0], layer.y[:, 0, 0])


def test_face_layers_equal_the_recorded_ones() -> None:
    """16-bit weights: the tables that are read are the ones that were recorded."""
    program = load_kmodel(shared("real/face_detect_v0_16bit.model.bin"))
    recorded = load_file(shared("real/real16_face_layers_6_7_8_15.npz"))
    for index, layer in zip((6, 7, 8, 15), recorded, strict=True):
        op = program.kpu_layers[index]
        for mine, theirs in ((op.weights, layer.weights), (op.bn, layer.bn), (op.act, layer.act)):
            assert np.array_equal(mine, theirs)


def test_mobilenet_runs() -> None:
    program = load_kmodel(shared("real/mobilenet025_v4.kmodel"))
    result = run_kmodel(program, picture(program, "nncase_dog.bmp"))
    assert result.layers == 25 and result.output.shape == (1, 256, 1, 1)
    assert np.isfinite(result.output).all() and result.output.std() > 0.1
    other = run_kmodel(program, picture(program, "nncase_face.jpg")).output
    assert np.abs(result.output - other).max() > 0.1


def test_yolox_sees_the_dog() -> None:
    program = load_kmodel(shared("real/yolox_nano_224_v5.kmodel"))
    result = run_kmodel(program, picture(program, "nncase_dog.bmp", bgr=True))
    assert result.layers == 120
    boxes = decode_yolox(result.output, 224, 224, COCO_CLASSES)
    print(*boxes, sep="\n")
    assert {"dog", "bicycle", "car"} <= {box.name for box in boxes}


def test_yolox_functions_run_alone() -> None:
    programs = load_functions(shared("real/yolox_nano_224_v5.kmodel"))
    assert len(programs) == 27 and sum(len(p.kpu_layers) for p in programs) == 120
    rng = np.random.default_rng(0)
    for program in programs:
        inputs = [rng.integers(0, 256, t.shape, dtype=np.uint8) for t in program.inputs]
        result = run_kmodel(program, inputs)
        assert all(value.std() > 0 for value in result.outputs.values())


def test_whole_program_is_its_functions() -> None:
    """Layers of the whole program and of the functions are the same, in order of the calls."""
    path = shared("real/yolox_nano_224_v5.kmodel")
    whole = sorted(op.offset for op in load_kmodel(path).kpu_layers)
    parts = sorted(op.offset for program in load_functions(path) for op in program.kpu_layers)
    assert whole == parts


def test_compiled_networks_equal_the_simulator() -> None:
    """Outputs of whole networks, byte code included; softmax may differ in the last digits."""
    folder, count = shared("vectors"), 0
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as data:
            if "kmodel" not in data:
                continue
            program = loads_kmodel(data["kmodel"].tobytes(), path.name)
            got, want = run_kmodel(program, data["net_input"]).output, data["net_output"]
        assert got.shape == want.shape and got.dtype == want.dtype, path.name
        if any(op.name == "softmax" for op in program.operations):
            assert np.abs(got - want).max() < 1e-6, path.name
        else:
            assert np.array_equal(got, want), path.name
        count += 1
    assert count >= 30
