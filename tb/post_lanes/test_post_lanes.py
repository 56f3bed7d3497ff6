# SPDX-License-Identifier: Apache-2.0
"""post_lanes: sums to bytes with the parameters of the right bank, in a pipeline with gaps."""

import random
from dataclasses import dataclass, field

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu.arithmetic.activation import ROUNDINGS, Activation
from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.checkout import ROOT
from openkpu.layer.golden import wrap36
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.pipeline_bench import join_words, reset, signed, split_words
from openkpu_tb.core.post_tables import write_table
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

CYCLES = 16  # from sums to bytes of their first part


@dataclass
class Layer:
    """What stays for a layer."""

    mode: str  # which parameters a kernel module takes: own, one bank, by channel, one of a row
    # (a depthwise layer with a pool: one bank, lanes with pixels of their own)
    swl: int
    arg_x: int
    shr_x: int
    sgn: bool
    table: ActTable
    words: bool = False  # out32: a byte of v, that of the issue's plane


@dataclass
class Issue:
    """One cycle of sums with the parameters of all banks."""

    sums: list[int]
    xsums: list[int]
    bank: int
    bn: BatchNorm
    kc: list[int]
    meta: int
    want: list[int] = field(default_factory=list)


def make_layer(mode: str) -> Layer:
    start = sorted(random.randrange(-(1 << 24), 1 << 24) for _ in range(16))
    mul = [random.choice((-1, 1, 1, 1)) * random.randrange(1 << 14, 1 << 15) for _ in range(16)]
    shift = [random.choice((30, 32, 34)) for _ in range(16)]
    table = ActTable.make(start, mul, shift, [random.randrange(256) for _ in range(16)])
    shr_x = random.randrange(16)
    arg_x = random.randrange(-(16 << min(shr_x, 12)), 16 << min(shr_x, 12))
    return Layer(mode, random.choice((4, 5, 6)), arg_x, shr_x, False, table)


def bank_of(layer: Layer, issue: Issue, z: int, n_y: int, n_z: int) -> int:
    if layer.mode in ("one", "row", "pool"):  # lanes of a second row are pixels of the same channel
        return issue.bank
    if layer.mode == "chan":
        return (issue.bank + ((z * n_y) >> layer.swl)) % n_z
    return z


