# SPDX-License-Identifier: Apache-2.0
"""Jobs of some hundred cycles for tests that act in every cycle: a stream, and a host's layers.

A trial of a job runs with a script of accesses (timeline) and returns an Outcome: the image of the
result in each slot, the registers, whether the device became idle. A slot is the number of the
image whose golden result it holds, UNTOUCHED, or WRONG.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import UNWRITTEN, Network, Storage
from openkpu_tb.core.registers import (
    AI,
    COUNTERS,
    EIGHT_BIT_MODE,
    FIFO_CTRL,
    FIFO_THRESHOLD,
    INTERRUPT_RAW,
    PERF,
    Ctrl,
)
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.inference_stream import INFERENCES
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.hostile import timeline
from tb.device.hostile.timeline import Script, write

UNTOUCHED, WRONG = -1, -2
LAYERS_DONE = PERF + 8 * COUNTERS.index("layers")
WIDEST = 16  # bytes: results are aligned to any bus word
REST = 8000  # cycles in which every trial becomes idle
FLUSH_OFF, FLUSH_LAYERS = 0x1F, 0x1B  # fifo_ctrl
DEFAULT_THRESHOLDS = 0x1C
AFTER = ("AI_CNN_MODE", "AI_CNN_DONE", "AI_PIX_ADR", "AI_NPIX_ADR", "AI_RES_ADR", "AI_INF_LEFT")
AFTER += ("AI_INT_STATUS", "AI_ERR_CODE", "AI_ERR_INFO", "AI_ERR_ADDR", "AI_STATUS")


@dataclass
class Outcome:
    """Result of a trial."""

    slots: list[int]  # of every slot: image, UNTOUCHED or WRONG
    hung: bool  # still busy after REST cycles
    regs: dict[str, int] = field(default_factory=dict)  # AFTER and interrupt_raw, at rest
    inferences: int = 0
    layers: int = 0

    @property
    def error(self) -> int:
        return self.regs["AI_ERR_CODE"]

    @property
    def brief(self) -> str:
        """One line for a finding."""
        text = "hangs" if self.hung else f"error {self.error}"
        show = {UNTOUCHED: "-", WRONG: "wrong"}
        return f"{text}, slots " + " ".join(show.get(s, str(s)) for s in self.slots)


async def at_rest(device: Device, limit: int = REST) -> bool:
    """Wait until the device is idle; False when it is not within ``limit`` cycles."""
    start = int(device.tb.cycle.value)
    while int(device.tb.cycle.value) - start < limit:
        # two reads: a device that starts late is not at rest
        if not (await device.read(AI["AI_STATUS"])) & 1:
            await device.wait_cycles(12)
            if not (await device.read(AI["AI_STATUS"])) & 1:
                return True
        await device.wait_cycles(40)
    return False


async def tidy(device: Device, hung: bool) -> None:
    """Clear errors and interrupts; hardware reset of a device that hangs.

    No soft reset: state that a job leaves behind by mistake must be able to disturb the next one.
    """
    if hung:
        await device.reset()
    await device.clear()
    await device.write_many({FIFO_CTRL: FLUSH_OFF, FIFO_THRESHOLD: DEFAULT_THRESHOLDS})
    await device.unmask()


async def _registers(device: Device) -> dict[str, int]:
    found = {name: await device.read(AI[name]) for name in AFTER}
    return found | {"interrupt_raw": await device.read(INTERRUPT_RAW)}


def tiny_network(rng: np.random.Generator) -> Network:
    """A convolution with a pool, a pointwise one, a fully connected layer; a few hundred cycles."""
    network, x = Network(eight_bit=True), rng.integers(0, 256, (2, 6, 6)).astype(np.uint8)
    kinds = [
        {"o": 3, "kernel": 3, "pool": 1, "depthwise": False},
        {"o": 3, "kernel": 1, "pool": 0, "depthwise": False},
        {"o": 8, "fc": True},
    ]
    signed = False
    for kind in kinds:
        layer = random_layer(
            rng, x=x, signed_in=signed, eight_bit=True, limits=Limits(), **{"fc": False, **kind}
        )
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
    network.place()
    network.validate()
    return network


def heavy_network(rng: np.random.Generator) -> Network:
    """Layers whose weights do not fit 64 rows of the smallest array, and arrive while the layers
    before compute; some thousand cycles."""
    network, x = Network(eight_bit=True), rng.integers(0, 256, (2, 6, 6)).astype(np.uint8)
    signed = False
    for kind in (
        {"o": 8, "kernel": 3, "pool": 0},
        {"o": 16, "kernel": 3, "pool": 2},
        {"o": 16, "kernel": 3, "pool": 0},
        {"o": 8, "fc": True},
    ):
        fixed = {"depthwise": False, "fc": False, **kind}
        layer = random_layer(rng, x=x, signed_in=signed, eight_bit=True, limits=Limits(), **fixed)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
    network.place()
    network.validate()
    return network


class StreamJob:
    """A tiny network over ``count`` of the images in storage, from a base address.

    There are as many result slots as images; the job uses the first ones.
    """

    def __init__(
        self,
        device: Device,
        rng: np.random.Generator,
        count: int,
        images: int = 8,
        base: int = 0,
        make: Callable[[np.random.Generator], Network] = tiny_network,
    ) -> None:
        self.device, self.count, self.base = device, count, base
        while True:  # results of different images must differ
            self.network = make(rng)
            self.images = rng.integers(0, 256, (images, *self.network.in_shape), dtype=np.uint8)
            golden = [self.network.run(x).y.view(np.uint8).reshape(-1) for x in self.images]
            self.golden = np.stack(golden)
            if len(np.unique(self.golden, axis=0)) == images:
                break
        self.storage: Storage = self.network.storage(
            self.images, base=base, continuous=count > 1, align=WIDEST
        )
        self.registers = dict(self.storage.registers)
        self.registers["AI_INF_LEFT"] = count - 1
        self.first_slot = self.storage.results[0]
        self.stride = self.registers["AI_RES_STRIDE"]

    @property
    def clean(self) -> list[int]:
        """The slots of an undisturbed run."""
        return [n if n < self.count else UNTOUCHED for n in range(len(self.images))]

    def image(self, number: int) -> int:
        """Address of an image's pixels."""
        return self.registers["AI_PIX_ADR"] + number * self.registers["AI_PIX_STRIDE"]

    def slot(self, number: int) -> int:
        """Address of a result."""
        return self.first_slot + number * self.stride

    async def place(self) -> None:
        """Write the job to storage."""
        await self.device.back.load_storage(self.base, self.storage.data)

    async def arm(self) -> None:
        """Empty the slots, write the registers."""
        size = self.stride * len(self.images)
        await self.device.back.load_storage(
            self.first_slot, np.full(size, UNWRITTEN, dtype=np.uint8)
        )
        await self.device.configure(self.registers)

    async def slots(self) -> list[int]:
        """The contents of the slots: image, UNTOUCHED or WRONG."""
        size = self.golden.shape[1]
        data, unknown = await self.device.back.read_storage(
            self.first_slot, self.stride * len(self.images)
        )
        found = []
        for n in range(len(self.images)):
            part = slice(n * self.stride, n * self.stride + size)
            row, bad = data[part], unknown[part].any()
            same = np.nonzero((self.golden == row).all(axis=1))[0]
            found.append(
                WRONG
                if bad
                else int(same[0])
                if same.size
                else UNTOUCHED
                if (row == UNWRITTEN).all()
                else WRONG
            )
        return found

    async def begun(self, n: int) -> bool:
        """Does slot ``n`` hold the beginning of its own result, with the rest untouched?"""
        size = self.golden.shape[1]
        row, unknown = await self.device.back.read_storage(self.slot(n), size)
        whole = int((row == self.golden[n]).cumprod().sum())  # longer if bytes are equal by chance
        return not unknown.any() and bool((row[whole:] == UNWRITTEN).all())

    async def trial(self, script: Script, *, start: bool = True, keep: bool = False) -> Outcome:
        """Arm, start in cycle 0 of the script, wait for rest. ``keep``: leave the state as it is.

        A device that hangs gets a hardware reset.
        """
        device = self.device
        await self.arm()
        begin = {0: write(AI["AI_CTRL"], Ctrl.START)} if start else {}
        await timeline.play(device, timeline.merged(begin, script))
        outcome = await self.outcome()
        if not keep:
            await tidy(device, outcome.hung)
        return outcome

    async def outcome(self) -> Outcome:
        """Wait for rest; returns the outcome."""
        device = self.device
        hung = not await at_rest(device)
        found = Outcome(await self.slots(), hung, await _registers(device))
        found.inferences = await device.read(INFERENCES)
        found.layers = await device.read(LAYERS_DONE)
        return found

    async def clean_run(self) -> str:
        """An undisturbed run; returns its fault, or an empty string."""
        outcome = await self.trial({})
        good = outcome.slots == self.clean and not outcome.error and not outcome.hung
        return "" if good else f"the next job: {outcome.brief}"

    async def watch(self, addr: int, cycles: int) -> list[tuple[int, int]]:
        """Read a register in every cycle of an undisturbed run, from the start's cycle on."""
        script = timeline.watching(addr, 1, cycles)
        await self.trial(script)
        return timeline.values(script, addr)


