# SPDX-License-Identifier: Apache-2.0
"""Where the maps lie in storage that layers of a task list load and store (docs/kpu.md 1.13)."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import LayerArg
from openkpu.network import kept, relay
from openkpu.network.task_list import TaskList

LINE = 64  # bytes: a line of a cache, which no two parts share


class Moves(NamedTuple):
    """Layers with the addresses of their maps, and the maps, from one address on."""

    layers: list[LayerArg]
    maps: npt.NDArray[np.uint8]  # (n,) bytes
    stored: int  # offset in ``maps`` of the part with maps of layers
    constant: int  # of the part that nobody writes


class _Map(NamedTuple):
    layer: int
    field: str  # of its argument, which holds the address
    content: npt.NDArray[np.uint8]
    gap: int = 0  # bytes in front of the map


def place_moves(
    network: TaskList, at: int, align: int, given: Collection[int] | None = None
) -> Moves:
    """Place the maps from address ``at`` on, each at a multiple of ``align`` bytes.

    ``given``: layers whose loaded maps the host writes before a run.  With them the maps lie in
    three parts, each at a multiple of LINE: given, stored, constant.  With None all of them lie in
    the first part, in the order of the layers.
    """
    layers = kept.moved_weights(network)
    parts: tuple[list[_Map], ...] = ([], [], [])
    for i, arg in enumerate(layers):
        if arg.load_map and i not in network.relayed:
            part = 0 if given is None or i in given else 2
            parts[part].append(_Map(i, "map_load_addr", network.loaded[i].reshape(-1)))
        if arg.store_map:
            gap, content = relay.room(network, i, align)
            parts[0 if given is None else 1].append(_Map(i, "map_store_addr", content, gap))
    size, starts, blobs = 0, [], [np.zeros(0, np.uint8)]
    for part in parts:
        if part and given is not None:
            blobs.append(np.zeros(-(at + size) % LINE, np.uint8))
            size += blobs[-1].size
        starts.append(size)
        for one in part:
            layers[one.layer] = layers[one.layer].replace(**{one.field: at + size + one.gap})
            blobs.append(np.pad(one.content, (0, -one.content.size % align)))
            size += blobs[-1].size
    for i, (source, offset) in network.relayed.items():
        if layers[i].load_map:
            layers[i] = layers[i].replace(map_load_addr=layers[source].map_store_addr + offset)
    return Moves(layers, np.concatenate(blobs), starts[1], starts[2])
