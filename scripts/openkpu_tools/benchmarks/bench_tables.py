# SPDX-License-Identifier: Apache-2.0
"""Tables and pictures of `make bench` (bench.py), from the reports of its runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.generators import shapes
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network.network import Network
from openkpu_tools import marked
from openkpu_tools.benchmarks import bench_goals
from openkpu_tools.benchmarks.bench_goals import END_TO_END, LAYERS, Figures, Found
from openkpu_tools.commands.stalls import COLOURS, WORK
from openkpu_tools.flows import fpga, silicon_record
from openkpu_tools.flows.asic import flow as asic
from openkpu_tools.report import STALLS

PAGE = ROOT / "docs" / "benchmarks.md"
PRODUCT = "512x512x512"  # int8
SHAPE = "shape"  # of the array: lanes that have nothing to do
FP16_PRODUCT = f"{PRODUCT} of float16"
# width x height: cycles of the K210 at 300 MHz (published times, bbs.sipeed.com topic 691)
SILICON = {
    **{"4x4": 101_700, "16x4": 101_700, "16x16": 125_100, "32x16": 207_600, "32x32": 341_400},
    **{"64x32": 637_500, "64x64": 1_167_300, "128x64": 2_312_700},
}
# int8 models of MLPerf Tiny: file, task, inferences a second that others published: Syntiant's
# NDP9120 at 98 MHz and Plumerai on a Cortex-M4 (MLPerf Tiny, mlcommons.org)
QUANTISED = {
    "pretrainedResnet_quant.tflite": ("image classification, ResNet8", 195, 5.8),
    "kws_ref_model.tflite": ("keyword spotting, DS-CNN", 675, 14),
    "vww_96_int8.tflite": ("visual wake words, MobileNet 0.25", 244, 4.8),
    "ad01_int8.tflite": ("anomaly detection, autoencoder", None, 179),
}
# configuration whose clock is known: columns of its cycles and of its inferences a second
RATES = {"k210": (1, 3), "nano_fpga": (5, 6)}
SMALL = ("nano", "compact")
SMALL_GOALS = (90, 95)  # percent of the roofline, or of the bound LEAST
TARGETS = {
    "3x3": "conv3x3_64_64_64x64",
    "1x1": "conv1x1_64_64_64x64",
    "3x3 depthwise": "depthwise_64_64x64",
}


@dataclasses.dataclass(frozen=True)
class BenchRun:
    """A run of `openkpu sim`, or of another command, on Verilator."""

    group: str
    config: str
    bus: int  # bits
    words: list[str] = dataclasses.field(hash=False)
    source: str = ""  # what runs
    command: str = "sim"

    @property
    def name(self) -> str:
        """Of the run in the record."""
        return f"{self.group}: {self.source}, {self.config}, {self.bus} bits"


def network(name: str) -> Network:
    """A task list: layers of the shapes of ``openkpu vectors --set name``."""
    network = Network()
    for shape in shapes.SETS[name]:
        layer = shapes.benchmark(shape)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
    network.place()
    return network


def figures(report: dict[str, Any]) -> Figures:
    """Cycles, roofline, causes of each layer (of many: of all of them) and end to end."""
    found: Figures = {}
    if len(report["layers"]) <= len(SILICON):
        for layer in report["layers"]:
            name = layer["name"].partition("/")[0]
            found[name] = [layer["cycles"], layer["roofline_cycles"], causes(report, layer)]
    totals = report["totals"]
    # of a model multiplications and bytes are summed first
    least = totals.get("model_roofline_cycles", totals["roofline_cycles"])
    found[LAYERS] = [totals["cycles"], least, causes(report, totals)]
    end = totals.get("end_to_end") or {}
    if end.get("cycles"):
        found[END_TO_END] = [end["cycles"], end["roofline_cycles"], causes(report, totals)]
    return found


def causes(report: dict[str, Any], layer: dict[str, Any]) -> dict[str, float]:
    """Percent of the cycles of a layer, or of the sum of layers, that went to what.

    Cycles in which the array worked are split: the cycles that its multiplications need with every
    multiplier busy, and the cycles lost to its shape (docs/performance.md 4).
    """
    config = configs.load_config(report["config"])
    busy = _share(layer, WORK)
    work = min(busy, layer["macs"] / config.macs / layer["cycles"])
    shares = {WORK: work, SHAPE: busy - work} | {cause: _share(layer, cause) for cause in STALLS}
    return {cause: round(100 * share, 1) for cause, share in shares.items()}


def brief(report: dict[str, Any]) -> str:
    """A run in a few words."""
    found = figures(report)
    cycles, roofline = found.get(END_TO_END, found[LAYERS])[:2]
    return f"{cycles} cycles, {100 * roofline / cycles:.1f} %"


def _cells(figure: list[Any] | None) -> str:
    if figure is None:
        return "| | |"
    cycles, roofline = figure[:2]
    return f"| {cycles:,} | {100 * roofline / cycles:.1f} % |"


def _parts(name: str) -> tuple[str, str, str, str]:
    """Group, source, configuration and bus of the name of a run."""
    match = re.fullmatch(r"(\w+): (.*), (\w+), (\d+) bits", name)
    assert match, name
    return match[1], match[2], match[3], match[4]


def _run(found: Found, group: str, source: str, config: str, bus: int) -> Figures:
    return found.get(BenchRun(group, config, bus, [], source).name, {})


def rows(found: Found) -> list[str]:
    """K210 rows beside silicon, for both widths of the bus."""
    lines = [
        "| width x height | K210 silicon, cycles | 64-bit bus, cycles | efficiency "
        "| 32-bit bus, cycles | efficiency |",
        "|---|---|---|---|---|---|",
    ]
    for size, silicon in SILICON.items():
        cells = [
            _cells(_run(found, "k210_rows", "k210_rows", "k210", bus).get(f"k210_{size}"))
            for bus in (64, 32)
        ]
        lines.append(f"| {size} | {silicon:,} {cells[0].rstrip('| ')} {cells[1]}")
    return lines


def plain_configs() -> list[str]:
    """Configurations that hold every map of a K210, but the ones that only add lanes for float16,
    which do other work alike."""
    known = map(configs.load_config, configs.names())
    return [c.name for c in known if c.ai_ram_rows == AI_RAM_ROWS and not c.fp16_lanes]


def mapped() -> list[str]:
    """Configurations with the memories of an FPGA."""
    known = map(configs.load_config, configs.names())
    return [config.name for config in known if config.ai_ram_rows < AI_RAM_ROWS]


def targets(found: Found) -> list[str]:
    """Three layers on every configuration."""
    lines = [f"| | {' | '.join(TARGETS)} |", "|---" * (1 + len(TARGETS)) + "|"]
    for name in plain_configs():
        run = _run(found, "targets", "targets", name, configs.load_config(name).ahb_width)
        known = [run.get(key) for key in TARGETS.values()]
        shares = [f"{100 * at[1] / at[0]:.1f} %" if at else "" for at in known]
        lines.append(f"| `{name}` | {' | '.join(shares)} |")
    return lines


def others(found: Found) -> list[str]:
    """Work beyond convolution, the project's networks, published models: end to end."""
    lines = ["| work | configuration | bus | cycles | efficiency |", "|---|---|---|---|---|"]
    for name, run in found.items():
        group, source, config, bus = _parts(name)
        if source in (PRODUCT, FP16_PRODUCT):
            one = {f"product of {source}, {END_TO_END}": run[END_TO_END]}
        elif group == "tasks":
            one = {k: v for k, v in run.items() if k not in (LAYERS, END_TO_END)}
        elif group == "networks":
            one = {source: run[END_TO_END]}
        elif group == "streams":
            one = {f"{source}, an image of a stream": run[LAYERS]}
        else:
            continue
        for what, figure in one.items():
            lines.append(f"| {what} | `{config}` | {bus} {_cells(figure)}")
    return lines


