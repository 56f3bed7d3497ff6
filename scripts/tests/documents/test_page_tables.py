# SPDX-License-Identifier: Apache-2.0
"""Tables that commands write into pages, the page of all commands, and the size of pages."""

import json
import re
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import command, marked
from openkpu_tools.benchmarks import bench, bench_tables
from openkpu_tools.benchmarks.bench_goals import END_TO_END
from openkpu_tools.documents import check_pages, command_page, page_tables, silicon_table
from openkpu_tools.registry import commands, dispatch

pytestmark = pytest.mark.fixed  # the same with every seed


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text("# Page\n\n<!-- a -->\n| 1 |\n<!-- /a -->\nbetween\n<!-- b -->\n<!-- /b -->\n")
    return path


WRITTEN = (
    "registers",
    "fields",
    "integration",
    "claim-table",
    "page-tables",
    "nightly",
    "testplan",
)


@pytest.mark.parametrize("name", WRITTEN)
def test_output_of_commands_is_current(name: str) -> None:
    """Files of the repository are the output of their command for the current sources."""
    assert dispatch([name, "--check"]) == 0


def test_an_old_table_is_named(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page_tables, "ROOT", page.parent)
    tables = (("page.md", "a", lambda: "| 1 |"), ("page.md", "b", lambda: "| 2 |"))
    monkeypatch.setattr(page_tables, "TABLES", tables)
    assert page_tables.main(["--check"]) == 1
    assert capsys.readouterr().out == f"{page.name}, b: not what `openkpu page-tables` writes\n"
    assert page_tables.main([]) == 0 and page_tables.main(["--check"]) == 0
    text = "# Page\n\n<!-- a -->\n| 1 |\n<!-- /a -->\nbetween\n<!-- b -->\n| 2 |\n<!-- /b -->\n"
    assert page.read_text() == text


@pytest.mark.parametrize("text", ["", "<!-- a -->\n", "<!-- a -->\n<!-- /a -->\n" * 2])
def test_marks_stand_once(page: Path, text: str) -> None:
    page.write_text(text)
    for act in (lambda: marked.part(page, "a"), lambda: marked.fill(page, "a", "x")):
        with pytest.raises(command.UsageError, match=r"page\.md: expected the marks <!-- a --> "):
            act()
    assert page.read_text() == text


def test_summary_has_the_recorded_figures() -> None:
    """Each row has a configuration, with the efficiency of the network's recorded run."""
    rows = [
        [c.strip() for c in row.strip("|").split("|")]
        for row in silicon_table.silicon_summary()[2:]
    ]
    assert [row[0] for row in rows] == ["`nano`", "`compact`", "`small`", "`k210`"]
    record = json.loads(bench.BASELINE.read_text())
    for name, macs, lut, _, _, efficiency in rows:
        config = configs.load_config(name.strip("`"))
        assert int(macs) == config.macs and int(re.sub(r"\D.*", "", lut.replace(",", ""))) > 10_000
        run = record[f"networks: yolo20, {config.name}, {config.ahb_width} bits"]
        cycles, roofline, _ = run[END_TO_END]
        assert efficiency == f"{100 * roofline / cycles:.1f} %"


def test_every_option_is_explained() -> None:
    """Each command has a section; each of its options a row with a meaning."""
    sections = command_page.options().split("### openkpu ")[1:]
    assert [section.split("\n")[0] for section in sections] == list(commands())
    for section in sections:
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        name = section.split("\n")[0]
        shown = [*commands()[name].parser().variables().values()]
        assert len(rows) == sum(a.help != "==SUPPRESS==" for a in shown)
        for row in rows:
            assert row.replace("\\|", "").split("|")[3].strip(), f"{name}: {row}"
        assert str(ROOT) not in section


