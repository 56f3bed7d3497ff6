# SPDX-License-Identifier: Apache-2.0
"""The AI RAM layout codec against the byte formula of docs/kpu.md 2.2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout


def byte_address(base: int, c: int, y: int, x: int, shape: tuple[int, int, int]) -> int:
    """docs/kpu.md 2.2, one byte at a time."""
    _, height, width = shape
    if width <= 16:
        groups, row_len, pitch = 4, 1, 16
    elif width <= 32:
        groups, row_len, pitch = 2, 1, 32
    else:
        groups, row_len, pitch = 1, (width + 63) // 64, 64
    switch = row_len * height
    return base * 64 + (c // groups) * switch * 64 + y * row_len * 64 + (c % groups) * pitch + x


@settings(max_examples=60, deadline=None, print_blob=True)
@given(
    st.integers(1, 9),
    st.integers(1, 7),
    st.sampled_from([1, 4, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 129, 200]),
    st.integers(0, 5),
    st.integers(0, 1 << 30),
)
def test_bytes_lie_where_the_formula_says(c: int, h: int, w: int, base: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (c, h, w)).astype(np.uint8)
    layout = Layout(c, h, w, base=base)
    ram = airam.new_ram(base + layout.rows, fill=0x5A)  # exactly as many rows as needed
    assert airam.pack_map(ram, base, x) == layout
    want = np.full_like(ram, 0x5A)
    for at in np.ndindex(x.shape):
        channel, line, column = at
        want[byte_address(base, channel, line, column, x.shape)] = x[at]
    assert (ram == want).all()
    assert (airam.unpack_map(ram, base, x.shape) == x).all()
    groups = 4 if w <= 16 else 2 if w <= 32 else 1
    occupied = layout.row_len * h * ceil_div(c, min(c, groups)) * 64
    assert layout.bytes == occupied or c < groups  # a single short group takes the same rows
    assert layout.bytes == layout.row_len * h * ceil_div(c, groups) * 64


def test_signed_maps_are_bytes() -> None:
    ram = airam.new_ram(4)
    airam.pack_map(ram, 0, np.array([[[-1, -128, 127]]], dtype=np.int8))
    assert ram[:3].tolist() == [255, 128, 127]


def test_maps_outside_are_refused() -> None:
    ram = airam.new_ram(8)
    with pytest.raises(ValueError, match=r"rows 1\.\.8, the AI RAM has 8"):
        airam.unpack_map(ram, 1, (1, 8, 40))
    with pytest.raises(ValueError):
        airam.pack_map(ram, -1, np.zeros((1, 1, 1), np.uint8))


def test_layout_fields_of_an_argument() -> None:
    arg = LayerArg.make(5, 6, 100, 7, kernel=3, pool=2)
    assert (arg.row_switch_addr, arg.channel_switch_addr, arg.coef_group) == (2, 12, 1)
    assert (arg.wb_row_switch_addr, arg.wb_channel_switch_addr, arg.wb_group) == (1, 3, 1)
    assert arg.in_layout.rows == 60 and arg.out_layout.rows == 21


@pytest.mark.parametrize("shape", [(5, 3, 12), (3, 2, 20), (2, 4, 70)])
def test_lines_of_a_larger_map(shape: tuple[int, int, int]) -> None:
    """A map with rows between its channel groups is some lines of one that has more."""
    c, h, w = shape
    rng = np.random.default_rng(3)
    ram, x = airam.new_ram(400), rng.integers(1, 256, (c, h + 4, w)).astype(np.uint8)
    whole = airam.pack_map(ram, 7, x)
    part = Layout(c, h, w, base=7 + 3 * whole.row_len, stride=whole.channel_rows)
    assert (airam.read_rows(ram, part) == x[:, 3 : 3 + h]).all()
    y = rng.integers(0, 256, shape).astype(np.uint8)
    airam.write_rows(ram, part, y)
    x[:, 3 : 3 + h] = y
    assert (airam.unpack_map(ram, 7, x.shape) == x).all()
    assert part.rows == whole.rows - 4 * whole.row_len
    beside = Layout(c, 4, w, base=7 + (3 + h) * whole.row_len, stride=whole.channel_rows)
    assert not part.meets(Layout(c, 3, w, base=7, stride=whole.channel_rows))
    assert part.meets(whole) and part.meets(part) and not part.meets(beside)
