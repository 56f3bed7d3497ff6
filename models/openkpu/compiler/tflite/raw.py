# SPDX-License-Identifier: Apache-2.0
"""The parts of a TFLite file: tensors and operators as they lie there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import ends_before
from openkpu.words import option

CONTROL = ("IF", "WHILE", "CALL")
LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
TRANSPOSED_BIAS = "CUSTOM Convolution2DTransposeBias"  # MediaPipe's
VARIABLE = "a variable, expected a tensor without a state"  # a tensor's fault
STATE = ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")


@dataclasses.dataclass
class RawTensor:
    """A tensor as it lies in the file, in the model's order of axes."""

    name: str
    dtype: str  # lower case: "int8", "float32", "int4"
    shape: tuple[int, ...]
    dynamic: bool  # another size than the first one is open
    scale: npt.NDArray[np.float64]  # (n,), n = 0: none
    zero: npt.NDArray[np.int64]  # (n,)
    axis: int  # of the scales
    data: npt.NDArray | None  # of a constant
    fault: str = ""  # why nothing can be done with it
    open: tuple[int, ...] = ()  # its shape with -1 for each size that the file leaves open, if any

    @property
    def values(self) -> npt.NDArray:
        """The data of a tensor that is known to be a constant."""
        assert self.data is not None, f"tensor {self.name!r} is no constant"
        return self.data


@dataclasses.dataclass(frozen=True)
class Spread:
    """Pixels from tap to tap, and padding, of a convolution that was computed in a batch."""

    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right


@dataclasses.dataclass(frozen=True)
class Normal:
    """Numbers of a normalisation over the last axis, or over pixels and the channels of a group,
    where the last axes are groups and channels."""

    gain: npt.NDArray[np.float32]  # (C,)
    offset: npt.NDArray[np.float32]  # (C,)
    epsilon: float
    groups: int = 0  # none: over the last axis


@dataclasses.dataclass
class RawOperator:
    """An operator: tensor numbers, -1 for one that is left out."""

    name: str
    operator: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: Any  # the options' reader of the package, or None
    spread: Spread | None = None  # of a convolution: what counts instead of its options
    # of a function of its one input: its 256 results, of the lowest byte first, and what it is
    table: npt.NDArray | None = None
    words: str = ""
    normal: Normal | None = None  # of a layer normalisation


@dataclasses.dataclass
class RawModel:
    """The main graph of the file."""

    tensors: list[RawTensor]
    operators: list[RawOperator]
    inputs: list[int]
    outputs: list[int]
    batch: int = 1  # of the file's inputs and results; theirs here is 1
    graphs: Sequence[RawModel] = ()  # all of the file, where this one has a loop


def unknown_operator(model: RawModel, op: RawOperator) -> str:
    """Why no reader has an operator, and how the network ends in front of it."""
    what = "control flow" if op.operator in CONTROL else "no such operator here"
    if op.operator == "WHILE":
        what = "a loop whose steps are not known before it runs, expected a counter of integers"
    if op.operator in STATE:
        what = "state that is kept from inference to inference, expected a model without"
    if op.operator == LSTM:
        what = f"quantised, expected the float model with {option('calibration', 'samples')}"
    what = f"{what}; docs/compiler.md has the table of operators"
    if op.operator.startswith("CUSTOM"):
        what = "a custom operator, expected one of TFLite's own"
    made = {n for each in model.operators for n in each.outputs}
    read = [model.tensors[n] for n in op.inputs if n in made]
    return ends_before(what, (t.name for t in read if t.dtype != "bool"))
