# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's quantize_static writes, with options of all kinds, is read, and gives the
runtime's bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from openkpu import configs, digits
from openkpu.compiler import build, run
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.judges import Judgement
from openkpu.judges import ort as judge
from openkpu_tools.foreign import onnx_net
from openkpu_tools.foreign import train_networks as script

ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")
quantization = pytest.importorskip(
    "onnxruntime.quantization", reason="make setup GROUPS=test brings onnxruntime"
)
Type, Format = quantization.QuantType, quantization.QuantFormat

OPTIONS: dict[str, dict[str, Any]] = {
    "per-tensor": {"per_channel": False},
    "per-channel": {"per_channel": True},
    "unsigned": {"activation_type": Type.QUInt8, "weight_type": Type.QUInt8},
    "reduced": {"reduce_range": True, "activation_type": Type.QUInt8},
    "symmetric": {"extra_options": {"ActivationSymmetric": True}},
    "asymmetric-weights": {"extra_options": {"WeightSymmetric": False}},
    "float-weights": {"per_channel": True, "extra_options": {"AddQDQPairToWeight": True}},
    "pairs": {"extra_options": {"DedicatedQDQPair": True}},
    "kept-activations": {"extra_options": {"QDQKeepRemovableActivations": True}},
    "float-bias": {"extra_options": {"QuantizeBias": False}},
    "percentile": {"calibrate_method": quantization.CalibrationMethod.Percentile},
}
IMAGES = digits.load_data()[0].images[:40].astype(np.float32) / 16


class Given(quantization.CalibrationDataReader):
    """Arrays for the calibration."""

    def __init__(self, arrays: np.ndarray) -> None:
        self.left = iter(arrays)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next one as a batch of one."""
        array = next(self.left, None)
        return None if array is None else {"x": array[None]}


def quantised(network: str, form: Any, path: Path, options: dict[str, Any]) -> bytes:
    """A network quantised in that way."""
    params = script.own_params(script.load_params(), network)
    model = script.float_onnx(script.NETWORKS[network], params)
    types = {"activation_type": Type.QInt8, "weight_type": Type.QInt8}
    quantization.quantize_static(
        model, path, Given(IMAGES), quant_format=form, **{**types, **options}
    )
    return path.read_bytes()


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("form", [Format.QDQ, Format.QOperator], ids=["qdq", "qoperator"])
@pytest.mark.parametrize("network", script.NETWORKS)
@pytest.mark.tier(check=["separable-*", "residual-qoperator-*"])
def test_read_and_equal(network: str, form: Any, option: str, tmp_path: Path) -> None:
    data = quantised(network, form, tmp_path / "net.onnx", OPTIONS[option])
    graph = onnx_reader.read_onnx(data, "net.onnx")
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
    images = digits.load_data()[1].images[:12].astype(np.float32) / 16
    (theirs,) = session.run(None, {"x": images[:, None][:, 0]})
    mine = np.concatenate(
        [reference.evaluate(graph, {"x": x[None]})[graph.outputs[0]] for x in images]
    )
    assert mine.dtype == theirs.dtype == np.float32 and mine.shape == theirs.shape
    # a tie in the middle may be another step at the end; a float bias is rounded to the sum's steps
    most = 0.3 if option == "float-bias" and form == Format.QDQ else 0.1
    assert (mine != theirs).mean() < most and np.abs(mine - theirs).max() < 0.5
    assert (mine.argmax(axis=1) == theirs.argmax(axis=1)).all()


BLOCKS = range(12)
# quantize_static quantises no Tanh, and what reads one gets floats
FLOAT = "is Tanh in float, expected QuantizeLinear and DequantizeLinear behind that"


@pytest.mark.tier(check=["block0"], nightly=[f"block{b}" for b in BLOCKS if b >= 1])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"block{b}")
def test_random_networks(block: int, tmp_path: Path) -> None:
    """Random float networks, quantised: every difference to onnxruntime is explained, and the
    golden model gives the reference's values where the compiler says so."""
    read = 0
    for seed in range(6 * block, 6 * block + 6):
        rng = np.random.default_rng(seed)
        shape, data = onnx_net.random_network(rng)
        model = onnx.load_model_from_string(data)
        model.opset_import[0].version = 13  # the first with scales per channel
        qdq, arrays = seed % 2 == 0, rng.normal(0, 1, (4, *shape)).astype(np.float32)
        quantization.quantize_static(
            model,
            tmp_path / "net.onnx",
            Given(arrays[:3]),
            quant_format=Format.QDQ if qdq else Format.QOperator,
            per_channel=bool(rng.integers(2)),
            activation_type=Type.QInt8 if qdq and rng.integers(2) else Type.QUInt8,
            weight_type=Type.QInt8,
        )
        name = f"seed {seed}"
        data = (tmp_path / "net.onnx").read_bytes()
        try:
            graph = onnx_reader.read_onnx(data, name)
        except CompileError as error:
            assert FLOAT in str(error)
            continue
        read, values = read + 1, {"x": arrays[3:]}
        for way in ("plain", "optimised"):
            found = Judgement(name, way, judge.WAYS[way])
            found.take(graph, values, judge.OrtRunner(data, way, graph).run(graph, values))
            assert found.total.reasons["none"] == 0, (name, way)
        program = build.build_program(graph, configs.load_config("k210"))
        if not any(report.steps for report in program.reports.values()):
            want, mine = reference.evaluate(graph, values), run.run_program(program, values)
            for output in graph.outputs:
                assert np.array_equal(mine[output], want[output]), name
    assert read >= 3
