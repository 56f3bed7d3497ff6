# SPDX-License-Identifier: Apache-2.0
"""Random legal layers with results worth comparing: not saturated, every segment and sign in use.

Numbers are chosen as compilers choose them (docs/kpu.md 4.1) and then disturbed: weights around a
zero point, batch norm scaled to the spread of the sums, an activation table over the spread of v
with slopes of both signs, starts that are hit exactly, and sometimes out of order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import SEGMENTS, ActTable, BatchNorm, weights_to_bytes
from openkpu.arithmetic.pooling import POOL_STRIDE, pooled_size
from openkpu.layer.argument import MOST_DILATED_POOL, PARA_SIZE_MAX, LayerArg
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network

ALL_POOLS = tuple(POOL_STRIDE)
LOWEST = -(1 << 35)


@dataclasses.dataclass(frozen=True)
class Limits:
    """What random choices may reach when a caller leaves them open."""

    channels: int = 24  # input and output channels
    size: int = 40  # width and height
    pools: tuple[int, ...] = ALL_POOLS
    signed: bool = True  # signed pixels and outputs
    fully_connected: bool = True
    sixteen_bit: bool = True
    dilation: int = 1  # largest distance of the taps of a 3x3 window: that of the device

    def draw_dilation(self, rng: np.random.Generator, kernel: int, pool: int) -> int:
        """A distance for a layer of this kernel and pool (docs/kpu.md 1.16), mostly 1; where there
        is nothing to choose no number is drawn."""
        if self.dilation == 1 or kernel != 3 or pool > MOST_DILATED_POOL:
            return 1
        return int(rng.integers(2, self.dilation + 1)) if rng.random() < 0.3 else 1


def random_layer(
    rng: np.random.Generator,
    *,
    c: int | None = None,
    h: int | None = None,
    w: int | None = None,
    o: int | None = None,
    kernel: int | None = None,
    pool: int | None = None,
    depthwise: bool | None = None,
    fc: bool | None = None,
    signed_in: bool | None = None,
    signed_out: bool | None = None,
    eight_bit: bool | None = None,
    per_load: int | None = None,
    dilation: int | None = None,
    src: int | None = None,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    limits: Limits | None = None,
    rounding: str = "nncase",
    plain: bool = False,
    x: npt.NDArray[np.uint8] | None = None,
    case: str = "generated",
    name: str = "L00",
) -> VectorLayer:
    """A layer with its tables, input and expected output; what is None is drawn from ``limits``.

    ``plain`` leaves the disturbances out (ordered segments, positive multipliers): the shape of a
    compiled network, for benchmarks.  ``x`` is the input map when it is not to be drawn.  Input
    and output maps never overlap in AI RAM.
    """
    lim = limits or Limits()
    if x is not None:
        c, h, w = x.shape
        if depthwise:
            o = c

    def draw(value: bool | None, chance: float, allowed: bool = True) -> bool:
        hit = bool(rng.random() < chance)
        return value if value is not None else hit and allowed

    fc = draw(fc, 0.1, lim.fully_connected and not depthwise and kernel != 3 and not pool)
    depthwise = draw(depthwise, 0.25, not fc and (o is None or c is None or o == c))
    signed_in, signed_out = draw(signed_in, 0.3, lim.signed), draw(signed_out, 0.3, lim.signed)
    sixteen = draw(None if eight_bit is None else not eight_bit, 0.25, lim.sixteen_bit)
    if kernel is None:
        kernel = 1 if fc else int(rng.choice([1, 3, 3]))
    if pool is None:
        pool = 0 if fc else int(rng.choice(lim.pools))
    least = POOL_STRIDE[pool]
    most = max(least, min(lim.size, 10) if fc else lim.size)  # a vector of a few thousand at most
    h = int(rng.integers(least, most + 1)) if h is None else h
    w = int(rng.integers(least, most + 1)) if w is None else w
    c = int(rng.integers(1, lim.channels + 1)) if c is None else c
    if o is None:
        o = c if depthwise else int(rng.integers(1, lim.channels + 1))
    if depthwise:
        c = o
    dilation = lim.draw_dilation(rng, kernel, pool) if dilation is None else dilation
    src, dst = _addresses(rng, (c, h, w), (o, h, w), fc, pool, src, dst, ram_rows)
    if per_load is None and not plain and not depthwise and rng.random() < 0.5:
        one = (c * h * w if fc else c * kernel * kernel) * (2 if sixteen else 1)
        per_load = max(ceil_div(o, 64), int(rng.integers(1, min(o, PARA_SIZE_MAX // one) + 1)))

    zero = 128 if not sixteen else 32768
    shr_x, shr_w = (0, 0) if plain else (int(rng.integers(0, 16)) for _ in range(2))
    shr_x = min(shr_x, 15 if not sixteen else 7)  # arg_x is a zero point << shr_x in 24 bits
    pad = int(rng.integers(0, 256))
    zero_in = 0 if signed_in else pad
    # arg_w is a small zero point << shr_w in 24 bits; beyond that it means little
    arg_w = -(zero_in << shr_w)
    arg = LayerArg.make(
        c,
        h,
        w,
        o,
        kernel=kernel,
        pool=pool,
        depthwise=depthwise,
        fc=fc,
        eight_bit=not sixteen,
        per_load=per_load,
        dilation=dilation,
        src=src,
        dst=dst,
        ram_rows=ram_rows,
        signed_in=int(signed_in),
        signed_out=int(signed_out),
        pad_value=pad,
        arg_x=-(zero << shr_x) + (0 if plain else int(rng.integers(0, 1 << shr_x))),
        shr_x=shr_x,
        arg_w=arg_w,
        shr_w=shr_w,
    )
    arg = arg.replace(arg_add=arg.taps // arg.add_count * zero * zero_in)
    weights = _weights(rng, arg, sixteen)
    x = _pixels(rng, arg, zero_in) if x is None else x
    raw = weights_to_bytes(weights, not sixteen)
    bn, act = random_tables(rng, arg, x, raw, not sixteen, plain)
    y = run_layer(arg, x, raw, bn, act, eight_bit=not sixteen, rounding=rounding).y
    return VectorLayer(case, name, arg.encode(), arg, raw, bn, act, x, y, not sixteen)


def random_network(
    rng: np.random.Generator,
    *,
    shape: tuple[int, ...] = (3, 12, 18),
    layers: int = 4,
    fc_last: bool = True,
    eight_bit: bool = True,
    limits: Limits | None = None,
    two_maps: Callable[..., VectorLayer] | None = None,
    one_map: Callable[..., VectorLayer] | None = None,
) -> tuple[Network, npt.NDArray[np.uint8]]:
    """(network, an input map): random layers, each made for what the one before gives.

    ``two_maps`` (generate_tasks.on_maps) makes some of them element-wise ones, ``one_map``
    (generate_pools.on_map) some of them pooling tasks.

    The last one is fully connected when ``fc_last``; a signed output is read as signed.
    """
    lim = dataclasses.replace(limits or Limits(), fully_connected=False)
    x = first = rng.integers(0, 256, shape).astype(np.uint8)
    network, signed = Network(eight_bit=eight_bit), False
    maps: list[npt.NDArray[np.uint8]] = [first]
    for i in range(layers):
        fc = fc_last and i == layers - 1
        if two_maps and not fc and rng.random() < 0.4:
            like = [number for number, y in enumerate(maps) if y.shape == x.shape]
            second = int(rng.choice(like))
            layer = two_maps(rng, x, maps[second], signed, eight_bit)
            own = second - 1 if layer.arg.two_maps else None
            network.add(layer.arg, layer.weights, layer.bn, layer.act, own)
            x, signed = layer.y, bool(layer.arg.signed_out)
            maps.append(x)
            continue
        if one_map and not fc and rng.random() < 0.25:
            layer = one_map(rng, x, signed)
            network.add(layer.arg, layer.weights, layer.bn, layer.act)
            x = layer.y
            maps.append(x)
            continue
        fits = tuple(p for p in lim.pools if POOL_STRIDE[p] <= min(x.shape[1:]))
        layer = random_layer(
            rng,
            x=x,
            fc=fc,
            pool=0 if fc else int(rng.choice(fits)),
            kernel=1 if fc else None,
            signed_in=signed,
            eight_bit=eight_bit,
            limits=lim,
        )
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
        maps.append(x)
    network.place()
    network.validate()
    return network, first


def _addresses(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    conv: tuple[int, int, int],
    fc: bool,
    pool: int,
    src: int | None,
    dst: int | None,
    ram_rows: int,
) -> tuple[int, int]:
    """Rows of input and output map: drawn apart from each other where not given."""
    size = (1, 1) if fc else pooled_size(pool, *conv[1:])
    need_in, need_out = Layout(*shape).rows, Layout(conv[0], *size).rows
    spare = max(0, ram_rows - need_in - need_out)
    gap = int(rng.integers(0, spare // 2 + 1))
    if src is None and dst is None:
        first = int(rng.integers(0, spare // 2 + 1))
        if rng.random() < 0.5:
            return first, first + need_in + gap
        return first + need_out + gap, first
    if src is None:
        assert dst is not None
        src = dst + need_out if dst + need_out + need_in <= ram_rows else dst - need_in
    if dst is None:
        dst = src + need_in if src + need_in + need_out <= ram_rows else src - need_out
    return src, dst


def _weights(rng: np.random.Generator, arg: LayerArg, sixteen: bool) -> npt.NDArray[np.int64]:
    """Unsigned weights around their zero point, with both ends of the range in."""
    top = 65535 if sixteen else 255
    values = rng.normal((top + 1) / 2, top / 5, arg.weight_count)
    weights = np.clip(np.rint(values), 0, top).astype(np.int64)
    weights[rng.random(weights.size) < 0.01] = top
    weights[rng.random(weights.size) < 0.01] = 0
    return weights


def _pixels(rng: np.random.Generator, arg: LayerArg, zero_in: int) -> npt.NDArray[np.uint8]:
    """A map with some structure: noise, a gradient, and zeros in a third of the layers."""
    x = rng.integers(0, 256, arg.in_shape)
    if rng.random() < 0.5:
        x = (x >> 2) + np.arange(arg.i_row_wid) * 3 + np.arange(arg.i_col_high)[:, None] * 5
    if rng.random() < 0.33:
        x[rng.random(x.shape) < 0.4] = zero_in
    return (x & 0xFF).astype(np.uint8)


def random_tables(
    rng: np.random.Generator,
    arg: LayerArg,
    x: npt.NDArray[np.uint8],
    raw: npt.NDArray[np.uint8],
    eight_bit: bool,
    plain: bool,
    x2: npt.NDArray[np.uint8] | None = None,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """(batch-norm words, activation words) for the spread of a layer's sums."""
    bn = _batch_norm(rng, arg, x, x2, raw, eight_bit, plain)
    return bn, _activation(rng, arg, x, x2, raw, bn, eight_bit, plain)


