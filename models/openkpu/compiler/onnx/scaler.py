# SPDX-License-Identifier: Apache-2.0
"""Scaler, the domain ai.onnx.ml's (x - offset) * scale, with which pipelines of scikit-learn begin,
in ONNX's own operators."""

from __future__ import annotations

from typing import Any

import numpy as np

DOMAIN = "ai.onnx.ml"


def spell_scalers(graph: Any) -> None:
    """Put a Sub and a Mul in the place of each Scaler."""
    from onnx import helper, numpy_helper

    made: list[Any] = []
    for node in graph.node:
        if (node.domain, node.op_type) != (DOMAIN, "Scaler") or not (node.input and node.output):
            made.append(node)
            continue
        fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        (x, *_), (y, *_) = node.input, node.output
        for kind, field in (("Sub", "offset"), ("Mul", "scale")):
            last = kind == "Mul"
            numbers = f"{y}/{field}"
            data = np.array(fields.get(field, [float(last)]), np.float32)
            graph.initializer.append(numpy_helper.from_array(data, numbers))
            output = y if last else f"{y}/shifted"
            label = node.name if last else f"{node.name or y}/{kind}"
            made.append(helper.make_node(kind, [x, numbers], [output], label))
            x = output
    if len(made) > len(graph.node):
        del graph.node[:]
        graph.node.extend(made)
