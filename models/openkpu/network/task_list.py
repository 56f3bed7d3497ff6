# SPDX-License-Identifier: Apache-2.0
"""What a network consists of: the layers of a task list, their tables, their maps and weights."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import LayerArg


class NetworkError(ValueError):
    """A network image that cannot be used."""


@dataclasses.dataclass
class TaskList:
    """Layers with their tables, and where their maps and weights are."""

    layers: list[LayerArg] = dataclasses.field(default_factory=list)
    weights: npt.NDArray[np.uint8] = dataclasses.field(
        default_factory=lambda: np.zeros(0, dtype=np.uint8)
    )
    biases: npt.NDArray[np.uint8] = dataclasses.field(
        default_factory=lambda: np.zeros(0, dtype=np.uint8)
    )
    eight_bit: bool = True
    # of element-wise layers with two maps, by layer: the layer whose output is the second map, -1
    # for the network's input; what is not named stays where its address says
    seconds: dict[int, int] = dataclasses.field(default_factory=dict)
    # maps (C, H, W) that layers read from storage (load_map), by layer; the addresses of these, and
    # of the maps that layers write there (store_map), are those of ``storage``
    loaded: dict[int, npt.NDArray[np.uint8]] = dataclasses.field(default_factory=dict)
    # of the others with load_map: the earlier layer that stored the map, and the byte of that at
    # which the map begins (``relay``)
    relayed: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
    # layers whose weights stay in the AI RAM, and the first row of each (docs/kpu.md 1.14)
    kept: dict[int, int] = dataclasses.field(default_factory=dict)
    # layers that read a part of the map that lies at their address (``network_rules``)
    narrow: set[int] = dataclasses.field(default_factory=set)

    @property
    def in_shape(self) -> tuple[int, int, int]:
        if self.layers:
            return self.layers[0].in_shape
        raise NetworkError("0 layers, expected at least one")

    @property
    def out_shape(self) -> tuple[int, int, int]:
        return self.layers[-1].out_shape

    @property
    def words(self) -> bool:
        """Does the result leave as 32-bit words (out32)?"""
        return bool(self.layers[-1].out32)
