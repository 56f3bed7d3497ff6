# SPDX-License-Identifier: Apache-2.0
"""Time line of a whole model: what is drawn where."""

from pathlib import Path

import pytest

from openkpu_tools.benchmarks import bench_timeline

pytestmark = pytest.mark.fixed  # the same with every seed


def layer(cycles: int, macs: int, loads: int = 0, stores: int = 0, **parts: int) -> dict:
    """A layer of the report of `openkpu predict`."""
    spent = dict.fromkeys(("array", "bus", "input", "output", "control"), 0) | parts
    assert sum(spent.values()) == cycles
    moved = {"loads": loads, "stores": stores}
    return {
        "name": "L00",
        "kind": "1x1",
        "cycles": cycles,
        "macs": macs,
        "parts": spent,
        "map_bytes": moved,
    }


REPORT = {
    "config": "k210",  # 576 multipliers
    "ahb_width": 64,
    "runs": [2, 1],
    "layers": [
        layer(200, 576 * 60, loads=401, array=80, bus=120),
        layer(100, 576 * 100, loads=80, stores=160, array=50, output=50),
        layer(50, 0, stores=240, input=40, control=10),
    ],
}


def test_maps_lie_at_the_ends_of_their_layers() -> None:
    """What comes at the start, what goes at the end; as long as it takes the bus."""
    assert bench_timeline.map_moves(REPORT) == {
        "loads": [(0, 51), (200, 10)],
        "stores": [(280, 20), (320, 30)],
    }
    wide = bench_timeline.map_moves({**REPORT, "ahb_width": 128})
    assert wide["stores"] == [(290, 10), (335, 15)]


def test_cycles_by_cause() -> None:
    """Issues are split: the ones that the multiplications need, and lanes without work."""
    found = bench_timeline.stall_causes(REPORT)
    assert found["array"] == [30, 50, 0] and found["shape"] == [10, 0, 0]
    assert found["bus"] == [60, 0, 0] and found["control"] == [0, 0, 20]
    for shares in zip(*found.values(), strict=True):
        assert sum(shares) == 100


def test_picture(tmp_path: Path) -> None:
    """The same bytes each time, and other ones for other cycles."""
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    other = {**REPORT, "layers": [*REPORT["layers"][:2], layer(50, 0, bus=50)]}
    for path, drawn in zip(paths, (REPORT, REPORT, other), strict=True):
        bench_timeline.draw_timeline(drawn, "a model", path)
    first, second, third = (path.read_bytes() for path in paths)
    assert first.startswith(b"\x89PNG") and first == second != third
