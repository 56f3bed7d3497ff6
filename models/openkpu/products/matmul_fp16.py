# SPDX-License-Identifier: Apache-2.0
"""Products C[M,N] = A[M,K] B[K,N] of float16 matrices as layers with ``fp16`` (docs/kpu.md 1.12).

B is the input map, K channels whose lines hold rows of B as they lie in storage; A holds the
weights; C comes back row by row.  ``plan_fp16`` cuts what one layer does not hold: rows of A and C
are ranges of storage, of columns of B and C copies are made.  K is never cut, for a sum is rounded
once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import MANY_CHANNELS, MOST_LOADS, PARA_SIZE_MAX, LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.products.matmul import HIGHEST, LONGEST, M_LEAST, M_MAX, Tile, product_parts

K_MAX = MANY_CHANNELS
BYTES = 2  # of a number
LINE = 64  # bytes of a line, where a row has several
NONE = np.zeros(0, dtype=np.uint64)  # there are no tables


def shapes_of(n: int, wide: bool) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """((h, w), (oh, ow)) of the maps of rows of ``n`` numbers; None: no map has such rows."""
    size = 4 if wide else 2
    if 2 * n % LINE == 0:
        lines, out_lines = 2 * n // LINE, size * n // LINE
        return ((lines, LINE), (out_lines, LINE)) if out_lines <= HIGHEST else None
    return ((1, 2 * n), (1, size * n)) if size * n <= LONGEST else None


def rows_of(m: int, k: int, n: int, wide: bool) -> int | None:
    """Rows of the AI RAM that B and C take; None: no map has rows of ``n`` numbers."""
    shapes = shapes_of(n, wide)
    if shapes is None:
        return None
    return Layout(k, *shapes[0]).rows + Layout(m, *shapes[1]).rows


def layer_of(m: int, k: int, n: int, *, wide: bool = True, ram_rows: int = AI_RAM_ROWS) -> LayerArg:
    """The layer of one product (no tiles): input at row 0, output behind it.

    ``wide``: float32 results.  LayerError for sizes that no layer has.
    """
    check(m, k, n)
    if m > m_max(k):
        raise LayerError(
            "BAD_SIZE", f"M = {m}, a layer with K = {k} has at most {m_max(k)} output channels"
        )
    rows, shapes = rows_of(m, k, n, wide), shapes_of(n, wide)
    if shapes is None or rows is None or rows > ram_rows:
        raise LayerError(
            "BAD_SIZE", f"{m}x{k}x{n}: no maps of such rows fit {ram_rows} rows of the AI RAM"
        )
    return LayerArg.make(
        *(k, *shapes[0], m),
        eight_bit=False,
        src=0,
        dst=Layout(k, *shapes[0]).rows,
        ram_rows=ram_rows,
        fp16=1,
        fp32=int(wide),
        o_col_high=shapes[1][0],
        o_row_wid=shapes[1][1],
    )


def m_max(k: int) -> int:
    """Output channels of a layer: rows of A that its weight loads hold."""
    return min(M_MAX, MOST_LOADS * (PARA_SIZE_MAX // (BYTES * k)))


def check(m: int, k: int, n: int) -> None:
    """LayerError for sizes that no list of layers has."""
    if min(m, k, n) < 1:
        raise LayerError("BAD_SIZE", f"{m}x{k}x{n}: a product has no size below 1")
    if k > K_MAX:
        raise LayerError(
            "BAD_SIZE",
            f"K = {k}, a layer has at most {K_MAX} input channels, and sums that are rounded once"
            " are not cut",
        )


def plan_fp16(
    m: int, k: int, n: int, *, wide: bool = True, ram_rows: int = AI_RAM_ROWS
) -> list[Tile]:
    """Tiles of a product, rows of A before columns of B; one where one layer holds it."""
    check(m, k, n)
    if shapes_of(n, wide) and n <= 240:
        cuts = [(0, n)]
    else:  # what fills lines, and what is left
        whole = n - n % (LINE // 2)
        cuts = [(0, whole)] * (whole > 0) + [(whole, n - whole)] * (n > whole)
    tiles = []
    for first, columns in cuts:
        size = _tile(m, k, columns, wide, ram_rows)
        if size is None:
            raise LayerError(
                "BAD_SIZE",
                f"K = {k}: no column of B fits an AI RAM of {ram_rows} rows with its sums",
            )
        for j, here in product_parts(columns, size[1]):
            for i, rows in product_parts(m, size[0]):
                arg = layer_of(rows, k, here, wide=wide, ram_rows=ram_rows)
                j0 = first + j
                tiles.append(Tile(slice(i, i + rows), slice(j0, j0 + here), arg))
    return tiles


def _tile(m: int, k: int, n: int, wide: bool, ram_rows: int) -> tuple[int, int] | None:
    """(rows, columns) of a tile: halved until it fits; None: none does."""
    rows, columns = min(m, m_max(k)), n
    while True:
        needed = rows_of(rows, k, columns, wide)
        if needed is not None and needed <= ram_rows:
            return rows, columns
        lines = columns * 2 // LINE
        # a cut between rows copies nothing, so columns are cut when few rows would be left
        if needed is not None and (rows > M_LEAST or (rows > 1 and columns == 1)):
            rows = (rows + 1) // 2
        elif lines > 1:
            columns = (lines + 1) // 2 * (LINE // 2)
        elif columns > 1:
            columns = (columns + 1) // 2
        elif rows > 1:
            rows = (rows + 1) // 2
        else:
            return None


def fp16_operands(
    tile: Tile, a: npt.NDArray, b: npt.NDArray
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(weight bytes, input map) of a tile: bytes of A and B as they lie in storage."""
    weights = np.ascontiguousarray(a[tile.m]).view(np.uint8).reshape(-1)
    return weights, np.ascontiguousarray(b[:, tile.n]).view(np.uint8).reshape(tile.arg.in_shape)


def fp16_product(
    a: npt.NDArray, b: npt.NDArray, *, wide: bool = True, ram_rows: int = AI_RAM_ROWS
) -> npt.NDArray:
    """A B of float16 on the golden model, layer by layer; float32 (``wide``) or float16."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), dtype=np.float32 if wide else np.float16)
    for tile in plan_fp16(m, k, n, wide=wide, ram_rows=ram_rows):
        weights, x = fp16_operands(tile, a, b)
        y = run_layer(tile.arg, x, weights, NONE, NONE).y
        c[tile.m, tile.n] = y.view(c.dtype).reshape(tile.arg.o_ch_num, -1)
    return c
