# SPDX-License-Identifier: Apache-2.0
"""The golden model of one layer: docs/kpu.md section 1 to the last bit, vectorised numpy.

Convolution -> zero-point terms -> batch norm -> activation -> pooling.  The extensions:
``signed_in`` (signed pixels, only those above 0 take part), ``signed_out`` (signed activation
bytes), ``fc`` (fully connected), ``in_xor`` and ``w_xor`` (operands XOR 0x80), ``out32`` (v leaves
in four bytes).  ``alu`` and ``v`` are reduced to signed 36 bits, as in the device; no legal model
gets there.

Ranges in int64: s < 2^53 (see ``conv``); |arg_x*sx| <= 2^23 * 2^37 (a fully connected vector of
2^29 pixels); |arg_w*sw| <= 2^23 * 2^30 in a convolution; |arg_add*n| <= 2^49; |alu*mul| <= 2^35 *
2^23; the activation product <= 2^51.  Only arg_w*sw of an absurdly long fully connected vector
could leave int64; its low 64 bits still give the right 36 bits after a shift of at most 15.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import ActTable, BatchNorm, weights_from_bytes
from openkpu.arithmetic.pooling import PICKS, pool_map
from openkpu.arithmetic.words import planes_of
from openkpu.layer import fp16_tasks
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.conv import count_macs, kept_pixels, needed_macs, window_blocks
from openkpu.layer.pool_tasks import pool_task

WRAP_BITS = 36


@dataclasses.dataclass
class LayerResult:
    """What a layer gives."""

    # (O, oh, ow) output bytes (two's complement when signed_out); with out32 (4 * O, oh, ow)
    y: npt.NDArray[np.uint8]
    macs: int  # multiplications that the layer needs (pools 5, 6, 7: of kept pixels only)
    macs_gated: int  # those of them whose pixel, padding included, is <= 0


@dataclasses.dataclass
class DebugResult(LayerResult):
    """What a layer gives, with its sums."""

    alu: npt.NDArray[np.int64]  # (O, rows, columns) of kept pixels
    v: npt.NDArray[np.int64]  # the same after batch norm


def wrap36(value: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Signed 36-bit value with the same low bits; works in place."""
    value <<= 64 - WRAP_BITS
    value >>= 64 - WRAP_BITS
    return value


@overload
def run_layer(
    arg: LayerArg,
    x: npt.NDArray,
    weights: npt.NDArray,
    bn: npt.NDArray[np.uint64],
    act: npt.NDArray[np.uint64],
    *,
    x2: npt.NDArray | None = None,
    eight_bit: bool = True,
    rounding: str = "nncase",
    debug: Literal[True],
) -> DebugResult: ...


@overload
def run_layer(
    arg: LayerArg,
    x: npt.NDArray,
    weights: npt.NDArray,
    bn: npt.NDArray[np.uint64],
    act: npt.NDArray[np.uint64],
    *,
    x2: npt.NDArray | None = None,
    eight_bit: bool = True,
    rounding: str = "nncase",
    debug: Literal[False] = False,
) -> LayerResult: ...


