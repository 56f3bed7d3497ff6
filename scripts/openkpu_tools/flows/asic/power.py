# SPDX-License-Identifier: Apache-2.0
"""Power of array and post lanes, and the savings of the sign gate (docs/silicon.md section 6).

The RTL computes digits while the ports of the boxes are recorded. Each box is mapped to the OSU
0.18 um library, its netlist computes the same cycles, and every net's toggles are counted; OpenSTA
adds up the power of the cells with these activities. ``GATE`` = 1 is the device as it is, 0 lets
operands of gated multiplications toggle, 2 has no gate: pixels below zero are multiplied as zero.
"""

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.checkout import ROOT
from openkpu_tb import simrun, verilated
from openkpu_tb.runs import launch
from openkpu_tools import command, registry
from openkpu_tools.flows import eda, synth
from openkpu_tools.flows.asic import flow, macros, netlist

BOXES = {"array": ("mac_stage", "u_mac"), "lanes": ("post_lanes", "u_post")}
VARIANTS = {"gated": 1, "operands toggle": 0, "no gate": 2}  # values of GATE
MEMORY = "kept_"  # how modules of memories begin in a netlist
GROUP = 1024  # nets of an output, a multiple of 32: Verilator rejects one line of all
PERIOD = 10.0  # ns; power is proportional to the clock, energy does not depend on it
RECORD = ROOT / "scripts" / "openkpu_tools" / "flows" / "asic" / "power.json"
TOTAL = re.compile(
    r"^(Sequential|Combinational|Macro|Total)\s+([\d.e+-]+)\s+([\d.e+-]+)\s+([\d.e+-]+)\s+([\d.e+-]+)",
    re.M,
)
LOWER = """
read_json annotated.json
read_liberty -ignore_miss_func {library}
read_verilog -lib memories.v
hierarchy -top box
proc
flatten
opt_clean
write_verilog -noattr replayed.v
"""


def _elaborated(config: configs.Config, gate: int, folder: Path, module: str) -> str:
    """Name of ``module`` in the elaborated device, with its parameters."""
    commands = ["hierarchy -top openkpu_top", f"tee -o found select -list-mod =*{module}*"]
    sets = f"chparam -set GATE {gate} openkpu_top"
    eda.run_yosys(synth.script(config, [sets, *commands], rows=None), folder, "")
    names = [
        n for n in (folder / "found").read_text().split() if synth.plain_module_name(n) == module
    ]
    if len(names) != 1:
        raise eda.ToolError(f"{module}: {len(names)} modules of this name, expected one")
    return names[0]


def mapped_box(config: configs.Config, gate: int, folder: Path, module: str) -> dict[str, dict]:
    """Modules of a box in cells of the library: itself as "box", and its memories."""
    synth.stage(folder)
    shutil.copy(flow.LIBRARY, folder)
    name = _elaborated(config, gate, folder, module)
    commands = [
        f"chparam -set GATE {gate} openkpu_top",
        "hierarchy -top openkpu_top",
        f"hierarchy -top {name}",
        f"rename {name} box",
        *flow.commands("box", flatten=True),
    ]
    eda.run_yosys(synth.script(config, commands, rows=None), folder, f"mapping {module}")
    modules = netlist.renamed(json.loads((folder / "netlist.json").read_text())["modules"])
    netlist.buffer_nets({"box": modules["box"]})
    return _plain_names(modules)


def _plain_names(modules: dict[str, dict]) -> dict[str, dict]:
    """Rename cells so that OpenSTA finds them, memories to names that the RTL does not use."""
    box = modules["box"]
    box["cells"] = {f"g{i}": cell for i, cell in enumerate(box["cells"].values())}
    for cell in box["cells"].values():
        if cell["type"] in modules:
            cell["type"] = MEMORY + cell["type"]
    return {name if name == "box" else MEMORY + name: m for name, m in modules.items()}


def drivers(box: dict) -> list[tuple[str, int]]:
    """The driver of each net, a pin of a cell or a port, and the number of the net."""
    found = []
    for name, port in box["ports"].items():
        if port["direction"] == "input" and name != "clk":
            wide = len(port["bits"]) > 1
            found += [
                (f"port {name}[{i}]" if wide else f"port {name}", bit)
                for i, bit in enumerate(port["bits"])
                if isinstance(bit, int)
            ]
    for name, cell in box["cells"].items():
        for pin, bits in cell["connections"].items():
            if pin in netlist.OUTPUTS and isinstance(bits[0], int) and len(bits) == 1:
                found.append((f"{name}/{pin}", bits[0]))
    return found


