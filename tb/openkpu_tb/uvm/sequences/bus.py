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


def quiet(rng: np.random.Generator) -> dict[str, int]:
    """No wait states, the bus for the asking."""
    return {}


def waits(rng: np.random.Generator) -> dict[str, int]:
    """Slow storage: fixed wait states of each kind, and random ones."""
    fixed = {name: int(rng.integers(0, 5)) for name in ("rd_wait", "seq_wait", "wr_wait")}
    return fixed | {"wait_prob": int(rng.integers(1, 120))}


def lost_grants(rng: np.random.Generator) -> dict[str, int]:
    """A rival master, and bursts cut short by the arbiter."""
    return {"loss_prob": int(rng.integers(5, 60)), "rival_prob": int(rng.integers(0, 120))}


def retries(rng: np.random.Generator) -> dict[str, int]:
    """RETRY answers."""
    return {"retry_prob": int(rng.integers(2, 60))}


def splits(rng: np.random.Generator) -> dict[str, int]:
    """SPLIT answers."""
    return {"split_prob": int(rng.integers(2, 40))}


def everything(rng: np.random.Generator) -> dict[str, int]:
    """All of it."""
    return waits(rng) | lost_grants(rng) | {"retry_prob": 6, "split_prob": 6}


KINDS = {
    "quiet": quiet,
    "waits": waits,
    "lost grants": lost_grants,
    "RETRY": retries,
    "SPLIT": splits,
    "everything": everything,
}


def disturbance(rng: np.random.Generator, kind: str | None = None) -> BusSequence:
    """A bus of this kind, by default of a random one."""
    kind = kind or list(KINDS)[int(rng.integers(0, len(KINDS)))]
    return BusSequence(kind, False, **KINDS[kind](rng))
