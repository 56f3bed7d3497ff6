# SPDX-License-Identifier: Apache-2.0
"""ai_ram with its arbiter: six users against a memory model, ranks and the bound on waiting."""

import random
from dataclasses import dataclass, field

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench

REQUESTS = ("fill_req", "unload_req", "kept_req", "writeback_req", "load_req", "window_req")
OTHERS = (
    "fill_word",
    "unload_word",
    "writeback_word",
    "writeback_be",
    "writeback_data",
    "load_word",
    "load_be",
    "load_data",
)
OTHERS += ("window_we", "window_addr", "window_wstrb", "window_wdata")


def spread(be: int, bits: int = 8) -> int:
    """Bit mask of byte enables."""
    total = 0
    for i in range(be.bit_length()):
        if be >> i & 1:
            total |= ((1 << bits) - 1) << (i * bits)
    return total


@dataclass
class Port:
    """A user that asks with rate p and holds its request until the grant."""

    name: str
    p: float
    fields: dict[str, int] = field(default_factory=dict)
    asks: bool = False
    waited: int = 0  # cycles without a grant
    longest: int = 0
    grants: int = 0


class Bench:
    def __init__(self, dut, rates: dict[str, float]) -> None:
        self.dut = dut
        self.path = int(dut.PATH.value)
        self.words = ceil_div(int(dut.ROWS.value) * 64, self.path)
        self.patience = int(dut.PATIENCE.value)
        self.ports = {n: Port(n, p) for n, p in rates.items()}
        self.memory = [0] * self.words

    def _request(self, port: Port) -> None:
        """A new request; words few enough that reads meet writes."""
        path = self.path
        word = random.randrange(12) + random.choice((0, self.words - 12))
        if port.name in ("fill", "unload", "kept"):
            port.fields = {"word": word}
        elif port.name in ("writeback", "load"):
            some, one = random.getrandbits(path), 1 << random.randrange(path)
            be = random.choice((some, (1 << path) - 1, one))
            port.fields = {"word": word, "be": be, "data": random.getrandbits(8 * path)}
        else:
            port.fields = {
                "we": random.getrandbits(1),
                "addr": word * path + random.randrange(path),
                "wstrb": random.choice((15, random.getrandbits(4))),
                "wdata": random.getrandbits(32),
            }
        for name, value in port.fields.items():
            getattr(self.dut, f"{port.name}_{name}").value = value

    def drive(self) -> None:
        for port in self.ports.values():
            if not port.asks and random.random() < port.p:
                port.asks = True
                port.waited = 0
                self._request(port)
            getattr(self.dut, f"{port.name}_req").value = int(port.asks)

    def _write(self, word: int, be: int, data: int) -> None:
        mask = spread(be)
        self.memory[word] = (self.memory[word] & ~mask) | (data & mask)

    def patience_of(self, name: str) -> int:
        """Cycles that a rank waits until it goes first once."""
        return self.patience // (2 if name == "kept" else 1)

    def _rank(self, asked: dict[str, bool], granted: dict[str, bool], order: list[str]) -> None:
        """Of those who ask the first rank goes, unless a lower one has waited too long."""
        users = [n for n in order if asked[n]]
        if not users:
            assert not any(granted[n] for n in order)
            return
        late = [n for n in order[1:] if asked[n] and self.ports[n].waited >= self.patience_of(n)]
        due = late[-1] if late else users[0]  # the lowest rank that is late goes first
        got = [n for n in order if granted[n]]
        assert got == [due], f"{got} was served, {due} is due of {users}"

    def arbitrate(self) -> tuple[str, int] | None:
        """Check the grants of this cycle, update the model; (reader, its data) for the next."""
        dut, ports = self.dut, self.ports
        acked = int(dut.window_ack.value)
        host = ports["window"]
        asks = host.asks and not acked
        wants_write = bool(host.fields.get("we"))
        asked = {n: p.asks for n, p in ports.items()}
        asked |= {"window_rd": asks and not wants_write, "window_wr": asks and wants_write}
        granted = {
            n: bool(int(getattr(dut, f"{n}_gnt").value))
            for n in ("fill", "unload", "kept", "writeback", "load")
        }
        for n, given in granted.items():
            assert asked[n] or not given, f"{n}: grant without a request"
        # the host sees its turn only by the acknowledge: it gets what the others leave
        late = asks and host.waited >= self.patience
        free_r = not (granted["fill"] or granted["unload"] or granted["kept"])
        free_w = not granted["writeback"] and not granted["load"]
        granted["window_rd"] = asked["window_rd"] and free_r
        granted["window_wr"] = asked["window_wr"] and free_w
        ports["window_rd"] = ports["window_wr"] = host
        self._rank(asked, granted, ["fill", "unload", "kept", "window_rd"])
        self._rank(asked, granted, ["writeback", "load", "window_wr"])
        del ports["window_rd"], ports["window_wr"]
        assert not late or granted["window_rd"] or granted["window_wr"]
        host_now = granted["window_rd"] or granted["window_wr"]
        read = None
        host_word, host_byte = divmod(host.fields.get("addr", 0), self.path)
        host_part = host_byte // 4
        for n in ("fill", "unload", "kept"):
            if granted[n]:
                read = n, self.memory[ports[n].fields["word"]]
        if granted["window_rd"]:
            read = "window", self.memory[host_word] >> (32 * host_part) & 0xFFFFFFFF
        for n in ("writeback", "load"):
            if granted[n]:
                f = ports[n].fields
                self._write(f["word"], f["be"], f["data"])
        if granted["window_wr"]:
            be = host.fields["wstrb"] << (4 * host_part)
            self._write(host_word, be, host.fields["wdata"] << (32 * host_part))
        for n, p in ports.items():
            served = host_now if n == "window" else granted[n]
            if p.asks and not (n == "window" and acked):
                p.waited += 0 if served else 1
                p.longest = max(p.longest, p.waited)
                p.grants += served
            if n != "window" and served:
                p.asks = False
        self.expect_ack = host_now
        return read

    async def fill(self) -> None:
        """Known contents, through the write-back port."""
        for word in range(self.words):
            data = random.getrandbits(8 * self.path)
            self.dut.writeback_req.value, self.dut.writeback_word.value = 1, word
            self.dut.writeback_be.value = (1 << self.path) - 1
            self.dut.writeback_data.value = data
            await RisingEdge(self.dut.clk)
            assert int(self.dut.writeback_gnt.value)
            self.memory[word] = data
        self.dut.writeback_req.value = 0

    async def play(self, cycles: int) -> None:
        dut = self.dut
        read = None
        self.expect_ack = False
        for _ in range(cycles):
            self.drive()
            await RisingEdge(dut.clk)
            ack = bool(int(dut.window_ack.value))
            assert ack == self.expect_ack, "the acknowledge comes a cycle after the access"
            if read:
                who, data = read
                got = int((dut.window_rdata if who == "window" else dut.rdata).value)
                assert got == data, f"{who} read {got:#x}, expected {data:#x}"
            read = self.arbitrate()
            if ack:
                self.ports["window"].asks = False


