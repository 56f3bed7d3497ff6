# SPDX-License-Identifier: Apache-2.0
"""Nodes of a float network that have weights, and the ones that a user names."""

from __future__ import annotations

from typing import Any

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.scales import weights_axis
from openkpu.compiler.errors import CompileError
from openkpu.words import option

SHOWN = 8  # layers that an error names


def named_layers(net: Net, wide: tuple[str, ...] | float, name: str) -> tuple[str, ...]:
    """The nodes with these names, each once; CompileError for one that has no weights.

    None of a budget, whose layers are chosen later.
    """
    if not isinstance(wide, tuple):
        return ()
    nodes = {node.name: node for node in net.nodes}
    weighted = [n for n, node in nodes.items() if has_weights(net, node)]
    for word in wide:
        if word in weighted:
            continue
        fault = f"layer {word!r} ({nodes[word].op_type}) has no weights" if word in nodes else ""
        more = f", and {len(weighted) - SHOWN} more" if len(weighted) > SHOWN else ""
        known = f"expected some of {', '.join(weighted[:SHOWN])}{more}"
        known = known if weighted else "and the model has no layer with weights"
        raise CompileError(
            f"{option('wide')}: {fault or f'no layer {word!r}'}, {known}", where=name
        )
    return tuple(dict.fromkeys(wide))


def has_weights(net: Net, node: Any) -> bool:
    """Is a node a convolution or product with constant weights?"""
    return weights_axis(node) is not None and net.constant(node, 1) is not None
