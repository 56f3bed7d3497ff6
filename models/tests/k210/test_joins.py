# SPDX-License-Identifier: Apache-2.0
"""Maps that are joined in the AI RAM: the same outputs, no change where anybody would notice."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from models.tests.k210.test_resident import kinds, layer
from openkpu import configs
from openkpu.kmodel import KpuLayer, ModelTensor, Program, View, keep_all, keep_maps, run_kmodel
from openkpu.kmodel.operations.moves import Concat, PadPixels
from openkpu.kmodel.operations.operations import Copy, Dequantize, Quantize, Resize, TableLookup
from openkpu.kmodel.program import RAM_BYTES, Download, Operation, Upload
from openkpu.layer.layout import Layout

SHAPE = (4, 6, 20)  # of each map, two channels a row
BOTH = (8, 6, 20)
SIZE = math.prod(SHAPE)
ROWS = Layout(*SHAPE).rows
MAIN = 32768
RAW, REAL, JOINED = 0, 4096, 16384  # bytes of main memory
SCALES = ((0.05, -0.4), (0.021, -0.1))
FIRST, SECOND, THIRD, LAST = ROWS, 2 * ROWS, 10 * ROWS, 20 * ROWS  # rows of the maps


def view(at: int, shape: tuple[int, ...], space: str = "main", dtype: str = "u1") -> View:
    return View(space, at, (1, *shape), dtype)


def both_ways() -> list[Operation]:
    """Downloads of two maps, each brought to one scale by the CPU, as one map."""
    found: list[Operation] = []
    for n, (scale, bias) in enumerate(SCALES):
        raw, real = view(RAW + n * SIZE, SHAPE), view(REAL + 4 * n * SIZE, SHAPE, dtype="<f4")
        found.append(Dequantize(offset=3, src=raw, dst=real, scale=scale, bias=bias))
    joined, real = view(JOINED, BOTH), view(REAL, BOTH, dtype="<f4")
    return [*found, Quantize(offset=4, src=real, dst=joined, scale=22.0, bias=5.0)]


def program(
    *more: Operation,
    at: int = 7,
    middle: Sequence[Operation] | None = None,
    base: int = THIRD,
    last: KpuLayer | None = None,
) -> Program:
    """input -> two layers, each downloaded -> joined, uploaded -> layer -> output; ``more`` goes
    before ``at``.  ``middle``: what joins the maps; ``base`` of the upload; the ``last`` layer."""
    result = view(0, BOTH, "output0")
    operations = [
        Upload(offset=1, src=view(0, SHAPE, "input0"), base=0),
        layer(1, SHAPE, 0, FIRST),
        Download(offset=2, dst=view(RAW, SHAPE), base=FIRST),
        layer(2, SHAPE, 0, FIRST),  # the first map is gone
        Download(offset=2, dst=view(RAW + SIZE, SHAPE), base=FIRST),
        *(both_ways() if middle is None else middle),
        Upload(offset=5, src=view(JOINED, BOTH), base=base),
        last or layer(3, BOTH, THIRD, LAST),
        Download(offset=7, dst=result, base=LAST),
    ]
    operations[at:at] = more
    sizes = {"input0": SIZE, "output0": math.prod(BOTH), "main": MAIN, "kpu": RAM_BYTES}
    return Program(
        file="made",
        version=5,
        eight_bit=True,
        sizes=sizes,
        inputs=[ModelTensor("input0", view(0, SHAPE, "input0"))],
        outputs=[ModelTensor("output0", result)],
        operations=operations,
    ).check()


def same(one: Program, other: Program, rounding: str = "nncase") -> bool:
    x = np.random.default_rng(5).integers(0, 256, (1, *SHAPE), dtype=np.uint8)
    outputs = [run_kmodel(p, [x], rounding=rounding).outputs for p in (one, other)]
    assert len(np.unique(outputs[0]["output0"])) > 5, "outputs that say nothing"
    return all(np.array_equal(outputs[0][name], outputs[1][name]) for name in outputs[0])


ALL = ["upload", "kpu_conv2d", "requantize", "kpu_conv2d", "requantize", "kpu_conv2d", "download"]


@pytest.mark.parametrize("rounding", ["nncase", "v01", "trunc"])
def test_maps_are_joined(rounding: str) -> None:
    """Downloads, the CPU's work and the upload go; all layers are one segment."""
    made = program()
    kept = keep_maps(made, 1000, rounding=rounding)
    assert kinds(kept) == ALL
    assert len(made.segments()) == 3 and len(kept.segments()) == 1
    assert same(made, kept, rounding)
    first, second = (kept.kpu_layers[n].arg for n in (1, 3))
    assert first.out_shape == second.out_shape == SHAPE
    assert second.image_dst_addr == first.image_dst_addr + ROWS
    assert kept.kpu_layers[4].arg.image_src_addr == first.image_dst_addr
    assert len(made.operations) == 11, "the program that was given has changed"


