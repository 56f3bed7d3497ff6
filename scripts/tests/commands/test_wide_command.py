# SPDX-License-Identifier: Apache-2.0
"""WIDE: weights of 16 bits, asked for by name or within a budget of cycles; CALIBRATION at predict
and stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest

from models.tests.quantised import exported
from models.tests.quantised.exported import ACTIVATIONS, OLD, Exported
from openkpu.compiler.calibration import widening
from openkpu.compiler.form.graph import Graph
from openkpu_tools.commands import predict, run_stream, sim
from openkpu_tools.commands.compiled import compile as compile_command
from openkpu_tools.commands.compiled import quantise
from scripts.tests.conftest import Refused

pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

Main = Callable[[list[str] | None], int]
RNG = np.random.default_rng(6)
COARSE, FINE = "/net/Conv_0", "/net/Conv_2"
NAMES = (COARSE, FINE)
MAINS = (quantise.main, compile_command.main, predict.main, run_stream.main, sim.main)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A model and 20 samples of it: a weight of each channel of the first layer is large and sees
    an input near 0, so that all others are lost beside it."""
    folder = tmp_path_factory.mktemp("wide")
    m = Exported(OLD)
    y = m.conv(m.input(1, 4, 8, 8), 4, 4, bias=False)
    weights = m.constants["val_0"]
    weights *= 0.04
    weights[:, 0, 1, 1] = 40.0
    y = m.conv(ACTIVATIONS["relu"](m, y), 4, 24, bias=True)
    (folder / "net.onnx").write_bytes(m.done(ACTIVATIONS["relu"](m, y)))
    array = RNG.normal(0, 1, (20, 4, 8, 8)).astype(np.float32)
    array[:, 0] *= 1e-5
    np.save(folder / "x.npy", array)
    np.save(folder / "some.npy", array[:2])
    return [str(folder / "net.onnx"), "--calibration", str(folder / "x.npy")]


def report(words: list[str], folder: Path) -> dict:
    """What ``quantise`` writes."""
    assert quantise.main([*words, "--report", str(folder / "r.json")]) == 0
    return json.loads((folder / "r.json").read_text())


def kinds(path: Path) -> dict[str, str]:
    """The types of the weights in a QDQ file, by their nodes."""
    graph = onnx.load(path).graph
    data = {t.name: onnx.numpy_helper.to_array(t).dtype.name for t in graph.initializer}
    made = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "DequantizeLinear"}
    return {n.name: data[made[n.input[1]]] for n in graph.node if n.op_type == "Conv"}


