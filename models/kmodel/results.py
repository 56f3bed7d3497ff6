# SPDX-License-Identifier: Apache-2.0
"""Something to look at: boxes of yolo-style detectors, the best classes of a classifier.

A yolo v2 "region" output is (anchors * (5 + classes), h, w): per anchor the box centre (two
sigmoids), its size (exponentials of the anchor's), objectness (sigmoid) and classes (softmax).
Anchors are in cells of the output grid.  A yolox output is (cells, 5 + classes) over strides 8, 16,
32.  SSD detectors with priors are in ``ssd``.  Coordinates are fractions of the picture.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import files
from .boxes import Box, Floats, overlap, select, settings
from .errors import KmodelError
from .names import words
from .ssd import FACE_PRIORS, PriorDetector, decode_priors

if TYPE_CHECKING:
    from PIL.Image import Image

# the face detector of kendryte-standalone-demo, and the 20-class detector of darknet's tiny yolo
FACE_ANCHORS = (
    1.889,
    2.5245,
    2.9465,
    3.94056,
    3.99987,
    5.3658,
    5.155437,
    6.92275,
    6.718375,
    9.01025,
)
VOC_ANCHORS = (1.08, 1.19, 3.42, 4.41, 6.63, 11.38, 9.42, 5.11, 16.62, 10.52)
VOC_CLASSES = words(
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike "
    "person pottedplant sheep sofa train tvmonitor"
)
COCO_CLASSES = words(
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,"
    "stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,"
    "backpack,umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,"
    "baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,"
    "bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,"
    "potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,"
    "oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush",
    ",",
)
__all__ = [
    "FACE",
    "FACE_PRIORS",
    "VOC",
    "Box",
    "Detector",
    "PriorDetector",
    "decode_priors",
    "decode_region",
    "decode_yolox",
    "draw",
    "hint",
    "known_detector",
    "load_detector",
    "overlap",
    "report",
    "top_classes",
]
COLOURS = ((230, 40, 40), (40, 160, 40), (50, 90, 230), (230, 160, 0), (160, 40, 200))


@dataclasses.dataclass(frozen=True)
class Detector:
    """How to read the output of a detector."""

    anchors: tuple[float, ...]  # w0, h0, w1, h1 ... in cells
    classes: tuple[str, ...]
    threshold: float = 0.5
    nms: float = 0.3

    @classmethod
    def of(cls, data: dict) -> Detector:
        """From the keys of a side file; KeyError for one that is missing."""
        return cls(tuple(float(a) for a in data["anchors"]), **settings(data, 0.5, 0.3))

    def check(self, name: str = "detector") -> Detector:
        if not self.anchors or len(self.anchors) % 2 or not self.classes:
            raise KmodelError(f"{name}: pairs of anchors and at least one class are expected")
        return self

    @property
    def channels(self) -> int:
        return len(self.anchors) // 2 * (5 + len(self.classes))


FACE = Detector(FACE_ANCHORS, ("face",))
VOC = Detector(VOC_ANCHORS, VOC_CLASSES)


def load_detector(path: str | Path) -> Detector | PriorDetector:
    """A description from a JSON side file; KmodelError says what is wrong with it.

    {"anchors": [w, h, ...], "classes": [...]} for a region output, or {"priors": [[size or [w, h],
    ...] of each step], "steps": [...], "variances": [a, b], "classes": [...]} for an SSD detector;
    both may have "threshold" and "nms".
    """
    try:
        data = json.loads(files.read_bytes(path, KmodelError))
        kind = PriorDetector if "priors" in data else Detector
        return kind.of(data).check(str(path))
    except KeyError as err:
        raise KmodelError(f"{path}: {err.args[0]!r} is missing") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as err:
        if isinstance(err, KmodelError):
            raise
        raise KmodelError(f"{path}: no detector description: {err}") from None


def sigmoid(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def decode_region(output: npt.NDArray, detector: Detector) -> list[Box]:
    """Boxes of a region output (1, A * (5 + classes), h, w), best first, overlaps removed."""
    classes, count = len(detector.classes), len(detector.anchors) // 2
    shape = output.shape[-3:]
    if len(output.shape) < 3 or shape[0] != detector.channels:
        raise KmodelError(
            f"output {list(output.shape)}, a detector of {count} anchors and {classes} classes "
            f"has {detector.channels} channels"
        )
    _, h, w = shape
    data = output.astype(np.float64).reshape(count, 5 + classes, h, w)
    with np.errstate(all="ignore"):
        x = (sigmoid(data[:, 0]) + np.arange(w)) / w
        y = (sigmoid(data[:, 1]) + np.arange(h)[:, None]) / h
        anchors = np.array(detector.anchors).reshape(count, 2, 1, 1)
        bw = np.exp(data[:, 2]) * anchors[:, 0] / w
        bh = np.exp(data[:, 3]) * anchors[:, 1] / h
        e = np.exp(data[:, 5:] - data[:, 5:].max(axis=1, keepdims=True))
        scores = sigmoid(data[:, 4:5]) * e / e.sum(axis=1, keepdims=True)
    flat = scores.transpose(0, 2, 3, 1).reshape(-1, classes)
    boxes = np.stack([x, y, bw, bh], axis=-1).reshape(-1, 4)
    return select(boxes, flat, detector.classes, detector.threshold, detector.nms)


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
    cells = sum((width // s) * (height // s) for s in (8, 16, 32))
    if output.ndim < 2 or output.shape[-2] != cells or output.shape[-1] < 6:
        raise KmodelError(f"output {list(output.shape)}, a yolox has {cells} cells here")
    data = output.reshape(cells, -1).astype(np.float64)
    grid, strides = [], []
    for stride in (8, 16, 32):
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


def draw(image: Image, boxes: list[Box]) -> Image:
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


def known_detector(output: npt.NDArray) -> Detector | None:
    """The built-in description whose channels fit the output, or None."""
    if output.ndim < 3 or min(output.shape[-2:]) < 2:
        return None
    return next((d for d in (FACE, VOC) if d.channels == output.shape[-3]), None)


def report(
    outputs: npt.NDArray | Sequence[npt.NDArray],
    width: int,
    height: int,
    detector: Detector | PriorDetector | None = None,
):
    """("boxes", list of Box), ("classes", top five) or ("tensor", None), by the outputs' shapes.

    ``width`` and ``height`` of the network's input.  Without a ``detector`` the known ones are
    tried; the first output counts where a single one is read.
    """
    outputs = [outputs] if isinstance(outputs, np.ndarray) else list(outputs)
    output = outputs[0]
    if detector is None:
        detector = known_detector(output)
        if FACE_PRIORS.fits(outputs, width, height):
            detector = FACE_PRIORS
    if isinstance(detector, PriorDetector):
        return "boxes", decode_priors(outputs, detector, width, height)
    if detector is not None:
        return "boxes", decode_region(output, detector)
    cells = sum((width // s) * (height // s) for s in (8, 16, 32))
    if output.ndim == 3 and output.shape[-2] == cells > 1 and output.shape[-1] > 5:
        return "boxes", decode_yolox(output, width, height)
    if 2 <= output.size <= 4096 and output.size == max(output.shape):
        return "classes", top_classes(output)
    return "tensor", None


def hint(outputs: npt.NDArray | Sequence[npt.NDArray], option: str = "DETECTOR=") -> str | None:
    """What a tensor that nobody could read may be, and how to have it read; None: no idea.

    ``option``: how the caller takes a side file.
    """
    outputs = [outputs] if isinstance(outputs, np.ndarray) else list(outputs)
    output = outputs[0]
    if len(outputs) == 2:
        for places, scores in (outputs, outputs[::-1]):
            count = places.size // 4
            if (
                count > 1
                and places.size == 4 * count
                and scores.size in range(2 * count, 1001 * count, count)
            ):
                return (
                    f"perhaps boxes and scores of {count} priors and "
                    f"{scores.size // count - 1} class(es): {option}side.json with priors, steps, "
                    "variances and classes makes boxes of them"
                )
    if output.ndim < 3 or min(output.shape[-2:]) < 2 or output.shape[-3] < 6:
        return None
    channels, h, w = output.shape[-3:]
    counts = [n for n in range(1, 17) if channels % n == 0 and channels // n > 5]
    split = ", ".join(f"{n} x (5 + {channels // n - 5})" for n in counts)
    return (
        f"a map of {channels} channels, {h} x {w} cells, perhaps a yolo v2 detector "
        f"(anchors x (5 + classes) = {split}): {option}side.json with its anchors and classes "
        "makes boxes of it"
    )
