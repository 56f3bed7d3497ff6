# SPDX-License-Identifier: Apache-2.0
"""Sums of two maps that stay in the AI RAM: the same outputs, and no change where the device would
give another byte for any pair, or where somebody would notice (docs/performance.md 8)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from models.tests.k210.test_resident import kinds, layer
from openkpu import configs
from openkpu.export.kmodel_list import of_kmodel
from openkpu.kmodel import KpuLayer, ModelTensor, Program, View, keep_maps, run_kmodel
from openkpu.kmodel.operations.operations import Copy, QuantAdd, QuantBinary
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.kmodel.residence import pairs
from openkpu.kmodel.residence.one_list import task_list_of
from openkpu.layer.layout import AI_RAM_ROWS, Layout

SHAPE = (4, 6, 20)
SIZE = math.prod(SHAPE)
ROWS = Layout(*SHAPE).rows
IN, BOTH, LAST = 0, 2 * ROWS, 5 * ROWS  # rows of the maps
A, B, SUM, ASIDE = 0, 1024, 2048, 4096  # bytes of main memory
Param = tuple[int, int, int]  # offset, mul, shift
Params = tuple[Param, Param, Param]

# operation, its parameters, ew_op and weights of the layer
EXACT: list[tuple[str, Params, int]] = [
    ("add", ((-10, 1, 0), (-20, 1, 0), (5, 1, 1)), 0),
    ("add", ((-10, 16384, 10), (-20, 8192, 10), (5, 268988160, 32)), 0),
    ("add", ((3, 3, 0), (-20, 2, 0), (5, 11, 5)), 0),
    ("sub", ((-128, 3, 0), (-100, 1, 0), (128, 1, 2)), 0),
    ("mul", ((-128, 1, 0), (-100, 1, 0), (128, 9, 10)), 1),
    ("max", ((-10, 2, 0), (-20, 1, 0), (5, 1, 1)), 2),
    ("min", ((-10, 1, 0), (-20, 1, 0), (5, 1, 0)), 3),
]
# sides that are rounded before they are added: of the RFB face detector, and such of few bits
ROUNDED: list[tuple[str, Params]] = [
    ("add", ((-158, 24139, 10), (-120, 27053, 10), (0, 268988160, 32))),
    ("add", ((0, 3, 2), (0, 3, 2), (0, 1, 0))),
    ("sub", ((0, 5, 1), (0, 3, 1), (99, 1, 1))),
    ("mul", ((-128, 3, 1), (-100, 1, 0), (128, 9, 10))),
    ("div", ((0, 1, 0), (1, 1, 0), (0, 1, 0))),
]
SUMS = EXACT[0][1]


def view(at: int, shape: tuple[int, ...] = SHAPE, space: str = "main") -> View:
    return View(space, at, (1, *shape))


def both(op: str, params: Params, **fields: View) -> QuantBinary:
    names = ("a_param", "b_param", "out_param")
    views = {"a": view(A), "b": view(B), "dst": view(SUM), **fields}
    return QuantBinary(offset=4, op=op, **views, **dict(zip(names, params, strict=True)))


def program(
    middle: Operation | None = None,
    more: tuple[Operation, ...] = (),
    at: int = 5,
    *,
    downloads: bool = False,
    rows: tuple[int, int] = (BOTH, BOTH),
    base: int = BOTH,
) -> Program:
    """input -> two layers, at ``rows`` -> their sum, uploaded to ``base`` -> layer -> output;
    ``more`` goes before place ``at``."""
    layers = [layer(n + 1, SHAPE, IN, row) for n, row in enumerate(rows)]
    leaves: list[Operation] = []
    for one, place in zip(layers, (A, B), strict=True):
        if downloads:
            leaves += [one, Download(offset=3, dst=view(place), base=one.arg.image_dst_addr)]
        else:
            leaves.append(dataclasses.replace(one, main_out=view(place)))
    operations = [
        Upload(offset=1, src=view(0, space="input0"), base=IN),
        *leaves,
        middle or both("add", SUMS),
        Upload(offset=5, src=view(SUM), base=base),
        layer(3, SHAPE, base, LAST),
        Download(offset=6, dst=view(0, space="output0"), base=LAST),
    ]
    operations[at:at] = more
    return Program(
        file="made",
        version=4,
        eight_bit=True,
        sizes={"input0": SIZE, "output0": SIZE, "main": 8192, "kpu": RAM_BYTES},
        inputs=[ModelTensor("input0", view(0, space="input0"))],
        outputs=[ModelTensor("output0", view(0, space="output0"))],
        operations=operations,
    ).check()


def same(one: Program, other: Program, rounding: str = "nncase") -> bool:
    x = np.random.default_rng(5).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    found = [run_kmodel(p, [x], rounding=rounding) for p in (one, other)]
    values = [result.outputs["output0"] for result in found]
    assert len(np.unique(values[0])) > 3, "outputs that say nothing"
    return np.array_equal(values[0], values[1])


ALL = ["upload", "kpu_conv2d", "kpu_conv2d", "element-wise", "kpu_conv2d", "download"]


@pytest.mark.parametrize("rounding", ["nncase", "v01", "trunc"])
@pytest.mark.parametrize(("op", "params", "kind"), EXACT)
def test_sum_stays(op: str, params: Params, kind: int, rounding: str) -> None:
    """Nothing leaves; the first map, which the second overwrote, has rows of its own."""
    made = program(both(op, params))
    kept = keep_maps(made, 1000, rounding=rounding)
    assert kinds(kept) == ALL
    assert len(kept.segments()) == 1
    first, second, whole, _ = (one.arg for one in kept.kpu_layers)
    assert whole.elementwise and whole.ew_op == kind
    assert (whole.image_src_addr, whole.image_src2_addr) == (
        first.image_dst_addr,
        second.image_dst_addr,
    )
    assert first.image_dst_addr != BOTH == second.image_dst_addr
    assert same(made, kept, rounding)
    for one in kept.kpu_layers:
        one.arg.validate(eight_bit=True)


@pytest.mark.parametrize(("op", "params", "kind"), EXACT)
def test_every_pair(op: str, params: Params, kind: int) -> None:
    """What the operation's definition gives: halves up on each side, the operation, and again."""
    found = pairs.find_pairs(both(op, params), "nncase", True)
    assert found is not None and found.weights.ew_op == kind
    side = np.arange(256, dtype=object)  # whole numbers without a limit

    def scaled(x: np.ndarray, mul: int, shift: int) -> np.ndarray:
        return (x * mul + (1 << shift >> 1)) >> shift

    a, b = (scaled(side + offset, *rest) for offset, *rest in params[:2])
    a, b = np.broadcast_arrays(a[:, None], b[None, :])
    value = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "max": lambda: np.where(a > b, a, b),
        "min": lambda: np.where(a < b, a, b),
    }[op]()
    offset, *rest = params[2]
    want = np.clip((scaled(value, *rest) + offset).astype(np.int64), 0, 255).astype(np.uint8)
    assert found.gives(want, "nncase", eight_bit=True)
    for at in ((0, 0), (255, 255), (131, 77)):  # off by one anywhere
        other = want.copy()
        other[at] ^= 1
        assert not found.gives(other, "nncase", eight_bit=True), at


