# SPDX-License-Identifier: Apache-2.0
"""Named configurations of the device, from configs.toml at the top of the project."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path

from openkpu.checkout import ROOT

MOST_LANES = 128
LEAST_FIFO = 2  # words
MUL_BITS = 18
MOST_DILATION = 8  # pixels from one tap of a 3x3 window to the next
# Defaults of the RTL. Where a configuration has them, the parameter is left out: seeds of benches
# follow the parameters.
DEFAULTS = {
    "fp16_lanes": 0,
    **dict.fromkeys(("keep_weights", "weight_ahead", "flat_maps", "sum_planes", "post_tables"), 0),
    **{"dilation": 1, "out32": 1, "perf": 1, "mul_bits": MUL_BITS, "look_ahead": 4},
}
SWITCHES = (
    "keep_weights",
    "weight_ahead",
    "flat_maps",
    "sum_planes",
    "out32",
    "post_tables",
    "perf",
)
LEAST_FP16 = 4  # lanes
FLAT_LANES = 16  # at least for maps of one line: the tile buffer's words hold a line of 16 bytes
FP16_COLUMNS = 32  # of a product of float16, at a time
TILE_LEAST, TILE_MOST = 8, 64  # bytes of a word of the tile buffer
N_X = 9  # width of the reduction: nine taps, or nine channels
CONFIGS = ROOT / "configs.toml"


MOST = 1 << 20  # words of a FIFO
BUSES = (32, 64, 128)  # ahb_width


class ConfigError(ValueError):
    """Unknown configuration or a file that does not define one properly."""


@dataclasses.dataclass(frozen=True)
class Config:
    """One configuration; the attributes are the keys of configs.toml (``use`` is its ``for``)."""

    name: str
    n_y: int
    n_z: int
    ahb_width: int
    ai_ram_rows: int
    wbuf_rows: int
    weight_bits: int
    path_bytes: int
    param_chans: int
    tile_rows: int
    post_share: int
    pool_lanes: int
    pix_fifo_depth: int
    wgt_fifo_depth: int
    bias_fifo_depth: int
    fp16_lanes: int = 0
    look_ahead: int = 4
    keep_weights: int = 0
    weight_ahead: int = 0
    flat_maps: int = 0
    sum_planes: int = 0
    dilation: int = 1
    out32: int = 1
    post_tables: int = 0
    mul_bits: int = MUL_BITS
    perf: int = 1
    use: str = ""

    @property
    def macs(self) -> int:
        """Multipliers of the array."""
        return N_X * self.lanes

    @property
    def lanes(self) -> int:
        """Sums that leave the array in a cycle."""
        return self.n_y * self.n_z

    @property
    def tile_word(self) -> int:
        """Bytes of a word of the tile buffer: as many as lanes, within the path and a row."""
        return min(max(self.lanes, TILE_LEAST), self.path_bytes, TILE_MOST)

    @property
    def bus_bytes(self) -> int:
        """Bytes that the bus moves in a cycle."""
        return self.ahb_width // 8

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters of the Verilog top module."""
        return {
            verilog_name(key): getattr(self, key)
            for key in KEYS
            if key not in DEFAULTS or getattr(self, key) != DEFAULTS[key]
        }


KEYS = tuple(f.name for f in dataclasses.fields(Config) if f.name not in ("name", "use"))


# parameters of the device that configs.toml does not have: their values, and the RTL's defaults
BESIDE = {"GATE": (0, 1), "ROUNDING": (0, 1, 2), "PRIVILEGED": (0, 1)}
BESIDE_DEFAULTS = {"GATE": 1, "ROUNDING": 0, "PRIVILEGED": 0}


def verilog_name(key: str) -> str:
    """Parameter of the Verilog top module that a key of configs.toml sets."""
    return {"ahb_width": "AHB_W", "path_bytes": "PATH"}.get(key, key.upper())


PARAMETERS = (*map(verilog_name, KEYS), *BESIDE)  # of the Verilog top module


def _power(value: int, least: int, most: int) -> bool:
    return least <= value <= most and value & (value - 1) == 0


