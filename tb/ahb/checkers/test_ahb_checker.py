# SPDX-License-Identifier: Apache-2.0
"""Every rule of the checkers can fail: legal traffic raises nothing, each broken rule its own bit.

A scenario is a list of cycles; a cycle is a dict of the pins that change in it. Pins keep their
value; all start at the values of IDLE.
"""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from cocotb.types import LogicArray

from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

Cycle = dict[str, int | str]


def pin(name: str, value: int) -> Cycle:
    return {name: value}


IDLE, BUSY, NONSEQ, SEQ = (pin("htrans", n) for n in range(4))
WAIT, GO = pin("hready", 0), pin("hready", 1)
LONG = 4100

# ---------------------------------------------------------------- master
SINGLE, INCR, WRAP4, INCR4 = (pin("hburst", n) for n in range(4))
START: list[Cycle] = [{"hbusreq": 1, "hgrant": 1, **GO}, {}]


def at(addr: int) -> Cycle:
    return pin("haddr", addr)


def incr4(base: int = 0x100) -> list[Cycle]:
    """A whole INCR4 of words."""
    return [{**NONSEQ, **INCR4, **at(base)}, *({**SEQ, **at(base + 4 * i)} for i in (1, 2, 3))]


MASTER_LEGAL: dict[str, list[Cycle]] = {
    "burst and single": [*incr4(), {**NONSEQ, **SINGLE, **at(0x20)}, IDLE, {}],
    "wrap": [{**NONSEQ, **WRAP4, **at(0x108)}, {**SEQ, **at(0x10C)}, at(0x100), at(0x104), IDLE],
    "waits": [{**NONSEQ, **SINGLE, **at(8), "hwrite": 1}, {**IDLE, **WAIT, "hwdata": 7}, {}, GO],
    "busy": [{**NONSEQ, **INCR4, **at(0)}, {**BUSY, **at(4)}, SEQ, at(8), at(12), IDLE],
    "late request": [{**IDLE, **WAIT}, {**NONSEQ, **SINGLE, **at(4)}, GO, IDLE],
    "grant lost, rest rebuilt": [
        {**NONSEQ, **INCR4, **at(0)},
        {**SEQ, **at(4), "hgrant": 0},
        {**IDLE, "hgrant": 1},
        {**NONSEQ, **INCR, **at(8)},
        {**SEQ, **at(12)},
        IDLE,
    ],
    "retry": [
        {**NONSEQ, **SINGLE, **at(0x40)},
        {**IDLE, **WAIT, "hresp": 2},
        {**GO},
        {**NONSEQ, "hresp": 0},
        IDLE,
    ],
    "error ends a burst": [
        {**NONSEQ, **INCR4, **at(0)},
        {**SEQ, **at(4), **WAIT, "hresp": 1},
        {**IDLE, **GO},
        {"hresp": 0},
    ],
    "locked": [{"hlock": 1}, {**NONSEQ, **INCR, **at(0)}, {**SEQ, **at(4)}, {**IDLE, "hlock": 0}],
}
MASTER_BROKEN: dict[int, list[list[Cycle]]] = {
    1: [[{"rst": 1}, {}, NONSEQ, {**IDLE, "rst": 0}], [{"rst": 1}, {}, {"rst": 0, **NONSEQ}, IDLE]],
    2: [
        [{**NONSEQ, **SINGLE, **at(0), **WAIT}, at(4), {**IDLE, **GO}],
        [{**NONSEQ, **SINGLE, **at(0), **WAIT}, {"hwrite": 1}, {**IDLE, **GO}],
    ],
    3: [[{**NONSEQ, **SINGLE, **at(0), "hwrite": 1}, {**IDLE, **WAIT}, {"hwdata": 5}, GO]],
    4: [[{**SEQ, **INCR4, **at(0)}, IDLE], [*incr4(), IDLE, {**SEQ, **at(0x110)}, IDLE]],
    5: [[{**NONSEQ, **SINGLE, **at(0)}, {**SEQ, **at(4)}, IDLE]],
    6: [[*incr4(), {**BUSY, **at(0x110)}, IDLE], [{**BUSY, **INCR4}, IDLE]],
    7: [[{**NONSEQ, **INCR, **at(0)}, {**SEQ, **at(8)}, IDLE]],
    8: [[{**NONSEQ, **WRAP4, **at(0x108)}, {**SEQ, **at(0x10C)}, at(0x110), at(0x104), IDLE]],
    9: [
        [{**NONSEQ, **INCR, **at(0)}, {**SEQ, **at(4), "hwrite": 1}, IDLE],
        [{**NONSEQ, **INCR, **at(0)}, {**SEQ, **at(4), "hprot": 1}, IDLE],
    ],
    10: [
        [{**NONSEQ, **INCR4, **at(0)}, {**SEQ, **at(4)}, IDLE],
        [*incr4(), {**SEQ, **at(0x110)}, IDLE],
    ],
    11: [[{**NONSEQ, **INCR, **at(0x3FC)}, {**SEQ, **at(0x400)}, IDLE]],
    12: [[{**NONSEQ, **SINGLE, **at(2)}, IDLE]],
    13: [[{**NONSEQ, **SINGLE, **at(0), "hsize": 3}, IDLE]],
    15: [[{"hgrant": 0}, {}, {**NONSEQ, **SINGLE}, IDLE]],
    17: [[{**NONSEQ, **INCR, **at(0), "hbusreq": 0}, {**SEQ, **at(4)}, IDLE]],
    18: [
        [
            {**NONSEQ, **INCR4, **at(0)},
            {**SEQ, **at(4), "hgrant": 0},
            {**IDLE, "hgrant": 1},
            {**NONSEQ, **INCR, **at(12)},
            IDLE,
        ]
    ],
    19: [
        [
            {**NONSEQ, **INCR, **at(0)},
            {**SEQ, **at(4), **WAIT, "hresp": 2},
            GO,
            {**IDLE, "hresp": 0},
        ]
    ],
    20: [
        [
            {**NONSEQ, **SINGLE, **at(0x40)},
            {**IDLE, **WAIT, "hresp": 3},
            GO,
            {**NONSEQ, **at(0x44), "hresp": 0},
            IDLE,
        ],
        [  # the same address, other data
            {**NONSEQ, **SINGLE, **at(0x40), "hwrite": 1},
            {**IDLE, **WAIT, "hresp": 2, "hwdata": 1},
            GO,
            {**NONSEQ, "hresp": 0},
            {**IDLE, "hwdata": 2},
            {},
        ],
    ],
    22: [
        [{**NONSEQ, **SINGLE, **at(0), "hlock": 1}, {**IDLE, "hlock": 0}],
        [{"hlock": 1}, {**NONSEQ, **INCR, **at(0)}, {**SEQ, **at(4), "hlock": 0}, IDLE],
    ],
    36: [
        [{"hgrant": 0}, *[{}] * LONG],
        [{**NONSEQ, **SINGLE, **at(0)}, {**IDLE, **WAIT}, *[{}] * LONG, GO],
    ],
}
MASTER_UNKNOWN: dict[int, list[list[Cycle]]] = {  # need a simulator with x
    14: [[{**NONSEQ, **SINGLE, **at(0), "hwrite": 1, "hwdata": "x"}, IDLE, {}]],
    23: [[{**NONSEQ, **SINGLE, "haddr": "x"}, IDLE], [{"hbusreq": "x"}, {}]],
}

