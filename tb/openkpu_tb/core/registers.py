# SPDX-License-Identifier: Apache-2.0
"""Byte offsets and bits that the bench uses, from the register description."""

from enum import IntFlag

from openkpu.layer.regmap import AI_RAM, COUNTERS, OFFSETS, Err

__all__ = ["AI_RAM", "COUNTERS", "Err"]

# KPU registers: 64 bits, low word first
LAYER_ARGUMENT_FIFO = OFFSETS["layer_argument_fifo"]
INTERRUPT_STATUS = OFFSETS["interrupt_status"]
INTERRUPT_RAW = OFFSETS["interrupt_raw"]
INTERRUPT_MASK = OFFSETS["interrupt_mask"]
INTERRUPT_CLEAR = OFFSETS["interrupt_clear"]
FIFO_THRESHOLD = OFFSETS["fifo_threshold"]
FIFO_DATA_OUT = OFFSETS["fifo_data_out"]
FIFO_CTRL = OFFSETS["fifo_ctrl"]
EIGHT_BIT_MODE = OFFSETS["eight_bit_mode"]
AI = {name: offset for name, offset in OFFSETS.items() if name.startswith("AI_")}
PERF = OFFSETS["PERF_TOTAL"]

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
