# SPDX-License-Identifier: Apache-2.0
"""What a graph must be before a pass or a lowering looks at it (docs/compiler.md).

Every reader ends with ``check_graph``; passes may be checked by it as well.  Each fault is a
CompileError of one line with the node's name, its operator and what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import rarer_rules
from openkpu.compiler.form.graph import (
    ALONG,
    DTYPES,
    ELEMENTWISE,
    HOSTS,
    INTEGERS,
    LAYOUTS,
    MOVES,
    OF_FLOATS,
    OF_TWO,
    POOLS,
    QUANTISED,
    Conv,
    Dense,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
)
from openkpu.compiler.form.rarer import Deconv, Product

MOST_BIAS = 1 << 31
MOST_STEP = 1 << 14  # strides, dilation, pads, windows


def check_graph(graph: Graph) -> Graph:
    """The same graph; CompileError for the first thing that is wrong with it."""
    check_tensors(graph)
    names = [node.name for node in graph.nodes]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise CompileError(f"node {twice!r} is there twice, expected once", where=graph.name)
    known = {*graph.inputs, *(t.name for t in graph.tensors.values() if t.data is not None)}
    for node in graph.nodes:
        if fault := _order(graph, node, known) or _node(graph, node):
            where = {"node": node.name, "operator": node.operator, "where": graph.name}
            raise CompileError(fault, **where)
        known |= set(node.outputs)
    if missing := [name for name in graph.outputs if name not in known]:
        raise CompileError(f"output {missing[0]!r}: no node writes it", where=graph.name)
    return graph


def check_nodes(graph: Graph, nodes: Sequence[Node]) -> None:
    """CompileError for nodes with fields, types or shapes that cannot be; their order is free."""
    for node in nodes:
        missing = [n for n in (*node.inputs, *node.outputs) if n not in graph.tensors]
        fault = f"tensor {missing[0]!r} is not in the graph" if missing else _node(graph, node)
        if fault:
            where = {"node": node.name, "operator": node.operator, "where": graph.name}
            raise CompileError(fault, **where)


def check_tensors(graph: Graph) -> None:
    """CompileError for a tensor that cannot be, and for inputs and outputs that are none."""
    for tensor in graph.tensors.values():
        if fault := _tensor(tensor):
            raise CompileError(f"tensor {tensor.name!r}: {fault}", where=graph.name)
    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        if not names:
            raise CompileError(f"no {what}, expected at least one", where=graph.name)
        for name in names:
            if name not in graph.tensors:
                raise CompileError(f"{what} {name!r} is no tensor of it", where=graph.name)


def _tensor(tensor: Tensor) -> str | None:
    """What is wrong with one tensor."""
    if tensor.dtype not in DTYPES:
        return f"type {tensor.dtype}, expected one of {', '.join(DTYPES)}"
    if tensor.layout not in LAYOUTS:
        return f"layout {tensor.layout!r}, expected NHWC or NCHW"
    if any(size < 1 for size in tensor.shape):
        return f"shape {tensor.shape}, expected sizes of 1 or more"
    if tensor.scale is not None:
        if tensor.dtype not in QUANTISED and tensor.dtype != "int32":
            return f"a scale at {tensor.dtype}, expected int8 or uint8"
        if not math.isfinite(tensor.scale) or tensor.scale <= 0:
            return f"scale {tensor.scale}, expected a finite number above 0"
        if tensor.dtype in QUANTISED and not tensor.limits[0] <= tensor.zero <= tensor.limits[1]:
            return f"zero point {tensor.zero}, expected {tensor.limits[0]}..{tensor.limits[1]}"
    if tensor.data is not None and np.shape(tensor.data) != tensor.shape:
        return f"data {np.shape(tensor.data)}, expected {tensor.shape}"
    return None


def _order(graph: Graph, node: Node, known: set[str]) -> str | None:
    """A tensor that is not there, not yet, or there already."""
    for name in (*node.inputs, *node.outputs):
        if name not in graph.tensors:
            return f"tensor {name!r} is not in the graph"
    for name in node.inputs:
        if name not in known:
            return f"reads {name!r}, which no node before it writes"
    for name in node.outputs:
        if name in known:
            return f"writes {name!r}, which is there already"
    return None


def _node(graph: Graph, node: Node) -> str | None:
    """What is wrong with the node's own fields, types and shapes."""
    rules: dict[type[Node], tuple[int | None, Callable[..., str | None]]] = {
        Conv: (1, _conv),
        Dense: (1, _dense),
        Pool: (1, _pool),
        Elementwise: (2, _elementwise),
        Table: (1, _table),
        Move: (None, _move),
        Host: (2 if isinstance(node, Host) and node.how in OF_TWO else 1, _host),
        **rarer_rules.CHECKS,
    }
    if type(node) not in rules:
        return f"{type(node).__name__} is no kind of node"
    count, rule = rules[type(node)]
    if len(node.inputs) != (count or max(1, len(node.inputs))) or len(node.outputs) != 1:
        return f"{len(node.inputs)} inputs and {len(node.outputs)} outputs, expected {count} and 1"
    inputs, (output,) = graph.of(node.inputs), graph.of(node.outputs)
    if type(node) not in (Host, Move):
        for tensor in (*inputs, output):
            if not tensor.quantised:
                return f"{tensor.name!r} is {tensor.dtype} without a scale, expected int8 or uint8"
    if isinstance(node, (Deconv, Product)) and (fault := _clamp(node.clamp, output)):
        return fault
    if isinstance(node, Deconv) and (fault := _scales(node)):
        return fault
    return rule(node, inputs, output)


