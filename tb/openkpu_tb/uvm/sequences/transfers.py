# SPDX-License-Identifier: Apache-2.0
"""Sequence of the host's sequencer: one item."""

from collections.abc import Sequence

from pyuvm import uvm_sequence

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.uvm.create import create
from openkpu_tb.uvm.items import HostItem


class TransferSequence(uvm_sequence):
    """One item with these transfers, of the kind that the factory makes; answers are in them."""

    def __init__(self, name: str = "transfers", transfers: Sequence[Transfer] = ()) -> None:
        super().__init__(name)
        self.transfers = transfers

    async def body(self) -> None:
        item = create(HostItem, self.get_name())
        item.transfers = list(self.transfers)
        await self.start_item(item)
        await self.finish_item(item)
