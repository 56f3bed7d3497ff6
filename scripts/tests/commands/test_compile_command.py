# SPDX-License-Identifier: Apache-2.0
"""openkpu compile, and make sim with a quantised model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker
from openkpu import configs, digits, files
from openkpu.compiler import build, okpu, run
from openkpu.compiler.source import read_program
from openkpu.prediction.cycles_model import predict_network
from openkpu.writers import Quant, Weights
from openkpu.writers.tflite_model import TfliteModel
from openkpu_tools.commands import predict, run_stream, sim
from openkpu_tools.commands.compiled import compile as command
from openkpu_tools.commands.compiled import compiled_page, compiled_table
from scripts.tests.conftest import Refused

FOLDER = Path(digits.__file__).parent
TFLITE, ONNX = FOLDER / "residual_int8.tflite", FOLDER / "separable_qdq.onnx"


@pytest.mark.parametrize("model", [TFLITE, ONNX], ids=lambda p: p.suffix)
def test_program_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file is written that holds the model; the table names every node."""
    path = tmp_path / "net.okpu"
    assert command.main([str(model), "-o", str(path)]) == 0
    said = capsys.readouterr().out
    program = okpu.load_okpu(path)
    assert all(row.name[-30:] in said for row in program.rows)
    assert f"{program.layers} layers in 1 task list" in said and "predicted on k210" in said


def test_cost_of_bands() -> None:
    """One line: what bands of a 1x1 convolution cost. Every byte of its maps goes in once and comes
    out once, as without bands; each band has the weights and tables of its own."""
    m = Maker(5)
    m.done(m.conv(m.input(1, 8, 40, 64), 8, (1, 1)))
    nano = configs.load_config("nano_fpga")
    config = dataclasses.replace(nano, ai_ram_rows=300)  # a map takes 8 * 40 rows of a line each
    program = build.build_program(m.graph, config)
    (part,) = program.device_parts
    layers, whole = part.network.layers, build.build_program(m.graph, nano).device_parts[0].network
    assert len(layers) > 2 and len(whole.layers) == 1
    own = whole.layers[0].weight_count + 8 * sum(whole.layers[0].table_words)
    more = predict_network(config, part.network).cycles - predict_network(config, whole).cycles
    line = (
        f"bands: {len(layers)} layers for 1, {own * (len(layers) - 1)} bytes and {more} cycles"
        " more than with 2 MiB of AI RAM"
    )
    assert [x for x in compiled_table.node_lines(program, config) if "bands" in x] == [line]
    fits = build.build_program(m.graph, nano)
    assert not any("bands" in x for x in compiled_table.node_lines(fits, nano))
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    assert not any("bands" in x for x in compiled_table.node_lines(again, config))


