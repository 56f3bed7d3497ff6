# SPDX-License-Identifier: Apache-2.0
"""The command line of everything that runs on the RTL; `make sim` calls it.

Exit status: 0 everything matched, 1 something did not, 2 the request could not be understood.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NoReturn

from models import configs, vectors
from models.layer import LayerError
from models.network import NetworkError
from scripts import digits_job, vectors_job
from tb import simrun


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


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    parser = Parser(prog="sim", description=__doc__)
    parser.add_argument("--sim", default="icarus", help="icarus or verilator")
    parser.add_argument("--config", default="small", help="a table of configs.toml")
    parser.add_argument("--vectors", nargs="+", help=".npz files or folders; default: digits")
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
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        if not args.golden:
            simrun.check_tool(args.sim)
        job = vectors_job if args.vectors else digits_job
        good = job.run(args)
    except (
        UsageError,
        configs.ConfigError,
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