def fp16_most(values: Mapping[str, int]) -> int:
    """Most lanes for products of float16: two multipliers each of eight of a cascade's nine, and a
    weight for each row of them; 0 where there can be none."""
    columns = min(values["path_bytes"] // 2, FP16_COLUMNS)
    if values["weight_bits"] < 16 or values["n_y"] > columns:
        return 0
    return min(4 * values["n_y"] * values["n_z"], columns * values["n_z"])


def illegal(values: Mapping[str, int]) -> str | None:
    """The reason why the RTL refuses to elaborate, or has no test; None if it is legal.

    ``values``: the integers of a configuration. The text names the key, its value and what was
    expected.
    """
    for key, value in values.items():
        if type(value) is not int:
            return f"{key} = {value!r}, expected an integer"
    rules = {
        "n_y": (_power(values["n_y"], 2, 16), "2, 4, 8 or 16"),
        "n_z": (_power(values["n_z"], 2, 64), "a power of two from 2 to 64"),
        "ahb_width": (values["ahb_width"] in BUSES, "32, 64 or 128"),
        "weight_bits": (values["weight_bits"] in (8, 16), "8 or 16"),
        "param_chans": (values["param_chans"] in (1024, 2048), "1024 or 2048"),
        "look_ahead": (values["look_ahead"] in (4, 8, 16), "4, 8 or 16"),
        "post_share": (values["post_share"] in (1, 2, 4), "1, 2 or 4"),
        "pool_lanes": (values["pool_lanes"] in (0, 1, 2, 4, 8), "0, 1, 2, 4 or 8"),
        "path_bytes": (values["path_bytes"] in (16, 32, 64, 128), "16, 32, 64 or 128"),
        "ai_ram_rows": (16 <= values["ai_ram_rows"] <= 32768, "16 to 32768"),
        "wbuf_rows": (_power(values["wbuf_rows"], 64, 32768), "a power of two from 64 to 32768"),
        **{key: (values[key] in (0, 1), "0 or 1") for key in SWITCHES},
        "mul_bits": (values["mul_bits"] in (17, MUL_BITS), "17 or 18"),
        "dilation": (1 <= values["dilation"] <= MOST_DILATION, f"1 to {MOST_DILATION}"),
        "tile_rows": (_power(values["tile_rows"], 32, 2048), "a power of two from 32 to 2048"),
    }
    for key in ("pix_fifo_depth", "wgt_fifo_depth", "bias_fifo_depth"):
        rules[key] = (LEAST_FIFO <= values[key] <= MOST, f"{LEAST_FIFO} to {MOST} words")
    for key, (legal, expected) in rules.items():
        if not legal:
            return f"{key} = {values[key]}, expected {expected}"
    if values["post_share"] > values["n_z"]:
        return f"post_share = {values['post_share']}, expected n_z = {values['n_z']} at most"
    lanes = values["n_y"] * values["n_z"]
    if values["flat_maps"] and lanes < FLAT_LANES:
        return f"flat_maps = 1, expected 0 with n_y * n_z = {lanes} lanes, fewer than {FLAT_LANES}"
    if values["weight_ahead"] and 8 * values["path_bytes"] < 2 * values["ahb_width"]:
        bus = values["ahb_width"]
        return f"weight_ahead = 1, expected 0 with path_bytes below two bus words of {bus} bits"
    most = fp16_most(values)
    if values["fp16_lanes"] and not _power(values["fp16_lanes"], LEAST_FP16, most):
        lanes_of = f"0 or a power of two, {LEAST_FP16} to {most}"
        if not most:
            columns = min(values["path_bytes"] // 2, FP16_COLUMNS)
            lanes_of = f"0, or weight_bits = 16 with n_y = {columns} at most"
        return f"fp16_lanes = {values['fp16_lanes']}, expected {lanes_of}"
    if lanes > MOST_LANES:
        return f"n_y * n_z = {lanes} lanes, expected {MOST_LANES} at most"
    return None


def _tables(path: Path) -> dict[str, dict]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise ConfigError(f"{path.name}: {err}") from None


def names(path: Path = CONFIGS) -> list[str]:
    """Names of all configurations, in the order of the file."""
    return [name for name in _tables(path) if name != "defaults"]


def load_config(name: str, path: Path = CONFIGS) -> Config:
    """The configuration ``name``; ConfigError with one line when there is none."""
    tables = _tables(path)
    if name not in names(path):
        raise ConfigError(
            f"unknown configuration {name[:40]!r}, expected one of {', '.join(names(path))}"
        )
    for table in ("defaults", name):
        if not isinstance(tables.get(table, {}), dict):
            raise ConfigError(f"{path.name}: {table} is no table")
    values = {**tables.get("defaults", {}), **tables[name]}
    for key in sorted(values.keys() ^ {*KEYS, "for"}):
        what = "unknown key" if key in values else "missing key"
        raise ConfigError(f"{path.name}: [{name}] {what} {key!r}")
    use = values.pop("for")
    if not isinstance(use, str) or not use.strip():
        raise ConfigError(f"{path.name}: [{name}] for = {use!r}, expected what it is for")
    if trouble := illegal(values):
        raise ConfigError(f"{path.name}: [{name}] {trouble}")
    return Config(name=name, use=use, **values)
