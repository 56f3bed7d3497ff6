# SPDX-License-Identifier: Apache-2.0
"""What an ONNX model computes from constants alone is computed when it is read.

Exporters leave shapes, turned weights and scales of biases to the graph. The reference
implementation of the package ``onnx`` computes them, node by node, so that QuantizeLinear and
DequantizeLinear of constants keep their meaning.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.values import Const

if TYPE_CHECKING:
    from openkpu.compiler.onnx.reader import OnnxReader

# operators that do not make much out of little
FOLDED = frozenset(
    (
        "Add",
        "And",
        "Cast",
        "Ceil",
        "Clip",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Flatten",
        "Floor",
        "Gather",
        "Greater",
        "Identity",
        "Less",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pow",
        "Reciprocal",
        "ReduceProd",
        "ReduceSum",
        "Reshape",
        "Slice",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
        "Where",
    )
)
MOST_MADE = 1 << 20  # elements that ConstantOfShape may make


def is_known(reader: OnnxReader, node: RawNode) -> bool:
    """Is the node one that is computed here, and are all of its inputs known?"""
    values = (reader.values.get(name) for name in node.inputs if name)
    return node.operator in FOLDED and all(isinstance(value, Const) for value in values)


def fold_node(reader: OnnxReader, node: RawNode) -> None:
    """Compute it; the reader's error for what cannot be."""
    from onnx.reference import ReferenceEvaluator

    # limits of a Clip may be infinite, so that is looked at where a number is used
    feeds = {name: reader.array(name, "min") for name in node.inputs if name}
    if node.operator == "ConstantOfShape":
        shape = next(iter(feeds.values())).reshape(-1)
        if math.prod(int(n) for n in shape) > MOST_MADE:
            raise reader.refuse(f"a constant of shape {shape.tolist()[:8]}, expected a small one")
    try:
        evaluator = ReferenceEvaluator(node.proto, opsets={"": reader.opset})
        found = evaluator.run(None, feeds)
    except Exception as error:
        what = str(error).splitlines()[:1] or [type(error).__name__]
        raise reader.refuse(f"cannot be computed from its constants: {what[0]}") from None
    for name, value in zip(node.outputs, found, strict=False):
        reader.values[name] = Const(np.asarray(value))
