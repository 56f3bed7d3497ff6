# SPDX-License-Identifier: Apache-2.0
"""Sparse constants of TFLite files: rows of columns, and blocks of 2x2; damaged ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="make setup GROUPS=models brings tflite")
import flatbuffers
import tflite

from openkpu.compiler.tflite.sparse import dense_values


def level(builder: Any, size: int = 0, segments: Any = (), places: Any = ()) -> int:
    """A size, or the places below each place of the level above; bytes."""
    ends = []
    for values in (segments, places):
        tflite.Uint8VectorStartValuesVector(builder, len(values))
        for value in reversed(values):
            builder.PrependUint8(value)
        vector = builder.EndVector()
        tflite.Uint8VectorStart(builder)
        tflite.Uint8VectorAddValues(builder, vector)
        ends.append(tflite.Uint8VectorEnd(builder))
    tflite.DimensionMetadataStart(builder)
    tflite.DimensionMetadataAddFormat(builder, 0 if size else 1)
    tflite.DimensionMetadataAddDenseSize(builder, size)
    if not size:
        tflite.DimensionMetadataAddArraySegmentsType(builder, 3)
        tflite.DimensionMetadataAddArraySegments(builder, ends[0])
        tflite.DimensionMetadataAddArrayIndicesType(builder, 3)
        tflite.DimensionMetadataAddArrayIndices(builder, ends[1])
    return tflite.DimensionMetadataEnd(builder)


def sparsity(order: list[int], blocks: list[int], *levels: dict[str, Any]) -> Any:
    builder = flatbuffers.Builder(0)
    made = [level(builder, **fields) for fields in levels]
    ends = []
    for values in (order, blocks):
        builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            builder.PrependInt32(value)
        ends.append(builder.EndVector())
    tflite.SparsityParametersStartDimMetadataVector(builder, len(made))
    for one in reversed(made):
        builder.PrependUOffsetTRelative(one)
    listed = builder.EndVector()
    tflite.SparsityParametersStart(builder)
    tflite.SparsityParametersAddTraversalOrder(builder, ends[0])
    tflite.SparsityParametersAddBlockMap(builder, ends[1])
    tflite.SparsityParametersAddDimMetadata(builder, listed)
    builder.Finish(tflite.SparsityParametersEnd(builder))
    return tflite.SparsityParameters.GetRootAs(builder.Output(), 0)


ROWS = {"segments": [0, 1, 1, 3], "places": [2, 0, 3]}


def test_rows() -> None:
    """Compressed rows: 7 in row 0, nothing in row 1, 8 and 9 in row 2."""
    found = dense_values(sparsity([0, 1], [], {"size": 3}, ROWS), (3, 4), np.array([7, 8, 9]))
    assert found.tolist() == [[0, 0, 7, 0], [0, 0, 0, 0], [8, 0, 0, 9]]


def test_columns() -> None:
    """The second axis first."""
    levels = {"size": 4}, {"segments": [0, 1, 1, 2, 3], "places": [2, 0, 2]}
    found = dense_values(sparsity([1, 0], [], *levels), (3, 4), np.array([8, 7, 9]))
    assert found.tolist() == [[0, 0, 7, 0], [0, 0, 0, 0], [8, 0, 0, 9]]


def test_blocks() -> None:
    """Blocks of 2x2: one at the left above, one at the right below."""
    levels = [{"size": 2}, {"segments": [0, 1, 2], "places": [0, 1]}, {"size": 2}, {"size": 2}]
    found = dense_values(
        sparsity([0, 1, 2, 3], [0, 1], *levels), (4, 4), np.arange(1, 9, dtype=np.int8)
    )
    assert found.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8]]


BAD: dict[str, tuple[Any, tuple[int, ...], int, str]] = {
    "numbers": (([0, 1], [], {"size": 3}, ROWS), (3, 4), 2, "2 numbers of a sparse constant"),
    "place": (([0, 1], [], {"size": 3}, ROWS), (3, 3), 3, "a place beyond"),
    "levels": (([0, 0], [], {"size": 3}, ROWS), (3, 4), 3, "levels .0, 0. of blocks"),
    "size": (([0, 1], [], {"size": 200}, ROWS), (3, 4), 3, "a level of 200"),
    "segments": (
        ([0, 1], [], {"size": 3}, {"segments": [0, 2, 1, 3], "places": [2, 0, 3]}),
        *((3, 4), 3, "do not follow each other"),
    ),
    "large": (([0, 1], [], {"size": 3}, ROWS), (1 << 20, 1 << 20), 3, "expected at most"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged(name: str) -> None:
    levels, shape, count, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        dense_values(sparsity(*levels), shape, np.arange(count))
