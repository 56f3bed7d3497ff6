# SPDX-License-Identifier: Apache-2.0
"""Streams on the RTL, measured: tables of docs/continuous.md and docs/kept.md.

`make bench-continuous`: two networks on real scans, each discontinuous (every image started by the
host) and continuous, at several memory latencies: cycles per inference, the bound max(cycles with
all data on chip, bus cycles), the share of the transfers that is hidden; the gate's savings in
multiplications and in toggles of the multipliers' operands; and a time line of two inferences.
Exit status: 0 every result was exact and the bound is met within 3 % at 0 wait states, else 1.

`make bench-kept`: two networks whose weights exceed the weight buffer, each as a stream without and
with kept weights, at two widths of the bus and two memory latencies; the prediction beside it, and
what bounds the steady state. Exit status: 0 every result was exact and no stream became slower,
else 1.
"""

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openkpu import configs, digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.digits.quantise import batch_norm, straight_line
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import run_layer
from openkpu.network import kept
from openkpu.network.network import Network
from openkpu.prediction import keeping
from openkpu.prediction.roofline import needed_macs, network_cycles
from openkpu_tb import simrun
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.trace import Trace
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import RequestedRun, StreamRequest
from openkpu_tools import command, marked, registry, rtl

DOCS = simrun.ROOT / "docs"
PICTURES = DOCS / "images"
LIMIT = 4_000_000  # cycles of an inference
WAITS, KEPT_WAITS = (0, 1, 4, 16), (0, 16)  # continuous; with kept weights
SINGLE, STREAM, KEPT_STREAM = 2, 5, 4  # images one by one, in a stream, in one with kept weights
STEADY = slice(1, -1)  # of a stream's inferences behind the first one: without second and last
TOLERANCE = 1.03
CHANNELS, SIZE, LAYERS = 128, 8, 6  # of the bus-bound network
STORAGE = 1 << 21  # bytes, enough for each network with kept weights: one build a bus
TOTAL = COUNTERS.index("total")
BEATS = [COUNTERS.index("bus_rd_beats"), COUNTERS.index("bus_wr_beats")]
WAITING = [COUNTERS.index("stall_bus"), COUNTERS.index("stall_weights")]


@dataclass
class Case:
    """A network on a configuration, with images."""

    name: str
    config: Config
    network: Network
    images: np.ndarray


def simulate(
    case: Case, runs: list[RequestedRun], title: Callable[[RequestedRun], str], **build: Any
) -> list[launch.Event]:
    """The runs in one process; an event each. SystemExit when anything differs or fails.

    ``build``: of ``launch.run_job``.
    """
    events: list[launch.Event] = []
    progress = rtl.Progress()

    def on_event(event: launch.Event) -> None:
        if event["event"] == "stream":
            events.append(event)
            run, wrong = runs[event["index"]], sum(event["wrong"])
            bad = event["failure"] or (f"{wrong} bytes differ" if wrong else "ok")
            progress.line(f"  {case.name}, {title(run)}, {run.wait} wait states: {bad}")
            if bad != "ok":
                raise SystemExit(1)

    launch.run_job("verilator", case.config, StreamRequest(runs, limit=LIMIT), on_event, **build)
    if len(events) != len(runs):
        raise SystemExit("the simulation ended too early")
    return events


def steady_state(event: launch.Event) -> np.ndarray:
    """Counters (n, COUNTERS) of the inferences in the steady state of a stream."""
    return np.diff(np.array(event["ends"]), axis=0)[STEADY]


def ended(page: Path, name: str, lines: list[str], good: bool, bad: str) -> int:
    """Print the tables and write them into their page; the exit status."""
    marked.fill(page, name, "\n".join(lines))
    print(*lines, f"wrote {page.relative_to(simrun.ROOT)}", sep="\n")
    print("PASS" if good else f"FAIL: {bad}")
    return 0 if good else command.MISMATCH


# ---- continuous inference
@dataclass
class Point:
    """Figures of one latency."""

    wait: int
    single: float  # cycles per inference, discontinuous
    stream: float  # continuous, steady state
    on_chip: int  # cycles of an inference without waits for the bus
    bus: float  # cycles with a transfer on the bus, per inference of the steady state
    hidden_single: float  # share of the transfer time in which the array did not wait ...
    hidden: float  # ... continuous

    @property
    def bound(self) -> float:
        """Lower bound of the steady state."""
        return max(self.on_chip, self.bus)


def point(wait: int, single: launch.Event, stream: launch.Event) -> Point:
    """Figures of a latency from its two runs."""
    alone = np.diff(np.array(single["ends"]), axis=0, prepend=0)
    rest = steady_state(stream)
    # bus cycles are measured over a whole run: first inferences and steady ones
    per_beat = stream["bus_cycles"] / np.array(stream["ends"])[-1][BEATS].sum()
    bus = float(rest[:, BEATS].sum(axis=1).mean() * per_beat)
    both = alone, rest
    waits = [run[:, WAITING].sum(axis=1) for run in both]
    single_hidden, hidden = (
        max(0.0, 1 - float(wait.mean()) / cycles)
        for wait, cycles in zip(waits, (single["bus_cycles"] / len(alone), bus), strict=True)
    )
    return Point(
        wait,
        *(float(alone[:, TOTAL].mean()), float(rest[:, TOTAL].mean())),
        int(min((run[:, TOTAL] - w).mean() for run, w in zip(both, waits, strict=True))),
        *(bus, single_hidden, hidden),
    )


