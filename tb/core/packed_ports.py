# SPDX-License-Identifier: Apache-2.0
"""Packed ports seen field by field: ``view.cfg_more.value`` for a field of port ``cfg``."""

from typing import Any

from cocotb.handle import SimHandleBase
from cocotb.types import LogicArray

Layout = dict[str, tuple[int, int]]


class Field:
    """A field of a packed port, with the ``value`` that a port of its own would have.

    Writes of several fields in one cycle add up: the port's value is kept here.
    """

    def __init__(self, view: "View", port: str, low: int, width: int) -> None:
        self._view, self._port, self._low, self._width = view, port, low, width
        self._handle = getattr(view.dut, port)

    def __len__(self) -> int:
        return self._width

    @property
    def value(self) -> LogicArray:
        """The field's bits; unknown bits elsewhere in the port do not matter."""
        # as text: a slice of a wide LogicArray takes twenty times as long
        bits = str(self._handle.value)
        end = len(bits) - self._low
        return LogicArray(bits[end - self._width : end])

    @value.setter
    def value(self, value: Any) -> None:
        bits = (1 << self._width) - 1
        if int(value) & ~bits:
            raise ValueError(f"{self._port}: {int(value)} does not fit {self._width} bits")
        driven = self._view.driven
        old = driven.get(self._port, 0)
        driven[self._port] = old & ~(bits << self._low) | int(value) << self._low
        self._handle.value = driven[self._port]


class View:
    """A module whose packed ports look like one port a field.

    ``packed``: port -> (layout, prefix of its fields' names); ``names``: other names for them.
    Everything else is the module's own.
    """

    def __init__(
        self,
        dut: SimHandleBase,
        packed: dict[str, tuple[Layout, str]],
        names: dict[str, str] | None = None,
    ) -> None:
        self.dut = dut
        self.driven: dict[str, int] = {}
        self.fields: dict[str, Field] = {}
        for port, (layout, prefix) in packed.items():
            for name, (low, width) in layout.items():
                self.fields[prefix + name] = Field(self, port, low, width)
        self.names = names or {}

    def __getattr__(self, name: str) -> Any:
        own = self.names.get(name, name)
        found = self.fields[own] if own in self.fields else getattr(self.dut, own)
        self.__dict__[name] = found  # found at once the next time
        return found
