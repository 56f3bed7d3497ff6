# SPDX-License-Identifier: Apache-2.0
"""Random layers and networks for the whole device, drawn from a seed."""

from typing import Any

import numpy as np

from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import on_map, random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import on_maps, random_elementwise
from openkpu.layer.argument import LayerError
from openkpu.layer.layout import Layout
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network
from openkpu.prediction.roofline import network_cycles
from openkpu_tb.runs.requests import RandomCase

SLACK = 50_000  # cycles of an inference besides a multiple of its roofline
TIMES = 60
IMAGES = 3  # of a stream: the third is the second whose weights may have been kept
Choice = dict[str, Any]
SPECIAL = {"elementwise": random_elementwise, "pooling": random_pool, "product": random_product}


def shapes(rng: np.random.Generator) -> Choice:
    """Arguments of one random layer, each kind stressing another part of the device."""
    n = lambda least, most: int(rng.integers(least, most))  # noqa: E731
    kinds: list[Choice] = [
        {},
        {"w": n(65, 400), "h": n(1, 9), "c": n(1, 6), "o": n(1, 9)},
        {"depthwise": True, "w": n(1, 300), "h": n(1, 20), "c": n(1, 20)},
        {"fc": True, "c": n(1, 20), "h": n(1, 8), "w": n(1, 80), "o": n(1, 12)},
        {"kernel": 1, "c": n(100, 400), "o": n(1, 60), "h": n(1, 10), "w": n(1, 30)},
        {"kernel": 1, "pool": 0, "c": n(1, 60), "o": n(1, 40), "h": n(1, 40), "w": n(1, 16)},
        {"kernel": 3, "c": n(40, 130), "o": n(1, 40), "h": n(1, 10), "w": n(1, 20)},
        {"depthwise": True, "pool": n(0, 10), "w": n(4, 100), "h": n(4, 20), "c": n(1, 40)},
        {"pool": 5 + n(0, 3), "w": n(4, 300), "h": n(4, 20), "c": n(1, 12), "o": n(1, 12)},
        {"elementwise": True, "w": n(1, 300), "h": n(1, 20), "c": n(1, 20)},
        {"pooling": True, "w": n(1, 300), "h": n(1, 20), "c": n(1, 20)},
        {"product": True, "w": n(1, 150), "h": n(1, 9), "c": n(1, 40), "o": n(1, 12)},
        {"pool": 8 + n(0, 2), "w": n(1, 150), "h": n(1, 20), "c": n(1, 12), "o": n(1, 12)},
    ]
    choice = kinds[n(0, len(kinds))]
    if choice.get("kernel"):
        choice["depthwise"] = False
    return choice


def small(rng: np.random.Generator) -> Choice:
    """Arguments of a layer for the slow simulator."""
    sizes = {name: int(rng.integers(1, 9)) for name in "ch"} | {"w": int(rng.integers(1, 40))}
    return sizes | {str(rng.choice(list(SPECIAL))): bool(rng.random() < 0.5)}


def draw_layer(rng: np.random.Generator, shape: Any, **fixed: Any) -> VectorLayer:
    """A random legal layer; draws that leave nothing of a map are drawn again.

    The second map of an element-wise layer is what the AI RAM holds.
    """
    for _ in range(1000):
        choice = {**shape(rng), **fixed}
        chosen = [make for name, make in SPECIAL.items() if choice.pop(name, False)]
        make = chosen[0] if chosen else random_layer
        try:
            return make(rng, **choice)
        except LayerError:
            continue
    raise AssertionError("no legal layer in a thousand draws")


