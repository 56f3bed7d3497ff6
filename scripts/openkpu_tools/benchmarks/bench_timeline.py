# SPDX-License-Identifier: Apache-2.0
"""Picture of a whole model on its time line, from the report of `openkpu predict`.

Each layer is as wide as its cycles and divided by their causes, in percent: its area is its cycles.
Below it are the maps that the device loads and stores, for as long as they occupy the bus.
"""

import itertools
from pathlib import Path
from typing import Any

from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.prediction.cycles import BOUNDS
from openkpu_tools.benchmarks.bench_tables import SHAPE
from openkpu_tools.commands.stalls import COLOURS, WORK

# share of the time line from which on a layer has room for its name; ... upright
NAMED, UPRIGHT = 0.028, 0.009
LIGHT = "#a9bcdc"  # of the array's colour
LOADS, STORES = "loads", "stores"
MAPS = {LOADS: "map in", STORES: "map out"}


def stall_causes(report: dict[str, Any]) -> dict[str, list[float]]:
    """Percent of the cycles of each layer by cause, as in the table of targets."""
    most = configs.load_config(report["config"]).macs
    found: dict[str, list[float]] = {cause: [] for cause in (WORK, SHAPE, *BOUNDS[1:])}
    for layer in report["layers"]:
        parts, whole = layer["parts"], layer["cycles"]
        work = min(parts[WORK], layer["macs"] / most)
        cycles = {**parts, WORK: work, SHAPE: parts[WORK] - work}
        for cause, shares in found.items():
            shares.append(100 * cycles[cause] / whole)
    return found


def map_moves(report: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """(first cycle, cycles) of the bus for each map: a load from the start of its layer on, a store
    up to the end."""
    found: dict[str, list[tuple[int, int]]] = {LOADS: [], STORES: []}
    end = 0
    for layer in report["layers"]:
        begin, end = end, end + layer["cycles"]
        for way, size in layer["map_bytes"].items():
            cycles = ceil_div(8 * size, report["ahb_width"])
            if cycles:
                found[way].append((begin if way == LOADS else end - cycles, cycles))
    return found


def draw_timeline(report: dict[str, Any], title: str, path: Path) -> None:
    """The picture, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    layers = report["layers"]
    widths = [layer["cycles"] for layer in layers]
    ends = list(itertools.accumulate(widths))
    starts = [0, *ends[:-1]]
    figure, (axis, bus) = pyplot.subplots(
        2, sharex=True, figsize=(11, 3.6), height_ratios=(5, 1), layout="constrained"
    )
    base = [0.0] * len(layers)
    colours = {**COLOURS, SHAPE: LIGHT}
    for cause, heights in stall_causes(report).items():
        looks = {"color": colours[cause], "label": cause, "edgecolor": "white", "linewidth": 0.4}
        axis.bar(starts, heights, widths, base, align="edge", **looks)
        base = [below + height for below, height in zip(base, heights, strict=True)]
    for layer, begin in zip(layers, starts, strict=True):
        share, place = layer["cycles"] / ends[-1], begin + layer["cycles"] / 2
        looks = {"color": "white", "ha": "center", "va": "center", "fontsize": 7}
        if share >= NAMED:
            axis.text(place, 20, f"{layer['name']}\n{layer['kind']}", **looks)
        elif share >= UPRIGHT:
            looks |= {"rotation": 90, "fontsize": 6}
            axis.text(place, 20, f"{layer['name']} {layer['kind']}", **looks)
    for last in list(itertools.accumulate(report["runs"]))[:-1]:  # the host continues
        axis.axvline(ends[last - 1], color="black", linewidth=0.7)
    for row, (way, spans) in enumerate(map_moves(report).items()):
        bus.broken_barh(spans, (row - 0.35, 0.7), color=COLOURS["bus"])
        bus.text(0, row, f"{MAPS[way]} ", ha="right", va="center", fontsize=8)
    axis.set(xlim=(0, ends[-1]), ylim=(0, 100), ylabel="% of a layer's cycles", title=title)
    axis.legend(ncols=len(colours), fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    axis.title.set(fontsize=9, ha="left", position=(0, 1))
    bus.set(ylim=(1.6, -0.6), yticks=[], xlabel="cycles")
    bus.xaxis.set_major_formatter("{x:,.0f}")
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)
