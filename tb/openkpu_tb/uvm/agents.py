# SPDX-License-Identifier: Apache-2.0
"""Agents: host port, bus of the storage, memories past the buses; monitors of layers and resets."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cocotb.triggers import FallingEdge, RisingEdge
from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_component,
    uvm_driver,
    uvm_sequencer,
)

from openkpu_tb.ahb.host_agent import AhbHostDriver, AhbHostMonitor
from openkpu_tb.core.backdoor import Backdoor
from openkpu_tb.handle import Handle
from openkpu_tb.uvm.create import create
from openkpu_tb.uvm.items import BusItem, HostItem

Bytes = npt.NDArray[np.uint8]


class HostDriver(uvm_driver):
    """Gives items to the cocotb-bus driver."""

    def build_phase(self) -> None:
        self.tb: Handle = ConfigDB().get(self, "", "TB")
        self.bus = AhbHostDriver(self.tb, "s", self.tb.clk)

    async def run_phase(self) -> None:
        while True:
            item = await self.seq_item_port.get_next_item()
            await self.perform(item)
            self.seq_item_port.item_done()

    async def perform(self, item: HostItem) -> None:
        """All transfers of an item; those without a gap between them in one pipelined piece."""
        piece = []
        for transfer in item.transfers:
            piece.append(transfer)
            gap = item.gap()
            if gap:
                await self.bus.send(piece)
                await self.idle(gap)
                piece = []
        if piece:
            await self.bus.send(piece)

    async def idle(self, cycles: int) -> None:
        """Nothing on the host's bus for so many cycles."""
        for _ in range(cycles):
            await FallingEdge(self.tb.clk)


class HostMonitor(uvm_component):
    """Publishes every finished transfer of the host (Transfer)."""

    def build_phase(self) -> None:
        self.ap = uvm_analysis_port("ap", self)

    def start_of_simulation_phase(self) -> None:
        tb: Handle = ConfigDB().get(self, "", "TB")
        self.bus = AhbHostMonitor(tb, "s", tb.clk, tb.s_busy, self.ap.write)


class HostAgent(uvm_agent):
    """Sequencer, driver, monitor of the slave port."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = create(HostDriver, "driver", self)
        self.monitor = create(HostMonitor, "monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)


class BusDriver(uvm_driver):
    """Sets the registers of the AHB fabric, and says so on ``ap`` (BusItem)."""

    def build_phase(self) -> None:
        super().build_phase()
        self.tb: Handle = ConfigDB().get(self, "", "TB")
        self.ap = uvm_analysis_port("ap", self)

    async def run_phase(self) -> None:
        while True:
            item: BusItem = await self.seq_item_port.get_next_item()
            await FallingEdge(self.tb.clk)
            for name, value in item.knobs.items():
                getattr(self.tb, f"cfg_{name}").value = value
            self.ap.write(item)
            self.seq_item_port.item_done()


class BusAgent(uvm_agent):
    """Sequencer and driver of what happens on the bus of the storage."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = create(BusDriver, "driver", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)


@dataclass
class Memory:
    """Bytes put into (``written``) or read from (``written`` False) a memory past the buses."""

    where: str  # "storage" or "ai_ram"
    addr: int
    data: Bytes
    unknown: npt.NDArray[np.bool_] | None = None
    written: bool = True


class StorageAgent(uvm_agent, Backdoor):
    """Back door of storage and AI RAM; says on ``ap`` what it put there and what it found."""

    def __init__(self, name: str, parent: uvm_component) -> None:
        uvm_agent.__init__(self, name, parent)

    def build_phase(self) -> None:
        self.tb: Handle = ConfigDB().get(self, "", "TB")
        self.ap = uvm_analysis_port("ap", self)

    async def load_storage(self, addr: int, data: Bytes) -> None:
        await Backdoor.load_storage(self, addr, data)
        self.ap.write(Memory("storage", addr, np.pad(data, (0, -data.size % 4))))  # whole words

    async def load_ram(self, row: int, data: Bytes) -> None:
        await Backdoor.load_ram(self, row, data)
        self.ap.write(Memory("ai_ram", 64 * row, data))

    async def read_storage(self, addr: int, size: int) -> tuple[Bytes, npt.NDArray[np.bool_]]:
        data, unknown = await Backdoor.read_storage(self, addr, size)
        self.ap.write(Memory("storage", addr, data, unknown, written=False))
        return data, unknown

    async def read_ram(self, row: int, rows: int) -> tuple[Bytes, npt.NDArray[np.bool_]]:
        data, unknown = await Backdoor.read_ram(self, row, rows)
        self.ap.write(Memory("ai_ram", 64 * row, data, unknown, written=False))
        return data, unknown

    async def fill(self, rng: np.random.Generator) -> None:
        """Random bytes in all of AI RAM and storage."""
        await self.load_ram(0, rng.integers(0, 256, 64 * self.ram_rows, dtype=np.uint8))
        await self.load_storage(0, rng.integers(0, 256, self.storage_bytes, dtype=np.uint8))

    async def read_all(self) -> None:
        """All of both memories, for whoever compares them."""
        data, unknown = await self.whole_ram()
        self.ap.write(Memory("ai_ram", 0, data, unknown, written=False))
        data, unknown = await self.whole_storage()
        self.ap.write(Memory("storage", 0, data, unknown, written=False))


class EdgeMonitor(uvm_component):
    """Publishes the value that ``look`` gives at every rising edge of a signal of the bench."""

    signal = ""

    def build_phase(self) -> None:
        self.tb: Handle = ConfigDB().get(self, "", "TB")
        self.ap = uvm_analysis_port("ap", self)

    async def run_phase(self) -> None:
        while True:
            await RisingEdge(getattr(self.tb, self.signal))
            self.ap.write(await self.look())

    async def look(self) -> int:
        return 1


class ResetMonitor(EdgeMonitor):
    """Publishes the beginning of every hardware reset."""

    signal = "rst"


class LayerMonitor(EdgeMonitor):
    """Publishes {from a task list, descriptor} of every layer that ends (tb_top's layer_ran)."""

    signal = "layer_done"

    async def look(self) -> int:
        await RisingEdge(self.tb.clk)  # takes the descriptor
        await FallingEdge(self.tb.clk)
        return int(self.tb.layer_ran.value)
