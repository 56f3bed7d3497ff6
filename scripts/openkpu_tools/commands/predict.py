# SPDX-License-Identifier: Apache-2.0
"""Cycles of a model, a network or a product on a configuration, predicted without a simulator.

Without any of them, of the digits network. Exit status: 0, or 2 when the request cannot be met.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from openkpu import digits
from openkpu.compiler.source import is_ours
from openkpu.configs import Config
from openkpu.kmodel import KmodelError, loads_functions, loads_kmodel, read_model
from openkpu.layer import elementwise, pool_tasks
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Network
from openkpu.prediction import bound
from openkpu.prediction.cycles import BOUNDS, LayerCycles
from openkpu.prediction.cycles_model import Predicted, predict_model, predict_network
from openkpu.prediction.roofline import (
    array_macs,
    cycles_beside,
    layer_bytes,
    layer_cycles,
    network_cycles,
    roofline_cycles,
)
from openkpu.products import matmul_lists
from openkpu_tools import command, registry, variants
from openkpu_tools.command import UsageError, check_outputs, option
from openkpu_tools.commands import run_matmul, run_network
from openkpu_tools.commands.compiled.reading import read_program
from openkpu_tools.commands.model_options import (
    OF_CALIBRATION,
    OF_PICTURES,
    check_numbering,
    model_file,
    request_of,
)

MHZ = 100.0
HEAD = (
    f"{'layer':<8} {'kind':<16} {'map':<29} {'cycles':>9}  {'bound by':<8} {'effic.':>7} "
    + " ".join(f"{name:>8}" for name in BOUNDS)
)
SOURCES = ("model", "network", "matmul")


def kind(arg: LayerArg) -> str:
    """What a layer is, in a word or two."""
    if arg.pool_task:
        window = pool_tasks.window_of(arg)
        size = "all" if arg.pool_all else f"{window.kh}x{window.kw}s{window.sy}"
        return f"{pool_tasks.KINDS[arg.pool_task].split()[0]} {size}"
    if arg.elementwise:
        return elementwise.OPERATIONS[arg.ew_op] + (f" p{arg.pool_type}" if arg.pool_type else "")
    if arg.fc:
        return "fc"
    if arg.out32 or arg.fp16:
        return "product" + (" fp16" if arg.fp16 else "")
    deep = " dw" if arg.depthwise else ""
    return f"{arg.kernel}x{arg.kernel}{deep}" + (f" p{arg.pool_type}" if arg.pool_type else "")


def record(name: str, layer: LayerCycles) -> dict[str, Any]:
    """A layer for the report: cycles, what bounds it, efficiency of the roofline."""
    shape = layer.shape
    least = layer_cycles(shape.config, shape.arg, eight_bit=shape.eight_bit)
    return {
        "name": name,
        "kind": kind(shape.arg),
        "in_shape": list(shape.arg.in_shape),
        "out_shape": list(shape.arg.out_shape),
        "macs": array_macs(shape.arg),
        "cycles": layer.cycles,
        "bound": layer.bound,
        "parts": layer.parts,
        "map_bytes": {"loads": layer.loads, "stores": layer.stores},
        "roofline_cycles": least,
        "efficiency": round(least / layer.cycles, 4),
    }


def roofline_of_lists(parts: Sequence[Predicted]) -> int:
    """Of task lists: they themselves, their inputs and results cross the bus as well."""
    return sum(
        network_cycles(
            part.layers[0].shape.config,
            [layer.shape.arg for layer in part.layers],
            eight_bit=part.layers[0].shape.eight_bit,
        )
        for part in parts
    )


def roofline_of(layers: Sequence[LayerCycles]) -> int:
    """Of all layers, with the maps that they load and store: sums first, then the maximum."""
    config = layers[0].shape.config
    macs = more = total = 0
    for layer in layers:
        arg = layer.shape.arg
        macs += array_macs(arg)
        more += cycles_beside(config, arg)
        total += layer_bytes(
            arg,
            eight_bit=layer.shape.eight_bit,
            reads_input=bool(arg.load_map),
            writes_output=bool(arg.store_map),
        )
    return roofline_cycles(config, macs, total, more)


def row(found: dict[str, Any]) -> str:
    """A line under ``HEAD``: the parts as shares of the cycles."""
    maps = " -> ".join("x".join(map(str, found[key])) for key in ("in_shape", "out_shape"))
    shares = " ".join(f"{100 * n / found['cycles']:7.1f}%" for n in found["parts"].values())
    efficiency = f"{100 * found['efficiency']:6.1f}%"
    return (
        f"{found['name']:<8} {found['kind']:<16} {maps:<29} {found['cycles']:>9}"
        f"  {found['bound']:<8} {efficiency} {shares}"
    )


# ---------------------------------------------------------------------- what is predicted
def of_model(args: argparse.Namespace) -> tuple[str, list[Predicted]]:
    """A kmodel, or its KPU functions; KmodelError."""
    model = read_model(args.model)
    data, name = model.data, model.name
    if args.functions:
        programs = loads_functions(data, name)
    else:
        programs = [loads_kmodel(data, name, args.numbering)]
    config: Config = args.config
    for program in programs:
        program.check_device(
            ram_rows=config.ai_ram_rows,
            weight_bits=config.weight_bits,
            weight_rows=config.wbuf_rows,
            n_z=config.n_z,
        )
    if not any(program.kpu_layers for program in programs):
        raise KmodelError(f"{name}: no KPU layers")
    found = predict_model(config, programs, len(data), args.via, args.maps)
    who = "the device" if args.maps == "dma" else "the host"
    said = ", ".join(part for part in (name, programs[0].detail, model.note) if part)
    return f"{said}, started by {args.via}, maps moved by {who}", [found]


def of_compiled(args: argparse.Namespace) -> tuple[str, list[Predicted]]:
    """A quantised model: its task lists; CompileError, NetworkError."""
    program, calibrated = read_program(args, args.request)
    if calibrated:
        print(calibrated.summary)
    found = []
    for part in program.device_parts:
        run_network.check_named(args.model, part.network, args.config)
        found.append(predict_network(args.config, part.network))
    hosts = sum(report.runs == "host" for report in program.reports.values())
    lists = "a task list" if len(found) == 1 else f"{len(found)} task lists"
    return f"{args.model}, {lists}, {hosts} nodes on the host", found


def of_network(args: argparse.Namespace) -> tuple[str, list[Predicted]]:
    """A saved network; NetworkError."""
    network = Network.load(args.network)
    run_network.check_named(args.network, network, args.config)
    return f"{args.network}, a task list", [predict_network(args.config, network)]


def of_product(args: argparse.Namespace) -> tuple[str, list[Predicted]]:
    """A product of matrices: a task list of its tiles, or several."""
    a, b, _ = run_matmul.given_matrices(args.matmul, args.type)
    (m, k), n = a.shape, b.shape[1]
    tiles, lists = run_matmul.tiles_of(a, b, args.config, wide=args.type != "fp16to16")
    found = []
    for part in lists:
        network = matmul_lists.network_of(part, a, b)
        run_network.check_network(network, args.config)
        found.append(predict_network(args.config, network))
    kind = args.type or str(a.dtype)
    return f"{m}x{k} by {k}x{n}, {kind}, {run_matmul.amount(tiles, lists)}", found


def of_digits(args: argparse.Namespace) -> tuple[str, list[Predicted]]:
    """The project's digits network."""
    network = digits.load_network(args.config.ai_ram_rows)
    run_network.check_network(network, args.config)
    return "handwritten digits, a task list", [predict_network(args.config, network)]


