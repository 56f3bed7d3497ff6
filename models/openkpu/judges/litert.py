# SPDX-License-Identifier: Apache-2.0
"""A TFLite model in LiteRT (the package ``ai-edge-litert``), all tensors kept.

Three sets of kernels: the reference ones, the optimised ones, and XNNPACK, to which LiteRT leaves
int8 models by itself. XNNPACK keeps no tensors between its nodes: every result is then made an
output of the model first.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph

KERNELS = {  # what each may do, see REASONS; XNNPACK leaves some nodes to the optimised kernels
    "reference": ("two", "half", "function"),
    "optimised": ("two", "half", "fixed", "function"),
    "xnnpack": ("float32", "two", "half", "fixed", "function"),
}


def all_outputs(data: bytes) -> bytes:
    """The same model with every result as an output."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    # the package's classes begin with None in every field, which their types do not say
    model = cast(Any, schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0)))
    graph = model.subgraphs[0]
    graph.outputs = [n for op in graph.operators for n in op.outputs]
    for operator in graph.operators:  # a schema of the package's own age reads its own tables
        operator.intermediates = None
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class LitertRunner:
    """A model in one set of kernels."""

    def __init__(self, data: bytes, kernels: str) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        kinds = {
            "reference": OpResolverType.BUILTIN_REF,
            "optimised": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "xnnpack": OpResolverType.AUTO,
        }
        keep = kernels != "xnnpack"
        try:
            self.interpreter: Any = Interpreter(
                model_content=data if keep else all_outputs(data),
                experimental_op_resolver_type=kinds[kernels],
                experimental_preserve_all_tensors=keep,
                num_threads=1,
            )
            self.interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise CompileError(f"LiteRT does not run the model: {reason}") from None

    def run(self, graph: Graph, inputs: dict[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """Every tensor by its name, maps as (N, C, H, W)."""
        for detail, name in zip(self.interpreter.get_input_details(), graph.inputs, strict=True):
            x = inputs[name].astype(detail["dtype"])
            x = x.transpose(0, 2, 3, 1) if x.ndim == 4 else x
            self.interpreter.set_tensor(detail["index"], x)
        self.interpreter.invoke()
        found = {}
        for detail in self.interpreter.get_tensor_details():
            if detail["name"] not in graph.tensors:
                continue
            try:
                value = np.array(self.interpreter.get_tensor(detail["index"]))
            except ValueError:  # of a fused activation: nothing was written there
                continue
            tensor = graph.tensors[detail["name"]]
            if value.ndim == 4:
                value = value.transpose(0, 3, 1, 2)
            if value.shape == tensor.shape and value.dtype.name == tensor.dtype:
                found[detail["name"]] = value
        return found
