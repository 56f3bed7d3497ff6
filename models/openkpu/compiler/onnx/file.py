# SPDX-License-Identifier: Apache-2.0
"""An ONNX file's main graph in plain Python: nodes with their attributes, constants, inputs.

The package ``onnx`` parses, checks, reads external data and inlines local functions. What it finds
wrong, and what no node could make right (an unknown opset, control flow, a shape that is open),
ends here in one CompileError.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError, check_ends, ends_before
from openkpu.compiler.onnx import classical
from openkpu.terminal import printable
from openkpu.words import option

OPSETS = (7, 25)  # of ONNX's own domain; quantisation begins with 10
RESIZES = ("Resize", "Upsample")
READ = 11  # the first one that the handlers were written for; the package converts to it
DOMAINS = ("", "ai.onnx", "com.microsoft")
CONTROL = ("If", "Loop", "Scan", "SequenceMap")
# the input that must be a constant; of QLinearMatMul it may be computed
WEIGHTS = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "QLinearConv": 3, "QGemm": 3}
CARRIERS = ("DequantizeLinear", "QuantizeLinear", "Transpose", "Identity", "Clip")
SHORT = {"double": "float64", "float": "float32"}
MOST_SHAPE = 8  # axes of a tensor
MOST_BYTES = 1 << 31  # of an input


@dataclasses.dataclass(frozen=True)
class RawInput:
    """An input of the model."""

    name: str
    dtype: str  # "float32", "int8"
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RawNode:
    """A node: names of tensors, "" for one that is left out."""

    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    proto: Any


@dataclasses.dataclass(frozen=True)
class RawFile:
    """The main graph."""

    opset: int
    nodes: list[RawNode]
    constants: dict[str, npt.NDArray]
    faults: dict[str, str]  # constants that cannot be used, and why
    inputs: list[RawInput]
    outputs: list[str]
    batch: int = 1  # of the file's inputs; theirs here is 1


def is_onnx(data: bytes) -> bool:
    """Do these bytes parse as a model that has a graph?"""
    import onnx

    try:
        return len(onnx.load_model_from_string(data).graph.node) > 0
    except Exception:  # the parser's errors have no base class but this
        return False


def load_onnx(
    data: bytes,
    name: str,
    folder: Path | None = None,
    ends: Sequence[str] = (),
    *,
    as_written: bool = False,
) -> Any:
    """The model (``onnx.ModelProto``), checked, with its external data, its functions inlined; only
    what computes the tensors ``ends``, if there are any. ``as_written``: in the file's own opset,
    else in READ or a later one.

    CompileError for a file that is none, damaged, or cannot be used.
    """
    import onnx
    from onnx import inliner

    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:
        what = f"no ONNX model, or not all of it: {error}"
        raise CompileError(what, where=name) from None
    if not model.HasField("graph") or not model.graph.node:
        raise CompileError("no ONNX model, or not all of it: it has no graph", where=name)
    _opset(model, name)
    if not model.graph.output:
        raise CompileError("the model has no output, expected one or more", where=name)
    if ends:
        _end(model, ends, name)
    _external(model, name, folder)
    classical.spell(model.graph, name, _opset(model, name))
    imports = {entry.domain: entry for entry in model.opset_import}  # some files repeat theirs
    del model.opset_import[:]
    model.opset_import.extend(imports.values())
    made = {tensor for node in model.graph.node for tensor in node.output}
    for node in model.graph.node:
        _known(node, {f.name for f in model.functions}, made, name)
    try:
        if model.functions:
            model = inliner.inline_local_functions(model)
        for value in model.graph.output:  # a shape that is left out is computed here
            value.type.tensor_type.shape.SetInParent()
        onnx.checker.check_model(model)
    except Exception as error:
        raise CompileError(f"not a valid ONNX model: {_first(error)}", where=name) from None
    _widen(model)
    return _converted(model, name) if _opset(model, name) < READ and not as_written else model


def _widen(model: Any) -> None:
    """A model of float16 as one of float32: its numbers are among those."""
    from onnx import TensorProto, numpy_helper

    graph, half, single = model.graph, TensorProto.FLOAT16, TensorProto.FLOAT
    for tensor in graph.initializer:
        if tensor.data_type == half:
            tensor.CopyFrom(numpy_helper.from_array(_wide(tensor), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == half:
            value.type.tensor_type.elem_type = single
    for node in graph.node:
        for field in node.attribute:
            if field.name in ("to", "dtype") and field.i == half:
                field.i = single
            elif field.HasField("t") and field.t.data_type == half:
                field.t.CopyFrom(numpy_helper.from_array(_wide(field.t)))


def _wide(tensor: Any) -> npt.NDArray[np.float32]:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).astype(np.float32)


def parse_onnx(
    data: bytes,
    name: str,
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
    ends: Sequence[str] = (),
) -> RawFile:
    """The parts of a file; CompileError for one that is none, damaged, or cannot be used.

    ``shape`` replaces an open shape of the input. ``folder`` holds external data. ``ends``: the
    tensors with which the network ends, in place of the file's outputs.
    """
    model = load_onnx(data, name, folder, ends)
    graph = model.graph
    constants, faults = {}, {}
    for tensor in graph.initializer:
        constants[tensor.name], fault = _array(tensor)
        if fault:
            faults[tensor.name] = fault
    for sparse in graph.sparse_initializer:
        faults[sparse.values.name] = "sparse, expected a dense tensor"
    inputs = [v for v in graph.input if v.name not in constants]
    found = _inputs(inputs, shape, name, _weights(graph))
    batch = _batch(found, any(_of_signals(node, constants) for node in graph.node))
    outputs = [v.name for v in graph.output]
    return RawFile(
        _opset(model, name),
        _alive([_node(node, i) for i, node in enumerate(graph.node)], outputs),
        constants,
        faults,
        [_single(value, batch, name) for value in found],
        outputs,
        batch,
    )


def _end(model: Any, ends: Sequence[str], name: str) -> None:
    """Make tensors the outputs, and leave out nodes and inputs that none of them needs."""
    import onnx
    from onnx import helper

    graph = model.graph
    made = {tensor for node in graph.node for tensor in node.output if tensor}
    check_ends(ends, made, name)
    types = {v.name: v.type for v in (*graph.value_info, *graph.output)}
    if any(end not in types for end in ends):
        inferred = onnx.shape_inference.infer_shapes(model).graph
        types |= {v.name: v.type for v in (*inferred.value_info, *inferred.output)}
    kinds = [types[end].tensor_type.elem_type if end in types else 0 for end in ends]
    values = [
        helper.make_tensor_value_info(end, kind or onnx.TensorProto.FLOAT, None)
        for end, kind in zip(ends, kinds, strict=True)
    ]
    del graph.output[:]
    graph.output.extend(values)
    needed, kept = set(ends), []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            inner = [g for a in node.attribute for g in (a.g, *a.graphs)]
            needed |= {*node.input, *(t for g in inner for n in g.node for t in n.input)} - {""}
    inputs = [v for v in graph.input if v.name in needed]
    for field, values in ((graph.node, kept[::-1]), (graph.input, inputs)):
        del field[:]
        field.extend(values)


def _batch(found: list[RawInput], signals: bool) -> int:
    """Inferences at once: the first axis of maps, or of signals where the model has no maps."""
    for rank in (4, 3)[: 1 + signals]:
        if sizes := [value.shape[0] for value in found if len(value.shape) == rank]:
            return max(sizes)
    return 1


def _of_signals(node: Any, constants: dict[str, npt.NDArray]) -> bool:
    """Is it a convolution or pool along one axis?"""
    if not node.op_type.endswith(("Conv", "ConvTranspose", "Pool")):
        return False
    kernel = next((len(a.ints) for a in node.attribute if a.name == "kernel_shape"), 0)
    weights = [constants[name].ndim for name in node.input[1:] if name in constants]
    return kernel == 1 or (not kernel and weights[:1] == [3])


def _single(value: RawInput, batch: int, name: str) -> RawInput:
    """An input of one inference instead of a batch."""
    if batch == 1:
        return value
    if not value.shape or value.shape[0] != batch:
        what = f"input {value.name!r} is {value.shape}, another one has a batch of {batch}"
        raise CompileError(f"{what}; expected as many of each", where=name)
    return dataclasses.replace(value, shape=(1, *value.shape[1:]))


def _converted(model: Any, name: str) -> Any:
    """The model in the first opset that is read."""
    from onnx import version_converter

    resized = {n.output[0]: _scales(model, n) for n in model.graph.node if n.op_type in RESIZES}
    try:
        made = version_converter.convert_version(model, READ)
    except Exception as error:
        what = f"it cannot be brought from an older opset to {READ}: {_first(error)}"
        raise CompileError(what, where=name) from None
    for node in made.graph.node:
        if node.op_type == "Resize" and node.output[0] in resized:
            _place(node, resized[node.output[0]], name)
    return made


def _scales(model: Any, node: Any) -> list[float]:
    """The factors of a Resize or Upsample; none where they are computed."""
    from onnx import numpy_helper

    fields = {a.name: a for a in node.attribute}
    if "scales" in fields:
        return list(fields["scales"].floats)
    known = {t.name: t for t in model.graph.initializer}
    made = [n for n in model.graph.node if n.op_type == "Constant"]
    known |= {n.output[0]: a.t for n in made for a in n.attribute if a.name == "value"}
    given = known.get(node.input[1]) if len(node.input) > 1 else None
    data = np.zeros(0) if given is None else numpy_helper.to_array(given)
    return data.reshape(-1).tolist() if data.dtype.kind == "f" else []


def _place(node: Any, scales: list[float], name: str) -> None:
    """Write out the places and the rounding of pixels, which were the same for every node before
    opset 11; the converter leaves them out."""
    from onnx import helper

    smaller, larger = (any(s < 1 for s in scales), any(s > 1 for s in scales))
    mode = next((a.s for a in node.attribute if a.name == "mode"), b"nearest")
    if mode == b"nearest" and smaller and larger:
        what = f"scales {', '.join(f'{s:g}' for s in scales)}, expected none below 1 beside larger"
        raise CompileError(
            f"{what} ones before opset 11", node=node.name, operator="Resize", where=name
        )
    fields = {
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "ceil" if smaller else "floor",
    }
    node.attribute.extend(helper.make_attribute(k, v) for k, v in fields.items())


def _first(error: Exception) -> str:
    """What the checker's text says, without the context that it adds."""
    lines = str(error).partition("==>")[0].split()
    return " ".join(lines) or type(error).__name__


