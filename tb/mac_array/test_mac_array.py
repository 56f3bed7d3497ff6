# SPDX-License-Identifier: Apache-2.0
"""mac_array: the sums of every lane of skewed operand columns, against numpy, one a cycle."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import join_words, reset, split_words
from openkpu_tb.simrun import run_bench

N_X = 9  # columns of the array
OWN = 6  # the unit that takes an operand of each lane in a multiplication
INPUTS = ("valid", "sgn", "pixel", "weight", "own", "best", "least", "multiply")


@dataclass
class Shape:
    """Of the array under test: pixels, channels, bits of a weight."""

    n_y: int
    n_z: int
    wb: int

    @property
    def lanes(self) -> int:
        return self.n_y * self.n_z


@dataclass
class Issue:
    """Of one issue: valid and bytes of pixels (N_X, lanes), weight (N_X, n_z), own (lanes,)."""

    valid: np.ndarray
    pixel: np.ndarray
    weight: np.ndarray
    own: np.ndarray

    def sums(self, shape: Shape, op: str, signed: bool) -> tuple[list[int], list[int]]:
        """(sum of products, or what ``op`` makes of them; sum of pixels) of each lane."""
        pixel = self.pixel.astype(np.uint8)
        pixel = pixel.view(np.int8) if signed else pixel
        gated = np.where(self.valid & (pixel > 0), pixel, 0).astype(np.int64)
        weight = np.repeat(self.weight.astype(np.int64), shape.n_y, axis=1)
        if op == "multiply":
            weight[OWN] = self.own
        products = gated * weight
        if op in ("maximum", "minimum"):
            choose = getattr(np, op)
            return list(choose(products[:-1].sum(axis=0), products[-1])), list(gated.sum(axis=0))
        return list(products.sum(axis=0)), list(gated.sum(axis=0))


def issue(rng: np.random.Generator, shape: Shape, kind: int) -> Issue:
    """Random operands; kind 0: everything at its largest, 1: only some units, 2: depthwise."""
    top = (1 << shape.wb) - 1
    size = N_X, shape.lanes
    weight = rng.integers(0, top + 1, (N_X, shape.n_z))
    own = rng.choice([0, 255, 1, int(rng.integers(0, 256))], shape.lanes)
    if kind == 0:
        return Issue(np.ones(size, bool), np.full(size, 255), np.full_like(weight, top), own)
    valid = rng.random(size) < rng.choice([0.2, 0.8, 1.0])
    pixel = rng.integers(0, 256, size)
    pixel[rng.random(size) < 0.1] = 0
    pixel[rng.random(size) < 0.1] = 255
    if kind == 2:  # a convolution: the same pixels in every kernel module
        pixel = np.tile(pixel[:, : shape.n_y], shape.n_z)
        valid = np.tile(valid[:, : shape.n_y], shape.n_z)
    return Issue(valid, pixel, weight, own)


async def stream(
    dut, shape: Shape, issues: Sequence[Issue | None], op: str = "", signed: bool = False
) -> None:
    """Column t gets an issue t cycles after column 0; gaps (None) are noise with valid low."""
    dut.sgn.value = signed
    dut.multiply.value = op == "multiply"
    dut.best.value, dut.least.value = op in ("maximum", "minimum"), op == "minimum"
    rng = np.random.default_rng(random.getrandbits(32))
    delay = N_X + 2
    history: list[Issue | None] = [None] * (delay + 1)
    checked = 0
    for new in [*issues, *[None] * (delay + 1)]:
        history = [new, *history[:-1]]
        valid, pixel, weight = [], [], []
        for t in range(N_X):
            at = history[t]
            noise = issue(rng, shape, 1)
            valid += list(at.valid[t]) if at else [0] * shape.lanes
            pixel += list((at or noise).pixel[t])
            weight += list((at or noise).weight[t])
            if t == OWN:
                dut.own.value = join_words([int(n) for n in (at or noise).own], 8)
        dut.valid.value = join_words(valid, 1)
        dut.pixel.value = join_words(pixel, 8)
        dut.weight.value = join_words(weight, shape.wb)
        await RisingEdge(dut.clk)
        if (done := history[delay]) is not None:
            psum, xsum = done.sums(shape, op, signed)
            assert split_words(int(dut.psum.value), shape.wb + 12, shape.lanes) == psum
            assert split_words(int(dut.xsum.value), 12, shape.lanes) == xsum
            checked += 1
    assert checked == sum(i is not None for i in issues)


def start(dut) -> tuple[Shape, np.random.Generator]:
    names = ("N_Y", "N_Z", "WEIGHT_BITS")
    shape = Shape(*(int(getattr(dut, name).value) for name in names))
    return shape, np.random.default_rng(random.getrandbits(32))


@cocotb.test()
async def back_to_back(dut) -> None:
    """A new issue every cycle, largest operands next to random ones."""
    shape, rng = start(dut)
    await reset(dut, *INPUTS)
    for signed in (False, True):
        issues = [issue(rng, shape, int(rng.integers(0, 3))) for _ in range(150)]
        await stream(dut, shape, issues, signed=signed)


@cocotb.test()
async def elementwise(dut) -> None:
    """The last unit chooses, or one unit multiplies by an operand of each lane."""
    shape, rng = start(dut)
    for op in ("maximum", "multiply", "minimum", ""):
        await reset(dut, *INPUTS)
        kinds = rng.integers(0, 3, 60)
        await stream(dut, shape, [issue(rng, shape, int(kind)) for kind in kinds], op)


@cocotb.test()
async def gaps(dut) -> None:
    """Issues with pauses: what is not valid leaves no trace."""
    shape, rng = start(dut)
    await reset(dut, *INPUTS)
    some = [issue(rng, shape, 1) if rng.random() < 0.5 else None for _ in range(150)]
    await stream(dut, shape, some)


@cocotb.test()
async def one_unit_at_a_time(dut) -> None:
    """A single valid operand reaches its own lane and no other."""
    shape, rng = start(dut)
    await reset(dut, *INPUTS)
    issues = []
    for t in range(N_X):
        for lane in range(shape.lanes):
            one = issue(rng, shape, 1)
            one.valid[:] = False
            one.valid[t, lane] = True
            one.pixel[t, lane] = 1 + t
            issues.append(one)
    await stream(dut, shape, issues)


@pytest.mark.tier(nightly=["icarus-2-2-8"], check=["icarus-4-2-8", "verilator-2-2-16"])
@pytest.mark.parametrize(
    ("sim", "n_y", "n_z", "wb"),
    [("icarus", 2, 2, 16), ("icarus", 2, 2, 8), ("icarus", 4, 2, 8), ("verilator", 2, 2, 16)],
)
def test_mac_array(sim: str, n_y: int, n_z: int, wb: int) -> None:
    sources = ["rtl/mac/mac_array.v", "rtl/mac/mac_unit.v"]
    params = {"N_Y": n_y, "N_Z": n_z, "WEIGHT_BITS": wb}
    run_bench(sim, "mac_array", sources, "tb.mac_array.test_mac_array", params=params)
