# SPDX-License-Identifier: Apache-2.0
"""Commands that synthesise, place, time and prove the design."""

import argparse

from openkpu_tb import seeds
from openkpu_tb.words import SIMS
from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.entries.running import configured, model_or_digits, parameterised
from openkpu_tools.entries.verification import module
from openkpu_tools.entry import entry
from openkpu_tools.families import FAMILIES, FAMILY_OF

BOARDS = ("ulx3s-85f",)


def every_config(text: str) -> str:
    """argparse type: a configuration, or all."""
    return text if text == "all" else command.config(text)


def baud(text: str) -> int:
    """argparse type: a rate in bits a second; which ones there are depends on the clock."""
    if not seeds.is_whole(text):
        raise argparse.ArgumentTypeError(f"{seeds.shown(text)}: expected a whole number")
    return int(text)


def _configurations(parser: Parser, usual: str) -> None:
    parser.add_argument(
        "config", nargs="*", type=every_config, help=f"configurations, or all; default: {usual}"
    )


def _figures(parser: Parser) -> None:
    parser.add_argument("--baseline", action="store_true", help="compare with what is recorded")
    parser.add_argument("--record", action="store_true", help="record the figures")


@entry("openkpu_tools.flows.synth", "flows", checkout=False)
def synth(parser: Parser) -> None:
    """A configuration mapped to ECP5 with its hierarchy: LUT, flip-flops, DSP, RAM of every box."""
    _configurations(parser, "nano")
    parameterised(parser)
    parser.add_argument("--check", action="store_true", help="elaborate, map nothing; default: all")
    parser.add_argument(
        "--report", "--json", type=command.path, help="write the table to this file (JSON), too"
    )
    parser.add_argument("--record", action="store_true", help="keep the sums for docs/silicon.md")


@entry("openkpu_tools.flows.synth", "flows", words=("--check",), checkout=False)
def synth_check(parser: Parser) -> None:
    """Every configuration elaborated: no latch, loop, second driver, path through the bus ports."""
    _configurations(parser, "all")


@entry("openkpu_tools.flows.fpga", "flows", checkout=False)
def fpga(parser: Parser) -> None:
    """A configuration mapped for an FPGA; for an ECP5 placed and routed as well -> reports/fpga."""
    configured(parser, "nano_fpga")
    parameterised(parser)
    parser.add_argument(
        "--family",
        choices=FAMILIES,
        help="ecp5 (default): mapped, placed, routed; xc7: mapped by synth_xilinx and counted",
    )
    parser.add_argument(
        "--part", choices=FAMILY_OF, help="another part; status 1 where the device is too large"
    )
    parser.add_argument(
        "--seed", type=command.integer_in(0, (1 << 31) - 1), help="of the placement; default: 1"
    )
    parser.add_argument(
        "--map", "--map-only", action="store_true", help="neither placed nor routed"
    )
    parser.add_argument("--place", "--place-only", action="store_true", help="placed, not routed")
    parser.add_argument("--route", action="store_true", help="routed, even where that finds no end")
    _figures(parser)


@entry("openkpu_tools.flows.features", "flows models", checkout=False)
def features(parser: Parser) -> None:
    """What each feature costs: LUT, DSP, block RAM of an ECP5, predicted cycles; takes hours."""
    configured(parser, "nano_fpga")
    parameterised(parser, "these settings alone, each in a mapping of its own, for example PERF=0")
    parser.add_argument("--record", action="store_true", help="keep the table for docs/silicon.md")


@entry("openkpu_tools.flows.board", "sim verilator flows soc")
def board(parser: Parser) -> None:
    """A bitstream: the computer of soc/ with a network in block RAM -> build/board."""
    parser.add_argument("--board", choices=BOARDS, default=BOARDS[0], help="the board")
    parser.add_argument(
        "--model", type=model_or_digits, help="the model, as export reads it; default: digits"
    )
    configured(parser, "nano_fpga", "configuration of the device")
    parser.add_argument(
        "--images", type=command.integer_in(1, 100), default=1, help="inputs in the storage (1)"
    )
    parser.add_argument(
        "--mhz",
        type=command.between(10, 400),
        default=40,
        help="clock of the computer, at most (40)",
    )
    parser.add_argument(
        "--baud",
        type=baud,
        default=1_000_000,
        help="of the serial line: the clock by a whole number, within 2 %% (1000000)",
    )
    parser.add_argument("--seed", type=command.SEED, help="of the placement; default: 1")
    parser.add_argument("--simulate", action="store_true", help="simulate the RTL, no more")
    parser.add_argument("--netlist", action="store_true", help="simulate the netlist, too")
    parser.add_argument("--map", "--map-only", action="store_true", help="no bitstream")
    parser.add_argument("--out", type=command.path, help="the bitstream's file")


@entry("openkpu_tools.flows.asic.flow", "flows asic", checkout=False)
def asic(parser: Parser) -> None:
    """A configuration mapped to standard cells and timed -> reports/asic."""
    configured(parser, "nano")
    parameterised(parser)
    _figures(parser)


@entry("openkpu_tools.flows.asic.power", "sim verilator flows asic", checkout=False)
def power(parser: Parser) -> None:
    """Energy of array and post lanes with real digits, and what the sign gate saves of it."""
    configured(parser, "nano")
    parser.add_argument(
        "--images",
        type=command.integer_in(1, 100),
        default=4,
        help="digits, one after the other (4)",
    )
    parser.add_argument("--record", action="store_true", help="record the figures")


@entry("openkpu_tools.flows.equivalence", "flows", checkout=False)
def equivalence(parser: Parser) -> None:
    """Prove that each module's netlist is the RTL."""
    configured(parser, "nano")
    parser.add_argument("--jobs", type=command.JOBS, default=2, help="processes at a time")
    parser.add_argument("module", nargs="*", help="only these")


@entry("openkpu_tools.flows.formal", "flows")
def formal(parser: Parser) -> None:
    """Properties of the RTL proven -> reports."""
    parser.add_argument("module", nargs="*", type=module, help="only these")
    parser.add_argument("--quick", action="store_true", help="without the long proofs")
    parser.add_argument("--mutants", action="store_true", help="break each module, see it fail")
    parser.add_argument("--record", action="store_true", help="keep what the long proofs are of")
    parser.add_argument("--jobs", type=command.JOBS, default=2, help="proofs at a time")


@entry("openkpu_tools.flows.gates", "sim icarus verilator flows", checkout=False)
def gates(parser: Parser) -> None:
    """The netlist of ECP5 cells computes a layer and two digits."""
    configured(parser, "nano_fpga")
    parameterised(parser)
    parser.add_argument("--sim", default="verilator", choices=SIMS, help="the simulator")
    parser.add_argument("--seed", type=command.SEED, help="of the random layer")
    parser.add_argument(
        "--netlist", type=command.named, help="JSON of the mapped device, made before"
    )
    parser.add_argument("--keep", type=command.named, help="write the netlist to this file, too")
