# SPDX-License-Identifier: Apache-2.0
"""sequencer: every issue of every kind of layer, each cycle, with varying supply of resources.

The reference walks the documented loop nest and tracks the pixel of the map that each lane
computes. Layers follow each other without a reset, so that all counters wrap.
"""

import random
from collections.abc import Callable, Iterable

import cocotb
import pytest

from openkpu.layer.decoded import DWROW, FC, TAPS
from openkpu_tb.simrun import run_bench
from tb.sequencer.bench import RESOURCES, Bench, Supply
from tb.sequencer.layers import EVERY, Layer, Maker

FILES = ["rtl/sequencer/*.v", "rtl/lib/stripe_iter.v", "rtl/lib/flat_*.v"]


async def begin(dut) -> tuple[Bench, Maker]:
    """The device after a reset, and layers for it."""
    bench = Bench(dut)
    await bench.reset()
    return bench, Maker(bench.array, bench.sizes, bench.dilation)


def hold(bench: Bench, names: Iterable[str]) -> None:
    """All of these were met."""
    missing = [name for name in names if not bench.met[name]]
    assert not missing, f"never met: {missing} of {dict(bench.met)}"


def due(layer: Layer, share: int) -> int:
    """Cycles from the first issue of a layer to its last when everything is there."""
    at = free = 0
    for issue in layer.nest.issues:
        at = max(at + 1, free if issue.leaves else 0)
        free = at + share if issue.leaves else free
        free += (
            3 * share * issue.again
        )  # the next sums to leave come behind the other bytes of these
    return at


@cocotb.test()
async def every_kind(dut) -> None:
    """All kinds with all pools; everything is there, so no cycle is without an issue but those in
    which sums wait for a shared post lane."""
    bench, maker = await begin(dut)
    for kind, pool in EVERY:
        layer = maker.draw(kind, pool)
        rows = 1 if layer.d["mode"] == FC else layer.d["b"] * layer.d["s"]
        cycles = await bench.play(layer, Supply())
        if rows <= bench.sizes.wbuf_rows // 2 and layer.nest.rows <= bench.sizes.wbuf_rows:
            assert cycles == due(layer, bench.share), layer.name
            bench.met["at full rate"] += 1
    strides = {5: 1, 6: 1, 7: 2}
    codes = {**dict.fromkeys((0, 5, 6, 7), 0), 1: 1, 2: 2, 3: 3, 4: 4, 9: 5, 8: 6}
    modes = {
        "taps": (0, 0),
        "chan": (1, 0),
        "stripes": (TAPS, 1),
        "rows": (DWROW, 1),
        "fc": (FC, 0),
    }
    for kind, pool in EVERY:
        mode, dw = modes[kind]
        where = f"mode {mode} pool {codes[pool]} stride {strides.get(pool, 0)} dw {dw}"
        hold(bench, [where])
    hold(bench, ["at full rate"])


@cocotb.test()
async def borders(dut) -> None:
    """Sizes at the borders of stripes, rows, words and blocks; weights of the next layers come."""
    bench, maker = await begin(dut)
    layers = [make() for make in maker.borders()]
    random.shuffle(layers)
    rows = [layer.nest.rows for layer in layers]
    for number, layer in enumerate(layers):
        supply = Supply() if random.getrandbits(1) else Supply.any()
        await bench.play(layer, supply, sum(rows[number + 1 :]))
    hold(bench, ("several groups, held", "several groups, read again", "several blocks"))
    hold(bench, ("a smaller last block", "tile count wraps", "prow count wraps"))
    hold(bench, ["two lines an issue"] if bench.array.pair else [])
    assert sum(layer.d["flat"] for layer in layers) >= 5 * int(bench.sizes.flat)


@cocotb.test()
async def sums_of_32_bits(dut) -> None:
    """Groups of one step and more, of one place and more, whose sums leave in four bytes: at full
    rate, with room now and then, with room only when it is waited for."""
    bench, maker = await begin(dut)
    for c in (1, 10, 28, 46, 82):
        for h, w in ((1, 1), (1, 3 * bench.array.n_y), (3, 20), (1, 65)):
            layer = maker.exact(c, h, w, 2 * bench.array.n_z + 1, out32=1, b=3)
            cycles = await bench.play(layer, Supply())
            assert cycles == due(layer, bench.share), layer.name
            await bench.play(layer, Supply(room="some"))
        await bench.play(layer, Supply(room="one"))
    met = ["other bytes beside an issue", "other bytes are all that is left", "waits for planes"]
    hold(bench, ["waits for room", *(met if bench.array.planes else [])])


