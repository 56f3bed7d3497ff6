# SPDX-License-Identifier: Apache-2.0
"""A per-beat AHB 2.0 master in Python, for benches with a cocotb clock.

It asks for the bus, forms bursts of every legal kind, rebuilds a burst that the arbiter cut short,
and repeats what was answered RETRY or SPLIT. An ERROR answer ends the beat it belongs to; the rest
of the burst goes on.
"""

import random
from dataclasses import dataclass

from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge

IDLE, BUSY, NONSEQ, SEQ = range(4)
OKAY, ERROR, RETRY, SPLIT = range(4)
FIXED = {4: (3, 2), 8: (5, 4), 16: (7, 6)}  # beats: (INCRn, WRAPn)


@dataclass
class Beat:
    """One transfer: ``data`` holds what is written, or what was read; ``size`` as HSIZE."""

    addr: int
    write: bool
    size: int = 2
    data: int = 0
    error: bool = False
    wrap: int = 0  # beats of the WRAP burst that begins here, else 0


class BeatMaster:
    """Drives the master pins of ``dut`` (no prefix); ``run`` performs beats in order."""

    def __init__(self, dut: SimHandleBase, rng: random.Random, busy: float = 0.0) -> None:
        self.dut, self.rng, self.busy = dut, rng, busy
        self.lanes = len(dut.hwdata) // 8
        for pin in ("hbusreq", "hlock", "haddr", "htrans", "hwrite", "hsize", "hburst", "hwdata"):
            getattr(dut, pin).value = 0
        dut.hprot.value = 3

    def _burst(self, queue: list[Beat]) -> tuple[int, int]:
        """(HBURST, beats) for a burst that begins with queue[0]."""
        first = queue[0]
        if first.wrap:
            return FIXED[first.wrap][1], first.wrap
        run = 1
        while (
            run < min(len(queue), 16)
            and queue[run].addr == first.addr + (run << first.size)
            and queue[run].addr >> 10 == first.addr >> 10
            and (queue[run].write, queue[run].size) == (first.write, first.size)
            and not queue[run].wrap
        ):
            run += 1
        choices = [(0, 1), (1, self.rng.randint(1, run))]
        choices += [(FIXED[n][0], n) for n in FIXED if n <= run]
        return self.rng.choice(choices)

    async def run(self, beats: list[Beat], limit: int = 100_000) -> int:
        """Perform all beats; returns the cycles taken. AssertionError after ``limit`` cycles."""
        dut, queue = self.dut, list(beats)
        own, left, hburst = False, 0, 0
        in_address: Beat | None = None  # None: IDLE or BUSY
        in_data: Beat | None = None
        for cycle in range(limit):
            dut.hbusreq.value = int(bool(queue) or in_address is not None)
            await RisingEdge(dut.clk)
            hready, hresp = int(dut.hready.value), int(dut.hresp.value)
            if in_data and hresp in (RETRY, SPLIT) and not hready:
                queue = [in_data] + ([in_address] if in_address else []) + queue
                in_data, in_address, left = None, None, 0
                queue[0].wrap = 0
                dut.htrans.value = IDLE
                continue
            if not hready:
                continue
            if in_data:
                in_data.error = hresp == ERROR
                if not in_data.write and not in_data.error:
                    shift = 8 * (in_data.addr % self.lanes)
                    word = dut.hrdata.value
                    bits = word[shift + (8 << in_data.size) - 1 : shift]
                    in_data.data = int(bits)
            if in_address and in_address.write:
                dut.hwdata.value = in_address.data << (8 * (in_address.addr % self.lanes))
            in_data, in_address = in_address, None
            own = bool(int(dut.hgrant.value))
            if not own:
                left = 0  # the rest goes on as new bursts from where this one stopped
            if not queue and not in_data:
                dut.htrans.value = IDLE
                return cycle
            if not queue or not own:
                dut.htrans.value = IDLE
                continue
            if left == 0:
                hburst, left = self._burst(queue)
                trans = NONSEQ
            elif self.busy and self.rng.random() < self.busy:
                trans = BUSY
            else:
                trans = SEQ
            beat = queue[0]
            dut.htrans.value, dut.haddr.value, dut.hburst.value = trans, beat.addr, hburst
            dut.hwrite.value, dut.hsize.value = int(beat.write), beat.size
            if trans != BUSY:
                in_address = queue.pop(0)
                left -= 1
        raise AssertionError(f"{len(queue)} of {len(beats)} beats not done in {limit} cycles")
