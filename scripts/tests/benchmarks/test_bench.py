# SPDX-License-Identifier: Apache-2.0
"""`make bench`: its record, the tables of docs/benchmarks.md, and the report of worse figures."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from models.tests.kmodel.test_kmodel_real import shared
from openkpu import configs
from openkpu_tools import marked
from openkpu_tools.benchmarks import bench, bench_goals, bench_tables
from openkpu_tools.benchmarks.bench_goals import Goal
from openkpu_tools.benchmarks.bench_tables import BenchRun

pytestmark = pytest.mark.fixed  # the same with every seed

RECORD = json.loads(bench.BASELINE.read_text())


def cells_of(row: str) -> list[str]:
    """Cells of a row of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def goal_rows() -> list[list[str]]:
    """Cells of the page's table of targets, its head first."""
    return [cells_of(row) for row in marked.part(bench_tables.PAGE, "bench-goals").splitlines()]


PREDICTED = marked.part(bench_tables.PAGE, "bench-predicted")
MISSED = [
    (goal, cells)
    for goal, cells in zip(bench_goals.GOALS, goal_rows()[2:], strict=True)
    if cells[4] == "no" and cells[6]  # no bound is predicted of streams and quantised models
]


def report(cycles: int) -> dict:
    """A report of one layer, end to end."""
    stalls = dict.fromkeys(("weights", "input", "output", "bus", "control"), 1)
    layer = {
        "name": "a/L00",
        "cycles": cycles,
        "roofline_cycles": 90,
        "macs": 36 * cycles * 9 // 10,
        "stalls": stalls,
    }
    end = {"cycles": cycles + 20, "roofline_cycles": 95}
    totals = {**layer, "end_to_end": end}
    return {"config": "nano", "layers": [layer], "totals": totals}


def test_tables_go_to_the_page(tmp_path: Path) -> None:
    """Tables with measured rows are replaced; the others stay."""
    page = tmp_path / "page.md"
    marks = [
        f"<!-- bench-{name} -->\nold\n<!-- /bench-{name} -->\n" for name in bench_tables.TABLES
    ]
    page.write_text("".join(marks))
    bench_tables.into_page(RECORD, page)
    for name in ("rows", "targets", "others"):
        assert marked.part(page, f"bench-{name}") == "\n".join(bench_tables.TABLES[name](RECORD))
    assert marked.part(page, "bench-models") == "old"


def test_page_has_the_targets() -> None:
    """The page has the rows of the record, among the rows that need published models; bounds of
    missed targets are predictions, which the record has not."""
    lines = [row[:6] for row in goal_rows()]
    own = [cells_of(row)[:6] for row in bench_goals.goals_table(RECORD)]
    assert len(own) > 20 and [line for line in lines if line in own] == own
    assert len(lines) - 2 == len(bench_goals.GOALS)


def test_targets_can_be_missed() -> None:
    """The target itself is met, a cycle or a percent beyond it is not, with the reason."""
    most = Goal("w", "g", "s", "k210", 64, "f", cycles=100)
    least = Goal("w", "g", "s", "k210", 64, "f", share=90)
    bound = Goal("w", "g", "s", "k210", 64, "f", of_least=95)

    def row(goal: Goal, figure: list[Any], lower: int = 1) -> str:
        return goal.row({goal.run: {"f": figure}, goal.predicted: {"least": [lower, 1]}})

    assert row(most, [100, 90]).endswith("| <= 100 | 100 | yes |  |  |  |")
    found = [101, 90, {"array": 60.04, "bus": 39.0, "input": 0.9}]
    causes = "array 60.0 %, bus 39.0 %"
    assert row(most, found).endswith(f"| <= 100 | 101 | no | {causes} |  |  |")
    assert row(least, found).endswith(f"| >= 90 % | 89.1 % | no | {causes} |  |  |")
    assert row(least, [100, 90]).endswith("| >= 90 % | 90.0 % | yes |  |  |  |")
    assert row(bound, [100, 9], 95).endswith("| >= 95 % of least | 95.0 % | yes |  |  |  |")
    assert row(bound, found, 95).endswith(f"| >= 95 % of least | 94.1 % | no | {causes} |  |  |")
    assert not bound.known({bound.run: {"f": [100, 90]}}) and not bound.known({})
    assert most.known({most.run: {"f": [100, 90]}})
    assert bench_goals.goals_table({}) == bench_goals.HEAD


