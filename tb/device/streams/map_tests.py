# SPDX-License-Identifier: Apache-2.0
"""Layers of the host that load and store their maps (docs/kpu.md 1.13).

Several tasks of all kinds are pushed at once, each with or without a map of its own in storage.
All of AI RAM and storage is compared. Then faults: a task of each kind that is refused, a map's
transfer with an ERROR or outside of the windows, a soft reset in any cycle.
"""

import functools
from dataclasses import dataclass

import numpy as np

from openkpu.arithmetic.words import to_stored
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import ROW_BYTES, Layout
from openkpu.network.network import Network, Storage
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, Ctrl, Err
from openkpu_tb.device import simulation
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import host_layers
from openkpu_tb.device.shadow import Shadow
from openkpu_tb.device.simulation import SLOW
from tb.device.checked import checked
from tb.device.hostile.timeline import Findings

plain_layer = functools.partial(
    random_layer, depthwise=False, fc=False, eight_bit=True, signed_in=False
)
LIMIT = 200_000  # cycles of all layers of a job
PIXELS, RESULT = 3, 4  # AI_ERR_INFO.stream
TASKS = (1, 4)  # of a job, least and most
SPOILT: dict[str, tuple[dict[str, int], ...]] = {
    "convolution": ({"kernel_type": 5}, {"load_time": 63}),
    "fully connected": ({"pool_type": 1}, {"depth_wise_layer": 1}),
    "product": ({"pool_type": 1}, {"fc": 1}),
    "element-wise": ({"kernel_type": 0}, {"depth_wise_layer": 0}),
    "pool": ({"pool_task": 7}, {"fc": 1}),
}


@dataclass
class Job:
    """Layers for the host to push, and the data they use."""

    network: Network
    image: np.ndarray
    storage: Storage
    args: list[LayerArg]  # with absolute addresses

    @property
    def words(self) -> list[int]:
        return [int(word) for arg in self.args for word in arg.encode()]

    def maps(self, what: str) -> list[int]:
        """Numbers of the layers with load_map, or store_map."""
        return [i for i, arg in enumerate(self.args) if getattr(arg, f"{what}_map")]


def draw(
    rng: np.random.Generator, shadow: Shadow, *, last: str | None = None, all_move: bool = False
) -> Job:
    """Tasks of random kinds, followed by ``last``; the first one loads its map, the last one stores
    its map."""
    count = int(rng.integers(TASKS[0], TASKS[1] + 1))
    kinds = [str(rng.choice(KINDS)) for _ in range(count)] + ([last] if last else [])
    shape = tuple(int(n) for n in rng.integers((1, 2, 2), (8, 9, 40)))
    if rng.random() < 0.4:  # in several bands, where it is a convolution
        kinds[0] = "convolution"
        wide = rng.random() < 0.5
        least, most = ((1, 2, 64), (4, 13, 150)) if wide else ((1, 9, 3), (10, 30, 64))
        shape = tuple(int(n) for n in rng.integers(least, most))
    network, image = random_list(
        rng,
        kinds,
        shape,
        limits=Limits(channels=8, size=20),
        ram_rows=shadow.ram_rows,
        moves=1.0 if all_move else 0.5,
    )
    storage = network.storage(
        image[None], base=16 * int(rng.integers(100)), align=16, pixel_offset=int(rng.integers(16))
    )
    return pushed(network, image, storage)


def pushed(network: Network, image: np.ndarray, storage: Storage) -> Job:
    """A network as layers of the host: the first loads the image, the last stores its map."""
    return Job(network, image, storage, host_layers(network, storage))


async def place(device: Device, job: Job) -> None:
    """Write the job's data to storage."""
    await device.back.load_storage(job.storage.base, job.storage.data)
    await device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})


