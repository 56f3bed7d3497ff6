# SPDX-License-Identifier: Apache-2.0
"""The histogram of predicted cycles against the RTL's (make bench ERRORS=)."""

from pathlib import Path

from openkpu_tools.benchmarks import bench_errors


def test_histogram() -> None:
    """Every pair is in one bar, whichever of the two is larger."""
    pairs = [(1000, 1000), (1004, 1000), (985, 1000), (1100, 1000)]
    lines = bench_errors.histogram({"layers": pairs}).splitlines()
    assert lines[0] == "layers: 4, mean 2.98 %, largest 10.00 %"
    counts = [int(line.split("%")[1].split()[0]) for line in lines[1:]]
    assert counts == [1, 1, 0, 1, 0, 0, 1]
    assert [line.count("#") for line in lines[1:]] == [10, 10, 0, 10, 0, 0, 10]


def test_records(tmp_path: Path) -> None:
    """The bundled vectors on two configurations, each within 3 % or 50 cycles; without the files of
    published models no models."""
    found = bench_errors.of_records(tmp_path)
    (pairs,) = found.values()
    assert len(pairs) == 2 * 88
    assert all(abs(guess - right) <= max(50, 0.03 * right) for guess, right in pairs)
