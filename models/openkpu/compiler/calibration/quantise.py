# SPDX-License-Identifier: Apache-2.0
"""A float network in the QDQ form, by ONNX Runtime's calibrators and its ``quantize_static``.

What is the device's own: scales that it computes with exactly (``scales``); functions of one tensor
stay float inside (``curves``), so that each becomes one table; a softmax at the end is float, and
so are results of other ranges that are joined there (``curves``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration import curves, equalise, scales
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.words import METHODS

Feeds = dict[str, npt.NDArray[np.float32]]  # a batch of one for each input
KINDS: dict[str, str] = dict(zip(METHODS, ("MinMax", "Percentile", "Entropy"), strict=True))
BINS = 2048  # of a histogram; with 128, which bytes need, entropy has one range to choose from
CHUNK = 16  # samples whose tensors are in memory at a time
FLOAT_RESULTS = curves.FLOAT_RESULTS  # bytes only where another node wants bytes


class _Reader:
    """Samples for ONNX Runtime's calibrators."""

    def __init__(self, samples: Sequence[Feeds]) -> None:
        self.left = iter(samples)

    def get_next(self) -> Feeds | None:
        """The next one; None behind the last."""
        return next(self.left, None)


@dataclasses.dataclass(frozen=True)
class Ranged:
    """A network with the ranges of its tensors."""

    net: Net
    within: Mapping[str, str]  # nodes that stay float (``curves``)
    ranges: Any  # ``TensorsData`` of ONNX Runtime
    method: str
    name: str
    tail: Collection[str] = ()  # nodes at the end that stay float (``curves``)


def quantised_net(
    net: Net, samples: Sequence[Feeds], method: str, name: str, wide: Collection[str] = ()
) -> bytes:
    """The network as an ONNX file in the QDQ form, int8, weights with a scale per channel.

    ``method``: one of METHODS; ``wide``: nodes whose weights become int16. Channels of the network
    itself are equalised (``equalise``); its results stay. CompileError for a network that ONNX
    Runtime cannot quantise.
    """
    return quantised_ranges(ranged_net(net, samples, method, name), wide)


def ranged_net(net: Net, samples: Sequence[Feeds], method: str, name: str) -> Ranged:
    """The ranges on samples; the rest as for ``quantised_net``."""
    import onnx

    runner = FloatRunner(net, net.floats, name)
    within = {n: root for n, root in curves.inside(net).items() if n not in net.head}
    with net.fixed():
        hidden = (t for n in net.nodes if n.name in within for t in n.output)
        inner = {tensor for tensor in hidden if _hidden(net, tensor, within)}
    runs = (_finite(runner.run(feeds), at, name, inner) for at, feeds in enumerate(samples, 1))
    peaks = equalise.peaks_of(runs)
    equalise.scale_inputs(net, peaks)
    equalise.equalise(net, peaks)
    with tempfile.TemporaryDirectory() as place, _quiet(), _refused(name):
        onnx.save_model(net.done(), Path(place) / "float.onnx")
        ranges = _ranges(Path(place), _kinds(net), samples, method)
    scales.limit_masks(net, ranges)
    tail = curves.float_tail(net, ranges)
    inner |= {t for n in net.nodes if n.name in tail for t in n.output}
    inner |= {t for n in net.nodes if n.name in net.head for t in n.input}
    for tensor in inner & set(ranges.data):
        del ranges.data[tensor]  # stays float
    return Ranged(net, within, ranges, method, name, tail)


def quantised_ranges(found: Ranged, wide: Collection[str] = ()) -> bytes:
    """The QDQ form of a network whose ranges are known; the rest as for ``quantised_net``."""
    import onnx
    from onnxruntime import quantization

    net, within = found.net, found.within
    extra: dict[str, Any] = {
        "ForceQuantizeNoInputCheck": True,
        "OpTypesToExcludeOutputQuantization": FLOAT_RESULTS,
        "TensorQuantOverrides": scales.chosen_scales(net, found.ranges, within, wide, found.tail),
    }
    with tempfile.TemporaryDirectory() as place, _quiet():
        folder = Path(place)
        onnx.save_model(net.done(), folder / "float.onnx")
        with _refused(found.name):
            _saved(found.ranges, folder / "ranges.json")
            quantization.quantize_static(
                str(folder / "float.onnx"),
                str(folder / "quantised.onnx"),
                None,
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=_kinds(net),
                per_channel=True,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=sorted({*within, *found.tail, *net.head}),
                calibrate_method=getattr(quantization.CalibrationMethod, KINDS[found.method]),
                extra_options=extra,
                calibration_cache_path=str(folder / "ranges.json"),
            )
        made = onnx.load(folder / "quantised.onnx")
    _limited(made, net, within)
    return made.SerializeToString()


