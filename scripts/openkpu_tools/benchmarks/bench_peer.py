# SPDX-License-Identifier: Apache-2.0
"""Cycles of layers on the device and on accelerators that NNgen generates for them.

`make bench-peer` (docs/benchmarks.md 6). NNgen is installed into an environment of its own beside
the builds. Both run on Verilator with a 32-bit bus and storage without wait states, from the start
to the last byte of the result in storage; the device's bytes are compared with the golden model,
NNgen's with ``reference``. ``--record`` writes bench_peer.json and the page's table. Exit status 1
when a run failed, a byte differs, or a figure is over 1 % more than its record; 2 when NNgen cannot
be installed.
"""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.generators import shapes
from openkpu.network.network import Network
from openkpu_tb import simrun, verilated
from openkpu_tools import marked, registry
from openkpu_tools.benchmarks import bench, bench_tables
from openkpu_tools.benchmarks.bench_goals import END_TO_END, Found
from openkpu_tools.benchmarks.bench_tables import BenchRun

RECORD = Path(__file__).with_name("bench_peer.json")
FOREIGN = ROOT / "scripts" / "openkpu_tools" / "foreign"
CHILD, BENCH = FOREIGN / "nngen_child.py", FOREIGN / "peer_bench.v"
SETUP = ROOT / "scripts" / "openkpu_tools" / "setup" / "setup_env.py"
GROUP = "peer"  # of pyproject.toml
STORAGE = "tb/openkpu_tb/axi/axi_storage.v"
CHANNELS, SIZE = 64, 16  # of input and output; rows and columns
WORDS = 1 << 16  # of the storage
SEED = 47
OURS, PEER = "openkpu", "nngen"
HEAD = ["layer", "", "multipliers", "cycles", "use"]
HEAD += ["NNgen's lanes", "multipliers", "cycles", "use", "ahead"]


class PeerError(RuntimeError):
    """A run of the peer that failed: one line."""


@dataclasses.dataclass(frozen=True)
class PeerRow:
    """A layer on a configuration and on a peer."""

    kernel: int
    config: str
    lanes: tuple[int, int, int, int]  # of the peer over inputs, outputs, columns, rows
    shift: int  # of NNgen's scaling; so that results spread over all values

    @property
    def layer(self) -> str:
        return f"{self.kernel}x{self.kernel}"

    @property
    def peer_multipliers(self) -> int:
        return self.kernel**2 * math.prod(self.lanes)

    @property
    def split(self) -> str:
        return "x".join(map(str, self.lanes))

    @property
    def name(self) -> str:
        """Of the row in the record."""
        return f"conv{self.layer}_{self.config}_{self.split}"

    @property
    def products(self) -> int:
        """Multiplications of the layer, those with the border's zeros included."""
        return CHANNELS**2 * self.kernel**2 * SIZE**2


# for each layer lanes over inputs and outputs, as in NNgen's examples, then the fastest split of
# those tried, with lanes over columns and rows
ROWS = (
    PeerRow(3, "nano", (2, 2, 1, 1), 17),
    PeerRow(3, "nano", (1, 1, 4, 1), 17),
    PeerRow(3, "small", (4, 4, 1, 1), 17),
    PeerRow(3, "small", (1, 1, 4, 4), 17),
    PeerRow(1, "nano", (4, 8, 1, 1), 15),
    PeerRow(1, "nano", (1, 4, 4, 2), 15),
)


@dataclasses.dataclass(frozen=True)
class PeerLayer:
    """Integers of NNgen's layer."""

    x: npt.NDArray[np.int8]  # (H, W, C)
    weights: npt.NDArray[np.int8]  # (O, K, K, C)
    bias: npt.NDArray[np.int32]  # (O,)
    scale: npt.NDArray[np.int8]  # (O,), positive
    shift: int


def peer_layer(row: PeerRow) -> PeerLayer:
    """The layer of a row with random integers, the same in each run."""
    rng = np.random.default_rng(SEED)
    weights = (CHANNELS, row.kernel, row.kernel, CHANNELS)
    return PeerLayer(
        rng.integers(-128, 128, (SIZE, SIZE, CHANNELS), dtype=np.int8),
        rng.integers(-128, 128, weights, dtype=np.int8),
        rng.integers(-(1 << 15), 1 << 15, CHANNELS, dtype=np.int32),
        rng.integers(1, 128, CHANNELS, dtype=np.int8),
        row.shift,
    )