def test_sizes_of_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A README of too many lines or bytes, and a long line that is neither table nor code."""
    long = "x" * 121
    (tmp_path / "README.md").write_text("a\n" * 150)
    page = tmp_path / "page.md"
    page.write_text(f"| {long} |\n```\n{long}\n```\n{long[1:]}\n")
    assert check_pages.main([], tmp_path) == 0
    (tmp_path / "README.md").write_text("a\n" * 151)
    page.write_text(f"```\n```\n- {long}\n")
    assert check_pages.main([], tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "README.md: 151 lines, expected at most 150: tables go to docs/",
        f"{page.name}:3: 123 characters, expected at most 120",
    ]
    page.unlink()
    (tmp_path / "README.md").write_text("a\n")
    (tmp_path / "rtl" / "mac").mkdir(parents=True)
    (tmp_path / "rtl" / "mac" / "box.v").write_text(f"wire a;\n// {long}\n")
    assert check_pages.main([], tmp_path) == 1
    expected = f"{Path('rtl/mac/box.v')}:2: 124 characters, expected at most 120\n"
    assert capsys.readouterr().out == expected
    (tmp_path / "rtl" / "mac" / "box.v").unlink()
    (tmp_path / "README.md").write_text(("y" * 100 + "\n") * 92)
    assert check_pages.main([], tmp_path) == 1
    assert "README.md: 9292 bytes, expected at most 9216" in capsys.readouterr().out


def test_words_of_pages_and_comments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In prose, comments and docstrings, in either case; not in code, backticks or elsewhere."""
    module = tmp_path / "models" / "openkpu" / "m.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        '"""A\n Tells ``told``.\n"""\ntold = "hears"  # nobody HEARD of it\n# It knows `knows`.\n'
        "# rows of which\n"
    )
    (tmp_path / "docs").mkdir()
    tour = "`hears` whatever\ncomes to an end\nof which\nknows\n## What bounds it\nIt is. What is\n"
    tour += "mapped runs.\nA lane takes 1,291 LUT, two take 3 cycles.\n"
    tour += "It stands for x, it stands\nthose that\n"
    (tmp_path / "docs" / "tour.md").write_text(tour)
    (tmp_path / "docs" / "registers.md").write_text("told\n")
    for folder in ("tb", "formal"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "other.py").write_text("# told\n")
    (tmp_path / "CONTRIBUTING.md").write_text("**Why.** What they need moves.\n## What\n")
    (tmp_path / "README.md").write_text("short\n")
    assert check_pages.main([], tmp_path) == 1
    assert sorted(
        line.partition(", expected")[0] for line in capsys.readouterr().out.splitlines()
    ) == [
        "CONTRIBUTING.md:1: 'What they need moves.'",
        "docs/tour.md:10: 'those that'",
        "docs/tour.md:2: 'comes to an end'",
        "docs/tour.md:3: 'of which'",
        "docs/tour.md:4: 'knows'",
        "docs/tour.md:6: 'What is'",
        "docs/tour.md:8: 'takes 1,291 LUT'",
        "docs/tour.md:9: 'stands'",
        "models/openkpu/m.py:2: 'Tells'",
        "models/openkpu/m.py:4: 'HEARD'",
        "models/openkpu/m.py:5: 'knows'",
        "models/openkpu/m.py:6: 'of which'",
        "tb/other.py:1: 'told'",
    ]


def test_figures_stand_in_one_place() -> None:
    """What a table of a record or a run has, no page has beside it: it would go stale there."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    written = re.compile(r"<!-- ([\w-]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
    number = re.compile(r"(?<![\d,.])\d{2,3}(?:,\d{3})+(?![\d,])")  # of 10,000 and more
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    tables = {
        figure
        for text in texts.values()
        for name, table in written.findall(text)
        if name.startswith(("bench-", "fpga", "asic", "summary"))
        for figure in number.findall(table)
    }
    assert len(tables) > 100
    again = [
        f"{page.relative_to(ROOT)}: {figure}"
        for page, text in texts.items()
        for figure in number.findall(written.sub("", text))
        if figure in tables
    ]
    assert not again, again


def test_clocks_of_the_models_of_mlperf_are_recorded_ones() -> None:
    """Measured cycles stay, clocks and rates follow the records; a row is 1e6 * MHz / cycles."""
    mhz = bench_tables.clocks()
    head, _, *rows = bench_tables.quantised_page()
    assert f"at {mhz['k210']} MHz" in head and f"at {mhz['nano_fpga']} MHz" in head
    made = bench_tables.rated(["| a | 1,000 | 50 % | x | 7 | 2,000 | y | 1 |  |"])[2]
    k210, nano = (round(1e6 * mhz[n] / c) for n, c in (("k210", 1000), ("nano_fpga", 2000)))
    assert made == f"| a | 1,000 | 50 % | {k210:,} | 7 | 2,000 | {nano:,} | 1 |  |"
    assert len(rows) == len(bench_tables.QUANTISED)


def test_pages_are_short() -> None:
    assert check_pages.main([]) == 0
