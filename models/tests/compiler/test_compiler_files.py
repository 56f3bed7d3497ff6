# SPDX-License-Identifier: Apache-2.0
"""Program files, and what goes in and comes out of a compiled network."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, compiled, equal
from openkpu import configs, digits
from openkpu.compiler import data, okpu, run, source
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Conv
from openkpu.compiler.form.rarer import Product
from openkpu.compiler.program import Program

FOLDER = Path(digits.__file__).parent
MODELS = ("residual_int8.tflite", "separable_qdq.onnx", "separable_uint8.tflite")


def program_of(name: str) -> Program:
    return source.read_program(FOLDER / name, configs.load_config("small"))


@pytest.fixture(scope="module", params=MODELS)
def program(request: pytest.FixtureRequest) -> Program:
    return program_of(request.param)


def test_file_holds_the_program(program: Program, tmp_path: Path) -> None:
    """What is read gives the same results, and the same file again."""
    path = tmp_path / "net.okpu"
    path.write_bytes(okpu.dumps(program))
    again = okpu.load_okpu(path)
    assert okpu.dumps(again) == path.read_bytes()
    assert okpu.is_program(path.read_bytes()) and source.is_ours(path)
    assert [r.name for r in again.rows] == [r.name for r in program.rows]
    given = data.random_inputs(program, np.random.default_rng(1), 2)
    for one in given:
        for tensor in program.outputs:
            want, found = (run.run_program(p, one)[tensor.name] for p in (program, again))
            assert np.array_equal(want, found)
    by_name = source.read_program(path, configs.load_config("k210"))
    assert by_name.layers == program.layers


def changed(program: Program, **fields: object) -> bytes:
    """The file with other fields."""
    with zipfile.ZipFile(BytesIO(okpu.dumps(program))) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(entries[okpu.NAME])
    entries[okpu.NAME] = json.dumps(content | fields).encode()
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, entry in entries.items():
            archive.writestr(name, entry)
    return stream.getvalue()


def refusal(content: bytes) -> str:
    with pytest.raises(CompileError) as error:
        okpu.loads_okpu(content, "net.okpu")
    text = str(error.value)
    assert text.startswith("net.okpu") and "\n" not in text
    return text


def test_versions() -> None:
    program = program_of(MODELS[0])
    assert "version 2, expected 1" in refusal(changed(program, version=2))
    assert "version 1" in refusal(changed(program, format="other"))


def test_damage() -> None:
    """Cut short, a byte changed, fields missing or of another kind: one line, never a traceback."""
    program = program_of(MODELS[0])
    good = okpu.dumps(program)
    for size in range(0, len(good), len(good) // 40):
        refusal(good[:size])
    rng, noticed = np.random.default_rng(3), 0
    for _ in range(60):
        bad = bytearray(good)
        bad[int(rng.integers(len(bad)))] ^= int(rng.integers(1, 256))
        try:
            okpu.loads_okpu(bytes(bad), "net.okpu")
        except CompileError:
            noticed += 1
    assert noticed > 50  # some bytes of a zip archive nobody reads
    parts = json.loads(zipfile.ZipFile(BytesIO(good)).read(okpu.NAME))["parts"]
    for fields in (
        *({"tensors": []}, {"parts": [{"list": 9}]}, {"inputs": ["nobody"]}, {"rows": [1]}),
        *({"parts": 7}, {"outputs": None}, {"parts": [parts[0] | {"inputs": []}]}),
    ):
        refusal(changed(program, **fields))


# ------------------------------------------------------------------------------ data
def test_inputs_by_type_and_shape() -> None:
    """Integers as they are, floats by the model's own scale, NHWC, one or several."""
    program = program_of("residual_int8.tflite")
    (tensor,) = program.inputs
    shape = data.model_shape(tensor)
    assert shape == (1, *shape[1:3], 1) and tensor.shape[1] == 1
    rng = np.random.default_rng(2)
    whole = rng.integers(-128, 128, (3, *shape[1:])).astype(np.int8)
    found = data.inferences(program, {tensor.name: whole}, "x.npy")
    assert len(found) == 3 and found[1][tensor.name].shape == tensor.shape
    assert np.array_equal(found[1][tensor.name][0, 0], whole[1, :, :, 0])
    assert tensor.scale is not None
    real = ((whole - float(tensor.zero)) * tensor.scale).astype(np.float32)
    again = data.inferences(program, {tensor.name: real}, "x.npy")
    assert all(
        np.array_equal(a[tensor.name], b[tensor.name]) for a, b in zip(found, again, strict=True)
    )
    assert len(data.inferences(program, {tensor.name: whole[0]}, "x.npy")) == 1
    for wrong, text in (
        (whole.astype(np.int16), "int16"),
        (whole.astype(np.uint8), "expected int8 or float32"),
        (whole[:, 1:], "expected (1, "),
        (whole[:0], "expected (1, "),
        (np.full(shape, np.nan, np.float32), "NaN"),
    ):
        with pytest.raises(CompileError, match=r"x\.npy: ") as error:
            data.inferences(program, {tensor.name: wrong}, "x.npy")
        assert text in str(error.value) and "\n" not in str(error.value)


