# SPDX-License-Identifier: Apache-2.0
"""A K210 model on the simulated device: every KPU layer by the driver, all else in numpy.

Events: ``beat``, ``done``, ``layer``, ``fetch``, ``failure``, ``run``: a run's cycles from the
host's first access to the last byte of the result, how many of them the host moved maps, how many
bytes of maps that were, and how many the device moved.
"""

import cocotb
import numpy as np

from openkpu.compare import difference
from openkpu.files import save_arrays
from openkpu.kmodel import (
    Fetch,
    KpuOutcome,
    LayerEvent,
    Program,
    Segment,
    keep_all,
    loads_functions,
    loads_kmodel,
    walk,
)
from openkpu.kmodel.residence.map_plan import segment_parts
from openkpu.layer.layout import map_bytes
from openkpu.prediction.roofline import layer_cycles
from openkpu.prediction.spare import rows_of_programs
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout
from openkpu_tb.device.driver import Driver
from openkpu_tb.device.events import Say, counts
from openkpu_tb.runs.requests import ModelRequest
from openkpu_tb.runs.run_network import watch_layers

LIMIT = 60  # a segment may take so many times its roofline, and 50,000 cycles more


def read_programs(request: ModelRequest) -> tuple[list[Program], bytes]:
    """The model, or its KPU functions, and the bytes that storage holds; KmodelError as the readers
    raise it.  Maps stay in the AI RAM where they can, if the request says so."""
    file, functions = request.file, request.functions
    if functions:
        programs = loads_functions(file, request.name)
    else:
        programs = [loads_kmodel(file, request.name, request.numbering)]
    if not request.resident:
        return programs, file
    programs, tail = keep_all(programs, len(file), request.config, request.rounding)
    return programs, file + tail


class ModelRun:
    """Runs programs on the device, segment by segment."""

    def __init__(self, device: Device, driver: Driver, request: ModelRequest, say: Say) -> None:
        self.device, self.driver, self.request, self.say = device, driver, request, say
        self.config = request.config
        self.before = np.zeros(len(COUNTERS), dtype=np.uint64)
        self.run = self.part = 0  # which picture, which program
        self.offset = 0  # layers of the programs before
        self.maps: dict[str, np.ndarray] = {}  # of every layer, as they lay in the AI RAM

    async def program(self, program: Program, inputs: list[np.ndarray], offset: int) -> dict:
        """One run of a program; its outputs by name."""
        self.offset = offset
        chosen = None
        if self.request.layers is not None:
            first, last = self.request.layers
            chosen = range(first - offset, last - offset + 1)
        walker = walk(
            program,
            inputs,
            hook=self.hook,
            layers=chosen,
            compare=True,
            rounding=self.request.rounding,
        )
        answer: list | None = None
        while True:
            try:
                asked = walker.send(answer)
            except StopIteration as stop:
                return stop.value.outputs
            if isinstance(asked, Segment):
                answer = await self.segment(asked)
            else:
                answer = await self.fetch(asked)

    async def segment(self, segment: Segment) -> list[KpuOutcome]:
        """Layers on the device; outcomes hold maps as they lay in the AI RAM, and counters."""
        device, steps = self.device, segment.steps
        eight_bit = steps[0].eight_bit
        limit = 50_000 + LIMIT * sum(
            layer_cycles(self.config, s.arg, eight_bit=eight_bit) for s in steps
        )
        limit += LIMIT * sum(map_bytes(s) for t in steps for s in (t.arg.in_shape, t.arg.out_shape))
        maps: list = []
        args = [s.arg for s in steps]

        def done(number: int) -> None:
            self.say("done", index=self.offset + steps[number].index)

        def beat(cycles: int) -> None:
            index = self.offset + steps[min(len(maps), len(steps) - 1)].index
            self.say("beat", index=index, cycles=cycles)

        watcher = cocotb.start_soon(watch_layers(device, args, maps, done))
        found = await self.driver.run(self.request.via, segment, limit, beat)
        records = await device.back.perf_records()
        await device.back.forget_perf()
        watcher.cancel()
        if not len(maps) == len(records) == len(steps):
            raise DeviceTimeout(f"{len(maps)} layers finished instead of {len(steps)}")
        # the start of a task list empties the counters
        fresh = (
            {part[0] for part in segment_parts(segment.to_main)}
            if self.request.via == "tasks"
            else set()
        )
        outcomes = []
        for i, (step, (seen, unknown), row) in enumerate(zip(steps, maps, records, strict=True)):
            before = np.zeros_like(row) if i in fresh else self.before
            info = {"counters": counts(row, before), "seen": seen, "unknown": unknown}
            self.before = row
            self.driver.learn(step.arg.out_layout, seen)
            outcomes.append(KpuOutcome(found.get(i, seen), info=info))
        return outcomes

    async def fetch(self, fetch: Fetch) -> list[np.ndarray] | None:
        """Maps that the CPU reads back; None when the device did not make them."""
        maps, layout = [], fetch.layout
        for number in range(fetch.count):
            place = type(layout)(
                layout.channels, layout.height, layout.width, layout.base + number * layout.rows
            )
            if not self.driver.holds(place):
                return None
            maps.append(await self.driver.download(place))
            wrong = int((maps[-1] != self.driver.known_map(place)).sum())
            if wrong:
                self.say("fetch", row=place.base, mismatching_bytes=wrong)
        return maps

    def hook(self, event: LayerEvent) -> None:
        """A finished layer: compared with the golden model on the same input map."""
        if not event.selected:
            return
        assert event.golden is not None and event.expected is not None, "walk compares"
        seen, unknown = event.info["seen"], event.info["unknown"].astype(bool)
        # as it lay in the AI RAM, and as the host was given it
        wrong, first = difference(seen, event.expected, unknown=unknown | (event.y != seen))
        self.maps[f"{self.run}/{self.offset + event.index}/{event.step.batch}"] = seen
        self.say(
            "layer",
            run=self.run,
            part=self.part,
            index=self.offset + event.index,
            batch=event.step.batch,
            counters=event.info["counters"],
            macs=event.golden.macs,
            macs_gated=event.golden.macs_gated,
            mismatching_bytes=wrong,
            first=first,
        )


async def run_model(device: Device, request: ModelRequest, say: Say) -> None:
    """All runs of a request; ends at the first error that the device reports."""
    programs, file = read_programs(request)
    driver = Driver(device, file, fast=request.fast, maps=request.map_moves)
    await driver.load_file()
    await device.spare(rows_of_programs(request.config, programs))
    model = ModelRun(device, driver, request, say)
    outputs: dict[str, np.ndarray] = {}
    try:
        for model.run, inputs in enumerate(request.inputs):
            offset = 0
            driver.forget()
            for model.part, (program, values) in enumerate(zip(programs, inputs, strict=True)):
                found = await model.program(program, values, offset)
                offset += len(program.kpu_layers)
                outputs |= {f"{model.run}/{model.part}/{n}": v for n, v in found.items()}
            cycles = driver.ended - (driver.began or 0)
            moved = {"moved": driver.moved, "moved_by_host": driver.moved_by_host}
            moved["host_cycles"] = driver.host_cycles
            say("run", run=model.run, cycles=cycles, **moved)
    except (DeviceError, DeviceTimeout) as error:
        say("failure", run=model.run, text=str(error))
    save_arrays(request.outputs, outputs)
    if request.maps:
        save_arrays(request.maps, model.maps)
