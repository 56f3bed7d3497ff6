# SPDX-License-Identifier: Apache-2.0
"""Images in one continuous run: `make stream IMAGES=1000 DISTURB=1`.

The digits: scans of test and training set, as many as asked for and from the beginning again when
they are used up. With --network a saved network, with --model a model whose layers are one task
list: the maps of --input in turn, or random ones. Every result is compared with the golden model's.
With --disturb the storage inserts wait states at random, grants are taken away, and RETRY and SPLIT
are answered. docs/continuous.md has figures.

Exit status: 0 every byte matched and nothing was lost, 1 otherwise, 2 bad request.
"""

import argparse
import dataclasses
import time
from typing import Any

import numpy as np

from openkpu import digits
from openkpu.compiler import data
from openkpu.compiler import run as execute
from openkpu.compiler.errors import CompileError
from openkpu.compiler.source import is_ours
from openkpu.kmodel.residence.one_list import read_task_list
from openkpu.network.network import Network
from openkpu.prediction.roofline import array_macs, network_cycles
from openkpu.prediction.spare import rows_of_network
from openkpu_tb import seeds, simrun
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import RequestedRun, StreamRequest
from openkpu_tools import command, registry, report, rtl, variants
from openkpu_tools.command import UsageError, option
from openkpu_tools.commands import run_network
from openkpu_tools.commands.compiled.reading import read_program
from openkpu_tools.commands.model_options import OF_CALIBRATION, OF_PICTURES, request_of

MOST = 100_000  # images of a run: their maps and counters lie in the simulator's memory
EVERY = 5.0  # seconds between lines of progress where lines stay
LIMIT = 50_000  # cycles from one inference to the next, undisturbed; many rooflines come on top
DIGITS, MAPS = 1000, 5  # images when no number is given


@dataclasses.dataclass(frozen=True)
class Work:
    """What runs: ``images`` (n, C, H, W) bytes; ``labels`` of the digits."""

    title: str
    network: Network
    images: np.ndarray
    labels: np.ndarray | None = None


