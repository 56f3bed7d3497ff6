# SPDX-License-Identifier: Apache-2.0
"""What was to be reached, and what was: the targets of `make bench` (docs/performance.md 5).

A target is a number of cycles at most, or a share of the roofline at least, of one figure of one
run. Where it is missed, the table says what the cycles of that figure went to, by the device's own
counters, and for a whole model the fewest cycles that it can take (prediction/bound.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

Figures = dict[str, list[Any]]  # what: [cycles, roofline, percent of the cycles by cause]
Found = Mapping[str, Figures]  # by the name of a run

END_TO_END = "end to end"
LAYERS = "layers"
# figures of a prediction: what array and bus need as a model is run; ... one layer at a time
LEAST = "least"
IN_TURN = "one layer at a time"
BOUNDS = (LEAST, IN_TURN)
COLUMNS = ["work", "run", "target", "reached", "met", "cycles go to", *BOUNDS]
HEAD = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
WORTH = 1.0  # percent of a cause that is worth its place


@dataclasses.dataclass(frozen=True)
class Goal:
    """``cycles`` at most, or ``share`` percent of the roofline at least."""

    work: str
    group: str
    source: str
    config: str
    bus: int  # bits
    figure: str
    cycles: int | None = None
    share: float | None = None

    @property
    def run(self) -> str:
        """Name of the run in the record."""
        return f"{self.group}: {self.source}, {self.config}, {self.bus} bits"

    @property
    def target(self) -> str:
        """In words."""
        return f"<= {self.cycles:,}" if self.cycles is not None else f">= {self.share:g} %"

    def reached(self, figure: list[Any]) -> tuple[bool, str]:
        """Whether the figure meets the target; in words."""
        cycles, least = figure[:2]
        share = 100 * least / cycles
        if self.cycles is not None:
            return cycles <= self.cycles, f"{cycles:,}"
        return share >= self.share, f"{share:.1f} %"

    def least(self, found: Found) -> list[str]:
        """Its two bounds in words, of a whole model as the host runs it; others: empty.

        Behind cycles the share of the roofline that they would be, where the target is one.
        """
        source, _, way = self.source.partition(", ")
        if self.figure != END_TO_END or way not in ("", "burst"):
            return ["", ""]
        run = found.get(f"predicted: {source}, {self.config}, {self.bus} bits", {})
        roofline = found[self.run][self.figure][1]
        return [self._bound(run[name][0], roofline) if name in run else "" for name in BOUNDS]

    def _bound(self, cycles: int, roofline: int) -> str:
        """A bound in words."""
        return f"{cycles:,}" + (f", {100 * roofline / cycles:.1f} %" if self.share else "")

    def row(self, figure: list[Any], least: Sequence[str] = ("", "")) -> str:
        """A line of the table; ``least``: the bounds in words."""
        met, reached = self.reached(figure)
        where = f"`{self.config}`, {self.bus} bits"
        spent = figure[2] if len(figure) > 2 else {}
        causes = ", ".join(f"{name} {part:.1f} %" for name, part in spent.items() if part >= WORTH)
        cells = ["yes", "", "", ""] if met else ["no", causes, *least]
        return f"| {' | '.join([self.work, where, self.target, reached, *cells])} |"


def _layers() -> list[Goal]:
    """Single layers: efficiency of 64 -> 64 channels at 64x64, and a row of the K210."""
    shares = {
        "nano": (100.0, 88.8, 99.8),
        "small": (99.9, 88.7, 99.1),
        "k210": (99.1, 87.5, 94.4),
        "large": (98.2, 85.2, 85.0),
    }
    names = ("conv3x3_64_64_64x64", "conv1x1_64_64_64x64", "depthwise_64_64x64")
    buses = {"k210": 64, "large": 64}
    goals = [
        # 1.5 % more cycles than before its area was cut, at most
        Goal(
            name,
            "targets",
            "targets",
            config,
            buses.get(config, 32),
            name,
            share=round(was / (1 if name == names[2] and config == "large" else 1.015), 1),
        )
        for config, row in shares.items()
        for name, was in zip(names, row, strict=True)
    ]
    goals.append(
        Goal("K210 row 16x16", "k210_rows", "k210_rows", "k210", 64, "k210_16x16", cycles=71_000)
    )
    return goals


def _tasks() -> list[Goal]:
    """Work beyond convolution."""
    size = "512x512x512"
    goals = [
        Goal("add of 64x56x56 maps", "tasks", "elementwise", "k210", 64, "add_64_56x56", 8_000),
        *(
            Goal(f"product of {size}", "tasks", "product", "k210", bus, f"product_{size}", share=95)
            for bus in (32, 64, 128)
        ),
        Goal(
            f"product of {size} of float16",
            "tasks",
            "product_fp16",
            "k210_fp16",
            64,
            f"product_fp16_{size}",
            share=90,
        ),
    ]
    for name in ("max2x2_s2_32_64x64", "average4x4_s4_32_64x64"):
        goals.append(Goal(name, "tasks", "pools", "k210", 64, name, share=90))
    return goals


def _models() -> list[Goal]:
    """Whole models, end to end."""

    def model(
        name: str, config: str, bus: int, cycles: int | None = None, share: float | None = None
    ) -> Goal:
        short = name.removesuffix(".kmodel").removesuffix(".model.bin")
        return Goal(short, "models", f"{name}, burst", config, bus, END_TO_END, cycles, share)

    def network(
        name: str, config: str, bus: int, cycles: int | None = None, share: float | None = None
    ) -> Goal:
        return Goal(name, "networks", name, config, bus, END_TO_END, cycles, share)

    yolox, face = "yolox_nano_224_v5.kmodel", "face_detect_v3_8bit.kmodel"
    goals = [
        network("yolo20", "k210", 64, cycles=350_000),
        Goal("yolo20 in a stream", "streams", "yolo20", "k210", 64, LAYERS, cycles=320_000),
        model(yolox, "k210", 64, cycles=650_000),
        model(yolox, "k210", 64, share=80),
        model(face, "k210", 64, cycles=385_000),
    ]
    # 100 million multiplications and more
    for config, bus, share in (("small", 32, 90), ("k210", 64, 88)):
        for name in ("yolo20", "mobilenet075"):
            goals.append(network(name, config, bus, share=share))
        goals.append(model(face, config, bus, share=share))
    # 10 to 100 million, maps of 16 columns and narrower
    goals.append(model("detect5_v3.kmodel", "k210", 64, share=80))
    goals.append(model("mobilenet025_v4.kmodel", "k210", 64, share=80))
    # quantised models of MLPerf Tiny, as one task list
    for name, cycles in (
        ("pretrainedResnet_quant", 28_500),
        ("kws_ref_model", 15_000),
        ("vww_96_int8", 38_500),
        ("ad01_int8", 36_300),
    ):
        file = f"{name}.tflite"
        goals.append(Goal(name, "quantised", file, "k210", 64, END_TO_END, cycles=cycles))
    return goals


GOALS = (*_layers(), *_tasks(), *_models())


def goals_table(found: Found) -> list[str]:
    """A row for each target whose figure was measured."""
    rows = [
        goal.row(found[goal.run][goal.figure], goal.least(found))
        for goal in GOALS
        if goal.figure in found.get(goal.run, {})
    ]
    return [*HEAD, *rows]
