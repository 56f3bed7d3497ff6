# SPDX-License-Identifier: Apache-2.0
"""Weights that stay: places, what brings them, the golden model, files, the choice, the cycles."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.generators.generate import Limits, random_network
from openkpu.generators.generate_lists import random_list
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.network import kept
from openkpu.network.network import UNWRITTEN, Network, NetworkError
from openkpu.prediction import keeping
from openkpu.prediction.cycles_shape import Shape

SMALL = configs.load_config("small")


def chain(seed: int = 3, eight_bit: bool = True) -> Network:
    """Layers whose weights do not fit 64 rows."""
    rng, limits = np.random.default_rng(seed), Limits(channels=60)
    return random_network(rng, layers=5, eight_bit=eight_bit, limits=limits)[0]


def image(network: Network) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, network.in_shape).astype(np.uint8)


@pytest.mark.parametrize("eight_bit", [True, False])
def test_weights_come_from_the_ai_ram(eight_bit: bool) -> None:
    """The same result; other bytes in the rows change it."""
    network = chain(eight_bit=eight_bit)
    want = network.run(image(network)).y
    first, count = kept.free_rows(network.layers, 32768)[0]
    network.kept = {1: first, 4: first + count - kept.kept_rows(network, 4)}
    network.validate()
    ram = airam.new_ram(fill=UNWRITTEN)
    assert (network.run(image(network), ram=ram).y == want).all()
    for number, row in network.kept.items():
        data = network.tables(network.layers[number])[0]
        assert (ram[64 * row :][: data.size] == data).all()
        behind = ram[64 * row + data.size : 64 * (row + kept.kept_rows(network, number))]
        assert (behind == UNWRITTEN).all()
    network.kept[1] = network.layers[1].image_src_addr  # its own input
    assert (network.run(image(network)).y != want).any()


def test_tasks_bring_them() -> None:
    """What the tasks compute and load is what ``put`` says, in an AI RAM."""
    network = digits.load_large()
    network.place()
    network.kept = {4: 20000, 3: 30000}  # 147,456 and 73,728 bytes
    want, found = (airam.new_ram(fill=UNWRITTEN) for _ in range(2))
    kept.put(network, want)
    at = 0x1230
    tasks = kept.bring(network, at)
    assert len(tasks) == 4 and all(t.load_map and t.pool_task and not t.para_size for t in tasks)
    nothing = np.zeros(0, np.uint64)
    for task in tasks:
        task.validate()
        start = task.map_load_addr - at
        count = int(np.prod(task.in_shape))
        x = network.weights[start : start + count].reshape(task.in_shape)
        airam.pack_map(found, task.image_src_addr, x)
        y = run_layer(task, x, np.zeros(0, np.uint8), nothing, nothing).y
        airam.pack_map(found, task.image_dst_addr, y)
    assert (found == want).all()
    for number in network.kept:
        data = network.tables(network.layers[number])[0]
        assert (kept.weights(network, number, found) == data).all()
    storage = network.storage(np.zeros((1, *network.in_shape), np.uint8))
    assert storage.bring == kept.bring(network, storage.registers["AI_WGT_ADR"])
    words = storage.data[storage.registers["AI_LIST_ADR"] - storage.base :].view("<u8")
    arg = LayerArg.decode(words[4 * 12 : 5 * 12])
    assert arg.kept_weights and arg.para_start_addr == 64 * 20000
    assert not LayerArg.decode(words[:12]).kept_weights


def test_places_that_cannot_be() -> None:
    network = chain()
    layer, rows = network.layers[2], kept.kept_rows(network, 2)
    first = kept.free_rows(network.layers, 32768)[0][0]
    for places, message in (
        (
            {2: min(layer.image_src_addr, layer.image_dst_addr)},
            "layer 2: kept weights in rows .* where a map of layer",
        ),
        (
            {2: first + dict(kept.free_rows(network.layers, 32768))[first] - rows + 1},
            "layer 2: .* map",
        ),
        ({2: first - 1}, "layer 2: kept weights in rows .* where a map of layer"),
        ({2: first, 1: first + rows - 1}, "layer 1: .* where the kept weights of layer 2 lie"),
        ({2: 32768 - rows + 1}, "layer 2: kept weights in rows .* of 32768"),
        ({2: -1}, "layer 2: kept weights in rows -1"),
        ({9: first}, "kept weights of layer 9, there are 5 layers"),
    ):
        network.kept = places
        with pytest.raises(NetworkError, match=message):
            network.validate()
    network.kept = {2: first, 1: first + rows}
    network.validate()


def test_scattered() -> None:
    """Random places are legal ones, of every layer where there is room."""
    rng, network = np.random.default_rng(5), chain()
    seen = set()
    for _ in range(30):
        network.kept = kept.scatter(rng, network, 32768)
        assert set(network.kept) == set(range(5))
        network.validate()
        seen |= set(network.kept.values())
    assert len(seen) > 60
    assert len(kept.scatter(rng, network, 32768, 0.0)) == 0


def test_free_rows() -> None:
    arg = LayerArg.make(4, 8, 16, 4, src=10, dst=30)
    assert kept.free_rows([arg], 64) == [(0, 10), (18, 12), (38, 26)]
    assert kept.free_rows([arg.replace(image_src_addr=0, image_dst_addr=8)], 16) == []


def test_files(tmp_path: Path) -> None:
    network = heavy()
    network.place()
    keeping.keep_weights(network, configs.load_config("k210"))
    assert network.kept
    network.save(tmp_path / "net.npz")
    again = Network.load(tmp_path / "net.npz")
    assert again.kept == network.kept and again.layers == network.layers
    with np.load(tmp_path / "net.npz") as data:
        wrong = {**data, "kept": np.array([[0, network.layers[0].image_src_addr]])}
    np.savez(tmp_path / "bad.npz", **wrong)
    with pytest.raises(NetworkError, match=r"bad.npz: layer 0: kept weights"):
        Network.load(tmp_path / "bad.npz")


def test_who_stays() -> None:
    """Nobody where the weight buffer holds all, or the build keeps none; else the slowest first."""
    network = digits.load_network()
    network.place()
    keeping.keep_weights(network, SMALL)
    assert network.kept == {}
    k210, network = configs.load_config("k210"), heavy()
    network.place()
    keeping.keep_weights(network, dataclasses.replace(k210, keep_weights=0))
    assert network.kept == {}
    network.place()
    keeping.keep_weights(network, dataclasses.replace(k210, pool_lanes=0))
    assert network.kept == {}
    network.place()
    keeping.keep_weights(network, k210)
    assert set(network.kept) == {0, 1, 2, 3}
    network.validate()
    need = {i: kept.kept_rows(network, i) for i in range(4)}
    first = next(iter(network.kept))
    ram_rows = sum(count for _, count in _used(network)) + need[first] + 1
    network.place(ram_rows)
    keeping.keep_weights(network, k210, ram_rows)
    network.validate(ram_rows)
    assert first in network.kept and len(network.kept) < 4


@pytest.mark.parametrize("config", ["k210", "k210_fp16"])
def test_who_stays_beside_float16(config: str) -> None:
    """A product of float16 is weighed as other layers; without lanes for it nothing is predicted,
    and all that fits stays."""
    rng, chosen = (
        np.random.default_rng(5),
        dataclasses.replace(
            configs.load_config(config), wbuf_rows=64, look_ahead=4, weight_ahead=0
        ),
    )
    kinds = ["convolution", "float16", "convolution", "float16"]
    needed = 0
    while needed <= chosen.wbuf_rows:
        network, _ = random_list(rng, kinds, (60, 8, 64), limits=Limits(channels=200))
        needed = sum(Shape(chosen, arg).weight_rows for arg in network.layers)
    network.kept = keeping.choose_kept(network, chosen, chosen.ai_ram_rows)
    network.validate()
    assert set(network.kept) == {0, 1, 2, 3}


def _used(network: Network) -> list[tuple[int, int]]:
    """The parts between free ones."""
    free = kept.free_rows(network.layers, 32768)
    ends = [0, *(end for first, count in free for end in (first, first + count)), 32768]
    return [(a, b - a) for a, b in zip(ends[::2], ends[1::2], strict=True)]


def heavy() -> Network:
    """A network that waits for the bus on k210."""
    rng, limits = np.random.default_rng(8), Limits(channels=200)
    return random_network(rng, shape=(96, 8, 8), layers=4, limits=limits)[0]


def test_gain() -> None:
    """A network bound by the bus gains; the kept weights are reported in bytes and rows."""
    network, k210 = heavy(), configs.load_config("k210")
    network.place()
    keeping.keep_weights(network, k210)
    gain = keeping.gain(network, k210)
    sizes = [kept.size(network, i) for i in network.kept]
    assert gain.bytes == sum(sizes) and gain.rows == sum(ceil_div(n, 64) for n in sizes)
    assert gain.saved == gain.before - gain.after > 0.05 * gain.before


def test_refusals() -> None:
    """The device's own checks: flags, the end of the AI RAM, a build without it."""
    arg = LayerArg.make(4, 8, 16, 6, kernel=3, per_load=4).replace(kept_weights=1)
    size = 4 * 36 + 2 * 36
    assert arg.weights_end(True) == size and arg.weights_end(False) == 144 + 2 * 72
    fits = arg.replace(para_start_addr=(2 << 20) - size)
    assert fits.device_code() == 0 and fits.device_code(keeps=False) == 6
    over = fits.replace(para_start_addr=fits.para_start_addr + 1)
    assert over.device_code() == 5 and over.replace(kept_weights=0).device_code() == 0
    with pytest.raises(LayerError, match="BAD_WEIGHTS: kept weights end at byte 2097153"):
        over.validate(eight_bit=True)
    pool = kept.bring(_with_place(), 0)[0].replace(kept_weights=1)
    assert pool.device_code() == 6
    with pytest.raises(LayerError, match="BAD_FLAGS: a pooling task has no weights"):
        pool.validate()


def _with_place() -> Network:
    network = chain()
    network.kept = {0: kept.free_rows(network.layers, 32768)[0][0]}
    return network
