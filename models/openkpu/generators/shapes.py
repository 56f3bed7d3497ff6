# SPDX-License-Identifier: Apache-2.0
"""Layers of known shapes: the targets, rows of the published K210 table, two networks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.layer.vectors import VectorLayer

# (name, C, H, W, O, kernel, depthwise, pool, eight_bit)
Shape = tuple[str, int, int, int, int, int, bool, int, bool]

TARGETS: list[Shape] = [
    ("conv3x3_64_64_64x64", 64, 64, 64, 64, 3, False, 0, True),
    ("conv1x1_64_64_64x64", 64, 64, 64, 64, 1, False, 0, True),
    ("depthwise_64_64x64", 64, 64, 64, 64, 3, True, 0, True),
]
# width x height of bbs.sipeed.com/t/topic/691; 256x256 and 128x128 do not fit 2 MiB
K210_SIZES = ((4, 4), (16, 4), (16, 16), (32, 16), (32, 32), (64, 32), (64, 64), (128, 64))
K210_ROWS: list[Shape] = [
    (f"k210_{w}x{h}", 128, h, w, 128, 3, False, 0, False) for w, h in K210_SIZES
]


def chain(
    name: str, size: tuple[int, int, int], rows: Iterable[tuple[int, int, int]]
) -> list[Shape]:
    """Layers one behind the other, from a map of ``size`` (C, H, W); a row: (O, kernel, pool).

    3x3 layers behind the first are depthwise; pools 1 and 5 halve the map.
    """
    shapes, (c, h, w) = [], size
    for i, (o, kernel, pool) in enumerate(rows):
        shapes.append((f"{name}_{i:02d}", c, h, w, o, kernel, kernel == 3 and i > 0, pool, True))
        c = o
        if pool in (1, 5):
            h, w = h // 2, w // 2
    return shapes


def yolo20() -> list[Shape]:
    """A depthwise-separable 20-class yolo at 320x240."""
    rows = [(16, 3, 1), (16, 3, 0), (32, 1, 1), (32, 3, 0), (64, 1, 1), (64, 3, 0), (128, 1, 1)]
    rows += [(128, 3, 0), (256, 1, 1), (256, 3, 0), (512, 1, 9), (512, 3, 0), (1024, 1, 0)]
    rows += [(1024, 3, 0), (512, 1, 0), (125, 1, 0)]
    return chain("yolo20", (3, 240, 320), rows)


def mobilenet075() -> list[Shape]:
    """The 27 convolutions of a MobileNet of width 0.75 at 224x224.

    The KPU's convolutions have stride 1: as in published kmodels, a depthwise layer of stride 2
    computes every pixel, and the 1x1 layer behind it keeps every second one.
    """
    rows, wide = [(24, 3, 5)], 24
    pairs = [(48, 0), (96, 5), (96, 0), (192, 5), (192, 0), (384, 5), *[(384, 0)] * 5]
    for o, pool in [*pairs, (768, 5), (768, 0)]:
        rows += [(wide, 3, 0), (o, 1, pool)]
        wide = o
    return chain("mobilenet075", (3, 224, 224), rows)


SETS = {
    "targets": TARGETS,
    "k210_rows": K210_ROWS,
    "yolo20": yolo20(),
    "mobilenet075": mobilenet075(),
}


def benchmark(shape: Shape, seed: int = 1) -> VectorLayer:
    """A layer of that shape with the numbers of a compiled network."""
    name, c, h, w, o, kernel, depthwise, pool, eight_bit = shape
    return random_layer(
        np.random.default_rng(seed),
        c=c,
        h=h,
        w=w,
        o=o,
        kernel=kernel,
        depthwise=depthwise,
        pool=pool,
        eight_bit=eight_bit,
        fc=False,
        signed_in=False,
        signed_out=False,
        src=0,
        plain=True,
        case=name,
    )
