# SPDX-License-Identifier: Apache-2.0
"""A float network in the QDQ form, by ONNX Runtime's calibrators and its ``quantize_static``.

What is the device's own: scales that it computes with exactly (``scales``); functions of one tensor
stay float inside (``curves``), so that each becomes one table; a softmax at the end is float.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration import curves, equalise, scales
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.errors import CompileError
from openkpu.words import METHODS

Feeds = dict[str, npt.NDArray[np.float32]]  # a batch of one for each input
KINDS: dict[str, str] = dict(zip(METHODS, ("MinMax", "Percentile", "Entropy"), strict=True))
CHUNK = 16  # samples whose tensors are in memory at a time
FLOAT_RESULTS = ("Softmax",)  # their results are bytes only where another node wants bytes


class _Reader:
    """Samples for ONNX Runtime's calibrators."""

    def __init__(self, samples: Sequence[Feeds]) -> None:
        self.left = iter(samples)

    def get_next(self) -> Feeds | None:
        """The next one; None behind the last."""
        return next(self.left, None)


def quantised_net(net: Net, samples: Sequence[Feeds], method: str, name: str) -> bytes:
    """The network as an ONNX file in the QDQ form, int8, weights with a scale per channel.

    Channels of the network itself are equalised (``equalise``); its results stay. ``method``: one
    of METHODS. CompileError for a network that ONNX Runtime cannot quantise.
    """
    import onnx
    from onnxruntime import quantization

    runner = FloatRunner(net, net.floats)
    equalise.equalise(net, equalise.peaks_of(runner.run(feeds) for feeds in samples))
    within = curves.inside(net)
    model = net.done()
    kinds = sorted({n.op_type for n in net.nodes})
    extra: dict[str, Any] = {
        "ForceQuantizeNoInputCheck": True,
        "OpTypesToExcludeOutputQuantization": FLOAT_RESULTS,
    }
    with tempfile.TemporaryDirectory() as place, _quiet():
        folder = Path(place)
        onnx.save_model(model, folder / "float.onnx")
        try:
            ranges = _ranges(folder, kinds, samples, method)
            extra["TensorQuantOverrides"] = scales.chosen_scales(net, ranges, within)
            _saved(ranges, folder / "ranges.json")
            quantization.quantize_static(
                str(folder / "float.onnx"),
                str(folder / "quantised.onnx"),
                None,
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=kinds,
                per_channel=True,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=sorted(within),
                calibrate_method=getattr(quantization.CalibrationMethod, KINDS[method]),
                extra_options=extra,
                calibration_cache_path=str(folder / "ranges.json"),
            )
        except CompileError:
            raise
        except Exception as error:  # ONNX Runtime's errors have no base class but this
            what = " ".join(str(error).split())[:160] or type(error).__name__
            raise CompileError(f"ONNX Runtime cannot quantise it: {what}", where=name) from None
        return (folder / "quantised.onnx").read_bytes()


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
        extra_options={"symmetric": False},
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
