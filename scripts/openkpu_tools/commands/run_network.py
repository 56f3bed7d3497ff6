# SPDX-License-Identifier: Apache-2.0
"""A saved network: every inference on the RTL, every layer against the golden model.

docs/networks.md explains how such a file is made.
"""

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compare import describe_difference
from openkpu.configs import Config
from openkpu.network.device_rules import check_network
from openkpu.network.network import Network, NetworkError, NetworkRun, alignment
from openkpu.prediction.roofline import network_cycles
from openkpu.prediction.spare import rows_of_network
from openkpu.products import matmul_lists
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import NetworkRequest
from openkpu_tools import report, rtl
from openkpu_tools.command import writing
from openkpu_tools.commands import network_results
from openkpu_tools.commands.end_to_end import PERF, START, EndToEnd, unmeasured

LIMIT = 60  # an inference may take so many times its roofline, and 50,000 cycles more
SEED = 210  # of random maps, when the environment has none
Counters = list[dict[str, int]]


@dataclasses.dataclass(frozen=True)
class Inference:
    """Results of one input map."""

    number: int
    y: npt.NDArray[np.uint8]  # bytes (n,) of the result, as it lies in storage
    cycles: int | None  # None: of the golden model
    wrong: int  # bytes of results and maps that differ
    layers: list[report.LayerRecord]
    stored: dict[int, npt.NDArray[np.uint8]]  # bytes (n,) of maps in storage (store_map), by layer


Describe = Callable[[Inference], str]  # makes the printed lines of an inference


