# SPDX-License-Identifier: Apache-2.0
"""word_source: layers of the host and of lists by turns, errors, acknowledgements at any word.

The host's words wait in a queue, also while a list runs. The decoder must get them in order and as
whole layers, or not at all while they are discarded; a layer's index is its number among the host's
layers since the device was idle.
"""

import random
from collections import Counter, deque

import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import join_fields, layout
from openkpu_tb.simrun import SIMS, run_bench

SOURCES = ["rtl/control/word_source.v"]
WORDS = 12  # of a layer


class Bench(BlockBench):
    """The host's queue, the list, the decoder, and what is known of them."""

    inputs = (
        "flush",
        "arg_flush",
        "refused",
        "ends",
        "error",
        "collected",
        "list_mode",
        "busy",
        "host",
    )
    inputs += "arg_valid", "list_valid", "dec_word_ready"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.host = layout("host")
        self.queue: deque[int] = deque()
        self.at = 0  # words of the host's present layer that have left the queue
        self.list_left = 0  # words of the list
        self.decoded = 0  # words of the present layer that the decoder has
        self.index = 0
        self.hold = self.acked = False
        self.reported = False  # the error is, in this cycle
        self.linger = 0  # cycles that the device works on behind its last word
        self.met: Counter[str] = Counter()

    async def cycle(
        self,
        *,
        ends: bool = False,
        ack: bool = False,
        refused: bool = False,
        flush: bool = False,
        empties: bool = False,
    ) -> None:
        """A cycle, its transfers and outputs as they must be; ``empties``: of the host's FIFO."""
        dut, list_mode = self.dut, self.list_left > 0
        ready = random.random() < 0.7
        offered = bool(self.queue) and random.random() < 0.8
        listed = random.random() < 0.6
        pending = not list_mode and random.random() < 0.1
        commands = {"ack": int(ack), "pending": int(pending)}
        dut.host.value = join_fields(self.host, commands)
        dut.flush.value, dut.refused.value, dut.ends.value = int(flush), int(refused), int(ends)
        dut.error.value, dut.arg_flush.value = int(self.reported), int(empties)
        dut.arg_valid.value = int(offered)
        dut.arg_data.value = self.queue[0] if offered else random.getrandbits(64)
        dut.list_mode.value, dut.list_valid.value = int(list_mode), int(list_mode and listed)
        word = random.getrandbits(64)
        dut.list_word.value = word
        dut.dec_word_ready.value = int(ready)
        busy = list_mode or bool(self.queue) or self.decoded > 0 or self.linger > 0
        dut.busy.value = int(busy)
        given = ready and not refused and not flush
        given &= listed if list_mode else offered and not self.hold and not pending
        last = given and self.decoded == WORDS - 1
        dut.collected.value = int(last)
        self.met["acknowledged as it is reported"] += ack and self.reported and self.hold
        self.met["acknowledged before it is reported"] += ack and ends and not list_mode
        ack &= not self.reported  # that was of an error before: the code of this one stays
        await ReadOnly()
        assert int(dut.hold.value) == self.hold
        if busy:
            assert int(dut.host_index.value) == self.index
        taken = int(dut.dec_word_valid.value) and ready
        assert bool(taken) == given, f"hold {self.hold}, list {list_mode}"
        if given:
            data = int(dut.dec_word_data.value)
            assert data == (word if list_mode else self.queue[0])
        popped = offered and bool(int(dut.arg_ready.value))
        leaves = self.hold and not list_mode and self.at == 0 and (ack or self.acked)
        discards = self.hold and not list_mode and offered and not leaves
        assert popped == (discards or (given and not list_mode))
        assert bool(int(dut.list_take.value)) == (given and list_mode)
        await RisingEdge(dut.clk)
        # a layer that works on for some cycles behind its last word
        self.linger = random.randrange(6) if last else max(0, self.linger - 1)
        if popped:
            self.queue.popleft()
            self.at = (self.at + 1) % WORDS
        if given:
            self.decoded = (self.decoded + 1) % WORDS
            self.list_left -= list_mode
        if empties:  # what has left of an unfinished layer is forgotten with what waits
            self.met["emptied inside a discarded layer"] += self.hold and self.at > 0 and self.acked
            self.met["emptied inside a decoded layer"] += self.decoded > 0 and not list_mode
            self.queue.clear()
            self.at = 0
            self.decoded *= list_mode
        self.index = 0 if not busy else self.index + (last and not list_mode)
        self.met["discarded"] += discards
        self.met["late acknowledgement"] += leaves and not ack
        self.met["index beyond 1"] += self.index > 1
        self.met["host's words wait for a list"] += list_mode and offered
        self.acked = self.hold and (self.acked or ack)
        self.reported = ends
        if ends and not list_mode:
            self.hold = True
        elif leaves:
            self.hold = False

    async def error(self) -> None:
        """A layer is refused: its words are taken, the rest of the queue is discarded."""
        while self.at or self.decoded:
            await self.cycle()
        for _ in range(random.randrange(3)):
            await self.cycle(refused=True)
        await self.cycle(refused=True, ends=True, ack=random.random() < 0.3)
        self.met["error"] += 1
        await self.cycle(ack=random.random() < 0.5)
        for _ in range(random.randrange(40)):
            await self.cycle()
        if self.met["error"] % 2:  # in the middle of a layer, every second time
            self.queue.extend(random.getrandbits(64) for _ in range(WORDS))
            while not self.at:
                await self.cycle()
        await self.cycle(ack=True)
        while self.hold:
            if not self.queue:
                self.queue.extend(random.getrandbits(64) for _ in range(WORDS))
            await self.cycle(empties=random.random() < 0.1)


@block_test(Bench)
async def turns(bench: Bench) -> None:
    """Host and list by turns, with words of the host that wait for the end of the list."""
    for _ in range(80):
        what = random.choice(("layers", "list", "both", "error", "idle"))
        if what in ("layers", "both", "error"):
            count = random.randint(1, 4) * WORDS
            bench.queue.extend(random.getrandbits(64) for _ in range(count))
        if what in ("list", "both"):
            bench.list_left = random.randint(1, 3) * WORDS
        if what == "error":
            for _ in range(random.randrange(2 * WORDS)):
                await bench.cycle()
            await bench.error()
        while bench.queue or bench.list_left or bench.decoded:
            refused = random.random() < 0.05
            # an error of a list leaves the host's words alone
            ends = bench.list_left > 0 and random.random() < 0.02
            bench.met["error of a list"] += ends
            await bench.cycle(refused=refused, ends=ends, empties=random.random() < 0.01)
        for _ in range(random.randrange(9)):
            await bench.cycle()
    lacks = [name for name, count in bench.met.items() if not count]
    assert not lacks, lacks


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_word_source(sim: str) -> None:
    run_bench(sim, "word_source", SOURCES, "tb.word_source.test_word_source")
