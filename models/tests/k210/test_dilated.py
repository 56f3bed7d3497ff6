# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions that a compiler split: one layer, the same outputs; no change where anybody
would notice (docs/kpu.md 1.16)."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.tests.k210.test_resident import kinds
from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.checkout import ROOT
from openkpu.generators.generate import random_layer
from openkpu.kmodel import (
    KpuLayer,
    ModelTensor,
    Program,
    View,
    keep_all,
    keep_maps,
    load_kmodel,
    run_kmodel,
)
from openkpu.kmodel.operations.moves import Pad, Transpose
from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.layer.layout import Layout

SPACE = 1 << 16  # bytes of main memory for each tensor
RFB = Path(os.environ.get("OPENKPU_SHARED", ROOT.parent / "shared")) / "real/face_rfb320_v4.kmodel"


def view(number: int, *shape: int) -> View:
    """Tensor ``number`` of main memory."""
    return View("main", number * SPACE, shape)


def layer(seed: int, c: int, h: int, w: int, o: int, src: int, dst: int, **kind: int) -> KpuLayer:
    made = random_layer(
        np.random.default_rng(seed),
        **{"c": c, "h": h, "w": w, "o": o, "pool": 0, "fc": False, "signed_in": False},
        **{"eight_bit": True, "depthwise": False, "kernel": 3, **kind},
    )
    arg = made.arg.replace(image_src_addr=src, image_dst_addr=dst, signed_out=0)
    return KpuLayer(
        offset=seed, arg=arg, eight_bit=True, weights=made.weights, bn=made.bn, act=made.act
    )


@dataclasses.dataclass
class Split:
    """input -> layer -> split into d * d maps -> layer -> joined -> output."""

    d: int
    c: int
    h: int
    w: int
    o: int
    value: int = 7  # of the padding
    downloads: bool = False  # maps leave by downloads, as in v5; otherwise by the FIFO
    by_cpu: bool = False  # the CPU makes the map
    over: bool = False  # another map overwrites it in the AI RAM
    depthwise: bool = False

    @property
    def small(self) -> tuple[int, int]:
        return ceil_div(self.h, self.d) + 2, ceil_div(self.w, self.d) + 2

    def operations(self) -> list[Operation]:
        d, c, h, w, o = self.d, self.c, self.h, self.w, self.o
        (sh, sw), n = self.small, self.d**2
        source, result = view(0, 1, c, h, w), view(7, 1, o, h, w)
        rows = Layout(c, h, w).rows
        small_at, out_at = 4 * rows, 9000
        first = layer(1, c, h, w, c, 0, rows, kernel=1)
        many = layer(2, c, sh, sw, o, small_at, out_at, depthwise=self.depthwise)
        many = dataclasses.replace(many, batches=n)
        given = View("input0", 0, (1, c, h, w))
        begin: list[Operation] = [Upload(offset=1, src=given, base=0), first]
        if self.by_cpu:
            begin = [Copy(offset=1, src=given, dst=source)]
        elif self.downloads:
            begin.append(Download(offset=2, dst=source, base=rows))
        else:
            begin[1] = dataclasses.replace(first, main_out=source)
        if self.over:
            begin.append(Upload(offset=2, src=view(8, 1, 1, 2, 2), base=2 * rows - 1))
        own = (0, 0), (0, 0)
        padded, whole = view(1, 1, c, sh * d, sw * d), view(6, 1, o, (sh - 2) * d, (sw - 2) * d)
        dealt, out = view(2, n, c, sh, sw), view(3, n, o, sh, sw)
        cut = view(4, n, o, sh - 2, sw - 2)
        more = sh * d - h - 2 * d, sw * d - w - 2 * d
        back = [Download(offset=6, dst=out, base=out_at)] if self.downloads else []
        many = many if self.downloads else dataclasses.replace(many, main_out=out)
        joined = [Copy(offset=9, src=whole.flat(o * h * w), dst=result.flat(o * h * w))]
        if any(more):
            joined = [
                Pad(
                    offset=9,
                    **{"src": whole, "dst": result, "value": 0.0},
                    pads=(*own, (0, -more[0]), (0, -more[1])),
                )
            ]
        return [
            *begin,
            Pad(
                offset=3,
                **{"src": source, "dst": padded, "value": float(self.value)},
                pads=(*own, (d, d + more[0]), (d, d + more[1])),
            ),
            Transpose(
                offset=4,
                src=padded.flat(c * sh, d, sw, d),
                dst=dealt.flat(d, d, c * sh, sw),
                perm=(1, 3, 0, 2),
            ),
            Upload(offset=5, src=dealt, base=small_at),
            many,
            *back,
            Pad(offset=7, src=out, dst=cut, value=0.0, pads=(*own, (-1, -1), (-1, -1))),
            Transpose(
                offset=8,
                src=cut.flat(d, d, o * (sh - 2), sw - 2),
                dst=whole.flat(o * (sh - 2), d, sw - 2, d),
                perm=(2, 0, 3, 1),
            ),
            *joined,
            Copy(offset=10, src=result, dst=View("output0", 0, result.shape)),
        ]

    def program(self, operations: list[Operation] | None = None) -> Program:
        size = {"input0": self.c * self.h * self.w, "output0": self.o * self.h * self.w}
        return Program(
            file="made",
            version=4,
            eight_bit=True,
            sizes=size | {"main": 9 * SPACE, "kpu": RAM_BYTES},
            inputs=[ModelTensor("input0", View("input0", 0, (1, self.c, self.h, self.w)))],
            outputs=[ModelTensor("output0", View("output0", 0, (1, self.o, self.h, self.w)))],
            operations=operations or self.operations(),
        ).check()


