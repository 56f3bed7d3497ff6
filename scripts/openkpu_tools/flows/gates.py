# SPDX-License-Identifier: Apache-2.0
"""Simulate the netlist: the device mapped to ECP5 cells computes a layer and two digits.

The netlist is the one that `make fpga` places: flattened, every memory and product in its cells.
Yosys puts its own models in place of LUT, carry cell, flip-flop and LUT RAM, cell by cell, so that
Verilator gets one flat module instead of forty thousand instances, which take it minutes;
openkpu_tb/gates has models of block RAM and multiplier. Registers and memories start at random.
Results are compared with the golden model, the bus with the AHB rules. ``--netlist`` takes a
netlist that is there.
"""

import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from openkpu import configs, digits, files
from openkpu.checkout import ROOT
from openkpu.network.device_rules import check_network
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tools import command, registry, variants
from openkpu_tools.flows import eda, fpga
from openkpu_tools.variants import Variant

BENCH = [
    "tb/openkpu_tb/device/tb_top.v",
    "tb/openkpu_tb/ahb/fabric/*.v",
    "tb/openkpu_tb/ahb/checkers/*.v",
]


# what a cell does is Yosys's word; nothing is simplified across cells or starts with a value
LOWER = """
read_verilog +/ecp5/common_sim.vh +/ecp5/ccu2c_sim.vh
read_verilog -lib DP16KD.v EHXPLLL.v MULT18X18D.v
read_json netlist_in.json
hierarchy -check -top {top}
proc
delete t:$meminit*
setattr -unset init w:*
simplemap t:$mux
opt_expr
opt_clean
setattr -mod -set keep_hierarchy 1 *TRELLIS_DPR16X4*
flatten
opt_clean
write_verilog -noattr netlist.v
"""
PORT = re.compile(r"^\s*(input|output)\s+(?:wire|reg)\s+(?:\[([^\]]*)\]\s*)?(\w+)", re.MULTILINE)
UNWIRED = {"CLK0": ["0"], "CE0": ["0"], "RST0": ["0"]}  # of a multiplier without registers


def lower(
    module: dict, folder: Path, top: str = "openkpu_top", *, loaded: bool = False
) -> list[Path]:
    """Sources of a module of ECP5 cells in Yosys's JSON, as they are simulated; in ``folder``.

    ``loaded``: block RAMs start with the contents from the configuration; otherwise all memories
    start unknown. ToolError for a cell that has no model.
    """
    for cell in module["cells"].values():
        every = cell["parameters"]
        kept = {k: v for k, v in every.items() if not k.startswith("INITVAL")}
        words = [every[k] for k in sorted(every, reverse=True) if k.startswith("INITVAL")]
        if loaded and cell["type"] == "DP16KD" and set("".join(words)) & set("01"):
            kept |= {"LOADED": 1, "INIT": "".join(words)}
        cell["parameters"] = kept
        if cell["type"] == "MULT18X18D":
            cell["connections"] = UNWIRED | cell["connections"]
    (folder / "netlist_in.json").write_text(json.dumps({"modules": {top: module}}))
    models = sorted((ROOT / "tb" / "openkpu_tb" / "gates").glob("*.v"))
    for model in models:
        shutil.copy(model, folder)
    eda.run_yosys(LOWER.format(top=top), folder, "")
    return [*models, folder / "netlist.v"]


def device_ports(config: configs.Config) -> dict[str, tuple[str, int]]:
    """Port of the device -> direction and bits, from the RTL; 0 bits where they depend on more than
    the width of the bus."""
    text = re.sub(r"//.*", "", (ROOT / "rtl" / "openkpu_top.v").read_text())
    found = {}
    for direction, width, name in PORT.findall(text[: text.index(");")]):
        high = width.replace("AHB_W", str(config.ahb_width)).partition(":")[0] or "0"
        last = re.fullmatch(r"(\d+)(?:-(\d+))?", high.replace(" ", ""))
        found[name] = direction, int(last[1]) - int(last[2] or 0) + 1 if last else 0
    return found


