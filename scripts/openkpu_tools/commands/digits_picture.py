# SPDX-License-Identifier: Apache-2.0
"""The digits of a run as a picture: scans with their classes, and the causes of the cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu_tools.commands.stalls import COLOURS, WORK
from openkpu_tools.report import STALLS, LayerRecord

if TYPE_CHECKING:
    from PIL.Image import Image

DRAWN, COLUMNS = 96, 12  # scans of a picture, in a line
ZOOM, GAP, TEXT, BAR = 10, 8, 14, 18  # pixels: of a pixel of a scan; between things; of lines


def causes(records: Sequence[LayerRecord]) -> dict[str, int]:
    """Cycles of some runs of a layer by cause; their sum is the total."""
    stalls = {cause: sum((r.stalls or {}).get(cause, 0) for r in records) for cause in STALLS}
    return {WORK: sum(r.cycles or 0 for r in records) - sum(stalls.values()), **stalls}


def draw_digits(
    images: npt.NDArray[np.uint8],
    found: npt.NDArray,
    labels: npt.NDArray,
    records: Sequence[LayerRecord],
) -> Image:
    """The picture of scans (n, 1, 8, 8), 0..16, their classes, and the cycles of an inference.

    ``records``: those of all layers, image after image; without cycles there is no time line.
    """
    from PIL import Image, ImageDraw

    count = min(len(found), DRAWN)
    cell = 8 * ZOOM
    lines = ceil_div(count, COLUMNS)
    layers = len(records) // max(1, len(found))
    timed = bool(layers) and records[0].cycles is not None
    width = GAP + min(count, COLUMNS) * (cell + GAP) if count >= 6 else GAP + 6 * (cell + GAP)
    top = GAP + lines * (cell + TEXT + GAP)
    height = top + (3 * TEXT + GAP + layers * (BAR + GAP) if timed else 0)
    picture = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(picture)
    for number in range(count):
        x = GAP + number % COLUMNS * (cell + GAP)
        y = GAP + number // COLUMNS * (cell + TEXT + GAP)
        grey = 255 - images[number, 0].astype(int) * 255 // 16
        scan = Image.fromarray(grey.astype(np.uint8)).resize((cell, cell), Image.Resampling.NEAREST)
        picture.paste(scan, (x, y))
        right = int(found[number]) == int(labels[number])
        said = f"{found[number]}" if right else f"{found[number]}, is {labels[number]}"
        pen.text((x, y + cell), said, fill="black" if right else "#c00000")
    if timed:
        _time_line(pen, records, layers, (GAP, top), width - 2 * GAP)
    return picture


def _time_line(
    pen: Any, records: Sequence[LayerRecord], layers: int, at: tuple[int, int], width: int
) -> None:
    """A bar for each layer, where it begins and ends in an inference, its cycles by cause."""
    x0, y = at
    images = len(records) // layers
    spent = [causes(records[layer::layers]) for layer in range(layers)]
    total = sum(sum(one.values()) for one in spent)
    pen.text((x0, y), f"an inference: {total / images:.0f} cycles", fill="black")
    y += TEXT
    x = float(x0)
    for cause, colour in COLOURS.items():
        pen.rectangle((x, y + 3, x + 8, y + 11), fill=colour)
        pen.text((x + 12, y), cause, fill="black")
        x += 12 + pen.textlength(cause) + 12
    y += 2 * TEXT
    x = float(x0)
    for layer, one in enumerate(spent):
        begin = x
        for cause, cycles in one.items():
            wide = width * cycles / max(1, total)
            if wide:
                pen.rectangle((x, y, x + wide, y + BAR), fill=COLOURS[cause])
            x += wide
        said = f"L{layer:02d} {sum(one.values()) / images:.0f}"
        left = begin - pen.textlength(said) - 4
        pen.text((left if left > x0 else x + 4, y + 3), said, fill="black")
        y += BAR + GAP
