# SPDX-License-Identifier: Apache-2.0
"""Sequence item of the host agent."""

from openkpu.tb.ahb.host_agent import Transfer
from pyuvm import uvm_sequence_item


class HostItem(uvm_sequence_item):
    """Transfers that are performed one after the other, without a gap."""

    def __init__(self, name: str, transfers: list[Transfer]) -> None:
        super().__init__(name)
        self.transfers = transfers