@cocotb.test()
async def starved(dut) -> None:
    """Each resource comes when it is waited for, one at a time, in layers of every kind."""
    bench, maker = await begin(dut)
    maker.budget = 120
    kinds = [("taps", 0), ("chan", 1), ("rows", 0), ("stripes", 8), ("fc", 0)]
    for name in RESOURCES:
        for kind, pool in kinds:
            before = bench.met[f"waits for {name}"]
            await bench.play(maker.draw(kind, pool), Supply(**{name: "one"}))
            assert bench.met[f"waits for {name}"] > before, f"{kind} did not wait for {name}"
    # channels of one row of the AI RAM whose weights are in two rows; lines by twos
    if bench.array.n_z == 2 and bench.array.row_lanes < 64:
        for name in ("row", "prow"):
            layer = maker.exact(12, 2, 9, 12, kernel=3, depthwise=True)
            await bench.play(layer, Supply(**{name: "one"}))
            hold(bench, [f"waits for {name} in a sweep"])
    if bench.array.pair:
        layer = maker.exact(2, 5, 50, 2, kernel=3, depthwise=True)
        await bench.play(layer, Supply(tile="one"))
        hold(bench, ["waits for the second entry"])
    if bench.share > 1:
        hold(bench, ["waits for lanes", "waits for lanes in a sweep"])


