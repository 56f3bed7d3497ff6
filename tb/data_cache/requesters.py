# SPDX-License-Identifier: Apache-2.0
"""Users of the AI RAM: requesters with a bounded waiting time, maps that move."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tb.map_mover.test_map_mover import Shape

LEAD = 30  # cycles from the choice of a map to its start: requests of before are served by then


@dataclass
class Port:
    """A requester: how often it asks, whether it does, since when."""

    p: float
    bound: int  # cycles without a grant, at most
    asks: bool = False
    waited: int = 0
    longest: int = 0
    grants: int = 0

    def count(self, name: str, asked: bool, granted: bool) -> None:
        """Account for a cycle; nobody is served unasked, or too late."""
        assert asked or not granted, f"{name}: served without a request"
        self.waited = self.waited + 1 if asked and not granted else 0
        self.longest = max(self.longest, self.waited)
        self.grants += granted
        assert self.waited <= self.bound, f"{name} waits for {self.waited} cycles"


@dataclass
class Move:
    """A load or an unload: a map and its progress."""

    base: int
    shape: Shape
    data: np.ndarray  # the map
    mask: np.ndarray  # bytes of the AI RAM that are pixels
    band: int = 0  # lines of a band in which a load arrives; 0: the map is one band
    bands: int = 0  # that were reported
    wait: int = LEAD
    age: int = 0
    store: int = 0
    address: int = 0
    owner: int = 0
    requests: list[tuple[int, int, int]] = field(default_factory=list)
    out: bytes = b""
    due: int | None = None  # cycles until the storage has it

    @property
    def running(self) -> bool:
        """It was started."""
        return self.wait < 0


@dataclass
class Weights:
    """Bytes of kept weights that are asked for."""

    at: int
    size: int
    data: bytes = b""
    wait: int = LEAD
    asked: bool = False
    age: int = 0
    got: bytes = b""


def drive_weights(bench: Any) -> None:
    """Ask for bytes that nobody writes meanwhile."""
    dut, now = bench.dut, bench.weights
    if now is None and bench.keep and random.random() < 0.05 * bench.ports["unload"].p:
        size = random.choice((1, 16, bench.path, random.randint(1, 200)))
        at = random.randrange(bench.size - size)
        if not bench.kept[at : at + size].any():
            bench.kept[at : at + size] = True
            bench.weights = now = Weights(at, size)
    go = now is not None and now.wait <= 0 and not now.asked
    if now is not None and now.wait == 0:
        now.data = bench.ram[now.at : now.at + now.size].tobytes()
    dut.weight_wanted.value = dut.weight_kept.value = int(go)
    if now is not None:
        now.wait -= 1
        dut.weights_addr.value, dut.weights_len.value = now.at, now.size
    dut.kept_ready.value = int(random.random() < bench.p_take)


def check_weights(bench: Any) -> None:
    """The bytes that arrive are the requested ones, and in time."""
    dut, now = bench.dut, bench.weights
    if not bench.keep:
        assert not int(dut.kept_valid.value)
        return
    if int(dut.kept_valid.value) and int(dut.kept_ready.value):
        assert now is not None and now.asked, "weights that nobody wants"
        off, count = int(dut.kept_off.value), int(dut.kept_cnt.value)
        now.got += int(dut.kept_data.value).to_bytes(16, "little")[off : off + count]
    if now is None:
        return
    if int(dut.weight_wanted.value) and int(dut.weight_granted.value):
        now.asked = True
    now.age += now.asked
    assert now.got == now.data[: len(now.got)], f"other bytes from {now.at} on"
    assert now.age < 100 + (bench.patience + 4) * (now.size / 16 + 2) / bench.p_take
    if now.asked and len(now.got) == now.size:
        bench.kept[now.at : now.at + now.size] = False
        bench.weights = None
        bench.met["weights"] += 1


def drive_early(bench: Any) -> None:
    """Weights of the bus come as fast as they can; the loader refuses them for long."""
    dut = bench.dut
    if len(bench.early_due) < 64 and bench.ports["unload"].p:
        data = random.randbytes(random.choice((1, 5, 40, 300, 900)))
        bench.early.add(data, random.choice((7, 50, len(data))))
        bench.early_due += data
    dut.spare_first.value, dut.spare_rows.value = bench.spare
    bench.early.drive(0.9)
    if not bench.refuses and random.random() < 0.02:
        bench.refuses = random.randint(5, 150)
    bench.refuses -= bench.refuses > 0
    dut.weight_ready.value = int(not bench.refuses and random.random() < bench.p_take)


def check_early(bench: Any) -> None:
    """They arrive in order, directly or out of the AI RAM."""
    dut = bench.dut
    bench.early.sample()
    assert not int(dut.weight_req_valid.value), "kept weights are requested from the bus"
    if int(dut.weight_valid.value) and int(dut.weight_ready.value):
        off, count = int(dut.weight_off.value), int(dut.weight_cnt.value)
        got = int(dut.weight_data.value).to_bytes(16, "little")[off : off + count]
        assert got == bench.early_due[:count], "other weights than those of the bus"
        bench.early_due = bench.early_due[count:]
        bench.met["stored"] += count > bench.lanes or (bench.lanes == 16 and bench.ahead)
