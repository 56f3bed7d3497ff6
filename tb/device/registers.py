# SPDX-License-Identifier: Apache-2.0
"""Byte offsets and bits that the bench uses; tb/device/test_registers.py holds them to the RDL."""

from enum import IntEnum, IntFlag

# KPU registers (docs/kpu.md section 3): 64 bits, low word first
LAYER_ARGUMENT_FIFO = 0x00
INTERRUPT_STATUS = 0x08
INTERRUPT_RAW = 0x10
INTERRUPT_MASK = 0x18
INTERRUPT_CLEAR = 0x20
FIFO_THRESHOLD = 0x28
FIFO_DATA_OUT = 0x30
EIGHT_BIT_MODE = 0x40

AI = {
    "AI_CNN_MODE": 0x100,
    "AI_CNN_DONE": 0x104,
    "AI_PIX_ADR": 0x108,
    "AI_NPIX_ADR": 0x10C,
    "AI_WGT_ADR": 0x110,
    "AI_BIAS_ADR": 0x114,
    "AI_LIST_ADR": 0x118,
    "AI_LIST_LEN": 0x11C,
    "AI_RES_ADR": 0x120,
    "AI_INF_LEFT": 0x124,
    "AI_PIX_STRIDE": 0x128,
    "AI_RES_STRIDE": 0x12C,
    "AI_CTRL": 0x130,
    "AI_STATUS": 0x134,
    "AI_INT_STATUS": 0x138,
    "AI_INT_MASK": 0x13C,
    "AI_ERR_CODE": 0x140,
    "AI_ERR_INFO": 0x144,
    "AI_ERR_ADDR": 0x148,
    "AI_TAKEN_ADR": 0x14C,
    "AI_ID": 0x1F8,
}
PERF = 0x180
AI_RAM = 0x200000

COUNTERS = [
    "total",
    "array_busy",
    "macs_issued",
    "macs_gated",
    "stall_weights",
    "stall_input",
    "stall_output",
    "stall_bus",
    "stall_control",
    "layers",
    "inferences",
    "bus_rd_beats",
    "bus_wr_beats",
    "inf_kept",
]
STALLS = [name for name in COUNTERS if name.startswith("stall_")]


class Ctrl(IntFlag):
    """AI_CTRL."""

    START = 1
    SOFT_RESET = 2
    STOP = 4


class Kpu(IntFlag):
    """Interrupts of the KPU block."""

    CALC_DONE = 1
    ALMOST_EMPTY = 2
    ALMOST_FULL = 4


class Int(IntFlag):
    """AI_INT_STATUS and AI_INT_MASK."""

    DONE = 1
    ERROR = 2


class Err(IntEnum):
    """AI_ERR_CODE."""

    NONE = 0
    BAD_SIZE = 1
    BAD_ADDR = 2
    BAD_POOL = 3
    BAD_KERNEL = 4
    BAD_WEIGHTS = 5
    BAD_FLAGS = 6
    BUS_ERROR = 7
    FIFO_OVERRUN = 8
    START_BUSY = 9
    FIFO_UNDERRUN = 10
    BAD_CONFIG = 11
