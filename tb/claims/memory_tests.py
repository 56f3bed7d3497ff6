# SPDX-License-Identifier: Apache-2.0
"""C8 the STT-MRAM, C10 base addresses and order of the data."""

from collections import Counter
from itertools import pairwise

import numpy as np

from openkpu.network.network import Storage
from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.networks import ClaimCase
from openkpu_tb.claims.recording import READS, Recording
from openkpu_tb.core.registers import AI
from openkpu_tb.device.device import Device
from openkpu_tb.device.simulation import rng
from openkpu_tb.device.trace import Trace
from tb.device.checked import checked

READ, NEXT, WRITE = 5, 2, 9  # wait states: first read of a burst, later ones, writes


@checked()
async def c8_stt_mram(device: Device) -> None:
    """Wait states of every beat, and contents after a reset of everything."""
    tb, case = device.tb, networks.small_case(1)
    fast = (await recorder.stream(device, case)).exact()
    assert set(waits(fast.trace).values()) == {0}
    tb.cfg_rd_wait.value, tb.cfg_seq_wait.value, tb.cfg_wr_wait.value = READ, NEXT, WRITE
    bursts = int(tb.bursts.value)
    slow = (await recorder.stream(device, case)).exact()
    bursts = int(tb.bursts.value) - bursts
    tb.cfg_rd_wait.value, tb.cfg_seq_wait.value, tb.cfg_wr_wait.value = 0, 0, 0
    assert (slow.results == fast.results).all()
    found = waits(slow.trace)
    reads = Counter(found[c] for c in found if not slow.trace.write[c])
    writes = Counter(found[c] for c in found if slow.trace.write[c])
    assert set(writes) == {WRITE} and set(reads) == {READ, NEXT}, f"waits {reads}, {writes}"
    # each burst begins with one slow read (or is one of the few writes)
    assert 0 < bursts - reads[READ] <= writes[WRITE]
    waited = sum(found.values())
    longer = int(slow.ends[-1] - slow.starts[0]) - int(fast.ends[-1] - fast.starts[0])
    assert 0 < longer <= waited, f"{longer} cycles longer with {waited} wait states"

    # non-volatile: power and reset of device and bench do not touch it
    before = await recorder.storage_contents(device, slow.storage)
    await device.reset(cycles=50)
    assert await device.read(AI["AI_PIX_ADR"]) == 0, "the device was not reset"
    assert (await recorder.storage_contents(device, slow.storage) == before).all()
    await device.configure(slow.storage.registers)
    await recorder.begin(device)
    await device.start()
    await device.finish(recorder.LIMIT)
    again = (await recorder.view(device, case, slow.storage)).exact()
    assert (again.results == fast.results).all()


def waits(trace: Trace) -> dict[int, int]:
    """Wait states of every beat: cycles of its data phase before the one that ends it."""
    found, count = {}, 0
    for cycle, (on, beat) in enumerate(zip(trace.data_phase, trace.beat, strict=True)):
        if beat:
            found[cycle], count = count, 0
        else:
            count = count + 1 if on else 0
    assert found, "nothing was on the bus"
    return found


@checked()
async def c10_base_addresses_and_order(device: Device) -> None:
    """Sequence of addresses of each stream, with the network at several places in storage."""
    case = networks.small_case(2)
    places = [scattered(case, rng().permutation(5)), scattered(case, rng().permutation(5)[::-1])]
    runs = [(await recorder.stream(device, case, storage=storage)).exact() for storage in places]
    bases = [[r.storage.registers[f"AI_{n}_ADR"] for n in ("PIX", "WGT", "BIAS")] for r in runs]
    assert not set(bases[0]) & set(bases[1])
    for run in (*runs, await recorder.run_small(device), await recorder.large(device)):
        for area in READS:
            once_and_in_order(run, area)


def once_and_in_order(run: Recording, area: str) -> None:
    """An area from its base to its end, without going back from layer to layer."""
    low, high = run.areas[area]
    layers = run.network.layers
    for number, cycles in enumerate(run.reads(area)):  # every address is the expected one
        found = run.trace.beat_addr[cycles]
        if area in ("list", "pixels"):
            assert (np.diff(found) == 4).all(), f"{area}: a gap, or words read again"
        elif number == 0:
            # a load that begins inside a word reads that word again
            loads = sum(len(run.table(arg, area)) for arg in layers)
            assert len(found) - len(set(found)) <= loads - len(layers), f"{area}: words read again"
            assert set(found) >= set(range(low, high - 7, 4)), f"{area}: words left out"
        if number == 0 and area != "pixels":
            assert found.min() == low // 4 * 4 and found.max() < high
        if area == "weights":
            assert (np.diff(found) >= 0).all(), "weights: read backwards"
    if area in ("weights", "biases"):  # all tables of a layer lie before those of the next
        for arg, following in pairwise(layers):
            end = max(at + size for at, size in run.table(arg, area))
            start = min(at for at, _ in run.table(following, area))
            assert end <= start < end + 8, f"{area}: layers do not follow one another"


def scattered(case: ClaimCase, order: np.ndarray) -> Storage:
    """The case's storage with its areas in another order, with gaps, at another base."""
    plain = case.network.storage(case.images, continuous=True)
    names = ["AI_LIST_ADR", "AI_WGT_ADR", "AI_BIAS_ADR", "AI_PIX_ADR", "AI_RES_ADR"]
    first = [plain.registers[n] for n in names]
    parts = np.split(plain.data, first[1:])
    registers, base, at = dict(plain.registers), 0x1004, 0x1004
    blobs = []
    for index in order:
        gap = 4 * int(order[0] + 2 * index + 1)
        blobs += [np.full(gap, 0x5A, np.uint8), parts[index]]
        registers[names[index]] = at + gap
        at += gap + parts[index].size
    registers["AI_NPIX_ADR"] = registers["AI_PIX_ADR"] + registers["AI_PIX_STRIDE"]
    move = registers["AI_RES_ADR"] - plain.registers["AI_RES_ADR"]
    results = [a + move for a in plain.results]
    return Storage(np.concatenate(blobs), base, registers, results, plain.result_shape)
