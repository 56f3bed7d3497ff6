# SPDX-License-Identifier: Apache-2.0
"""What every spelled operator has to pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.tests.readers.test_onnx_reader import run
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import quantise
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.data import Values
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate


def check_spelled(net: Net, data: bytes, many: Sequence[Values]) -> None:
    """The net of a model ``data`` has ONNX Runtime's numbers; quantised with these samples, the
    device's bytes are the reference's and near them."""
    (want,), (spelled,) = run(data, many[0]), run(net.done().SerializeToString(), many[0])
    np.testing.assert_allclose(spelled, want, atol=1e-5)
    graph = translate.read_onnx(quantise.quantised_net(net, many, "minmax", "net"), "net")
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, many[0]) == []
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    assert found.shape == want.shape
    assert np.abs(found - want).mean() < 0.02 * np.abs(want).max()