@cocotb.test()
async def turns(dut) -> None:
    """Groups of fewer steps than sums share a lane, of as many, of more: with as many no cycle is
    without an issue, for their last steps take turns."""
    bench, maker = await begin(dut)
    for steps in range(1, 2 * bench.share + 1):
        for held, block in ((1, 1), (1, 3), (0, 3)):
            chans = 4 * bench.array.n_z
            layer = maker.exact(steps, 5, 20, chans, kernel=3, held=held, b=block)
            cycles = await bench.play(layer, Supply())
            lost = max(0, bench.share - steps) * (len(layer.nest.issues) // steps - 1)
            assert cycles == len(layer.nest.issues) + lost, layer.name
            await bench.play(layer, Supply.any())


@cocotb.test()
async def random_layers(dut) -> None:
    """Layers of any kind, each resource in any way."""
    bench, maker = await begin(dut)
    for _ in range(20):
        maker.budget = random.choice((60, 400))
        layers = [maker.any() for _ in range(random.randint(1, 4))]
        for number, layer in enumerate(layers):
            ahead = sum(later.nest.rows for later in layers[number + 1 :])
            await bench.play(layer, Supply.any(), ahead)


@cocotb.test()
async def extremes(dut) -> None:
    """Sizes up to their bounds."""
    bench, maker = await begin(dut)
    rows = 0
    for make in maker.extremes():
        layer = make()
        await bench.play(layer, Supply())
        rows += layer.nest.rows
    hold(bench, ["tile count wraps"])
    hold(bench, ["row count wraps"] if rows > 4 * bench.sizes.wbuf_rows else [])


def network(maker: Maker, rows: int, kind: int = 2) -> list[Layer]:
    """A few layers whose weights take no more than ``rows`` rows of the buffer; the first one needs
    its first row in later channels (0) or stripes (1) again, or is any one."""
    firsts: list[Callable[[], Layer]] = [
        lambda: maker.exact(5, 3, 9, 5, kernel=3, depthwise=True, first=True),
        lambda: maker.exact(1, 5, 17, maker.sizes.n_z + 1, kernel=3, first=True),
    ]
    while True:
        first = firsts[kind]() if kind < len(firsts) else maker.any(first=True)
        layers = [first, *(maker.any() for _ in range(random.randrange(4)))]
        if sum(layer.nest.rows for layer in layers) <= rows:
            return layers


async def inference(
    bench: Bench, layers: list[Layer], *, release: int = -1, known: int = -1
) -> None:
    """The layers one after the other; number of the layer in which keep falls, reuse rises."""
    for number, layer in enumerate(layers):
        ahead = 0 if bench.reuse else sum(later.nest.rows for later in layers[number + 1 :])
        some = random.randint(1, len(layer.nest.issues))
        when = [random.choice((1, 2, some)) if number == at else -1 for at in (release, known)]
        await bench.play(layer, random.choice((Supply(), Supply.any())), ahead, *when)


@cocotb.test()
async def streams(dut) -> None:
    """Inferences that keep their weights, that give them back on the way, and some without."""
    bench, maker = await begin(dut)
    maker.budget, room = 60, bench.sizes.wbuf_rows
    for turn in range(8):
        layers = network(maker, room, turn % 4)
        if turn % 4 == 3:  # a layer more, and they do not fit
            layers.append(maker.exact(min(1024, room), 1, 1, 2, kernel=3))
        bench.net, bench.keep = dict(bench.base), 1
        await bench.rest(random.randint(1, 3))
        if turn % 4 == 3:
            await inference(bench, layers, release=len(layers) - 1)
            await inference(bench, layers)
        else:
            known = random.randrange(len(layers) + 1)
            bench.reuse = int(known == len(layers))  # before the first layer
            await inference(bench, layers, known=known)
            bench.reuse = 1
            for _ in range(random.randint(1, 3)):
                await inference(bench, layers)
                bench.met["weights used again"] += 1
        bench.keep = bench.reuse = 0
        await bench.rest(random.randint(1, 3))
        for _ in range(random.randrange(2)):  # without a stream
            await inference(bench, network(maker, 1 << 20))
    hold(bench, ("weights used again", "kept rows are given back"))


@cocotb.test()
async def resets(dut) -> None:
    """A reset in the middle of a layer leaves nothing behind."""
    bench, maker = await begin(dut)
    maker.budget = 200
    for kind, pool in EVERY:
        layer = maker.draw(kind, pool)
        await bench.play(maker.any(), Supply())
        await bench.begin(layer, Supply())
        issues = random.randint(1, len(layer.nest.issues))
        for _ in range(100 + 4 * issues):
            if await bench.cycle(Supply()) and bench.at >= issues:
                break
        bench.met["a reset behind an issue"] += bench.made[0] is not None
        await bench.reset()
        await bench.rest(random.randint(0, 12))
    hold(bench, ("a reset behind an issue",))


# array, bytes of a tile word, tile entries, weight rows, sums that share a post lane, other bytes
# of sums leave beside the array
AT_NIGHT = (
    *(("verilator", 4, 2, 16, 64, 1024, 2, 0), ("verilator", 4, 4, 16, 128, 1024, 1, 1)),
    *(("verilator", 4, 16, 64, 32, 1024, 1, 1), ("verilator", 2, 64, 128, 32, 64, 1, 0)),
    *(("verilator", 16, 2, 32, 32, 64, 1, 1), ("verilator", 16, 8, 128, 32, 128, 2, 1)),
    *(("verilator", 8, 8, 8, 32, 64, 4, 1), ("icarus", 8, 16, 128, 64, 64, 1, 1)),
    *(("icarus", 4, 8, 32, 64, 1024, 1, 1), ("icarus", 8, 2, 16, 32, 64, 1, 0)),
)
PARAMETERS = ("n_y", "n_z", "tile_w", "tile_rows", "wbuf_rows", "share", "planes")


@pytest.mark.tier(
    nightly=[
        "icarus-4-4-16-32-256-2-1",
        "verilator-8-16-16-32-64-1-0",
        "verilator-8-16-128-64-64-1-1",
        "icarus-2-2-16-32-64-1-0",
    ],
    check=["verilator-4-8-32-32-128-4-0"],
)
@pytest.mark.parametrize(
    ("sim", *PARAMETERS),
    [
        *(("icarus", 2, 2, 16, 32, 64, 1, 0), ("icarus", 4, 4, 16, 32, 256, 2, 1)),
        # a whole buffer of weights; four sums a lane; two lines at once; words below the lanes
        *(("verilator", 2, 2, 8, 64, 1024, 1, 1), ("verilator", 4, 8, 32, 32, 128, 4, 0)),
        *(("verilator", 8, 16, 128, 64, 64, 1, 1), ("verilator", 8, 16, 16, 32, 64, 1, 0)),
        *(pytest.param(*sizes, marks=pytest.mark.nightly) for sizes in AT_NIGHT),
    ],
)
def test_sequencer(
    sim: str,
    n_y: int,
    n_z: int,
    tile_w: int,
    tile_rows: int,
    wbuf_rows: int,
    share: int,
    planes: int,
) -> None:
    params = {"N_Y": n_y, "N_Z": n_z, "TILE_W": tile_w, "TILE_ROWS": tile_rows}
    params |= {"WBUF_ROWS": wbuf_rows, "POST_SHARE": share}
    params |= {"FLAT_MAPS": 1} if n_y * n_z >= 16 and tile_w >= 16 else {}
    params |= {"SUM_PLANES": planes} if planes else {}
    params |= {"DILATION": 8} if share == 1 else {}
    run_bench(sim, "sequencer", FILES, "tb.sequencer.test_sequencer", params=params)
