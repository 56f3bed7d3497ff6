# SPDX-License-Identifier: Apache-2.0
"""`make stalls`: a bar for each layer, images summed, and how much they differ."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import axes
from PIL import Image

from openkpu_tools.commands import stalls
from openkpu_tools.report import STALLS

pytestmark = pytest.mark.fixed  # the same with every seed


def layer(name: str, cycles: int, bus: int = 0) -> dict[str, Any]:
    return {"name": name, "cycles": cycles, "stalls": dict.fromkeys(STALLS, 0) | {"bus": bus}}


def report(path: Path, layers: list[dict[str, Any]], **totals: int) -> Path:
    content = {"config": "small", "simulator": "icarus", "layers": layers, "totals": totals}
    path.write_text(json.dumps(content))
    return path


TWENTY = [
    layer(f"image{image}/L{number:02d}", 100 * (number + 1) + image * number, bus=10)
    for image in range(20)
    for number in range(4)
]


def test_twenty_maps_of_four_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four bars: each has the cycles of twenty images, by cause, and what they differ by."""
    path = report(tmp_path / "report.json", TWENTY, inferences=20)
    title, bars = stalls.load_bars(path)
    assert title == "small on icarus" and [bar.name for bar in bars] == ["L00", "L01", "L02", "L03"]
    for number, bar in enumerate(bars):
        each = [100 * (number + 1) + image * number for image in range(20)]
        assert bar.each == each and sum(bar.cycles.values()) == sum(each)
        assert bar.cycles["bus"] == 200 and bar.cycles["array"] == sum(each) - 200
        assert bar.spread == (20 * min(each), 20 * max(each))
    assert stalls.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "20 images summed; their cycles differ most in L03: 400 .. 457" in said


def test_what_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The height of the bars, and the line from the fastest to the slowest image."""
    drawn: list[tuple[str, Any, Any]] = []
    bar, errorbar = axes.Axes.bar, axes.Axes.errorbar

    def of_bars(self: Any, x: Any, height: Any, **more: Any) -> Any:
        drawn.append(("bar", list(height), list(more["bottom"])))
        return bar(self, x, height, **more)

    def of_spread(self: Any, x: Any, y: Any, yerr: Any, **more: Any) -> Any:
        drawn.append(("spread", list(y), [list(side) for side in yerr]))
        return errorbar(self, x, y, yerr, **more)

    monkeypatch.setattr(axes.Axes, "bar", of_bars)
    monkeypatch.setattr(axes.Axes, "errorbar", of_spread)
    _, bars = stalls.load_bars(report(tmp_path / "report.json", TWENTY))
    stalls.draw_stalls("x", bars, tmp_path / "out.png")
    *columns, (_, tops, (below, above)) = drawn
    assert len(columns) == len(stalls.COLOURS)
    heights = np.array([height for _, height, _ in columns]).sum(axis=0)
    each = np.array([one.each for one in bars])
    assert heights.tolist() == tops == each.sum(axis=1).tolist()
    assert (np.array(tops) - below).tolist() == (20 * each.min(axis=1)).tolist()
    assert (np.array(tops) + above).tolist() == (20 * each.max(axis=1)).tolist()
    with Image.open(tmp_path / "out.png") as picture:
        assert picture.width < 1000
    drawn.clear()
    stalls.draw_stalls(
        "x", stalls.load_bars(report(tmp_path / "one.json", TWENTY[:4]))[1], tmp_path / "o.png"
    )
    assert [what for what, *_ in drawn] == ["bar"] * len(stalls.COLOURS), "one image has no spread"


@pytest.mark.parametrize(
    ("names", "totals", "expected"),
    [
        (["image0/L00", "image1/L00"], {}, ["L00"]),
        (["list0/image0/L00", "list1/image0/L00"], {}, ["list0/L00", "list1/L00"]),
        (["cat/L00", "cat/L01", "dog/L00", "dog/L01"], {"runs": 2}, ["L00", "L01"]),
        (["L00", "L00.1", "L01"], {"runs": 1}, ["L00", "L00.1", "L01"]),
        (["raw_pool0/L00", "raw_pool7/L00"], {}, ["raw_pool0/L00", "raw_pool7/L00"]),
        (["image0_case/L00", "my_image1/L00"], {}, ["image0_case/L00", "my_image1/L00"]),
    ],
)
def test_names(names: list[str], totals: dict, expected: list[str], tmp_path: Path) -> None:
    path = report(tmp_path / "report.json", [layer(name, 7) for name in names], **totals)
    assert [bar.name for bar in stalls.load_bars(path)[1]] == expected
