# SPDX-License-Identifier: Apache-2.0
"""The device as a sequence sees it: registers through the register model, maps through an agent."""

import cocotb
from pyuvm import uvm_sequencer, uvm_status_e

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI
from openkpu_tb.device.device import Device
from openkpu_tb.handle import Handle
from openkpu_tb.uvm.agents import StorageAgent
from openkpu_tb.uvm.ral import Registers
from openkpu_tb.uvm.sequences.transfers import TransferSequence


class SequencerDevice(Device):
    """Every access of the host is an item on the sequencer of its agent."""

    def __init__(
        self,
        tb: Handle,
        host: uvm_sequencer,
        registers: Registers,
        storage: StorageAgent,
    ) -> None:
        super().__init__(tb, cocotb.RANDOM_SEED, self._through_sequencer)
        self.host, self.registers, self.back = host, registers, storage

    async def _through_sequencer(self, transfers: list[Transfer]) -> None:
        await TransferSequence("transfers", transfers).start(self.host)

    async def reset(self, cycles: int = 4) -> None:
        """Hardware reset, of the register model too."""
        self.registers.reset()
        await super().reset(cycles)

    async def configure(self, registers: dict[str, int]) -> None:
        """Write AI_* registers and eight_bit_mode by name, through the register model."""
        model = self.registers
        for name, value in registers.items():
            if name in AI or name == "eight_bit_mode":
                status = await getattr(model, name).write(value)
                assert status == uvm_status_e.UVM_IS_OK, f"{name} = {value:#x} was refused"

    async def look(self, name: str) -> int:
        """Value of a register by name, through the register model."""
        status, value = await getattr(self.registers, name).read()
        assert status == uvm_status_e.UVM_IS_OK, f"{name} cannot be read"
        return value
