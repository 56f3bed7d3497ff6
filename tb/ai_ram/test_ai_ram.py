# SPDX-License-Identifier: Apache-2.0
"""The arbiter of the AI RAM: six users against a memory model, ranks and the bound on waiting."""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

READERS, WRITERS = ("fill", "unload", "kept"), ("writeback", "load")


def spread(be: int, bits: int = 8) -> int:
    """Bit mask of byte enables."""
    total = 0
    for i in range(be.bit_length()):
        if be >> i & 1:
            total |= ((1 << bits) - 1) << (i * bits)
    return total


@dataclass
class Port:
    """A user that requests with probability p and holds its request until the grant."""

    name: str
    p: float
    fields: dict[str, int] = field(default_factory=dict)
    asks: bool = False
    waited: int = 0  # cycles without a grant
    longest: int = 0
    grants: int = 0


class Bench(BlockBench):
    """The users, and the memory behind the arbiter."""

    inputs = *(f"{user}_{n}" for user in READERS for n in ("req", "word")), "rdata"
    inputs += (
        *(f"{user}_{n}" for user in WRITERS for n in ("req", "word", "be", "data")),
        "window_req",
    )
    inputs += "window_we", "window_addr", "window_wstrb", "window_wdata"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.path = int(dut.PATH.value)
        self.words = ceil_div(int(dut.ROWS.value) * 64, self.path)
        self.patience = int(dut.PATIENCE.value)
        self.latency = int(dut.READ.value)  # cycles from a grant to the data
        self.memory = [0] * self.words  # expected contents, from the users' writes
        self.ram = [0] * self.words  # the memory behind the arbiter
        cocotb.start_soon(self._serve())

    async def begin(self, rates: dict[str, float]) -> None:
        """Reset, then users with these request rates; known contents of the memory."""
        self.ports = {n: Port(n, p) for n, p in rates.items()}
        await self.reset()
        await self.fill()
        self.acks = deque(
            [False] * self.latency
        )  # whether the host is acknowledged in the next cycles

    async def _serve(self) -> None:
        """ai_ram: read latency of READ cycles; a read returns the data before a write in its
        cycle."""
        dut, coming = self.dut, deque([0] * (self.latency - 1))
        while True:
            await RisingEdge(dut.clk)
            if int(dut.rst.value):
                continue
            coming.append(self.ram[int(dut.raddr.value)] if int(dut.re.value) else 0)
            dut.rdata.value = coming.popleft()
            if int(dut.we.value):
                at, mask = int(dut.waddr.value), spread(int(dut.wbe.value))
                self.ram[at] = self.ram[at] & ~mask | int(dut.wdata.value) & mask

    def _request(self, port: Port) -> None:
        """A new request; few words, so that reads collide with writes."""
        path = self.path
        word = random.randrange(12) + random.choice((0, self.words - 12))
        if port.name in READERS:
            port.fields = {"word": word}
        elif port.name in WRITERS:
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
        """Cycles that a rank waits until it has priority once."""
        return self.patience // (2 if name == "kept" else 1)

    def _rank(self, asked: dict[str, bool], granted: dict[str, bool], order: list[str]) -> None:
        """The first rank that requests has priority, unless a lower one has waited too long."""
        users = [n for n in order if asked[n]]
        if not users:
            assert not any(granted[n] for n in order)
            return
        late = [n for n in order[1:] if asked[n] and self.ports[n].waited >= self.patience_of(n)]
        due = late[-1] if late else users[0]  # the lowest late rank has priority
        got = [n for n in order if granted[n]]
        assert got == [due], f"{got} was served, {due} is due of {users}"

    def arbitrate(self) -> tuple[str, int] | None:
        """Check the grants of this cycle, update the model; (reader, its data) for the next."""
        dut, ports = self.dut, self.ports
        acked = int(dut.window_ack.value)
        host = ports["window"]
        asks = host.asks and not acked and not any(self.acks)
        writes = bool(host.fields.get("we"))
        asked = {n: p.asks for n, p in ports.items()}
        asked |= {"window_rd": asks and not writes, "window_wr": asks and writes}
        granted = {n: bool(int(getattr(dut, f"{n}_gnt").value)) for n in READERS + WRITERS}
        for n, given in granted.items():
            assert asked[n] or not given, f"{n}: grant without a request"
        # the acknowledge is the host's grant: it is served when no other user is granted
        late = asks and host.waited >= self.patience
        for way, others in (("window_rd", READERS), ("window_wr", WRITERS)):
            granted[way] = asked[way] and not any(granted[n] for n in others)
        ports["window_rd"] = ports["window_wr"] = host
        self._rank(asked, granted, [*READERS, "window_rd"])
        self._rank(asked, granted, [*WRITERS, "window_wr"])
        del ports["window_rd"], ports["window_wr"]
        assert not late or granted["window_rd"] or granted["window_wr"]
        host_now = granted["window_rd"] or granted["window_wr"]
        host_busy = any(self.acks)
        read = None
        host_word, host_byte = divmod(host.fields.get("addr", 0), self.path)
        host_part = host_byte // 4
        for n in READERS:
            if granted[n]:
                read = n, self.memory[ports[n].fields["word"]]
        if granted["window_rd"]:
            read = "window", self.memory[host_word] >> (32 * host_part) & 0xFFFFFFFF
        for n in WRITERS:
            if granted[n]:
                f = ports[n].fields
                self._write(f["word"], f["be"], f["data"])
        if granted["window_wr"]:
            be = host.fields["wstrb"] << (4 * host_part)
            self._write(host_word, be, host.fields["wdata"] << (32 * host_part))
        for n, p in ports.items():
            served = host_now if n == "window" else granted[n]
            if p.asks and not (n == "window" and (acked or host_busy)):
                p.waited += 0 if served else 1
                p.longest = max(p.longest, p.waited)
                p.grants += served
            if n != "window" and served:
                p.asks = False
        self.acks.append(granted["window_rd"])
        self.acks[0] |= granted["window_wr"]
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
        reads: deque[tuple[str, int] | None] = deque([None] * self.latency)
        for _ in range(cycles):
            self.drive()
            await RisingEdge(dut.clk)
            ack = bool(int(dut.window_ack.value))
            due = self.acks.popleft()
            assert ack == due, (
                "the acknowledge comes a cycle after a write, with the data of a read"
            )
            if read := reads.popleft():
                who, data = read
                got = int((dut.window_rdata if who == "window" else dut.rdata).value)
                assert got == data, f"{who} read {got:#x}, expected {data:#x}"
            reads.append(self.arbitrate())
            if ack:
                self.ports["window"].asks = False


