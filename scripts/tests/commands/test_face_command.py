# SPDX-License-Identifier: Apache-2.0
"""A float detector of BlazeFace's structure from a folder of pictures to boxes on a picture
(docs/compiler.md 8), on the golden model and on the RTL."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from models.tests.quantised.face_grid import face_grid
from openkpu import configs
from openkpu.compiler import pictures, source
from openkpu.compiler.calibration import samples
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Tensor
from openkpu_tools.commands import sim
from openkpu_tools.commands.compiled import compile as compile_command
from openkpu_tools.commands.compiled import quantise
from scripts.tests.conftest import Refused

Image = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

SIDE = {"strides": [8, 16], "per_cell": [2, 6], "keypoints": 6, "classes": ["face"], "nms": 0.2}
PIXELS = ["--mean", "127.5", "--scale", "0.0078431373"]
TAKEN = samples.Taken([Tensor("x", "float32", (1, 3, 20, 30), layout="NHWC")])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its description, a folder with pictures of several modes and other files."""
    folder = tmp_path_factory.mktemp("faces")
    (folder / "net.tflite").write_bytes(face_grid(32))
    (folder / "side.json").write_text(json.dumps(SIDE))
    photos = folder / "photos" / "more"
    photos.mkdir(parents=True)
    rng = np.random.default_rng(3)
    small = [Image.fromarray(rng.integers(0, 256, (5, 7, 3), dtype=np.uint8)) for _ in range(5)]
    upright, cmyk, grey, plain, last = (image.resize((48, 40)) for image in small)
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.save(photos.parent / "a.jpg", exif=exif)
    cmyk.convert("CMYK").save(photos / "b.jpg")
    grey.convert("L").save(photos / "c.png")
    plain.save(photos / "d.BMP")
    last.save(folder / "picture.png")
    (photos.parent / "notes.txt").write_text("no picture")
    (photos / "scan.pdf").write_bytes(b"%PDF-1.4")
    (photos / ".hidden").write_text("")
    return folder


def words(place: Path, *more: str, config: str = "small") -> list[str]:
    names = {"model": "net.tflite", "calibration": "photos", "image": "picture.png"}
    found = [word for key, name in names.items() for word in (f"--{key}", str(place / name))]
    return [*found, *PIXELS, "--config", config, *more]


def boxes(said: str) -> list[str]:
    return re.findall(r"^  (face .*)$", said, re.MULTILINE)


def expected(places: np.ndarray, scores: np.ndarray) -> list[tuple[float, ...]]:
    """Score and corners of each face, from the description of the outputs alone."""
    cells = [(8, x, y) for y in range(4) for x in range(4) for _ in range(2)]
    cells += [(16, x, y) for y in range(2) for x in range(2) for _ in range(6)]
    found = []
    for (stride, x, y), numbers, raw in zip(cells, places, scores, strict=True):
        score, (w, h) = 1 / (1 + np.exp(-float(raw[0]))), numbers[2:4]
        cx, cy = (x + 0.5) * stride + numbers[0], (y + 0.5) * stride + numbers[1]
        if score > 0.5 and w > 0 and h > 0:
            corners = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
            found.append((score, *(float(c) / 32 for c in corners)))
    return sorted(found, key=lambda f: -f[0])


def test_boxes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One task list; the best box is that of the outputs, and it is drawn."""
    png, out = place / "out.png", place / "out.npz"
    more = ["--detector", str(place / "side.json"), "--png", str(png), "--output", str(out)]
    assert sim.main(words(place, "--golden", *more)) == 0
    said = capsys.readouterr().out
    assert "in 1 task list," in said and "4 samples" in said
    assert "passed over, by their names no pictures: more/scan.pdf, notes.txt\n" in said
    with np.load(out) as arrays:
        scores, places = sorted((arrays[n][0] for n in arrays.files), key=np.size)
    want, lines = expected(places, scores), boxes(said)
    assert len(want) >= len(lines) > 1
    score, *corners = want[0]
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", lines[0])]
    assert numbers[0] == pytest.approx(score, abs=0.006) and len(numbers) == 5 + 12
    assert numbers[1:5] == pytest.approx(corners, abs=0.0006)
    before, after = Image.open(place / "picture.png"), Image.open(png)
    assert before.size == after.size and before.tobytes() != after.tobytes()


@pytest.mark.check
def test_rtl(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every layer on the RTL, byte for byte; the boxes of the golden model."""
    more = ["--detector", str(place / "side.json"), "--png", str(place / "rtl.png")]
    assert sim.main(words(place, "--golden", *more, config="nano")) == 0
    golden = boxes(capsys.readouterr().out)
    assert sim.main(words(place, "--sim", "verilator", *more, config="nano")) == 0
    said = capsys.readouterr().out
    assert boxes(said) == golden and golden and "PASS" in said and "cycles  ok" in said


