# SPDX-License-Identifier: Apache-2.0
"""What quantisation costs: each layer, and the result, beside the float model's own run.

The quantised values are those of the exact reference (docs/compiler.md), which are the device's.
*Through*: signal to noise of a layer's output when everything before it is quantised as well.
*Own*: when its inputs are the float model's, rounded to their scales: the loss of the layer itself.
*Narrow* and *wide*: the same with weights of 8 and of 16 bits.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from openkpu.compiler import data
from openkpu.compiler.calibration import samples
from openkpu.compiler.calibration.calibrate import Calibrated
from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.calibration.scales import MOST_BIAS
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Dense, Graph, Host, Move, Node, Table, Tensor
from openkpu.words import option

USUAL = 32  # samples that are looked at, spread over those of the calibration
POOR = 20.0  # dB: a layer that loses more than this names itself
GAIN = 3.0  # dB that weights of 16 bits must bring to be worth a word
MOST_DB = 99.9
AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean")
Array = npt.NDArray[np.float64]


@dataclasses.dataclass
class Row:
    """A node: energies of its output and of its errors, over all samples."""

    node: str
    operator: str
    signal: float = 0.0
    through: float = 0.0
    own: float = 0.0
    narrow: float | None = None  # of a layer with weights, as is the next one
    wide: float | None = None
    bits: int = 8  # of its weights
    rounding: float = 0.0  # of the float model's output to this output's scale
    clipped: int = 0  # values of the float model beyond the output's range
    values: int = 0

    def decibels(self, noise: float | None) -> float | None:
        """Signal to noise; None where there is no such noise to speak of."""
        if noise is None:
            return None
        if not self.signal:
            return MOST_DB if not noise else 0.0
        return min(10 * math.log10(self.signal / noise), MOST_DB) if noise else MOST_DB


@dataclasses.dataclass
class Output:
    """An output of the model: its numbers beside those of the float model."""

    name: str
    size: int  # of the last axis
    samples: int = 0
    same: int = 0  # samples whose largest number is at the same place
    largest: float = 0.0
    total: float = 0.0  # of absolute differences
    values: int = 0
    reach: float = 0.0  # the largest number of the float model

    @property
    def mean(self) -> float:
        """The mean absolute difference."""
        return self.total / max(self.values, 1)


@dataclasses.dataclass
class Precision:
    """Of a quantised model."""

    rows: list[Row]
    outputs: list[Output]
    samples: int
    narrow: list[Output] = dataclasses.field(default_factory=list)  # with no weights of 16 bits


def measure_precision(found: Calibrated, most: int = USUAL) -> Precision:
    """Compare on samples of the calibration."""
    graph, net = found.graph, found.net
    names = _floats(found.data)
    nodes = [n for n in graph.nodes if not isinstance(n, Move)]
    nodes = [n for n in nodes if not (isinstance(n, Host) and n.how in ("quantize", "dequantize"))]
    # masked scores lie beyond the range on purpose
    nodes = [n for n in nodes if names.get(n.outputs[0], n.outputs[0]) not in net.masked]
    rows = {n.name: _row(n) for n in nodes}
    others = {n.name: made for n in nodes if (made := _other(net, n)) is not None}
    ends = [_output(graph.tensors[name]) for name in graph.outputs]
    narrow = [_narrowed(others, n) for n in graph.nodes]
    before = dataclasses.replace(graph, nodes=narrow) if found.wide else None
    narrow_ends = [_output(graph.tensors[name]) for name in graph.outputs] if before else []
    chosen = found.samples
    if len(chosen) > most:
        chosen = [chosen[i * len(chosen) // most] for i in range(most)]
    runner = FloatRunner(net, [*(names.get(t, t) for t in graph.tensors), *net.outputs])
    for sample in chosen:
        clean = runner.run(samples.fed(found.taken, sample))
        values = reference.evaluate(graph, sample)
        real = {n: _like(clean, names.get(n, n), t) for n, t in graph.tensors.items()}
        for node in nodes:
            _add(graph, node, rows[node.name], others.get(node.name), values, real)
        _ends(graph, ends, values, real)
        if before:
            _ends(before, narrow_ends, reference.evaluate(before, sample), real)
    kept = [row for row in rows.values() if row.values]
    return Precision(kept, ends, len(chosen), narrow_ends)


def _row(node: Node) -> Row:
    """A function that has become one table is called by what it is made of."""
    if isinstance(node, Table) and node.function:
        return Row(node.name.removesuffix("_QuantizeLinear"), node.function)
    return Row(node.name, node.operator, bits=_bits(node))


def _bits(node: Node) -> int:
    return node.weight_bits if isinstance(node, (Conv, Dense)) else 8


def _output(tensor: Tensor) -> Output:
    return Output(tensor.name, tensor.shape[-1] if tensor.shape else 1)


def _narrowed(others: dict[str, Node], node: Node) -> Node:
    """A node, with weights of 8 bits where it has wider ones."""
    return others.get(node.name, node) if _bits(node) > 8 else node


def _ends(
    graph: Graph, ends: list[Output], values: data.Values, real: dict[str, Array | None]
) -> None:
    """Count one sample of the outputs."""
    for end in ends:
        _compare(end, data.real(graph.tensors[end.name], values[end.name]), real[end.name])


def _floats(quantised: bytes) -> dict[str, str]:
    """The float tensor that a tensor of bytes stands for, by the names of both."""
    import onnx

    found = {}
    for node in onnx.load_model_from_string(quantised).graph.node:
        if node.op_type == "QuantizeLinear":
            found[node.output[0]] = node.input[0].removesuffix("_QuantizeLinear_Input")
    return found


def _like(clean: data.Values, name: str, tensor: Tensor) -> Array | None:
    """The float model's numbers of a tensor, in the graph's order of axes."""
    value = clean.get(name)
    if value is None or value.dtype.kind != "f":
        return None
    if tensor.layout == "NHWC" and value.ndim == 4:
        value = value.transpose(data.TO_NCHW)
    return np.asarray(value, np.float64) if value.shape == tensor.shape else None


def _add(
    graph: Graph,
    node: Node,
    row: Row,
    other: Node | None,
    values: data.Values,
    real: dict[str, Array | None],
) -> None:
    """Count one sample of a node whose numbers the float model has as well."""
    (output,) = graph.of(node.outputs)
    want, inputs = real[output.name], []
    if want is None or output.dtype not in ("int8", "uint8", "float32"):
        return
    row.signal += float((want**2).sum())
    row.through += _noise(want, data.real(output, values[output.name]))
    row.values += want.size
    for tensor in graph.of(node.inputs):
        given = real[tensor.name]
        if tensor.data is not None:
            inputs.append(tensor.data)
        elif given is None or not tensor.quantised:
            inputs.append(values[tensor.name])
        else:
            inputs.append(reference.quantised_values(given, tensor))
    own = _noise(want, data.real(output, reference.compute(graph, node, inputs)))
    row.own += own
    if other is not None:
        noise = _noise(want, data.real(output, reference.compute(graph, other, inputs)))
        narrow, wide = (own, noise) if row.bits == 8 else (noise, own)
        row.narrow, row.wide = (row.narrow or 0.0) + narrow, (row.wide or 0.0) + wide
    if output.quantised:
        steps = reference.quantised_values(want, output)
        row.rounding += _noise(want, data.real(output, steps))
        low, high = (data.real(output, np.array(v)) for v in output.limits)
        step = output.step
        row.clipped += int(((want < low - step) | (want > high + step)).sum())


def _noise(want: Array, found: Array) -> float:
    return float(((want - found) ** 2).sum())


def _compare(end: Output, found: Array, want: Array | None) -> None:
    if want is None:
        return
    found = np.asarray(found, np.float64).reshape(want.shape)
    end.samples += 1
    end.same += int(found.argmax() == want.argmax())
    apart = np.abs(found - want)
    end.largest = max(end.largest, float(apart.max(initial=0)))
    end.reach = max(end.reach, float(np.abs(want).max(initial=0)))
    end.total += float(apart.sum())
    end.values += want.size


def _other(net: Net, node: Node) -> Node | None:
    """A convolution or product with weights of 16 bits instead of 8, or of 8 instead of 16, of the
    float network's own weights."""
    if not isinstance(node, (Conv, Dense)):
        return None
    made = next((n for n in net.nodes if n.name == node.name), None)
    weights = None if made is None else net.constant(made, 1)
    if weights is None:
        return None
    whole = np.asarray(weights, np.float64)
    if isinstance(node, Dense):
        turned = made is not None and (made.op_type == "MatMul" or not attribute(made, "transB", 0))
        whole = whole.T if turned else whole
    if whole.size != node.weights.size:
        return None
    whole = whole.reshape(node.weights.shape)
    most = 32767 if node.weight_bits == 8 else 127
    peaks = np.abs(whole).reshape(len(whole), -1).max(axis=1)
    scale = np.where(peaks > 0, peaks / most, node.w_scale)
    scale = np.maximum(scale, np.abs(node.bias * node.w_scale) / MOST_BIAS)  # a bias has 32 bits
    spread = (-1, *[1] * (node.weights.ndim - 1))
    steps = np.rint(whole / scale.reshape(spread)).astype(np.int64)
    bias = np.rint(node.bias * node.w_scale / scale).astype(np.int64)
    zero = np.zeros_like(node.w_zero)
    return dataclasses.replace(node, weights=steps, w_scale=scale, w_zero=zero, bias=bias)