RATES = [
    {"fill": 1.0, "unload": 1.0, "kept": 1.0, "writeback": 1.0, "load": 1.0, "window": 1.0},
    {"fill": 1.0, "unload": 0.3, "kept": 0.2, "writeback": 1.0, "load": 0.3, "window": 0.1},
    {"fill": 0.5, "unload": 0.5, "kept": 0.5, "writeback": 0.5, "load": 0.5, "window": 0.5},
    {"fill": 0.0, "unload": 0.2, "kept": 0.8, "writeback": 0.1, "load": 0.2, "window": 0.8},
]


@cocotb.test()
async def seven_users(dut) -> None:
    """Data, ranks and the longest wait, under several mixes of load."""
    first = True
    for rates in RATES:
        bench = Bench(dut, rates)
        await reset(dut, *REQUESTS, *OTHERS, start_clock=first)
        first = False
        await bench.fill()
        await bench.play(1500)
        ports = bench.ports
        assert all(p.grants > 20 for p in ports.values() if p.p), "somebody was hardly served"
        for port in ports.values():
            # each waits for the late ones behind it, all but the first ranks for their patience too
            # (weights, which wait half as long, may come twice)
            behind = {"fill": 4, "writeback": 2, "unload": 3}.get(port.name, 1)
            first_rank = port.name in ("fill", "writeback")
            bound = behind + (0 if first_rank else bench.patience_of(port.name))
            assert port.longest <= bound, f"{port.name} waited {port.longest}"
        if rates["fill"] == 1.0 and rates["unload"] == 1.0:
            assert ports["unload"].longest >= bench.patience, "the load was not enough to wait"


@cocotb.test()
async def reset_while_waiting(dut) -> None:
    """What somebody has waited before a reset does not count, and nothing is acknowledged."""
    await reset(dut, *REQUESTS, *OTHERS)
    bench = Bench(dut, RATES[0])
    await bench.fill()
    patience = bench.patience
    for turn in range(60):
        bench.ports["window"].p = float(turn % 3 > 0)
        await bench.play(random.randint(1, 3 * patience))
        for port in bench.ports.values():
            port.asks, port.waited = False, 0
            getattr(dut, f"{port.name}_req").value = 0
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        await bench.play(patience + 2)


@pytest.mark.tier(
    nightly=["icarus-64-128-5", "icarus-128-64-8", "icarus-32-32-5"],
    check=["icarus-16-64-8", "verilator-128-32-5", "verilator-16-16-8", "verilator-64-64-8"],
)
@pytest.mark.parametrize(
    ("sim", "path", "rows", "patience"),
    [
        *(("icarus", 64, 64, 8), ("icarus", 64, 128, 5), ("verilator", 64, 64, 8)),
        *(("icarus", 16, 64, 8), ("icarus", 32, 32, 5), ("verilator", 16, 16, 8)),
        *(("icarus", 128, 64, 8), ("verilator", 128, 32, 5)),
        *(("icarus", 128, 33, 8), ("verilator", 128, 33, 8)),  # the last word is half in use
    ],
)
def test_ai_ram(sim: str, path: int, rows: int, patience: int) -> None:
    sources = ["tb/ai_ram/ai_ram_bench.v", "rtl/cache/ai_ram.v", "rtl/cache/ai_ram_arb.v"]
    params = {"ROWS": rows, "PATIENCE": patience, "PATH": path}
    run_bench(sim, "ai_ram_bench", sources, "tb.ai_ram.test_ai_ram", params=params)
