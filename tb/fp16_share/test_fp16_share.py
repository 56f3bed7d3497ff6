# SPDX-License-Identifier: Apache-2.0
"""fp16_share against docs/architecture.md 16: the units that a lane takes, what others keep."""

import random

import cocotb
from cocotb.triggers import Timer

from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

TAPS, MANTISSA, PIXEL, WEIGHT, PRODUCT = 9, 11, 8, 16, 19  # units of a cascade; widths in bits
LOW = 8  # bits of B's mantissa that the first unit of a lane has


def noise(bits: int) -> int:
    """Random bits, at times all of them alike."""
    return random.choice((random.getrandbits(bits), random.getrandbits(bits), 0, (1 << bits) - 1))


class Fields:
    """A vector of equal fields that is driven, or read, one by one."""

    def __init__(self, signal, width: int) -> None:
        self.signal, self.width = signal, width
        self.count = len(signal) // width

    def drive(self) -> list[int]:
        """Random fields."""
        values = [noise(self.width) for _ in range(self.count)]
        self.signal.value = sum(v << self.width * i for i, v in enumerate(values))
        return values

    def read(self) -> list[int]:
        """All fields; an unknown bit is an error."""
        whole, mask = int(self.signal.value), (1 << self.width) - 1
        return [whole >> self.width * i & mask for i in range(self.count)]


@cocotb.test()
async def lends_and_passes(dut) -> None:
    """Random operands and products, lent and not: every output is the one that the rule names."""
    lanes, cols, n_y, n_z = (int(getattr(dut, p).value) for p in ("LANES", "COLS", "N_Y", "N_Z"))
    cascades = n_y * n_z
    fields = {
        name: Fields(getattr(dut, name), width)
        for name, width in {
            **{"lend_a": MANTISSA, "lend_b": MANTISSA, "own_valid": 1, "own_pixel": PIXEL},
            **{"own_weight": WEIGHT, "unit_products": PRODUCT},
            **{"valid": 1, "pixel": PIXEL, "weight": WEIGHT, "products": PRODUCT + 14},
        }.items()
    }
    given = [name for name in fields if name not in ("valid", "pixel", "weight", "products")]
    lent = [0, 0]
    for _ in range(200):
        dut.lends.value = lends = random.getrandbits(1)
        dut.lend_valid.value = lend_valid = random.getrandbits(1)
        driven = {name: fields[name].drive() for name in given}
        valid, pixel = driven["own_valid"], driven["own_pixel"]
        weight, products = driven["own_weight"], []
        for lane in range(lanes):
            pair, cascade = divmod(lane, cascades)
            row, column = divmod(lane, cols)
            b = driven["lend_b"][column]
            units = [driven["unit_products"][cascade * TAPS + 2 * pair + i] for i in (0, 1)]
            products.append(units[0] | (units[1] & 0x3FFF) << PRODUCT)
            for i, part in enumerate((b & (1 << LOW) - 1, b >> LOW)) if lends else ():
                tap = 2 * pair + i
                valid[tap * cascades + cascade] = lend_valid
                pixel[tap * cascades + cascade] = part
                weight[tap * n_z + cascade // n_y] = driven["lend_a"][row]
        await Timer(1, "ns")
        want = {"valid": valid, "pixel": pixel, "weight": weight, "products": products}
        for name, values in want.items():
            assert fields[name].read() == values, f"{name}, lends {lends}"
        lent[lends] += 1
    assert min(lent) > 50


@sizes(
    "sim lanes cols n_y n_z",
    test="icarus-8-8-2-2",
    check="verilator-16-4-4-2 verilator-64-16-4-8 verilator-8-8-2-2",
    nightly="verilator-4-2-2-4",
)
def test_fp16_share(sim: str, lanes: int, cols: int, n_y: int, n_z: int) -> None:
    params = {"LANES": lanes, "COLS": cols, "ROWS": lanes // cols, "N_Y": n_y, "N_Z": n_z}
    sources = ["rtl/fp16/fp16_share.v"]
    run_bench(sim, "fp16_share", sources, "tb.fp16_share.test_fp16_share", params=params)
