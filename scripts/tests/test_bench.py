# SPDX-License-Identifier: Apache-2.0
"""`make bench`: its record, the README's tables, and that a worse figure is told."""

import json

import pytest
from openkpu.models import configs
from openkpu.scripts import bench, bench_tables, command
from openkpu.scripts.bench_tables import Run
from openkpu.tb.simrun import ROOT

pytestmark = pytest.mark.fixed  # the same with every seed

RECORD = json.loads(bench.BASELINE.read_text())


def report(cycles: int) -> dict:
    """A report of one layer, end to end."""
    layer = {"name": "a/L00", "cycles": cycles, "roofline_cycles": 90, "macs": 4000}
    stalls = dict.fromkeys(("weights", "input", "output", "bus", "control"), 1)
    end = {"cycles": cycles + 20, "roofline_cycles": 95}
    totals = {**layer, "stalls": stalls, "end_to_end": end}
    return {"layers": [layer], "totals": totals}


@pytest.mark.parametrize("name", ["rows", "targets", "others"])
def test_readme_has_the_record(name: str) -> None:
    """Tables that need no published model."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, rest = text.partition(f"<!-- bench {name} -->\n")
    table = rest.partition("<!-- /bench -->")[0]
    assert table == "\n".join(bench_tables.TABLES[name](RECORD)) + "\n"


def test_record_is_of_the_runs(tmp_path: object) -> None:
    """Every run has its figures, and none is there that nothing measures."""
    assert [run.name for run in bench.own_runs(tmp_path)] == list(RECORD)
    assert all(run[bench_tables.LAYERS][0] > 0 for run in RECORD.values())


def test_figures() -> None:
    found = bench_tables.figures(report(100))
    assert found == {"a": [100, 90], "layers": [100, 90], "end to end": [120, 95]}
    assert bench_tables.brief(report(100)) == "120 cycles, 79.2 %"


def test_a_worse_figure_is_told() -> None:
    """More than 1 %; what has no record is told too, what is better is not."""
    record = {"r": bench_tables.figures(report(1000))}
    assert not bench.worse({"r": bench_tables.figures(report(1008))}, record)
    assert not bench.worse({"r": bench_tables.figures(report(500))}, record)
    lines = bench.worse({"r": bench_tables.figures(report(1011))}, record)
    assert len(lines) == 3 and lines[0] == "r, a: 1011 cycles, recorded 1000"
    assert bench.worse({"s": {"x": [5, 5]}}, record) == ["s, x: 5 cycles, no record"]


def test_command_compares_and_writes(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is worse, and one that fails, with the pages that are left; no simulator."""
    run = Run("targets", "small", 32, ["--vectors", "targets"], source="targets")
    lost = Run("networks", "small", 32, ["--images", "1"], source="digits")
    monkeypatch.setattr(bench, "own_runs", lambda _: [run, lost])
    monkeypatch.setattr(bench, "prepare", lambda *_: None)
    monkeypatch.setattr(bench, "BASELINE", tmp_path / "record.json")
    bench.BASELINE.write_text(json.dumps({run.name: bench_tables.figures(report(100))}))
    given = {run: report(100), lost: None}
    monkeypatch.setattr(bench, "measure", lambda run, _: given[run])
    words = ["--quick", "--reports", str(tmp_path / "out")]
    assert bench.main(words) == 1
    said = capsys.readouterr().out
    assert f"failed: {lost.name}" in said and "worse" not in said.partition("failed")[0]
    given[lost] = report(50)
    bench.BASELINE.write_text(
        json.dumps({each.name: bench_tables.figures(report(50)) for each in given})
    )
    assert bench.main(words) == 1 and f"worse: {run.name}" in capsys.readouterr().out
    given[run] = report(50)
    assert bench.main(words) == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["bench.json", "bench.md", "bench_roofline.png", "bench_stalls.png"]


def test_rows_of_the_k210() -> None:
    """Both widths of the bus; every row takes fewer cycles than silicon."""
    for bus in configs.BUSES[:2]:
        name = Run("k210_rows", "k210", bus, [], source="k210_rows").name
        for size, silicon in bench_tables.SILICON.items():
            assert RECORD[name][f"k210_{size}"][0] < silicon


def test_bad_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(bench.main, ["--quick", "--record"]) == command.BAD_REQUEST
    assert capsys.readouterr().err.count("\n") == 1
