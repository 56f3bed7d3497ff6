# SPDX-License-Identifier: Apache-2.0
"""Timing diagrams: the pictures match the simulations, and a stale one is reported."""

from pathlib import Path

import pytest

from openkpu_tools.documents import timing_diagrams as td

pytestmark = pytest.mark.check


@pytest.mark.tier(nightly=["slave_access-1", "lost_grant-1", "fill_to_array-1"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("diagram", td.DIAGRAMS, ids=lambda diagram: diagram.name)
def test_picture_is_current(
    diagram: td.Diagram, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text, whatever the seed: what no one looks at is not drawn."""
    monkeypatch.setenv("OPENKPU_SEED", str(seed))
    path = td.PICTURES / f"{diagram.name}.svg"
    assert path.read_text() == td.picture(diagram), (
        "run python -m openkpu_tools.documents.timing_diagrams"
    )


def test_stale_pictures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(td, "PICTURES", tmp_path / "pictures")
    monkeypatch.setattr(td, "DIAGRAMS", td.DIAGRAMS[1:2])
    monkeypatch.setattr(td, "record", lambda diagram: {"a": ["0", "1"], "b": ["", "7"]})
    assert td.main(["--check"]) == 1
    assert "pictures/lost_grant.svg is stale" in capsys.readouterr().out
    assert td.main([]) == 0 and td.main(["--check"]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path}/pictures/lost_grant.svg\n"


def test_wave() -> None:
    assert td.wave(["0", "1", "1", "0"], None) == {"wave": "01.0"}
    assert td.wave(["", "1", "0"], None) == {"wave": "x10"}
    assert td.wave(["", "7", "7", "8"], None) == {"wave": "x=.=", "data": ["7", "8"]}
    assert td.wave(["2", "0"], td.TRANS) == {"wave": "==", "data": ["NONSEQ", "IDLE"]}


def test_quiet_stretches_are_left_out() -> None:
    """Of ten equal cycles four are drawn, and the last of them stands for the others."""
    row = ["1", *["0"] * 10, "1"]
    kept, gaps = td.shown({"a": row})
    assert kept == [0, 1, 2, 3, 11] and gaps == {3}
    kept, gaps = td.shown({"a": ["0", "1"] * 6})
    assert kept == list(range(12)) and not gaps