def expect(layer: Layer, issue: Issue, n_y: int, n_z: int, rounding: str) -> list[int]:
    """docs/kpu.md 1.2 from the sums on, lane by lane."""
    activation = Activation(layer.table, rounding, layer.sgn)
    out = []
    for lane in range(n_y * n_z):
        at = bank_of(layer, issue, lane // n_y, n_y, n_z)
        alu = issue.sums[lane] + ((layer.arg_x * issue.xsums[lane]) >> layer.shr_x)
        alu = signed(alu + issue.kc[at], 36)
        v = ((alu * int(issue.bn.mul[at])) >> int(issue.bn.shift[at])) + int(issue.bn.add[at])
        y = activation(wrap36(np.array([signed(v, 36)])))[0]
        out.append(v >> 8 * plane_of(issue, n_z) & 0xFF if layer.words else int(y) & 0xFF)
    return out


def make_xsums(mode: str, n_y: int, n_z: int) -> list[int]:
    """Sums of pixels: the same for all output channels, or (depthwise) of nine pixels."""
    if mode in ("chan", "row", "pool"):
        return [random.randrange(9 * 255 + 1) for _ in range(n_y * n_z)]
    return [random.getrandbits(random.choice((12, 22, 22, 29))) for _ in range(n_y)] * n_z


def plane_of(issue: Issue, n_z: int) -> int:
    """The byte of v that the job beside the sums asks for."""
    low, width = layout("job", ZW=(n_z - 1).bit_length())["plane"]
    return issue.meta >> low & ((1 << width) - 1)


def set_plane(issue: Issue, n_z: int, plane: int) -> None:
    """Let the job beside the sums ask for a byte of v."""
    low, width = layout("job", ZW=(n_z - 1).bit_length())["plane"]
    issue.meta = issue.meta & ~(((1 << width) - 1) << low) | plane << low


def make_issue(mode: str, n_y: int, n_z: int, meta_width: int) -> Issue:
    lanes = n_y * n_z
    mul = [random.choice((-1, 1)) * random.randrange(1 << 12, 1 << 15) for _ in range(n_z)]
    add = [random.randrange(-(1 << 22), 1 << 22) for _ in range(n_z)]
    return Issue(
        sums=[random.randrange(1 << random.choice((20, 24, 24))) for _ in range(lanes)],
        xsums=make_xsums(mode, n_y, n_z),
        bank=random.randrange(n_z),
        bn=BatchNorm.make(mul, [random.randrange(12, 16) for _ in range(n_z)], add),
        kc=[random.randrange(-(1 << 24), 1 << 24) for _ in range(n_z)],
        meta=random.getrandbits(meta_width),
    )


def drive(dut, layer: Layer, issue: Issue) -> None:
    dut.in_sum.value = join_words(issue.sums, 36)
    dut.in_xsum.value = join_words(issue.xsums, int(dut.XW.value))
    dut.in_bank.value = issue.bank
    dut.in_bn.value = join_words(
        (
            (int(add) & 0xFFFFFFFF) << 39 | int(mul) << (15 - int(shift)) & ((1 << 39) - 1)
            for mul, shift, add in zip(issue.bn.mul, issue.bn.shift, issue.bn.add, strict=True)
        ),
        71,
    )
    dut.in_kc.value = join_words(issue.kc, 36)
    dut.in_meta.value = issue.meta


@cocotb.test()
async def banks_and_gaps(dut) -> None:
    """The four ways to find a bank; bytes and what travels beside leave after sixteen cycles."""
    await reset(dut, "in_valid", "load", "table_we")
    n_y, n_z, width, share = (int(getattr(dut, n).value) for n in ("N_Y", "N_Z", "MW", "SHARE"))
    latency = CYCLES + share - 1
    rounding = ROUNDINGS[int(dut.ROUNDING.value)]
    seen: set[int] = set()
    banks: set[tuple[str, int, int]] = set()
    planes: set[int] = set()
    for number, mode in enumerate(
        ("own", "one", "chan", "own", "chan", "own", "one", "own", "row", "pool")
    ):
        layer = make_layer(mode)
        layer.sgn = number >= 4
        layer.words = number in (3, 7)
        dut.out32.value = int(layer.words)
        if mode == "chan":
            layer.swl = 4 + number % 2
        if mode == "row":
            layer.swl = 6
        dut.one_bank.value = int(mode in ("one", "row", "pool"))
        dut.by_chan.value = int(mode in ("chan", "row"))
        dut.by_lane.value = int(mode in ("chan", "row", "pool"))
        dut.swl.value, dut.sgn.value = layer.swl, int(layer.sgn)
        dut.arg_x.value, dut.shr_x.value = layer.arg_x & 0xFFFFFF, layer.shr_x
        dut.load.value = 1
        await RisingEdge(dut.clk)
        dut.load.value = 0
        await ClockCycles(dut.clk, 2)
        await write_table(dut, layer.table, random.choice((1.0, 0.6)))
        history: list[Issue | None] = [None] * (latency + 1)
        issues = 16
        free, held = 0, None  # cycle from which sums may come again, parameters until then
        for cycle in range(200):
            new = None
            noise = make_issue(mode, n_y, n_z, width)
            if cycle < free and held:  # the parameters stay while parts wait
                noise.bn, noise.kc = held
            if issues and cycle >= free and random.random() < 0.7:
                free, held = cycle + share, (noise.bn, noise.kc)
                issues -= 1
                new = noise
                new.bank = issues % n_z  # each of them, whatever the seed; planes, too
                if layer.words:
                    set_plane(new, n_z, issues % 4)
                new.want = expect(layer, new, n_y, n_z, rounding)
                planes |= {plane_of(new, n_z)} if layer.words else set()
                banks |= {(mode, z, bank_of(layer, new, z, n_y, n_z)) for z in range(n_z)}
            history = [new, *history[:-1]]
            dut.in_valid.value = int(new is not None)
            drive(dut, layer, noise)
            await RisingEdge(dut.clk)
            done = history[latency]
            if cycle > latency:
                assert int(dut.out_valid.value) == int(done is not None)
                assert int(dut.idle.value) == int(not any(history[1:]))
            if done:
                assert split_words(int(dut.out_byte.value), 8, n_y * n_z) == done.want, mode
                assert int(dut.out_meta.value) == done.meta
                seen |= set(done.want)
            if not issues and not any(history):
                break
        assert not any(history), "an issue never left"
    assert planes == {0, 1, 2, 3}
    assert len(seen) > 100, "too few different bytes to tell lanes apart"
    for mode in ("one", "row"):
        assert len({b for m, z, b in banks if m == mode and z == 0}) >= min(n_z, 4), mode


# 2-64-4 is of 128 lanes: a row of 64 pixels leaves half of them for a second one
@sizes(
    "sim n_y n_z share",
    test="icarus-2-2-1",
    check="verilator-2-4-2 icarus-2-2-2 icarus-2-64-4 icarus-4-4-4 verilator-8-16-2 "
    "verilator-8-4-1",
    nightly="icarus-8-4-1 verilator-4-16-1 verilator-8-16-4 verilator-8-8-2",
)
def test_post_lanes(sim: str, n_y: int, n_z: int, share: int) -> None:
    build(sim, {"N_Y": n_y, "N_Z": n_z, "SHARE": share})


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize(
    ("sim", "changes"),
    [
        ("icarus", {"N_Y": 2, "N_Z": 2, "MULTIPLY": 0}),
        ("verilator", {"MULTIPLY": 0, "SHARE": 2, "PIECE": 17, "ROUNDING": 1}),
    ],
    ids=["icarus", "verilator"],
)
def test_memories(sim: str, changes: dict[str, int]) -> None:
    """Zero points from memories; multipliers of 17 bits."""
    build(sim, changes)


def build(sim: str, params: dict[str, int]) -> None:
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "rtl" / "post").glob("*.v"))
    sources.append("rtl/lib/ram_1r1w_async.v")
    params = {"MW": 50, **params}
    run_bench(sim, "post_lanes", sources, "tb.post_lanes.test_post_lanes", params=params)
