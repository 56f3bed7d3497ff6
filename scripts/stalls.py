# SPDX-License-Identifier: Apache-2.0
"""Draw where the cycles of each layer of a report went: `make stalls REPORT=report.json`.

The picture lies beside the report unless --png names another place. Exit status: 0, or 2 with one
line when the report cannot be used.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openkpu.models import files
from openkpu.scripts import command
from openkpu.scripts.command import UsageError
from openkpu.scripts.report import STALLS

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


def load(path: Path) -> tuple[str, list[str], dict[str, list[int]]]:
    """(title, names of the layers, cycles of every layer by cause); UsageError with one line."""
    try:
        content = json.loads(files.read_bytes(path, UsageError))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a JSON file: {error}") from None
    try:
        title = f"{content['config']} on {content['simulator']}"
        layers = content["layers"]
        names = [str(layer["name"]) for layer in layers]
        unmeasured = any(la["cycles"] is None or la["stalls"] is None for la in layers)
        rows = [] if unmeasured else [_causes(layer) for layer in layers]
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: not a report that REPORT= wrote: {error!r}") from None
    if unmeasured or not layers:
        raise UsageError(f"{path}: no cycles in it, expected a report of a run on the RTL")
    if len(layers) > MOST:
        raise UsageError(f"{path}: {len(layers)} layers, {MOST} at most can be drawn")
    return title, names, {cause: [row[cause] for row in rows] for cause in COLOURS}


def _causes(layer: dict[str, Any]) -> dict[str, int]:
    """Cycles of a layer by cause; their sum is its cycles."""
    stalls = {cause: int(layer["stalls"][cause]) for cause in STALLS}
    return {WORK: max(0, int(layer["cycles"]) - sum(stalls.values())), **stalls}


def draw(title: str, names: list[str], cycles: dict[str, list[int]], png: Path) -> None:
    """One stacked bar a layer, in PNG file ``png``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    width = min(60.0, max(6.0, 1.5 + 0.28 * len(names)))
    figure, axes = plt.subplots(figsize=(width, 5), layout="constrained")
    base = [0] * len(names)
    for cause, values in cycles.items():
        axes.bar(range(len(names)), values, bottom=base, label=cause, color=COLOURS[cause])
        base = [below + value for below, value in zip(base, values, strict=True)]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_ylabel("cycles")
    axes.set_title(f"Where the cycles went: {title}")
    axes.legend(fontsize=8)
    figure.savefig(png, dpi=110, format="png")
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = command.Parser(prog="stalls", description=__doc__)
    parser.add_argument("report", type=Path, help="a JSON file that REPORT= wrote")
    parser.add_argument("--png", type=Path, help="default: the report's name with .png")
    args = parser.parse_args(argv)
    title, names, cycles = load(args.report)
    png = args.png or args.report.with_suffix(".png")
    command.check_output(png, ".png")
    draw(title, names, cycles, png)
    total = sum(map(sum, cycles.values())) or 1
    print(", ".join(f"{cause} {100 * sum(v) / total:.1f} %" for cause, v in cycles.items()))
    print(f"picture: {png}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
