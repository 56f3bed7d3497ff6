# SPDX-License-Identifier: Apache-2.0
"""Charts that pages of the site have beside their tables, drawn from the same records."""

import json
import re
from collections.abc import Callable

from openkpu.checkout import ROOT
from openkpu_tools import marked
from openkpu_tools.benchmarks import bench, bench_tables
from openkpu_tools.benchmarks.bench_goals import END_TO_END
from openkpu_tools.flows import fpga, silicon_record, synth
from openkpu_tools.flows.asic import flow as asic
from openkpu_tools.site import bars

Rows = list[list[str]]


def page_table(page: str, name: str) -> Rows:
    """Cells of a table between marks, its head first; formatting is left out."""
    lines = marked.part(ROOT / page, name).splitlines()
    rows = [[re.sub(r"[`*]", "", cell).strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in rows if not re.fullmatch(r"-*", row[0]) or row[1][:1] not in "-:"]


def number(text: str) -> float | None:
    """The figure that a cell begins with."""
    found = re.match(r"[\d,]+(?:\.\d+)?", text)
    return float(found[0].replace(",", "")) if found else None


def measured_chart() -> list[str]:
    """Networks on the RTL, from the record of `make bench`."""
    cycles: dict[str, dict[str, float | None]] = {}
    shares: dict[str, dict[str, float | None]] = {}
    for run, figures in json.loads(bench.BASELINE.read_text(encoding="utf-8")).items():
        group, _, rest = run.partition(": ")
        if group == "networks":
            name, config, bus = rest.split(", ")
            count, least = figures[END_TO_END][:2]
            cycles.setdefault(name, {})[f"{config}, {bus}"] = count
            shares.setdefault(name, {})[f"{config}, {bus}"] = round(100 * least / count, 1)
    found = []
    for name, values in cycles.items():
        found.append(
            bars.bars(f"{name}: cycles end to end", _alone(values), note="fewer is better")
        )
        found.append(bars.bars(f"{name}: share of the roofline", _alone(shares[name]), " %"))
    return found


def _alone(values: dict[str, float | None]) -> bars.Groups:
    """A bar for each, without series."""
    return {name: {"": value} for name, value in values.items()}


def layers_chart() -> list[str]:
    """Efficiency of three kinds of layers by configuration."""
    head, *rows = page_table("docs/benchmarks.md", "bench-targets")
    groups = {
        row[0]: {k: number(c) for k, c in zip(head[1:], row[1:], strict=True)} for row in rows
    }
    return [bars.bars("Share of the roofline, 64 to 64 channels at 64x64", groups, " %")]


def predicted_chart() -> list[str]:
    """Cycles and efficiency of models on every configuration."""
    head, *rows = page_table("docs/benchmarks.md", "bench-predicted")
    cycles = {
        row[0]: {k: number(c) for k, c in zip(head[1:], row[1:], strict=True)} for row in rows
    }
    shares = {
        row[0]: {k: number(c.partition("(")[2]) for k, c in zip(head[1:], row[1:], strict=True)}
        for row in rows
    }
    return [
        bars.bars("Cycles by model and configuration", cycles, least=1000),
        bars.bars("Share of the roofline by model and configuration", shares, " %"),
    ]


def quantised_chart() -> list[str]:
    """Inferences a second beside published results of MLPerf Tiny."""
    head, *rows = page_table("docs/benchmarks.md", "bench-quantised")
    small, device = head.index("small, cycles"), head.index("nano_fpga, cycles")
    names = {
        small - 1: f"k210 {head[small - 1]}, computed",
        device + 1: f"nano_fpga {head[device + 1]}, computed",
        **{n: f"{head[n]}, published" for n in range(device + 2, len(head))},
    }
    groups = {row[0]: {name: number(row[n]) for n, name in names.items()} for row in rows}
    return [bars.bars("Inferences a second", groups, least=1)]


def boxes_chart() -> list[str]:
    """Area of the mapped nano_fpga by box."""
    text = (ROOT / "docs" / "silicon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| [\d,]+ \| \d+ \| \d+ \|$", text, re.MULTILINE)
    found = {name.replace("`", ""): {"": number(lut)} for name, lut in rows}
    order = sorted(found.items(), key=lambda item: -(item[1][""] or 0))
    return [bars.bars("LUT of nano_fpga by box", dict(order))]


def lut_chart() -> list[str]:
    """LUT of every configuration that was mapped."""
    known = silicon_record.load_figures(fpga.BASELINE) | silicon_record.load_figures(synth.RECORD)
    return [bars.bars("LUT of an ECP5", {name: {"": f["LUT"]} for name, f in known.items()})]


def cells_chart() -> list[str]:
    """Area and clock in standard cells."""
    known = silicon_record.load_figures(asic.BASELINE)
    ordered = [name for name in bench_tables.plain_configs() if name in known]
    return [
        bars.bars("NAND2 equivalents", {name: {"": known[name]["gates"]} for name in ordered}),
        bars.bars("Clock in 0.18 um", {name: {"": known[name]["mhz"]} for name in ordered}, " MHz"),
    ]


# page, the text that follows them, what draws them
PLACES: tuple[tuple[str, str, Callable[[], list[str]]], ...] = (
    ("docs/benchmarks.md", "<!-- bench-targets -->", layers_chart),
    ("docs/benchmarks.md", "<!-- bench-others -->", measured_chart),
    ("docs/benchmarks.md", "<!-- bench-predicted -->", predicted_chart),
    ("docs/benchmarks.md", "<!-- bench-quantised -->", quantised_chart),
    ("docs/silicon.md", "<!-- fpga -->", lut_chart),
    ("docs/silicon.md", "<!-- asic -->", cells_chart),
    ("docs/silicon.md", "| box | LUT |", boxes_chart),
)


def with_charts(page: str, markdown: str) -> str:
    """A page's text with its charts; ValueError where the place of one is not there once."""
    for path, place, draw in PLACES:
        if path == page:
            if markdown.count(place) != 1:
                raise ValueError(f"{page}: {place!r} {markdown.count(place)} times, expected once")
            figures = "".join(draw())
            markdown = markdown.replace(place, f'<div class="charts">{figures}</div>\n\n{place}')
    return markdown
