# SPDX-License-Identifier: Apache-2.0
"""Timing diagrams of docs/architecture.md, drawn from simulations on Icarus.

    python -m openkpu_tools.documents.timing_diagrams    # simulate, write docs/images/timing/*.svg
    python -m openkpu_tools.documents.timing_diagrams --check   # simulate and compare

Exit status 1 with --check when a picture is not what the simulation gives.
"""

import itertools
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wavedrom

from openkpu import configs
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.documents import generated

PICTURES = simrun.ROOT / "docs" / "images" / "timing"
NANO = launch.parameters(configs.load_config("nano"), 1 << 20)
Rows = Mapping[str, Sequence[str]]
TRANS = {"0": "IDLE", "1": "BUSY", "2": "NONSEQ", "3": "SEQ"}
RESP = {"0": "OKAY", "1": "ERROR", "2": "RETRY", "3": "SPLIT"}
WIDE = 24  # cycles that are drawn at normal width
QUIET = 3  # cycles without a change that are drawn
NAMES = {"htrans": TRANS, "hresp": RESP}


@dataclass(frozen=True)
class Diagram:
    """A picture, and the simulation behind it."""

    name: str
    title: str
    top: str
    sources: Sequence[str]
    module: str
    test: str
    device: bool = False  # the whole device: its parameters and its public signals


def wave(values: Sequence[str], words: Mapping[str, str] | None) -> dict[str, Any]:
    """WaveJSON of a row: levels for bits, boxes with text for anything else."""
    if words is None and set(values) <= {"0", "1", ""}:
        pairs = itertools.pairwise(["\0", *values])
        return {"wave": "".join("." if a == b else b or "x" for a, b in pairs)}
    text, data = "", []
    for before, value in itertools.pairwise(["\0", *values]):
        if value == before:
            text += "."
        elif value:
            text += "="
            data.append((words or {}).get(value, value))
        else:
            text += "x"
    return {"wave": text, "data": data}


def shown(rows: Rows) -> tuple[list[int], set[int]]:
    """(cycles to draw, cycles that replace a longer stretch): where no signal changes for more than
    ``QUIET`` cycles, the rest of the stretch is left out."""
    columns = list(zip(*rows.values(), strict=True))
    kept, gaps, same = [0], set(), 0
    for cycle in range(1, len(columns)):
        same = same + 1 if columns[cycle] == columns[cycle - 1] else 0
        if same < QUIET:
            kept.append(cycle)
        else:
            gaps.add(kept[-1])
    return kept, gaps


def waves(title: str, rows: Rows) -> str:
    """SVG of a timing diagram; gaps are drawn where cycles are left out."""
    kept, gaps = shown(rows)
    signals = [{"name": "clk", "wave": "p" + "." * (len(kept) - 1)}]
    for name, row in rows.items():
        drawn = wave([row[cycle] for cycle in kept], NAMES.get(name))
        marked = ["|" if c in gaps else w for c, w in zip(kept, drawn["wave"], strict=True)]
        signals.append({"name": name, **drawn, "wave": "".join(marked)})
    head: dict[str, Any] = {"text": title}
    if gaps:  # ticks would count what is drawn
        numbers = {"wave": "=" * len(kept), "data": [str(cycle) for cycle in kept]}
        signals.insert(0, {"name": "cycle", **numbers})
    else:
        head["tick"] = 0
    scale = 2 if len(kept) < WIDE else 1
    source = {"signal": signals, "head": head, "config": {"hscale": scale}}
    drawing = wavedrom.render(json.dumps(source))
    assert drawing is not None, "a source with signals is drawn"
    head_of_svg, rest = drawing.tostring().split(">", 1)
    # black on nothing could not be read on a dark page
    return f'{head_of_svg}><rect width="100%" height="100%" fill="white"/>{rest}\n'


DEVICE = ("tb_top", launch.SOURCES, "openkpu_tb.timing.core_recording")
DIAGRAMS = [
    Diagram(
        "slave_access",
        "Slave: two register writes, a register read, AI RAM read and write, an address without a "
        "register",
        "ahb_slave_bench",
        ["tb/ahb_slave/ahb_slave_bench.v", "rtl/host/ahb_slave.v"],
        "openkpu_tb.timing.slave_recording",
        "record",
    ),
    Diagram(
        "lost_grant",
        "Master: a burst of eight beats that loses the grant",
        "ahb_master",
        ["rtl/storage/ahb_*.v", "rtl/lib/ram_1r1w_async.v"],
        "openkpu_tb.timing.grant_recording",
        "record",
    ),
    Diagram(
        "fill_to_array",
        "Core: a 3x3 layer of two channels of 4 x 16, configuration nano",
        *DEVICE,
        "fill_to_array",
        device=True,
    ),
]


def record(diagram: Diagram) -> Rows:
    """Run the simulation of a diagram; its signals cycle by cycle. SimError when it fails."""
    more = {"params": NANO, "public": launch.PUBLIC, "random_start": False}
    with tempfile.TemporaryDirectory(prefix="openkpu_timing_") as tmp:
        file = Path(tmp) / "rows.json"
        simrun.run_bench(
            "icarus",
            diagram.top,
            diagram.sources,
            diagram.module,
            testcase=diagram.test,
            env={"OKPU_RECORD": str(file)},
            **(more if diagram.device else {}),
        )
        return json.loads(file.read_text())


def picture(diagram: Diagram) -> str:
    """SVG of a diagram, from a run."""
    return waves(diagram.title, record(diagram))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 with --check when a picture is stale."""
    parser = Parser(prog="timing_diagrams", description=command.first_line(__doc__))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args(argv)
    texts = {PICTURES / f"{diagram.name}.svg": picture(diagram) for diagram in DIAGRAMS}
    words = "python -m openkpu_tools.documents.timing_diagrams"
    return generated.write_or_compare(words, texts, args.check)


if __name__ == "__main__":
    sys.exit(command.run_command(main))
