# SPDX-License-Identifier: Apache-2.0
"""Commands that test the design, measure it and keep records of that."""

import argparse
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.words import ITEM_KINDS, SIMS
from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.entries.running import configured, parameterised, seeded
from openkpu_tools.entry import entry

MOST_ITEMS = 1_000_000  # of a random regression
MOST_SEEDS = 1_000_000  # of a regression of every test
MOST_MUTANTS = 65535  # numbers that the register takes
MOST_ACTIONS = 10_000_000
MOST_MINUTES = 10_000
LOGIC = ("operator", "constant", "condition", "assignment", "enable", "reset")  # mutants
WIRING = ("swap", "bit", "term", "late", "case")
LEVELS = ("block", "sizes", "device")  # benches that are asked of a mutant
# what tests import, of all kinds
TESTING = (
    "sim icarus verilator models plots registers soc coverage vip integration mutation flows test"
    " cluster reports"
)
DEVICE_TESTS = "sim verilator test registers coverage"


class _Tests(argparse.Action):
    """Paths and options of pytest; the first word is a file or folder."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        if values and not values[0].startswith("-"):
            path = values[0].partition("::")[0]
            try:
                command.there(path)
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, str(error)) from None
            if not (Path(path).is_file() or Path(path).is_dir()):
                raise argparse.ArgumentError(self, f"{path}: expected a file or folder of tests")
        setattr(namespace, self.dest, values)


def module(text: str) -> str:
    """argparse type: a module or folder of the RTL."""
    folders = (ROOT / text, ROOT / "rtl" / text)
    files = (ROOT / top for top in ("rtl", "tb/mutation"))  # where the example lies
    if not text or not (
        any(folder.is_dir() for folder in folders)
        or any([*top.rglob(f"{Path(text).name}.v")] for top in files)
    ):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a module or a folder of the RTL")
    return text


def _jobs(parser: Parser, default: int | None = 2, text: str = "processes at a time") -> None:
    parser.add_argument("--jobs", type=command.JOBS, default=default, help=text)


# ---- tests
@entry("openkpu_tools.verification.tests", TESTING)
def test(parser: Parser) -> None:
    """The first tier of the tests, minutes; of named tests the second as well."""
    parser.add_argument(
        "tests", nargs="*", action=_Tests, help="paths and options of pytest; default: every test"
    )
    parser.add_argument("--all", action="store_true", help="every tier")
    seeded(parser)
    _jobs(parser)


@entry("openkpu_tools.verification.tests:check", f"{TESTING} lint asic")
def check(parser: Parser) -> None:
    """The second tier, on every push: other simulator, sizes, coverage, proofs, lint, a mapping."""
    parser.add_argument(
        "--record", action="store_true", help="the tests of all tools, recorded when they pass"
    )
    seeded(parser)
    _jobs(parser)


@entry("openkpu_tools.verification.tests:sweep", DEVICE_TESTS)
def sweep(parser: Parser) -> None:
    """Every register written in every cycle around every event; some minutes."""
    seeded(parser)
    _jobs(parser)


@entry("openkpu_tools.verification.tests:control", DEVICE_TESTS)
def control(parser: Parser) -> None:
    """A host that does anything at any time."""
    parser.add_argument(
        "--actions", type=command.integer_in(1, MOST_ACTIONS), default=10_000, help="of the host"
    )
    seeded(parser)


def _regressed(args: argparse.Namespace) -> str:
    """What `regress` needs."""
    return f"sim {args.sim or 'verilator'}{' cluster' * bool(args.cluster)}" if args.n else TESTING


@entry("openkpu_tools.verification.regress", _regressed)
def regress(parser: Parser) -> None:
    """Random items (N), or every test seed after seed (SEEDS)."""
    parser.add_argument("--n", type=command.integer_in(1, MOST_ITEMS), help="random items")
    parser.add_argument("--seed", type=command.SEED, help="of the first item; the first of SEEDS")
    parser.add_argument("--sim", choices=SIMS, help="of the items; default: verilator")
    parser.add_argument(
        "--config", type=command.config, help="of the items; default: small, on Icarus nano"
    )
    parameterised(parser)
    parser.add_argument("--kind", choices=ITEM_KINDS, help="of all items")
    parser.add_argument("--cluster", help="address of a dask scheduler: tcp://host:port")
    parser.add_argument(
        "--seeds",
        type=command.integer_in(1, MOST_SEEDS),
        help="every test with so many seeds, 1 and up",
    )
    _jobs(parser, None, "processes at a time; default: 2, of items one on each core")
    parser.add_argument("tests", nargs="*", action=_Tests, help="with SEEDS, these tests alone")


@entry("openkpu_tools.verification.soak", "sim verilator registers coverage")
def soak(parser: Parser) -> None:
    """Random work in one simulation until the time is over."""
    minutes = command.between(0.001, MOST_MINUTES)
    parser.add_argument("--minutes", required=True, type=minutes, help="a number of minutes")
    parser.add_argument("--seed", type=command.SEED, help="a random one by default; it is printed")
    configured(parser)
    parameterised(parser)
    parser.add_argument("--item", type=command.integer_in(0, 1 << 31), help="this item alone")
    parser.add_argument("--plant", default="", choices=("", "leak", "byte"), help=argparse.SUPPRESS)


@entry("openkpu_tools.verification.coverage", DEVICE_TESTS)
def coverage(parser: Parser) -> None:
    """Device tests with coverage -> reports/coverage."""
    parser.add_argument("--share", action="store_true", help="the part that every push runs")
    parser.add_argument("--record", action="store_true", help="record the figures")
    _jobs(parser)


@entry("openkpu_tools.verification.cycles", "sim verilator test models")
def cycles(parser: Parser) -> None:
    """Cycles of layers, digits and a model against their record."""
    parser.add_argument("--record", action="store_true", help="take the cycles as the record")
    _jobs(parser)


@entry("openkpu_tools.verification.testplan", "sim registers")
def testplan(parser: Parser) -> None:
    """What is verified, by what, and what the tests gave -> reports."""
    reports = ROOT / "reports"
    parser.add_argument("--check", action="store_true", help="look at the plan, not at results")
    parser.add_argument(
        "--results",
        type=command.named,
        default=reports / "results.jsonl",
        help="JSON lines of results",
    )
    parser.add_argument(
        "--out", type=command.named, default=reports / "testplan.md", help="the page"
    )


@entry("openkpu_tools.verification.nightly", bare=True)
def nightly(parser: Parser) -> None:
    """All long runs one after the other, and the page of their results."""
    parser.add_argument("--steps", nargs="+", default=[], help="names of steps; default: all")
    parser.add_argument(
        "--record", action="store_true", help="keep results in the page of a release, not reports"
    )
    for name, what in (
        ("page", "write that page from kept results"),
        ("check", "compare the page with kept results"),
        ("release", "fail unless the page is complete and of the RTL as it is"),
    ):
        parser.add_argument(f"--{name}", action="store_true", help=f"run nothing, {what}")


@entry("openkpu_tools.verification.lint", f"{TESTING} lint")
def lint(parser: Parser) -> None:
    """Linters of Verilog and Python, and pages that commands write; clean or fails."""


@entry("openkpu_tools.verification.check_claims", TESTING)
def claims(parser: Parser) -> None:
    """Break each claim, see its test fail."""
    parser.add_argument("claims", nargs="*", help="C1 to C10; default: all")


@entry("openkpu_tools.mutation.mutate", TESTING)
def mutate(parser: Parser) -> None:
    """The RTL changed in N places, one at a time: tests must fail -> reports."""
    parser.add_argument(
        "--n", type=command.integer_in(1, MOST_MUTANTS), default=400, help="number of mutants"
    )
    parser.add_argument("--seed", type=command.SEED, default=7, help="of the places")
    _jobs(parser)
    parser.add_argument("--module", type=module, nargs="+", help="modules, or folders of the RTL")
    parser.add_argument(
        "--kind",
        choices=("logic", "wiring", *LOGIC, *WIRING),
        default="logic",
        help="what is changed",
    )
    parser.add_argument(
        "--level", choices=LEVELS, default=LEVELS[-1], help="the last benches that are asked"
    )
    parser.add_argument(
        "--plan", default="tb/mutation/benches.toml", help="which bench judges which module"
    )
    parser.add_argument("--record", action="store_true", help="keep verdicts in the repository")
    parser.add_argument(
        "--reports", type=command.folder, default=ROOT / "reports", help="where the page goes"
    )


@entry("openkpu_tools.verification.judge", "models quantise test")
def judge(parser: Parser) -> None:
    """A TFLite or ONNX model, its runtime beside the reference."""
    parser.add_argument("model", nargs="?", type=command.named, help="a .tflite or .onnx file")
    parser.add_argument("--table", action="store_true", help="the table of docs/judges.md")
    parser.add_argument("--floats", action="store_true", help="its table of float models")
    parser.add_argument("--write", action="store_true", help="... written into that page")


# ---- figures
@entry("openkpu_tools.benchmarks.bench", "sim verilator models plots")
def bench(parser: Parser) -> None:
    """Cycles of layers, networks and models on the RTL, beside their record -> reports."""
    parser.add_argument("--quick", action="store_true", help="a part, in some minutes")
    parser.add_argument("--record", action="store_true", help="new record and tables")
    parser.add_argument(
        "--errors",
        type=command.integer_in(0, 100_000),
        help="instead: predicted cycles against the RTL's, also of so many random layers",
    )
    parser.add_argument(
        "--reports", type=command.folder, default=ROOT / "reports", help="where they go"
    )


@entry("openkpu_tools.benchmarks.bench_streams:continuous", "sim verilator plots")
def bench_continuous(parser: Parser) -> None:
    """What continuous inference saves; writes docs/continuous.md."""


@entry("openkpu_tools.benchmarks.bench_streams:kept_weights", "sim verilator")
def bench_kept(parser: Parser) -> None:
    """What weights that stay in the AI RAM save; writes docs/kept.md."""


@entry("openkpu_tools.benchmarks.bench_peer", "sim verilator")
def bench_peer(parser: Parser) -> None:
    """Cycles of layers beside those of accelerators that NNgen generates."""
    parser.add_argument("--record", action="store_true", help="write docs/benchmarks.md")


@entry("openkpu_tools.benchmarks.timings", "sim")
def timings(parser: Parser) -> None:
    """Processor seconds and megabytes of the usual commands, from a fresh clone."""
    parser.add_argument("--quick", action="store_true", help="without make test and make check")
    parser.add_argument("--record", action="store_true", help="write docs/benchmarks.md")
