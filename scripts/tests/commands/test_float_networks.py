# SPDX-License-Identifier: Apache-2.0
"""The digits networks from their float models: as many of the held-out scans as float finds, within
half a point; the float models of MLPerf Tiny as near to float as their published int8 files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.compiler import run, source
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.form.graph import Host
from openkpu.compiler.program import HostPart
from openkpu.judges import agreement, mlperf
from openkpu_tools.foreign import train_networks as script

ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
POINTS = 0.5


@pytest.mark.parametrize("network", script.NETWORKS)
@pytest.mark.tier(check=["separable"])
def test_digits(network: str, tmp_path: Path) -> None:
    params = script.own_params(script.load_params(), network)
    path = tmp_path / "net.onnx"
    path.write_bytes(script.float_onnx(script.NETWORKS[network], params).SerializeToString())
    seen, held = digits.load_data()
    np.save(tmp_path / "x.npy", seen.images.astype(np.float32) / 16)
    request = Request(str(tmp_path / "x.npy"))
    program = source.read_program(path, configs.load_config("k210"), request=request)
    hosted = [n for p in program.parts if isinstance(p, HostPart) for n in p.nodes]
    assert [n.how for n in hosted if isinstance(n, Host)] == ["quantize", "dequantize"]
    assert len(hosted) == 2 and len(program.device_parts) == 1
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    right = np.zeros(2, int)
    (name,) = program.graph.outputs
    for image, label in zip(held.images, held.labels, strict=True):
        x = image[None].astype(np.float32) / 16
        (real,) = session.run(None, {"x": x})
        found = run.run_program(program, {program.graph.inputs[0]: x})[name]
        right += [int(found.argmax() == label), int(real.argmax() == label)]
    mine, theirs = 100 * right / len(held.labels)
    print(f"{network}: {mine:.2f} %, float {theirs:.2f} %")
    assert mine >= theirs - POINTS and theirs > 95


@pytest.mark.parametrize("name", agreement.PAIRS)
@pytest.mark.tier(check=["ad01*"], nightly=["vww*", "pre*", "kws*", "str*"])
def test_as_near_as_published(name: str) -> None:
    """Mean differences to the float model are not larger than those of the int8 file."""
    folder = SHARED / mlperf.FOLDER
    if not (folder / name).exists():
        pytest.skip(f"{folder / name} is not there; OPENKPU_SHARED names another place")
    found = agreement.agreement(name, folder)
    mine, theirs = (m.total / m.values for m in (found.calibrated, found.published))
    assert mine <= theirs, (mine, theirs)
    assert found.calibrated.same >= found.published.same - 2
