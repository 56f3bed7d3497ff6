# SPDX-License-Identifier: Apache-2.0
"""Configurations and the roofline."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import ConfigError
from openkpu.digits import load_network
from openkpu.layer.argument import LayerArg
from openkpu.prediction import roofline


def test_named_configurations() -> None:
    known = {"nano": 36, "compact": 72, "small": 144, "medium": 288, "k210": 576, "large": 1152}
    assert {name: configs.load_config(name).macs for name in known} == known
    assert set(known) <= set(configs.names())  # whoever adds one need not change this
    k210 = configs.load_config("k210")
    assert k210.ai_ram_rows * 64 == 2 << 20 and k210.bus_bytes == 8 and k210.use
    assert k210.parameters["N_Z"] == 16 and k210.parameters["AHB_W"] == 64
    assert set(k210.parameters) == {
        "N_Y", "N_Z", "AHB_W", "AI_RAM_ROWS", "WBUF_ROWS", "WEIGHT_BITS", "TILE_ROWS",
            "PATH", "PARAM_CHANS", "POST_SHARE", "POOL_LANES", "KEEP_WEIGHTS", "FLAT_MAPS",
        "SUM_PLANES", "LOOK_AHEAD", "WEIGHT_AHEAD", "DILATION",
        "PIX_FIFO_DEPTH", "WGT_FIFO_DEPTH", "BIAS_FIFO_DEPTH",
    }  # fmt: skip
    lanes = configs.load_config("k210_fp16").parameters
    assert lanes == k210.parameters | {"FP16_LANES": 256}
    without = {"KEEP_WEIGHTS", "FLAT_MAPS", "SUM_PLANES", "DILATION"}
    without |= {"LOOK_AHEAD", "WEIGHT_AHEAD"}
    assert not without & set(configs.load_config("nano").parameters)


@pytest.mark.parametrize(
    ("change", "most"),
    [({}, 256), ({"path_bytes": 16}, 128), ({"n_z": 4}, 64), ({"path_bytes": 128}, 256)],
)
def test_lanes_for_float16(change: dict[str, int], most: int) -> None:
    """Two multipliers and a row of weights for each lane; a power of two."""
    values = dataclasses.asdict(configs.load_config("k210_fp16")) | change
    values = {key: value for key, value in values.items() if key not in ("name", "use")}
    assert configs.fp16_most(values) == most
    for lanes in (0, 4, most):
        assert configs.illegal(values | {"fp16_lanes": lanes}) is None
    for lanes in (2, 6, 2 * most, 3 * most // 4):
        said = str(configs.illegal(values | {"fp16_lanes": lanes}))
        assert "expected 0 or a power of two" in said
    said = str(configs.illegal(values | {"fp16_lanes": 4, "weight_bits": 8}))
    assert "expected 0, or weight_bits = 16 with n_y = " in said


def test_unknown_configuration() -> None:
    with pytest.raises(
        ConfigError, match="unknown configuration 'tiny', expected one of nano, compact, sm"
    ):
        configs.load_config("tiny")
    with pytest.raises(ConfigError):
        configs.load_config("defaults")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("[nano]\nn_y = 2", "[nano]\nn_y = 0", "n_y = 0, expected 2, 4, 8 or 16"),
        ("[nano]\nn_y = 2", '[nano]\nn_y = "9"', "n_y = '9', expected an integer"),
        ("[nano]\nn_y = 2\n", "[nano]\n", "missing key 'n_y'"),
        ("[nano]\nn_y = 2", "[nano]\nn_q = 1\nn_y = 9", "unknown key 'n_q'"),
        ("[nano]", "[nano", "configs.toml: "),
    ],
)
def test_damaged_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = configs.CONFIGS.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "configs.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        configs.load_config("nano", path)
    assert message in str(caught.value)


def test_roofline_of_layers() -> None:
    k210 = configs.load_config("k210")
    conv = LayerArg.make(64, 64, 64, 64, kernel=3)
    assert roofline.layer_cycles(k210, conv) == 64 * 64 * 64 * 64 * 9 // 576
    # kept pixels only for a picking pool: a quarter
    pick = LayerArg.make(64, 64, 64, 64, kernel=3, pool=5)
    assert roofline.layer_cycles(k210, pick) == 64 * 64 * 64 * 64 * 9 // 576 // 4
    # bus-bound: 8 bytes a cycle
    dense = LayerArg.make(128, 4, 4, 48, fc=True)
    size = 2048 * 48 + 48 * 8 + 144
    assert roofline.layer_bytes(dense) == size
    assert roofline.layer_cycles(k210, dense) == size // 8
    more = {"task_list": True, "reads_input": True, "writes_output": True}
    assert roofline.layer_bytes(dense, **more) == size + 96 + 2048 + 48
    assert roofline.layer_bytes(dense, eight_bit=False) == size + 2048 * 48
    assert roofline.efficiency(90, 100) == 0.9


def test_roofline_of_a_network() -> None:
    """Sums first, then the maximum."""
    nano, layers = configs.load_config("nano"), load_network().layers
    macs = sum(roofline.needed_macs(arg) for arg in layers)
    size = sum(roofline.layer_bytes(arg, task_list=True) for arg in layers) + 64 + 10
    assert roofline.network_cycles(nano, layers) == max(ceil_div(macs, 36), ceil_div(size, 4))