@dataclass
class Moments:
    """Cycles of the events in an undisturbed run, counted from the start's write."""

    taken: list[int]  # the address of the pixels is latched: of each inference, 0 for the first
    layers: list[int]  # a layer completes
    changes: list[int]  # the next inference begins
    done: list[int]  # an inference completes
    rest: int  # the device is idle

    @property
    def all(self) -> dict[str, int]:
        """Every moment, by name."""
        named = {"start": 0, "rest": self.rest}
        for kind in ("taken", "layers", "changes", "done"):
            named |= {f"{kind} {i}": at for i, at in enumerate(getattr(self, kind))}
        return named


async def moments(job: StreamJob) -> Moments:
    """Find the moments of a job; its undisturbed run must be right."""
    await job.arm()
    start = await timeline.play(job.device, {0: write(AI["AI_CTRL"], Ctrl.START)})
    assert await at_rest(job.device), "the job hangs"
    cycles = int(job.device.tb.cycle.value) - start
    assert await job.slots() == job.clean, "the job is wrong"
    await tidy(job.device, hung=False)
    status = await job.watch(AI["AI_STATUS"], cycles)
    taken = await job.watch(AI["AI_TAKEN_ADR"], cycles)
    ahead = [s for s in taken if s[1] != job.image(0)]
    ahead = [s for s in ahead if s[0] > next(c for c, a in taken if a == job.image(0))]
    return Moments(
        [0, *timeline.changes([(0, 0), *ahead])],
        timeline.changes(await job.watch(LAYERS_DONE, cycles)),
        timeline.changes(await job.watch(AI["AI_INF_LEFT"], cycles)),
        timeline.changes(await job.watch(INFERENCES, cycles)),
        timeline.falls(status, 0)[-1],
    )


