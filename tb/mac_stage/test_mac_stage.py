# SPDX-License-Identifier: Apache-2.0
"""mac_stage: every output in every cycle against what the layers' pixels and weights say.

An issue is made in cycle T. Column t sees its operands in cycle T + 1 + t, the parameters are read
in T + 12, and the sums of a last step leave in T + 13. What is not looked at is noise.
"""

import random
from collections import Counter

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge, Timer
from openkpu.models.elementwise import OPERATIONS
from openkpu.tb.core.descriptor import join_fields, layout, pack, split_fields
from openkpu.tb.core.pipeline_bench import join, reset, split
from openkpu.tb.mac_stage.expected import (
    MODES,
    N_X,
    Accumulators,
    Issue,
    Layer,
    Shape,
    operands,
    positions,
)
from openkpu.tb.simrun import run

READ, LEAVE = 12, 13  # cycles from an issue to param_re and to out_valid
COUNTED = 3  # and from column 0's to the count of its multiplications
LANES = ("valid", "left", "right", "top", "bot")
INPUTS = ("desc", "control", "weights", "issued", "issue_tag", *(f"row_{t}" for t in range(N_X)))
KINDS = ("random", "random", "ends", "largest", "unused")


def bits(vector: dict[str, tuple[int, int]]) -> int:
    return sum(width for _, width in vector.values())


def number(values: np.ndarray, width: int) -> int:
    """Bytes, or words of 16 bits, in one number."""
    kind = "<u1" if width == 8 else "<u2"
    return int.from_bytes(values.astype(kind).tobytes(), "little")


def noise(width: int) -> int:
    return random.getrandbits(width)


