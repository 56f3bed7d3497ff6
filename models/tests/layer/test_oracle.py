# SPDX-License-Identifier: Apache-2.0
"""The golden model against the slow oracle on arbitrary small layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.tests.layer import oracle
from models.tests.layer.test_vectors import LAYERS
from openkpu.arithmetic.activation import ROUNDINGS, carry_shift
from openkpu.arithmetic.params import ActTable, BatchNorm, weights_from_bytes, weights_to_bytes
from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.generators.generate import random_layer
from openkpu.layer.argument import MOST_DILATED_POOL, MOST_DILATION, LayerArg
from openkpu.layer.golden import run_layer
from openkpu.layer.vectors import VectorLayer

# recorded layers that the oracle runs in about a second: they keep the oracle itself honest
SMALL = [r for r in LAYERS if r.x[0].size * r.arg.weight_count < 30_000]
EXAMPLES = settings(max_examples=250, deadline=None, print_blob=True)


def edgy(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a field, its ends and small values often."""
    ends = [v for v in (low, low + 1, -1, 0, 1, high - 1, high) if low <= v <= high]
    return st.one_of(st.sampled_from(ends), st.integers(low, high))


@st.composite
def layers(draw: st.DrawFn) -> tuple[LayerArg, bool, str, int, bool]:
    """(argument, eight_bit, rounding, seed of the data, tame numbers)."""
    fc = draw(st.integers(0, 5)) == 0
    depthwise = not fc and draw(st.integers(0, 3)) == 0
    kernel = 1 if fc else draw(st.sampled_from([1, 3]))
    pool = 0 if fc else draw(st.integers(0, 9))
    dilates = kernel == 3 and pool <= MOST_DILATED_POOL and draw(st.booleans())
    least = POOL_STRIDE[pool]
    tame = draw(st.booleans())  # values stay in 36 bits and segments get used
    wide = 16 if tame else 24
    c = draw(st.integers(1, 5))
    arg = LayerArg.make(
        c,
        draw(st.integers(least, 9)),
        draw(st.integers(least, 9)),
        c if depthwise else draw(st.integers(1, 4)),
        kernel=kernel,
        pool=pool,
        depthwise=depthwise,
        fc=fc,
        dilation=draw(st.integers(2, MOST_DILATION)) if dilates else 1,
        signed_in=draw(st.integers(0, 1)),
        signed_out=draw(st.integers(0, 1)),
        pad_value=draw(edgy(0, 255)),
        arg_x=draw(edgy(-(1 << (wide - 1)), (1 << (wide - 1)) - 1)),
        shr_x=draw(st.integers(0, 15)),
        arg_w=draw(edgy(-(1 << (wide - 1)), (1 << (wide - 1)) - 1)),
        shr_w=draw(st.integers(0, 15)),
        arg_add=draw(edgy(-(1 << 20), 1 << 20) if tame else edgy(-(1 << 39), (1 << 39) - 1)),
    )
    eight_bit = draw(st.booleans())
    arg = arg.with_loads(eight_bit)
    return arg, eight_bit, draw(st.sampled_from(ROUNDINGS)), draw(st.integers(0, 1 << 30)), tame


def tables(rng: np.random.Generator, arg: LayerArg, tame: bool) -> tuple[BatchNorm, ActTable]:
    """Arbitrary tables: negative multipliers, unsorted starts, every shift 0..63."""
    bits, count = (8 if tame else 24), arg.o_ch_num
    bn = BatchNorm.make(
        rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), count),
        rng.integers(0, 16, count),
        rng.integers(-(1 << 31), 1 << 31, count) >> (12 if tame else 0),
    )
    start = rng.integers(-(1 << 35), 1 << 35, 16) >> rng.integers(0, 24, 16)
    if rng.random() < 0.5:
        start[0] = -(1 << 35)
    if rng.random() < 0.5:
        start.sort()
    mul = rng.integers(-(1 << 15), 1 << 15, 16) >> rng.integers(0, 12, 16)
    return bn, ActTable.make(start, mul, rng.integers(0, 64, 16), rng.integers(0, 256, 16))


@EXAMPLES
@given(layers())
def test_arbitrary_layers_equal_the_oracle(case: tuple[LayerArg, bool, str, int, bool]) -> None:
    arg, eight_bit, rounding, seed, tame = case
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, arg.in_shape).astype(np.uint8)
    weights = rng.integers(0, 256 if eight_bit else 65536, arg.weight_count)
    bn, act = tables(rng, arg, tame)
    if tame and rng.random() < 0.7:  # starts on and around values that occur
        plain = run_layer(
            arg,
            x,
            weights_to_bytes(weights, eight_bit),
            bn.pack(),
            act.pack(),
            eight_bit=eight_bit,
            debug=True,
        )
        start = rng.choice(plain.v.reshape(-1), 16) + rng.integers(-1, 2, 16)
        start = np.clip(start, -(1 << 35), (1 << 35) - 1)
        act = ActTable.make(start, act.mul, act.shift % 24, act.add)
    check(arg, x, weights, bn, act, eight_bit, rounding)


