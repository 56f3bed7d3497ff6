# SPDX-License-Identifier: Apache-2.0
"""What a host and a bench do with the device: registers, layers, networks; Python per layer."""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cocotb.triggers import FallingEdge, First, RisingEdge

from openkpu.arithmetic.integers import round_up
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import ROW_BYTES, Layout
from openkpu.network.kept import spare_register
from openkpu_tb.ahb.host_agent import AhbHostDriver, Transfer
from openkpu_tb.core.backdoor import Backdoor
from openkpu_tb.core.registers import (
    AI,
    COUNTERS,
    EIGHT_BIT_MODE,
    INTERRUPT_CLEAR,
    INTERRUPT_MASK,
    INTERRUPT_RAW,
    Ctrl,
    Err,
    Int,
    Kpu,
)
from openkpu_tb.coverage.observe import observe
from openkpu_tb.device.simulation import SLOW
from openkpu_tb.handle import Handle

Bytes = npt.NDArray[np.uint8]
RULES = 37


class DeviceTimeout(AssertionError):
    """No interrupt within the cycles allowed."""


class DeviceError(Exception):
    """The device reported an error: code, AI_ERR_INFO taken apart, bus address."""

    def __init__(self, code: int, info: int, addr: int) -> None:
        name = Err(code).name if code in list(Err) else "unknown"
        self.code, self.info, self.addr = code, info, addr
        self.layer, self.stream, self.waits = info & 0xFFFF, info >> 16 & 7, info >> 20 & 7
        self.inference = info >> 24
        super().__init__(
            f"device error {code} ({name}), layer {self.layer}, bus address {addr:#x}, "
            f"stream {self.stream}, waits {self.waits}, inference {self.inference}"
        )


@dataclass
class Tables:
    """A layer's tables as they lie in storage."""

    weights: Bytes
    bn: npt.NDArray[np.uint64]
    act: npt.NDArray[np.uint64]


