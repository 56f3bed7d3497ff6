# SPDX-License-Identifier: Apache-2.0
"""Every recorded layer must match, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import run_layer
from openkpu.layer.vectors import VectorLayer, load_cases

HERE = Path(__file__).resolve().parents[1] / "data" / "vectors"
SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
LAYERS = load_cases([HERE])


def mismatches(layer: VectorLayer) -> int:
    result = run_layer(
        layer.arg, layer.x, layer.weights, layer.bn, layer.act, eight_bit=layer.eight_bit
    )
    return int((result.y != layer.y).sum())


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.title)
def test_recorded_layer(layer: VectorLayer) -> None:
    assert mismatches(layer) == 0


def test_the_recorded_layers_are_worth_running() -> None:
    """All pools, both kernels, depthwise, 16 bits and several loads are among them."""
    args = [layer.arg for layer in LAYERS]
    assert {arg.pool_type for arg in args} == set(range(10))
    assert {arg.kernel for arg in args} == {1, 3}
    assert any(arg.depthwise for arg in args) and any(
        arg.depthwise and arg.pool_type for arg in args
    )
    assert {layer.eight_bit for layer in LAYERS} == {True, False}
    assert max(arg.loads for arg in args) > 2
    assert {arg.in_layout.groups for arg in args} == {1, 2, 4}
    assert any(arg.i_row_wid > 64 for arg in args)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.title)
def test_words_follow_the_compilers_rules(layer: VectorLayer) -> None:
    """Words round-trip, and ``make`` fills in the very same layout and load fields."""
    arg = layer.arg
    assert (arg.encode() == layer.words).all()
    arg.validate(eight_bit=layer.eight_bit)
    kept = ("arg_x", "shr_x", "arg_w", "shr_w", "arg_add", "pad_value", "send_data_out")
    made = LayerArg.make(
        *arg.in_shape,
        arg.o_ch_num,
        kernel=arg.kernel,
        pool=arg.pool_type,
        depthwise=arg.depthwise,
        eight_bit=layer.eight_bit,
        per_load=arg.o_ch_num_coef if layer.case.startswith("raw_") else None,
        src=arg.image_src_addr,
        dst=arg.image_dst_addr,
        **{name: getattr(arg, name) for name in kept},
    )
    assert made == arg


@pytest.mark.parametrize("folder, count", [("vectors", 178), ("real", 8)])
def test_the_whole_collection(folder: str, count: int) -> None:
    """All layers of the development collection, where it is present."""
    if not (SHARED / folder).is_dir():
        pytest.skip(f"{SHARED / folder} is not there; OPENKPU_SHARED names another place")
    layers = load_cases([SHARED / folder], say=print)
    assert {layer.title: mismatches(layer) for layer in layers if mismatches(layer)} == {}
    assert len(layers) >= count
