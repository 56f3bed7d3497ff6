# SPDX-License-Identifier: Apache-2.0
"""From a float model and samples of its inputs to a quantised one (docs/compiler.md)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from openkpu.compiler.calibration import faithful, prepare, quantise, samples, weighted
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import file, translate
from openkpu.compiler.tflite.file import is_tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.words import option

# how errors begin whose cause may be that a batch became one inference
SIZES = ("ONNX Runtime cannot run it", "a result of shape")
# what ONNX Runtime's quantiser appends to the names of tensors and nodes
PAIRS = re.compile(r"_(Quantize|Dequantize)Linear(_Output|_Input)?\b")


def needed() -> str:
    """What is said of a float model without samples."""
    return (
        "a float model: compile, sim, predict, stream and quantise need samples of its inputs,"
        f" {option('calibration', 'folder of pictures, x.npy or x.npz')}"
    )


def quantised() -> str:
    """What is said of samples for a model that needs none."""
    return f"{option('calibration')} is of a float model, this one is quantised already"


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A quantised model, and what it was made of."""

    name: str
    data: bytes  # an ONNX file in the QDQ form
    graph: Graph
    ranged: quantise.Ranged  # the float network, prepared
    taken: samples.Taken
    samples: list[Values]
    request: samples.Request
    wide: tuple[str, ...] = ()  # nodes of the network whose weights have 16 bits
    chosen: str = ""  # what a budget of cycles bought, in words

    @property
    def summary(self) -> str:
        """How it was quantised, in a line; what of a folder was passed over, in another."""
        words = f"{self.name}: quantised with {len(self.samples)} samples, {self.request.method}"
        words += f", weights of 16 bits in {', '.join(self.wide)}" if self.wide else ""
        words += f"; {self.chosen}" if self.chosen else ""
        return "\n".join(filter(None, (words, samples.passed_over(self.request))))

    @property
    def net(self) -> Net:
        return self.ranged.net

    def widened(self, wide: tuple[str, ...]) -> Calibrated:
        """The same model with weights of 16 bits in these nodes."""
        made = quantise.quantised_ranges(self.ranged, wide)
        graph = _read(made, self.name)
        return dataclasses.replace(self, data=made, graph=graph, wide=wide)


def _of_batch(error: CompileError, batch: int) -> CompileError:
    """The error of a single inference, with the batch of the file that it is taken from."""
    if batch == 1:
        return error
    what = f"the file has a batch of {batch}, whose inferences are computed one by one: one that"
    what = f"{error.reason}; {what} mixes them is refused, a model with a batch of 1 runs"
    return CompileError(what, node=error.node, operator=error.operator, where=error.where)


def _read(made: bytes, name: str) -> Graph:
    """The quantised model; an error names tensors and nodes as the float one does."""
    try:
        return translate.read_onnx(made, name)
    except CompileError as error:
        reason, node = (PAIRS.sub("", text) for text in (error.reason, error.node))
        place = {"node": node, "operator": error.operator, "where": error.where}
        raise CompileError(reason, **place) from None


def calibrated(
    data: bytes,
    name: str,
    request: samples.Request,
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
    ends: Sequence[str] = (),
) -> Calibrated:
    """The model quantised, up to the tensors ``ends`` if there are any; CompileError with one line.

    A budget of cycles is not looked at (``widening``): it is the configuration's.
    """
    try:
        import onnxruntime  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        what = "calibration needs ONNX Runtime: pip install 'openkpu[quantise]'"
        raise CompileError(what, where=name) from None
    of_onnx = not is_tflite(data)
    if not of_onnx:
        data, folder, ends = float_form.converted(data, name, ends), None, ()
    try:
        net = prepare.prepared(data, name, shape, folder, ends)
        names = weighted.named_layers(net, request.wide, name)
        taken = samples.taken_inputs(net)
        given = samples.read_samples(request, taken)
        samples.check_range(request, given)
        feeds = [samples.fed(taken, one) for one in given]
        if of_onnx:
            faithful.check_faithful(net, data, name, feeds, shape, folder, ends)
        ranged = quantise.ranged_net(net, feeds, request.method, name)
    except CompileError as error:
        if error.reason.startswith(SIZES) and of_onnx:
            raise _of_batch(error, file.parse_onnx(data, name, shape, folder, ends).batch) from None
        raise
    made = quantise.quantised_ranges(ranged, names)
    graph = _read(made, name)
    return Calibrated(name, made, graph, ranged, taken, given, request, names)
