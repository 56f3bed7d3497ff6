# SPDX-License-Identifier: Apache-2.0
"""Random products of float16 matrices as layers (docs/kpu.md 1.12)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic import fp16
from openkpu.generators.generate import Limits
from openkpu.layer import fp16_tasks
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.vectors import VectorLayer
from openkpu.products.matmul_fp16 import NONE, layer_of

LEAST = 2.0**-24


def fp16_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float16]:
    """float16 of a kind: near one, any bits, finite bits, subnormals, near the top, few values."""
    kind = int(rng.integers(0, 6))
    if kind == 0:
        return rng.normal(0, 1, shape).astype(np.float16)
    bits = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    if kind == 1:
        return bits.view(np.float16)
    if kind == 2:
        return np.where(bits & 0x7C00 == 0x7C00, bits ^ 0x4000, bits).view(np.float16)
    if kind == 3:
        return (rng.integers(-1023, 1024, shape) * LEAST).astype(np.float16)
    if kind == 4:
        return (rng.choice([-1.0, 1.0], shape) * (65504 - 32 * rng.integers(0, 9, shape))).astype(
            np.float16
        )
    few = [0.0, -0.0, 1.0, -1.0, LEAST, -LEAST, 65504.0, -65504.0, 0.5, 2048.0, np.inf, np.nan]
    share = np.array([4, 1, 9, 9, 3, 3, 3, 3, 3, 3, 0.01, 0.01])
    return rng.choice(np.array(few), shape, p=share / share.sum()).astype(np.float16)


def random_fp16(
    rng: np.random.Generator,
    *,
    m: int | None = None,
    k: int | None = None,
    n: int | None = None,
    wide: bool | None = None,
    eight_bit: bool | None = None,
    x: npt.NDArray[np.uint8] | None = None,
    src: int | None = None,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    limits: Limits | None = None,
    case: str = "generated",
    name: str = "L00",
) -> VectorLayer:
    """A product with its operands and result; arguments that are None are drawn.

    ``x``: a map (K, h, w) of bytes that are used as B, of a shape that ``fits_product`` accepts.
    ``eight_bit``: the mode in which the layer runs; it does not affect the result.  The maps do not
    overlap, unless both addresses are given.  LayerError if the AI RAM does not hold them.
    """
    lim = limits or Limits()
    draw = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    m = draw(1, lim.channels) if m is None else m
    wide = bool(rng.random() < 0.5) if wide is None else wide
    if x is None:
        depth = draw(1, lim.channels) if k is None else k
        n = (32 * draw(1, 3) if rng.random() < 0.4 else draw(1, 100)) if n is None else n
        arg = layer_of(m, depth, n, wide=wide, ram_rows=ram_rows)
        x = fp16_numbers(rng, (depth, n)).view(np.uint8).reshape(arg.in_shape)
    else:
        depth, h, w = x.shape
        oh, ow = fp16.out_sizes(h, w, wide)[0 if w <= 480 else -1]
        arg = LayerArg.make(
            *(depth, h, w, m), eight_bit=False, ram_rows=ram_rows, src=0, dst=Layout(*x.shape).rows,
            fp16=1, fp32=int(wide), o_col_high=oh, o_row_wid=ow,
        )  # fmt: skip
    rows = arg.in_layout.rows, arg.out_layout.rows
    spare = max(0, ram_rows - sum(rows))
    cuts = sorted((draw(0, spare), draw(0, spare)))
    first = draw(0, 1)  # which map lies lower
    places = [0, 0]
    places[first], places[1 - first] = cuts[0], cuts[1] + rows[first]
    arg = arg.replace(
        image_src_addr=places[0] if src is None else src,
        image_dst_addr=places[1] if dst is None else dst,
    )
    a = fp16_numbers(rng, (m, depth))
    weights = a.view(np.uint8).reshape(-1)
    y = fp16_tasks.task(arg, x, weights)
    return VectorLayer(case, name, arg.encode(), arg, weights, NONE, NONE, x, y, bool(eight_bit))


def fits_product(shape: tuple[int, int, int]) -> bool:
    """Can a map of this shape be B of a product, with results of either kind?"""
    _, h, w = shape
    if w % 2 or (h > 1 and w % 64) or h > 256:
        return False
    return w <= 480 or not w % 64
