# SPDX-License-Identifier: Apache-2.0
"""OpenSTA's report of the worst paths, read."""

import re
from collections import defaultdict

STEP = re.compile(r"^\s+(-?[\d.]+)\s+(-?[\d.]+)\s+[v^]\s+(\S.*?)\s+\((\S+)\)")
LEVELS = 3  # instances that make the name of a box


def box(pin: str) -> str:
    """Box of a pin: the first instances of its name."""
    parts = [part for part in pin.split("/")[:-2] if part.startswith(("u_", "g_"))]
    inside = [part.split(".")[-1] for part in parts]
    return ".".join(part.removeprefix("u_") for part in inside[:LEVELS]) or "top"


def plain(cell: str) -> str:
    """A register's name without the suffix that the mapper adds."""
    return cell.replace("\\", "").removesuffix("_ff")


def timing_paths(report: str) -> list[dict]:
    """Paths of report_checks, the longest first, one for each way through the boxes.

    A path: ``ns`` from clock edge to clock edge (setup included), ``from``, ``to``, and ``boxes``:
    ns spent in each box.
    """
    found: dict[tuple[str, ...], dict] = {}
    for block in report.split("Startpoint: ")[1:]:
        start = block.split()[0]
        end = re.search(r"Endpoint: (\S+)", block)
        assert end is not None, "a path has an end"
        setup = re.search(r"(-?[\d.]+)\s+-?[\d.]+\s+library setup time", block)
        spent: defaultdict[str, float] = defaultdict(float)
        for line in block.splitlines():
            step = STEP.match(line)
            if step:
                spent[box(step[3])] += float(step[1])
        total = sum(spent.values()) - (float(setup[1]) if setup else 0.0)
        path = {
            "ns": round(total, 2),
            "from": plain(start),
            "to": plain(end[1]),
            "boxes": {name: round(ns, 2) for name, ns in spent.items() if round(ns, 2)},
        }
        way = tuple(path["boxes"])
        if way not in found or found[way]["ns"] < path["ns"]:
            found[way] = path
    return sorted(found.values(), key=lambda path: -path["ns"])
