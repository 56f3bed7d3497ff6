# SPDX-License-Identifier: Apache-2.0
"""A configuration with other parameters than configs.toml gives it, named on the command line.

All commands with ``--params`` read it here (docs/silicon.md 2). The names are those of the Verilog
top module (docs/integration.md 3): those of configurations, and names that a configuration leaves
at the RTL's defaults.
"""

import argparse
import dataclasses
import difflib
import hashlib
import re
from collections.abc import Iterable
from typing import Any

from openkpu import configs
from openkpu.configs import BESIDE, BESIDE_DEFAULTS
from openkpu.words import ROUNDINGS
from openkpu_tb import seeds
from openkpu_tools import command

KEYS = {configs.verilog_name(key): key for key in configs.KEYS}  # parameter -> key of configs.toml
LONGEST_STEM = 160
Changes = Iterable[tuple[str, int]]  # parameters with their values


@dataclasses.dataclass(frozen=True)
class Variant:
    """``config`` has the changes that are a configuration's, ``beside`` has the others."""

    config: configs.Config
    changes: tuple[tuple[str, int], ...] = ()
    beside: tuple[tuple[str, int], ...] = ()

    def value(self, name: str) -> int:
        """Of any parameter of the Verilog top module, given or not."""
        if name in KEYS:
            return getattr(self.config, KEYS[name])
        return dict(self.beside).get(name, BESIDE_DEFAULTS[name])

    @property
    def name(self) -> str:
        """Of the table of configs.toml."""
        return self.config.name

    @property
    def words(self) -> str:
        """The changes as they are typed; "" without any."""
        return " ".join(f"{name}={value}" for name, value in self.changes)

    @property
    def title(self) -> str:
        """For a reader."""
        return f"{self.name}, {self.words}" if self.changes else self.name

    @property
    def stem(self) -> str:
        """For names of files, which have at most 255 bytes."""
        stem = "_".join([self.name, *(f"{name.lower()}_{value}" for name, value in self.changes)])
        if len(stem) <= LONGEST_STEM:
            return stem
        return f"{stem[:LONGEST_STEM]}_{hashlib.sha256(stem.encode()).hexdigest()[:16]}"

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters of the Verilog top module."""
        return {**self.config.parameters, **dict(self.beside)}

    @property
    def titled(self) -> configs.Config:
        """``config`` under the title, so that whatever is said of it names the changes."""
        return dataclasses.replace(self.config, name=self.title)

    @property
    def facts(self) -> dict[str, Any]:
        """For a report: the name in configs.toml, and the changes."""
        return {"config": self.name, "params": dict(self.changes)}

    @property
    def bench(self) -> dict[str, Any]:
        """Those of ``beside`` that a simulation is built with; its ROUNDING is the command's."""
        return {name: value for name, value in self.beside if name != "ROUNDING"}

    @property
    def typed(self) -> str:
        """The variable of make behind that of the configuration; "" without changes."""
        return f' PARAMS="{self.words}"' if self.changes else ""

    def check_rounding(self, rounding: str = ROUNDINGS[0]) -> None:
        """UsageError for a ROUNDING other than that of the golden model, which is ``rounding``."""
        value, own = dict(self.beside).get("ROUNDING"), ROUNDINGS.index(rounding)
        if value not in (None, own):
            raise command.UsageError(
                f"{_given('ROUNDING', value)}: results are compared with those of rounding"
                f" {rounding}, expected ROUNDING={own}"
            )


def parameter(text: str) -> tuple[str, int]:
    """argparse type: a parameter of the device with a value, NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        example = "expected NAME=VALUE, for example POOL_LANES=0"
        raise argparse.ArgumentTypeError(f"{seeds.shown(text)}: {example}")
    digits = value.removeprefix("-")  # one below 0 gets the range of its parameter
    if not (digits.isascii() and digits.isdigit()):
        empty = "" if value.strip() else "the value is empty, "
        raise argparse.ArgumentTypeError(f"{seeds.shown(text)}: {empty}expected a whole number")
    if len(value) > seeds.MOST_SHOWN:  # a shorter one gets that range, too
        raise argparse.ArgumentTypeError(f"{seeds.shown(text)}: expected fewer digits")
    return name, int(value)


def requested(args: argparse.Namespace) -> Variant:
    """The variant of ``--config`` and ``--params``, with the bus of ``--bus`` where the command has
    that; UsageError as ``variant``, and for two widths of the bus."""
    config, bus = configs.load_config(args.config), getattr(args, "bus", None)
    if not bus:
        return variant(config, args.params)
    wide = dict(args.params).get("AHB_W", bus)
    if wide != bus:
        one, other = command.option("bus", str(bus)), _given("AHB_W", wide)
        raise command.UsageError(f"{one} and {other} together, expected one width")
    config = dataclasses.replace(config, ahb_width=bus)
    if not args.params and (trouble := configs.illegal(_values(config))):
        raise command.UsageError(f"{command.option('bus', str(bus))}: {trouble}")
    return variant(config, args.params)


def variant(config: configs.Config, changes: Changes) -> Variant:
    """The variant; UsageError for an unknown or repeated name, and for values the RTL refuses."""
    found: dict[str, int] = {}
    for name, value in changes:
        if name not in KEYS and name not in BESIDE:
            known = [*KEYS, *BESIDE]
            near = difflib.get_close_matches(name.upper(), known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"expected {command.any_of(known)}"
            raise command.UsageError(f"{_given(name, value)}: unknown parameter, {hint}")
        if name in found:
            raise command.UsageError(f"{_given(name, value)}: {name} is given twice, expected once")
        if name in BESIDE and value not in BESIDE[name]:
            legal = command.any_of(BESIDE[name])
            raise command.UsageError(f"{_given(name, value)}: expected {legal}")
        found[name] = value
    own = {KEYS[name]: value for name, value in found.items() if name in KEYS}
    other = dataclasses.replace(config, **own)
    if found and (trouble := configs.illegal(_values(other))):
        # what is refused may be a value that this configuration has, one of several asked for
        said = _in_verilog(trouble)
        own_value = said.partition(" ")[0] not in found
        said = f"{config.name} has {said}" if own_value else f"{said} ({config.name})"
        raise command.UsageError(f"{command.option('params')}: {said}")
    beside = tuple((name, value) for name, value in found.items() if name in BESIDE)
    return Variant(other, tuple(found.items()), beside)


def _values(config: configs.Config) -> dict[str, int]:
    return {key: getattr(config, key) for key in configs.KEYS}


def _given(name: str, value: int) -> str:
    return command.option("params", f"{name}={value}")


def _in_verilog(text: str) -> str:
    """What is said of keys of configs.toml, of parameters."""
    names = "|".join(configs.KEYS)
    return re.sub(rf"\b({names})\b", lambda found: configs.verilog_name(found[1]), text)
