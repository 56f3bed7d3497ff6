# SPDX-License-Identifier: Apache-2.0
"""What a network says: the classes of a classifier, the range of a map; in words and as a picture.

A classifier's result is one pixel of two or more channels. The picture has a line for each input
map: the map, and the five largest classes as bars, or the channels of the result in grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from openkpu.network.network import Network

if TYPE_CHECKING:
    from PIL.Image import Image

TOP = 5  # classes
DRAWN = 32  # input maps of a picture
TILES = 8  # channels of a map that are drawn
CELL, GAP, BAR = 96, 8, 240  # pixels of the picture


def result_values(network: Network, stored: npt.NDArray[np.uint8]) -> npt.NDArray:
    """(C, h, w) of int8, uint8 or int32 from the bytes (n,) of a result in storage."""
    c, h, w = network.out_shape
    found = np.ascontiguousarray(stored.reshape(-1)).astype(np.uint8)
    if network.words:
        return found.view("<i4").reshape(c // 4, h, w)
    kind = np.int8 if network.layers[-1].signed_out else np.uint8
    return found.view(kind).reshape(c, h, w)


def is_classes(y: npt.NDArray) -> bool:
    """Is it one value for each of several classes?"""
    return y.shape[0] > 1 and y.shape[1:] == (1, 1)


def top(y: npt.NDArray) -> list[tuple[int, int]]:
    """(class, value) of the largest values, the largest one first."""
    flat = y.reshape(-1).astype(np.int64)
    order = np.argsort(-flat, kind="stable")[:TOP]
    return [(int(number), int(flat[number])) for number in order]


def result_line(y: npt.NDArray) -> str:
    """A result in a few words."""
    if is_classes(y):
        return "classes " + ", ".join(f"{number}: {value}" for number, value in top(y))
    return f"{y.dtype} {list(y.shape)}: {y.min()} .. {y.max()}"


def draw_results(images: npt.NDArray[np.uint8], results: Sequence[npt.NDArray]) -> Image:
    """The picture of the first input maps (n, C, H, W) and their results."""
    from PIL import Image, ImageDraw

    count = min(len(results), DRAWN)
    tiles = min(TILES, results[0].shape[0])
    width = BAR if is_classes(results[0]) else tiles * (CELL + GAP)
    size = CELL + 3 * GAP + width, count * (CELL + GAP) + GAP
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    for number in range(count):
        x, y = CELL + 2 * GAP, number * (CELL + GAP) + GAP
        picture.paste(_tile(images[number]), (GAP, y))
        found = results[number]
        if not is_classes(found):
            for channel in range(tiles):
                picture.paste(_tile(found[channel : channel + 1]), (x + channel * (CELL + GAP), y))
            continue
        best = top(found)
        least, most = int(found.min()), best[0][1]
        for place, (name, value) in enumerate(best):
            at = y + place * CELL // TOP
            length = round((BAR - 90) * (value - least) / max(1, most - least))
            pen.rectangle((x + 85, at + 3, x + 86 + length, at + 14), fill="#4c72b0")
            pen.text((x, at + 2), f"{name}: {value}", fill="black")
    return picture


def _tile(x: npt.NDArray) -> Image:
    """A map (C, H, W) as a square of CELL pixels: three channels in colour, else the first one."""
    from PIL import Image

    least, most = float(x.min()), float(x.max())
    if x.dtype == np.uint8:
        least, most = 0.0, 255.0
    grey = np.rint((x - least) * (255 / max(1.0, most - least))).astype(np.uint8)
    pixels = grey.transpose(1, 2, 0) if len(grey) == 3 else grey[0]
    return Image.fromarray(pixels).convert("RGB").resize((CELL, CELL), Image.Resampling.NEAREST)
