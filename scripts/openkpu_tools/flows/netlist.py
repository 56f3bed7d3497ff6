# SPDX-License-Identifier: Apache-2.0
"""A netlist of ECP5 cells as Verilog that simulates fast.

Each LUT, carry cell and flip-flop becomes an expression or an assignment of its own, cell by cell:
nothing is merged or simplified across cells. Block RAM, LUT RAM and multipliers stay instances. A
simulator so gets one flat module instead of forty thousand instances, which take Verilator minutes.
What the cells do here is what Yosys's models of them say (scripts/tests/test_gates.py).
"""

from collections import defaultdict
from collections.abc import Iterator

INSTANCES = ("DP16KD", "MULT18X18D", "TRELLIS_DPR16X4")
FLIP_FLOP = {  # what a TRELLIS_FF may be told; anything else is refused
    "GSR": ("DISABLED",),
    "CEMUX": ("0", "1", "CE", "INV"),
    "CLKMUX": ("CLK",),
    "LSRMUX": ("LSR", "INV"),
    "REGSET": ("RESET", "SET"),
    "SRMODE": ("LSR_OVER_CE",),
    "LSRMODE": ("LSR",),
}
MULTIPLIER = {  # what an MULT18X18D may be told
    **{f"REG_{part}_CLK": ("CLK0",) for part in ("INPUTA", "INPUTB", "OUTPUT")},
    **{f"REG_{part}_CE": ("CE0",) for part in ("INPUTA", "INPUTB", "OUTPUT")},
    **{f"REG_{part}_RST": ("RST0",) for part in ("INPUTA", "INPUTB", "OUTPUT")},
    "GSR": ("DISABLED",),
    "RESETMODE": ("SYNC",),
}
Bit = int | str  # as in Yosys's JSON: the number of a net, or 0, 1, x, z


class NetlistError(ValueError):
    """The netlist holds what this module does not know."""


def net(bit: Bit) -> str:
    """A bit in an expression."""
    return f"1'b{bit}" if isinstance(bit, str) else f"n{bit}"


def whole_value(bits: list[Bit]) -> str:
    """Bits, the lowest first, as one value or as what is assigned to."""
    return f"{{{', '.join(map(net, reversed(bits)))}}}"


def choose(select: str, high: str, low: str) -> str:
    """``select ? high : low`` of single bits, unknown bits as in a multiplexer."""
    simple = {
        (high, high): high,
        ("1'b1", "1'b0"): select,
        ("1'b0", "1'b1"): f"~{select}",
        (high, "1'b0"): f"({select} & {high})",
        ("1'b1", low): f"({select} | {low})",
        ("1'b0", low): f"(~{select} & {low})",
        (high, "1'b1"): f"(~{select} | {high})",
    }
    return simple.get((high, low)) or f"({select} ? {high} : {low})"


def table(init: str, pins: list[Bit]) -> str:
    """Output of a LUT; ``init``: its truth table, the entry for all ones first; A first in pins."""
    if not pins:
        if init not in ("0", "1"):
            raise NetlistError(f"a LUT's table is {init}")
        return net(init)
    half, pin = len(init) // 2, pins[-1]
    high, low = table(init[:half], pins[:-1]), table(init[half:], pins[:-1])
    if pin in ("0", "1"):
        return high if pin == "1" else low
    return choose(net(pin), high, low)


def carry(number: int, cell: dict, pins: dict[str, list[Bit]]) -> Iterator[str]:
    """Both halves of a CCU2C."""
    parameters = cell["parameters"]
    into = net(pins["CIN"][0])
    for half in "01":
        init, inject = parameters[f"INIT{half}"], parameters[f"INJECT1_{half}"]
        if inject not in ("NO", "YES"):
            raise NetlistError(f"a CCU2C's INJECT1_{half} is {inject}")
        four = [pins[f"{pin}{half}"][0] for pin in "ABCD"]
        name = f"c{number}_{half}"
        yield f"  wire {name} = {table(init, four)};"
        through = "1'b0" if inject == "YES" else into
        two = "1'b0" if inject == "YES" else table(init[-4:], four[:2])
        out = f"c{number}_o{half}"
        yield f"  wire {out} = (~{name} & {two}) | ({name} & {into});"
        for bit in pins.get(f"S{half}", []):
            yield f"  assign {net(bit)} = {name} ^ {through};"
        into = out
    for bit in pins.get("COUT", []):
        yield f"  assign {net(bit)} = {into};"


