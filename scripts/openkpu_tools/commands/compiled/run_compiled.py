# SPDX-License-Identifier: Apache-2.0
"""A quantised model: each inference on the RTL, every layer against the golden model.

The host's nodes are computed in numpy before, between and behind the task lists. docs/networks.md
says what INPUT, OUTPUT and RAW hold.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler import data, pictures
from openkpu.compiler import run as execute
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.program import DevicePart, Program
from openkpu.network.network import Network, NetworkError
from openkpu.prediction.roofline import network_cycles
from openkpu.terminal import printable
from openkpu_tb import seeds
from openkpu_tools import report
from openkpu_tools.command import writing
from openkpu_tools.commands import run_network
from openkpu_tools.commands.compiled import compiled_page, compiled_table
from openkpu_tools.commands.compiled.found import boxes_of, detector_of
from openkpu_tools.commands.compiled.reading import read_program
from openkpu_tools.commands.end_to_end import PERF, START, EndToEnd, unmeasured
from openkpu_tools.commands.model_options import request_of

TOP = 5  # classes that are printed
SEED = 210


class Device:
    """Runs task lists in the simulator, and counts what comes of them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.good = True
        self.cycles = 0
        self.records: list[report.LayerRecord] = []

    def __call__(
        self, part: DevicePart, network: Network, x: npt.NDArray[np.uint8]
    ) -> execute.Maps:
        """One inference of one list; NetworkError when it does not complete."""
        found: execute.Maps = {}

        def describe(done: run_network.Inference) -> str:
            found[-1] = done.y.reshape(network.out_shape)
            found.update(
                {
                    i: bytes_.reshape(network.layers[i].out_shape)
                    for i, bytes_ in done.stored.items()
                }
            )
            self.cycles += done.cycles or 0
            return f"list{run_network.verdict(done.cycles, done.wrong)}"

        records, _, good = run_network.simulate_network(self.args, network, x[None], describe)
        self.records += records
        self.good &= good
        if -1 not in found:
            raise NetworkError("the device did not come to the end of a task list")
        return found


def golden_runner(args: argparse.Namespace, records: list[report.LayerRecord]) -> execute.Runner:
    """Runs task lists on the golden model; a record for each layer."""

    def runner(part: DevicePart, network: Network, x: npt.NDArray[np.uint8]) -> execute.Maps:
        done = network.run(x)
        records.extend(run_network.golden_records(args, network, [done]))
        return {-1: done.y, **{i: layer.y for i, layer in enumerate(done.layers)}}

    return runner


def sim_quantised(args: argparse.Namespace) -> bool:
    """Run the model; True when every byte of every layer matched."""
    program, calibrated = read_program(args, request_of(args))
    if calibrated:
        print(calibrated.summary)
    labels = pictures.read_labels(args.labels) if args.labels else []
    classes = [tensor.shape[-1] if tensor.shape else 1 for tensor in program.outputs]
    if labels and len(labels) not in classes:
        expected = " or ".join(str(n) for n in dict.fromkeys(classes))
        raise CompileError(f"{len(labels)} names, expected {expected}", where=args.labels)
    results_there = last_names(program) if args.raw else [t.name for t in program.outputs]
    if args.output and len(results_there) > 1 and Path(args.output).suffix.lower() != ".npz":
        found = ", ".join(results_there)
        what = f"{len(results_there)} results ({found}), expected a name that ends in .npz"
        raise CompileError(what, where=str(args.output))
    for part in program.device_parts:
        run_network.check_named(args.model, part.network, args.config)
    given, source = inputs_of(args, program)
    detector = detector_of(args, program)
    for line in compiled_table.node_lines(program, args.config):
        print(line)
    print(f"\n{len(given)} inferences: {source}")
    device = Device(args)
    records: list[report.LayerRecord] = []
    runner = golden_runner(args, records) if args.golden else device
    results, raw = [], []
    for number, one in enumerate(given):
        before = device.cycles
        values = execute.run_program(program, one, runner)
        results.append([values[t.name] for t in program.outputs])
        raw.append(last_maps(program, values))
        cycles = "" if args.golden else f"  {device.cycles - before} cycles"
        print(f"inference {number}{cycles}")
        for tensor, value in zip(program.outputs, results[-1], strict=True):
            print(f"  {describe(tensor, value, labels)}")
        for line in boxes_of(args, program, values, detector) if args.image else ():
            print(f"  {line}")
    if args.output:
        write(args, program, results, raw)
    if args.report:
        simulator = "golden" if args.golden else args.sim
        nodes = [line.record() for line in compiled_table.node_table(program, args.config)]
        every = records if args.golden else device.records
        end = end_to_end(args, program, device, len(given))
        report.write_report(args.report, args.device, simulator, every, nodes=nodes, end_to_end=end)
        print(f"report: {args.report}")
    if args.html:
        with writing(args.html) as stream:
            stream.write(compiled_page.program_page(program, args.config).encode())
        print(f"page: {args.html}")
    return device.good


