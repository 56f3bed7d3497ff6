# SPDX-License-Identifier: Apache-2.0
"""Products of float16: exact sums rounded once, against math.fsum, gmpy2 and numpy."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

# gmpy2 says that it is typed, but brings no stubs of its compiled module
from gmpy2 import context, mpfr  # pyright: ignore[reportAttributeAccessIssue]

from openkpu.arithmetic import fp16
from openkpu.configs import load_config
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import Layout
from openkpu.prediction.roofline import layer_cycles, network_cycles
from openkpu.products.matmul_fp16 import (
    NONE,
    fp16_operands,
    fp16_product,
    layer_of,
    plan_fp16,
    shapes_of,
)
from openkpu.products.matmul_lists import network_of

LEAST = 2.0**-24  # the smallest float16 above 0
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def any_half(rng: np.random.Generator, shape: tuple[int, ...], kind: int) -> npt.NDArray:
    """Any numbers, subnormals, ones near the top, cancelling pairs, or small integers."""
    if kind == 0:
        bits = rng.integers(0, 1 << 16, shape).astype(np.uint16)
        bits[bits & 0x7C00 == 0x7C00] ^= 0x4000
        return bits.view(np.float16)
    if kind == 1:
        return (rng.integers(-1023, 1024, shape) * LEAST).astype(np.float16)
    if kind == 2:
        return (rng.choice([-1.0, 1.0], shape) * (65504 - 32 * rng.integers(0, 9, shape))).astype(
            np.float16
        )
    if kind == 3:
        return rng.normal(0, 1, shape).astype(np.float16)
    return rng.integers(-3, 4, shape).astype(np.float16)


def by_fsum(row: npt.NDArray, column: npt.NDArray, wide: bool) -> np.floating:
    """math.fsum of the exact double products; a tie of the second rounding is seen and settled."""
    products = [float(p) * float(q) for p, q in zip(row, column, strict=True)]
    total = math.fsum(products)
    kind = np.float32 if wide else np.float16
    with np.errstate(over="ignore"):
        found = kind(total)
    exact = sum(map(Fraction, products))
    if exact != Fraction(total):  # fsum rounded: a second rounding may see a tie that is none
        for away in (-math.inf, math.inf):
            with np.errstate(over="ignore"):
                other = kind(math.nextafter(total, away))
            nearer = math.isfinite(other) and math.isfinite(found)
            if nearer and abs(Fraction(float(other)) - exact) < abs(Fraction(float(found)) - exact):
                found = other
    return kind(0.0) if exact == 0 else found


def by_gmpy2(row: npt.NDArray, column: npt.NDArray, wide: bool) -> float:
    """An exact sum of 200 bits, rounded by MPFR to the format, subnormals included."""
    with context(precision=200):
        total = mpfr(0)
        for p, q in zip(row, column, strict=True):
            total += mpfr(float(p)) * mpfr(float(q))
    sizes = (24, -148, 128) if wide else (11, -23, 16)
    with context(precision=sizes[0], emin=sizes[1], emax=sizes[2], subnormalize=True):
        return float(+total) if total else 0.0


def same(found: npt.NDArray, expected: npt.NDArray) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("kind", range(5))
def test_against_two_references(wide: bool, kind: int) -> None:
    rng = np.random.default_rng(kind)
    for k in (1, 2, 3, 17, 100):
        a, b = any_half(rng, (4, k), kind), any_half(rng, (k, 5), int(rng.integers(0, 5)))
        if kind == 0 and k > 2:  # cancel all but the last bits
            a[:, k // 2 : 2 * (k // 2)] = a[:, : k // 2]
            b[k // 2 : 2 * (k // 2)] = -b[: k // 2]
        c = fp16.multiply(a, b, wide)
        for i in range(4):
            for j in range(5):
                want = by_fsum(a[i], b[:, j], wide)
                assert c[i, j] == want and np.signbit(c[i, j]) == np.signbit(want), (k, i, j)
                assert float(c[i, j]) == by_gmpy2(a[i], b[:, j], wide), (k, i, j)


def test_order_and_tiles_do_not_matter() -> None:
    """At K = 512 a running float32 sum differs in most elements, and this one in none."""
    rng = np.random.default_rng(1)
    a, b = (rng.normal(0, 1, s).astype(np.float16) for s in ((24, 512), (512, 24)))
    c = fp16.multiply(a, b)
    order = rng.permutation(512)
    assert same(c, fp16.multiply(a[:, order], b[order]))
    running = np.zeros((24, 24), dtype=np.float32)
    for k in range(512):
        running += a[:, k, None].astype(np.float32) * b[k].astype(np.float32)
    assert 0.8 < (running != c).mean() < 1


@pytest.mark.parametrize("wide", [True, False])
def test_every_half(wide: bool) -> None:
    """1 times every float16 is that number as numpy converts it; NaN becomes the one NaN."""
    one = np.ones((1, 1), dtype=np.float16)
    c = fp16.multiply(one, HALVES[None], wide)[0]
    want = HALVES.astype(c.dtype)
    want[HALVES == 0] = 0  # the sum 0 is +0
    view = np.uint32 if wide else np.uint16
    want.view(view)[np.isnan(HALVES)] = fp16.NAN32 if wide else fp16.NAN16
    assert same(c, want)


def test_conversion_of_every_kind_of_sum() -> None:
    """Sums of two products that lie around every tie of float16, as numpy rounds doubles."""
    rng = np.random.default_rng(3)
    finite = HALVES[np.isfinite(HALVES) & (HALVES > 0)]
    low = rng.choice(finite, 4000)
    step = np.spacing(low).astype(np.float64)
    for part in (0.25, 0.5, 0.75, 0.5 - 2.0**-11, 0.5 + 2.0**-11):
        # x * 1 + step * part, both operands exact
        other = np.maximum(step * 2.0**10, 2.0**-14).astype(np.float16)
        factor = (step * part / other).astype(np.float16)
        keep = factor.astype(np.float64) * other.astype(np.float64) == step * part
        a = np.stack([low, other])[:, keep].T
        for i, row in enumerate(a[:300]):
            b = np.array([[1.0], [factor[keep][i]]], dtype=np.float16)
            exact = float(row[0]) + float(row[1]) * float(b[1, 0])
            with np.errstate(over="ignore"):
                want = np.float64(exact).astype(np.float16)
            assert fp16.multiply(row[None], b, False)[0, 0] == want, (row, b)


CASES = [  # (products as pairs, float32, float16)
    ([(LEAST, LEAST)], 2.0**-48, 0.0),
    ([(-LEAST, LEAST)], -(2.0**-48), -0.0),  # not zero before it is rounded
    ([(1.0, LEAST), (-1.0, LEAST)], 0.0, 0.0),
    ([(-0.0, 1.0)], 0.0, 0.0),
    ([(65504.0, 65504.0), (-65504.0, 65504.0), (LEAST, LEAST)], 2.0**-48, 0.0),
    ([(65504.0, 1.0), (16.0, 1.0)], 65520.0, np.inf),  # the tie above the largest
    ([(65504.0, 1.0), (16.0, 1.0), (-LEAST, LEAST)], 65520.0, 65504.0),
    ([(-65504.0, 2.0)], -131008.0, -np.inf),
    ([(LEAST, 0.5)], 2.0**-25, 0.0),  # ties of the smallest
    ([(LEAST, 0.5), (LEAST, LEAST)], 2.0**-25 + 2.0**-48, LEAST),
    ([(LEAST, 1.5)], 1.5 * LEAST, 2 * LEAST),
    ([(2048.0, 1.0), (1.0, 1.0)], 2049.0, 2048.0),
    ([(2048.0, 1.0), (3.0, 1.0)], 2051.0, 2052.0),
    ([(4096.0, 4096.0), (1.0, 1.0)], 16777216.0, np.inf),  # a tie of float32
    ([(4096.0, 4096.0), (1.0, 1.0), (LEAST, LEAST)], 16777218.0, np.inf),
    ([(np.inf, 1.0), (1.0, 1.0)], np.inf, np.inf),
    ([(np.inf, LEAST), (-65504.0, 65504.0)], np.inf, np.inf),
    ([(np.inf, -1.0)], -np.inf, -np.inf),
    ([(np.inf, 1.0), (-np.inf, 1.0)], np.nan, np.nan),
    ([(np.inf, 0.0)], np.nan, np.nan),
    ([(-0.0, np.inf)], np.nan, np.nan),
    ([(np.nan, 0.0)], np.nan, np.nan),
    ([(1.0, -np.nan), (np.inf, 1.0)], np.nan, np.nan),
]


@pytest.mark.parametrize(("pairs", "single", "half"), CASES)
def test_directed(pairs: list, single: float, half: float) -> None:
    a, b = np.array(pairs, dtype=np.float16).T
    for wide, want in ((True, np.float32(single)), (False, np.float16(half))):
        c = fp16.multiply(a[None], b[:, None], wide)
        if np.isnan(want):
            assert c.view(np.uint32 if wide else np.uint16)[0, 0] == (
                fp16.NAN32 if wide else fp16.NAN16
            )
        else:
            assert c[0, 0] == want and np.signbit(c[0, 0]) == np.signbit(want)


def test_largest_sum() -> None:
    """K = 2^15 of the largest products, and the smallest one beside them."""
    a, b = (
        np.full((1, fp16.K_MOST), 65504, np.float16),
        np.full((fp16.K_MOST, 1), 65504, np.float16),
    )
    high, low = fp16.sums(a, b)
    assert int(high[0, 0]) * 2**fp16.LOW + int(low[0, 0]) == fp16.K_MOST * 65504**2 * 2**48
    b[-1], a[0, -1] = LEAST, -LEAST
    high, low = fp16.sums(a, b)
    assert (
        int(high[0, 0]) * 2**fp16.LOW + int(low[0, 0]) == (fp16.K_MOST - 1) * 65504**2 * 2**48 - 1
    )


def test_wrong_operands() -> None:
    good = np.zeros((2, 3), np.float16)
    for a, b in ((good, good), (good.astype(np.float32), good.T), (good[0], good.T)):
        with pytest.raises(ValueError, match=r"expected float16|no product"):
            fp16.multiply(a, b)


# --------------------------------------------------------------------- layers
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_products_as_layers(seed: int, wide: bool) -> None:
    """Any sizes, also such that need tiles; the layers' maps are the matrices row by row."""
    rng = np.random.default_rng(seed)
    m, k, n = (max(1, int(np.exp(rng.uniform(0, np.log(most))))) for most in (300, 300, 900))
    a, b = any_half(rng, (m, k), 3), any_half(rng, (k, n), seed % 5)
    for rows in (32768, 1024):
        assert same(fp16_product(a, b, wide=wide, ram_rows=rows), fp16.multiply(a, b, wide))


