# SPDX-License-Identifier: Apache-2.0
"""Products whose K no layer holds: parts, and the sums of words that element-wise layers make."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import LayerError
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network.network import Network, NetworkError
from openkpu.products import matmul_deep
from openkpu.products.matmul_deep import COPY, DeepTile, append_sum, layers_of, plan_deep, shape_of
from openkpu.products.matmul_lists import (
    input_of,
    maps_of,
    network_of,
    put,
    results_of,
    split_tiles,
)

SEED = 1
ROWS = 2048  # of the AI RAM
# bytes of words that carry far, not at all, just, and just not
BYTES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


def storing(words: list[np.ndarray]) -> tuple[Network, np.ndarray]:
    """Layers that only store words (n,) of 32 bits, each its own; the first one's are the input."""
    shape = shape_of(words[0].size)
    network, maps = Network(), []
    for number, each in enumerate(words):
        x = np.zeros(np.prod(shape), dtype=np.uint8)
        x[: 4 * each.size] = each.astype("<u4").view(np.uint8)
        maps.append(x.reshape(shape))
        arg = matmul_deep._layer(COPY, shape, ROWS)
        network.add(
            arg.replace(load_map=int(number > 0), store_map=1),
            *matmul_deep._tables(COPY, shape[0]),
        )
        if number:
            network.loaded[number] = maps[-1]
    append_sum(network, range(len(words)), shape, ram_rows=ROWS, last=True)
    network.validate(ROWS)
    return network, maps[0]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_words(count: int) -> None:
    """Every combination of corner bytes in two words, random ones in more: the sum modulo 2^32."""
    rng = np.random.default_rng((SEED, count))
    print(f"seed {SEED}")
    corners = np.array(list(itertools.product(BYTES, repeat=4)), dtype=np.uint8).view("<u4")[:, 0]
    picks = rng.permutation(len(corners) ** 2)[:6000]
    words = [corners[picks // len(corners)], corners[picks % len(corners)]]
    words += [rng.choice(corners, picks.size) for _ in range(count - 2)]
    network, x = storing(words)
    y = network.run(x).stored.view("<u4")[: picks.size]
    want = np.sum([each.astype(np.uint64) for each in words], axis=0).astype(np.uint32)
    assert (y == want).all()
    # neighbours do not disturb: a word that overflows is beside one that must stay 0
    lone = np.zeros(300, dtype=np.uint32)
    lone[::2] = 0xFFFFFFFF
    network, x = storing([lone, *[lone // 0xFFFFFFFF] * (count - 1)])
    want = (lone.astype(np.uint64) + (count - 1) * (lone // 0xFFFFFFFF)).astype(np.uint32)
    assert (network.run(x).stored.view("<u4")[:300] == want).all()


def draw(
    rng: np.random.Generator, m: int, k: int, n: int
) -> tuple[np.ndarray, np.ndarray, dict[str, bool]]:
    """A, B of int8 or uint8, and the signs for ``plan_deep``."""
    signs = [bool(s) for s in rng.integers(0, 2, 2)]
    a, b = (
        rng.integers(-128 if s else 0, 128 if s else 256, shape).astype(np.int8 if s else np.uint8)
        for s, shape in zip(signs, ((m, k), (k, n)), strict=True)
    )
    return a, b, {"signed_a": signs[0], "signed_b": signs[1]}


def on_the_model(lists: Sequence[Sequence[DeepTile]], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C as the lists leave it; their storage takes no more than ``split_tiles`` reckons with."""
    c = np.zeros((len(a), b.shape[1]), dtype=np.int32)
    for tiles in lists:
        network = network_of(tiles, a, b)
        network.validate(ROWS)
        assert results_of(tiles)[-1] == len(network.layers) - 1
        x = input_of(tiles, a, b)
        run = network.run(x)
        put(c, tiles, maps_of(run, network), run.stored)
        least = sum(matmul_deep.tile_storage_bytes(tile, 16) for tile in tiles)
        assert network.storage(x[None], align=16).data.size <= least + 64
    return c


@pytest.mark.parametrize("number", range(6))
def test_random_products(number: int) -> None:
    """Sizes that are no multiple of anything, two to five parts of K, one list and several."""
    rng = np.random.default_rng((SEED, number))
    m, k, n = (int(rng.integers(low, high)) for low, high in ((1, 60), (40, 200), (1, 400)))
    part = ceil_div(k, int(rng.integers(2, 6)))
    print(f"seed {SEED}: {m}x{k}x{n}, {part} at a time")
    a, b, signs = draw(rng, m, k, n)
    tiles = plan_deep(m, k, n, part=part, ram_rows=ROWS, **signs)
    want = a.astype(np.int64) @ b.astype(np.int64)
    assert (on_the_model([tiles], a, b) == want).all()
    lists = split_tiles(tiles, most_layers=layers_of(tiles[0]))
    assert len(lists) == len(tiles)
    assert (on_the_model(lists, a, b) == want).all()


def test_deepest() -> None:
    """K above what one layer has, as ``plan_deep`` cuts it by itself."""
    rng = np.random.default_rng(SEED)
    a, b, signs = draw(rng, 2, 20000, 3)
    tiles = plan_deep(2, 20000, 3, ram_rows=ROWS * 4, **signs)
    assert [k.stop - k.start for k in tiles[0].ks] == [6667, 6667, 6666]
    network = network_of(tiles, a, b)
    network.validate(ROWS * 4)
    c = network.run(input_of(tiles, a, b)).stored.view("<i4")[:6].reshape(2, 3)
    assert (c == a.astype(int) @ b.astype(int)).all()


@pytest.mark.parametrize(
    ("k", "ram_rows", "says"),
    [
        (131073, AI_RAM_ROWS, "K = 131073, a product has 131072 at most"),
        (9216, AI_RAM_ROWS, "K = 9216, one layer holds 9216: there is nothing to add up"),
        (20000, 64, "no column of B fits an AI RAM of 64 rows"),
    ],
)
def test_refusals(k: int, ram_rows: int, says: str) -> None:
    with pytest.raises(LayerError, match=says):
        plan_deep(4, k, 4, ram_rows=ram_rows)


def test_a_file_keeps_relayed_maps(tmp_path) -> None:
    """Saved and loaded it gives the same; maps of layers that do not store are refused."""
    rng = np.random.default_rng(SEED)
    words = [rng.integers(0, 1 << 32, 50, dtype=np.uint32) for _ in range(2)]
    network, x = storing(words)
    network.save(tmp_path / "sum.npz")
    found = Network.load(tmp_path / "sum.npz")
    assert found.relayed == network.relayed
    assert (found.run(x).stored == network.run(x).stored).all()
    with np.load(tmp_path / "sum.npz") as data:
        content = dict(data)
    for wrong in (np.arange(3), np.array([[99, 0, 0]]), np.array([[1, 2]])):
        np.savez(tmp_path / "wrong.npz", **{**content, "relayed": wrong})
        with pytest.raises(NetworkError, match=r"wrong\.npz: "):
            Network.load(tmp_path / "wrong.npz")
    reader = max(network.relayed)
    source, _ = network.relayed[reader]
    for wrong, says in (
        ((source + 1, 0), f"comes from layer {source + 1}, which stores none before"),
        ((reader, 0), "which stores none before"),
        ((-1, 0), "comes from layer -1"),
        ((source, -17), "begins 17 bytes in front of the one of layer"),
    ):
        network.relayed[reader] = wrong
        with pytest.raises(NetworkError, match=says):
            network.validate(ROWS)
    for nearest in (-1, -16):  # as far as zeros lie in front
        network.relayed[reader] = (source, nearest)
        network.validate(ROWS)
    both = next(i for i in network.relayed if network.layers[i].store_map)
    kept, network.relayed[both] = network.relayed[both], (both, 0)
    with pytest.raises(
        NetworkError, match=f"layer {both}: load_map: its map comes from layer {both}"
    ):
        network.validate(ROWS)
    network.relayed[both] = kept
    network.validate(ROWS)
    network.loaded[reader] = x
    with pytest.raises(NetworkError, match="two maps"):
        network.validate(ROWS)


def test_place_in_storage() -> None:
    """Zeros in front of what is read from there on, and behind it; the rest as it always was."""
    network, x = storing([np.ones(5, dtype=np.uint32)] * 2)
    storage = network.storage(x[None], base=0x100, align=16)
    moved, _ = network.with_moves(0x100, 16)
    for reader, (source, offset) in network.relayed.items():
        at = storage.stored[source]
        assert at % 16 == 0 and moved.layers[reader].map_load_addr == at + offset
        place = storage.data[at - 16 - 0x100 :]
        assert not place[:16].any() and (place[16 : 16 + 64] == 0xA5).all()
