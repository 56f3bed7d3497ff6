# SPDX-License-Identifier: Apache-2.0
"""Recorded cycles: what layers, digits and a model take, compared to the cycle.

A change of the RTL that costs cycles, saves some or counts a stall under another cause shows in
`make test`. Wanted changes are taken over by `make cycles RECORD=1`.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from openkpu.checkout import ROOT

FILE = ROOT / "tb" / "device" / "cycles.json"
RECORD = "OPENKPU_RECORD_CYCLES"  # set: figures are recorded instead of compared
CAUSES = ("weights", "input", "output", "bus", "control")
MOST_SHOWN = 10
Figures = Mapping[str, list[int]]  # name -> cycles, then stalls by cause where they are counted


def of_report(layers: list[dict]) -> dict[str, list[int]]:
    """Figures of the layers of a report: cycles and stalls; one of a name, or numbered."""
    names = [layer["name"] for layer in layers]
    found = {}
    for number, layer in enumerate(layers):
        many = names.count(layer["name"]) > 1
        name = f"{layer['name']} ({number})" if many else layer["name"]
        found[name] = [layer["cycles"], *(layer["stalls"][cause] for cause in CAUSES)]
    return found


def differences(recorded: Figures, found: Figures) -> list[str]:
    """A line for each figure that is not as recorded, for what is new and what is missing."""
    lines = []
    for name in [*recorded, *(name for name in found if name not in recorded)]:
        was, now = recorded.get(name), found.get(name)
        if was != now:
            lines.append(f"{name}: {now or 'not measured'}, recorded {was or 'nothing'}")
    return lines


def check_cycles(group: str, found: Figures, file: Path = FILE) -> None:
    """AssertionError unless the figures of this group are those recorded, exactly."""
    if RECORD in os.environ:
        record_cycles(group, found, file)
        return
    content = json.loads(file.read_text()) if file.exists() else {}
    lines = differences(content.get(group, {}), found)
    more = len(lines) - MOST_SHOWN
    assert not lines, "\n".join(
        [
            f"{group}: cycles [and stalls: {', '.join(CAUSES)}] differ from {file.name}",
            *lines[:MOST_SHOWN],
            *([f"and {more} more"] if more > 0 else []),
            "wanted? make cycles RECORD=1",
        ]
    )


def record_cycles(group: str, found: Figures, file: Path = FILE) -> None:
    """Replace the figures of a group; other workers may record theirs at the same time."""
    with open(file, "a+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        handle.seek(0)
        content = json.loads(handle.read() or "{}")
        content[group] = dict(found)
        groups = [
            f" {json.dumps(name)}: {{\n"
            + ",\n".join(f"  {json.dumps(k)}: {v}" for k, v in content[name].items())
            + "\n }"
            for name in sorted(content)
        ]
        handle.seek(0)
        handle.truncate()
        handle.write("{\n" + ",\n".join(groups) + "\n}\n")
