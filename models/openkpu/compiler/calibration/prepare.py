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
import numpy.typing as npt

from openkpu.compiler.calibration import affine, curves, sound
from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.spelling import rules
from openkpu.compiler.errors import CompileError, ends_before
from openkpu.compiler.onnx import file
from openkpu.compiler.onnx.float_form import HANDLERS

# The first moves the turn of an input of (N, H, W, C) to where no reader sees what it is; the
# second makes a Gather, which the file does not have, of slices and a concatenation.
OFF = ["TransposeOptimizer", "SliceConcatToSpaceToDepthFusion"]
LEAST_OPSET = 13  # the first whose QuantizeLinear has a scale for each channel
SIZES = ("BatchNormalization", "Constant", "ConstantOfShape", "Dropout", "Expand", "Shape")
# computed from constants or shapes, or folded; what is left of them is refused when it is read
FOLDED = frozenset((*SIZES, *rules.SPELLED, "GatherElements", "Range", "Size", "Tile", "Where"))


def is_float(data: bytes, name: str, folder: Path | None = None, ends: Sequence[str] = ()) -> bool:
    """Is an ONNX model a float one: no quantisation in it?"""
    kinds = {node.op_type for node in file.load_onnx(data, name, folder, ends).graph.node}
    return not any("Linear" in k or k == "QGemm" or k.endswith("Integer") for k in kinds)


def prepared(
    data: bytes,
    name: str,
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
    ends: Sequence[str] = (),
) -> Net:
    """The network; CompileError with one line for what cannot be quantised.

    ``shape`` fixes an open shape of the input; ``folder`` holds external data; ``ends``: tensors
    with which the network ends, in place of the file's outputs.
    """
    from onnx import numpy_helper

    parsed = file.parse_onnx(data, name, shape, folder, ends)
    model = file.load_onnx(data, name, folder, ends)
    for value in parsed.inputs:
        if value.dtype != "float32":
            what = f"input {value.name!r} is {value.dtype}, expected float32"
            raise CompileError(what, where=name)
    readers = {tensor: node for node in reversed(model.graph.node) for tensor in node.input}
    for tensor in model.graph.initializer:
        if (reader := readers.get(tensor.name)) is None:  # the optimisation drops it
            continue
        # a Cast of a constant is computed, and what comes of it checked when it is read
        fault = "" if reader.op_type == "Cast" else parsed.faults.get(tensor.name, "")
        limits = reader.op_type in ("Clip", "Add", "Where")  # masks: looked at below
        if not fault and not limits and not _finite(numpy_helper.to_array(tensor)):
            fault = "it has a NaN or an infinity, expected finite numbers"
        if fault:
            raise CompileError(f"constant {tensor.name!r}: {fault}", where=name)
    _known(model, parsed, name)
    there = {v.name for v in parsed.inputs} | {t.name for t in model.graph.initializer}
    for value in model.graph.output:
        if value.name in there:
            what = f"output {value.name!r} is an input or a constant, expected a node's result"
            raise CompileError(what, where=name)
    _keep_single(model, parsed.batch)
    fix_sizes(model, {v.name: v.shape for v in parsed.inputs})
    rules.spell_model(model)
    net = Net(_optimised(_newer(model, name), name))
    try:
        rules.spell_net(net)
    except CompileError as error:
        raise error.within(name) from None
    _check_finite(net, name)
    net.head = curves.float_head(net)
    affine.fold(net)
    sound.check_net(net, name)
    made = {tensor for node in net.nodes for tensor in node.output}
    for tensor in net.outputs:
        if tensor not in made:
            what = f"output {tensor!r} is constant, expected a result of the inputs"
            raise CompileError(what, where=name)
    for node in net.nodes:
        value = net.constant(node, 2)
        if node.op_type == "Pad" and len(node.input) == 3 and value is not None and not value.any():
            del node.input[2:]  # zeros are the input's own zero point, not a constant with a scale
    curves.rooted(net)
    made = Net(net.done())
    made.head = net.head
    made.masked = {k: v for k, v in net.masked.items() if v[1] in made.constants}
    return made


def _check_finite(net: Net, name: str) -> None:
    """CompileError for a constant that is none, once masks are limited."""
    for node in net.nodes:
        for given in node.input if node.op_type != "Clip" else ():
            if given in net.constants and not _finite(net.constants[given]):
                fault = "it has a NaN or an infinity, expected finite numbers"
                raise CompileError(f"constant {given!r}: {fault}", where=name)


def _finite(data: npt.NDArray) -> bool:
    return data.dtype.kind != "f" or bool(np.isfinite(data).all())


def _known(model: Any, parsed: file.RawFile, name: str) -> None:
    """Refuse an operator that no reader has, before a long calibration; not one that the
    optimisation computes, from constants or shapes."""
    constant = {"", *(t.name for t in model.graph.initializer)}
    for node in parsed.nodes:
        if node.operator in ("Shape", "Size") or set(node.inputs) <= constant:
            constant |= set(node.outputs)
            continue
        there = (node.domain, node.operator) in HANDLERS or node.operator in FOLDED
        if not there:
            what = "no such operator here; docs/compiler.md has the table of operators"
            what = ends_before(what, (n for n in node.inputs if n not in constant))
            raise CompileError(what, node=node.name, operator=node.operator, where=name)


def _keep_single(model: Any, batch: int) -> None:
    """Shapes with the file's batch in front, as those of one inference."""
    if batch == 1:
        return
    import onnx
    from onnx import numpy_helper

    sized = onnx.shape_inference.infer_shapes(model).graph
    shapes = {v.name: v.type.tensor_type.shape.dim for v in (*sized.value_info, *sized.input)}
    constants = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in ("Reshape", "Expand") or len(node.input) < 2:
            continue
        dims, target = shapes.get(node.input[0]), constants.get(node.input[1])
        if not dims or target is None or dims[0].dim_value != batch:
            continue
        size = numpy_helper.to_array(target).copy()
        if size.size and size[0] == batch:
            size[0] = 1
            made = numpy_helper.from_array(size, f"{target.name}/{node.output[0]}/single")
            model.graph.initializer.append(made)
            node.input[1] = made.name


def fix_sizes(model: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Sizes of the inputs as numbers; sizes of what follows are inferred."""
    constants = {t.name for t in model.graph.initializer}
    kept = [v for v in model.graph.input if v.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = max(model.ir_version, 4)  # before, constants had to be inputs
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
            ort.InferenceSession(data, options, ["CPUExecutionProvider"], disabled_optimizers=OFF)
        except Exception as error:  # as above
            what = " ".join(str(error).split())[:160]
            raise CompileError(f"ONNX Runtime cannot run it: {what}", where=name) from None
        return onnx.load(path)
