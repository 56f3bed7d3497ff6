# SPDX-License-Identifier: Apache-2.0
"""Dilated 3x3 layers on the device (docs/kpu.md 1.16): every byte of the golden model's map, and
the predicted cycles."""

import dataclasses

import numpy as np
import pytest

from openkpu import configs
from openkpu.configs import Config
from openkpu.generators.generate import random_layer
from openkpu.generators.generate_products import random_product
from openkpu.layer.vectors import VectorLayer
from openkpu.network.device_rules import check_network
from openkpu.network.network import Network, NetworkError
from tb.device.layers.test_paths import replay
from tb.device.layers.test_predicted import alone, contract

pytestmark = pytest.mark.fixed  # the same with every seed

# (lines, columns) by what is special: lines of 16, 32 and 64, stripes of several rows, maps of a
# stripe and a little more, smaller than the distance, of one pixel
SIZES = ((9, 13), (20, 16), (11, 29), (7, 64), (13, 40), (5, 70), (3, 135), (4, 3), (1, 1), (2, 65))


def draw(config: Config, seed: int, count: int) -> list[VectorLayer]:
    """Layers with each distance that the device has; depthwise ones, pools, sums of 32 bits, both
    widths of weights among them."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        far = 2 + number % (config.dilation - 1)
        high, wide = SIZES[int(rng.integers(0, len(SIZES)))]
        depthwise, pool = number % 4 == 3, int(rng.integers(1, 5)) if number % 3 == 2 else 0
        high, wide = (max(n, 4) if pool else n for n in (high, wide))
        c, o = (int(n) for n in rng.integers(1, 12 if wide > 64 else 24, 2))
        if number % 7 == 5:
            layer = random_product(rng, c=c, h=high, w=wide, o=o, kernel=3, dilation=far)
        else:
            layer = random_layer(
                rng,
                c=c,
                h=high,
                w=wide,
                o=c if depthwise else o,
                kernel=3,
                pool=pool,
                depthwise=depthwise,
                fc=False,
                dilation=far,
                eight_bit=bool(rng.random() < 0.7),
                case=f"by {far}, {number}",
            )
        found.append(layer)
    return found


@pytest.mark.parametrize(
    ("sim", "name", "most", "count"),
    [
        ("verilator", "small", 8, 42),
        pytest.param("icarus", "nano", 3, 6, marks=pytest.mark.nightly),
        pytest.param("verilator", "nano", 8, 42, marks=pytest.mark.nightly),
        pytest.param("verilator", "medium", 8, 70, marks=pytest.mark.nightly),
        pytest.param("verilator", "k210", 8, 70, marks=pytest.mark.check),
        pytest.param("verilator", "large", 8, 70, marks=pytest.mark.nightly),
    ],
)
def test_layers(sim: str, name: str, most: int, count: int) -> None:
    """Each alone, from the host."""
    config = dataclasses.replace(configs.load_config(name), dilation=most)
    layers = draw(config, most + count, count)
    assert {layer.arg.dilation for layer in layers} == set(range(2, most + 1))
    done = replay(config, layers, sim)
    cycles = [event["counters"]["total"] for event in done]
    names = [f"{layer.title} {layer.arg.in_shape} -> {layer.arg.out_shape}" for layer in layers]
    contract(names, alone(config, layers), cycles, alone=True)


def test_a_network_for_another_device() -> None:
    """One line says what is missing, before anything is built."""
    layer = random_layer(np.random.default_rng(1), c=2, h=4, w=9, o=3, kernel=3, pool=0, fc=False,
                         depthwise=False, dilation=4)  # fmt: skip
    network = Network.single(layer)
    config = configs.load_config("nano")
    for most, fits in ((1, False), (3, False), (4, True)):
        device = dataclasses.replace(config, dilation=most)
        if fits:
            check_network(network, device)
            continue
        said = f"layer 0: dilation 4, configuration nano has dilation = {most}"
        with pytest.raises(NetworkError, match=said):
            check_network(network, device)
