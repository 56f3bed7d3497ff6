# SPDX-License-Identifier: Apache-2.0
"""The memories of rtl/lib as Liberty cells for OpenSTA.

The library of standard cells has no macro for them. Here each becomes a cell that takes no time:
data come with the clock edge (or with the address, where reading is asynchronous).
"""

import dataclasses

# timing of a memory's pins, ns: none
CLOCKED = (
    'timing() {{ related_pin : "clk"; timing_type : rising_edge; '
    'cell_rise(scalar) {{ values("0.0"); }} cell_fall(scalar) {{ values("0.0"); }} '
    'rise_transition(scalar) {{ values("0.05"); }} fall_transition(scalar) {{ values("0.05"); }} }}'
)
THROUGH = (
    'timing() {{ related_pin : "{pin}"; timing_sense : non_unate; '
    'cell_rise(scalar) {{ values("0.0"); }} cell_fall(scalar) {{ values("0.0"); }} '
    'rise_transition(scalar) {{ values("0.05"); }} fall_transition(scalar) {{ values("0.05"); }} }}'
)
SETUP = (
    'timing() {{ related_pin : "clk"; timing_type : setup_rising; '
    'rise_constraint(scalar) {{ values("0.0"); }} fall_constraint(scalar) {{ values("0.0"); }} }}'
)
LOAD = 0.02  # pF of an input
# per cent of the supply, as in the library of the cells
THRESHOLDS = {"slew_lower": 20, "slew_upper": 80, "input": 50, "output": 50}


@dataclasses.dataclass(frozen=True)
class Memory:
    """A memory of rtl/lib with its parameters."""

    ports: tuple[tuple[str, str, int], ...]  # name, direction, bits
    bits: int  # stored
    asynchronous: bool  # read data follow the address

    @classmethod
    def of(cls, module: dict) -> "Memory":
        """From a module of Yosys's JSON netlist."""
        ports = tuple(
            (name, port["direction"], len(port["bits"])) for name, port in module["ports"].items()
        )
        values = {n: int(v, 2) for n, v in module["parameter_default_values"].items()}
        bits = 512 * values["ROWS"] if "ROWS" in values else values["WIDTH"] * values["DEPTH"]
        return cls(ports, bits, "re" not in module["ports"])


def _pin(name: str, direction: str, width: int, timings: list[str]) -> str:
    """A pin or a bus of a cell."""
    inner = " ".join([f"direction : {direction};", *timings])
    if direction == "input":
        inner += f" capacitance : {LOAD};"
    if name == "clk":
        inner += " clock : true;"
    if width == 1:
        return f"  pin({name}) {{ {inner} }}"
    return f"  bus({name}) {{ bus_type : b{width}; {inner} }}"


def cell(name: str, memory: Memory) -> str:
    """A memory as a cell."""
    lines = [f"cell ({name}) {{", "  area : 0; interface_timing : true;"]
    for port, direction, width in memory.ports:
        timings = []
        if direction == "output":
            timings.append(CLOCKED.format())
            if memory.asynchronous:
                timings.append(THROUGH.format(pin="raddr"))
        elif port != "clk" and not (memory.asynchronous and port == "raddr"):
            timings.append(SETUP.format())
        lines.append(_pin(port, direction, width, timings))
    return "\n".join([*lines, "}"])


def liberty(memories: dict[str, Memory]) -> str:
    """Cell name -> memory, as a Liberty file."""
    widths = {width for memory in memories.values() for _, _, width in memory.ports if width > 1}
    types = [
        f"  type (b{w}) {{ base_type : array; data_type : bit; bit_width : {w}; "
        f"bit_from : {w - 1}; bit_to : 0; downto : true; }}"
        for w in sorted(widths)
    ]
    head = [
        "library(openkpu_memories) {",
        "  delay_model : table_lookup;",
        '  time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1uA";',
        "  capacitive_load_unit (1,pf);",
        *(
            f"  {what}_threshold_pct_{edge} : {value};"
            for edge in ("rise", "fall")
            for what, value in THRESHOLDS.items()
        ),
        "  nom_process : 1; nom_voltage : 1.8; nom_temperature : 25;",
    ]
    cells = [cell(name, memory) for name, memory in sorted(memories.items())]
    return "\n".join([*head, *types, *cells, "}"]) + "\n"
