# SPDX-License-Identifier: Apache-2.0
"""mac_stage: every output in every cycle against what the layers' pixels and weights say.

An issue is made in cycle T. Column t sees its operands in cycle T + 1 + t, the parameters are read
in T + 12, and the sums of a last step leave in T + 13. What is not looked at is noise.
"""

import random

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer

from openkpu.layer.elementwise import OPERATIONS
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.elaborated import parameter, simulator
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.mac_stage.bench import LANES, LEAVE, Bench, noise
from tb.mac_stage.expected import MODES, N_X, Layer, positions


@block_test(Bench)
async def every_kind(bench: Bench) -> None:
    """Layers of all kinds, signed or not, with and without pauses; a layer behind the other."""
    plan = [
        Layer(kind, bool(sign), random.randrange(256), pitch)
        for kind in MODES
        for sign in (0, 1)
        for pitch in (range(3) if MODES[kind][1] else (noise(1),))
    ]
    plan += [
        Layer(kind, bool(noise(1)), random.randrange(256), random.randrange(3), op)
        for kind in ("row", "stripe")
        for op in range(len(OPERATIONS))
    ]
    random.shuffle(plan)
    for layer in plan:
        await bench.begin(layer)
        pieces = 64 // (bench.shape.row_lanes if layer.dw else bench.shape.n_y)
        if layer.dw:
            await bench.group(3, min(4 * pieces, 64 // bench.shape.n_y), 1.0)
        else:
            await bench.group(1, min(8, pieces), 1.0)  # the first step is the last one
            await bench.group(random.randint(2, 4), random.randint(1, 4), random.choice((0.4, 1.0)))
        # each position, and each bank, at least once
        spots = positions(bench.shape, layer)
        banks = range(bench.shape.n_z)
        for n in range(max(len(spots) if layer.kind != "vector" else 0, len(banks))):
            issue = bench.issue("random", first=1, last=1, idx=0)
            issue.pos = spots[n % len(spots)]
            if layer.kind in ("stripe", "vector"):
                issue.bank = banks[n % len(banks)]
            one = 1 if layer.dw else issue.kernels
            issue.valid[: one * bench.shape.n_y : bench.shape.n_y] = True
            bench.meet(issue)
            await bench.cycle(issue)
    await bench.drain()
    bench.expect(tuple(MODES))


@cocotb.skipif(not parameter("SUM_PLANES"), reason="built without the way of 32-bit sums")
@block_test(Bench)
async def sums_of_32_bits(bench: Bench) -> None:
    """Finished sums leave four times, three of them while the next group's steps are made."""
    most = 64 // bench.shape.n_y
    for kind in ("channels", "taps"):
        for p_issue, p_again in ((1.0, 1.0), (0.4, 1.0), (1.0, 0.4), (0.7, 0.7)):
            await bench.begin(Layer(kind, bool(noise(1)), noise(8), 0, words=True))
            for places in (1, most, random.randint(1, most), most):
                await bench.words(random.choice((1, 2, 5)), places, p_issue, p_again)
            while bench.kept:
                await bench.cycle(None, random.random() < p_again)
        # another layer's sums leave once, with whatever their job says
        await bench.begin(Layer(kind, False, 0, 0))
        await bench.group(2, 3, 1.0)
    await bench.drain()
    wanted = [*(f"byte {plane}" for plane in range(4)), "beside an issue"]
    assert all(bench.met[name] for name in wanted), f"met {dict(bench.met)}"


@block_test(Bench)
async def edges_of_each_tap(bench: Bench) -> None:
    """A single edge, a single column in use: only the taps beyond it take the pad value."""
    for kind in ("taps", "row", "stripe", "channels", "vector"):
        await bench.begin(Layer(kind, True, 113, 2))
        for t in range(N_X):
            for name in LANES[1:]:
                issue = bench.issue("largest", first=1, last=1, idx=0)
                issue.row[:] = bench.rng.integers(1, 113, issue.row.shape)
                issue.edges = {n: np.full(bench.shape.lanes, n == name) for n in LANES[1:]}
                issue.taps = np.arange(N_X) == t
                await bench.cycle(issue)
    await bench.drain()


@cocotb.skipif(parameter("WEIGHT_BITS") == 8, reason="100,000 steps: see long_vector")
@block_test(Bench)
async def around_the_end(bench: Bench) -> None:
    """A sum reaches 2^36 - 1 and leaves; another one goes on to 2^36, which is 0."""
    await bench.begin(Layer("channels", False, 0, 0))
    step = N_X * 255 * 65535
    steps, rest = divmod((1 << 36) - 1, step)
    for more in (0, 1):
        parts = [step] * steps + [min(rest, 8 * 255 * 65535)]
        parts += [rest - parts[-1]] + [1] * more
        for n, part in enumerate(parts):
            issue = bench.issue("largest", first=int(n == 0), last=int(n == len(parts) - 1), idx=3)
            issue.pos = 0
            pixel, weight = np.zeros(N_X, int), np.zeros(N_X, int)
            for t in range(N_X):  # a ninth at most, in pixels by whole weights, then what is left
                pixel[t], weight[t] = min(255, part // 65535), 65535
                if not pixel[t]:
                    pixel[t], weight[t] = 1, part
                part -= int(pixel[t] * weight[t])
            assert not part, "the parts do not add up"
            issue.row[:], issue.weight[:] = pixel[:, None], weight[:, None]
            await bench.cycle(issue)
        want = ((1 << 36) - 1 + more) & ((1 << 36) - 1)
        assert issue.out[0] == [want] * bench.shape.lanes
    await bench.drain()
    assert bench.met["channels left"] == 2


@cocotb.skipif(
    simulator() != "verilator" or parameter("N_Y") * parameter("N_Z") > 16, reason="too slow"
)
@block_test(Bench)
async def long_vector(bench: Bench, dut) -> None:
    """The longest vector there is, 2 MiB of pixels 255: 29 bits of the sum of pixels are enough."""
    steps, last = divmod((1 << 21) - 1, N_X)
    await bench.begin(Layer("vector", False, 0, 0))
    issue = bench.issue("largest", first=1, last=0, idx=0)
    await bench.cycle(issue)
    # the same operands in every column: nothing changes for as long as it takes
    issue.tag["first"] = 0
    for _ in range(LEAVE):
        await bench.cycle(issue)
    skipped = steps - LEAVE - 1
    await Timer(10 * skipped - 5, "ns")
    await RisingEdge(dut.clk)
    sums, pixels = bench.sums.places[0]
    more, more_pixels = issue.sums(bench.shape, bench.layer)
    before = (sums + skipped * more) & ((1 << 36) - 1)
    bench.sums.places[0] = before, pixels + skipped * more_pixels
    end = bench.issue("largest", first=0, last=1, idx=0)
    end.taps = np.arange(N_X) <= last
    await bench.cycle(end)
    assert end.out[1][0] == 255 << 21, "not the longest vector"
    await bench.drain()
    assert bench.met["vector left"] == 1


@block_test(Bench)
async def reset_in_between(bench: Bench, dut) -> None:
    """After a reset nothing of before leaves, and the next sums are right."""
    for number_of_issues in (1, 6, 12, 20):
        await bench.begin(Layer("channels", False, 0, 0))
        for _ in range(number_of_issues):
            await bench.cycle(bench.issue("largest", first=1, last=1, idx=1))
        dut.rst.value = 1
        await bench.cycle(None)
        dut.rst.value = 0
        bench.clear()
        await bench.drain()
        await bench.group(2, 2, 1.0)
    # in the middle of sums that leave once more
    for sent in (1, 2, 9) if bench.planes else ():
        await bench.begin(Layer("channels", False, 0, 0, words=True))
        await bench.words(1, 3, 1.0, 1.0)
        for _ in range(min(sent, len(bench.kept))):
            await bench.cycle(None, True)
        dut.rst.value = 1
        await bench.cycle(None)
        dut.rst.value = 0
        bench.clear()
        await bench.drain()
        await bench.words(2, 3, 1.0, 1.0)
        while bench.kept:
            await bench.cycle(None, True)
    await bench.drain()


@sizes(
    "sim n_y n_z wb tile gate planes",
    test="icarus-2-2-16-8-1-0",
    check="verilator-4-4-8-16-0-1",
    nightly="verilator-2-2-16-8-1-0 icarus-4-8-8-32-1-1 icarus-4-2-16-8-1-0 icarus-4-4-16-16-1-0 "
    "icarus-4-16-8-64-1-0 verilator-8-16-16-128-1-1",
)
def test_mac_stage(
    sim: str, n_y: int, n_z: int, wb: int, tile: int, gate: int, planes: int
) -> None:
    sources = ["rtl/mac/*.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"N_Y": n_y, "N_Z": n_z, "WEIGHT_BITS": wb, "TILE_W": tile, "GATE": gate}
    params |= {"SUM_PLANES": planes} | ({} if gate else {"PARAM_CHANS": 1024})
    run_bench(sim, "mac_stage", sources, "tb.mac_stage.test_mac_stage", params=params)