def _batch_norm(
    rng: np.random.Generator,
    arg: LayerArg,
    x: npt.NDArray[np.uint8],
    x2: npt.NDArray[np.uint8] | None,
    raw: npt.NDArray[np.uint8],
    eight_bit: bool,
    plain: bool,
) -> npt.NDArray[np.uint64]:
    """Batch norm that brings the sums of every channel to a spread of about 2^20."""
    count = arg.o_ch_num
    unit = BatchNorm.make(np.ones(count), 0, 0).pack()
    some = ActTable.make(LOWEST, 0, 0, 0).pack()
    alu = run_layer(arg, x, raw, unit, some, x2=x2, eight_bit=eight_bit, debug=True).alu
    alu = alu.reshape(count, -1).astype(np.float64)
    spread = np.maximum(alu.std(axis=1), np.abs(alu).mean(axis=1) / 64 + 1)
    shift = rng.integers(4, 16, count)
    mul = (1 << rng.integers(16, 21)) / spread * 2.0**shift * rng.uniform(0.5, 1.5, count)
    if not plain:
        mul *= np.where(rng.random(count) < 0.15, -1, 1)
    limit = (1 << 23) - 1
    mul = np.clip(np.rint(mul), -limit, limit)
    mul[mul == 0] = 1
    centre = alu.mean(axis=1) * mul / 2.0**shift
    add = np.clip(-centre + rng.normal(0, 2**16, count), -(1 << 31), (1 << 31) - 1)
    return BatchNorm.make(mul.astype(np.int64), shift, np.rint(add).astype(np.int64)).pack()


