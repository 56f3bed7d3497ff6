# SPDX-License-Identifier: Apache-2.0
"""ONNX models that cannot be read: one line that names the thing and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from models.tests.readers.single_operators import build
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Conv
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.onnx.file import is_onnx

Change = Callable[[onnx.ModelProto], None]


def model(case: str = "conv3x3", form: str = "qdq", **options: Any) -> onnx.ModelProto:
    """A good model, to be spoiled."""
    return onnx.load_model_from_string(build(case, form, **options))


def refusal(data: bytes | onnx.ModelProto, **how: Any) -> str:
    """The one line of the error."""
    data = data if isinstance(data, bytes) else data.SerializeToString()
    with pytest.raises(CompileError) as error:
        onnx_reader.read_onnx(data, "net.onnx", **how)
    text = str(error.value)
    print(text)
    assert text.startswith("net.onnx: ") and "\n" not in text and len(text) < 300
    return text


def initializer(m: onnx.ModelProto, start: str) -> onnx.TensorProto:
    """The first constant whose name begins so."""
    return next(t for t in m.graph.initializer if t.name.startswith(start))


def replace(m: onnx.ModelProto, start: str, data: np.ndarray, kind: int | None = None) -> None:
    """Other values of a constant, perhaps of a type that numpy lacks."""
    tensor = initializer(m, start)
    made = numpy_helper.from_array(data, tensor.name)
    if kind is not None:
        made = helper.make_tensor(tensor.name, kind, data.shape, data.reshape(-1).tolist())
    tensor.CopyFrom(made)


def test_good_ones_are_read() -> None:
    """What the tests spoil is good before."""
    for form in ("qdq", "qoperator"):
        assert onnx_reader.read_onnx(model(form=form).SerializeToString(), "net.onnx").nodes
    assert is_onnx(build("add", "qdq")) and not is_onnx(build("add", "tflite"))
    assert not is_onnx(b"") and not is_onnx(b"not a model at all")


@pytest.mark.parametrize("data", [b"", b"not a model", bytes(range(256)) * 20, b"\x00" * 100])
def test_not_a_model(data: bytes) -> None:
    assert "no ONNX model, or not all of it" in refusal(data)


def test_truncated_anywhere() -> None:
    data = build("conv3x3", "qdq")
    for end in range(0, len(data), 13):
        assert "not all of it" in refusal(data[:end]) or "not all there" in refusal(data[:end])


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_damaged_is_refused_or_read(form: str) -> None:
    """Any byte changed: never another error, and nothing that runs away."""
    data, rng, refused = build("conv3x3", form), np.random.default_rng(8), 0
    for _ in range(400):
        bad = bytearray(data)
        for place in rng.integers(0, len(bad), rng.integers(1, 4)):
            bad[place] = rng.integers(0, 256)
        try:
            onnx_reader.read_onnx(bytes(bad), "net.onnx")
        except CompileError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50


@pytest.mark.parametrize("version", [1, 6, 99])
def test_opset(version: int) -> None:
    m = model()
    m.opset_import[0].version = version
    assert f"opset {version}, expected 7 to" in refusal(m)


def test_external_data(tmp_path: Path) -> None:
    m = model()
    external_data_helper.convert_model_to_external_data(
        m, location="net.bin", size_threshold=0, convert_attribute=False
    )
    path = tmp_path / "net.onnx"
    onnx.save_model(m, str(path))
    good = onnx_reader.read_onnx(path.read_bytes(), "net.onnx", folder=tmp_path)
    assert len(good.nodes) == 1
    assert "external data 'net.bin'" in refusal(path.read_bytes())
    (tmp_path / "net.bin").write_bytes(b"short")
    refusal(path.read_bytes(), folder=tmp_path)
    (tmp_path / "net.bin").unlink()
    text = refusal(path.read_bytes(), folder=tmp_path)
    assert "external data 'net.bin' of" in text and "expected beside the model" in text


@pytest.mark.parametrize("elsewhere", [False, True])
def test_external_data_of_a_node(
    elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Constant, from the model's folder, whatever lies in that where the program runs."""
    m = model()
    for tensor in list(m.graph.initializer):
        if tensor.name.startswith("w"):
            node = m.graph.node.add()
            node.CopyFrom(helper.make_node("Constant", [], [tensor.name], value=tensor))
            m.graph.initializer.remove(tensor)
            m.graph.node.insert(0, m.graph.node.pop())
    want = onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")
    (tmp_path / "inside").mkdir()
    external_data_helper.convert_model_to_external_data(
        m, location="net.bin", size_threshold=0, convert_attribute=True
    )
    path = tmp_path / "inside" / "net.onnx"
    onnx.save_model(m, str(path))
    monkeypatch.chdir(tmp_path)
    if elsewhere:
        (tmp_path / "net.bin").write_bytes(bytes((tmp_path / "inside" / "net.bin").stat().st_size))
    good = onnx_reader.read_onnx(path.read_bytes(), "net.onnx", folder=path.parent)
    conv, wanted = (next(n for n in g.nodes if isinstance(n, Conv)) for g in (good, want))
    assert wanted.weights.any() and np.array_equal(conv.weights, wanted.weights)
    (path.parent / "net.bin").unlink()
    text = refusal(path.read_bytes(), folder=path.parent)
    assert "external data 'net.bin' of" in text and "expected beside the model" in text


