# SPDX-License-Identifier: Apache-2.0
"""STRIDED_SLICE and SPLIT_V of quantised TFLite: numpy's elements, as LiteRT has them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from models.tests.quantised.test_float_tflite import litert
from openkpu.compiler.form import reference
from openkpu.compiler.tflite import translate as tflite
from openkpu.writers import Quant, Value
from openkpu.writers.tflite_model import TfliteModel

Q = Quant(0.05, 3)
SHAPE = (1, 5, 6, 4)  # (N, H, W, C)
TO_NCHW = (0, 3, 1, 2)


def output(m: TfliteModel, shape: tuple[int, ...]) -> Value:
    """A result of that shape in the model's order."""
    return m.value([shape[a] for a in TO_NCHW] if len(shape) == 4 else shape, Q)


def same(data: bytes, x: npt.NDArray[np.int8], wants: list[npt.NDArray[np.int8]]) -> None:
    """The graph's results are ``wants``, and LiteRT's as well."""
    graph = tflite.read_tflite(data, "net.tflite")
    values = reference.evaluate(graph, {graph.inputs[0]: x.transpose(TO_NCHW).astype(np.int64)})
    for name, want, their in zip(graph.outputs, wants, litert(data, [x]), strict=True):
        mine = values[name]
        mine = mine.transpose(0, 2, 3, 1) if mine.ndim == 4 else mine
        assert np.array_equal(mine, want) and np.array_equal(their, want)


# begin, end, steps; bits of begin_mask, end_mask, shrink_axis_mask
SLICES = {
    "inside": ([0, 1, 2, 0], [1, 4, 6, 3], [1, 1, 2, 1], (0, 0, 0)),
    "from the end": ([0, -3, -4, 0], [1, -1, 6, -1], [1, 1, 1, 2], (0, 0, 0)),
    "beyond the end": ([0, 2, 0, 1], [9, 99, 6, 7], [1, 1, 1, 1], (0, 0, 0)),
    "backwards": ([0, 4, 5, 0], [1, 0, 0, 4], [1, -1, -2, 1], (0, 0, 0)),
    "masked": ([0, 3, 4, 2], [1, 2, 5, 3], [1, 1, 1, 1], (0b0010, 0b0100, 0)),
    "one line": ([0, 2, 0, 0], [1, 3, 6, 4], [1, 1, 1, 1], (0, 0, 0b0010)),
    "the last line": ([0, -1, 0, 0], [1, 0, 6, 4], [1, 1, 1, 1], (0, 0, 0b0010)),
    "the last pixel": ([0, -1, -1, 0], [1, 0, 0, 4], [1, 1, 1, 1], (0, 0, 0b0110)),
}


@pytest.mark.parametrize("case", SLICES)
def test_strided_slice(case: str) -> None:
    *words, (begin_mask, end_mask, shrink) = SLICES[case]
    x = np.random.default_rng(7).integers(-128, 128, SHAPE).astype(np.int8)
    index: list[int | slice] = []
    for i, (begin, end, step) in enumerate(zip(*words, strict=True)):
        first = None if begin_mask >> i & 1 else begin
        stop = None if end_mask >> i & 1 else end
        index.append(begin if shrink >> i & 1 else slice(first, stop, step))
    want = x[tuple(index)]
    m = TfliteModel(np.int8)
    given, y = m.input((1, 4, 5, 6), Q), output(m, want.shape)
    places = [m.integers(word) for word in words]
    masks = {"beginMask": begin_mask, "endMask": end_mask, "shrinkAxisMask": shrink}
    m.op("STRIDED_SLICE", [given, *places], [y], "StridedSliceOptions", "", **masks)
    same(m.finish([y]), x, [want])


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_split_v(axis: int) -> None:
    """Parts of different sizes."""
    x = np.random.default_rng(8).integers(-128, 128, SHAPE).astype(np.int8)
    sizes = [1, SHAPE[axis] - 3, 2]
    parts = np.split(x, np.cumsum(sizes)[:-1], axis=axis)
    m = TfliteModel(np.int8)
    given, ys = m.input((1, 4, 5, 6), Q), [output(m, part.shape) for part in parts]
    words = [given, m.integers(sizes), m.integers(axis)]
    m.op("SPLIT_V", words, ys, "SplitVOptions", numSplits=len(parts))
    same(m.finish(ys), x, parts)
