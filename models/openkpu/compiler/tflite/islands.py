# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor of bytes that a file has no operator of bytes for (docs/compiler.md 2).

TensorFlow's quantiser leaves an ELU as DEQUANTIZE, ELU of floats, QUANTIZE; a SELU as a comparison,
two branches of bytes and SELECT_V2.  However many operators there are, each number of the result
depends on one byte: ``with_tables`` computes them for all 256 bytes, floats in float32 and bytes
with the roundings of TFLite's kernels, and puts one table in their place.

A result counts if floats or truth values are on the way to it, or if it is made by an operator that
the compiler has for nothing else.  Its table is one of the nearest tensor of bytes that all of it
is a function of; what nobody reads then is dropped.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import functions, reference
from openkpu.compiler.form import rounding as two
from openkpu.compiler.form.graph import QUANTISED, Host, Table
from openkpu.compiler.tflite.operators import ACTIVATIONS, HANDLERS
from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor
from openkpu.compiler.tflite.reader import TfliteReader

Array = npt.NDArray
Values = dict[int, Array]  # by tensor: of its 256 numbers, or the one of a constant
FLOAT, TRUTH = "float32", "bool"


def _float64(function: Callable[[float], Any]) -> Callable[[Any, Array], Array]:
    """A function of the standard library, rounded to float32."""

    def value(_o: Any, x: Array) -> Array:
        return np.array([_safe(function, float(v)) for v in x.reshape(-1)]).reshape(x.shape)

    return value


def _safe(function: Callable[[float], Any], x: float) -> float:
    if math.isnan(x):
        return x
    try:
        return float(function(x))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan


def _leaky(o: Any, x: Array) -> Array:
    if o is None:
        raise CompileError("its options are not in the file")
    return np.where(x >= 0, x, x * np.float32(o.Alpha()))


def _gelu(o: Any, x: Array) -> Array:
    near = o is not None and o.Approximate()
    return _float64(functions.gelu_tanh if near else functions.gelu)(o, x)


def _limited(low: float, high: float) -> Callable[[Any, Array], Array]:
    return lambda _o, x: np.clip(x, np.float32(low), np.float32(high))


# of floats
UNARY: dict[str, Callable[[Any, Array], Array]] = {
    "ABS": lambda _o, x: np.abs(x),
    "NEG": lambda _o, x: -x,
    "SQUARE": lambda _o, x: x * x,
    "FLOOR": lambda _o, x: np.floor(x),
    "CEIL": lambda _o, x: np.ceil(x),
    "ZEROS_LIKE": lambda _o, x: np.zeros_like(x),
    "EXP": _float64(functions.exp),
    "LOG": _float64(lambda v: math.log(v) if v else -math.inf),
    "SQRT": _float64(math.sqrt),
    "RSQRT": _float64(lambda v: 1 / math.sqrt(v) if v else math.inf),
    "SIN": _float64(math.sin),
    "COS": _float64(math.cos),
    "ELU": _float64(functions.elu()),
    "GELU": _gelu,
    "LOGISTIC": _float64(functions.sigmoid),
    "TANH": _float64(functions.tanh),
    "HARD_SWISH": _float64(functions.hard_swish),
    "LEAKY_RELU": _leaky,
    "RELU": _limited(0, math.inf),
    "RELU6": _limited(0, 6),
    "RELU_N1_TO_1": _limited(-1, 1),
    "RELU_0_TO_1": _limited(0, 1),
}
OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "POW": np.power,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) * (a - b),
}
COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
}
TRUTHS: dict[str, Callable[..., Array]] = {
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "LOGICAL_NOT": np.logical_not,
}
CHOICES = ("SELECT", "SELECT_V2")
FUSED = ("ADD", "SUB", "MUL", "DIV")  # operators with an activation behind them
ALONE = ("DIV", *CHOICES)  # of bytes: there is no node for them
BYTES = (  # what a handler makes nodes of that are functions of each byte
    *("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"),
    *("LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ELU", "EXP", "GELU", "ABS", "NEG"),
    *("SQUARE", "LOG", "SQRT", "RSQRT", "QUANTIZE"),
)
MOST_ROOTS = 64  # that are looked at for a result
KNOWN = {*UNARY, *OF_TWO, *COMPARED, *TRUTHS, *ALONE, *BYTES, "QUANTIZE", "DEQUANTIZE"}


def with_tables(model: RawModel, name: str) -> RawModel:
    """The model with a table in place of each such function; others stay as they are."""
    made = [model.tensors[n] for op in model.operators for n in op.outputs]
    if not any(t.dtype in QUANTISED for t in made):
        return model  # a float model
    return _Islands(model, name).run()


