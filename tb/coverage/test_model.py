# SPDX-License-Identifier: Apache-2.0
"""The functional model: what it holds, and that its rules leave out what cannot be, and no more."""

import numpy as np
import pytest

from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.generators.generate import Limits, random_layer
from openkpu.layer import decoded
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import MAXIMUM
from openkpu.products.matmul_fp16 import layer_of
from openkpu_tb.core import descriptor
from openkpu_tb.core.registers import AI, PERF
from openkpu_tb.coverage import float16
from openkpu_tb.coverage.model import (
    KERNELS,
    POOLS,
    ROUTES,
    Bin,
    classify,
    crosses,
    dilation_bins,
    move_bins,
    register_words,
    task,
    wait_bins,
)

SIZES = decoded.Sizes()


def cross(name: str) -> list[Bin]:
    return next(c for c in crosses() if c.name == name).bins


PAIRS = 43  # of a pool and a width at which it has a window


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # convolutions and depthwise ones by kernel and bits, the former by loads; dense ones
        ("layer", 2 * PAIRS * 2 * 3 + 2 * PAIRS * 2 + 5 * 2 * 3),
        ("dilation", 7 * (2 * 5 + 1)),  # 2 to 8 pixels; two kinds with five pools, sums without
        ("waits", 4 * 3 * 2),  # ways, how layers are started, bits
        ("elementwise", 4 * 2 * PAIRS),  # four operations, with one map and two
        ("pooling", 4 * 3 * 5),  # kinds; windows without and with padding, of the whole map; widths
        ("product", 2 * 4 * 5),  # kernels, pairs of operands, widths
        ("order", 25 * 2),  # pairs of kinds, as list and stream
        ("float16", 2 * 3 * (4 * 2 + 2)),  # one line: four widths, whole or in part; several: two
        ("float16_values", 2 * 12 * 3 - 4 * 3),  # at three places, four of them of float16 alone
        # six kinds load from three kinds of address and store to two, by three ways; two by lines
        ("moves", 6 * (3 + 2) * 3 + 2 * 3 * 3),
    ],
)
def test_bins_by_count(name: str, count: int) -> None:
    """Counted by hand."""
    assert sum(5 if stride == 1 else 4 for stride in POOL_STRIDE.values()) == PAIRS
    assert len(cross(name)) == count


@pytest.mark.parametrize(("h", "n", "k", "wide"), [(1, 7, 1, 0), (1, 8, 9, 1), (2, 32, 10, 0)])
def test_float16_has_its_bin(h: int, n: int, k: int, wide: int) -> None:
    """The descriptor of a product says its bin."""
    arg = layer_of(3, k, n * h, wide=bool(wide))
    found = classify(
        descriptor.unpack(descriptor.pack_descriptor(descriptor.describe_layer(arg, SIZES)))
    )
    assert task(*found) == "float16" and found in {("float16", b) for b in cross("float16")}
    rest = {1: "one", 9: "whole nines", 10: "part of nine"}[k]
    line = ("one line", "2-16") if h == 1 else ("several lines", "33-64")
    end = "part of a piece" if n == 7 else "whole pieces"
    assert found[1] == (float16.TARGETS[wide], *line, end, rest)


def test_moves_have_their_bins() -> None:
    """Convolutions load maps of more lines than a band in bands; addresses count
    by what they divide by."""
    plain = LayerArg.make(2, 4, 70, 3, kernel=3)
    both = [("load in bands", "multiple of 64"), ("store", "multiple of 64")]
    cases = [
        ({"load_map": 1, "map_load_addr": 0x1003}, [("load in bands", "any byte")]),
        ({"store_map": 1, "map_store_addr": 0x1004}, [("store", "multiple of 4")]),
        ({"load_map": 1, "store_map": 1}, both),
        ({}, []),
    ]
    for fields, expected in cases:
        found = move_bins(
            descriptor.describe_layer(plain.replace(**fields), SIZES), "convolution", "list"
        )
        assert found == [("convolution", m, "list", a) for m, a in expected]
        assert set(found) <= set(cross("moves"))
    # lines of a band, by the width: 8, 4, 2, 1
    edges = ((8, 15), (4, 16), (4, 31), (2, 32), (2, 63), (1, 64))
    for lines, width in edges:
        for more in (0, 1):
            other = LayerArg.make(2, lines + more, width, 3, kernel=1 + 2 * (width % 2))
            fields = descriptor.describe_layer(other.replace(load_map=1), SIZES)
            found = [move for _, move, *_ in move_bins(fields, "convolution", "host")]
            assert found == [("load", "load in bands")[more]], (lines + more, width)
    deep = LayerArg.make(2, 4, 70, 2, kernel=3, depthwise=True, load_map=1)
    assert move_bins(descriptor.describe_layer(deep, SIZES), "convolution", "host")[0][1] == "load"


