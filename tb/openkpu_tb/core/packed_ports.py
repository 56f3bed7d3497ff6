# SPDX-License-Identifier: Apache-2.0
"""Packed ports seen field by field: ``view.cfg_more.value`` for a field of port ``cfg``."""

from typing import Any

from cocotb.handle import LogicArrayObject, LogicObject
from cocotb.types import LogicArray

from openkpu_tb.handle import Handle

Layout = dict[str, tuple[int, int]]
WAITED_FOR = ("clk", "rst")  # triggers take the simulator's own handles


class Port:
    """A port of the module's own. What it is driven with already is not written again: a bench
    drives all its inputs in every cycle, and most of them do not change."""

    def __init__(self, handle: LogicObject | LogicArrayObject) -> None:
        self._handle = handle
        self._driven: int | None = None

    def __len__(self) -> int:
        return len(self._handle)

    @property
    def value(self) -> Any:
        """As the handle gives it."""
        return self._handle.value

    @value.setter
    def value(self, value: Any) -> None:
        number = value if isinstance(value, int) else None  # anything else is always written
        if number is None or number != self._driven:
            self._handle.value = value
            self._driven = number


class Field:
    """A field of a packed port, with the ``value`` that a port of its own would have.

    Writes of several fields in one cycle add up: the port's value is kept here.
    """

    def __init__(self, view: "PackedView", port: str, low: int, width: int) -> None:
        self._view, self._port, self._low, self._width = view, port, low, width
        self._handle = getattr(view.dut, port)
        self._seen, self._array = "", LogicArray(0, width)

    def __len__(self) -> int:
        return self._width

    @property
    def value(self) -> LogicArray:
        """The field's bits; unknown bits elsewhere in the port do not matter."""
        # as text: a slice of a wide LogicArray takes twenty times as long
        bits = str(self._handle.value)
        end = len(bits) - self._low
        seen = bits[end - self._width : end]
        if seen != self._seen:  # making an array takes longer than all the rest
            self._seen, self._array = seen, LogicArray(seen)
        return self._array

    @value.setter
    def value(self, value: Any) -> None:
        bits, number = (1 << self._width) - 1, int(value)
        if number & ~bits:
            raise ValueError(f"{self._port}: {number} does not fit {self._width} bits")
        driven = self._view.driven
        old = driven.get(self._port)
        new = (old or 0) & ~(bits << self._low) | number << self._low
        if new != old or not self._view.sole:
            self._handle.value = driven[self._port] = new


class PackedView:
    """A module whose packed ports look like one port a field.

    ``packed``: port -> (layout, prefix of its fields' names); ``names``: other names for them.
    Everything else is the module's own. ``sole``: nobody drives the module but through this view,
    which then does not write what a port has already.
    """

    def __init__(
        self,
        dut: Handle,
        packed: dict[str, tuple[Layout, str]],
        names: dict[str, str] | None = None,
        *,
        sole: bool = False,
    ) -> None:
        self.dut, self.sole = dut, sole
        self.driven: dict[str, int] = {}
        self.fields: dict[str, Field] = {}
        for port, (layout, prefix) in packed.items():
            for name, (low, width) in layout.items():
                self.fields[prefix + name] = Field(self, port, low, width)
        self.names = names or {}

    def __dir__(self) -> list[str]:
        """cocotb_bus finds the pins of a bus among these names."""
        return sorted({*super().__dir__(), *self.names, *self.fields, *dir(self.dut)})

    def __getattr__(self, name: str) -> Any:
        own = self.names.get(name, name)
        found = self.fields.get(own)
        if found is None:
            found = getattr(self.dut, own)
            kinds = LogicObject | LogicArrayObject
            if self.sole and isinstance(found, kinds) and own not in WAITED_FOR:
                found = Port(found)
        self.__dict__[name] = found  # found at once the next time
        return found
