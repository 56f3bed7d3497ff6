# SPDX-License-Identifier: Apache-2.0
"""Integer matrix products against numpy's, and against a published table."""

import numpy as np
import pytest

from models.tests.network import published_product
from openkpu.arithmetic.params import BatchNorm
from openkpu.arithmetic.words import from_stored, planes_of, to_stored, words_of
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import Layout
from openkpu.products.matmul import (
    layer_of,
    m_max,
    map_of,
    matmul_operands,
    matmul_product,
    plan_matmul,
    tables,
)
from openkpu.products.matmul_lists import network_of

TYPES = (np.int8, np.uint8)


def matrix(rng: np.random.Generator, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Random values, with corners of the type among them, or corners alone."""
    info = np.iinfo(dtype)
    found = rng.integers(info.min, info.max + 1, shape)
    share = rng.choice([0.0, 0.3, 1.0])
    corner = rng.choice([info.min, info.max, 0, 1], shape)
    return np.where(rng.random(shape) < share, corner, found).astype(dtype)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.parametrize("dtype", TYPES)
def test_published_product(dtype: type) -> None:
    a, b, c = published_product.matrices()
    assert (a.shape, b.shape) == ((4, 36), (36, 16))
    assert (matmul_product(a.astype(dtype), b.astype(dtype)) == c).all()


def test_every_k() -> None:
    """All K that a layer supports, every pair of types, with corners."""
    rng = np.random.default_rng(11)
    for k in range(1, 1025):
        types = rng.integers(0, 2, 2)
        a = matrix(rng, (int(rng.integers(1, 4)), k), TYPES[types[0]])
        b = matrix(rng, (k, int(rng.integers(1, 6))), TYPES[types[1]])
        assert (matmul_product(a, b) == exact(a, b)).all(), f"K = {k}, types {types}"


def test_extremes() -> None:
    """The largest sums of both signs, at the largest K."""
    for left in (-128, 127):
        for right in (-128, 127):
            a, b = np.full((2, 9216), left, np.int8), np.full((9216, 3), right, np.int8)
            assert (matmul_product(a, b) == left * right * 9216).all()
    a, b = np.full((2, 9216), 255, np.uint8), np.full((9216, 3), 255, np.uint8)
    assert (matmul_product(a, b) == 255 * 255 * 9216).all()


@pytest.mark.parametrize("seed", range(40))
def test_random_products(seed: int) -> None:
    """Random sizes, including sizes that need tiles of either kind."""
    rng = np.random.default_rng(seed)
    m, k, n = (max(1, int(np.exp(rng.uniform(0, np.log(most))))) for most in (300, 500, 1500))
    a = matrix(rng, (m, k), TYPES[seed & 1])
    b = matrix(rng, (k, n), TYPES[seed >> 1 & 1])
    for rows in (32768, 1024):
        try:
            found = matmul_product(a, b, ram_rows=rows)
        except LayerError as err:
            assert rows == 1024 and k > 500 and err.code == "BAD_SIZE", err
            continue
        assert (found == exact(a, b)).all(), f"{m}x{k}x{n}, {rows} rows"


def test_tiles_cover_the_product() -> None:
    """Every element is in one tile, every tile fits, and a cut is made only where one is needed."""
    for m, k, n, rows in (
        (512, 512, 512, 32768),
        (1024, 1024, 1009, 32768),
        (3000, 700, 2500, 32768),
        (70, 1024, 1021, 4096),
        (1, 1, 1, 32),
        (1000, 9216, 50, 32768),
        (897, 9216, 300, 32768),
    ):
        tiles = plan_matmul(m, k, n, ram_rows=rows)
        seen = np.zeros((m, n), dtype=int)
        for tile in tiles:
            seen[tile.m, tile.n] += 1
            assert tile.arg.device_code(ram_rows=rows) == 0
        assert (seen == 1).all()
        alone = m <= m_max(k) and map_of(m, k, n, rows) is not None
        assert alone == (len(tiles) == 1), (m, k, n)
    assert len(plan_matmul(512, 512, 512)) == 1
    # its maps are dense: B occupies 256 KiB, C a MiB
    arg = plan_matmul(512, 512, 512)[0].arg
    assert (arg.in_layout.bytes, arg.out_layout.bytes) == (512 * 512, 4 * 512 * 512)


def test_network_leaves_rows_of_c() -> None:
    """The result area of a run holds C as numpy has it."""
    rng = np.random.default_rng(5)
    a, b = matrix(rng, (5, 20), np.int8), matrix(rng, (20, 21), np.int8)
    tile = plan_matmul(5, 20, 21)[0]
    network, (_, x) = network_of([tile], a, b), matmul_operands(tile, a, b)
    y = network.run(x).y
    assert (to_stored(y, True).view("<i4").reshape(5, 21) == exact(a, b)).all()
    storage = network.storage(x[None])
    at = storage.results[0] - storage.base
    memory = storage.data.copy()
    memory[at : at + 4 * 5 * 21] = exact(a, b).astype("<i4").reshape(-1).view(np.uint8)
    assert (storage.result(memory, 0) == y).all()
    network.validate()


def test_planes() -> None:
    """Byte k of channel o is plane 4 * o + k, and back."""
    words = np.arange(2 * 3 * 5, dtype=np.uint32).reshape(2, 3, 5) * 0x08040201 + 0x81020304
    planes = planes_of(words)
    for o in range(2):
        for k in range(4):
            assert (planes[4 * o + k] == (words[o] >> 8 * k & 255)).all()
    assert (words_of(planes).view(np.uint32) == words).all()
    stored = to_stored(planes, True)
    assert stored.tobytes() == words.astype("<u4").tobytes()
    assert (from_stored(stored, planes.shape, True) == planes).all()
    assert (to_stored(planes, False) == planes.reshape(-1)).all()
    assert (from_stored(planes.reshape(-1), planes.shape, False) == planes).all()


def test_batch_norm_acts_on_words() -> None:
    """The output is v: scale, shift and a bias of 32 bits, modulo 2^32 for any table."""
    rng = np.random.default_rng(6)
    arg = layer_of(3, 9, 7)
    a, b = matrix(rng, (3, 9), np.int8), matrix(rng, (9, 7), np.int8)
    mul, shift, add = [3, -5, 1 << 22], [1, 0, 0], [100, -(1 << 31), 5]
    bn = BatchNorm.make(mul, shift, add).pack()
    noise = rng.integers(0, 1 << 60, 18).astype(np.uint64)
    raw, x = a.view(np.uint8).reshape(-1), b.view(np.uint8).reshape(arg.in_shape)
    found = words_of(run_layer(arg, x, raw, bn, noise).y).reshape(3, 7)
    for o in range(3):
        want = ((exact(a, b)[o] * mul[o]) >> shift[o]) + add[o]
        assert (found[o] == (want & 0xFFFFFFFF).astype(np.uint32).view(np.int32)).all()


def test_offsets_alone() -> None:
    """in_xor and w_xor in a layer of bytes: pixels and weights XOR 0x80, but not pad_value."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, (2, 4, 5)).astype(np.uint8)
    weights = rng.integers(0, 256, 3 * 2 * 9).astype(np.uint8)
    bn, _ = tables(3)
    act = np.zeros(18, np.uint64)
    arg = LayerArg.make(2, 4, 5, 3, kernel=3, pad_value=9, arg_w=-4, signed_in=1)
    want = run_layer(arg, x ^ 0x80, weights ^ 0x80, bn, act, debug=True)
    found = run_layer(arg.replace(in_xor=1, w_xor=1), x, weights, bn, act, debug=True)
    assert (found.alu == want.alu).all()
    assert (found.macs, found.macs_gated) == (want.macs, want.macs_gated)


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"depth_wise_layer": 1}, "BAD_FLAGS", "out32 requires"),
        ({"fc": 1}, "BAD_FLAGS", "out32 requires"),
        ({"pool_type": 8}, "BAD_POOL", "not pooled"),
        ({"image_dst_addr": 32768 - 7}, "BAD_ADDR", "output map occupies rows"),
        ({"image_src_addr": 25}, "BAD_ADDR", "the input"),
    ],
)
def test_refused_layers(fields: dict[str, int], code: str, says: str) -> None:
    arg = LayerArg.make(8, 2, 4, 4, out32=1, src=100, dst=20)  # planes in rows 20 to 27
    with pytest.raises(LayerError, match=says) as caught:
        arg.replace(**fields).validate(strict=False)
    assert caught.value.code == code
    assert arg.replace(**fields).device_code() == caught.value.number


