# SPDX-License-Identifier: Apache-2.0
"""Commands that run something on the device, predict it, or look at models and reports."""

import argparse
import re
from pathlib import Path

from openkpu import kmodel_options
from openkpu.files import parted
from openkpu.words import MAPS, METHODS, PRODUCTS, ROUNDINGS, WAYS
from openkpu_tb import seeds
from openkpu_tb.words import SIMS
from openkpu_tools import command
from openkpu_tools.arguments import Parser, Seed
from openkpu_tools.entry import entry
from openkpu_tools.variants import parameter

SCANS = 360  # handwritten digits that are held out, and so the most that can be asked for
MOST_STREAM = 100_000  # images of a run: their maps and counters lie in the simulator's memory
MOST_SAMPLES = 10_000  # of a calibration
MOST_MORE = 1000  # percent of cycles that weights of 16 bits may take more
MOST_STRIDE = 4  # of a pool of random layers: a smaller map leaves nothing
MHZ = 100.0
SHAPES = ("targets", "k210_rows", "yolo20", "mobilenet075")  # sets of layers of known shapes
TASKS = ("elementwise", "product", "product_fp16", "pools")
RANDOM = ("random", "random_elementwise", "random_product", "random_offset", "random_pool")
RANDOM = (*RANDOM, "random_fp16")
PROGRAMS = ("run", "stream", "recovery", "k210")  # of soc/firmware


def model_there(text: str) -> str:
    """argparse type: a model, or file.kfpkg:name in a package."""
    command.file_there(parted(text)[0])
    return text


def matrices(text: str) -> str:
    """argparse type: sizes MxKxN, or a file."""
    if re.fullmatch(r"\d+x\d+x\d+", text, re.ASCII):
        return text
    try:
        return command.file_there(text)
    except argparse.ArgumentTypeError as error:
        named = text.endswith(".npy") or not text
        sizes = "" if named else ", nor is it MxKxN, for example 4x36x16"
        raise argparse.ArgumentTypeError(f"{error}{sizes}") from None


def shape(text: str) -> tuple[int, ...]:
    """argparse type: sizes as 1x3x96x96."""
    words = text.lower().split("x")
    if not all(w.isascii() and w.isdigit() and 0 < int(w) < 1 << 20 for w in words):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a shape, for example 1x3x96x96")
    return tuple(map(int, words))


def names(text: str) -> tuple[str, ...]:
    """argparse type: names with commas between."""
    found = tuple(text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names, for example boxes,scores")
    return found


def layer_range(text: str) -> str:
    """argparse type: 3-7, 3- or 5; the model says later which layers it has."""
    if not re.fullmatch(r"\d+(-\d*)?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r}: expected layers, for example 3-7, 3- or 5")
    return text


def wide(text: str) -> tuple[str, ...] | float:
    """argparse type: names of layers with commas between them, or a percentage of cycles."""
    if text.endswith("%"):
        try:
            return command.between(0, MOST_MORE)(text.removesuffix("%"))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error} in front of %") from None
    names = tuple(word.strip() for word in text.split(","))
    if not all(names):
        how = "expected names of layers, for example conv1,conv2, or more cycles, as 10%"
        raise argparse.ArgumentTypeError(f"{text!r}: {how}")
    return names


# ---- options that several of them have
def configured(
    parser: Parser, default: str = "small", text: str = "a table of configs.toml"
) -> None:
    """A configuration."""
    parser.add_argument("--config", type=command.config, default=default, help=text)


def parameterised(
    parser: Parser, text: str = "parameters of the device with other values, as POOL_LANES=0"
) -> None:
    """Parameters that the configuration is to have with other values."""
    parser.add_argument(
        "--params", nargs="+", type=parameter, default=[], metavar="NAME=VALUE", help=text
    )


def _configuration(parser: Parser) -> None:
    configured(parser)
    parameterised(parser)
    parser.add_argument(
        "--bus", type=command.bus, help="bits of the storage's bus; default: the configuration's"
    )


def _model(parser: Parser) -> None:
    parser.add_argument(
        "--model",
        type=model_there,
        help="quantised .tflite or .onnx, .okpu, kmodel v0 (model.bin), v1, v3, v4 or v5,"
        " or file.kfpkg:name in a package",
    )
    parser.add_argument(
        "--numbering",
        type=command.given_name,
        help="release of nncase whose byte code a v5 model has, as 1.3.0; default: found out",
    )
    parser.add_argument(
        "--via", default="burst", choices=WAYS, help="how the model's layers are started"
    )
    parser.add_argument(
        "--maps",
        default="dma",
        choices=MAPS,
        help="who moves maps: the device itself, or the host through the AI RAM's window",
    )
    parser.add_argument("--functions", action="store_true", help="KPU functions of a v5 model")


