# SPDX-License-Identifier: Apache-2.0
"""Damaged containers: one KmodelError or a program that runs; no hang, no flood of memory.

A few thousand seeded mutations of small containers of every version, and of published models when
they are there.  Work is bounded by ``work_max``; memory by the address space of the process.
"""

from __future__ import annotations

import os
import resource
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from models.tests.kmodel.test_kmodel_opcodes_v3 import samples as samples_v3
from models.tests.kmodel.test_kmodel_opcodes_v4 import samples as samples_v4
from models.tests.kmodel.test_kmodel_operations import all_containers
from openkpu.kmodel import KmodelError, loads_kmodel, run_kmodel
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.version5.v5 import read_functions

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
SEED = 20260
LIMIT = 2 << 30  # bytes a damaged file may make the reader ask for
SECONDS = 20.0  # of one file: hundreds of times what it takes
INTERESTING = (
    0,
    1,
    2,
    3,
    4,
    63,
    64,
    255,
    256,
    1023,
    65535,
    1 << 20,
    1 << 24,
    0x7FFFFFFF,
    0x80000000,
)


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """2 GiB more than now, whatever a file says."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + LIMIT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def mutate(rng: np.random.Generator, data: bytes, hot: int) -> bytes:
    """One to four changes; half of them in the first ``hot`` bytes, where the structure is."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        reach = min(hot, len(changed)) if rng.random() < 0.5 else len(changed)
        at = int(rng.integers(0, reach))
        kind = rng.integers(0, 6)
        if kind == 0:
            changed[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            changed[at] = int(rng.integers(0, 256))
        elif kind in (2, 3):
            at &= ~3
            value = int(rng.choice(INTERESTING)) if kind == 2 else int(rng.integers(0, 1 << 32))
            changed[at : at + 4] = struct.pack("<I", value)[: len(changed) - at]
        elif kind == 4:
            other = int(rng.integers(0, len(changed)))
            size = int(rng.integers(1, 33))
            changed[at : at + size] = changed[other : other + size]
        elif rng.random() < 0.3:
            del changed[at : at + int(rng.integers(1, 1 + max(1, len(changed) // 4)))]
        if not changed:
            changed = bytearray(1)
    return bytes(changed)


def feed(data: bytes, work: int | None) -> str:
    """What became of a file: "refused", "loaded" (no work allowed) or "ran"; or the test fails."""
    start = time.monotonic()
    outcome = "loaded"
    try:
        program = loads_kmodel(data, "fuzz")
        if work is not None:
            inputs = [np.zeros(t.shape, t.dtype) for t in program.inputs]
            run_kmodel(program, inputs, work_max=work)
            outcome = "ran"
    except KmodelError as err:
        assert "\n" not in str(err) and len(str(err)) < 2000
        outcome = "refused"
    if data[:5] == b"LDMK\x05":
        try:
            read_functions(Blob(data, "fuzz"))
        except KmodelError as err:
            assert "\n" not in str(err)
    assert time.monotonic() - start < SECONDS
    return outcome


def campaign(samples: list[bytes], rounds: int, work: int, seed: int, hot: int) -> None:
    rng = np.random.default_rng(seed)
    counts = {"refused": 0, "loaded": 0, "ran": 0}
    for number in range(rounds):
        sample = samples[number % len(samples)]
        data = mutate(rng, sample, hot)
        try:
            counts[feed(data, work)] += 1
        except BaseException:
            print(f"seed {seed}, mutation {number}")
            raise
    print(f"seed {seed}: {counts}")
    assert counts["refused"] > rounds // 20 and counts["ran"] > 0


def test_samples_run_undamaged() -> None:
    for data in (*CONTAINERS.values(), *all_containers(), *samples_v3(), *samples_v4()):
        assert feed(data, 10**8) == "ran"


def test_containers() -> None:
    campaign(list(CONTAINERS.values()), 2100, 3 * 10**6, SEED, 700)


def test_operations() -> None:
    campaign(all_containers(), 3000, 10**6, SEED + 1, 400)


def test_opcodes() -> None:
    campaign([*samples_v3(), *samples_v4()], 3000, 10**6, SEED + 4, 400)


def test_random_bytes() -> None:
    rng = np.random.default_rng(SEED + 2)
    heads = [data[:24] for data in CONTAINERS.values()]
    for number in range(600):
        body = rng.integers(0, 256, int(rng.integers(0, 400)), dtype=np.uint8).tobytes()
        feed(heads[number % len(heads)][: int(rng.integers(0, 25))] + body, 10**6)


@pytest.mark.check
@pytest.mark.tier(
    nightly=[
        "face_rfb320_v4.kmodel",
        "yolox_nano_224_v5.kmodel",
        "detect5_v3.kmodel",
        "mobilenet025_v4.kmodel",
    ]
)
@pytest.mark.parametrize(
    "name",
    [
        "face_detect_v0_16bit.model.bin",
        "face_detect_v3_8bit.kmodel",
        "face_rfb320_v4.kmodel",
        "detect5_v3.kmodel",
        "mnist_sipeed_v3.kmodel",
        "mobilenet025_v4.kmodel",
        "yolox_nano_224_v5.kmodel",
    ],
)
def test_published_models(name: str) -> None:
    path = SHARED / "real" / name
    if not path.exists():
        pytest.skip(f"{path} is not there; OPENKPU_SHARED names another place")
    data = path.read_bytes()
    hot = 24000 if "v5" in name else 4000
    rng = np.random.default_rng(SEED + 3)
    refused = 0
    rounds = 200 if "v5" in name else 500  # following the byte code takes longer
    for number in range(rounds):
        try:
            refused += feed(mutate(rng, data, hot), None) == "refused"
        except BaseException:
            print(f"seed {SEED + 3}, mutation {number} of {name}")
            raise
    assert rounds // 50 < refused < rounds
