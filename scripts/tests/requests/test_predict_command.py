# SPDX-License-Identifier: Apache-2.0
"""make predict: table, totals, report; networks and products; refusals in one line."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from openkpu import configs, digits
from openkpu.prediction.cycles import BOUNDS
from openkpu_tools.benchmarks.bench import BASELINE
from openkpu_tools.commands import predict

RECORD = json.loads(BASELINE.read_text())
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


@pytest.mark.parametrize("name", configs.names())
def test_digits_on_every_configuration(name: str, capsys: Shown) -> None:
    """Those with the memories of an FPGA, too: its maps go where there are rows."""
    assert predict.main(["--config", name]) == 0
    assert f"configuration {name} " in capsys.readouterr().out


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


def test_names_with_colons(tmp_path: Path, capsys: Shown) -> None:
    """A name in a package may have one."""
    file = tmp_path / "one.kfpkg"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a:b.kmodel", CONTAINERS["v3"])
    assert predict.main([f"--model={file}:a:b.kmodel"]) == 0
    assert f"{file}:a:b.kmodel, started by burst" in capsys.readouterr().out


def test_numbering_and_packages(tmp_path: Path, capsys: Shown) -> None:
    """The numbering that was taken is said, one may be asked for; a model of a package."""
    file = tmp_path / "two.kfpkg"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("five.kmodel", CONTAINERS["v5"])
        archive.writestr("three.kmodel", CONTAINERS["v3"])
    five = f"--model={file}:five.kmodel"
    for words, said in (
        ([five], f"{file}:five.kmodel, byte code of nncase 1.9.0, "),
        ([five, "--numbering=1.8"], "five.kmodel, byte code of nncase 1.8 (as asked), started by"),
        ([f"--model={file}:three.kmodel"], f"{file}:three.kmodel, started by burst"),
        ([five, "--functions"], f"{file}:five.kmodel, started by burst"),
    ):
        assert predict.main([*words, "--config=k210"]) == 0
        out = capsys.readouterr().out
        assert said in out and "frames a second" in out


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
    assert "64x128 by 128x256, int8, 1 layer, predicted" in capsys.readouterr().out
    assert predict.main(["--matmul", "3x10x1009", "--config=k210"]) == 0
    said = capsys.readouterr().out
    assert "3x10 by 10x1009, int8, 2 layers in 1 list, predicted" in said
    assert "\nL00 " in said and "\nL01 " in said


def totals_of(tmp_path: Path, *words: str) -> dict[str, Any]:
    """The sums of the report."""
    report = tmp_path / "report.json"
    assert predict.main([*words, f"--report={report}"]) == 0
    return json.loads(report.read_text())["totals"]


def test_products_of_float16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """As files, and of sizes; float16 results are half the bytes; integers take other cycles."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.ones((40, 60), np.float16))
    np.save("b.npy", np.ones((60, 32), np.float16))
    device, sizes = "--config=k210_fp16", ("--matmul", "40x60x32")
    files = totals_of(tmp_path, "--matmul", "a.npy", "b.npy", device)
    assert "float16, 1 layer" in capsys.readouterr().out
    wide = totals_of(tmp_path, *sizes, "--type=fp16", device)
    assert "fp16, 1 layer" in capsys.readouterr().out
    narrow = totals_of(tmp_path, *sizes, "--type=fp16to16", device)
    integers = totals_of(tmp_path, *sizes, device)
    assert wide["cycles"] == files["cycles"]
    # the bus of 64 bits writes the sums; either way so much besides
    assert wide["cycles"] - narrow["cycles"] == 40 * 32 * 2 // 8
    # 256 lanes: rows of A by eight, columns of B by 32
    assert wide["parts"]["array"] == 5 * 60
    assert integers["cycles"] != wide["cycles"]


def test_a_product_of_float16_as_the_readme_has_it(tmp_path: Path, capsys: Shown) -> None:
    """End to end as the record of the bench, within a cycle in 10,000."""
    words = ("--matmul", "512x512x512", "--type=fp16", "--config=k210_fp16")
    found = totals_of(tmp_path, *words)
    cycles, least = RECORD["tasks: 512x512x512 of float16, k210_fp16, 64 bits"]["end to end"][:2]
    assert found["end_to_end_cycles"] == pytest.approx(cycles, rel=1e-4)
    assert found["roofline_cycles"] == least
    capsys.readouterr()


def test_roofline_of_lists(tmp_path: Path, capsys: Shown) -> None:
    """As `make sim` has it: the bytes of list, input and result are in it."""
    record = RECORD["networks: digits, small, 32 bits"]["end to end"]
    found = totals_of(tmp_path, "--config=small")
    assert found["roofline_cycles"] == record[1]
    product = totals_of(tmp_path, "--matmul", "64x64x64", "--config=small")
    moved = 12 * 8 + 2 * 64 * 64 + 4 * 64 * 64 + 64 * 8 + 18 * 8
    assert product["roofline_cycles"] == moved // 4
    assert product["efficiency"] > 0.98
    capsys.readouterr()


@pytest.mark.parametrize("bus", configs.BUSES)
def test_every_bus(bus: int, capsys: Shown) -> None:
    assert predict.main(["--config=k210", f"--bus={bus}"]) == 0
    assert f"bus of {bus} bits" in capsys.readouterr().out
