# SPDX-License-Identifier: Apache-2.0
"""FPGA families that the device is mapped to: Yosys's command, what a cell counts as, the parts.

Standard library alone: the list of commands has the names of families and parts from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Weights = Mapping[str, float]  # kind of library cell -> how much of a column it is
LIMITED = ("LUT", "DSP", "block RAM")  # columns that a part has limits of


@dataclass(frozen=True)
class Part:
    """A part and what it has: LUTs, multipliers or DSP slices, block RAMs."""

    title: str
    lut: int
    dsp: int
    ram: int

    @property
    def limits(self) -> dict[str, int]:
        """Column -> capacity of the part."""
        return dict(zip(LIMITED, (self.lut, self.dsp, self.ram), strict=True))

    def excess(self, found: Mapping[str, float]) -> list[str]:
        """Columns of a count that are beyond the limits, each as "LUT 50,000 of 43,848"."""
        return [
            f"{name} {found[name]:,} of {limit:,}"
            for name, limit in self.limits.items()
            if found[name] > limit
        ]


@dataclass(frozen=True)
class Family:
    """``synth``: Yosys's command without the top module; ``note``: how cells count.

    ``free``: kinds of cells that take nothing of any column. A kind that is neither there nor in a
    column is unknown, and a count with it is wrong.
    """

    title: str
    synth: str
    columns: Mapping[str, Weights]
    free: frozenset[str]
    note: str
    parts: Mapping[str, Part]

    def sums(self, cells: Mapping[str, int]) -> dict[str, float]:
        """The columns of some cells."""
        return {name: weighted(cells, weights) for name, weights in self.columns.items()}

    def unknown(self, cells: Mapping[str, int]) -> list[str]:
        """Kinds of cells that have no price."""
        known = {kind for weights in self.columns.values() for kind in weights} | self.free
        return sorted(set(cells) - known)


def weighted(cells: Mapping[str, int], weights: Weights) -> float:
    """Weighted sum of some kinds of cells; an int where it is whole."""
    found = sum(weight * cells.get(kind, 0) for kind, weight in weights.items())
    return int(found) if found == int(found) else found


# carry chains take two LUTs a cell, LUT RAM four of its 16x1 bits and a pair for the write port
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
ECP5 = Family(
    "a Lattice ECP5",
    # multiplexers of plain LUTs take a third of those of wide ones
    "synth_ecp5 -nowidelut",
    {
        "LUT": LUTS,
        "flip-flops": {"TRELLIS_FF": 1},
        "DSP": {"MULT18X18D": 1},
        "block RAM": {"DP16KD": 1, "PDPW16KD": 1},
    },
    # an ALU54B is next to its two multipliers
    frozenset({"$scopeinfo", "PFUMX", "L6MUX21", "ALU54B"}),
    "A carry cell counts as two LUTs, a LUT RAM of 16x4 bits as six.",
    # Lattice FPGA-DS-02012, table 1.1
    {
        "25k": Part("LFE5U-25F", 24_288, 28, 56),
        "45k": Part("LFE5U-45F", 43_848, 72, 108),
        "85k": Part("LFE5U-85F", 83_640, 156, 208),
    },
)
XC7 = Family(
    "a Xilinx 7 series",
    # no pads: the device is a part of a chip
    "synth_xilinx -family xc7 -flatten -nowidelut -noiopad -noclkbuf",
    {
        "LUT": {f"LUT{inputs}": 1 for inputs in range(1, 7)}
        | {"INV": 1, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1}
        | {"RAM32X1S": 1, "RAM64X1S": 1, "RAM16X1D": 2, "RAM32X1D": 2, "RAM64X1D": 2}
        | {"RAM128X1S": 2, "RAM256X1S": 4, "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4},
        "flip-flops": dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1),
        "DSP": {"DSP48E1": 1},
        "block RAM": {"RAMB36E1": 1, "RAMB18E1": 0.5},
    },
    frozenset({"$scopeinfo", "CARRY4", "MUXF7", "MUXF8", "MUXF5", "MUXF6"}),
    "LUTs have up to six inputs, a LUT RAM counts as what it takes of them, a RAMB18 as half a"
    " block RAM.",
    # Xilinx DS180, table 4
    {
        "35t": Part("XC7A35T", 20_800, 90, 50),
        "50t": Part("XC7A50T", 32_600, 120, 75),
        "100t": Part("XC7A100T", 63_400, 240, 135),
        "200t": Part("XC7A200T", 134_600, 740, 365),
    },
)
FAMILIES = {"ecp5": ECP5, "xc7": XC7}
FAMILY_OF = {part: name for name, family in FAMILIES.items() for part in family.parts}
# part -> its title; "" where a device is only mapped
PARTS = {"": "none, mapped only"} | {
    key: part.title for family in FAMILIES.values() for key, part in family.parts.items()
}


def fit_rows(family: Family, found: Mapping[str, float]) -> list[tuple[str, ...]]:
    """A row for each part of the family: its title, the counts of its limits, the verdict."""
    return [
        (
            part.title,
            *(
                f"{found[name]:,} of {limit:,} ({100 * found[name] / limit:.0f} %)"
                for name, limit in part.limits.items()
            ),
            "too small" if part.excess(found) else "fits",
        )
        for part in family.parts.values()
    ]
