# SPDX-License-Identifier: Apache-2.0
"""What continuous inference saves, measured: `make bench-continuous` writes docs/continuous.md.

Two networks on real scans, each discontinuous (every image started by the host) and continuous, at
several memory latencies: cycles per inference, the bound max(cycles with all data on chip, bus
cycles), the share of the transfers that is hidden; what the gate saves, in multiplications and in
toggles of the multipliers' operands; and a time line of two inferences.

Exit status: 0 every result was exact and the bound is met within 3 % at 0 wait states, else 1.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openkpu import configs, digits
from openkpu.configs import Config
from openkpu.layer.golden import run_layer
from openkpu.network.network import Network
from openkpu.prediction.roofline import network_cycles
from openkpu_tb import simrun
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.trace import Trace
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import RequestedRun, StreamRequest
from openkpu_tools import command, registry, rtl
from openkpu_tools.benchmarks import bench_plots

WAITS = (0, 1, 4, 16)
SINGLE, STREAM = 2, 5  # images one by one, in a stream; the first two of a stream do not count
TOLERANCE = 1.03
PAGE = simrun.ROOT / "docs" / "continuous.md"
PICTURES = simrun.ROOT / "docs" / "images"


@dataclass
class Case:
    """A network on a configuration, with images."""

    name: str
    config: Config
    network: Network
    images: np.ndarray


@dataclass
class Point:
    """Figures of one latency."""

    wait: int
    single: float  # cycles per inference, discontinuous
    stream: float  # continuous, steady state
    on_chip: int  # cycles of an inference without those that wait for the bus
    bus: float  # cycles with a transfer on the bus, per inference of the steady state
    bus_single: float  # the same, discontinuous
    stalls: float  # cycles per inference that wait for the bus, continuous
    stalls_single: float

    @property
    def bound(self) -> float:
        """What the steady state could reach."""
        return max(self.on_chip, self.bus)

    @property
    def hidden(self) -> float:
        """Share of the transfer time during which the array did not wait, continuous."""
        return max(0.0, 1 - self.stalls / self.bus)

    @property
    def hidden_single(self) -> float:
        """The same, discontinuous."""
        return max(0.0, 1 - self.stalls_single / self.bus_single)


@dataclass
class Saving:
    """What the gate saves, per inference."""

    macs: int
    by_sign: int
    by_zero: int
    toggles: int  # operand bits that toggle, gated build
    toggles_ungated: int


def cases() -> list[Case]:
    """The digits network on small, the large one on k210."""
    scans = digits.load_data()[1].pixels
    return [
        Case("digits", configs.load_config("small"), digits.load_network(), scans[:STREAM]),
        Case(
            "large digits",
            configs.load_config("k210"),
            digits.load_large(),
            digits.enlarge(scans[:STREAM]),
        ),
    ]


def simulate(case: Case, runs: list[RequestedRun], gate: int = 1) -> list[launch.Event]:
    """The runs in one process; an event each. SystemExit when anything differs or fails."""
    events: list[launch.Event] = []
    progress = rtl.Progress()

    def on_event(event: launch.Event) -> None:
        if event["event"] == "stream":
            events.append(event)
            run = runs[event["index"]]
            kind = "continuous" if run.continuous else "one by one"
            bad = event["failure"] or (
                f"{sum(event['wrong'])} bytes differ" if any(event["wrong"]) else "ok"
            )
            progress.line(f"  {case.name}, {kind}, {run.wait} wait states, gate {gate}: {bad}")
            if bad != "ok":
                raise SystemExit(1)

    request = StreamRequest(runs, limit=2_000_000)
    size = case.network.storage(case.images).data.size + 4096
    launch.run_job(
        "verilator", case.config, request, on_event, storage_bytes=size, PROBE=1, GATE=gate
    )
    if len(events) != len(runs):
        raise SystemExit("the simulation ended too early")
    return events


def waiting(ends: np.ndarray) -> np.ndarray:
    """Cycles that waited for the bus, of each row of cumulative counters."""
    return ends[:, COUNTERS.index("stall_bus")] + ends[:, COUNTERS.index("stall_weights")]


def point(wait: int, single: launch.Event, stream: launch.Event) -> Point:
    """Figures of a latency from its two runs."""
    alone = np.diff(np.array(single["ends"]), axis=0, prepend=0)
    steady = np.diff(np.array(stream["ends"]), axis=0)[1:-1]  # neither first, second nor last
    total = COUNTERS.index("total")
    beats = [COUNTERS.index("bus_rd_beats"), COUNTERS.index("bus_wr_beats")]
    # bus cycles are measured over a whole run: first inferences and steady ones
    per_beat = stream["bus_cycles"] / np.array(stream["ends"])[-1][beats].sum()
    return Point(
        wait,
        float(alone[:, total].mean()),
        float(steady[:, total].mean()),
        int(min((run[:, total] - waiting(run)).mean() for run in (alone, steady))),
        float(steady[:, beats].sum(axis=1).mean() * per_beat),
        single["bus_cycles"] / len(alone),
        float(waiting(steady).mean()),
        float(waiting(alone).mean()),
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


def saving(case: Case, with_gate: launch.Event, without: launch.Event) -> Saving:
    """Per inference."""
    count = len(case.images)
    macs, sign, zero = gated(case)
    if with_gate["probe"]["idle_toggles"] or not without["probe"]["idle_toggles"]:
        raise SystemExit("operands toggle without a multiplication, or never do")
    toggles = with_gate["probe"]["toggles"], without["probe"]["toggles"]
    return Saving(*(value // count for value in (macs, sign, zero, *toggles)))


def measure(case: Case, folder: Path) -> tuple[list[Point], Saving, Path]:
    """All runs of a case."""
    trace = folder / f"{case.config.name}.trace"
    runs = []
    for wait in WAITS:
        runs.append(RequestedRun(case.network, case.images[:SINGLE], continuous=False, wait=wait))
        runs.append(RequestedRun(case.network, case.images, wait=wait))
    runs.append(RequestedRun(case.network, case.images[:3], trace=str(trace)))
    events = simulate(case, runs)
    points = [point(w, events[2 * i], events[2 * i + 1]) for i, w in enumerate(WAITS)]
    (plain,) = simulate(case, [RequestedRun(case.network, case.images)], gate=0)
    return points, saving(case, events[1], plain), trace


def table(case: Case, points: list[Point], save: Saving) -> list[str]:
    """Markdown of a case."""
    roof = network_cycles(case.config, case.network.layers, eight_bit=case.network.eight_bit)
    lines = [
        f"## {case.name}: {save.macs / 1e6:.2f} MMAC on `{case.config.name}`"
        f" ({case.config.macs} MACs)",
        "",
        f"Roofline of a discontinuous inference: {roof} cycles.",
        "",
        "| wait states | discontinuous | continuous | on chip | bus | continuous / bound |"
        " transfers hidden, discontinuous | continuous |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p in points:
        lines.append(
            f"| {p.wait} | {p.single:.0f} | {p.stream:.0f} | {p.on_chip} | {p.bus:.0f} |"
            f" {p.stream / p.bound:.3f} | {p.hidden_single:.1%} | {p.hidden:.1%} |"
        )
    lines += [
        "",
        f"An inference needs {save.macs} multiplications. The gate skips"
        f" {save.by_sign / save.macs:.1%} for a negative pixel and {save.by_zero / save.macs:.1%}",
        f"for a zero. Toggles of operand bits: {save.toggles}, without the gate"
        f" {save.toggles_ungated} ({1 - save.toggles / save.toggles_ungated:.1%} fewer).",
        "",
    ]
    return lines


HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- written by make bench-continuous: do not edit -->

# Continuous inference, measured

Cycles per inference of the RTL under Verilator, on real scans; every result is compared with the
golden model. Wait states apply to the first beat of every burst and to every write beat.

- *discontinuous*: the host starts each image when the previous one is done.
- *continuous*: steady state of a stream, without the first two and the last inference.
- *on chip*: cycles of an inference minus its waits for the bus; the smaller figure of the
  discontinuous and the continuous inference.
- *bus*: cycles with a transfer on the bus, per inference of the steady state.
- *bound*: the larger of *on chip* and *bus*. Target: continuous at most 1.03 times the bound at 0
  wait states.
- *transfers hidden*: share of the bus cycles during which the array did not wait.

The weights of the digits network fit the weight buffer and stay there during a stream. The weights
of the large network do not fit and are read for every inference.

![cycles per inference](images/continuous.png)

"""

TIMELINE = """## Time line

Activity of each unit during the first three inferences of the digits stream on `small` (darker:
more cycles of an interval). The first inference reads list, weights and biases while it computes;
the pixels of the second arrive once the first has reached its fully connected layers. The second
inference reads no weights, only its list and its activation tables.

![time line](images/timeline.png)
"""


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write page and pictures."""
    registry.parse_command("bench-continuous", argv)
    try:
        simrun.check_tool("verilator")
    except simrun.ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    good, lines, curves = True, [], {}
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="openkpu_bench_") as tmp:
        for number, case in enumerate(cases()):
            points, save, trace = measure(case, Path(tmp))
            curves[f"{case.name} on {case.config.name}"] = points
            lines += table(case, points, save)
            good &= points[0].stream <= TOLERANCE * points[0].bound
            if number == 0:
                bench_plots.timeline(Trace.load(trace), PICTURES / "timeline.png")
    bench_plots.plot_cycles(curves, PICTURES / "continuous.png")
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" + TIMELINE)
    print("\n".join(lines))
    print(f"wrote {PAGE.relative_to(simrun.ROOT)} and its pictures")
    print("PASS" if good else f"FAIL: more than {TOLERANCE} times the bound")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run_command(main))
