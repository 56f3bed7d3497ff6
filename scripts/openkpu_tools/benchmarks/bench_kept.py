# SPDX-License-Identifier: Apache-2.0
"""What weights that stay in the AI RAM save, measured: `make bench-kept` writes docs/kept.md.

Two networks whose weights exceed the weight buffer, each as a stream without and with kept weights,
at two widths of the bus and two memory latencies, every result compared with the golden model; the
prediction beside it, and what the steady state is bounded by.

Exit status: 0 every result was exact and no stream became slower, else 1.
"""

import dataclasses
import sys

import numpy as np

from openkpu import configs, digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.digits.quantise import batch_norm, straight_line
from openkpu.layer.argument import LayerArg
from openkpu.network import kept
from openkpu.network.network import Network
from openkpu.prediction import keeping
from openkpu.prediction.roofline import needed_macs
from openkpu_tb import simrun
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import RequestedRun, StreamRequest
from openkpu_tools import command, registry, rtl

WAITS = (0, 16)
STREAM = 4  # images; the first two of a stream and the last one do not count
CHANNELS, SIZE, LAYERS = 128, 8, 6  # of the bus-bound network
STORAGE = 1 << 21  # bytes, enough for each: one build a bus
PAGE = simrun.ROOT / "docs" / "kept.md"


@dataclasses.dataclass
class Case:
    """A network on a configuration, with images; it has places for its weights."""

    name: str
    config: Config
    network: Network
    images: np.ndarray


@dataclasses.dataclass
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


def cases() -> list[Case]:
    """Both networks on k210, with its bus and with one of 32 bits; 16-bit weights once."""
    scans = digits.enlarge(digits.load_data()[1].pixels[:STREAM])
    noise = np.random.default_rng(2).integers(
        0, 256, (STREAM, CHANNELS, SIZE, SIZE), dtype=np.uint8
    )
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


def simulate(case: Case, runs: list[RequestedRun]) -> list[launch.Event]:
    """The runs in one process; an event each. SystemExit when anything differs or fails."""
    events: list[launch.Event] = []
    progress = rtl.Progress()

    def on_event(event: launch.Event) -> None:
        if event["event"] == "stream":
            events.append(event)
            run = runs[event["index"]]
            bad = event["failure"] or (
                f"{sum(event['wrong'])} bytes differ" if any(event["wrong"]) else "ok"
            )
            stays = "kept" if run.network.kept else "from the bus"
            bits = case.config.ahb_width
            progress.line(f"  {case.name}, {bits} bits, {run.wait} wait states, {stays}: {bad}")
            if bad != "ok":
                raise SystemExit(1)

    request = StreamRequest(runs, limit=4_000_000)
    launch.run_job("verilator", case.config, request, on_event, storage_bytes=STORAGE)
    if len(events) != len(runs):
        raise SystemExit("the simulation ended too early")
    return events


def measure(case: Case) -> list[Row]:
    """Both ways at every latency."""
    plain = dataclasses.replace(case.network, kept={})
    ways = (plain, case.network)
    runs = [RequestedRun(network, case.images, wait=wait) for wait in WAITS for network in ways]
    events, found = simulate(case, runs), []
    beats = [COUNTERS.index("bus_rd_beats"), COUNTERS.index("bus_wr_beats")]
    for number, wait in enumerate(WAITS):
        steady = [
            np.diff(np.array(event["ends"]), axis=0)[1:-1].mean(axis=0)
            for event in events[2 * number : 2 * number + 2]
        ]
        before, after = (int(s[COUNTERS.index("total")]) for s in steady)
        moved = [int(s[beats].sum()) for s in steady]
        found.append(Row(case, wait, before, after, (moved[0], moved[1])))
    return found


def bounds(case: Case, beats: int) -> dict[str, int]:
    """Least cycles of an inference with kept weights: of the array, of the loader, of the bus."""
    layers = case.network.layers
    array = sum(ceil_div(needed_macs(arg), case.config.macs) for arg in layers)
    nines = sum(ceil_div(arg.weight_count, 9) for arg in layers)
    pieces = sum(kept.size(case.network, i) for i in range(len(layers))) // 16
    return {"array": array, "weight loader": max(nines, pieces), "bus": beats}


def table(rows: list[Row]) -> list[str]:
    """Markdown."""
    lines = [
        "| network | bus | wait states | kept bytes | from the bus | kept | saved | predicted |"
        " bus beats | bound by |",
        "|---|---|---|---|---|---|---|---|---|---|",
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


HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- written by make bench-kept: do not edit -->

# Weights that stay, measured

Cycles of an inference in the steady state of a stream on `k210`, under Verilator, with the weights
kept in the AI RAM (docs/kpu.md 1.14) and without; every result is compared with the golden model.
Wait states apply to the first beat of every burst and to every write beat.

- *large digits*: the network of docs/continuous.md. It is bound by the array; its weights arrive
  while the array works.
- *bus-bound*: six 3x3 convolutions of 128 channels on maps of 8x8, then ten outputs. Each weight
  of such a layer is used in 64 multiplications, so the bus is the bound.
- *predicted*: the estimate on which `Network.place` decided, without wait states.
- *bound by*: the largest bound of an inference with kept weights, out of multiplications /
  multipliers, the weight loader (nine weights or 16 bytes a cycle) and transfers on the bus.

"""

TAIL = """
The weight loader accepts a word of nine weights a cycle. Where the bus is the bound, kept weights
of 8 bits are therefore 9 : 8 faster than a 64-bit bus, which brings eight bytes a cycle, and 9 : 4
faster than a 32-bit bus, up to the bound of the array. Weights of 16 bits are 2 : 1 faster,
because the AI RAM delivers 16 bytes a cycle. The gain grows with the wait states of the storage,
because the AI RAM has none.
"""


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write the page."""
    registry.parse_command("bench-kept", argv)
    try:
        simrun.check_tool("verilator")
    except simrun.ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = [row for case in cases() for row in measure(case)]
    lines = table(rows)
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" + TAIL)
    print("\n".join(lines))
    print(f"wrote {PAGE.relative_to(simrun.ROOT)}")
    good = all(row.after <= row.before for row in rows)
    print("PASS" if good else "FAIL: a stream became slower")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run_command(main))
