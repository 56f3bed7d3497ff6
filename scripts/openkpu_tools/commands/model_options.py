# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that read a K210 model."""

import argparse

from openkpu.kmodel import KmodelError
from openkpu.kmodel.package import parted
from openkpu.kmodel.version5.bytecode import dialect_of
from openkpu_tools.command import UsageError, named

MODEL = (
    "quantised .tflite or .onnx, .okpu, kmodel v0 (model.bin), v1, v3, v4 or v5,"
    " or file.kfpkg:name in a package"
)


def numbering(text: str) -> str:
    """argparse type: a release of nncase whose byte code is known."""
    try:
        dialect_of(text)
    except KmodelError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def add_model(parser: argparse.ArgumentParser) -> None:
    """``--model`` and ``--numbering``."""
    parser.add_argument("--model", type=named, help=MODEL)
    parser.add_argument(
        "--numbering",
        type=numbering,
        help="release of nncase whose byte code a v5 model has, as 1.3.0; default: found out",
    )


def model_file(args: argparse.Namespace) -> str | None:
    """The file that ``--model`` names, without a name in it."""
    return args.model and parted(args.model)[0]


def check_numbering(args: argparse.Namespace) -> None:
    """UsageError where no byte code is read."""
    if args.functions and args.numbering:
        raise UsageError("NUMBERING is of the CPU's code, expected no FUNCTIONS with it")