def draw_cases(
    config: Config, seed: int, layers: int, networks: int, *, slow: bool = False
) -> list:
    """``layers`` cases of one layer and ``networks`` of several: every way, quiet and disturbed.

    ``slow``: small maps only. Half of the networks have 16-bit weights.
    """
    rng = np.random.default_rng(seed)
    far = config.dilation
    limits = Limits(channels=6, size=12, dilation=far) if slow else Limits(dilation=far)
    cases: list[RandomCase] = []
    for number in range(layers):
        way = ("host", "tasks", "host", "stream")[number % 4]
        if config.fp16_lanes and number % 3 != 1:  # of builds with lanes, most are for these
            few = Limits(channels=6 if slow else 40)
            layer = random_fp16(
                rng, limits=few, eight_bit=bool(number & 4), ram_rows=config.ai_ram_rows
            )
        else:
            layer = draw_layer(
                rng, small if slow else shapes, limits=limits, ram_rows=config.ai_ram_rows
            )
        images = layer.x.view(np.uint8)[None]
        if way != "host":
            images = np.concatenate([images, images_of(rng, layer.arg.in_shape, IMAGES - 1)])
        cases.append(case_of(config, f"layer {number}", way, Network.single(layer), images, rng))
    for number in range(networks):
        way = ("stream", "stream", "stream", "tasks")[number // 2 % 4]
        most = (4, 9, 12) if slow else (9, 30, 50)
        shape = tuple(int(rng.integers(least, n)) for least, n in zip((1, 4, 4), most, strict=True))
        network, _ = random_network(
            rng,
            shape=shape,
            layers=int(rng.integers(2, 4 if slow else 7)),
            fc_last=bool(rng.random() < 0.5),
            eight_bit=number % 2 == 1,
            limits=limits if slow else Limits(channels=20, dilation=far),
            two_maps=on_maps if number % 3 else None,
            one_map=on_map if number % 4 else None,
        )
        images = images_of(rng, shape, IMAGES)
        cases.append(case_of(config, f"network {number}", way, network, images, rng))
    return cases


def in_place(config: Config, seed: int, count: int, *, slow: bool = False) -> list[RandomCase]:
    """Depthwise layers whose output lies on rows of their input: the same ones, or some before; and
    element-wise ones, whose second map may lie there too.

    Every width of a row, lines of several rows, groups of channels that are not full; by the host,
    as task lists and in streams, where the next image waits for the result to leave.
    """
    rng = np.random.default_rng(seed)
    n = lambda least, most: int(rng.integers(least, most))  # noqa: E731
    cases: list[RandomCase] = []
    for number in range(count):
        width = (n(1, 17), n(17, 33), n(33, 65), n(65, 140) if slow else n(65, 400))[number % 4]
        shape = n(1, 4 if slow else 12), n(1, 4 if slow else 12), width
        rows = Layout(*shape).rows
        src = n(rows, config.ai_ram_rows - rows)
        before = 0 if rng.random() < 0.5 else n(0, rows)
        fixed = dict(zip("chw", shape, strict=True)) | {"src": src, "dst": src - before}
        if number % 5 < 2:  # two maps, the second one somewhere on the output or behind it
            most = min(src - before + 2 * rows, config.ai_ram_rows - rows)
            fixed |= {"elementwise": True, "one": False, "src2": n(src - before, most + 1)}
        else:
            fixed |= {"depthwise": True}
        layer = draw_layer(rng, lambda _: {}, pool=0, **fixed)
        way = ("host", "stream", "tasks")[number // 4 % 3]
        images = layer.x.view(np.uint8)[None]
        if way != "host":
            images = np.concatenate([images, images_of(rng, layer.arg.in_shape, IMAGES - 1)])
        name = f"in place {number}, {before} of {rows} rows before"
        cases.append(case_of(config, name, way, Network.single(layer), images, rng))
    return cases


def images_of(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> np.ndarray:
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8)


def case_of(
    config: Config,
    name: str,
    way: str,
    network: Network,
    images: np.ndarray,
    rng: np.random.Generator,
) -> RandomCase:
    disturb = bool(rng.random() < 0.5)
    roof = network_cycles(config, network.layers, eight_bit=network.eight_bit)
    title = f"{name}, {way}" + (", disturbed" if disturb else "")
    return RandomCase(title, way, network, images, disturb, SLACK + TIMES * roof)


def cases_storage_bytes(cases: list[RandomCase]) -> int:
    """Storage that the largest of the cases needs, wherever it is put."""
    place = 16 * 1000 + 1024  # the highest base, and room for alignment
    return place + max(
        case.network.storage(case.images, continuous=True, align=16).data.size for case in cases
    )
