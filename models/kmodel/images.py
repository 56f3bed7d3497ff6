# SPDX-License-Identifier: Apache-2.0
"""A picture as the input of a model (needs Pillow).

Any format that Pillow reads becomes RGB or, for one channel, grey, and is resized to the model's
input.  A byte input gets the pixels 0..255, planes of channels, as the camera of the K210 delivers
them.  A float input gets pixel * scale + bias; scale 1/255 and bias 0 unless told otherwise, which
is what the compiler assumes of models that state nothing else.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import files
from .errors import KmodelError
from .program import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

PIXELS_MAX = 1 << 26  # of a picture: 8192 x 8192
FLOAT_SCALE = 1 / 255


def _pillow():
    try:
        import PIL.Image
        import PIL.ImageDraw
    except ImportError:
        raise KmodelError("pictures need Pillow (pip install pillow)") from None
    return PIL


def open_image(path: str | Path) -> Image:
    """The picture as RGB; KmodelError when it cannot be read."""
    pil = _pillow()
    try:
        with pil.Image.open(io.BytesIO(files.read_bytes(path, KmodelError))) as image:
            if image.width * image.height > PIXELS_MAX:
                raise KmodelError(f"{path}: {image.width} x {image.height} pixels are too many")
            return image.convert("RGB")
    except KmodelError:
        raise
    except OSError as err:
        reason = err.strerror or "no picture that can be read"
        raise KmodelError(f"{path}: {reason}") from None
    except Exception as err:  # Pillow's decoders raise all sorts of things on damaged files
        raise KmodelError(f"{path}: no picture that can be read ({type(err).__name__})") from None


def input_shape(tensor: Tensor) -> tuple[int, int, int]:
    """(C, H, W) of an image input; KmodelError when the tensor is none."""
    shape = tensor.shape[1:] if len(tensor.shape) == 4 else tensor.shape
    batch = tensor.shape[0] if len(tensor.shape) == 4 else 1
    if len(shape) != 3 or batch != 1 or shape[0] not in (1, 3):
        raise KmodelError(f"{tensor.name} of shape {list(tensor.shape)} is no picture")
    return shape


def image_input(
    image: Image,
    tensor: Tensor,
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
    notes = []
    if channels == 1:
        image = image.convert("L")
    if image.size != (width, height):
        notes.append(f"resized from {image.width} x {image.height} to {width} x {height}")
        image = image.resize((width, height), pil.Image.Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(height, width, channels).transpose(2, 0, 1)
    if bgr and channels == 3:
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
