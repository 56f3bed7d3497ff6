# SPDX-License-Identifier: Apache-2.0
"""Program files, ``.okpu``: a compiled network as a zip archive.

``okpu.json`` holds the version, tensors, parts, ports and host nodes by name; ``arrays.npz`` their
arrays, by number; ``list<n>.npz`` the task list of each device part, as ``Network.save`` writes it.
Everything is checked on load: the archive's checksums, the version, every field, every task list.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.check import check_nodes, check_tensors
from openkpu.compiler.form.graph import Graph, Host, Move, Node, Table, Tensor
from openkpu.compiler.lowering.device import Given
from openkpu.compiler.lowering.lower import Report
from openkpu.compiler.program import DevicePart, HostPart, NodeRow, Port, Program
from openkpu.network.network import Network, NetworkError
from openkpu.terminal import printable

VERSION = 1
FORMAT = "okpu"
NAME, ARRAYS = "okpu.json", "arrays.npz"
HOSTED: dict[str, type[Node]] = {c.__name__: c for c in (Host, Move, Table)}
STAMP = (1980, 1, 1, 0, 0, 0)  # of every entry, so that a program has the same bytes each time
DAMAGE = (
    *(OSError, KeyError, ValueError, TypeError, EOFError, AttributeError, RuntimeError),
    *(IndexError, NotImplementedError, MemoryError, OverflowError, SyntaxError, RecursionError),
    *(zipfile.BadZipFile, zlib.error),
)


def is_program(data: bytes) -> bool:
    """Does a file begin as one, and name itself one?"""
    return data[:4] == b"PK\x03\x04" and NAME.encode() in data[:64]


# -------------------------------------------------------------------------- writing
class _Arrays:
    """Arrays by number."""

    def __init__(self) -> None:
        self.held: dict[str, npt.NDArray] = {}

    def add(self, array: npt.NDArray | None) -> str | None:
        if array is None:
            return None
        name = f"a{len(self.held)}"
        self.held[name] = np.array(array, order="C")  # of rank 0 as well
        return name


def dumps(program: Program) -> bytes:
    """The bytes of a program file."""
    arrays = _Arrays()
    used = {n for part in program.parts for n in _names(part)}
    used |= {*program.graph.inputs, *program.graph.outputs}
    parts, lists = [], []
    for part in program.parts:
        if isinstance(part, HostPart):
            parts.append({"host": [_node(node, arrays) for node in part.nodes]})
            continue
        stream = io.BytesIO()
        part.network.save(stream)
        lists.append(stream.getvalue())
        ports = {k: [_port(p, arrays) for p in getattr(part, k)] for k in ("inputs", "outputs")}
        parts.append({"list": len(lists) - 1, **ports, "nodes": part.nodes})
        if part.weights:
            parts[-1]["weights"] = [_given(g, arrays) for g in part.weights]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": program.graph.name,
        "source": program.source,
        "config": program.config,
        "inputs": program.graph.inputs,
        "outputs": program.graph.outputs,
        "tensors": [_tensor(t, arrays) for t in program.graph.tensors.values() if t.name in used],
        "parts": parts,
        "rows": [dataclasses.asdict(row) for row in program.rows],
        **({"pictures": program.pictures} if program.pictures else {}),
        "reports": {name: dataclasses.asdict(r) for name, r in program.reports.items()},
    }
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays.held)
    entries = {NAME: json.dumps(content, indent=1).encode(), ARRAYS: packed.getvalue()}
    entries |= {f"list{i}.npz": data for i, data in enumerate(lists)}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in entries.items():
            kind = zipfile.ZIP_DEFLATED if name == NAME else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name, STAMP), data, kind)
    return stream.getvalue()


def _names(part: DevicePart | HostPart) -> list[str]:
    if isinstance(part, DevicePart):
        return [p.tensor for p in (*part.inputs, *part.outputs, *part.weights)]
    return [n for node in part.nodes for n in (*node.inputs, *node.outputs)]


def _tensor(tensor: Tensor, arrays: _Arrays) -> dict[str, Any]:
    fields = {**vars(tensor), "data": arrays.add(tensor.data), "shape": list(tensor.shape)}
    # as text, for JSON's floats are read back by other tools as they like
    return fields | {"scale": None if tensor.scale is None else float(tensor.scale).hex()}


def _port(port: Port, arrays: _Arrays) -> dict[str, Any]:
    return {**vars(port), "where": arrays.add(port.where), "shape": list(port.shape)}


def _given(given: Given, arrays: _Arrays) -> dict[str, Any]:
    return {**vars(given), "where": arrays.add(given.where)}


def _node(node: Node, arrays: _Arrays) -> dict[str, Any]:
    fields = {
        name: arrays.add(value) if isinstance(value, np.ndarray) else value
        for name, value in vars(node).items()
    }
    return {"kind": type(node).__name__, **fields}


# -------------------------------------------------------------------------- reading
def load_okpu(path: str | Path) -> Program:
    """Read a program file; CompileError with one line for anything else."""
    return loads_okpu(files.read_bytes(path, CompileError), str(path))


def loads_okpu(data: bytes, name: str) -> Program:
    """The program of a file's bytes; CompileError for what is none, damaged, or of another
    version."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files.check_unpacked(name, archive, CompileError)
            if archive.testzip() is not None:
                raise ValueError("an entry's checksum is wrong")
            content = json.loads(archive.read(NAME))
            if content["format"] != FORMAT or content["version"] != VERSION:
                raise CompileError(
                    f"program file of version {content['version']}, expected {VERSION}", where=name
                )
            with np.load(io.BytesIO(archive.read(ARRAYS)), allow_pickle=False) as held:
                files.check_unpacked(name, held.zip, CompileError)
                arrays = {key: held[key] for key in held.files}
            lists = {
                i: Network.parse(archive.read(f"list{i}.npz"), name)
                for i in {p["list"] for p in content["parts"] if "list" in p}
            }
        return _program(content, arrays, lists)
    except NetworkError as error:
        raise CompileError(str(error)) from None
    except CompileError as error:
        raise (error if error.where == name else error.within(name)) from None
    except DAMAGE as error:
        what = f"a damaged program file, or none: {files.said(error)}"
        raise CompileError(what, where=name) from None


