# SPDX-License-Identifier: Apache-2.0
"""Slices that stay in the AI RAM: the same outputs, and no change where anybody would notice."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from openkpu.generators.generate import random_layer
from openkpu.kmodel import KpuLayer, ModelTensor, Program, View, keep_maps, run_kmodel
from openkpu.kmodel.operations.moves import PadPixels, StridedSlice
from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.layer.layout import Layout

SHAPE = (3, 9, 20)  # of the map that is sliced
STEPS = (2, 3)
SLICED = (3, 5, 7)
MAIN = 8192


def view(at: int, shape: tuple[int, ...], space: str = "main") -> View:
    return View(space, at, (1, *shape))


def layer(seed: int, shape: tuple[int, int, int], src: int, dst: int) -> KpuLayer:
    """A 1x1 layer that keeps the shape of its map."""
    c, h, w = shape
    made = random_layer(
        np.random.default_rng(seed),
        c=c,
        h=h,
        w=w,
        o=shape[0],
        kernel=1,
        pool=0,
        depthwise=False,
        fc=False,
        eight_bit=True,
        signed_in=False,
    )
    arg = made.arg.replace(image_src_addr=src, image_dst_addr=dst, signed_out=0)
    tables = {"weights": made.weights, "bn": made.bn, "act": made.act}
    return KpuLayer(offset=0, arg=arg, eight_bit=True, **tables)


def program(
    *more: Operation, at: int = 6, changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Program:
    """input -> layer -> download, slice, upload -> layer -> output; ``more`` goes before ``at``.

    ``changes``: fields of the operations "download", "slice", "upload".
    """
    rows = Layout(*SHAPE).rows
    first, second = (0, rows), (2 * rows, 3 * rows)
    whole, piece = view(0, SHAPE), view(1024, SLICED)
    result = view(0, SLICED, "output0")
    middle = {
        "download": Download(offset=3, dst=whole, base=first[1]),
        "slice": StridedSlice(
            offset=4,
            src=whole,
            dst=piece,
            begin=(0, 0, 0, 0),
            end=(1, *SHAPE),
            stride=(1, 1, *STEPS),
        ),
        "upload": Upload(offset=5, src=piece, base=second[0]),
    }
    for name, fields in (changes or {}).items():
        middle[name] = dataclasses.replace(middle[name], **fields)
    operations = [
        Upload(offset=1, src=view(0, SHAPE, "input0"), base=first[0]),
        layer(1, SHAPE, *first),
        *middle.values(),
        layer(2, SLICED, *second),
        Download(offset=7, dst=result, base=second[1]),
    ]
    operations[at:at] = more
    source = view(0, SHAPE, "input0")
    sizes = {"input0": math.prod(SHAPE), "output0": math.prod(SLICED)}
    return Program(
        file="made",
        version=5,
        eight_bit=True,
        sizes=sizes | {"main": MAIN, "kpu": RAM_BYTES},
        inputs=[ModelTensor("input0", source)],
        outputs=[ModelTensor("output0", result)],
        operations=operations,
    ).check()


def kinds(found: Program) -> list[str]:
    return [getattr(op, "title", "") or op.name for op in found.operations]


def same(one: Program, other: Program) -> bool:
    x = np.random.default_rng(5).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    outputs = [run_kmodel(p, [x]).outputs for p in (one, other)]
    return all(np.array_equal(outputs[0][name], outputs[1][name]) for name in outputs[0])


def test_slice_becomes_a_task() -> None:
    """Download, slice and upload go; the layers are one segment."""
    made = program()
    kept = keep_maps(made)
    assert kinds(kept) == ["upload", "kpu_conv2d", "slice", "kpu_conv2d", "download"]
    task = kept.kpu_layers[1].arg
    assert (task.in_shape, task.out_shape, task.pool_task) == (SHAPE, SLICED, 1)
    assert (task.pool_sy, task.pool_sx, task.pool_kh, task.pool_kw) == (*STEPS, 1, 1)
    assert len(made.segments()) == 2 and len(kept.segments()) == 1
    assert same(made, kept)
    assert len(made.operations) == 7, "the program that was given has changed"


def test_download_that_others_read_stays() -> None:
    """Behind the upload somebody reads the whole map: it is downloaded, the slice is not."""
    again = Copy(offset=9, src=view(0, SHAPE), dst=view(2048, SHAPE))
    kept = keep_maps(program(again))
    assert kinds(kept)[2:6] == ["download", "slice", "kpu_conv2d", again.name]
    assert same(program(again), kept)


def test_bytes_that_are_written_again_are_dead() -> None:
    """A later reader of the place does not count once others have written it, piece by piece."""
    half = (SHAPE[0], SHAPE[1], SHAPE[2] // 2)
    size = math.prod(half)
    parts = [Copy(offset=9, src=view(4096, half), dst=view(at, half)) for at in (0, size)]
    reader = Copy(offset=10, src=view(0, SHAPE), dst=view(2048, SHAPE))
    assert "download" not in kinds(keep_maps(program(*parts, reader)))[:-1]
    assert "download" in kinds(keep_maps(program(parts[0], reader)))[:-1]


ROWS = Layout(*SHAPE).rows
REFUSED = {
    "first column left out": {"slice": {"begin": (0, 0, 0, 1)}},
    "fewer lines": {"slice": {"end": (1, 3, 7, 20), "dst": view(1024, (3, 4, 7))}},
    "maps share rows": {"upload": {"base": ROWS}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_task_does(name: str) -> None:
    """Slices that do not begin at 0 or do not reach the end; maps that share rows."""
    changes = {key: dict(value) for key, value in REFUSED[name].items()}
    if "dst" in changes.get("slice", {}):  # another map is uploaded
        changes["upload"] = {"src": changes["slice"]["dst"]}
    assert "slice" not in kinds(keep_maps(program(changes=changes)))


def test_readers_of_the_slice_and_writers_in_between() -> None:
    """Somebody reads the slice; the map in the AI RAM, or in main memory, is written before."""
    reader = Copy(offset=9, src=view(1024, SLICED), dst=view(2048, SLICED))
    assert "slice" not in kinds(keep_maps(program(reader)))
    assert "slice" not in kinds(keep_maps(program(reader, at=4)))
    over = Upload(offset=9, src=view(4096, SHAPE), base=ROWS)
    assert "slice" not in kinds(keep_maps(program(over, at=4)))
    beside = Upload(offset=9, src=view(4096, SHAPE), base=9 * ROWS)
    assert "slice" in kinds(keep_maps(program(beside, at=4)))
    pads = PadPixels(offset=9, src=View("main", 4096, (4,)), base=9 * ROWS)  # it does not say where
    assert "slice" not in kinds(keep_maps(program(pads, at=4)))
    spoil = Copy(offset=9, src=view(4096, SLICED), dst=view(1024, SLICED))
    assert "slice" not in kinds(keep_maps(program(spoil, at=4)))
    other = Copy(offset=9, src=view(4096, SHAPE), dst=view(0, SHAPE))
    assert "slice" not in kinds(keep_maps(program(other, at=3)))