def scans(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(pixels, labels) of ``count`` scans, held-out ones first."""
    training, test = digits.load_data()
    pixels = np.concatenate([test.pixels, training.pixels])
    labels = np.concatenate([test.labels, training.labels])
    order = np.arange(count) % len(labels)
    return pixels[order], labels[order]


def parse_stream(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names what is wrong."""
    args = registry.parse_command("stream", argv)
    command.apart(args, ("model", "network"), why="one of them runs")
    if args.input and not (args.network or args.model):
        command.needs(args, "input", "network", "a network")
    ours = bool(args.model) and is_ours(args.model)
    for name in ("shape", "ends", "calibration", *OF_CALIBRATION, *OF_PICTURES):
        command.needs(args, name, "model", "a quantised model")
        if getattr(args, name) not in (None, False) and not ours:
            raise UsageError(f"{option(name)} without a quantised model, which it is for")
    args.request = request_of(args, pictures=True)
    args.device = variants.requested(args)
    args.device.check_rounding()
    args.config = args.device.titled
    read = [args.network, args.model, args.calibration, args.input]
    command.check_outputs([args.report], read)
    return args


def stream_work(args: argparse.Namespace) -> Work:
    """The digits, or what --network and --input name; NetworkError with one line."""
    if args.model and is_ours(args.model):
        return of_model(args)
    if not args.model and not args.network:
        network = digits.load_network(args.config.ai_ram_rows)
        run_network.check_network(network, args.config)
        images, labels = scans(args.images or DIGITS)
        return Work("digits", network, images, labels)
    name = args.model or args.network
    network = read_task_list(name, args.config) if args.model else Network.load(name)
    run_network.check_named(name, network, args.config)
    if args.input:
        maps = run_network.load_maps(args.input, network.in_shape)
        images = maps[np.arange(args.images or len(maps)) % len(maps)]
    else:
        size = (args.images or MAPS, *network.in_shape)
        images = np.random.default_rng(args.seed).integers(0, 256, size, dtype=np.uint8)
    return Work(f"maps through {name}", network, images)


def of_model(args: argparse.Namespace) -> Work:
    """A quantised model: its task list alone, the maps as the host would write them."""
    program, calibrated = read_program(args, args.request, one_list=True)
    if calibrated:
        print(calibrated.summary)
    lists, maps = len(program.device_parts), len(program.device_parts[0].inputs)
    if (lists, maps) != (1, 1):
        what = (
            "a stream is one task list with one input map;"
            f" lists: {lists}, input maps of the first one: {maps}"
        )
        if len({port.tensor for port in program.device_parts[0].inputs}) < maps:
            what += f", which are bands for the AI RAM of {program.config}"
        raise CompileError(what, where=args.model)
    (part,) = program.device_parts
    if others := len(part.outputs) - 1:
        print(f"compared: maps of the last layer; not {others} results that every image overwrites")
    run_network.check_named(args.model, part.network, args.config)
    if args.input:
        given = data.read_inputs(program, args.input)
    else:
        rng = np.random.default_rng(args.seed)
        given = data.random_inputs(program, rng, args.images or MAPS)
    staged = [execute.staged(program, one) for one in given]
    images = np.stack(staged)[np.arange(args.images or len(staged)) % len(staged)]
    return Work(f"inferences of {args.model}, its task list", part.network, images)


def figures(args: argparse.Namespace, network: Network, ends: np.ndarray) -> dict[str, Any]:
    """Totals of the report: means over the inferences behind the first one (of one: of itself).

    ``ends``: (n, COUNTERS), cumulative, at the end of each inference.
    """
    each = np.diff(ends, axis=0) if len(ends) > 1 else ends
    mean = dict(zip(COUNTERS, (round(v) for v in each.mean(axis=0).tolist()), strict=True))
    least = network_cycles(args.config, network.layers, eight_bit=network.eight_bit)
    return {
        "inferences": len(ends),
        "first_cycles": int(ends[0][0]),
        "cycles": mean["total"],
        "macs": sum(map(array_macs, network.layers)),
        "stalls": {name: mean[f"stall_{name}"] for name in report.STALLS},
        "roofline_cycles": least,
        "efficiency": round(least / mean["total"], 4),
    }


def run_stream(args: argparse.Namespace, given: Work) -> bool:
    """Run the stream; True when every result is right and there."""
    network, images, count = given.network, given.images, len(given.images)
    print(
        f"{count} {given.title} in one continuous run, {args.config.name} on {args.sim}"
        + (f", disturbed (seed {args.seed})" if args.disturb else "")
    )
    progress, found = rtl.Progress(), {}
    began = said = time.monotonic()

    def on_event(event: launch.Event) -> None:
        nonlocal said
        if event["event"] == "inference":
            now, done = time.monotonic(), event["number"] + 1
            text = f"{done} of {count} inferences done, {now - began:.0f} s"
            if done % 100 == 0 or done == count or (now - said > EVERY and not progress.live):
                progress.line(text)
                said = now
            else:
                progress.show(text + " ...")
        elif event["event"] == "stream":
            found.update(event)
        elif event["event"] == "rules":
            progress.line(event["text"])

    rows = rows_of_network(args.config, network)
    runs = [RequestedRun(network, images, disturb=args.disturb, spare=rows)]
    least = network_cycles(args.config, network.layers, eight_bit=network.eight_bit)
    limit = LIMIT + run_network.LIMIT * least
    request = StreamRequest(runs, limit=limit, seed=args.seed)
    size = network.storage(images, continuous=True).data.size
    layers = len(network.layers) * count
    more = args.device.bench
    rtl.build_reported(args.sim, args.config, size, progress, layers=layers, **more)
    began = said = time.monotonic()
    launch.run_job(
        args.sim,
        args.config,
        request,
        on_event,
        storage_bytes=size,
        seed=args.seed,
        layers=layers,
        **more,
    )
    if found["failure"]:
        print(found["failure"])
        return False
    ends = np.array(found["ends"])
    wrong = int(np.count_nonzero(found["wrong"]))
    sums = figures(args, network, ends)
    print(f"results stored    {found['counters']['inferences']}, wrong {wrong}")
    if given.labels is not None:
        classes = [digits.classify(np.array(y, dtype=np.uint8)) for y in found["results"]]
        print(f"read as labelled  {np.mean(np.array(classes) == given.labels):.2%}")
    print(f"cycles            {ends[-1][0]}: first {ends[0][0]}, then {sums['cycles']} each")
    print("                  PERF_TOTAL, from the start to the last byte of the last result;")
    print("                  pixels and results are in storage, the host moves no maps")
    kept = found["counters"]["inf_kept"]
    print(f"weights kept      {kept} inferences did not read them again")
    share = 100 * sums["efficiency"]
    print(f"roofline          {sums['roofline_cycles']} an inference by itself, {share:.1f} %")
    if args.report:
        content = {**args.device.facts, "ahb_width": args.config.ahb_width}
        content |= {"simulator": args.sim, "layers": [], "totals": sums}
        command.write_json(args.report, content)
        print(f"report: {args.report}")
    return found["counters"]["inferences"] == count == len(ends) and not wrong


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    args = parse_stream(argv)
    seeds.environment()
    simrun.check_tool(args.sim)
    given = stream_work(args)
    simrun.builds()
    good = run_stream(args, given)
    print(f"{'PASS' if good else 'FAIL'} in {time.monotonic() - began:.0f} s")
    return 0 if good else 1
