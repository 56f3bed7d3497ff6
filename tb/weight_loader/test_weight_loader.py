# SPDX-License-Identifier: Apache-2.0
"""weight_loader: words of the weight buffer, constants of the channels, rings and counters."""

import random
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import weights_to_bytes
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import CHAN, FC, TAPS, Sizes
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import describe_layer, layout, pack_descriptor
from openkpu_tb.core.elaborated import parameter
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.pipeline_bench import split_words
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

MASK36 = (1 << 36) - 1
INPUTS = ("start", "desc", "weight_data", "weight_off", "weight_cnt", "wrow_freed", "prow_freed")
INPUTS += ("kept_valid", "kept")


@dataclass
class Layer:
    """A layer with the loader's expected output."""

    desc: dict[str, int]
    stream: bytes
    rows: list[dict[int, list[int]]]  # per buffer row: bank -> nine weights
    constants: list[int]  # per output channel


def nine(weights: list[int]) -> list[int]:
    return [int(w) for w in weights] + [0] * (9 - len(weights))


def buffer_rows(d: dict[str, int], w: np.ndarray, n_z: int) -> list[dict[int, list[int]]]:
    """Rows of the weight buffer for weights (O, taps of a channel), by mode."""
    if d["dw"]:
        words = [nine(list(k)) if d["k3"] else [0] * 4 + [int(k[0])] + [0] * 4 for k in w]
    else:
        words = [nine(list(k[9 * s : 9 * s + 9])) for k in w for s in range(ceil_div(len(k), 9))]
    if d["ew"] and d["ewop"] >= 2:  # the product of the last weight is used twice
        words = [[*word[:7], word[8], word[8]] for word in words]
    if d["dw"] or d["mode"] == FC:
        parts = [words[i : i + n_z] for i in range(0, len(words), n_z)]
        return [dict(enumerate(part)) for part in parts]
    steps = d["s"]
    rows = []
    for first in range(0, d["o"], n_z):
        for s in range(steps):
            chans = range(first, min(d["o"], first + n_z))
            rows.append({o - first: words[o * steps + s] for o in chans})
    return rows


def make(rng: np.random.Generator, n_z: int, eight_bit: bool, kind: int) -> Layer:
    """kind: TAPS, CHAN, FC or depthwise (2); weights random, or the largest."""
    o = int(rng.integers(1, 4 * n_z))
    kernel = {TAPS: 3, CHAN: 1, FC: 1}.get(kind, int(rng.choice([1, 3])))
    shape = (int(rng.integers(1, 25)), 4, 4)
    if kind == 2:
        shape = (o, 4, 4)
    elif kind == FC:
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(1, 8)))
    widest = 1 << 23
    arg_w = int(rng.choice([int(rng.integers(-widest, widest)), -widest, widest - 1, -3]))
    arg = LayerArg.make(
        *shape, o, kernel=kernel, depthwise=kind == 2, fc=kind == FC, eight_bit=eight_bit
    ).replace(
        arg_w=arg_w,
        shr_w=int(rng.integers(0, 16)),
        w_xor=int(eight_bit and rng.random() < 0.4),
        arg_add=int(rng.integers(-(1 << 39), 1 << 39)),
    )
    if kind == 2 and kernel == 3 and rng.random() < 0.6:
        arg = arg.replace(elementwise=1, ew_op=int(rng.integers(4)))
    top = 255 if eight_bit else 65535
    weights = rng.integers(0, top + 1, (o, arg.taps))
    if rng.random() < 0.3:
        weights[rng.random(weights.shape) < 0.8] = top
    return layer_of(arg, weights, n_z, eight_bit)


