# SPDX-License-Identifier: Apache-2.0
"""What is exported: the one task list of a model, and how its tensors become maps.

A model that the compiler reads, a program file, a kmodel, or a network image.  Nodes for the host
in front of the list that only change places go into the table of the input; others in front of it
and those behind it are named and left to the firmware.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu import digits, files, kmodel
from openkpu.arithmetic.words import BYTES
from openkpu.compiler import data
from openkpu.compiler.errors import FloatModelError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Move, Node
from openkpu.compiler.program import DevicePart, HostPart, Port, Program
from openkpu.compiler.source import is_ours, read_program
from openkpu.configs import Config
from openkpu.export.image import NOWHERE, ExportError, Tensor
from openkpu.export.kmodel_list import of_kmodel
from openkpu.network import device_rules
from openkpu.network.network import MOST_LAYERS, Network, NetworkError
from openkpu.words import option

DIGITS = "digits"  # the network that comes with the project
ELEMENT = 1 << 32  # of a tensor whose values are the places of its elements


@dataclasses.dataclass
class Source:
    """A task list and its tensors."""

    network: Network
    tensors: list[Tensor]
    before: list[str] = dataclasses.field(default_factory=list)  # nodes left to the firmware
    after: list[str] = dataclasses.field(default_factory=list)
    name: str = ""


def read_export_model(path: str, config: Config) -> Source:
    """Read a model that a device of the configuration runs.

    ExportError, CompileError, KmodelError or NetworkError with one line that names the model.
    """
    if path == DIGITS:
        found = of_network(digits.load_network(config.ai_ram_rows))
    elif Path(path).suffix.lower() == ".npz":
        found = of_network(Network.load(path))
    elif is_ours(path):
        try:
            program = read_program(path, config, one_list=True)
        except FloatModelError as error:
            what = "a float model, expected a quantised one, or the .okpu file that compile makes"
            how = option("calibration", "folder of pictures, x.npy or x.npz")
            raise ExportError(f"{error.where}: {what} of it with {how}") from None
        found = of_program(program, path)
    else:
        content = files.read_bytes(path, ExportError)
        program = kmodel.loads_kmodel(content, Path(path).name)
        network, tensors, before, after = of_kmodel(program, content, config)
        found = Source(network, tensors, before, after)
    found.name = Path(path).stem
    try:
        device_rules.check_network(found.network, config)
    except NetworkError as error:
        raise ExportError(f"{path}: {error}") from None
    return found


def of_network(network: Network) -> Source:
    """A task list whose input and result are maps (C, H, W), with out32 words (O, H, W)."""
    signs = network.layers[0].signed_in, network.layers[-1].signed_out
    kinds = ["int8" if sign else "uint8" for sign in signs]
    shape = network.out_shape
    if network.words:
        shape, kinds[1] = (shape[0] // BYTES, *shape[1:]), "int32"
    ins = Tensor("input", False, network.in_shape, kinds[0])
    return Source(network, [ins, Tensor("result", True, shape, kinds[1])])


def of_program(program: Program, path: str) -> Source:
    """The device's part of a compiled model; ExportError unless there is exactly one."""
    parts = program.device_parts
    if len(parts) != 1:
        between = [
            n for part in program.parts[1:-1] if isinstance(part, HostPart) for n in part.nodes
        ]
        names = ", ".join(_named(node) for node in between)
        why = (
            f"between them the host computes {names}"
            if names
            else f"one has at most {MOST_LAYERS:,} layers, the model takes {program.layers:,} with"
            f" the AI RAM of {program.config}"
        )
        raise ExportError(f"{path}: {len(parts)} task lists, expected one; {why}")
    (part,) = parts
    at = program.parts.index(part)
    front = [n for p in program.parts[:at] if isinstance(p, HostPart) for n in p.nodes]
    back = [n for p in program.parts[at + 1 :] if isinstance(p, HostPart) for n in p.nodes]
    tensors, before = _inputs(program, part, front)
    tensors += [_output(program, port, part, path) for port in part.outputs]
    more = {p.layer: np.full(p.shape, p.zero, np.uint8) for p in part.inputs[1:]}
    network = dataclasses.replace(part.network, loaded={**part.network.loaded, **more})
    return Source(network, tensors, before, [_named(node) for node in back])