@pytest.mark.parametrize("compiled", [False, True])
def test_golden(compiled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """INPUT in integers and in floats, OUTPUT in the model's type and shape."""
    model = TFLITE
    if compiled:
        model = tmp_path / "net.okpu"
        assert command.main([str(TFLITE), "-o", str(model)]) == 0
    program = okpu.loads_okpu(model.read_bytes(), "net") if compiled else None
    whole = np.random.default_rng(1).integers(-128, 128, (3, 8, 8, 1)).astype(np.int8)
    results = []
    for i in range(2):
        if program is not None and i:
            (tensor,) = program.inputs
            assert tensor.scale is not None
            whole = ((whole - float(tensor.zero)) * tensor.scale).astype(np.float32)
        np.save(tmp_path / "x.npy", whole)
        words = ["--model", str(model), "--golden", "--input", str(tmp_path / "x.npy")]
        assert sim.main([*words, "--output", str(tmp_path / "y.npy")]) == 0
        results.append(np.load(tmp_path / "y.npy"))
    assert results[0].shape == (3, 10) and results[0].dtype == np.int8
    assert np.array_equal(*results)
    assert "3 inferences" in capsys.readouterr().out


def picture(path: Path, size: tuple[int, int] = (8, 8)) -> np.ndarray:
    """A picture in colours, and its grey bytes."""
    image_module = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
    pixels = np.random.default_rng(4).integers(0, 256, (*size, 3), dtype=np.uint8)
    image = image_module.fromarray(pixels)
    image.save(path)
    return np.asarray(image.convert("L"))


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pixels as bytes, or as numbers by MEAN and SCALE; names of classes; RAW bytes."""
    grey = picture(tmp_path / "x.png")
    (tensor,) = read_program(TFLITE, configs.load_config("small")).inputs
    (tmp_path / "names.txt").write_text("\n".join(f"digit {i}" for i in range(10)))
    assert tensor.scale is not None
    real = (grey - 100.0) * 0.01
    quantised = np.clip(np.rint(real / tensor.scale) + tensor.zero, -128, 127)
    cases = [
        ([], grey.astype(np.int64) - 128),
        (["--mean", "100", "--scale", "0.01"], quantised),
    ]
    for more, pixels in cases:
        np.save(tmp_path / "x.npy", pixels.astype(np.int8)[None, :, :, None])
        results = []
        for words in (
            ["--image", str(tmp_path / "x.png"), *more],
            ["--input", str(tmp_path / "x.npy")],
        ):
            words += ["--output", str(tmp_path / "y.npy"), "--labels", str(tmp_path / "names.txt")]
            assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 0
            results.append(np.load(tmp_path / "y.npy"))
        assert np.array_equal(*results)
    assert "digit 3: " in capsys.readouterr().out
    words = ["--input", str(tmp_path / "x.npy"), "--raw", "--output", str(tmp_path / "raw.npy")]
    assert sim.main(["--model", str(TFLITE), "--golden", *words]) == 0
    raw = np.load(tmp_path / "raw.npy")
    assert raw.dtype == np.uint8 and raw.shape == (1, 10, 1, 1)


def test_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cycles of the task list."""
    report = tmp_path / "r.json"
    assert predict.main(["--model", str(TFLITE), "--report", str(report)]) == 0
    said = capsys.readouterr().out
    program = read_program(TFLITE, configs.load_config("small"))
    found = json.loads(report.read_text())
    assert len(found["layers"]) == program.layers and found["via"] == "tasks"
    (part,) = program.device_parts
    whole = predict_network(configs.load_config("small"), part.network).cycles
    assert found["totals"]["end_to_end_cycles"] == whole and "1 nodes on the host" in said


def test_report(tmp_path: Path) -> None:
    """Layers, and where each node runs."""
    report = tmp_path / "r.json"
    assert sim.main(["--model", str(ONNX), "--golden", "--report", str(report)]) == 0
    nodes = json.loads(report.read_text())["totals"]["nodes"]
    assert {n["runs"] for n in nodes} == {"device", "host", "index"}
    assert (
        sum(n["layers"] for n in nodes) == read_program(ONNX, configs.load_config("small")).layers
    )
    assert all(n["cycles"] > 0 and n["weights"] > 0 for n in nodes if n["macs"])


def test_page(tmp_path: Path) -> None:
    """Well-formed, with a box and a row for each node, and names that are no markup."""
    page = tmp_path / "page.html"
    assert command.main([str(TFLITE), "--html", str(page)]) == 0
    program = read_program(TFLITE, configs.load_config("k210"))
    text = page.read_text()
    drawn = text[text.index("<svg") : text.index("</svg>") + 6]
    boxes = ElementTree.fromstring(drawn).findall("rect")
    assert len(boxes) == len(program.rows) + 1 and text.count("<tr") == len(program.rows) + 1
    program.rows[0].name = "<b>&"
    assert "<b>&" not in compiled_page.program_page(program, configs.load_config("k210"))
    assert sim.main(["--model", str(TFLITE), "--golden", "--html", str(page)]) == 0
    assert "on small" in page.read_text()


def two_ended(path: Path) -> tuple[np.ndarray, list[str]]:
    """A model of two inputs and two outputs; an array for either input, and their names."""
    m = TfliteModel(np.int8)
    a, b = (m.input((1, 3, 6, 5), Quant(scale, 3)) for scale in (0.05, 0.07))
    y = m.binary("add", a, b, Quant(0.1, 0))
    path.write_bytes(m.finish([y, m.pool("max", y, (2, 2), (2, 2))]))
    x = np.random.default_rng(2).integers(-128, 128, (1, 6, 5, 3)).astype(np.int8)
    return x, [a.name, b.name]


def test_several_outputs(tmp_path: Path, refused: Refused) -> None:
    """A .npz has all of them; .npy is refused before anything runs or is written."""
    model, given = tmp_path / "net.tflite", tmp_path / "x.npz"
    x, names = two_ended(model)
    np.savez(given, **dict.fromkeys(names, x))  # pyright: ignore
    words = ["--model", str(model), "--golden", "--input", str(given), "--output"]
    assert sim.main([*words, str(tmp_path / "y.npz")]) == 0
    with np.load(tmp_path / "y.npz") as found:
        assert sorted(v.shape for v in found.values()) == [(1, 3, 2, 3), (1, 6, 5, 3)]
    for more in ([], ["--raw"]):
        text = "2 results (t2, t3), expected a name that ends in .npz"
        refused(["sim", *words, str(tmp_path / "y.npy"), *more], text)
        assert not (tmp_path / "y.npy").exists()


def test_names_that_are_alike(tmp_path: Path, refused: Refused) -> None:
    """Every output and input keeps an array of its own, whatever its name."""
    m = Maker(5)
    a, b = m.input(1, 3, 6, 5), m.input(1, 3, 6, 5)
    ends = [m.conv(a, 2, (3, 3)), m.conv(b, 2, (3, 3)), m.both("add", a, b), m.conv(a, 1, (1, 1))]
    names = ["x/1", "x_1", "y/1", "y_1", "y:1", "file"]
    named = {t.name: n for t, n in zip([a, b, *ends], names, strict=True)}
    for node in m.graph.nodes:
        node.inputs = tuple(named[n] for n in node.inputs)
        node.outputs = tuple(named[n] for n in node.outputs)
    for tensor in (a, b, *ends):
        tensor.name = named[tensor.name]
    m.graph.tensors = {t.name: t for t in m.graph.tensors.values()}
    m.graph.inputs = [a.name, b.name]
    program = build.build_program(m.done(*ends), configs.load_config("k210"))
    net, given, out = (tmp_path / n for n in ("net.okpu", "x.npz", "y.npz"))
    net.write_bytes(okpu.dumps(program))
    x = {"x_1_2": m.bytes(2, 3, 6, 5).astype(np.int8), "x_1": m.bytes(2, 3, 6, 5).astype(np.int8)}
    words = ["--model", str(net), "--golden", "--input", str(given), "--output", str(out)]
    for raw in ([], ["--raw"]):
        files.save_arrays(given, x)
        assert sim.main([*words, *raw]) == 0
        with np.load(out) as found:
            assert sorted(found) == ["file", "y_1", "y_1_2", "y_1_3"]
            results = dict(found)
        files.save_arrays(given, {"x/1": x["x_1_2"], "x_1": x["x_1"]})  # the model's own names
        assert sim.main([*words, *raw]) == 0
        with np.load(out) as found:
            assert all(np.array_equal(found[n], results[n]) for n in results)
    one = {name: x[key][:1].astype(np.int64) for name, key in (("x/1", "x_1_2"), ("x_1", "x_1"))}
    values = run.run_program(program, one)
    assert sim.main(words) == 0
    with np.load(out) as found:
        for tensor, name in zip(ends, ["y_1_2", "y_1", "y_1_3", "file"], strict=True):
            assert np.array_equal(found[name][:1], values[tensor.name])
    files.save_arrays(given, {**x, "x/1": x["x_1"]})
    refused(["sim", *words], "two arrays for the input 'x/1', expected one")


def test_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    """A terminal would obey what names of a file hold: they are printed as escapes."""
    m = TfliteModel(np.int8)
    x = m.input((1, 3, 6, 5), Quant(0.05, 3))
    weights = Weights(np.ones((4, 3, 3, 3), np.int8), 0.02)
    y = m.conv(x, weights, Quant(0.1, 0))
    bad = "a\x1b[31m\nb\x07 \xe9"
    for tensor in m.tensors:
        if tensor.name in (x.name, y.name):
            tensor.name = f"{tensor.name}{bad}"
    net, okpu_file, page = (tmp_path / n for n in ("net.tflite", "net.okpu", "page.html"))
    net.write_bytes(m.finish([y]))
    assert command.main([str(net), "-o", str(okpu_file), "--print", "--html", str(page)]) == 0
    out = capsys.readouterr().out
    for model in (net, okpu_file):
        arrays = str(tmp_path / "y.npz")
        assert sim.main(["--model", str(model), "--golden", "--output", arrays]) == 0
        out += capsys.readouterr().out
        assert predict.main(["--model", str(model)]) == 0
        out += capsys.readouterr().out
    assert out.isascii() or "\xe9" in out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert out.count("a\\x1b[31m\\nb\\x07 \xe9") > 4
    np.savez(tmp_path / "x.npz", other=np.zeros((1, 6, 5, 3), np.int8))
    words = ["--model", str(net), "--golden", "--input", str(tmp_path / "x.npz")]
    assert "\x1b" not in refused(["sim", *words], "the model has inputs ")


def test_arrays_that_are_no_inputs(tmp_path: Path, refused: Refused) -> None:
    """A name that is misspelt is not left out."""
    model, given = tmp_path / "net.tflite", tmp_path / "x.npz"
    x, names = two_ended(model)
    words = ["--model", str(model), "--golden", "--input", str(given)]
    for arrays, text in (
        ({names[0]: x, "t9": x}, "an array 't9', the model has inputs t0, t1"),
        ({names[0]: x, names[1]: x, "more": x}, "an array 'more'"),
        ({names[0]: x}, "no array for the input 't1'"),
    ):
        np.savez(given, **arrays)  # pyright: ignore
        refused(["sim", *words], text)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (b"\xef\xbb\xbf" + b"a\r\n" * 10, True),
        (b"a\n" * 10 + b"\n \n", True),  # nothing but empty lines at the end
        (b"a\r" * 10, True),
        ("a\u2028b\n".encode() * 10, True),  # no end of a line
        (b"\n" * 9 + b"a", True),
        (b"a\n" * 9, False),
        (b"a\n" * 11, False),
    ],
)
def test_labels(text: bytes, good: bool, tmp_path: Path, refused: Refused) -> None:
    """A line each, however lines end."""
    path = tmp_path / "names.txt"
    path.write_bytes(text)
    words = ["--model", str(TFLITE), "--golden", "--labels", str(path)]
    if good:
        assert sim.main(words) == 0
    else:
        refused(["sim", *words], "names, expected 10")


