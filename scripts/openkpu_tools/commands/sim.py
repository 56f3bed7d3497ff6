# SPDX-License-Identifier: Apache-2.0
"""The command line of everything that runs on the RTL; `make sim` calls it.

Exit status: 0 everything matched, 1 something did not, 2 the request cannot be met, 130 after
Ctrl-C, 143 after SIGTERM.
"""

import argparse
import dataclasses
import re
import sys
import time
from pathlib import Path

from openkpu.arithmetic.activation import ROUNDINGS
from openkpu.compiler.errors import CompileError
from openkpu.compiler.source import is_ours
from openkpu.kmodel import KmodelError
from openkpu.layer import vectors
from openkpu.layer.argument import LayerError
from openkpu.network.network import NetworkError
from openkpu_tb import seeds, simrun
from openkpu_tools import command
from openkpu_tools.command import (
    Parser,
    UsageError,
    check_output,
    check_outputs,
    complain,
    factors,
    real,
    reals,
    sizes,
    whole,
)
from openkpu_tools.commands import (
    run_compiled,
    run_digits,
    run_matmul,
    run_model,
    run_network,
    run_vectors,
)
from openkpu_tools.commands.model_options import add_model, check_numbering, model_file

from openkpu import configs


def layer_range(text: str) -> str:
    """argparse type: 3-7, 3- or 5; the model says later which layers it has."""
    if not re.fullmatch(r"\d+(-\d*)?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r}: expected layers, for example 3-7, 3- or 5")
    return text


FOR_MODELS = (
    *("image", "layers", "functions", "numbering"),
    *("detector", "bgr", "scale", "bias", "fast"),
)
FOR_QUANTISED = ("mean", "labels", "raw", "shape", "html")
FOR_PICTURES = ("detector", "png", "bgr", "scale", "bias")
ALONE = (run_digits, run_model, run_network, run_compiled)  # with GOLDEN: nothing to compare with
SOURCES = ("model", "vectors", "network", "matmul")  # what runs; without any of them, digits


def check_source(args: argparse.Namespace) -> None:
    """UsageError for more than one thing to run, or options of another."""
    given = [name.upper() for name in SOURCES if getattr(args, name)]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} together, expected one of them")
    if args.images and not args.quantised and given in (["MODEL"], ["VECTORS"], ["MATMUL"]):
        hint = "a model takes IMAGE=picture" if args.model else "all layers of the files are run"
        hint = "a product has two matrices" if args.matmul else hint
        raise UsageError(f"IMAGES counts digits or maps of a network; {hint}")
    if args.type and not args.matmul:
        raise UsageError("TYPE without MATMUL, expected a product to use it with")
    if args.input and not (args.network or args.quantised):
        raise UsageError("INPUT without NETWORK, expected a network to use it with")
    if args.output and not (args.network or args.matmul or args.quantised):
        raise UsageError("OUTPUT without NETWORK, expected a network to use it with")
    if args.png and (args.vectors or args.matmul):
        raise UsageError(f"PNG and {given[0]} together, expected digits, a model or a network")
    if args.input and args.images:
        raise UsageError("INPUT and IMAGES together: the file says how many maps there are")


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
            raise UsageError("GOLDEN and VIA together: no simulator runs")


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
    read = [model_file(args), args.network, args.input, args.detector, args.labels, *many]
    check_outputs([args.report, args.png, args.output, args.html], read)


def check_model(args: argparse.Namespace) -> None:
    """UsageError for options that do not go together."""
    if args.via not in run_model.WAYS:
        raise UsageError(f"unknown way {args.via!r}, expected one of {', '.join(run_model.WAYS)}")
    if args.maps not in run_model.MAPS:
        raise UsageError(f"unknown MAPS {args.maps!r}, expected {' or '.join(run_model.MAPS)}")
    if args.rounding not in ROUNDINGS:
        raise UsageError(
            f"unknown rounding {args.rounding!r}, expected one of {', '.join(ROUNDINGS)}"
        )
    if not args.quantised and (given := [n for n in FOR_QUANTISED if getattr(args, n)]):
        raise UsageError(
            f"{given[0].upper()} without a quantised MODEL, expected a .tflite, .onnx or .okpu file"
        )
    if args.model is None:
        given = [n for n in FOR_MODELS if getattr(args, n) not in (None, False)]
        usual = (("via", "burst"), ("maps", "dma"), ("rounding", "nncase"))
        given += [n for n, d in usual if getattr(args, n) != d]
        if given:
            raise UsageError(f"{given[0].upper()} without MODEL, expected a model to use it with")
        return
    if args.quantised:
        check_quantised(args)
        return
    if isinstance(args.scale, tuple):
        raise UsageError(f"SCALE has {len(args.scale)} numbers, a kmodel takes one")
    check_numbering(args)
    if args.functions and args.image:
        raise UsageError("FUNCTIONS runs on random maps, expected no IMAGE with it")
    pairs = [("functions", name) for name in FOR_PICTURES]
    command.apart(args, *pairs, why="functions run on random maps")
    if not args.functions and not args.image:
        raise UsageError(f"MODEL without IMAGE, expected a picture for {args.model}")
    if args.png and len(args.image or ()) > 1:
        raise UsageError("PNG shows one picture, expected one IMAGE")


