# SPDX-License-Identifier: Apache-2.0
"""Boxes of detectors with a grid of anchors that have a place and no size, as BlazeFace has it.

Every cell of every stride has some anchors, all of them at its middle.  One output has numbers for
each anchor in pixels of the network's input: the offset of the box's middle, the box's size, and
offsets of keypoints; the other has a score for each class, through a sigmoid.  Anchors go by
stride, rows from the top, cells from the left.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.results.boxes import Box, Floats, select, settings, side_file_number

ORDERS = {"xywh": (0, 1), "yxhw": (1, 0)}  # places of x and y in a pair
MOST_SCORE = 100.0  # beyond it a sigmoid is 0 or 1


@dataclasses.dataclass(frozen=True)
class AnchorDetector:
    """Anchors by stride, and what the numbers of each are."""

    strides: tuple[int, ...]  # pixels from cell to cell
    per_cell: tuple[int, ...]  # anchors in a cell of each stride
    classes: tuple[str, ...]  # no background
    keypoints: int = 0
    scale: float = 1.0  # pixels of the network's input that one step of an offset or size is
    order: str = "xywh"
    threshold: float = 0.5
    nms: float = 0.3

    @classmethod
    def of(cls, data: dict) -> AnchorDetector:
        """From the keys of a side file; KeyError for one that is missing."""
        keys = ("strides", "per_cell", "keypoints", "scale", "order")
        return cls(
            tuple(_whole(n, "stride") for n in data["strides"]),
            tuple(_whole(n, "number of anchors") for n in data["per_cell"]),
            keypoints=_whole(data.get("keypoints", 0), "number of keypoints"),
            scale=side_file_number(data.get("scale", 1.0)),
            order=data.get("order", "xywh"),
            **settings(data, 0.5, 0.3, keys),
        )

    def check(self, name: str = "detector") -> AnchorDetector:
        """Itself, or a KmodelError that says what is impossible."""
        if not self.strides or len(self.strides) != len(self.per_cell):
            many = f"{len(self.per_cell)} numbers per_cell for {len(self.strides)} strides"
            raise KmodelError(f"{name}: {many}, expected one for each of at least one")
        least = min(*self.strides, *self.per_cell)
        if least < 1 or not 0 <= self.keypoints <= 1000 or not 0 < self.scale < math.inf:
            wanted = "strides, per_cell and scale above 0, keypoints from 0 to 1000"
            raise KmodelError(f"{name}: {wanted} are expected")
        if self.order not in ORDERS:
            raise KmodelError(f"{name}: order {self.order!r}, expected {' or '.join(ORDERS)}")
        if not self.classes:
            raise KmodelError(f"{name}: at least one class is expected")
        return self

    @property
    def numbers(self) -> int:
        """Numbers of an anchor, without scores."""
        return 4 + 2 * self.keypoints

    def cells(self, width: int, height: int) -> list[tuple[int, int, int]]:
        """Columns, rows and anchors in a cell of each stride; cells at the edge count."""
        pairs = zip(self.strides, self.per_cell, strict=True)
        return [(ceil_div(width, s), ceil_div(height, s), n) for s, n in pairs]

    def count(self, width: int, height: int) -> int:
        """Anchors of a network with this input size."""
        return sum(math.prod(size) for size in self.cells(width, height))

    def middles(self, width: int, height: int) -> Floats:
        """(count, 2): x and y of every anchor in pixels."""
        found = []
        for stride, (w, h, n) in zip(self.strides, self.cells(width, height), strict=True):
            y, x, _ = np.mgrid[:h, :w, :n]
            found.append((np.stack([x, y], axis=-1).reshape(-1, 2) + 0.5) * stride)
        return np.concatenate(found)

    def pair(
        self, outputs: Sequence[npt.NDArray], width: int, height: int
    ) -> tuple[npt.NDArray, npt.NDArray] | None:
        """The outputs with places and scores, or None."""
        count = self.count(width, height)
        if len(outputs) != 2:
            return None
        for places, scores in (tuple(outputs), tuple(outputs[::-1])):
            fits = places.shape[-1:] == (self.numbers,) and places.size == self.numbers * count
            if fits and scores.size == len(self.classes) * count:
                return places, scores
        return None


def _whole(number: float, what: str) -> int:
    if int(side_file_number(number)) != number:
        raise ValueError(f"a {what} of {number}")
    return int(number)


# the face detectors of MediaPipe, with eyes, nose, mouth and ears, by the size of their input
FACE_GRIDS = {
    (128, 128): AnchorDetector((8, 16), (2, 6), ("face",), 6),
    (256, 256): AnchorDetector((16, 32), (2, 6), ("face",), 6),
    (192, 192): AnchorDetector((4,), (1,), ("face",), 6),
}


def decode_anchors(
    outputs: Sequence[npt.NDArray], detector: AnchorDetector, width: int, height: int
) -> list[Box]:
    """Boxes with their keypoints of a network with this input size, best first, overlaps removed.

    ``outputs``: places (4 and 2 a keypoint, for each anchor) and scores (one a class), in any
    order.  KmodelError when there are no two such outputs.
    """
    found = detector.pair(outputs, width, height)
    if found is None:
        count, numbers = detector.count(width, height), detector.numbers
        shapes = ", ".join(str(list(output.shape)) for output in outputs)
        raise KmodelError(
            f"outputs {shapes}: these anchors on {width} x {height} pixels need two, with "
            f"{count} x {numbers} and {count} x {len(detector.classes)} elements"
        )
    places = found[0].astype(np.float64).reshape(-1, detector.numbers // 2, 2)
    places = places[:, :, ORDERS[detector.order]] * detector.scale
    raw = found[1].astype(np.float64).reshape(-1, len(detector.classes))
    scores = 1 / (1 + np.exp(-np.clip(raw, -MOST_SCORE, MOST_SCORE)))
    middles = detector.middles(width, height)
    size = np.array([width, height])
    points = np.delete(places, 1, axis=1) + middles[:, None]
    points /= size
    boxes = np.concatenate([points[:, 0], places[:, 1] / size], axis=1)
    scores[~(boxes[:, 2:] > 0).all(axis=1)] = 0  # a box without a size is none
    classes, keypoints = detector.classes, points[:, 1:]
    return select(boxes, scores, classes, detector.threshold, detector.nms, keypoints)