def _clamp(clamp: tuple[int, int], output: Tensor) -> str | None:
    least, most = output.limits
    if least <= clamp[0] <= clamp[1] <= most:
        return None
    return f"clamp {clamp}, expected inside {least}..{most}, the lower end first"


def _positive(name: str, values: tuple[int, ...], least: int = 1) -> str | None:
    if all(isinstance(v, (int, np.integer)) and least <= v <= MOST_STEP for v in values):
        return None
    return f"{name} {values}, expected whole numbers from {least} to {MOST_STEP}"


def _shape(output: Tensor, want: tuple[int, ...]) -> str | None:
    return None if output.shape == want else f"output {output.shape}, expected {want}"


def _scales(node: Conv | Dense | Deconv) -> str | None:
    """Weights, their scales and zero points, biases."""
    o = len(node.weights)
    for name in ("w_scale", "w_zero", "bias"):
        if np.shape(getattr(node, name)) != (o,):
            return f"{name} {np.shape(getattr(node, name))}, expected ({o},), one a channel"
    if not (np.isfinite(node.w_scale).all() and (node.w_scale > 0).all()):
        return "scales of the weights, expected finite numbers above 0"
    for name in ("weights", "w_zero"):
        values = getattr(node, name)
        if values.dtype.kind not in "iu" or values.min() < -32768 or values.max() > 65535:
            return f"{name} of {values.dtype}, expected integers of 8 or 16 bits"
    if np.abs(node.bias).max(initial=0) > MOST_BIAS:
        return "biases above 32 bits"
    return None


def _maps(*tensors: Tensor) -> str | None:
    for tensor in tensors:
        if len(tensor.shape) != 4 or tensor.shape[0] != 1:
            return f"{tensor.name!r} is {tensor.shape}, expected (1, C, H, W)"
    return None


def _conv(node: Conv, inputs: list[Tensor], output: Tensor) -> str | None:
    (x,) = inputs
    if fault := _maps(x, output) or _scales(node) or _clamp(node.clamp, output):
        return fault
    if node.weights.ndim != 4:
        return f"weights {node.weights.shape}, expected (O, C / groups, kh, kw)"
    steps = _positive("strides", node.strides) or _positive("dilation", node.dilation)
    if fault := steps or _positive("pads", node.pads, 0) or _positive("groups", (node.groups,)):
        return fault
    o, c = len(node.weights), node.weights.shape[1] * node.groups
    if x.shape[1] != c or o % node.groups:
        return f"weights {node.weights.shape} in {node.groups} groups do not fit {x.shape}"
    return _shape(output, (1, o, *node.out_size(*x.shape[2:])))


def _dense(node: Dense, inputs: list[Tensor], output: Tensor) -> str | None:
    (x,) = inputs
    if node.weights.ndim != 2 or not x.shape or x.shape[-1] != node.weights.shape[1]:
        return f"weights {node.weights.shape} do not fit {x.shape}"
    fault = _scales(node) or _clamp(node.clamp, output)
    return fault or _shape(output, (*x.shape[:-1], len(node.weights)))


def _pool(node: Pool, inputs: list[Tensor], output: Tensor) -> str | None:
    (x,) = inputs
    if node.how not in POOLS:
        return f"pool {node.how!r}, expected one of {', '.join(POOLS)}"
    if fault := _maps(x, output) or _clamp(node.clamp, output):
        return fault
    steps = _positive("kernel", node.kernel) or _positive("strides", node.strides)
    if fault := steps or _positive("pads", node.pads, 0):
        return fault
    (kh, kw), (top, left, bottom, right) = node.kernel, node.pads
    if max(top, bottom) >= kh or max(left, right) >= kw:
        return f"pads {node.pads}, expected smaller than the window {node.kernel}"
    return _shape(output, (1, x.shape[1], *node.out_size(*x.shape[2:])))


