# SPDX-License-Identifier: Apache-2.0
"""openkpu compile MODEL -o net.okpu: a TFLite or ONNX model as a program for the device.

A float model is quantised with --calibration, and the report says what that costs.
Exit status: 0, or 2 when the model cannot be compiled; then nothing is written.
"""

import argparse
from pathlib import Path

from openkpu import configs
from openkpu.compiler import okpu
from openkpu.compiler.calibration import precision
from openkpu_tools import registry
from openkpu_tools.command import check_output, check_outputs, writing
from openkpu_tools.commands.compiled import compiled_page, compiled_table, reading
from openkpu_tools.commands.model_options import request_of


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    args = registry.parse_command("compile", argv)
    args.config = configs.load_config(args.config)
    if args.output:
        check_output(args.output, ".okpu")
    if args.html:
        check_output(args.html, ".html")
    check_outputs([args.output, args.html], [args.model, args.calibration])
    args.request = request_of(args, pictures=True)
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = parse(argv)
    program, calibrated = reading.read_program(args, args.request)
    if args.request and (args.mean is not None or args.scale is not None or args.bgr):
        mean, scale, bgr = args.request.mean, args.request.scale, args.request.bgr
        lists = {"mean": mean and [*mean], "scale": scale and [*scale]}
        program.pictures = {**lists, "bgr": bool(bgr)}
    costs = reading.measured_precision(calibrated) if calibrated else None
    if args.graph:
        print(program.graph)
    for line in compiled_table.node_lines(program, args.config):
        print(line)
    if costs and calibrated:
        print(f"\n{calibrated.summary}\n")
        for line in precision.precision_lines(costs):
            print(line)
    if args.output:
        with writing(args.output) as stream:
            stream.write(okpu.dumps(program))
        print(f"program: {args.output}, {Path(args.output).stat().st_size} bytes")
    if args.html:
        with writing(args.html) as stream:
            stream.write(compiled_page.program_page(program, args.config).encode())
        print(f"page: {args.html}")
    return 0
