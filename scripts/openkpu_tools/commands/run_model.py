# SPDX-License-Identifier: Apache-2.0
"""An unmodified K210 model and a picture: every KPU layer on the RTL, then what the model says."""

import argparse
import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from openkpu import compare
from openkpu.arithmetic.activation import ROUNDINGS
from openkpu.kmodel import (
    KmodelError,
    LayerEvent,
    Program,
    keep_all,
    loads_functions,
    loads_kmodel,
    parse_layers,
    read_model,
    run_kmodel,
)
from openkpu.kmodel.images import FLOAT_SCALE, image_input, input_shape, open_image
from openkpu.kmodel.residence.map_plan import ALIGN
from openkpu.kmodel.results.results import Box, draw_boxes, hint, load_detector, span
from openkpu.kmodel.results.results import report as look
from openkpu.layer.layout import map_bytes
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import ModelRequest
from openkpu_tools import report, rtl
from openkpu_tools.command import option, writing
from openkpu_tools.commands.end_to_end import BY_DEVICE, BY_HOST, CLOCK, EndToEnd
from openkpu_tools.commands.model_table import Layer, Table

SEED = 210  # of the random maps that functions run on
STORAGE_SLACK = 4096  # bytes in storage besides file, task list and two maps


@dataclasses.dataclass
class Run:
    """One picture, or one set of random maps."""

    title: str
    inputs: list[list[np.ndarray]]  # by program, by input
    picture: Any = None  # the image as it was opened
    outputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


class Job:
    """Everything that a command about a model needs."""

    def __init__(self, args: argparse.Namespace) -> None:
        """KmodelError for whatever is wrong with file, picture or options."""
        self.args = args
        model = read_model(args.model)
        self.file, self.name, self.note = model.data, model.name, model.note
        self.programs = self._programs()
        self.tail = 0  # bytes of tables behind the file
        if args.maps == "dma":
            size = len(self.file)
            self.programs, tail = keep_all(self.programs, size, args.config, args.rounding)
            self.tail = len(tail)
        for program in self.programs:
            program.check_device(
                ram_rows=args.config.ai_ram_rows,
                weight_bits=args.config.weight_bits,
                weight_rows=args.config.wbuf_rows,
                n_z=args.config.n_z,
            )
        self.layers = self._number()
        if not self.layers:
            raise KmodelError(f"{self.name}: no KPU layers")
        count = len(self.layers)
        self.chosen = parse_layers(args.layers, count) if args.layers else range(count)
        self.detector = load_detector(args.detector) if args.detector else None
        self.runs = self._runs()

    def _programs(self) -> list[Program]:
        """The model, or its KPU functions."""
        if self.args.functions:
            return loads_functions(self.file, self.name)
        try:
            return [loads_kmodel(self.file, self.name, self.args.numbering)]
        except KmodelError as err:
            if self.file[:8] == b"LDMK\x05\0\0\0":
                hint = f"; {option('functions', True)} runs its KPU functions one by one"
                raise KmodelError(f"{err}{hint}", err.offset) from None
            raise

    def _number(self) -> list[Layer]:
        """Layers of all programs in the order in which they run."""
        found: list[Layer] = []
        for program in self.programs:
            ops = program.kpu_layers
            for op in ops:
                # maps between the KPU's layers need not cross the bus, though the CPU's work on
                # them makes them do so
                traffic = {
                    "eight_bit": op.eight_bit,
                    "task_list": True,
                    "reads_input": op is ops[0],
                    "writes_output": op is ops[-1],
                }
                found.append(Layer(len(found), op, traffic))
        return found

    def _runs(self) -> list[Run]:
        """The inputs; prints what was done to a picture."""
        if self.args.functions:
            rng = np.random.default_rng(SEED)
            inputs = [[random_map(rng, t) for t in p.inputs] for p in self.programs]
            print(f"random maps, seed {SEED}")
            return [Run("random maps", inputs)]
        (program,) = self.programs
        if len(program.inputs) != 1:
            raise KmodelError(f"{program.file}: a picture cannot be {len(program.inputs)} inputs")
        args, runs = self.args, []
        dtype = np.dtype(program.inputs[0].dtype)
        for name, value in (("SCALE", args.scale), ("BIAS", args.bias)):
            if value is not None and dtype.kind != "f":
                raise KmodelError(
                    f"{name}={value:g}: the input of {self.name} is {dtype}, not float"
                )
        for path in args.image:
            picture = open_image(path)
            array, note = image_input(
                picture,
                program.inputs[0],
                scale=FLOAT_SCALE if args.scale is None else args.scale,
                bias=args.bias or 0.0,
                bgr=args.bgr,
            )
            print(f"{path}: {note or 'as it is'}")
            runs.append(Run(str(path), [[array]], picture))
        return runs

    def prefix(self, number: int) -> str:
        """The prefix of a layer's name when there are several pictures."""
        return f"{Path(self.runs[number].title).stem}/" if len(self.runs) > 1 else ""

    @property
    def storage_bytes(self) -> int:
        """Storage for the file and a segment's task list, input, result and further maps."""
        args = [layer.op.arg for layer in self.layers]
        maps = [map_bytes(shape) for arg in args for shape in (arg.in_shape, arg.out_shape)]
        words = 96 * sum(la.op.batches for la in self.layers)
        moved = max(
            sum(
                op.batches * (2 * ALIGN + map_bytes(op.arg.in_shape) + map_bytes(op.arg.out_shape))
                for op in segment
            )
            for program in self.programs
            for segment in program.segments()
        )
        return len(self.file) + self.tail + words + 2 * max(maps) + moved + STORAGE_SLACK


