# SPDX-License-Identifier: Apache-2.0
"""layer_decode: every field of the descriptor, every refusal, stalls on either side."""

import random
from collections.abc import Iterable

import pytest
from cocotb.triggers import RisingEdge

from openkpu.layer.argument import ERROR_CODES, LayerArg
from openkpu.layer.decoded import Sizes
from openkpu.layer.pool_layer import pool_layer
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.simrun import run_bench
from tb.layer_decode.bench import PARTS, Bench, Case, legal, spoil


@block_test(Bench)
async def fields(bench: Bench) -> None:
    """Legal layers back to back, words and descriptor with and without stalls."""
    modes = set()
    for turn in range(1500):
        if turn >= 400 and len(modes) == 34:  # ten pools of two modes; rows and vectors have none
            break
        case = legal(bench.sizes)
        elementwise = case.arg.elementwise and 1 + case.arg.ew_one
        mode = "pooling" if case.arg.pool_task else case.fields(bench.sizes)["mode"]
        modes.add((mode, case.arg.pool_type, elementwise))
        await bench.decode(case, random.choice((1.0, 0.5)), random.choice((0, 0, 3)))
    assert len(modes) >= 34, f"{len(modes)} modes with pools"


@block_test(Bench)
async def refusals(bench: Bench) -> None:
    """Every code, the first rule that is broken names it; a legal layer follows each."""
    seen: dict[int, int] = {}

    def often(codes: Iterable[int]) -> bool:
        return all(seen.get(code, 0) > 5 for code in codes)

    for turn in range(2000):
        if turn >= 400 and often((0, *ERROR_CODES.values())):
            break
        case = spoil(legal(bench.sizes))
        code = await bench.decode(case, random.choice((1.0, 0.5)), 0)
        seen[code] = seen.get(code, 0) + 1
        if random.random() < 0.3:
            await bench.decode(legal(bench.sizes), 1.0, 0)
    assert often(ERROR_CODES.values()), seen
    assert often([0]), "changes that stay legal"


@block_test(Bench)
async def dropped(bench: Bench, dut) -> None:
    """Words of an unfinished layer are forgotten, whatever their number; the next one is whole."""
    for turn in range(36):
        count = turn % 12
        for word in legal(bench.sizes).words()[:count]:
            dut.w_valid.value, dut.w_data.value = 1, word
            await RisingEdge(dut.clk)
        dut.w_valid.value, dut.drop.value = 0, 1
        await RisingEdge(dut.clk)
        assert int(dut.idle.value) == int(count == 0)
        dut.drop.value = 0
        await RisingEdge(dut.clk)
        assert int(dut.idle.value), f"{count} words are still there"
        assert await bench.decode(legal(bench.sizes), 1.0, 0) == 0


@block_test(Bench)
async def pads(bench: Bench) -> None:
    """A window lies over a pixel of its map at least (docs/kpu.md): on each side, a pad of its size
    less one is legal, one of its size is BAD_POOL, whatever the other sides are."""
    side = dict.fromkeys(("wgt_base", "bias_base", "first", "last", "parity"), 0)
    side |= {"eight_bit": 1, "index": 1}
    sides = ("top", "left", "bottom", "right")
    for turn in range(40):
        at, size = turn % 4, 1 + turn % 7
        window = [random.randint(1, 16), random.randint(1, 16)]
        window[at % 2] = size
        pad = [0 if turn % 8 < 4 else min(7, window[i % 2] - 1) for i in range(4)]
        pad[at] = size - 1
        arg = pool_layer(
            (2, 20, 20),
            1 + turn % 4,
            (window[0], window[1]),
            (1, 1),
            (pad[0], pad[1], pad[2], pad[3]),
        ).replace(image_dst_addr=1000)  # every AI RAM has such rows
        assert await bench.decode(Case(arg, side), 1.0, 0) == 0
        more = arg.replace(**{f"pool_{sides[at]}": size})
        reach = 20 + pad[at - 2] + 1  # with the pad of its size
        more = more.replace(**{("o_col_high", "o_row_wid")[at % 2]: reach})
        assert await bench.decode(Case(more, side), 1.0, 0) == ERROR_CODES["BAD_POOL"]


def edges(arg: LayerArg) -> dict[str, int]:
    """First rows of the output next to and inside the input's rows, by what is special."""
    src, rows, own = arg.image_src_addr, arg.in_layout.rows, arg.out_layout.rows
    return {
        "just below": src - own,
        "last row on the first": src - own + 1,
        "a row before": src - 1,
        "same": src,
        "a row after": src + 1,
        "first row on the last": src + rows - 1,
        "just above": src + rows,
        "anywhere": src + random.randint(1 - own, rows - 1),
    }


