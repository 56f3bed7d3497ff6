# SPDX-License-Identifier: Apache-2.0
"""The test plan with what its tests gave, as a page in reports.

Reads tb/plan/testplan.toml and the results that `make test` left in reports/results.jsonl. Tests
of a tool that has not changed since they passed (tb/plan/tools.toml) count as passed. Entries
without a passing test come first. Exit status 1 when a named test failed or, after a whole run, an
entry has no passing test; 2 when the plan names what is not there or leaves something out.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from openkpu import files
from openkpu.checkout import ROOT
from openkpu_tb import results, tool_tests
from openkpu_tb.plan import plan
from openkpu_tools import command, registry

OUT = ROOT / "reports" / "testplan.md"
RESULTS = ROOT / "reports" / "results.jsonl"
RECORDED = "passed, tool unchanged"
STATES = ("no passing test", "failed", "partly run", "passed")


@dataclass(frozen=True)
class Row:
    """An entry with the outcome of each of its tests."""

    entry: plan.Entry
    outcomes: dict[str, str]  # test -> passed, RECORDED, failed, not run

    @property
    def state(self) -> str:
        """The state that follows from the outcomes."""
        count = Counter(self.outcomes.values())
        if not count["passed"] + count[RECORDED]:
            return STATES[0]
        return "failed" if count["failed"] else "partly run" if count["not run"] else "passed"


def recorded() -> set[str]:
    """Files of tests that `make check` leaves out: they passed with the tool as it is."""
    tools = tool_tests.tools_table()
    return {name for tool in tool_tests.unchanged() for name in tools[tool]["inputs"]}


def outcome(
    test: str, found: dict[str, dict[str, results.RunResult]], unchanged: Collection[str] = ()
) -> str:
    """Of a test of the plan: a pytest file counts all of its tests."""
    path, _, name = test.partition("::")
    chosen = [
        result
        for key, of_test in found.items()
        if key == test
        or (
            "/" in path
            and key.startswith(f"{path}::")
            and (not name or key.partition("::")[2].partition("[")[0] == name)
        )
        for result in of_test.values()
    ]
    if any(result.outcome == results.FAILED for result in chosen):
        return "failed"
    return "passed" if chosen else RECORDED if path in unchanged else "not run"


def testplan_rows(
    entries: list[plan.Entry], found: dict[str, dict[str, results.RunResult]]
) -> list[Row]:
    """Entries with outcomes, those without a passing test first."""
    unchanged = recorded()
    made = [
        Row(e, {t: outcome(t, found, unchanged) for name in e.tests for t in plan.expanded(name)})
        for e in entries
    ]
    return sorted(made, key=lambda row: STATES.index(row.state))


def testplan_page(made: list[Row]) -> str:
    """The whole page."""
    count = Counter(row.state for row in made)
    counts = ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
    lines = [
        "# Test plan",
        "",
        f"{len(made)} entries: {counts}.",
        "",
        "| entry | state | tests that passed | coverage |",
        "|---|---|---|---|",
    ]
    for row in made:
        e = row.entry
        good = sum(o in ("passed", RECORDED) for o in row.outcomes.values())
        source = f"[{e.title}](../{e.source})"
        points = ", ".join(e.points)
        cells = source, row.state, f"{good} of {len(row.outcomes)}", points
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for row in made:
        lines += ["", f"## {row.entry.id}", "", row.entry.title, ""]
        if row.entry.covers:
            lines += [f"Covers {', '.join(row.entry.covers)}.", ""]
        lines += [f"- {test}: {was}" for test, was in row.outcomes.items()]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """See above."""
    args = registry.parse_command("testplan", argv)
    entries = plan.load_testplan()
    if args.check:
        print(f"{len(entries)} entries, every item of the specification in one of them")
        return 0
    if not args.results.exists():
        raise command.UsageError(f"{args.results}: no results, run make test first")
    files.open_file(args.results, command.UsageError).close()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    command.check_outputs([args.out], [args.results])
    made = testplan_rows(entries, results.last(args.results))
    args.out.write_text(testplan_page(made), encoding="utf-8")
    print("\n".join(testplan_page(made).split("\n## ")[0].splitlines()))
    print(f"page: {args.out}")
    return int(any(row.state in STATES[:2] for row in made))
