# SPDX-License-Identifier: Apache-2.0
"""dma_read_ctrl, cycle by cycle: priority of the channels, bursts issued, refused or dropped.

The reference below implements the module's header; it does not model the rest of the DMAC, so that
inputs may come in any order, including a channel that fails in the very cycle in which its burst
would be issued.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace

import cocotb
import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.pipeline_bench import join_words, start_clock
from openkpu_tb.simrun import SIMS, run_bench

ORDER = (0, 3, 1, 2)  # list, pixel, bias, weight
YIELDS = (0, 1, 2, 3)  # ... where pixels had their turn
PIXEL = 3
STORE = 4
OWNER = 11  # bits
LAST_BLOCK = (1 << 22) - 1


@dataclass
class Burst:
    """A proposal of a channel."""

    chan: int
    addr: int
    wrap: bool
    beats: int
    size: int
    pop: bool
    tag: int


class Reference:
    """The rules, one cycle at a time."""

    def __init__(self) -> None:
        self.chosen: Burst | None = None
        self.wrote_last = True  # after reset reads go first
        self.short = False  # the burst before had one beat
        self.pixels_last = False  # the last read was one of pixels
        self.order = ORDER  # of the channels that propose in this cycle

    def outputs(self, now: dict, reads: dict[int, Burst], store: Burst | None) -> dict:
        """What the module says in this cycle."""
        burst = self.chosen
        given = refused = dropped = False
        allowed = False
        if burst:
            first, last = now["write" if burst.chan == STORE else "read"]
            allowed = first <= burst.addr >> 10 <= last and not burst.wrap
            dropped = bool(now["failing"] >> burst.chan & 1) or bool(now["hold"])
            given = allowed and not dropped
            refused = not allowed and not dropped and not now["refuse_hold"]
        if burst:
            free = self.short and now["ready"] and not now["refuse_hold"]
        else:
            free = self.short or now["ready"]
        winner = None
        if free:
            if store and (not self.wrote_last or not reads):
                winner = store
            elif reads:
                winner = next(reads[chan] for chan in self.order if chan in reads)
        return {
            "winner": winner,
            "valid": given,
            "refuse": refused,
            "gone": refused or dropped or (given and now["ready"]),
            "dropped": bool(now["hold"]),  # what is taken now, too
        }

    def next_order(self, share: int) -> tuple[int, ...]:
        """Order of the channels that ask for the next cycle: with ``share`` pixels take turns."""
        return YIELDS if share and self.pixels_last else ORDER

    def step(self, said: dict, share: int) -> None:
        """The cycle is over."""
        self.order = self.next_order(share)
        if said["gone"]:
            self.chosen = None
        if said["winner"]:
            self.chosen = said["winner"]
            self.wrote_last = said["winner"].chan == STORE
            self.short = said["winner"].beats == 1
            if said["winner"].chan != STORE:
                self.pixels_last = said["winner"].chan == PIXEL
        if said["dropped"]:
            self.chosen = None


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        start_clock(dut)
        width = int(dut.AHB_W.value) // 8
        self.guard = layout("guard")
        self.want = [False] * 4  # channels that want a burst in the next cycle
        self.ow = width.bit_length() - 1
        self.tag = layout("dma_tag", OW=self.ow, OWNER_BITS=OWNER)
        self.tag_bits = sum(bits for _, bits in self.tag.values())
        self.cmd = layout("cmd", TAG_W=self.tag_bits)
        self.cmd_bits = sum(bits for _, bits in self.cmd.values())

    def burst(self, chan: int, one_beat: float) -> Burst:
        """A random proposal."""
        beats = 1 if random.random() < one_beat else random.randint(2, 16)
        block = random.choice((0, 1, 2, 3, LAST_BLOCK, random.getrandbits(22)))
        fields = {
            "top": random.getrandbits(self.ow),
            "off": random.getrandbits(self.ow),
            "last": random.getrandbits(1),
            "chan": chan,
            "owner": random.getrandbits(OWNER),
        }
        tag = sum(fields[name] << low for name, (low, _) in self.tag.items())
        size = random.randrange(self.ow + 1) if chan == STORE else self.ow
        pop = chan == STORE and bool(random.getrandbits(1))
        addr = block << 10 | random.getrandbits(10)
        return Burst(chan, addr, random.random() < 0.1, beats, size, pop, tag)

    def packed(self, burst: Burst) -> int:
        """A proposal as its port has it."""
        write = int(burst.chan == STORE)
        fields = {"write": write, "addr": burst.addr, "beats": burst.beats, "size": burst.size}
        fields |= {"wpop": int(burst.pop), "tag": burst.tag}
        cmd = sum(fields[name] << low for name, (low, _) in self.cmd.items())
        return int(burst.wrap) << self.cmd_bits | cmd

    def propose(
        self, chance: dict[str, float], order: tuple[int, ...] = ORDER
    ) -> tuple[dict[int, Burst], Burst | None]:
        """Drive the proposals of all channels, noise where there is none; the proposals."""
        dut, all_reads = self.dut, [self.burst(chan, chance["one"]) for chan in range(4)]
        want, self.want = self.want, [random.random() < chance["want"] for _ in range(4)]
        dut.rd_next.value = join_words(self.want, 1)
        store = self.burst(STORE, chance["one"])
        stores = random.random() < chance["store"]
        dut.store_want.value, dut.store_burst.value = int(stores), self.packed(store)
        reads = {chan: all_reads[chan] for chan in range(4) if want[chan]}
        # the burst of the channel whose turn it is, noise when there is none
        turn = next((chan for chan in order if chan in reads), 0)
        dut.rd_burst.value = self.packed(all_reads[turn])
        return reads, store if stores else None

    def situation(self, chance: dict[str, float]) -> dict:
        """Drive everything else."""
        dut = self.dut
        names = ("hold", "refuse_hold", "ready", "share")
        flags = {n: int(random.random() < chance[n]) for n in names}
        failing = sum((random.random() < chance["fail"]) << chan for chan in range(5))
        windows = {}
        for name in ("read", "write"):
            edges = random.choice(((0, LAST_BLOCK), (1, 2), (2, 2), (0, 1), (3, LAST_BLOCK)))
            windows[name] = edges if random.random() < 0.9 else (3, 1)  # nothing
        guard = sum(
            windows[name.partition("_")[0]][name.endswith("last")] << low
            for name, (low, _) in self.guard.items()
        )
        dut.hold.value, dut.refuse_hold.value = flags["hold"], flags["refuse_hold"]
        dut.share.value = flags["share"]
        dut.cmd_ready.value, dut.failing.value, dut.guard.value = flags["ready"], failing, guard
        return {**flags, "failing": failing, **windows}


async def check(bench: Bench, cycles: int) -> dict[str, int]:
    """Compare every cycle from a reset on; how often each thing happened."""
    dut, model = bench.dut, Reference()
    seen: dict[str, int] = dict.fromkeys(
        ("given", "refused", "failed", "held", "behind", "yielded"), 0
    )
    bench.situation({"hold": 0, "refuse_hold": 0, "ready": 0, "share": 0, "fail": 0})
    bench.propose({"want": 0, "store": 0, "one": 0})
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    chance: dict[str, float] = {}
    for cycle in range(cycles):
        if cycle % 64 == 0:  # another mix
            chance = {n: random.choice((0.1, 0.5, 0.9)) for n in ("want", "store", "one", "ready")}
            chance |= {n: random.choice((0.0, 0.1, 0.3)) for n in ("hold", "refuse_hold", "fail")}
            chance["share"] = random.choice((0.0, 0.5, 1.0))
        now = bench.situation(chance)
        reads, store = bench.propose(chance, model.order)
        await ReadOnly()
        said, burst = model.outputs(now, reads, store), model.chosen
        winner, when = said["winner"], f"cycle {cycle}"
        taken = int(dut.rd_take.value), int(dut.store_take.value)
        stores = winner is not None and winner.chan == STORE
        assert taken == (winner is not None and not stores, stores), f"{when}: {winner}"
        order = model.next_order(now["share"])
        following = [chan for chan in order if bench.want[chan]]
        seen["yielded"] += following[:1] != [chan for chan in ORDER if bench.want[chan]][:1]
        assert not following or int(dut.rd_next_sel.value) == following[0], when
        assert int(dut.chosen.value) == (burst is not None), when
        assert int(dut.cmd_valid.value) == said["valid"], f"{when}: {burst}, {now}"
        assert int(dut.refuse.value) == said["refuse"], f"{when}: {burst}, {now}"
        if burst:
            assert int(dut.cmd.value) == bench.packed(replace(burst, wrap=False)), when
            fails = now["failing"] >> burst.chan & 1
            seen["given"] += said["valid"] and now["ready"]
            seen["refused"] += said["refuse"]
            seen["failed"] += fails and now["ready"] and not now["hold"]
            seen["held"] += now["hold"]
            seen["behind"] += winner is not None
        await RisingEdge(dut.clk)
        model.step(said, now["share"])
        if now["hold"]:  # what is asked for meanwhile is forgotten
            bench.want = [False] * 4
    return seen


@cocotb.test()
async def every_cycle(dut) -> None:
    """All rules at once, again after a reset in the middle, until each thing happened often."""
    bench, total, rounds = Bench(dut), Counter(), 0
    while rounds < 3 or ((len(total) < 6 or min(total.values()) < 4) and rounds < 12):
        total += Counter(await check(bench, 512))
        rounds += 1
    assert len(total) == 6 and min(total.values()) >= 4, total


@pytest.mark.tier(check=["verilator-32", "icarus-128"])
@pytest.mark.parametrize(("sim", "width"), [*((sim, 32) for sim in SIMS), ("icarus", 128)])
def test_dma_read_ctrl(sim: str, width: int) -> None:
    sources = ["rtl/storage/dma_read_ctrl.v"]
    test = "tb.dma_read_ctrl.test_dma_read_ctrl"
    run_bench(sim, "dma_read_ctrl", sources, test, params={"AHB_W": width})
