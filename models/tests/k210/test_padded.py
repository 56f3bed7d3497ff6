# SPDX-License-Identifier: Apache-2.0
"""Padding below or to the right that no result depends on: the same outputs without it, and no
change where somebody depends on it (docs/performance.md 8)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from models.tests.k210.test_resident import kinds
from openkpu import configs
from openkpu.export.kmodel_list import of_kmodel
from openkpu.generators.generate import random_layer
from openkpu.kmodel import KpuLayer, ModelTensor, Program, View, keep_maps, run_kmodel
from openkpu.kmodel.operations.moves import Pad
from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.kmodel.residence.one_list import task_list_of
from openkpu.layer import airam
from openkpu.layer.argument import MOST_DILATED_POOL
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout
from openkpu.layer.pixels import used_layouts
from openkpu.network.network import NetworkError

PLAIN, PADDED, ASIDE = 0, 8192, 16384  # bytes of main memory
FIRST, AGAIN, LAST = 200, 400, 600  # rows of the maps; the input is at 0
VALUE = 77.0  # of the padding


def view(at: int, shape: tuple[int, ...], space: str = "main") -> View:
    return View(space, at, (1, *shape))


def layer(
    seed: int,
    shape: tuple[int, int, int],
    src: int,
    dst: int,
    *,
    kernel: int = 1,
    pool: int = 0,
    depthwise: bool = False,
) -> KpuLayer:
    c, h, w = shape
    made = random_layer(
        np.random.default_rng(seed),
        c=c,
        h=h,
        w=w,
        o=c,
        pool=pool,
        kernel=kernel,
        depthwise=depthwise,
        fc=False,
        eight_bit=True,
        signed_in=False,
    )
    arg = made.arg.replace(image_src_addr=src, image_dst_addr=dst, signed_out=0)
    tables = {"weights": made.weights, "bn": made.bn, "act": made.act}
    return KpuLayer(offset=seed, arg=arg, eight_bit=True, **tables)


@dataclasses.dataclass
class Case:
    """input -> layer -> padded by the CPU -> layer with a pool -> output."""

    shape: tuple[int, int, int] = (5, 5, 20)
    pads: tuple[tuple[int, int], tuple[int, int]] = ((0, 1), (0, 0))
    pool: int = 5
    kernel: int = 1
    downloads: bool = False
    before: tuple[Operation, ...] = ()  # behind the first layer
    between: tuple[Operation, ...] = ()  # between padding and upload
    behind: tuple[Operation, ...] = ()  # behind the last layer

    @property
    def large(self) -> tuple[int, int, int]:
        (top, bottom), (left, right) = self.pads
        c, h, w = self.shape
        return c, h + top + bottom, w + left + right

    def program(self) -> Program:
        first = layer(1, self.shape, 0, FIRST)
        last = layer(2, self.large, AGAIN, LAST, kernel=self.kernel, pool=self.pool)
        plain = view(PLAIN, self.shape)
        out: list[Operation] = [first, Download(offset=2, dst=plain, base=FIRST)]
        if not self.downloads:
            out = [dataclasses.replace(first, main_out=plain)]
        padded, result = view(PADDED, self.large), view(0, last.arg.out_shape, "output0")
        given = view(0, self.shape, "input0")
        own = (0, 0), (0, 0)
        operations = [
            Upload(offset=1, src=given, base=0),
            *out,
            *self.before,
            Pad(offset=3, src=plain, dst=padded, pads=(*own, *self.pads), value=VALUE),
            *self.between,
            Upload(offset=4, src=padded, base=AGAIN),
            last,
            *self.behind,
            Download(offset=5, dst=result, base=LAST),
        ]
        sizes = {"input0": math.prod(self.shape), "output0": math.prod(last.arg.out_shape)}
        return Program(
            file="made",
            version=4,
            eight_bit=True,
            sizes=sizes | {"main": 32768, "kpu": RAM_BYTES},
            inputs=[ModelTensor("input0", given)],
            outputs=[ModelTensor("output0", result)],
            operations=operations,
        ).check()


def same(one: Program, other: Program) -> bool:
    x = np.random.default_rng(5).integers(0, 256, one.inputs[0].shape, dtype=np.uint8)
    found = [run_kmodel(p, [x]).outputs["output0"] for p in (one, other)]
    assert len(np.unique(found[0])) > 5, "outputs that say nothing"
    return np.array_equal(found[0], found[1])


GOES = {
    "a line": Case(),
    "a line, from a download": Case(downloads=True),
    "a column": Case(shape=(5, 6, 19), pads=((0, 0), (0, 1))),
    "line and column": Case(shape=(9, 7, 13), pads=((0, 1), (0, 1))),
    "a column, lines of two rows": Case(shape=(2, 6, 99), pads=((0, 0), (0, 1))),
    "every fourth": Case(shape=(5, 6, 18), pads=((0, 2), (0, 2)), pool=7),
    "3x3, every fourth": Case(shape=(5, 6, 20), pads=((0, 2), (0, 0)), pool=7, kernel=3),
    "lines that the pool drops": Case(shape=(5, 4, 20), pads=((0, 1), (0, 0)), pool=1),
}


@pytest.mark.parametrize("name", GOES)
def test_padding_goes(name: str) -> None:
    case = GOES[name]
    made = case.program()
    kept = keep_maps(made)
    assert kinds(kept) == ["upload", "kpu_conv2d", "kpu_conv2d", "download"]
    assert len(kept.segments()) == 1
    first, last = (op.arg for op in kept.kpu_layers)
    assert last.in_shape == case.large and first.out_shape == case.shape
    assert first.out_layout.channel_rows == last.in_layout.channel_rows
    assert first.image_dst_addr == last.image_src_addr
    assert same(made, kept)
    for arg in (first, last):
        arg.validate(eight_bit=True)


@pytest.mark.parametrize("name", GOES)
def test_as_a_task_list(name: str) -> None:
    """Nobody writes the padding, and nobody has to: a stream and an exported list may be that."""
    made = GOES[name].program()
    x = np.random.default_rng(6).integers(0, 256, made.inputs[0].shape, dtype=np.uint8)
    want = run_kmodel(made, [x]).outputs["output0"][0]
    network = task_list_of(keep_maps(made), AI_RAM_ROWS)
    exported, *_ = of_kmodel(made, bytes(1000), configs.load_config("k210"))
    for found in (network, exported):
        found.validate()
        assert np.array_equal(found.run(x[0]).y, want)


def test_padding_that_counts_is_no_map() -> None:
    """A list whose last layer takes the maximum of both lines reads one that nobody wrote."""
    network = task_list_of(keep_maps(Case().program()), AI_RAM_ROWS)
    network.layers[-1] = network.layers[-1].replace(pool_type=1)
    with pytest.raises(NetworkError, match="layer 1: reads"):
        network.validate()


def test_another_reader_of_the_padded_map() -> None:
    """It picks other columns."""
    second = layer(3, (5, 6, 20), AGAIN, 700, pool=6)
    made = Case(behind=(second,)).program()
    kept = keep_maps(made)
    assert "pad" not in kinds(kept)
    assert len({op.arg.image_src_addr for op in kept.kpu_layers[1:]}) == 1
    assert same(made, kept)


def copy(at: int) -> Copy:
    """Somebody reads a byte of main memory."""
    return Copy(offset=9, src=view(at, (1,)), dst=view(ASIDE, (1,)))


STAYS: dict[str, Case] = {
    "all lines are read": Case(pool=0),
    "the maximum of both lines": Case(pool=1),
    "a 3x3 window reaches the line": Case(kernel=3),
    "the right column of two": Case(shape=(5, 6, 19), pads=((0, 0), (0, 1)), pool=6),
    "a line above": Case(pads=((1, 0), (0, 0))),
    "a column to the left": Case(shape=(5, 6, 19), pads=((0, 0), (1, 0))),
    "four channels a row, then two": Case(shape=(5, 6, 16), pads=((0, 0), (0, 1))),
    "a row for a line, then two": Case(shape=(2, 6, 64), pads=((0, 0), (0, 1))),
    "the map is read in main memory": Case(behind=(copy(PLAIN),)),
    "the padded map is read in main memory": Case(behind=(copy(PADDED + 599),)),
    "the map is read in the AI RAM": Case(before=(layer(3, (5, 5, 20), FIRST, 700),)),
    "another layer reads all lines": Case(behind=(layer(3, (5, 6, 20), AGAIN, 700),)),
    "work of the CPU in between": Case(between=(copy(ASIDE + 8),)),
    "bytes changed before": Case(
        before=(Copy(offset=9, src=view(ASIDE, (1,)), dst=view(PLAIN, (1,))),)
    ),
    "bytes changed behind": Case(
        between=(Copy(offset=9, src=view(ASIDE, (1,)), dst=view(PADDED, (1,))),)
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    made = STAYS[name].program()
    kept = keep_maps(made)
    assert kinds(kept) == kinds(made), name
    assert [op.arg for op in kept.kpu_layers] == [op.arg for op in made.kpu_layers]
    assert same(made, kept)


def test_rows_that_are_free() -> None:
    """The map goes where nobody needs the rows; nowhere when there are none."""
    case = Case()
    have, need = Layout(*case.shape).rows, Layout(*case.large).rows
    for rows, goes in ((have + need, True), (have + need - 1, False)):
        kept = keep_maps(case.program(), ram_rows=rows)
        assert ("pad" not in kinds(kept)) == goes, rows
        assert same(case.program(), kept)
    needed = Upload(offset=1, src=view(ASIDE, (1, 2, 20)), base=have)
    look = Download(offset=9, dst=view(ASIDE, (1, 2, 20)), base=have)
    made = Case(behind=(look,)).program()
    made.operations.insert(0, needed)
    kept = keep_maps(made)
    assert kept.kpu_layers[0].arg.image_dst_addr == have + 2
    assert same(made, kept)


@pytest.mark.parametrize("width", [16, 17, 20, 33, 64, 65, 66, 130])
def test_they_lie_where_the_map_has_them(width: int) -> None:
    """Also where fewer columns would be arranged in other rows."""
    index = np.arange(600 * ROW_BYTES)
    arg = layer(1, (5, 7, width), 0, 300, pool=5).arg
    (used,), whole = used_layouts(arg), airam.read_rows(index, arg.in_layout)
    assert used.height == 5 and width - 2 <= used.width <= width
    assert np.array_equal(airam.read_rows(index, used), whole[:, : used.height, : used.width])


@pytest.mark.parametrize(
    ("pool", "kernel", "dilation"),
    [
        *((pool, kernel, 1) for pool in range(10) for kernel in (1, 3)),
        *((pool, 3, 2) for pool in range(MOST_DILATED_POOL + 1)),
    ],
)
def test_lines_and_columns_that_count(pool: int, kernel: int, dilation: int) -> None:
    """Bytes elsewhere change no sum that the pool uses, those of the last line and column do."""
    rng = np.random.default_rng(11)
    shape = (1, 11, 21)
    made = layer(pool, shape, 0, 300, pool=pool, kernel=kernel, depthwise=True)
    arg = made.arg.replace(dilation=dilation)
    weights = np.maximum(made.weights, 1)

    def sums(x: np.ndarray) -> np.ndarray:
        return run_layer(arg, x, weights, made.bn, made.act, debug=True).alu

    x = rng.integers(0, 100, shape, dtype=np.uint8)
    plain, found = sums(x), []
    for axis in (1, 2):
        seen = []
        for place in range(shape[axis]):
            other = x.copy()
            np.moveaxis(other, axis, 0)[place] += 100
            seen.append(bool((sums(other) != plain).any()))
        found.append(1 + max(n for n, one in enumerate(seen) if one))
    (used,) = used_layouts(arg)
    assert (used.height, used.width) == tuple(found)
