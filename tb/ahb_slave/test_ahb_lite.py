# SPDX-License-Identifier: Apache-2.0
"""The AHB slave as on AHB-Lite (docs/integration.md 10), with the master of cocotbext-ahb."""

import logging
import random
from typing import Any

import cocotb
import pytest
from cocotbext.ahb import AHBBus, AHBLiteMaster, AHBResp

from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.simrun import run_bench
from tb.ahb_slave.host_side import RAM, HostSide

logging.getLogger("cocotb.ahb_slave_bench").setLevel(logging.ERROR)

PINS = ("haddr", "hsize", "htrans", "hwdata", "hrdata", "hwrite", "hresp")


@cocotb.test()
async def random_accesses(dut) -> None:
    """Words of registers and AI RAM, and of what is not there; one by one and pipelined."""
    rng = random.Random(random.getrandbits(32))
    side = HostSide(dut, rng)
    names = {f"h_{pin}": f"s_ahb_{pin}" for pin in PINS} | {"h_hready": "s_ahb_hready_out"}
    bus = AHBBus.from_prefix(PackedView(dut, {}, names), "h")
    master: Any = AHBLiteMaster(bus, dut.clk, dut.rst)
    for pin, value in {"hsel": 1, "hburst": 0, "hprot": 3}.items():
        getattr(dut, f"s_ahb_{pin}").value = value
    dut.other_phase.value, dut.other_ready.value = 0, 1
    await side.reset()
    for part in range(60):
        side.speed = (1.0, 0.3)[part & 1]
        addr = side.address()
        good = side.good(addr)
        wanted = AHBResp.OKAY if good else AHBResp.ERROR
        if rng.random() < 0.5:
            data = rng.getrandbits(32)
            (answer,) = await master.write(addr, data)
            if good:
                side.wrote(addr, data)
        else:
            (answer,) = await master.read(addr)
            assert not good or int(answer["data"], 16) == side.word(addr), hex(addr)
        assert answer["resp"] == wanted, hex(addr)
    side.check_ram()
    side.speed = 1.0
    places = [RAM + 4 * i for i in range(16)] + [4 * i for i in range(16)]
    words = [rng.getrandbits(32) for _ in places]
    answers = await master.write(places, words, pip=True)
    assert all(answer["resp"] == AHBResp.OKAY for answer in answers)
    found = await master.read(places, pip=True)
    assert [int(answer["data"], 16) for answer in found] == words


@pytest.mark.parametrize("rows", [16384])
def test_ahb_lite(rows: int) -> None:
    """On Verilator: Icarus does not evaluate what depends on pins that the master sets first."""
    sources = ["tb/ahb_slave/ahb_slave_bench.v", "rtl/host/ahb_slave.v"]
    test = "tb.ahb_slave.test_ahb_lite"
    run_bench("verilator", "ahb_slave_bench", sources, test, params={"AI_RAM_ROWS": rows})
