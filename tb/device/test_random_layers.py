# SPDX-License-Identifier: Apache-2.0
"""Random layers on the whole device: shapes that vectors do not have, extensions, ring wrap."""

import os
from typing import Any

import numpy as np
import pytest

from models import configs
from models.generate import Limits, random_layer
from models.layer import LayerError
from models.vectors import VectorLayer
from tb.device import launch

STORAGE = 1 << 18  # bytes; the default depth, so that other tests share the build
RECOMPUTED = (8, 9)  # pools whose stripes overlap: the array does some pixels twice
Choice = dict[str, Any]


def shapes(rng: np.random.Generator) -> Choice:
    """Arguments of one random layer, each kind stressing another part of the device."""
    n = lambda least, most: int(rng.integers(least, most))  # noqa: E731
    kinds: list[Choice] = [
        {},
        {"w": n(65, 400), "h": n(1, 9), "c": n(1, 6), "o": n(1, 9)},
        {"depthwise": True, "w": n(1, 300), "h": n(1, 20), "c": n(1, 20)},
        {"fc": True, "c": n(1, 20), "h": n(1, 8), "w": n(1, 80), "o": n(1, 12)},
        {"kernel": 1, "c": n(100, 400), "o": n(1, 60), "h": n(1, 10), "w": n(1, 30)},
        {"kernel": 3, "c": n(40, 130), "o": n(1, 40), "h": n(1, 10), "w": n(1, 20)},
        {"depthwise": True, "pool": n(0, 10), "w": n(4, 100), "h": n(4, 20), "c": n(1, 40)},
        {"pool": 5 + n(0, 3), "w": n(4, 300), "h": n(4, 20), "c": n(1, 12), "o": n(1, 12)},
        {"pool": 8 + n(0, 2), "w": n(1, 150), "h": n(1, 20), "c": n(1, 12), "o": n(1, 12)},
    ]
    choice = kinds[n(0, len(kinds))]
    if choice.get("kernel"):
        choice["depthwise"] = False
    return choice


def draw(seed: int, count: int) -> list[VectorLayer]:
    """Random legal layers; draws that leave nothing of a map are drawn again."""
    rng = np.random.default_rng(seed)
    layers: list[VectorLayer] = []
    while len(layers) < count:
        name = f"L{len(layers):02d}"
        try:
            layers.append(
                random_layer(rng, limits=Limits(), case=f"seed{seed}", name=name, **shapes(rng))
            )
        except LayerError:
            continue
    return layers


def check(sim: str, config: str, layers: list[VectorLayer], seed: int) -> None:
    """Run the layers one after the other; bytes and counters must agree with the golden model."""
    wrong: list[str] = []
    seen: list[int] = []

    def hear(event: dict[str, Any]) -> None:
        if event["event"] != "layer":
            return
        layer, counters = layers[event["index"]], event["counters"]
        seen.append(event["index"])
        good = not event["failure"] and event["mismatching_bytes"] == 0
        if good:
            parts = counters["array_busy"] + sum(
                v for k, v in counters.items() if k.startswith("stall_")
            )
            good = counters["total"] == parts
        if good and layer.arg.pool_type not in RECOMPUTED:
            good = (counters["macs_issued"], counters["macs_gated"]) == (
                event["macs"],
                event["macs_gated"],
            )
        if not good:
            wrong.append(f"{layer.title} {layer.arg}: {event}")

    limits = [200_000 + 50 * layer.x.size * layer.arg.o_ch_num for layer in layers]
    launch.run_job(
        sim,
        configs.load(config),
        {"kind": "vectors", "layers": layers, "limits": limits},
        hear,
        storage_bytes=STORAGE,
        seed=seed,
    )
    assert seen == list(range(len(layers)))
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("config", ["nano", "small"])
def test_random_layers(config: str) -> None:
    seed = int(os.environ.get("SEED", "1"))
    print(f"seed {seed}")
    check("verilator", config, draw(seed, 80), seed)


def test_vector_of_a_hundred_thousand() -> None:
    """The sum of pixels of a fully connected layer outgrows that of a convolution."""
    rng = np.random.default_rng(3)
    layer = random_layer(rng, fc=True, eight_bit=True, c=387, h=9, w=28, o=2, case="fc", name="w")
    check("verilator", "nano", [layer], 3)
