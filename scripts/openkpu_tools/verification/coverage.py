# SPDX-License-Identifier: Apache-2.0
"""Run the device's tests with coverage, merge it, write the report, compare with the record.

``--share`` runs the part that every push runs. Steps that an interrupted run has finished are not
run again while no source has changed. The report goes to reports/coverage/index.html, its
summary beside it as Markdown, and to $GITHUB_STEP_SUMMARY where that is set. Exit
status 1 when a test failed or a figure fell below its record, 2 when the coverage cannot be used.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.coverage import baseline, instrument, points, report, sampler, summary, waivers
from openkpu_tools import command, marked, registry
from openkpu_tools.flows.eda import bridge_sources, rtl_sources
from openkpu_tools.mutation.mutate_benches import sources_digest

OUT = ROOT / "reports" / "coverage"
DATA = ROOT / "reports" / "coverage_data"  # of a run under way, or interrupted
SOURCES = ("rtl", "tb", "models", "scripts", "*.toml", "*.py")
FINISHED = "finished"  # file in the folder of a step
PAGE = ROOT / "docs" / "verification.md"
PLACES = ("tb/device", "tb/uvm")
LONGEST = ("test_hostile.py", "test_driver.py")
SHARE = "tb/coverage/test_share.py"
REST = "tb/coverage/test_rest.py"


@dataclass(frozen=True)
class CoverageStep:
    """A command of a suite; ``code``: its code is covered, not its functional bins alone."""

    title: str
    command: tuple[str, ...]
    code: bool = True


def workers(jobs: int) -> tuple[str, ...]:
    """pytest on so many processes."""
    more = "-n {} --dist load --maxschedchunk 1 --durations 5"
    return ("pytest", "-v", *more.format(jobs).split())


def pytest(choice: str, jobs: int, *more: str) -> tuple[str, ...]:
    """Tests of the device on Verilator whose names match, the longest first."""
    files = [path for place in PLACES for path in (ROOT / place).rglob("test_*.py")]
    files.append(ROOT / "scripts/tests/commands/test_model_command.py")
    found = sorted(str(f.relative_to(ROOT)) for f in files)
    found.sort(key=lambda name: Path(name).name not in LONGEST)
    # predictions simulate nothing
    choice = f"not icarus and not test_predicted and ({choice})"
    return (*workers(jobs), *more, *found, "-k", choice)


def suite(name: str, jobs: int) -> list[CoverageStep]:
    """What a suite runs, always with the same seeds."""
    share = CoverageStep("builds with every option", (*workers(jobs), "--all", SHARE))
    if name == "share":
        return [share]
    device = (
        "(test_uvm and not small and not EveryMove) or test_driver or guard or watchdog"
        " or (test_fp16 and random_products)"
    )
    rest = "(test_hostile and not guard and not watchdog) or test_control"
    return [
        share,
        CoverageStep("the other builds", (*workers(jobs), "--all", REST)),
        CoverageStep("device tests", pytest(device, jobs, "--all")),
        CoverageStep("hosts", pytest(rest, jobs, "--all")),
        CoverageStep("a layer for each bin", pytest("test_bins", jobs, "--all"), code=False),
        CoverageStep("every move of a map", pytest("EveryMove", jobs, "--all"), code=False),
    ]


def opened() -> Path:
    """Folder for what steps leave, with what an interrupted run of the same sources left."""
    state = hashlib.sha256()
    for place in SOURCES:
        state.update(sources_digest(ROOT, place).encode())
    data = DATA / state.hexdigest()[:16]
    for other in DATA.glob("*"):
        if other != data:
            shutil.rmtree(other)
    data.mkdir(parents=True, exist_ok=True)
    return data


def run_steps(steps: Sequence[CoverageStep], data: Path) -> list[str]:
    """Run all steps with coverage, each into a folder in ``data``; titles of failed ones."""
    failed = []
    for number, step in enumerate(steps, 1):
        print(f"coverage: step {number} of {len(steps)}: {step.title}", flush=True)
        own = data / str(number)
        if (own / FINISHED).exists():
            print(f"coverage: {step.title}: finished before", flush=True)
            continue
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        environment = {k: v for k, v in os.environ.items() if k != "OPENKPU_SEED"}
        environment[instrument.FOLDER] = str(own)
        environment[instrument.CODE] = str(int(step.code))
        began = time.monotonic()
        words = [sys.executable, "-m", *step.command]
        process = subprocess.Popen(words, cwd=ROOT, env=environment)
        with command.ending(process):
            status = process.wait()
        print(f"coverage: {step.title}: {time.monotonic() - began:.0f} s", flush=True)
        if status:
            failed.append(step.title)
        else:
            (own / FINISHED).touch()
    return failed


def collect(name: str, data: Path, out: Path) -> summary.CoverageResult:
    """Merge the data of the runs in ``data``; errors as the merges raise them."""
    code = sorted(data.glob(f"*/*{instrument.DAT}"))
    bins = sorted(data.glob(f"*/*{instrument.XML}"))
    print(f"coverage: merging {len(code)} simulations", flush=True)
    sources = points.merge(code, ROOT)
    points.require(sources, set(rtl_sources()) - set(bridge_sources()))
    hits = sampler.merge(bins, out / "functional.xml")
    record = baseline.load_baseline().get(name, {})
    result = summary.CoverageResult(
        name, len(code), sources, hits, waivers.load_waivers(), record, []
    )
    result.fallen = baseline.compare_records(record, result.figures)
    return result


def write(result: summary.CoverageResult, out: Path) -> None:
    """The report and the summary."""
    report.write_coverage_report(result, out, ROOT)
    (out / "summary.md").write_text(summary.coverage_markdown(result), encoding="utf-8")
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with open(page, "a", encoding="utf-8") as stream:
            stream.write(summary.coverage_markdown(result))


def coverage_table() -> str:
    """The table of docs/verification.md: the records of the whole run and of CI's share."""
    suites = baseline.load_baseline()
    full, share = suites.get("full", {}), suites.get("share", {})
    return summary.markdown_table(summary.figures_table(full, share, "by the share"))


def record(result: summary.CoverageResult) -> None:
    """Keep the figures of a run as the record, and write them into docs/verification.md."""
    suites = baseline.load_baseline()
    suites[result.suite] = result.figures
    baseline.save(suites)
    marked.fill(PAGE, "coverage", coverage_table())


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when every test passed and no figure fell."""
    args = registry.parse_command("coverage", arguments)
    name = "share" if args.share else "full"
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    data = opened()
    began = time.monotonic()
    failed = run_steps(suite(name, args.jobs), data)
    try:
        result = collect(name, data, OUT)
        if args.record and not failed:
            record(result)
            result.record, result.fallen = result.figures, []
        write(result, OUT)
    finally:
        shutil.rmtree(DATA, ignore_errors=True)
    print(f"\n{summary.coverage_markdown(result)}")
    where = (OUT / "index.html").relative_to(ROOT)
    print(f"report: {where} ({time.monotonic() - began:.0f} s)")
    for title in failed:
        print(f"coverage: FAILED: {title}: a test failed, so the figures do not count")
    return int(bool(failed or result.fallen))