def same(one: Program, other: Program) -> bool:
    shape = one.inputs[0].shape
    x = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)
    found = [run_kmodel(p, [x]).outputs["output0"] for p in (one, other)]
    assert math.prod(shape) < 9 or len(np.unique(found[0])) > 4, "outputs that say nothing"
    return np.array_equal(found[0], found[1])


SPLITS = [
    Split(2, 3, 12, 16, 5),
    Split(2, 3, 11, 17, 5),
    Split(3, 2, 9, 35, 4, downloads=True),
    Split(3, 4, 10, 14, 4, depthwise=True, value=0),
    Split(5, 2, 30, 40, 3),
    Split(5, 2, 3, 4, 3, downloads=True),
    Split(8, 1, 17, 70, 2, over=True),
    Split(4, 2, 9, 9, 2, by_cpu=True),
]


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_one_layer_instead(split: Split) -> None:
    made = split.program()
    kept = keep_maps(made, dilation=8)
    *_, dilated = kept.kpu_layers
    assert dilated.batches == 1
    assert dilated.arg.dilation == split.d and dilated.arg.pad_value == split.value
    assert dilated.arg.in_shape == (split.c, split.h, split.w)
    assert not {"pad", "transpose"} & set(kinds(kept))
    # a map that is there is not moved; one that will be overwritten is copied in time
    first = [] if split.by_cpu else ["kpu_conv2d"]
    first += ["requantize", "upload"] if split.over else []
    assert [kind for kind in kinds(kept) if kind != "copy"] == ["upload", *first, "kpu_conv2d"]
    assert same(made, kept)
    dilated.arg.validate(eight_bit=True)


def test_as_far_as_the_device_has_it() -> None:
    made = Split(3, 2, 9, 13, 4).program()
    for most in (1, 2):
        assert kinds(keep_maps(made, dilation=most)) == kinds(made)
    assert kinds(keep_maps(made, dilation=3)) != kinds(made)


def changed(number: int, **fields: object) -> Callable[[list[Operation]], None]:
    def change(operations: list[Operation]) -> None:
        operations[number] = dataclasses.replace(operations[number], **fields)  # pyright: ignore[reportArgumentType]

    return change


def inserted(number: int, op: Operation) -> Callable[[list[Operation]], None]:
    return lambda operations: operations.insert(number, op)


