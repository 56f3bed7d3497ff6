# SPDX-License-Identifier: Apache-2.0
"""What the host puts into storage and reads there where a map goes or comes in bands."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from openkpu.compiler.bands.chains import Range
from openkpu.compiler.lowering.device import Shape, Spec
from openkpu.compiler.program import Port
from openkpu.network.network import Network


class Piece(NamedTuple):
    """What a layer of a list leaves of a result in storage."""

    layer: int
    lines: Range
    channel: int  # the first of the result's in the map that it stores
    channels: int  # of that map


def band_inputs(specs: list[Spec], ports: list[Port]) -> list[Port]:
    """A port for each layer that loads a tensor, or lines of one; the list's own input first."""
    named, found = {port.tensor: port for port in ports}, []
    for number, spec in enumerate(specs):
        if spec.loads:
            port = named[spec.loads]
            whole = spec.lines is None or spec.lines == (0, port.shape[1])
            made = port if whole else _lines(port, spec.lines or (0, 0))
            found.append(dataclasses.replace(made, layer=number or -1))
    return found


def given_room(network: Network, specs: list[Spec], staged: list[Port]) -> list[Port]:
    """The ports of ``band_inputs``; the list ``network`` of the layers gets an empty map uint8
    (C, H, W) for each that a layer loads (docs/compiler.md 7)."""
    inputs = band_inputs(specs, staged)
    for port in inputs[1:]:
        network.loaded[port.layer] = np.full(port.shape, port.zero, np.uint8)
    return inputs


def _lines(port: Port, lines: Range) -> Port:
    """Some lines of the map; elements that lie elsewhere have the place -1."""
    (c, height, width), (first, behind) = port.shape, lines
    channel, rest = np.divmod(port.where, height * width)
    line, column = np.divmod(rest, width)
    at = (channel * (behind - first) + line - first) * width + column
    there = (line >= first) & (line < behind)
    shape = c, behind - first, width
    return dataclasses.replace(port, shape=shape, where=np.where(there, at, -1))


def results(port: Port, writers: list[tuple[Shape, list[Piece]]], last: int) -> Port:
    """A result whose map is made by ``writers``: for each its shape, and the pieces in which lines
    of it are stored, by themselves or among others; layer ``last`` is the list's last one."""
    starts: dict[int, int] = {}  # of each layer's bytes
    layers: list[int] = []
    places, at = [], 0
    for (c, height, width), pieces in writers:
        place = np.empty((c, height, width), np.int64)
        for number, (first, behind), channel, channels in pieces:
            shape = channels, behind - first, width
            if number not in starts:
                starts[number], at = at, at + int(np.prod(shape))
                layers.append(-1 if number == last else number)
            there = starts[number] + np.arange(np.prod(shape)).reshape(shape)
            place[:, first:behind] = there[channel : channel + c]
        places.append(place.reshape(-1))
    return dataclasses.replace(port, where=np.concatenate(places)[port.where], layers=layers)