def test_missed_targets_have_bounds() -> None:
    """Bounds of a whole model, run as predicted: cycles, and for a target share the share at these
    cycles; none if the target is met, for a part of the model, or for another way of running."""
    model = {"work": "w", "group": "models", "config": "k210", "bus": 64}
    ours = Goal(source="m.kmodel, burst", figure="end to end", cycles=900, **model)
    share = dataclasses.replace(ours, cycles=None, share=90)
    bounds = {"end to end": [990, 700], "least": [1750, 1], "one layer at a time": [1800, 1]}
    found = {ours.run: {"end to end": [2000, 1400, {}], "layers": [1990, 1400, {}]}}
    assert ours.least(found) == ["", ""]
    found["predicted: m.kmodel, k210, 64 bits"] = bounds
    assert ours.least(found) == ["1,750", "1,800"]
    assert share.least(found) == ["1,750, 80.0 %", "1,800, 77.8 %"]
    row = share.row(found)
    assert row.endswith("| >= 90 % | 70.0 % | no |  | 1,750, 80.0 % | 1,800, 77.8 % |")
    met = found | {ours.run: {"end to end": [1500, 1400]}}
    assert share.row(met).endswith("| 93.3 % | yes |  |  |  |")
    for other in ({"figure": "layers"}, {"source": "m.kmodel, tasks"}):
        goal = dataclasses.replace(ours, **other)
        found[goal.run] = found[ours.run]
        assert goal.least(found) == ["", ""]
    assert dataclasses.replace(ours, bus=32, source="m.kmodel").least(
        {"models: m.kmodel, k210, 32 bits": found[ours.run], **found}
    ) == ["", ""]


def test_page_has_bounds_of_missed_targets() -> None:
    """Every missed target of a whole model has its bounds, in order."""
    head, _, *rows = goal_rows()
    assert head == bench_goals.COLUMNS
    for goal, cells in zip(bench_goals.GOALS, rows, strict=True):
        assert len(cells) == len(head) and cells[0] == goal.work
        if cells[4] == "yes":
            assert cells[5:] == ["", "", ""]
            continue
        if not cells[6]:  # no bound is predicted: of a stream, a quantised model
            continue
        first, second = (cell.split(", ")[0] for cell in cells[6:])
        assert 0 < int(first.replace(",", "")) <= int(second.replace(",", ""))


def test_goals_of_models_are_in_their_table() -> None:
    """The figure reached by a published model is the same in the table of models."""
    lines = marked.part(bench_tables.PAGE, "bench-models").splitlines()[2:]
    models = {row[0]: row[3:] for line in lines if (row := cells_of(line))}
    compared = 0
    for goal, cells in zip(bench_goals.GOALS, goal_rows()[2:], strict=True):
        of_models = goal.config == "k210" and goal.figure == bench_goals.END_TO_END
        if of_models and goal.source in models:
            compared += 1
            cycles, share = models[goal.source][:2]
            assert goal.of_least or cells[3] in (cycles, share), goal.work
    assert compared > 4


def words_of(source: str, folder: Path) -> list[str]:
    """Of `predict`, for a published model or a network."""
    if source in bench.NETWORKS:
        bench_tables.network(source).save(folder / "net.npz")
        return ["--network", str(folder / "net.npz")]
    return ["--model", str(shared(f"real/{source}"))] if "." in source else []


@pytest.mark.parametrize(("goal", "cells"), MISSED, ids=[goal.work for goal, _ in MISSED])
def test_bounds_of_the_page_are_as_predicted(goal: Goal, cells: list[str], tmp_path: Path) -> None:
    """The bounds of the published models and networks; the roofline is not checked here."""
    words = words_of(goal.source.partition(", ")[0], tmp_path)
    predicted = bench.predict_run(words, goal.config, tmp_path / "report.json")
    assert predicted is not None
    found = {goal.run: {goal.figure: [1, 1]}, goal.predicted: predicted}
    bounds = [cell.split(", ")[0] for cell in goal.least(found)]
    assert bounds == [cell.split(", ")[0] for cell in cells[6:]]


SOURCES = [line.split("|")[1].strip() for line in PREDICTED.splitlines()[2:]]


@pytest.mark.check
@pytest.mark.parametrize("source", SOURCES)
def test_predicted_cycles_of_the_page(source: str, tmp_path: Path) -> None:
    """As `make predict` prints them: the columns of two configurations."""
    words = words_of(source, tmp_path)
    names = bench_tables.plain_configs()
    (row,) = (cells_of(line) for line in PREDICTED.splitlines() if f"| {source} |" in line)
    for name in ("compact", "k210"):
        found = bench.predict_run(words, name, tmp_path / "report.json")
        assert found is not None
        cycles, least = found[bench_goals.END_TO_END]
        assert row[1 + names.index(name)] == f"{cycles:,} ({100 * least / cycles:.0f} %)"
        if name in bench_tables.SMALL:
            small = bench_tables.small_arrays({f"predicted: {source}, {name}, 32 bits": found})
            cell = cells_of(small[-1])[1]
            rows = map(cells_of, marked.part(bench_tables.PAGE, "bench-small").splitlines())
            assert [r[1 + bench_tables.SMALL.index(name)] for r in rows if r[0] == source] == [cell]


