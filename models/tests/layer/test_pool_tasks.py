# SPDX-License-Identifier: Apache-2.0
"""Pooling tasks against onnxruntime, against sums in Python, and what is refused."""

import itertools
from fractions import Fraction
from functools import cache
from math import floor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from openkpu.generators.generate_pools import random_pool
from openkpu.layer.argument import FIELDS, LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import Layout
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import AVERAGE, AVERAGE_INSIDE, KINDS, MAXIMUM, MINIMUM, words_read
from openkpu.layer.vectors import load_file, save_file
from openkpu.products.matmul_fp16 import layer_of as fp16_layer

NONE = np.zeros(0, np.uint8), np.zeros(0, np.uint64), np.zeros(0, np.uint64)


def run(arg: LayerArg, x: np.ndarray) -> np.ndarray:
    y = run_layer(arg, x, *NONE).y
    return y.view(np.int8) if arg.signed_in or arg.signed_out else y


@cache
def session(kind: str, element: int, kernel, stride, pads, inside: bool):
    """A model of one pooling node on the CPU provider."""
    fields = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    if kind == "AveragePool":
        fields["count_include_pad"] = int(not inside)
    node = helper.make_node(kind, ["x"], ["y"], **fields)
    ends = [helper.make_tensor_value_info(name, element, [None] * 4) for name in "xy"]
    graph = helper.make_graph([node], "pool", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def onnx(arg: LayerArg, x: np.ndarray) -> np.ndarray:
    """What onnxruntime gives for a task: maxima of bytes, or float averages."""
    kernel = arg.in_shape[1:] if arg.pool_all else (arg.pool_kh, arg.pool_kw)
    fixed = kernel, (arg.pool_sy, arg.pool_sx)
    pads = arg.pool_top, arg.pool_left, arg.pool_bottom, arg.pool_right
    if arg.pool_task in (AVERAGE, AVERAGE_INSIDE):
        inside = arg.pool_task == AVERAGE_INSIDE
        node = session("AveragePool", TensorProto.FLOAT, *fixed, pads, inside)
        # a pad that is not 0 is a difference to all pixels: onnx pads with 0
        pad = np.array(arg.pad_value, np.uint8).view(x.dtype)
        shift = 0.0 if inside else float(pad)
        y = node.run(None, {"x": x[None].astype(np.float32) - np.float32(shift)})[0]
        return np.asarray(y)[0] + shift
    element = TensorProto.INT8 if x.dtype == np.int8 else TensorProto.UINT8
    node = session("MaxPool", element, *fixed, pads, False)
    turned = x if arg.pool_task == MAXIMUM else ~x  # the minimum is the maximum of complements
    y = np.asarray(node.run(None, {"x": turned[None]})[0])[0]
    return y if arg.pool_task == MAXIMUM else ~y


@pytest.mark.parametrize("kind", KINDS)
def test_against_onnxruntime(kind: int) -> None:
    """Maxima and minima byte by byte; averages with the rounding that is defined, exactly.

    Sums of up to 256 bytes are exact in float32; an average that is not a half is further than
    2^-10 from the next one, so the float quotient rounds as the exact one, and halves are exact.
    """
    rng = np.random.default_rng(11)
    halves = 0
    for _ in range(100):
        layer = random_pool(rng, kind=kind, whole=False, signed_in=False)
        x = layer.x.view(np.int8) if layer.arg.signed_out else layer.x
        want = onnx(layer.arg, x)
        if kind in (AVERAGE, AVERAGE_INSIDE):
            assert want.dtype == np.float32
            halves += np.count_nonzero(want % 1 == 0.5)
            want = np.floor(want.astype(np.float64) + 0.5 + 2.0**-12)
        got = layer.y.view(x.dtype)
        assert (got == want).all(), layer.arg
    assert kind in (MAXIMUM, MINIMUM) or halves > 50


def by_hand(arg: LayerArg, x: np.ndarray) -> np.ndarray:
    """Window by window, fractions instead of floats."""
    _, h, w = arg.in_shape
    kh, kw = (h, w) if arg.pool_all else (arg.pool_kh, arg.pool_kw)
    pad = int(np.array(arg.pad_value, np.uint8).view(x.dtype))
    if arg.signed_in:
        x, pad = np.maximum(x, 0), max(pad, 0)
    out = np.zeros(arg.out_shape, dtype=np.int64)
    for o, oy, ox in itertools.product(*map(range, arg.out_shape)):
        top, left = oy * arg.pool_sy - arg.pool_top, ox * arg.pool_sx - arg.pool_left
        places = itertools.product(range(top, top + kh), range(left, left + kw))
        found = [int(x[o, y, v]) if 0 <= y < h and 0 <= v < w else None for y, v in places]
        inside = [value for value in found if value is not None]
        if arg.pool_task == MAXIMUM:
            out[o, oy, ox] = max(inside)
        elif arg.pool_task == MINIMUM:
            out[o, oy, ox] = min(inside)
        else:
            if arg.pool_task == AVERAGE:
                inside += [pad] * (len(found) - len(inside))
            out[o, oy, ox] = floor(Fraction(sum(inside), len(inside)) + Fraction(1, 2))
    return out


def test_against_fractions() -> None:
    """Every kind, both signs, negative pixels that count as 0, windows of the whole map."""
    rng = np.random.default_rng(3)
    for kind, signs in itertools.product(KINDS, itertools.product((False, True), repeat=3)):
        whole, signed_in, signed_out = signs
        for _ in range(3):
            layer = random_pool(
                rng,
                kind=kind,
                c=2,
                h=9,
                w=int(rng.integers(1, 20)),
                whole=whole,
                signed_in=signed_in,
                signed_out=signed_out,
            )
            x = layer.x.view(np.int8) if signed_in or signed_out else layer.x
            assert (run(layer.arg, layer.x) == by_hand(layer.arg, x)).all(), layer.arg


def test_halves_are_rounded_up() -> None:
    arg = pool_layer((1, 1, 2), AVERAGE, (1, 2))
    pairs = [(0, 1, 1), (1, 2, 2), (2, 3, 3), (254, 255, 255)]
    for a, b, want in pairs:
        assert run(arg, np.array([[[a, b]]], np.uint8)) == want
    for a, b, want in [(-1, 0, 0), (-2, -1, -1), (-128, -127, -127), (1, 2, 2)]:
        assert run(arg.replace(signed_out=1), np.array([[[a, b]]], np.int8)) == want


def test_padding_counts_or_not() -> None:
    """A map of 100s under 3x3 with a line of padding: the corner has four pixels."""
    x = np.full((1, 4, 4), 100, np.uint8)
    counted = pool_layer((1, 4, 4), AVERAGE, (3, 3), pads=(1, 1, 1, 1), pad_value=10)
    assert run(counted, x)[0, 0].tolist() == [50, 70, 70, 50]
    inside = counted.replace(pool_task=AVERAGE_INSIDE)
    assert (run(inside, x) == 100).all()
    for kind in (MAXIMUM, MINIMUM):
        assert (run(counted.replace(pool_task=kind), x) == 100).all()


def test_the_largest_map() -> None:
    """512 lines of 960 pixels: 491,520 numbers in one average."""
    x = np.full((1, 512, 960), 255, np.uint8)
    x[0, :256] = 254
    arg = pool_layer((1, 512, 960), AVERAGE)
    assert run(arg, x) == 255
    x[0, 0, 0] -= 1
    assert run(arg, x) == 254
    assert words_read(arg) == 512 * 60


LEGAL = pool_layer((4, 9, 9), MAXIMUM, (3, 3), (2, 2), (1, 1, 1, 1), src=0, dst=9)


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"pool_task": 5}, "BAD_POOL", "pool_task 5 is reserved"),
        ({"pool_task": 7}, "BAD_POOL", "pool_task 7 is reserved"),
        ({"depth_wise_layer": 1}, "BAD_FLAGS", "neither depthwise"),
        ({"fc": 1}, "BAD_FLAGS", "fully connected"),
        ({"elementwise": 1}, "BAD_FLAGS", "neither depthwise"),
        ({"kernel_type": 1}, "BAD_KERNEL", "kernel_type 0"),
        ({"pool_type": 1}, "BAD_POOL", "pool_type 0"),
        ({"pool_top": 3}, "BAD_POOL", "padding 3, 1, 1, 1"),
        ({"pool_left": 3}, "BAD_POOL", "not smaller than the 3 x 3 window"),
        ({"pool_bottom": 3}, "BAD_POOL", "not smaller"),
        ({"pool_right": 7}, "BAD_POOL", "not smaller"),
        ({"pool_all": 1}, "BAD_POOL", "whole map"),
        ({"o_ch_num": 5}, "BAD_SIZE", "4 -> 5"),
        ({"pool_kh": 12}, "BAD_SIZE", "give 0 x 5"),
        ({"o_row_wid": 4}, "BAD_SIZE", "output 5 x 4"),
        ({"o_col_high": 6}, "BAD_SIZE", "output 6 x 5"),
        ({"image_dst_addr": 8}, "BAD_ADDR", "8..12"),
        ({"image_dst_addr": 32766}, "BAD_ADDR", "output map"),
    ],
)
def test_refused(fields: dict[str, int], code: str, said: str) -> None:
    LEGAL.validate()
    arg = LEGAL.replace(**fields)
    with pytest.raises(LayerError, match=said) as caught:
        arg.validate()
    assert caught.value.code == code and arg.device_code() == caught.value.number
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["pool_kh", "pool_kw", "pool_sy", "pool_sx"])
def test_fields_reach_from_1_to_16(name: str) -> None:
    for value in (0, 17):
        with pytest.raises(LayerError, match=f"{name} = {value} is outside 1..16"):
            LEGAL.replace(**{name: value}).encode()


