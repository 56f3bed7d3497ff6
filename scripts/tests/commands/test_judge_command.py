# SPDX-License-Identifier: Apache-2.0
"""`openkpu judge`: its exit status, and the table of docs/judges.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from openkpu import digits
from openkpu.judges import agreement, litert, mlperf, ort
from openkpu_tools import command, marked
from openkpu_tools.verification import judge
from scripts.tests.conftest import Refused

pytest.importorskip("ai_edge_litert", reason="make setup GROUPS=test brings LiteRT")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")

MODEL = digits.FOLDER / "residual_int8.tflite"


def rows(lines: list[str]) -> list[list[str]]:
    """The cells of a table without its head."""
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[2:]]


def test_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run_command(judge.main, [str(MODEL)]) == 0
    out = capsys.readouterr().out
    for kernels in litert.KERNELS:
        assert f"{MODEL.name}: LiteRT, {kernels}" in out
    assert "two roundings" in out and "not explained" not in out


def test_not_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a reason a difference is a fault."""
    monkeypatch.setattr(litert, "KERNELS", {"reference": ()})
    assert command.run_command(judge.main, [str(MODEL)]) == command.MISMATCH
    assert "not explained" in capsys.readouterr().out


def test_write_needs_all_models(
    monkeypatch: pytest.MonkeyPatch, refused: Refused, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENKPU_SHARED", str(tmp_path))
    refused(["judge", "--write"], "OPENKPU_SHARED names the folder")


def test_page_has_every_model() -> None:
    """All rows are there and each difference is explained; the digits' have these very values.

    How many values differ depends on the processor's kernels a little, how many there are does not.
    """
    lines = marked.part(judge.PAGE, judge.TABLE).splitlines()
    found = {(cells[0], cells[1]): cells for cells in rows(lines)}
    want = {(name, f"LiteRT, {k}") for name in mlperf.MODELS for k in litert.KERNELS}
    for name in digits.MODELS:
        kinds = ort.WAYS if name.endswith(".onnx") else litert.KERNELS
        runtime = "ONNX Runtime" if name.endswith(".onnx") else "LiteRT"
        want |= {(name, f"{runtime}, {k}") for k in kinds}
    assert set(found) == want
    unexplained = lines[0].strip("| ").split(" | ").index("**not explained**")
    assert {cells[unexplained] for cells in found.values()} == {"0"}
    now = rows(judge.judge_table([MODEL, digits.FOLDER / "separable_qdq.onnx"]))
    assert len(now) == 6
    for cells in now:
        there = found[cells[0], cells[1]]
        assert cells[2] == there[2] and cells[unexplained] == "0"
        few = int(there[3].replace(",", "")) // 5 + 10
        assert abs(int(cells[3].replace(",", "")) - int(there[3].replace(",", ""))) <= few


def test_table_of_float_models() -> None:
    """The page has every pair; quantised here a model is on average as near to float as its
    published file."""
    found = rows(marked.part(judge.PAGE, judge.FLOATS).splitlines())
    assert len(found) == len(agreement.PAIRS)
    for (name, *cells), (published, kept) in zip(found, agreement.PAIRS.items(), strict=True):
        assert name.startswith(kept or published)
        assert float(cells[3]) <= float(cells[7]), name


def test_floats_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Models that are not there have no row; written, the table is in its place."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- float-models -->\nold\n<!-- /float-models -->\nbehind\n")
    monkeypatch.setattr(judge, "PAGE", page)
    monkeypatch.setenv("OPENKPU_SHARED", str(tmp_path))
    assert command.run_command(judge.main, ["--floats"]) == 0
    assert "|" not in capsys.readouterr().out
    lines = judge.floats()
    monkeypatch.setattr(judge.mlperf, "MODELS", {})
    monkeypatch.setattr(judge.agreement, "PAIRS", {})
    assert command.run_command(judge.main, ["--floats", "--write"]) == 0
    assert marked.part(page, judge.FLOATS).splitlines() == lines and "| float model |" in lines[0]