def _shape(parser: Parser) -> None:
    parser.add_argument(
        "--shape",
        type=shape,
        help="shape of a quantised model's input that is open, or of its batch",
    )
    _ends(parser)


def _ends(parser: Parser) -> None:
    words = "tensors with which the network ends, in place of the file's outputs: boxes,scores"
    parser.add_argument("--ends", type=names, help=words)


def _network(parser: Parser) -> None:
    parser.add_argument(
        "--network", type=command.file_there, help="a network image (.npz, docs/networks.md)"
    )


def _product(parser: Parser) -> None:
    parser.add_argument(
        "--matmul", type=matrices, nargs="+", help="product: MxKxN, or files of A and B (.npy)"
    )
    parser.add_argument("--type", choices=PRODUCTS, help="of random matrices; default: int8")


def _report(parser: Parser) -> None:
    parser.add_argument("--report", type=command.path, help="JSON file to write")


def seeded(parser: Parser) -> None:
    """A seed that benches look for in the environment."""
    parser.add_argument("--seed", type=command.SEED, action=Seed, help="of random values")


def _calibration(parser: Parser) -> None:
    parser.add_argument(
        "--calibration",
        type=command.there,
        help="samples of a float model's inputs: pictures (folder or one), .npy, .npz of several",
    )
    parser.add_argument(
        "--samples",
        type=command.integer_in(1, MOST_SAMPLES),
        help="number of samples that calibrate, spread over all (200)",
    )
    parser.add_argument(
        "--method", choices=METHODS, help="how the calibration finds ranges (minmax)"
    )
    parser.add_argument(
        "--wide",
        type=wide,
        help="layers whose weights get 16 bits: conv1,conv2; or how many percent more cycles these"
        " may take, with the sign",
    )


def _pictures(parser: Parser) -> None:
    parser.add_argument("--bgr", action="store_true", help="the model wants the blue plane first")
    parser.add_argument(
        "--scale",
        type=command.factors,
        help="factor of the calibration's pictures: (pixel - MEAN) * SCALE",
    )
    parser.add_argument(
        "--mean", type=command.reals, help="mean of these pictures, or of each plane"
    )


# ---- commands
def _simulated(args: argparse.Namespace) -> str:
    """What `sim` needs."""
    tools = "" if args.golden else f"sim {args.sim}{' fst' * args.waves}"
    return f"{tools} {'models' if args.image or args.png else ''} {_compiled(args)}"


def _read(model: str | None) -> str:
    """What reading a model needs."""
    return "models" if Path(model or "").suffix.lower() in (".tflite", ".onnx") else ""


def _compiled(args: argparse.Namespace) -> str:
    """What compiling a model needs."""
    return f"{_read(args.model)} {'models quantise' if args.calibration else ''}"


def _sim(parser: Parser, recorded: bool) -> None:
    """Options of sim; ``recorded``: as an FST file anyway, which the golden model could not."""
    parser.add_argument("--sim", default="icarus", choices=SIMS, help="the simulator")
    _configuration(parser)
    parser.add_argument(
        "--vectors", type=command.there, nargs="+", help=".npz files or folders; default: digits"
    )
    _model(parser)
    parser.add_argument(
        "--image", type=command.file_there, nargs="+", help="pictures for the model"
    )
    parser.add_argument(
        "--layers", type=layer_range, help="run only these layers of the model on the RTL: 3-7"
    )
    parser.add_argument(
        "--rounding", default="nncase", choices=ROUNDINGS, help="of activations (docs/kpu.md 1.3)"
    )
    parser.add_argument(
        "--detector", type=command.file_there, help="JSON: anchors, classes, ... (docs/models.md 3)"
    )
    parser.add_argument("--png", type=command.path, help="write a picture: boxes, classes, digits")
    parser.add_argument("--bgr", action="store_true", help="the model wants the blue plane first")
    parser.add_argument(
        "--scale",
        type=command.factors,
        help="float inputs: pixel * SCALE + BIAS (1/255); quantised models: (pixel - MEAN) * SCALE",
    )
    parser.add_argument(
        "--mean", type=command.reals, help="mean of a quantised model's pictures, or of each plane"
    )
    parser.add_argument("--labels", type=command.file_there, help="names of classes, a line each")
    _calibration(parser)
    parser.add_argument("--raw", action="store_true", help="--output holds the device's bytes")
    parser.add_argument("--html", type=command.path, help="page with a quantised model's graph")
    _shape(parser)
    parser.add_argument("--bias", type=command.real, help="float inputs: as above (0)")
    parser.add_argument("--fast", action="store_true", help="maps through the back door")
    if recorded:
        parser.set_defaults(golden=False, waves=True)
    else:
        parser.add_argument("--golden", action="store_true", help="golden model, no simulator")
        parser.add_argument("--waves", action="store_true", help="record an FST file")
    _report(parser)
    parser.add_argument("--check", action="store_true", help="bus rules checked on Icarus as well")
    parser.add_argument(
        "--images", type=command.integer_in(1, SCANS), help="digits to classify; maps of a network"
    )
    _network(parser)
    parser.add_argument(
        "--input",
        type=command.file_there,
        help="its input maps (.npy, uint8); default: random ones",
    )
    parser.add_argument("--output", type=command.path, help="write the results here (.npy)")
    _product(parser)
    seeded(parser)


