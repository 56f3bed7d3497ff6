# SPDX-License-Identifier: Apache-2.0
"""ahb_slave: registers, AI RAM window, ERROR answers without side effects, other slaves' phases."""

import random

import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.host import BUSY, ERROR, IDLE, NONSEQ, OKAY, SEQ, AhbHost, Transfer
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.simrun import SIMS, run_bench
from tb.ahb_slave.host_side import RAM, HostSide

WINDOW = 0x400000  # behind the AI RAM's part


class Bench(HostSide):
    def __init__(self, dut) -> None:
        super().__init__(dut, random.Random(random.getrandbits(32)))
        self.host = AhbHost(dut, "s_ahb", dut.clk)


def legal(t: Transfer, ram_bytes: int, privileged: bool) -> bool:
    """What the map allows (upper address bits are the decoder's), and what HPROT allows."""
    offset = t.addr % WINDOW
    if privileged and t.write and not t.prot & 2:
        return False
    if t.size > 2 or offset % (1 << t.size):
        return False
    if offset >= RAM:
        return offset - RAM < ram_bytes
    return offset < 0x40 and t.size == 2


def random_transfer(ram_bytes: int) -> Transfer:
    area = random.random()
    if area < 0.4:
        addr = random.randrange(0, 0x40, 4)
    elif area < 0.75:
        addr = RAM + random.choice([random.randrange(64), ram_bytes - random.randint(1, 64)])
    elif area < 0.85:
        behind = (RAM + ram_bytes) % WINDOW
        addr = random.choice([0x40, 0x44, 0xFFC, 0x1000, 0x1FFFFC, 0x3FFFFC, behind])
    else:
        addr = random.getrandbits(22)
    size = random.choice([0, 1, 2, 2, 2, 2, 3])
    if random.random() < 0.8:
        addr &= ~((1 << size) - 1)
    trans = random.choice([NONSEQ, NONSEQ, NONSEQ, NONSEQ, SEQ, IDLE, BUSY])
    sel = random.random() < 0.85
    return Transfer(
        addr | random.getrandbits(10) << 22,
        bool(random.getrandbits(1)),
        size,
        random.getrandbits(8 << min(size, 2)),
        trans,
        sel,
        foreign=0 if sel else random.choice([0, 0, 1, 3]),
        prot=random.choice([0, 1, 2, 3, 3, 3, 10, 13, 15]),
    )


@block_test(Bench)
async def random_transfers(bench: Bench, dut) -> None:
    """Pipelined transfers of every kind against a model; strobes are counted."""
    privileged = bool(int(dut.PRIVILEGED.value))
    regs, ram = [0] * 16, {}
    writes = reads = accesses = 0
    for part in range(8):
        bench.speed = (1.0, 0.3)[part & 1]
        transfers = [random_transfer(bench.ram_bytes) for _ in range(150)]
        expected = []
        for t in transfers:
            real = bool(t.sel and t.trans & 2)
            offset = t.addr % WINDOW
            ok = not real or legal(t, bench.ram_bytes, privileged)
            want = None
            if real and ok and offset < RAM:
                if t.write:
                    regs[offset // 4] = t.data
                    writes += 1
                else:
                    want = regs[offset // 4]
                    reads += 1
            elif real and ok:
                accesses += 1
                where = range(offset, offset + (1 << t.size))
                if t.write:
                    ram.update({a: t.data >> 8 * i & 0xFF for i, a in enumerate(where)})
                else:
                    want = sum(ram.get(a, 0) << 8 * i for i, a in enumerate(where))
            expected.append((OKAY if ok else ERROR, want, real and offset < RAM and ok))
        await bench.host.run(transfers, cancel=bool(part & 2))
        for t, (resp, want, register) in zip(transfers, expected, strict=True):
            if t.sel:
                assert t.resp == resp, f"{t}: expected {resp}"
                assert want is None or t.data == want, f"{t}: expected {want:#x}"
                assert not register or t.waits == 0, "a register access must not wait"
    await RisingEdge(dut.clk)
    assert bench.ram == ram
    assert (int(dut.reg_writes.value), int(dut.reg_reads.value)) == (writes, reads)
    assert bench.accesses == accesses


@block_test(Bench)
async def registers_back_to_back(bench: Bench) -> None:
    """A burst of register writes and reads takes one cycle each."""
    values = [random.getrandbits(32) for _ in range(16)]
    trans = [NONSEQ] + [SEQ] * 15
    out = [
        Transfer(4 * i, True, data=v, trans=k)
        for i, (v, k) in enumerate(zip(values, trans, strict=True))
    ]
    back = [Transfer(4 * i, trans=k) for i, k in enumerate(trans)]
    await bench.host.run(out + back)
    assert [t.data for t in back] == values
    assert sum(t.waits for t in out + back) == 0


@block_test(Bench)
async def users_and_privileged(bench: Bench, dut) -> None:
    """Back-to-back writes in either mode: what a user writes is refused where the build says so."""
    privileged = bool(int(dut.PRIVILEGED.value))
    writes, reads, held = [], [], []
    for number in range(200):
        prot = random.getrandbits(4)
        addr = random.choice([4 * random.randrange(16), RAM + 4 * random.randrange(64)])
        writes.append(Transfer(addr, True, data=number, prot=prot))
        reads.append(Transfer(addr, prot=random.getrandbits(4)))
        held.append(not privileged or bool(prot & 2))
    await bench.host.run([t for pair in zip(writes, reads, strict=True) for t in pair])
    values: dict[int, int] = {}
    for write, read, taken in zip(writes, reads, held, strict=True):
        assert write.resp == (OKAY if taken else ERROR), f"{write}"
        values[write.addr] = write.data if taken else values.get(write.addr, 0)
        assert read.resp == OKAY and read.data == values[read.addr], f"{read} after {write}"
    assert int(dut.reg_writes.value) == sum(
        taken and write.addr < RAM for write, taken in zip(writes, held, strict=True)
    )


@pytest.mark.tier(check=["icarus-1-*", "icarus-0-32768", "verilator-*"])
# half of the window, an odd number of rows, all of it
@pytest.mark.parametrize(("privileged", "rows"), [(0, 16384), (1, 16383), (0, 32768)])
@pytest.mark.parametrize("sim", SIMS)
def test_ahb_slave(sim: str, privileged: int, rows: int) -> None:
    sources = ["tb/ahb_slave/ahb_slave_bench.v", "rtl/host/ahb_slave.v"]
    test = "tb.ahb_slave.test_ahb_slave"
    params = {"PRIVILEGED": privileged, "AI_RAM_ROWS": rows}
    run_bench(sim, "ahb_slave_bench", sources, test, params=params)
