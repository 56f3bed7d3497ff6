# SPDX-License-Identifier: Apache-2.0
"""The device in standard cells: Yosys with the OSU 0.18 um library, timed by OpenSTA.

Prints area box by box in NAND2 equivalents and the clock that the logic reaches, with the boxes of
the worst paths; writes the same to reports/asic/<configuration>.json and .md. Memories are macros:
their bits are counted, they take neither area nor time. There is no layout: wires take no time, and
cells are as strong as Yosys made them for the clock that is aimed at.
"""

import argparse
import functools
import json
import re
import shutil
from collections import Counter
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import command, registry
from openkpu_tools.flows import eda, silicon_record, synth
from openkpu_tools.flows.asic import macros as asic_macros
from openkpu_tools.flows.asic import netlist as asic_netlist
from openkpu_tools.flows.asic import timing as asic_timing
from openkpu_tools.variants import Variant, requested

LIBRARY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")  # Debian: qflow-tech-osu018
BASELINE = ROOT / "scripts" / "openkpu_tools" / "flows" / "asic" / "baseline.json"
WORSE = 1.03  # of a recorded figure
AIM = 6000  # ps that the mapper aims at
# of ABC: first for delay, then cells of other sizes
MAP = (
    "strash",
    "ifraig",
    "scorr",
    "dc2",
    "strash",
    "dch -f",
    f"map -B 0.9 -D {AIM}",
    "topo",
    "buffer -c",
    f"upsize -D {AIM}",
    f"dnsize -D {AIM}",
)
REPORTED = 3000  # worst ends that OpenSTA reports ...
PATHS = 12  # ... and reported ways through the boxes
MACROS = ("ram_1r1w", "ram_1r1w_async", "ai_ram")  # modules that are memories
DEPTH = 2  # levels of boxes in the table


def commands(top: str = "openkpu_top", *, flatten: bool = False) -> list[str]:
    """Yosys commands from the device to cells of the library, memories left out."""
    library, flat = LIBRARY.name, "-flatten " if flatten else ""
    return [
        f"hierarchy -top {top}",
        *(f"blackbox =*\\\\{name}" for name in MACROS),
        *(f"blackbox =*\\\\{name}\\\\*" for name in MACROS),
        f"synth {flat}-booth -noabc -extra-map +/choices/kogge-stone.v -top {top}",
        f"dfflibmap -liberty {library}",
        f"abc -liberty {library} -script +{';'.join(MAP).replace(' ', ',')}",
        "setundef -zero",
        "opt_clean -purge",
        "write_json netlist.json",
    ]


def synthesize(device: configs.Config | Variant, folder: Path) -> dict[str, dict]:
    """Modules of the device mapped to the library; files in ``folder``."""
    synth.stage(folder)
    shutil.copy(LIBRARY, folder)
    try:
        eda.run_yosys(synth.script(device, commands(), rows=None), folder)
    except eda.ToolError as error:
        eda.check_elaborated(error, device.parameters)
        raise
    return json.loads((folder / "netlist.json").read_text())["modules"]


def write_netlist(modules: dict[str, dict], folder: Path) -> None:
    """The modules as netlist.v, flip-flops by the net that they drive; memories are left out."""
    (folder / "buffered.json").write_text(json.dumps({"modules": modules}))
    script = [
        "read_json buffered.json",
        f"read_liberty -lib -ignore_miss_func {LIBRARY.name}",
        "rename -wire -suffix _ff t:DFF*",
        "write_verilog -noattr -noexpr -simple-lhs netlist.v",
    ]
    eda.run_yosys("\n".join(script), folder)
    netlist = folder / "netlist.v"  # OpenSTA of 2019 reads no word signed
    netlist.write_text(netlist.read_text().replace(" signed ", " "))


def cell_areas() -> dict[str, float]:
    """Cell of the library -> its area."""
    found = re.findall(
        r"^cell \((\w+)\) \{[^{}]*?\barea : ([\d.]+);", LIBRARY.read_text(), re.MULTILINE
    )
    return {name: float(area) for name, area in found}


def timing(folder: Path) -> list[dict]:
    """Worst paths from register to register, the longest first: ns, ends, time by box."""
    script = [
        f"read_liberty {LIBRARY.name}",
        "read_liberty macros.lib",
        "read_verilog netlist.v",
        "link_design openkpu_top",
        f"create_clock -name clk -period {AIM / 1000} [get_ports clk]",
        f"report_checks -path_delay max -group_count {REPORTED} -digits 3",
        "exit",
    ]
    (folder / "sta.tcl").write_text("\n".join(script) + "\n")
    said = eda.run_tool(["sta", "-exit", "sta.tcl"], folder, "timing")
    return asic_timing.timing_paths(said)[:PATHS]


