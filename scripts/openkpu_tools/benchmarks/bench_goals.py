# SPDX-License-Identifier: Apache-2.0
"""What was to be reached, and what was: the targets of `make bench` (docs/performance.md 5).

A target is a number of cycles at most, or a share of the roofline at least, of one figure of one
run. Where it is missed, the table has the causes of the cycles, from the device's own counters, and
for a whole model the lower bound of its cycles (prediction/bound.py).
"""

from __future__ import annotations

import dataclasses
import re
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


# Work (where it is not the source), run, configuration, bits of the bus, figure (end to end where
# there is none), cycles at most or percent of the roofline at least. Single layers: 1.5 % more
# cycles than before their area was cut.
TABLE = """
conv3x3_64_64_64x64 | targets: targets | nano 32 | conv3x3_64_64_64x64 | >= 98.5
conv1x1_64_64_64x64 | targets: targets | nano 32 | conv1x1_64_64_64x64 | >= 87.5
depthwise_64_64x64 | targets: targets | nano 32 | depthwise_64_64x64 | >= 98.3
conv3x3_64_64_64x64 | targets: targets | small 32 | conv3x3_64_64_64x64 | >= 98.4
conv1x1_64_64_64x64 | targets: targets | small 32 | conv1x1_64_64_64x64 | >= 87.4
depthwise_64_64x64 | targets: targets | small 32 | depthwise_64_64x64 | >= 97.6
conv3x3_64_64_64x64 | targets: targets | k210 64 | conv3x3_64_64_64x64 | >= 97.6
conv1x1_64_64_64x64 | targets: targets | k210 64 | conv1x1_64_64_64x64 | >= 86.2
depthwise_64_64x64 | targets: targets | k210 64 | depthwise_64_64x64 | >= 93
conv3x3_64_64_64x64 | targets: targets | large 64 | conv3x3_64_64_64x64 | >= 96.7
conv1x1_64_64_64x64 | targets: targets | large 64 | conv1x1_64_64_64x64 | >= 83.9
depthwise_64_64x64 | targets: targets | large 64 | depthwise_64_64x64 | >= 85
K210 row 16x16 | k210_rows: k210_rows | k210 64 | k210_16x16 | <= 71000
add of 64x56x56 maps | tasks: elementwise | k210 64 | add_64_56x56 | <= 8000
product of 512x512x512 | tasks: product | k210 32 | product_512x512x512 | >= 95
product of 512x512x512 | tasks: product | k210 64 | product_512x512x512 | >= 95
product of 512x512x512 | tasks: product | k210 128 | product_512x512x512 | >= 95
product of 512x512x512 of float16 | tasks: product_fp16 | k210_fp16 64 | product_fp16_512x512x512 | >= 90
max2x2_s2_32_64x64 | tasks: pools | k210 64 | max2x2_s2_32_64x64 | >= 90
average4x4_s4_32_64x64 | tasks: pools | k210 64 | average4x4_s4_32_64x64 | >= 90
 | networks: yolo20 | k210 64 | | <= 350000
yolo20 in a stream | streams: yolo20 | k210 64 | layers | <= 320000
yolox_nano_224_v5 | models: yolox_nano_224_v5.kmodel, burst | k210 64 | | <= 650000
yolox_nano_224_v5 | models: yolox_nano_224_v5.kmodel, burst | k210 64 | | >= 80
face_detect_v3_8bit | models: face_detect_v3_8bit.kmodel, burst | k210 64 | | <= 385000
 | networks: yolo20 | small 32 | | >= 90
 | networks: mobilenet075 | small 32 | | >= 90
face_detect_v3_8bit | models: face_detect_v3_8bit.kmodel, burst | small 32 | | >= 90
 | networks: yolo20 | k210 64 | | >= 88
 | networks: mobilenet075 | k210 64 | | >= 88
face_detect_v3_8bit | models: face_detect_v3_8bit.kmodel, burst | k210 64 | | >= 88
detect5_v3 | models: detect5_v3.kmodel, burst | k210 64 | | >= 80
mobilenet025_v4 | models: mobilenet025_v4.kmodel, burst | k210 64 | | >= 80
pretrainedResnet_quant | quantised: pretrainedResnet_quant.tflite | k210 64 | | <= 28500
kws_ref_model | quantised: kws_ref_model.tflite | k210 64 | | <= 15000
vww_96_int8 | quantised: vww_96_int8.tflite | k210 64 | | <= 38500
ad01_int8 | quantised: ad01_int8.tflite | k210 64 | | <= 36300
"""  # noqa: E501


def _goal(line: str) -> Goal:
    """A line of TABLE."""
    work, run, config, bus, figure, kind, number = (
        cell.strip() for cell in re.split(r"\||(?<=\w) (?=\d+ \|)|(?<==) ", line)
    )
    group, source = run.split(": ")
    cycles, share = (int(number), None) if kind == "<=" else (None, float(number))
    figure = figure or END_TO_END
    return Goal(work or source, group, source, config, int(bus), figure, cycles, share)


GOALS = tuple(map(_goal, TABLE.split("\n")[1:-1]))


def goals_table(found: Found) -> list[str]:
    """A row for each target whose figure was measured."""
    rows = [
        goal.row(found[goal.run][goal.figure], goal.least(found))
        for goal in GOALS
        if goal.figure in found.get(goal.run, {})
    ]
    return [*HEAD, *rows]