def told(name: str, cell: dict, known: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Parameters of a cell; NetlistError for one that is not ``known``."""
    found = {key: value.strip() for key, value in cell["parameters"].items()}
    for key, value in found.items():
        if value not in known.get(key, ()):
            raise NetlistError(f"{name}: {key} is {value}")
    return found


def registers(cells: dict[str, dict]) -> Iterator[str]:
    """The flip-flops, those of one clock, enable and reset together."""
    groups: dict[tuple[str, str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for name, cell in cells.items():
        modes = told(name, cell, FLIP_FLOP)
        pins = {pin: bits[0] for pin, bits in cell["connections"].items()}
        mux = modes.get("CEMUX", "1")
        enable: Bit = mux if mux in ("0", "1") else pins["CE"]
        enable_name = f"~{net(enable)}" if mux == "INV" else net(enable)
        reset = net(pins["LSR"])
        reset = f"~{reset}" if modes.get("LSRMUX") == "INV" else reset
        value = "1'b1" if modes.get("REGSET") == "SET" else "1'b0"
        group = (net(pins["CLK"]), reset, enable_name)
        groups[group].append((net(pins["Q"]), net(pins["DI"]), value))
    for (clock, reset, enable), members in groups.items():
        load = [f"      {q} <= {d};" for q, d, _ in members]
        if enable != "1'b1":
            load = [f"    if ({enable}) begin", *load, "    end"]
        yield f"  always @(posedge {clock})"
        if reset == "1'b0":
            yield from ["  begin", *load, "  end"]
            continue
        clear = [f"      {q} <= {value};" for q, _, value in members]
        yield from [f"  if ({reset}) begin", *clear, "  end else begin", *load, "  end"]


def instance(number: int, cell: dict, pins: dict[str, list[Bit]]) -> str:
    """A cell that stays one; what it starts with is left out, memories start unknown."""

    def value(key: str, text: str) -> str:
        # a number of 32 bits, or a word
        return str(int(text, 2)) if key.startswith("DATA_WIDTH") else f'"{text.strip()}"'

    given = {k: text for k, text in cell["parameters"].items() if not k.startswith("INITVAL")}
    modes = ", ".join(f".{key}({value(key, text)})" for key, text in given.items())
    wired = ", ".join(f".{pin}({whole_value(bits)})" for pin, bits in pins.items())
    return f"  {cell['type']} {f'#({modes}) ' if modes else ''}u{number} ({wired});"


def ecp5_verilog(module: dict, name: str) -> str:
    """Verilog of a module of Yosys's JSON that holds ECP5 cells alone."""
    wires: set[int] = set()
    flip_flops: dict[str, dict] = {}
    body: list[str] = []
    stored: set[int] = set()
    for number, (instance_name, cell) in enumerate(module["cells"].items()):
        kind, pins = cell["type"], cell["connections"]
        wires.update(bit for bits in pins.values() for bit in bits if isinstance(bit, int))
        if kind == "TRELLIS_FF":
            flip_flops[instance_name] = cell
            stored.add(pins["Q"][0])
        elif kind == "LUT4":
            four = [pins[pin][0] for pin in "ABCD"]
            value = table(cell["parameters"]["INIT"], four)
            body.append(f"  assign {net(pins['Z'][0])} = {value};")
        elif kind == "CCU2C":
            body += carry(number, cell, pins)
        elif kind in INSTANCES:
            if kind == "MULT18X18D":
                told(instance_name, cell, MULTIPLIER)
                pins = {"CLK0": ["0"], "CE0": ["0"], "RST0": ["0"]} | pins
            body.append(instance(number, cell, pins))
        elif kind != "$scopeinfo":
            raise NetlistError(f"{instance_name}: no model of {kind}")
    head, ends = [], []
    for port, found in module["ports"].items():
        bits, way = found["bits"], found["direction"]
        wires.update(bit for bit in bits if isinstance(bit, int))
        head.append(f"  {way} wire [{len(bits) - 1}:0] {port}")
        whole = f"{{{', '.join(map(net, reversed(bits)))}}}"
        ends.append(
            f"  assign {whole} = {port};" if way == "input" else f"  assign {port} = {whole};"
        )
    return "\n".join(
        [
            "`resetall",
            "`timescale 1ns/1ps",
            "`default_nettype none",
            f"module {name} (",
            ",\n".join(head),
            ");",
            *(f"  {'reg' if bit in stored else 'wire'} n{bit};" for bit in sorted(wires)),
            *ends,
            *body,
            *registers(flip_flops),
            "endmodule",
            "`resetall\n",
        ]
    )