def netlist_module(text: bytes, config: configs.Config, name: str) -> dict:
    """The device in a netlist of Yosys's JSON; UsageError, which begins with ``name``, where it has
    no module of that name, no cells, or other ports."""
    expected = "expected a mapped openkpu_top in Yosys's JSON"
    try:
        found = json.loads(text)
    except ValueError:
        raise command.UsageError(f"{name}: is no JSON, {expected}") from None
    except (RecursionError, MemoryError) as error:
        raise command.UsageError(f"{name}: {files.said(error)}, {expected}") from None
    for key in ("modules", "openkpu_top"):
        if not (isinstance(found, dict) and isinstance(found.get(key), dict)):
            raise command.UsageError(f"{name}: no {key} in it, {expected}")
        found = found[key]
    cells, ports = found.get("cells"), found.get("ports")
    if not (isinstance(cells, dict) and cells and all(map(_is_cell, cells.values()))):
        raise command.UsageError(f"{name}: openkpu_top has no cells of a mapped device, {expected}")
    for port, (direction, bits) in device_ports(config).items():
        there = ports.get(port) if isinstance(ports, dict) else None
        if not (isinstance(there, dict) and isinstance(there.get("bits"), list)):
            raise command.UsageError(f"{name}: openkpu_top has no port {port}, {expected}")
        if there.get("direction") != direction or len(there["bits"]) != (
            bits or len(there["bits"])
        ):
            kind = f"{there.get('direction')} of {len(there['bits'])} bits"
            wanted = f"{direction} of {bits} bits with {command.option('config', config.name)}"
            raise command.UsageError(f"{name}: port {port} is an {kind}, expected an {wanted}")
    return found


def _is_cell(cell: object) -> bool:
    if not (isinstance(cell, dict) and isinstance(cell.get("type"), str)):
        return False
    settings, pins = cell.get("parameters"), cell.get("connections")
    texts = isinstance(settings, dict) and all(isinstance(v, str) for v in settings.values())
    return texts and isinstance(pins, dict) and all(isinstance(v, list) for v in pins.values())


def given_netlist(path: Path, config: configs.Config) -> dict:
    """The device in a file that the user names."""
    name = command.option("netlist", path)
    try:
        with files.open_file(path, command.UsageError) as stream:
            return netlist_module(stream.read(), config, name)
    except command.UsageError as error:
        if str(error).startswith(name):
            raise
        raise command.UsageError(f"{command.option('netlist')}={error}") from None
    except OSError as error:
        raise command.UsageError(f"{name}: {error.strerror or error}") from None


def lowered(module: dict, folder: Path) -> list[Path]:
    """Sources of the device's netlist, as they are simulated; prints how many cells it has."""
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    del kinds["$scopeinfo"]
    print(f"{kinds.total():,} cells: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()))
    sys.stdout.flush()
    return lower(module, folder)


def simulate(device: Variant, sources: list[Path], sim: str, seed: int | None) -> None:
    """Build and run the bench on the netlist; SimError when a test fails."""
    simrun.run_bench(
        sim,
        "tb_top",
        [*BENCH, *sources],
        "openkpu_tb.gates.gate_tests",
        params=launch.parameters(device.config, **device.bench),
        defines={"NETLIST": 1},
        public=launch.PUBLIC,
        random_start=True,
        seed=seed,
        show=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is exact, 1 when not, 2 for a bad request."""
    args = registry.parse_command("gates", argv)
    command.check_outputs([args.keep], [args.netlist])
    device = variants.requested(args)
    device.check_rounding()
    check_network(digits.load_network(device.config.ai_ram_rows), device.titled)
    parts = [name for name, target in fpga.TARGETS.items() if target.part]
    if device.name not in parts:
        raise command.UsageError(f"{device.name} has no part, expected {command.any_of(parts)}")
    given = given_netlist(args.netlist, device.config) if args.netlist else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gates_", dir=simrun.builds()) as tmp:
        folder = Path(tmp)
        try:
            path = args.netlist or fpga.mapped(device, folder)
            module = given or json.loads(path.read_text())["modules"]["openkpu_top"]
            if args.keep and not given:
                shutil.copy(path, args.keep)
            sources = lowered(module, folder)
            if args.keep and given:  # of a file that is refused nothing is kept
                shutil.copy(path, args.keep)
            simulate(device, sources, args.sim, args.seed)
        except (eda.ToolError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print(f"the netlist is exact, after {time.monotonic() - began:.0f} s")
    return 0