def test_tables_lie_behind_the_file() -> None:
    """Of each new layer, from a multiple of 64 on; the same table once; those of several programs
    one behind the other."""
    programs, tail = keep_all([program(), program()], 1001, configs.load_config("nano"))
    assert [p.tail for p in programs] != [b"", b""]
    storage = bytes(1001) + tail
    for kept in programs:
        new = [op for op in kept.kpu_layers if op.title == "requantize"]
        assert len({op.arg.para_start_addr for op in new}) == 1, "weights of 1 that are there twice"
        assert len({op.arg.active_addr for op in new}) == 1  # the shift is the same
        assert len({op.arg.bwsx_base_addr for op in new}) == 2
        for op in new:
            places = op.arg.para_start_addr, op.arg.bwsx_base_addr, op.arg.active_addr
            for at, table in zip(places, (op.weights, op.bn, op.act), strict=True):
                assert at >= 1001 and at % 64 == 0
                assert storage[at : at + table.nbytes] == table.tobytes()
    ends = [max(op.arg.bwsx_base_addr for op in p.kpu_layers if op.title) for p in programs]
    assert ends[0] < min(
        op.arg.para_start_addr for op in programs[1].kpu_layers if op.title == "requantize"
    )


def test_concatenated_bytes() -> None:
    """A container of the older kind: a table of bytes for one map, none for the other."""
    table = np.clip(np.arange(256) // 2 + 9, 0, 255).astype(np.uint8).tobytes()
    raw = [view(RAW + n * SIZE, SHAPE).flat(1, SIZE) for n in (0, 1)]
    changed = view(REAL, SHAPE).flat(1, SIZE)
    middle = [
        TableLookup(offset=3, src=raw[0], dst=changed, table=table),
        Concat(offset=4, sources=(changed, raw[1]), dst=view(JOINED, BOTH).flat(1, 2 * SIZE)),
    ]
    made = program(middle=middle)
    kept = keep_maps(made)
    assert kinds(kept) == ALL
    assert same(made, kept)
    curve = (np.arange(256.0) ** 2 / 255).astype(np.uint8).tobytes()
    middle[0] = dataclasses.replace(middle[0], table=curve)
    assert "requantize" not in kinds(keep_maps(program(middle=middle)))


def test_maps_of_layers_that_write_main_memory() -> None:
    """No downloads: the layers themselves leave their maps, and do so no more."""
    made = program()
    ops = made.operations
    for number in (1, 3):
        download = ops[number + 1]
        assert isinstance(download, Download)
        ops[number] = dataclasses.replace(ops[number], main_out=download.dst)
    del ops[4], ops[2]
    kept = keep_maps(made)
    assert kinds(kept) == ALL
    assert not any(op.main_out for op in kept.kpu_layers)
    assert same(made, kept)


def test_map_that_others_read_is_downloaded_too() -> None:
    """Somebody reads the first map behind the upload."""
    again = Copy(offset=9, src=view(RAW, SHAPE), dst=view(20000, SHAPE))
    made = program(again, at=10)
    kept = keep_maps(made)
    assert kinds(kept) == [*ALL[:2], "download", *ALL[2:-1], again.name, "download"]
    assert same(made, kept)


def resized(half: tuple[int, int, int], src: int) -> list[Operation]:
    """The CPU's own half: the second map at half its size, made large again."""
    small = view(24000, half, dtype="<f4")
    large = view(REAL + 4 * SIZE, SHAPE, dtype="<f4")
    return [
        Dequantize(offset=3, src=view(src, half), dst=small, scale=0.02, bias=-0.1),
        Resize(offset=3, src=small, dst=large, mode="nearest"),
    ]


def half_by_cpu() -> list[Operation]:
    """As ``both_ways``, the second half made of the first pixels of the second map."""
    first, _, last = both_ways()
    half = (SHAPE[0], SHAPE[1] // 2, SHAPE[2] // 2)
    return [first, *resized(half, RAW + SIZE), last]


def test_half_that_the_cpu_makes_is_uploaded() -> None:
    """Beside the joined map; a layer takes it there, and the CPU makes no more than it."""
    made = program(middle=half_by_cpu())
    kept = keep_maps(made)
    names = kinds(kept)
    assert names[:4] == ALL[:4]
    assert names[4:9] == ["download", "dequantize", "resize_image", "quantize", "upload"]
    assert names[9:] == ["requantize", "kpu_conv2d", "download"]
    quantize = kept.operations[7]
    assert isinstance(quantize, Quantize) and quantize.dst.count == SIZE
    assert same(made, kept)


def test_more_than_half_by_the_cpu_stays() -> None:
    """Both halves, or the map is not divided by channels."""
    first, *_, last = half_by_cpu()
    half = (SHAPE[0], SHAPE[1] // 2, SHAPE[2] // 2)
    small = view(24000, half, dtype="<f4")
    more = Resize(offset=3, src=small, dst=view(REAL, SHAPE, dtype="<f4"), mode="nearest")
    made = program(middle=[*resized(half, RAW + SIZE), more, last])
    assert "requantize" not in kinds(keep_maps(made))
    assert same(made, keep_maps(made))
    assert isinstance(first, Dequantize)


def test_rows_that_are_free() -> None:
    """The joined map goes where nobody needs the rows; nowhere when the AI RAM has none."""
    made = program()
    assert same(made, keep_maps(made, ram_rows=LAST + 2 * ROWS))
    busy = layer(4, (2, 6, 20), FIRST, THIRD + ROWS)  # rows of the upload are used before
    kept = keep_maps(program(busy, at=3))
    assert kinds(kept).count("requantize") == 2
    assert same(program(busy, at=3), kept)
    needed = Upload(offset=1, src=view(0, (4, 6, 64), "input0").flat(1, 4, 6, 20), base=SECOND)
    reader = Download(offset=9, dst=view(20000, SHAPE), base=SECOND)
    twice = program(needed, at=1)
    twice.operations.append(reader)
    kept = keep_maps(twice)
    at = kept.kpu_layers[1].arg.image_dst_addr
    assert at >= SECOND + ROWS, "rows that are read later"
    assert same(twice, kept)
    assert "requantize" not in kinds(keep_maps(made, ram_rows=2 * ROWS))


def test_readers_of_the_joined_map() -> None:
    """Two layers read it; a layer that reads a part, and a download, keep it where it is."""
    twice = layer(7, BOTH, THIRD, 30 * ROWS)
    made = program(twice, at=9)
    kept = keep_maps(made)
    assert kinds(kept).count("requantize") == 2
    sources = {op.arg.image_src_addr for op in kept.kpu_layers[-2:]}
    assert len(sources) == 1
    assert same(made, kept)
    part = layer(7, SHAPE, THIRD + ROWS, 30 * ROWS)
    look = Download(offset=9, dst=view(20000, BOTH), base=THIRD)
    for op in (part, look):
        for place in (9, 10):
            made = program(op, at=place)
            assert "requantize" not in kinds(keep_maps(made)), (op, place)
            assert same(made, keep_maps(made))
    # its rows are written first: that is another map
    over = Upload(offset=9, src=view(JOINED, BOTH), base=THIRD)
    made = program(over, look, at=10)
    assert kinds(keep_maps(made)).count("requantize") == 2
    assert same(made, keep_maps(made))


def test_what_is_not_joined() -> None:
    """Channels that begin inside a row; bytes that were written in between; batches; no reader."""
    odd, rest = (3, 6, 20), (5, 6, 20)
    cut = 3 * 120
    first, second, last = both_ways()
    parts = [
        dataclasses.replace(first, src=view(RAW, odd), dst=view(REAL, odd, dtype="<f4")),
        dataclasses.replace(
            second,
            src=view(RAW + cut, rest),
            dst=view(REAL + 4 * cut, rest, dtype="<f4"),
        ),
    ]
    assert "requantize" not in kinds(keep_maps(program(middle=[*parts, last])))
    spoil = Copy(offset=9, src=view(20000, (1, 6, 20)), dst=view(RAW, (1, 6, 20)))
    made = program(spoil, at=5)
    assert "requantize" not in kinds(keep_maps(made))
    nobody = program(last=layer(3, BOTH, 30 * ROWS, LAST), base=THIRD)
    assert "requantize" not in kinds(keep_maps(nobody))
    whole = program()
    for number in (2, 4):
        op = whole.operations[number]
        assert isinstance(op, Download)
        two = op.dst.flat(2, 2, 6, 20)
        whole.operations[number] = dataclasses.replace(op, dst=two)
    assert "requantize" not in kinds(keep_maps(whole))


def test_without_pooling_tasks() -> None:
    """A device without them joins all the same."""
    assert kinds(keep_maps(program(), pools=False)) == ALL


def test_layers_are_legal() -> None:
    """As the device checks them."""
    for op in keep_maps(program(), 640).kpu_layers:
        assert isinstance(op, KpuLayer)
        op.arg.validate(eight_bit=True)


def own_and(channels: int, source: int) -> list[Operation]:
    """So many channels of a map of the KPU, those behind them made by the CPU."""
    part, rest = (channels, 6, 20), (8 - channels, 6, 20)
    small, cut = view(24000, (8 - channels, 3, 10), dtype="<f4"), channels * 120
    real = [view(REAL, part, dtype="<f4"), view(REAL + 4 * cut, rest, dtype="<f4")]
    half = view(RAW + SIZE, (8 - channels, 3, 10))
    return [
        Dequantize(offset=3, src=view(source, part), dst=real[0], scale=0.05, bias=-0.4),
        Dequantize(offset=3, src=half, dst=small, scale=0.02, bias=-0.1),
        Resize(offset=3, src=small, dst=real[1], mode="nearest"),
        both_ways()[-1],
    ]


@pytest.mark.parametrize(
    ("channels", "source", "joined"),
    [(4, RAW, True), (2, RAW, False), (5, RAW, False)],
)
def test_share_of_the_cpu(channels: int, source: int, joined: bool) -> None:
    """Half of the map; more than half; less, but it begins inside a row."""
    made = program(middle=own_and(channels, source))
    kept = keep_maps(made)
    assert ("requantize" in kinds(kept)) == joined
    assert same(made, kept)


@pytest.mark.parametrize(("channel", "joined"), [(0, True), (1, False)])
def test_channels_that_begin_inside_a_row(channel: int, joined: bool) -> None:
    """Two channels of the first map, all of the second and two of the CPU's."""
    first, pair = RAW + 120 * channel, (2, 6, 20)
    small = view(24000, (2, 3, 10), dtype="<f4")
    middle = [
        Dequantize(offset=3, src=view(first, pair), dst=view(REAL, pair, dtype="<f4"), scale=0.05),
        dataclasses.replace(both_ways()[1], dst=view(REAL + 4 * 240, SHAPE, dtype="<f4")),
        Dequantize(offset=3, src=view(RAW + SIZE, (2, 3, 10)), dst=small, scale=0.02),
        Resize(offset=3, src=small, dst=view(REAL + 4 * 720, pair, dtype="<f4"), mode="nearest"),
        both_ways()[-1],
    ]
    made = program(middle=middle)
    kept = keep_maps(made)
    assert ("requantize" in kinds(kept)) == joined
    assert same(made, kept)


def test_own_part_needs_rows_too() -> None:
    """No place beside the joined map."""
    made = program(middle=own_and(4, RAW))
    rows = Layout(*BOTH).rows
    for room, joined in ((rows + ROWS, True), (rows + ROWS - 1, False)):
        top = LAST + rows
        full = [
            Upload(offset=1, src=view(0, SHAPE, "input0"), base=base)
            for base in range(SECOND, top, ROWS)
            if not THIRD <= base < THIRD + rows  # the map that is uploaded
        ]
        crowded = program(*full, at=1, middle=made.operations[5:9])
        crowded.operations += [
            Download(offset=9, dst=view(20000, SHAPE), base=op.base) for op in full
        ]
        kept = keep_maps(crowded, ram_rows=top + room)
        assert ("requantize" in kinds(kept)) == joined, room
        assert same(crowded, kept)


def test_joined_bytes_that_others_read() -> None:
    """The CPU makes all of them then, not its own half alone."""
    look = Copy(offset=9, src=view(JOINED, BOTH), dst=view(20000, BOTH))
    result = Copy(offset=9, src=view(20000, BOTH), dst=view(0, BOTH, "output0"))
    made = program(middle=own_and(4, RAW))
    made.operations += [look, result]
    kept = keep_maps(made)
    quantize = next(op for op in kept.operations if isinstance(op, Quantize))
    assert quantize.dst.count == 2 * SIZE
    assert same(made, kept)


def test_strided_writes_leave_bytes() -> None:
    """A reader behind a copy to every second byte of a map still sees the others."""
    lines = view(RAW, (4, 6, 10))
    every = dataclasses.replace(lines, strides=(480, 120, 20, 2))
    spoil = Copy(offset=9, src=view(24000, (4, 6, 10)), dst=every)
    line = (1, 1, 10)
    again = Copy(offset=9, src=view(RAW, line), dst=view(20000, line))
    made = program(spoil, again, at=9)
    kept = keep_maps(made)
    assert kinds(kept)[2] == "download"
    assert same(made, kept)


def test_operation_that_may_write_any_row() -> None:
    """Pixels that the CPU puts into the AI RAM by itself, before the map's last reader."""
    pads = PadPixels(offset=9, src=View("main", 24000, (4,)), base=THIRD + 100)
    assert "requantize" not in kinds(keep_maps(program(pads, at=6)))
