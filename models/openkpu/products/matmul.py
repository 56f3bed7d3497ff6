# SPDX-License-Identifier: Apache-2.0
"""Integer matrix products C[M,N] = A[M,K] B[K,N] as 1x1 convolutions with 32-bit results.

docs/kpu.md 1.10: B is the input map, K channels of h x w pixels with h * w = N; A holds the weights
of M output channels; C are the sums.  All three lie in storage row by row, as numpy has them.
Signed operands are taken XOR 0x80 (``in_xor``, ``w_xor``), which adds 128, and the zero-point terms
take the 128 away again.  ``plan_matmul`` cuts a product that one layer does not hold into tiles:
rows of A and C are whole ranges of storage; columns of B and C are not, so they are copied.
``matmul_lists`` makes task lists of tiles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.arithmetic.words import BYTES, words_of
from openkpu.layer.argument import MANY_CHANNELS, MOST_LOADS, PARA_SIZE_MAX, LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout

K_MAX = MANY_CHANNELS  # input channels
M_MAX = 1024  # output channels of a tile
M_LEAST = 64  # rows of a tile for which columns are cut rather
OFFSET = 128
LONGEST, HIGHEST = 960, 512  # pixels of a line, lines


@dataclasses.dataclass(frozen=True)
class Tile:
    """A layer of a product: rows ``m`` of A and C, columns ``n`` of B and C."""

    m: slice
    n: slice
    arg: LayerArg


def map_of(m: int, k: int, n: int, ram_rows: int = AI_RAM_ROWS) -> tuple[int, int] | None:
    """(h, w) with h * w = n of the fewest stripes, then of the smallest maps; None: none fits.

    ``m``, ``k``: channels of the output (words) and of the input.
    """
    fits = []
    for h in range(1, min(n, HIGHEST) + 1):
        w = n // h
        if h * w != n or w > LONGEST:
            continue
        rows = Layout(k, h, w).rows + Layout(BYTES * m, h, w).rows
        lines = 4 if w <= 16 else 2 if w <= 32 else 1  # of a stripe
        stripes = ceil_div(h, lines) * ceil_div(w, 64)
        if rows <= ram_rows:
            fits.append((stripes, rows, h, w))
    return min(fits)[2:] if fits else None


def layer_of(
    m: int,
    k: int,
    n: int,
    *,
    signed_a: bool = True,
    signed_b: bool = True,
    ram_rows: int = AI_RAM_ROWS,
) -> LayerArg:
    """The layer of one product (no tiles): input at row 0, output behind it.

    LayerError for sizes that no layer has.
    """
    _check(m, k, n)
    if m > m_max(k):
        raise LayerError(
            "BAD_SIZE", f"M = {m}, a layer with K = {k} has at most {m_max(k)} output channels"
        )
    shape = map_of(m, k, n, ram_rows)
    if shape is None:
        raise LayerError(
            "BAD_SIZE", f"{m}x{k}x{n}: no map of {n} pixels fits {ram_rows} rows of the AI RAM"
        )
    zero_a, zero_b = (OFFSET if signed else 0 for signed in (signed_a, signed_b))
    return LayerArg.make(
        *(k, *shape, m),
        src=0,
        dst=Layout(k, *shape).rows,
        ram_rows=ram_rows,
        in_xor=int(signed_b),
        w_xor=int(signed_a),
        out32=1,
        arg_x=-zero_a,
        arg_w=-zero_b,
        arg_add=zero_a * zero_b,
    )


def m_max(k: int) -> int:
    """Output channels of a layer: rows of A that its weight loads hold."""
    return min(M_MAX, MOST_LOADS * (PARA_SIZE_MAX // k))


def tables(m: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """(batch-norm words, activation words) that leave a sum as it is; the latter are not used."""
    return BatchNorm.make(np.ones(m), 0, 0).pack(), ActTable.make(-(1 << 35), 0, 0, 0).pack()


def plan_matmul(
    m: int,
    k: int,
    n: int,
    *,
    signed_a: bool = True,
    signed_b: bool = True,
    ram_rows: int = AI_RAM_ROWS,
) -> list[Tile]:
    """Tiles of a product, rows of A before columns of B; one where one layer holds it.

    LayerError for K above 9216, or what no AI RAM of ``ram_rows`` rows holds a part of.
    """
    _check(m, k, n)
    kind = {"signed_a": signed_a, "signed_b": signed_b, "ram_rows": ram_rows}
    size = tile_size(m, k, n, ram_rows)
    return [
        Tile(slice(i, i + rows), slice(j, j + columns), layer_of(rows, k, columns, **kind))
        for j, columns in product_parts(n, size[1])
        for i, rows in product_parts(m, size[0])
    ]


def matmul_operands(
    tile: Tile, a: npt.NDArray, b: npt.NDArray
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(weight bytes, input map) of a tile: bytes of A and B as they lie in storage."""
    weights = np.ascontiguousarray(a[tile.m]).view(np.uint8).reshape(-1)
    return weights, np.ascontiguousarray(b[:, tile.n]).view(np.uint8).reshape(tile.arg.in_shape)