def run_layer(
    arg: LayerArg,
    x: npt.NDArray,
    weights: npt.NDArray,
    bn: npt.NDArray[np.uint64],
    act: npt.NDArray[np.uint64],
    *,
    x2: npt.NDArray | None = None,
    eight_bit: bool = True,
    rounding: str = "nncase",
    debug: bool = False,
) -> LayerResult:
    """Run one layer.

    x: (C, H, W) bytes (uint8, or int8 for signed pixels), x2 the second map of an element-wise
    layer.  weights: bytes in memory order (uint8;
    a uint16 array is taken too in 16-bit mode).  bn: O words.  act: 18 words.  A pooling task
    has empty tables and no multiplications, a product of float16 weights alone.  ``debug``: a
    DebugResult, which has the sums.  Raises LayerError for an illegal argument, ValueError for
    tables or maps of the wrong size, and for ``debug`` of a task or product, which has no sums.
    """
    arg.validate(strict=False, eight_bit=eight_bit)
    x = np.asarray(x)
    for pixels in (x,) if x2 is None else (x, np.asarray(x2)):
        if pixels.dtype not in (np.uint8, np.int8) or pixels.shape != arg.in_shape:
            found = f"{pixels.dtype}{pixels.shape}"
            raise ValueError(f"input map is {found}, the layer takes bytes {arg.in_shape}")
    weights = np.asarray(weights)
    if weights.dtype == np.uint8:
        size = arg.weight_size(eight_bit)
        if weights.size != arg.weight_count * size:
            raise LayerError(
                "BAD_WEIGHTS",
                f"{weights.size} bytes of weights for {arg.weight_count} {8 * size}-bit weights",
            )
        weights = weights_from_bytes(weights, size == 1)
    elif (
        weights.dtype != np.uint16
        or arg.weight_size(eight_bit) == 1
        or weights.size != arg.weight_count
    ):
        raise ValueError(f"weights are {weights.dtype}[{weights.size}]")
    bn = np.asarray(bn, dtype=np.uint64).reshape(-1)
    if bn.size != arg.table_words[0]:
        raise ValueError(f"{bn.size} batch-norm words for {arg.o_ch_num} output channels")
    if debug and (arg.pool_task or arg.fp16):
        raise ValueError("debug: a pooling task or float16 product has no sums, expected a layer")
    if arg.pool_task:
        return LayerResult(pool_task(arg, x), 0, 0)
    if arg.fp16:
        return LayerResult(fp16_tasks.task(arg, x, weights), needed_macs(arg), 0)

    if arg.in_xor:
        x, x2 = _offset(x), None if x2 is None else _offset(np.asarray(x2))
    if arg.w_xor:
        weights = _offset(weights)
    norm = BatchNorm.unpack(bn)
    activation = Activation(ActTable.unpack(act), rounding, bool(arg.signed_out))
    constant = _channel_terms(arg, weights)
    rows, columns, *_ = kept_pixels(arg)
    shape = arg.o_ch_num, rows, columns
    a = np.empty(shape, dtype=np.int8 if arg.signed_out else np.uint8)
    words = np.empty(shape, dtype="<u4") if arg.out32 else None
    sums = [np.empty(shape, dtype=np.int64) for _ in range(2)] if debug else []

    for o, y, s, sx in window_blocks(arg, x, weights, x2):
        s += (sx * arg.arg_x) >> arg.shr_x
        s += constant[o, None, None]
        alu = wrap36(s)
        v = alu * norm.mul[o, None, None]
        v >>= norm.shift[o, None, None]
        v += norm.add[o, None, None]
        v = wrap36(v)
        if words is None:
            a[o, y] = activation(v)
        else:
            words[o, y] = v & 0xFFFFFFFF
        for kept, part in zip(sums, (alu, v), strict=False):
            kept[o, y] = part

    if words is not None:
        a = planes_of(words)
    pooled = a if arg.pool_type in PICKS else pool_map(arg.pool_type, a)
    found = LayerResult(np.ascontiguousarray(pooled).view(np.uint8), *count_macs(arg, x, x2))
    return DebugResult(found.y, found.macs, found.macs_gated, *sums) if debug else found


def _offset(values: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Bytes XOR 0x80: what signed bytes are with an offset of 128, and back."""
    return np.ascontiguousarray(values).view(np.uint8) ^ np.uint8(0x80)


def _channel_terms(arg: LayerArg, weights: npt.NDArray) -> npt.NDArray[np.int64]:
    """What alu gets once per output channel: the weight-sum term and arg_add; (O,)."""
    sw = weights.reshape(arg.o_ch_num, -1).sum(axis=1, dtype=np.int64)
    # reduced early so that no sum leaves int64; alu is taken modulo 2^36 anyway
    return wrap36(((sw * arg.arg_w) >> arg.shr_w) + arg.arg_add * arg.add_count)
