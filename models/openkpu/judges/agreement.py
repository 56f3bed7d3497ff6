# SPDX-License-Identifier: Apache-2.0
"""Float models quantised by calibration, beside the int8 files that are published for them.

Both are compared with the float model on inputs that the calibration has not seen. Where there are
recordings, every second one calibrates. Of pictures and spectra there are one or two: the others
are made up, smooth noise in the range of the published ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu.compiler import data, source
from openkpu.compiler.calibration import prepare, quantise, samples
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite.file import parse_tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.compiler.tflite.raw import RawModel
from openkpu.judges import mlperf

Array = npt.NDArray[np.float32]
PAIRS = {  # int8 model: its float file; "": its own numbers as floats
    "pretrainedResnet_quant.tflite": "pretrainedResnet.tflite",
    "kws_ref_model.tflite": "kws_ref_model_float32.tflite",
    "vww_96_int8.tflite": "vww_96_float.tflite",
    "ad01_int8.tflite": "ad01_fp32.tflite",
    "str_ww_ref_model.tflite": "",
}
MADE = 40  # inputs that are made up for the calibration, and as many to compare
SEED = 43


@dataclasses.dataclass
class Match:
    """A quantised model beside the float one."""

    same: int = 0  # inputs with the largest result at the same place
    inputs: int = 0
    largest: float = 0.0
    signal: float = 0.0
    noise: float = 0.0
    total: float = 0.0
    values: int = 0

    def add(self, found: npt.NDArray, want: npt.NDArray) -> None:
        """One input's results."""
        apart = np.abs(np.asarray(found, np.float64).reshape(want.shape) - want)
        self.same += int(np.argmax(found) == np.argmax(want))
        self.inputs += 1
        self.largest = max(self.largest, float(apart.max()))
        self.signal += float((want.astype(np.float64) ** 2).sum())
        self.noise += float((apart**2).sum())
        self.total += float(apart.sum())
        self.values += want.size

    @property
    def decibels(self) -> float:
        """Signal to noise."""
        return float(10 * np.log10(self.signal / max(self.noise, 1e-30)))


@dataclasses.dataclass
class Agreement:
    """Of one model."""

    model: str
    calibrated: Match
    published: Match


def floated(model: RawModel) -> RawModel:
    """An int8 model with its numbers as floats, without a quantisation between them."""
    for tensor in model.tensors:
        if not tensor.scale.size:
            continue
        if tensor.data is not None:
            spread = [1] * tensor.data.ndim
            if tensor.scale.size > 1:
                spread[tensor.axis] = -1
            steps = tensor.data.astype(np.float64) - tensor.zero.reshape(spread)
            tensor.data = (steps * tensor.scale.reshape(spread)).astype(np.float32)
        tensor.dtype = "float32"
        tensor.scale, tensor.zero = np.zeros(0), np.zeros(0, np.int64)
    return model


def smooth(rng: np.random.Generator, size: Sequence[int]) -> Array:
    """A plane of noise whose parts are of all sizes, 0..1."""
    found = np.zeros(tuple(size))
    for cells in (2, 4, 8, 16):
        noise = rng.normal(0, 1 / cells, [min(cells, n) for n in size])
        places = [np.arange(n) * min(cells, n) // n for n in size]
        found += noise[np.ix_(*places)]
    low, high = found.min(), found.max()
    return ((found - low) / max(high - low, 1e-9)).astype(np.float32)


def inputs(name: str, graph: Graph, folder: Path) -> tuple[list[Array], list[Array]]:
    """(for the calibration, to compare) float inputs (1, C, H, W) or (1, K) of a model of PAIRS."""
    tensor = graph.tensors[graph.inputs[0]]
    steps = mlperf.samples(name, graph, folder).astype(np.float64)
    known = [((x - tensor.zero) * tensor.step).astype(np.float32) for x in steps]
    if name == "ad01_int8.tflite":  # as they are, not rounded to the int8 model's steps
        raw = (folder / mlperf.MODELS[name][1]).read_bytes()
        known = list(np.frombuffer(raw, "<f4").reshape(-1, *tensor.shape))
    if len(known) > 2:
        return known[::2], known[1::2]
    rng, made = np.random.default_rng(SEED), []
    for _ in range(2 * MADE):
        planes = [smooth(rng, tensor.shape[2:]) for _ in range(tensor.shape[1])]
        x = np.stack(planes)[None]
        if name.startswith("kws"):  # each coefficient has a range of its own
            low, high = known[0].min(axis=2, keepdims=True), known[0].max(axis=2, keepdims=True)
            x = low + x * (high - low)
        else:
            x = x * float(max(v.max() for v in known) or 255)
        made.append(x.astype(np.float32))
    return made[:MADE], [*made[MADE:], *known]


def agreement(name: str, folder: Path, method: str = "minmax") -> Agreement:
    """A model of PAIRS, both ways."""
    graph = source.read_graph(folder / name)
    given, left = inputs(name, graph, folder)
    kept = PAIRS[name]
    if kept:
        converted = float_form.converted((folder / kept).read_bytes(), kept)
    else:
        converted = float_form.write_float_onnx(
            floated(parse_tflite((folder / name).read_bytes(), name)), name
        )
    net = prepare.prepared(converted, name)
    taken = samples.taken_inputs(net)
    (into,) = taken.inputs
    feeds = [samples.fed(taken, {into.name: x}) for x in given]
    made = translate.read_onnx(quantise.quantised_net(net, feeds, method, name), name)
    runner = FloatRunner(net, net.outputs)
    found = Agreement(kept or name, Match(), Match())
    published = graph.tensors[graph.inputs[0]]
    for x in left:
        want = runner.run(samples.fed(taken, {into.name: x}))[net.outputs[0]]
        mine = reference.evaluate(made, {into.name: x})
        found.calibrated.add(_result(made, mine), want)
        steps = reference.quantised_values(x, published)
        found.published.add(
            _result(graph, reference.evaluate(graph, {published.name: steps})), want
        )
    return found


def _result(graph: Graph, values: data.Values) -> npt.NDArray:
    """The output as real numbers."""
    (name,) = graph.outputs
    return data.real(graph.tensors[name], values[name])


def agreement_table(folder: Path) -> Iterator[list[str]]:
    """The cells of a row for each model whose files are there."""
    for name in PAIRS:
        if (folder / name).exists() and (folder / (PAIRS[name] or name)).exists():
            found = agreement(name, folder)
            cells = [found.model if PAIRS[name] else f"{found.model}, as floats"]
            for match in (found.calibrated, found.published):
                cells += [
                    f"{match.same} of {match.inputs}",
                    f"{match.decibels:.1f} dB",
                    f"{match.largest:.3g}",
                    f"{match.total / match.values:.2g}",
                ]
            yield cells