# ------------------------------------------------------------------------------ command
def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    args = registry.parse_command("predict", argv)
    args.device = variants.requested(args)
    args.config = args.device.titled
    given = [option(name) for name in SOURCES if getattr(args, name)]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} together, expected one of them")
    usual = {"via": "burst", "maps": "dma", "functions": False, "numbering": None}
    for name, default in usual.items():
        if getattr(args, name) != default:
            command.needs(args, name, "model", "a model")
    check_numbering(args)
    args.quantised = bool(args.model) and is_ours(args.model)
    for name, default in usual.items() if args.quantised else ():
        if getattr(args, name) != default:
            raise UsageError(
                f"{option(name)} and {args.model} together, expected a kmodel to use it with"
            )
    for name in (
        () if args.quantised else ("shape", "ends", "calibration", *OF_CALIBRATION, *OF_PICTURES)
    ):
        if getattr(args, name) not in (None, False):
            raise UsageError(f"{option(name)} without a quantised model, which it is for")
    args.request = request_of(args, pictures=True)
    command.needs(args, "type", "matmul", "a product")
    read = [model_file(args), args.calibration, args.network, *(args.matmul or [])]
    check_outputs([args.report], read)
    return args


def predicted(args: argparse.Namespace) -> None:
    """Predict, print the table, write the report."""
    jobs = {"model": of_model, "network": of_network, "matmul": of_product}
    job = next((jobs[name] for name in SOURCES if getattr(args, name)), of_digits)
    job = of_compiled if args.quantised else job
    kmodel = args.model and not args.quantised
    title, parts = job(args)
    config = args.config
    print(
        f"{title}, predicted: configuration {config.name} ({config.macs} MACs),"
        f" bus of {config.ahb_width} bits, {args.mhz:g} MHz\n\n{HEAD}"
    )
    records = []
    for number, part in enumerate(parts):
        prefix = f"{number}/" if len(parts) > 1 else ""
        for name, layer in zip(part.names, part.layers, strict=True):
            records.append(record(prefix + name, layer))
            print(row(records[-1]))
    layers = sum(found["cycles"] for found in records)
    if kmodel:
        least = roofline_of([layer for part in parts for layer in part.layers])
    else:
        least = roofline_of_lists(parts)
    of_array_and_bus, in_turn = bound.of_runs(config, (run for part in parts for run in part.runs))
    whole = sum(part.cycles for part in parts)
    maps = sum(part.host_maps for part in parts)
    sums = {
        "layers": len(records),
        "cycles": layers,
        "roofline_cycles": least,
        "efficiency": round(least / layers, 4),
        "least_cycles": of_array_and_bus,
        "in_turn_cycles": in_turn,
        "host_map_cycles": maps,
        "other_cycles": sum(part.other for part in parts),
        "end_to_end_cycles": whole,
        "milliseconds": round(whole / args.mhz / 1e3, 6),
        "frames_per_second": round(args.mhz * 1e6 / whole, 3),
    }
    causes = {name: sum(found["parts"][name] for found in records) for name in BOUNDS}
    shares = ", ".join(f"{name} {100 * n / layers:.1f} %" for name, n in causes.items())
    print(f"\n{len(records)} layers      {layers:12d} cycles   {shares}")
    print(f"roofline       {least:12d} cycles   efficiency {100 * least / layers:.1f} %")
    print(
        f"least          {of_array_and_bus:12d} cycles   of array and bus as it is run;"
        f" one layer at a time {in_turn}"
    )
    print(
        f"end to end     {whole:12d} cycles   maps moved by the host {100 * maps / whole:.1f} %,"
        f" registers and interrupts {100 * sums['other_cycles'] / whole:.1f} %"
    )
    print(
        f"at {args.mhz:g} MHz   {sums['milliseconds']:.3f} ms,"
        f" {sums['frames_per_second']:.1f} frames a second"
    )
    if args.report:
        content = {
            **args.device.facts,
            "ahb_width": config.ahb_width,
            "mhz": args.mhz,
            "via": args.via if kmodel else "tasks",
            "maps": args.maps if kmodel else None,
            "layers": records,
            "runs": [len(run) for part in parts for run in part.runs],
            "totals": {**sums, "parts": causes},
        }
        command.write_json(args.report, content)
        print(f"report: {args.report}")


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    predicted(parse(argv))
    return 0
