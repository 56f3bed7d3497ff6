# SPDX-License-Identifier: Apache-2.0
"""Layer words on their way to the decoder: pushed by a host, or read from a task list.

docs/architecture.md 15.6. ``collected`` gives the cycle in which a layer's last word is taken.
"""

from __future__ import annotations

from typing import Protocol

from openkpu.layer.argument import WORDS
from openkpu.prediction.cycles_bus import Channel

PUSH = 2  # cycles of a word that a host pushes: two accesses
HOST_SERVES = 10  # cycles from the interrupt to the first word of the next burst of layers
LIST_START = 2  # from the start to the request of the list
LIST_AGAIN = 3  # ... from the last word of a list to the request of the next one
LIST_MOVED = 4  # ... from the end of an inference, when the one after the next is due
WORD_BYTES = 8


class Seen(Protocol):
    """What words wait for: layers collected and gone so far, by cycle."""

    collects: list[int]
    pops: list[int]


class HostWords:
    """Layers that a host pushes, in bursts of so many."""

    def __init__(self, burst: int) -> None:
        """``burst`` layers are pushed at a time; the next ones when the FIFO is almost empty."""
        self.burst = burst

    def ask(self, seen: Seen) -> None:
        """Nothing is to be asked for."""

    def begun(self, layer: int, seen: Seen) -> int:
        """Cycle of the first word of the burst in which a layer is pushed."""
        part = layer // self.burst
        if not part:
            return 0
        # almost empty: one layer of the burst before is left in the FIFO
        return seen.collects[max(0, part * self.burst - 2)] + HOST_SERVES

    def pushed(self, layers: int, seen: Seen) -> int:
        """Cycle of the host's first look at the status behind the last push."""
        number = (layers - 1) % self.burst + 1
        return self.begun(layers - 1, seen) + WORDS * PUSH * number + 1

    def collected(self, layer: int, free: int, seen: Seen) -> int | None:
        """Cycle in which the last word of a layer is taken; ``free``: the decoder's."""
        arrive = self.begun(layer, seen) + WORDS * PUSH * (layer % self.burst)
        return max(max(free, arrive) + WORDS - 1, arrive + PUSH * (WORDS - 1))


class ListWords:
    """Task lists: one for each inference, the next one asked for when one is read."""

    def __init__(self, channel: Channel, address: int, layers: int, count: int) -> None:
        """``layers`` of a list at ``address``, for ``count`` inferences."""
        self.channel, self.layers, self.count = channel, layers, count
        self.request = [(address, WORD_BYTES * WORDS * layers)]
        self.asked = self.words = self.at = 0

    def ask(self, seen: Seen) -> None:
        """Request a list as soon as it is known when."""
        while self.asked < self.count:
            number, done = self.asked, self.asked * self.layers
            at = LIST_START
            if number:
                if len(seen.collects) < done:
                    return
                at = seen.collects[done - 1] + LIST_AGAIN
            if number > 1:
                if len(seen.pops) < done - self.layers:
                    return
                at = max(at, seen.pops[done - self.layers - 1] + LIST_MOVED)
            self.channel.submit(at, self.request)
            self.asked += 1

    def collected(self, layer: int, free: int, _seen: Seen) -> int | None:
        """As HostWords.collected; None when the words have not come."""
        at = max(free, self.at)
        while self.words < WORDS * (layer + 1):
            got = self.channel.gear.take(WORD_BYTES, at)
            if got is None:
                self.at = at
                return None
            self.words += 1
            at = got + 1
        self.at = at
        return at - 1