@pytest.mark.parametrize("seed", range(60))
def test_generated_layers_equal_the_oracle(seed: int) -> None:
    """The generator's layers are in range and unsaturated: what the device tests use."""
    rounding = ROUNDINGS[seed % 3]
    rng = np.random.default_rng(seed)
    c, h, w = (int(v) for v in rng.integers(4, 8, 3))
    layer = random_layer(rng, c=c, h=h, w=w, o=3 if seed % 2 else None)
    check(
        layer.arg,
        layer.x,
        np.asarray(layer.weights if layer.eight_bit else layer.weights.view("<u2")),
        BatchNorm.unpack(layer.bn),
        ActTable.unpack(layer.act),
        layer.eight_bit,
        rounding,
    )


def check(
    arg: LayerArg,
    x: np.ndarray,
    weights: np.ndarray,
    bn: BatchNorm,
    act: ActTable,
    eight_bit: bool,
    rounding: str,
) -> dict:
    """Output bytes and both MAC counts equal the oracle's; returns what the oracle gives."""
    raw = weights_to_bytes(weights, eight_bit)
    got = run_layer(arg, x, raw, bn.pack(), act.pack(), eight_bit=eight_bit, rounding=rounding)
    layer = {
        "c": arg.i_ch_num,
        "h": arg.i_col_high,
        "w": arg.i_row_wid,
        "o": arg.o_ch_num,
        "kernel": arg.kernel,
        "pool": arg.pool_type,
        "depthwise": arg.depthwise,
        "fc": arg.fc,
        "signed_in": arg.signed_in,
        "signed_out": arg.signed_out,
        "pad": arg.pad_value,
        "dilation": arg.dilation,
    } | {key: getattr(arg, key) for key in ("arg_x", "shr_x", "arg_w", "shr_w", "arg_add")}
    want = oracle.run(
        layer,
        x.tolist(),
        weights.reshape(-1).tolist(),
        list(zip(bn.mul.tolist(), bn.shift.tolist(), bn.add.tolist(), strict=True)),
        list(
            zip(
                act.start.tolist(),
                act.mul.tolist(),
                act.shift.tolist(),
                act.add.tolist(),
                strict=True,
            )
        ),
        rounding,
    )
    assert got.y.tolist() == want["y"]
    assert (got.macs, got.macs_gated) == (want["macs"], want["macs_gated"])
    return want


@pytest.mark.parametrize("layer", SMALL, ids=lambda layer: layer.title)
def test_the_oracle_itself_equals_the_vendor(layer: VectorLayer) -> None:
    weights = weights_from_bytes(layer.weights, layer.eight_bit)
    bn, act = BatchNorm.unpack(layer.bn), ActTable.unpack(layer.act)
    want = check(layer.arg, layer.x, weights, bn, act, layer.eight_bit, "nncase")
    assert layer.y.tolist() == want["y"]


WORKED = {  # docs/kpu.md 1.2 and 1.3, s = 2, value -8..8
    "nncase": [-2, -2, -2, -3, -1, -1, -2, -2, 0, 0, 0, 1, 1, 1, 2, 2, 2],
    "v01": [-2, -2, -3, -3, -1, -1, -2, -2, 0, 0, 1, 1, 1, 1, 2, 2, 2],
    "trunc": [-2, -2, -2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2],
}


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_rounding_gives_the_worked_values(rounding: str) -> None:
    assert carry_shift(np.arange(-8, 9), 2, rounding).tolist() == WORKED[rounding]
    assert [oracle.carry_shift(v, 2, rounding) for v in range(-8, 9)] == WORKED[rounding]


@EXAMPLES
@given(
    edgy(-(1 << 51), 1 << 51),
    st.one_of(st.integers(0, 63), st.sampled_from([0, 1, 43, 53, 54, 55, 63])),
    st.sampled_from(ROUNDINGS),
)
def test_rounding_equals_the_oracle(value: int, shift: int, rounding: str) -> None:
    got = carry_shift(np.array([value]), np.array([shift]), rounding)
    assert got.tolist() == [oracle.carry_shift(value, shift, rounding)]


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_rounding_near_ties(rounding: str) -> None:
    """Around every tie of every small shift, both signs."""
    for shift in range(1, 12):
        half = 1 << (shift - 1)
        values = [k * half + d for k in range(-9, 10) for d in (-1, 0, 1)]
        want = [oracle.carry_shift(v, shift, rounding) for v in values]
        assert carry_shift(np.array(values), shift, rounding).tolist() == want


def test_unknown_rounding_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown rounding 'half'"):
        carry_shift(np.array([1]), 1, "half")