def random_map(rng: np.random.Generator, tensor: Any) -> np.ndarray:
    """Bytes of any value; floats 0..1."""
    if np.dtype(tensor.dtype).kind == "f":
        return rng.random(tensor.shape).astype(tensor.dtype)
    return rng.integers(0, 256, tensor.shape, dtype=np.uint8).view(tensor.dtype)


def sim_model(args: argparse.Namespace) -> bool:
    """Run the model on its pictures; True when every byte of every layer matched."""
    job = Job(args)
    first = job.programs[0]
    what = f"{len(job.programs)} KPU functions" if args.functions else f"kmodel v{first.version}"
    what = ", ".join(part for part in (what, first.detail, job.note) if part)
    print(
        f"{job.name}: {what}, {8 if first.eight_bit else 16}-bit weights,"
        f" {len(job.layers)} KPU layers, configuration {args.config.name}"
        f" ({args.config.macs} MACs), rounding {args.rounding}"
    )
    if len(job.chosen) < len(job.layers):
        print(f"layers {job.chosen[0]}-{job.chosen[-1]} on the RTL, the others on the golden model")
    table = Table(args.config)
    good = golden(job, table) if args.golden else simulated(job, table)
    due = len(job.runs) * sum(job.layers[i].op.batches for i in job.chosen)
    sums = report.totals(table.records)
    good &= len(table.records) == due and not sums["mismatching_bytes"]
    wrong = "" if args.golden else f", {sums['mismatching_bytes']} mismatching bytes"
    print(f"\n{len(table.records)} of {due} layers run{wrong}")
    figures = table.figures()
    for line in table.summary():
        print(line)
    for one in job.runs:
        if one.outputs:
            show(job, one)
    report.write_asked(args, table.records, runs=len(job.runs), **ways(args), **figures)
    return good


def golden(job: Job, table: Table) -> bool:
    """The numpy model alone."""
    for number, one in enumerate(job.runs):
        offset = 0
        for part, (program, inputs) in enumerate(zip(job.programs, one.inputs, strict=True)):

            def hook(event: LayerEvent, base: int = offset, which: int = number) -> None:
                if base + event.index in job.chosen:
                    layer, found = job.layers[base + event.index], event.golden
                    assert found is not None, "no other executor has run it"
                    values = {"macs": found.macs, "macs_gated": found.macs_gated}
                    values |= {"mismatching_bytes": 0, "counters": None}
                    print(table.add(job.prefix(which), layer, event.step.batch, values), flush=True)

            result = run_kmodel(program, inputs, kpu=None, hook=hook, rounding=job.args.rounding)
            one.outputs |= {f"{part}/{name}": value for name, value in result.outputs.items()}
            offset += len(program.kpu_layers)
    return True