def reference(layer: PeerLayer) -> npt.NDArray[np.int8]:
    """The bytes (H, W, O) that NNgen's layer must write, in integers of 64 bits.

    Sums with a border of zeros and the bias, times the scale, divided by 2^shift and rounded, a
    half away from zero; saturated at -127 and 127; ReLU. Of negative values the ReLU leaves 0, so
    that a half always goes up.
    """
    kernel, border = layer.weights.shape[1], layer.weights.shape[1] // 2
    height, width, _ = layer.x.shape
    x = np.pad(layer.x.astype(np.int64), ((border, border), (border, border), (0, 0)))
    sums = np.broadcast_to(layer.bias.astype(np.int64), (height, width, len(layer.bias))).copy()
    for row in range(kernel):
        for column in range(kernel):
            part = x[row : row + height, column : column + width]
            sums += part @ layer.weights[:, row, column].astype(np.int64).T
    scaled = sums * layer.scale + (1 << layer.shift - 1) >> layer.shift
    return np.clip(scaled, 0, 127).astype(np.int8)


# ---- the peer
def peer_python(place: Path) -> Path | None:
    """NNgen's interpreter, set up on demand in ``place``; None when that failed, which it says."""
    words = [sys.executable, "-P", str(SETUP), str(place), GROUP]
    return None if subprocess.run(words).returncode else place / "bin" / "python"


