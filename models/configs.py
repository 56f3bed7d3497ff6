# SPDX-License-Identifier: Apache-2.0
"""Named configurations of the device, from configs.toml at the top of the project."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

N_X = 9  # width of the reduction: nine taps, or nine channels
CONFIGS = Path(__file__).resolve().parents[1] / "configs.toml"


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
    tile_rows: int
    pix_fifo_depth: int
    wgt_fifo_depth: int
    bias_fifo_depth: int
    use: str = ""

    @property
    def macs(self) -> int:
        """Multipliers of the array."""
        return N_X * self.n_y * self.n_z

    @property
    def bus_bytes(self) -> int:
        """Bytes that the bus moves in a cycle."""
        return self.ahb_width // 8

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters of the Verilog top module."""
        names = {"ahb_width": "AHB_W"}
        return {
            names.get(field.name, field.name.upper()): getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("name", "use")
        }


def _tables(path: Path) -> dict[str, dict]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise ConfigError(f"{path.name}: {err}") from None


def names(path: Path = CONFIGS) -> list[str]:
    """Names of all configurations, in the order of the file."""
    return [name for name in _tables(path) if name != "defaults"]


def load(name: str, path: Path = CONFIGS) -> Config:
    """The configuration ``name``; ConfigError with one line when there is none."""
    tables = _tables(path)
    if name not in names(path):
        raise ConfigError(
            f"unknown configuration {name!r}, expected one of {', '.join(names(path))}"
        )
    values = {**tables.get("defaults", {}), **tables[name]}
    values["use"] = values.pop("for", "")
    fields = {field.name: field for field in dataclasses.fields(Config)}
    needed = set(fields) - {"name", "use"}
    for key in sorted(values.keys() ^ (needed | {"use"})):
        what = "unknown key" if key in values else "missing key"
        raise ConfigError(f"{path.name}: [{name}] {what} {key!r}")
    for key in needed:
        if type(values[key]) is not int or values[key] < 1:
            raise ConfigError(f"{path.name}: [{name}] {key} = {values[key]!r}, expected an integer")
    return Config(name=name, **values)