def _opset(model: Any, name: str) -> int:
    found = {entry.domain: entry.version for entry in model.opset_import}
    version = found.get("", found.get("ai.onnx"))
    if version is None:
        raise CompileError("it names no opset of ONNX, or is not all there", where=name)
    if not OPSETS[0] <= version <= OPSETS[1]:
        raise CompileError(f"opset {version}, expected {OPSETS[0]} to {OPSETS[1]}", where=name)
    return version


def _external(model: Any, name: str, folder: Path | None) -> None:
    """Put external data into the model: of initialisers, and of attributes of nodes."""
    from onnx import TensorProto, external_data_helper

    there = _tensors(model.graph), *(_in_nodes(f.node) for f in model.functions)
    outside = [t for t in itertools.chain(*there) if external_data_helper.uses_external_data(t)]
    if not outside:
        return
    where = {entry.key: entry.value for entry in outside[0].external_data}.get("location", "")
    try:
        if folder is None:
            raise FileNotFoundError
        for tensor in outside:
            external_data_helper.load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    except Exception as error:
        what = f"external data {where!r} of {outside[0].name!r}"
        why = "cannot be read" if isinstance(error, OSError) else _first(error)
        raise CompileError(f"{what}: {why}; expected beside the model", where=name) from None


def _tensors(graph: Any) -> Iterator[Any]:
    """All constants of a graph and of the graphs in it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_nodes(graph.node)


def _in_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    for field in itertools.chain(*(node.attribute for node in nodes)):
        yield from (field.t, *field.tensors)
        for graph in (field.g, *field.graphs):
            yield from _tensors(graph)


def _known(node: Any, functions: set[str], made: set[str], name: str) -> None:
    """Refuse what the checker would describe less well; ``made``: tensors that nodes write."""
    label = node.name or (node.output[0] if node.output else "")
    where = {"node": label, "operator": node.op_type, "where": name}
    if node.op_type in CONTROL and node.domain in ("", "ai.onnx"):
        what = ends_before("control flow, expected a graph without it", _made(node, made))
        raise CompileError(what, **where)
    if node.domain not in DOMAINS and node.op_type not in functions:
        what = f"a custom operator of the domain {node.domain!r}, expected one of ONNX's own"
        if node.domain == classical.DOMAIN:
            known = f"its {', '.join(classical.OPERATORS)}, or ONNX's own"
            what = f"an operator of the domain {node.domain!r}, expected {known}"
        raise CompileError(ends_before(what, _made(node, made)), **where)


def _made(node: Any, made: set[str]) -> list[str]:
    """The inputs of a node that other nodes write."""
    return [tensor for tensor in node.input if tensor in made]


def type_name(kind: int) -> str:
    """ONNX's name of a type, in small letters; of an unknown one its number."""
    from onnx import TensorProto

    known = kind in TensorProto.DataType.values()
    return TensorProto.DataType.Name(kind).lower() if known else f"type {kind}"


