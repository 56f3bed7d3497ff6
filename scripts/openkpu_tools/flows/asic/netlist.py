# SPDX-License-Identifier: Apache-2.0
"""A mapped netlist (Yosys's JSON): short names, buffers where a net has many sinks.

Yosys maps module by module and leaves nets with thousands of sinks behind registers and ports. A
tree of buffers for each such net comes close to what a layout tool does before it places. ABC's
``buffer`` ends at the registers and at the ports, and Yosys's ``insbuf`` looks at no sinks.
"""

from collections import Counter, defaultdict

from openkpu_tools.flows import synth

SINKS = 12  # that a cell drives, before buffers are put in between
BUFFER = "BUFX4"
OUTPUTS = {"Y", "Q", "YC", "YS"}  # pins of the library's cells that drive a net
Modules = dict[str, dict]


def renamed(modules: Modules) -> Modules:
    """The modules by names without Yosys's decoration, numbered where several sets of parameters
    are: OpenSTA of 2019 takes no other ones."""
    plain = {name: synth.plain_module_name(name) for name in modules}
    many = Counter(plain.values())
    seen: Counter = Counter()
    found = {}
    for name, short in plain.items():
        seen[short] += 1
        found[name] = f"{short}_{seen[short]}" if many[short] > 1 else short
    for module in modules.values():
        for cell in module["cells"].values():
            cell["type"] = found.get(cell["type"], cell["type"])
    return {found[name]: module for name, module in modules.items()}


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
