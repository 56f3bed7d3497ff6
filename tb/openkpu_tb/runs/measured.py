# SPDX-License-Identifier: Apache-2.0
"""Cycles of the RTL on Verilator, for predictions to be compared with; SimError when it fails."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from openkpu.configs import Config
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network, alignment
from openkpu.prediction.spare import rows_of_network
from openkpu_tb.runs import launch, random_cases
from openkpu_tb.runs.requests import NetworkRequest, VectorsRequest

LIMIT = 20_000_000  # cycles of a layer or an inference


def random_layers(config: Config, seed: int, count: int) -> list[VectorLayer]:
    """Layers of all kinds that the configuration supports."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        layer = random_cases.draw_layer(rng, random_cases.shapes)
        fits = layer.arg.weight_rows(config.n_z) <= config.wbuf_rows
        found += [layer] if fits and (layer.eight_bit or config.weight_bits == 16) else []
    return found


def cycles_alone(config: Config, layers: Sequence[VectorLayer]) -> list[int]:
    """Of layers that the host starts one by one."""
    events: list[dict[str, Any]] = []
    request = VectorsRequest([*layers], [LIMIT] * len(layers))
    launch.run_job("verilator", config, request, events.append)
    ended = [event for event in events if event["event"] == "layer"]
    assert all(event["failure"] is None for event in ended), ended
    return [event["counters"]["total"] for event in ended]


def cycles_of_network(config: Config, network: Network) -> tuple[list[int], int]:
    """Of the layers of an inference, and of the whole."""
    events: list[dict[str, Any]] = []
    images = np.random.default_rng(1).integers(0, 256, (1, *network.in_shape), dtype=np.uint8)
    request = NetworkRequest(
        network, images, LIMIT, alignment(config), rows_of_network(config, network)
    )
    launch.run_job("verilator", config, request, events.append)
    (image,) = [event for event in events if event["event"] == "image"]
    assert image["failure"] is None, image
    return [layer["counters"]["total"] for layer in image["layers"]], image["inference"]["total"]
