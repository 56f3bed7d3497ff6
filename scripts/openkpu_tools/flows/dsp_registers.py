# SPDX-License-Identifier: Apache-2.0
"""Registers next to a multiplier become the multiplier's own, in a netlist of ECP5 cells.

An MULT18X18D has registers at its factors and at its product. Yosys uses none of them: factors and
products are held in flip-flops wherever the placer finds room, at the end of long wires. The
netlist is Yosys's JSON; its function stays the same, cycle by cycle (`make gates` runs it).
"""

from collections import defaultdict
from dataclasses import dataclass

Bit = int | str  # as in Yosys's JSON: the number of a net, or 0, 1, x, z
FACTORS = {side: [f"{side}{i}" for i in range(18)] for side in "AB"}
PRODUCT = [f"P{i}" for i in range(36)]


@dataclass(frozen=True)
class Control:
    """The control nets of a register; constants where it has no enable or no reset."""

    clock: Bit
    enable: Bit
    reset: Bit


def control(cell: dict) -> Control | None:
    """Clock, enable and reset of a flip-flop; None if a multiplier has no such register."""
    pins = {pin: bits[0] for pin, bits in cell["connections"].items()}
    settings = {key: value.strip() for key, value in cell["parameters"].items()}
    enable = {"1": "1", "CE": pins.get("CE")}.get(settings.get("CEMUX", "1"))
    reset = pins.get("LSR", "0")
    usual = (("CLKMUX", "CLK"), ("LSRMUX", "LSR"), ("SRMODE", "LSR_OVER_CE"))
    if enable is None or any(settings.get(key, value) != value for key, value in usual):
        return None
    if reset != "0" and (enable != "1" or settings.get("REGSET", "RESET") != "RESET"):
        return None  # the priority of enable and reset in a multiplier is unspecified: not used
    return Control(pins["CLK"], enable, reset)


class Netlist:
    """The cells of a module, with the driver and the readers of each net."""

    def __init__(self, module: dict) -> None:
        self.cells: dict[str, dict] = module["cells"]
        self.driver: dict[Bit, str] = {}
        self.readers: dict[Bit, list[str]] = defaultdict(list)
        for port in module["ports"].values():
            for bit in port["bits"] if port["direction"] == "output" else ():
                self.readers[bit].append("")
        for name, cell in self.cells.items():
            for pin, bits in cell["connections"].items():
                for bit in bits:
                    if cell["port_directions"][pin] == "output":
                        self.driver[bit] = name
                    else:
                        self.readers[bit].append(name)

    def drop(self, name: str) -> dict:
        """Remove a flip-flop from the module; returns its pins."""
        pins = self.cells.pop(name)["connections"]
        for pin, bits in pins.items():
            if pin != "Q":
                self.readers[bits[0]].remove(name)
        return pins

    def control(self, names: set[str]) -> Control | None:
        """The control of these cells; None unless they are flip-flops with the same control."""
        cells = [self.cells.get(name, {"type": ""}) for name in names]
        if not cells or any(cell["type"] != "TRELLIS_FF" for cell in cells):
            return None
        found = {control(cell) for cell in cells}
        return found.pop() if len(found) == 1 else None

    def product(self, name: str) -> tuple[dict[str, str], Control] | None:
        """Pins of a product with the register of each, if only that register reads the pin."""
        pins = self.cells[name]["connections"]
        read = {pin: self.readers.get(pins[pin][0], []) for pin in PRODUCT if pins.get(pin)}
        behind = {pin: names[0] for pin, names in read.items() if names}
        if any(len(names) > 1 for names in read.values()):
            return None
        by = self.control(set(behind.values()))
        fed = by and all(
            self.cells[behind[pin]]["connections"]["DI"] == pins[pin] for pin in behind
        )
        return (behind, by) if by and fed else None

    def factor(self, name: str, side: str) -> tuple[dict[str, str], Control] | None:
        """Pins of a factor with the register of each; the other pins are zero."""
        pins = self.cells[name]["connections"]
        used = {pin: pins[pin][0] for pin in FACTORS[side] if pins.get(pin, ["0"]) != ["0"]}
        before = {pin: self.driver.get(bit, "") for pin, bit in used.items()}
        by = self.control(set(before.values()))
        return (before, by) if by else None

    def take_product(self, name: str, behind: dict[str, str]) -> None:
        """Drop the registers of a product; their nets are the multiplier's."""
        for pin, register in behind.items():
            after = self.drop(register)["Q"]
            self.cells[name]["connections"][pin] = after
            self.driver[after[0]] = name

    def take_factor(self, name: str, before: dict[str, str]) -> None:
        """Read the inputs of a factor's registers; drop the registers without another reader."""
        pins = self.cells[name]["connections"]
        for pin, register in before.items():
            old, new = pins[pin][0], self.cells[register]["connections"]["DI"]
            pins[pin] = new
            self.readers[old].remove(name)
            self.readers[new[0]].append(name)
        for register in set(before.values()):
            if not self.readers[self.cells[register]["connections"]["Q"][0]]:
                self.drop(register)


def fold_registers(module: dict) -> int:
    """Move registers of ``module`` into its multipliers; returns how many flip-flops that saves.

    A multiplier has one clock, enable and reset here, so it absorbs registers that share them: a
    group of four multipliers has four of each. A factor's registers stay if another cell reads
    them, too.
    """
    found = Netlist(module)
    before = len(found.cells)
    for name, cell in [*found.cells.items()]:
        if cell["type"] != "MULT18X18D" or any(key[:4] == "REG_" for key in cell["parameters"]):
            continue
        chosen: Control | None = None
        for part in ("OUTPUT", "INPUTA", "INPUTB"):
            out = part == "OUTPUT"
            near = found.product(name) if out else found.factor(name, part[-1])
            if near is None or chosen not in (None, near[1]):
                continue
            registers, chosen = near
            (found.take_product if out else found.take_factor)(name, registers)
            names = {"CLK": "CLK0", "CE": "CE0", "RST": "RST0"}
            cell["parameters"] |= {f"REG_{part}_{key}": pin for key, pin in names.items()}
        if chosen:
            cell["parameters"] |= {"GSR": "DISABLED", "RESETMODE": "SYNC"}
            wired = {"CLK0": chosen.clock, "CE0": chosen.enable, "RST0": chosen.reset}
            cell["connections"] |= {pin: [bit] for pin, bit in wired.items()}
            cell["port_directions"] |= dict.fromkeys(wired, "input")
            for bit in wired.values():
                found.readers[bit].append(name)
    return before - len(found.cells)