def streams_table(found: Found) -> list[str]:
    """Models whose layers are one task list: an image of a stream, its weights and map included."""
    lines = ["| model | an image, cycles | efficiency |", "|---|---|---|"]
    for name, run in found.items():
        group, source, *_ = _parts(name)
        if group == "continuous":
            lines.append(f"| {source} {_cells(run[LAYERS])}")
    return lines


def models(found: Found) -> list[str]:
    """Published models: the sum of their layers, and end to end."""
    lines = [
        "| model, way | layers, cycles | efficiency | end to end, cycles | efficiency |",
        "|---|---|---|---|---|",
    ]
    for name, run in found.items():
        group, source, config, _ = _parts(name)
        if (group, config) == ("models", "k210"):
            both = (_cells(run[LAYERS]).rstrip("| "), _cells(run.get(END_TO_END)))
            lines.append(f"| {source} {' '.join(both)}")
    return lines


def clocks() -> dict[str, float]:
    """MHz of the configurations that the models of MLPerf Tiny are computed for."""
    placed, cells = (
        silicon_record.load_figures(fpga.BASELINE),
        silicon_record.load_figures(asic.BASELINE),
    )
    nano = placed["nano_fpga"]
    return {"nano_fpga": nano.get("mhz") or nano["mhz_placed"], "k210": cells["k210"]["mhz"]}