def _memories(modules: Mapping[str, dict], folder: Path) -> list[str]:
    """Write the Verilog of the memories with the netlist's names; returns their names."""
    found, text = [], []
    for name, module in modules.items():
        if not name.startswith(MEMORY):
            continue
        kind = next(m for m in sorted(flow.MACROS, reverse=True) if name.startswith(MEMORY + m))
        ports = ", ".join(
            f"{port['direction']} wire [{len(port['bits']) - 1}:0] {pin}"
            for pin, port in module["ports"].items()
        )
        values = module["parameter_default_values"]
        sets = ", ".join(f".{key}({int(value, 2)})" for key, value in values.items())
        pins = ", ".join(f".{pin}({pin})" for pin in module["ports"])
        text.append(f"module {name}({ports});\n  {kind} #({sets}) u_memory ({pins});\nendmodule\n")
        found.append(name)
    (folder / "memories.v").write_text("".join(text))
    return found


def replayed(
    modules: dict[str, dict], recording: Path, window: tuple[int, int], folder: Path
) -> list[tuple[int, int]]:
    """(toggles, cycles at 1) of every driver's net; ToolError when an output differs."""
    box = modules["box"]
    nets = drivers(box)
    names = _memories(modules, folder)
    groups = [nets[at : at + GROUP] for at in range(0, len(nets), GROUP)]
    added = {
        f"nets_{i}": {"direction": "output", "bits": [bit for _, bit in group]}
        for i, group in enumerate(groups)
    }
    whole = {"box": {**box, "ports": box["ports"] | added}}
    (folder / "annotated.json").write_text(json.dumps({"modules": whole}))
    eda.run_yosys(LOWER.format(library=flow.LIBRARY.name), folder, "")
    lines, words = [], 0
    for kind, direction in (("IN", "input"), ("OUT", "output")):
        for name, port in box["ports"].items():
            if port["direction"] == direction and name != "clk":
                count = ceil_div(len(port["bits"]), 32)
                lines.append(f"{kind}({name}, {count})")
                words += count
    lines += [f"NET(nets_{i}, {ceil_div(len(group), 32)})" for i, group in enumerate(groups)]
    (folder / "ports.h").write_text("\n".join(lines) + "\n")
    sources = [
        folder / "replayed.v",
        *([folder / "memories.v"] if names else []),
        "rtl/lib/ram_1r1w*.v",
    ]
    model = verilated.model("box", sources, {})
    flags = [f"-DNETS={len(nets)}", f"-DWORDS={words}", f'-DPORTS="{folder / "ports.h"}"']
    program = verilated.program(model, "box", ["tb/openkpu_tb/gates/replay.cpp"], "replay", flags)
    done = subprocess.run(
        [str(program), str(recording), *map(str, window)], capture_output=True, text=True
    )
    print(f"    {done.stderr.strip()}", flush=True)
    if done.returncode:
        raise eda.ToolError(f"the netlist differs from the RTL: {done.stderr.strip()}")
    counts = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return [(t, h) for t, h in counts]


def consumed(
    modules: dict[str, dict], counts: list[tuple[int, int]], cycles: int, folder: Path
) -> dict[str, float]:
    """Watts of the box by kind of cell, at the clock of PERIOD."""
    box = modules["box"]
    memories = {
        name: macros.Memory.of(module)
        for name, module in modules.items()
        if name.startswith(MEMORY)
    }
    flow.write_netlist({"box": box}, folder)
    (folder / "macros.lib").write_text(macros.liberty(memories))
    lines = [
        f"read_liberty {flow.LIBRARY.name}",
        "read_liberty macros.lib",
        "read_verilog netlist.v",
    ]
    lines += ["link_design box", f"create_clock -name clk -period {PERIOD} [get_ports clk]"]
    of_net = {
        bit: f"{toggles / cycles:.6f} {high / cycles:.4f}"
        for (_, bit), (toggles, high) in zip(drivers(box), counts, strict=True)
    }
    # OpenSTA of 2019 propagates input activities through gates as if nets were independent: each
    # pin gets its own activity; the command for pins in its manual fails, the one used here works
    for name, port in box["ports"].items():
        wide = len(port["bits"]) > 1
        for i, bit in enumerate(port["bits"]):
            if bit in of_net and port["direction"] == "input":
                where = f"{name}[{i}]" if wide else name
                lines.append(
                    f"::sta::set_power_input_port_activity [get_ports {{{where}}}] {of_net[bit]}"
                )
    for name, cell in box["cells"].items():
        for pin, bits in cell["connections"].items():
            if len(bits) == 1 and bits[0] in of_net:
                lines.append(
                    f"::sta::set_power_pin_activity [get_pins {name}/{pin}] {of_net[bits[0]]}"
                )
    (folder / "power.tcl").write_text("\n".join([*lines, "report_power -digits 6", "exit"]) + "\n")
    said = eda.run_tool(["sta", "-exit", "power.tcl"], folder, "")
    found = {kind: float(total) for kind, _, _, _, total in TOTAL.findall(said)}
    if "Total" not in found:
        raise eda.ToolError(f"sta: no table of power: {said[-300:]}")
    return found