class Bench:
    """The stage a cycle at a time: an issue or none goes in, all outputs are checked."""

    def __init__(self, dut) -> None:
        self.dut = dut
        names = ("N_Y", "N_Z", "WEIGHT_BITS", "TILE_W")
        self.shape = Shape(*(int(getattr(dut, name).value) for name in names))
        lanes, zw = self.shape.lanes, self.shape.n_z.bit_length() - 1
        prw = int(dut.PRW.value)
        job = layout("job", ZW=zw)
        self.meta = layout("meta", ZW=zw, PRW=prw, JOB_BITS=bits(job))
        self.tag = layout("tag", META_BITS=bits(self.meta))
        self.column = layout("column", L=lanes, ZW=zw)
        self.rng = np.random.default_rng(random.getrandbits(32))
        self.layer = Layer("taps", False, 0, 0)
        self.sums = Accumulators(self.shape)
        self.met: Counter[str] = Counter()
        self.rows = [getattr(dut, f"row_{t}") for t in range(N_X)]
        self.clear()

    def clear(self) -> None:
        """Nothing is on its way."""
        self.history: list[tuple[Issue, bool] | None] = [None] * (LEAVE + 1)

    async def begin(self, layer: Layer) -> None:
        """Another layer, once the last sums of the one before are out."""
        await self.drain()
        self.layer = layer
        self.sums.places.clear()
        known = {"mode": layer.mode, "dw": layer.dw, "sin": layer.signed, "pad": layer.pad}
        # a line of a depthwise row has the width of the map's pitch, others that of the stripe
        known |= {"ip": layer.pitch, "swl": random.choice((4, 5, 6))}
        known |= {"ew": layer.ewop is not None, "ewop": layer.ewop or 0}
        rest = {"k3": noise(1), "sout": noise(1), "wide": noise(1), "c": noise(11), "s": noise(18)}
        self.dut.desc.value = pack({**rest, **{k: int(v) for k, v in known.items()}})

    async def drain(self) -> None:
        for _ in range(LEAVE + COUNTED):
            await self.cycle(None)

    def issue(self, kind: str, **tag: int) -> Issue:
        """An issue of the layer; what ``tag`` does not say is random."""
        made = operands(self.shape, self.layer, self.rng, kind)
        made.tag = split_fields(self.tag, noise(bits(self.tag))) | tag
        return made

    def _control(self, issue: Issue) -> int:
        """Control of an issue without its taps; fields that do not matter are noise."""
        upper = noise(6) // self.shape.entry * self.shape.entry
        flags = {n: issue.valid if n == "valid" else issue.edges[n] for n in LANES}
        fields = {name: join(flag, 1) for name, flag in flags.items()}
        width = self.column["wsel"][1]
        used = self.layer.kind in ("row", "stripe", "vector")
        fields["wsel"] = issue.bank if used else noise(width)
        fields["pos"] = issue.pos % self.shape.entry | upper
        fields["kernels"] = noise(8) if self.layer.dw else issue.kernels
        fields["count"] = int(issue.valid.sum())
        return join_fields(self.column, fields)

    def _drive(self, new: Issue | None) -> None:
        dut, shape = self.dut, self.shape
        dut.issued.value = int(new is not None)
        dut.issue_tag.value = join_fields(self.tag, new.tag) if new else noise(bits(self.tag))
        control, weights, width = [], [], bits(self.column)
        for t in range(N_X):
            at = self.history[1 + t]
            taps = noise(9) & ~(1 << t)  # a column looks at its own alone
            if at:
                issue = at[0]
                control.append(issue.control | taps | int(issue.taps[t]) << t)
                self.rows[t].value = number(issue.row[t], 8)
                weights.append(number(issue.weight[t], shape.wb))
            else:
                low = self.column["count"][0]
                lanes = noise(width) & ~(((1 << shape.lanes) - 1) << self.column["valid"][0])
                control.append((lanes & ~(255 << low) & ~511) | taps | noise(1) << t)
                self.rows[t].value = noise(8 * shape.tile)
                weights.append(noise(shape.n_z * shape.wb))
        dut.control.value = join(control, width)
        dut.weights.value = join(weights, shape.n_z * shape.wb)

    async def cycle(self, new: Issue | None) -> None:
        """One cycle, in which ``new`` is issued."""
        made = None
        if new is not None:
            new.control = self._control(new)
            made = new, self.sums.add(new, self.layer)
        self.history = [made, *self.history[:-1]]
        self._drive(new)
        await RisingEdge(self.dut.clk)
        self.check()

    def check(self) -> None:
        """All outputs of this cycle."""
        dut, waits = self.dut, self.history
        reads = waits[READ] is not None and waits[READ][1]
        leaves = waits[LEAVE] is not None and waits[LEAVE][1]
        assert int(dut.param_re.value) == int(reads), f"param_re is not {reads}"
        assert int(dut.out_valid.value) == int(leaves), f"out_valid is not {leaves}"
        idle = not leaves and not any(waits[1 : READ + 1])
        assert int(dut.idle.value) == int(idle), f"idle is not {idle}"
        if reads:
            row = self._meta(waits[READ][0])["prow"] % (1 << len(dut.param_row))
            assert int(dut.param_row.value) == row, "parameters of another row"
        if leaves:
            self._check_sums(waits[LEAVE][0])
        counted = waits[COUNTED : COUNTED + N_X]
        self._check_counts([at[0] if at else None for at in counted])
        self.met["out"] += leaves
        self.met["idle"] += idle
        self.met["back to back"] += leaves and waits[LEAVE - 1] is not None

    def _meta(self, issue: Issue) -> dict[str, int]:
        return split_fields(self.meta, issue.tag["meta"])

    def _check_sums(self, issue: Issue) -> None:
        dut, count = self.dut, self.shape.lanes
        for name, width, want in (("out_sum", 36, issue.out[0]), ("out_xsum", 29, issue.out[1])):
            got = int(getattr(dut, name).value)
            if got != join(want, width):
                wrong = [n for n in range(count) if split(got, width, count)[n] != want[n]]
                n = wrong[0]
                raise AssertionError(
                    f"{self.layer}: {name} of lanes {wrong}; lane {n} is "
                    f"{split(got, width, count)[n]:#x}, expected {want[n]:#x}"
                )
        meta = self._meta(issue)
        want = issue.tag["pos"], issue.tag["end"], meta["pbank"], meta["job"]
        names = ("out_pos", "out_end", "out_bank", "out_job")
        got = tuple(int(getattr(dut, name).value) for name in names)
        assert got == want, f"{names} are {got}, expected {want}"
        self.met[f"{self.layer.kind} left"] += 1

    def _check_counts(self, issues: list[Issue | None]) -> None:
        issued = split(int(self.dut.macs_issued.value), 8, N_X)
        gated = split(int(self.dut.macs_gated.value), 8, N_X)
        for t, issue in enumerate(issues):
            want = (issue.issued[t], issue.gated[t]) if issue else (0, 0)
            got = issued[t], gated[t]
            assert got == want, f"{self.layer}: column {t} counts {got}, expected {want}"
            self.met[f"gated in {t}"] += want[1]

    async def group(self, steps: int, places: int, p_issue: float) -> None:
        """A group: each step goes over its places in any order, with pauses; maybe the last step
        more than once, as for the bytes of 32-bit sums."""
        shape, layer = self.shape, self.layer
        one = layer.kind == "vector"
        spots = [0] if one else random.sample(range(64 // shape.n_y), places)
        again = 0 if one or layer.dw else random.choice((0, 3))
        for step in (*range(steps), *[steps - 1] * again):
            random.shuffle(spots)
            for at in spots:
                while random.random() >= p_issue:
                    await self.cycle(None)
                tag = {} if layer.dw else {"idx": at, "first": step == 0, "last": step == steps - 1}
                issue = self.issue(random.choice(KINDS), **{k: int(v) for k, v in tag.items()})
                self.meet(issue)
                await self.cycle(issue)

    def meet(self, issue: Issue) -> None:
        """Count what an issue shows of its layer."""
        kind, used = self.layer.kind, issue.valid.any()
        if self.layer.ewop is not None:
            self.met[f"{kind} {OPERATIONS[self.layer.ewop]}"] += int(used)
        self.met[f"{kind} signed {int(self.layer.signed)}"] += 1
        if self.layer.padded and used:
            for name, lanes in issue.edges.items():
                self.met[f"{kind} {name}"] += int((lanes & issue.valid).any())
        self.met[f"{kind} pitch {self.layer.pitch}"] += int(used)
        self.met[f"{kind} bank {issue.bank}"] += int(used)
        self.met[f"{kind} position {issue.pos % self.shape.entry}"] += int(used)
        self.met[f"{kind} second"] += int(issue.valid[64:].any())

    def expect(self, kinds: tuple[str, ...]) -> None:
        """Everything that these kinds of layers have was met."""
        wanted = ["idle", "back to back", *(f"gated in {t}" for t in range(N_X))]
        for kind in kinds:
            layer = Layer(kind, False, 0, 0)
            wanted += [f"{kind} left", f"{kind} signed 0", f"{kind} signed 1"]
            pieces = {p % self.shape.entry for p in positions(self.shape, layer)}
            if kind != "vector":
                wanted += [f"{kind} position {p}" for p in pieces]
            if layer.padded:
                wanted += [f"{kind} {name}" for name in ("left", "right", "top", "bot")]
            if kind in ("stripe", "vector"):
                wanted += [f"{kind} bank {z}" for z in range(self.shape.n_z)]
            if layer.dw:
                wanted += [f"{kind} pitch {p}" for p in range(3)]
                wanted += [f"{kind} {op}" for op in OPERATIONS]
                wanted += [f"{kind} second"] if self.shape.tile > 64 else []
        missing = [name for name in wanted if not self.met[name]]
        assert not missing, f"never met: {missing}"


async def start(dut, first: bool = True) -> Bench:
    bench = Bench(dut)
    await reset(dut, *INPUTS, start_clock=first)
    return bench


@cocotb.test()
async def every_kind(dut) -> None:
    """Layers of all kinds, signed or not, with and without pauses; a layer behind the other."""
    bench = await start(dut)
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


@cocotb.test()
async def edges_of_each_tap(dut) -> None:
    """A single edge, a single column in use: only the taps beyond it take the pad value."""
    bench = await start(dut)
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


@cocotb.test()
async def around_the_end(dut) -> None:
    """A sum reaches 2^36 - 1 and leaves; another one goes on to 2^36, which is 0."""
    bench = await start(dut)
    await bench.begin(Layer("channels", False, 0, 0))
    if bench.shape.wb == 8:
        return  # it takes a hundred thousand steps: see long_vector
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


@cocotb.test()
async def long_vector(dut) -> None:
    """The longest vector there is, 2 MiB of pixels 255: 29 bits of the sum of pixels are enough."""
    bench = await start(dut)
    if cocotb.SIM_NAME != "Verilator" or bench.shape.lanes > 16:
        return  # too slow
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


@cocotb.test()
async def reset_in_between(dut) -> None:
    """After a reset nothing of before leaves, and the next sums are right."""
    bench = await start(dut)
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
    await bench.drain()


@pytest.mark.parametrize(
    ("sim", "n_y", "n_z", "wb", "tile", "more"),
    [
        ("icarus", 2, 2, 16, 8, {}),
        ("verilator", 2, 2, 16, 8, {}),
        ("verilator", 4, 4, 8, 16, {"GATE": 0, "PARAM_CHANS": 1024}),
        ("icarus", 4, 8, 8, 32, {}),
        pytest.param("icarus", 4, 2, 16, 8, {}, marks=pytest.mark.nightly),
        pytest.param("icarus", 4, 4, 16, 16, {}, marks=pytest.mark.nightly),
        pytest.param("icarus", 4, 16, 8, 64, {}, marks=pytest.mark.nightly),
        pytest.param("verilator", 8, 16, 16, 128, {}, marks=pytest.mark.nightly),
    ],
)
def test_mac_stage(sim: str, n_y: int, n_z: int, wb: int, tile: int, more: dict[str, int]) -> None:
    sources = ["rtl/mac/*.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"N_Y": n_y, "N_Z": n_z, "WEIGHT_BITS": wb, "TILE_W": tile, **more}
    run(sim, "mac_stage", sources, "tb.mac_stage.test_mac_stage", params=params)