USERS = (*READERS, *WRITERS, "window")
RATES = [
    dict.fromkeys(USERS, 1.0),
    dict(zip(USERS, (1.0, 0.3, 0.2, 1.0, 0.3, 0.1), strict=True)),
    dict.fromkeys(USERS, 0.5),
    dict(zip(USERS, (0.0, 0.2, 0.8, 0.1, 0.2, 0.8), strict=True)),
]


@block_test(Bench)
async def seven_users(bench: Bench) -> None:
    """Data, ranks and the longest wait, under several mixes of load."""
    for rates in RATES:
        await bench.begin(rates)
        await bench.play(1500)
        ports = bench.ports
        assert all(p.grants > 20 for p in ports.values() if p.p), "somebody was hardly served"
        for port in ports.values():
            # each waits for the late ones of lower rank, all but the first ranks also for their
            # patience (kept weights, which wait half as long, may be served twice)
            behind = {"fill": 4, "writeback": 2, "unload": 3}.get(port.name, 1)
            first_rank = port.name in ("fill", "writeback")
            bound = behind + (0 if first_rank else bench.patience_of(port.name))
            assert port.longest <= bound, f"{port.name} waited {port.longest}"
        if rates["fill"] == 1.0 and rates["unload"] == 1.0:
            assert ports["unload"].longest >= bench.patience, "the load was not enough to wait"


@block_test(Bench)
async def reset_while_waiting(bench: Bench, dut) -> None:
    """Waiting time before a reset does not count, and no request is acknowledged."""
    await bench.begin(RATES[0])
    patience = bench.patience
    for turn in range(60):
        bench.ports["window"].p = float(turn % 3 > 0)
        await bench.play(random.randint(1, 3 * patience))
        for port in bench.ports.values():
            port.asks, port.waited = False, 0
            getattr(dut, f"{port.name}_req").value = 0
        await bench.pulse(rst=1)
        bench.acks = deque([False] * bench.latency)
        await bench.play(patience + 2)


# of 33 rows the last word of 128 bytes is half in use
@sizes(
    "sim path rows patience latency",
    test="icarus-128-33-8-1 icarus-16-64-8-3 verilator-128-33-8-1",
    check="icarus-64-64-8-1 icarus-16-64-8-1 verilator-128-32-5-1 verilator-16-16-8-3",
    nightly="verilator-64-64-8-1 icarus-128-64-8-1 icarus-32-32-5-3 icarus-64-128-5-1",
)
def test_ai_ram(sim: str, path: int, rows: int, patience: int, latency: int) -> None:
    params = {"ROWS": rows, "PATIENCE": patience, "PATH": path, "READ": latency}
    sources = ["rtl/cache/ai_ram_arb.v"]
    run_bench(sim, "ai_ram_arb", sources, "tb.ai_ram.test_ai_ram", params=params)