def test_weights_of_16_bits() -> None:
    arg = LayerArg.make(8, 2, 4, 4, w_xor=1)
    assert arg.device_code(eight_bit=True) == 0
    arg = arg.with_loads(False)
    assert arg.device_code(eight_bit=False) == LayerError("BAD_WEIGHTS", "").number
    with pytest.raises(LayerError, match="BAD_WEIGHTS: w_xor requires 8-bit weights"):
        run_layer(
            arg, np.zeros((8, 2, 4), np.uint8), np.zeros(64, np.uint8), *tables(4), eight_bit=False
        )


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((1, 9217, 1), "BAD_SIZE: K = 9217, a layer has at most 9216 input channels"),
        ((0, 5, 5), "BAD_SIZE: 0x5x5: a product has no size below 1"),
    ],
)
def test_refused_products(sizes: tuple[int, int, int], says: str) -> None:
    with pytest.raises(LayerError, match=says):
        plan_matmul(*sizes)
    m, k, n = sizes
    with pytest.raises(LayerError, match=says):
        layer_of(m, k, n)


def test_refused_operands() -> None:
    a = np.zeros((2, 3), np.int8)
    with pytest.raises(ValueError, match=r"B is int16\(3, 2\), expected a matrix of int8 or uint8"):
        matmul_product(a, np.zeros((3, 2), np.int16))
    with pytest.raises(ValueError, match="the inner sizes differ"):
        matmul_product(a, np.zeros((4, 2), np.int8))
    with pytest.raises(LayerError, match="M = 1025"):
        layer_of(1025, 3, 4)
    assert layer_of(896, 9216, 4).device_code() == 0
    with pytest.raises(LayerError, match="M = 897, a layer with K = 9216 has at most 896 output"):
        layer_of(897, 9216, 4)
    with pytest.raises(LayerError, match="no map of 1021 pixels"):
        layer_of(4, 3, 1021)
    with pytest.raises(LayerError, match="no column of B"):
        plan_matmul(4, 1024, 4, ram_rows=64)


def test_maps_in_the_ai_ram() -> None:
    """Packing and unpacking treat the planes as channels."""
    arg = layer_of(3, 5, 40)
    assert arg.out_shape[0] == 12
    ram = airam.new_ram()
    y = np.arange(12 * 40, dtype=np.uint32).astype(np.uint8).reshape(arg.out_shape)
    airam.pack_map(ram, arg.image_dst_addr, y)
    assert (airam.unpack_map(ram, arg.image_dst_addr, arg.out_shape) == y).all()
    assert arg.out_layout.rows == Layout(*arg.out_shape).rows
