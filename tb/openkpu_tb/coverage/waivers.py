# SPDX-License-Identifier: Apache-2.0
"""Waivers of the code coverage: waivers.toml -> Verilator control file and summary."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.coverage import fsm

WAIVERS = Path(__file__).with_name("waivers.toml")


class WaiverError(ValueError):
    """A waiver that names nothing, or gives no reason."""


@dataclass(frozen=True)
class Waiver:
    """A signal whose toggles are not counted."""

    file: str  # relative to the root
    signal: str
    reason: str
    line: int  # of its declaration


def load_waivers(path: Path = WAIVERS, root: Path = ROOT) -> list[Waiver]:
    """Every waiver; WaiverError for one without a reason or a signal that is not declared."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("toggle", [])
    except tomllib.TOMLDecodeError as error:
        raise WaiverError(f"{path.name}: {error}") from None
    return [_waiver(path.name, entry, root) for entry in entries]


def _waiver(name: str, entry: dict[str, str], root: Path) -> Waiver:
    missing = [key for key in ("file", "signal", "reason") if not entry.get(key)]
    if missing:
        raise WaiverError(f"{name}: waiver {entry} lacks {', '.join(missing)}")
    source = root / entry["file"]
    if not source.is_file():
        raise WaiverError(f"{name}: {entry['file']} does not exist")
    declared = re.compile(rf"^\s*(?:(?:input|output)\s+)?(?:reg|wire)\b[^=;]*\b{entry['signal']}\b")
    lines = source.read_text(encoding="utf-8").splitlines()
    found = [n for n, line in enumerate(lines, 1) if declared.match(line.partition("//")[0])]
    if len(found) != 1:
        raise WaiverError(
            f"{name}: {entry['file']} declares {entry['signal']} {len(found)} times, expected once"
        )
    return Waiver(entry["file"], entry["signal"], entry["reason"], found[0])


def coverage_control() -> str:
    """Lines for a Verilator control file: the benches and the waived signals are not counted."""
    lines = [f'coverage_off -file "*/{name}"' for name in ("tb/*", fsm.BENCH)]
    lines += [f'coverage_off -file "*/{w.file}" -lines {w.line}' for w in load_waivers()]
    return "\n".join(lines) + "\n"
