# SPDX-License-Identifier: Apache-2.0
"""Boxes of yolo-style detectors: one map (v2), several of other strides (v3), and yolox.

A map is (anchors * (5 + classes), h, w): per anchor the box centre (two sigmoids), its size
(exponentials of the anchor's), objectness (sigmoid) and classes (softmax with one map, sigmoids
with several, as they were trained).  A yolox output is (cells, 5 + classes) over strides 8, 16, 32.
Coordinates are fractions of the picture.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.readers.names import split_names
from openkpu.kmodel.results.boxes import Box, Floats, only, select, settings, side_file_number

COCO_CLASSES = split_names(
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,"
    "stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,"
    "backpack,umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,"
    "baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,"
    "bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,"
    "potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,"
    "oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush",
    ",",
)
UNITS = ("cells", "pixels", "fractions")
SCORES = ("softmax", "sigmoid")
STRIDES = (8, 16, 32)
FAR = 3  # anchors of so many times the grid are no cells


@dataclasses.dataclass(frozen=True)
class Detector:
    """How to read the outputs of a detector.

    ``anchors``: w0, h0, w1, h1 ... of all maps.  ``outputs``: those of each map, in the order of
    the model's outputs, in place of ``anchors``.  ``unit``: their unit, cells of their map, pixels
    of the network's input or fractions of it; None: cells with one map, else by their size, with a
    note.  ``scores``: of the classes; None: softmax with one map, else
    sigmoid.
    """

    anchors: tuple[float, ...]
    classes: tuple[str, ...]
    threshold: float = 0.5
    nms: float = 0.3
    outputs: tuple[tuple[float, ...], ...] = ()
    unit: str | None = None
    scores: str | None = None

    @classmethod
    def of(cls, data: dict) -> Detector:
        """From the keys of a side file; KeyError for one that is missing."""
        by_output = data.get("outputs")
        if by_output is not None and "anchors" in data:
            raise ValueError("anchors both for all outputs and by output")
        for output in by_output or ():
            only(output, ("anchors",))
        outputs = [_numbers(output["anchors"]) for output in by_output or ()]
        anchors = [] if by_output else _numbers(data["anchors"])
        return cls(
            tuple(anchors),
            **settings(data, 0.5, 0.3, ("anchors", "outputs", "unit", "scores")),
            outputs=tuple(outputs),
            unit=data.get("unit"),
            scores=data.get("scores"),
        )

    def check(self, name: str = "detector") -> Detector:
        """Itself, or a KmodelError that says what is impossible."""
        lists = self.outputs or (self.anchors,)
        if not all(lists) or any(len(part) % 2 for part in lists) or not self.classes:
            raise KmodelError(f"{name}: pairs of anchors and at least one class are expected")
        if not all(0 < n < math.inf for part in lists for n in part):
            raise KmodelError(f"{name}: anchors above 0 are expected")
        for key, value, known in (("unit", self.unit, UNITS), ("scores", self.scores, SCORES)):
            if value is not None and value not in known:
                raise KmodelError(f"{name}: {key} {value!r}, expected {', '.join(known)}")
        return self

    @property
    def per_anchor(self) -> int:
        """Channels of an anchor."""
        return 5 + len(self.classes)

    @property
    def channels(self) -> int:
        """Channels of the only map."""
        return len(self.anchors) // 2 * self.per_anchor


@dataclasses.dataclass(frozen=True)
class _Map:
    """An output (A * (5 + classes), h, w) and its anchors in cells, (A, 2)."""

    values: npt.NDArray
    anchors: Floats


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(side_file_number(value) for value in values)


def sigmoid(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def decode_region(output: npt.NDArray, detector: Detector) -> list[Box]:
    """Boxes of one region output (1, A * (5 + classes), h, w), best first, overlaps removed."""
    if len(output.shape) < 3 or output.shape[-3] != detector.channels:
        raise KmodelError(_misfit([output], detector))
    anchors = np.array(detector.anchors).reshape(-1, 2)
    return _decode([_Map(output, anchors)], detector, detector.scores or "softmax")


def decode_maps(
    outputs: Sequence[npt.NDArray], detector: Detector, width: int, height: int
) -> tuple[list[Box], list[str]]:
    """(boxes of all maps together, notes) of a network with this input size.

    KmodelError when the outputs are no maps for the detector's anchors.
    """
    upright = [_channels_first(output, detector) for output in outputs]
    matched = _matched(upright, detector, width)
    if not matched:
        raise KmodelError(_misfit(outputs, detector))
    unit, notes = _unit(matched, detector)
    taken = {id(output) for output, _ in matched}
    if left := [str(list(o.shape)) for o in upright if id(o) not in taken]:
        notes.append(f"output {', '.join(left)} not decoded, no map for these anchors")
    maps = []
    for output, anchors in matched:
        grid = np.array([output.shape[-1], output.shape[-2]])
        scale = {"cells": 1.0, "pixels": grid / (width, height), "fractions": grid}[unit]
        maps.append(_Map(output, np.array(anchors).reshape(-1, 2) * scale))
    scores = detector.scores or ("sigmoid" if len(maps) > 1 else "softmax")
    return _decode(maps, detector, scores), notes


def _decode(maps: Sequence[_Map], detector: Detector, scores: str) -> list[Box]:
    """Boxes of all maps, best first, overlaps removed."""
    found: list[Floats] = []
    rated: list[Floats] = []
    for part in maps:
        count, (h, w) = len(part.anchors), part.values.shape[-2:]
        data = part.values.astype(np.float64).reshape(count, detector.per_anchor, h, w)
        anchors = part.anchors.reshape(count, 2, 1, 1)
        with np.errstate(all="ignore"):
            x = (sigmoid(data[:, 0]) + np.arange(w)) / w
            y = (sigmoid(data[:, 1]) + np.arange(h)[:, None]) / h
            bw = np.exp(data[:, 2]) * anchors[:, 0] / w
            bh = np.exp(data[:, 3]) * anchors[:, 1] / h
            if scores == "sigmoid":
                classes = sigmoid(data[:, 5:])
            else:
                e = np.exp(data[:, 5:] - data[:, 5:].max(axis=1, keepdims=True))
                classes = e / e.sum(axis=1, keepdims=True)
            classes = sigmoid(data[:, 4:5]) * classes
        rated.append(classes.transpose(0, 2, 3, 1).reshape(-1, len(detector.classes)))
        found.append(np.stack([x, y, bw, bh], axis=-1).reshape(-1, 4))
    return select(
        np.concatenate(found),
        np.concatenate(rated),
        detector.classes,
        detector.threshold,
        detector.nms,
    )


def _channels_first(output: npt.NDArray, detector: Detector) -> npt.NDArray:
    """(..., h, w, C) turned when only so the channels fit."""
    per = detector.per_anchor
    if output.ndim >= 3 and output.shape[-3] % per and output.shape[-1] % per == 0:
        return np.moveaxis(output, -1, -3)
    return output


def _anchors_of(output: npt.NDArray, detector: Detector) -> int:
    """How many anchors a map with these channels has; 0: it is none."""
    if output.ndim < 3 or math.prod(output.shape[:-3]) != 1:
        return 0
    count, left = divmod(output.shape[-3], detector.per_anchor)
    return 0 if left else count


Matched = list[tuple[npt.NDArray, tuple[float, ...]]]


def _matched(outputs: Sequence[npt.NDArray], detector: Detector, width: int) -> Matched:
    """Every map with its anchors; empty when they do not fit."""
    counts = [_anchors_of(output, detector) for output in outputs]
    if detector.outputs:
        if counts != [len(anchors) // 2 for anchors in detector.outputs]:
            return []
        return list(zip(outputs, detector.outputs, strict=True))
    total = len(detector.anchors) // 2
    maps = [output for output, count in zip(outputs, counts, strict=True) if count]
    if len(maps) > 1 and (shared := _shared(maps, detector, width)):
        return shared
    whole = [o for o, count in zip(outputs, counts, strict=True) if count == total]
    return [(whole[0], detector.anchors)] if len(whole) == 1 else []


def _shared(maps: Sequence[npt.NDArray], detector: Detector, width: int) -> Matched:
    """The anchors split by size: the smallest to the finest map.

    Of three times as many as a map has, those for its stride: 8, 16 or 32 pixels.
    """
    pairs = np.array(detector.anchors).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs.prod(axis=1), kind="stable")]
    counts = [_anchors_of(output, detector) for output in maps]
    cells = [output.shape[-1] * output.shape[-2] for output in maps]
    if len(set(cells)) < len(cells):
        return []
    if sum(counts) == len(pairs):
        finest = sorted(range(len(maps)), key=lambda i: -cells[i])
        starts = dict(zip(finest, np.cumsum([0, *(counts[i] for i in finest)]), strict=False))
    elif len(set(counts)) == 1 and counts[0] * len(STRIDES) == len(pairs):
        strides = [round(width / output.shape[-1]) for output in maps]
        if not set(strides) <= set(STRIDES):
            return []
        starts = {i: STRIDES.index(s) * counts[0] for i, s in enumerate(strides)}
    else:
        return []
    return [
        (output, tuple(pairs[starts[i] : starts[i] + counts[i]].ravel().tolist()))
        for i, output in enumerate(maps)
    ]


def _unit(matched: Matched, detector: Detector) -> tuple[str, list[str]]:
    """The unit of the anchors, and a note when it follows from their size."""
    if detector.unit is not None:
        return detector.unit, []
    if len(matched) == 1:
        return "cells", []
    largest = max(max(anchors) for _, anchors in matched)
    far = any(max(anchors) > FAR * max(output.shape[-2:]) for output, anchors in matched)
    if largest <= 1:
        unit, why = "fractions", f"none is above {largest:g}"
    elif not detector.outputs or far:
        unit, why = "pixels", f"the largest is {largest:g}"
    else:
        return "cells", []
    return unit, [f'anchors taken as {unit} of the input ({why}); "unit" in the side file decides']


def _misfit(outputs: Sequence[npt.NDArray], detector: Detector) -> str:
    """What the outputs are, and what the anchors need."""
    classes = len(detector.classes)
    shapes = ", ".join(str(list(output.shape)) for output in outputs)
    if detector.outputs:
        counts = [len(anchors) // 2 for anchors in detector.outputs]
        channels = " and ".join(str(count * detector.per_anchor) for count in counts)
        return (
            f"outputs {shapes}: anchors for {len(counts)} outputs of {channels} channels, each "
            f"anchors x (5 + {classes} classes)"
        )
    counts = [_anchors_of(output, detector) for output in outputs]
    if len(outputs) > 1 and any(counts):
        return (
            f"outputs {shapes}: {len(detector.anchors) // 2} anchors for maps that have "
            f"{' and '.join(map(str, counts))}; expected as many in all, nine for maps of three at "
            'strides 8, 16 and 32, or "outputs": [{"anchors": [...]}, ...]'
        )
    return (
        f"output {shapes}, a detector of {len(detector.anchors) // 2} anchors and {classes} "
        f"classes has {detector.channels} channels"
    )


def decode_yolox(
    output: npt.NDArray,
    width: int,
    height: int,
    names: tuple[str, ...] | None = None,
    threshold: float = 0.3,
    nms: float = 0.45,
) -> list[Box]:
    """Boxes of a yolox output (1, cells, 5 + classes) of a network with this input size.

    Objectness and classes are taken as they are when all lie in 0..1, else through a sigmoid.
    """
    if not is_yolox(output, width, height):
        raise KmodelError(
            f"output {list(output.shape)}, a yolox has {yolox_cells(width, height)} cells here"
        )
    data = output.reshape(output.shape[-2], -1).astype(np.float64)
    grid, strides = [], []
    for stride in STRIDES:
        gy, gx = np.mgrid[: height // stride, : width // stride]
        grid.append(np.stack([gx, gy], axis=-1).reshape(-1, 2))
        strides.append(np.full((gx.size, 1), stride))
    step = np.concatenate(strides)
    with np.errstate(all="ignore"):
        centre = (data[:, :2] + np.concatenate(grid)) * step / (width, height)
        size = np.exp(data[:, 2:4]) * step / (width, height)
    rest = data[:, 4:]
    if rest.min() < 0 or rest.max() > 1.001:
        rest = sigmoid(rest)
    scores = rest[:, :1] * rest[:, 1:]
    if names is None:
        names = COCO_CLASSES if scores.shape[1] == len(COCO_CLASSES) else ()
    return select(np.concatenate([centre, size], axis=1), scores, names, threshold, nms)


def yolox_cells(width: int, height: int) -> int:
    """Cells of all strides for an input of this size."""
    return sum((width // s) * (height // s) for s in STRIDES)


def is_yolox(output: npt.NDArray, width: int, height: int) -> bool:
    """Whether the output may be that of a yolox for this size of input."""
    cells = yolox_cells(width, height)
    return (
        output.ndim >= 2
        and output.shape[-2] == cells > 1
        and output.shape[-1] > 5
        and output.size == cells * output.shape[-1]
    )
