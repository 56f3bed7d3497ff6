# SPDX-License-Identifier: Apache-2.0
"""Behind a bridge of the host: the slave port with 16 registers and an AI RAM."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.handle import Handle

RAM = 0x200000  # first address of the AI RAM
BRIDGE_SOURCES = [  # of bridge_bench, but for the bridge
    *("tb/ahb_slave/bridge_bench.v", "tb/ahb_slave/ahb_slave_bench.v", "rtl/host/ahb_slave.v"),
    "tb/openkpu_tb/ahb/checkers/ahb_master_checker.v",
]
REGISTERS = 0x40  # bytes of registers; none lie behind them


class HostSide(BlockBench):
    """Serves the AI RAM of an ``ahb_slave_bench``; ``model`` holds what bytes of both should hold,
    ``accesses`` counts those of the AI RAM.

    ``speed`` is the chance that an access to the AI RAM is acknowledged in a cycle.
    """

    inputs = "window_ack", "window_rdata"

    def __init__(self, dut: Handle, rng: random.Random) -> None:
        super().__init__(dut)
        self.rng, self.speed, self.accesses = rng, 0.5, 0
        self.ram: dict[int, int] = {}  # by address of the host's
        self.model: dict[int, int] = {}
        self.ram_bytes = 64 * int(dut.AI_RAM_ROWS.value)

    async def reset(self) -> None:
        """Hold the reset for some cycles, then serve."""
        await super().reset()
        cocotb.start_soon(self._serve())

    async def _serve(self) -> None:
        dut, acked = self.dut, False
        while True:
            await RisingEdge(dut.clk)
            asked = int(dut.window_req.value) and not acked
            acked = bool(asked) and self.rng.random() < self.speed
            dut.window_ack.value, dut.window_rdata.value = int(acked), self.rng.getrandbits(32)
            if acked:
                at = RAM + (int(dut.window_addr.value) & ~3)
                strobes, data = int(dut.window_wstrb.value), int(dut.window_wdata.value)
                assert bool(strobes) == bool(int(dut.window_we.value))
                self.accesses += 1
                for i in range(4):
                    if strobes >> i & 1:
                        self.ram[at + i] = data >> 8 * i & 0xFF
                word = sum(self.ram.get(at + i, 0) << 8 * i for i in range(4))
                dut.window_rdata.value = word

    def good(self, addr: int, strobes: int = 15) -> bool:
        """An access of these lanes is answered without an error: registers are words."""
        if addr >= RAM:
            return addr - RAM < self.ram_bytes
        return addr < REGISTERS and strobes in (0, 15)

    def address(self) -> int:
        """A word of the registers or of the AI RAM, now and then one that is not there."""
        return self.rng.choice(
            [
                self.rng.randrange(0, REGISTERS, 4),
                RAM + self.rng.randrange(0, 64, 4),
                RAM + self.ram_bytes - 4 * self.rng.randint(1, 4),
                self.rng.choice(
                    [0x40, 0xFFC, 0x1000, 0x1FFFFC, min(RAM + self.ram_bytes, 0x3FFFFC)]
                ),
            ]
        )

    def wrote(self, addr: int, data: int, strobes: int = 15) -> None:
        """A write has ended without an error."""
        for i in range(4):
            if strobes >> i & 1:
                self.model[addr + i] = data >> 8 * i & 0xFF

    def word(self, addr: int) -> int:
        """What a read gives."""
        return sum(self.model.get(addr + i, 0) << 8 * i for i in range(4))

    def check_ram(self) -> None:
        """The AI RAM holds what was written."""
        assert self.ram == {addr: value for addr, value in self.model.items() if addr >= RAM}

    def check(self) -> None:
        """The same, and nobody broke a rule of AHB."""
        self.check_ram()
        assert not int(self.dut.ahb_errors.value)
