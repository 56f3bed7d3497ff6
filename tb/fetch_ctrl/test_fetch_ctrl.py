# SPDX-License-Identifier: Apache-2.0
"""fetch_ctrl: what is asked for, in which order, and where the borders between inferences lie."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.descriptor import join_fields, layout, pack_descriptor
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import SIMS, run_bench
from tb.control.neighbours import Channel

INPUTS = (
    "start",
    "desc",
    "reuse",
    "weight_quiet",
    "bias_quiet",
    "weight_req_ready",
    "bias_req_ready",
)
Request = tuple[int, int, int, int]  # address, bytes, whose it is, from the AI RAM
OWNER = layout("owner")


def layer(first: bool) -> dict[str, int]:
    """The fields of a descriptor that matter here."""
    loads = random.choice((1, 1, 1, 2, 2, 7, 7, 64))
    kind = random.choice(("", "", "", "pools", "fp16"))
    return {
        **({kind: 1} if kind else {}),
        "waddr": random.getrandbits(32),
        "kept": random.getrandbits(1),
        "psize": random.getrandbits(17),
        "loads": loads,
        "wlen": random.getrandbits(24),
        "wlast": random.getrandbits(24),
        "baddr": random.getrandbits(32),
        "aaddr": random.getrandbits(32),
        "o": random.randint(1, 1024),
        "first": int(first),
        "idx": random.getrandbits(10),
        "inf": random.getrandbits(1),
    }


def requests(fields: dict[str, int], reuse: bool) -> tuple[list[Request], list[Request]]:
    """(weight requests, bias requests) of a layer: a pooling task has none, a product of float16
    no tables."""
    if fields.get("pools"):
        return [], []
    owner = join_fields(OWNER, {"layer": fields["idx"], "inf": fields["inf"]})
    table = [] if fields.get("fp16") else [(fields["aaddr"], 144, owner, 0)]
    if reuse:
        return [], table
    loads = fields["loads"]
    sizes = [fields["wlen"]] * (loads - 1) + [fields["wlast"]]
    weights = [
        ((fields["waddr"] + i * fields["psize"]) & 0xFFFFFFFF, n, owner, fields["kept"])
        for i, n in enumerate(sizes)
    ]
    return weights, [*table, (fields["baddr"], 8 * fields["o"], owner, 0)] if table else []


class Requests(Channel):
    """A request channel that keeps what it was asked for."""

    def __init__(self, dut, name: str) -> None:
        super().__init__(dut, name, f"{name}_quiet")
        self.seen: list[Request] = []

    def sample(self) -> bool:
        accepted = super().sample()
        if accepted:
            ports = (getattr(self.dut, f"{self.name}_req_{n}") for n in ("addr", "len", "owner"))
            address, length, owner = (int(port.value) for port in ports)
            kept = int(self.dut.weight_req_kept.value) if self.name == "weight" else 0
            self.seen.append((address, length, owner, kept))
        return accepted


def packed(dut) -> PackedView:
    """The module with its requests field by field."""
    req = layout("req", OWNER_BITS=sum(width for _, width in OWNER.values()))
    return PackedView(dut, {f"{c}_req": (req, f"{c}_req_") for c in ("weight", "bias")})


async def play(dut: PackedView, inferences: int) -> None:
    """Layers of so many inferences; borders only when all before them is sent out."""
    weights, biases = Requests(dut, "weight"), Requests(dut, "bias")
    due_w: list[Request] = []
    due_b: list[Request] = []
    borders, firsts, starts = 0, 0, 0
    layers = [(i == 0, k) for k in range(inferences) for i in range(random.randint(1, 5))]
    reuse = False
    for _ in range(2000 * inferences):
        idle = not int(dut.busy.value) if dut.busy.value.is_resolvable else True
        now = bool(layers) and idle and not int(dut.start.value) and random.random() < 0.5
        dut.start.value = int(now)
        if now:
            first, inference = layers.pop(0)
            reuse = inference % 3 == 2  # kept weights now and then
            fields = layer(first)
            dut.desc.value, dut.reuse.value = pack_descriptor(fields), int(reuse)
            more_w, more_b = requests(fields, reuse)
            asked = len(weights.seen) + len(biases.seen)
            assert asked == len(due_w) + len(due_b), "a layer before the one before is asked for"
            assert first or borders == firsts, "the second layer before the first is sent out"
            due_w += more_w
            due_b += more_b
            starts += first
        else:
            dut.reuse.value = random.getrandbits(1)
        weights.drive()
        biases.drive()
        quiet = weights.held == 0 and biases.held == 0
        await RisingEdge(dut.clk)
        if int(dut.boundary.value):
            borders += 1
            assert quiet and borders == starts, "a border while reads are waiting"
        if int(dut.first_out.value):
            firsts += 1
            assert quiet and firsts == borders
            assert len(weights.seen) == len(due_w) and len(biases.seen) == len(due_b)
        accepted = [channel.sample() for channel in (weights, biases)]
        assert not any(accepted) or borders == starts, "asked for before the border"
        if not layers and firsts == inferences and not int(dut.busy.value) and not now:
            break
    assert not layers and borders == firsts == inferences, f"{borders} borders, {firsts} first"
    assert weights.seen == due_w and biases.seen == due_b


@cocotb.test()
async def inferences(dut) -> None:
    """Layers of many inferences, of every kind."""
    await reset(dut, *INPUTS)
    await play(packed(dut), 30)


@cocotb.test()
async def dropped(dut) -> None:
    """A reset at any time: no further request, no border is reported; later requests are exact."""
    await reset(dut, *INPUTS)
    view = packed(dut)
    for turn in range(40):
        channels = Requests(view, "weight"), Requests(view, "bias")
        fields = layer(first=bool(turn % 2)) | {"loads": 7}
        dut.desc.value, dut.reuse.value, dut.start.value = pack_descriptor(fields), 0, 1
        for _ in range(random.randint(1, 25)):
            for channel in channels:
                channel.drive()
            await RisingEdge(dut.clk)
            dut.start.value = 0
            for channel in channels:
                channel.sample()
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for name in ("weight", "bias"):
            getattr(dut, f"{name}_quiet").value = getattr(dut, f"{name}_req_ready").value = 1
        for _ in range(4):
            await RisingEdge(dut.clk)
            names = ("busy", "boundary", "first_out", "weight_req_valid", "bias_req_valid")
            assert not any(int(getattr(dut, name).value) for name in names), "it goes on"
        await play(view, 1)


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_fetch_ctrl(sim: str) -> None:
    run_bench(sim, "fetch_ctrl", ["rtl/control/fetch_ctrl.v"], "tb.fetch_ctrl.test_fetch_ctrl")
