# SPDX-License-Identifier: Apache-2.0
"""Which weights stay in the AI RAM over the inferences of a stream, by the predicted cycles.

``keep_weights`` chooses for a network that is placed (docs/kpu.md 1.14); network/kept.py has what
the choice means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from openkpu.configs import Config
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network.kept import free_rows, kept_rows, size
from openkpu.network.network import Network
from openkpu.prediction import DeadlockError
from openkpu.prediction.cycles import LayerCycles
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_model import predict_network
from openkpu.prediction.cycles_shape import Shape

INFERENCES = 3  # that are predicted: the last one but one is the steady state


@dataclasses.dataclass(frozen=True)
class Gain:
    """What kept weights are worth: bytes and rows of the AI RAM that they take, predicted cycles of
    an inference in a stream without and with them."""

    bytes: int
    rows: int
    before: int
    after: int

    @property
    def saved(self) -> int:
        """Cycles of an inference."""
        return self.before - self.after


def steady(network: Network, config: Config) -> list[LayerCycles]:
    """Predicted layers of an inference in the steady state of a stream."""
    found = predict_network(config, network, inferences=INFERENCES).layers
    return found[-2 * len(network.layers) : -len(network.layers)]


def total(layers: Sequence[LayerCycles]) -> int:
    """Cycles of an inference."""
    return sum(layer.cycles for layer in layers)


def _predicted(network: Network, config: Config) -> list[LayerCycles]:
    """As ``steady``; empty where the prediction comes to a stop, and for products of float16 on a
    configuration that has none."""
    if not config.fp16_lanes and any(arg.fp16 for arg in network.layers):
        return []
    try:
        return steady(network, config)
    except DeadlockError:
        return []


def choose_kept(network: Network, config: Config, ram_rows: int) -> dict[int, int]:
    """Which layers' weights stay, and from which row on: those first for which the array waits
    most, then the largest, as far as there are free rows.

    None where all weights stay in the weight buffer, where the configuration keeps none or has no
    pooling tasks to put them in place, or where the prediction sees no gain.
    """
    shapes = [Shape(config, arg, network.eight_bit) for arg in network.layers]
    stay = Front(config, shapes, inferences=2).reuse
    if not (config.keep_weights and config.pool_lanes) or stay:
        return {}
    layers = _predicted(dataclasses.replace(network, kept={}), config)
    waits = {i: layers[i].parts["bus"] if layers else 0 for i in range(len(shapes))}
    free, kept = free_rows(network.layers, ram_rows), {}
    for number in sorted(waits, key=lambda i: (waits[i], size(network, i)), reverse=True):
        need = kept_rows(network, number)
        fits = [part for part in free if part[1] >= need > 0]
        if fits:
            part = min(fits, key=lambda part: part[1])
            free.remove(part)
            kept[number] = part[0]
            free.append((part[0] + need, part[1] - need))
    after = _predicted(dataclasses.replace(network, kept=kept), config)
    if layers and after and total(after) >= total(layers):
        return {}
    return kept


def keep_weights(network: Network, config: Config, ram_rows: int = AI_RAM_ROWS) -> None:
    """Let rows that a placed network leaves free keep weights on such a device: ``Network.kept``.

    ``ram_rows``: of the AI RAM, as ``Network.place`` had them.
    """
    network.kept = choose_kept(network, config, ram_rows)


def gain(network: Network, config: Config) -> Gain:
    """Bytes and cycles of the kept weights of a network, predicted."""
    plain = dataclasses.replace(network, kept={})
    before, after = (total(steady(n, config)) for n in (plain, network))
    numbers = network.kept
    return Gain(
        sum(size(network, i) for i in numbers),
        sum(kept_rows(network, i) for i in numbers),
        before,
        after,
    )