def test_several_inputs(tmp_path: Path) -> None:
    m = Maker(2)
    a, b = m.input(1, 4, 6, 6), m.input(1, 4, 6, 6)
    y, z = m.both("add", a, b), m.conv(a, 4, (3, 3))
    program = compiled(m.done(y, z))
    arrays: dict[str, Any] = {t.name: m.bytes(2, 4, 6, 6).astype(np.int8) for t in (a, b)}
    np.savez(tmp_path / "x.npz", **arrays)
    found = data.read_inputs(program, tmp_path / "x.npz")
    assert len(found) == 2 and np.array_equal(found[1][b.name][0], arrays[b.name][1])
    np.save(tmp_path / "x.npy", arrays[a.name])
    with pytest.raises(CompileError, match=r"expected a \.npz"):
        data.read_inputs(program, tmp_path / "x.npy")
    np.savez(tmp_path / "y.npz", **{a.name: arrays[a.name]})
    with pytest.raises(CompileError, match="no array for the input"):
        data.read_inputs(program, tmp_path / "y.npz")
    (tmp_path / "z.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:200])
    with pytest.raises(CompileError, match="not a complete"):
        data.read_inputs(program, tmp_path / "z.npz")


def test_results_in_the_models_order() -> None:
    m = Maker(3)
    y = m.conv(m.input(1, 4, 6, 5), 3, (3, 3))
    y.layout = "NHWC"
    program = compiled(m.done(y))
    (one,) = data.random_inputs(program, np.random.default_rng(1), 1)
    value = run.run_program(program, one)[y.name]
    found = data.result(y, value)
    assert found.shape == (1, 6, 5, 3) and found.dtype == np.int8
    assert found[0, 2, 1, 0] == value[0, 0, 2, 1]


@pytest.mark.parametrize("alike", [True, False])
def test_equal_weights_lie_in_storage_once(alike: bool) -> None:
    """Steps of a loop have the weights of the first one, though each has scales of its own."""
    m = Maker(4)
    x = m.input(1, 24, 1, 1)
    for _ in range(6):
        x = m.conv(x, 24, (1, 1))
    graph = m.done(x)
    first, *others = graph.nodes
    for node in others if alike else []:
        assert isinstance(node, Conv) and isinstance(first, Conv)
        node.weights = first.weights.copy()
    program = compiled(graph)
    (part,) = program.device_parts
    assert part.network.weights.size == 24 * 24 * (1 if alike else 6)
    equal(graph, program)


def test_weights_that_the_host_writes_are_of_one_layer() -> None:
    """Two products of computed matrices of one size: each has its own place for one of them."""
    m = Maker(8)
    ys = []
    for _ in range(2):
        x, w = m.input(6, 16), m.input(16, 24, zero=5)
        y = m.tensor(6, 24, scale=float(np.float32(x.step * w.step * 74 * 74 * 4 / 60)))
        ys.append(m.node(Product, [x, w], y, clamp=y.limits, turned=False))
    graph = m.done(*ys)
    equal(graph, compiled(graph))
