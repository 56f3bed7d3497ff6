# SPDX-License-Identifier: Apache-2.0
"""Draw where the cycles of each layer of a report went: `make stalls REPORT=report.json`.

A layer is one bar; of several images the cycles are summed, and a line shows how they differ.
The picture lies beside the report unless --png names another place. Exit status: 0, or 2 with one
line when the report cannot be used.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from openkpu import files
from openkpu_tools import command, registry
from openkpu_tools.command import UsageError
from openkpu_tools.report import STALLS

WORK = "array"  # cycles without a stall
COLOURS = {
    WORK: "#4c72b0",
    "weights": "#dd8452",
    "input": "#55a868",
    "output": "#c44e52",
    "bus": "#8172b3",
    "control": "#937860",
}
MOST = 1000  # bars of a picture


@dataclasses.dataclass
class Bar:
    """A layer: its cycles by cause, summed over the images, and those of each image."""

    name: str
    cycles: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(COLOURS, 0))
    each: list[int] = dataclasses.field(default_factory=list)

    @property
    def spread(self) -> tuple[int, int]:
        """What all images would take if each took as long as the fastest, the slowest one."""
        return len(self.each) * min(self.each), len(self.each) * max(self.each)

    @property
    def differs(self) -> float:
        """By how much the slowest image is slower than the fastest one, as a share of it."""
        return (max(self.each) - min(self.each)) / max(1, min(self.each))


def load_bars(path: Path) -> tuple[str, list[Bar]]:
    """(title, a bar for each layer); UsageError with one line."""
    try:
        content = json.loads(files.read_bytes(path, UsageError))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a JSON file: {files.said(error)}") from None
    bars: dict[str, Bar] = {}
    try:
        title = f"{content['config']} on {content['simulator']}"
        pictures = int(content.get("totals", {}).get("runs", 1)) > 1
        for layer in content["layers"]:
            if layer["cycles"] is None or layer["stalls"] is None:
                bars.clear()
                break
            name = layer_name(str(layer["name"]), pictures)
            bar = bars.setdefault(name, Bar(name))
            bar.each.append(int(layer["cycles"]))
            for cause, count in _causes(layer).items():
                bar.cycles[cause] += count
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UsageError(f"{path}: not the report of a run: {files.said(error)}") from None
    if not bars:
        raise UsageError(f"{path}: no cycles in it, expected a report of a run on the RTL")
    if len(bars) > MOST:
        raise UsageError(f"{path}: {len(bars)} layers, {MOST} at most can be drawn")
    return title, list(bars.values())


def layer_name(name: str, pictures: bool) -> str:
    """The name without the image: "image3/L02" of a network, "dog/L02" of a model that ran on
    several pictures; those of lists and of vectors stay."""
    return name.rpartition("/")[2] if pictures else re.sub(r"\bimage\d+/", "", name)


def _causes(layer: dict[str, Any]) -> dict[str, int]:
    """Cycles of a layer by cause; their sum is its cycles."""
    stalls = {cause: int(layer["stalls"][cause]) for cause in STALLS}
    return {WORK: max(0, int(layer["cycles"]) - sum(stalls.values())), **stalls}


def draw_stalls(title: str, bars: list[Bar], png: Path) -> None:
    """One stacked bar a layer, in PNG file ``png``; a line for the spread of several images."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    width = min(60.0, max(6.0, 1.5 + 0.28 * len(bars)))
    figure, axes = plt.subplots(figsize=(width, 5), layout="constrained")
    places, base = range(len(bars)), [0] * len(bars)
    for cause, colour in COLOURS.items():
        values = [bar.cycles[cause] for bar in bars]
        axes.bar(places, values, bottom=base, label=cause, color=colour)
        base = [below + value for below, value in zip(base, values, strict=True)]
    images = max(len(bar.each) for bar in bars)
    if images > 1:
        least, most = zip(*(bar.spread for bar in bars), strict=True)
        below = [total - value for total, value in zip(base, least, strict=True)]
        above = [value - total for total, value in zip(base, most, strict=True)]
        axes.errorbar(
            places, base, (below, above), fmt="none", ecolor="black", capsize=3, lw=1,
            label="if all were as the fastest, slowest image",
        )  # fmt: skip
    axes.set_xticks(places, [bar.name for bar in bars], rotation=90, fontsize=7)
    axes.set_ylabel("cycles" + (f", {images} images summed" if images > 1 else ""))
    axes.set_title(f"Where the cycles went: {title}")
    axes.legend(fontsize=8)
    with command.writing(png) as stream:
        figure.savefig(stream, dpi=110, format="png")
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("stalls", argv)
    report = Path(args.report)
    title, bars = load_bars(report)
    png = args.png or report.with_suffix(".png")
    command.check_output(png, ".png")
    command.check_outputs([png], [report])
    draw_stalls(title, bars, png)
    sums = {cause: sum(bar.cycles[cause] for bar in bars) for cause in COLOURS}
    total = sum(sums.values()) or 1
    print(", ".join(f"{cause} {100 * value / total:.1f} %" for cause, value in sums.items()))
    images = max(len(bar.each) for bar in bars)
    if images > 1:
        most = max(bars, key=lambda bar: bar.differs)
        print(
            f"{images} images summed; their cycles differ most in {most.name}:"
            f" {min(most.each)} .. {max(most.each)}"
        )
    print(f"picture: {png}")
    return 0