def gated(case: Case) -> tuple[int, int, int]:
    """(multiplications, gated by a negative pixel, by a zero) of all images, golden model."""
    macs = sign = zero = 0
    for image in case.images:
        x = image
        for arg, result in zip(case.network.layers, case.network.run(image).layers, strict=True):
            weights, bn, act = case.network.tables(arg)
            signed = x.view(np.int8) if arg.signed_in else x.astype(np.int16)
            positive = np.where(signed < 0, 1, signed).astype(np.uint8)
            only_zero = run_layer(arg, positive, weights, bn, act).macs_gated
            macs += result.macs
            zero += only_zero
            sign += result.macs_gated - only_zero
            x = result.y
    return macs, sign, zero


def saving(case: Case, with_gate: launch.Event, without: launch.Event) -> list[int]:
    """Per inference: multiplications, multiplications skipped by the gate for a negative pixel and
    for a zero, operand bits that toggle with the gate, and without it."""
    if with_gate["probe"]["idle_toggles"] or not without["probe"]["idle_toggles"]:
        raise SystemExit("operands toggle without a multiplication, or never do")
    toggles = with_gate["probe"]["toggles"], without["probe"]["toggles"]
    return [value // len(case.images) for value in (*gated(case), *toggles)]


def measure_stream(case: Case, trace: Path) -> tuple[list[Point], list[int]]:
    """All runs of a case; ``trace`` gets the rows of three inferences."""
    runs = []
    for wait in WAITS:
        runs.append(RequestedRun(case.network, case.images[:SINGLE], continuous=False, wait=wait))
        runs.append(RequestedRun(case.network, case.images, wait=wait))
    runs.append(RequestedRun(case.network, case.images[:3], trace=str(trace)))
    build = {"storage_bytes": case.network.storage(case.images).data.size + 4096, "PROBE": 1}

    def title(run: RequestedRun) -> str:
        return "continuous" if run.continuous else "one by one"

    events = simulate(case, runs, title, GATE=1, **build)
    points = [point(w, events[2 * i], events[2 * i + 1]) for i, w in enumerate(WAITS)]
    plain = [RequestedRun(case.network, case.images)]
    (event,) = simulate(case, plain, lambda _: "without the gate", GATE=0, **build)
    return points, saving(case, events[1], event)


def stream_table(case: Case, points: list[Point], saved: list[int]) -> list[str]:
    """Markdown of a case."""
    roof = network_cycles(case.config, case.network.layers, eight_bit=case.network.eight_bit)
    macs, by_sign, by_zero, toggles, ungated = saved
    lines = [
        f"## {case.name}: {macs / 1e6:.2f} MMAC on `{case.config.name}` ({case.config.macs} MACs)",
        "",
        f"Roofline of a discontinuous inference: {roof} cycles.",
        "",
        "| wait states | discontinuous | continuous | on chip | bus | continuous / bound |"
        " transfers hidden, discontinuous | continuous |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {p.wait} | {p.single:.0f} | {p.stream:.0f} | {p.on_chip} | {p.bus:.0f} |"
        f" {p.stream / p.bound:.3f} | {p.hidden_single:.1%} | {p.hidden:.1%} |"
        for p in points
    ]
    return [
        *lines,
        "",
        f"An inference needs {macs} multiplications. The gate skips {by_sign / macs:.1%} for a"
        f" negative pixel and {by_zero / macs:.1%}",
        f"for a zero. Toggles of operand bits: {toggles}, without the gate {ungated}"
        f" ({1 - toggles / ungated:.1%} fewer).",
        "",
    ]


def continuous(argv: list[str] | None = None) -> int:
    """Measure, print, write page and pictures."""
    from openkpu_tools.benchmarks import bench_plots  # needs matplotlib

    registry.parse_command("bench-continuous", argv)
    simrun.check_tool("verilator")
    scans = digits.load_data()[1].pixels[:STREAM]
    cases = [
        Case("digits", configs.load_config("small"), digits.load_network(), scans),
        Case(
            "large digits",
            configs.load_config("k210"),
            digits.load_large(),
            digits.enlarge(scans),
        ),
    ]
    good, lines, curves = True, [], {}
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="openkpu_bench_") as tmp:
        for number, case in enumerate(cases):
            trace = Path(tmp) / f"{case.config.name}.trace"
            points, saved = measure_stream(case, trace)
            curves[f"{case.name} on {case.config.name}"] = points
            lines += stream_table(case, points, saved)
            good &= points[0].stream <= TOLERANCE * points[0].bound
            if number == 0:
                bench_plots.timeline(Trace.load(trace), PICTURES / "timeline.png")
    bench_plots.plot_cycles(curves, PICTURES / "continuous.png")
    bad = f"more than {TOLERANCE} times the bound"
    return ended(DOCS / "continuous.md", "continuous", lines, good, bad)


