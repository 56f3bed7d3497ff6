# SPDX-License-Identifier: Apache-2.0
"""Who asks for the AI RAM: requesters with a bound on their waiting, maps that move."""

from dataclasses import dataclass, field

import numpy as np
from openkpu.tb.map_mover.test_map_mover import Shape

LEAD = 30  # cycles from the choice of a map to its start: requests of before are served by then


@dataclass
class Port:
    """A requester: how often it asks, whether it does, since when."""

    p: float
    bound: int  # cycles without a grant, at most
    asks: bool = False
    waited: int = 0
    longest: int = 0
    grants: int = 0

    def count(self, name: str, asked: bool, granted: bool) -> None:
        """Account for a cycle; nobody is served unasked, or too late."""
        assert asked or not granted, f"{name}: served without a request"
        self.waited = self.waited + 1 if asked and not granted else 0
        self.longest = max(self.longest, self.waited)
        self.grants += granted
        assert self.waited <= self.bound, f"{name} waits for {self.waited} cycles"


@dataclass
class Move:
    """A load or an unload: a map, and where it stands."""

    base: int
    shape: Shape
    data: np.ndarray  # the map
    mask: np.ndarray  # bytes of the AI RAM that are pixels
    wait: int = LEAD
    age: int = 0
    store: int = 0
    address: int = 0
    owner: int = 0
    requests: list[tuple[int, int, int]] = field(default_factory=list)
    out: bytes = b""
    due: int | None = None  # cycles until the storage has it

    @property
    def running(self) -> bool:
        """It was started."""
        return self.wait < 0
