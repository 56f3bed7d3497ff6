# SPDX-License-Identifier: Apache-2.0
"""Files for any batch, as Keras exports them: what they compute from sizes is LiteRT's number, and
their networks are LiteRT's with a batch of 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.readers.single_operators import weights
from models.tests.tflite.test_tflite_rarer import Q, runtime, theirs, transposed
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.file import parse_tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.judges import Judgement
from openkpu.writers import Quant, Value
from openkpu.writers.flat import FlatTensor
from openkpu.writers.tflite_model import TfliteModel

SHAPE = (1, 8, 6, 4)  # of the input; the file has 6 lines of 4 pixels with 8 channels
Number = Callable[[TfliteModel, Value], Value]


def opened(m: TfliteModel, value: Value, *at: int) -> Value:
    """The same tensor; the file leaves its sizes ``at`` open, the batch where none are named."""
    tensor = m.tensors[m._index[value.name]]
    tensor.open = tuple(-1 if i in (at or (0,)) else n for i, n in enumerate(tensor.shape))
    return value


def started() -> tuple[TfliteModel, Value]:
    m = TfliteModel(np.int8)
    return m, opened(m, m.input(SHAPE, Q))


def whole(m: TfliteModel, shape: Sequence[int], dtype: type = np.int32) -> Value:
    """A tensor of integers that is computed."""
    made = m.add_tensor(FlatTensor(f"i{len(m.tensors)}", tuple(shape), np.dtype(dtype)))
    return Value(m.tensors[made].name, tuple(shape), Quant(1.0))


def size_of(m: TfliteModel, x: Value) -> Value:
    y = whole(m, (len(x.shape),))
    m.op("SHAPE", [x], [y], "ShapeOptions", outType=2)  # int32
    return y


def batch_of(m: TfliteModel, x: Value) -> Value:
    y = whole(m, ())
    ends = [m.integers([n]) for n in (0, 1, 1)]
    m.op("STRIDED_SLICE", [size_of(m, x), *ends], [y], "StridedSliceOptions", shrinkAxisMask=1)
    return y


def packed(m: TfliteModel, x: Value, *sizes: int) -> Value:
    """(batch, sizes), as Keras computes a shape."""
    y = whole(m, (1 + len(sizes),))
    parts = [batch_of(m, x), *(m.integers(n) for n in sizes)]
    m.op("PACK", parts, [y], "PackOptions", valuesCount=len(parts), axis=0)
    return y


# --------------------------------------------------------------------- what sizes become
def of_size(
    kind: str, more: list[Any], shape: Sequence[int], options: str, **fields: int
) -> Number:
    """An operator of the input's sizes, 1, 6, 4, 8, and of constants."""

    def make(m: TfliteModel, x: Value) -> Value:
        y = whole(m, shape)
        m.op(kind, [size_of(m, x), *(m.integers(v) for v in more)], [y], options, "", **fields)
        return y

    return make


def of_constants(
    kind: str, inputs: list[Any], shape: Sequence[int], options: str, **fields: int
) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        y = whole(m, shape)
        m.op(kind, [m.integers(v) for v in inputs], [y], options, "", **fields)
        return y

    return make


def two(kind: str) -> Number:
    """Of numbers of both signs."""
    inputs = [[7, -7, 7, -7, 0], [2, 2, -2, -2, 5]]
    options = {"MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions"}
    name = "".join(word.capitalize() for word in kind.split("_")) + "Options"
    return of_constants(kind, inputs, (5,), options.get(kind, name))


def sliced(begin: list[int], end: list[int], steps: list[int], shape: Sequence[int], **masks: int):
    data = np.arange(24).reshape(4, 6)
    return of_constants(
        "STRIDED_SLICE", [data, begin, end, steps], shape, "StridedSliceOptions", **masks
    )


