# SPDX-License-Identifier: Apache-2.0
"""The numbers of a float file in its own opset and its own batch, as ONNX Runtime computes them:
the quantised model is near them, or the file is refused in one line (docs/compiler.md 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from openkpu import configs
from openkpu.compiler import data as numbers
from openkpu.compiler import run as execute
from openkpu.compiler import source
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.errors import CompileError
from openkpu.compiler.onnx import file

onnx = pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
SAMPLES = 16
Nodes = list[tuple[str, list[str], str, dict[str, Any]]]


def model(
    nodes: Nodes,
    constants: dict[str, npt.ArrayLike],
    shape: tuple[int, ...],
    opset: int = 17,
) -> bytes:
    """A 1x1 convolution of maps, or a product of vectors, to 'a'; these nodes behind it to 'y'."""
    rng, h = np.random.default_rng(3), onnx.helper
    maps = len(shape) == 4
    weights = rng.normal(0, 0.5, (4, shape[1], 1, 1) if maps else (shape[-1], 12))
    given = {"w": weights.astype(np.float32), **{n: np.asarray(v) for n, v in constants.items()}}
    every = [("Conv" if maps else "MatMul", ["x", "w"], "a", {}), *nodes]
    graph = h.make_graph(
        [h.make_node(kind, inputs, [y], f"n_{y}", **fields) for kind, inputs, y, fields in every],
        "net",
        [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [h.make_tensor_value_info("y", onnx.TensorProto.UNDEFINED, None)],
        [onnx.numpy_helper.from_array(v, n) for n, v in given.items()],
    )
    graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)])
    made.ir_version = 5
    return made.SerializeToString()


def noise(
    data: bytes, folder: Path, shape: tuple[int, ...], method: str = "minmax", width: float = 1.0
) -> float:
    """Signal to noise in dB of the compiled model against the file in ONNX Runtime."""
    batch = shape[0]
    x = np.random.default_rng(5).normal(0, width, (SAMPLES, *shape[1:])).astype(np.float32)
    (folder / "net.onnx").write_bytes(data)
    np.save(folder / "x.npy", x)
    request = Request(str(folder / "x.npy"), method=method)
    where, config = folder / "net.onnx", configs.load_config("k210")
    program, _ = source.read_model_program(where, config, None, request)
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    groups = [x[i : i + batch] for i in range(0, SAMPLES, batch)]
    want = np.concatenate([session.run(None, {"x": group})[0] for group in groups])
    (output,) = program.outputs
    values = numbers.inferences(program, {"x": x}, "x")
    each = [numbers.result(output, execute.run_program(program, v)[output.name]) for v in values]
    error = np.concatenate(each) - want
    return float(10 * np.log10((want**2).sum() / max((error**2).sum(), 1e-30)))


RESIZES = {
    "upsample-7": (7, "Upsample"),
    "upsample-9": (9, "Upsample"),
    "resize-10": (10, "Resize"),
    "resize-13": (13, "Resize"),
}


FACTORS = [(2, 2), (2, 3), (1.5, 2.5), (0.4, 0.7), (1, 0.3)]


def resized(name: str, mode: str, factors: tuple[float, float]) -> bytes:
    opset, kind = RESIZES[name]
    scales = np.array([1, 1, *factors], np.float32)
    if opset == 7:
        fields: dict[str, Any] = {"scales": scales.tolist()}
        return model([(kind, ["a"], "y", {"mode": mode, **fields})], {}, (1, 4, 9, 11), opset)
    inputs = ["a", "s"] if opset < 11 else ["a", "", "s"]
    return model([(kind, inputs, "y", {"mode": mode})], {"s": scales}, (1, 4, 9, 11), opset)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("name", "factors"),  # Upsample makes no map smaller
    [(n, f) for n in RESIZES for f in FACTORS if min(f) >= 1 or not n.startswith("up")],
)
def test_places_of_pixels(
    name: str, mode: str, factors: tuple[float, float], tmp_path: Path
) -> None:
    """Until opset 10 a pixel lies at its number, from 11 on in its middle: 5 dB apart."""
    assert noise(resized(name, mode, factors), tmp_path, (1, 4, 9, 11)) > 25


def test_other_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rounding that no node of a later opset has; and what the conversion of opsets loses is seen
    in results on samples: the places of pixels, were they not written out."""
    with pytest.raises(CompileError, match=r"scales 1, 1, 0\.4, 1\.3, expected none below 1 besid"):
        noise(resized("resize-10", "nearest", (0.4, 1.3)), tmp_path, (1, 4, 9, 11))
    text = r"output 'y' would be another than in ONNX Runtime before .*: numbers differ by up to"
    monkeypatch.setattr(file, "RESIZES", ())
    with pytest.raises(CompileError, match=text):
        noise(resized("upsample-9", "linear", (2, 2)), tmp_path, (1, 4, 9, 11))


