# SPDX-License-Identifier: Apache-2.0
"""Pictures of every mode and orientation: what a viewer shows, or a line that names the mode."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from openkpu.kmodel import KmodelError
from openkpu.kmodel.images import CLEAR, NUMBERS, PLAIN, as_rgb, image_input, open_image
from openkpu.kmodel.program import ModelTensor, View

PIL = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
PNG = pytest.importorskip("PIL.PngImagePlugin", reason="make setup GROUPS=models brings Pillow")
CMS = pytest.importorskip("PIL.ImageCms", reason="make setup GROUPS=models brings Pillow")
GREY = np.add.outer(np.arange(0, 240, 16), np.arange(16)).astype(np.uint8)  # 15 x 16, 0 .. 239
SOFT = GREY // 4  # LAB and HSV have few steps for strong colours
COLOUR = np.stack([80 + SOFT, 160 - SOFT, 90 + SOFT[:, ::-1]], axis=-1)


def opened(path: Path) -> tuple[np.ndarray, str]:
    """RGB pixels and what was said of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a second line on the terminal
        image = open_image(path)
    assert image.mode == "RGB"
    tensor = ModelTensor("input0", View("input0", 0, (1, 3, image.height, image.width)))
    array, note = image_input(image, tensor)
    assert np.array_equal(array[0].transpose(1, 2, 0), np.asarray(image))
    return np.asarray(image).astype(int), note


def three(grey: np.ndarray) -> np.ndarray:
    return np.stack([grey] * 3, axis=-1)


# ------------------------------------------------------------------------------------------ modes
def saved(tmp_path: Path, image, name: str, **options) -> Path:
    image.save(tmp_path / name, **options)
    return tmp_path / name


