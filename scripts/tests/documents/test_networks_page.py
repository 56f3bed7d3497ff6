# SPDX-License-Identifier: Apache-2.0
"""docs/networks.md: its program makes a network that computes what the float weights say."""

import dataclasses
import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.digits.float_model import conv3x3, max_pool
from openkpu.files import save_arrays
from openkpu.generators.generate import random_network
from openkpu.generators.generate_pools import random_pool
from openkpu.network import kept
from openkpu.network.network import Network, NetworkError
from openkpu_tools import rtl
from openkpu_tools.command import UsageError
from openkpu_tools.commands import run_network, sim, stalls
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.check

PAGE = (ROOT / "docs/networks.md").read_text(encoding="utf-8")
PROGRAM, RESIDUAL, ATTENTION, KEEPING = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program has run, by itself."""
    path = tmp_path_factory.mktemp("networks")
    ran(sys.executable, "-c", PROGRAM, cwd=path)
    return path


def test_programs_are_short() -> None:
    assert max(len(text.splitlines()) for text in (PROGRAM, RESIDUAL, ATTENTION, KEEPING)) <= 30


def test_program_computes_the_float_network(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results of the command, times the step of the output, beside float arithmetic."""
    words = [f"--network={folder}/net.npz", f"--input={folder}/maps.npy"]
    assert sim.main(["--golden", *words, f"--output={folder}/results.npy"]) == 0
    said = capsys.readouterr().out
    assert "2 layers, 3x16x16 -> 10x1x1" in said and "map   3  classes " in said
    found = np.load(folder / "results.npy").view(np.int8)
    assert found.shape == (4, 10, 1, 1)
    rng = np.random.default_rng(1)  # as the program draws them
    conv_w, conv_b = rng.normal(0, 0.3, (8, 3, 3, 3)), rng.normal(0, 0.1, 8)
    fc_w, fc_b = rng.normal(0, 0.1, (10, 512)), rng.normal(0, 0.1, 10)
    x = np.load(folder / "maps.npy") / 255
    hidden = np.maximum(max_pool(conv3x3(x, conv_w, conv_b)), 0)
    wanted = hidden.reshape(4, -1) @ fc_w.T + fc_b
    error = np.abs(found.reshape(4, 10) * (8 / 127) - wanted)
    assert np.abs(wanted).max() > 1 and error.max() < 3 * 8 / 127, error.max()


def test_weights_that_stay(folder: Path, tmp_path: Path) -> None:
    """The program keeps nothing of a network that fits the weight buffer; a configuration that
    keeps none refuses one with places."""
    said = ran(sys.executable, "-c", KEEPING, cwd=folder)
    assert said.stdout.startswith("Gain(bytes=0, rows=0, before=")
    network = Network.load(folder / "kept.npz")
    assert network.kept == {}
    network.kept = kept.scatter(np.random.default_rng(1), network, 32768)
    run_network.check_network(network, configs.load_config("small"))
    with pytest.raises(NetworkError, match="kept weights, configuration nano has keep_weights = 0"):
        run_network.check_network(network, configs.load_config("nano"))


def test_residual_computes_the_float_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The block in float arithmetic, beside what the network leaves."""
    ran(sys.executable, "-c", RESIDUAL, cwd=tmp_path)
    words = [f"--network={tmp_path}/residual.npz", f"--input={tmp_path}/x.npy"]
    assert sim.main(["--golden", *words, f"--output={tmp_path}/results.npy"]) == 0
    assert "3 layers, 8x16x16 -> 8x16x16" in capsys.readouterr().out
    weights = np.random.default_rng(2).normal(0, 0.1, (2, 8, 8, 3, 3))  # as the program draws them
    x = np.load(tmp_path / "x.npy")[None] / 128
    inner = np.maximum(conv3x3(x, weights[0], np.zeros(8)), 0)
    wanted = np.maximum(x + conv3x3(inner, weights[1], np.zeros(8)), 0)
    found = np.maximum(np.load(tmp_path / "results.npy").view(np.int8), 0) / 16
    error = np.abs(found - np.minimum(wanted, 127 / 16))
    assert wanted.max() > 2 and wanted.std() > 0.4 and error.max() < 2 / 16, error.max()


def test_attention_is_a_softmax_of_products(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One list on the RTL: its sums beside float attention, and to the last bit beside numpy."""
    ran(sys.executable, "-c", ATTENTION, cwd=tmp_path)
    words = [f"--network={tmp_path}/attention.npz", f"--input={tmp_path}/q.npy"]
    words += ["--sim=verilator", "--config=nano"]
    assert sim.main([*words, f"--output={tmp_path}/results.npy"]) == 0
    assert "2 layers, 64x2x16 -> 260x2x16" in capsys.readouterr().out
    q, k, v = np.random.default_rng(3).integers(-127, 128, (3, 32, 64))  # as the program draws them
    found = np.load(tmp_path / "results.npy").view("<i4").reshape(65, 32)
    network = Network.load(tmp_path / "attention.npz")
    p = network.run(np.load(tmp_path / "q.npy")).layers[0].y.view(np.uint8).reshape(32, 32)
    assert (found == np.concatenate([v.T, np.ones((1, 32), int)]) @ p.astype(int)).all()
    weights = np.exp(np.minimum(k @ q.T / 64**2 / 8, np.log(255 / 16)))
    wanted = v.T @ weights / weights.sum(axis=0) / 64
    error = np.abs(found[:64] / found[64] / 64 - wanted)
    assert wanted.std() > 0.2 and error.max() < 0.06, (wanted.std(), error.max())