def unpacked(at: int) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        parts = [whole(m, (2,)) for _ in range(3)]
        data = m.integers([[1, 2, 3], [4, 5, 6]])
        m.op("UNPACK", [data], parts, "UnpackOptions", num=3, axis=1)
        return parts[at]

    return make


def cast(dtype: type, kind: int) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        y = whole(m, (3,), dtype)
        given = m.integers([3, 0, -5])
        m.op("CAST", [given], [y], "CastOptions", inDataType=2, outDataType=kind)
        return y

    return make


R = "ReducerOptions"
TABLE = [[3, -1, 4], [1, 5, 9]]
NUMBERS: dict[str, Number] = {
    "shape": size_of,
    "batch": batch_of,
    "packed": lambda m, x: packed(m, x, 4, 16, 8),
    "unpacked": unpacked(2),
    "part of it": of_size("SLICE", [[1], [2]], (2,), "SliceOptions"),
    "the rest of it": of_size("SLICE", [[1], [-1]], (3,), "SliceOptions"),
    "gathered": of_size("GATHER", [[3, 1]], (2,), "GatherOptions", axis=0),
    "gathered columns": of_constants(
        "GATHER", [TABLE, [2, 0]], (2, 2), "GatherOptions", axis=1
    ),
    "joined": of_size("CONCATENATION", [[9]], (5,), "ConcatenationOptions", axis=0),
    "joined columns": of_constants(
        "CONCATENATION", [TABLE, TABLE], (2, 6), "ConcatenationOptions", axis=-1
    ),
    "product": of_size("REDUCE_PROD", [[0]], (), R),
    "product, kept": of_size("REDUCE_PROD", [[0]], (1,), R, keepDims=1),
    "sum of columns": of_constants("SUM", [TABLE, [1]], (2,), R),
    "sum of all": of_constants("SUM", [TABLE, [0, -1]], (), R),
    "largest": of_constants("REDUCE_MAX", [TABLE, [0]], (3,), R),
    "least, kept": of_constants("REDUCE_MIN", [TABLE, [1]], (2, 1), R, keepDims=1),
    "as int64": cast(np.int64, 4),
    "as bool": cast(np.bool_, 6),
    "reshaped": of_constants("RESHAPE", [TABLE, [3, -1]], (3, 2), "ReshapeOptions"),
    "another axis": of_constants("EXPAND_DIMS", [TABLE, -1], (2, 3, 1), "ExpandDimsOptions"),
    "filled": of_constants("FILL", [[2, 3], 7], (2, 3), "FillOptions"),
    **{kind: two(kind) for kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")},
    **{kind: two(kind) for kind in ("FLOOR_DIV", "FLOOR_MOD")},
    "slice": sliced([1, 2], [3, 6], [1, 2], (2, 2)),
    "slice from behind": sliced([-1, -2], [0, -6], [-2, -1], (2, 4)),
    "slice without ends": sliced([1, 1], [2, 2], [1, 1], (2, 5), beginMask=1, endMask=2),
    "slice of a line": sliced([-2, 0], [9, 6], [1, 1], (6,), shrinkAxisMask=1),
    "slice of the last axis": sliced([0, 2], [0, 3], [1, 1], (4, 1), ellipsisMask=1),
    "slice with another axis": sliced([0, 1, 0], [0, 2, 6], [1] * 3, (1, 1, 6), newAxisMask=1),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_of_sizes(name: str) -> None:
    """The number in the operator's place is what LiteRT computes; no operator is left."""
    m, x = started()
    number = NUMBERS[name](m, x)
    at = m._index[number.name]
    interpreter = runtime(m.finish([number]))
    interpreter.set_tensor(
        interpreter.get_input_details()[0]["index"], np.zeros((1, 6, 4, 8), "i1")
    )
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    y = m.unary("relu", x, Q)
    model = parse_tflite(m.finish([y]), "net")
    assert [op.operator for op in model.operators] == ["RELU"]
    found = model.tensors[at].values
    assert found.shape == model.tensors[at].shape == want.shape == number.shape
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def activated(m: TfliteModel, x: Value) -> Value:
    return of_constants("ADD", [[-3], [1]], (1,), "AddOptions", fusedActivationFunction=1)(m, x)


def batched(m: TfliteModel, x: Value) -> Value:
    return of_constants(
        "GATHER", [TABLE, [[1], [0]]], (2, 1), "GatherOptions", axis=1, batchDims=1
    )(m, x)


@pytest.mark.parametrize("make", [activated, batched])
def test_options_of_more(make: Number) -> None:
    """What is not computed stays an operator, and is refused as one."""
    m, x = started()
    number = make(m, x)
    y = m.value(SHAPE, Q)
    m.op("RESHAPE", [x, number], [y], "ReshapeOptions")
    with pytest.raises(CompileError, match=r"^net: node 'i1' \((ADD|GATHER)\): "):
        tflite.read_tflite(m.finish([y]), "net")


# ------------------------------------------------------------------------------ networks
def reshaped(m: TfliteModel, x: Value) -> Value:
    y = opened(m, m.value((1, 16, 3, 4), Q))
    m.op("RESHAPE", [x, packed(m, x, 3, 4, 16)], [y], "ReshapeOptions")
    return m.conv(y, weights(np.random.default_rng(3), 0, 5, 16, 3, 3), Quant(0.06, -7))


def flattened(m: TfliteModel, x: Value) -> Value:
    """What is left of the sizes behind the batch, by a product."""
    rest, count = whole(m, (3,)), whole(m, (1,))
    ends = [m.integers([n]) for n in (1, 0, 1)]
    m.op("STRIDED_SLICE", [size_of(m, x), *ends], [rest], "StridedSliceOptions", endMask=1)
    m.op("REDUCE_PROD", [rest, m.integers([0])], [count], R, keepDims=True)
    size, batch = whole(m, (2,)), whole(m, (1,))
    m.op("RESHAPE", [batch_of(m, x), m.integers([1])], [batch], "ReshapeOptions")
    m.op("CONCATENATION", [batch, count], [size], "ConcatenationOptions", axis=0)
    flat = opened(m, m.value((1, 192), Q))
    m.op("RESHAPE", [x, size], [flat], "ReshapeOptions")
    made = m.fully(flat, weights(np.random.default_rng(3), 0, 10, 192), Quant(0.03, 4))
    return opened(m, made)


def dense_of_maps(m: TfliteModel, x: Value) -> Value:
    """Of rank 4: what the file says of the product's size holds for the batch alone."""
    flat = opened(m, m.value((1, 8), Q))
    m.op("RESHAPE", [x, m.integers([-1, 8])], [flat], "ReshapeOptions")
    y = opened(m, m.fully(flat, weights(np.random.default_rng(3), 0, 5, 8), Quant(0.03, 4)))
    wide = opened(m, m.value((1, 5, 6, 4), y.quant))
    m.op("RESHAPE", [y, packed(m, x, 6, 4, 5)], [wide], "ReshapeOptions")
    return wide


def dense_with_axes(m: TfliteModel, x: Value) -> Value:
    """The same with the axes of its input."""
    y = m.fully(x, weights(np.random.default_rng(3), 0, 5, 8), Quant(0.03, 4))
    m.operators[-1].fields["keepNumDims"] = True
    tensor = m.tensors[m._index[y.name]]
    tensor.shape = (1, 6, 4, 5)
    return opened(m, Value(y.name, (1, 5, 6, 4), y.quant))


def grown(m: TfliteModel, x: Value) -> Value:
    """A transposed convolution whose output's shape is computed."""
    shape, y = packed(m, x, 12, 8, 4), transposed(3, 2, True)(m, x)
    m.operators[-1].inputs[0] = m._index[shape.name]
    return opened(m, y)


def grown_open(m: TfliteModel, x: Value) -> Value:
    """The same where the file says nothing of the output's lines and columns."""
    y = grown(m, x)
    m.tensors[m._index[y.name]].shape = (1, 1, 1, 4)
    return opened(m, y, 0, 1, 2)


def spread(m: TfliteModel, x: Value) -> Value:
    """A sum with a number for each channel, shapes open through all of it."""
    pooled = opened(m, m.pool("max", x, (2, 2), (2, 2)))
    one = m.constant(np.arange(-4, 4).reshape(1, 8, 1, 1), Quant(0.1, 0))
    return opened(m, m.binary("add", pooled, one, Quant(0.07, 5)))


def unsaid(m: TfliteModel, y: Value) -> Value:
    """The same tensor; the file has 1 for its lines and columns, which it leaves open."""
    tensor = m.tensors[m._index[y.name]]
    tensor.shape = (1, 1, 1, tensor.shape[3])
    return opened(m, y, 0, 1, 2)


def behind(make: Callable[[TfliteModel, Value], Value]) -> Number:
    """An operator behind a map whose size follows from a computed shape alone."""

    def both(m: TfliteModel, x: Value) -> Value:
        y = unsaid(m, m.value((1, 16, 3, 4), Q))
        m.op("RESHAPE", [x, packed(m, x, 3, 4, 16)], [y], "ReshapeOptions")
        made = unsaid(m, make(m, y))
        rng = np.random.default_rng(3)
        return m.conv(made, weights(rng, 0, 5, made.shape[1], 1, 1), Quant(0.06, -7))

    return both


def window(pads: str, stride: int, groups: int = 1) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        own = weights(np.random.default_rng(4), 0, 16, 16 // groups, 3, 2)
        how: Any = {"stride": (stride, stride), "pads": pads, "groups": groups}
        return m.conv(x, own, Quant(0.05, 3), **how)

    return make


def reshaped_by(kind: str, options: str, *more: Any, shape: Sequence[int], **fields: int) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        y = m.value(shape, Q)
        m.op(kind, [x, *(m.integers(v) for v in more)], [y], options, "", **fields)
        return y

    return make


PADS = [[0, 0], [1, 0], [2, 1], [0, 0]]
OPERATORS: dict[str, Number] = {
    "convolution": window("same", 2),
    "convolution, valid": window("valid", 1),
    "depthwise": window("valid", 2, 16),
    "pool": lambda m, x: m.pool("max", x, (2, 3), (1, 2)),
    "pool, all of it": lambda m, x: m.pool("max", x, (3, 3), (2, 2), "same"),
    "pad": reshaped_by("PAD", "PadOptions", PADS, shape=(1, 16, 4, 7)),
    "nearest": reshaped_by(
        *("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"), [6, 8], shape=(1, 16, 6, 8)
    ),
    "deep": reshaped_by("DEPTH_TO_SPACE", "DepthToSpaceOptions", shape=(1, 4, 6, 8), blockSize=2),
    "tile": reshaped_by("TILE", "TileOptions", [1, 2, 3, 1], shape=(1, 16, 6, 12)),
}
NETS: dict[str, Number] = {
    **{f"behind: {name}": behind(make) for name, make in OPERATORS.items()},
    "reshaped": reshaped,
    "flattened": flattened,
    "dense of maps": dense_of_maps,
    "dense with axes": dense_with_axes,
    "transposed": grown,
    "transposed, open": grown_open,
    "sum": spread,
}


@pytest.mark.parametrize("name", NETS)
def test_of_bytes(name: str) -> None:
    """Compiled it is the reference; the reference is LiteRT but for roundings."""
    m, x = started()
    data = m.finish([NETS[name](m, x)])
    graph, interpreter = tflite.read_tflite(data, "net"), runtime(data)
    program = build.build_program(graph, configs.load_config("k210"))
    found = Judgement("net", "optimised", ("two", "half", "fixed", "function"))
    for seed in range(2):
        given = np.random.default_rng(seed).integers(-128, 128, (1, 6, 4, 8))
        inside = {graph.inputs[0]: given.transpose(0, 3, 1, 2)}
        want = theirs(interpreter, given.astype(np.int8)).astype(np.int64)
        last = want.transpose(0, 3, 1, 2) if want.ndim == 4 else want
        found.take(graph, inside, {graph.outputs[0]: last})
        assert agree.faults(graph, program, inside) == []
    assert found.total.values > 0 and not found.total.reasons["none"], found.total


@pytest.mark.parametrize("name", NETS)
def test_of_floats(name: str) -> None:
    """The ONNX model computes LiteRT's numbers."""
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    m, x = started()
    y = NETS[name](m, x)
    data = floating(m, "float32").finish([y])
    session = ort.InferenceSession(float_form.converted(data, "net"))
    given = np.random.default_rng(2).normal(0, 2, (1, 6, 4, 8)).astype(np.float32)
    (mine,) = session.run(None, {session.get_inputs()[0].name: given})
    np.testing.assert_allclose(mine, theirs(runtime(data), given), rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------ refusals
def unknown_size(m: TfliteModel, x: Value) -> Value:
    opened(m, x, 0, 1)
    return reshaped(m, x)


def refused(kind: str, inputs: list[Any], options: str, **fields: int) -> Number:
    def make(m: TfliteModel, x: Value) -> Value:
        number = of_constants(kind, inputs, (4,), options, **fields)(m, x)
        y = m.value(SHAPE, Q)
        m.op("RESHAPE", [x, number], [y], "ReshapeOptions")
        return y

    return make


DAMAGED = r"a damaged TFLite model, or not all of it: "
BAD: dict[str, tuple[Number, str]] = {
    "lines": (unknown_size, "its shape is dynamic, expected fixed sizes"),
    "fill": (
        refused("FILL", [[1 << 20, 1 << 20], 7], "FillOptions"),
        DAMAGED + r"\[1048576, 1048576\] numbers of one value",
    ),
    "fill of less than none": (
        refused("FILL", [[-1, 2], 7], "FillOptions"),
        DAMAGED + r"\[-1, 2\] numbers",
    ),
    "axis": (refused("SUM", [[1, 2], [3]], R), DAMAGED),
    "axis of gather": (refused("GATHER", [[1, 2], [0]], "GatherOptions", axis=2), DAMAGED),
    "place of gather": (refused("GATHER", [[1, 2], [9]], "GatherOptions", axis=0), DAMAGED),
    "axis of pack": (refused("PACK", [[1], [2]], "PackOptions", axis=5), DAMAGED),
    "unequal parts": (refused("PACK", [[1], [2, 3]], "PackOptions", axis=0), DAMAGED),
    "division": (refused("FLOOR_DIV", [[1], [0]], "FloorDivOptions"), DAMAGED + "a division by 0"),
    "reshape": (refused("RESHAPE", [[1, 2], [3]], "ReshapeOptions"), DAMAGED),
    "slice": (
        refused("STRIDED_SLICE", [[1, 2], [0], [2], [0]], "StridedSliceOptions"),
        DAMAGED,
    ),
    "ends of a slice": (
        refused("STRIDED_SLICE", [[1, 2], [0, 1], [2], [1]], "StridedSliceOptions"),
        DAMAGED,
    ),
    "options of another": (
        refused("SUM", [[1, 2], [0]], "AddOptions"),
        "its options are those of another operator, without KeepDims",
    ),
    "no options": (refused("PACK", [[1], [2]], ""), DAMAGED),
    "another number": (
        refused("PACK", [1, 6, 4, 9], "PackOptions", axis=0),
        r"shape \[1, 6, 4, 9\], the output is \[1, 6, 4, 8\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    """One line, whoever reads it."""
    make, text = BAD[name]
    m, x = started()
    data = m.finish([make(m, x)])
    with pytest.raises(CompileError, match=text) as error:
        tflite.read_tflite(data, "net")
    print(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300