def expect(shadow: Shadow, job: Job, layers: int | None = None, stored: int | None = None) -> None:
    """Update both memories for ``layers`` layers (default: all); ``stored`` of them store maps."""
    count = len(job.args) if layers is None else layers
    part = Network(
        job.network.layers[:count],
        job.network.weights,
        job.network.biases,
        loaded=job.network.loaded,
    )
    if not count:
        return
    run = part.run(job.image, ram=shadow.ram)
    for i in range(count if stored is None else stored):
        arg = job.args[i]
        if arg.store_map:
            y = run.layers[i].y.view(np.uint8)
            shadow.expect_result(arg.map_store_addr, to_stored(y, bool(arg.out32)))


async def run(device: Device, shadow: Shadow, job: Job) -> list[str]:
    """Run the job without a fault; returns the mismatches."""
    await place(device, job)
    await device.push(job.words)
    await device.finish(LIMIT)
    await device.back.forget_perf()
    expect(shadow, job)
    return await shadow.differences()


async def afterwards(
    device: Device, shadow: Shadow, job: Job, good: list[LayerArg], layers: int, stored: int
) -> list[str]:
    """Mismatches after an error: ``layers`` layers have completed, ``stored`` of them stored their
    maps; then the job runs without the fault, with the arguments ``good``."""
    await device.soft_reset()
    expect(shadow, job, layers, stored)
    if layers > stored:  # its map leaves while it computes: the stored part is unspecified
        out = job.args[stored].out_layout
        rows, _ = await shadow.read_ram(out.base, out.rows)
        shadow.ram[ROW_BYTES * out.base :][: rows.size] = rows
    wrong = await shadow.differences()
    job.args = good
    return [*wrong, *(f"then: {line}" for line in await run(device, shadow, job))]


async def filled(device: Device) -> tuple[Shadow, np.random.Generator]:
    """Random bytes in both memories; the device's back door tracks copies from now on."""
    device.back = shadow = Shadow(device.tb)
    await shadow.fill(simulation.rng())
    return shadow, simulation.rng(1)


@checked()
async def bursts(tb, device: Device) -> None:
    """Tasks of all kinds, pushed at once, on a bus without and with waits and lost grants."""
    shadow, rng = await filled(device)
    found = Findings("bursts with maps in storage")
    moved = {"load": 0, "store": 0}
    for number in range(8 if SLOW else 60):
        disturbed = number % 2
        tb.cfg_rd_wait.value, tb.cfg_wr_wait.value = 2 * disturbed, disturbed
        tb.cfg_loss_prob.value, tb.cfg_retry_prob.value = 40 * disturbed, 30 * disturbed
        job = draw(rng, shadow)
        for what in moved:
            moved[what] += len(job.maps(what))
        wrong = await run(device, shadow, job)
        found.check(not wrong, f"{number}: {'; '.join(wrong)} [{job.args}]")
    # each job loads a map and stores one; some jobs move more
    assert sum(moved.values()) > 2 * (8 if SLOW else 60), moved
    found.verdict()


@checked()
async def lines_that_nobody_needs(tb, device: Device) -> None:
    """A layer that does not read the last lines of its map still waits for them: otherwise they
    would overwrite the next layer's output."""
    shadow, rng = await filled(device)
    found = Findings("lines that nobody needs")
    names = ("rd_wait", "seq_wait")
    for wait in (3,) if SLOW else (0, 3, 9):
        for name in names:
            getattr(tb, f"cfg_{name}").value = wait
        for pool, height in ((7, 8), (5, 6), (7, 16)):
            x = rng.integers(0, 256, (2, height, 70), dtype=np.uint8)
            rows = Layout(*x.shape).rows
            first = plain_layer(rng, x=x, o=1, kernel=3, pool=pool)
            second = plain_layer(rng, x=first.y.view(np.uint8), o=2, kernel=1, pool=0)
            network = Network()
            tables = [(made.weights, made.bn, made.act) for made in (first, second)]
            behind = rows + 8
            network.add(first.arg.replace(image_src_addr=4, image_dst_addr=behind), *tables[0])
            # from the last line of the map on
            over = 4 + rows - Layout(*second.arg.out_shape).rows
            network.add(second.arg.replace(image_src_addr=behind, image_dst_addr=over), *tables[1])
            job = pushed(network, x, network.storage(x[None], base=0x400, align=16))
            wrong = await run(device, shadow, job)
            found.check(not wrong, f"pool {pool} of {height} lines, waits {wait}: {wrong}")
    for name in names:
        getattr(tb, f"cfg_{name}").value = 0
    found.verdict()


