# SPDX-License-Identifier: Apache-2.0
"""Which signals of a bench are the bus: a prefix for all of them, a name of its own for each."""

from collections.abc import Sequence
from types import SimpleNamespace

from cocotb.types import LogicArray

from openkpu_tb.handle import Handle

# signals that a bus may lack: (width, the constant that is read instead)
OPTIONAL = {
    **{"hsel": (1, 1), "hburst": (3, 0), "hprot": (4, 3), "hresp": (2, 0), "hready": (1, 1)},
    **{"hready_in": (1, 1), "hready_out": (1, 1)},
    **{"hbusreq": (1, 1), "hgrant": (1, 1), "hlock": (1, 0)},
}
REQUIRED = ("haddr", "htrans", "hwrite", "hsize", "hwdata", "hrdata")


class Unconnected:
    """Replaces a signal that the bus lacks: reads as a constant, accepts any value."""

    def __init__(self, width: int, constant: int) -> None:
        self._value = LogicArray.from_unsigned(constant, width)

    def __len__(self) -> int:
        return len(self._value)

    @property
    def value(self) -> LogicArray:
        return self._value

    @value.setter
    def value(self, value: object) -> None:
        """Nobody is there to see it."""


class Signals:
    """Names of a bus's signals: ``prefix`` + the name in lower case, unless ``names`` has another.

    ``Signals("s_", hready_out="hreadyout", hprot=None)``: a name of None says that the bus lacks
    the signal. The prefix goes before the given names too. Upper and lower case are the same.
    ValueError for a signal that AHB does not have, or that no bus can lack.
    """

    def __init__(self, prefix: str = "", **names: str | None) -> None:
        for signal, name in names.items():
            if signal not in OPTIONAL and signal not in REQUIRED:
                known = ", ".join([*REQUIRED, *OPTIONAL])
                raise ValueError(f"unknown signal {signal!r}, expected one of {known}")
            if name is None and signal in REQUIRED:
                raise ValueError(f"{signal} is None, but every bus has it")
        self.prefix, self.names = prefix, names

    def connect(self, entity: Handle, wanted: Sequence[str]) -> SimpleNamespace:
        """Handles of ``wanted`` by AHB's names. AttributeError names what ``entity`` lacks."""
        found = {signal: self._find(entity, signal) for signal in wanted}
        return SimpleNamespace(**found)

    def _find(self, entity: Handle, signal: str) -> Handle | Unconnected:
        name = self.names.get(signal, signal)
        if name is None:
            return Unconnected(*OPTIONAL[signal])
        name = self.prefix + name
        for candidate in (name, name.lower(), name.upper()):
            if hasattr(entity, candidate):
                return getattr(entity, candidate)
        for candidate in dir(entity):
            if candidate.casefold() == name.casefold():
                return getattr(entity, candidate)
        raise AttributeError(
            f"{entity._name} has no signal {name!r} for {signal}: "
            f"give its name, or None, with Signals({signal}=...)"
        )


def named_signals(signals: Signals | str) -> Signals:
    """``signals`` as they are; a string is a bus name as cocotb-bus has it, without the '_'."""
    return signals if isinstance(signals, Signals) else Signals(f"{signals}_")
