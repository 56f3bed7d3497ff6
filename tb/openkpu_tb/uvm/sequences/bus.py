# SPDX-License-Identifier: Apache-2.0
"""Sequences of the bus agent: how unfriendly the storage and its bus are from now on."""

import numpy as np
from pyuvm import uvm_sequence

from openkpu_tb.uvm.items import BusItem


class BusSequence(uvm_sequence):
    """One setting of the bus; without knobs a quiet one. ``keep``: knobs not given stay."""

    def __init__(self, name: str = "bus", keep: bool = False, **knobs: int) -> None:
        super().__init__(name)
        self.keep, self.knobs = keep, knobs

    async def body(self) -> None:
        item = BusItem(self.get_name(), self.keep, **self.knobs)
        await self.start_item(item)
        await self.finish_item(item)


# knobs of each kind, drawn from a range: fixed wait states of each kind of beat and random ones; a
# rival master and bursts that the arbiter cuts short; answers
WAITS = {"rd_wait": (0, 5), "seq_wait": (0, 5), "wr_wait": (0, 5), "wait_prob": (1, 120)}
LOST_GRANTS = {"loss_prob": (5, 60), "rival_prob": (0, 120)}
KINDS: dict[str, dict[str, tuple[int, int]]] = {
    "quiet": {},
    "waits": WAITS,
    "lost grants": LOST_GRANTS,
    "RETRY": {"retry_prob": (2, 60)},
    "SPLIT": {"split_prob": (2, 40)},
    "everything": WAITS | LOST_GRANTS | {"retry_prob": (6, 7), "split_prob": (6, 7)},
}


def disturbance(rng: np.random.Generator, kind: str | None = None) -> BusSequence:
    """A bus of this kind, by default of a random one."""
    kind = kind or list(KINDS)[int(rng.integers(0, len(KINDS)))]
    knobs = {name: int(rng.integers(*ends)) for name, ends in KINDS[kind].items()}
    return BusSequence(kind, False, **knobs)
