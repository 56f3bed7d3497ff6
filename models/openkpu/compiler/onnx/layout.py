# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that an ONNX model orders as NHWC, as converters from TensorFlow write them.

Such a model turns its input to (N, C, H, W) first, and its output back. The tensor of the graph is
(N, C, H, W) in any case, so here the turn becomes the tensor's ``layout``, and no node is left.
"""

from __future__ import annotations

from openkpu.compiler.form.graph import Graph, Host, Move, Tensor

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def rename(graph: Graph, tensor: Tensor, name: str) -> None:
    """Give a tensor another name, which no tensor has."""
    for node in graph.nodes:
        node.inputs = tuple(name if n == tensor.name else n for n in node.inputs)
        node.outputs = tuple(name if n == tensor.name else n for n in node.outputs)
    for names in (graph.inputs, graph.outputs):
        names[:] = [name if n == tensor.name else n for n in names]
    del graph.tensors[tensor.name]
    tensor.name = name
    graph.add_tensor(tensor)


def with_layouts(graph: Graph) -> Graph:
    """The graph with the layouts of its inputs and outputs."""
    for name in graph.inputs:
        _input(graph, graph.tensors[name])
    for name in list(graph.outputs):
        _output(graph, graph.tensors[name])
    return graph


def _turned(tensor: Tensor, axes: tuple[int, ...]) -> None:
    tensor.shape = tuple(tensor.shape[a] for a in axes)


def _input(graph: Graph, tensor: Tensor) -> None:
    """An input that every reader turns, before it is quantised or behind."""
    chain, readers = [tensor], graph.readers(tensor.name)
    if len(readers) == 1 and isinstance(readers[0], Host) and readers[0].how == "quantize":
        chain.append(graph.tensors[readers[0].outputs[0]])
        readers = graph.readers(chain[-1].name)
    last = chain[-1].name
    turns = [n for n in readers if isinstance(n, Move) and n.how == "transpose"]
    if not readers or last in graph.outputs or len(turns) != len(readers):
        return
    if len(tensor.shape) != 4 or any(n.axes != TO_NCHW for n in turns):
        return
    if any(n.outputs[0] in graph.outputs for n in turns):
        return
    for one in chain:
        _turned(one, TO_NCHW)
    tensor.layout = "NHWC"
    for turn in turns:
        graph.nodes.remove(turn)
        (behind,) = turn.outputs
        for node in graph.readers(behind):
            node.inputs = tuple(last if n == behind else n for n in node.inputs)
        del graph.tensors[behind]


def _output(graph: Graph, tensor: Tensor) -> None:
    """An output that is turned last, before it becomes float or behind."""
    maker, last = graph.maker(tensor.name), tensor
    if isinstance(maker, Host) and maker.how == "dequantize":
        last = graph.tensors[maker.inputs[0]]
        turn, alone = graph.maker(last.name), len(graph.readers(last.name)) == 1
    else:
        turn, alone = maker, not graph.readers(last.name)
    if not isinstance(turn, Move) or turn.how != "transpose" or turn.axes != TO_NHWC or not alone:
        return
    (source,) = graph.of(turn.inputs)
    ends = (*graph.inputs, *graph.outputs)
    if last is not tensor:
        if last.name in ends:
            return
        assert maker is not None
        maker.inputs = (source.name,)
        _turned(tensor, TO_NCHW)
        del graph.tensors[last.name]
    elif source.name in ends or graph.outputs.count(tensor.name) > 1:
        return
    else:
        del graph.tensors[tensor.name]
        rename(graph, source, tensor.name)
        tensor = source
    graph.nodes.remove(turn)
    tensor.layout = "NHWC"