def _elementwise(node: Elementwise, inputs: list[Tensor], output: Tensor) -> str | None:
    if node.how not in ELEMENTWISE:
        return f"{node.how!r}, expected one of {', '.join(ELEMENTWISE)}"
    try:
        want = np.broadcast_shapes(*(t.shape for t in inputs))
    except ValueError:
        return f"shapes {inputs[0].shape} and {inputs[1].shape} do not go together"
    return _clamp(node.clamp, output) or _shape(output, want)


def _lookup(table: np.ndarray | None, output: Tensor) -> str | None:
    if table is None or table.shape != (256,) or table.dtype.kind not in "iu":
        return "table: expected 256 integers"
    return _clamp((int(table.min()), int(table.max())), output)


def _table(node: Table, inputs: list[Tensor], output: Tensor) -> str | None:
    return _lookup(node.table, output) or _shape(output, inputs[0].shape)


def _move(node: Move, inputs: list[Tensor], output: Tensor) -> str | None:
    if node.how not in MOVES:
        return f"{node.how!r}, expected one of {', '.join(MOVES)}"
    if len(inputs) > 1 and node.how != "concat":
        return f"{len(inputs)} inputs, expected one"
    for x in inputs:
        if not x.same_numbers(output):
            return f"{x} and {output}: expected the same type, scale and zero point"
    x, rank = inputs[0], len(inputs[0].shape)
    if node.how == "reshape":
        same = math.prod(x.shape) == math.prod(output.shape)
        return None if same else f"{x.shape} to {output.shape}: another number of elements"
    if node.how == "transpose":
        if sorted(node.axes) != list(range(rank)):
            return f"axes {node.axes}, expected each of {rank} once"
        return _shape(output, tuple(x.shape[a] for a in node.axes))
    if node.how == "concat":
        if not 0 <= node.axis < rank or any(len(t.shape) != rank for t in inputs):
            return f"axis {node.axis} of {[t.shape for t in inputs]}"
        rest = {(*t.shape[: node.axis], *t.shape[node.axis + 1 :]) for t in inputs}
        if len(rest) > 1:
            return f"shapes {[t.shape for t in inputs]} do not go together"
        total = sum(t.shape[node.axis] for t in inputs)
        return _shape(output, (*x.shape[: node.axis], total, *x.shape[node.axis + 1 :]))
    if node.how == "slice":
        if not rank == len(node.starts) == len(node.steps) == len(output.shape):
            return f"starts {node.starts}, steps {node.steps}, expected {rank} of each"
        for start, step, size, n in zip(
            node.starts, node.steps, x.shape, output.shape, strict=True
        ):
            if not step or not 0 <= start < size or not 0 <= start + (n - 1) * step < size:
                return f"from {start} step {step}, {n} elements of {size}"
        return None
    if node.how == "take":
        return rarer_rules.check_take(node, x, output)
    if not rank == len(node.before) == len(node.after):
        return f"pads {node.before} and {node.after}, expected {rank} of each"
    if fault := _positive("pads", (*node.before, *node.after), 0):
        return fault
    want = tuple(b + n + a for b, n, a in zip(node.before, x.shape, node.after, strict=True))
    return _shape(output, want)


def _host(node: Host, inputs: list[Tensor], output: Tensor) -> str | None:
    x = inputs[0]
    if node.how not in HOSTS:
        return f"{node.how!r}, expected one of {', '.join(HOSTS)}"
    if node.how == "quantize" and (x.dtype != "float32" or not output.quantised):
        return f"{x.dtype} to {output.dtype}, expected float32 to int8 or uint8"
    if node.how == "dequantize" and not (x.quantised and output.dtype == "float32"):
        return f"{x.dtype} to {output.dtype}, expected int8 or uint8 to float32"
    if node.how == "cast" and (x.dtype not in INTEGERS or output.dtype in QUANTISED):
        return f"{x.dtype} to {output.dtype}, expected int32 or int64 to another or float32"
    if node.how in OF_TWO:
        return rarer_rules.check_two(inputs, output)
    if node.how in OF_FLOATS:
        return rarer_rules.check_floats(node, x, output)
    if node.how == "linear":
        return rarer_rules.check_linear(node, x, output)
    if node.how in ALONG and not 0 <= node.axis < len(x.shape):
        return f"axis {node.axis}, expected one of {len(x.shape)}"
    if node.how in ("argmax", "argmin"):
        kept = (1,) if node.keep else ()
        return _shape(output, (*x.shape[: node.axis], *kept, *x.shape[node.axis + 1 :]))
    if node.how == "table" and output.dtype == "float32":
        if node.table is None or node.table.shape != (256,) or node.table.dtype.kind != "f":
            return "table: expected 256 floats"
    elif node.how == "table" and (fault := _lookup(node.table, output)):
        return fault
    return _shape(output, x.shape)
