# SPDX-License-Identifier: Apache-2.0
"""`make sim MODEL=`: bad requests, golden model alone, the RTL, a published model when there."""

import dataclasses
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, LAYERS, X
from models.tests.kmodel.test_kmodel_real import shared
from openkpu import configs
from openkpu.kmodel import KmodelError
from openkpu.kmodel.build import build_v0, build_v1, build_v3, chain_layers
from openkpu.words import WAYS
from openkpu_tb.runs import requests
from openkpu_tb.runs.run_model import read_programs
from openkpu_tb.simrun import SIMS
from openkpu_tools.commands import run_model
from openkpu_tools.commands import sim as command
from scripts.tests.checkouts import ran
from scripts.tests.conftest import Refused
from scripts.tests.requests.test_command_line import complains, sim, sim_here

_, C, H, W = (1, *X.shape)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "small.kmodel"
    path.write_bytes(CONTAINERS["v3"])
    return str(path)


@pytest.fixture
def image(tmp_path: Path) -> str:
    """Of the right size."""
    path = tmp_path / "picture.png"
    Image.fromarray(np.ascontiguousarray(X.transpose(1, 2, 0))).save(path)
    return str(path)


def test_bad_files(tmp_path: Path, image: str, refused: Refused) -> None:
    """Truncated, another version, byte code that nobody can follow."""
    good = CONTAINERS["v5"]
    version = good[:4] + b"\x06\0\0\0" + good[8:]
    files = {"short": (good[:-100], []), "six": (version, ["version 6"]), "few": (good[:5], [])}
    start = good.index(b".text\0") + 48
    strange = good[:start] + b"\xfe" * 64 + good[start + 64 :]
    files["strange"] = strange, ["--functions runs"]
    for name, (data, words) in files.items():
        path = tmp_path / f"{name}.kmodel"
        path.write_bytes(data)
        asked = ["sim", "--golden", "--model", str(path), "--image", image]
        refused(asked, path.name, *words)


def test_no_layer_for_the_kpu(tmp_path: Path, image: str, refused: Refused) -> None:
    path = tmp_path / "cpu.kmodel"
    path.write_bytes(build_v3([], [(0, 16)], 64))
    refused(["sim", "--golden", "--model", str(path), "--image", image], "cpu.kmodel")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ai_ram_rows": 64}, ["layer 0", "BAD_ADDR", "64"]),
        ({"wbuf_rows": 2}, ["rows of weights", "2"]),
        ({"weight_bits": 8}, ["16-bit weights", "8-bit"]),
    ],
)
def test_layers_that_do_not_fit(
    change: dict[str, int],
    words: list[str],
    tmp_path: Path,
    image: str,
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
) -> None:
    """A device with less memory than the model needs."""
    path = tmp_path / "wide.bin"
    path.write_bytes(CONTAINERS["v0_16bit"])
    less = dataclasses.replace(configs.load_config("nano"), **change)
    monkeypatch.setattr(configs, "load_config", lambda name: less)
    asked = ["sim", "--golden", "--model", str(path), "--image", image]
    refused(asked, "wide.bin", "does not fit the device", *words)


