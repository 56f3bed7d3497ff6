# SPDX-License-Identifier: Apache-2.0
"""Pictures of the continuous benchmark."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import matplotlib
import numpy as np

from openkpu_tb.device.trace import UNITS, Trace

matplotlib.use("Agg")
from matplotlib import pyplot

BINS = 400


class Figures(Protocol):
    """A latency's figures."""

    wait: int
    single: float
    stream: float

    @property
    def bound(self) -> float: ...


def plot_cycles(curves: Mapping[str, Sequence[Figures]], path: Path) -> None:
    """Cycles per inference over wait states, a panel for each network."""
    figure, axes = pyplot.subplots(1, len(curves), figsize=(5 * len(curves), 3.6))
    for axis, (name, points) in zip(np.atleast_1d(axes), curves.items(), strict=True):
        place = np.arange(len(points))
        kinds = (("discontinuous", "single"), ("continuous", "stream"), ("bound", "bound"))
        for offset, (label, field) in enumerate(kinds):
            heights = [getattr(p, field) for p in points]
            axis.bar(place + 0.27 * (offset - 1), heights, 0.25, label=label)
        axis.set_xticks(place, [str(p.wait) for p in points])
        axis.set_xlabel("wait states")
        axis.set_title(name)
    np.atleast_1d(axes)[0].set_ylabel("cycles per inference")
    np.atleast_1d(axes)[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    pyplot.close(figure)


def timeline(trace: Trace, path: Path) -> None:
    """Which unit is busy when; vertical lines where a layer and an inference ends."""
    begin = int(trace.at("start")[0])
    ends = trace.at("inf_done")
    stop = int(ends[2]) if len(ends) > 2 else len(trace)
    edges = np.linspace(begin, stop, BINS + 1).astype(int)
    rows = []
    for signal in UNITS.values():
        busy = getattr(trace, signal)
        if signal == "write":
            busy = busy & trace.beat
        rows.append([busy[a:b].mean() if b > a else 0 for a, b in itertools.pairwise(edges)])
    figure, axis = pyplot.subplots(figsize=(11, 3.4))
    extent = (0, stop - begin, len(UNITS) - 0.5, -0.5)
    shown = np.sqrt(np.array(rows))  # short accesses stay visible
    axis.imshow(shown, aspect="auto", cmap="Blues", extent=extent, interpolation="nearest")
    for cycle in trace.at("layer_done"):
        axis.axvline(cycle - begin, color="0.7", linewidth=0.6)
    for number, cycle in enumerate(ends):
        axis.axvline(cycle - begin, color="tab:red", linewidth=1.2)
        axis.text(cycle - begin, -0.7, f"end of {number}", color="tab:red", ha="right", fontsize=8)
    fc = np.diff(trace.fc_reached.astype(int), prepend=0)
    for cycle in np.nonzero(fc == 1)[0].tolist():
        axis.axvline(cycle - begin, color="tab:green", linewidth=1.0, linestyle="--")
    axis.set_xlim(0, stop - begin)
    axis.set_yticks(range(len(UNITS)), list(UNITS))
    axis.set_xlabel("cycles (grey: a layer ends, red: an inference ends, green: FC_layer)")
    figure.subplots_adjust(left=0.14, right=0.98, top=0.88, bottom=0.17)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(figure)
