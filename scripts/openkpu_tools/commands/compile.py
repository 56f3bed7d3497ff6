# SPDX-License-Identifier: Apache-2.0
"""openkpu compile MODEL -o net.okpu: a quantised TFLite or ONNX model as a program for the device.

Exit status: 0, or 2 when the model cannot be compiled; then nothing is written.
"""

import argparse
import sys
from pathlib import Path

from openkpu import configs
from openkpu.compiler import okpu
from openkpu.compiler.errors import CompileError
from openkpu.compiler.source import read_program
from openkpu_tools import command
from openkpu_tools.command import Parser, check_output, check_outputs, complain, writing
from openkpu_tools.commands import compiled_table


def shape(text: str) -> tuple[int, ...]:
    """argparse type: sizes as 1x3x96x96."""
    words = text.lower().split("x")
    if not all(w.isascii() and w.isdigit() and 0 < int(w) < 1 << 20 for w in words):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a shape, for example 1x3x96x96")
    return tuple(map(int, words))


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    parser = Parser(prog="compile", description=__doc__)
    parser.add_argument("model", type=command.named, help="a .tflite or .onnx file")
    parser.add_argument("-o", "--output", type=command.path, help="program file to write (.okpu)")
    parser.add_argument(
        "--config", default="k210", help="configuration whose cycles count (k210); any runs it"
    )
    parser.add_argument("--shape", type=shape, help="of an ONNX input whose shape is open")
    parser.add_argument("--print", action="store_true", dest="graph", help="print the graph")
    args = parser.parse_args(argv)
    args.config = configs.load(args.config)
    if args.output:
        check_output(args.output, ".okpu")
    check_outputs([args.output], [args.model])
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        program = read_program(args.model, args.config, args.shape)
    except (command.UsageError, configs.ConfigError, CompileError) as error:
        return complain(error)
    if args.graph:
        print(program.graph)
    for line in compiled_table.lines(program, args.config):
        print(line)
    if args.output:
        with writing(args.output) as stream:
            stream.write(okpu.dumps(program))
        print(f"program: {args.output}, {Path(args.output).stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