def simulated(job: Job, table: Table) -> bool:
    """All layers in one simulator process."""
    args, progress = job.args, rtl.Progress()
    state = {"good": True}
    ends: list[launch.Event] = []

    def on_event(event: launch.Event) -> None:
        kind = event["event"]
        if kind == "beat":
            progress.show(f"L{event['index']:02d}: {event['cycles']} cycles ...")
        elif kind == "done":
            progress.show(f"L{event['index']:02d} done, {len(job.layers)} layers in all")
        elif kind == "layer":
            layer = job.layers[event["index"]]
            progress.line(table.add(job.prefix(event["run"]), layer, event["batch"], event))
            if event["first"]:
                progress.line(
                    f"  {compare.describe_difference(event['mismatching_bytes'], event['first'])}"
                )
        elif kind == "fetch":
            progress.line(f"map at row {event['row']}: {event['mismatching_bytes']} bytes differ")
            state["good"] = False
        elif kind == "run":
            ends.append(event)
        elif kind in ("failure", "rules"):
            progress.line(event["text"])
            state["good"] = False

    with tempfile.TemporaryDirectory(prefix="openkpu_model_") as tmp:
        outputs = Path(tmp) / "outputs.npz"
        request = ModelRequest(
            file=job.file,
            name=job.name,
            numbering=args.numbering,
            functions=args.functions,
            inputs=[one.inputs for one in job.runs],
            layers=(job.chosen[0], job.chosen[-1]),
            via=args.via,
            fast=args.fast,
            rounding=args.rounding,
            map_moves=args.maps,
            resident=args.maps == "dma",
            config=args.config,
            outputs=str(outputs),
        )
        rtl.simulate_request(
            args, request, on_event, job.storage_bytes, ROUNDINGS.index(args.rounding)
        )
        with np.load(outputs) as found:
            for name in found.files:
                number, _, rest = name.partition("/")
                job.runs[int(number)].outputs[rest] = found[name]
    table.moved = sum(event["moved"] for event in ends)
    table.moved_by_host = sum(event["moved_by_host"] for event in ends)
    table.end = end_to_end(job, table, ends)
    return state["good"]


def end_to_end(job: Job, table: Table, ends: list[launch.Event]) -> EndToEnd | str:
    """All runs of the job together, or why there is no such figure."""
    args = job.args
    if args.fast:
        return f"maps went through the back door of the bench ({option('fast', True)})"
    if len(job.chosen) < len(job.layers):
        return f"some of the layers ran on the golden model ({option('layers')})"
    if len(ends) < len(job.runs):
        return "the run did not come to its end"
    return EndToEnd(
        cycles=sum(event["cycles"] for event in ends),
        layers=sum(record.cycles or 0 for record in table.records),
        host_maps=sum(event["host_cycles"] for event in ends),
        what=BY_HOST if args.maps == "window" and args.via != "tasks" else BY_DEVICE,
        clock=CLOCK,
    )


def ways(args: argparse.Namespace) -> dict[str, str | None]:
    """How layers were started and who moved the maps, for the report."""
    maps = "back door" if args.fast else args.maps
    return {"via": None if args.golden else args.via, "maps": None if args.golden else maps}


def show(job: Job, one: Run) -> None:
    """The model's result: boxes, classes, or the range of its output."""
    args = job.args
    print(f"\n{one.title}")
    if args.functions:
        for name, value in one.outputs.items():
            print(f"  function {name.partition('/')[0]}: {describe(value)}")
        return
    outputs = list(one.outputs.values())
    _, height, width = input_shape(job.programs[0].inputs[0])
    program = job.programs[0]
    kind, found, assumed = look(outputs, width, height, job.detector, program)
    for line in assumed:
        print(f"  {line}")
    if kind == "classes":
        for _, name, score in found:
            print(f"  {name}: {score:.4f}")
    elif kind == "boxes":
        for box in found or ["nothing found"]:
            print(f"  {box}")
    else:
        for output in outputs:
            print(f"  {describe(output)}")
        if text := hint(outputs, program):
            print(f"  {text}")
    if args.png:
        boxes = [box for box in found or [] if isinstance(box, Box)]
        with writing(args.png) as stream:
            draw_boxes(one.picture, boxes).save(stream, "PNG")
        print(f"picture: {args.png}")


def describe(value: np.ndarray) -> str:
    """Type, shape and range."""
    return f"{value.dtype} {span(value)}"