def test_external_data_stays_in_its_folder(tmp_path: Path) -> None:
    m = model()
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_bytes(bytes(4))
    tensor = initializer(m, "scale")
    where = {"location": "../secret", "offset": 0, "length": 4}
    external_data_helper.set_external_data(tensor, **where)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    assert "external data '../secret'" in refusal(m, folder=tmp_path / "inside")


def test_an_input_that_is_too_large() -> None:
    """It is not open: no SHAPE would help."""
    m = model()
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 1 << 40
    said = refusal(m)
    assert "is 1x8x1099511627776x7, expected at most 8 sizes, and 2147483648 of" in said
    assert "SHAPE" not in said and "dynamic" not in said


def test_a_tensor_that_nothing_makes() -> None:
    """The checker's text has several lines, which belong together."""
    m = model()
    m.graph.node[0].input[0] = "nowhere"
    said = refusal(m)
    assert "input 'nowhere' of node" in said and said.endswith(
        "is not output of any previous nodes."
    )


def test_constants_of_float16() -> None:
    m = model()
    replace(m, "w", np.zeros((8, 8, 3, 3), np.float16))
    assert "'w2' is float32, expected int8, uint8, int16 or uint16" in refusal(m)  # it is widened


def test_dynamic_shape() -> None:
    m = model()
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    assert "is 1x8xheightx7, a dynamic shape; --shape=1x8xNx7 fixes it" in refusal(m)
    assert "does not fit input" in refusal(m, shape=(1, 8, 10))
    onnx_reader.read_onnx(m.SerializeToString(), "net.onnx", shape=(1, 8, 10, 7))


def test_sizes_of_0() -> None:
    """Some exporters write an open size so; it may as well be meant."""
    m = model()
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 0
    said = refusal(m)
    assert (
        "is 1x8x0x7, with a size of 0, expected sizes of 1 or more; --shape=1x8xNx7 fixes" in said
    )
    assert "dynamic" not in said
    onnx_reader.read_onnx(m.SerializeToString(), "net.onnx", shape=(1, 8, 10, 7))
    m = model()
    replace(m, "w", np.zeros((0, 8, 3, 3), np.int8))
    assert "5 scales along axis 0 of (0, 8, 3, 3)" in refusal(m)


def test_no_output() -> None:
    m = model()
    del m.graph.output[:]
    assert "the model has no output, expected one or more" in refusal(m)


def test_batch_of_signals() -> None:
    """A batch in the middle, made by a Reshape."""
    m = model("max-2x2")
    node = next(n for n in m.graph.node if n.op_type == "MaxPool")
    shape = numpy_helper.from_array(np.array([2, 4, 10, 7], np.int64), "two")
    m.graph.initializer.append(shape)
    made = helper.make_node("Reshape", [node.input[0], "two"], ["pairs"])
    node.input[0] = "pairs"
    m.graph.node.insert(list(m.graph.node).index(node), made)
    m.graph.output[0].type.tensor_type.ClearField("shape")
    assert "(MaxPool): a batch of 2, expected 1" in refusal(m)