def test_one_byte_of_the_table_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the CPU does it."""
    table_of = pairs.table_of

    def other(op: QuantAdd | QuantBinary) -> np.ndarray:
        table = table_of(op)
        table[100, 30] += 1
        return table

    assert "element-wise" in kinds(keep_maps(program()))
    monkeypatch.setattr(pairs, "table_of", other)
    assert "element-wise" not in kinds(keep_maps(program()))


@pytest.mark.parametrize(("op", "params"), ROUNDED)
def test_what_no_layer_gives(op: str, params: Params) -> None:
    made = program(both(op, params))
    kept = keep_maps(made)
    assert kinds(kept) == kinds(made)
    assert same(made, kept)


def test_sums_of_the_older_container() -> None:
    """With its rounding, and with downloads."""
    fields = {"a_param": (4, 1, 0), "b_param": (0, 2, 0), "out_param": (0, 3, 3)}
    op = QuantAdd(offset=4, a=view(A), b=view(B), dst=view(SUM), **fields)
    made = program(op, downloads=True)
    assert len(made.segments()) == 3
    kept = keep_maps(made)
    assert kinds(kept) == ALL
    assert same(made, kept)


def test_as_a_task_list() -> None:
    """A stream may be that, and an exported list."""
    made = program()
    x = np.random.default_rng(6).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    want = run_kmodel(made, [x]).outputs["output0"][0]
    network = task_list_of(keep_maps(made), AI_RAM_ROWS)
    exported, *_ = of_kmodel(made, bytes(1000), configs.load_config("k210"))
    for found in (network, exported):
        found.validate()
        assert np.array_equal(found.run(x[0]).y, want)


def test_tables_lie_behind_the_file() -> None:
    kept = keep_maps(program(), 1001)
    op = kept.kpu_layers[2]
    storage = bytes(1001) + kept.tail
    places = op.arg.para_start_addr, op.arg.bwsx_base_addr, op.arg.active_addr
    for at, table in zip(places, (op.weights, op.bn, op.act), strict=True):
        assert at >= 1001 and at % 64 == 0
        assert storage[at : at + table.nbytes] == table.tobytes()


def test_maps_that_others_read() -> None:
    """The CPU reads one of the two maps: it is stored, too."""
    look = Copy(offset=9, src=view(A), dst=view(ASIDE))
    made = program(more=(look,), at=4)
    kept = keep_maps(made)
    assert [op.main_out for op in kept.kpu_layers] == [view(A), None, None, None]
    assert same(made, kept)


def test_maps_at_rows_of_their_own() -> None:
    """Neither is moved."""
    made = program(rows=(BOTH, 8 * ROWS), base=11 * ROWS)
    kept = keep_maps(made)
    *maps, whole, _ = kept.kpu_layers
    assert [op.arg.image_dst_addr for op in maps] == [BOTH, 8 * ROWS]
    assert whole.arg.image_dst_addr == 11 * ROWS
    assert same(made, kept)


def over(row: int) -> KpuLayer:
    return layer(7, (1, 2, 20), IN, row)


STAYS: dict[str, Program] = {
    "the sum is read in main memory": program(
        more=(Copy(offset=9, src=view(SUM + SIZE - 1, (1,)), dst=view(ASIDE, (1,))),), at=6
    ),
    "a map is changed by the CPU": program(
        more=(Copy(offset=9, src=view(ASIDE, (1,)), dst=view(B, (1,))),), at=3
    ),
    "the sum is changed by the CPU": program(
        more=(Copy(offset=9, src=view(ASIDE, (1,)), dst=view(SUM, (1,))),), at=4
    ),
    "rows of both are read before": program(
        more=(Download(offset=9, dst=view(ASIDE), base=BOTH),), at=2
    ),
    "one value for each channel": program(
        both("add", SUMS, b=view(B, (4, 1, 1))),
        more=(Upload(offset=9, src=view(B, (4, 1, 1)), base=9 * ROWS),),
        at=3,
    ),
    "output over a part of a map": program(rows=(BOTH, 8 * ROWS), base=BOTH + 1),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    made = STAYS[name]
    kept = keep_maps(made)
    assert "element-wise" not in kinds(kept), name
    assert same(made, kept)


def test_rows_written_in_between() -> None:
    """A map whose rows are overwritten goes elsewhere; it stays when there is no room."""
    made = program(
        rows=(BOTH, 8 * ROWS), base=11 * ROWS, more=(over(BOTH + ROWS - 1), over(8 * ROWS)), at=4
    )
    kept = keep_maps(made)
    assert "element-wise" in kinds(kept)
    *_, whole, _ = kept.kpu_layers
    assert not {whole.arg.image_src_addr, whole.arg.image_src2_addr} & {BOTH, 8 * ROWS}
    assert whole.arg.image_src_addr != whole.arg.image_src2_addr
    assert same(made, kept)


def test_map_beside_its_input() -> None:
    """Rows of a map that nobody else reads are no place for the result of the layer that does."""
    made = program()
    made.operations[1:3] = [
        made.operations[1],
        Upload(offset=9, src=view(ASIDE), base=8 * ROWS),
        dataclasses.replace(layer(2, SHAPE, 8 * ROWS, BOTH), main_out=view(B)),
    ]
    kept = keep_maps(made)
    first = kept.kpu_layers[0].arg
    assert "element-wise" in kinds(kept) and not first.maps_meet
    assert same(made, kept)


def test_rows_that_are_free() -> None:
    """Rows that are read later are not; without enough of them the maps stay with the CPU."""
    top = 3 * ROWS + 1  # behind the last row that somebody reads later
    full = [Upload(offset=1, src=view(0, (1, 1, 20)), base=row) for row in (ROWS, 3 * ROWS)]
    looks = [Download(offset=9, dst=view(ASIDE, (1, 1, 20)), base=op.base) for op in full]
    made = program()
    made.operations[0:0] = full
    made.operations += looks
    for rows, goes in ((top + ROWS - 1, False), (top + ROWS, True)):
        kept = keep_maps(made, ram_rows=rows)
        assert ("element-wise" in kinds(kept)) == goes, rows
        assert same(made, kept)
        if goes:
            assert kept.kpu_layers[0].arg.image_dst_addr == top