def test_by_name(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The warning names the layer and WIDE; with it the loss is gone, and both are shown."""
    before = report(words, tmp_path)
    said = capsys.readouterr().out
    (warning,) = [line for line in said.splitlines() if line.startswith("warning")]
    assert f"--wide={COARSE} gives them 16 bits" in warning
    out = tmp_path / "q.onnx"
    after = report([*words, "--wide", COARSE, "-o", str(out)], tmp_path)
    said = capsys.readouterr().out
    assert f"weights of 16 bits in {COARSE}" in said and "warning" not in said
    assert "with weights of 8 bits alone: same class" in said
    assert kinds(out) == {COARSE: "int16", FINE: "int8"}
    first, then = (r["layers"][0] for r in (before, after))
    assert (first["bits"], then["bits"]) == (8, 16)
    assert first["own"] == first["narrow"] < 20 < then["own"] == then["wide"]
    assert then["narrow"] == pytest.approx(first["own"], abs=0.5)
    assert then["wide"] == pytest.approx(first["wide"], abs=0.5)
    (end,), (narrow,) = after["outputs"], after["outputs_narrow"]
    assert not before["outputs_narrow"]
    assert narrow["mean"] == pytest.approx(before["outputs"][0]["mean"], rel=0.1)
    assert end["mean"] < narrow["mean"] / 3


def test_result_in_onnx_runtime(words: list[str], tmp_path: Path) -> None:
    """The QDQ file is one that ONNX Runtime runs, with what the device computes."""
    out, y = tmp_path / "q.onnx", tmp_path / "y.npy"
    some = str(Path(words[0]).parent / "some.npy")
    assert quantise.main([*words, "--wide", ",".join(NAMES), "-o", str(out)]) == 0
    given = ["--model", str(out), "--input", some, "--golden", "--output", str(y)]
    assert sim.main(given) == 0
    feeds = [{"x": x[None]} for x in np.load(some)]
    want = np.concatenate([exported.run(out.read_bytes(), one)[0] for one in feeds])
    step = np.diff(np.unique(want)).min()
    assert np.abs(np.load(y) - want).max() < 1.01 * step


def test_commands_agree(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """compile and sim make the same of the float model as of the file that quantise writes."""
    some, wide = str(Path(words[0]).parent / "some.npy"), ["--wide", FINE]
    out, program = tmp_path / "q.onnx", tmp_path / "net.okpu"
    assert quantise.main([*words, *wide, "-o", str(out)]) == 0
    assert compile_command.main([*words, *wide, "-o", str(program)]) == 0
    assert f"weights of 16 bits in {FINE}" in capsys.readouterr().out
    results = []
    for model in ([str(program)], [str(out)], [*words, *wide]):
        y = tmp_path / "y.npy"
        more = ["--input", some, "--golden", "--output", str(y)]
        assert sim.main(["--model", *model, *more]) == 0
        results.append(np.load(y))
    assert all(np.array_equal(results[0], r) for r in results[1:])


def cycles_of(graph: Graph, names: Iterable[str], *_: object) -> int:
    """Cycles of a device on which each layer with 16-bit weights costs something."""
    return 1000 + sum({COARSE: 60, FINE: 90}[name] for name in names)


@pytest.mark.parametrize(
    ("share", "chosen", "words_of"),
    [
        ("0%", [], "no layer, the first one would take 6.0% more"),
        ("5.9%", [], "no layer, the first one would take 6.0% more"),
        ("6%", [COARSE], "1060 cycles predicted on k210, 1000 with weights of 8 bits"),
        ("14.9%", [COARSE], "1060 cycles predicted"),
        ("15%", [COARSE, FINE], "1150 cycles predicted"),
    ],
)
@pytest.mark.tier(check=["0%-*", "14*"])
def test_budget(
    share: str,
    chosen: list[str],
    words_of: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those whose weights lose most, as far as the cycles go."""
    monkeypatch.setattr(widening, "_cycles", cycles_of)
    out = tmp_path / "q.onnx"
    assert quantise.main([*words, "--wide", share, "-o", str(out)]) == 0
    assert [name for name, kind in kinds(out).items() if kind == "int16"] == chosen
    said = capsys.readouterr().out
    assert f"--wide={share}: {words_of}" in said


@pytest.mark.parametrize("config", ["nano", "k210"])
@pytest.mark.tier(check=["k210"])
def test_budget_is_met(
    config: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cycles are those of the configuration with these weights, as ``predict`` has them."""
    path, cycles = tmp_path / "r.json", []
    for more in ([], ["--wide", ",".join(NAMES)], ["--wide", "1000%"]):
        given = ["--model", *words, *more, "--config", config, "--report", str(path)]
        assert predict.main(given) == 0
        cycles.append(json.loads(path.read_text())["totals"]["end_to_end_cycles"])
    assert cycles[0] < cycles[1] == cycles[2]
    said = capsys.readouterr().out
    assert f"{cycles[2]} cycles predicted on {config}, {cycles[0]} with weights of 8 bits" in said
    growth = 100 * (cycles[1] / cycles[0] - 1)
    for share, met in ((growth * 1.001, True), (growth * 0.999, False)):
        report = compile_command.main([*words, "--wide", f"{share:.4f}%", "--config", config])
        said = capsys.readouterr().out
        assert report == 0 and (f"{cycles[2]} cycles predicted on {config}," in said) == met


REFUSED = {
    "unknown": (["--wide", "conv"], f"--wide: no layer 'conv', expected some of {COARSE}, {FINE}"),
    "weightless": (["--wide", f"{FINE},/net/Relu_1"], "layer '/net/Relu_1' (Relu) has no weights"),
    "empty": (["--wide", ""], "expected names of layers, for example conv1,conv2, or more cycles"),
    "comma": (["--wide", f"{FINE},"], "expected names of layers"),
    "negative": (["--wide=-1%"], "expected a number from 0 to 1000 in front of %"),
    "much": (["--wide", "1001%"], "expected a number from 0 to 1000 in front of %"),
    "number": (["--wide", "1.2.3%"], "expected a number from 0 to 1000 in front of %"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("main", MAINS, ids=lambda m: m.__module__.rpartition(".")[2])
@pytest.mark.tier(check=["compile-*", "predict-*", "run_stream-*", "sim-*"])
def test_refused(case: str, main: Main, words: list[str], refused: Refused) -> None:
    more, text = REFUSED[case]
    given = ["--model", *words] if main in MAINS[2:] else words
    refused([*given, *more], text, main=main)


# ------------------------------------------------------------------- predict and stream
def test_predict(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A float model takes what the model takes that quantise makes of it."""
    out, found = tmp_path / "q.onnx", []
    assert quantise.main([*words, "-o", str(out)]) == 0
    for model in (words, [str(out)]):
        path = tmp_path / "r.json"
        assert predict.main(["--model", *model, "--report", str(path)]) == 0
        found.append(json.loads(path.read_text())["totals"])
    assert found[0] == found[1]
    assert "net.onnx: quantised with 20 samples, minmax\n" in capsys.readouterr().out
    more = ["--samples", "5", "--method", "entropy", "--wide", COARSE, "--report", str(path)]
    assert predict.main(["--model", *words, *more]) == 0
    said = capsys.readouterr().out
    assert f"quantised with 5 samples, entropy, weights of 16 bits in {COARSE}\n" in said
    assert json.loads(path.read_text())["totals"]["cycles"] > found[0]["cycles"]


@pytest.mark.parametrize("wide", [[], ["--wide", FINE]])
def test_stream(wide: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The list and the maps are those of the quantised model; weights of 16 bits make no second
    list of it."""
    some = Path(words[0]).parent / "some.npy"
    args = run_stream.parse_stream(["--model", *words, *wide, "--input", str(some)])
    work = run_stream.stream_work(args)
    assert "quantised with 20 samples, minmax" in capsys.readouterr().out
    assert work.network.eight_bit is not bool(wide)
    assert work.images.shape == (2, *work.network.in_shape)
    assert len(np.unique(work.images)) > 50
