# SPDX-License-Identifier: Apache-2.0
"""Found objects, and which of the overlapping ones to keep."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Box:
    """A found object; corners as fractions of the picture."""

    name: str
    score: float
    x0: float
    y0: float
    x1: float
    y1: float
    points: tuple[tuple[float, float], ...] = ()  # keypoints, as fractions too

    def __str__(self) -> str:
        points = " ".join(f"{x:.3f},{y:.3f}" for x, y in self.points)
        return (
            f"{self.name} {self.score:.2f} at "
            f"{self.x0:.3f},{self.y0:.3f} .. {self.x1:.3f},{self.y1:.3f}"
            f"{', points ' if points else ''}{points}"
        )


def select(
    boxes: Floats,
    scores: Floats,
    names: tuple[str, ...],
    threshold: float,
    nms: float,
    points: Floats | None = None,
) -> list[Box]:
    """Boxes (centre, size) above the threshold; of overlapping ones of a class, the best.

    ``points``: keypoints (count, k, 2) of the boxes.
    """
    kept: list[tuple[int, Box]] = []
    best = scores.argmax(axis=1)
    top = np.nan_to_num(scores.max(axis=1))
    for i in np.argsort(-top, kind="stable"):
        if top[i] <= threshold:
            break
        x, y, w, h = boxes[i]
        kind = int(best[i])
        name = names[kind] if kind < len(names) else f"class {kind}"
        marks = () if points is None else tuple((float(px), float(py)) for px, py in points[i])
        box = Box(name, float(top[i]), x - w / 2, y - h / 2, x + w / 2, y + h / 2, marks)
        if np.isfinite([x, y, w, h]).all() and all(
            other != kind or box_overlap(box, seen) <= nms for other, seen in kept
        ):
            kept.append((kind, box))
    return [box for _, box in kept]


SETTINGS = ("classes", "threshold", "nms")  # keys of every side file


def settings(data: dict, threshold: float, nms: float, others: tuple[str, ...]) -> dict:
    """Classes, threshold and suppression out of a side file, with defaults for the last two.

    KeyError without classes; ValueError for what they cannot be, and for a key that is neither
    theirs nor one of ``others``, which nothing would read.
    """
    only(data, (*others, *SETTINGS))
    names = data["classes"]
    if not isinstance(names, list) or not names or not all(map(_name, names)):
        raise ValueError("classes are a list of at least one name")
    limits = {"threshold": data.get("threshold", threshold), "nms": data.get("nms", nms)}
    for key, value in limits.items():
        if not 0 <= side_file_number(value) <= 1:
            raise ValueError(f"{key} {value:g}, expected a finite number from 0 to 1")
    return {"classes": tuple(map(str, names)), **{k: float(v) for k, v in limits.items()}}


def only(data: dict, known: tuple[str, ...]) -> None:
    """ValueError for a key of a side file that is none of ``known``."""
    for key in data:
        if key not in known:
            raise ValueError(f"unknown key {key!r}, expected {', '.join(known)}")


def _name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def side_file_number(value: object) -> float:
    """A number of a side file; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r}, expected a number")
    return float(value)


def box_overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    w = min(a.x1, b.x1) - max(a.x0, b.x0)
    h = min(a.y1, b.y1) - max(a.y0, b.y0)
    if w <= 0 or h <= 0:
        return 0.0
    inter = w * h
    union = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - inter
    return inter / union if union > 0 else 0.0