def check_quantised(args: argparse.Namespace) -> None:
    """UsageError for options that a quantised model does not have, or that exclude each other."""
    pairs = [("image", "input"), ("image", "images")]
    command.apart(args, *pairs, why="both say what comes in")
    for name in ("mean", "scale", "bgr"):
        if getattr(args, name) not in (None, False) and not args.image:
            raise UsageError(f"{name.upper()} without IMAGE, expected a picture to use it with")
    if args.raw and not args.output:
        raise UsageError("RAW without OUTPUT, expected a file for the bytes")
    plain = {"via": "burst", "maps": "dma", "rounding": "nncase"}
    kmodels = [n for n in (*FOR_MODELS, "png") if n not in ("image", "bgr", "scale")]
    given = [n for n in kmodels if getattr(args, n) not in (None, False)]
    given += [n for n, usual in plain.items() if getattr(args, n) != usual]
    if given:
        raise UsageError(
            f"{given[0].upper()} and {args.model} together, expected a kmodel to use it with"
        )


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    parser = Parser(prog="sim", description=__doc__)
    parser.add_argument("--sim", default="icarus", help="icarus or verilator")
    parser.add_argument("--config", default="small", help="a table of configs.toml")
    parser.add_argument(
        "--bus",
        type=command.bus,
        help="bits of the storage's bus (by configuration)",
    )
    parser.add_argument(
        "--vectors", type=command.named, nargs="+", help=".npz files or folders; default: digits"
    )
    add_model(parser)
    parser.add_argument("--image", type=command.named, nargs="+", help="pictures for the model")
    parser.add_argument(
        "--layers", type=layer_range, help="run only these layers of the model on the RTL: 3-7"
    )
    parser.add_argument(
        "--via", default="burst", help="how the model's layers are started: burst, layers or tasks"
    )
    parser.add_argument(
        "--maps", default="dma", help="who moves maps: dma, the device itself, or window, the host"
    )
    parser.add_argument(
        "--rounding", default="nncase", help="nncase, v01 or trunc (docs/kpu.md 1.3)"
    )
    parser.add_argument("--functions", action="store_true", help="KPU functions of a v5 model")
    parser.add_argument(
        "--detector", type=command.named, help="JSON: anchors, classes, threshold, nms"
    )
    parser.add_argument("--png", type=command.path, help="write a picture: boxes, classes, digits")
    parser.add_argument("--bgr", action="store_true", help="the model wants the blue plane first")
    parser.add_argument(
        "--scale",
        type=factors,
        help="float inputs: pixel * SCALE + BIAS (1/255); quantised models: (pixel - MEAN) * SCALE",
    )
    parser.add_argument("--mean", type=reals, help="of a quantised model's pictures, or of planes")
    parser.add_argument("--labels", type=command.named, help="names of classes, a line each")
    parser.add_argument("--raw", action="store_true", help="OUTPUT holds the device's bytes")
    parser.add_argument("--html", type=command.path, help="page with a quantised model's graph")
    parser.add_argument("--shape", type=sizes, help="of an ONNX model's input whose shape is open")
    parser.add_argument("--bias", type=real, help="float inputs: as above (0)")
    parser.add_argument("--fast", action="store_true", help="maps through the back door")
    parser.add_argument("--golden", action="store_true", help="golden model, no simulator")
    parser.add_argument("--report", type=command.path, help="JSON file to write")
    parser.add_argument("--check", action="store_true", help="bus rules checked on Icarus as well")
    parser.add_argument("--waves", action="store_true", help="record an FST file")
    parser.add_argument(
        "--images", type=whole(1, run_digits.SCANS), help="digits to classify; maps of a network"
    )
    parser.add_argument(
        "--network", type=command.named, help="a network image (.npz, docs/networks.md)"
    )
    parser.add_argument(
        "--input", type=command.named, help="its input maps (.npy, uint8); default: random ones"
    )
    parser.add_argument("--output", type=command.path, help="write the results here (.npy)")
    parser.add_argument(
        "--matmul", type=command.named, nargs="+", help="product: MxKxN, or files of A and B (.npy)"
    )
    parser.add_argument(
        "--type", choices=run_matmul.TYPES, help="of random matrices: int8, uint8, fp16, fp16to16"
    )
    args = parser.parse_args(argv)
    if args.sim not in simrun.SIMS:
        raise UsageError(
            f"unknown simulator {args.sim!r}, expected one of {', '.join(simrun.SIMS)}"
        )
    args.config = configs.load(args.config)
    if args.bus:
        args.config = dataclasses.replace(args.config, ahb_width=args.bus)
    args.quantised = bool(args.model) and is_ours(args.model)
    check_source(args)
    check_model(args)
    check_golden(args)
    check_files(args)
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        seeds.environment()
        if not args.golden:
            simrun.check_tool(args.sim)
            simrun.builds()
        jobs = {"model": run_model, "vectors": run_vectors, "network": run_network}
        jobs["matmul"] = run_matmul
        job = next((jobs[name] for name in jobs if getattr(args, name)), run_digits)
        job = run_compiled if args.quantised else job
        good = job.run(args)
    except (
        UsageError,
        seeds.SeedError,
        configs.ConfigError,
        KmodelError,
        CompileError,
        vectors.VectorError,
        NetworkError,
        LayerError,
        simrun.ToolError,
    ) as error:
        return complain(error)
    except simrun.SimError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    seconds = f"in {time.monotonic() - began:.0f} s"
    if args.golden and job in ALONE:
        print(f"DONE {seconds}; the golden model ran alone, nothing was compared")
    else:
        print(f"{'PASS' if good else 'FAIL'} {seconds}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run(main))
