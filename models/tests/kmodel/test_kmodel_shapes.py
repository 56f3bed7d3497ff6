# SPDX-License-Identifier: Apache-2.0
"""Shapes that v3 and v4 files do not state: what keeps a map's layout keeps its shape."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import LAYERS, X
from openkpu.kmodel import Program, loads_kmodel, run_kmodel
from openkpu.kmodel.build import build_v3, build_v4
from openkpu.kmodel.operations.moves import Concat
from openkpu.kmodel.readers.shapes import concatenated, output_map
from openkpu.kmodel.results.results import hint, report

S = struct.pack
LAYER = LAYERS[0]  # its map goes to main memory at 0
MAP = LAYER.y
SHAPE, COUNT = (1, *MAP.shape), MAP.size
C, SIZE = MAP.shape[0], MAP.shape[1] * MAP.shape[2]
A, B, OUT, MAIN = 8192, 65536, 131072, 1 << 18  # places in main memory
NO_OP = S("<3i", 0, 1, 0)


def floats(at: int = A) -> tuple[int, bytes]:
    """The map as floats."""
    return 12, S("<4I2f", 1, 0, at, COUNT, 0.5, -3.0)


def channelwise(out: int, channels: int = C, src: int = 0) -> tuple[int, bytes]:
    pairs = S(f"<{2 * channels}f", *(v for i in range(channels) for v in (0.5 + i, -3.0)))
    return 24, S("<5I", 1, src, out, channels, COUNT // channels) + pairs


def model(*operations: tuple[int, bytes], size: int = 4 * COUNT) -> Program:
    return loads_kmodel(build_v3([(LAYER, 0), *operations], [(OUT, size)], MAIN), "m")


KEPT = {
    "dequantize": ([floats(OUT)], 4),
    "channelwise_dequantize": ([channelwise(OUT)], 4),
    "quantize": ([floats(), (11, S("<4I2f", 1, A, OUT, COUNT, 1.0, 0.0))], 1),
    "requantize": ([(13, S("<4I", 1, 0, OUT, COUNT) + bytes(range(256)))], 1),
    "add": ([floats(), (1, S("<5I", 1, A, A, OUT, COUNT))], 4),
    "quant_add": ([(2, S("<5I", 1, 0, 0, OUT, COUNT) + NO_OP * 3)], 1),
    "l2_normalization": ([floats(), (14, S("<4I", 1, A, OUT, COUNT))], 4),
    "softmax": ([floats(), (15, S("<4I", 1, A, OUT, COUNT))], 4),
    "logistic": ([floats(), (25, S("<4I", 1, A, OUT, COUNT))], 4),
    "logistic of channelwise": ([channelwise(A), (25, S("<4I", 1, A, OUT, COUNT))], 4),
    "channelwise of requantize": (
        [(13, S("<4I", 1, 0, A, COUNT) + bytes(range(256))), channelwise(OUT, src=A)],
        4,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_the_layout_keeps_the_shape(name: str) -> None:
    operations, item = KEPT[name]
    program = model(*operations, size=item * COUNT)
    assert program.outputs[0].shape == SHAPE
    assert run_kmodel(program, X).output.shape == SHAPE


def test_the_map_that_it_was_made_of_counts_not_the_last_one() -> None:
    layers = [(LAYER, 0), (LAYERS[1], None), (LAYERS[2], None), (LAYERS[3], A)]
    for operation in (floats(OUT), channelwise(OUT)):
        program = loads_kmodel(build_v3([*layers, operation], [(OUT, 4 * COUNT)], MAIN), "m")
        assert program.outputs[0].shape == SHAPE


def test_values_of_channelwise_dequantize() -> None:
    scale = np.arange(C, dtype=np.float32)[:, None, None] + np.float32(0.5)
    got = run_kmodel(model(channelwise(OUT)), X).output
    assert np.array_equal(got, (MAP * scale - np.float32(3))[None])


def test_channels_of_a_concatenation_are_summed() -> None:
    """Of bytes and of floats; sources of other sizes make a vector."""
    concat = 17, S("<3I4I", 1, OUT, 2, 0, COUNT, A, COUNT)
    other = 13, S("<4I", 1, 0, A, COUNT) + bytes(range(256))
    shape = (1, 2 * C, *MAP.shape[1:])
    assert model(other, concat, size=2 * COUNT).outputs[0].shape == shape
    both = 16, S("<3I4I", 1, OUT, 2, A, 4 * COUNT, B, 4 * COUNT)
    program = model(floats(A), floats(B), both, size=8 * COUNT)
    assert program.outputs[0].view.size == 8 * COUNT
    again = 12, S("<4I2f", 1, OUT, B, 2 * COUNT, 1.0, 0.0)
    data = build_v3([(LAYER, 0), other, concat, again], [(B, 8 * COUNT)], MAIN)
    assert loads_kmodel(data).outputs[0].shape == shape
    part = 17, S("<3I4I", 1, OUT, 2, 0, COUNT, A, COUNT // 2)
    assert model(other, part, size=COUNT + COUNT // 2).outputs[0].shape == (1, COUNT * 3 // 2)


def test_the_kpus_last_map_is_what_channelwise_dequantize_makes_of_unknown_bytes() -> None:
    """Bytes that a copy of another kind left somewhere else."""
    half = COUNT // 2
    pieces = 17, S("<3I4I", 1, A, 2, 0, half, half, COUNT - half)
    program = model(pieces, channelwise(OUT, src=A))
    assert program.outputs[0].shape == SHAPE
    other = model(pieces, channelwise(OUT, 1, A))  # one channel of all: no map of the KPU's
    assert other.outputs[0].shape == (1, COUNT)


def test_float_maps_that_v4_concatenates() -> None:
    """In bytes, so the size of an element comes from the output."""
    at = [0, 8192, 32768, 131072]
    out = (1, 1, at[0], COUNT)
    ranges = [S("<4I", 1, 1, at[0], COUNT), *(S("<4I", 1, 0, a, 4 * COUNT) for a in at[1:3])]
    total = S("<4I", 1, 0, at[3], 8 * COUNT)
    deq = [(3, ranges[0] + r + S("<if", 0, 2.0)) for r in ranges[1:]]
    concat = (1, total + S("<3I", 4 * SIZE, 1, 2) + ranges[1] + ranges[2] + S("<2i", C, C))
    data = build_v4(
        [(LAYER, out), *deq, concat],
        [((2, 1, 0, LAYER.arg.in_layout.bytes), (1, *X.shape))],
        [struct.unpack("<4I", total)],
        MAIN,
    )
    program = loads_kmodel(data)
    assert program.outputs[0].shape == (1, 2 * C, *MAP.shape[1:])
    got = run_kmodel(program, X).output
    assert np.array_equal(got, np.concatenate([MAP, MAP])[None] * np.float32(0.5))


def test_concatenated_names_the_axis() -> None:
    program = model(floats(), (16, S("<3I4I", 1, OUT, 2, A, 8, A, 8)), size=16)
    op = program.operations[-1]
    assert isinstance(op, Concat)
    assert concatenated(op, [(1, 2, 2, 2), (1, 2, 2, 2)]) == (1, 4, 2, 2)
    assert concatenated(op, [(1, 2, 1, 1), (1, 2, 1, 1)]) == (1, 4, 1, 1)  # of floats
    assert concatenated(op, [(1, 2, 2, 2), None]) is None
    assert concatenated(op, [(1, 2, 2, 2), (1, 4, 2, 1)]) is None
    assert concatenated(op, [(1, 3, 2, 2), (1, 3, 2, 2)]) is None


def test_flat_outputs_are_offered_as_the_kpus_map() -> None:
    program = model(floats(OUT))
    flat = np.arange(COUNT, dtype=np.float32)
    for shape in ((C, SIZE), (1, C, SIZE), (COUNT,), (1, COUNT)):
        assert np.array_equal(output_map(flat.reshape(shape), program), flat.reshape(SHAPE))
    for shape in ((SIZE, C), (C, SIZE // 2), (1, 1, C, SIZE), (7,)):
        assert output_map(np.zeros(shape), program).shape == shape
    text = hint([flat.reshape(C, SIZE)], program=program)
    assert text is not None and f"{C} channels, {MAP.shape[1]} x {MAP.shape[2]} cells" in text
    assert hint([flat.reshape(C, SIZE)]) is None
    assert report([flat.reshape(C, SIZE)], 40, 16, program=program).kind == "tensor"