BATCHED: dict[str, tuple[Nodes, dict[str, npt.ArrayLike]]] = {
    "reshape": ([("Reshape", ["a", "s"], "y", {})], {"s": [4, -1]}),
    "reshape-open": ([("Reshape", ["a", "s"], "y", {})], {"s": [-1, 4 * 63]}),
    "expand": (
        [("Reshape", ["a", "s"], "b", {}), ("Expand", ["b", "t"], "y", {})],
        {"s": [4, 4, 9, 7], "t": [4, 4, 9, 7]},
    ),
    "flatten": ([("Flatten", ["a"], "y", {"axis": 1})], {}),
    "softmax": ([("Softmax", ["a"], "y", {"axis": 1})], {}),
}
MIXED: dict[str, tuple[Nodes, dict[str, npt.ArrayLike]]] = {
    "mean": ([("ReduceMean", ["a"], "y", {"axes": [0]})], {}),
    "softmax": ([("Softmax", ["a"], "y", {"axis": 0})], {}),
    "turned": ([("Transpose", ["a"], "y", {"perm": [1, 0, 2, 3]})], {}),
    "constant": (
        [("Add", ["a", "k"], "y", {})],
        {"k": np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1)},
    ),
    "concat": ([("Concat", ["a", "a"], "y", {"axis": 0})], {}),
    "reshape": ([("Reshape", ["a", "s"], "y", {})], {"s": [1, -1]}),
    "halves": ([("Reshape", ["a", "s"], "y", {})], {"s": [2, -1]}),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batch_of_four(name: str, tmp_path: Path) -> None:
    """A fixed batch becomes single inferences, with shapes that have it in front."""
    nodes, constants = BATCHED[name]
    assert noise(model(nodes, constants, (4, 3, 9, 7)), tmp_path, (4, 3, 9, 7)) > 25


@pytest.mark.parametrize("name", MIXED)
def test_mixed_batch_is_refused(name: str, tmp_path: Path) -> None:
    """Results of one inference that depend on the others, or lie along another axis."""
    nodes, constants = MIXED[name]
    with pytest.raises(CompileError, match=r"mixes the 4 inferences of a batch \(output 'y': "):
        noise(model(nodes, constants, (4, 3, 9, 7)), tmp_path, (4, 3, 9, 7))