@pytest.mark.nightly
def test_on_the_rtl_then_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real run; its report becomes a picture whose parts add up."""
    from PIL import Image

    report = folder / "report.json"
    words = ["--sim=icarus", "--config=nano", f"--network={folder}/net.npz", "--images=1"]
    assert sim.main([*words, f"--report={report}"]) == 0
    content = json.loads(report.read_text())
    assert content["totals"]["inferences"] == 1 and len(content["layers"]) == 2
    _, bars = stalls.load_bars(report)
    assert [bar.name for bar in bars] == ["L00", "L01"]
    sums = [sum(bar.cycles.values()) for bar in bars]
    assert sums == [layer["cycles"] for layer in content["layers"]]
    capsys.readouterr()
    assert stalls.main([str(report)]) == 0
    assert f"picture: {folder / 'report.png'}" in capsys.readouterr().out
    with Image.open(folder / "report.png") as picture:
        points = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    colours = {"#" + bytes(point).hex() for point in np.unique(points, axis=0)}
    assert stalls.COLOURS["array"] in colours and stalls.COLOURS["bus"] in colours


@pytest.mark.nightly
def test_mismatch_of_a_network_is_placed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An RTL that truncates: every layer that differs says where, and the status is 1."""
    truncates = functools.partial(rtl.simulate_request, rounding=2)
    monkeypatch.setattr(run_network.rtl, "simulate_request", truncates)
    words = ["--sim=icarus", "--config=nano", f"--network={folder}/net.npz", "--images=1"]
    assert sim.main(words) == 1
    said = capsys.readouterr().out
    place = r"bytes differ, first at c=\d+ y=\d+ x=\d+: got 0x[0-9a-f]{2}, expected 0x[0-9a-f]{2}\n"
    assert re.search(r"  L00: \d+ " + place, said), said
    assert re.search(r"  result in storage: \d+ " + place, said) and "FAIL" in said


def test_vectors_on_the_rtl_are_placed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One wrong byte in a recorded output."""
    with np.load(ROOT / "models/tests/data/vectors/raw_pool7.npz") as data:
        arrays = {key: data[key].copy() for key in data.files if key.startswith("L01_")}
    right = int(arrays["L01_y"][2, 1, 5])
    arrays["L01_y"][2, 1, 5] ^= 0x55
    save_arrays(tmp_path / "wrong.npz", arrays)
    words = ["--sim=icarus", "--config=nano", "--vectors", f"{tmp_path}/wrong.npz"]
    assert sim.main(words) == 1
    said = capsys.readouterr().out
    line = f"1 bytes differ, first at c=2 y=1 x=5: got 0x{right:02x}, expected 0x{right ^ 0x55:02x}"
    assert f"  {line}\n" in said, said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("biases"), ["biases"]),
        (lambda a: a.update(words=a["words"][:, :5]), ["words", "uint64 (n, 12)"]),
        (lambda a: a.update(weights=a["weights"][:8]), ["layer 0", "weights"]),
        (lambda a: a.update(words=a["words"][:0]), ["0 layers"]),
        (lambda a: a.update(words=np.array([[None] * 12])), ["not a network image"]),
    ],
)
def test_files_that_are_none(
    folder: Path, tmp_path: Path, change: Callable[[dict[str, np.ndarray]], object], words: list
) -> None:
    with np.load(folder / "net.npz") as data:
        arrays = dict(data)
    change(arrays)
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(NetworkError) as caught:
        Network.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text
    for word in words:
        assert word in text


def test_cut_short(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "short.npz"
    path.write_bytes((folder / "net.npz").read_bytes()[:500])
    with pytest.raises(NetworkError, match="not a network image"):
        Network.load(path)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (np.zeros((2, 3, 16, 15), np.uint8), r"shape \(2, 3, 16, 15\), expected \(3, 16, 16\)"),
        (np.zeros((0, 3, 16, 16), np.uint8), "shape"),
        (np.zeros((3, 16, 16)), "float64, expected uint8"),
        (np.array([None]), "not a complete .npy file"),
    ],
)
def test_input_maps(maps: np.ndarray, message: str, tmp_path: Path) -> None:
    path = tmp_path / "maps.npy"
    np.save(path, maps)
    with pytest.raises(NetworkError, match=message):
        run_network.load_maps(path, (3, 16, 16))


def test_network_that_does_not_fit(folder: Path) -> None:
    network, nano = Network.load(folder / "net.npz"), configs.load_config("nano")
    run_network.check_network(network, nano)
    for change, words in (
        ({"ai_ram_rows": 16}, "layer 0: BAD_ADDR"),
        ({"wbuf_rows": 1}, "rows of weights at once"),
    ):
        with pytest.raises(NetworkError, match=words):
            run_network.check_network(network, dataclasses.replace(nano, **change))
    pooled = Network.single(random_pool(np.random.default_rng(1), c=2, h=4, w=4))
    with pytest.raises(NetworkError, match="layer 0: a pooling task"):
        run_network.check_network(pooled, dataclasses.replace(nano, pool_lanes=0))
    wide, _ = random_network(np.random.default_rng(1), eight_bit=False)
    with pytest.raises(NetworkError, match="8-bit"):
        run_network.check_network(wide, dataclasses.replace(nano, weight_bits=8))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "not the report of a run"),
        ("{}", "not the report of a run"),
        ('{"config": "a", "simulator": "b", "layers": []}', "no cycles"),
        (
            '{"config": "a", "simulator": "b", "layers": '
            '[{"name": "L", "cycles": null, "stalls": null}]}',
            "no cycles",
        ),
        ('{"config": "a", "simulator": "b", "layers": [{"name": "L"}]}', "not the report of a run"),
        ("\x00", "not a JSON file"),
    ],
)
def test_reports_that_are_none(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        stalls.load_bars(path)
