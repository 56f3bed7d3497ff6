# SPDX-License-Identifier: Apache-2.0
"""Combinational paths from inputs to outputs of a flattened netlist, as write_json gives it.

A path through a device ties the timing of its neighbours together; an AHB slave or master whose
outputs follow its inputs within a cycle can even close a loop outside. Flip-flops and the write
ports and clocked read ports of memories end a path; everything else passes it on, bit by bit where
a cell works bit by bit.
"""

import re
from collections import defaultdict

BITWISE = {"$mux", "$and", "$or", "$xor", "$xnor", "$not", "$_MUX_"}
ENDS = ("$dff", "$sdff", "$adff", "$aldff", "$_DFF", "$_SDFF", "$memwr", "$scopeinfo", "$check")
READS = ("$memrd", "$mem")  # a read port passes its address on when it has no clock


class PathError(ValueError):
    """The netlist has a cell whose paths are not known."""


def ends_path(cell: dict) -> bool:
    """Whether no output of the cell follows an input within the cycle."""
    kind = cell["type"]
    if kind.startswith(READS) and not kind.startswith("$memwr"):
        clocked = cell["parameters"].get("CLK_ENABLE", cell["parameters"].get("RD_CLK_ENABLE", "0"))
        return "0" not in str(clocked)[-1:] if kind.startswith("$memrd") else False
    return kind.startswith(ENDS)


def edges(cell: dict) -> list[tuple[int, int]]:
    """(bit in, bit out) of each dependence inside a combinational cell."""
    kind, pins = cell["type"], cell["connections"]
    for pin in pins:
        if pin not in cell.get("port_directions", {}):
            raise PathError(f"cell {kind}: direction of pin {pin} is not known")
    of = cell["port_directions"]
    ins = [(pin, bits) for pin, bits in pins.items() if of[pin] != "output"]
    outs = [bits for pin, bits in pins.items() if of[pin] != "input"]
    found = []
    for bits in outs:
        for place, out in enumerate(bits):
            for pin, sources in ins:
                alone = kind in BITWISE and pin != "S" and len(sources) == len(bits)
                chosen = [sources[place]] if alone else sources
                found += [(bit, out) for bit in chosen if isinstance(bit, int)]
    return [(bit, out) for bit, out in found if isinstance(out, int)]


def joined_paths(top: dict, start: str, end: str) -> list[tuple[str, str]]:
    """(input, output) of each pair that a combinational path joins; one pair for an output.

    ``top``: a module of write_json. ``start``, ``end``: regular expressions that the names of the
    ports begin with.
    """
    reached: dict[int, str] = {}
    for name, port in top["ports"].items():
        if port["direction"] == "input" and re.match(start, name):
            reached.update({bit: name for bit in port["bits"] if isinstance(bit, int)})
    follows = defaultdict(list)
    for cell in top["cells"].values():
        if not ends_path(cell):
            for bit, out in edges(cell):
                follows[bit].append(out)
    waiting = list(reached)
    while waiting:
        bit = waiting.pop()
        for out in follows[bit]:
            if out not in reached:
                reached[out] = reached[bit]
                waiting.append(out)
    found = []
    for name, port in top["ports"].items():
        if port["direction"] == "output" and re.match(end, name):
            met = sorted({reached[bit] for bit in port["bits"] if bit in reached})
            found += [(met[0], name)] if met else []
    return found