def quantised_table(found: Found) -> list[str]:
    """Models of MLPerf Tiny: cycles, and inferences a second at two clocks, beside others'."""
    lines = []
    for file, (task, *others) in QUANTISED.items():
        runs = {
            name: _run(found, "quantised", file, name, bus).get(END_TO_END)
            for name, bus in (("k210", 64), ("small", 32), ("nano_fpga", 32))
        }
        if not all(runs.values()):
            continue
        cycles = {name: figure[0] for name, figure in runs.items() if figure}
        there = ["" if n is None else f"{n:g}" for n in others]
        k210 = _cells(runs["k210"]).strip("| ")
        cells = [task, k210, "", f"{cycles['small']:,}", f"{cycles['nano_fpga']:,}", "", *there]
        lines.append(f"| {' | '.join(cells)} |")
    return rated(lines)


def rated(rows: Iterable[str]) -> list[str]:
    """The table of these rows, with the recorded clocks and the inferences a second at them."""
    mhz = clocks()
    lines = [
        f"| model | `k210`, cycles | efficiency | at {mhz['k210']} MHz | `small`, cycles"
        f" | `nano_fpga`, cycles | at {mhz['nano_fpga']} MHz | NDP9120 | Cortex-M4 |",
        "|---" * 9 + "|",
    ]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        for name, (cycles, rate) in RATES.items():
            cells[rate] = f"{1e6 * mhz[name] / int(cells[cycles].replace(',', '')):,.0f}"
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def quantised_page() -> list[str]:
    """The page's table of models of MLPerf Tiny: its measured cycles at the clocks of today."""
    return rated(marked.part(PAGE, "bench-quantised").splitlines()[2:])


def predicted(found: Found) -> list[str]:
    """Published models and the project's networks on every configuration, end to end."""
    lines = [
        f"| | {' | '.join(f'`{name}`' for name in plain_configs())} |",
        "|---" * (1 + len(plain_configs())) + "|",
    ]
    by_source: dict[str, dict[str, str]] = {}
    for name, run in found.items():
        group, source, config, _ = _parts(name)
        if group == "predicted":
            cycles, least = run[END_TO_END][:2]
            cell = f"{cycles:,} ({100 * least / cycles:.0f} %)"
            by_source.setdefault(source, {})[config] = cell
    for source, cells in by_source.items():
        lines.append(
            f"| {source} | {' | '.join(cells.get(name, '') for name in plain_configs())} |"
        )
    return lines