class Device:
    """A running tb_top."""

    def __init__(
        self,
        tb: Handle,
        seed: int = 0,
        send: Callable[[list[Transfer]], Awaitable[None]] | None = None,
    ) -> None:
        """``send`` performs transfers; by default a driver of its own, in the pyuvm environment the
        sequencer of the host agent."""
        self.tb = tb
        self.send = send or AhbHostDriver(tb, "s", tb.clk).send
        self.back = Backdoor(tb)
        self.rng = np.random.default_rng(seed)
        self.woke = 0  # cycle in which the last wait ended
        observe(tb)

    # -------------------------------------------------------------- registers
    async def attempt(self, *transfers: Transfer) -> list[Transfer]:
        """Perform transfers in order, whatever their answers are; these are in them."""
        await self.send(list(transfers))
        return list(transfers)

    async def transfer(self, *transfers: Transfer) -> list[Transfer]:
        """Perform transfers in order; any answer but OKAY is a failure."""
        done = await self.attempt(*transfers)
        bad = [f"{'write' if t.write else 'read'} {t.addr:#x}: {t.resp}" for t in done if t.resp]
        assert not bad, f"{len(bad)} accesses answered with an error: {', '.join(bad[:4])}"
        return done

    async def write(self, addr: int, value: int) -> None:
        """Write one 32-bit register."""
        await self.write_many({addr: value})

    async def write_many(self, values: dict[int, int]) -> None:
        """Write registers in order, pipelined."""
        await self.transfer(*(Transfer(a, True, v) for a, v in values.items()))

    async def read(self, addr: int) -> int:
        """Read one 32-bit register."""
        (done,) = await self.transfer(Transfer(addr, False))
        return done.data

    async def push(self, words: Sequence[int]) -> None:
        """Push 64-bit words into layer_argument_fifo."""
        halves = []
        for word in words:
            halves += [
                Transfer(0, True, int(word) & 0xFFFFFFFF),
                Transfer(4, True, int(word) >> 32),
            ]
        await self.transfer(*halves)

    async def counters(self) -> dict[str, int]:
        """The performance counters through their registers."""
        words = await self.transfer(
            *(Transfer(0x180 + 4 * i, False) for i in range(2 * len(COUNTERS)))
        )
        return {n: words[2 * i].data | words[2 * i + 1].data << 32 for i, n in enumerate(COUNTERS)}

    # ------------------------------------------------------------------ basics
    async def reset(self, cycles: int = 4) -> None:
        """Hardware reset, then unmask calc_done, inference done and errors."""
        tb = self.tb
        await FallingEdge(tb.clk)
        tb.rst.value = 1
        for _ in range(cycles):
            await FallingEdge(tb.clk)
        tb.rst.value = 0
        await FallingEdge(tb.clk)
        await self.unmask()

    async def unmask(self) -> None:
        """Interrupts that the bench waits for."""
        mask = int(Kpu.ALMOST_EMPTY | Kpu.ALMOST_FULL)
        await self.write_many({INTERRUPT_MASK: mask, INTERRUPT_MASK + 4: 0, AI["AI_INT_MASK"]: 0})

    async def soft_reset(self) -> None:
        """Stop whatever runs; configuration stays. Bursts on the bus end before it is idle."""
        await self.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
        for _ in range(200):
            if not await self.read(AI["AI_STATUS"]) & 1:
                return
        raise AssertionError("busy after a soft reset")

    async def clear(self) -> None:
        """Clear every interrupt and the sticky error."""
        await self.write_many(
            {
                INTERRUPT_CLEAR: 7,
                INTERRUPT_CLEAR + 4: 0,
                AI["AI_CNN_DONE"]: 1,
                AI["AI_ERR_CODE"]: 1,
                AI["AI_INT_STATUS"]: int(Int.DONE | Int.ERROR),
            }
        )

    async def wait(self, limit: int, beat: Callable[[int], None] | None = None) -> None:
        """Sleep until the interrupt line rises; ``beat`` is called with the cycles now and then.

        DeviceTimeout after ``limit`` cycles.
        """
        tb = self.tb
        start = int(tb.cycle.value)
        tb.deadline.value = start + limit
        pulse = tb.heartbeat if SLOW else tb.slow_beat
        await FallingEdge(tb.clk)
        while not int(tb.wake.value):
            await First(RisingEdge(tb.wake), *([RisingEdge(pulse)] if beat else []))
            if beat and not int(tb.wake.value):
                beat(int(tb.cycle.value) - start)
        self.woke = int(tb.cycle.value)
        await FallingEdge(tb.clk)
        if not int(tb.irq.value):
            raise DeviceTimeout(f"no interrupt within {limit} cycles")
        tb.deadline.value = (1 << 64) - 1

    async def wait_cycles(self, cycles: int) -> None:
        """Let so many cycles pass."""
        tb = self.tb
        tb.deadline.value = int(tb.cycle.value) + cycles
        await FallingEdge(tb.clk)
        if not int(tb.timeout.value):
            await RisingEdge(tb.timeout)
        await FallingEdge(tb.clk)
        tb.deadline.value = (1 << 64) - 1

    async def wait_at_most(self, cycles: int) -> None:
        """Sleep until the interrupt line is high, or so many cycles have passed."""
        tb = self.tb
        tb.deadline.value = int(tb.cycle.value) + cycles
        await FallingEdge(tb.clk)
        if not int(tb.wake.value):
            await RisingEdge(tb.wake)
        await FallingEdge(tb.clk)
        tb.deadline.value = (1 << 64) - 1

    async def read_until(
        self, addr: int, good: Callable[[int], bool], limit: int, what: str
    ) -> int:
        """Read a register until its value is ``good``; DeviceTimeout after ``limit`` cycles."""
        start = int(self.tb.cycle.value)
        while True:
            value = await self.read(addr)
            if good(value):
                return value
            if int(self.tb.cycle.value) - start > limit:
                raise DeviceTimeout(f"{what}: still {value} after {limit} cycles")

    async def error(self) -> DeviceError | None:
        """The sticky error, if any."""
        code = await self.read(AI["AI_ERR_CODE"])
        if not code:
            return None
        info, addr = await self.read(AI["AI_ERR_INFO"]), await self.read(AI["AI_ERR_ADDR"])
        return DeviceError(code, info, addr)

    async def finish(self, limit: int, beat: Callable[[int], None] | None = None) -> None:
        """Wait for the interrupt, clear it; DeviceError when it reports one."""
        await self.wait(limit, beat)
        error = await self.error()
        raw = await self.read(INTERRUPT_RAW)
        status = await self.read(AI["AI_INT_STATUS"])
        await self.clear()
        if error:
            raise error
        assert raw & Kpu.CALC_DONE or status & Int.DONE, f"interrupt without cause: {raw}, {status}"

    async def refusal(self, limit: int) -> DeviceError:
        """Wait for the error that a job must end with."""
        try:
            await self.finish(limit)
        except DeviceError as error:
            return error
        raise AssertionError("the job ended without an error")

    def check_rules(self, allowed: Collection[int] = ()) -> None:
        """Fail when any bus rule but those allowed was broken since the start of the simulation."""
        errors = self.tb.assert_errors.value
        if errors.is_resolvable and int(errors) == 0:
            return
        own = self.tb.own_errors.value
        assert own.is_resolvable and int(own) == 0, (
            "the device did inside what it may not: a transition or work that is not listed, or an "
            "unknown interrupt line; the log says when"
        )
        bits = str(self.tb.rules.value)[::-1]
        broken = [n for n in range(RULES) if bits[n] != "0"]
        if broken and set(broken) <= set(allowed):
            return
        raise AssertionError(f"bus rules broken: {broken} ({errors} times)")

    # -------------------------------------------------------------------- maps
    async def load_map(self, layout: Layout, x: Bytes) -> None:
        """Put a dense map (C, H, W) into the AI RAM; the bytes around it become random ones."""
        ram = self.rng.integers(0, 256, layout.rows * ROW_BYTES, dtype=np.uint8)
        airam.pack_map(ram, 0, x)
        await self.back.load_ram(layout.base, ram)

    async def read_map(self, layout: Layout) -> tuple[Bytes, Bytes]:
        """A dense map out of the AI RAM, and 1 where a byte of it is unknown."""
        data, unknown = await self.back.read_ram(layout.base, layout.rows)
        own = dataclasses.replace(layout, base=0)
        return airam.read_rows(data, own), airam.read_rows(unknown.view(np.uint8), own)

    # ------------------------------------------------------------------ layers
    async def place_tables(self, arg: LayerArg, tables: Tables, at: int = 0x108) -> LayerArg:
        """Put a layer's tables into storage from address ``at``; the layer with their addresses.

        They are 8-byte aligned and no better, which is all that real models promise.
        """
        parts = [tables.weights, tables.bn.view(np.uint8), tables.act.view(np.uint8)]
        where, blob = [], []
        for part in parts:
            where.append(at)
            size = round_up(part.size, 8)
            blob.append(np.pad(part, (0, size - part.size)))
            at += size
        if at > where[0]:  # a pooling task has none
            await self.back.load_storage(where[0], np.concatenate(blob))
        return arg.replace(para_start_addr=where[0], bwsx_base_addr=where[1], active_addr=where[2])

    async def run_layer(
        self,
        arg: LayerArg,
        tables: Tables,
        x: Bytes,
        *,
        x2: Bytes | None = None,
        eight_bit: bool = True,
        limit: int,
        beat: Callable[[int], None] | None = None,
    ) -> tuple[Bytes, Bytes]:
        """One layer the host's way: tables, maps, words, interrupt. Output map and unknown bytes.

        ``x2``: second map of an element-wise layer; None: what is there.
        """
        arg = await self.place_tables(arg, tables)
        arg = arg.replace(int_en=1, send_data_out=0)
        await self.load_map(arg.in_layout, x)
        if x2 is not None:
            await self.load_map(arg.in_layouts[1], x2)
        await self.write_many({EIGHT_BIT_MODE: int(eight_bit), EIGHT_BIT_MODE + 4: 0})
        await self.push([int(w) for w in arg.encode()])
        await self.finish(limit, beat)
        return await self.read_map(arg.out_layout)

    # ---------------------------------------------------------------- networks
    async def configure(self, registers: dict[str, int]) -> None:
        """Write AI_* registers by name; ``eight_bit_mode`` among them."""
        values = {AI[name]: value for name, value in registers.items() if name in AI}
        values |= {EIGHT_BIT_MODE: registers["eight_bit_mode"], EIGHT_BIT_MODE + 4: 0}
        await self.write_many(values)

    async def spare(self, part: tuple[int, int]) -> None:
        """Rows of the AI RAM, first and number, in which weights may wait."""
        await self.write(AI["AI_SPARE_ROWS"], spare_register(part))

    async def bring(self, tasks: Sequence[LayerArg], limit: int) -> None:
        """Run layers that bring kept weights into the AI RAM, each at most ``limit`` cycles."""
        for task in tasks:
            await self.push([int(w) for w in task.replace(int_en=1).encode()])
            await self.finish(limit)

    async def start(self) -> None:
        """Start the inference that the registers describe."""
        await self.write(AI["AI_CTRL"], Ctrl.START)