def test_tiles() -> None:
    for m, k, n, rows, count in (
        (512, 512, 512, 32768, 1),
        (1024, 1024, 33, 32768, 1),
        (7, 5, 241, 32768, 2),
        (1, 1, 1, 16, 1),
        (2000, 700, 2500, 32768, None),
        (500, 9216, 3, 32768, 2),  # 448 rows of A are 64 loads
    ):
        tiles = plan_fp16(m, k, n, ram_rows=rows)
        seen = np.zeros((m, n), dtype=np.uint8)
        for tile in tiles:
            seen[tile.m, tile.n] += 1
            tile.arg.validate(eight_bit=True, ram_rows=rows)
        assert (seen == 1).all() and count in (None, len(tiles))
    tile = plan_fp16(3, 4, 5)[0]
    a, b = np.ones((3, 4), np.float16), np.ones((4, 5), np.float16)
    network = network_of([tile], a, b)
    assert (network.run(fp16_operands(tile, a, b)[1]).stored.view("<f4") == 4).all()


@pytest.mark.parametrize(
    ("m", "k", "n", "rows", "text"),
    [
        (1, 9217, 1, 32768, "K = 9217, a layer has at most 9216 input channels"),
        (0, 1, 1, 32768, "no size below 1"),
        (1, 1024, 1, 200, "no column of B fits"),
    ],
)
def test_refused_products(m: int, k: int, n: int, rows: int, text: str) -> None:
    with pytest.raises(LayerError, match=text) as caught:
        plan_fp16(m, k, n, ram_rows=rows)
    assert caught.value.code == "BAD_SIZE"


