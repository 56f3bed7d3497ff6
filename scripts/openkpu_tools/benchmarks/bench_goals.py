# SPDX-License-Identifier: Apache-2.0
"""What was to be reached, and what was: the targets of `make bench` (docs/performance.md 5).

A target is a number of cycles at most, a share of the roofline at least, or a share of the lower
bound of array and bus at least, of one figure of one run. Where it is missed, the table has the
causes of the cycles, from the device's own counters, and for a whole model the lower bound of its
cycles (prediction/bound.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
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
    """``cycles`` at most, or at least ``share`` percent of the roofline, ``of_least`` of LEAST."""

    work: str
    group: str
    source: str
    config: str
    bus: int  # bits
    figure: str
    cycles: int | None = None
    share: float | None = None
    of_least: float | None = None

    @property
    def run(self) -> str:
        """Name of the run in the record."""
        return f"{self.group}: {self.source}, {self.config}, {self.bus} bits"

    @property
    def target(self) -> str:
        """In words."""
        if self.cycles is not None:
            return f"<= {self.cycles:,}"
        return f">= {self.share:g} %" if self.share else f">= {self.of_least:g} % of least"

    @property
    def predicted(self) -> str:
        """Name of the prediction in the record."""
        return f"predicted: {self.source.partition(', ')[0]}, {self.config}, {self.bus} bits"

    def known(self, found: Found) -> bool:
        """Whether all that the target is compared with was found."""
        bound = self.of_least is None or LEAST in found.get(self.predicted, {})
        return bound and self.figure in found.get(self.run, {})

    def reached(self, found: Found) -> tuple[bool, str]:
        """Whether the figure of the run meets the target; in words."""
        cycles, least = found[self.run][self.figure][:2]
        if self.cycles is not None:
            return cycles <= self.cycles, f"{cycles:,}"
        if self.of_least is not None:
            share = 100 * found[self.predicted][LEAST][0] / cycles
            return share >= self.of_least, f"{share:.1f} %"
        share = 100 * least / cycles
        return share >= self.share, f"{share:.1f} %"

    def least(self, found: Found) -> list[str]:
        """Its two bounds in words, of a whole model as the host runs it; others: empty.

        Behind cycles the share of the roofline that they would be, where the target is one.
        """
        if self.figure != END_TO_END or self.source.partition(", ")[2] not in ("", "burst"):
            return ["", ""]
        run = found.get(self.predicted, {})
        roofline = found[self.run][self.figure][1]
        return [self._bound(run[name][0], roofline) if name in run else "" for name in BOUNDS]

    def _bound(self, cycles: int, roofline: int) -> str:
        """A bound in words."""
        return f"{cycles:,}" + (f", {100 * roofline / cycles:.1f} %" if self.share else "")

    def row(self, found: Found) -> str:
        """A line of the table."""
        met, reached = self.reached(found)
        figure, least = found[self.run][self.figure], self.least(found)
        where = f"`{self.config}`, {self.bus} bits"
        spent = figure[2] if len(figure) > 2 else {}
        causes = ", ".join(f"{name} {part:.1f} %" for name, part in spent.items() if part >= WORTH)
        cells = ["yes", "", "", ""] if met else ["no", causes, *least]
        return f"| {' | '.join([self.work, where, self.target, reached, *cells])} |"


# Work (where it is not the source), run, configuration, bits of the bus, figure (end to end where
# there is none), cycles at most, percent of the roofline, or of the bound LEAST, at least. Single
# layers: 1.5 % more cycles than before their area was cut.
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
yolox_nano_224_v5 | models: yolox_nano_224_v5.kmodel, burst | k210 64 | | <= 650000
face_detect_v3_8bit | models: face_detect_v3_8bit.kmodel, burst | k210 64 | | <= 385000
face_detect_v3_8bit | models: face_detect_v3_8bit.kmodel, burst | k210 64 | | >= 92
face_detect_v0_16bit | models: face_detect_v0_16bit.model.bin, burst | k210 64 | | >= 92
 | networks: yolo20 | k210 64 | | >= 92
 | networks: mobilenet075 | k210 64 | | >= 92
detect5_v3 | models: detect5_v3.kmodel, burst | k210 64 | | >= 84
yolox_nano_224_v5 | models: yolox_nano_224_v5.kmodel, burst | k210 64 | | >= 84
face_rfb320_v4 | models: face_rfb320_v4.kmodel, burst | k210 64 | | >= 95 of least
mnist_sipeed_v3 | models: mnist_sipeed_v3.kmodel, burst | k210 64 | | >= 95 of least
mobilenet025_v4 | models: mobilenet025_v4.kmodel, burst | k210 64 | | >= 95 of least
 | networks: digits | k210 64 | | >= 95 of least
pretrainedResnet_quant | quantised: pretrainedResnet_quant.tflite | k210 64 | | <= 27500
vww_96_int8 | quantised: vww_96_int8.tflite | k210 64 | | <= 36500
kws_ref_model | quantised: kws_ref_model.tflite | k210 64 | | <= 11500
ad01_int8 | quantised: ad01_int8.tflite | k210 64 | | <= 35800
digits in a stream | streams: digits | k210 64 | layers | >= 95
yolo20 in a stream | streams: yolo20 | k210 64 | layers | >= 95
mobilenet075 in a stream | streams: mobilenet075 | k210 64 | layers | >= 95
face_detect_v3_8bit in a stream | continuous: face_detect_v3_8bit.kmodel | k210 64 | layers | >= 95
face_detect_v0_16bit in a stream | continuous: face_detect_v0_16bit.model.bin | k210 64 | layers | >= 95
detect5_v3 in a stream | continuous: detect5_v3.kmodel | k210 64 | layers | >= 95
pretrainedResnet_quant in a stream | continuous: pretrainedResnet_quant.tflite | k210 64 | layers | >= 95
vww_96_int8 in a stream | continuous: vww_96_int8.tflite | k210 64 | layers | >= 95
kws_ref_model in a stream | continuous: kws_ref_model.tflite | k210 64 | layers | >= 95
ad01_int8 in a stream | continuous: ad01_int8.tflite | k210 64 | layers | >= 95
digits on small | networks: digits | small 32 | | >= 95 of least
yolo20 on small | networks: yolo20 | small 32 | | >= 95 of least
mobilenet075 on small | networks: mobilenet075 | small 32 | | >= 95 of least
face_detect_v3_8bit on small | models: face_detect_v3_8bit.kmodel, burst | small 32 | | >= 95 of least
face_detect_v0_16bit on small | models: face_detect_v0_16bit.model.bin, burst | small 32 | | >= 95 of least
detect5_v3 on small | models: detect5_v3.kmodel, burst | small 32 | | >= 95 of least
yolox_nano_224_v5 on small | models: yolox_nano_224_v5.kmodel, burst | small 32 | | >= 95 of least
face_rfb320_v4 on small | models: face_rfb320_v4.kmodel, burst | small 32 | | >= 95 of least
mnist_sipeed_v3 on small | models: mnist_sipeed_v3.kmodel, burst | small 32 | | >= 95 of least
mobilenet025_v4 on small | models: mobilenet025_v4.kmodel, burst | small 32 | | >= 95 of least
"""  # noqa: E501


def _goal(line: str) -> Goal:
    """A line of TABLE."""
    work, run, config, bus, figure, kind, number = (
        cell.strip() for cell in re.split(r"\||(?<=\w) (?=\d+ \|)|(?<==) ", line)
    )
    group, source = run.split(": ")
    number, _, of_least = number.partition(" ")
    figure = figure or END_TO_END
    goal = Goal(work or source, group, source, config, int(bus), figure)
    if kind == "<=":
        return dataclasses.replace(goal, cycles=int(number))
    if of_least:
        return dataclasses.replace(goal, of_least=float(number))
    return dataclasses.replace(goal, share=float(number))


GOALS = tuple(map(_goal, TABLE.split("\n")[1:-1]))


def goals_table(found: Found) -> list[str]:
    """A row for each target whose figure was measured."""
    rows = [goal.row(found) for goal in GOALS if goal.known(found)]
    return [*HEAD, *rows]