def test_control_flow() -> None:
    m = model()
    branch = helper.make_graph([], "b", [], [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    m.graph.node.insert(0, node)
    assert "node 'y' (If): control flow, expected a graph without it" in refusal(m)


def test_custom_operator() -> None:
    m = model()
    m.graph.node.append(helper.make_node("Magic", ["x1"], ["z"], domain="org.example"))
    m.opset_import.append(helper.make_opsetid("org.example", 1))
    text = refusal(m)
    assert "node 'z' (Magic): a custom operator of the domain 'org.example'" in text


def test_operator_that_is_not_there() -> None:
    m = model("tanh")
    next(n for n in m.graph.node if n.op_type == "Tanh").op_type = "Hardmax"
    text = refusal(m)
    assert "(Hardmax): no such operator here; docs/compiler.md has the table" in text


@pytest.mark.parametrize("value", [0.0, -0.5, np.nan, np.inf])
@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_scales(form: str, value: float) -> None:
    m = model(form=form)
    replace(m, "scale", np.array(value, np.float32))
    text = refusal(m)
    assert "scale" in text and "expected finite numbers" in text


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(value: float) -> None:
    """Weights and biases of float."""
    for start in ("w", "b"):
        m = model()
        tensor = initializer(m, start)
        behind = next(n for n in m.graph.node if tensor.name in n.input)
        data = np.zeros(tuple(tensor.dims), np.float32)
        data.reshape(-1)[1] = value
        if start == "w":
            name = "floats"
            m.graph.initializer.append(numpy_helper.from_array(data, name))
            words = [name, *behind.input[1:]]
            m.graph.node.insert(0, helper.make_node("QuantizeLinear", words, ["q"], axis=0))
            behind.input[0] = "q"
        else:
            name = behind.output[0]
            m.graph.node.remove(behind)
            m.graph.initializer.append(numpy_helper.from_array(data, name))
        assert f"{name!r}: it has a NaN or an infinity, expected finite numbers" in refusal(m)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (TensorProto.INT4, "int4"),
        (TensorProto.UINT4, "uint4"),
        (TensorProto.INT32, "int32"),
        (TensorProto.FLOAT8E4M3FN, "float8e4m3fn"),
    ],
)
def test_types_of_weights(kind: int, word: str) -> None:
    """Also of zero points: that is where activations have their type."""
    m = model(opset=21)
    m.ir_version = 10
    for start in ("w", "zero"):
        tensor = initializer(m, start)
        data = np.zeros(tuple(tensor.dims))
        replace(m, start, data, kind)
    text = refusal(m)
    assert word in text and "expected" in text


def test_types_of_activations() -> None:
    for kind, word in ((TensorProto.INT16, "int16"), (TensorProto.BFLOAT16, "bfloat16")):
        m = model()
        m.graph.input[0].type.tensor_type.elem_type = kind
        text = refusal(m)
        assert f"is {word}, expected float32, int8 or uint8" in text or "not a valid" in text


def test_float_model() -> None:
    weights = numpy_helper.from_array(np.zeros((4, 3, 3, 3), np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weights])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    text = refusal(m)
    assert "a float model, expected one that is quantised" in text
    assert "openkpu quantise" in text


def test_partly_float_model() -> None:
    """A float operator between quantised ones is not computed as something else."""
    m = model("add-relu")
    index, quantise = next(
        (i, n) for i, n in enumerate(m.graph.node) if n.op_type == "QuantizeLinear"
    )
    softmax = helper.make_node("Softmax", [quantise.input[0]], ["soft"], name="soft")
    product = helper.make_node("Mul", ["soft", quantise.input[0]], ["prod"], name="prod")
    quantise.input[0] = "prod"
    m.graph.node.insert(index, product)
    m.graph.node.insert(index, softmax)
    assert "node 'soft' (Softmax): its input" in refusal(m)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_weight_that_is_an_input(form: str) -> None:
    m = model(form=form)
    tensor = initializer(m, "w")
    value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
    m.graph.initializer.remove(tensor)
    m.graph.input.append(value)
    text = refusal(m)
    operator = "Conv" if form == "qdq" else "QLinearConv"
    assert f"({operator}): weights {tensor.name!r} are an input of the model, expected a" in text