@block_test(Bench)
async def overlaps(bench: Bench) -> None:
    """Maps that share rows, in either order: refused unless rows are read once and before."""
    seen: dict[tuple[str, bool, int], int] = {}
    turn = second = 0
    while turn < 400:
        case = legal(bench.sizes)
        once = case.arg.depthwise and case.arg.pool_type == 0 and case.arg.dilation == 1
        if once != bool(turn % 2):
            continue
        # larger maps would not leave room on both sides
        source, result = case.arg.in_layout.rows, case.arg.out_layout.rows
        if source + 2 * result + 2 > bench.sizes.ram_rows:
            continue
        src = random.randint(result, bench.sizes.ram_rows - source - result)
        arg = case.arg.replace(image_src_addr=src)
        name, dst = random.choice(list(edges(arg).items()))
        arg = arg.replace(image_dst_addr=dst)
        if arg.two_maps:  # one of both meets the output, or they are the same
            other = random.randint(0, bench.sizes.ram_rows - source)
            meets = set(range(other, other + source)) & set(range(dst, dst + result))
            both = [src, src if meets else other]
            random.shuffle(both)
            arg = arg.replace(image_src_addr=both[0], image_src2_addr=both[1])
            second += both[1] == src != both[0]
        moved = Case(arg, case.side)
        code = await bench.decode(moved, 1.0, 0)
        apart = not set(range(src, src + source)) & set(range(dst, dst + result))
        near = arg.out_layout.channel_rows <= arg.in_layout.channel_rows
        fine = apart or (once and near and dst <= src)
        assert code == (0 if fine else ERROR_CODES["BAD_ADDR"]), f"{name}: {moved.arg}"
        seen[name, once, code] = seen.get((name, once, code), 0) + 1
        turn += 1
    refused = ERROR_CODES["BAD_ADDR"]
    assert second > 3, f"{second} outputs met the second map alone"
    for name in ("same", "last row on the first", "a row before", "a row after"):
        assert seen.get((name, False, refused), 0) > 3, f"{name}: {seen}"
    for name in ("just below", "just above"):
        assert min(seen.get((name, once, 0), 0) for once in (False, True)) > 3, f"{name}: {seen}"
    assert seen.get(("first row on the last", False, refused), 0) > 3, seen
    for name in ("same", "last row on the first", "a row before"):
        assert seen.get((name, True, 0), 0) > 3, f"{name}: {seen}"
    for name in ("a row after", "first row on the last"):
        assert seen.get((name, True, refused), 0) > 3, f"{name}: {seen}"


ODD = Sizes(n_y=4, n_z=8, wbuf_rows=64, ram_rows=3001, weight_bits=8, tile_rows=64)


@pytest.mark.tier(
    nightly=["icarus-float16", "icarus-odd", "words of *", "verilator-k210"],
    check=["verilator-float16", "icarus-bytes"],
)
@pytest.mark.parametrize(
    ("sim", "sizes", "lanes", "keep", "sums"),
    [
        ("icarus", Sizes(), 0, 0, 1),
        ("icarus", ODD, 0, 1, 1),
        ("verilator", Sizes(n_y=4, n_z=16, wbuf_rows=512, flat=True), 0, 1, 1),
        ("verilator", Sizes(n_y=2, n_z=2, tile_rows=64, tile_word=8), 0, 0, 1),
        ("verilator", Sizes(4, 4, tile_rows=128, tile_word=16, flat=True), 0, 1, 1),
        ("verilator", Sizes(8, 8, tile_rows=64, tile_word=32, flat=True), 0, 1, 1),
        ("icarus", Sizes(), 1, 0, 1),
        ("verilator", Sizes(n_y=4, n_z=16, wbuf_rows=64), 1, 1, 1),
        ("icarus", Sizes(), 0, 0, 0),
    ],
    ids=[
        *("icarus-nano", "icarus-odd", "verilator-k210", "words of 8", "words of 16"),
        *("words of 32", "icarus-float16", "verilator-float16", "icarus-bytes"),
    ],
)
def test_layer_decode(sim: str, sizes: Sizes, lanes: int, keep: int, sums: int) -> None:
    params = {"N_Y": sizes.n_y, "N_Z": sizes.n_z, "WEIGHT_BITS": sizes.weight_bits}
    params |= {"WBUF_ROWS": sizes.wbuf_rows, "TILE_ROWS": sizes.tile_rows}
    params |= {"TILE_WORD": sizes.tile_word, "AI_RAM_ROWS": sizes.ram_rows}
    params |= {"FP16": int(lanes > 0), "KEEP_WEIGHTS": keep, "FLAT_MAPS": int(sizes.flat)}
    params |= {} if sums else {"OUT32": 0}
    params |= {"DILATION": 5 if sizes.tile_word == 32 else 8} if sizes.flat else {}
    sources = ["rtl/control/pool_check.v", "rtl/lib/flat_lines.v", "rtl/lib/ram_1r1w_async.v"]
    sources += [f"rtl/control/layer_{name}.v" for name in PARTS]
    for module in ("test_layer_decode", "load_tests"):
        run_bench(sim, "layer_decode", sources, f"tb.layer_decode.{module}", params=params)
