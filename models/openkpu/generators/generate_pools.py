# SPDX-License-Identifier: Apache-2.0
"""Random pooling tasks for tests and networks (docs/kpu.md 1.11)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.generators.generate import Limits
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import KINDS, MOST_KERNEL, MOST_PAD, MOST_STRIDE, PoolWindow
from openkpu.layer.vectors import VectorLayer

KERNELS = (1, 2, 2, 3, 3, 3, 4, 5, 7, 15, 16)
STRIDES = (1, 1, 2, 2, 3, 4, 5, 8, 15, 16)


def random_pool(
    rng: np.random.Generator,
    *,
    c: int | None = None,
    h: int | None = None,
    w: int | None = None,
    kind: int | None = None,
    whole: bool | None = None,
    padded: bool | None = None,
    signed_in: bool | None = None,
    signed_out: bool | None = None,
    src: int | None = None,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    limits: Limits | None = None,
    x: npt.NDArray[np.uint8] | None = None,
    case: str = "generated",
    name: str = "L00",
) -> VectorLayer:
    """A pooling task with its map and expected output; what is None is drawn, corners weighted.

    ``padded``: with padding above or left of the map, or without.

    LayerError for maps that the AI RAM does not hold.
    """
    lim = limits or Limits()
    pick = lambda value, chance: bool(rng.random() < chance) if value is None else value  # noqa: E731
    n = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    kind = int(rng.choice(list(KINDS))) if kind is None else kind
    whole, signed_in = pick(whole, 0.15), pick(signed_in, 0.15)
    signed_out = pick(signed_out, 0.35) if lim.signed else False
    signed_in = signed_in and lim.signed
    if x is not None:
        c, h, w = x.shape
    c = n(1, lim.channels) if c is None else c
    h, w = (n(1, lim.size) if size is None else size for size in (h, w))
    for _ in range(1000):
        (kh, sy, top, bottom), (kw, sx, left, right) = (_axis(rng, size) for size in (h, w))
        if padded is None or whole or bool(top or left) == padded:
            break
    if whole:
        window = None, (1, 1), (0, 0, 0, 0)
    else:
        window = (kh, kw), (sy, sx), (top, left, bottom, right)
    rows = Layout(c, h, w).rows
    out = Layout(c, *PoolWindow(*(window[0] or (h, w)), *window[1], *window[2]).out_size(h, w)).rows
    if src is None or dst is None:
        spare = max(0, ram_rows - rows - out)
        gap, before = n(0, spare // 2), n(0, spare // 2)
        at = (before, before + rows + gap) if n(0, 1) else (before + out + gap, before)
        src, dst = (at[0], at[1]) if src is dst is None else (src or 0, dst or 0)
    arg = pool_layer(
        (c, h, w),
        kind,
        *window,
        src=src,
        dst=dst,
        ram_rows=ram_rows,
        signed_in=int(signed_in),
        signed_out=int(signed_out),
        pad_value=int(rng.choice([0, 1, 127, 128, 255, n(0, 255)])),
    )
    x = _pixels(rng, arg) if x is None else x
    return map_layer(arg, x, case, name)


def on_map(rng: np.random.Generator, x: npt.NDArray[np.uint8], signed: bool) -> VectorLayer:
    """A pooling task on this map, whose bytes are signed or not.

    Its output lies behind it, until ``Network.place`` gives all maps their places.
    """
    fixed = {"signed_in": False, "signed_out": signed, "src": 0, "dst": Layout(*x.shape).rows}
    return random_pool(rng, x=x, **fixed)


def map_layer(
    arg: LayerArg, x: npt.NDArray[np.uint8], case: str = "generated", name: str = "L00"
) -> VectorLayer:
    """A task with its map and expected output; its tables are empty."""
    none = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    y = run_layer(arg, x, *none).y
    return VectorLayer(case, name, arg.encode(), arg, *none, x, y, True)


def _axis(rng: np.random.Generator, size: int) -> tuple[int, int, int, int]:
    """(kernel, stride, pad before, pad behind) of an axis of a map that fit it."""
    n = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    stride = int(rng.choice(STRIDES)) if rng.random() < 0.8 else n(1, MOST_STRIDE)
    kernel = int(rng.choice(KERNELS)) if rng.random() < 0.8 else n(1, MOST_KERNEL)
    most = min(kernel - 1, MOST_PAD)
    before, behind = (int(rng.choice([0, most, n(0, most), min(most, 1)])) for _ in range(2))
    while kernel > size + before + behind:  # less window until it fits
        kernel -= 1
        before, behind = min(before, kernel - 1), min(behind, kernel - 1)
    return kernel, stride, before, behind


def _pixels(rng: np.random.Generator, arg: LayerArg) -> npt.NDArray[np.uint8]:
    """A map of noise, sometimes of the ends of the range, sometimes nearly all alike."""
    x = rng.integers(0, 256, arg.in_shape)
    style = rng.random()
    if style < 0.3:
        x = rng.choice(np.array([0, 1, 127, 128, 254, 255]), arg.in_shape)
    elif style < 0.5:
        x = rng.integers(0, 256) ^ (rng.random(arg.in_shape) < 0.1)
    return x.astype(np.uint8)
