# SPDX-License-Identifier: Apache-2.0
"""The histogram of predicted cycles against the RTL's (make bench ERRORS=), and its record."""

from pathlib import Path

import pytest

from openkpu_tools import command, marked
from openkpu_tools.benchmarks import bench, bench_errors
from openkpu_tools.benchmarks.bench_errors import LAYERS, LISTS, RANDOM, VECTORS, PredictionCase

pytestmark = pytest.mark.fixed  # the same with every seed

PAIRS = ((1000, 1000), (1004, 1000), (985, 1000), (1100, 1000), (150, 100), (970, 1000))
CASES = [PredictionCase(RANDOM, f"{n} on nano", *pair) for n, pair in enumerate(PAIRS)]
RECORD = bench_errors.recorded_errors()


def test_histogram() -> None:
    """Every case is in one bar, whichever of the two is larger; one is beyond the limit."""
    lines = bench_errors.histogram(CASES).splitlines()
    assert lines[0] == f"{RANDOM}: 6, mean 10.82 %, largest 50.00 %"
    counts = [int(line.split("%")[1].split()[0]) for line in lines[1:-1]]
    assert counts == [1, 1, 0, 1, 0, 1, 2]
    assert [line.count("#") for line in lines[1:-1]] == [7, 7, 0, 7, 0, 7, 13]
    assert lines[-1] == "  beyond the limit: 3 on nano, 1100 predicted, 1000 on the RTL"


def test_table() -> None:
    """The same numbers in a row of the page's table."""
    head, _, row = bench_errors.error_rows(CASES)
    assert head.split(" | ")[4:6] == ["0 to 0.25 %", "0.25 to 0.5 %"]
    assert row == f"| {RANDOM} | 6 | 10.82 % | 50.00 % | 1 | 1 | 0 | 1 | 0 | 1 | 2 | 1 |"


def test_record_of_random_layers_and_lists() -> None:
    """What the RTL has run, predicted anew: as recorded, all within the limit.

    After a wanted change of the prediction: make bench ERRORS=0 RECORD=1.
    """
    cases = [case for case in RECORD if case.layers]
    kinds = [case.kind for case in cases]
    assert kinds.count(RANDOM) >= 200 and kinds.count(LISTS) >= 10
    assert [case.name for case in cases if bench_errors.again(case) != case] == []
    assert [case.name for case in cases if not case.near] == []


def test_records_of_the_device(tmp_path: Path) -> None:
    """The bundled vectors on two configurations, all within the limit; without the files of
    published models no models."""
    found = bench_errors.of_records(tmp_path)
    assert len(found) == 2 * 88
    assert found == [case for case in RECORD if case.kind == VECTORS]
    assert all(case.near for case in found)


def test_models_are_within_the_limit() -> None:
    """Of the record: no model is further off than the page says."""
    models = [case for case in RECORD if case.kind not in LAYERS]
    assert len(models) > 60
    assert [case.name for case in models if not case.near] == []


def test_a_record_without_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SHARED", tmp_path)
    with pytest.raises(command.UsageError, match="has no published models"):
        bench.main(["--errors", "0", "--record", "--reports", str(tmp_path)])


def test_page_shows_the_record() -> None:
    """And the picture is there."""
    assert marked.part(bench_errors.PAGE, "prediction-errors") == bench_errors.error_table()
    assert bench_errors.PICTURE.is_file()
