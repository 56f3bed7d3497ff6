# SPDX-License-Identifier: Apache-2.0
"""Configurations that no device can have, and ones that anybody may add."""

import dataclasses
import re
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.configs import ConfigError

TEXT = configs.CONFIGS.read_text(encoding="utf-8")


def write(folder: Path, **values: object) -> Path:
    """configs.toml with one more table, [mine]: nano with ``values``."""
    rows = {"n_y": 2, "n_z": 2, "for": '"trying"', **values}
    lines = [f"{key} = {value}" for key, value in rows.items() if value is not None]
    path = folder / "configs.toml"
    path.write_text("\n".join([TEXT, "", "[mine]", *lines, ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ahb_width": 48}, "ahb_width = 48, expected 32, 64 or 128"),
        ({"n_y": 3}, "n_y = 3, expected 2, 4, 8 or 16"),
        ({"n_y": 1}, "n_y = 1, expected 2"),
        ({"n_y": 32}, "n_y = 32, expected 2"),
        ({"n_z": 12}, "n_z = 12, expected a power of two from 2 to 64"),
        ({"n_z": 128}, "n_z = 128, expected a power of two from 2 to 64"),
        ({"n_y": 4, "n_z": 64}, "n_y * n_z = 256 lanes, expected 128"),
        ({"weight_bits": 12}, "weight_bits = 12, expected 8 or 16"),
        ({"path_bytes": 256}, "path_bytes = 256, expected 16, 32, 64 or 128"),
        ({"param_chans": 512}, "param_chans = 512, expected 1024 or 2048"),
        ({"post_share": 3}, "post_share = 3, expected 1, 2 or 4"),
        ({"n_y": 4, "n_z": 2, "post_share": 4}, "post_share = 4, expected n_z = 2 at most"),
        ({"path_bytes": 8}, "path_bytes = 8, expected 16, 32, 64 or 128"),
        ({"ai_ram_rows": 8}, "ai_ram_rows = 8, expected"),
        ({"ai_ram_rows": 65536}, "ai_ram_rows = 65536, expected"),
        ({"wbuf_rows": 32}, "wbuf_rows = 32, expected a power of two from 64"),
        ({"wbuf_rows": 96}, "wbuf_rows = 96, expected a power of two from 64 to 32768"),
        ({"wbuf_rows": 65536}, "wbuf_rows = 65536, expected a power of two from 64 to 32768"),
        ({"look_ahead": 6}, "look_ahead = 6, expected 4, 8 or 16"),
        ({"look_ahead": 0}, "look_ahead = 0, expected 4, 8 or 16"),
        ({"weight_ahead": 2}, "weight_ahead = 2, expected 0 or 1"),
        (
            {"weight_ahead": 1, "path_bytes": 16, "ahb_width": 128, "flat_maps": 0},
            "weight_ahead = 1, expected 0 with path_bytes below two bus words of 128 bits",
        ),
        ({"pool_lanes": 3}, "pool_lanes = 3, expected 0, 1, 2, 4 or 8"),
        ({"pool_lanes": -1}, "pool_lanes = -1, expected 0, 1, 2, 4 or 8"),
        ({"tile_rows": 16}, "tile_rows = 16, expected a power of two from 32"),
        ({"tile_rows": 48}, "tile_rows = 48, expected a power of two from 32 to 2048"),
        ({"tile_rows": 4096}, "tile_rows = 4096, expected a power of two from 32 to 2048"),
        ({"pix_fifo_depth": 1}, "pix_fifo_depth = 1, expected 2 to 1048576 words"),
        ({"bias_fifo_depth": 0}, "bias_fifo_depth = 0, expected 2 to 1048576 words"),
        ({"wgt_fifo_depth": 1 << 40}, "wgt_fifo_depth = 1099511627776, expected 2 to 1048576"),
        ({"wbuf_rows": 1 << 40}, "wbuf_rows = 1099511627776, expected a power of two from 64"),
        ({"ai_ram_rows": 1 << 40}, "ai_ram_rows = 1099511627776, expected 16 to 32768"),
        ({"n_z": 0}, "n_z = 0, expected a power of two from 2 to 64"),
        ({"keep_weights": 2}, "keep_weights = 2, expected 0 or 1"),
        (
            {"flat_maps": 0, "weight_bits": 8, "fp16_lanes": 4},
            "fp16_lanes = 4, expected 0, or weight_bits = 16 with n_y = 32 at most",
        ),
        (
            {"flat_maps": 0, "fp16_lanes": -4},
            "fp16_lanes = -4, expected 0 or a power of two, 4 to 16",
        ),
        ({"n_y": "true"}, "n_y = True, expected an integer"),
        ({"for": None}, "missing key 'for'"),
        ({"for": '" "'}, "for = ' ', expected what it is for"),
        ({"for": "7"}, "for = 7, expected what it is for"),
    ],
)
def test_refused(values: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        configs.load_config("mine", write(tmp_path, **values))
    assert str(caught.value).startswith(f"configs.toml: [mine] {message}"), caught.value


def test_a_key_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "configs.toml"
    path.write_text("mine = 3\n" + TEXT, encoding="utf-8")
    with pytest.raises(ConfigError, match="mine is no table"):
        configs.load_config("mine", path)


def test_one_more_is_fine(tmp_path: Path) -> None:
    path = write(tmp_path, n_y=8, n_z=16, ahb_width=128, ai_ram_rows=16, wbuf_rows=64)
    assert configs.names(path)[-1] == "mine" and configs.load_config("mine", path).macs == 1152


def optional() -> list[str]:
    """Keys whose parameter has 0 among its legal values (docs/integration.md 3)."""
    text = (configs.CONFIGS.parent / "docs" / "integration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| \d+ \| 0, ", text, re.MULTILINE)
    return [name.lower() for name in rows if name not in ("ROUNDING", "GATE", "PRIVILEGED")]


def test_the_keys_that_may_be_0() -> None:
    nano = dataclasses.asdict(configs.load_config("nano"))
    values = {key: nano[key] for key in configs.KEYS}
    legal = {key for key in values if configs.illegal({**values, key: 0}) is None}
    assert set(optional()) == legal and len(optional()) == 9


@pytest.mark.parametrize("key", optional())
def test_none_of_what_may_be_left_away(key: str, tmp_path: Path) -> None:
    """0 is legal, and is what the device is built with: given, or the default in Verilog."""
    config = configs.load_config("mine", write(tmp_path, **{"flat_maps": 0, key: 0}))
    assert getattr(config, key) == 0
    for top in ("rtl/openkpu_top.v", "tb/openkpu_tb/device/tb_top.v"):
        text = (configs.CONFIGS.parent / top).read_text(encoding="utf-8")
        found = re.search(rf"parameter\s+{key.upper()}\s*=\s*(\d+)", text)
        assert found, top
        assert config.parameters.get(key.upper(), int(found[1])) == 0, top


def test_limits_are_those_of_the_rtl() -> None:
    """Every elaboration check on a parameter of configs.toml has its bound here."""
    text = (configs.CONFIGS.parent / "rtl/include/openkpu_legal.vh").read_text("utf-8")
    found = set(re.findall(r"\b(ILLEGAL_\w+) u_", text))
    known = {
        "ILLEGAL_WEIGHT_BITS_8_16",
        "ILLEGAL_N_Y_2_4_8_16",
        "ILLEGAL_N_Z_2_4_8_16_32_64",
        "ILLEGAL_N_Y_N_Z_MORE_THAN_128_LANES",
        "ILLEGAL_TILE_ROWS_POWER_OF_TWO_32_TO_2048",
        "ILLEGAL_WBUF_ROWS_POWER_OF_TWO_64_TO_32768",
        "ILLEGAL_AI_RAM_ROWS_16_TO_32768",
        "ILLEGAL_AHB_W_32_64_128",
    }
    assert known <= found, known - found