def recorded_ports(
    config: configs.Config, images: int, boxes: Mapping[str, dict[str, dict]], folder: Path
) -> dict:
    """Run the RTL; returns the recording's window. The rows of a box are in its file in
    ``folder``."""
    job = {"images": images, "result": str(folder / "recorded.json"), "boxes": []}
    public = [(ROOT / launch.PUBLIC).read_text()]
    for name, modules in boxes.items():
        module, instance = BOXES[name]
        ports = modules["box"]["ports"]
        order = [
            n
            for d in ("input", "output")
            for n, p in ports.items()
            if p["direction"] == d and n != "clk"
        ]
        job["boxes"].append(
            {
                "instance": instance,
                "file": str(folder / f"{name}.rows"),
                "ports": [[n, len(ports[n]["bits"])] for n in order],
            }
        )
        public += [f'public_flat_rd -module "{module}" -var "{n}"\n' for n in order]
    control = folder / "public.vlt"
    control.write_text("".join(public))
    (folder / "job.json").write_text(json.dumps(job))
    simrun.run_bench(
        "verilator",
        "tb_top",
        launch.SOURCES,
        "openkpu_tb.gates.recording",
        params=launch.parameters(config),
        public=control,
        seed=1,
        env={"OKPU_RECORDING": str(folder / "job.json")},
    )
    return json.loads((folder / "recorded.json").read_text())


def measure_power(config: configs.Config, images: int, folder: Path) -> dict:
    """Energy of an inference and of a multiplication, of each variant and box."""
    variants: dict[str, dict[str, dict[str, dict]]] = {}
    for variant, gate in VARIANTS.items():
        variants[variant] = {}
        for name, (module, _) in BOXES.items():
            if name != "array" and variant != "gated":
                continue  # the lanes have no gate
            work = folder / f"{name}_{gate}"
            work.mkdir()
            variants[variant][name] = mapped_box(config, gate, work, module)
    run = recorded_ports(config, images, variants["gated"], folder)
    cycles = run["last"] - run["first"]
    found = {"config": config.name, "images": images, "cycles": cycles}
    found |= {key: run[key] for key in ("macs_issued", "macs_gated")}
    found["energy"] = {}
    for variant, boxes in variants.items():
        found["energy"][variant] = {}
        for name, modules in boxes.items():
            work = folder / f"{name}_{VARIANTS[variant]}"
            print(f"  {variant}, {name}", flush=True)
            counts = replayed(modules, folder / f"{name}.rows", (run["first"], run["last"]), work)
            watts = consumed(modules, counts, cycles, work)
            found["energy"][variant][name] = {
                kind.lower(): round(w * cycles * PERIOD / images, 6) for kind, w in watts.items()
            }  # nJ an inference
    return found


def power_lines(found: dict) -> list[str]:
    """Lines for the reader."""
    energy, images = found["energy"], found["images"]
    products = found["macs_issued"] / images
    share = found["macs_gated"] / found["macs_issued"]
    lines = [
        f"{found['config']}: {images} digits, {found['cycles'] / images:,.0f} cycles each,"
        f" {products:,.0f} multiplications, {100 * share:.1f} % of them gated"
    ]
    for variant, boxes in energy.items():
        array = boxes["array"]["total"]
        lines.append(
            f"  array, {variant}: {array:,.1f} nJ an inference,"
            f" {1000 * array / products:.2f} pJ a multiplication"
        )
    base = energy["gated"]["array"]["total"]
    for variant in ("operands toggle", "no gate"):
        other = energy[variant]["array"]["total"]
        lines.append(f"  the gate saves {100 * (1 - base / other):.1f} % of {variant!r}")
    lines.append(f"  post lanes: {energy['gated']['lanes']['total']:,.1f} nJ an inference")
    return lines


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when a tool fails or the netlist differs, 2 for a bad request."""
    args: argparse.Namespace = registry.parse_command("power", argv)
    command.in_checkout(args, "record")
    config = configs.load_config(args.config)
    flow.expect_tools()
    began = time.monotonic()
    print(f"{config.name}: array and lanes in standard cells ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="power_", dir=simrun.builds()) as tmp:
        try:
            found = measure_power(config, args.images, Path(tmp))
        except (eda.ToolError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print("\n".join(power_lines(found)))
    if args.record:
        known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(known | {config.name: found}, indent=1, sort_keys=True) + "\n")
    print(f"after {time.monotonic() - began:.0f} s")
    return 0