def _array(tensor: Any) -> tuple[npt.NDArray, str]:
    """(values, what is wrong with them)."""
    from onnx import numpy_helper

    kind = type_name(tensor.data_type)
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:
        return np.zeros(0), f"cannot be read: {_first(error)}"
    if array.dtype.kind not in "iufb" or kind in ("bfloat16", "float16"):
        return np.zeros(0), f"{kind}, expected float32, int8 or uint8"
    return array, ""


def _node(node: Any, number: int) -> RawNode:
    from onnx import helper

    label = node.name or (node.output[0] if node.output else "") or f"{node.op_type}{number}"
    fields = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    domain = "" if node.domain == "ai.onnx" else node.domain
    return RawNode(
        printable(label), node.op_type, domain, tuple(node.input), tuple(node.output), fields, node
    )


def _alive(nodes: list[RawNode], outputs: list[str]) -> list[RawNode]:
    """The nodes that an output of the model needs; a second result that nobody reads is left out,
    as the mask of a Dropout."""
    needed, found = set(outputs), []
    for node in reversed(nodes):
        if needed & set(node.outputs):
            first, *others = node.outputs
            given = (first, *(name if name in needed else "" for name in others))
            found.append(dataclasses.replace(node, outputs=given))
            needed |= set(node.inputs) - {""}  # what is left out
    return found[::-1]