def test_golden_alone(model: str, tmp_path: Path) -> None:
    """Another size is resized and said; no cycles in the report; nothing simulated."""
    picture = tmp_path / "large.png"
    Image.new("RGB", (80, 50), (10, 200, 30)).save(picture)
    report = tmp_path / "report.json"
    result = sim_here(
        *("--golden", "--model", model, "--image", str(picture), "--report", str(report)),
        *("--layers", "1-2"),
    )
    assert result.returncode == 0, result.stderr
    assert f"resized from 80 x 50 to {W} x {H}" in result.stdout
    content = json.loads(report.read_text())
    assert content["simulator"] == "golden" and len(content["layers"]) == 2
    assert [layer["name"] for layer in content["layers"]] == ["L01", "L02"]
    assert all(layer["cycles"] is None for layer in content["layers"])
    assert content["layers"][0]["in_shape"] == list(LAYERS[1].arg.in_shape)
    lines = result.stdout.splitlines()
    assert len([line for line in lines if line.startswith("L0")]) == 2
    assert not [line for line in lines if line.endswith(" ok")] and "PASS" not in result.stdout
    assert "mismatching" not in result.stdout and "nothing was compared" in lines[-1]


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("simulator", SIMS)
def test_on_the_rtl(simulator: str, model: str, image: str, tmp_path: Path) -> None:
    """Table, report and output of a run."""
    report = tmp_path / "report.json"
    args = ["--sim", simulator, "--config", "nano", "--model", model, "--image", image]
    result = sim(*args, "--report", str(report))
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads(report.read_text())
    assert [layer["name"] for layer in content["layers"]] == ["L00", "L01", "L02", "L03"]
    for layer, made in zip(content["layers"], LAYERS, strict=True):
        assert layer["in_shape"] == list(made.arg.in_shape)
        assert layer["out_shape"] == list(made.arg.out_shape)
        assert layer["mismatching_bytes"] == 0 < layer["cycles"]
        assert layer["roofline_cycles"] > 0 and sum(layer["stalls"].values()) <= layer["cycles"]
    totals = content["totals"]
    assert totals["cycles"] == sum(layer["cycles"] for layer in content["layers"])
    assert totals["via"] == "burst"
    efficiency = totals["model_roofline_cycles"] / totals["cycles"]
    assert totals["model_efficiency"] == pytest.approx(efficiency, abs=1e-4)
    rows = [line for line in result.stdout.splitlines() if line.endswith(" ok")]
    assert [row.split()[0] for row in rows] == ["L00", "L01", "L02", "L03"]
    assert "0 mismatching bytes" in result.stdout and "PASS" in result.stdout


@pytest.mark.nightly
def test_one_roofline_for_all_ways(model: str, image: str, tmp_path: Path) -> None:
    """Layers alone and end to end, by every way: parts add up, rooflines are the same."""
    found = {}
    for via, maps in (*((via, "dma") for via in WAYS), ("burst", "window")):
        report = tmp_path / f"{via}.json"
        args = ["--sim", "verilator", "--config", "nano", "--model", model, "--image", image]
        result = sim(*args, "--via", via, "--maps", maps, "--report", str(report))
        assert result.returncode == 0, result.stdout + result.stderr
        content = json.loads(report.read_text())
        totals, end = content["totals"], content["totals"]["end_to_end"]
        assert end["cycles"] > totals["cycles"] == end["parts"]["layers"]
        assert sum(end["parts"].values()) == end["cycles"] and min(end["parts"].values()) >= 0
        assert sum(end["shares"].values()) == pytest.approx(1, abs=2e-6)
        for part, cycles in end["parts"].items():
            assert end["shares"][part] == pytest.approx(cycles / end["cycles"], abs=1e-6)
        # a host writes the input itself; from storage the device reads it
        assert (end["parts"]["host_maps"] == 0) == (maps == "dma")
        assert (totals["via"], totals["maps"]) == (via, maps)
        assert end["efficiency"] == pytest.approx(end["roofline_cycles"] / end["cycles"], abs=1e-4)
        lines = [line.split() for line in result.stdout.splitlines()]
        assert [int(w[1]) for w in lines if w[:1] == ["cycles"]] == [
            totals["cycles"],
            end["cycles"],
        ]
        assert f"end to end: {end['what']}" in result.stdout
        assert set(content["counts"]) >= {"totals.cycles", "totals.end_to_end"}
        rows = [layer["roofline_cycles"] for layer in content["layers"]]
        found[via, maps] = rows, end["roofline_cycles"], totals["macs"]
    assert all(figures == found["burst", "dma"] for figures in found.values())


def test_bytes_of_the_roofline(model: str, image: str) -> None:
    """What has to cross the bus does not depend on the way."""
    found = []
    for via in WAYS:
        args = command.parse_sim(["--model", model, "--image", image, "--via", via])
        found.append([layer.traffic for layer in run_model.Job(args).layers])
    assert found[0] == found[1] == found[2] and len(found[0]) == len(LAYERS)
    assert all(t["task_list"] for t in found[0])
    assert [t["reads_input"] for t in found[0]] == [True, False, False, False]
    assert [t["writes_output"] for t in found[0]] == [False, False, False, True]


