# SPDX-License-Identifier: Apache-2.0
"""Codecs of the layer argument and its tables; the rules that make an argument illegal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openkpu.arithmetic.params import ActTable, BatchNorm, weights_from_bytes, weights_to_bytes
from openkpu.layer.argument import ERROR_CODES, FIELDS, LayerArg, LayerError
from openkpu.layer.layout import Layout

SETTINGS = settings(max_examples=100, deadline=None, print_blob=True)


def test_fields_do_not_overlap_and_fit_their_words() -> None:
    taken = [0] * 12
    for name, (word, low, width, _signed, _offset) in FIELDS.items():
        bits = ((1 << width) - 1) << low
        assert low + width <= 64 and not taken[word] & bits, name
        taken[word] |= bits


def test_many_channels() -> None:
    """Of a 1x1 convolution 9216 come in, of anything else 1024; a wider field has no more."""
    for most, kind in (
        (9216, {}),
        (9216, {"pool": 1}),
        (9216, {"out32": 1}),
        (1024, {"kernel": 3}),
        (1024, {"fc": True}),
    ):
        arg = LayerArg.make(most, 2, 2, 1, **kind)
        assert LayerArg.decode(arg.encode()) == arg and arg.device_code() == 0
        with pytest.raises(LayerError, match=f"BAD_SIZE: {most + 1} input channels"):
            LayerArg.make(most + 1, 2, 2, 1, **kind)
    arg = LayerArg.make(9216, 1, 1, 1)
    assert arg.weight_rows(4) == 1024 and arg.device_code(weight_rows=1024) == 0
    assert arg.device_code(weight_rows=1023) == ERROR_CODES["BAD_WEIGHTS"]
    assert arg.replace(i_ch_num=16384).device_code() == ERROR_CODES["BAD_SIZE"]


def test_every_field_has_its_place() -> None:
    """Bit ranges as docs/kpu.md section 2 lists them, spelled out a second time."""
    places = """
        int_en 0 0 0, ram_flag 0 1 1, full_add 0 2 2, depth_wise_layer 0 3 3,
        signed_in 0 8 8, signed_out 0 9 9, fc 0 10 10, elementwise 0 11 11, ew_op 0 12 13,
        ew_one 0 14 14, in_xor 0 15 15, w_xor 0 16 16, out32 0 17 17, fp16 0 18 18,
        fp32 0 19 19, dilation 0 20 22, load_map 0 24 24, store_map 0 25 25, kept_weights 0 26 26,
        in_strided 0 27 27, out_strided 0 28 28,
        map_load_addr 0 32 63,
        image_src_addr 1 0 14, image_src2_addr 1 16 30, image_dst_addr 1 32 46,
        i_ch_num 2 0 13, o_ch_num 2 32 41, o_ch_num_coef 2 48 57,
        i_row_wid 3 0 9, i_col_high 3 10 18, o_row_wid 3 32 41, o_col_high 3 42 50,
        kernel_type 4 0 2, pad_type 4 3 3, pool_type 4 4 7, first_stride 4 8 8,
        bypass_conv 4 9 9, load_para 4 10 10, dma_burst_size 4 16 23, pad_value 4 24 31,
        bwsx_base_addr 4 32 63,
        load_coor 5 0 0, load_time 5 1 6, para_size 5 15 31, para_start_addr 5 32 63,
        coef_column_offset 6 0 3, coef_row_offset 6 4 15, pool_task 6 16 18, pool_all 6 19 19,
        pool_kh 6 20 23, pool_kw 6 24 27, pool_sy 6 28 31, pool_sx 6 32 35,
        pool_top 6 36 38, pool_left 6 40 42, pool_bottom 6 44 46, pool_right 6 48 50,
        channel_switch_addr 7 0 14, row_switch_addr 7 16 19, coef_size 7 20 27,
        coef_group 7 28 30, load_act 7 31 31, active_addr 7 32 63,
        wb_channel_switch_addr 8 0 14, wb_row_switch_addr 8 16 19, wb_group 8 20 22,
        map_store_addr 8 32 63,
        shr_w 9 0 3, shr_x 9 4 7, arg_w 9 8 31, arg_x 9 32 55, arg_add 10 0 39,
        send_data_out 11 0 0, channel_byte_num 11 16 31, dma_total_byte 11 32 63
    """
    listed = {}
    for item in places.replace("\n", " ").split(","):
        name, word, low, high = item.split()
        listed[name] = (int(word), int(low), int(high) - int(low) + 1)
    assert listed == {name: spec[:3] for name, spec in FIELDS.items()}
    minus_one = "i_ch_num o_ch_num o_ch_num_coef i_row_wid i_col_high o_row_wid o_col_high "
    minus_one += "load_time channel_byte_num dma_total_byte pool_kh pool_kw pool_sy pool_sx "
    minus_one += "dilation"
    assert {n for n, spec in FIELDS.items() if spec[4] == 1} == set(minus_one.split())
    assert {n for n, spec in FIELDS.items() if spec[3]} == {"arg_x", "arg_w", "arg_add"}


@SETTINGS
@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=12, max_size=12))
def test_words_round_trip(words: list[int]) -> None:
    """Any words: decoding and encoding keeps exactly the bits of the fields."""
    mask = [0] * 12
    for word, low, width, *_ in FIELDS.values():
        mask[word] |= ((1 << width) - 1) << low
    arg = LayerArg.decode(words)
    assert arg.encode().tolist() == [w & m for w, m in zip(words, mask, strict=True)]
    assert LayerArg.decode(arg.encode()) == arg


def test_sizes_are_true_values() -> None:
    arg = LayerArg.make(3, 24, 40, 16, kernel=3, pool=1, arg_x=-128, arg_add=-5)
    assert (arg.in_shape, arg.conv_shape, arg.out_shape) == (
        (3, 24, 40),
        (16, 24, 40),
        (16, 12, 20),
    )
    assert (arg.taps, arg.weight_count, arg.add_count, arg.loads) == (27, 432, 3, 1)
    words = [int(w) for w in arg.encode()]
    assert words[2] & 0x3FF == 2 and (words[2] >> 32) & 0x3FF == 15
    assert words[9] >> 32 & 0xFFFFFF == 0xFFFF80 and words[10] == (1 << 40) - 5


@pytest.mark.parametrize(
    "shape, eight_bit, loads, per_load",
    [
        ((512, 8, 8, 256), True, 43, 6),  # 4608 bytes each, 6 in 30 KiB
        ((128, 8, 8, 128), False, 5, 26),  # 2304 bytes each, 26 in 60 KiB
        ((16, 8, 8, 24), True, 1, 24),
    ],
)
def test_weight_loads(shape: tuple, eight_bit: bool, loads: int, per_load: int) -> None:
    arg = LayerArg.make(*shape, kernel=3, eight_bit=eight_bit)
    assert (arg.loads, arg.o_ch_num_coef) == (loads, per_load)
    assert arg.para_size == per_load * arg.taps * (1 if eight_bit else 2)


def legal(**changes: int) -> LayerArg:
    return LayerArg.make(4, 8, 20, 6, kernel=3, pool=1).replace(**changes)


ILLEGAL = [
    ("BAD_FLAGS", {"depth_wise_layer": 1, "fc": 1}),
    ("BAD_KERNEL", {"kernel_type": 2}),
    ("BAD_KERNEL", {"kernel_type": 7}),
    ("BAD_KERNEL", {"fc": 1}),
    ("BAD_POOL", {"pool_type": 10}),
    ("BAD_POOL", {"pool_type": 15}),
    ("BAD_POOL", {"fc": 1, "kernel_type": 0}),
    ("BAD_SIZE", {"i_row_wid": 0}),
    ("BAD_SIZE", {"o_ch_num": 0}),
    ("BAD_SIZE", {"o_row_wid": 9}),
    ("BAD_SIZE", {"o_col_high": 5}),
    ("BAD_SIZE", {"depth_wise_layer": 1}),
    ("BAD_SIZE", {"fc": 1, "kernel_type": 0, "pool_type": 0}),
    ("BAD_SIZE", {"i_row_wid": 1000, "o_row_wid": 500}),
    ("BAD_SIZE", {"row_switch_addr": 2}),
    ("BAD_SIZE", {"coef_group": 4}),
    ("BAD_SIZE", {"wb_channel_switch_addr": 9}),
    ("BAD_ADDR", {"image_src_addr": 32767}),
    ("BAD_ADDR", {"image_dst_addr": 32767}),
    ("BAD_ADDR", {"image_src_addr": 9, "image_dst_addr": 9}),
    ("BAD_WEIGHTS", {"o_ch_num_coef": 5}),
    ("BAD_WEIGHTS", {"load_time": 2}),
    ("BAD_WEIGHTS", {"para_size": 215}),
    ("BAD_WEIGHTS", {"arg_x": 1 << 23}),
]


@pytest.mark.parametrize("code, changes", ILLEGAL)
def test_illegal_arguments(code: str, changes: dict[str, int]) -> None:
    legal().validate(eight_bit=True)
    with pytest.raises(LayerError) as caught:
        legal(**changes).validate(eight_bit=True)
    assert caught.value.code == code and str(caught.value).startswith(f"{code}: ")
    assert caught.value.number == ERROR_CODES[code] and "\n" not in str(caught.value)


def test_para_size_is_that_of_a_load() -> None:
    """Bytes of a load (docs/kpu.md 1.7), 216 weights: the width is that of the file, or either."""
    for eight_bit, sizes in ((True, {216}), (False, {432}), (None, {216, 432})):
        for size in (215, 216, 217, 400, 431, 432, 433, 864):
            if size in sizes:
                legal(para_size=size).validate(eight_bit=eight_bit)
            else:
                with pytest.raises(LayerError, match=f"^BAD_WEIGHTS: para_size {size} is not"):
                    legal(para_size=size).validate(eight_bit=eight_bit)


def test_code_of_the_device() -> None:
    """What it refuses, with which code, and what it does not mind."""
    assert legal().device_code() == 0
    for code, changes in ILLEGAL:
        ignored = any("switch" in name or "group" in name for name in changes)
        if "arg_x" not in changes:  # no words can hold that
            assert legal(**changes).device_code() == (0 if ignored else ERROR_CODES[code]), changes
    assert legal(para_size=400).device_code() == 0
    assert legal().device_code(eight_bit=False) == ERROR_CODES["BAD_WEIGHTS"]
    wide = legal(para_size=432)
    assert wide.device_code(eight_bit=False) == 0
    assert wide.device_code(eight_bit=False, weight_bits=8) == ERROR_CODES["BAD_WEIGHTS"]
    task = legal(pool_task=1, o_col_high=8, o_row_wid=8, kernel_type=0)
    assert task.device_code(pools=False) == ERROR_CODES["BAD_FLAGS"] != task.device_code()
    product = LayerArg.make(4, 8, 8, 4, kernel=1, out32=1)
    assert product.device_code(sums=False) == ERROR_CODES["BAD_FLAGS"] != product.device_code()
    assert legal().device_code(sums=False) == 0
    assert legal().device_code(ram_rows=32) == ERROR_CODES["BAD_ADDR"]


def rows(layout: Layout) -> set[int]:
    return set(range(layout.base, layout.base + layout.rows))


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("shape", [(5, 3, 12), (3, 4, 30), (2, 3, 64), (2, 3, 130)])
def test_every_place_around_the_input(shape: tuple[int, int, int], depthwise: bool) -> None:
    """Row by row past the input: what shares a row is refused, unless it was read before."""
    for pool, kernel in ((0, 1), (0, 3), (1, 1), (5, 3), (9, 3)):
        arg = LayerArg.make(*shape, kernel=kernel, pool=pool, depthwise=depthwise, src=40)
        refused = []
        for dst in range(80):
            moved = arg.replace(image_dst_addr=dst)
            shared = bool(rows(moved.in_layout) & rows(moved.out_layout))
            safe = depthwise and not pool and dst <= 40
            code = ERROR_CODES["BAD_ADDR"] if shared and not safe else 0
            assert moved.device_code() == code, f"{shape} pool {pool} to row {dst}"
            assert moved.maps_meet == shared
            refused += [dst] if code else []
        first = 41 if depthwise and not pool else 41 - arg.out_layout.rows
        assert refused == list(range(first, 40 + arg.in_layout.rows)), refused


def test_limits_of_memories() -> None:
    arg = LayerArg.make(64, 8, 8, 64, kernel=3)
    arg.validate(weight_slots=53 * 576)  # 53 channels are what fits in 30 KiB
    with pytest.raises(LayerError, match="BAD_WEIGHTS"):
        arg.validate(weight_slots=53 * 576 - 1)
    rows = arg.in_layout.rows + arg.out_layout.rows
    small = LayerArg.make(64, 8, 8, 64, kernel=3, ram_rows=rows)
    small.validate(ram_rows=rows)
    with pytest.raises(LayerError, match="BAD_ADDR"):
        small.validate(ram_rows=rows - 1)


@pytest.mark.parametrize(
    "code, request_",
    [
        ("BAD_KERNEL", {"kernel": 5}),
        ("BAD_POOL", {"pool": 11}),
        ("BAD_SIZE", {"pool": 3}),
        ("BAD_FLAGS", {"depthwise": True, "fc": True}),
        ("BAD_SIZE", {"depthwise": True, "o": 7}),
    ],
)
def test_impossible_requests(code: str, request_: dict) -> None:
    with pytest.raises(LayerError, match=code):
        LayerArg.make(3, 3, 9, **request_)


def test_bad_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="12 words"):
        LayerArg.decode([0] * 11)
    with pytest.raises(ValueError, match="18 words"):
        ActTable.unpack(np.zeros(17, dtype=np.uint64))


@SETTINGS
@given(st.integers(0, 1 << 30))
def test_batch_norm_round_trip(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bn = BatchNorm.make(
        rng.integers(-(1 << 23), 1 << 23, 9),
        rng.integers(0, 16, 9),
        rng.integers(-(1 << 31), 1 << 31, 9),
    )
    words = bn.pack()
    for i, word in enumerate(words.tolist()):
        assert word & 0xFFFFFF == int(bn.mul[i]) & 0xFFFFFF
        assert (word >> 24) & 0xFFFFFFFF == int(bn.add[i]) & 0xFFFFFFFF
        assert word >> 56 == bn.shift[i]
    again = BatchNorm.unpack(words)
    for name in ("mul", "shift", "add"):
        assert (getattr(again, name) == getattr(bn, name)).all()


@SETTINGS
@given(st.integers(0, 1 << 30))
def test_activation_round_trip(seed: int) -> None:
    rng = np.random.default_rng(seed)
    act = ActTable.make(
        rng.integers(-(1 << 35), 1 << 35, 16),
        rng.integers(-(1 << 15), 1 << 15, 16),
        rng.integers(0, 256, 16),
        rng.integers(-128, 256, 16),
    )
    words = act.pack()
    for i, word in enumerate(words[:16].tolist()):
        assert word & 0xFF == act.shift[i]
        assert (word >> 8) & 0xFFFF == int(act.mul[i]) & 0xFFFF
        assert (word >> 24) & ((1 << 36) - 1) == int(act.start[i]) & ((1 << 36) - 1)
    assert words[16:].astype("<u8").tobytes() == bytes(act.add.tolist())
    again = ActTable.unpack(words)
    for name in ("start", "mul", "shift", "add"):
        assert (getattr(again, name) == getattr(act, name)).all()


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="bn mul"):
        BatchNorm.make(1 << 23, 0, 0).pack()
    with pytest.raises(ValueError, match="act start"):
        ActTable.make(1 << 35, 0, 0, 0).pack()


def test_sixteen_bit_weights_are_little_endian() -> None:
    raw = weights_to_bytes(np.array([0x1234, 0xFF00]), eight_bit=False)
    assert raw.tolist() == [0x34, 0x12, 0x00, 0xFF]
    assert weights_from_bytes(raw, eight_bit=False).tolist() == [0x1234, 0xFF00]


# as callers without a type checker see them
MAKE: Callable[..., LayerArg] = LayerArg.make
ARG: Callable[..., LayerArg] = LayerArg


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (lambda: LayerArg.make(4, 8, 8, stride=2), "BAD_FLAGS", "no field 'stride', did you mean"),
        (lambda: LayerArg.make(4, 8, 8, arg_q=2), "BAD_FLAGS", "no field 'arg_q', did you mean"),
        (lambda: LayerArg.make(4, 8, 8, q=2), "BAD_FLAGS", "no field 'q', expected one of"),
        (lambda: LayerArg().replace(colour=2), "BAD_FLAGS", "no field 'colour'"),
        (lambda: MAKE(4.0, 8, 8), "BAD_SIZE", "c = 4.0, expected a whole number"),
        (lambda: MAKE(4, 8, 8, "3"), "BAD_SIZE", "o = '3', expected a whole number"),
        (lambda: LayerArg.make(4, 8, 8, 0), "BAD_SIZE", "o = 0, expected 1 or more"),
        (lambda: LayerArg.make(4, 8, 8, src=-1), "BAD_SIZE", "src = -1, expected 0 or more"),
        (lambda: LayerArg.make(4, 8, 8, per_load=0), "BAD_SIZE", "per_load = 0, expected 1 or"),
        (lambda: MAKE(4, 8, 8, pool=[1]), "BAD_SIZE", "pool = [1], expected a whole"),
        (lambda: MAKE(4, 8, 8, arg_x=0.5), "BAD_SIZE", "arg_x = 0.5, expected a whole"),
        (lambda: LayerArg.make(4, 8, 8, 4, fp16=1, kernel=3), "BAD_KERNEL", ""),
        (lambda: LayerArg.make(4, 8, 8, eight_bit=2), "BAD_WEIGHTS", "eight_bit = 2, expected 0"),
        (lambda: LayerArg.make(4, 8, 8, eight_bit=-1), "BAD_WEIGHTS", "eight_bit = -1, expected"),
        (lambda: MAKE(4, 8, 8, eight_bit=None), "BAD_SIZE", "eight_bit = None, expected"),
        (lambda: MAKE(4, 8, 8, eight_bit=[1]), "BAD_SIZE", "eight_bit = [1], expected"),
        (lambda: LayerArg.make(4, 8, 8).validate(eight_bit=7), "BAD_WEIGHTS", "eight_bit = 7, exp"),
        (lambda: ARG(i_ch_num=None), "BAD_SIZE", "i_ch_num = None, expected a whole number"),
    ],
)
def test_requests_that_cannot_be(make: Callable[[], object], code: str, said: str) -> None:
    with pytest.raises(LayerError) as caught:
        make()
    assert caught.value.code == code and said in str(caught.value)


@pytest.mark.parametrize("eight_bit", [1, True, np.True_, np.uint8(1)])
def test_a_width_of_any_kind(eight_bit: bool | int) -> None:
    assert LayerArg.make(4, 8, 8, eight_bit=eight_bit) == LayerArg.make(4, 8, 8)
    LayerArg.make(4, 8, 8).validate(eight_bit=eight_bit)


ANY = st.one_of(
    st.integers(-2, 70),
    st.sampled_from([1024, 1 << 17, 1 << 40, None, "3", 2.5, float("nan"), [1]]),
)
OPTIONS = ("o", "kernel", "pool", "depthwise", "fc", "eight_bit", "per_load", "src", "dst")


@example((1, 1, 1), {"o": 1, "kernel": 1, "fp16": 1, "o_row_wid": None})
@given(
    st.tuples(*[st.integers(1, 70) | ANY] * 3),
    st.dictionaries(st.sampled_from([*OPTIONS, "ram_rows", "stride", *FIELDS]), ANY, max_size=4),
)
@settings(max_examples=500, deadline=None)
def test_whatever_is_asked_for(sizes: tuple, options: dict) -> None:
    """A legal argument or a LayerError of one line, and nothing else."""
    try:
        arg = LayerArg.make(*sizes, **options)
    except LayerError as error:
        assert "\n" not in str(error)
    else:
        assert LayerArg.decode(arg.encode()) == arg


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("", {"in_strided": 1, "channel_switch_addr": 5}),
        ("", {"out_strided": 1, "wb_channel_switch_addr": 900, "image_dst_addr": 26463}),
        ("BAD_ADDR", {"in_strided": 1, "channel_switch_addr": 4}),
        ("BAD_ADDR", {"out_strided": 1, "wb_channel_switch_addr": 4}),
        ("BAD_ADDR", {"in_strided": 1, "channel_switch_addr": 16384}),
        ("BAD_ADDR", {"out_strided": 1, "wb_channel_switch_addr": 900, "image_dst_addr": 26464}),
        ("BAD_FLAGS", {"in_strided": 1, "channel_switch_addr": 5, "load_map": 1}),
        ("BAD_FLAGS", {"out_strided": 1, "wb_channel_switch_addr": 5, "store_map": 1}),
        ("BAD_FLAGS", {"out_strided": 1, "wb_channel_switch_addr": 5, "send_data_out": 1}),
        ("BAD_FLAGS", {"in_strided": 1, "channel_switch_addr": 5, "out32": 1}),
    ],
)
def test_rows_between_channel_groups(code: str, fields: dict[str, int]) -> None:
    """What docs/kpu.md 1.15 allows, and refuses."""
    arg = LayerArg.make(8, 5, 40).replace(**fields)
    if code:
        with pytest.raises(LayerError, match=code):
            arg.validate()
    else:
        arg.validate()


def test_in_place_with_groups_apart() -> None:
    """An output on its input is in order while its groups are no farther apart."""
    arg = LayerArg.make(8, 5, 40, depthwise=True, dst=0, src=0)
    near = {"in_strided": 1, "channel_switch_addr": 9, "out_strided": 1}
    assert arg.replace(**near, wb_channel_switch_addr=9).in_order
    assert arg.replace(**near, wb_channel_switch_addr=7).in_order
    assert not arg.replace(**near, wb_channel_switch_addr=10).in_order


@pytest.mark.parametrize(
    "fields",
    [
        {"kernel_type": 0},
        {"pool_type": 5},
        {"pool_type": 9},
        {"kernel_type": 0, "fc": 1},
        {"depth_wise_layer": 1, "elementwise": 1},
        {"kernel_type": 0, "pool_task": 1},
        {"kernel_type": 0, "fp16": 1},
    ],
    ids=str,
)
def test_kinds_that_exclude_dilation(fields: dict[str, int]) -> None:
    """docs/kpu.md 1.16: BAD_FLAGS, whatever else is wrong; the same layer without it is not."""
    arg = LayerArg.make(4, 8, 20, 4, kernel=3).replace(**fields)
    assert arg.replace(dilation=2).device_code(fp16_lanes=4) == ERROR_CODES["BAD_FLAGS"]
    assert arg.device_code(fp16_lanes=4) != ERROR_CODES["BAD_FLAGS"]
    with pytest.raises(LayerError, match=r"BAD_FLAGS: .*dilation"):
        arg.replace(dilation=8).validate()


def test_dilation_of_the_device() -> None:
    arg = LayerArg.make(4, 3, 2, 4, kernel=3, dilation=8)  # more than the map has pixels
    assert [arg.device_code(dilation=most) for most in (8, 7, 1)] == [0, 6, 6]
    assert arg.replace(dilation=1).device_code(dilation=1) == 0
    with pytest.raises(LayerError, match=r"dilation = 9 is outside 1\.\.8"):
        LayerArg.make(4, 3, 2, 4, kernel=3, dilation=9)


def test_dilated_depthwise_layers_share_no_rows() -> None:
    """A row is read three times, and lines apart: it must not be overwritten in between."""
    arg = LayerArg.make(4, 8, 20, kernel=3, depthwise=True, src=8, dst=8)
    with pytest.raises(LayerError, match="BAD_ADDR"):
        arg.replace(dilation=2).validate()
