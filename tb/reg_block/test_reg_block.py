# SPDX-License-Identifier: Apache-2.0
"""All registers of the device, on both simulators and with a wide bus."""

from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

HOST = ("reg_block", "kpu_regs", "ai_cfg", "command", "inference_cfg", "guard_regs", "perf_regs")
LIB = ("fifo_sync", "fifo_ram", "ram_1r1w_async", "ram_1r1w")
# rows for weights that wait: none, a part of the register, all
SPARE = {(32, "icarus"): 0, (128, "icarus"): 1280, (32, "verilator"): 32768}
SOURCES = [*(f"rtl/host/{n}.v" for n in HOST), *(f"rtl/lib/{n}.v" for n in LIB)]


@sizes(
    "sim width tests",
    test="icarus-32-register_tests",
    check="icarus-128-ai_cfg_tests icarus-32-ai_cfg_tests verilator-32-ai_cfg_tests "
    "verilator-32-register_tests",
)
def test_reg_block(sim: str, width: int, tests: str) -> None:
    params = {"AHB_W": width, "SPARE_MOST": SPARE[width, sim]}
    run_bench(sim, "reg_block", SOURCES, f"tb.reg_block.{tests}", params=params)
