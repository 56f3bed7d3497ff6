# SPDX-License-Identifier: Apache-2.0
"""Random layers with operands of an offset and sums of 32 bits (docs/kpu.md 1.10)."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import BatchNorm
from openkpu.arithmetic.words import BYTES
from openkpu.generators.generate import Limits, random_layer
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.vectors import VectorLayer
from openkpu.products.matmul import tables


def random_product(
    rng: np.random.Generator,
    *,
    c: int | None = None,
    h: int | None = None,
    w: int | None = None,
    o: int | None = None,
    kernel: int | None = None,
    exact: bool | None = None,
    signed_a: bool | None = None,
    signed_b: bool | None = None,
    dilation: int | None = None,
    src: int | None = None,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    limits: Limits | None = None,
    rounding: str = "nncase",
    x: npt.NDArray[np.uint8] | None = None,
    case: str = "generated",
    name: str = "L00",
) -> VectorLayer:
    """A layer with ``out32``, its tables, input and expected output; what is None is drawn.

    ``exact``: arguments and tables of a product; otherwise any, as batch norm acts on the words.
    ``signed_a``, ``signed_b``: weights, pixels are taken XOR 0x80.
    The maps lie apart, unless both addresses are given.  LayerError where the AI RAM does not
    hold them.
    """
    lim = limits or Limits()
    n = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    if x is not None:
        c, h, w = x.shape
    c = n(1, lim.channels) if c is None else c
    o = n(1, lim.channels) if o is None else o
    h = n(1, lim.size) if h is None else h
    w = n(1, lim.size) if w is None else w
    kernel = (1 if rng.random() < 0.8 else 3) if kernel is None else kernel
    dilation = lim.draw_dilation(rng, kernel, 0) if dilation is None else dilation
    exact = bool(rng.random() < 0.6) if exact is None else exact
    rows = Layout(c, h, w).rows, Layout(BYTES * o, h, w).rows
    spare = max(0, ram_rows - sum(rows))
    cuts = sorted((n(0, spare), n(0, spare)))
    first = n(0, 1)  # which map lies lower
    places = [0, 0]
    places[first], places[1 - first] = cuts[0], cuts[1] + rows[first]
    a, b = (n(0, 1) if signed is None else int(signed) for signed in (signed_a, signed_b))
    fields = {"in_xor": b, "w_xor": a, "pad_value": n(0, 255)}
    fields |= {"arg_x": -128 * a, "arg_w": -128 * b, "arg_add": 16384 * a * b * kernel**2}
    if not exact:
        top = (1 << 23) - 1
        fields |= {"arg_x": n(-top, top), "arg_w": n(-top, top), "arg_add": n(-(1 << 34), 1 << 34)}
        fields |= {
            "shr_x": n(0, 15),
            "shr_w": n(0, 15),
            "signed_in": n(0, 1),
            "signed_out": n(0, 1),
        }
    arg = LayerArg.make(
        *(c, h, w, o),
        kernel=kernel,
        src=places[0] if src is None else src,
        dst=places[1] if dst is None else dst,
        ram_rows=ram_rows,
        out32=1,
        dilation=dilation,
        **fields,
    )
    bn, act = tables(o)
    if not exact:
        mul = rng.choice([1, -1, (1 << 23) - 1, -(1 << 23), 12345], o)
        add = rng.choice([0, -(1 << 31), (1 << 31) - 1, 77], o)
        bn = BatchNorm.make(mul, rng.integers(0, 16, o), add).pack()
        act = rng.integers(0, 1 << 63, act.shape).astype(np.uint64)
    weights = corners(rng, arg.weight_count)
    x = corners(rng, c * h * w).reshape(c, h, w) if x is None else x
    y = run_layer(arg, x, weights, bn, act, rounding=rounding).y
    return VectorLayer(case, name, arg.encode(), arg, weights, bn, act, x, y, True)


def with_offset(rng: np.random.Generator, layer: VectorLayer) -> VectorLayer:
    """The same layer of bytes from operands XOR 0x80: input, weights or both (8-bit weights)."""
    way = int(rng.integers(1, 4)) if layer.eight_bit else 1
    arg = layer.arg.replace(in_xor=way & 1, w_xor=way >> 1)
    change = {}
    if arg.in_xor:
        change["x"] = layer.x ^ np.uint8(0x80)
        change["x2"] = None if layer.x2 is None else layer.x2 ^ np.uint8(0x80)
    if arg.w_xor:
        change["weights"] = layer.weights ^ np.uint8(0x80)
    return dataclasses.replace(layer, arg=arg, words=arg.encode(), **change)


def random_offset(
    rng: np.random.Generator, *, limits: Limits | None = None, case: str = "generated"
) -> VectorLayer:
    """Any layer of bytes, from operands XOR 0x80."""
    return with_offset(rng, random_layer(rng, limits=limits, case=case))


def corners(rng: np.random.Generator, count: int) -> npt.NDArray[np.uint8]:
    """Bytes of noise, with corners of both kinds of byte among them, or of corners alone."""
    share = rng.choice([0.1, 0.5, 1.0])
    corner = rng.choice(np.array([0, 1, 127, 128, 129, 255]), count)
    noise = rng.integers(0, 256, count)
    return np.where(rng.random(count) < share, corner, noise).astype(np.uint8)