def _program(
    content: dict[str, Any], arrays: dict[str, npt.NDArray], lists: dict[int, Network]
) -> Program:
    graph = Graph(str(content["name"]))
    for fields in content["tensors"]:
        scale, data = fields["scale"], fields["data"]
        made = Tensor(**fields)
        made.shape = tuple(int(n) for n in fields["shape"])
        made.scale = None if scale is None else float.fromhex(scale)
        made.data = None if data is None else arrays[data]
        graph.add_tensor(made)
    graph.inputs, graph.outputs = list(content["inputs"]), list(content["outputs"])
    check_tensors(graph)
    parts: list[DevicePart | HostPart] = []
    for fields in content["parts"]:
        if "host" in fields:
            nodes = [_read_node(node, arrays) for node in fields["host"]]
            check_nodes(graph, nodes)
            graph.nodes += nodes
            parts.append(HostPart(nodes))
            continue
        network = lists[fields["list"]]
        inputs, outputs = (
            [_read_port(p, arrays, graph, network) for p in fields[k]]
            for k in ("inputs", "outputs")
        )
        if not all(port.layers for port in outputs):
            raise ValueError("an output that no layer stores")
        if not inputs or inputs[0].shape != network.in_shape or not outputs:
            raise ValueError("ports that are not those of the task list")
        weights = [_read_given(g, arrays, graph, network) for g in fields.get("weights", [])]
        nodes = [printable(n) for n in fields["nodes"]]
        parts.append(DevicePart(network, inputs, outputs, nodes, weights))
    reports = {printable(name): Report(**fields) for name, fields in content["reports"].items()}
    rows = [NodeRow(**fields) for fields in content["rows"]]
    for row in rows:
        row.name, row.operator = printable(row.name), printable(row.operator)
    taken = _pictures(content.get("pictures", {}))
    return Program(graph, parts, reports, content["config"], content["source"], rows, taken)


def _pictures(fields: dict[str, Any]) -> dict[str, Any]:
    """How pictures become numbers, as ``Program.pictures``; ValueError for anything else."""
    if not fields:
        return {}
    found: dict[str, Any] = {"bgr": bool(fields["bgr"])}
    for name in ("mean", "scale"):
        given = fields[name]
        found[name] = None if given is None else [float(number) for number in given]
        if not np.isfinite(found[name] or [0.0]).all():
            raise ValueError(f"{name} of pictures that is no number")
    return found


def _read_node(fields: dict[str, Any], arrays: dict[str, npt.NDArray]) -> Node:
    kind = HOSTED[fields.pop("kind")]
    for field in dataclasses.fields(kind):
        if isinstance(fields.get(field.name), list):
            fields[field.name] = tuple(fields[field.name])
    for name in ("table", "gain", "offset", "lines", "columns"):
        if fields.get(name) is not None:
            fields[name] = arrays[fields[name]]
    return kind(**fields)


def _read_given(
    fields: dict[str, Any], arrays: dict[str, npt.NDArray], graph: Graph, network: Network
) -> Given:
    given = Given(**{**fields, "where": arrays[fields["where"]]})
    if given.where.shape != graph.tensors[given.tensor].shape or given.where.dtype.kind != "i":
        raise ValueError(f"weights {given.tensor!r}: places of another shape")
    if not 0 <= given.layer < len(network.layers):
        raise ValueError(f"weights {given.tensor!r}: a layer that is not there")
    size = network.layers[given.layer].weight_count
    if given.size != size or not -1 <= given.where.min() <= given.where.max() < size:
        raise ValueError(f"weights {given.tensor!r}: places beyond {size} weights")
    return given


def _read_port(
    fields: dict[str, Any], arrays: dict[str, npt.NDArray], graph: Graph, network: Network
) -> Port:
    made: dict[str, Any] = {**fields, "where": arrays[fields["where"]]}
    port = Port(**{**made, "shape": tuple(fields["shape"])})
    tensor = graph.tensors[port.tensor]
    most = int(np.prod(port.shape))
    if port.where.shape != tensor.shape or port.where.dtype.kind != "i":
        raise ValueError(f"port of {port.tensor!r}: places of another shape")
    # of lines that another port of the tensor has the place is -1
    if (
        port.where.min(initial=0) < (-1 if port.layers == [] else 0)
        or port.where.max(initial=0) >= most
    ):
        raise ValueError(f"port of {port.tensor!r}: a place outside of its map")
    count = len(network.layers)
    if not all(-1 <= i < count for i in (port.layer, *port.layers)):
        raise ValueError(f"port of {port.tensor!r}: a layer that is not there")
    sizes = [int(np.prod(network.layers[i].out_shape)) for i in port.layers]
    if sizes and sum(sizes) != most:
        raise ValueError(f"port of {port.tensor!r}: maps of {sum(sizes)} bytes, expected {most}")
    return port
