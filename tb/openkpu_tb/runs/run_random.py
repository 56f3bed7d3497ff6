# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of the random layers: every case by its way, then both memories compared."""

import cocotb
import numpy as np

from openkpu.arithmetic.words import to_stored
from openkpu.network.kept import spare_register
from openkpu.network.network import NetworkRun
from openkpu_tb.core.registers import AI, Err
from openkpu_tb.coverage import collector, float16
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout, Tables
from openkpu_tb.device.events import Say
from openkpu_tb.device.inference_stream import StreamRun, run_one_by_one, run_stream
from openkpu_tb.device.shadow import Shadow
from openkpu_tb.device.spare import NONE, SpareRows
from openkpu_tb.runs.requests import RandomCase, RandomRequest
from openkpu_tb.runs.run_stream import DISTURBED

RECOMPUTED = (8, 9)  # pools whose stripes overlap: the array does some pixels twice
GIVE_UP = 3  # cases that may fail before the rest is left out


class RandomRun:
    """Runs cases one after the other on one device."""

    def __init__(self, device: Device, seed: int) -> None:
        self.device = device
        self.rng = np.random.default_rng(seed)
        self.shadow = Shadow(device.tb)
        self.broken = int(device.tb.assert_errors.value)
        device.back = self.shadow

    async def case(self, case: RandomCase) -> tuple[list[str], dict[str, int]]:
        """What is wrong with a case, and the counters at its end."""
        if case.seed is not None:
            self.rng = np.random.default_rng(case.seed)
            self.device.rng = np.random.default_rng(case.seed + 1)
        self._disturb(case.disturb)
        limit = case.limit * (8 if case.disturb else 1)
        runs: list[NetworkRun] = []
        wrong: list[str] = []
        counters: dict[str, int] = {}
        rows = case.spare or SpareRows(case.network.spare_rows(self.shadow.ram_rows))
        try:
            wrong += await self._spare(rows)
            if case.way == "host":
                await self._host(case, limit, runs)
                counters = await self.device.counters()
                # the host's way counts on from layer to layer
                before, self.before = self.before, counters
                counters = {name: n - before[name] for name, n in counters.items()}
            else:
                run = await self._network(case, limit, runs, rows.part)
                counters = run.counters
                self.before = counters
                if run.wrong.any() or len(run.ends) != len(case.images):
                    wrong.append(f"bytes that differ in the results: {run.wrong.tolist()}")
            wrong += _counters(case, runs, counters)
            _note(case)
        except (DeviceError, DeviceTimeout) as error:
            wrong.append(str(error))
            await self.device.reset()
            self.before = dict.fromkeys(await self.device.counters(), 0)
        wrong += await self.shadow.differences()
        broken, self.broken = self.broken, int(self.device.tb.assert_errors.value)
        if self.broken != broken:
            wrong.append(f"bus rules broken {self.broken - broken} times")
        return wrong, counters

    async def start(self) -> None:
        """Random memories; counters at what they are."""
        await self.shadow.fill(self.rng)
        self.before = await self.device.counters()

    def _disturb(self, on: bool) -> None:
        tb, rng = self.device.tb, self.rng
        tb.cfg_seed.value = int(rng.integers(1, 1 << 32))
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = value if on else 0
        for name in ("rd", "seq", "wr"):
            getattr(tb, f"cfg_{name}_wait").value = int(rng.integers(0, 3)) if on else 0

    async def _host(self, case: RandomCase, limit: int, runs: list[NetworkRun]) -> None:
        (arg,), network = case.network.layers, case.network
        tables = Tables(*network.tables(arg))
        device = self.device
        await device.run_layer(
            arg, tables, case.images[0], eight_bit=network.eight_bit, limit=limit
        )
        runs.append(network.run(case.images[0], ram=self.shadow.ram))
        await device.back.forget_perf()

    async def _spare(self, rows: SpareRows) -> list[str]:
        """Write AI_SPARE_ROWS; rows that do not exist change nothing."""
        device, wrong = self.device, []
        has = bool(int(device.tb.weights_wait.value))
        await device.spare(rows.part)
        self.shadow.expect_weights(rows.part if has else NONE)
        if rows.beyond:
            await device.spare(rows.beyond)
            error = await device.error()
            if (error.code if error else 0) != (Err.BAD_CONFIG if has else 0):
                wrong.append(f"rows {rows.beyond}: {error or 'no error'}")
            await device.clear()
        held, want = await device.read(AI["AI_SPARE_ROWS"]), spare_register(rows.part) * has
        return wrong + [f"AI_SPARE_ROWS is {held:#x}, expected {want:#x}"] * (held != want)

    async def _network(
        self, case: RandomCase, limit: int, runs: list[NetworkRun], spare: tuple[int, int]
    ) -> StreamRun:
        network, images = case.network, case.images
        base = 16 * int(self.rng.integers(0, 1000))
        storage = network.storage(images, base=base, continuous=True, align=16)
        runs += [network.run(x, ram=self.shadow.ram, bring=not n) for n, x in enumerate(images)]
        golden = np.stack([run.stored for run in runs])
        way = run_stream if case.way == "stream" else run_one_by_one
        found = await way(
            self.device, network, images, limit=limit, base=base, golden=golden, spare=spare
        )
        for at, run in zip(storage.results, runs, strict=True):
            self.shadow.expect_result(at, run.stored)
            for number, place in storage.stored.items():
                y, words = run.layers[number].y.view(np.uint8), network.layers[number].out32
                self.shadow.expect_result(place, to_stored(y, bool(words)))
        return found


def _note(case: RandomCase) -> None:
    """Report the numbers of a product of float16 to the functional coverage."""
    (arg, *more), network = case.network.layers, case.network
    for image in case.images if arg.fp16 and not more else ():
        weights, *_ = network.tables(arg)
        collector.note(float16.sample(weights, image, arg.o_ch_num, bool(arg.fp32)))


def _counters(case: RandomCase, runs: list[NetworkRun], counters: dict[str, int]) -> list[str]:
    """The sums that the counters violate."""
    wrong = []
    busy = counters["array_busy"] + sum(v for k, v in counters.items() if k.startswith("stall_"))
    if counters["total"] != busy:
        wrong.append(f"total {counters['total']} is not array and stalls, {busy}")
    counted = runs if case.way == "stream" else runs[-1:]  # a start empties the counters
    if all(arg.pool_type not in RECOMPUTED for arg in case.network.layers):
        needed = sum(run.macs for run in counted), sum(run.macs_gated for run in counted)
        issued = counters["macs_issued"], counters["macs_gated"]
        if issued != needed:
            wrong.append(f"multiplications issued and gated {issued}, needed {needed}")
    layers = len(counted) * len(case.network.layers)
    if counters["layers"] != layers:
        wrong.append(f"{counters['layers']} layers counted, expected {layers}")
    return wrong


async def run_random(device: Device, request: RandomRequest, say: Say) -> None:
    """All cases of the request; an event "case" for each, until too many have failed.

    The event of a case says how many cycles it took.
    """
    run = RandomRun(device, cocotb.RANDOM_SEED)
    await run.start()
    failed = 0
    for index, case in enumerate(request.cases):
        before = int(device.tb.cycle.value)
        wrong, counters = await run.case(case)
        kept, cycles = counters.get("inf_kept", 0), int(device.tb.cycle.value) - before
        say("case", index=index, wrong=wrong, kept=kept, cycles=cycles)
        failed += bool(wrong)
        if failed == GIVE_UP:
            break
    tb = device.tb
    say("bus", refusals=int(tb.refusals.value), losses=int(tb.losses.value))
