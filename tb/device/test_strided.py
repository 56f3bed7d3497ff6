# SPDX-License-Identifier: Apache-2.0
"""Lists of tasks of all kinds that read lines of maps and leave rows between channel groups
(docs/kpu.md 1.15): every map against the golden model's, on both simulators."""

from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.generators.generate import Limits
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.network.network import NetworkError
from openkpu.prediction.cycles_model import predict_network
from tb.device.test_compiled import maps_of_the_rtl

pytestmark = pytest.mark.fixed  # the same with every seed
LISTS, NEAR = 3, 1.25


def lists(config: configs.Config, count: int) -> list[tuple[Any, np.ndarray]]:
    """Lists with at least four strided inputs and outputs each."""
    rng, found = np.random.default_rng(17), []
    while len(found) < count:
        kinds = [str(kind) for kind in rng.choice(KINDS, 16, p=(0.35, 0.05, 0.05, 0.3, 0.25))]
        shape = tuple(int(rng.integers(1, n)) for n in (9, 14, 70))
        limits = Limits(channels=10, size=16, dilation=config.dilation)
        try:
            network, image = random_list(
                rng, kinds, shape, limits=limits, ram_rows=config.ai_ram_rows, strides=0.6
            )
        except NetworkError:
            continue
        flags = [(arg.in_strided, arg.out_strided) for arg in network.layers]
        if min(np.sum(flags, axis=0)) >= 4:
            found.append((network, image))
    return found


@pytest.mark.check
@pytest.mark.parametrize(
    ("simulator", "name"), [("icarus", "nano"), ("verilator", "nano_fpga"), ("verilator", "k210")]
)
def test_lists(simulator: str, name: str) -> None:
    """Every map of every layer; what lies between is not touched, for later layers read it."""
    config = configs.load_config(name)
    for network, image in lists(config, LISTS):
        limit = int(50_000 + NEAR * predict_network(config, network).cycles)
        maps_of_the_rtl(simulator, config, network, image, limit)