def layer_of(arg: LayerArg, weights: np.ndarray, n_z: int, eight_bit: bool) -> Layer:
    """The layer for weights (O, taps of a channel), with the loader's expected output."""
    d = describe_layer(arg, Sizes(n_z=n_z), eight_bit=eight_bit)
    added = arg.arg_add * arg.add_count
    constants = [(((arg.arg_w * int(w.sum())) >> arg.shr_w) + added) & MASK36 for w in weights]
    raw = weights_to_bytes(weights, eight_bit)
    stream = (raw ^ np.uint8(0x80 if arg.w_xor else 0)).tobytes()
    return Layer(d, stream, buffer_rows(d, weights, n_z), constants)


class Bench(BlockBench):
    """The loader's neighbours: stream, both buffers, and the release of their rows."""

    inputs = INPUTS

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.n_z, self.wb = int(dut.N_Z.value), int(dut.WEIGHT_BITS.value)
        self.ring, self.par_ring = int(dut.WBUF_ROWS.value), int(dut.PAR_ROWS.value)
        self.stream = ByteStream(dut, "weight")
        self.keep = bool(int(dut.KEEP_WEIGHTS.value))
        self.kept = ByteStream(PackedView(dut, {"kept": (layout("kept"), "kept_")}), "kept")
        self.memory: dict[tuple[int, int], list[int]] = {}
        self.constants: dict[tuple[int, int], int] = {}
        self.starved = 0

    def _words(self) -> int:
        """Words of both streams that the loader has not accepted yet."""
        return len(self.stream.words) + len(self.kept.words)

    def _writes(self) -> None:
        dut = self.dut
        if int(dut.w_we.value):
            assert not self.starved, "a word came although the loader said it has no bytes"
            at = int(dut.w_row.value), int(dut.w_bank.value)
            self.memory[at] = split_words(int(dut.w_data.value), self.wb, 9)
        if int(dut.kc_we.value):
            at = int(dut.kc_row.value), int(dut.kc_bank.value)
            self.constants[at] = int(dut.kc_data.value)
        self.starved = int(dut.starved.value)

    def _check_row(self, number: int, row: dict[int, list[int]]) -> None:
        for bank, want in row.items():
            got = self.memory.get((number % self.ring, bank))
            assert got == want, f"row {number} bank {bank}: {got}, expected {want}"

    async def play(self, layers: list[Layer], p_in: float, p_free: float) -> None:
        """Load the layers in sequence, their bytes in one stream. Bounded. With a small ``p_free``
        no row is released before the ring was full, which the first layer has to fill."""
        dut = self.dut
        rows = [row for layer in layers for row in layer.rows]
        prows: list[list[int]] = []  # constants of each parameter row
        for layer in layers:
            layer.desc["kept"] = int(self.keep and random.random() < 0.5)
            stream = self.kept if layer.desc["kept"] else self.stream
            stream.add(layer.stream, random.choice((len(layer.stream), 7, 50)))
            c = layer.constants
            prows += [c[i : i + self.n_z] for i in range(0, len(c), self.n_z)]
        waiting = list(layers)
        seen = freed = pfreed = most = started = 0
        full = self.ring if p_free < 0.1 else 0
        for _ in range(1000 + int(40 * (len(rows) * self.n_z + self._words()) / p_in / p_free)):
            # busy has its value from before the edge: it does not reflect a start in this cycle
            ready = waiting and not started and not int(dut.busy.value)
            started = bool(ready) and random.random() < 0.5
            dut.start.value = int(started)
            dut.desc.value = (
                pack_descriptor(waiting.pop(0).desc) if started else random.getrandbits(500)
            )
            self.stream.drive(p_in)
            self.kept.drive(p_in)
            await RisingEdge(dut.clk)
            self.stream.sample()
            self.kept.sample()
            # counters first: the rows they count were written in earlier cycles
            filled = (int(dut.wrow_filled.value) - freed) % (1 << len(dut.wrow_filled)) + freed
            assert filled - freed <= self.ring, "more rows than the buffer has"
            most = max(most, filled - freed)
            while seen < filled:
                self._check_row(seen, rows[seen])
                seen += 1
            self._writes()
            if freed < filled and most >= full and random.random() < p_free:
                self._check_row(freed, rows[freed])  # still there
                freed += 1
                dut.wrow_freed.value = freed % (1 << len(dut.wrow_freed))
            if pfreed < len(prows) and random.random() < p_free:
                want = {(pfreed % self.par_ring, z): k for z, k in enumerate(prows[pfreed])}
                if all(at in self.constants for at in want):
                    for at, k in want.items():
                        got = self.constants.pop(at)
                        assert got == k, f"constant of row {pfreed}: {got:#x}, expected {k:#x}"
                    pfreed += 1
                    dut.prow_freed.value = pfreed % (1 << len(dut.prow_freed))
            if freed == len(rows) and pfreed == len(prows) and not waiting:
                break
        else:
            raise AssertionError(f"{freed} of {len(rows)} rows, {pfreed} of {len(prows)} constants")
        for _ in range(10):
            await RisingEdge(dut.clk)
            assert not int(dut.w_we.value) and not int(dut.kc_we.value)
        assert not int(dut.busy.value) and not self._words()
        assert not self.constants, "constants nobody asked for"


