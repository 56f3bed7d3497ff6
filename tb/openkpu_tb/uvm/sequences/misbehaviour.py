# SPDX-License-Identifier: Apache-2.0
"""A host that misbehaves: each habit has its error, and leaves no trace in what follows."""

from collections.abc import Awaitable, Callable

from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.core.registers import (
    AI,
    AI_RAM,
    FIFO_CTRL,
    FIFO_DATA_OUT,
    INTERRUPT_CLEAR,
    PERF,
    Err,
)
from openkpu_tb.uvm.sequences.job import INFERENCES, LIMIT, LayerSequence, NetworkSequence

OPEN, NO_LAYERS = 0x1F, 0x1B  # fifo_ctrl: all FIFOs keep what they have; the layer FIFO does not
HOLES = (0x48, 0xFC, 0x168, 0x17C, 0x1F4, 0x200, 0x1000, 0x1FFFFC)  # addresses of nothing


class MisbehaviourSequence(LayerSequence):
    """Bad habits of a host whose device is idle, ``count`` of them (0: each once)."""

    def __init__(self, name: str = "misbehaviour", count: int = 0) -> None:
        super().__init__(name)
        self.count = count

    def habits(self) -> list[Callable[[], Awaitable[None]]]:
        """Everything it does."""
        return [
            *(self.hole, self.narrow, self.write_constant, self.empty_results),
            *(self.empty_list, self.no_mode, self.unaligned_result, self.cut_layer),
            *(self.refused_layer, self.start_behind_words),
        ]

    async def body(self) -> None:
        habits = self.habits()
        order = self.rng.permutation(len(habits))
        for at in order[: self.count or None]:
            await habits[int(at)]()
        await self.idle()

    # ------------------------------------------------- answered ERROR, no effect
    async def refused(self, *transfers: Transfer) -> None:
        """Each is answered ERROR, and the device records nothing."""
        for transfer in await self.device.attempt(*transfers):
            assert transfer.resp == ERROR, f"{transfer} was not refused"
        assert await self.device.look("AI_ERR_CODE") == 0

    async def hole(self) -> None:
        """An address of nothing."""
        at = HOLES[self.n(0, len(HOLES))]
        await self.refused(Transfer(at, bool(self.n(0, 2)), 0xFFFFFFFF))

    async def narrow(self) -> None:
        """A register as bytes or half-words."""
        size, at = self.n(0, 2), list(AI.values())[self.n(0, len(AI))]
        await self.refused(Transfer(at, bool(self.n(0, 2)), 0xFF, size))

    async def write_constant(self) -> None:
        """Registers that cannot be written."""
        names = ("AI_ID", "AI_CONFIG", "AI_STATUS", INFERENCES, "AI_TAKEN_ADR")
        before = [await self.device.look(name) for name in names]
        for at in (AI["AI_ID"], AI["AI_CONFIG"], AI["AI_STATUS"], PERF, AI["AI_TAKEN_ADR"]):
            await self.device.write(at, 0xFFFFFFFF)
        assert [await self.device.look(name) for name in names] == before

    # ----------------------------------------------------------- recorded errors
    async def told(self, code: int) -> None:
        """An interrupt, and this error behind it, which is cleared."""
        await self.device.wait(LIMIT)
        await self.error(code)

    async def empty_results(self) -> None:
        """A read of the empty result FIFO."""
        await self.device.transfer(Transfer(FIFO_DATA_OUT + 4, False))
        await self.told(Err.FIFO_UNDERRUN)

    async def empty_list(self) -> None:
        await self.device.configure({"AI_CNN_MODE": 1, "AI_LIST_LEN": 0})
        await self.device.start()
        await self.told(Err.BAD_CONFIG)

    async def no_mode(self) -> None:
        await self.device.configure({"AI_CNN_MODE": 0, "AI_LIST_LEN": 1})
        await self.device.start()
        await self.told(Err.BAD_CONFIG)

    async def unaligned_result(self) -> None:
        """A start whose result has no place of its own; then one that has."""
        registers = {"AI_CNN_MODE": 1, "AI_LIST_LEN": 1, "AI_RES_ADR": 4 * self.n(0, 64) + 2}
        await self.device.configure(registers)
        await self.device.start()
        await self.told(Err.BAD_CONFIG)
        await self.device.configure({"AI_RES_ADR": 0})

    async def cut_layer(self) -> None:
        """Some words of a layer, then a flush of the FIFO or a soft reset."""
        words = [int(word) for word in self.draw_layer().arg.encode()]
        await self.device.push(words[: self.n(1, 12)])
        if self.n(0, 2):
            await self.device.write_many({FIFO_CTRL: NO_LAYERS})
            await self.device.write_many({FIFO_CTRL: OPEN})
        else:
            await self.device.soft_reset()
        await self.idle()
        await self.error(Err.NONE)

    async def refused_layer(self) -> None:
        """A layer that the device refuses, and a good one behind it, which it discards."""
        layer = self.draw_layer()
        changes = (
            ({"pool_type": 12}, Err.BAD_POOL),
            ({"kernel_type": 5}, Err.BAD_KERNEL),
            ({"image_dst_addr": layer.arg.image_src_addr, "pool_type": 1}, None),
            ({"depth_wise_layer": 1, "fc": 1}, Err.BAD_FLAGS),
        )
        change, code = changes[self.n(0, len(changes))]
        bad = layer.arg.replace(int_en=1, **change)
        code = code or bad.device_code(eight_bit=layer.eight_bit)
        await self.device.configure({"eight_bit_mode": int(layer.eight_bit)})
        await self.device.push([int(word) for word in bad.encode()])
        await self.told(code)
        await self.idle()

    async def start_behind_words(self) -> None:
        """A start behind half a layer."""
        words = [int(word) for word in self.draw_layer().arg.encode()]
        await self.device.push(words[: self.n(1, 12)])
        await self.device.configure({"AI_CNN_MODE": 1, "AI_LIST_LEN": 1})
        await self.device.start()
        await self.told(Err.START_BUSY)
        await self.device.soft_reset()


