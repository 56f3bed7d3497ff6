# SPDX-License-Identifier: Apache-2.0
"""openkpu quantise MODEL --calibration X -o net.onnx: a float model in ONNX's QDQ form.

The file is the quantised model that `openkpu compile` makes from the float model before compiling
it, for users who inspect it or run it elsewhere. Exit status: 0, or 2 when the model cannot be
quantised; then nothing is written.
"""

import argparse
import dataclasses
from pathlib import Path

from openkpu import configs
from openkpu.compiler.calibration import precision
from openkpu.compiler.source import quantised_model
from openkpu_tools import registry
from openkpu_tools.command import (
    UsageError,
    check_output,
    check_outputs,
    option,
    write_json,
    writing,
)
from openkpu_tools.commands.compiled.reading import measured_precision
from openkpu_tools.commands.model_options import request_of
from openkpu_tools.rtl import Ticker


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    args = registry.parse_command("quantise", argv)
    args.config = configs.load_config(args.config)
    args.request = request_of(args)
    if not args.request:
        how = "expected a folder of pictures, x.npy or x.npz with samples of the model's inputs"
        raise UsageError(f"no {option('calibration')}, {how}")
    if args.output:
        check_output(args.output, ".onnx")
    check_outputs([args.output, args.report], [args.model, args.calibration])
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = parse(argv)
    with Ticker(f"quantising {Path(args.model).name}"):
        found = quantised_model(args.model, args.request, args.config, args.shape, args.ends or ())
    costs = measured_precision(found)
    print(found.summary)
    print()
    for line in precision.precision_lines(costs):
        print(line)
    if args.output:
        with writing(args.output) as stream:
            stream.write(found.data)
        print(f"model: {args.output}, {Path(args.output).stat().st_size} bytes")
    if args.report:
        write_json(args.report, record(costs))
        print(f"report: {args.report}")
    return 0


def record(costs: precision.Precision) -> dict[str, object]:
    """The report as JSON has it."""
    rows = []
    for row in costs.rows:
        noises = {n: getattr(row, n) for n in ("through", "own", "narrow", "wide")}
        decibels = {name: row.decibels(noise) for name, noise in noises.items()}
        rows.append({"layer": row.node, "operator": row.operator, "bits": row.bits, **decibels})
    ends = {"outputs": costs.outputs, "outputs_narrow": costs.narrow}
    outputs = {k: [{**dataclasses.asdict(e), "mean": e.mean} for e in v] for k, v in ends.items()}
    return {"samples": costs.samples, "layers": rows, **outputs}