def generate(python: Path, rows: Sequence[PeerRow], folder: Path) -> str:
    """Let NNgen write the rows' Verilog into a folder; its versions. PeerError when it fails."""
    for row in rows:
        layer = dataclasses.asdict(peer_layer(row))
        np.savez(folder / f"{row.name}.npz", **layer, lanes=row.lanes)
    done = subprocess.run([python, CHILD, folder], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise PeerError(f"NNgen failed: {last}")
    return done.stdout.strip()


def memory(
    row: PeerRow, layer: PeerLayer, at: Mapping[str, int], params: npt.NDArray
) -> npt.NDArray:
    """Bytes of the storage before a run; where the result goes lies what it is not."""
    found = np.zeros(4 * WORDS, dtype=np.uint8)
    result = ~reference(layer).view(np.uint8).reshape(-1)
    for place, data in (("x", layer.x.view(np.uint8)), ("params", params), ("y", result)):
        found[at[place] : at[place] + data.size] = data.reshape(-1)
    return found


def run_peer(row: PeerRow, folder: Path) -> int:
    """Cycles of the row's generated accelerator; PeerError unless the whole storage is right."""
    at = json.loads((folder / f"{row.name}.json").read_text())
    if at["multipliers"] != row.peer_multipliers:
        more = f"expected {row.peer_multipliers}"
        raise PeerError(
            f"{row.name}: the generated array has {at['multipliers']} multipliers, {more}"
        )
    layer = peer_layer(row)
    before = memory(row, layer, at, np.load(folder / f"{row.name}.params.npy"))
    expected = reference(layer).view(np.uint8).reshape(-1)
    work = folder / row.name
    work.mkdir()
    (work / "memory.hex").write_text("".join(f"{word:08x}\n" for word in before.view("<u4")))
    limit = 20 * row.products // row.peer_multipliers
    params = {"DEPTH": WORDS, "RESULT": expected.size // 4, "START": at["start"], "LIMIT": limit}
    model = verilated.model("peer_bench", [BENCH, STORAGE, folder / f"{row.name}.v"], params)
    main = verilated.program(model, "peer_bench", [BENCH.with_suffix(".cpp")], "peer")
    done = subprocess.run([main], capture_output=True, text=True, cwd=work)
    words = done.stdout.split()
    if done.returncode or words[:1] != ["cycles"]:
        raise PeerError(f"{row.name}: the simulation failed: {(done.stderr or done.stdout)[-200:]}")
    lines = (work / "result.hex").read_text().splitlines()
    after = np.array([int(line, 16) for line in lines if line[:2] != "//"], "<u4").view(np.uint8)
    right = before.copy()
    right[at["y"] : at["y"] + expected.size] = expected
    if wrong := int((after != right).sum()):
        raise PeerError(f"{row.name}: {wrong} bytes of the storage differ from the reference")
    return int(words[1])


# ---- the device
def run_device(row: PeerRow, folder: Path) -> int:
    """Cycles of the layer on the device; PeerError unless every byte is the golden model's."""
    name = f"conv{row.layer}"
    shape = (name, CHANNELS, SIZE, SIZE, CHANNELS, row.kernel, False, 0, True)
    layer, network = shapes.benchmark(shape), Network()
    network.add(layer.arg, layer.weights, layer.bn, layer.act)
    network.place()
    path = folder / f"{name}.npz"
    network.save(path)
    report = bench.measure_run(
        BenchRun(GROUP, row.config, 32, ["--network", str(path)], name), folder
    )
    if report is None:
        raise PeerError(f"{row.name}: the device's run failed")
    return bench_tables.figures(report)[END_TO_END][0]


# ---- both
def peer_table(found: Found) -> list[str]:
    """A row for each layer that was measured on both sides."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for row in ROWS:
        if row.name not in found:
            continue
        cells = [f"{row.layer}, {CHANNELS} to {CHANNELS} at {SIZE}x{SIZE}", f"`{row.config}`"]
        sides = {OURS: configs.load_config(row.config).macs, PEER: row.peer_multipliers}
        cycles = {side: found[row.name][side][0] for side in sides}
        for side, multipliers in sides.items():
            cells += [row.split] if side == PEER else []
            use = 100 * row.products / (cycles[side] * multipliers)
            cells += [str(multipliers), f"{cycles[side]:,}", f"{use:.1f} %"]
        even = cycles[OURS] == cycles[PEER]
        ahead = f"`{row.config}`" if goal_met(found[row.name]) else "neither" if even else "NNgen"
        lines.append(f"| {' | '.join([*cells, ahead])} |")
    return lines


def recorded_cycles() -> dict[str, Any]:
    """The record."""
    return json.loads(RECORD.read_text()) if RECORD.is_file() else {}


def recorded_table() -> list[str]:
    """The page's table."""
    return peer_table(recorded_cycles())


def goal_met(figures: Mapping[str, Sequence[int]]) -> bool:
    """The device needs fewer cycles than NNgen's accelerator."""
    return figures[OURS][0] < figures[PEER][0]


def verdict(found: Found) -> str:
    """Whether the goal is met in every row; one that was not measured misses it."""
    missed = [row.name for row in ROWS if row.name not in found or not goal_met(found[row.name])]
    return f"goal, fewer cycles than NNgen: {'missed by ' + ', '.join(missed) if missed else 'met'}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("bench-peer", argv)
    simrun.check_tool("verilator")
    python = peer_python(simrun.builds() / GROUP)
    if python is None:
        return 2
    found: dict[str, dict[str, list[int]]] = {}
    failed = []
    with tempfile.TemporaryDirectory(prefix="openkpu_peer_") as temporary:
        folder = Path(temporary)
        try:
            print(f"generated by {generate(python, ROWS, folder)}", flush=True)
        except PeerError as error:
            print(error)
            return 1
        for row in ROWS:
            try:
                figures = {OURS: [run_device(row, folder)], PEER: [run_peer(row, folder)]}
            except (PeerError, simrun.SimError) as error:
                print(f"failed: {error}", flush=True)
                failed.append(row.name)
                continue
            found[row.name] = figures
            print(f"{row.name}: {figures[OURS][0]:,} and {figures[PEER][0]:,} cycles", flush=True)
    print("\n".join(["", *peer_table(found), "", verdict(found)]))
    if args.record and not failed:
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
        marked.fill(bench_tables.PAGE, "bench-peer", "\n".join(recorded_table()))
    lines = bench.worse(found, recorded_cycles())
    for line in lines:
        print(f"worse: {line}")
    return int(bool(failed or lines))
