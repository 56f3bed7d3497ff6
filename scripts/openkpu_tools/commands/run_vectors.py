# SPDX-License-Identifier: Apache-2.0
"""Replay of layer vectors: every layer alone, against its recorded output and the golden model."""

import argparse

from openkpu.compare import describe_difference, difference
from openkpu.layer import vectors
from openkpu.layer.golden import run_layer
from openkpu.layer.vectors import VectorError, VectorLayer
from openkpu.network.device_rules import refusal
from openkpu.prediction.roofline import layer_cycles
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import VectorsRequest
from openkpu_tools import report, rtl
from openkpu_tools.commands.end_to_end import unmeasured

NO_END = "maps go through the back door of the bench, each layer alone"
LIMIT = 50  # a layer may take so many times its roofline, and 50,000 cycles more


def storage_bytes(layers: list[VectorLayer]) -> int:
    """The largest need of a layer, with room for its alignment."""
    return max(v.weights.size + v.bn.nbytes + v.act.nbytes for v in layers) + 1024


def sim_vectors(args: argparse.Namespace) -> bool:
    """Replay; True when every byte matched. VectorError for a layer that the configuration
    refuses."""
    layers = vectors.load_cases(args.vectors, say=print)
    for layer in layers:
        if text := refusal(layer.arg, args.config, eight_bit=layer.eight_bit):
            raise VectorError(f"{layer.title}: {text}")
    print(f"{len(layers)} layers, configuration {args.config.name}")
    records = golden(args, layers) if args.golden else simulated(args, layers)
    good = len(records) == len(layers) and not any(r.mismatching_bytes for r in records)
    wrong = sum(r.mismatching_bytes for r in records)
    total = report.totals(records)
    print(f"\n{len(records)} of {len(layers)} layers run, {wrong} mismatching bytes", end="")
    if total["cycles"]:
        print(
            f", {total['cycles']} cycles, roofline {total['roofline_cycles']},"
            f" efficiency {100 * total['efficiency']:.1f} %",
            end="",
        )
        print(f"\nend to end: not measured, {NO_END}", end="")
    print()
    end = unmeasured(NO_END if not args.golden else "no simulator ran")
    report.write_asked(args, records, end_to_end=end)
    return good


def golden(args: argparse.Namespace, layers: list[VectorLayer]) -> list[report.LayerRecord]:
    """The numpy model alone."""
    records = []
    for layer in layers:
        result = run_layer(
            *(layer.arg, layer.x, layer.weights, layer.bn, layer.act),
            x2=layer.x2,
            eight_bit=layer.eight_bit,
        )
        count, first = difference(result.y, layer.y)
        more = {"eight_bit": layer.eight_bit, "wrong": count}
        records.append(report.layer_record(args.config, layer.title, layer.arg, result, **more))
        print(records[-1].note, flush=True)
        if first:
            print(f"  {describe_difference(count, first)}", flush=True)
    return records


def simulated(args: argparse.Namespace, layers: list[VectorLayer]) -> list[report.LayerRecord]:
    """All layers in one simulator process."""
    records: list[report.LayerRecord] = []
    progress = rtl.Progress()

    def on_event(event: launch.Event) -> None:
        if event["event"] == "beat":
            progress.show(f"{layers[event['index']].title}: {event['cycles']} cycles ...")
        elif event["event"] == "layer":
            layer = layers[event["index"]]
            more = {"eight_bit": layer.eight_bit}
            records.append(report.layer_record(args.config, layer.title, layer.arg, event, **more))
            progress.line(records[-1].note)
            if event["first"]:
                progress.line(
                    f"  {describe_difference(event['mismatching_bytes'], event['first'])}"
                )
            if event["failure"]:
                progress.line(f"  {event['failure']}")
            if event["golden_differs"]:
                progress.line("  the golden model differs from the recorded output")
        elif event["event"] == "rules":
            progress.line(event["text"])

    limits = [
        50_000 + LIMIT * layer_cycles(args.config, v.arg, eight_bit=v.eight_bit) for v in layers
    ]
    rtl.simulate_request(args, VectorsRequest(layers, limits), on_event, storage_bytes(layers))
    return records
