# SPDX-License-Identifier: Apache-2.0
"""Something to look at: boxes of yolo-style detectors, the best classes of a classifier.

A yolo v2 "region" output is (anchors * (5 + classes), h, w): per anchor the box centre (two
sigmoids), its size (exponentials of the anchor's), objectness (sigmoid) and classes (softmax).
Anchors are in cells of the output grid.  A yolox output is (cells, 5 + classes) over strides 8, 16,
32.  Coordinates are fractions of the picture.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .errors import KmodelError
from .names import words

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = npt.NDArray[np.float64]
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
COLOURS = ((230, 40, 40), (40, 160, 40), (50, 90, 230), (230, 160, 0), (160, 40, 200))


@dataclasses.dataclass(frozen=True)
class Detector:
    """How to read the output of a detector."""

    anchors: tuple[float, ...]  # w0, h0, w1, h1 ... in cells
    classes: tuple[str, ...]
    threshold: float = 0.5
    nms: float = 0.3

    @classmethod
    def load(cls, path: str | Path) -> Detector:
        """From a JSON side file: {"anchors": [...], "classes": [...], "threshold":, "nms":}."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(
                tuple(float(a) for a in data["anchors"]),
                tuple(str(c) for c in data["classes"]),
                float(data.get("threshold", 0.5)),
                float(data.get("nms", 0.3)),
            ).check(str(path))
        except OSError as err:
            raise KmodelError(f"{path}: {err.strerror or err}") from None
        except KeyError as err:
            raise KmodelError(f"{path}: {err.args[0]!r} is missing") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as err:
            if isinstance(err, KmodelError):
                raise
            raise KmodelError(f"{path}: no detector description: {err}") from None

    def check(self, name: str = "detector") -> Detector:
        if not self.anchors or len(self.anchors) % 2 or not self.classes:
            raise KmodelError(f"{name}: pairs of anchors and at least one class are expected")
        return self

    @property
    def channels(self) -> int:
        return len(self.anchors) // 2 * (5 + len(self.classes))


FACE = Detector(FACE_ANCHORS, ("face",))
VOC = Detector(VOC_ANCHORS, VOC_CLASSES)


@dataclasses.dataclass(frozen=True)
class Box:
    """A found object; corners as fractions of the picture."""

    name: str
    score: float
    x0: float
    y0: float
    x1: float
    y1: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.2f} at "
            f"{self.x0:.3f},{self.y0:.3f} .. {self.x1:.3f},{self.y1:.3f}"
        )


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
    return _select(boxes, flat, detector.classes, detector.threshold, detector.nms)


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
    return _select(np.concatenate([centre, size], axis=1), scores, names, threshold, nms)


def _select(
    boxes: Floats, scores: Floats, names: tuple[str, ...], threshold: float, nms: float
) -> list[Box]:
    """Boxes (centre, size) above the threshold; of overlapping ones of a class, the best."""
    kept: list[tuple[int, Box]] = []
    best = scores.argmax(axis=1)
    top = np.nan_to_num(scores.max(axis=1))
    for i in np.argsort(-top, kind="stable"):
        if top[i] <= threshold:
            break
        x, y, w, h = boxes[i]
        kind = int(best[i])
        name = names[kind] if kind < len(names) else f"class {kind}"
        box = Box(name, float(top[i]), x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        if np.isfinite([x, y, w, h]).all() and all(
            other != kind or overlap(box, seen) <= nms for other, seen in kept
        ):
            kept.append((kind, box))
    return [box for _, box in kept]


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    w = min(a.x1, b.x1) - max(a.x0, b.x0)
    h = min(a.y1, b.y1) - max(a.y0, b.y0)
    if w <= 0 or h <= 0:
        return 0.0
    inter = w * h
    union = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - inter
    return inter / union if union > 0 else 0.0


def draw(image: Image, boxes: list[Box]) -> Image:
    """A copy of the picture with the boxes."""
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
        pen.rectangle((x0, y0, max(x0, x1), max(y0, y1)), outline=colour, width=line)
        label, corner = f"{box.name} {box.score:.2f}", (x0 + line + 1, y0 + line)
        pen.rectangle(pen.textbbox(corner, label), fill=colour)
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


def report(output: npt.NDArray, width: int, height: int, detector: Detector | None = None):
    """("boxes", list of Box), ("classes", top five) or ("tensor", None), by the output's shape."""
    detector = detector or known_detector(output)
    if detector is not None:
        return "boxes", decode_region(output, detector)
    cells = sum((width // s) * (height // s) for s in (8, 16, 32))
    if output.ndim == 3 and output.shape[-2] == cells > 1 and output.shape[-1] > 5:
        return "boxes", decode_yolox(output, width, height)
    if 2 <= output.size <= 4096 and output.size == max(output.shape):
        return "classes", top_classes(output)
    return "tensor", None
