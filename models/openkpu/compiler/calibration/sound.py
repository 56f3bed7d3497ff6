# SPDX-License-Identifier: Apache-2.0
"""What a float network must be so that its nodes can be quantised, before ONNX Runtime fails there
without a word about the node (docs/compiler.md 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.errors import CompileError
from openkpu.compiler.onnx.rarer import CONSTANT_FIRST

# inputs that must be constants, where they are there: by operator their places and names
CONSTANT = {"Clip": {1: "lower limit", 2: "upper limit"}}
MAY_BE_EMPTY = frozenset(("Resize", "Upsample"))  # in the place of what is left out


def check_net(net: Net, name: str) -> None:
    """CompileError for the first node that cannot be: a limit that is no constant, an axis of size
    0, a constant in front of a product."""
    for node in net.nodes:
        if fault := _fault(net, node):
            raise CompileError(fault, node=node.name, operator=node.op_type, where=name)


def _fault(net: Net, node: Any) -> str:
    """What is wrong with a node, "" for nothing."""
    for at, what in CONSTANT.get(node.op_type, {}).items():
        given = node.input[at] if at < len(node.input) else ""
        if given and given not in net.constants:
            how = "an input of the model" if net.maker(given) is None else "computed"
            return f"its {what} {given!r} is {how}, expected a constant"
    for given in node.input if node.op_type not in MAY_BE_EMPTY else ():
        data = net.constants.get(given)
        if data is not None and data.dtype == np.float32 and not data.size:
            return f"constant {given!r} of shape {data.shape}, expected sizes of 1 or more"
    for made in node.output:
        if made in net.empty:
            return f"a result of shape {net.empty[made]}, expected sizes of 1 or more"
    if node.op_type == "MatMul" and node.input[0] in net.constants:
        return CONSTANT_FIRST
    if node.op_type == "Gemm" and node.input[0] in net.constants:
        return f"operand A, {node.input[0]!r}, is a constant, expected weights as operand B"
    if node.op_type == "Gemm" and (bias := net.constant(node, 2)) is not None:
        weights = net.constant(node, 1)
        outputs = net.shapes.get(node.output[0], (0,))[-1]
        if weights is not None and bias.shape != (outputs,):
            return f"operand C of shape {bias.shape}, expected one number, or one for each output"
    return ""
