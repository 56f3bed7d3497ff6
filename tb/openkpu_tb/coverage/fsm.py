# SPDX-License-Identifier: Apache-2.0
"""Coverage of state machines: tb_fsm.v out of fsm.toml, and what its points say.

The module is written into the folder of builds (simrun.py), so that the table is its only source.
Verilator's own coverage of state machines wants transitions to constants only, and leaves out
machines with nested conditions. So every state and transition is a cover property of the bench.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from openkpu.checkout import ROOT

DATA = Path(__file__).with_name("fsm.toml")
BENCH = "tb_fsm.v"
SPLIT = "__"  # between the parts of a point's name


class FsmError(ValueError):
    """fsm.toml names what is not in the RTL."""


@dataclass(frozen=True)
class Machine:
    """A state machine: where it is, values of its states, pairs of states that may follow."""

    name: str
    file: str
    instance: str
    states: dict[str, int]
    arcs: tuple[tuple[str, str], ...]
    line: int  # of its case statement
    width: int

    @property
    def points(self) -> list[str]:
        """Names of its coverage points: states, then transitions."""
        pairs = [SPLIT.join((self.name, a, b)) for a, b in self.arcs]
        return [SPLIT.join((self.name, state)) for state in self.states] + pairs


def _arcs(texts: list[str], states: list[str]) -> tuple[tuple[str, str], ...]:
    found: dict[tuple[str, str], None] = {}
    for text in texts:
        source, _, target = text.partition(">")
        sources = [s for s in states if s != target] if source == "*" else [source]
        for name in (*sources, target):
            if name not in states:
                raise FsmError(f"{text}: no state {name}")
        found.update(dict.fromkeys((s, target) for s in sources))
    return tuple(found)


def machine(name: str, table: dict, root: Path = ROOT) -> Machine:
    """A table of fsm.toml with the RTL's transitions; FsmError when a state is not in it."""
    text = (root / table["file"]).read_text(encoding="utf-8")
    values = {}
    for state in table["states"]:
        match = re.search(rf"\b{state} = (\d+)'d(\d+)", text)
        if not match:
            raise FsmError(f"{table['file']}: no state {state}")
        values[state], width = int(match[2]), int(match[1])
    lines = text.splitlines()
    line = next(n for n, code in enumerate(lines, 1) if "case (state)" in code)
    arcs = _arcs(table["arcs"], table["states"])
    return Machine(name, table["file"], table["instance"], values, arcs, line, width)


@cache
def machines() -> tuple[Machine, ...]:
    """All machines of fsm.toml."""
    tables = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return tuple(machine(name, table) for name, table in tables.items())


def place(point: str) -> tuple[str, int, str]:
    """(file, line, state or transition) of a point's name; FsmError for an unknown one.

    Verilator writes the second of two underscores as ``__05F``.
    """
    point = point.replace("__05F", "_")
    for each in machines():
        if point in each.points:
            _, *names = point.split(SPLIT)
            return each.file, each.line, " > ".join(names)
    raise FsmError(f"no state or transition {point}")


def _verilog(each: Machine) -> list[str]:
    was, now, top = f"{each.name}_was", f"{each.name}_now", each.width - 1
    lines = [
        f"  // {each.file}",
        f"  wire [{top}:0] {now} = tb_top.`DUT.{each.instance}.state;",
        f"  reg  [{top}:0] {was};",
        f"  always @(posedge clk) {was} <= {now};",
        f"  reg {each.name}_may;",
        "  always @*",
        f"    case ({{{was}, {now}}})",
    ]
    known = [
        f"{{{each.width}'d{each.states[a]}, {each.width}'d{each.states[b]}}}" for a, b in each.arcs
    ]
    lines += [f"      {pair}," for pair in known[:-1]]
    lines += [f"      {known[-1]}: {each.name}_may = 1'b1;"]
    lines += [
        f"      default: {each.name}_may = {was} == {now};",
        "    endcase",
        "`ifdef VERILATOR",
    ]
    for state, value in each.states.items():
        label = SPLIT.join((each.name, state))
        lines.append(f"  {label}: cover property (@(posedge clk) on && {now} == {value});")
    for a, b in each.arcs:
        label = SPLIT.join((each.name, a, b))
        lines.append(
            f"  {label}: cover property (@(posedge clk) on && {was} == {each.states[a]} && "
            f"{now} == {each.states[b]});"
        )
    return [*lines, "`endif", ""]


def bench() -> str:
    """The text of tb_fsm.v."""
    may = ", ".join(f"{each.name}_may" for each in machines())
    shown = ", ".join(f"{each.name} %0d > %0d" for each in machines())
    values = ", ".join(f"{each.name}_was, {each.name}_now" for each in machines())
    body = [line for each in machines() for line in _verilog(each)]
    return "\n".join(
        [
            "// SPDX-License-Identifier: Apache-2.0",
            "//",
            "// States and transitions of the device's state machines, counted; a transition that",
            "// coverage/fsm.toml does not list is an error. Written by coverage/fsm.py.",
            "`resetall",
            "`timescale 1ns/1ps",
            "`default_nettype none",
            "`ifdef AXI",  # the device is behind its bridges
            "  `define DUT u_axi.u_openkpu",
            "`elsif APB",
            "  `define DUT u_apb.u_openkpu",
            "`else",
            "  `define DUT dut",
            "`endif",
            "",
            "module tb_fsm (",
            "  // clock and reset of the device; transitions that may not be",
            "  input  wire        clk,",
            "  input  wire        rst,",
            "  output reg  [31:0] errors",
            ");",
            "  // a transition has both of its states outside of the reset",
            "  reg on;",
            "  initial on = 1'b0;",
            "  reg was_rst, began;",
            "  initial {was_rst, began} = 2'b10;",
            "  always @(posedge clk) begin",
            "    began <= began || rst === 1'b1;",
            "    was_rst <= rst;",
            "    on <= began && !rst && !was_rst;",
            "  end",
            "",
            *body,
            "  initial errors = 32'd0;",
            "  always @(posedge clk)",
            f"    if (on && {{{may}}} !== {len(machines())}'b{'1' * len(machines())}) begin",
            "      errors <= errors + 32'd1;",
            f'      $display("tb_fsm: a transition that is not listed, {shown}",',
            f"        {values});",
            "    end",
            "endmodule",
            "",
            "`resetall",
            "",
        ]
    )


def bench_file(folder: Path) -> Path:
    """tb_fsm.v in a folder, into which other processes may write it too."""
    path, text = folder / BENCH, bench()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        part = folder / f"{BENCH}.{os.getpid()}"
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    return path
