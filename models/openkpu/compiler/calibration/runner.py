# SPDX-License-Identifier: Apache-2.0
"""A float network in ONNX Runtime, with all of its tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.data import Values


class FloatRunner:
    """The network with the tensors that are wanted as outputs, besides its own."""

    def __init__(self, net: Net, wanted: Iterable[str]) -> None:
        import onnx
        import onnxruntime as ort

        model = net.done()
        made = {name for node in net.nodes for name in node.output} & net.floats
        there = {value.name for value in model.graph.output}
        for name in sorted((made & set(wanted)) - there):
            value = onnx.ValueInfoProto()
            value.name = name
            model.graph.output.append(value)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1  # others would only wait
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        data_, providers = model.SerializeToString(), ["CPUExecutionProvider"]
        self.session: Any = ort.InferenceSession(data_, options, providers)
        self.names = [value.name for value in self.session.get_outputs()]

    def run(self, feeds: Values) -> Values:
        """All tensors by name, the inputs among them."""
        return {**feeds, **dict(zip(self.names, self.session.run(None, feeds), strict=True))}
