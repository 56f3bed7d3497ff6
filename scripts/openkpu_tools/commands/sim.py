# SPDX-License-Identifier: Apache-2.0
"""The command line of everything that runs on the RTL; `make sim` calls it.

Exit status: 0 everything matched, 1 something did not, 2 the request cannot be met, 130 after
Ctrl-C, 143 after SIGTERM.
"""

import argparse
import sys
import time
from pathlib import Path

from openkpu.compiler.source import is_ours
from openkpu_tb import seeds, simrun
from openkpu_tools import command, registry, variants
from openkpu_tools.command import (
    UsageError,
    check_output,
    check_outputs,
    option,
)
from openkpu_tools.commands.compiled.run_compiled import sim_quantised
from openkpu_tools.commands.model_options import OF_CALIBRATION, check_numbering, model_file
from openkpu_tools.commands.run_digits import sim_digits
from openkpu_tools.commands.run_matmul import sim_matmul
from openkpu_tools.commands.run_model import sim_model
from openkpu_tools.commands.run_network import sim_network
from openkpu_tools.commands.run_vectors import sim_vectors

FOR_MODELS = (
    *("image", "layers", "functions", "numbering"),
    *("detector", "bgr", "scale", "bias", "fast"),
)
FOR_QUANTISED = ("mean", "labels", "raw", "shape", "ends", "html", "calibration", *OF_CALIBRATION)
FOR_PICTURES = ("detector", "png", "bgr", "scale", "bias")
ALONE = (sim_digits, sim_model, sim_network, sim_quantised)  # with GOLDEN: nothing to compare with
SOURCES = ("model", "vectors", "network", "matmul")  # what runs; without any of them, digits


def check_source(args: argparse.Namespace) -> None:
    """UsageError for more than one thing to run, or options of another."""
    given = [option(name) for name in SOURCES if getattr(args, name)]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} together, expected one of them")
    if args.images and not args.quantised and (args.model or args.vectors or args.matmul):
        hint = (
            f"a model takes {option('image')}" if args.model else "all layers of the files are run"
        )
        hint = "a product has two matrices" if args.matmul else hint
        raise UsageError(f"{option('images')} counts digits or maps of a network; {hint}")
    command.needs(args, "type", "matmul", "a product")
    if not args.quantised:
        if args.model and args.input:
            what = f"is of networks and compiled models, a K210 model takes {option('image')}"
            raise UsageError(f"{option('input')} {what}")
        command.needs(args, "input", "network", "a network")
    if not (args.matmul or args.quantised):
        command.needs(args, "output", "network", "a network")
    if args.png and (args.vectors or args.matmul):
        raise UsageError(
            f"{option('png')} and {given[0]} together, expected digits, a model or a network"
        )
    if args.input and args.images:
        command.apart(args, ("input", "images"), why="the file says how many maps there are")


def check_golden(args: argparse.Namespace) -> None:
    """UsageError for what no simulator would do, as there is none."""
    if args.golden:
        command.apart(
            args,
            ("golden", "waves"),
            ("golden", "check"),
            ("golden", "fast"),
            why="no simulator runs",
        )
        if args.via != "burst":
            command.apart(args, ("golden", "via"), why="no simulator runs")


def check_files(args: argparse.Namespace) -> None:
    """UsageError for outputs that cannot be written, or that a run would read."""
    if args.png:
        check_output(args.png, ".png")
    if args.output:
        several = args.quantised and str(args.output).endswith(".npz")  # outputs
        check_output(args.output, ".npz" if several else ".npy")
    if args.html:
        check_output(args.html, ".html")
    folders = [path for path in map(Path, args.vectors or ()) if path.is_dir()]
    inside = [file for folder in folders for file in folder.glob("*.npz")]
    many = [*(args.vectors or []), *inside, *(args.image or []), *(args.matmul or [])]
    many.append(args.calibration)
    read = [model_file(args), args.network, args.input, args.detector, args.labels, *many]
    check_outputs([args.report, args.png, args.output, args.html], read)


def check_model(args: argparse.Namespace) -> None:
    """UsageError for options that do not go together."""
    if not args.quantised and (given := [n for n in FOR_QUANTISED if getattr(args, n)]):
        raise UsageError(
            f"{option(given[0])} without a TFLite or ONNX {option('model')},"
            " expected a .tflite, .onnx or .okpu file"
        )
    if args.model is None:
        given = [n for n in FOR_MODELS if getattr(args, n) not in (None, False)]
        usual = (("via", "burst"), ("maps", "dma"), ("rounding", "nncase"))
        given += [n for n, d in usual if getattr(args, n) != d]
        for name in given:
            command.needs(args, name, "model", "a model")
        return
    if args.quantised:
        check_quantised(args)
        return
    if isinstance(args.scale, tuple):
        raise UsageError(
            f"{option('scale')} has {len(args.scale)} numbers, expected one for a kmodel"
        )
    check_numbering(args)
    if args.functions and args.image:
        command.apart(args, ("functions", "image"), why="functions run on random maps")
    pairs = [("functions", name) for name in FOR_PICTURES]
    command.apart(args, *pairs, why="functions run on random maps")
    if not args.functions and not args.image:
        raise UsageError(
            f"{option('model')} without {option('image')}, expected a picture for {args.model}"
        )
    check_one_picture(args)


def check_one_picture(args: argparse.Namespace) -> None:
    """UsageError for several pictures in one."""
    if args.png and len(args.image or ()) > 1:
        raise UsageError(f"{option('png')} shows one picture, expected one {option('image')}")


def check_quantised(args: argparse.Namespace) -> None:
    """UsageError for options that a quantised model does not have, or that exclude each other."""
    pairs = [("image", "input"), ("image", "images")]
    command.apart(args, *pairs, why="both say what comes in")
    if not args.calibration:
        for name in ("mean", "scale", "bgr"):
            command.needs(args, name, "image", "a picture")
    command.needs(args, "raw", "output", "a file for the bytes")
    for name in ("detector", "png"):
        command.needs(args, name, "image", "a picture")
    check_one_picture(args)
    plain = {"via": "burst", "maps": "dma", "rounding": "nncase"}
    shared = ("image", "bgr", "scale", "detector")
    kmodels = [n for n in FOR_MODELS if n not in shared]
    given = [n for n in kmodels if getattr(args, n) not in (None, False)]
    given += [n for n, usual in plain.items() if getattr(args, n) != usual]
    if given:
        raise UsageError(
            f"{option(given[0])} and {args.model} together, expected a kmodel to use it with"
        )


def parse_sim(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    args = registry.parse_command("sim", argv)
    args.device = variants.requested(args)
    args.device.check_rounding(args.rounding)
    args.config = args.device.titled
    args.quantised = bool(args.model) and is_ours(args.model)
    check_source(args)
    check_model(args)
    check_golden(args)
    check_files(args)
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    args = parse_sim(argv)
    seeds.environment()
    if not args.golden:
        simrun.check_tool(args.sim)
        simrun.builds()
    jobs = {"model": sim_model, "vectors": sim_vectors, "network": sim_network}
    jobs["matmul"] = sim_matmul
    job = next((jobs[name] for name in jobs if getattr(args, name)), sim_digits)
    job = sim_quantised if args.quantised else job
    good = job(args)
    seconds = f"in {time.monotonic() - began:.0f} s"
    if args.golden and job in ALONE:
        print(f"DONE {seconds}; the golden model ran alone, nothing was compared")
    else:
        print(f"{'PASS' if good else 'FAIL'} {seconds}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run_command(main))