async def begin(dut) -> Bench:
    bench = Bench(dut)
    await bench.reset()
    return bench


@cocotb.test()
async def random_layers(dut) -> None:
    """All kinds of layers and widths of weights, several times around both rings."""
    rng = np.random.default_rng(random.getrandbits(32))
    wide = int(dut.WEIGHT_BITS.value) == 16
    for p_in, p_free in ((1.0, 1.0), (0.4, 0.5), (1.0, 0.03)):
        bench = await begin(dut)
        # a long vector, whose rows need no room for others
        arg = LayerArg.make(8, 6, 7, ceil_div(bench.ring * bench.n_z, 38) + 1, fc=True)
        layers = [layer_of(arg, rng.integers(0, 256, (arg.o_ch_num, 336)), bench.n_z, True)]
        while sum(len(layer.rows) for layer in layers) < 5 * bench.ring or len(layers) < 12:
            kind = (TAPS, CHAN, 2, FC)[len(layers) % 4]
            layers.append(make(rng, bench.n_z, not wide or rng.random() < 0.6, kind))
        await bench.play(layers, p_in, p_free)


@cocotb.skipif(parameter("WEIGHT_BITS") < 16, reason="weights of 16 bits")
@block_test(Bench)
async def long_vector(bench: Bench) -> None:
    """The sum of the weights of a long fully connected layer needs more than 31 bits."""
    arg = LayerArg.make(40, 30, 30, 1, fc=True, eight_bit=False).replace(arg_w=-77, shr_w=3)
    weights = np.full((1, arg.taps), 65535)
    assert weights.sum() > 1 << 31
    await bench.play([layer_of(arg, weights, bench.n_z, False)], 1.0, 1.0)


@cocotb.test()
async def full_rate(dut) -> None:
    """With bytes and room always available, 3x3 words are written at the rate of the bus; kept ones
    at the rate of 16 bytes per cycle."""
    rng = np.random.default_rng(random.getrandbits(32))
    wide = int(dut.WEIGHT_BITS.value) == 16
    ways = [
        ("bus", True),
        *((("kept", True), ("kept", not wide)) if int(dut.KEEP_WEIGHTS.value) else ()),
    ]
    n_z, rows = int(dut.N_Z.value), int(dut.WBUF_ROWS.value)
    for way, eight_bit in ways:
        layer = make(rng, n_z, eight_bit, TAPS)
        # a channel's constant needs up to four cycles (docs/architecture.md 15.5): as many words
        while layer.desc["s"] < 4 or len(layer.rows) > rows or len(layer.stream) < 200:
            layer = make(rng, n_z, eight_bit, TAPS)
        await at_full_rate(dut, layer, way, eight_bit)


