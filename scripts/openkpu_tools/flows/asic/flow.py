# SPDX-License-Identifier: Apache-2.0
"""The device in standard cells: Yosys with the OSU 0.18 um library, timed by OpenSTA.

Prints area box by box in NAND2 equivalents and the clock that the logic reaches, with the boxes of
the worst paths; writes the same to reports/asic/<configuration>.json and .md. Memories are macros:
their bits are counted, they take neither area nor time. There is no layout: wires take no time, and
cells are as strong as Yosys made them for the clock that is aimed at.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from openkpu import configs
from openkpu.checkout import REPORTS, ROOT
from openkpu_tb.simrun import builds
from openkpu_tools import command, registry
from openkpu_tools.flows import eda, silicon_record, synth
from openkpu_tools.flows.asic import macros as asic_macros
from openkpu_tools.flows.asic import netlist as asic_netlist
from openkpu_tools.flows.asic import timing as asic_timing

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
PATHS = 12  # ... and ways through the boxes that are told
MACROS = ("ram_1r1w", "ram_1r1w_async", "ai_ram")  # modules that are memories
DEPTH = 2  # levels of boxes in the table


def commands() -> list[str]:
    """Yosys commands from the device to cells of the library, memories left out."""
    library = LIBRARY.name
    return [
        "hierarchy -top openkpu_top",
        *(f"blackbox =*\\\\{name}" for name in MACROS),
        *(f"blackbox =*\\\\{name}\\\\*" for name in MACROS),
        "synth -booth -noabc -extra-map +/choices/kogge-stone.v -top openkpu_top",
        f"dfflibmap -liberty {library}",
        f"abc -liberty {library} -script +{';'.join(MAP).replace(' ', ',')}",
        "setundef -zero",
        "opt_clean -purge",
        "write_json netlist.json",
    ]


def synthesize(config: configs.Config, folder: Path) -> dict[str, dict]:
    """Modules of the device mapped to the library; files in ``folder``."""
    synth.stage(folder)
    shutil.copy(LIBRARY, folder)
    eda.run_yosys(synth.script(config, commands(), rows=None), folder)
    return json.loads((folder / "netlist.json").read_text())["modules"]


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


def measure(config: configs.Config, folder: Path) -> dict:
    """Figures of a configuration: boxes, clock, worst paths."""
    modules = synthesize(config, folder)
    macros = {
        name: asic_macros.Memory.of(module)
        for name, module in modules.items()
        if synth.plain_module_name(name) in MACROS
    }
    asic_netlist.name_registers(modules)
    asic_netlist.buffer_nets(modules)
    names = asic_netlist.short_names(modules)
    (folder / "netlist.v").write_text(asic_netlist.asic_verilog(modules, names, set(macros)))
    memories = {names[name]: memory for name, memory in macros.items()}
    (folder / "macros.lib").write_text(asic_macros.liberty(memories))
    areas = cell_areas()
    bits = {name: memory.bits for name, memory in macros.items()}
    found = asic_netlist.boxes(modules, areas, bits, areas["NAND2X1"], DEPTH)
    print(f"mapped: {found[0]['gates']:,} NAND2 equivalents", flush=True)
    worst = timing(folder)
    return {
        "config": config.name,
        "gates": found[0]["gates"],
        "flip-flops": found[0]["flip-flops"],
        "memory bits": found[0]["memory bits"],
        "mhz": round(1000 / worst[0]["ns"], 1),
        "macs": config.macs,
        "boxes": found,
        "paths": worst,
    }


def markdown(found: dict) -> str:
    """The figures as a page."""
    gops = 2 * found["macs"] * found["mhz"] / 1000
    lines = [
        f"# {found['config']} in standard cells (OSU 0.18 um)",
        "",
        f"`make asic CONFIG={found['config']}`: {found['macs']} MACs. Memories are macros without "
        "area and time; wires take no time.",
        "",
        "| NAND2 equivalents | flip-flops | memory bits | MHz | GOPS |",
        "|---|---|---|---|---|",
        f"| {found['gates']:,} | {found['flip-flops']:,} | {found['memory bits']:,} | "
        f"{found['mhz']} | {gops:.1f} |",
        "",
        "| box | instances | NAND2 equivalents | flip-flops | memory bits |",
        "|---|---|---|---|---|",
    ]
    for row in found["boxes"]:
        name = "&nbsp;" * 4 * row["level"] + row["box"]
        lines.append(
            f"| {name} | {row['instances']} | {row['gates']:,} | {row['flip-flops']:,} | "
            f"{row['memory bits']:,} |"
        )
    lines += ["", "| ns | from | to | boxes on the way (ns) |", "|---|---|---|---|"]
    for path in found["paths"]:
        way = ", ".join(f"{name} {ns}" for name, ns in path["boxes"].items())
        lines.append(f"| {path['ns']} | {path['from']} | {path['to']} | {way} |")
    return "\n".join(lines) + "\n"


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


def asic_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    return silicon_record.checked(registry.parse_command("asic", argv))


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when a tool fails or a figure is worse, 2 for a bad request."""
    args = asic_arguments(argv)
    try:
        config = configs.load_config(args.config)
    except configs.ConfigError as error:
        print(f"asic: {error}", file=sys.stderr)
        return 2
    for what, there in (("sta", shutil.which("sta")), (LIBRARY, LIBRARY.exists())):
        if not there:
            hint = "expected Debian's packages opensta and qflow-tech-osu018"
            print(f"asic: {what} is not there, {hint}", file=sys.stderr)
            return 2
    silicon_record.expect(BASELINE, config.name, args.baseline)
    began = time.monotonic()
    print(f"{config.name} in standard cells ...", flush=True)
    out = REPORTS / "asic"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="asic_", dir=builds()) as tmp:
        try:
            found = measure(config, Path(tmp))
        except eda.ToolError as error:
            print(f"FAIL {error}")
            return 1
    (out / f"{config.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    page = markdown(found)
    (out / f"{config.name}.md").write_text(page)
    print(page, end="")
    print(f"reached: {found['gates']:,} NAND2 equivalents, {found['mhz']} MHz")
    print(f"after {time.monotonic() - began:.0f} s")
    return asic_judged(found, args)


if __name__ == "__main__":
    sys.exit(command.run_command(main))
