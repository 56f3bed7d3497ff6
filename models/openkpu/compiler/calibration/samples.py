# SPDX-License-Identifier: Apache-2.0
"""Samples of a float model's inputs: a folder of pictures, an array, or an array for each input.

They are converted like the model's inputs in a run: pictures by the rules of IMAGE, arrays by those
of INPUT. If there are more samples than requested, the requested number is spread over all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from openkpu.compiler import data, pictures
from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.data import TO_NCHW, TO_NHWC
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Tensor
from openkpu.words import option

NAMED = 4  # files that are passed over and named in the line about them
USUAL = 200  # samples, where nothing else is asked for
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Request:
    """What a user asks for: CALIBRATION, SAMPLES, METHOD, WIDE; MEAN, SCALE, BGR of pictures."""

    path: str
    samples: int | None = None
    method: str = "minmax"
    mean: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    bgr: bool = False
    # layers whose weights have 16 bits, or the percent of cycles for which some are chosen
    wide: tuple[str, ...] | float = ()


@dataclasses.dataclass(frozen=True)
class Taken:
    """The inputs of a network as a program has them: maps (1, C, H, W) with a layout."""

    inputs: list[Tensor]


def taken_inputs(net: Net) -> Taken:
    """The inputs; one that every node turns to (N, C, H, W) is NHWC in the model."""
    found = []
    for value in net.inputs:
        shape, readers = net.shapes[value.name], net.readers(value.name)
        turns = [tuple(attribute(n, "perm", ())) for n in readers if n.op_type == "Transpose"]
        layout = "NCHW" if len(shape) == 4 else ""
        if layout and turns and len(turns) == len(readers) and set(turns) == {TO_NCHW}:
            layout, shape = "NHWC", tuple(shape[a] for a in TO_NCHW)
        found.append(Tensor(value.name, "float32", shape, layout=layout))
    return Taken(found)


def read_samples(request: Request, taken: Taken) -> list[data.Values]:
    """Values of each sample by the inputs' names, maps (1, C, H, W); CompileError with one line."""
    path = Path(request.path)
    most = USUAL if request.samples is None else request.samples
    if path.is_dir() or path.suffix.lower() in _known_suffixes():
        chosen = _spread(_pictures(path)[0], most) if path.is_dir() else [path]
        how = {"mean": request.mean, "scale": request.scale, "bgr": request.bgr}
        return [pictures.values_of(taken, one, **how)[0] for one in chosen]
    if request.mean is not None or request.scale is not None or request.bgr:
        names = f"{option('mean')}, {option('scale')} and {option('bgr')}"
        what = f"{names} are of pictures, the calibration is an array"
        raise CompileError(f"{what}: expected a folder of pictures with them", where=str(path))
    return _spread(data.read_inputs(taken, path), most)


def check_range(request: Request, given: Sequence[data.Values]) -> None:
    """CompileError for samples of nothing but zeros: no range of any number follows from them."""
    if given and not any(np.any(value) for sample in given for value in sample.values()):
        what = f"{len(given)} samples of nothing but zeros, expected inputs as in use"
        raise CompileError(what, where=str(Path(request.path)))


def fed(taken: Taken, sample: data.Values) -> data.Values:
    """A sample in the model's own order of axes."""
    found = {}
    for tensor in taken.inputs:
        value = np.asarray(sample[tensor.name], np.float32)
        turned = tensor.layout == "NHWC"
        found[tensor.name] = np.ascontiguousarray(value.transpose(TO_NHWC)) if turned else value
    return found


def _spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many, spread over all."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]


def passed_over(request: Request) -> str:
    """A line about the files of a folder that are no pictures, which nothing reads; "" for none."""
    path = Path(request.path)
    others = _pictures(path)[1] if path.is_dir() else []
    if not others:
        return ""
    names = [p.relative_to(path).as_posix() for p in others[:NAMED]]
    names = ["".join(c if c.isprintable() else "?" for c in name)[:60] for name in names]
    rest = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"{path}: passed over, by their names no pictures: {', '.join(names)}{rest}"


def _known_suffixes() -> set[str]:
    """Of the pictures that Pillow reads; none without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return set()
    Image.init()
    # Pillow writes some formats that it cannot read, as PDF
    return {suffix for suffix, kind in Image.EXTENSION.items() if kind in Image.OPEN}


def _pictures(folder: Path) -> tuple[list[Path], list[Path]]:
    """(the pictures of a folder and of those in it, by their names; its other files)."""
    known = _known_suffixes()
    if not known:
        raise CompileError("pictures need Pillow (pip install pillow)")
    try:
        named = [p for p in sorted(folder.rglob("*")) if not p.name.startswith(".")]
        files = [p for p in named if not p.is_dir()]  # a link to nothing is refused when it is read
    except OSError as error:
        raise CompileError(f"{error.strerror}", where=str(folder)) from None
    found = [p for p in files if p.suffix.lower() in known]
    if not found:
        what = "no picture in it, expected a folder of files that Pillow reads (.png, .jpg, ...)"
        raise CompileError(what, where=str(folder))
    return found, [p for p in files if p.suffix.lower() not in known]
