# SPDX-License-Identifier: Apache-2.0
"""From a float model and samples of its inputs to a quantised one (docs/compiler.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from openkpu.compiler.calibration import prepare, quantise, samples
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite import float_form
from openkpu.compiler.tflite.file import is_tflite

NEEDED = (
    "a float model: compile, sim and quantise need samples of its inputs, CALIBRATION=folder of"
    " pictures, x.npy or x.npz"
)
QUANTISED = "CALIBRATION is of a float model, this one is quantised already"


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A quantised model, and what it was made of."""

    name: str
    data: bytes  # an ONNX file in the QDQ form
    graph: Graph
    net: Net  # the float network, prepared
    taken: samples.Taken
    samples: list[Values]
    request: samples.Request

    def words(self) -> list[str]:
        """What it was quantised with, and what of a folder was not."""
        count, method = len(self.samples), self.request.method
        said = f"{self.name}: quantised with {count} samples, {method}"
        return [line for line in (said, samples.passed_over(self.request)) if line]


def calibrated(
    data: bytes,
    name: str,
    request: samples.Request,
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
) -> Calibrated:
    """The model quantised; CompileError with one line."""
    try:
        import onnxruntime  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        what = "calibration needs ONNX Runtime: pip install 'openkpu[quantise]'"
        raise CompileError(what, where=name) from None
    if is_tflite(data):
        data, folder = float_form.converted(data, name), None
    net = prepare.prepared(data, name, shape, folder)
    taken = samples.taken_inputs(net)
    given = samples.read_samples(request, taken)
    feeds = [samples.fed(taken, one) for one in given]
    made = quantise.quantised_net(net, feeds, request.method, name)
    return Calibrated(name, made, translate.read_onnx(made, name), net, taken, given, request)