def test_weight_that_is_an_old_input() -> None:
    """Before IR version 4 initializers are listed as inputs; they are constants all the same."""
    m = model()
    for tensor in m.graph.initializer:
        value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        m.graph.input.append(value)
    graph = onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")
    assert len(graph.inputs) == 1


def test_numbers_of_constant_nodes() -> None:
    """Constants as nodes, as PyTorch writes them, are looked at as well."""
    m = model(opset=17)
    behind = next(n for n in m.graph.node if initializer(m, "b").name in n.input)
    data = np.zeros(5, np.float32)
    data[2] = np.nan
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(data))
    m.graph.node.insert(0, constant)
    conv = next(n for n in m.graph.node if n.op_type == "Conv")
    conv.input[2] = "k"
    m.graph.node.remove(behind)
    assert "'k': it has a NaN" in refusal(m)


def test_constant_that_is_too_large() -> None:
    """A hundred bytes that ask for a terabyte."""
    m = model(opset=17)
    size = numpy_helper.from_array(np.array([1 << 20, 1 << 20], np.int64), "size")
    m.graph.initializer.append(size)
    m.graph.node.insert(0, helper.make_node("ConstantOfShape", ["size"], ["huge"], name="huge"))
    m.graph.output.append(helper.make_tensor_value_info("huge", TensorProto.FLOAT, None))
    assert "node 'huge' (ConstantOfShape): a constant of shape [1048576, 1048576]" in refusal(m)


def test_dynamic_quantisation() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 8])
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"], name="d")
    m = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)]
    )
    assert "node 'd' (DynamicQuantizeLinear): scales that are computed while" in refusal(m)


@pytest.mark.parametrize(
    ("case", "operator", "name", "value"),
    [
        ("conv3x3", "Conv", "auto_pad", "SOMEHOW"),
        ("conv3x3", "Conv", "pads", [-1, 0, 0, 0]),
        ("conv3x3", "Conv", "group", 3),
        ("conv3x3", "Conv", "strides", [0, 1]),
        ("max-2x2", "MaxPool", "dilations", [2, 2]),
        ("fully", "Gemm", "alpha", float("nan")),
        ("concat", "Concat", "axis", 7),
        ("argmax", "ArgMax", "axis", 9),
    ],
)
def test_attributes(case: str, operator: str, name: str, value: Any) -> None:
    """An attribute out of range, or one that is not implemented."""
    m = model(case)
    node = next(n for n in m.graph.node if n.op_type == operator)
    for old in [a for a in node.attribute if a.name == name]:
        node.attribute.remove(old)
    node.attribute.append(helper.make_attribute(name, value))
    assert f"({operator})" in refusal(m) or "not a valid" in refusal(m)


def test_output_that_is_float() -> None:
    """The last operator without QuantizeLinear."""
    m = model("add", float_io=True)
    node = next(n for n in m.graph.node if n.op_type == "Add")
    m.graph.output[0].name = node.output[0]
    assert "is float, expected QuantizeLinear behind it" in refusal(m)


def test_names_are_one_line() -> None:
    m = model("tanh")
    node = next(n for n in m.graph.node if n.op_type == "Tanh")
    node.op_type = "Hardmax"
    node.name = "a\nb\x1b[31m"
    assert "'a\\\\nb\\\\x1b[31m'" in refusal(m)
    m = model()
    m.graph.input[0].name = m.graph.node[0].input[0] = "x\x1b]0;title\x07"
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "\x1b[2J"
    assert "\x1b" not in refusal(m)


@pytest.mark.parametrize("change", [(-1, 0), (0, 1), (-1, -1)])
def test_parts_of_a_split(change: tuple[int, int]) -> None:
    """Parts that leave elements over, or have more than there are, are no split (ONNX, Split)."""
    m = model("split", opset=17)
    node = next(n for n in m.graph.node if n.op_type == "Split")
    sizes = numpy_helper.to_array(initializer(m, node.input[1]))
    assert onnx_reader.read_onnx(m.SerializeToString(), "net.onnx").nodes
    replace(m, node.input[1], sizes + np.array(change))
    parts = (sizes + np.array(change)).tolist()
    assert f"(Split): parts {parts} of {sizes.sum()} along axis 1" in refusal(m)
