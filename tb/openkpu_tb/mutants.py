# SPDX-License-Identifier: Apache-2.0
"""Faults in a source, and benches on mutated sources, as requested by the environment.

OPENKPU_RTL: a folder laid out like the checkout; a source that is there too is taken from there.
OPENKPU_MUTANT: number of the mutant in these sources, 0 or unset for the original.
OPENKPU_MUTANT_LOG: a file that gets one line of JSON for each simulation: ``held`` (a module with
the mutant was in it), ``seconds``. Written by scripts/openkpu_tools/mutation/mutate.py.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER, NUMBER, LOG = "OPENKPU_RTL", "OPENKPU_MUTANT", "OPENKPU_MUTANT_LOG"
MARK = re.compile(r"^MUTANT (\d+) is in ", re.MULTILINE)


class FaultError(ValueError):
    """A fault has no place: one line."""


@dataclass(frozen=True)
class Fault:
    """A fault that is planted by hand: in ``file``, a path from the root, ``put`` in place of
    ``find``. rtl/proofs.toml and tb/claims/claims.toml list such faults."""

    file: str
    find: str
    put: str

    def planted(self, text: str) -> str:
        """The text of the file with the fault; FaultError unless ``find`` is there once."""
        if text.count(self.find) != 1 or self.find == self.put:
            raise FaultError(f"{Path(self.file).name}: {self.find!r} is not there once")
        return text.replace(self.find, self.put)


def plant(fault: Fault, root: Path, folder: Path) -> None:
    """Write the file with the fault into ``folder``, which FOLDER may then name."""
    copy = folder / fault.file
    copy.parent.mkdir(parents=True, exist_ok=True)
    text = (root / fault.file).read_text(encoding="utf-8")
    copy.write_text(fault.planted(text), encoding="utf-8")


def instead(source: Path, root: Path) -> Path:
    """The mutated copy of a source, or the source itself."""
    folder = os.environ.get(FOLDER)
    if not folder or not source.is_relative_to(root):
        return source
    copy = Path(folder) / source.relative_to(root)
    return copy if copy.is_file() else source


def number() -> int:
    """The mutant that is asked for; ValueError when it is no number."""
    text = os.environ.get(NUMBER, "0")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{NUMBER}={text!r}: expected the number of a mutant")
    return int(text)


def plusargs() -> list[str]:
    """Options that select the mutant in a simulation; none where sources are not mutated."""
    return [f"+mutant={number()}"] if os.environ.get(FOLDER) else []


def mutant_variables() -> dict[str, str]:
    """What cocotb gets: a mutant is seen with the first test that fails."""
    return {"COCOTB_MAX_FAILURES": "1"} if os.environ.get(FOLDER) else {}


def note(log: Path, seconds: float) -> None:
    """Leave a line about a simulation that has ended, if asked for."""
    place = os.environ.get(LOG)
    if not place:
        return
    said = log.read_text(errors="replace") if log.exists() else ""
    held = str(number()) in MARK.findall(said)
    with open(place, "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"held": held, "seconds": round(seconds, 3)}) + "\n")
