# SPDX-License-Identifier: Apache-2.0
"""Boxes of detectors of the SSD kind: offsets and scores of fixed boxes, the priors.

A prior lies at the middle of every cell of every step; its size is in pixels of the network's
input.  One output has four numbers a prior, offset of the centre and logarithm of the size, scaled
by the variances; the other has a score for the background and one for every class.
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


@dataclasses.dataclass(frozen=True)
class PriorDetector:
    """Priors (w, h) in pixels for each step, in the order in which the network has them."""

    priors: tuple[tuple[tuple[float, float], ...], ...]
    steps: tuple[int, ...]  # pixels from cell to cell
    classes: tuple[str, ...]  # without the background, which comes first
    variances: tuple[float, float] = (0.1, 0.2)  # of centre and size
    threshold: float = 0.6
    nms: float = 0.3

    @classmethod
    def of(cls, data: dict) -> PriorDetector:
        """From the keys of a side file; KeyError for one that is missing."""
        first, second = data.get("variances", (0.1, 0.2))
        return cls(
            tuple(tuple(_size(size) for size in sizes) for sizes in data["priors"]),
            tuple(_whole(step) for step in data["steps"]),
            variances=(side_file_number(first), side_file_number(second)),
            **settings(data, 0.6, 0.3, ("priors", "steps", "variances")),
        )

    def check(self, name: str = "detector") -> PriorDetector:
        """Itself, or a KmodelError that says what is impossible."""
        if not self.steps or len(self.priors) != len(self.steps):
            raise KmodelError(
                f"{name}: {len(self.priors)} lists of priors for {len(self.steps)} steps"
            )
        numbers = [n for sizes in self.priors for size in sizes for n in size]
        numbers += [*self.steps, *self.variances]
        if not all(map(len, self.priors)) or not all(0 < n < math.inf for n in numbers):
            raise KmodelError(f"{name}: priors, steps and variances above 0 are expected")
        if not self.classes:
            raise KmodelError(f"{name}: at least one class is expected")
        return self

    def cells(self, width: int, height: int) -> list[tuple[int, int]]:
        """Columns and rows of each step for an input of this size; cells at the edge count."""
        return [(ceil_div(width, step), ceil_div(height, step)) for step in self.steps]

    def count(self, width: int, height: int) -> int:
        """Priors of a network with this input size."""
        cells = self.cells(width, height)
        return sum(w * h * len(p) for (w, h), p in zip(cells, self.priors, strict=True))

    def boxes(self, width: int, height: int) -> Floats:
        """(count, 4): centre and size of every prior as fractions, clipped to the picture.

        Rows of cells from the top, cells from the left, in a cell the priors as they are given.
        """
        found = []
        for step, sizes, (w, h) in zip(
            self.steps, self.priors, self.cells(width, height), strict=True
        ):
            y, x, _ = np.mgrid[:h, :w, : len(sizes)]
            size = np.broadcast_to(np.array(sizes), (h, w, len(sizes), 2))
            centre = (np.stack([x, y], axis=-1) + 0.5) * step
            found.append(np.concatenate([centre, size], axis=-1).reshape(-1, 4))
        return np.clip(np.concatenate(found) / (width, height, width, height), 0, 1)

    def _pair(
        self, outputs: Sequence[npt.NDArray], width: int, height: int
    ) -> tuple[npt.NDArray, npt.NDArray] | None:
        """The outputs with places and scores, or None."""
        count, columns = self.count(width, height), 1 + len(self.classes)
        if len(outputs) != 2 or not count:
            return None
        for places, scores in (tuple(outputs), tuple(outputs[::-1])):
            if places.size == 4 * count and scores.size == columns * count:
                return places, scores
        return None

    def fits(self, outputs: Sequence[npt.NDArray], width: int, height: int) -> bool:
        """Whether there are two outputs of the right sizes for this size of input."""
        return self._pair(outputs, width, height) is not None


def _size(size: float | Sequence[float]) -> tuple[float, float]:
    if isinstance(size, str):
        raise ValueError(f"a prior of {size!r} pixels")
    w, h = (size, size) if isinstance(size, int | float) else size
    return side_file_number(w), side_file_number(h)


def _whole(step: float) -> int:
    if int(side_file_number(step)) != step:
        raise ValueError(f"a step of {step} pixels")
    return int(step)


def _family(*groups: Sequence[int]) -> tuple[tuple[tuple[float, float], ...], ...]:
    return tuple(tuple(_size(n) for n in group) for group in groups)


# Ultra-Light-Fast-Generic-Face-Detector-1MB (slim and RFB, 320 x 240 and other sizes)
FACE_PRIORS = PriorDetector(
    _family((10, 16, 24), (32, 48), (64, 96), (128, 192, 256)), (8, 16, 32, 64), ("face",)
)


def decode_priors(
    outputs: Sequence[npt.NDArray], detector: PriorDetector, width: int, height: int
) -> list[Box]:
    """Boxes of a network with this input size, best first, overlaps removed.

    ``outputs``: places (4 a prior) and scores (background and classes a prior), in any order.
    Scores are taken as they are when all lie in 0..1, else through a softmax.  KmodelError when
    there are no two such outputs.
    """
    found = detector._pair(outputs, width, height)
    if found is None:
        count, columns = detector.count(width, height), 1 + len(detector.classes)
        shapes = ", ".join(str(list(output.shape)) for output in outputs)
        raise KmodelError(
            f"outputs {shapes}: these priors on {width} x {height} pixels need two, with "
            f"{count} x 4 and {count} x {columns} elements"
        )
    places, scores = (
        array.astype(np.float64).reshape(-1, n)
        for array, n in zip(found, (4, 1 + len(detector.classes)), strict=True)
    )
    if scores.min() < 0 or scores.max() > 1.001:
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores = e / e.sum(axis=1, keepdims=True)
    priors = detector.boxes(width, height)
    with np.errstate(all="ignore"):
        centre = priors[:, :2] + places[:, :2] * detector.variances[0] * priors[:, 2:]
        size = priors[:, 2:] * np.exp(places[:, 2:] * detector.variances[1])
    boxes = np.concatenate([centre, size], axis=1)
    return select(boxes, scores[:, 1:], detector.classes, detector.threshold, detector.nms)