OWN = (0, 0), (0, 0)
BASE = Split(2, 3, 12, 16, 5)  # upload, layer, 2 pad, transpose, 4 upload, layer, pad, ...
SH, SW = BASE.small
OTHER = View("main", 8 * SPACE, (8,))
SPOILT = {
    # windows that are not those of a dilated layer
    "one pixel further": changed(2, pads=(*OWN, (1, 3), (2, 2))),
    "another cut": changed(6, pads=(*OWN, (0, -2), (-1, -1))),
    "another order": changed(7, perm=(2, 1, 3, 0)),
    "mirrored edges": changed(2, mode="reflect"),
    # somebody else sees the small maps, or the result's bytes before they are there
    "small results are read": inserted(9, Copy(offset=0, src=view(3, 8), dst=OTHER)),
    "cut results are read": inserted(9, Copy(offset=0, src=view(4, 8), dst=OTHER)),
    "rows of the results are read": inserted(
        9, Download(offset=0, dst=view(8, 1, 5, SH, SW), base=9000)
    ),
    "the place is in use": inserted(7, Copy(offset=0, src=view(6, 8), dst=OTHER)),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_stays(name: str) -> None:
    operations = BASE.operations()
    SPOILT[name](operations)
    made = BASE.program(operations)
    kept = keep_maps(made, dilation=8)
    assert all(found.arg.dilation == 1 for found in kept.kpu_layers), name
    assert same(made, kept)


def test_moves_that_somebody_needs() -> None:
    """The small maps are read by the CPU, too: their moves stay, beside the one layer."""
    operations = BASE.operations()
    last = dataclasses.replace(operations[-1], src=view(2, 1, 5, 12, 16))  # pyright: ignore
    made = BASE.program([*operations, last])
    kept = keep_maps(made, dilation=8)
    assert kept.kpu_layers[-1].arg.dilation == 2
    assert [kind for kind in kinds(kept) if kind in ("pad", "transpose")] == ["pad", "transpose"]
    assert same(made, kept)


@pytest.mark.parametrize("same_value", [True, False])
def test_padding_of_the_small_maps(same_value: bool) -> None:
    """Lines of padding by the CPU, columns by the small layers: one layer has one value."""
    operations = BASE.operations()
    many = operations[5]
    assert isinstance(many, KpuLayer)
    sh, sw = SH, SW - 2
    made_arg = layer(2, 3, sh, sw, 5, many.arg.image_src_addr, 9000).arg
    many = dataclasses.replace(many, arg=made_arg, main_out=view(3, 4, 5, sh, sw))
    value = made_arg.pad_value ^ int(not same_value)
    first, cut, h = view(1, 1, 3, 16, 16), view(4, 4, 5, sh - 2, sw), sh - 2
    padding = {"src": view(0, 1, 3, 12, 16), "dst": first, "value": float(value)}
    made = BASE.program(
        [
            *operations[:2],
            Pad(offset=3, **padding, pads=(*OWN, (2, 2), (0, 0))),
            Transpose(
                offset=4,
                src=first.flat(3 * sh, 2, sw, 2),
                dst=view(2, 2, 2, 3 * sh, sw),
                perm=(1, 3, 0, 2),
            ),
            Upload(offset=5, src=view(2, 4, 3, sh, sw), base=made_arg.image_src_addr),
            many,
            Pad(
                offset=7,
                **{"src": view(3, 4, 5, sh, sw), "dst": cut, "value": 0.0},
                pads=(*OWN, (-1, -1), (0, 0)),
            ),
            Transpose(
                offset=8,
                src=cut.flat(2, 2, 5 * h, sw),
                dst=view(7, 5 * h, 2, sw, 2),
                perm=(2, 0, 3, 1),
            ),
            operations[-1],
        ]
    )
    kept = keep_maps(made, dilation=8)
    assert kept.kpu_layers[-1].arg.dilation == (2 if same_value else 1)
    assert same(made, kept)


@pytest.mark.skipif(not RFB.exists(), reason="needs ../shared")
def test_published_model() -> None:
    """All three branches of the RFB face detector, joined without the CPU: every output."""
    made = load_kmodel(RFB)
    ((kept,), _) = keep_all([made], RFB.stat().st_size, configs.load_config("k210"))
    assert [n.arg.dilation for n in kept.kpu_layers if n.arg.dilation > 1] == [2, 3, 5]
    # uploads left: the input, and the sum of two maps that are rounded before they are added, which
    # no element-wise layer gives; both readers of it that follow read it there
    assert sum(isinstance(op, Upload) for op in kept.operations) == 2
    assert not {"pad", "element-wise"} & set(kinds(kept))
    assert len(kept.segments()) == len(made.segments()) - 7
    x = np.random.default_rng(3).integers(0, 256, made.inputs[0].shape, dtype=np.uint8)
    one, other = (run_kmodel(p, [x]).outputs for p in (made, kept))
    assert all(np.array_equal(one[name], other[name]) for name in one)