def as_mode(mode: str):
    """The picture in a mode, from pixels that the mode can have; and what a viewer shows."""
    grey, colour = PIL.fromarray(GREY), PIL.fromarray(COLOUR)
    if mode == "1":
        bits = GREY > 100
        return PIL.fromarray(bits), three(bits * 255)
    if mode in ("L", "I", "F", "La", "LA"):
        return grey.convert("LA").convert("La") if mode == "La" else grey.convert(mode), three(GREY)
    if mode in ("P", "PA"):
        few = PIL.fromarray(COLOUR // 16 * 16).convert("P", palette=PIL.Palette.ADAPTIVE)
        return few.convert(mode), np.asarray(few.convert("RGB"))
    if mode == "LAB":
        made = CMS.buildTransform(CMS.createProfile("sRGB"), CMS.createProfile("LAB"), "RGB", "LAB")
        return CMS.applyTransform(colour, made), COLOUR
    if mode.startswith("I;16"):
        order = ">u2" if mode == "I;16B" else "<u2"
        words = (GREY.astype(np.uint16) * 257).astype(order)
        return PIL.frombuffer(mode, (16, 15), words.tobytes(), "raw", mode, 0, 1), three(GREY)
    return colour.convert(mode), COLOUR


CLOSE = {"YCbCr": 3, "LAB": 4, "HSV": 3}  # what these lose of eight bits


@pytest.mark.parametrize("mode", [*PLAIN, *CLEAR, *NUMBERS])
def test_every_mode_is_what_a_viewer_shows(mode: str) -> None:
    image, want = as_mode(mode)
    assert image.mode == mode
    got = np.asarray(as_rgb(image)[0]).astype(int)
    assert got.shape == want.shape
    assert np.abs(got - want.astype(int)).max() <= CLOSE.get(mode, 0)


FILES = [
    *((mode, "png", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    *((mode, "tif", mode) for mode in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")),
    *((mode, "tif", mode) for mode in ("LAB", "I", "I;16", "I;16B", "F")),
    ("L", "pgm", "L"),
    ("RGB", "ppm", "RGB"),
    ("F", "pfm", "F"),
    ("P", "gif", "P"),
    ("RGB", "bmp", "RGB"),
]


@pytest.mark.parametrize(("mode", "kind", "stored"), FILES)
def test_every_mode_out_of_a_file(mode: str, kind: str, stored: str, tmp_path: Path) -> None:
    image, want = as_mode(mode)
    path = saved(tmp_path, image, f"p.{kind}")
    with PIL.open(path) as back:
        assert back.mode == stored
    got, note = opened(path)
    assert np.abs(got - want.astype(int)).max() <= CLOSE.get(mode, 0)
    said = {"I;16": "0..65535 as 0..255", "I;16B": "0..65535 as 0..255"}
    said |= {"I": "I of 0..255 as it is", "F": "F of 0..255 as it is"}
    assert said.get(mode, "") in note and bool(note) == (mode in said)


def test_cmyk_out_of_a_jpeg(tmp_path: Path) -> None:
    flat = np.zeros((16, 16, 3), np.uint8) + np.array([200, 100, 50], np.uint8)
    path = saved(tmp_path, PIL.fromarray(flat).convert("CMYK"), "p.jpg", quality=100)
    assert np.abs(opened(path)[0] - flat).max() <= 3


@pytest.mark.parametrize("kind", ["png", "tif", "pgm"])
def test_sixteen_bits_are_not_clipped(kind: str, tmp_path: Path) -> None:
    """Grey from black to white: the upper eight bits, whatever the order of bytes."""
    words = np.linspace(0, 65535, 240).astype(np.uint16).reshape(15, 16)
    path = tmp_path / f"p.{kind}"
    if kind == "pgm":
        path.write_bytes(b"P5 16 15 65535\n" + words.astype(">u2").tobytes())
    else:
        PIL.fromarray(words).save(path)
    got, note = opened(path)
    assert np.array_equal(got, three(words >> 8)) and "of 0..65535 as 0..255" in note


@pytest.mark.parametrize(
    ("scale", "said"),
    [(1 / 255, "F of 0..1 as 0..255"), (1.0, "F of 0..255 as it is"), (257.0, "of 0..65535")],
)
def test_floats_of_every_scale(scale: float, said: str, tmp_path: Path) -> None:
    values = (GREY * np.float64(scale)).astype(np.float32)
    got, note = opened(saved(tmp_path, PIL.fromarray(values), "p.tif"))
    assert np.array_equal(got, three(GREY)) and said in note
    values[0, 0] = 1.05 if scale < 1 else values[0, 0]  # a little above white
    got, _ = opened(saved(tmp_path, PIL.fromarray(values), "p.tif"))
    assert got[0, 0, 0] == (255 if scale < 1 else 0)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.array([[0, -1]], np.int32), "mode I with values -1 .. 0, expected 0 .. 65535"),
        (np.array([[0, 1 << 20]], np.int32), "mode I with values 0 .. 1.04858e+06"),
        (np.array([[0, np.nan]], np.float32), "mode F with values that are not finite"),
        (np.array([[0, np.inf]], np.float32), "mode F with values that are not finite"),
        (np.array([[-0.5, 1]], np.float32), "mode F with values -0.5 .. 1"),
        (np.array([[0, 1e9]], np.float32), "mode F with values 0 .. 1e+09"),
    ],
)
def test_values_that_are_no_grey(values: np.ndarray, text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, PIL.fromarray(values), "p.tif")
    with pytest.raises(KmodelError) as caught:
        open_image(path)
    assert str(caught.value).startswith(f"{path}: {text}")


def test_sixteen_bits_with_a_value_that_is_clear(tmp_path: Path) -> None:
    grey = np.array([[0, 514], [30000, 65535]], np.uint16)
    path = tmp_path / "a.png"
    for clear, expected in ((514, [[0, 255], [117, 255]]), (7, [[0, 2], [117, 255]])):
        PIL.fromarray(grey).save(path, transparency=clear)
        image = open_image(path)
        assert np.asarray(image)[..., 0].tolist() == expected
        assert ("transparent over white" in "; ".join(image.info["notes"])) == (clear == 514)


def test_blue_first_wants_three_planes() -> None:
    tensor = ModelTensor("input0", View("input0", 0, (1, 1, 4, 4)))
    with pytest.raises(KmodelError, match="BGR: input0 has 1 plane, expected 3"):
        image_input(PIL.new("RGB", (4, 4)), tensor, bgr=True)


def test_a_mode_that_is_not_known_is_refused_by_name() -> None:
    class Strange:
        mode = "XYZ;12"

    with pytest.raises(KmodelError, match=r"mode XYZ;12 is not supported, expected 1, L, P, RGB"):
        as_rgb(Strange())  # type: ignore[arg-type]
    assert {*PLAIN, *CLEAR, *NUMBERS} == set(PIL.MODES)  # the ones that Pillow has


@pytest.mark.parametrize("kind", ["RGBA", "LA", "palette", "colour key", "RGBa"])
def test_what_shines_through_is_white(kind: str, tmp_path: Path) -> None:
    """Hidden pixels are hidden; half of them are half."""
    alpha = np.zeros((15, 16), np.uint8)
    alpha[:, 4:] = 128
    alpha[:, 8:] = 255
    image = PIL.fromarray(COLOUR if kind in ("RGBA", "RGBa") else three(GREY)).convert("RGB")
    shown = np.asarray(image).astype(float)
    image.putalpha(PIL.fromarray(alpha))
    if kind == "palette":
        image = PIL.fromarray((GREY // 16).astype(np.uint8), "P")
        image.putpalette([v for i in range(16) for v in (i * 16, 9, 9)])
        image.info["transparency"] = 3
        path = saved(tmp_path, image, "p.png", transparency=3)
        hidden = GREY // 16 == 3
        want = np.where(hidden[..., None], 255, three(GREY // 16) * [16, 0, 0] + [0, 9, 9])
    elif kind == "colour key":
        flat = PIL.fromarray(GREY)
        path = saved(tmp_path, flat, "p.png", transparency=100)
        want = three(np.where(GREY == 100, 255, GREY))
    else:
        image = image.convert("LA") if kind == "LA" else image
        path = saved(tmp_path, image, "p.png")
        part = alpha[..., None] / 255
        want = np.rint(shown * part + 255 * (1 - part))
    got, note = opened(path)
    assert np.abs(got - want).max() <= 2 and note == "transparent over white"
    if kind == "RGBa":
        got = np.asarray(as_rgb(image.convert("RGBa"))[0]).astype(int)
        assert np.abs(got - want).max() <= 3


@pytest.mark.parametrize("kind", ["gif", "png", "webp", "tif"])
def test_the_first_of_several_frames(kind: str, tmp_path: Path) -> None:
    frames = [PIL.new("RGB", (16, 15), colour) for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if kind == "webp" else {}
    path = tmp_path / f"p.{kind}"
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    got, note = opened(path)
    assert np.array_equal(got, np.broadcast_to([255, 0, 0], (15, 16, 3)))
    assert note == "the first of several frames"


def test_a_damaged_second_frame_does_not_matter(tmp_path: Path) -> None:
    frames = [PIL.fromarray(np.roll(COLOUR, n, axis=0)) for n in range(3)]
    path = tmp_path / "p.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    want, _ = opened(path)
    data = path.read_bytes()
    second = [i for i in range(len(data)) if data[i : i + 2] == b"\x21\xf9"][1]
    path.write_bytes(data[: second + 40])
    got, _ = opened(path)
    assert np.array_equal(got, want)


# ------------------------------------------------------------------------------------ orientation
SMALL = np.zeros((24, 32, 3), np.uint8)
SMALL[:12, :16], SMALL[:12, 16:], SMALL[12:, :16] = (250, 0, 0), (0, 250, 0), (0, 0, 250)
# how the camera held the picture: what EXIF says of rows and columns (first row, first column)
STORED = {
    1: SMALL,  # top, left
    2: SMALL[:, ::-1],  # top, right
    3: SMALL[::-1, ::-1],  # bottom, right
    4: SMALL[::-1],  # bottom, left
    5: SMALL.transpose(1, 0, 2),  # left, top
    6: SMALL.transpose(1, 0, 2)[::-1],  # right, top
    7: SMALL.transpose(1, 0, 2)[::-1, ::-1],  # right, bottom
    8: SMALL.transpose(1, 0, 2)[:, ::-1],  # left, bottom
}


def exif_of(orientation: int) -> bytes:
    """A TIFF header with one entry."""
    entry = struct.pack("<2HI2HI", 1, 0x0112, 3, 1, 0, orientation)[:2]
    entry += struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0) + bytes(4)
    return b"Exif\0\0" + b"II*\0" + struct.pack("<I", 8) + entry


@pytest.mark.parametrize("kind", ["png", "jpg", "webp", "tif"])
@pytest.mark.parametrize("orientation", STORED)
def test_pictures_stand_upright(orientation: int, kind: str, tmp_path: Path) -> None:
    image = PIL.fromarray(np.ascontiguousarray(STORED[orientation]))
    options: dict = {"exif": exif_of(orientation)}
    if kind == "tif":
        options = {"tiffinfo": {0x0112: orientation}}
    if kind == "webp":
        options["lossless"] = True
    path = saved(tmp_path, image, f"p.{kind}", **options)
    got, note = opened(path)
    assert got.shape == SMALL.shape and np.abs(got - SMALL).mean() < 8
    for y, x in ((3, 3), (3, 28), (20, 3), (20, 28)):
        assert np.abs(got[y, x] - SMALL[y, x]).max() < 20
    # Pillow turns a TIFF itself
    turned = orientation > 1 and kind != "tif"
    assert note == (f"turned (EXIF orientation {orientation})" if turned else "")


@pytest.mark.parametrize("exif", [exif_of(0), exif_of(9), exif_of(60000)])
def test_orientations_that_do_not_exist(exif: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path, PIL.fromarray(SMALL), "p.png", exif=exif)
    got, note = opened(path)
    assert np.array_equal(got, SMALL) and note == ""


def test_damaged_exif_leaves_the_picture(tmp_path: Path) -> None:
    good, rng = exif_of(6), np.random.default_rng(4)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(3):
            bad[int(rng.integers(6, len(bad)))] = int(rng.integers(0, 256))
        path = saved(tmp_path, PIL.fromarray(SMALL), "p.png", exif=bytes(bad))
        got, _ = opened(path)
        assert sorted(got.shape) == sorted(SMALL.shape)
    path = saved(tmp_path, PIL.fromarray(SMALL), "p.png", exif=good[:-9])
    assert opened(path)[0].shape == SMALL.shape


def test_dark_picture_of_16_bits_stays_dark() -> None:
    """The mode says how many bits there are: no picture of a folder has another scale."""
    dark = np.arange(200, dtype="<u2").reshape(10, 20)
    image = PIL.frombuffer("I;16", (20, 10), dark.tobytes(), "raw", "I;16", 0, 1)
    assert not np.asarray(as_rgb(image)[0]).any()