def _named(node: Node) -> str:
    what = node.describe()
    return f"{node.name} ({what})" if what else node.name


def _inputs(
    program: Program, part: DevicePart, front: list[Node]
) -> tuple[list[Tensor], list[str]]:
    """Inputs of the list; nodes in front of it that are left."""
    graph = program.graph
    values: dict[str, npt.NDArray] = {
        t.name: t.data for t in graph.tensors.values() if t.data is not None
    }
    names = graph.inputs
    left = [] if len(names) == 1 and all(isinstance(n, Move) for n in front) else front
    if not left:
        for name in names:
            values[name] = _order(program, name) + ELEMENT
        for node in front:
            x = [values[n] for n in node.inputs]
            values[node.outputs[0]] = reference.compute(graph, node, x)
    found = []
    for port in part.inputs:
        source = port.tensor if left or len(names) > 1 else names[0]
        order = _order(program, port.tensor) + ELEMENT if left else values[port.tensor]
        tensor = graph.tensors[source]
        found.append(
            Tensor(
                *(source, False, data.model_shape(tensor), tensor.dtype, port.layer),
                *(port.offset, port.zero, _gather(port, order), tensor.scale, tensor.zero),
            )
        )
    return found, [_named(node) for node in left]


def _order(program: Program, name: str) -> npt.NDArray[np.int64]:
    """For each element of a tensor in the graph's order its number in the model's."""
    tensor = program.graph.tensors[name]
    numbers = np.arange(int(np.prod(tensor.shape)), dtype=np.int64)
    numbers = numbers.reshape(data.model_shape(tensor))
    if tensor.layout == "NHWC" and numbers.ndim == 4:
        numbers = numbers.transpose(data.TO_NCHW)
    return np.ascontiguousarray(numbers)


def _gather(port: Port, order: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32] | None:
    """For each byte of an input map the element that it holds; None: in order."""
    found = np.full(int(np.prod(port.shape)), NOWHERE, dtype=np.uint32)
    where = port.where.reshape(-1)
    held = where >= 0  # a layer that steps over pixels has a map without them
    flat, where = order.reshape(-1)[held], where[held]
    constant = flat < ELEMENT // 2
    if ((flat[constant] + port.offset) % 256 != port.zero).any():
        raise ExportError(
            f"input {port.tensor!r}: elements that are neither the input's nor padding"
        )
    found[where] = np.where(constant, NOWHERE, flat - ELEMENT)
    return None if np.array_equal(found, np.arange(found.size)) else found


def _output(program: Program, port: Port, part: DevicePart, path: str) -> Tensor:
    """An output: its map, and the place in it of each element in the model's order."""
    tensor = program.graph.tensors[port.tensor]
    if len(port.layers) != 1:
        what = f"stored by {len(port.layers)} layers, expected one map"
        if len({part.nodes[number] for number in port.layers}) == 1:
            what += f": it is computed in bands, for the AI RAM of {program.config}"
        raise ExportError(f"{path}: output {port.tensor!r}: {what}")
    places = np.zeros(int(np.prod(tensor.shape)), dtype=np.uint32)
    places[_order(program, port.tensor).reshape(-1)] = port.where.reshape(-1)
    same = np.array_equal(places, np.arange(places.size)) and places.size == np.prod(port.shape)
    return Tensor(
        *(port.tensor, True, data.model_shape(tensor), tensor.dtype, port.layers[0]),
        *(port.offset, port.zero, None if same else places, tensor.scale, tensor.zero),
    )
