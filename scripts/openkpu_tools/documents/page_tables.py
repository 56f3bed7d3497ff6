# SPDX-License-Identifier: Apache-2.0
"""Write the tables that follow from records and parsers into their pages (--check: only look).

Those of `make bench` whose figures need published models, of `make timings` and of `make nightly`
are written by these commands. Exit status 1 when --check finds an old table.
"""

import json
from collections.abc import Callable

from openkpu.checkout import ROOT
from openkpu_tb.coverage.waivers import load_waivers
from openkpu_tb.device import write_rules
from openkpu_tools import command, marked, registry
from openkpu_tools.benchmarks import bench, bench_errors, bench_peer, bench_tables
from openkpu_tools.documents import command_page, configs, driver_code, silicon_table
from openkpu_tools.flows import features
from openkpu_tools.verification import coverage


def waivers() -> str:
    """What is left out of the code coverage, and why."""
    lines = ["| kind | file | what | reason |", "|---|---|---|---|"]
    lines += [f"| toggle | `{w.file}` | `{w.signal}` | {w.reason} |" for w in load_waivers()]
    return "\n".join(lines)


def measured(name: str) -> Callable[[], str]:
    """A table of `make bench`, made from its record."""
    return lambda: "\n".join(bench_tables.TABLES[name](json.loads(bench.BASELINE.read_text())))


def joined(lines: Callable[[], list[str]]) -> Callable[[], str]:
    """A table that is made as lines."""
    return lambda: "\n".join(lines())


def code(name: str) -> Callable[[], str]:
    """A block of the driver's code."""
    return lambda: driver_code.block(name)


# page, name of its marks, what makes the table
TABLES: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("README.md", "summary", joined(silicon_table.silicon_summary)),
    ("docs/silicon.md", "configs", configs.configs_table),
    ("docs/silicon.md", "fpga", joined(silicon_table.fpga_table)),
    ("docs/silicon.md", "xc7", joined(silicon_table.xc7_table)),
    ("docs/silicon.md", "features", joined(features.feature_table)),
    ("docs/silicon.md", "asic", joined(silicon_table.asic_table)),
    ("docs/silicon.md", "power", joined(silicon_table.power_table)),
    ("docs/verification.md", "coverage", coverage.coverage_table),
    ("docs/verification.md", "waivers", waivers),
    *(("docs/benchmarks.md", f"bench-{n}", measured(n)) for n in ("rows", "targets", "others")),
    ("docs/benchmarks.md", "bench-quantised", joined(bench_tables.quantised_page)),
    ("docs/benchmarks.md", "bench-peer", joined(bench_peer.recorded_table)),
    ("docs/performance.md", "prediction-errors", bench_errors.error_table),
    ("docs/command-line.md", "commands", command_page.overview),
    ("docs/command-line.md", "options", command_page.options),
    *(("docs/programming.md", f"code-{n}", code(n)) for n in driver_code.PARTS),
    ("docs/programming.md", "host-writes", write_rules.write_rules_table),
)


def old() -> list[str]:
    """Tables that differ from the records."""
    return [
        f"{page}, {name}"
        for page, name, make in TABLES
        if marked.part(ROOT / page, name) != make().rstrip()
    ]


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    if registry.parse_command("page-tables", argv).check:
        for table in (found := old()):
            print(f"{table}: not what `openkpu page-tables` writes")
        return command.MISMATCH if found else 0
    for page, name, make in TABLES:
        marked.fill(ROOT / page, name, make())
    return 0
