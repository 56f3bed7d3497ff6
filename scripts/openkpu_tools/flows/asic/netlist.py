# SPDX-License-Identifier: Apache-2.0
"""A mapped netlist (Yosys's JSON): buffers where a net has many sinks, plain Verilog, areas.

Yosys maps module by module and leaves nets with thousands of sinks behind registers and ports. A
tree of buffers for each such net comes close to what a layout tool does before it places.
"""

import re
from collections import Counter, defaultdict

from openkpu_tools.flows import synth

SINKS = 12  # that a cell drives, before buffers are put in between
BUFFER = "BUFX4"
OUTPUTS = {"Y", "Q", "YC", "YS"}  # pins of the library's cells that drive a net
Modules = dict[str, dict]


def short_names(modules: Modules) -> dict[str, str]:
    """Module -> name without Yosys's decoration, numbered where several sets of parameters are."""
    plain = {name: synth.plain_module_name(name) for name in modules}
    many = Counter(plain.values())
    seen: Counter = Counter()
    found = {}
    for name, short in plain.items():
        seen[short] += 1
        found[name] = f"{short}_{seen[short]}" if many[short] > 1 else short
    return found


def _outputs(modules: Modules, kind: str) -> set[str]:
    """Pins of a cell that drive nets."""
    if kind not in modules:
        return OUTPUTS
    return {n for n, port in modules[kind]["ports"].items() if port["direction"] != "input"}


def buffer_nets(modules: Modules, clock: str = "clk") -> None:
    """Put a tree of buffers on every net with more than SINKS sinks in its module, clocks apart."""
    for module in modules.values():
        clocks = set(module["ports"].get(clock, {"bits": []})["bits"])
        sinks: dict[int, list[tuple[list, int]]] = defaultdict(list)
        top = 0
        for cell in module["cells"].values():
            drives = _outputs(modules, cell["type"])
            for pin, bits in cell["connections"].items():
                for at, bit in enumerate(bits):
                    if isinstance(bit, int):
                        top = max(top, bit)
                        if pin not in drives and bit not in clocks:
                            sinks[bit].append((bits, at))
        for port in module["ports"].values():
            top = max([top, *(bit for bit in port["bits"] if isinstance(bit, int))])
        for net, places in sinks.items():
            while len(places) > SINKS:
                places, top = _level(module, net, places, top)


def _level(module: dict, net: int, places: list, top: int) -> tuple[list, int]:
    """Buffers between ``net`` and ``places``; (inputs of the buffers, highest net now)."""
    inputs = []
    for first in range(0, len(places), SINKS):
        top += 1
        for bits, at in places[first : first + SINKS]:
            bits[at] = top
        pins = {"A": [net], "Y": [top]}
        module["cells"][f"buf_{top}"] = {"type": BUFFER, "connections": pins}
        inputs.append((pins["A"], 0))
    return inputs, top


def name_registers(modules: Modules) -> None:
    """Call flip-flops by the net that they drive."""
    for module in modules.values():
        called: dict[int, str] = {}
        for name, net in module.get("netnames", {}).items():
            if not net.get("hide_name"):
                for at, bit in enumerate(net["bits"]):
                    called.setdefault(bit, f"{name}[{at}]" if len(net["bits"]) > 1 else name)
        cells: dict[str, dict] = {}
        for name, cell in module["cells"].items():
            driven = cell["connections"]["Q"][0] if cell["type"].startswith("DFF") else None
            cells[f"{called[driven]}_ff" if driven in called else name] = cell
        module["cells"] = cells


def contents(
    modules: Modules, name: str, areas: dict[str, float], bits: dict[str, int]
) -> defaultdict[str, float]:
    """Area, flip-flops and memory bits of a module, those of modules inside it included."""
    found: defaultdict[str, float] = defaultdict(int)
    for kind, count in Counter(c["type"] for c in modules[name]["cells"].values()).items():
        if kind in bits:
            found["memory bits"] += count * bits[kind]
        elif kind in areas:
            found["area"] += count * areas[kind]
            found["flip-flops"] += count * kind.startswith("DFF")
        else:
            for key, value in contents(modules, kind, areas, bits).items():
                found[key] += count * value
    return found


def boxes(
    modules: Modules, areas: dict[str, float], bits: dict[str, int], unit: float, depth: int
) -> list[dict]:
    """A row for each box of the first levels: name, level, instances, gates, flip-flops, bits."""

    def rows(name: str, count: int, level: int) -> list[dict]:
        held = contents(modules, name, areas, bits)
        row = {
            "box": synth.plain_module_name(name),
            "level": level,
            "instances": count,
            "gates": round(count * held["area"] / unit),
            "flip-flops": count * held["flip-flops"],
            "memory bits": count * held["memory bits"],
        }
        kinds = Counter(c["type"] for c in modules[name]["cells"].values())
        inside = [
            rows(kind, number * count, level + 1)
            for kind, number in kinds.items()
            if level < depth and kind in modules and kind not in bits
        ]
        parts = sorted(inside, key=lambda part: -part[0]["gates"])
        return [row, *(row for part in parts for row in part)]

    (top,) = (name for name in modules if synth.plain_module_name(name) == "openkpu_top")
    return rows(top, 1, 0)


def _escaped(name: str) -> str:
    """A name as Verilog takes it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def asic_verilog(modules: Modules, names: dict[str, str], left_out: set[str]) -> str:
    """The modules as plain structural Verilog, under their new names.

    OpenSTA of 2019 reads neither everything that Yosys's own writer makes nor the word signed.
    """
    return "\n".join(
        _module(names[name], module, names)
        for name, module in modules.items()
        if name not in left_out
    )


def _module(name: str, module: dict, names: dict[str, str]) -> str:
    """One module: nets are called by their number, bits of ports by the port."""
    nets: dict[int | str, str] = {"0": "1'b0", "1": "1'b1", "x": "1'b0", "z": "1'b0"}
    declared, assigned = [], []
    ports = sorted(module["ports"].items(), key=lambda item: item[1]["direction"] == "output")
    for port, what in ports:
        width = len(what["bits"])
        span = f"[{width - 1}:0] " if width > 1 else ""
        declared.append(f"  {what['direction']} {span}{_escaped(port)};")
        for at, bit in enumerate(what["bits"]):
            here = f"{_escaped(port)}[{at}]" if width > 1 else _escaped(port)
            if bit in nets:  # two ports with one net, or a constant
                assigned.append(f"  assign {here} = {nets[bit]};")
            else:
                nets[bit] = here
    head = f"module {_escaped(name)} ({', '.join(_escaped(p) for p in module['ports'])});"
    body = []
    for cell_name, cell in module["cells"].items():
        pins = []
        for pin, bits in cell["connections"].items():
            for bit in bits:
                if bit not in nets:
                    nets[bit] = f"n{bit}"
                    declared.append(f"  wire n{bit};")
            joined = ", ".join(nets[bit] for bit in reversed(bits))
            pins.append(f".{_escaped(pin)}({joined if len(bits) == 1 else '{' + joined + '}'})")
        kind: str = cell["type"]
        body.append(
            f"  {_escaped(names.get(kind, kind))} {_escaped(cell_name)} ({', '.join(pins)});"
        )
    return "\n".join([head, *declared, *assigned, *body, "endmodule", ""])
