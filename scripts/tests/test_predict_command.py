# SPDX-License-Identifier: Apache-2.0
"""make predict: table, totals, report; networks and products; refusals in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from openkpu.models import configs, digits
from openkpu.models.cycles import BOUNDS
from openkpu.models.tests.test_kmodel_containers import CONTAINERS
from openkpu.scripts import predict

Shown = pytest.CaptureFixture[str]


def test_digits_and_report(tmp_path: Path, capsys: Shown) -> None:
    """Without a model: the digits; the report has what the table shows."""
    report = tmp_path / "report.json"
    assert predict.main(["--config=small", "--mhz=50", f"--report={report}"]) == 0
    said = capsys.readouterr().out
    found = json.loads(report.read_text())
    assert found["config"] == "small" and found["mhz"] == 50 and found["via"] == "tasks"
    layers, totals = found["layers"], found["totals"]
    assert [layer["kind"] for layer in layers] == ["3x3 p1", "3x3 p1", "fc", "fc"]
    assert totals["cycles"] == sum(layer["cycles"] for layer in layers)
    for layer in layers:
        assert sum(layer["parts"].values()) == layer["cycles"]
        assert layer["bound"] in BOUNDS and f"{layer['cycles']}  {layer['bound']}" in said
        assert layer["efficiency"] == round(layer["roofline_cycles"] / layer["cycles"], 4)
    whole = totals["end_to_end_cycles"]
    assert totals["milliseconds"] == pytest.approx(whole / 50e3)
    assert totals["frames_per_second"] == pytest.approx(50e6 / whole, abs=1e-3)
    assert f"{totals['frames_per_second']:.1f} frames a second" in said
    least, in_turn = totals["least_cycles"], totals["in_turn_cycles"]
    assert totals["roofline_cycles"] <= least <= in_turn <= whole
    assert [
        f"{least} cycles" in line and line.endswith(f" one layer at a time {in_turn}")
        for line in said.splitlines()
        if line.startswith("least ")
    ] == [True]
    assert found["runs"] == [4] and all(layer["macs"] > 0 for layer in layers)
    moved = [tuple(layer["map_bytes"].values()) for layer in layers]
    assert moved == [(64, 0), (0, 0), (0, 0), (0, 10)]


def test_models_by_every_way(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "model.kmodel"
    file.write_bytes(CONTAINERS["v3"])
    said = {}
    for via in ("burst", "layers", "tasks"):
        for maps in ("dma", "window"):
            words = [f"--model={file}", "--config=k210", f"--via={via}", f"--maps={maps}"]
            assert predict.main(words) == 0
            text = said[via, maps] = capsys.readouterr().out
            assert "4 layers" in text and f"started by {via}" in text
            none = "maps moved by the host 0.0 %" in text
            assert none == (via == "tasks" or maps == "dma")
        assert said[via, "dma"].startswith(f"{file}, started by {via}, maps moved by the device")
    assert predict.main([f"--model={file}", "--config=k210"]) == 0
    assert capsys.readouterr().out == said["burst", "dma"]


def test_report_says_who_moves_maps(tmp_path: Path, capsys: Shown) -> None:
    """Of a model; with a network there is no choice."""
    report = tmp_path / "report.json"
    file = tmp_path / "model.kmodel"
    file.write_bytes(CONTAINERS["v3"])
    for words, maps in (([f"--model={file}", "--maps=window"], "window"), ([], None)):
        assert predict.main([*words, f"--report={report}"]) == 0
        assert json.loads(report.read_text())["maps"] == maps
    capsys.readouterr()


def test_bounds_of_a_model(tmp_path: Path, capsys: Shown) -> None:
    """The two differ, and the report has what is printed."""
    report, file = tmp_path / "report.json", tmp_path / "model.kmodel"
    file.write_bytes(CONTAINERS["v3"])
    assert predict.main([f"--model={file}", "--config=k210", f"--report={report}"]) == 0
    totals = json.loads(report.read_text())["totals"]
    (line,) = (row for row in capsys.readouterr().out.splitlines() if row.startswith("least "))
    words = line.split()
    assert words[1:3] == [str(totals["least_cycles"]), "cycles"]
    assert words[-1] == str(totals["in_turn_cycles"])
    assert totals["least_cycles"] < totals["in_turn_cycles"] < totals["end_to_end_cycles"]


def test_a_network(tmp_path: Path, capsys: Shown) -> None:
    """The digits as a file: the same as without one."""
    file = tmp_path / "net.npz"
    digits.load_network().save(file)
    assert predict.main([f"--network={file}", "--config=nano"]) == 0
    ours = capsys.readouterr().out.partition("layer")[2]
    assert predict.main(["--config=nano"]) == 0
    assert capsys.readouterr().out.partition("layer")[2] == ours


def test_products(capsys: Shown) -> None:
    """One tile and several; a wider bus moves the sums faster."""
    assert predict.main(["--matmul", "64x128x256", "--config=small"]) == 0
    assert "64x128 by 128x256, 1 layer, predicted" in capsys.readouterr().out
    assert predict.main(["--matmul", "3x10x1009", "--config=k210"]) == 0
    said = capsys.readouterr().out
    assert "3x10 by 10x1009, 2 layers in 1 list, predicted" in said
    assert "\nL00 " in said and "\nL01 " in said


@pytest.mark.parametrize("config", ["k210", "k210_fp16"])
def test_products_of_float16_are_refused(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """As files of matrices, in one line."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.ones((4, 6), np.float16))
    np.save("b.npy", np.ones((6, 8), np.float16))
    assert predict.main(["--matmul", "a.npy", "b.npy", f"--config={config}"]) == 2
    said = capsys.readouterr().err
    assert "products of float16 matrices are not predicted" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("bus", configs.BUSES)
def test_every_bus(bus: int, capsys: Shown) -> None:
    assert predict.main(["--config=k210", f"--bus={bus}"]) == 0
    assert f"bus of {bus} bits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--config=k211"], "unknown configuration 'k211', expected one of nano,"),
        (["--mhz=0"], "MHZ=0: expected a number above 0"),
        (["--mhz=-1"], "MHZ=-1: expected a number above 0"),
        (["--mhz=inf"], "MHZ=inf: expected a number above 0"),
        (["--mhz=fast"], "MHZ=fast: expected a number above 0"),
        (["--bus=48"], "invalid choice: 48"),
        (["--via=tasks"], "VIA without MODEL"),
        (["--functions"], "FUNCTIONS without MODEL"),
        (["--maps=window"], "MAPS without MODEL"),
        (["--model=x", "--maps=cpu"], "unknown MAPS 'cpu', expected dma or window"),
        (["--model=x", "--via=fast"], "unknown way 'fast', expected one of burst, layers, tasks"),
        (["--model=no.kmodel"], "no.kmodel: No such file"),
        (["--model=x", "--network=y"], "MODEL and NETWORK together, expected one of them"),
        (["--network=no.npz"], "no.npz"),
        (["--matmul", "4x5"], "MATMUL=4x5: expected MxKxN"),
        (["--report=no/report.json"], "the folder does not exist"),
    ],
)
def test_refused(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Shown,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert predict.main(words) == 2
    said = capsys.readouterr()
    assert says in said.err and not said.out
    assert len(said.err.splitlines()) == 1