def legal(**changes: int) -> LayerArg:
    return layer_of(4, 9, 32).replace(**changes)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"depth_wise_layer": 1}, "BAD_FLAGS"),
        ({"fc": 1}, "BAD_FLAGS"),
        ({"elementwise": 1}, "BAD_FLAGS"),
        ({"pool_task": 1}, "BAD_FLAGS"),
        ({"in_xor": 1}, "BAD_FLAGS"),
        ({"w_xor": 1}, "BAD_FLAGS"),
        ({"out32": 1}, "BAD_FLAGS"),
        ({"kernel_type": 1}, "BAD_KERNEL"),
        ({"pool_type": 1}, "BAD_POOL"),
        ({"i_row_wid": 63}, "BAD_SIZE"),
        ({"i_row_wid": 32, "i_col_high": 2}, "BAD_SIZE"),
        ({"o_col_high": 1}, "BAD_SIZE"),
        ({"o_row_wid": 32}, "BAD_SIZE"),
        ({"fp32": 0}, "BAD_SIZE"),
        ({"image_dst_addr": 3}, "BAD_ADDR"),
        ({"para_size": 10}, "BAD_WEIGHTS"),
    ],
)
def test_refused_layers(changes: dict[str, int], code: str) -> None:
    with pytest.raises(LayerError) as caught:
        legal(**changes).validate(eight_bit=True)
    assert caught.value.code == code
    number = legal(**changes).device_code(fp16_lanes=8)
    assert number == caught.value.number
    assert legal().device_code(fp16_lanes=8) == 0
    assert legal().device_code() == LayerError("BAD_FLAGS", "").number


