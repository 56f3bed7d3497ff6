# SPDX-License-Identifier: Apache-2.0
"""Something to look at: boxes of detectors, the best classes of a classifier.

``yolo``, ``ssd`` and ``anchors`` decode outputs by a description, ``guess`` has those of a few
published models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import Program
from openkpu.kmodel.readers.shapes import output_map
from openkpu.kmodel.results.anchors import AnchorDetector, decode_anchors
from openkpu.kmodel.results.boxes import Box, box_overlap
from openkpu.kmodel.results.guess import FACE, VOC, guess
from openkpu.kmodel.results.ssd import FACE_PRIORS, PriorDetector, decode_priors
from openkpu.kmodel.results.yolo import (
    COCO_CLASSES,
    Detector,
    decode_maps,
    decode_region,
    decode_yolox,
)
from openkpu.words import option

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "COCO_CLASSES",
    "FACE",
    "FACE_PRIORS",
    "VOC",
    "AnyDetector",
    "Box",
    "Detector",
    "PriorDetector",
    "Report",
    "box_overlap",
    "decode_maps",
    "decode_priors",
    "decode_region",
    "decode_yolox",
    "draw_boxes",
    "hint",
    "load_detector",
    "report",
    "span",
    "top_classes",
]
AnyDetector = Detector | PriorDetector | AnchorDetector
COLOURS = ((230, 40, 40), (40, 160, 40), (50, 90, 230), (230, 160, 0), (160, 40, 200))


def load_detector(path: str | Path) -> AnyDetector:
    """A description from a JSON side file; KmodelError says what is wrong with it.

    {"anchors": [w, h, ...], "classes": [...]} for a yolo, or {"outputs": [{"anchors": [...]}, ...],
    "classes": [...]} with the anchors by output, both with "unit" and "scores" as in ``Detector``;
    {"priors": [[size or [w, h], ...] of each step], "steps": [...], "variances": [a, b], "classes":
    [...]} for an SSD detector; {"strides": [...], "per_cell": [...], "keypoints": n, "classes":
    [...]} for anchors without a size, with "scale" and "order" as in ``AnchorDetector``.  All may
    have "threshold" and "nms".
    """
    try:
        data = json.loads(files.read_bytes(path, KmodelError), object_pairs_hook=_once)
        if not isinstance(data, dict):
            raise ValueError("expected an object with anchors, outputs, priors or strides")
        grid = AnchorDetector if "strides" in data else Detector
        kind = PriorDetector if "priors" in data else grid
        return kind.of(data).check(str(path))
    except KeyError as err:
        raise KmodelError(f"{path}: {err.args[0]!r} is missing") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as err:
        if isinstance(err, KmodelError):
            raise
        raise KmodelError(f"{path}: no detector description: {files.said(err)}") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON; of a key that is there twice the second would win without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return found


def draw_boxes(image: Image, boxes: list[Box]) -> Image:
    """A copy of the picture with the boxes; labels where the box is as wide as its label."""
    from PIL import ImageDraw

    image = image.copy()
    pen = ImageDraw.Draw(image)
    line = max(1, round(max(image.size) / 200))
    names = sorted({box.name for box in boxes})
    for box in boxes:
        colour = COLOURS[names.index(box.name) % len(COLOURS)]
        x0, y0, x1, y1 = (
            round(float(np.clip(v, 0, 1)) * (n - 1))
            for v, n in zip((box.x0, box.y0, box.x1, box.y1), image.size * 2, strict=True)
        )
        # a thick line would cover what a small box shows
        thin = min(line, max(1, min(x1 - x0, y1 - y0) // 12))
        pen.rectangle((x0, y0, max(x0, x1), max(y0, y1)), outline=colour, width=thin)
        for x, y in np.clip(np.array(box.points).reshape(-1, 2), 0, 1):
            at = round(float(x) * (image.width - 1)), round(float(y) * (image.height - 1))
            pen.rectangle((at[0] - thin, at[1] - thin, at[0] + thin, at[1] + thin), fill=colour)
        label, corner = f"{box.name} {box.score:.2f}", (x0 + line + 1, y0 + line)
        place = pen.textbbox(corner, label)
        if place[2] - place[0] <= max(x1 - x0, image.width // 8):
            pen.rectangle(place, fill=colour)
            pen.text(corner, label, fill="white")
    return image


def top_classes(
    output: npt.NDArray, count: int = 5, names: tuple[str, ...] = ()
) -> list[tuple[int, str, float]]:
    """(number, name, score) of the best classes; scores as the model gives them."""
    scores = np.nan_to_num(output.reshape(-1).astype(np.float64), nan=-np.inf)
    order = np.argsort(-scores, kind="stable")[:count]
    return [(int(i), names[i] if i < len(names) else str(i), float(scores[i])) for i in order]


def span(output: npt.NDArray) -> str:
    """Shape and range of an output in words."""
    values = f"{output.min():g} .. {output.max():g}" if output.size else "empty"
    return f"{list(output.shape)}: {values}"


class Report(NamedTuple):
    """The results of a model for a picture."""

    kind: str  # "boxes", "classes" or "tensor"
    found: Any  # list[Box] of boxes, list[tuple[int, str, float]] of classes, None of a tensor
    notes: tuple[str, ...] = ()  # what was assumed


def report(
    outputs: npt.NDArray | Sequence[npt.NDArray],
    width: int,
    height: int,
    detector: AnyDetector | None = None,
    program: Program | None = None,
) -> Report:
    """Boxes, the best five classes, or nothing, by the outputs' shapes.

    ``width`` and ``height`` of the network's input.  Without a ``detector`` a known one is assumed
    where ``program``, whose outputs these are, ends like it; the notes say so, and name the
    option for a side file.  The first output counts where a single one is read.
    """
    outputs = _maps(outputs, program)
    if isinstance(detector, PriorDetector):
        return Report("boxes", decode_priors(outputs, detector, width, height))
    if isinstance(detector, AnchorDetector):
        return Report("boxes", decode_anchors(outputs, detector, width, height))
    if detector is not None:
        boxes, notes = decode_maps(outputs, detector, width, height)
        return Report("boxes", boxes, tuple(notes))
    if known := guess(outputs, width, height, program):
        return Report("boxes", known.decode(), (known.note(),))
    output = outputs[0] if outputs else np.zeros(0)
    if 2 <= output.size <= 4096 and output.size == max(output.shape):
        return Report("classes", top_classes(output))
    return Report("tensor", None)


def _maps(
    outputs: npt.NDArray | Sequence[npt.NDArray], program: Program | None
) -> list[npt.NDArray]:
    """The outputs; one of C x HW as the KPU's map of that size."""
    outputs = [outputs] if isinstance(outputs, np.ndarray) else list(outputs)
    return outputs if program is None else [output_map(output, program) for output in outputs]


