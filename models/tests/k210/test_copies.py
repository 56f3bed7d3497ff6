# SPDX-License-Identifier: Apache-2.0
"""Bytes that the AI RAM still has are not uploaded again: the same outputs, and no change where
anybody would notice (docs/performance.md 8)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from models.tests.k210.test_resident import kinds, layer
from openkpu.kmodel import KpuLayer, ModelTensor, Program, View, keep_maps, run_kmodel
from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.layer.layout import Layout

SHAPE = (4, 6, 20)
SIZE = math.prod(SHAPE)
ROWS = Layout(*SHAPE).rows
IN, FIRST, AGAIN, ONE, TWO = (n * ROWS for n in (0, 2, 4, 6, 8))  # rows of the maps
MAP, ASIDE = 0, 4096  # bytes of main memory


def view(at: int, shape: tuple[int, ...] = SHAPE, space: str = "main") -> View:
    return View(space, at, (1, *shape))


def twice(*more: Operation, at: int = 4, base: int = AGAIN, dst: int = TWO) -> Program:
    """The CPU's bytes are uploaded for a layer, and uploaded to ``base`` for another one, which
    writes to ``dst``; ``more`` goes before place ``at``."""
    ops: list[Operation] = [
        Copy(offset=1, src=view(0, space="input0"), dst=view(MAP)),
        Upload(offset=2, src=view(MAP), base=FIRST),
        layer(1, SHAPE, FIRST, ONE),
        Download(offset=3, dst=view(0, space="output0"), base=ONE),
        Upload(offset=4, src=view(MAP), base=base),
        layer(2, SHAPE, base, dst),
        Download(offset=5, dst=view(SIZE, space="output0"), base=dst),
    ]
    ops[at:at] = more
    return program(ops)


def program(operations: Sequence[Operation]) -> Program:
    both = View("output0", 0, (1, 2, *SHAPE))
    return Program(
        file="made",
        version=4,
        eight_bit=True,
        sizes={"input0": SIZE, "output0": 2 * SIZE, "main": 8192, "kpu": RAM_BYTES},
        inputs=[ModelTensor("input0", view(0, space="input0"))],
        outputs=[ModelTensor("output0", both)],
        operations=list(operations),
    ).check()


def same(one: Program, other: Program) -> bool:
    x = np.random.default_rng(5).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    found = [run_kmodel(p, [x]).outputs["output0"] for p in (one, other)]
    assert len(np.unique(found[0])) > 5, "outputs that say nothing"
    return np.array_equal(found[0], found[1])


def uploads(found: Program) -> int:
    return sum(isinstance(op, Upload) for op in found.operations)


def test_second_upload_goes() -> None:
    made = twice()
    kept = keep_maps(made)
    assert kinds(kept) == ["copy", "upload", "kpu_conv2d", "download", "kpu_conv2d", "download"]
    assert [op.arg.image_src_addr for op in kept.kpu_layers] == [FIRST, FIRST]
    assert same(made, kept)
    assert len(made.operations) == 7, "the program that was given has changed"


def test_upload_to_the_same_rows_goes() -> None:
    """Whatever reads them."""
    look = Download(offset=9, dst=view(ASIDE), base=FIRST)
    made = twice(look, at=5, base=FIRST)
    kept = keep_maps(made)
    assert uploads(made) == 2 and uploads(kept) == 1
    assert same(made, kept)


@pytest.mark.parametrize("downloads", [False, True])
def test_map_of_a_layer(downloads: bool) -> None:
    """It goes to main memory and back without change; the layers become one run."""
    first = layer(1, SHAPE, IN, FIRST)
    leaves: list[Operation] = [first, Download(offset=3, dst=view(MAP), base=FIRST)]
    if not downloads:
        leaves = [dataclasses.replace(first, main_out=view(MAP))]
    made = program(
        [
            Upload(offset=1, src=view(0, space="input0"), base=IN),
            *leaves,
            Upload(offset=4, src=view(MAP), base=AGAIN),
            layer(2, SHAPE, AGAIN, TWO),
            Download(offset=5, dst=view(0, space="output0"), base=TWO),
        ]
    )
    kept = keep_maps(made)
    assert kinds(kept) == ["upload", "kpu_conv2d", "kpu_conv2d", "download"]
    assert len(kept.segments()) == 1
    assert same(made, kept)
    # the CPU reads the map, too
    made.operations.append(Copy(offset=6, src=view(MAP), dst=view(SIZE, space="output0")))
    kept = keep_maps(made)
    assert uploads(kept) == 1
    assert kept.kpu_layers[0].main_out == (None if downloads else view(MAP))
    assert same(made, kept)


def over(row: int) -> KpuLayer:
    """A layer whose output has a row in common with the map at FIRST."""
    return layer(7, (1, 2, 20), IN, row)


STAYS = {
    "rows overwritten, the first": twice(over(FIRST - 1)),
    "rows overwritten, the last": twice(over(FIRST + ROWS - 1)),
    "rows overwritten by an upload": twice(Upload(offset=9, src=view(ASIDE), base=FIRST + 1)),
    "rows overwritten before the last reader": twice(
        over(FIRST), layer(3, SHAPE, AGAIN, ONE), at=6
    ),
    "bytes changed": twice(Copy(offset=9, src=view(ASIDE, (1,)), dst=view(MAP + SIZE - 1, (1,)))),
    "another reader of the rows": twice(Download(offset=9, dst=view(ASIDE), base=AGAIN), at=5),
    "a layer that reads a part": twice(layer(3, (2, 6, 20), AGAIN, ONE), at=5),
    "output where the copy is": twice(base=AGAIN, dst=FIRST + 1),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    made = STAYS[name]
    kept = keep_maps(made)
    assert uploads(kept) == uploads(made), name
    assert AGAIN in [op.arg.image_src_addr for op in kept.kpu_layers]
    assert same(made, kept)


def test_rows_beside_the_copy() -> None:
    """Writes right before and behind it do no harm."""
    for row in (FIRST - 2, FIRST + ROWS):
        made = twice(over(row))
        kept = keep_maps(made)
        assert uploads(kept) == 1, row
        assert same(made, kept)