def end_to_end(
    args: argparse.Namespace, program: Program, device: Device, runs: int
) -> dict[str, Any]:
    """Cycles of all task lists of all inferences, each from its start to the last byte."""
    if args.golden:
        return unmeasured("no simulator ran")
    least = sum(
        network_cycles(args.config, part.network.layers, eight_bit=part.network.eight_bit)
        for part in program.device_parts
    )
    layers = sum(record.cycles or 0 for record in device.records)
    end = EndToEnd(
        cycles=device.cycles, layers=layers, host_maps=0, what=f"each task list {START}", clock=PERF
    )
    return end.report(runs * least)


def inputs_of(args: argparse.Namespace, program: Program) -> tuple[list[Values], str]:
    """The inferences, and where they come from."""
    if args.input:
        return data.read_inputs(program, args.input), str(args.input)
    if args.image:
        scale = (args.scale,) if isinstance(args.scale, float) else args.scale
        how = {"mean": args.mean, "scale": scale, "bgr": args.bgr}
        if program.pictures and args.mean is None and args.scale is None and not args.bgr:
            how = dict(program.pictures)
            print(f"pictures as those that calibrated it: {pictures.described(**how)}")
        given, words = [], []
        for path in args.image:
            values, note = pictures.values_of(program, path, **how)
            given.append(values)
            words.append(f"{path} ({note})" if note else str(path))
        return given, ", ".join(words)
    given = seeds.environment()
    seed = SEED if given is None else given
    rng = np.random.default_rng(seed)
    count = args.images or program.graph.batch
    return data.random_inputs(program, rng, count), f"random, seed {seed}"


def describe(tensor: Any, value: npt.NDArray, labels: Sequence[str] = ()) -> str:
    """The largest classes of a vector, or the range of an output."""
    real, name = data.real(tensor, value), printable(tensor.name)
    flat = np.reshape(real, -1)
    if 2 <= flat.size <= 1024 and flat.size == np.shape(value)[-1]:
        order = np.argsort(-flat, kind="stable")[:TOP]
        names = [labels[i] if i < len(labels) else str(i) for i in order]
        found = (f"{n}: {flat[i]:.4g}" for n, i in zip(names, order, strict=True))
        return f"{name}: " + ", ".join(found)
    return f"{name}: {tensor.dtype}{np.shape(value)} from {flat.min():.4g} to {flat.max():.4g}"


def last_names(program: Program) -> list[str]:
    """The tensors of ``last_maps``."""
    return [port.tensor for port in program.device_parts[-1].outputs]


def last_maps(program: Program, values: Values) -> Values:
    """The bytes (C, H, W) of the last task list's outputs, as the device left them in storage."""
    part = program.device_parts[-1]
    return {p.tensor: p.map_of(values[p.tensor]) for p in part.outputs}


def write(
    args: argparse.Namespace,
    program: Program,
    results: list[list[npt.NDArray]],
    raw: list[Values],
) -> None:
    """Results in the model's own types and shapes, inferences along the first axis; with RAW the
    device's bytes instead."""
    arrays = {}
    names = data.array_names(raw[0] if args.raw else [t.name for t in program.outputs])
    for name in raw[0] if args.raw else ():
        arrays[names[name]] = np.stack([one[name] for one in raw])
    for i, tensor in enumerate(() if args.raw else program.outputs):
        each = [data.result(tensor, one[i]) for one in results]
        batched = each[0].ndim > 0 and each[0].shape[0] == 1
        arrays[names[tensor.name]] = np.concatenate(each) if batched else np.stack(each)
    with writing(args.output) as stream:
        if Path(args.output).suffix.lower() == ".npz":
            files.save_arrays(stream, arrays)
        else:
            np.save(stream, next(iter(arrays.values())))
    print(f"results: {args.output}")
