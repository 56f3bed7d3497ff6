# SPDX-License-Identifier: Apache-2.0
"""The main job: handwritten digits that training never saw, classified by the RTL."""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from openkpu.models import digits
from openkpu.models.digits import float_model
from openkpu.models.network import Network
from openkpu.models.roofline import network_cycles
from openkpu.scripts import report, rtl
from openkpu.scripts.end_to_end import PERF, START, EndToEnd, unmeasured
from openkpu.tb.device import launch
from openkpu.tb.device.requests import DigitsRequest

IMAGES = {"icarus": 8, "verilator": 100, "golden": 360}
LIMIT = 60  # an inference may take so many times its roofline, and 50,000 cycles more


def run(args: argparse.Namespace) -> bool:
    """Classify; True when every byte of every layer matched."""
    network = digits.load_network()
    test = digits.load_data()[1]
    count = min(args.images or IMAGES["golden" if args.golden else args.sim], len(test))
    print(
        f"handwritten digits: {count} of {len(test)} held-out scans, {len(network.layers)} layers,"
        f" configuration {args.config.name} ({args.config.macs} MACs)"
    )
    golden = [network.run(image) for image in test.pixels]
    answers = np.array([digits.classify(g.y) for g in golden])
    if args.golden:
        records, good = golden_records(args, network, golden, count), True
        shown, per_inference = answers[:count], []
        for number in range(count):
            print(line(number, int(shown[number]), int(test.labels[number]), None, 0))
    else:
        records, shown, per_inference, good = simulated(args, network, test, count)
    labels = test.labels
    exact = float_model.predict(digits.load_float(), test.images)
    print("\naccuracy")
    if not args.golden:
        print(f"  RTL     {share(shown, labels[: len(shown)])} on the {len(shown)} images it ran")
        print(f"  golden  {share(answers[:count], labels[:count])} on the same")
    print(f"  golden  {share(answers, labels)} on all {len(test)} held-out scans")
    print(f"  float   {share(exact, labels)} on all {len(test)} held-out scans")
    more: dict[str, Any] = {"end_to_end": unmeasured("no simulator ran or nothing finished")}
    if per_inference and len(records) == len(per_inference) * len(network.layers):
        more = summary(args, network, records, per_inference)
    if args.report:
        simulator = "golden" if args.golden else args.sim
        report.write(args.report, args.config, simulator, records, **more)
        print(f"report: {args.report}")
    return good


def share(found: npt.NDArray, labels: npt.NDArray) -> str:
    """Percentage of right answers."""
    return f"{100 * float(np.mean(np.asarray(found) == labels)):6.2f} %" if len(found) else "-"


def line(number: int, found: int, true: int, cycles: int | None, wrong: int) -> str:
    """A line of the table."""
    verdict = "" if found == true else "  misread"
    verdict += f"  {wrong} bytes differ from the golden model" if wrong else ""
    took = f"  {cycles:>8} cycles" if cycles is not None else ""
    return f"image {number:>3}  predicted {found}  true {true}{took}{verdict}"


def golden_records(
    args: argparse.Namespace, network: Network, runs: list, count: int
) -> list[report.LayerRecord]:
    """Records of the golden model alone."""
    return [
        report.record(
            args.config,
            f"image{number}/L{i:02d}",
            arg,
            macs=result.macs,
            macs_gated=result.macs_gated,
            mismatching_bytes=0,
            counters=None,
            eight_bit=network.eight_bit,
        )
        for number in range(count)
        for i, (arg, result) in enumerate(zip(network.layers, runs[number].layers, strict=True))
    ]


def simulated(
    args: argparse.Namespace, network: Network, test: digits.Digits, count: int
) -> tuple[list[report.LayerRecord], npt.NDArray, list[dict[str, int]], bool]:
    """(records, classes, counters per inference, everything matched)."""
    records: list[report.LayerRecord] = []
    classes: list[int] = []
    per_inference: list[dict[str, int]] = []
    progress = rtl.Progress()
    state = {"good": True}

    def on_event(event: launch.Event) -> None:
        if event["event"] == "beat":
            progress.show(f"image {event['index']}: {event['cycles']} cycles ...")
        elif event["event"] == "rules":
            progress.line(event["text"])
            state["good"] = False
        elif event["event"] == "image":
            number = event["index"]
            wrong = event["mismatching_bytes"] + sum(
                layer["mismatching_bytes"] for layer in event["layers"][:-1]
            )
            for layer in event["layers"]:
                i = layer["index"]
                records.append(
                    report.record(
                        args.config,
                        f"image{number}/L{i:02d}",
                        network.layers[i],
                        macs=layer["macs"],
                        macs_gated=layer["macs_gated"],
                        mismatching_bytes=layer["mismatching_bytes"],
                        counters=layer["counters"],
                        eight_bit=network.eight_bit,
                    )
                )
            if event["failure"]:
                progress.line(f"image {number:>3}  {event['failure']}")
                state["good"] = False
                return
            found = digits.classify(np.array(event["y"], dtype=np.uint8))
            classes.append(found)
            per_inference.append(event["inference"])
            total = event["inference"]["total"]
            progress.line(line(number, found, int(test.labels[number]), total, wrong))
            state["good"] &= not wrong

    images = test.pixels[:count]
    limit = 50_000 + LIMIT * network_cycles(args.config, network.layers)
    request = DigitsRequest(network, images, limit)
    rtl.simulate(args, request, on_event, network.storage(images).data.size)
    good = state["good"] and len(classes) == count
    return records, np.array(classes), per_inference, good


def summary(
    args: argparse.Namespace,
    network: Network,
    records: list[report.LayerRecord],
    per_inference: list[dict[str, int]],
) -> dict[str, Any]:
    """Print and return the figures of docs/performance.md."""
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
    print(
        f"roofline                  {least:10d}   multiplications, or bytes of list, parameters,"
        " pixels and result"
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