def test_windows_that_fit_nowhere() -> None:
    with pytest.raises(LayerError, match=r"BAD_SIZE: a window of \(4, 4\)"):
        pool_layer((1, 3, 9), MAXIMUM, (4, 4))


def test_zero_bits_are_no_task() -> None:
    """Without pool_task the other bits mean nothing, and a layer is what it was."""
    layer = LayerArg.make(3, 8, 8, 4, kernel=3)
    assert not layer.pool_task and int(layer.encode()[6]) == 0
    layer.replace(pool_all=1, pool_kh=16, pool_top=7).validate()


def test_every_corner_is_drawn() -> None:
    rng = np.random.default_rng(8)
    seen: dict[str, set[int]] = {name: set() for name in FIELDS if name.startswith("pool_")}
    for _ in range(400):
        arg = random_pool(rng).arg
        assert not arg.maps_meet
        for name, values in seen.items():
            values.add(getattr(arg, name))
    seen.pop("pool_type")
    assert seen.pop("pool_task") == set(KINDS) and seen.pop("pool_all") == {0, 1}
    for name, values in seen.items():
        ends = {0, 7} if name[5:] in ("top", "left", "bottom", "right") else {1, 16}
        assert ends <= values, name


def test_vectors(tmp_path: Path) -> None:
    """Written and read again; the tables are empty."""
    layers = [random_pool(np.random.default_rng(seed)) for seed in range(4)]
    save_file(tmp_path / "pools.npz", layers)
    for before, after in zip(layers, load_file(tmp_path / "pools.npz"), strict=True):
        assert after.arg == before.arg and (after.x == before.x).all()
        assert (after.y == before.y).all() and after.bn.size == after.act.size == 0


def test_places_of_random_maps() -> None:
    arg = random_pool(np.random.default_rng(1), ram_rows=400, c=2, h=9, w=9).arg
    assert max(m.base + m.rows for m in (arg.in_layout, arg.out_layout)) <= 400
    assert arg.in_layout == Layout(2, 9, 9, base=arg.image_src_addr)


@pytest.mark.parametrize("arg", [LEGAL, fp16_layer(2, 3, 4)])
def test_debug_of_what_has_no_sums(arg: LayerArg) -> None:
    """A task and a float16 product have no sums to give: an error, and no result without them."""
    x = np.zeros(arg.in_shape, np.uint8)
    weights = np.zeros(arg.weight_size(False) * arg.weight_count, np.uint8)
    none = np.zeros(0, np.uint64)
    assert run_layer(arg, x, weights, none, none, eight_bit=False).y.shape == arg.out_shape
    with pytest.raises(ValueError, match="debug: a pooling task or float16 product has no sums"):
        run_layer(arg, x, weights, none, none, eight_bit=False, debug=True)