class _Islands:
    def __init__(self, model: RawModel, name: str) -> None:
        self.model, self.name = model, name
        self.maker = {n: op for op in model.operators for n in op.outputs}
        self.roots: dict[int, tuple[int, ...]] = {}  # tensors of bytes, the nearest one last

    def run(self) -> RawModel:
        """See ``with_tables``."""
        operators: list[RawOperator] = []
        model = self.model
        for op in self.model.operators:
            common = self._common(op)
            (number,) = op.outputs if len(op.outputs) == 1 else (-1,)
            raw = self.model.tensors[number]
            if common and raw.dtype in (*QUANTISED, FLOAT) and self._counts(op, number):
                operators.append(self._tabled(op, common[-1], number))
            else:
                operators.append(op)
            for n in op.outputs:
                own = (n,) if self._byte(model.tensors[n]) else ()
                self.roots[n] = (*common, *own)[-MOST_ROOTS:]
        if not any(op.table is not None for op in operators):
            return model
        return dataclasses.replace(model, operators=self._used(operators))

    # ------------------------------------------------------------------ what depends on what
    def _byte(self, raw: RawTensor) -> bool:
        return raw.dtype in QUANTISED and raw.scale.size == 1 and not raw.fault

    def _given(self, op: RawOperator) -> list[int]:
        """The inputs that are computed."""
        return [n for n in op.inputs if n >= 0 and self.model.tensors[n].data is None]

    def _common(self, op: RawOperator) -> tuple[int, ...]:
        """What all of the operator's result is a function of, the nearest one last."""
        given = self._given(op)
        if op.operator not in KNOWN or not given or len(op.outputs) != 1 or -1 in op.inputs:
            return ()
        constants = [self.model.tensors[n] for n in op.inputs if n not in given]
        shapes = {self.model.tensors[n].shape for n in (*given, *op.outputs)}
        if len(shapes) != 1 or any(t.values.size != 1 or t.fault for t in constants):
            return ()
        for n in given:
            if n not in self.roots and self._byte(self.model.tensors[n]):
                self.roots[n] = (n,)  # an input of the model
        first, *others = (self.roots.get(n, ()) for n in given)
        return tuple(n for n in first if all(n in other for other in others))

    def _counts(self, op: RawOperator, number: int) -> bool:
        if self.model.tensors[number].dtype == FLOAT:  # a result of the model
            return number in self.model.outputs and op.operator != "DEQUANTIZE"
        kinds = {self.model.tensors[n].dtype for n in self._given(op)}
        return bool(kinds & {FLOAT, TRUTH}) or op.operator in ALONE

    def _used(self, operators: list[RawOperator]) -> list[RawOperator]:
        """Without operators of such functions that nobody reads any more."""
        wanted, kept = set(self.model.outputs), []
        for op in reversed(operators):
            if op.operator not in KNOWN or wanted & {*op.outputs}:
                kept.append(op)
                wanted |= {*op.inputs}
        return kept[::-1]

    # ------------------------------------------------------------------------- the numbers
    def _tabled(self, op: RawOperator, root: int, number: int) -> RawOperator:
        lowest = -128 if self.model.tensors[root].dtype == "int8" else 0
        known: Values = {root: np.arange(lowest, lowest + 256)}
        words: list[str] = []
        with np.errstate(all="ignore"):
            for each in self._between(number, root):
                (made,) = each.outputs
                x = [self._known(n, known) for n in each.inputs]
                raws = [self.model.tensors[n] for n in each.inputs]
                try:
                    known[made] = self._computed(each, x, raws, self.model.tensors[made])
                except CompileError as error:
                    raise (error if error.node else self._refused(each, error.reason)) from None
                words.append(each.operator.lower().replace("_", " "))
        found = np.broadcast_to(known[number], 256)
        if found.dtype.kind == "f":
            if not np.isfinite(found).all():
                raise CompileError(
                    "a function of bytes that has no finite number for some of them",
                    **{"node": op.name, "operator": op.operator, "where": self.name},
                )
            found = found.astype(np.float32)
        inside = [word for word in words if word not in ("dequantize", "quantize")]
        return dataclasses.replace(
            op,
            inputs=[root],
            table=np.array(found),
            words=", ".join(dict.fromkeys(inside)),
        )

    def _between(self, number: int, root: int) -> list[RawOperator]:
        """The operators from the root to a tensor, in their order."""
        seen, left = {root}, [number]
        while left:
            if (n := left.pop()) not in seen:
                seen.add(n)
                left += self._given(self.maker[n])
        return [op for op in self.model.operators if {*op.outputs} & (seen - {root})]

    def _known(self, number: int, known: Values) -> Array:
        """The 256 numbers of a tensor, or the one of a constant; bytes as integers."""
        raw = self.model.tensors[number]
        if raw.data is None:
            return known[number]
        kind = {"float16": FLOAT}.get(raw.dtype, raw.dtype)
        return raw.values.reshape(1).astype(np.int64 if kind in QUANTISED else kind)

    def _computed(
        self, op: RawOperator, x: list[Array], raws: list[RawTensor], y: RawTensor
    ) -> Array:
        kind, bytes_in = op.operator, raws[-1].dtype in QUANTISED
        if kind in CHOICES:
            self._alike(op, raws[1:], y)
            return np.where(x[0], x[1], x[2])
        if kind in COMPARED:
            return COMPARED[kind](*(_compared(v, t) for v, t in zip(x, raws, strict=True)))
        if kind in TRUTHS:
            return TRUTHS[kind](*x)
        if kind == "DEQUANTIZE":
            if not bytes_in:
                return x[0].astype(np.float32)
            return _real(x[0], raws[0]).astype(np.float32)
        if kind == "QUANTIZE" and raws[0].dtype == FLOAT:
            return _quantised(x[0] / np.float32(y.scale[0]), y)
        if kind == "DIV" and y.dtype in QUANTISED:
            if not (x[1] != raws[1].zero[0]).all():
                raise self._refused(op, "a division by 0")
            return _quantised(_real(x[0], raws[0]) / _real(x[1], raws[1]) / float(y.scale[0]), y)
        if y.dtype in QUANTISED:
            return self._of_bytes(op, x, raws, y)
        if any(t.dtype != FLOAT for t in raws):
            raise self._refused(op, f"{', '.join(t.dtype for t in raws)}, expected floats")
        if kind in UNARY:
            return UNARY[kind](op.options, x[0]).astype(np.float32)
        found = OF_TWO[kind](*x).astype(np.float32)
        code = op.options.FusedActivationFunction() if kind in FUSED and op.options else 0
        if code not in ACTIVATIONS:
            raise self._refused(op, f"fused activation {code}, expected none")
        low, high = ACTIVATIONS[code]
        return np.clip(found, np.float32(low), np.float32(high))

    def _of_bytes(
        self, op: RawOperator, x: list[Array], raws: list[RawTensor], y: RawTensor
    ) -> Array:
        """As TFLite's kernels compute it, by the node that the operator becomes."""
        given = dict.fromkeys(self._given(op))
        tensors = [dataclasses.replace(t, shape=(256,), data=None) for t in (*raws, y)]
        for at, raw in enumerate(raws):
            if raw.data is not None:
                tensors[at] = dataclasses.replace(raw, shape=(), data=raw.values.reshape(()))
        places = {n: op.inputs.index(n) for n in given}
        inputs = [places.get(n, at) for at, n in enumerate(op.inputs)]
        single = dataclasses.replace(op, inputs=inputs, outputs=[len(raws)])
        part = RawModel(tensors, [single], list(places.values()), [len(raws)])
        reader = TfliteReader(part, self.name)
        reader.op = single
        HANDLERS[op.operator](reader, single)
        graph = reader.finish()
        feeds = {graph.inputs[i]: np.broadcast_to(x[at], 256) for i, at in enumerate(part.inputs)}
        return reference.evaluate(graph, feeds, reference.TWO)[graph.outputs[0]]

    def _alike(self, op: RawOperator, raws: list[RawTensor], y: RawTensor) -> None:
        """Refuse a choice of other numbers than those of the result."""
        for raw in raws:
            same = raw.dtype == y.dtype and raw.zero.tolist() == y.zero.tolist()
            if not same or not np.array_equal(raw.scale, y.scale):
                raise self._refused(op, f"{raw.name!r} in another scale than the result's")

    def _refused(self, op: RawOperator, text: str) -> CompileError:
        return CompileError(text, node=op.name, operator=op.operator, where=self.name)


def _real(values: Array, raw: RawTensor) -> Array:
    return (values - int(raw.zero[0])) * float(raw.scale[0])


def _quantised(steps: Array, y: RawTensor) -> Array:
    """The nearest, a tie to even; of infinities the ends, of what is no number 0."""
    low, high = (-128, 127) if y.dtype == "int8" else (0, 255)
    whole = np.nan_to_num(np.rint(steps), nan=0.0, posinf=1 << 20, neginf=-(1 << 20))
    return np.clip(whole + int(y.zero[0]), low, high).astype(np.int64)


def _compared(values: Array, raw: RawTensor) -> Array:
    """What a comparison of bytes looks at: the number in steps of 2^-8, rounded twice."""
    if raw.dtype not in QUANTISED:
        return values
    return two.multiply((values - int(raw.zero[0])) << 8, float(raw.scale[0]))


def table_node(r: TfliteReader, op: RawOperator) -> None:
    """The node of such a table."""
    x, y = r.quantised(op, 0), r.output(op)
    if y.quantised:
        r.node(Table, [x], y, table=op.table, function=op.words)
    else:
        r.node(Host, [x], y, how="table", table=op.table)