# ----------------------------------------------------------------- slave
READ: Cycle = {"hsel": 1, "htrans": 2, "hwrite": 0, "haddr": 8, "hsize": 2}
OFF: Cycle = {"hsel": 0, "htrans": 0}


def ready(value: int) -> Cycle:
    return {"hready_in": value, "hready_out": value}


SLAVE_LEGAL: dict[str, list[Cycle]] = {
    "read": [READ, OFF, {}],
    "waits": [READ, {**OFF, **ready(0)}, *[{}] * 14, ready(1), {}],
    "error": [READ, {**OFF, **ready(0), "hresp": 1}, ready(1), {"hresp": 0}],
    "idle": [{"hsel": 1, "htrans": 0}, {"htrans": 1}, OFF, {}],
    "odd, refused": [{**READ, "haddr": 9}, {**OFF, **ready(0), "hresp": 1}, ready(1), {"hresp": 0}],
}
SLAVE_BROKEN: dict[int, list[list[Cycle]]] = {
    24: [[ready(0), ready(1)], [{"hresp": 1}, {"hresp": 0}]],
    25: [
        [{"hsel": 1}, {**OFF, **ready(0)}, ready(1)],
        [{"hsel": 1}, {**OFF, "hresp": 2}, {"hresp": 0}],
    ],
    27: [
        [READ, {**OFF, "hresp": 1}, {"hresp": 0}],  # one cycle
        [READ, {**OFF, **ready(0), "hresp": 1}, {}, ready(1), {"hresp": 0}],  # three
        [READ, {**OFF, **ready(0), "hresp": 1}, {**ready(1), "hresp": 0}],  # another response
    ],
    28: [[READ, {**OFF, **ready(0)}, *[{}] * 20, ready(1), {}]],
    31: [[{**READ, "haddr": 9}, OFF, {}], [{**READ, "hsize": 3}, OFF, {}]],
}
SLAVE_UNKNOWN: dict[int, list[list[Cycle]]] = {30: [[READ, {**OFF, "hrdata": "x"}, {"hrdata": 0}]]}

