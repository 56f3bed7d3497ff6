# SPDX-License-Identifier: Apache-2.0
"""Products of matrices as task lists: every tile a layer, B and C of most of them in storage."""

import dataclasses
import itertools

import numpy as np
import pytest

from openkpu.arithmetic import fp16
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import load_config
from openkpu.layer.argument import LIST_BYTES, LayerError
from openkpu.layer.layout import map_bytes
from openkpu.network.network import MOST_LAYERS, Network, alignment
from openkpu.prediction.cycles_model import predict_network
from openkpu.prediction.roofline import network_cycles
from openkpu.products import matmul, matmul_fp16
from openkpu.products.matmul import Tile
from openkpu.products.matmul_lists import input_of, maps_of, network_of, put, split_tiles

SEED = 1
FEW_ROWS = 512  # of the AI RAM: small products have several tiles
SIX = (140, 16, 150)  # sizes of a product of two parts of rows by three of columns there


def integers(rng: np.random.Generator, m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B of int8 or uint8, each of its own."""
    types = [(np.int8, np.uint8)[int(t)] for t in rng.integers(0, 2, 2)]
    a, b = (
        rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape).astype(t)
        for t, shape in zip(types, ((m, k), (k, n)), strict=True)
    )
    return a, b


def tiles_of(a: np.ndarray, b: np.ndarray, rows: int = FEW_ROWS) -> list[Tile]:
    (m, k), n = a.shape, b.shape[1]
    if a.dtype == np.float16:
        return matmul_fp16.plan_fp16(m, k, n, ram_rows=rows)
    signs = {"signed_a": a.dtype == np.int8, "signed_b": b.dtype == np.int8}
    return matmul.plan_matmul(m, k, n, ram_rows=rows, **signs)


def on_the_model(lists: list[list[Tile]], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C as the lists leave it, every byte of it from a stored map or a result."""
    c = np.full((len(a), b.shape[1]), -1, np.float32 if a.dtype == np.float16 else np.int32)
    for tiles in lists:
        network = network_of(tiles, a, b)
        network.validate(FEW_ROWS)
        run = network.run(input_of(tiles, a, b))
        put(c, tiles, maps_of(run, network), run.stored)
    return c


def loads(network: Network) -> list[int]:
    return [i for i, arg in enumerate(network.layers) if arg.load_map]


def parts(tiles: list[Tile]) -> tuple[int, int]:
    """(parts of the rows, of the columns)."""
    return len({t.m.start for t in tiles}), len({t.n.start for t in tiles})


@pytest.mark.parametrize("number", range(12))
def test_random_products(number: int) -> None:
    """One list gives what numpy gives; so do several of few layers."""
    rng = np.random.default_rng((SEED, number))
    while True:
        m, k, n = (int(np.exp(rng.uniform(1, np.log(most)))) for most in (250, 60, 400))
        a, b = integers(rng, m, k, n)
        try:
            tiles = tiles_of(a, b)
        except LayerError:
            continue
        if min(parts(tiles)) > 1:
            break
    print(f"seed {SEED}: {m}x{k}x{n}, {parts(tiles)} parts")
    want = a.astype(np.int64) @ b.astype(np.int64)
    assert (on_the_model([tiles], a, b) == want).all()
    most = int(rng.integers(1, len(tiles)))
    assert (on_the_model(split_tiles(tiles, most_layers=most), a, b) == want).all()


@pytest.mark.parametrize("sizes", [(70, 9, 288), (186, 3, 278)])
def test_products_of_float16(sizes: tuple[int, int, int]) -> None:
    """The second one has parts of other rows of A for the last columns of B; a part is no multiple
    of 8 bytes, so that others are not where a larger one would go on."""
    rng = np.random.default_rng(SEED)
    m, k, n = sizes
    a, b = (rng.normal(0, 1, s).astype(np.float16) for s in ((m, k), (k, n)))
    tiles = tiles_of(a, b, 256)
    assert min(parts(tiles)) > 1
    assert (len({t.m.stop for t in tiles if t.m.start == 0}) > 1) == (m == 186)
    assert on_the_model([tiles], a, b).tobytes() == fp16.multiply(a, b).tobytes()


def test_what_is_loaded_and_stored() -> None:
    """B once for all rows of A; every C but the last one; rows of A are in storage once."""
    rng = np.random.default_rng(SEED)
    a, b = integers(rng, *SIX)
    tiles = tiles_of(a, b)
    rows, columns = parts(tiles)
    assert (rows, columns, len(tiles)) == (2, 3, 6)
    network = network_of(tiles, a, b)
    assert loads(network) == sorted(network.loaded) == [2, 4]
    assert [arg.store_map for arg in network.layers] == [1] * 5 + [0]
    assert network.weights.tobytes() == a.tobytes()  # each part is a multiple of 8 bytes
    assert (network.loaded[2].reshape(16, -1).view(b.dtype) == b[:, tiles[2].n]).all()


def test_columns_as_a_map_of_another_shape() -> None:
    """The last rows of A are so few that B is a map of one line: it is read again."""
    rng = np.random.default_rng(SEED)
    a, b = integers(rng, 207, 1, 42)
    tiles = tiles_of(a, b)
    assert [t.arg.in_shape for t in tiles] == [(1, 3, 14), (1, 3, 14), (1, 1, 42)]
    assert loads(network_of(tiles, a, b)) == [2]
    assert (on_the_model([tiles], a, b) == a.astype(int) @ b.astype(int)).all()


def test_one_tile() -> None:
    """A product that one layer holds is that layer alone, as ``plan_matmul`` has it."""
    rng = np.random.default_rng(SEED)
    for m, k, n in ((1, 1, 1), (5, 20, 21), (64, 128, 256)):
        a, b = integers(rng, m, k, n)
        (tile,) = tiles_of(a, b, 32768)
        assert split_tiles([tile]) == [[tile]]
        network = network_of([tile], a, b)
        (arg,) = network.layers
        assert arg == tile.arg.replace(active_addr=8 * m)
        assert not network.loaded and not arg.load_map and not arg.store_map


@pytest.mark.parametrize("align", [8, 16])
def test_places_in_storage(align: int) -> None:
    """Everything has bytes of its own; what is stored is aligned; rows of C follow each other."""
    rng = np.random.default_rng(SEED)
    a, b = integers(rng, *SIX)
    tiles = tiles_of(a, b)
    network = network_of(tiles, a, b)
    storage = network.storage(input_of(tiles, a, b)[None], base=64, align=align)
    moved, _ = network.with_moves(64, align)
    spans = [
        (at, map_bytes(network.layers[layer].out_shape)) for layer, at in storage.stored.items()
    ]
    assert len(spans) == 5 and all(at % align == 0 for at, _ in spans)
    assert spans[2][0] + spans[2][1] == spans[3][0]  # the first rows, then those behind them
    spans += [(moved.layers[i].map_load_addr, network.loaded[i].size) for i in network.loaded]
    registers = storage.registers
    spans += [
        (registers["AI_LIST_ADR"], LIST_BYTES * len(tiles)),
        (registers["AI_WGT_ADR"], network.weights.size),
        (registers["AI_BIAS_ADR"], network.biases.size),
        (registers["AI_PIX_ADR"], map_bytes(network.in_shape)),
        (registers["AI_RES_ADR"], map_bytes(network.out_shape)),
    ]
    for (first, size), (behind, _) in itertools.pairwise(sorted(spans)):
        assert first + size <= behind


def test_limits_of_a_list() -> None:
    """As few lists as layers and storage allow, in the order of the tiles."""
    rng = np.random.default_rng(SEED)
    a, b = integers(rng, *SIX)
    tiles = tiles_of(a, b)
    assert MOST_LAYERS == 1023
    assert [len(p) for p in split_tiles(tiles, most_layers=4)] == [4, 2]
    assert [len(p) for p in split_tiles(tiles, most_layers=3)] == [3, 3]
    assert [len(p) for p in split_tiles(tiles, most_bytes=1)] == [1] * 6
    assert [len(p) for p in split_tiles(tiles * 300)] == [1023, 777]
    for most in (30_000, 50_000, 70_000):
        lists = split_tiles(tiles, most_bytes=most)
        assert list(itertools.chain(*lists)) == tiles and len(lists) > 1
        for part, following in zip(lists, [*lists[1:], []], strict=True):
            network = network_of(part, a, b)
            size = network.storage(input_of(part, a, b)[None], align=16).data.size
            assert size <= most
            if following:  # one more would be too many, but for what alignment may take
                more = [*part, following[0]]
                network = network_of(more, a, b)
                size = network.storage(input_of(more, a, b)[None], align=16).data.size
                assert size > most - 16 * 4 * len(more)


def test_roofline_and_prediction_count_maps() -> None:
    """Bytes of B and C that the list moves are in its roofline, and in its predicted cycles."""
    rng = np.random.default_rng(SEED)
    a, b = integers(rng, *SIX)
    tiles, config = tiles_of(a, b), load_config("nano")
    network = network_of(tiles, a, b)
    (m, k, n), columns = SIX, 3
    moved = 4 * m * n + k * n + LIST_BYTES * len(tiles)
    moved += columns * (m * k + 8 * (m + 18 * 2))  # A, and tables
    assert network_cycles(config, network.layers) == ceil_div(moved, config.bus_bytes)
    found = predict_network(config, network)
    assert found.cycles > network_cycles(config, network.layers)
    assert [layer.shape.arg.store_map for layer in found.layers] == [1] * 5 + [0]
    wide = dataclasses.replace(config, ahb_width=128)
    assert (alignment(config), alignment(wide)) == (8, 16)
