# SPDX-License-Identifier: Apache-2.0
"""An ONNX model in ONNX Runtime, the bytes between its nodes made outputs.

Two ways: as the file has it, float operators between quantisations, and optimised, where QDQ groups
become integer kernels. On x86 without VNNI the integer kernels of int8 weights saturate sums of two
products at 16 bits, unless ``session.x64quantprecision`` is set: it is set here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import QUANTISED, Graph

WAYS = dict.fromkeys(("plain", "optimised", "saturating"), ("float32", "half", "function"))


def all_outputs(data: bytes, graph: Graph) -> bytes:
    """The same model with every tensor of bytes that the graph has as an output."""
    import onnx

    model = onnx.load_model_from_string(data)
    made = {name for node in model.graph.node for name in node.output}
    there = {value.name for value in model.graph.output}
    for tensor in graph.tensors.values():
        if tensor.name in made - there and tensor.dtype in QUANTISED:
            value = onnx.ValueInfoProto()
            value.name = tensor.name
            model.graph.output.append(value)
    return model.SerializeToString()


class OrtRunner:
    """A model in one way; "saturating": optimised, without asking for precision."""

    def __init__(self, data: bytes, way: str, graph: Graph) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        level = ort.GraphOptimizationLevel
        plain = level.ORT_DISABLE_ALL if way == "plain" else level.ORT_ENABLE_ALL
        options.graph_optimization_level = plain
        if way != "saturating":
            options.add_session_config_entry("session.x64quantprecision", "1")
        providers = ["CPUExecutionProvider"]
        self.session: Any = ort.InferenceSession(all_outputs(data, graph), options, providers)

    def run(self, graph: Graph, inputs: dict[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """The bytes of every tensor by its name."""
        feeds = {
            value.name: np.asarray(inputs[value.name]).astype(graph.tensors[value.name].dtype)
            for value in self.session.get_inputs()
        }
        names = [value.name for value in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, feeds), strict=True))
        # a moved tensor of the graph may have the name of the floats that the file has there
        return {
            name: value
            for name, value in found.items()
            if name in graph.tensors and value.dtype.name == graph.tensors[name].dtype
        }