def _kinds(net: Net) -> list[str]:
    return sorted({n.op_type for n in net.nodes})


@contextlib.contextmanager
def _refused(name: str) -> Iterator[None]:
    """CompileError for what ONNX Runtime cannot do."""
    try:
        yield
    except CompileError:
        raise
    except Exception as error:  # ONNX Runtime's errors have no base class but this
        what = " ".join(str(error).split())[:160] or type(error).__name__
        raise CompileError(f"ONNX Runtime cannot quantise it: {what}", where=name) from None


def _hidden(net: Net, tensor: str, within: Mapping[str, str]) -> bool:
    """Does a tensor lie inside a function? There an infinity may be on the way to a number."""
    return tensor not in net.outputs and all(n.name in within for n in net.readers(tensor))


def _finite(values: Values, at: int, name: str, inner: Collection[str]) -> Values:
    """The tensors of a sample; CompileError where float32 does not hold one."""
    for tensor, value in values.items():
        if tensor not in inner and value.dtype.kind == "f" and not np.isfinite(value).all():
            what = f"sample {at} of the calibration makes a NaN or an infinity of {tensor!r}"
            raise CompileError(f"{what}, expected finite numbers", where=name)
    return values


def _limited(made: Any, net: Net, within: Mapping[str, str]) -> None:
    """Put a ReLU or clip back in front of the quantisation that took its place.

    ONNX Runtime drops it, since the range of its result ends where it does. A scale that other
    tensors have as well may reach further, and so does a range that has 0 in it beside the limits.
    """
    from onnx import helper, numpy_helper

    nodes = list(made.graph.node)
    there = {n.name for n in nodes}
    known = {t.name for t in made.graph.initializer}
    for node in reversed(net.nodes):
        if node.op_type not in curves.LIMITS or node.name in within or node.name in there:
            continue
        (before, after), limits = (node.input[0], node.output[0]), list(node.input[1:])
        at = next(i for i, n in enumerate(nodes) if after in n.output)
        nodes[at].output[:] = [before if n == after else n for n in nodes[at].output]
        nodes.insert(at + 1, helper.make_node(node.op_type, [before, *limits], [after], node.name))
        for limit in filter(None, limits):
            if limit not in known:
                tensor = numpy_helper.from_array(net.constants[limit], limit)
                made.graph.initializer.append(tensor)
                known.add(limit)
    del made.graph.node[:]
    made.graph.node.extend(nodes)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the advice that ONNX Runtime logs, and what its calibrators print."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _ranges(folder: Path, kinds: list[str], samples: Sequence[Feeds], method: str) -> Any:
    """The range of every tensor (``TensorsData``)."""
    import onnxruntime as ort
    from onnxruntime import quantization
    from onnxruntime.quantization.calibrate import create_calibrator

    calibrator = create_calibrator(
        folder / "float.onnx",
        kinds,
        augmented_model_path=str(folder / "augmented.onnx"),
        calibrate_method=getattr(quantization.CalibrationMethod, KINDS[method]),
        extra_options={"symmetric": False, "num_bins": BINS},
    )
    options = ort.SessionOptions()  # as the calibrator's own, but for threads that wait busily
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    calibrator.infer_session = ort.InferenceSession(
        str(folder / "augmented.onnx"), options, ["CPUExecutionProvider"]
    )
    for first in range(0, len(samples), CHUNK):
        calibrator.collect_data(_Reader(samples[first : first + CHUNK]))  # pyright: ignore
    return calibrator.compute_data()


def _saved(ranges: Any, path: Path) -> None:
    from onnxruntime.quantization import calibrate

    calibrate.save_tensors_data(ranges, path)
