# SPDX-License-Identifier: Apache-2.0
"""A picture as the input of a model (needs Pillow).

Any format and mode that Pillow reads becomes RGB or, for one channel, grey, turned as its EXIF data
say, and is resized to the model's input.  A byte input gets the pixels 0..255, planes of channels,
as the camera of the K210 delivers them.  A float input gets pixel * scale + bias; scale 1/255 and
bias 0 unless the caller chooses otherwise, as the compiler assumes for models that state nothing.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import ModelTensor

if TYPE_CHECKING:
    from PIL.Image import Image

PIXELS_MAX = 1 << 26  # of a picture: 8192 x 8192
FEWER = f"expected {PIXELS_MAX} at most"
UNREAD = "no picture that can be read, expected one in PNG, JPEG or another format of Pillow"
FLOAT_SCALE = 1 / 255
ORIENTATION = 0x0112  # the tag of EXIF
PLAIN = ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
CLEAR = ("LA", "La", "PA", "RGBA", "RGBa")  # with transparency
ON_WHITE = "transparent over white"
NUMBERS = ("I", "I;16", "I;16L", "I;16B", "I;16N", "F")


def _pillow():
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageOps
    except ImportError:
        raise KmodelError("pictures need Pillow (pip install pillow)") from None
    return PIL


def open_image(path: str | Path) -> Image:
    """The picture as RGB, the way up that a viewer shows it; KmodelError when it cannot be read.

    Its ``info["notes"]``, which ``image_input`` returns, lists the conversions (turned, reduced
    from 16 bits or floats, put on white, first of several frames).
    """
    pil = _pillow()
    data = files.read_bytes(path, KmodelError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complaint would be a second line
            with pil.Image.open(io.BytesIO(data)) as image:
                if image.width * image.height > PIXELS_MAX:
                    raise KmodelError(f"{image.width} x {image.height} pixels, {FEWER}")
                notes = _frames(image)
                image.load()
                image, turned = _upright(image)
                image, changed = as_rgb(image)
                image.info = {"notes": (*notes, *turned, *changed)}
                return image
    except KmodelError as err:
        raise KmodelError(f"{path}: {err}") from None
    except OSError as err:
        raise KmodelError(f"{path}: {err.strerror or UNREAD}") from None
    except pil.Image.DecompressionBombError:  # so many that Pillow does not open it
        raise KmodelError(f"{path}: too many pixels, {FEWER}") from None
    except Exception:  # Pillow's decoders raise all sorts of things on damaged files
        raise KmodelError(f"{path}: {UNREAD}") from None


def _frames(image: Image) -> list[str]:
    """Of an animation, or a file of several pages, the first is taken.

    How many there are is not looked at: that may take as long as reading them all.
    """
    try:
        several = getattr(image, "is_animated", False)
    except Exception:  # a later one is damaged
        several = True
    image.seek(0)
    return ["the first of several frames"] if several else []


def _upright(image: Image) -> tuple[Image, list[str]]:
    """Turned and mirrored as the camera noted in EXIF."""
    pil = _pillow()
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
        if orientation not in range(2, 9):
            return image, []
        return pil.ImageOps.exif_transpose(image), [f"turned (EXIF orientation {orientation})"]
    except Exception:  # the picture itself is good
        return image, ["EXIF data that cannot be read"]


def as_rgb(image: Image) -> tuple[Image, list[str]]:
    """(a picture of any mode as RGB, notes); KmodelError for a mode that is not known.

    16 bits become the upper eight, floats of 0..1 become 0..255; values that are 0..255 already
    stay.  What shines through is white.
    """
    pil = _pillow()
    mode = image.mode
    if mode in NUMBERS:
        grey, note = _bytes_of(np.asarray(image), mode)
        clear = image.info.get("transparency")
        if isinstance(clear, int) and (hidden := np.asarray(image) == clear).any():
            grey, note = np.where(hidden, np.uint8(255), grey), f"{note}; {ON_WHITE}"
        return pil.Image.fromarray(grey).convert("RGB"), [note]
    if mode not in (*PLAIN, *CLEAR):
        known = ", ".join((*PLAIN, *CLEAR, *NUMBERS))
        raise KmodelError(f"mode {mode} is not supported, expected {known}")
    if mode not in CLEAR and "transparency" not in image.info:
        return image.convert("RGB"), []
    image = image.convert("LA").convert("RGBA") if mode == "La" else image.convert("RGBA")
    if image.getchannel("A").getextrema()[0] == 255:
        return image.convert("RGB"), []
    white = pil.Image.new("RGBA", image.size, "white")
    return pil.Image.alpha_composite(white, image).convert("RGB"), [ON_WHITE]


def _bytes_of(values: npt.NDArray, mode: str) -> tuple[npt.NDArray[np.uint8], str]:
    """Grey values of more than eight bits as bytes, and what was taken for white."""
    floats = values.dtype.kind == "f"
    if floats and not np.isfinite(values).all():
        raise KmodelError(f"mode {mode} with values that are not finite")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 0xFFFF:
        raise KmodelError(f"mode {mode} with values {low:g} .. {high:g}, expected 0 .. 65535")
    if floats and high < 2:  # a little above white is white
        white = np.rint(values.clip(0, 1) * 255).astype(np.uint8)
        return white, f"{mode} of 0..1 as 0..255"
    if high <= 255 and not mode.startswith("I;16"):  # that one says how many bits it has
        return np.rint(values).astype(np.uint8), f"{mode} of 0..255 as it is"
    return (values.astype(np.uint16) >> 8).astype(np.uint8), f"{mode} of 0..65535 as 0..255"


def input_shape(tensor: ModelTensor) -> tuple[int, int, int]:
    """(C, H, W) of an image input; KmodelError when the tensor is none."""
    shape = tensor.shape[1:] if len(tensor.shape) == 4 else tensor.shape
    batch = tensor.shape[0] if len(tensor.shape) == 4 else 1
    if len(shape) != 3 or batch != 1 or shape[0] not in (1, 3):
        raise KmodelError(f"{tensor.name} of shape {list(tensor.shape)} is no picture")
    return shape


def image_input(
    image: Image,
    tensor: ModelTensor,
    *,
    scale: float = FLOAT_SCALE,
    bias: float = 0.0,
    bgr: bool = False,
) -> tuple[npt.NDArray, str]:
    """(array of the tensor's shape and type, note): the note says what was done, "" if nothing.

    ``bgr``: planes in the order blue, green, red, as some networks (yolox) were trained.
    """
    pil = _pillow()
    channels, height, width = input_shape(tensor)
    notes = list(image.info.get("notes", ()))
    if channels == 1:
        image = image.convert("L")
    if image.size != (width, height):
        notes.append(f"resized from {image.width} x {image.height} to {width} x {height}")
        image = image.resize((width, height), pil.Image.Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(height, width, channels).transpose(2, 0, 1)
    if bgr:
        if channels != 3:
            raise KmodelError(f"BGR: {tensor.name} has {channels} plane, expected 3")
        pixels = pixels[::-1]
        notes.append("blue first")
    if tensor.dtype == "u1":
        array = np.ascontiguousarray(pixels)
    elif tensor.dtype == "i1":
        array = (pixels.astype(np.int16) - 128).astype(np.int8)
        notes.append("pixels - 128")
    elif np.dtype(tensor.dtype).kind == "f":
        array = (pixels * np.float32(scale) + np.float32(bias)).astype(tensor.dtype)
        notes.append(f"pixels * {scale:g} + {bias:g}")
    else:
        raise KmodelError(f"{tensor.name} of type {tensor.dtype} is no picture")
    return array.reshape(tensor.shape), "; ".join(notes)