def measure_asic(device: Variant, folder: Path) -> dict:
    """Figures of a device: boxes, clock, worst paths."""
    synthesized = synthesize(device, folder)
    modules = asic_netlist.renamed(synthesized)
    macros = {
        new: asic_macros.Memory.of(modules[new])
        for new, old in zip(modules, synthesized, strict=True)
        if synth.plain_module_name(old) in MACROS
    }
    asic_netlist.buffer_nets(modules)
    write_netlist(modules, folder)
    (folder / "macros.lib").write_text(asic_macros.liberty(macros))
    areas = cell_areas()
    found = synth.box_table(
        {
            name: Counter(cell["type"] for cell in module["cells"].values())
            for name, module in modules.items()
            if name not in macros
        },
        {
            "gates": {name: area / areas["NAND2X1"] for name, area in areas.items()},
            "flip-flops": {name: 1 for name in areas if name.startswith("DFF")},
            "memory bits": {name: memory.bits for name, memory in macros.items()},
        },
        DEPTH,
    )
    print(f"mapped: {found[0]['gates']:,} NAND2 equivalents", flush=True)
    worst = timing(folder)
    return {
        **device.facts,
        "gates": found[0]["gates"],
        "flip-flops": found[0]["flip-flops"],
        "memory bits": found[0]["memory bits"],
        "mhz": round(1000 / worst[0]["ns"], 1),
        "macs": device.config.macs,
        "boxes": found,
        "paths": worst,
    }


def asic_page(found: dict) -> str:
    """The figures as a page."""
    gops = 2 * found["macs"] * found["mhz"] / 1000
    counted = ("gates", "flip-flops", "memory bits")
    titles = ("NAND2 equivalents", *counted[1:])
    boxes = [
        ("&nbsp;" * 4 * row["level"] + row["box"], *(row[key] for key in ("instances", *counted)))
        for row in found["boxes"]
    ]
    params = " ".join(f"{name}={value}" for name, value in found["params"].items())
    typed = f"make asic CONFIG={found['config']}" + (f' PARAMS="{params}"' if params else "")
    lines = [
        f"# {found['config']}{', ' if params else ''}{params} in standard cells (OSU 0.18 um)",
        "",
        f"`{typed}`: {found['macs']} MACs. Memories are macros without "
        "area and time; wires take no time.",
        "",
        *silicon_record.page_rows(
            (*titles, "MHz", "GOPS"),
            [(*(found[key] for key in counted), found["mhz"], f"{gops:.1f}")],
        ),
        *silicon_record.page_rows(("box", "instances", *titles), boxes),
        *silicon_record.path_rows(found["paths"]),
    ]
    return "\n".join(lines)


def asic_judged(found: dict, args: argparse.Namespace) -> int:
    """Exit status: compare with what is recorded, or record it."""
    name = found["config"]
    if args.record:
        figures = {title: found[title] for title in ("gates", "mhz")}
        silicon_record.keep_figures(BASELINE, name, figures)
    if not args.baseline:
        return 0
    known = silicon_record.load_figures(BASELINE)[name]
    bad = found["gates"] > known["gates"] * WORSE or found["mhz"] * WORSE < known["mhz"]
    if bad:
        print(
            f"worse than recorded: {found['gates']} gates at {found['mhz']} MHz, recorded "
            f"{known['gates']} at {known['mhz']}"
        )
    return int(bad)


def expect_tools() -> None:
    """UsageError unless OpenSTA and the library are installed."""
    for what, there in (("sta", shutil.which("sta")), (LIBRARY, LIBRARY.exists())):
        if not there:
            hint = "expected Debian's packages opensta and qflow-tech-osu018"
            raise command.UsageError(f"{what} is not there, {hint}")


def asic_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    args = registry.parse_command("asic", argv)
    silicon_record.check_whole(args)
    return silicon_record.checked(args)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when a tool fails or a figure is worse, 2 for a bad request."""
    args = asic_arguments(argv)
    device = requested(args)
    expect_tools()
    silicon_record.expect(BASELINE, device.name, args.baseline)
    print(f"{device.title} in standard cells ...", flush=True)
    try:
        found = silicon_record.measured(
            "asic", device.stem, functools.partial(measure_asic, device), asic_page
        )
    except eda.ToolError as error:
        print(f"FAIL {error}")
        return 1
    print(f"reached: {found['gates']:,} NAND2 equivalents, {found['mhz']} MHz")
    return asic_judged(found, args)
