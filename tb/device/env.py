# SPDX-License-Identifier: Apache-2.0
"""pyuvm environment of the whole device.

    sequences -> sequencer -> HostDriver -> pins            HostMonitor -> Predictor -> Scoreboard
    StorageAgent: loads storage and AI RAM past the buses, reads results back        -> Scoreboard

The predictor sees only what a passive observer could: transfers on the host's bus and what was put
into the memories. From that it computes with the golden model what every layer must leave behind.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cocotb.handle import SimHandleBase
from openkpu.models import airam
from openkpu.models.golden import run_layer
from openkpu.models.layer import WORDS, LayerArg, LayerError
from openkpu.models.params import ACT_BYTES, BN_BYTES
from openkpu.tb.ahb.host_agent import AhbHostDriver, AhbHostMonitor, Transfer
from openkpu.tb.device.backdoor import Backdoor
from openkpu.tb.device.ral import Adapter, Registers
from openkpu.tb.device.registers import AI, AI_RAM, EIGHT_BIT_MODE, Ctrl
from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_component,
    uvm_driver,
    uvm_env,
    uvm_sequencer,
    uvm_subscriber,
)

Bytes = npt.NDArray[np.uint8]


class HostDriver(uvm_driver):
    """Gives items to the cocotb-bus driver."""

    def build_phase(self) -> None:
        tb = ConfigDB().get(self, "", "TB")
        self.bus = AhbHostDriver(tb, "s", tb.clk)

    async def run_phase(self) -> None:
        while True:
            item = await self.seq_item_port.get_next_item()
            await self.bus.send(item.transfers)
            self.seq_item_port.item_done()


class HostMonitor(uvm_component):
    """Publishes every finished transfer of the host."""

    def build_phase(self) -> None:
        self.ap = uvm_analysis_port("ap", self)

    def start_of_simulation_phase(self) -> None:
        tb = ConfigDB().get(self, "", "TB")
        self.bus = AhbHostMonitor(tb, "s", tb.clk, tb.s_busy, self.ap.write)


class HostAgent(uvm_agent):
    """Sequencer, driver, monitor of the slave port."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = HostDriver("driver", self)
        self.monitor = HostMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)


@dataclass
class Memory:
    """Bytes put into (``written``) or read from (``written`` False) a memory past the buses."""

    where: str  # "storage" or "ai_ram"
    addr: int
    data: Bytes
    unknown: Bytes | None = None
    written: bool = True


class StorageAgent(uvm_agent, Backdoor):
    """Back door of storage and AI RAM; says on ``ap`` what it put there and what it found."""

    def __init__(self, name: str, parent: uvm_component) -> None:
        uvm_agent.__init__(self, name, parent)

    def build_phase(self) -> None:
        self.tb: SimHandleBase = ConfigDB().get(self, "", "TB")
        self.ap = uvm_analysis_port("ap", self)

    async def load_storage(self, addr: int, data: Bytes) -> None:
        await Backdoor.load_storage(self, addr, data)
        self.ap.write(Memory("storage", addr, data))

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