@pytest.mark.tier(
    nightly=["args0-back door of the bench (--fast)", "args1-golden model (--layers)"]
)
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--fast"], "back door of the bench (--fast)"),
        (["--layers", "1-2"], "golden model (--layers)"),
    ],
)
def test_no_end_to_end(args: list[str], words: str, model: str, image: str, tmp_path: Path) -> None:
    """What did not cross the bus from end to end has no such figure, and says why."""
    report = tmp_path / "report.json"
    base = ["--sim", "icarus", "--config", "nano", "--model", model, "--image", image]
    result = sim(*base, *args, "--report", str(report))
    assert result.returncode == 0, result.stdout + result.stderr
    end = json.loads(report.read_text())["totals"]["end_to_end"]
    assert end["cycles"] is None and words in end["why"] and set(end) == {"cycles", "why"}
    assert f"end to end: not measured, {end['why']}" in result.stdout


@pytest.mark.nightly
def test_a_difference_is_seen(
    tmp_path: Path,
    image: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An RTL that truncates against a golden model that rounds: counted, reported, status 1."""
    monkeypatch.setattr(run_model, "ROUNDINGS", ("trunc", "v01", "nncase"))
    path, report = tmp_path / "v1.kmodel", tmp_path / "report.json"
    path.write_bytes(CONTAINERS["v1"])
    args = ["--sim", "icarus", "--config", "nano", "--model", str(path), "--image", image]
    assert command.main([*args, "--report", str(report)]) == 1
    layers = json.loads(report.read_text())["layers"]
    assert len(layers) == 4 and all(layer["mismatching_bytes"] > 0 for layer in layers)
    said = capsys.readouterr().out
    assert f"{layers[0]['mismatching_bytes']} differ" in said and "FAIL" in said


def test_detector_draws_boxes(tmp_path: Path, image: str) -> None:
    """Anchors and classes from a side file; the picture shows what was found."""
    layer = LAYERS[0]
    detector = tmp_path / "side.json"
    side = {"anchors": [1.0, 1.5], "classes": ["thing"], "threshold": 0.4}
    detector.write_text(json.dumps(side))
    small = tmp_path / "detector.kmodel"
    small.write_bytes(build_v1([layer], scale=0.03, bias=-3.0))
    png = tmp_path / "found.png"
    args = ["--golden", "--model", str(small), "--image", image, "--detector", str(detector)]
    result = sim_here(*args, "--png", str(png))
    assert result.returncode == 0, result.stderr
    assert "thing 0." in result.stdout and "picture:" in result.stdout
    before, after = Image.open(image).convert("RGB"), Image.open(png).convert("RGB")
    assert before.size == after.size and before.tobytes() != after.tobytes()


@pytest.mark.nightly
def test_published_digits(tmp_path: Path) -> None:
    """A published model unmodified: one digit, every layer exact."""
    model, image = shared("real/mnist_sipeed_v3.kmodel"), shared("real/images/mnist_train_0.jpg")
    report = tmp_path / "report.json"
    args = ["--sim", "verilator", "--config", "k210", "--model", str(model), "--image", str(image)]
    result = sim(
        *args, "--report", str(report), OPENKPU_SHARED=os.environ.get("OPENKPU_SHARED", "")
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(json.loads(report.read_text())["layers"]) == 3
    answer = result.stdout.split("mnist_train_0.jpg\n")[-1].splitlines()[0]
    assert answer.split() == ["5:", "0.7079"]


# --------------------------------------------------------------------- numberings, packages, names
@pytest.mark.check
def test_the_numbering_is_said_and_asked_for(tmp_path: Path, image: str) -> None:
    path = tmp_path / "five.kmodel"
    path.write_bytes(CONTAINERS["v5"])
    words = ["--golden", "--model", str(path), "--image", image]
    result = sim_here(*words)
    assert result.returncode == 0, result.stderr
    assert "five.kmodel: kmodel v5, byte code of nncase 1.9.0, 1.8.0," in result.stdout
    result = sim_here(*words, "--numbering", "1.6.0")
    assert result.returncode == 0, result.stderr
    assert "kmodel v5, byte code of nncase 1.6.0 (as asked), 8-bit" in result.stdout


def test_the_simulation_reads_by_the_same_numbering(
    tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = tmp_path / "five.kmodel", []
    path.write_bytes(CONTAINERS["v5"])

    def simulate(args: object, request: requests.ModelRequest, *_: object) -> None:
        found.append(request)
        raise KmodelError("seen")

    monkeypatch.setattr(run_model.rtl, "simulate_request", simulate)
    words = ["--sim", "icarus", "--model", str(path), "--image", image, "--numbering", "1.7.1"]
    with pytest.raises(KmodelError, match="seen"):
        command.main(words)
    (request,) = found
    (program,), _ = read_programs(request)
    assert program.detail == "byte code of nncase 1.7.1 (as asked)"


def packed(tmp_path: Path) -> Path:
    """A package with the model, its words byte-swapped, and another one."""
    data = CONTAINERS["v3"] + bytes(-len(CONTAINERS["v3"]) % 4)
    turned = np.frombuffer(data, "<u4").byteswap().tobytes()
    path = tmp_path / "two.kfpkg"
    with zipfile.ZipFile(path, "w") as archive:
        names = ("small.kmodel", "other.kmodel")
        entries = [{"address": 0xA00000, "bin": name} for name in names]
        archive.writestr("flash-list.json", json.dumps({"version": "0.1.0", "files": entries}))
        archive.writestr("small.kmodel", turned)
        archive.writestr("other.kmodel", CONTAINERS["v4"])
    return path


@pytest.mark.check
def test_a_model_of_a_package_on_the_rtl(tmp_path: Path, model: str, image: str) -> None:
    """The tables in storage are in order; cycles as of the plain file."""
    path, cycles = packed(tmp_path), []
    for name in (model, f"{path}:small.kmodel"):
        report = tmp_path / "report.json"
        args = ["--sim", "icarus", "--config", "nano", "--model", name, "--image", image]
        result = sim(*args, "--report", str(report))
        assert result.returncode == 0, result.stdout + result.stderr
        assert (f"{name}: kmodel v3, byte-swapped words, " in result.stdout) == (name != model)
        content = json.loads(report.read_text())
        assert all(layer["mismatching_bytes"] == 0 for layer in content["layers"])
        cycles.append([layer["cycles"] for layer in content["layers"]])
    assert cycles[0] == cycles[1] and len(cycles[0]) == 4


@pytest.mark.parametrize(
    "terminal",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_names_that_a_terminal_cannot_print(
    terminal: dict[str, str], tmp_path: Path, image: str
) -> None:
    """Letters of any script in whatever is printed: names, classes, errors."""
    model, photo, side = (tmp_path / n for n in ("模型.kmodel", "图片.png", "类.json"))
    model.write_bytes(build_v1([LAYERS[0]], scale=0.03, bias=-3.0))
    photo.write_bytes(Path(image).read_bytes())
    side.write_text(json.dumps({"anchors": [1.0, 1.5], "classes": ["猫"], "threshold": 0.4}))
    words = ["--golden", "--model", str(model), "--image", str(photo), "--detector", str(side)]
    result = sim(*words, "--png", str(tmp_path / "果.png"), **terminal)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert "\\u732b 0." in result.stdout and ".kmodel: kmodel v1" in result.stdout
    assert (tmp_path / "果.png").exists()
    complains(
        sim("--golden", "--model", f"{tmp_path}/无.kmodel", "--image", image, **terminal), "No such"
    )
    shown = ran(sys.executable, "-m", "openkpu.kmodel", model, also=terminal)
    assert "kmodel v1" in shown.stdout and not shown.stderr


@pytest.mark.parametrize("known", [True, False])
def test_a_guess_is_said(known: bool, tmp_path: Path) -> None:
    """A face detector of the published kind: the assumption is printed before the boxes.

    The same map of another size of picture may be any detector's: how to have it read is said.
    """
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (3, 240, 320 if known else 240), dtype=np.uint8)
    half = {"o": 4, "kernel": 1, "pool": 5, "depthwise": False}
    shapes = [half] * 4 + [{"o": 30, "kernel": 1, "pool": 0, "depthwise": False}]
    photo, path = tmp_path / "p.png", tmp_path / "m.bin"
    Image.fromarray(np.ascontiguousarray(x.transpose(1, 2, 0))).save(photo)
    path.write_bytes(build_v0(chain_layers(rng, shapes, x), 0.05, -6.0))
    result = sim_here("--golden", "--model", str(path), "--image", str(photo))
    assert result.returncode == 0, result.stderr
    said = "anchors of the 1-class face detector assumed; --detector=side.json gives yours"
    assert (said in result.stdout) == known
    assert ("a map of 30 channels, 15 x 15 cells" in result.stdout) != known
    assert known or "face" not in result.stdout