def test_targets_of_small_arrays() -> None:
    """Either share is enough; a percent less of both is not."""
    for roofline, least, missed in ((90, 90, False), (89, 95, False), (89, 94, True)):
        found = {"end to end": [100, roofline], "least": [least, roofline]}
        line = bench_tables.small_arrays({"predicted: m, nano, 32 bits": found})[-1]
        assert line.endswith(": missed |") == missed


def test_targets_are_of_runs(tmp_path: Path) -> None:
    """Each is measured by a run of `make bench`."""
    for name in {goal.source.partition(",")[0] for goal in bench_goals.GOALS}:
        if re.search(r"kmodel$|model.bin$", name):
            (tmp_path / name).touch()
    tiny = tmp_path / "mlperf_tiny"
    tiny.mkdir()
    for name in bench_tables.QUANTISED:
        (tiny / name).touch()
    runs = [*bench.own_runs(tmp_path), *bench.model_runs(tmp_path), *bench.quantised_runs(tiny)]
    runs += bench.continuous_runs(tmp_path)
    assert {goal.run for goal in bench_goals.GOALS} <= {run.name for run in runs}
    assert len({run.name for run in runs}) == len(runs)


def test_record_is_of_the_runs(tmp_path: Path) -> None:
    """Every run has its figures, and every figure has a run."""
    assert [run.name for run in bench.own_runs(tmp_path)] == list(RECORD)
    assert all(run[bench_tables.LAYERS][0] > 0 for run in RECORD.values())


def test_figures() -> None:
    found = bench_tables.figures(report(100))
    stalls = ("weights", "input", "output", "bus", "control")
    spent = {"array": 90.0, "shape": 5.0, **dict.fromkeys(stalls, 1.0)}
    assert found == {
        "a": [100, 90, spent],
        "layers": [100, 90, spent],
        "end to end": [120, 95, spent],
    }
    assert bench_tables.brief(report(100)) == "120 cycles, 79.2 %"


def test_a_worse_figure_is_reported() -> None:
    """Worse by more than 1 %, or without a record; better figures are not reported."""
    record = {"r": bench_tables.figures(report(1000))}
    assert not bench.worse({"r": bench_tables.figures(report(1008))}, record)
    assert not bench.worse({"r": bench_tables.figures(report(500))}, record)
    lines = bench.worse({"r": bench_tables.figures(report(1011))}, record)
    assert len(lines) == 3 and lines[0] == "r, a: 1011 cycles, recorded 1000"
    assert bench.worse({"s": {"x": [5, 5]}}, record) == ["s, x: 5 cycles, no record"]


@pytest.mark.check
def test_command_compares_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is worse, and one that fails, with the pages written; no simulator."""
    run = BenchRun("targets", "small", 32, ["--vectors", "targets"], source="targets")
    lost = BenchRun("networks", "small", 32, ["--images", "1"], source="digits")
    monkeypatch.setattr(bench, "own_runs", lambda _: [run, lost])
    monkeypatch.setattr(bench, "prepare", lambda *_: None)
    monkeypatch.setattr(bench, "BASELINE", tmp_path / "record.json")
    bench.BASELINE.write_text(json.dumps({run.name: bench_tables.figures(report(100))}))
    predicted, predict = tmp_path / "yolo20.json", bench.predict_run

    def once(words: list[str], config: str, report: Path) -> dict | None:
        found = {} if predicted.exists() else predict(words, config, predicted)
        report.write_bytes(predicted.read_bytes())
        return found

    monkeypatch.setattr(bench, "predict_run", once)
    given = {run: report(100), lost: None}
    monkeypatch.setattr(bench, "measure_run", lambda run, _: given[run])
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
    pictures = ["bench_roofline.png", "bench_stalls.png", "bench_timeline_yolo20.png"]
    assert names == ["bench.json", "bench.md", *pictures]
    totals = json.loads(predicted.read_text())["totals"]
    figures = [totals[f"{name}_cycles"] for name in ("roofline", "least", "in_turn", "end_to_end")]
    assert figures[0] > 0 and sorted(figures) == figures
    monkeypatch.setattr(bench, "predict_run", lambda *_: None)
    assert bench.main(words) == 1 and "failed: time line: yolo20" in capsys.readouterr().out


def test_rows_of_the_k210() -> None:
    """Both widths of the bus; every row needs fewer cycles than silicon."""
    for bus in configs.BUSES[:2]:
        name = BenchRun("k210_rows", "k210", bus, [], source="k210_rows").name
        for size, silicon in bench_tables.SILICON.items():
            assert RECORD[name][f"k210_{size}"][0] < silicon
