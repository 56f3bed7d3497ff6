# SPDX-License-Identifier: Apache-2.0
"""Detectors that are known without a description: which one a model seems to be, and what is
assumed of it.

A guess is made only where everything that can be seen fits: the outputs, the size of the picture,
the last layers.  It is never silent.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy.typing as npt

from openkpu.kmodel.operations.operations import ChannelwiseDequantize, Dequantize
from openkpu.kmodel.program import KpuLayer, Program
from openkpu.kmodel.readers.names import split_names
from openkpu.kmodel.results.anchors import FACE_GRIDS, decode_anchors
from openkpu.kmodel.results.boxes import Box
from openkpu.kmodel.results.ssd import FACE_PRIORS, decode_priors
from openkpu.kmodel.results.yolo import (
    COCO_CLASSES,
    Detector,
    decode_region,
    decode_yolox,
    is_yolox,
)
from openkpu.words import option

# the face detector of kendryte-standalone-demo, and the 20-class detector of darknet's tiny yolo
FACE_ANCHORS = (
    1.889,
    2.5245,
    2.9465,
    3.94056,
    3.99987,
    5.3658,
    5.155437,
    6.92275,
    6.718375,
    9.01025,
)
VOC_ANCHORS = (1.08, 1.19, 3.42, 4.41, 6.63, 11.38, 9.42, 5.11, 16.62, 10.52)
VOC_CLASSES = split_names(
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike "
    "person pottedplant sheep sofa train tvmonitor"
)
FACE = Detector(FACE_ANCHORS, ("face",))
VOC = Detector(VOC_ANCHORS, VOC_CLASSES)


@dataclasses.dataclass(frozen=True)
class Known:
    """A region detector as it was published."""

    what: str
    detector: Detector
    sizes: dict[tuple[int, int], tuple[tuple[int, int], ...]]  # (H, W) of the input: (h, w)


KNOWN = (
    Known("the 1-class face detector", FACE, {(240, 320): ((15, 20), (7, 10))}),
    Known(
        "the 20-class tiny yolo of VOC",
        VOC,
        {(240, 320): ((7, 10),), (224, 320): ((7, 10),), (416, 416): ((13, 13),)},
    ),
)


@dataclasses.dataclass(frozen=True)
class Guess:
    """What is assumed, and the boxes that it makes of the outputs."""

    what: str
    decode: Callable[[], list[Box]]

    def note(self) -> str:
        """The line that says so, and which option names a side file."""
        return f"{self.what} assumed; {option('detector', 'side.json')} gives yours"


def guess(
    outputs: Sequence[npt.NDArray], width: int, height: int, program: Program | None
) -> Guess | None:
    """The known detector that outputs, input and last layers fit, or None."""
    if not outputs:
        return None
    output = outputs[0]
    if FACE_PRIORS.fits(outputs, width, height):
        return Guess(
            "priors of the RFB and slim face detectors",
            functools.partial(decode_priors, outputs, FACE_PRIORS, width, height),
        )
    grid = FACE_GRIDS.get((height, width))
    if grid is not None and grid.pair(outputs, width, height) is not None:
        return Guess(
            f"anchors of MediaPipe's face detector of {width} x {height} pixels of -1 .. 1",
            functools.partial(decode_anchors, outputs, grid, width, height),
        )
    if len(outputs) == 1 and output.ndim == 3 and is_yolox(output, width, height):
        named = output.shape[-1] - 5 == len(COCO_CLASSES)
        return Guess(
            "a yolox of strides 8, 16 and 32" + (" with the classes of COCO" if named else ""),
            functools.partial(decode_yolox, output, width, height),
        )
    if len(outputs) == 1 and program is not None and ends_as_region(program, output.shape):
        for known in KNOWN:
            maps = known.sizes.get((height, width), ())
            if known.detector.channels == output.shape[-3] and output.shape[-2:] in maps:
                return Guess(
                    f"anchors of {known.what}",
                    functools.partial(decode_region, output, known.detector),
                )
    return None


def _ends(op: Dequantize | ChannelwiseDequantize) -> list[tuple[float, float]]:
    """What the bytes 0 and 255 become, for every channel that has numbers of its own."""
    if isinstance(op, Dequantize):
        return [((0 - op.zero) * op.scale + op.bias, (255 - op.zero) * op.scale + op.bias)]
    return [(b, 255 * s + b) for s, b in zip(op.scales, op.biases, strict=True)]


def ends_as_region(program: Program, shape: tuple[int, ...]) -> bool:
    """Whether the last layers are those of a region detector whose map has this shape.

    A 1x1 convolution without a pool makes it out of a map of the same size, and one dequantisation
    makes numbers of both signs of it.
    """
    layers = [i for i, op in enumerate(program.operations) if isinstance(op, KpuLayer)]
    if not layers:
        return False
    layer, behind = program.operations[layers[-1]], program.operations[layers[-1] + 1 :]
    assert isinstance(layer, KpuLayer)
    arg = layer.arg
    steps = [op for op in behind if isinstance(op, Dequantize | ChannelwiseDequantize)]
    others = [op for op in behind if op not in steps and op.name not in ("download", "copy")]
    if len(steps) != 1 or others or arg.kernel != 1 or arg.depthwise or arg.pool_type:
        return False
    ends = [end for channel in _ends(steps[0]) for end in channel]
    return (
        len(shape) >= 3
        and arg.out_shape == shape[-3:]
        and arg.in_shape[1:] == shape[-2:]
        and min(ends) < 0 < max(ends)
    )