# ------------------------------------------------------------------------------ as text
def precision_lines(found: Precision) -> Iterator[str]:
    """The report."""
    yield f"precision on {found.samples} samples, signal to noise in dB against the float model"
    yield ""
    yield f"{'through':>8} {'own':>6} {'8 bits':>8} {'16 bits':>8}  layer"
    for row in found.rows:
        through, own = (row.decibels(v) for v in (row.through, row.own))
        either = (row.decibels(v) for v in (row.narrow, row.wide))
        narrow, wide = ("" if v is None else f"{v:.1f}" for v in either)
        words = ", weights of 16 bits" if row.bits == 16 else ""
        yield (
            f"{through:>8.1f} {own:>6.1f} {narrow:>8} {wide:>8}  {row.node} ({row.operator}){words}"
        )
    yield ""
    yield from _output_lines(found.outputs, "")
    yield from _output_lines(found.narrow, "with weights of 8 bits alone: ")
    yield from warnings(found)


def _output_lines(ends: list[Output], words: str) -> Iterator[str]:
    for end in ends:
        if not end.samples:
            continue
        same = f"same class in {end.same} of {end.samples}, " if end.size > 1 else ""
        yield (
            f"output {end.name}: {words}{same}differences at most {end.largest:.3g},"
            f" mean {end.mean:.3g}, of numbers up to {end.reach:.3g}"
        )


def warnings(found: Precision) -> Iterator[str]:
    """A line for each layer that loses much, the worst one first, with what would help."""
    poor = [row for row in found.rows if (row.decibels(row.own) or 0.0) < POOR and row.signal]
    for row in sorted(poor, key=lambda r: r.decibels(r.own) or 0.0):
        own, wide = row.decibels(row.own), row.decibels(row.wide)
        text = f"warning: layer {row.node!r} loses precision, {own:.1f} dB"
        if wide is not None and own is not None and wide - own >= GAIN:
            yield (
                f"{text}: its weights are too coarse, {option('wide', row.node)} gives them 16 bits"
                f" and it would have {wide:.1f} dB"
            )
        elif row.operator in AVERAGES:
            yield f"{text}: an average has the scale of what it averages"
        elif row.clipped * 1000 > row.values:
            share = 100 * row.clipped / row.values
            keeps = f"{option('method', 'minmax')} keeps them"
            yield f"{text}: {share:.1f} % of its values are cut off, {keeps}"
        elif row.rounding > row.own / 2:
            cuts = f"{option('method', 'percentile')} or entropy cuts those"
            yield f"{text}: few of its values are large, {cuts}"
        else:
            yield f"{text}: the scale of what it reads is too coarse for it"
