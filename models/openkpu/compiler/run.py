# SPDX-License-Identifier: Apache-2.0
"""A compiled network on the golden model, or on whatever runs its task lists."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form import reference
from openkpu.compiler.program import DevicePart, Program
from openkpu.network.network import Network

Maps = dict[int, npt.NDArray[np.uint8]]  # by layer; -1 is the result
# a task list and its input map (C, H, W) -> the result's bytes, and of layers with store_map theirs
Runner = Callable[[DevicePart, Network, npt.NDArray[np.uint8]], Maps]


def golden_maps(part: DevicePart, network: Network, x: npt.NDArray[np.uint8]) -> Maps:
    """On the golden model; all maps."""
    done = network.run(x)
    return {-1: done.y, **{i: layer.y for i, layer in enumerate(done.layers)}}


def run_program(
    program: Program, inputs: Mapping[str, npt.NDArray], runner: Runner = golden_maps
) -> dict[str, npt.NDArray]:
    """All tensors that are computed on the host or cross the bus, by name; outputs among them."""
    graph = program.graph
    values: dict[str, npt.NDArray] = {
        t.name: reference.held(t.data, t) for t in graph.tensors.values() if t.data is not None
    }
    for name in graph.inputs:
        values[name] = np.asarray(inputs[name])
    for part in program.parts:
        if not isinstance(part, DevicePart):
            for node in part.nodes:
                x = [values[n] for n in node.inputs]
                values[node.outputs[0]] = reference.compute(graph, node, x)
            continue
        maps = runner(
            part, bound(part, values), part.inputs[0].map_of(values[part.inputs[0].tensor])
        )
        for port in part.outputs:
            values[port.tensor] = port.tensor_of(maps)
    return values


def staged(program: Program, inputs: Mapping[str, npt.NDArray]) -> npt.NDArray[np.uint8]:
    """The input map (C, H, W) of the first task list, as the host writes it into storage."""
    found: list[npt.NDArray[np.uint8]] = []

    def first(part: DevicePart, network: Network, x: npt.NDArray[np.uint8]) -> Maps:
        found.append(x)
        raise StopIteration

    with contextlib.suppress(StopIteration):
        run_program(program, inputs, first)
    return found[0]


def bound(part: DevicePart, values: Mapping[str, npt.NDArray]) -> Network:
    """The task list with the maps of its further inputs and its given weights in storage."""
    more = {p.layer: p.map_of(values[p.tensor]) for p in part.inputs[1:]}
    weights = part.network.weights.copy() if part.weights else part.network.weights
    for given in part.weights:
        at = part.network.layers[given.layer].para_start_addr
        made = given.bytes_of(values[given.tensor], part.network.eight_bit)
        weights[at : at + made.size] = made
    loaded = {**part.network.loaded, **more}
    return dataclasses.replace(part.network, loaded=loaded, weights=weights)