def small_arrays(found: Found) -> list[str]:
    """Models on the smallest arrays beside their target: of the roofline, of the bound."""
    lines = [f"| | {' | '.join(f'`{name}`' for name in SMALL)} |", "|---" * (1 + len(SMALL)) + "|"]
    by_source: dict[str, list[str]] = {}
    for name, run in found.items():
        group, source, config, _ = _parts(name)
        if group == "predicted" and config in SMALL:
            cycles, roofline = run[END_TO_END][:2]
            shares = 100 * roofline / cycles, 100 * run[bench_goals.LEAST][0] / cycles
            missed = all(share < goal for share, goal in zip(shares, SMALL_GOALS, strict=True))
            cell = f"{shares[0]:.1f} %, {shares[1]:.1f} % of least{': missed' * missed}"
            by_source.setdefault(source, []).append(cell)
    return lines + [f"| {source} | {' | '.join(cells)} |" for source, cells in by_source.items()]


TABLES = {
    "goals": bench_goals.goals_table,
    "rows": rows,
    "targets": targets,
    "others": others,
    "models": models,
    "streams": streams_table,
    "quantised": quantised_table,
    "predicted": predicted,
    "small": small_arrays,
}


def bench_page(found: Found) -> str:
    """All tables."""
    parts = [
        "# What was measured",
        "",
        "`make bench`, 0 wait states. Efficiency is of the roofline.",
    ]
    for name, table in TABLES.items():
        lines = table(found) if name != "rows" or any("k210_rows" in run for run in found) else []
        if len(lines) > 2:
            parts += ["", f"## {name}", "", *lines]
    return "\n".join(parts) + "\n"


def into_page(found: Found, path: Path = PAGE) -> None:
    """The tables for which something was measured, in docs/benchmarks.md."""
    for name, table in TABLES.items():
        lines = table(found)
        if len(lines) > 2:
            marked.fill(path, f"bench-{name}", "\n".join(lines))


def _share(totals: dict[str, Any], cause: str) -> float:
    """Of the cycles of all layers."""
    stalls = {name: totals["stalls"][name] for name in STALLS}
    cycles = totals["cycles"]
    return (cycles - sum(stalls.values()) if cause == WORK else stalls[cause]) / cycles


def draw_bench_plots(reports: Mapping[BenchRun, dict[str, Any]], folder: Path) -> None:
    """bench_roofline.png: layers by their bound; bench_stalls.png: cycles by cause and run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for config in configs.names():
        layers = [
            layer
            for run, report in reports.items()
            if run.config == config and run.bus == configs.load_config(config).ahb_width
            for layer in report["layers"]
            if layer["cycles"]
        ]
        needs = [layer["macs"] / layer["roofline_cycles"] for layer in layers]
        reached = [layer["macs"] / layer["cycles"] for layer in layers]
        if layers:
            axis.scatter(needs, reached, s=10, alpha=0.6, label=config)
    most = 9 * configs.MOST_LANES
    axis.plot([1, most], [1, most], color="grey", linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="MACs a cycle that the roofline allows")
    axis.set_ylabel("MACs a cycle reached")
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "bench_roofline.png", dpi=90, metadata={"Software": None})
    pyplot.close(figure)

    figure, axis = pyplot.subplots(figsize=(9, 1 + 0.22 * len(reports)))
    names = [run.name for run in reports]
    left = [0.0] * len(names)
    for cause in (WORK, *STALLS):
        shares = [_share(report["totals"], cause) for report in reports.values()]
        axis.barh(names, shares, left=left, label=cause, color=COLOURS[cause])
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axis.invert_yaxis()
    axis.set_xlabel("share of the cycles of layers")
    axis.legend(ncols=6, fontsize=7, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    axis.tick_params(labelsize=6)
    figure.tight_layout()
    figure.savefig(folder / "bench_stalls.png", dpi=90, metadata={"Software": None})
    pyplot.close(figure)
