# SPDX-License-Identifier: Apache-2.0
"""A soft reset in any cycle of a layer: only bytes of the layer's own output map may change.

Each of them is what it was or what the layer writes there (docs/programming.md, "Recovery"). One
layer of each kind that writes the AI RAM in its own way: an array layer with and without a pool, a
depthwise one, a vector, maps of 32-bit sums, pooling tasks, joins, and products of float16.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.vectors import VectorLayer
from openkpu_tb.core.backdoor import Bytes
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, Ctrl
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.tiny_jobs import at_rest, tidy

TABLES = 0x108  # in storage
TRIALS = 4 if SLOW else 200  # of a layer, spread over its cycles
SETTLED = 3  # cycles until a write is in the memory (docs/architecture.md 5)
SMALL = Limits(channels=6, size=12)


def plain(**kind: bool) -> dict[str, Any]:
    """What the layers have in common."""
    common = {"depthwise": False, "fc": False, "eight_bit": True, "signed_in": False}
    return {**common, **kind}


def layers(device: Device, random: np.random.Generator) -> dict[str, VectorLayer]:
    """A layer of each kind that this build has, its maps behind each other in the AI RAM."""
    rows = device.back.ram_rows
    fixed: dict[str, Callable[[], VectorLayer]] = {
        "array": lambda: random_layer(random, c=3, h=6, w=20, o=5, kernel=3, pool=0, **plain()),
        "pooled": lambda: random_layer(random, c=3, h=8, w=20, o=5, kernel=3, pool=2, **plain()),
        "picked": lambda: random_layer(random, c=3, h=8, w=20, o=5, kernel=1, pool=8, **plain()),
        "depthwise": lambda: random_layer(
            random, c=7, h=6, w=12, kernel=3, pool=0, **plain(depthwise=True)
        ),
        "vector": lambda: random_layer(
            random, c=4, h=4, w=9, o=20, kernel=1, pool=0, **plain(fc=True)
        ),
        "product": lambda: random_product(random, limits=SMALL, ram_rows=rows),
        "pool": lambda: random_pool(random, limits=SMALL, ram_rows=rows),
        "join": lambda: random_elementwise(random, limits=SMALL, ram_rows=rows),
    }
    if int(device.tb.fp16_lanes.value):
        fixed["float16"] = lambda: random_fp16(random, limits=SMALL, wide=False, ram_rows=rows)
        fixed["float32"] = lambda: random_fp16(random, limits=SMALL, wide=True, ram_rows=rows)
    return {name: drawn(make) for name, make in fixed.items()}


def drawn(make: Callable[[], VectorLayer]) -> VectorLayer:
    """What ``make`` draws, once it is a legal layer."""
    for _ in range(1000):
        try:
            return make()
        except LayerError:
            continue
    raise AssertionError("no legal layer in a thousand draws")


class ResetJob:
    """A layer that the host pushes, in a memory of random bytes."""

    def __init__(self, device: Device, layer: VectorLayer, random: np.random.Generator) -> None:
        self.device, self.layer = device, layer
        self.noise = random.integers(0, 256, 64 * device.back.ram_rows, dtype=np.uint8)
        self.after = airam.new_ram(device.back.ram_rows)  # with the layer's map
        self.words: list[int] = []
        self.dirty: slice = slice(0, self.noise.size)  # bytes that a trial may have changed

    async def place(self) -> None:
        """Tables into storage; the layer's words."""
        layer = self.layer
        tables = Tables(layer.weights, layer.bn, layer.act)
        arg: LayerArg = await self.device.place_tables(layer.arg, tables, TABLES)
        self.words = [int(word) for word in arg.replace(int_en=1, send_data_out=0).encode()]
        own = airam.new_ram(self.device.back.ram_rows)
        airam.write_rows(self.after, arg.out_layout, layer.y)
        airam.write_rows(own, arg.out_layout, np.ones(layer.y.shape, np.uint8))
        self.own = own.astype(bool)
        await self.device.write_many({EIGHT_BIT_MODE: int(layer.eight_bit), EIGHT_BIT_MODE + 4: 0})

    async def arm(self) -> None:
        """The memory as it is before each trial."""
        device, layer = self.device, self.layer
        first, stop = int(self.dirty.start) // 64, int(self.dirty.stop)
        await device.back.load_ram(first, self.noise[64 * first : stop])
        await device.load_map(layer.arg.in_layout, layer.x)
        if layer.x2 is not None:
            await device.load_map(layer.arg.in_layouts[1], layer.x2)
        self.before, _ = await device.back.whole_ram()

    async def begin(self) -> None:
        """Push the layer."""
        halves = []
        for word in self.words:
            halves += [timeline.write(0, word), timeline.write(4, word >> 32)]
        await self.device.transfer(*halves)

    def fault(self, found: Bytes) -> str:
        """What changed and must not have; empty when nothing did."""
        changed = np.flatnonzero(found != self.before)
        if changed.size:
            self.dirty = slice(64 * (changed[0] // 64), 64 * (changed[-1] // 64 + 1))
        bad = changed[~self.own[changed] | (found[changed] != self.after[changed])]
        return f"{bad.size} bytes from {bad[0]:#x} on" if bad.size else ""


async def trial(job: ResetJob, cycles: int) -> str:
    """Push the layer, reset softly so many cycles later; what changed and must not have."""
    device = job.device
    await job.arm()
    await job.begin()
    await device.wait_cycles(cycles)
    await device.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
    hung = not await at_rest(device)
    await device.wait_cycles(SETTLED)
    found, unknown = await device.back.whole_ram()
    await tidy(device, hung)
    return "the device hangs" if hung else "unknown bytes" if unknown.any() else job.fault(found)


async def length(job: ResetJob) -> int:
    """Cycles of the undisturbed layer, whose map must be exact."""
    device = job.device
    await job.arm()
    await job.begin()
    start = int(device.tb.cycle.value)
    await device.finish(20_000)
    cycles = int(device.tb.cycle.value) - start
    await device.wait_cycles(SETTLED)
    found, _ = await device.back.whole_ram()
    assert not (fault := job.fault(found)), f"{job.layer.arg}: {fault}"
    exact = found[job.own] == job.after[job.own]
    assert exact.all(), f"{job.layer.arg}: the map is not exact"
    return cycles


@checked()
async def nothing_but_its_map(device: Device) -> None:
    """Every kind of layer, cut off in cycles from its push to its end."""
    random, wrong = rng(), []
    for name, layer in layers(device, random).items():
        job = ResetJob(device, layer, random)
        await job.place()
        cycles = await length(job)
        some = random.choice(cycles, min(TRIALS, cycles), replace=False)
        wrong += [f"{name}, {at}: {fault}" for at in some if (fault := await trial(job, int(at)))]
    assert not wrong, f"{len(wrong)} trials: " + "; ".join(wrong[:20])