def test_dilated_layers_have_their_bins() -> None:
    """docs/kpu.md 1.16: the distance, by the descriptor; a layer without one has none."""
    for far, pool, dw, out32, kind in (
        (2, 0, 0, 0, "3x3"),
        (5, 4, 1, 0, "3x3 dw"),
        (8, 0, 0, 1, "3x3 sums"),
        (3, 1, 0, 0, "3x3"),
    ):
        arg = LayerArg.make(2, 9, 20, 2, kernel=3, pool=pool, depthwise=dw, out32=out32)
        plain = descriptor.describe_layer(arg, SIZES)
        assert dilation_bins(plain) == []
        fields = descriptor.describe_layer(arg.replace(dilation=far), SIZES)
        packed = descriptor.unpack(descriptor.pack_descriptor(fields))
        assert dilation_bins(packed) == [(str(far), kind, POOLS[pool])]
        assert set(dilation_bins(packed)) <= set(cross("dilation"))
        assert classify(packed) == classify(plain)
    for distance, kind, pool in cross("dilation"):
        assert 2 <= int(distance) <= 8 and pool in POOLS[:5]
        assert pool == "none" or kind != "3x3 sums"


def test_weights_have_their_bins() -> None:
    """All that the weights did in a layer's time; a pooling task has none."""
    arg = LayerArg.make(2, 4, 20, 3, kernel=3)
    for ways, routes in ((0, (0,)), (1, (1,)), (3, (1, 2)), (5, (1, 3)), (4, (3,)), (7, (1, 2, 3))):
        for eight in (True, False):
            fields = descriptor.describe_layer(arg, SIZES, eight_bit=eight)
            found, bits = wait_bins(fields, "list", ways), "8" if eight else "16"
            assert found == [(ROUTES[route], "list", bits) for route in routes]
            assert set(found) <= set(cross("waits"))
    task_fields = descriptor.describe_layer(pool_layer((2, 4, 20), MAXIMUM, (2, 2)), SIZES)
    assert wait_bins(task_fields, "host", 7) == []


def test_rules() -> None:
    """No window in a single column, one load of a depthwise layer, no pool of a dense one."""
    for kernel, pool, width, _, loads in cross("layer"):
        assert width != "1" or POOL_STRIDE[POOLS.index(pool)] == 1
        assert loads == "1" or not kernel.endswith("dw")
        assert pool == "none" or kernel != "fc"


def test_every_random_layer_has_its_bin() -> None:
    """Bins from descriptors are those of the arguments, and none of them was ruled out."""
    rng, legal, seen = np.random.default_rng(8), set(cross("layer")), set()
    while len(seen) < 80:
        try:
            layer = random_layer(rng, limits=Limits(size=70, channels=8))
        except LayerError:
            continue
        arg = layer.arg
        fields = descriptor.describe_layer(arg, decoded.Sizes(), eight_bit=layer.eight_bit)
        name, found = classify(descriptor.unpack(descriptor.pack_descriptor(fields)))
        assert name == "layer"
        kernel = "fc" if arg.fc else f"{arg.kernel}x{arg.kernel}" + " dw" * arg.depthwise
        low, _, high = found[2].partition("-")
        assert int(low) <= arg.i_row_wid <= int(high or low)
        loads = ["1", "2", "3 or more"][min(arg.loads, 3) - 1]
        expected = (kernel, POOLS[arg.pool_type], found[2], "8" if layer.eight_bit else "16", loads)
        assert found == expected and found in legal
        seen.add(found)
    assert {bin[0] for bin in seen} == set(KERNELS) and {bin[1] for bin in seen} == set(POOLS)


def test_words_are_the_register_map() -> None:
    found = register_words()
    assert {offset: found[offset].name for offset in AI.values()} == {v: k for k, v in AI.items()}
    assert found[PERF + 4].name == "PERF_TOTAL_hi" and len(found) == 75
    assert found[0x38].reset == 0x1F and found[0x3C].reset == 0
    registers = set(cross("register"))
    assert ("AI_ID", "read") in registers and ("AI_ID", "read reset value") not in registers
    assert ("AI_CTRL", "read reset value") not in registers
    assert ("AI_INT_MASK", "read reset value") in registers