class Predictor(uvm_subscriber):
    """Mirror of registers and memories; runs the golden model when the device has to run."""

    def build_phase(self) -> None:
        size = ConfigDB().get(self, "", "STORE_BYTES")
        self.storage = np.zeros(size, dtype=np.uint8)
        self.ram = airam.new_ram()
        self.valid = np.zeros(self.ram.size, dtype=bool)  # bytes whose content is defined
        self.registers: dict[int, int] = {}
        self.low = 0
        self.words: list[int] = []
        self.layers = self.inferences = 0
        self.muted = False  # what comes is known to be refused

    def memory(self, event: Memory) -> None:
        """The bench put something into a memory."""
        span = slice(event.addr, event.addr + event.data.size)
        target = self.storage if event.where == "storage" else self.ram
        if event.written:
            target[span] = event.data
            if event.where == "ai_ram":
                self.valid[span] = True

    def write(self, tt: Transfer) -> None:
        """A transfer on the host's bus."""
        if not tt.write or tt.resp or self.muted:
            return
        if tt.addr >= AI_RAM:
            span = slice(tt.addr - AI_RAM, tt.addr - AI_RAM + (1 << tt.size))
            self.ram[span] = np.frombuffer(tt.data.to_bytes(1 << tt.size, "little"), np.uint8)
            self.valid[span] = True
            return
        self.registers[tt.addr] = tt.data
        if tt.addr == 0:
            self.low = tt.data
        elif tt.addr == 4:
            self.words.append(tt.data << 32 | self.low)
            if len(self.words) == WORDS:
                self._layer(LayerArg.decode(self.words), 0, 0)
                self.words = []
        elif tt.addr == AI["AI_CTRL"]:
            if tt.data & Ctrl.SOFT_RESET:
                self.words = []
            if tt.data & Ctrl.START:
                self._inference()

    def _layer(self, arg: LayerArg, weights_at: int, bias_at: int) -> bool:
        """Run a layer in the mirror; False when the device must refuse it."""
        eight_bit = bool(self.registers.get(EIGHT_BIT_MODE, 0))
        try:
            arg.validate(eight_bit=eight_bit)
        except LayerError:
            return False
        count = arg.weight_count * (1 if eight_bit else 2)
        weights = self._at(weights_at + arg.para_start_addr, count)
        bn = self._at(bias_at + arg.bwsx_base_addr, BN_BYTES * arg.o_ch_num).view("<u8")
        act = self._at(bias_at + arg.active_addr, ACT_BYTES).view("<u8")
        x = airam.unpack(self.ram, arg.image_src_addr, arg.in_shape)
        y = run_layer(arg, x, weights, bn, act, eight_bit=eight_bit).y
        self._put(arg.image_dst_addr, y)
        self.layers += 1
        return True

    def _put(self, row: int, y: Bytes) -> None:
        airam.pack(self.ram, row, y)
        layout = airam.Layout(*y.shape, base=row)
        touched = airam.new_ram(layout.rows)
        airam.pack(touched, 0, np.ones(y.shape, dtype=np.uint8))
        span = slice(64 * row, 64 * row + touched.size)
        self.valid[span] |= touched.astype(bool)

    def _at(self, addr: int, size: int) -> Bytes:
        return np.ascontiguousarray(self.storage[addr : addr + size])

    def _inference(self) -> None:
        """Run the task list in the mirror and put its result into the storage's mirror."""
        r = {name: self.registers.get(addr, 0) for name, addr in AI.items()}
        words = self._at(r["AI_LIST_ADR"], 96 * r["AI_LIST_LEN"]).view("<u8").reshape(-1, WORDS)
        args = [LayerArg.decode(row) for row in words]
        first = args[0]
        pixels = self._at(r["AI_PIX_ADR"], int(np.prod(first.in_shape)))
        self._put(first.image_src_addr, pixels.reshape(first.in_shape))
        for arg in args:
            if not self._layer(arg, r["AI_WGT_ADR"], r["AI_BIAS_ADR"]):
                return
        last = args[-1]
        result = airam.unpack(self.ram, last.image_dst_addr, last.out_shape).reshape(-1)
        self.storage[r["AI_RES_ADR"] : r["AI_RES_ADR"] + result.size] = result
        self.inferences += 1


class Scoreboard(uvm_subscriber):
    """Compares everything that the storage agent finds with the predictor's mirror."""

    def build_phase(self) -> None:
        self.checked = 0
        self.wrong: list[str] = []
        self.predictor: Predictor | None = None

    def write(self, tt: Memory) -> None:
        self.predictor.memory(tt)
        if tt.written:
            return
        span = slice(tt.addr, tt.addr + tt.data.size)
        expected = (self.predictor.storage if tt.where == "storage" else self.predictor.ram)[span]
        care = self.predictor.valid[span] if tt.where == "ai_ram" else np.ones(tt.data.size, bool)
        bad = care & ((tt.data != expected) | tt.unknown.astype(bool))
        self.checked += int(care.sum())
        if bad.any():
            first = tt.addr + int(np.argmax(bad))
            self.wrong.append(f"{int(bad.sum())} bytes of {tt.where} from {first:#x} on")

    def check_phase(self) -> None:
        self.verdict()

    def verdict(self) -> None:
        """AssertionError when anything differed, or when nothing was compared."""
        assert not self.wrong, f"differs from the golden model: {self.wrong}"


class DeviceEnv(uvm_env):
    """Agents, predictor, scoreboard and register model."""

    def build_phase(self) -> None:
        self.host = HostAgent("host", self)
        self.storage = StorageAgent("storage", self)
        self.predictor = Predictor("predictor", self)
        self.scoreboard = Scoreboard("scoreboard", self)
        self.registers = Registers()

    def connect_phase(self) -> None:
        self.host.monitor.ap.connect(self.predictor.analysis_export)
        self.storage.ap.connect(self.scoreboard.analysis_export)
        self.scoreboard.predictor = self.predictor
        self.registers.map.set_sequencer(self.host.sequencer, Adapter())
        self.registers.map.set_auto_predict(True)
