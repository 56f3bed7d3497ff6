# SPDX-License-Identifier: Apache-2.0
"""Pictures as inputs of a compiled network (needs Pillow), and names of classes.

Without a mean and a scale the pixels 0 to 255 are the input's bytes: 0 is the least integer of the
input's type, whatever the model's range of real numbers is: 0 to 1, -1 to 1 or 0 to 255.  With one
of them the real number is (pixel - mean) * scale, for each channel where three are given, and the
model's own parameters quantise it.  By default a float input gets pixel / 255.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler.data import HasInputs, Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Tensor
from openkpu.compiler.form.reference import quantised_values
from openkpu.kmodel import KmodelError
from openkpu.kmodel.images import open_image
from openkpu.words import option

FLOAT_SCALE = 1 / 255
CHANNELS = {1: "L", 3: "RGB"}


def values_of(
    program: HasInputs,
    path: str | Path,
    mean: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
    bgr: bool = False,
) -> tuple[Values, str]:
    """(the input of an inference, how the picture was converted); CompileError for a file that is
    no picture, or a model without an input for pictures."""
    if len(program.inputs) != 1 or len(program.inputs[0].shape) != 4:
        found = ", ".join(f"{t.name!r} {t.shape}" for t in program.inputs)
        raise CompileError(f"a picture needs one input of four sizes, the model has {found}")
    (tensor,) = program.inputs
    _, channels, height, width = tensor.shape
    if channels not in CHANNELS or (bgr and channels != 3):
        raise CompileError(f"a picture has 1 or 3 planes, with BGR 3; the input {tensor.shape}")
    try:
        picture: Any = open_image(path)
    except KmodelError as error:
        raise CompileError(str(error)) from None
    from PIL.Image import Resampling

    notes = list(picture.info.get("notes", ()))
    picture = picture.convert(CHANNELS[channels])
    if picture.size != (width, height):
        notes.append(f"resized from {picture.width} x {picture.height} to {width} x {height}")
        picture = picture.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(picture, np.uint8).reshape(height, width, channels).transpose(2, 0, 1)
    pixels = (pixels[::-1] if bgr else pixels)[None].astype(np.int64)
    return {tensor.name: _numbers(tensor, pixels, mean, scale)}, "; ".join(notes)


def described(mean: Sequence[float] | None, scale: Sequence[float] | None, bgr: bool) -> str:
    """MEAN, SCALE and BGR for a reader."""
    words = [
        f"{name} {','.join(f'{n:g}' for n in numbers)}"
        for name, numbers in (("mean", mean), ("scale", scale))
        if numbers is not None
    ]
    return ", ".join([*words, *(["BGR"] if bgr else [])])


def _numbers(
    tensor: Tensor,
    pixels: npt.NDArray[np.int64],
    mean: Sequence[float] | None,
    scale: Sequence[float] | None,
) -> npt.NDArray:
    """Integers, or floats of a float input."""
    if tensor.quantised and mean is None and scale is None:
        return pixels + tensor.limits[0]
    planes = []
    for name, given, usual in (("mean", mean, 0.0), ("scale", scale, None)):
        if usual is None:
            usual = FLOAT_SCALE if tensor.dtype == "float32" and mean is None else 1.0
        values = [usual] if given is None else list(given)
        if len(values) not in (1, pixels.shape[1]):
            what = f"{option(name)} has {len(values)} numbers"
            raise CompileError(f"{what}, expected 1 or {pixels.shape[1]}, one a channel")
        planes.append(np.array(values)[None, :, None, None])
    real = (pixels - planes[0]) * planes[1]
    if tensor.dtype == "float32":
        return real.astype(np.float32)
    if not tensor.quantised:
        raise CompileError(f"a picture for an input of {tensor.dtype}, expected bytes or float32")
    return quantised_values(real, tensor)


def read_labels(path: str | Path) -> list[str]:
    """Names of classes, one per line; empty lines at the end are ignored.  CompileError for a file
    that is no text."""
    data = files.read_bytes(path, CompileError)
    try:
        lines = io.StringIO(data.decode("utf-8-sig"), newline=None).read().rstrip().split("\n")
    except UnicodeDecodeError:
        raise CompileError(
            "no text of UTF-8, expected a line for each class", where=str(path)
        ) from None
    found = ["".join(c for c in line if c.isprintable()).strip() for line in lines]
    if any(len(line) > 200 for line in found):
        raise CompileError("lines of over 200 letters, expected names of classes", where=str(path))
    return found
