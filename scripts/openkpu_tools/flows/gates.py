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
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from openkpu import digits, files
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


def lowered(path: Path, folder: Path) -> list[Path]:
    """Sources of the netlist ``path``, as they are simulated; prints how many cells it has."""
    try:
        module = json.loads(path.read_text())["modules"]["openkpu_top"]
        kinds = Counter(cell["type"] for cell in module["cells"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise command.UsageError(f"{path}: not a netlist of the device: {error}") from error
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
    command.check_outputs([args.keep])
    device = variants.requested(args)
    device.check_rounding()
    check_network(digits.load_network(device.config.ai_ram_rows), device.titled)
    if args.netlist:
        files.open_file(args.netlist, command.UsageError).close()
    parts = [name for name, target in fpga.TARGETS.items() if target.part]
    if device.name not in parts:
        raise command.UsageError(f"{device.name} has no part, expected {command.any_of(parts)}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gates_", dir=simrun.builds()) as tmp:
        folder = Path(tmp)
        try:
            path = args.netlist or fpga.mapped(device, folder)
            if args.keep:
                shutil.copy(path, args.keep)
            simulate(device, lowered(path, folder), args.sim, args.seed)
        except (eda.ToolError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print(f"the netlist is exact, after {time.monotonic() - began:.0f} s")
    return 0
