# SPDX-License-Identifier: Apache-2.0
"""What the post lanes keep in their memories: entries of activation tables, multiples of arg_x."""

import random

from cocotb.triggers import RisingEdge

from openkpu.arithmetic.params import ActTable
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.pipeline_bench import signed
from openkpu_tb.handle import Handle

WIDTHS = {name: width for name, (_, width) in layout("segment").items()}
STARTS = (4, 8, 12)  # entries that all lanes share


def entries(table: ActTable) -> list[dict[str, int]]:
    """Fields of the entries 0 to 15: the start of an entry is the least one from there on."""
    found = []
    for i in range(16):
        mul = int(table.mul[i])
        magnitude, shift = abs(mul), min(int(table.shift[i]), 54)
        if magnitude == 1 << 15:
            magnitude, shift = 1 << 14, max(shift - 1, 0)
        found.append(
            {
                "start": int(table.start[i:].min() if i else table.start[0]),
                "mul": magnitude << (3 - shift % 4),
                "neg": int(mul < 0),
                "shift": shift // 4,
                "add": int(table.add[i]) & 0xFF,
            }
        )
    return found


def pack_entry(entry: dict[str, int]) -> int:
    """An entry as a number."""
    total, low = 0, 0
    for name, width in WIDTHS.items():
        total |= (entry[name] & ((1 << width) - 1)) << low
        low += width
    return total


def scaled_to_15(arg_x: int, shr_x: int) -> int:
    """arg_x moved up, so that the shift is 15."""
    return signed(arg_x, 24) << (15 - shr_x)


async def write_table(dut: Handle, table: ActTable, p_write: float = 1.0) -> None:
    """Write all entries, the last one first, as act_table does."""
    packed = [pack_entry(e) for e in entries(table)]
    for i in reversed(range(16)):
        while random.random() >= p_write:
            dut.table_we.value = 0
            dut.table_addr.value = random.randrange(16)
            dut.table_data.value = random.getrandbits(sum(WIDTHS.values()))
            await RisingEdge(dut.clk)
        dut.table_we.value, dut.table_addr.value, dut.table_data.value = 1, i, packed[i]
        await RisingEdge(dut.clk)
    dut.table_we.value = 0
