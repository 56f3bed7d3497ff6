# SPDX-License-Identifier: Apache-2.0
"""Records, summary and report of a small run; waivers."""

from pathlib import Path

import pytest

from openkpu_tb.coverage import baseline, points, report, summary, waivers
from openkpu_tb.coverage.model import crosses
from openkpu_tb.coverage.points import Figure
from tb.coverage.test_points import ROOT, SMALL, dat

pytestmark = pytest.mark.fixed  # the same with every seed

RECORD = {"line": Figure(3, 4), "branch": Figure(1, 2), "toggle": Figure(3, 5)}
RECORD |= {f"functional-{c.name}": Figure(1, len(c.bins)) for c in crosses()}


@pytest.fixture
def result(tmp_path: Path) -> summary.CoverageResult:
    return small_result(tmp_path)


def small_result(tmp_path: Path) -> summary.CoverageResult:
    """Three quarters of the lines, and the first bin of every cross."""
    sources = points.merge([dat(tmp_path / "a.dat", SMALL)], ROOT)
    hits = {c.name: {bin: int(not i) for i, bin in enumerate(c.bins)} for c in crosses()}
    waived = [waivers.Waiver("rtl/a/x.v", "mem", "words of a memory", 3)]
    return summary.CoverageResult("share", 2, sources, hits, waived, RECORD, [])


def test_a_figure_that_fell() -> None:
    assert baseline.compare_records(RECORD, dict(RECORD)) == []
    assert baseline.compare_records(RECORD, RECORD | {"line": Figure(4, 4)}) == []
    (said,) = baseline.compare_records(RECORD, RECORD | {"line": Figure(2, 4)})
    assert said == "line: 50.00 % (2 of 4), recorded 75.00 % (3 of 4)"
    (said,) = baseline.compare_records(RECORD, RECORD | {"line": Figure(29999, 40000)})
    assert "74.99 %" in said, "however little it is"


def test_a_kind_that_is_missing() -> None:
    (said,) = baseline.compare_records(RECORD, {k: f for k, f in RECORD.items() if k != "toggle"})
    assert said == "toggle: not measured, recorded 60.00 % (3 of 5)"
    (said,) = baseline.compare_records({k: f for k, f in RECORD.items() if k != "toggle"}, RECORD)
    assert said == "toggle: 60.00 % (3 of 5), but nothing is recorded"
    (said,) = baseline.compare_records(RECORD, RECORD | {"branch": Figure(0, 0)})
    assert said.startswith("branch: nothing to cover")
    assert len(baseline.compare_records({}, RECORD)) == len(RECORD)


def test_records_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "baseline.toml"
    assert baseline.load_baseline(path) == {}
    baseline.save({"share": RECORD, "full": {"line": Figure(1, 1)}}, path)
    assert baseline.load_baseline(path) == {"share": RECORD, "full": {"line": Figure(1, 1)}}
    for bad in ("[share", "line = 3", "[share]\nline = 3", "[share]\nline = [1, 2, 3]"):
        path.write_text(bad)
        with pytest.raises(baseline.BaselineError, match=r"baseline\.toml"):
            baseline.load_baseline(path)


def test_records_of_both_suites() -> None:
    """A kind that one suite lacks has no figure of it; a cross has its title."""
    cross = crosses()[0]
    full = {"line": Figure(3, 4), f"functional-{cross.name}": Figure(1, 2)}
    share = {"line": Figure(1, 4), "fsm": Figure(1, 1)}
    assert summary.figures_table(full, share, "by the share")[1:] == [
        ("line", "75.00 %", "3", "4", "25.00 %"),
        (cross.title, "50.00 %", "1", "2", "-"),
        ("fsm", "-", "-", "-", "100.00 %"),
    ]
    assert summary.figures_table({}, {}, "")[1:] == []


def test_summary(result: summary.CoverageResult) -> None:
    page = summary.coverage_markdown(result)
    assert "2 files of rtl/, configuration nano, 2 simulations" in page and "PASS" in page
    assert "| line | 75.00 % | 3 | 4 | 75.00 % |" in page
    assert "| rtl/a | 1 | 75.00 % | 50.00 % | 50.00 % | 50.00 % | - |" in page
    assert "| rtl/b | 1 | - | - | - | 100.00 % | - |" in page
    assert "1x1 1/258" in page, "bins of each kernel"
    assert "`mem` of `rtl/a/x.v`: words of a memory" in page
    result.fallen = ["line: too little"]
    page = summary.coverage_markdown(result)
    assert "FAIL" in page and "- line: too little" in page


def test_report(result: summary.CoverageResult, tmp_path: Path) -> None:
    source = tmp_path / "root/rtl/a/x.v"
    for name in ("rtl/a/x.v", "rtl/b/y.v"):
        source = tmp_path / "root" / name
        source.parent.mkdir(parents=True)
        source.write_text("".join(f"line <{n}>\n" for n in range(1, 15)))
    report.write_coverage_report(result, tmp_path / "out", tmp_path / "root")
    index = (tmp_path / "out/index.html").read_text()
    assert '<a href="rtl_a_x.v.html">x.v</a>' in index and "75.00 % (3 of 4)" in index
    rows = (tmp_path / "out/rtl_a_x.v.html").read_text().split("\n")
    row = {n: next(r for r in rows if f'id="L{n}"' in r) for n in range(1, 15)}
    assert row[10].endswith('<td class="hit">line &lt;10&gt;</td></tr>')
    assert row[11].endswith('<td class="miss">line &lt;11&gt;</td></tr>')
    assert '<span class="miss">if 0</span> <span class="hit">else 7</span>' in row[11]
    assert '<td class="n">7</td>' in row[12] and '<td class="">line &lt;1&gt;' in row[1]
    assert '<span class="part" title="[1]:0-&gt;1, [1]:1-&gt;0">q 2/4</span>' in row[4]
    assert "<td>4</td><td>q</td><td>[1]:0-&gt;1, [1]:1-&gt;0</td>" in "\n".join(rows)
    for cross in crosses():
        page = (tmp_path / f"out/{cross.name}.html").read_text()
        assert page.count('<tr class="miss">') == len(cross.bins) - 1
        assert page.count('<tr class="hit">') == 1


def test_waivers(tmp_path: Path) -> None:
    assert all(w.reason for w in waivers.load_waivers()) and len(waivers.load_waivers()) == 3
    (tmp_path / "x.v").write_text("// reg mem\n  reg [7:0] mem [0:3];\n")
    path = tmp_path / "waivers.toml"
    entry = '[[toggle]]\nfile = "x.v"\nsignal = "mem"\n'
    path.write_text(entry + 'reason = "words"\n')
    assert waivers.load_waivers(path, tmp_path) == [waivers.Waiver("x.v", "mem", "words", 2)]
    for text, said in (
        (entry, "lacks reason"),
        (entry.replace("x.v", "y.v") + 'reason = "words"', r"y\.v does not exist"),
        (entry.replace("mem", "ram") + 'reason = "words"', "declares ram 0 times"),
        ("[[toggle", r"waivers\.toml"),
    ):
        path.write_text(text)
        with pytest.raises(waivers.WaiverError, match=said):
            waivers.load_waivers(path, tmp_path)
