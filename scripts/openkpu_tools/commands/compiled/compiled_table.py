# SPDX-License-Identifier: Apache-2.0
"""A compiled network as a table: where each node runs, its shape, multiplications and cycles."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from openkpu.compiler.program import DevicePart, NodeRow, Program
from openkpu.configs import Config
from openkpu.layer.layout import map_bytes
from openkpu.network.network import Network
from openkpu.prediction.cycles_model import predict_network
from openkpu.prediction.roofline import layer_cycles
from openkpu.terminal import printable


@dataclasses.dataclass
class Line:
    """The cost of a node."""

    row: NodeRow
    runs: str  # device, host, or "index" where only the index of a tensor changes
    layers: int
    weights: int  # bytes
    rows: int  # of the AI RAM, of its layers' outputs
    cycles: int  # predicted
    least: int  # roofline
    exact: str  # "exact", "within n steps", or the host's operation

    def record(self) -> dict[str, Any]:
        """For a report."""
        fields = {k: v for k, v in vars(self).items() if k != "row"}
        fields["efficiency"] = round(self.least / self.cycles, 4) if self.cycles else None
        return {**dataclasses.asdict(self.row), **fields}


def node_table(program: Program, config: Config) -> list[Line]:
    """A line for each node, in the graph's order."""
    cycles: dict[str, int] = defaultdict(int)
    least: dict[str, int] = defaultdict(int)
    layers: dict[str, int] = defaultdict(int)
    weights: dict[str, int] = defaultdict(int)
    rows: dict[str, int] = defaultdict(int)
    for part in program.device_parts:
        predicted = predict_network(config, part.network).layers
        for name, arg, one in zip(part.nodes, part.network.layers, predicted, strict=True):
            layers[name] += 1
            cycles[name] += one.cycles
            least[name] += layer_cycles(config, arg, eight_bit=part.network.eight_bit)
            weights[name] += arg.weight_count * arg.weight_size(part.network.eight_bit)
            rows[name] += arg.out_layout.rows
    found = []
    for row in program.rows:
        report = program.reports.get(row.name)
        runs = report.runs if report else "device"
        if runs == "device" and not layers[row.name]:
            runs = "index"
        exact = "exact"
        if report and report.steps:
            plural = "step" if report.steps == 1 else "steps"
            exact = f"within {report.steps} {plural}"
            if report.missed:
                exact += f" ({report.missed} of {report.edges} edges)"
        found.append(
            Line(
                row,
                runs,
                layers=layers[row.name],
                weights=weights[row.name],
                rows=rows[row.name],
                cycles=cycles[row.name],
                least=least[row.name],
                exact=exact,
            )
        )
    return found


def node_lines(program: Program, config: Config) -> Iterator[str]:
    """The table as text."""
    found = node_table(program, config)
    parts = program.device_parts
    hosts = sum(line.runs == "host" for line in found)
    total = sum(predict_network(config, p.network).cycles for p in parts)
    yield (
        f"{printable(program.graph.name)}: {len(found)} nodes, {program.layers} layers"
        f" in {len(parts)} task list{'s' * (len(parts) > 1)}, {hosts} nodes on the host"
    )
    if program.graph.batch > 1:
        yield f"its batch of {program.graph.batch} runs as one inference after another"
    yield ""
    yield f"{'runs':<7} {'layers':>6} {'shape':<16} {'MACs':>11} {'cycles':>9}  node"
    for line in found:
        shape = "x".join(map(str, line.row.shape))
        name = line.row.name if len(line.row.name) <= 40 else f"...{line.row.name[-37:]}"
        exact = "" if line.exact == "exact" else f"  {line.exact}"
        yield (
            f"{line.runs:<7} {line.layers:>6} {shape:<16} {line.row.macs:>11} {line.cycles:>9}"
            f"  {name} ({line.row.operator}){exact}"
        )
    moved = sum(map_bytes(p.shape) for part in parts for p in (*part.inputs, *part.outputs))
    for part in parts:
        size = 1 if part.network.eight_bit else 2
        moved += size * sum(given.size for given in part.weights)
    wide = sum(not part.network.eight_bit for part in parts)
    yield ""
    if wide:
        yield f"all weights have 16 bits in {wide} of {len(parts)} task lists"
    yield (
        f"predicted on {config.name}: {total} cycles end to end, {moved} bytes go in and come out"
    )
    yield from map(functools.partial(_bands, config), filter(_in_bands, parts))


def _in_bands(part: DevicePart) -> bool:
    return part.whole is not None


def _bands(config: Config, part: DevicePart) -> str:
    """What it costs that the maps of a list do not fit the AI RAM."""
    assert part.whole is not None
    more = {
        name: value(part.network) - value(part.whole)
        for name, value in (
            ("bytes", _storage_bytes),
            ("cycles", lambda network: predict_network(config, network).cycles),
        )
    }
    return (
        f"bands: {len(part.network.layers)} layers for {len(part.whole.layers)}, {more['bytes']}"
        f" bytes and {more['cycles']} cycles more than with 2 MiB of AI RAM"
    )


def _storage_bytes(network: Network) -> int:
    """Bytes of maps, weights and tables that the layers move from and to storage, the list's own
    input and result among them: in bands these are many maps."""
    found = map_bytes(network.layers[0].in_shape) + map_bytes(network.layers[-1].out_shape)
    for arg in network.layers:
        found += map_bytes(arg.in_shape) * arg.load_map + map_bytes(arg.out_shape) * arg.store_map
        found += arg.weight_count * arg.weight_size(network.eight_bit) + 8 * sum(arg.table_words)
    return found
