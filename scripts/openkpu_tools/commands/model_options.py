# SPDX-License-Identifier: Apache-2.0
"""Checks of the options of commands that read a model."""

import argparse

from openkpu.compiler.calibration.samples import Request
from openkpu.files import parted
from openkpu.kmodel import KmodelError
from openkpu.kmodel.version5.bytecode import dialect_of
from openkpu_tools import command
from openkpu_tools.command import UsageError, option

OF_CALIBRATION = ("samples", "method", "wide")
OF_PICTURES = ("mean", "scale", "bgr")


def model_file(args: argparse.Namespace) -> str | None:
    """The file that ``--model`` names, without a name in it."""
    return args.model and parted(args.model)[0]


def check_numbering(args: argparse.Namespace) -> None:
    """UsageError for a release whose byte code is not known, and where none is read."""
    if args.numbering is None:
        return
    try:
        dialect_of(args.numbering)
    except KmodelError as error:
        raise UsageError(f"{option('numbering')}: {error}") from None
    if args.functions:
        one, other = option("numbering"), option("functions")
        raise UsageError(f"{one} is of the CPU's code, expected no {other} with it")


def request_of(args: argparse.Namespace, *, pictures: bool = False) -> Request | None:
    """The calibration that is asked for; UsageError for its options without it.

    ``pictures``: those of pictures are the calibration's alone.
    """
    for name in OF_PICTURES if pictures else ():
        command.needs(args, name, "calibration", "pictures")
    for name in OF_CALIBRATION:
        command.needs(args, name, "calibration", "samples of a float model's inputs")
    if args.calibration is None:
        return None
    scale = (args.scale,) if isinstance(args.scale, float) else args.scale
    more = {"mean": args.mean, "scale": scale, "bgr": args.bgr}
    more |= {} if args.wide is None else {"wide": args.wide}
    return Request(args.calibration, args.samples, args.method or "minmax", **more)