class MisalignedSequence(MisbehaviourSequence):
    """Words and half-words of the AI RAM at addresses that are none.

    That breaks rule 12 of the bus, which the checker of the host's side reports.
    """

    def habits(self) -> list[Callable[[], Awaitable[None]]]:
        return [self.misaligned] * 20

    async def misaligned(self) -> None:
        """A word or half-word of the AI RAM at an address that is none."""
        size = self.n(1, 3)
        at = AI_RAM + 64 * self.n(0, 16) + self.n(1, 1 << size)
        await self.refused(Transfer(at, bool(self.n(0, 2)), 0x5A5A5A5A, size))


class BusyMisbehaviourSequence(NetworkSequence):
    """A host that cannot keep its hands off a device at work: the results are exact all the same.

    It starts again, reads what is not there, writes the next job's registers, clears interrupts
    and polls.
    """

    async def body(self) -> None:
        await self.prepare()
        device = self.device
        await device.configure({"AI_INF_LEFT": 0, "AI_CNN_MODE": 1})
        await device.start()
        await device.start()  # at once: the device is at work for sure
        await device.wait(LIMIT)
        error = await device.error()
        assert error and error.code == Err.START_BUSY, f"{error}, expected START_BUSY"
        await device.write(AI["AI_ERR_CODE"], 0)
        for _ in range(self.n(2, 12)):
            await device.wait_cycles(self.n(1, 120))
            await (self.next_job, self.poll, self.clear, self.hole)[self.n(0, 4)]()
        await self.idle()
        assert await device.look(INFERENCES) == 1
        await self.error(Err.NONE)

    async def next_job(self) -> None:
        """Registers that are taken at a start only."""
        names = ("AI_PIX_ADR", "AI_WGT_ADR", "AI_BIAS_ADR", "AI_LIST_ADR", "AI_LIST_LEN")
        await self.device.configure({name: self.n(0, 1 << 10) for name in names})

    async def poll(self) -> None:
        """Registers that change, and constants; a read disturbs nothing."""
        for name in ("AI_STATUS", "PERF_TOTAL", "AI_TAKEN_ADR", "AI_NPIX_ADR", "AI_ID"):
            await self.device.look(name)

    async def clear(self) -> None:
        """Interrupts away before anybody has seen them."""
        await self.device.write_many({INTERRUPT_CLEAR: 7, AI["AI_INT_STATUS"]: 3})

    async def hole(self) -> None:
        """An access that nobody answers."""
        (done,) = await self.device.attempt(Transfer(HOLES[self.n(0, len(HOLES))], False))
        assert done.resp == ERROR