def _weights(graph: Any) -> dict[str, Any]:
    """The nodes by the names of their weights, before quantisations and moves as well."""
    found: dict[str, Any] = {}
    for node in reversed(graph.node):
        if (at := WEIGHTS.get(node.op_type)) is not None and at < len(node.input):
            found[node.input[at]] = node
        elif node.op_type in CARRIERS and node.output[0] in found:
            found[node.input[0]] = found[node.output[0]]
    return found


def _inputs(
    values: list[Any], shape: Sequence[int] | None, name: str, weights: dict[str, Any]
) -> list[RawInput]:
    """The model's inputs with fixed sizes; an open batch is 1."""
    from onnx import helper

    found, used = [], False
    for value in values:
        kind = value.type.tensor_type
        if (node := weights.get(value.name)) is not None:
            what = f"weights {value.name!r} are an input of the model, expected a constant"
            raise CompileError(what, node=node.name, operator=node.op_type, where=name)
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            raise CompileError(f"input {value.name!r} is no tensor with a shape", where=name)
        try:
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        except Exception:
            dtype = type_name(kind.elem_type)
        if dtype == "object":
            raise CompileError(f"input {value.name!r} is of strings, expected numbers", where=name)
        # what is not above 0 is open: exporters write it so, too
        sizes = [max(d.dim_value, 0) if d.HasField("dim_value") else 0 for d in kind.shape.dim]
        words = "x".join(
            d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?")
            for d in kind.shape.dim
        )
        if shape is not None:
            # a batch that the file fixes may become 1; any other size that it has stays
            fits = len(shape) == len(sizes) and all(
                n in (0, m) or (i == 0 and m == 1)
                for i, (n, m) in enumerate(zip(sizes, shape, strict=True))
            )
            if not fits and len(values) == 1:
                asked = "x".join(map(str, shape))
                what = (
                    f"{option('shape', asked)} does not fit input {value.name!r}, which is {words}"
                )
                raise CompileError(what, where=name)
            if fits:
                sizes, used = [n or int(m) for n, m in zip(sizes, shape, strict=True)], True
        if sizes and sizes[0] == 0:
            sizes[0] = 1
        if len(sizes) > MOST_SHAPE or math.prod(sizes) > MOST_BYTES:
            what = f"input {value.name!r} is {'x'.join(map(str, sizes))}, expected at most"
            what += f" {MOST_SHAPE} sizes, and {MOST_BYTES} of their product"
            raise CompileError(what, where=name)
        if not all(sizes):
            hint = "x".join(str(n or "N") for n in sizes)
            dims = zip(sizes, kind.shape.dim, strict=True)
            zero = any(n == 0 and d.HasField("dim_value") and d.dim_value == 0 for n, d in dims)
            kind_of = (
                "with a size of 0, expected sizes of 1 or more;" if zero else "a dynamic shape;"
            )
            what = f"input {value.name!r} is {words}, {kind_of} {option('shape', hint)} fixes it"
            what += " where 0 stands for an open size" if zero else ""
            raise CompileError(what, where=name)
        found.append(RawInput(value.name, SHORT.get(dtype, dtype), tuple(sizes)))
    if not found:
        raise CompileError("the model has no input", where=name)
    if shape is not None and not used:
        asked = "x".join(map(str, shape))
        raise CompileError(f"{option('shape', asked)} fits none of the model's inputs", where=name)
    return found