@pytest.mark.check
def test_a_guess_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """128 x 128 pixels, 896 anchors: MediaPipe's; the same boxes with the page's side file."""
    (place / "large.tflite").write_bytes(face_grid(128))
    found = []
    for more in ([], ["--detector", str(place / "page.json")]):
        (place / "page.json").write_text(json.dumps({k: v for k, v in SIDE.items() if k != "nms"}))
        arguments = words(place, "--golden", *more, config="k210")
        arguments[1] = str(place / "large.tflite")
        assert sim.main(arguments) == 0
        said = capsys.readouterr().out
        assert ("MediaPipe's face detector of 128 x 128" in said) == (not more)
        found.append(boxes(said))
    assert found[0] == found[1] and found[0]


def test_without_a_description(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No guess fits 56 anchors: what they may be is said, and the picture is as it was."""
    assert sim.main(words(place, "--golden", "--png", str(place / "none.png"))) == 0
    said = capsys.readouterr().out
    assert "perhaps 56 anchors with 6 keypoint(s)" in said and not boxes(said)
    before, after = Image.open(place / "picture.png"), Image.open(place / "none.png")
    assert before.tobytes() == after.tobytes()


@pytest.mark.parametrize(
    ("side", "more", "text"),
    [
        (SIDE | {"per_cell": [2, 5]}, [], "need two, with 52 x 16 and 52 x 1 elements"),
        (SIDE | {"order": "hw"}, [], "expected xywh or yxhw"),
        ({"anchors": [1, 2], "classes": ["a"]}, [], "a detector of 1 anchors"),
        (SIDE, ["--png", "x.jpg"], "x.jpg"),
        (SIDE, ["--image", "picture.png", "picture.png", "--png", "x.png"], "shows one picture"),
    ],
)
def test_refused(
    side: dict,
    more: list[str],
    text: str,
    place: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one line, before anything runs."""
    monkeypatch.chdir(place)
    (place / "bad.json").write_text(json.dumps(side))
    arguments = words(place, "--golden", "--detector", "bad.json")
    if "--image" in more:
        at = arguments.index("--image")
        del arguments[at : at + 2]
    refused(["sim", *arguments, *more], text, printed=True)


# ------------------------------------------------------------------------ folders of pictures
def test_every_picture_counts(place: Path) -> None:
    """Turned, CMYK and grey pictures calibrate as a viewer shows them, and are inputs alike."""
    request = samples.Request(str(place / "photos"))
    turned, cmyk, grey, plain = (one["x"] for one in samples.read_samples(request, TAKEN))
    whole = [place / "photos" / n for n in ("a.jpg", "more/b.jpg", "more/c.png", "more/d.BMP")]
    for value, path in zip((turned, cmyk, grey, plain), whole, strict=True):
        found, note = pictures.values_of(TAKEN, path)
        assert np.array_equal(found["x"], value)
        assert ("turned (EXIF orientation 6)" in note) == (path.name == "a.jpg")
    with Image.open(whole[0]) as image:
        upright = image.transpose(Image.Transpose.ROTATE_270).resize((30, 20), 2)
    with Image.open(whole[1]) as image:
        rgb = image.convert("RGB").resize((30, 20), 2)
    for value, image in ((turned, upright), (cmyk, rgb)):
        want = np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 255
        assert np.abs(value - want).max() < 0.02 and np.ptp(value) > 0.3
    assert np.array_equal(grey[:, 0], grey[:, 1]) and np.ptp(grey) > 0.3


def test_other_files_are_named(
    place: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    """By each command that calibrates; many of them in a short line."""
    folder = place / "mixed"
    folder.mkdir()
    Image.new("RGB", (32, 32), "red").save(folder / "a.png")
    for i in range(9):
        (folder / f"n{i}.csv").touch()
    names = "n0.csv, n1.csv, n2.csv, n3.csv and 5 more"
    said = f"{folder}: passed over, by their names no pictures: {names}\n"
    for command in (compile_command, quantise):
        arguments = [str(place / "net.tflite"), "--calibration", str(folder), *PIXELS]
        assert command.main(arguments) == 0
        assert said in capsys.readouterr().out
    (folder / "b.jpg").write_bytes(b"\xff\xd8\xff no picture")
    (folder / "c.jpg").symlink_to("moved.jpg")
    for name, text in (("b.jpg", "no picture that can be read"), ("c.jpg", "No such file")):
        refused(["quantise", *arguments], f"{name}: {text}")
        (folder / name).unlink()


def test_folder_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(CompileError, match="no picture in it"):
        samples.read_samples(samples.Request(str(tmp_path)), TAKEN)


def test_one_list(place: Path) -> None:
    """What the padded shortcuts cost: no list of their own, no node of the host inside."""
    request = samples.Request(str(place / "photos"))
    for name in ("k210", "nano_fpga"):
        config = configs.load_config(name)
        program = source.read_program(place / "net.tflite", config, request=request)
        assert len(program.device_parts) == 1
