# SPDX-License-Identifier: Apache-2.0
"""Random element-wise layers with results worth comparing (docs/kpu.md 1.9)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.pooling import POOL_STRIDE, pooled_size
from openkpu.generators.generate import Limits, random_tables
from openkpu.layer.argument import LayerArg
from openkpu.layer.elementwise import MULTIPLY, WEIGHTS, A, B
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.vectors import VectorLayer


def random_elementwise(
    rng: np.random.Generator,
    *,
    c: int | None = None,
    h: int | None = None,
    w: int | None = None,
    op: int | None = None,
    one: bool | None = None,
    pool: int | None = None,
    signed_in: bool | None = None,
    signed_out: bool | None = None,
    eight_bit: bool | None = None,
    src: int | None = None,
    src2: int | None = None,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    limits: Limits | None = None,
    rounding: str = "nncase",
    plain: bool = False,
    x: npt.NDArray[np.uint8] | None = None,
    x2: npt.NDArray[np.uint8] | None = None,
    case: str = "generated",
    name: str = "L00",
) -> VectorLayer:
    """An element-wise layer with its tables, maps and expected output; what is None is drawn.

    The maps lie apart, unless addresses are given (all of them, or none); ``x`` and ``x2`` are
    taken where they are not to be drawn.  LayerError for sizes that leave nothing, or maps that the
    AI RAM does not hold.
    """
    lim = limits or Limits()
    pick = lambda value, chance: bool(rng.random() < chance) if value is None else value  # noqa: E731
    n = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    op = n(0, 3) if op is None else op
    one, signed_in, signed_out = pick(one, 0.2), pick(signed_in, 0.25), pick(signed_out, 0.3)
    eight_bit = pick(eight_bit, 0.7 if lim.sixteen_bit else 1.0)
    pool = (0 if rng.random() < 0.5 else int(rng.choice(lim.pools))) if pool is None else pool
    least = POOL_STRIDE[pool]
    if x is not None:
        c, h, w = x.shape
    c = n(1, lim.channels) if c is None else c
    h = n(least, max(least, lim.size)) if h is None else h
    w = n(least, max(least, lim.size)) if w is None else w
    rows = Layout(c, h, w).rows
    out = Layout(c, *pooled_size(pool, h, w)).rows
    places = _places(rng, [rows, rows, out], ram_rows)
    places = [
        p if given is None else given for p, given in zip(places, (src, src2, dst), strict=True)
    ]
    arg = LayerArg.make(
        *(c, h, w),
        kernel=3,
        depthwise=True,
        pool=pool,
        eight_bit=eight_bit,
        src=places[0],
        dst=places[2],
        ram_rows=ram_rows,
        elementwise=1,
        ew_op=op,
        ew_one=int(one),
        image_src2_addr=0 if one else places[1],
        signed_in=int(signed_in),
        signed_out=int(signed_out),
        pad_value=n(0, 255),
        arg_x=0 if op > MULTIPLY else -n(0, 255 if eight_bit else 65535),
        arg_w=-n(0, 255),
        shr_w=n(0, 15),
        arg_add=n(-(1 << 20), 1 << 20),
    )
    weights = _weights(rng, c, eight_bit)
    x = _pixels(rng, arg) if x is None else x
    x2 = None if one else _pixels(rng, arg) if x2 is None else x2
    bn, act = random_tables(rng, arg, x, weights, eight_bit, plain, x2=x2)
    y = run_layer(arg, x, weights, bn, act, x2=x2, eight_bit=eight_bit, rounding=rounding).y
    return VectorLayer(case, name, arg.encode(), arg, weights, bn, act, x, y, eight_bit, x2)


def on_maps(
    rng: np.random.Generator,
    x: npt.NDArray[np.uint8],
    x2: npt.NDArray[np.uint8],
    signed_in: bool,
    eight_bit: bool,
) -> VectorLayer:
    """An element-wise layer without a pool on these maps, or on the first of them.

    Its output lies behind them, until ``Network.place`` gives all maps their places.
    """
    place = Layout(*x.shape).rows
    return random_elementwise(
        rng,
        x=x,
        x2=x2,
        pool=0,
        src=0,
        src2=0,
        dst=place,
        signed_in=signed_in,
        eight_bit=eight_bit,
    )


def _places(rng: np.random.Generator, rows: list[int], ram_rows: int) -> list[int]:
    """First rows of maps, in a random order with random gaps between them."""
    spare = max(0, ram_rows - sum(rows))
    cuts = sorted(int(rng.integers(0, spare + 1)) for _ in rows)
    places, at = [0] * len(rows), 0
    for number, cut in zip(rng.permutation(len(rows)), cuts, strict=True):
        places[number] = at + cut
        at += rows[number]
    return places


def _weights(rng: np.random.Generator, c: int, eight_bit: bool) -> npt.NDArray[np.uint8]:
    """Bytes of nine weights a channel: scales of both operands, and noise in the rest."""
    top = 255 if eight_bit else 65535
    kernel = rng.integers(0, top + 1, (c, WEIGHTS))
    for at in (A, B):
        corner = rng.random(c)
        kernel[corner < 0.1, at] = 0
        kernel[corner > 0.9, at] = top
    return kernel.astype("<u1" if eight_bit else "<u2").reshape(-1).view(np.uint8)


def _pixels(rng: np.random.Generator, arg: LayerArg) -> npt.NDArray[np.uint8]:
    """A map of noise, with zeros in half of the layers."""
    x = rng.integers(0, 256, arg.in_shape)
    if rng.random() < 0.5:
        x[rng.random(x.shape) < 0.3] = 0
    return x.astype(np.uint8)