@checked()
async def each_kind_refused(device: Device) -> None:
    """A task of each kind with a fault of its own: the tasks before it complete and store their
    maps, it does nothing, and its number is reported with the golden model's error code."""
    shadow, rng = await filled(device)
    found = Findings("faults of tasks")
    for kind, faults in SPOILT.items():
        for fault in faults[:1] if SLOW else faults:
            job = draw(rng, shadow, last=kind)
            good, at = list(job.args), len(job.args) - 1
            job.args[at] = good[at].replace(**fault)
            code = job.args[at].device_code(ram_rows=shadow.ram_rows)
            assert code, f"{kind}: {fault} is legal: {job.args[at]}"
            await place(device, job)
            await device.push(job.words)
            error = await device.refusal(LIMIT)
            said = (error.code, error.layer) == (code, at)
            found.check(said, f"{kind}, {fault}: {error}, expected {code} of layer {at}")
            wrong = await afterwards(device, shadow, job, good, at, at)
            found.check(not wrong, f"{kind}, {fault}: {'; '.join(wrong)}")
    found.verdict()


@checked()
async def failed_transfers(tb, device: Device) -> None:
    """An ERROR or a window stops a map's transfer: stream, layer and address are reported."""
    shadow, rng = await filled(device)
    found = Findings("transfers of maps that fail")
    for number in range(4 if SLOW else 32):
        load, window = number % 2 == 0, number // 2 % 2 == 1
        job = draw(rng, shadow)
        at = int(rng.choice(job.maps("load" if load else "store")))
        arg = job.args[at]
        # behind everything else: nothing but this map is there
        place_at = (shadow.storage.size - 0x1000) // 1024 * 1024
        field = "map_load_addr" if load else "map_store_addr"
        good = list(job.args)
        job.args[at] = arg.replace(**{field: place_at})
        await place(device, job)
        register = AI["AI_READ_LAST" if load else "AI_WRITE_LAST"]
        if window:
            await device.write(register, place_at - 1024)
        else:
            tb.cfg_err_lo.value, tb.cfg_err_hi.value = place_at, shadow.storage.size
        await device.push(job.words)
        error = await device.refusal(LIMIT)
        code = Err.BAD_ACCESS if window else Err.BUS_ERROR
        reported = error.code, error.layer, error.stream, error.addr
        want = code, at, PIXELS if load else RESULT, place_at
        found.check(reported == want, f"{number}: {error}, expected {want}")
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = (1 << 32) - 1, 0
        await device.write(register, 0xFFFFFFFF)
        wrong = await afterwards(device, shadow, job, good, at if load else at + 1, at)
        found.check(not wrong, f"{number}: {'; '.join(wrong)}")
    found.verdict()


@checked()
async def resets(tb, device: Device) -> None:
    """A soft reset in any cycle of a job whose layers all move maps; the job then runs exactly."""
    shadow, rng = await filled(device)
    found = Findings("soft resets")
    job = draw(rng, shadow, all_move=True)
    start = int(tb.cycle.value)
    wrong = await run(device, shadow, job)
    found.check(not wrong, f"undisturbed: {'; '.join(wrong)}")
    cycles = int(tb.cycle.value) - start
    for number in range(5 if SLOW else 150):
        cycle = int(rng.integers(cycles))
        await place(device, job)
        await device.push(job.words)
        await device.wait_cycles(cycle)
        await device.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
        await device.soft_reset()
        await device.clear()
        await shadow.differences()
        wrong = await run(device, shadow, job)
        found.check(not wrong, f"{number}, reset after {cycle} cycles: {'; '.join(wrong)}")
    found.verdict()