def matmul_product(
    a: npt.NDArray, b: npt.NDArray, *, ram_rows: int = AI_RAM_ROWS
) -> npt.NDArray[np.int32]:
    """A B on the golden model, exact modulo 2^32.

    A (M, K) and B (K, N) of int8 or uint8, each of its own; ValueError for anything else,
    LayerError as ``plan_matmul``.
    """
    signed = []
    for name, matrix in (("A", a), ("B", b)):
        if matrix.ndim != 2 or matrix.dtype not in (np.int8, np.uint8):
            found = f"{matrix.dtype}{matrix.shape}"
            raise ValueError(f"{name} is {found}, expected a matrix of int8 or uint8")
        signed.append(matrix.dtype == np.int8)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"A is {a.shape}, B is {b.shape}: the inner sizes differ")
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), dtype=np.int32)
    for tile in plan_matmul(m, k, n, signed_a=signed[0], signed_b=signed[1], ram_rows=ram_rows):
        weights, x = matmul_operands(tile, a, b)
        y = run_layer(tile.arg, x, weights, *tables(tile.arg.o_ch_num)).y
        c[tile.m, tile.n] = words_of(y).reshape(tile.arg.o_ch_num, -1)
    return c


def _check(m: int, k: int, n: int) -> None:
    if min(m, k, n) < 1:
        raise LayerError("BAD_SIZE", f"{m}x{k}x{n}: a product has no size below 1")
    if k > K_MAX:
        raise LayerError("BAD_SIZE", f"K = {k}, a layer has at most {K_MAX} input channels")


def product_parts(size: int, part: int) -> Iterator[tuple[int, int]]:
    """(first, count) of the parts of ``size`` things, ``part`` in each but the last."""
    for at in range(0, size, part):
        yield at, min(part, size - at)


def tile_size(
    m: int,
    k: int,
    n: int,
    ram_rows: int,
    fits: Callable[[int, int], bool] = lambda rows, columns: True,
) -> tuple[int, int]:
    """(rows, columns) of a tile: as few tiles as halving gives, each part and the rest a map.

    ``fits``: what more must hold of rows and columns.  LayerError where nothing fits.
    """
    m, columns = min(m, m_max(k)), n
    while True:
        rest = n % columns
        rows = m
        while rows and not (
            fits(rows, columns) and all(map_of(rows, k, c, ram_rows) for c in (columns, rest) if c)
        ):
            rows //= 2
        # a cut between rows copies nothing, so columns are cut when few rows would be left
        if rows >= min(m, M_LEAST) or (rows and columns == 1):
            return rows, columns
        fewer = _fewer(columns)
        if fewer is None:
            raise LayerError(
                "BAD_SIZE",
                f"K = {k}: no column of B fits an AI RAM of {ram_rows} rows with its sums",
            )
        columns = fewer


def _fewer(columns: int) -> int | None:
    """About half as many: a multiple of 64 where that is possible."""
    if columns == 1:
        return None
    half = (columns + 1) // 2
    up = round_up(half, 64)
    return up if up < columns else half
