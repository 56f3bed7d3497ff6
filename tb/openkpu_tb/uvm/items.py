# SPDX-License-Identifier: Apache-2.0
"""Sequence items: transfers of the host, and how the storage's bus behaves."""

import random
from collections.abc import Sequence

import cocotb
from openkpu_tb.ahb.host_agent import Transfer
from pyuvm import uvm_sequence_item

# registers of the AHB fabric (tb/openkpu_tb/ahb/fabric) that a BusItem sets
WAITS = ("rd_wait", "seq_wait", "wr_wait")  # cycles: first read beat, later ones, writes
CHANCES = ("wait_prob", "loss_prob", "retry_prob", "split_prob", "rival_prob")  # in 256
# byte addresses lo <= a < hi of three windows are answered ERROR
WINDOWS = tuple((f"{name}_lo", f"{name}_hi") for name in ("err", "err1", "err2"))
KNOBS = (*WAITS, *CHANCES, *(end for window in WINDOWS for end in window))


class HostItem(uvm_sequence_item):
    """Transfers that are performed one after the other, ``gap`` idle cycles between two of them."""

    def __init__(self, name: str = "item", transfers: Sequence[Transfer] = ()) -> None:
        super().__init__(name)
        self.transfers = list(transfers)

    def gap(self) -> int:
        """Idle cycles before the next transfer; 0 keeps the pipeline of the bus full."""
        return 0


class GappedItem(HostItem):
    """A host that is slow and uneven: up to MOST idle cycles between two transfers.

    To be put in place of HostItem by a factory override.
    """

    MOST = 6
    _rng = random.Random()

    @classmethod
    def seed(cls) -> None:
        """Begin the gaps anew from the seed of the simulation."""
        cls._rng.seed(cocotb.RANDOM_SEED)

    def gap(self) -> int:
        return self._rng.randint(0, self.MOST)


class BusItem(uvm_sequence_item):
    """How the bus of the storage behaves from now on; ValueError for an unknown knob.

    ``keep``: knobs that are not given stay as they are.
    """

    def __init__(self, name: str = "bus", keep: bool = False, **knobs: int) -> None:
        super().__init__(name)
        unknown = set(knobs) - set(KNOBS)
        if unknown:
            raise ValueError(f"no such knobs of the bus: {sorted(unknown)}")
        self.knobs = knobs if keep else dict.fromkeys(KNOBS, 0) | knobs