@cocotb.test()
async def full_rate_of_channels(dut) -> None:
    """The constants of a depthwise kernel of bytes, one word of nine each, do not stall the
    loader."""
    rng = np.random.default_rng(random.getrandbits(32))
    o = 4 * int(dut.N_Z.value)
    arg = LayerArg.make(o, 4, 4, o, kernel=3, depthwise=True, eight_bit=True)
    arg = arg.replace(arg_w=-77, shr_w=0)
    weights = rng.integers(0, 256, (o, 9))
    await at_full_rate(dut, layer_of(arg, weights, int(dut.N_Z.value), True), "bus", True)


async def at_full_rate(dut, layer: Layer, way: str, eight_bit: bool) -> None:
    """A layer from the bus or kept, with bytes at the full rate."""
    bench = await begin(dut)
    stream = bench.kept if way == "kept" else bench.stream
    stream.add(layer.stream, len(layer.stream))
    layer.desc["kept"] = int(way == "kept")
    dut.desc.value, dut.start.value = pack_descriptor(layer.desc), 1
    for cycle in range(2000):
        stream.drive(1.0)
        await RisingEdge(dut.clk)
        stream.sample()
        bench._writes()
        dut.start.value = 0
        if cycle > 2 and not int(dut.busy.value):
            break
    words = len(layer.stream) / (9 if eight_bit else 18)
    best = max(words, len(layer.stream) / stream.lanes)
    assert cycle <= 1.05 * best + 16, f"{way}: {cycle} cycles for {len(layer.stream)} bytes"


@cocotb.test()
async def resets(dut) -> None:
    """A reset ends the work, in the cycle of a write, too: no write follows it."""
    rng = np.random.default_rng(random.getrandbits(32))
    wide = int(dut.WEIGHT_BITS.value) == 16
    writes = 0
    for turn in range(24):
        bench = await begin(dut)
        layer = make(rng, bench.n_z, not wide or turn % 3 > 0, (TAPS, CHAN, 2, FC)[turn % 4])
        bench.stream.add(layer.stream, len(layer.stream))
        layer.desc["kept"] = 0
        dut.desc.value, dut.start.value = pack_descriptor(layer.desc), 1
        strobe = (dut.w_we, dut.kc_we)[turn // 4 % 2]
        for cycle in range(300):
            bench.stream.drive(1.0)
            await RisingEdge(dut.clk)
            bench.stream.sample()
            dut.start.value = 0
            if (cycle > 4 and int(strobe.value)) or cycle > 4 * turn + 40:
                break
        # this edge has already output the next value: the sampled one is of the previous cycle
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        writes += int(dut.w_we.value) or int(dut.kc_we.value)
        for _ in range(3):
            await RisingEdge(dut.clk)
            assert not int(dut.w_we.value) and not int(dut.kc_we.value), f"turn {turn}"
            assert not int(dut.busy.value) and not int(dut.wrow_filled.value), f"turn {turn}"
    assert writes, "no reset met a write"
    bench = await begin(dut)
    layers = [make(rng, bench.n_z, True, kind) for kind in (TAPS, CHAN, 2, FC)]
    while sum(len(layer.rows) for layer in layers) < 2 * bench.ring:
        layers.append(make(rng, bench.n_z, True, TAPS))
    await bench.play(layers, 1.0, 0.5)


@sizes(
    "sim n_z bus wb keep",
    test="icarus-2-32-16-0",
    check="verilator-4-32-16-0 verilator-16-64-16-1",
    nightly="icarus-2-128-16-0 icarus-2-32-16-1 icarus-4-64-8-1 verilator-4-32-8-1",
)
def test_weight_loader(sim: str, n_z: int, bus: int, wb: int, keep: int) -> None:
    parts = ("loader", "group", "window", "sum", "constant")
    sources = [f"rtl/weight/weight_{part}.v" for part in parts]
    sources += ["rtl/lib/byte_*.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"AHB_W": bus, "N_Z": n_z, "WEIGHT_BITS": wb, "WBUF_ROWS": 64, "PAR_ROWS": 8}
    params |= {"KEEP_WEIGHTS": 1} if keep else {}
    test = "tb.weight_loader.test_weight_loader"
    run_bench(sim, "weight_loader", sources, test, params=params)
