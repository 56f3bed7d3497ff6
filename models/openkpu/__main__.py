# SPDX-License-Identifier: Apache-2.0
"""openkpu COMMAND ...: every command of the project under one name; `make` runs the same.

Exit status: 0 good, 1 a mismatch or a failure, 2 a request that cannot be met, 130 after Ctrl-C,
143 after SIGTERM.
"""

import contextlib
import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from openkpu import __version__

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# name: (module with main(argv), what it does)
COMMANDS = {
    "sim": ("openkpu_tools.commands.sim", "digits, vectors, a network or a K210 model on the RTL"),
    "compile": (
        "openkpu_tools.commands.compile",
        "a quantised TFLite or ONNX model as a program file",
    ),
    "predict": (
        "openkpu_tools.commands.predict",
        "cycles of a model or network, without a simulator",
    ),
    "stream": ("openkpu_tools.commands.run_stream", "digits in one continuous run"),
    "stalls": ("openkpu_tools.commands.stalls", "draw where the cycles of a report's layers went"),
    "kmodel": ("openkpu.kmodel.__main__", "list the contents of a K210 model"),
    "vectors": ("openkpu_tools.commands.make_vectors", "write layer vectors"),
    "judge": (
        "openkpu_tools.verification.judge",
        "a TFLite or ONNX model, its runtime beside the reference",
    ),
    "configs": ("openkpu_tools.documents.configs", "print the table of configurations"),
    "regress": (
        "openkpu_tools.verification.regress",
        "random items, or every test seed after seed",
    ),
    "soak": (
        "openkpu_tools.verification.soak",
        "random work in one simulation until the time is over",
    ),
    "coverage": ("openkpu_tools.verification.coverage", "device tests with coverage"),
    "bench": (
        "openkpu_tools.benchmarks.bench",
        "measure cycles on the RTL, compare with the record",
    ),
    "bench-continuous": (
        "openkpu_tools.benchmarks.bench_continuous",
        "measure continuous inference",
    ),
    "bench-kept": (
        "openkpu_tools.benchmarks.bench_kept",
        "measure weights that stay in the AI RAM",
    ),
    "testplan": ("openkpu_tools.verification.testplan", "the test plan with the last results"),
    "nightly": (
        "openkpu_tools.verification.nightly",
        "all long runs, and the table of their results",
    ),
    "timings": ("openkpu_tools.benchmarks.timings", "measure the usual commands in a fresh clone"),
    "lint": ("openkpu_tools.verification.lint", "linters of Verilog and Python"),
    "fpga": ("openkpu_tools.flows.fpga", "place and route a configuration for an ECP5"),
    "asic": ("openkpu_tools.flows.asic", "map a configuration to standard cells and time it"),
    "silicon": ("openkpu_tools.documents.silicon_table", "print the tables of area and clock"),
    "cycles": (
        "openkpu_tools.verification.cycles",
        "cycles of layers and models against their record",
    ),
    "equivalence": ("openkpu_tools.flows.equivalence", "prove that synthesis kept the RTL"),
    "formal": ("openkpu_tools.flows.formal", "prove properties of the RTL"),
    "gates": ("openkpu_tools.flows.gates", "simulate the netlist of a configuration"),
    "synth": ("openkpu_tools.flows.synth", "map a configuration to ECP5, or check all"),
    "mutate": ("openkpu_tools.mutation.mutate", "change the RTL in many places, see tests fail"),
    "claims": ("openkpu_tools.verification.check_claims", "break each claim, see its test fail"),
    "claim-table": ("openkpu_tools.documents.claim_table", "write docs/claims.md"),
    "write-table": (
        "openkpu_tools.documents.write_table",
        "write the table in docs/programming.md",
    ),
    "page-tables": (
        "openkpu_tools.documents.page_tables",
        "write the tables of the pages from records",
    ),
    "registers": (
        "openkpu_tools.documents.gen_regs",
        "write the files made of the register description",
    ),
    "fields": ("openkpu_tools.documents.gen_fields", "write the Verilog header of fields"),
}


def usage() -> str:
    """The list of commands."""
    lines = [f"  {name:<17} {text}" for name, (_, text) in COMMANDS.items()]
    head = f"openkpu {__version__}\nusage: openkpu COMMAND ... (openkpu COMMAND --help tells more)"
    return "\n".join([head, "", *lines])


def _quit(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: modules are being imported, and there is nothing to clean up yet."""
    os.write(2, b"\ninterrupted\n" if number == signal.SIGINT else b"\nterminated\n")
    os._exit(128 + number)


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    for number in SIGNALS:
        signal.signal(number, _quit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # scripts/run.sh blocks them until now
    if words and words[0] in COMMANDS:
        with contextlib.suppress(ModuleNotFoundError):  # dispatch says what is missing
            importlib.import_module(COMMANDS[words[0]][0])
    try:
        command = importlib.import_module("openkpu_tools.command")
    except ModuleNotFoundError as error:
        if error.name != "openkpu_tools":
            raise
        print("error: no package openkpu_tools, expected it beside openkpu", file=sys.stderr)
        return 2
    return command.run(dispatch, words)


def dispatch(argv: list[str] | None) -> int:
    """The command that the first word names, with the words behind it."""
    name, *rest = argv or [""]
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    if name == "--version":
        print(f"openkpu {__version__}")
        return 0
    if name not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(COMMANDS)}"
        said = f"unknown command {name!r}" if name else "no command"
        raise importlib.import_module("openkpu_tools.command").UsageError(f"{said}, {hint}")
    return importlib.import_module(COMMANDS[name][0]).main(rest)


if __name__ == "__main__":
    sys.exit(main())
