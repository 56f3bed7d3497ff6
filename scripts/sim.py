# SPDX-License-Identifier: Apache-2.0
"""The command line of everything that runs on the RTL; `make sim` calls it.

Exit status: 0 everything matched, 1 something did not, 2 the request could not be understood.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NoReturn

from openkpu.models import configs, vectors
from openkpu.models.activation import ROUNDINGS
from openkpu.models.kmodel import KmodelError
from openkpu.models.layer import LayerError
from openkpu.models.network import NetworkError
from openkpu.scripts import run_digits, run_model, run_vectors
from openkpu.tb import simrun


class UsageError(ValueError):
    """One line about a request that cannot be met."""


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def positive(text: str) -> int:
    """A number of images."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of images (1 or more)")
    return int(text)


def real(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


FOR_MODELS = ("image", "layers", "functions", "detector", "png", "bgr", "scale", "bias", "fast")


def check_model(args: argparse.Namespace) -> None:
    """UsageError for options that do not go together."""
    if args.via not in run_model.WAYS:
        raise UsageError(f"unknown way {args.via!r}, expected one of {', '.join(run_model.WAYS)}")
    if args.rounding not in ROUNDINGS:
        raise UsageError(
            f"unknown rounding {args.rounding!r}, expected one of {', '.join(ROUNDINGS)}"
        )
    if args.model is None:
        given = [name for name in FOR_MODELS if getattr(args, name)]
        given += [n for n, d in (("via", "burst"), ("rounding", "nncase")) if getattr(args, n) != d]
        if given:
            raise UsageError(f"{given[0].upper()} without MODEL, expected a model to use it with")
        return
    if args.vectors:
        raise UsageError("MODEL and VECTORS together, expected one of them")
    if args.images:
        raise UsageError("IMAGES counts digits; a model takes IMAGE=picture")
    if args.functions and args.image:
        raise UsageError("FUNCTIONS runs on random maps, expected no IMAGE with it")
    if not args.functions and not args.image:
        raise UsageError(f"MODEL without IMAGE, expected a picture for {args.model}")
    if args.png and args.png.suffix.lower() != ".png":
        raise UsageError(f"{args.png}: expected a name that ends in .png")
    if args.png and (args.functions or len(args.image) != 1):
        raise UsageError("PNG shows one picture, expected one IMAGE")
    if args.png and not args.png.resolve().parent.is_dir():
        raise UsageError(f"{args.png}: the folder does not exist")


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    parser = Parser(prog="sim", description=__doc__)
    parser.add_argument("--sim", default="icarus", help="icarus or verilator")
    parser.add_argument("--config", default="small", help="a table of configs.toml")
    parser.add_argument("--vectors", nargs="+", help=".npz files or folders; default: digits")
    parser.add_argument("--model", help="kmodel v0 (model.bin), v1, v3, v4 or v5")
    parser.add_argument("--image", nargs="+", help="pictures for the model")
    parser.add_argument("--layers", help="run only these layers of the model on the RTL: 3-7")
    parser.add_argument(
        "--via", default="burst", help="how the model's layers are started: burst, layers or tasks"
    )
    parser.add_argument(
        "--rounding", default="nncase", help="nncase, v01 or trunc (docs/kpu.md 1.3)"
    )
    parser.add_argument("--functions", action="store_true", help="KPU functions of a v5 model")
    parser.add_argument("--detector", help="JSON: anchors, classes, threshold, nms")
    parser.add_argument("--png", type=Path, help="write the picture with boxes here")
    parser.add_argument("--bgr", action="store_true", help="the model wants the blue plane first")
    parser.add_argument("--scale", type=real, help="float inputs: pixel * SCALE + BIAS (1/255)")
    parser.add_argument("--bias", type=real, help="float inputs: as above (0)")
    parser.add_argument("--fast", action="store_true", help="maps through the back door")
    parser.add_argument("--golden", action="store_true", help="golden model, no simulator")
    parser.add_argument("--report", type=Path, help="JSON file to write")
    parser.add_argument("--waves", action="store_true", help="record an FST file")
    parser.add_argument("--images", type=positive, help="digits to classify")
    args = parser.parse_args(argv)
    if args.sim not in simrun.SIMS:
        raise UsageError(
            f"unknown simulator {args.sim!r}, expected one of {', '.join(simrun.SIMS)}"
        )
    args.config = configs.load(args.config)
    if args.report and not args.report.resolve().parent.is_dir():
        raise UsageError(f"{args.report}: the folder does not exist")
    check_model(args)
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        if not args.golden:
            simrun.check_tool(args.sim)
        job = run_model if args.model else run_vectors if args.vectors else run_digits
        good = job.run(args)
    except (
        UsageError,
        configs.ConfigError,
        KmodelError,
        vectors.VectorError,
        NetworkError,
        LayerError,
        simrun.ToolError,
    ) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except simrun.SimError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    print(f"{'PASS' if good else 'FAIL'} in {time.monotonic() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