def _anchors(places: npt.NDArray, scores: npt.NDArray) -> str | None:
    """A guess for outputs with a line for each anchor, and keypoints."""
    shapes = places.shape[-2:], scores.shape[-2:]
    if places.ndim != 3 or scores.ndim != 3 or shapes[0][0] != shapes[1][0]:
        return None
    (count, numbers), classes = shapes[0], shapes[1][1]
    if numbers < 6 or numbers % 2 or classes >= numbers:
        return None
    points = numbers // 2 - 2
    return f"perhaps {count} anchors with {points} keypoint(s) and {classes} class(es)"


def hint(
    outputs: npt.NDArray | Sequence[npt.NDArray],
    program: Program | None = None,
) -> str | None:
    """A guess for tensors without a reader, and how to have them read; None: no guess.

    ``program``: whose outputs they are.
    """
    outputs = _maps(outputs, program)
    side = option("detector", "side.json")
    maps = [o for o in outputs if o.ndim >= 3 and min(o.shape[-2:]) > 1 and o.shape[-3] > 5]
    alike = len(maps) == 2 and maps[0].shape[-3] == maps[1].shape[-3]
    if len(outputs) == 2 and not alike:
        for places, scores in (outputs, outputs[::-1]):
            if anchors := _anchors(places, scores):
                return f"{anchors}: {side} with strides, per_cell, keypoints and classes"
            count = places.size // 4
            if (
                count > 1
                and places.size == 4 * count
                and scores.size in range(2 * count, 1001 * count, count)
            ):
                return (
                    f"perhaps boxes and scores of {count} priors and "
                    f"{scores.size // count - 1} class(es): {side} with priors, steps, "
                    "variances and classes makes boxes of them"
                )
    if not maps:
        return None
    (channels, h, w), more = maps[0].shape[-3:], len(maps) > 1
    counts = [n for n in range(1, 17) if channels % n == 0 and channels // n > 5]
    split = ", ".join(f"{n} x (5 + {channels // n - 5})" for n in counts)
    others = "".join(
        f" and {o.shape[-3]} channels, {o.shape[-2]} x {o.shape[-1]}" for o in maps[1:]
    )
    return (
        f"{'maps' if more else 'a map'} of {channels} channels, {h} x {w}{others} cells, perhaps a "
        f"yolo {'v3' if more else 'v2'} detector (anchors x (5 + classes) = {split}): "
        f"{side} with its anchors{' by output' if more else ''} and classes makes boxes "
        "of it"
    )