# ---- weights that stay in the AI RAM
@dataclass
class Row:
    """A line of the table."""

    case: Case
    wait: int
    before: int  # cycles of an inference in the steady state, weights from the bus
    after: int  # ... kept
    beats: tuple[int, int]  # transfers of an inference, without and with


def bus_bound(eight_bit: bool = True) -> Network:
    """Six 3x3 convolutions of 128 channels on maps of 8x8, and ten outputs: a weight for each 64
    multiplications."""
    rng, network = np.random.default_rng(1), Network(eight_bit=eight_bit)
    width = 1 if eight_bit else 2
    for number in range(LAYERS + 1):
        last = number == LAYERS
        arg = LayerArg.make(
            *(CHANNELS, SIZE, SIZE, 10 if last else CHANNELS),
            kernel=1 if last else 3,
            fc=last,
            arg_x=-128,
            signed_in=int(number > 0),
            signed_out=1,
            eight_bit=eight_bit,
        )
        weights = rng.integers(0, 256, (arg.weight_count, width), dtype=np.uint8)
        weights[:, 1:] = 0
        scale = np.full(arg.o_ch_num, 2.0**-6)
        bn = batch_norm(scale, np.zeros(arg.o_ch_num))
        network.add(arg, weights.reshape(-1), bn, straight_line())
    return network


def kept_cases() -> list[Case]:
    """Both networks on k210, with its bus and with one of 32 bits; 16-bit weights once. They have
    places for their weights."""
    scans = digits.enlarge(digits.load_data()[1].pixels[:KEPT_STREAM])
    shape = (KEPT_STREAM, CHANNELS, SIZE, SIZE)
    noise = np.random.default_rng(2).integers(0, 256, shape, dtype=np.uint8)
    found = []
    for bus in (64, 32):
        config = dataclasses.replace(configs.load_config("k210"), ahb_width=bus)
        found.append(Case("large digits", config, digits.load_large(), scans))
        found.append(Case("bus-bound", config, bus_bound(), noise))
        if bus == 64:
            found.append(Case("bus-bound, 16-bit weights", config, bus_bound(False), noise))
    for case in found:
        case.network.place()
        keeping.keep_weights(case.network, case.config)
        case.network.validate()
    return found


def measure_kept(case: Case) -> list[Row]:
    """Both ways at every latency."""
    ways = (dataclasses.replace(case.network, kept={}), case.network)
    runs = [RequestedRun(network, case.images, wait=w) for w in KEPT_WAITS for network in ways]

    def title(run: RequestedRun) -> str:
        stays = "kept" if run.network.kept else "from the bus"
        return f"{case.config.ahb_width} bits, weights {stays}"

    means = [
        steady_state(event).mean(axis=0)
        for event in simulate(case, runs, title, storage_bytes=STORAGE)
    ]
    totals, beats = [int(s[TOTAL]) for s in means], [int(s[BEATS].sum()) for s in means]
    return [
        Row(case, wait, totals[2 * i], totals[2 * i + 1], (beats[2 * i], beats[2 * i + 1]))
        for i, wait in enumerate(KEPT_WAITS)
    ]


def bounds(case: Case, beats: int) -> dict[str, int]:
    """Least cycles of an inference with kept weights: of the array, of the loader, of the bus."""
    layers = case.network.layers
    array = sum(ceil_div(needed_macs(arg), case.config.macs) for arg in layers)
    nines = sum(ceil_div(arg.weight_count, 9) for arg in layers)
    pieces = sum(kept.size(case.network, i) for i in range(len(layers))) // 16
    return {"array": array, "weight loader": max(nines, pieces), "bus": beats}


def kept_table(rows: list[Row]) -> list[str]:
    """Markdown."""
    lines = [
        "| network | bus | wait states | kept bytes | from the bus | kept | saved | predicted |"
        " bus beats | bound by |",
        "|---" * 10 + "|",
    ]
    for row in rows:
        case = row.case
        gain = keeping.gain(case.network, case.config)
        least = bounds(case, row.beats[1])
        name = max(least, key=lambda key: least[key])
        predicted = f"{gain.before} to {gain.after}" if row.wait == 0 else ""
        lines.append(
            f"| {case.name} | {case.config.ahb_width} | {row.wait} | {gain.bytes} | {row.before} |"
            f" {row.after} | {row.before - row.after} ({1 - row.after / row.before:.1%}) |"
            f" {predicted} | {row.beats[0]} to {row.beats[1]} | {name}, {least[name]} |"
        )
    return lines


def kept_weights(argv: list[str] | None = None) -> int:
    """Measure, print, write the page."""
    registry.parse_command("bench-kept", argv)
    simrun.check_tool("verilator")
    rows = [row for case in kept_cases() for row in measure_kept(case)]
    good = all(row.after <= row.before for row in rows)
    return ended(DOCS / "kept.md", "kept", kept_table(rows), good, "a stream became slower")
