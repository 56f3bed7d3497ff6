# SPDX-License-Identifier: Apache-2.0
"""A float ONNX model in the form in which it is quantised: fixed shapes, folded, every node named.

ONNX Runtime's basic optimisation computes what is constant and joins what belongs together;
``affine`` folds batch norms and what it leaves. The result computes the same numbers, but for the
order of roundings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openkpu.compiler.calibration import affine, curves
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.errors import CompileError
from openkpu.compiler.onnx import file
from openkpu.compiler.onnx.float_form import HANDLERS

LEAST_OPSET = 13  # the first whose QuantizeLinear has a scale for each channel
SIZES = ("BatchNormalization", "Constant", "ConstantOfShape", "Dropout", "Expand", "Shape")
# computed from constants or shapes, or folded; what is left of them is refused when it is read
FOLDED = frozenset((*SIZES, "GatherElements", "Range", "Size", "Tile", "Where"))


def is_float(data: bytes, name: str, folder: Path | None = None) -> bool:
    """Is an ONNX model a float one: no quantisation in it, and an input of float32?"""
    import onnx

    model = file.load_onnx(data, name, folder)
    if any("Linear" in n.op_type or n.op_type == "QGemm" for n in model.graph.node):
        return False
    constants = {t.name for t in model.graph.initializer}
    kinds = {v.type.tensor_type.elem_type for v in model.graph.input if v.name not in constants}
    return onnx.TensorProto.FLOAT in kinds


def prepared(
    data: bytes, name: str, shape: Sequence[int] | None = None, folder: Path | None = None
) -> Net:
    """The network; CompileError with one line for what cannot be quantised.

    ``shape`` fixes an open shape of the input; ``folder`` holds external data.
    """
    from onnx import numpy_helper

    parsed = file.parse_onnx(data, name, shape, folder)
    model = file.load_onnx(data, name, folder)
    for tensor in model.graph.initializer:
        fault = parsed.faults.get(tensor.name, "")
        if not fault and not np.isfinite(numpy_helper.to_array(tensor)).all():
            reader = next((n for n in model.graph.node if tensor.name in n.input), None)
            limits = reader is not None and reader.op_type == "Clip"
            fault = "" if limits else "it has a NaN or an infinity, expected finite numbers"
        if fault:
            raise CompileError(f"constant {tensor.name!r}: {fault}", where=name)
    for value in parsed.inputs:
        if value.dtype != "float32":
            what = f"input {value.name!r} is {value.dtype}, expected float32"
            raise CompileError(what, where=name)
    _known(model, parsed, name)
    there = {v.name for v in parsed.inputs} | {t.name for t in model.graph.initializer}
    for value in model.graph.output:
        if value.name in there:
            what = f"output {value.name!r} is an input or a constant, expected a node's result"
            raise CompileError(what, where=name)
    _fixed(model, {v.name: v.shape for v in parsed.inputs})
    net = Net(_optimised(_newer(model, name), name))
    affine.fold(net)
    for node in net.nodes:
        value = net.constant(node, 2)
        if node.op_type == "Pad" and len(node.input) == 3 and value is not None and not value.any():
            del node.input[2:]  # zeros are the input's own zero point, not a constant with a scale
    curves.rooted(net)
    return Net(net.done())


def _known(model: Any, parsed: file.RawFile, name: str) -> None:
    """Refuse an operator that no reader has, before a long calibration."""
    for node in parsed.nodes:
        there = (node.domain, node.operator) in HANDLERS or node.operator in FOLDED
        if not there:
            what = "no such operator here; docs/compiler.md has the table of operators"
            raise CompileError(what, node=node.name, operator=node.operator, where=name)


def _fixed(model: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Sizes of the inputs as numbers; sizes of what follows are inferred."""
    constants = {t.name for t in model.graph.initializer}
    kept = [v for v in model.graph.input if v.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape
        del sizes.dim[:]
        for size in shapes[value.name]:
            sizes.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def _newer(model: Any, name: str) -> Any:
    """The model in an opset that has scales for each channel."""
    from onnx import version_converter

    opset = next(e.version for e in model.opset_import if e.domain in ("", "ai.onnx"))
    if opset >= LEAST_OPSET:
        return model
    try:
        return version_converter.convert_version(model, LEAST_OPSET)
    except Exception as error:  # the converter's errors have no base class but this
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CompileError(f"cannot become opset {LEAST_OPSET}: {what}", where=name) from None


def _optimised(model: Any, name: str) -> Any:
    """What ONNX Runtime's basic optimisation makes of it."""
    import onnx
    import onnxruntime as ort

    data = model.SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(path)
        try:
            # it moves the turn of an input of (N, H, W, C) to where no reader sees what it is
            off = ["TransposeOptimizer"]
            ort.InferenceSession(data, options, ["CPUExecutionProvider"], disabled_optimizers=off)
        except Exception as error:  # as above
            what = " ".join(str(error).split())[:160]
            raise CompileError(f"ONNX Runtime cannot run it: {what}", where=name) from None
        return onnx.load(path)