@entry("openkpu_tools.commands.sim", _simulated, checkout=False)
def sim(parser: Parser) -> None:
    """Digits, vectors, a network, a product or a model on the RTL."""
    _sim(parser, recorded=False)


@entry("openkpu_tools.commands.sim", _simulated, words=("--waves",))
def waves(parser: Parser) -> None:
    """Sim that records an FST file in waves/."""
    _sim(parser, recorded=True)


@entry("openkpu_tools.commands.compiled.compile", _compiled, checkout=False)
def compile_(parser: Parser) -> None:
    """Make a program for the device of a TFLite or ONNX model."""
    parser.add_argument("model", type=command.file_there, help="a .tflite or .onnx file")
    parser.add_argument("-o", "--output", type=command.path, help="program file to write (.okpu)")
    configured(parser, "k210", "configuration whose cycles count; any runs it")
    _shape(parser)
    parser.add_argument("--html", type=command.path, help="page with the graph and a table")
    parser.add_argument("--print", action="store_true", dest="graph", help="print the graph")
    _calibration(parser)
    _pictures(parser)


@entry("openkpu_tools.commands.compiled.quantise", "models quantise", checkout=False)
def quantise(parser: Parser) -> None:
    """Quantise a float TFLite or ONNX model, and say what that costs."""
    parser.add_argument("model", type=command.file_there, help="a .tflite or .onnx file")
    parser.add_argument("-o", "--output", type=command.path, help="QDQ model to write (.onnx)")
    parser.add_argument("--shape", type=shape, help="shape of an input that the model leaves open")
    _ends(parser)
    configured(parser, "k210", "configuration whose cycles a percentage of WIDE is of")
    _calibration(parser)
    _pictures(parser)
    _report(parser)


def address(text: str) -> int:
    """argparse type: an address of 32 bits, as 0x80000000 or a decimal number."""
    number = r"0[xX][0-9a-fA-F]{1,8}|0|[1-9]\d{0,9}"  # 010 is 8 in C, 10 elsewhere
    if not re.fullmatch(number, text, re.ASCII) or int(text, 0) >> 32:
        raise argparse.ArgumentTypeError(
            f"{seeds.shown(text)}: expected an address, for example 0x80000000"
        )
    return int(text, 0)


