# SPDX-License-Identifier: Apache-2.0
"""The intermediate form of a quantised network: tensors, and nodes with integer semantics.

docs/compiler.md describes it.  Readers make it, passes rewrite it, lowerings make layers of it, and
``reference`` computes it exactly.

*Tensors.*  Rank 4 is always (N, C, H, W), whatever the model has; ``layout`` of a graph's input or
output says how the model itself orders it ("NHWC" or "NCHW"), and is used where data come and go.
Tensors of another rank are as in the model.  Where a model of NHWC looks at the order of elements
(a reshape of rank 4), its reader writes the transposition as a node.  A quantised tensor is int8 or
uint8 and represents real numbers: ``scale * (q - zero)``.  Float and int tensors have no scale.  A
constant has ``data``.

*Nodes.*  r(...) is a real number in units of the output's scale, computed exactly from the integers
and the scales (each an exact binary fraction); then there is **one** rounding to nearest, a tie to
even, the zero point is added, and the result is limited to ``clamp``.

| node | r |
|---|---|
| Conv | (sum over c, ky, kx of (x - zx) * (w - zw[o]) + bias[o]) * sx * sw[o] / sy; padding is zx |
| Dense | the same of the last axis: x (..., K), weights (O, K) |
| Pool max | the largest x of the window inside the map, (x - zx) * sx / sy |
| Pool average | sum of (x - zx) over n, times sx / sy; n as ``count_pads``; here a tie goes up |
| Elementwise | add, sub, mul, max, min of both real numbers / sy; shapes broadcast as in numpy |
| Table | no r: y = table[q - lowest q], any function of one byte |
| Move | no r: bytes change places; input and output have the same scale and zero point |
| Host | what the processor computes in float (``HOSTS``), then the rounding above |

``rarer`` has further nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.terminal import printable

QUANTISED = ("int8", "uint8")
OF_WEIGHTS = (*QUANTISED, "int16", "uint16")
INTEGERS = ("int32", "int64")  # places, of argmax
DTYPES = (*QUANTISED, *INTEGERS, "float32", "bool")
LAYOUTS = ("", "NHWC", "NCHW")
LONGEST = 960  # pixels of a line of the device
MOST_LINES = 512  # of a map of the device; taller ones are computed in bands
TALLEST = 1 << 14
RANGE = {"int8": (-128, 127), "uint8": (0, 255)}
POOLS = ("max", "average")
ELEMENTWISE = ("add", "sub", "mul", "max", "min")
MOVES = ("reshape", "transpose", "concat", "slice", "pad", "take")
# softmax and its logarithm logsoftmax (axis, beta), argmax and argmin (axis, keep, last), quantize,
# dequantize, table; cast: an integer in another type; layernorm (axis, epsilon, gain, offset);
# l2norm: divided by the length of the vectors along axis, at least epsilon; linear: lines and
# columns between those of a map (lines, columns); of two tensors sqdiff, the square of their
# difference, and quotient; of floats and a constant plus, minus, times, over: float32 as it is
OF_TWO = ("sqdiff", "quotient")
OF_FLOATS = ("plus", "minus", "times", "over")
HOSTS = (
    *("softmax", "logsoftmax", "argmax", "argmin", "quantize", "dequantize", "table", "cast"),
    *("layernorm", "l2norm", "linear", *OF_TWO, *OF_FLOATS),
)
ALONG = ("softmax", "logsoftmax", "argmax", "argmin", "layernorm", "l2norm")  # those with an axis


@dataclasses.dataclass
class Tensor:
    """A tensor of the graph."""

    name: str
    dtype: str  # one of DTYPES
    shape: tuple[int, ...]
    scale: float | None = None  # of a quantised tensor; a float32 or float64, taken exactly
    zero: int = 0
    layout: str = ""  # how the model orders it: "NHWC", "NCHW", or "" where there is no choice
    data: npt.NDArray | None = None  # of a constant

    @property
    def quantised(self) -> bool:
        return self.dtype in QUANTISED and self.scale is not None

    @property
    def limits(self) -> tuple[int, int]:
        """Least and largest integer of a quantised tensor."""
        return RANGE[self.dtype]

    @property
    def step(self) -> float:
        """The scale of a tensor that has one, which every quantised tensor does."""
        assert self.scale is not None, f"tensor {self.name!r} has no scale"
        return self.scale

    @property
    def size(self) -> tuple[int, int]:
        """Lines and columns of a map (N, C, H, W)."""
        _, _, height, width = self.shape
        return height, width

    @property
    def exact(self) -> Fraction:
        """The scale as an exact fraction."""
        return Fraction(self.scale or 0)

    def same_numbers(self, other: Tensor) -> bool:
        """Does an integer of one stand for the same real number in the other?"""
        mine, its = ((t.dtype, t.scale, t.zero) for t in (self, other))
        return mine == its

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        scale = "" if self.scale is None else f" scale {self.scale:.6g} zero {self.zero}"
        const = " constant" if self.data is not None else ""
        return f"{self.name}: {self.dtype}[{shape}]{scale}{const}"


@dataclasses.dataclass
class Node:
    """Fields common to all nodes: own name, the model's name of the operator, tensors."""

    name: str
    operator: str  # as the model calls it: CONV_2D, QLinearConv
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of node in this form, in a word."""
        return type(self).__name__.lower()

    def describe(self) -> str:
        """Its parameters in a few words."""
        return ""


def bits_of(weights: npt.NDArray[np.int64], zero: npt.NDArray[np.int64]) -> int:
    """8, or 16 where weights (O, ...) without their zero points (O,) are no difference of bytes."""
    apart = weights - zero.reshape(-1, *[1] * (weights.ndim - 1))
    return 8 if np.abs(apart).max(initial=0) <= 255 else 16


def wide_words(bits: int) -> str:
    """Text for weights of 16 bits in a description; empty for bytes."""
    return "" if bits == 8 else f", weights of {bits} bits"


@dataclasses.dataclass
class Conv(Node):
    """Convolution (1, C, H, W) -> (1, O, oh, ow); depthwise is groups = C."""

    weights: npt.NDArray[np.int64]  # (O, C / groups, kh, kw), the stored integers
    w_scale: npt.NDArray[np.float64]  # (O,)
    w_zero: npt.NDArray[np.int64]  # (O,)
    bias: npt.NDArray[np.int64]  # (O,), in steps of sx * sw[o]
    clamp: tuple[int, int]  # of the output's integers, inside its type
    strides: tuple[int, int] = (1, 1)  # lines, columns
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def weight_bits(self) -> int:
        return bits_of(self.weights, self.w_zero)

    @property
    def kernel(self) -> tuple[int, int]:
        return self.weights.shape[2], self.weights.shape[3]

    @property
    def depthwise(self) -> bool:
        """One input channel for each group, and one output channel of each."""
        return self.groups == len(self.weights) > 1 and self.weights.shape[1] == 1

    def out_size(self, height: int, width: int) -> tuple[int, int]:
        """(oh, ow)."""
        return window_size((height, width), self.kernel, self.strides, self.pads, self.dilation)

    def describe(self) -> str:
        kh, kw = self.kernel
        words = [f"{kh}x{kw}", f"stride {self.strides}", f"pads {self.pads}"]
        words += [f"dilation {self.dilation}"] if self.dilation != (1, 1) else []
        words += [f"groups {self.groups}"] if self.groups > 1 else []
        return ", ".join([*words, f"clamp {self.clamp}"]) + wide_words(self.weight_bits)


@dataclasses.dataclass
class Dense(Node):
    """Fully connected: (..., K) -> (..., O)."""

    weights: npt.NDArray[np.int64]  # (O, K)
    w_scale: npt.NDArray[np.float64]  # (O,)
    w_zero: npt.NDArray[np.int64]  # (O,)
    bias: npt.NDArray[np.int64]  # (O,)
    clamp: tuple[int, int]

    @property
    def weight_bits(self) -> int:
        return bits_of(self.weights, self.w_zero)

    def describe(self) -> str:
        words = f"{self.weights.shape[1]} to {self.weights.shape[0]}, clamp {self.clamp}"
        return words + wide_words(self.weight_bits)


@dataclasses.dataclass
class Pool(Node):
    """Maximum or average of windows of (1, C, H, W)."""

    how: str  # one of POOLS
    kernel: tuple[int, int]
    clamp: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_pads: bool = False  # an average divides by all places of the window; padding is zx

    def out_size(self, height: int, width: int) -> tuple[int, int]:
        return window_size((height, width), self.kernel, self.strides, self.pads)

    def describe(self) -> str:
        counted = ", padding counts" if self.count_pads else ""
        return f"{self.how} {self.kernel}, stride {self.strides}, pads {self.pads}{counted}"


@dataclasses.dataclass
class Elementwise(Node):
    """Two tensors, or one and a constant (a tensor with ``data``), element by element."""

    how: str  # one of ELEMENTWISE
    clamp: tuple[int, int]

    def describe(self) -> str:
        return f"{self.how}, clamp {self.clamp}"


@dataclasses.dataclass
class Table(Node):
    """Any function of a byte; requantisation and clamps are tables as well."""

    table: npt.NDArray[np.int64]  # (256,) integers of the output; entry 0 is of -128 or of 0
    function: str = ""  # what it is, for the reader: "sigmoid"

    def describe(self) -> str:
        return self.function


@dataclasses.dataclass
class Move(Node):
    """Elements change places, values stay: see ``MOVES``.

    reshape: the output's shape, elements in order.  transpose: ``axes`` as numpy.  concat: along
    ``axis``.  slice: ``starts``, ``steps`` for each axis (steps may be negative); the output's
    shape says how many.  pad: ``before`` and ``after`` each axis with the integer ``value``.
    take: of each axis the elements at ``places``, in this order, some of them more than once.
    """

    how: str  # one of MOVES
    axes: tuple[int, ...] = ()
    axis: int = 0
    starts: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    value: int = 0
    places: tuple[tuple[int, ...], ...] = ()

    def describe(self) -> str:
        more = {
            "transpose": f" {self.axes}",
            "concat": f" along {self.axis}",
            "slice": f" from {self.starts} step {self.steps}",
            "pad": f" {self.before} {self.after} with {self.value}",
        }
        return self.how + more.get(self.how, "")


@dataclasses.dataclass
class Host(Node):
    """A node computed by the processor: see ``HOSTS``."""

    how: str  # one of HOSTS
    axis: int = -1
    beta: float = 1.0  # of softmax
    keep: bool = False  # argmax keeps its axis
    last: bool = False  # argmax: of equal ones the last
    table: npt.NDArray | None = None  # of "table", as Table has it; 256 float32 where they come out
    epsilon: float = 0.0  # of layernorm and l2norm
    # of layernorm: shapes that go with the last axes; the constant of plus, minus, times, over
    gain: npt.NDArray[np.float64] | None = None
    offset: npt.NDArray[np.float64] | None = None
    lines: npt.NDArray[np.float64] | None = None  # of linear: (oh, H), the share of each line
    columns: npt.NDArray[np.float64] | None = None  # (ow, W)
    coordinates: str = ""  # one of ``between``: TFLite's kernels have shares of their own

    def describe(self) -> str:
        return self.how


def window_size(
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int] = (1, 1),
) -> tuple[int, int]:
    """(oh, ow): windows that fit the padded map; below 1 where none does."""
    found = []
    for i in (0, 1):
        span = (kernel[i] - 1) * dilation[i] + 1
        found.append((size[i] + pads[i] + pads[i + 2] - span) // strides[i] + 1)
    return found[0], found[1]


@dataclasses.dataclass
class Graph:
    """A network: nodes in an order in which they can be computed."""

    name: str
    tensors: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    nodes: list[Node] = dataclasses.field(default_factory=list)
    inputs: list[str] = dataclasses.field(default_factory=list)
    outputs: list[str] = dataclasses.field(default_factory=list)
    batch: int = 1  # inferences that the model runs at once; the graph has one
    # what rounding took of the model's real numbers, for who compares (docs/judges.md): by tensor
    # the ends of its activation; by node its bias (O,) less the integers, in steps of the sum
    ends: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    rests: dict[str, npt.NDArray[np.float64]] = dataclasses.field(default_factory=dict)

    def add_tensor(self, tensor: Tensor) -> Tensor:
        """Put a tensor in; CompileError when its name is there already."""
        if tensor.name in self.tensors:
            raise CompileError(f"tensor {tensor.name!r} is there twice, expected once")
        self.tensors[tensor.name] = tensor
        return tensor

    def fresh(self, like: str) -> str:
        """A name that no tensor has."""
        number = 0
        while (name := f"{like}~{number}") in self.tensors:
            number += 1
        return name

    def fresh_or(self, name: str) -> str:
        """The name itself, or one like it where a tensor has it already."""
        return self.fresh(name) if name in self.tensors else name

    def of(self, names: tuple[str, ...]) -> list[Tensor]:
        """The tensors of these names."""
        return [self.tensors[name] for name in names]

    def readers(self, name: str) -> list[Node]:
        """Nodes that read a tensor."""
        return [node for node in self.nodes if name in node.inputs]

    def maker(self, name: str) -> Node | None:
        """The node that writes a tensor; None of an input or a constant."""
        return next((node for node in self.nodes if name in node.outputs), None)

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """The graph, a line for each input, node and output."""
        for name in self.inputs:
            yield f"input  {self.tensors[name]} {self.tensors[name].layout}".rstrip()
        for number, node in enumerate(self.nodes):
            reads, writes = ", ".join(node.inputs), "; ".join(map(str, self.of(node.outputs)))
            yield f"{number:>4}  {node.kind:<12} {node.operator}({reads}) -> {writes}"
            if words := node.describe():
                yield f"      {words}"
        for name in self.outputs:
            yield f"output {self.tensors[name]} {self.tensors[name].layout}".rstrip()