def test_what_was_done_to_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another size, and what a photo says of itself: in the line of the inferences."""
    image_module = pytest.importorskip("PIL.Image", reason="make setup GROUPS=models brings Pillow")
    exif = image_module.Exif()
    exif[0x0112] = 6
    image_module.new("RGB", (20, 10)).save(tmp_path / "x.jpg", exif=exif)
    words = ["--model", str(TFLITE), "--golden", "--image", str(tmp_path / "x.jpg")]
    assert sim.main(words) == 0
    said = capsys.readouterr().out
    assert "x.jpg (turned (EXIF orientation 6); resized from 10 x 20 to 8 x 8)" in said


def batched(path: Path, count: int) -> None:
    """A classifier that is written for a batch."""
    rng, m = np.random.default_rng(3), TfliteModel(np.int8)
    x = m.input((count, 3, 6, 5), Quant(0.05, 3))
    scale = np.full(4, 0.01)
    w = Weights(rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), scale)
    y = m.mean(m.conv(x, w, Quant(0.2, 0)), Quant(0.02, 0), keep=False)
    y = m.reshape(y, (count, 4))
    dense = Weights(rng.integers(-127, 128, (4, 4)).astype(np.int8), scale, np.zeros(4, np.int32))
    path.write_bytes(m.finish([m.fully(y, dense, Quant(0.01, 0))]))


def test_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused) -> None:
    """A model of a batch runs inference by inference, with as many as are given."""
    x = np.random.default_rng(4).integers(-128, 128, (3, 6, 5, 3)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    found = []
    for count in (1, 3):
        batched(tmp_path / "net.tflite", count)
        words = ["--model", str(tmp_path / "net.tflite"), "--golden"]
        y = str(tmp_path / "y.npy")
        assert sim.main([*words, "--input", str(tmp_path / "x.npy"), "--output", y]) == 0
        found.append(np.load(y))
    assert np.array_equal(*found) and found[0].shape == (3, 4) and found[0].std() > 20
    assert "its batch of 3 runs as one inference after another" in capsys.readouterr().out
    for shape, count in (("3x6x5x3", 3), ("1x6x5x3", 1)):
        assert sim.main([*words, "--shape", shape]) == 0
        assert f"{count} inferences: random" in capsys.readouterr().out
    refused(["sim", *words, "--shape", "2x6x5x3"], "only its batch may become 1")


def test_open_shape_everywhere(tmp_path: Path, refused: Refused) -> None:
    """SHAPE fixes an open shape in predictions and streams as well."""
    onnx = pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
    m = onnx.load(ONNX)
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    path = tmp_path / "open.onnx"
    onnx.save(m, path)
    refused(["predict", "--model", str(path)], "--shape=1x1xNx8 fixes it")
    assert predict.main(["--model", str(path), "--shape", "1x1x8x8"]) == 0
    args = run_stream.parse_stream(["--model", str(path), "--shape", "1x1x8x8", "--images", "2"])
    assert run_stream.stream_work(args).images.shape[0] == 2