# --------------------------------------------------------------- arbiter
ARBITER_LEGAL: dict[str, list[Cycle]] = {
    "grant moves": [
        {"hbusreq": 2},
        {"hgrant": 2},
        {"hmaster": 1},
        {"hbusreq": 0, "hgrant": 1},
        {"hmaster": 0},
    ],
}
OWNED: list[Cycle] = [{"hbusreq": 2}, {"hgrant": 2}, {"hmaster": 1}]
ARBITER_BROKEN: dict[int, list[list[Cycle]]] = {
    32: [[{"hgrant": 3}, {"hgrant": 1}], [{"hgrant": 0}, {"hgrant": 1}], [{}, {"hgrant": 2}, {}]],
    33: [
        [  # granted while SPLIT
            *OWNED,
            {"htrans": 2},
            {"htrans": 0, "hready": 0, "hresp": 3},
            {"hready": 1},
            {"hresp": 0},
            {},
        ],
        [*OWNED, {"hlock": 2, "htrans": 2}, {"hgrant": 1}, {}],  # taken away from a locked master
    ],
    34: [[{"hsel": 0}, {"hsel": 1}], [{"hsel": 3}, {"hsel": 1}]],
    35: [[{"hmaster": 1}, {"hmaster": 0}]],
}

BENCH = {
    "master": ("ahb_master_checker", {"hready": 1, "hsize": 2, "hprot": 3}, START),
    "slave": ("ahb_slave_checker", {"hready_in": 1, "hready_out": 1, "hsize": 2}, [{}]),
    "arbiter": ("ahb_arbiter_checker", {"hready": 1, "hgrant": 1, "hsel": 1}, [{}]),
}
INPUTS = {
    "master": "hbusreq hlock hgrant haddr htrans hwrite hsize hburst hprot hwdata hready hresp",
    "slave": "hsel haddr htrans hwrite hsize hready_in hready_out hresp hrdata",
    "arbiter": "hbusreq hlock hgrant hmaster htrans hsel hready hresp hsplit",
}


async def play(dut, kind: str, cycles: list[Cycle]) -> set[int]:
    """Fresh start, then the cycles; returns the rules that were flagged by them."""
    _, idle, prologue = BENCH[kind]
    for name in INPUTS[kind].split():
        getattr(dut, name).value = idle.get(name, 0)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3, FallingEdge)
    dut.rst.value = 0
    flagged: set[int] = set()
    count = int(dut.errors.value)
    for cycle in [{}, *prologue, *cycles, {}, {}]:
        for name, value in cycle.items():
            pin = getattr(dut, name)
            pin.value = LogicArray("X" * len(pin)) if value == "x" else value
        await FallingEdge(dut.clk)
        flagged |= {36 - i for i, bit in enumerate(str(dut.hit.value)) if bit != "0"}
    assert (int(dut.errors.value) > count) == bool(flagged)
    sticky = str(dut.rule.value)
    assert all(sticky[36 - n] != "0" for n in flagged)
    return flagged


@cocotb.test()
async def legal_traffic(dut):
    """Nothing is flagged."""
    kind = os.environ["KIND"]
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    legal = {"master": MASTER_LEGAL, "slave": SLAVE_LEGAL, "arbiter": ARBITER_LEGAL}[kind]
    for name, cycles in legal.items():
        assert await play(dut, kind, cycles) == set(), name
    assert int(dut.errors.value) == 0 and int(dut.rule.value) == 0


@cocotb.test()
async def broken_rules(dut):
    """Every broken rule is flagged by its own bit."""
    kind = os.environ["KIND"]
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    broken = {"master": MASTER_BROKEN, "slave": SLAVE_BROKEN, "arbiter": ARBITER_BROKEN}[kind]
    unknown = {"master": MASTER_UNKNOWN, "slave": SLAVE_UNKNOWN, "arbiter": {}}[kind]
    if "icarus" in cocotb.SIM_NAME.lower():  # the other one has no unknown values
        broken = {**broken, **unknown}
    for rule, scenarios in broken.items():
        for number, cycles in enumerate(scenarios):
            flagged = await play(dut, kind, cycles)
            assert rule in flagged, (
                f"rule {rule}, scenario {number}: flagged {flagged or 'nothing'}"
            )


@sizes(
    "sim kind",
    test="icarus-master",
    check="icarus-arbiter icarus-slave verilator-arbiter verilator-master verilator-slave",
)
def test_ahb_checker(sim: str, kind: str) -> None:
    top = BENCH[kind][0]
    sources = [f"tb/openkpu_tb/ahb/checkers/{top}.v"]
    run_bench(sim, top, sources, "tb.ahb.checkers.test_ahb_checker", env={"KIND": kind})