def test_shapes() -> None:
    """One line of what is no multiple of 64 bytes; lines of 64 bytes otherwise."""
    assert shapes_of(512, True) == ((16, 64), (32, 64))
    assert shapes_of(240, True) == ((1, 480), (1, 960))
    assert shapes_of(241, True) is None and shapes_of(480, False) == ((15, 64), (15, 64))
    assert shapes_of(8192, True) == ((256, 64), (512, 64)) and shapes_of(8224, True) is None
    # a map of lines of 960 bytes, whose output has twice as many lines
    arg = LayerArg.make(2, 1, 960, 3, fp16=1, fp32=1, o_col_high=2, o_row_wid=960, eight_bit=False)
    assert arg.out_layout == Layout(3, 2, 960, base=arg.image_dst_addr)
    x = np.ones((2, 480), np.float16)
    y = run_layer(arg, x.view(np.uint8).reshape(2, 1, 960), np.zeros(12, np.uint8), NONE, NONE).y
    assert y.shape == (3, 2, 960) and not y.any()


def test_roofline() -> None:
    """The lanes of the build, or the bus."""
    config = load_config("k210_fp16")
    arg = plan_fp16(512, 512, 512)[0].arg
    assert layer_cycles(config, arg) == 512**3 // 256
    assert network_cycles(config, [arg]) == 512**3 // 256
    thin = plan_fp16(512, 512, 1)[0].arg
    assert layer_cycles(config, thin) == 512 * 512 * 2 // 8