class LayerJob:
    """Layers that the host pushes, each on a map of its own; every result must be exact."""

    def __init__(self, device: Device, rng: np.random.Generator, count: int, row: int = 0) -> None:
        """``row``: of the AI RAM, where the maps begin."""
        self.device = device
        self.layers: list[VectorLayer] = []
        for _ in range(count):
            layer = random_layer(
                rng, c=2, h=5, w=6, o=3, kernel=3, pool=0, depthwise=False, fc=False,
                eight_bit=True, src=row, dst=row + 64,
            )  # fmt: skip
            self.layers.append(layer)
            row += 128
        self.words: list[list[int]] = []

    async def place(self) -> None:
        """Write the tables to storage; make the words of the layers."""
        at, self.words = 0x108, []
        for layer in self.layers:
            tables = Tables(layer.weights, layer.bn, layer.act)
            arg = await self.device.place_tables(layer.arg, tables, at)
            at += 0x800
            arg = arg.replace(int_en=1, send_data_out=0)
            self.words.append([int(w) for w in arg.encode()])

    async def arm(self) -> None:
        """Write input maps to the AI RAM, empty the output maps."""
        for layer in self.layers:
            await self.device.load_map(layer.arg.in_layout, layer.x)
            out = layer.arg.out_layout
            empty = np.full(out.rows * 64, UNWRITTEN, dtype=np.uint8)
            await self.device.back.load_ram(out.base, empty)
        await self.device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})

    def pushes(self, first: int = 0, last: int | None = None) -> list:
        """The writes that push the layers from ``first`` to before ``last``."""
        halves = []
        for words in self.words[first:last]:
            for word in words:
                halves += [write(0, word), write(4, word >> 32)]
        return halves

    async def slots(self) -> list[int]:
        """Of every layer: its number when its map is exact, UNTOUCHED, or WRONG."""
        found = []
        for number, layer in enumerate(self.layers):
            y, unknown = await self.device.read_map(layer.arg.out_layout)
            exact = not unknown.any() and (y == layer.y.view(np.uint8)).all()
            empty = (y == UNWRITTEN).all()
            found.append(number if exact else UNTOUCHED if empty else WRONG)
        return found

    async def trial(self, script: Script, *, keep: bool = False) -> Outcome:
        """Arm, play the script (pushes included), wait for rest."""
        await self.arm()
        await timeline.play(self.device, script)
        hung = not await at_rest(self.device)
        outcome = Outcome(await self.slots(), hung, await _registers(self.device))
        outcome.layers = await self.device.read(LAYERS_DONE)
        if not keep:
            await tidy(self.device, hung)
        return outcome

    async def clean_run(self) -> str:
        """Push all layers without other accesses; returns the fault, or an empty string."""
        outcome = await self.trial(timeline.burst(0, self.pushes()))
        good = outcome.slots == list(range(len(self.layers))) and not outcome.error
        return "" if good and not outcome.hung else f"the next job: {outcome.brief}"


def share(cases: Iterable, most: int = 10_000) -> list:
    """All of the cases, or ``most`` of them by the seed; a handful on the slow simulator."""
    cases = list(cases)
    most = min(most, 6) if SLOW else most
    if len(cases) <= most:
        return cases
    return [cases[i] for i in sorted(rng(len(cases)).choice(len(cases), most, replace=False))]


async def stream_job(device: Device, count: int, base: int = 0, images: int = 8) -> StreamJob:
    job = StreamJob(device, rng(), count, images=images, base=base)
    await job.place()
    return job


async def layer_job(device: Device, count: int) -> LayerJob:
    job = LayerJob(device, rng(1), count, row=2048)  # no list uses these
    await job.place()
    return job
