# SPDX-License-Identifier: Apache-2.0
"""The generator: what it promises to the tests and benchmarks that use it."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.generators.generate_products import random_product
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import run_layer
from openkpu.network.device_rules import check_network, lacks
from openkpu.network.network import Network, NetworkError

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("seed", range(150))
def test_layers_are_legal_in_range_and_worth_comparing(seed: int) -> None:
    layer = random_layer(np.random.default_rng(seed))
    arg = layer.arg
    arg.validate(eight_bit=layer.eight_bit)
    first, second = sorted([arg.in_layout, arg.out_layout], key=lambda m: m.base)
    assert first.base + first.rows <= second.base, "maps overlap"
    # sums stay far from where 36 bits would wrap: the wrapped values equal the unwrapped ones
    result = run_layer(
        arg,
        layer.x,
        layer.weights,
        layer.bn,
        layer.act,
        eight_bit=layer.eight_bit,
        debug=True,
    )
    assert (result.y == layer.y).all()
    assert max(np.abs(result.alu).max(), np.abs(result.v).max()) < 1 << 34
    assert len(np.unique(layer.y)) >= min(3, layer.y.size // 3)


def test_same_seed_same_layer() -> None:
    a, b = (random_layer(np.random.default_rng(9)) for _ in range(2))
    assert a.arg == b.arg and (a.x == b.x).all() and (a.y == b.y).all()


def test_constraints_are_kept() -> None:
    rng = np.random.default_rng(1)
    layer = random_layer(
        rng,
        c=5,
        h=9,
        w=33,
        o=4,
        kernel=3,
        pool=6,
        per_load=2,
        src=7,
        depthwise=False,
        fc=False,
        signed_in=True,
        eight_bit=False,
    )
    arg = layer.arg
    assert arg.in_shape == (5, 9, 33) and arg.out_shape == (4, 4, 16)
    assert (arg.kernel, arg.pool_type, arg.loads, arg.image_src_addr) == (3, 6, 2, 7)
    assert arg.signed_in and not layer.eight_bit and not arg.fc and not arg.depthwise
    limits = Limits(channels=3, size=5, pools=(0,), signed=False, sixteen_bit=False)
    for seed in range(40):
        layer = random_layer(np.random.default_rng(seed), limits=limits)
        assert max(layer.arg.in_shape) <= 5 and layer.arg.pool_type == 0
        assert not layer.arg.signed_in and not layer.arg.signed_out and layer.eight_bit


def test_every_feature_turns_up() -> None:
    layers = [random_layer(np.random.default_rng(seed)) for seed in range(250)]
    args = [layer.arg for layer in layers]
    assert {arg.pool_type for arg in args} == set(range(10))
    for name in ("fc", "depth_wise_layer", "signed_in", "signed_out", "kernel_type"):
        assert {getattr(arg, name) for arg in args} == {0, 1}, name
    assert {layer.eight_bit for layer in layers} == {True, False}
    assert max(arg.loads for arg in args) > 3


def drawn(seed: int, most: int) -> tuple[list[LayerArg], list[Network]]:
    """Arguments of layers, products, networks and lists whose limit is ``most``, and the latter."""
    rng = np.random.default_rng(seed)
    limits = Limits(channels=6, size=14, dilation=most)
    layers = [random_layer(rng, limits=limits).arg for _ in range(4)]
    layers += [random_product(rng, limits=limits).arg for _ in range(4)]
    networks = [random_network(rng, limits=limits)[0]]
    while len(networks) < 2:
        with contextlib.suppress(NetworkError):
            kinds = [str(kind) for kind in rng.choice(KINDS, 6)]
            networks.append(random_list(rng, kinds, (3, 9, 14), limits=limits)[0])
    return [*layers, *(arg for network in networks for arg in network.layers)], networks


def test_distances_of_taps_within_the_limit() -> None:
    """docs/kpu.md 1.16: every distance up to the limit is drawn, on every kind of layer that has
    it, and no other; a device that has the limit runs all of it, one with less refuses."""
    for most in (1, 2, 5, 8):
        config = dataclasses.replace(configs.load_config("nano"), dilation=most)
        seen: list[LayerArg] = []
        for seed in range(40):
            args, networks = drawn(seed, most)
            seen += args
            for network in networks:
                check_network(network, config)
            for arg in args:
                assert not lacks(arg, config)
        far = [arg for arg in seen if arg.dilation > 1]
        assert {arg.dilation for arg in seen} == set(range(1, most + 1))
        assert all(arg.kernel_type == 1 and arg.pool_type <= 4 for arg in far)
        assert not any(arg.elementwise or arg.pool_task or arg.fc for arg in far)
        nano = configs.load_config("nano")
        assert all("nano has dilation = 1" in str(lacks(arg, nano)) for arg in far)
        if most > 1:
            assert {arg.pool_type for arg in far} == {0, 1, 2, 3, 4}
            for name in ("depth_wise_layer", "out32", "signed_in"):
                assert {getattr(arg, name) for arg in far} == {0, 1}, name


def test_package_needs_no_simulator() -> None:
    """Importing everything pulls in neither cocotb nor pyuvm."""
    code = (
        "import sys, openkpu.generators.generate, openkpu.network.network\n"
        "import openkpu.prediction.roofline, openkpu.digits.quantise\n"
        "assert not {'cocotb', 'pyuvm', 'cocotb_bus'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