HOSTED: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "softmax": ("Softmax", ["a"], {"axis": -1}),
    "logsoftmax": ("LogSoftmax", ["a"], {"axis": -1}),
    "layernorm": ("LayerNormalization", ["a", "g"], {"axis": -1}),
    "length": ("LpNormalization", ["a"], {"axis": -1, "p": 2}),
}
FUNCTIONS: dict[str, list[tuple[str, list[str]]]] = {
    "mul": [("Mul", ["k"])],
    "add": [("Add", ["k"])],
    "neg": [("Neg", [])],
    "exp": [("Exp", [])],
    "abs": [("Abs", [])],
    "clip": [("Clip", ["low", "high"])],
    "mul-relu": [("Mul", ["k"]), ("Add", ["low"]), ("Relu", [])],
}


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("name", "function"),  # that of a logarithm of shares is 0 behind a Relu
    [(n, f) for n in HOSTED for f in FUNCTIONS if (n, f) != ("logsoftmax", "mul-relu")],
)
def test_functions_of_what_the_host_computes(
    name: str, function: str, behind: bool, tmp_path: Path
) -> None:
    """A function of a softmax or a normalisation, in the middle and at the end."""
    kind, inputs, fields = HOSTED[name]
    chain, nodes = FUNCTIONS[function], [(kind, inputs, "b0", fields)]
    for i, (other, more) in enumerate(chain, 1):
        y = "y" if i == len(chain) and not behind else f"b{i}"
        nodes.append((other, [f"b{i - 1}", *more], y, {}))
    if behind:
        nodes.append(("MatMul", [f"b{len(chain)}", "v"], "y", {}))
    single = {n: np.array(v, np.float32) for n, v in {"k": 8, "low": -1.5, "high": 0.6}.items()}
    matrix = np.random.default_rng(4).normal(0, 0.5, (12, 12)).astype(np.float32)
    constants = {"g": np.ones(12, np.float32), "v": matrix, **single}
    used = {word for _, words, _, _ in nodes for word in words}
    data = model(nodes, {n: v for n, v in constants.items() if n in used}, (1, 4, 12))
    assert noise(data, tmp_path, (1, 4, 12)) > 20


def test_logarithm_of_a_softmax(tmp_path: Path) -> None:
    """Its bytes would lose small shares, and the logarithm of 0 is none."""
    nodes: Nodes = [("Softmax", ["a"], "b", {"axis": -1}), ("Log", ["b"], "y", {})]
    assert noise(model(nodes, {}, (1, 4, 12)), tmp_path, (1, 4, 12)) > 35


def test_masked_logarithms(tmp_path: Path) -> None:
    """Scores of choices that are not allowed lie far below the others, which keep their bytes."""
    mask = np.triu(np.full((4, 12), -1e9, np.float32), 6)
    nodes: Nodes = [("Add", ["a", "m"], "b", {}), ("LogSoftmax", ["b"], "y", {"axis": -1})]
    data = model(nodes, {"m": mask}, (1, 4, 12))
    x = np.random.default_rng(5).normal(0, 1, (SAMPLES, 4, 12)).astype(np.float32)
    (tmp_path / "net.onnx").write_bytes(data)
    np.save(tmp_path / "x.npy", x)
    request, config = Request(str(tmp_path / "x.npy")), configs.load_config("k210")
    program, _ = source.read_model_program(tmp_path / "net.onnx", config, None, request)
    (output,) = program.outputs
    (values,) = numbers.inferences(program, {"x": x[:1]}, "x")
    found = numbers.result(output, execute.run_program(program, values)[output.name])
    (want,) = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x[:1]})
    kept = np.broadcast_to(mask == 0, want.shape)
    assert np.abs(found - want)[kept].max() < 0.1 and found[~kept].max() < found[kept].min() - 5


def test_ranges_of_least_lost_information(tmp_path: Path) -> None:
    """One number far from all others: entropy cuts it off, minimum and maximum do not."""
    data = model([("Relu", ["a"], "y", {})], {}, (1, 4, 9, 11))
    x = np.random.default_rng(5).normal(0, 1, (SAMPLES, 4, 9, 11)).astype(np.float32)
    x[3, 2, 4, 5] = 400
    (tmp_path / "net.onnx").write_bytes(data)
    np.save(tmp_path / "x.npy", x)
    steps = {}
    for method in ("minmax", "entropy"):
        request = Request(str(tmp_path / "x.npy"), method=method)
        config = configs.load_config("k210")
        program, _ = source.read_model_program(tmp_path / "net.onnx", config, None, request)
        every = program.graph.tensors.values()
        steps[method] = max(t.scale for t in every if t.scale is not None and t.data is None)
    assert steps["entropy"] < steps["minmax"] / 4
