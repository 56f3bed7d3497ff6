# SPDX-License-Identifier: Apache-2.0
"""param_loader: tables and batch-norm words of several layers in their rings, in order."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import pack_descriptor
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench

INPUTS = ("start", "desc", "bias_data", "bias_off", "bias_cnt", "prow_freed", "tables_freed")
INPUTS += ("table_only",)
TABLES = 4  # in the ring
SLOW = 0.1  # chance a cycle of taking what is ready, below which the rings have to get full


def chance() -> bool:
    return random.random() < 0.5


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.n_z, self.ring = int(dut.N_Z.value), int(dut.PAR_ROWS.value)
        self.stream = ByteStream(dut, "bias")
        self.bn: dict[tuple[int, int], int] = {}
        self.at: dict[int, int] = {}

    def _writes(self) -> None:
        dut = self.dut
        assert not (int(dut.bn_we.value) and int(dut.at_we.value))
        if int(dut.bn_we.value):
            at = int(dut.bn_row.value), int(dut.bn_bank.value)
            assert at not in self.bn, f"row and bank {at} overwritten"
            self.bn[at] = int(dut.bn_data.value)
        if int(dut.at_we.value):
            assert int(dut.at_addr.value) not in self.at, "table overwritten"
            self.at[int(dut.at_addr.value)] = int(dut.at_data.value)

    def _take_row(self, number: int, words: list[int]) -> None:
        for z, word in enumerate(words):
            got = self.bn.pop((number % self.ring, z), None)
            assert got == word & ((1 << 60) - 1), f"parameter row {number} bank {z}: {got}"

    def _take_table(self, number: int, words: list[int]) -> None:
        for i, word in enumerate(words):
            got = self.at.pop(number % TABLES * 32 + i, None)
            assert got == word, f"table {number} word {i}: {got}, expected {word}"

    async def play(
        self, outputs: list[int], p_in: float, p_row: float, p_table: float
    ) -> list[int]:
        """Layers of so many outputs (0: the table only); releases at random.

        Returns most rows and tables held.
        """
        dut = self.dut
        tables = [[random.getrandbits(64) for _ in range(18)] for _ in outputs]
        norms = [[random.getrandbits(64) for _ in range(o)] for o in outputs]
        rows = [n[i : i + self.n_z] for n in norms for i in range(0, len(n), self.n_z)]
        for table, norm in zip(tables, norms, strict=True):
            data = b"".join(w.to_bytes(8, "little") for w in table + norm)
            self.stream.add(data, random.choice((144, 8, 37)))
        waiting = list(outputs)
        row = table = 0
        most, started = [0, 0], False
        for _ in range(500 + int(60 * len(self.stream.words) / p_in / p_row / p_table)):
            # busy is what it was before the edge: it does not show a start of just now
            started = bool(waiting and not started and not int(dut.busy.value)) and chance()
            dut.start.value = int(started)
            o = waiting.pop(0) if started else random.randint(0, 1024)
            dut.table_only.value = int(o == 0)
            dut.desc.value = pack_descriptor({"o": o or random.randint(1, 1024)})
            self.stream.drive(p_in)
            await RisingEdge(dut.clk)
            self.stream.sample()
            held = (int(dut.prow_filled.value) - row) % (1 << len(dut.prow_filled))
            ready = (int(dut.tables_filled.value) - table) % 16
            assert held <= self.ring and ready <= TABLES
            most = [max(most[0], held), max(most[1], ready)]
            # a slow taker begins when the ring has been full
            if held and random.random() < p_row and (p_row > SLOW or most[0] == self.ring):
                self._take_row(row, rows[row])
                row += 1
                dut.prow_freed.value = row % (1 << len(dut.prow_freed))
            if ready and random.random() < p_table and (p_table > SLOW or most[1] == TABLES):
                self._take_table(table, tables[table])
                table += 1
                dut.tables_freed.value = table % 16
            self._writes()
            if row == len(rows) and table == len(tables):
                break
        else:
            raise AssertionError(f"{row} of {len(rows)} rows, {table} of {len(tables)} tables")
        await RisingEdge(dut.clk)
        assert not int(dut.busy.value) and not self.stream.words and not self.bn and not self.at
        return most


@cocotb.test()
async def layers(dut) -> None:
    first = True
    for rates in ((1.0, 1.0, 1.0), (0.5, 0.5, 0.2), (1.0, 0.03, 0.5), (1.0, 0.5, 0.01)):
        bench = Bench(dut)
        await reset(dut, *INPUTS, start_clock=first)
        first = False
        outputs = [1, bench.n_z, bench.n_z + 1, 8 * bench.n_z]
        outputs += [random.randint(1, 4 * bench.n_z) for _ in range(10)] + [1] * 6 + [0] * 4
        random.shuffle(outputs)
        rows, tables = await bench.play(outputs, *rates)
        assert rows == bench.ring or rates[1] > SLOW, "the ring of rows never got full"
        assert tables == TABLES or rates[2] > SLOW, "the ring of tables never got full"


@pytest.mark.tier(check=["icarus-4-128", "verilator-4-64"])
@pytest.mark.parametrize(
    ("sim", "n_z", "bus"), [("icarus", 2, 32), ("icarus", 4, 128), ("verilator", 4, 64)]
)
def test_param_loader(sim: str, n_z: int, bus: int) -> None:
    sources = ["rtl/weight/param_loader.v", "rtl/lib/byte_*.v"]
    sources += ["rtl/lib/ram_1r1w_async.v"]
    params = {"AHB_W": bus, "N_Z": n_z, "PAR_ROWS": 8}
    run_bench(sim, "param_loader", sources, "tb.param_loader.test_param_loader", params=params)
