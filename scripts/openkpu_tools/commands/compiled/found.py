# SPDX-License-Identifier: Apache-2.0
"""What a quantised detector finds in a picture: boxes in words, and drawn (docs/models.md 3)."""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu.compiler import data
from openkpu.compiler.data import Values
from openkpu.compiler.program import Program
from openkpu.kmodel.images import open_image
from openkpu.kmodel.results.results import (
    AnyDetector,
    Report,
    draw_boxes,
    hint,
    load_detector,
    report,
)
from openkpu_tools.command import writing


def detector_of(args: argparse.Namespace, program: Program) -> AnyDetector | None:
    """The side file's detector; KmodelError where it does not fit the outputs, before they are
    computed."""
    if not args.detector:
        return None
    detector = load_detector(args.detector)
    look(program, {t.name: np.full(t.shape, t.zero) for t in program.outputs}, detector)
    return detector


def look(program: Program, values: Values, detector: AnyDetector | None) -> Report:
    """What the outputs of an inference mean; maps (1, C, H, W), as detectors are described."""
    _, _, height, width = program.inputs[0].shape
    return report(output_numbers(program, values), width, height, detector, None)


def output_numbers(program: Program, values: Values) -> list[npt.NDArray]:
    """The outputs as real numbers."""
    return [data.real(t, values[t.name]) for t in program.outputs]


def boxes_of(
    args: argparse.Namespace, program: Program, values: Values, detector: AnyDetector | None
) -> list[str]:
    """Lines about the boxes in a picture, none of a model that is no detector; draws them."""
    found = look(program, values, detector)
    boxes = found.found if found.kind == "boxes" else []
    lines = list(found.notes)
    if found.kind == "boxes":
        lines += [str(box) for box in boxes] or ["nothing found"]
    elif text := hint([data.real(t, values[t.name]) for t in program.outputs]):
        lines.append(text)
    if args.png:
        with writing(args.png) as stream:
            draw_boxes(open_image(Path(args.image[0])), boxes).save(stream, "PNG")
        lines.append(f"picture: {args.png}")
    return lines