def _activation(
    rng: np.random.Generator,
    arg: LayerArg,
    x: npt.NDArray[np.uint8],
    x2: npt.NDArray[np.uint8] | None,
    raw: npt.NDArray[np.uint8],
    bn: npt.NDArray[np.uint64],
    eight_bit: bool,
    plain: bool,
) -> npt.NDArray[np.uint64]:
    """A table whose segments cover the spread of v and spread the results over the bytes."""
    some = ActTable.make(LOWEST, 0, 0, 0).pack()
    v = run_layer(arg, x, raw, bn, some, x2=x2, eight_bit=eight_bit, debug=True).v.reshape(-1)
    bottom = -128 if arg.signed_out else 0
    quantiles = np.quantile(v, np.linspace(0.02, 0.95, SEGMENTS - 1)).astype(np.int64)
    start = np.concatenate([[LOWEST], quantiles])
    if not plain and rng.random() < 0.7:  # some starts are values that occur: v == start
        hit = rng.integers(1, SEGMENTS, 4)
        start[hit] = rng.choice(v, 4)
        start[1:].sort()
    low, high = (float(q) for q in np.quantile(v, [0.01, 0.99]))
    slope = 230 / max(high - low, 1.0)
    target = bottom + 12 + (start - low) * slope
    if not plain:
        target += rng.normal(0, 12, SEGMENTS)
    target[0] = bottom + 12
    add = np.clip(np.rint(target), bottom, bottom + 255).astype(np.int64)
    factor = np.ones(SEGMENTS) if plain else rng.uniform(0.3, 1.6, SEGMENTS)
    if not plain:
        factor *= np.where(rng.random(SEGMENTS) < 0.2, -1, 1)
    mul, shift = _fixed_point(slope * factor, rng, plain)
    mul[0], shift[0] = 0, 0
    table = ActTable.make(start, mul, shift, add)
    if not plain and rng.random() < 0.3:  # out of order: legal, and searched from the top
        order = np.concatenate([[0], 1 + rng.permutation(SEGMENTS - 1)])
        table = ActTable(*(getattr(table, f)[order] for f in ("start", "mul", "shift", "add")))
    return table.pack()


def _fixed_point(
    slope: npt.NDArray[np.float64], rng: np.random.Generator, plain: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(mul, shift) with mul / 2^shift about ``slope``: 15 bits, or few (so that ties occur)."""
    bits = 15 if plain else int(rng.choice([3, 8, 15]))
    shift = np.clip(bits - 1 - np.floor(np.log2(np.abs(slope))), 0, 43).astype(np.int64)
    limit = (1 << 15) - 1
    return np.clip(np.rint(slope * 2.0**shift), -limit, limit).astype(np.int64), shift
