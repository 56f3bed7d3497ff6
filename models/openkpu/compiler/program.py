# SPDX-License-Identifier: Apache-2.0
"""A compiled network: parts for the device and for the host, and what goes in and comes out.

A device part is a task list (``Network``).  The host puts its input map into storage, each element
of a tensor at its place, and the maps of further tensors, which layers load; it reads the result
and maps that layers stored.  A host part is a list of nodes, computed by ``reference``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Graph, Node, Tensor
from openkpu.compiler.lowering.device import Given
from openkpu.compiler.lowering.lower import Report
from openkpu.network.network import Network


@dataclasses.dataclass
class Port:
    """A tensor that goes into a device part, or comes out of it."""

    tensor: str
    shape: tuple[int, int, int]  # of the map
    # of the tensor's shape: places in the map; -1 of an input: in the map of another port
    where: npt.NDArray[np.int64]
    offset: int  # stored byte less integer
    zero: int  # byte of what lies between
    layer: int = -1  # that loads it; -1: it is the part's input map
    # of an output: the layers that store it, each some of its channels; -1: the part's result
    layers: list[int] = dataclasses.field(default_factory=list)

    def map_of(self, values: npt.NDArray) -> npt.NDArray[np.uint8]:
        """The bytes of the map (C, H, W)."""
        flat = np.full(int(np.prod(self.shape)), self.zero, dtype=np.uint8)
        where = self.where.reshape(-1)
        stored = (np.asarray(values) + self.offset).reshape(-1)
        flat[where[where >= 0]] = stored[where >= 0]
        return flat.reshape(self.shape)

    def tensor_of(self, maps: Mapping[int, npt.NDArray]) -> npt.NDArray[np.int64]:
        """The tensor's integers from the maps (C, H, W) of its layers."""
        parts = [np.ascontiguousarray(maps[i]).view(np.uint8).reshape(-1) for i in self.layers]
        return np.concatenate(parts).astype(np.int64)[self.where] - self.offset


@dataclasses.dataclass
class DevicePart:
    """A task list."""

    network: Network
    inputs: list[Port]  # the first one is the list's input map
    outputs: list[Port]
    nodes: list[str]  # of each layer the node that it belongs to
    weights: list[Given] = dataclasses.field(default_factory=list)  # that the host writes
    # tensors that are the output map of one layer, for who compares nodes; not in program files
    taps: list[Port] = dataclasses.field(default_factory=list)
    # where it is computed in bands: the list that 2 MiB of AI RAM allow; not in program files
    whole: Network | None = None


@dataclasses.dataclass
class HostPart:
    """Nodes for the processor."""

    nodes: list[Node]


@dataclasses.dataclass
class NodeRow:
    """A node of the graph, for reports."""

    name: str
    operator: str
    what: str  # its kind and parameters
    inputs: list[str]
    outputs: list[str]
    shape: list[int]  # of its first output
    macs: int  # multiplications that its definition has


@dataclasses.dataclass
class Program:
    """A compiled network."""

    graph: Graph  # after all passes; tensors, constants, scales, inputs and outputs
    parts: list[DevicePart | HostPart]
    reports: dict[str, Report]  # by node
    config: str  # the configuration for which ways were chosen
    source: str = ""  # the model's file
    rows: list[NodeRow] = dataclasses.field(default_factory=list)
    # mean, scale (lists of numbers, or None), bgr of the pictures that calibrated it; empty: none
    pictures: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def device_parts(self) -> list[DevicePart]:
        return [part for part in self.parts if isinstance(part, DevicePart)]

    @property
    def layers(self) -> int:
        return sum(len(part.network.layers) for part in self.device_parts)

    @property
    def inputs(self) -> list[Tensor]:
        return [self.graph.tensors[name] for name in self.graph.inputs]

    @property
    def outputs(self) -> list[Tensor]:
        return [self.graph.tensors[name] for name in self.graph.outputs]