def load_maps(path: str | Path, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """(n, C, H, W) bytes from a .npy file with n maps or one; NetworkError with one line."""
    maps = files.read_array(path, NetworkError)
    if maps.dtype not in (np.uint8, np.int8):
        raise NetworkError(f"{path}: {maps.dtype}, expected uint8 or int8")
    maps = maps[None] if maps.ndim == 3 else maps
    if maps.ndim != 4 or not len(maps) or maps.shape[1:] != shape:
        raise NetworkError(f"{path}: shape {maps.shape}, expected {shape} or (n, *{shape})")
    return np.ascontiguousarray(maps).view(np.uint8)


def check_named(name: str, network: Network, config: Config) -> None:
    """NetworkError, with the name of the file, for a network that a configuration cannot run."""
    try:
        check_network(network, config)
    except NetworkError as error:
        raise NetworkError(f"{name}: {error}") from None


def sim_network(args: argparse.Namespace) -> bool:
    """Run the network; True when every byte of every layer matched."""
    network = Network.load(args.network)
    check_named(args.network, network, args.config)
    if args.input:
        images, source = load_maps(args.input, network.in_shape), str(args.input)
    else:
        given = seeds.environment()
        seed = SEED if given is None else given
        size = (args.images or 1, *network.in_shape)
        images = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
        source = f"random, seed {seed}"
    shapes = " -> ".join("x".join(map(str, s)) for s in (network.in_shape, network.out_shape))
    print(
        f"{args.network}: {len(network.layers)} layers, {shapes},"
        f" {8 if network.eight_bit else 16}-bit weights, configuration {args.config.name}"
        f" ({args.config.macs} MACs)\n{len(images)} input maps: {source}"
    )
    results: list[npt.NDArray[np.uint8]] = []

    def describe(done: Inference) -> str:
        results.append(done.y)
        said = network_results.result_line(network_results.result_values(network, done.y))
        return f"map {done.number:>3}{verdict(done.cycles, done.wrong)}  {said}"

    records, per_inference, good = run_inferences(args, network, images, describe)
    more = network_summary(args, network, records, per_inference)
    if args.output and results:
        with writing(args.output) as stream:
            np.save(stream, stacked(network, results))
        print(f"results: {args.output}")
    if args.png and results:
        shown = [network_results.result_values(network, y) for y in results]
        with writing(args.png) as stream:
            network_results.draw_results(images, shown).save(stream, "PNG")
        print(f"picture: {args.png}")
    report.write_asked(args, records, **more)
    return good


def verdict(cycles: int | None, wrong: int) -> str:
    """The end of a line: cycles and how many bytes differ; empty for the golden model."""
    if cycles is None:
        return ""
    return f"  {cycles:>8} cycles  {f'{wrong} bytes differ' if wrong else 'ok'}"


def stacked(network: Network, results: list[npt.NDArray[np.uint8]]) -> npt.NDArray:
    """Results as they lie in storage: bytes (n, O, h, w); with out32 of the last layer words."""
    found = np.stack([y.reshape(-1) for y in results]).astype(np.uint8)
    c, h, w = network.out_shape
    return (
        found.view("<i4").reshape(-1, c // 4, h, w) if network.words else found.reshape(-1, c, h, w)
    )


def golden_records(
    args: argparse.Namespace, network: Network, runs: list[NetworkRun]
) -> list[report.LayerRecord]:
    """Records of the golden model alone."""
    return [
        report.layer_record(
            args.config, f"image{number}/L{i:02d}", arg, result, eight_bit=network.eight_bit
        )
        for number, one in enumerate(runs)
        for i, (arg, result) in enumerate(zip(network.layers, one.layers, strict=True))
    ]


def run_inferences(
    args: argparse.Namespace, network: Network, images: npt.NDArray[np.uint8], describe: Describe
) -> tuple[list[report.LayerRecord], Counters, bool]:
    """(records, counters per inference, everything matched); ``describe`` makes each map's lines.

    On the simulator, or with ``args.golden`` on the golden model, which counts no cycles.
    """
    if not args.golden:
        return simulate_network(args, network, images, describe)
    runs, many = [network.run(image) for image in images], len(network.layers)
    records = golden_records(args, network, runs)
    for number, one in enumerate(runs):
        here = records[many * number : many * (number + 1)]
        stored = matmul_lists.maps_of(one, network)
        print(describe(Inference(number, one.stored, None, 0, here, stored)))
    return records, [], True


def simulate_network(
    args: argparse.Namespace, network: Network, images: npt.NDArray[np.uint8], describe: Describe
) -> tuple[list[report.LayerRecord], Counters, bool]:
    """As ``run_inferences``, on the simulator.

    Compares the map of each layer in the AI RAM, the maps that layers store, and the results.
    """
    records: list[report.LayerRecord] = []
    per_inference: Counters = []
    stored: dict[int, launch.Event] = {}  # of the inference that is reported next, by layer
    progress = rtl.Progress()
    state = {"good": True}
    least = network_cycles(args.config, network.layers, eight_bit=network.eight_bit)
    bar = rtl.Bar(len(images), progress)

    def on_event(event: launch.Event) -> None:
        if event["event"] == "beat":
            # progress of the current image, estimated from the mean of the previous ones
            each = np.mean([one["total"] for one in per_inference]) if per_inference else least
            done = event["index"] + min(event["cycles"] / each, 1.0)
            bar.show(done, f"image {event['index']}, cycle {event['cycles']}")
        elif event["event"] == "rules":
            progress.line(event["text"])
            state["good"] = False
        elif event["event"] == "stored":
            stored[event["layer"]] = event
        elif event["event"] == "image":
            image(event, dict(stored))
            stored.clear()

    def image(event: launch.Event, maps: dict[int, launch.Event]) -> None:
        number = event["index"]
        here: list[report.LayerRecord] = []
        for layer in event["layers"]:
            i = layer["index"]
            in_storage = maps[i]["mismatching_bytes"] if i in maps else 0
            here.append(
                report.layer_record(
                    args.config,
                    f"image{number}/L{i:02d}",
                    network.layers[i],
                    layer,
                    eight_bit=network.eight_bit,
                    wrong=in_storage,  # the same bytes, seen in two places
                )
            )
        records.extend(here)
        if event["failure"]:
            progress.line(f"image {number:>3}  {event['failure']}")
            state["good"] = False
            return
        per_inference.append(event["inference"])
        wrong = event["mismatching_bytes"] + sum(r.mismatching_bytes for r in here[:-1])
        bytes_of = {i: np.array(found["y"], dtype=np.uint8) for i, found in maps.items()}
        y, cycles = np.array(event["y"], dtype=np.uint8), event["inference"]["total"]
        progress.line(describe(Inference(number, y, cycles, wrong, here, bytes_of)))
        for line in differences(event, maps):
            progress.line(f"  {line}")
        state["good"] &= not (wrong or any(r.mismatching_bytes for r in here))

    least = network_cycles(args.config, network.layers, eight_bit=network.eight_bit)
    limit = 50_000 + LIMIT * least
    request = NetworkRequest(
        network, images, limit, alignment(args.config), rows_of_network(args.config, network)
    )
    size = network.storage(images, align=request.align).data.size
    rtl.simulate_request(args, request, on_event, size)
    return records, per_inference, state["good"] and len(per_inference) == len(images)


def differences(event: launch.Event, maps: dict[int, launch.Event]) -> list[str]:
    """The differences in an ``image`` event, and in the ``stored`` events of its layers."""
    places = [
        *((f"L{layer['index']:02d}", layer) for layer in event["layers"]),
        *((f"map of L{i:02d} in storage", found) for i, found in maps.items()),
        ("result in storage", event),
    ]
    return [
        f"{what}: {describe_difference(found['mismatching_bytes'], found['first'])}"
        for what, found in places
        if found["first"]
    ]


def network_summary(
    args: argparse.Namespace,
    network: Network,
    records: list[report.LayerRecord],
    per_inference: list[dict[str, int]],
) -> dict[str, Any]:
    """Print and return the figures of docs/performance.md; of a run that did not end why there are
    none."""
    if not per_inference or len(records) != len(per_inference) * len(network.layers):
        return {"end_to_end": unmeasured("no simulator ran or nothing finished")}
    runs = len(per_inference)
    cycles = sum(c["total"] for c in per_inference) / runs
    needed = sum(r.macs for r in records) / runs
    gated = sum(c["macs_gated"] for c in per_inference) / runs
    least = network_cycles(args.config, network.layers, eight_bit=network.eight_bit)
    end = EndToEnd(
        cycles=sum(c["total"] for c in per_inference),
        layers=sum(r.cycles or 0 for r in records),
        host_maps=0,
        what=START,
        clock=PERF,
    )
    figures = {
        "end_to_end": end.report(runs * least),
        "inferences": runs,
        "cycles_per_inference": round(cycles, 1),
        "mac_utilisation": round(needed / cycles / args.config.macs, 4),
        "inference_roofline_cycles": least,
        "inference_efficiency": round(least / cycles, 4),
        "macs_per_inference": round(needed, 1),
        "macs_gated_per_inference": round(gated, 1),
    }
    stalls = {name: sum(c[f"stall_{name}"] for c in per_inference) for name in report.STALLS}
    total = sum(c["total"] for c in per_inference)
    print(f"\ncycles per inference      {cycles:10.0f}   {end.what}")
    print(f"  sum of its layers       {end.layers / runs:10.0f}   the host moves no maps")
    moves = any(arg.load_map or arg.store_map for arg in network.layers)
    print(
        f"roofline                  {least:10d}   multiplications, or bytes of list, parameters,"
        f" pixels{', maps of storage' * moves} and result"
    )
    print(f"efficiency                {100 * least / cycles:10.1f} %")
    print(f"MAC utilisation           {100 * figures['mac_utilisation']:10.1f} %")
    print(f"multiplications needed    {needed:10.0f}")
    print(f"  gated (pixel <= 0)      {gated:10.0f}   {100 * gated / needed:.1f} %")
    print(
        "cycles by cause           "
        + ", ".join(
            f"{name} {100 * value / total:.1f} %"
            for name, value in {"array": total - sum(stalls.values()), **stalls}.items()
        )
    )
    return figures