def model_or_digits(text: str) -> str:
    """argparse type: a file, or the name of the network that comes with the project."""
    if text == "digits":
        return text
    try:
        return command.there(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, expected a file, or digits") from None


@entry("openkpu_tools.commands.compiled.export", lambda args: _read(args.model), checkout=False)
def export(parser: Parser) -> None:
    """Write a network as bytes in memory, for firmware: binary, hex, C and linker script."""
    parser.add_argument(
        "--model",
        type=model_or_digits,
        default="digits",
        help=".tflite, .onnx, .okpu, kmodel, network image (.npz), or digits",
    )
    parser.add_argument("--base", type=address, help="address of the image (0x80000000)")
    parser.add_argument(
        "--output",
        type=command.path,
        help="first part of the files' names, which becomes a C name; default: the model's",
    )
    configured(parser, text="configuration of the device")
    parser.add_argument(
        "--images",
        type=command.integer_in(1, 1 << 16),
        help="inputs and results that the memory holds (1)",
    )
    parser.add_argument(
        "--memory",
        type=command.integer_in(1, 1 << 32),
        help="bytes of the memory; a network that needs more is refused",
    )


def _on_chip(args: argparse.Namespace) -> str:
    """What `soc` needs."""
    return f"soc verilator {' '.join(_read(model) for model in args.model or ())}"


@entry("openkpu_tools.flows.soc", _on_chip)
def soc(parser: Parser) -> None:
    """Run the driver in C on a RISC-V processor beside the device, on the RTL."""
    parser.add_argument(
        "--model",
        type=model_or_digits,
        nargs="+",
        help="a model for each device, as export reads them; default: digits",
    )
    parser.add_argument(
        "--program", default="run", choices=PROGRAMS, help="firmware to run (docs/driver.md 6)"
    )
    configured(parser, "nano", "configuration of the devices")
    parser.add_argument(
        "--bus", type=command.bus, help="bits of the bus; default: the configuration's"
    )
    parser.add_argument(
        "--devices", type=command.integer_in(1, 3), default=1, help="devices on the bus"
    )
    parser.add_argument(
        "--axi", action="store_true", help="devices with AXI ports (openkpu_axi), behind adapters"
    )
    parser.add_argument(
        "--images", type=command.integer_in(1, 1000), help="inferences of each device (4)"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="the processor sleeps while a stream runs"
    )
    seeded(parser)


@entry("openkpu_tools.commands.predict", _compiled, checkout=False)
def predict(parser: Parser) -> None:
    """Cycles of a model, a network or a product, without a simulator."""
    _configuration(parser)
    parser.add_argument("--mhz", type=command.between(0.001, 1e6), default=MHZ, help="clock in MHz")
    _model(parser)
    _shape(parser)
    _calibration(parser)
    _pictures(parser)
    _network(parser)
    _product(parser)
    _report(parser)
    seeded(parser)


@entry(
    "openkpu_tools.commands.run_stream",
    lambda args: f"sim {args.sim} {_compiled(args)}",
    checkout=False,
)
def stream(parser: Parser) -> None:
    """Digits, or maps of a network or a quantised model, in one continuous run."""
    parser.add_argument("--sim", default="verilator", choices=SIMS, help="the simulator")
    _configuration(parser)
    _network(parser)
    parser.add_argument(
        "--model", type=command.file_there, help="a quantised model: .tflite, .onnx or .okpu"
    )
    _shape(parser)
    _calibration(parser)
    _pictures(parser)
    parser.add_argument("--input", type=command.file_there, help=".npy file of its maps")
    parser.add_argument(
        "--images", type=command.integer_in(1, MOST_STREAM), help="inferences of the stream"
    )
    parser.add_argument(
        "--disturb", action="store_true", help="random wait states and grants, RETRY and SPLIT"
    )
    parser.add_argument("--seed", type=command.SEED, default=1, help="of maps and disturbance")
    _report(parser)


@entry("openkpu_tools.commands.stalls", "plots", checkout=False)
def stalls(parser: Parser) -> None:
    """Draw where the cycles of a report's layers went."""
    parser.add_argument(
        "report", type=command.file_there, help="a JSON file that a run has written"
    )
    parser.add_argument("--png", type=command.path, help="default: the report's name with .png")


@entry(
    "openkpu.kmodel.__main__",
    lambda args: "models" if args.image or args.png else "",
    checkout=False,
)
def kmodel(parser: Parser) -> None:
    """Show what is in a K210 model."""
    kmodel_options.add_kmodel_options(parser)


@entry("openkpu_tools.commands.make_vectors", checkout=False)
def vectors(parser: Parser) -> None:
    """Write layer vectors."""
    parser.add_argument("out", type=command.folder, help="folder for the .npz files")
    parser.add_argument(
        "--set", choices=(*SHAPES, *TASKS, *RANDOM), default="targets", help="which layers"
    )
    parser.add_argument("--seed", type=command.SEED, default=1, help="of random layers")
    parser.add_argument("--count", type=command.integer_in(1, 1_000_000), help="random layers (10)")
    parser.add_argument(
        "--channels", type=command.integer_in(1, 1024), help="most, of random layers (24)"
    )
    parser.add_argument(
        "--size", type=command.integer_in(MOST_STRIDE, 512), help="largest, of random layers (40)"
    )
