# SPDX-License-Identifier: Apache-2.0
"""A model that is written for a batch runs as one inference after another.

Readers set the batch of inputs and results to 1, and ``check`` makes sure that this changes no
number: nothing may move or compute along the first axis.  INPUT then holds any number of
inferences along it, and so does OUTPUT.
"""

from __future__ import annotations

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import ALONG, Graph, Host, Move, Node


def check_batch(graph: Graph, batch: int) -> Graph:
    """The graph with its ``batch`` noted; CompileError for a node that mixes inferences."""
    graph.batch = batch
    if batch == 1:
        return graph
    carrying = set(graph.inputs)
    for node in graph.nodes:
        if not carrying & set(node.inputs):
            continue
        carrying |= set(node.outputs)
        shape = graph.tensors[node.outputs[0]].shape
        if _mixes(graph, node) or not shape or shape[0] != 1:
            raise CompileError(
                f"it mixes the {batch} inferences of a batch, expected one that keeps them apart;"
                " a model with a batch of 1 runs",
                node=node.name,
                operator=node.operator,
                where=graph.name,
            )
    if lonely := [name for name in graph.outputs if name not in carrying]:
        raise CompileError(f"output {lonely[0]!r} does not depend on the batch", where=graph.name)
    return graph


def _mixes(graph: Graph, node: Node) -> bool:
    """Does a node move or compute along the first axis?"""
    if isinstance(node, Host):
        return node.how in ALONG and node.axis == 0
    if not isinstance(node, Move):
        return False
    x = graph.tensors[node.inputs[0]]
    if node.how == "transpose":
        return node.axes[0] != 0
    if node.how == "concat":
        return node.axis == 0
    if node.how == "pad":
        return bool(node.before[0] or node.after[0])
    return not x.shape or x.shape[0] != 1 or (node.how == "slice" and node.steps[0] < 0)
