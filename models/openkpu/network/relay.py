# SPDX-License-Identifier: Apache-2.0
"""Maps that a layer of a task list writes to storage and a later one reads (docs/kpu.md 1.13).

``Network.relayed`` names for a layer with ``load_map`` the layer that stored its map, and how many
bytes behind the first stored one the map begins.  That may be -GAP to -1: in front of what such a
layer stores lie GAP zeros, and zeros follow as far as a map reaches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.arithmetic.words import to_stored
from openkpu.layer.golden import LayerResult
from openkpu.layer.layout import map_bytes
from openkpu.network.task_list import TaskList

GAP = 16  # zeros in front
UNWRITTEN = 0xA5  # what the place of a stored map holds before


def relay_fault(network: TaskList, i: int) -> str | None:
    """What is wrong with the relayed map of layer ``i``; None: nothing."""
    source, offset = network.relayed[i]
    if not (0 <= source < i and network.layers[source].store_map):
        return f"its map comes from layer {source}, which stores none before"
    if offset < -GAP:
        return f"its map begins {-offset} bytes in front of the one of layer {source}, over {GAP}"
    return None


def map_of(network: TaskList, i: int, results: Sequence[LayerResult]) -> npt.NDArray[np.uint8]:
    """(C, H, W) bytes that layer ``i`` reads, from the results of the layers before."""
    source, offset = network.relayed[i]
    shape = network.layers[i].in_shape
    y = to_stored(results[source].y.view(np.uint8), bool(network.layers[source].out32))
    last = max(0, offset + map_bytes(shape) - y.size)
    return np.pad(y, (GAP, last))[GAP + offset :][: map_bytes(shape)].reshape(shape)


def room(network: TaskList, i: int, align: int) -> tuple[int, npt.NDArray[np.uint8]]:
    """(bytes in front of the map, all bytes) of the place in storage of layer ``i``'s map."""
    size = map_bytes(network.layers[i].out_shape)
    reach = [
        offset + map_bytes(network.layers[reader].in_shape)
        for reader, (source, offset) in network.relayed.items()
        if source == i
    ]
    gap = round_up(GAP, align) if reach else 0
    place = np.zeros(gap + max([size, *reach]), dtype=np.uint8)
    place[gap : gap + size] = UNWRITTEN
    return gap, place
