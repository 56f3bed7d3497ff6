# SPDX-License-Identifier: Apache-2.0
"""`make reports`: pages of what commands left, their index, one look."""

from pathlib import Path

import pytest

from openkpu_tb.look import STYLE
from openkpu_tools.site import reports

pytestmark = pytest.mark.fixed  # the same with every seed
JUNIT = """<testsuite name="regress" tests="2" failures="1">
<testcase classname="regress.nano" name="seed 3: a &lt;layer&gt;" time="1.5"/>
<testcase classname="regress.nano" name="seed 4: b" time="2">
<failure message="x">byte 7
make regress N=1 SEED=4</failure></testcase></testsuite>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mutation.md").write_text(
        "# Mutation\n\n`make mutate`: 8 mutants\n\n**PASS**\n\n| a | b |\n|---|---|\n| 1 | `x` |\n"
    )
    (tmp_path / "bench.md").write_text("| run | cycles |\n|---|---|\n| yolo20 | 5 |\n")
    (tmp_path / "bench_plots.png").write_bytes(b"")
    (tmp_path / "bench.json").write_text("{}")
    (tmp_path / "fpga").mkdir()
    (tmp_path / "fpga" / "nano.md").write_text("# nano on a part\n\n5 LUT\n")
    (tmp_path / "regress").mkdir()
    (tmp_path / "regress" / "junit.xml").write_text(JUNIT)
    return tmp_path


def test_pages_and_index(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reports.main(["--folder", str(folder)]) == 0
    index = folder / "index.html"
    assert capsys.readouterr().out == f"{index}: 4 reports\n"
    pages = {
        "mutation.html": ("Mutation", "make mutate: 8 mutants"),
        "bench.html": ("Benchmarks", ""),
        "fpga/nano.html": ("nano on a part", "5 LUT"),
        "regress/index.html": ("Random regression", "1 of 2 items passed"),
    }
    text = index.read_text()
    for name, (title, says) in pages.items():
        page = (folder / name).read_text()
        assert STYLE in page and 'name="viewport"' in page
        assert f'<a href="{"../" * name.count("/")}index.html">' in page
        assert f'<a href="{name}">{title}</a></td><td>{says}</td>' in text, name
    assert "<table>" in (folder / "mutation.html").read_text()
    assert "<code>x</code>" in (folder / "mutation.html").read_text()
    assert 'src="bench_plots.png"' in (folder / "bench.html").read_text()
    regress = (folder / "regress" / "index.html").read_text()
    assert "a &lt;layer&gt;" in regress and "<pre>byte 7\nmake regress N=1 SEED=4</pre>" in regress
    assert '<a href="bench.json">' in text
    assert "<th>0.1.0</th><th>0.2.0</th><th>0.3.0</th><th>now</th>" in text  # the trend
    assert "test functions</b>" in text  # ... and its charts


def test_a_second_run_finds_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        reports.main(["--folder", str(folder)])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_no_reports(tmp_path: Path) -> None:
    assert reports.main(["--folder", str(tmp_path / "new")]) == 0
    assert "No command has left a report." in (tmp_path / "new" / "index.html").read_text()


def test_no_version(refused) -> None:
    refused(["reports", "--record", "next"], "'next': expected a version such as 0.4.0")
