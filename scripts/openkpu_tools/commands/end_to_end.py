# SPDX-License-Identifier: Apache-2.0
"""Cycles from the first byte of an input to the last byte of its result, and where they went."""

import dataclasses
from typing import Any

CLOCK = (
    "clock cycles counted by the bench, since the device's PERF_TOTAL does not count while the"
    " device does not work; what the CPU of a chip computes between KPU layers takes none"
)
PERF = "clock cycles of the device's own PERF_TOTAL"
BY_HOST = (
    "from the host's first access for the input, which writes it into the AI RAM,"
    " to the read of the last byte of the result"
)
BY_DEVICE = (
    "from the host's first access for the input, which the device reads from storage,"
    " to the interrupt when the last byte of the result is in storage"
)
START = "from the start, the input in storage, to the last byte of the result in storage"


@dataclasses.dataclass(frozen=True)
class EndToEnd:
    """Cycles of one run or of several; ValueError when the parts are more than the whole."""

    cycles: int
    layers: int  # sum over the layers, from PERF_TOTAL
    host_maps: int  # the host moves maps over the bus
    what: str  # from where to where
    clock: str  # what counted

    def __post_init__(self) -> None:
        if min(self.layers, self.host_maps, self.other) < 0:
            raise ValueError(
                f"{self.layers} cycles of layers and {self.host_maps} of maps in {self.cycles}"
            )

    @property
    def other(self) -> int:
        """Registers, layer words, interrupts, polling."""
        return self.cycles - self.layers - self.host_maps

    @property
    def parts(self) -> dict[str, int]:
        """Cycles by who was at work; they add up to ``cycles``."""
        return {"layers": self.layers, "host_maps": self.host_maps, "other": self.other}

    def report(self, roofline: int) -> dict[str, Any]:
        """For the JSON report; ``roofline`` of all that was run, in cycles."""
        return {
            "cycles": self.cycles,
            "parts": self.parts,
            "shares": {name: round(n / self.cycles, 6) for name, n in self.parts.items()},
            "roofline_cycles": roofline,
            "efficiency": round(roofline / self.cycles, 4),
            "what": self.what,
            "clock": self.clock,
        }

    def lines(self, roofline: int) -> list[str]:
        """For the end of a table."""
        layers, maps, other = (100 * n / self.cycles for n in self.parts.values())
        return [
            f"end to end: {self.what}",
            f"  cycles                {self.cycles:12d}   layers {layers:.1f} %, maps moved by the"
            f" host {maps:.1f} %, registers and interrupts {other:.1f} %",
            f"  roofline              {roofline:12d}   multiplications and reads of pooling tasks,"
            " or bytes of parameters, layer words and maps that cross the bus",
            f"  efficiency            {100 * roofline / self.cycles:12.1f} %",
        ]


def unmeasured(why: str) -> dict[str, Any]:
    """For the JSON report when there is no such figure."""
    return {"cycles": None, "why": why}
