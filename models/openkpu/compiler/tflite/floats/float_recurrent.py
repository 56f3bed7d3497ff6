# SPDX-License-Identifier: Apache-2.0
"""TFLite's LSTM of a float model, unrolled: a product for the inputs of all steps, then the steps.

Keras's LSTM begins each inference with zeros, and so do these steps; TFLite's interpreter goes on
with the states of the inference before, until ``reset_all_variables``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.compiler.tflite.floats.float_writer import Handler, Writer
from openkpu.compiler.tflite.operators import ACTIVATION_NAMES, options
from openkpu.compiler.tflite.raw import LSTM, VARIABLE, RawOperator

WEIGHTS, BACK, BIASES = 1, 5, 12  # inputs of the operator: of the input, forget, cell, output gate
GATES = 0, 3, 1, 2  # of these four, as the steps use them: the cell's, a tanh, is the last one
STATES = 18, 19  # of the output, of the cell
NONE = {
    "peepholes": (9, 10, 11),
    "a projection": (16, 17),
    "a layer normalisation": (20, 21, 22, 23),
}


def lstm(w: Writer, op: RawOperator) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: (batch, steps, numbers), or (steps, batch, numbers)."""
    o, shape = options(w, op), w.shape(op, 0)
    _check(w, op)
    weights, back = (_of_gates(w, op, at) for at in (WEIGHTS, BACK))
    hidden, bias = back.shape[1], _of_gates(w, op, BIASES)
    if weights.shape != (4 * hidden, shape[2]) or back.shape[0] != 4 * hidden:
        raise w.refuse(f"weights {weights.shape} and {back.shape} do not fit the input {shape}")
    steps, batch = shape[:2] if o.TimeMajor() else shape[1::-1]
    x = w.input(op, 0)
    if not o.TimeMajor() and batch > 1:
        x = w.emit("Transpose", [x], perm=[1, 0, 2])
    x = w.emit("Reshape", [x, w.whole(steps * batch, shape[2])])
    numbers = [w.const(data, name) for data, name in ((weights, "weights"), (bias, "bias"))]
    x = w.emit("Gemm", [x, *numbers], transB=1)
    h, c = (_first(w, op, at) for at in STATES)
    again, states = w.const(back, "weights"), []
    # the state of a cell grows by less than 1 a step: a limit that it cannot reach is none
    limit = float(o.CellClip())
    reached = limit if limit > 0 and (c or steps > limit) else np.inf
    for step in range(steps):
        z = _part(w, x, step * batch, (step + 1) * batch, 0)
        if h:
            z = w.emit("Add", [z, w.emit("Gemm", [h, again], transB=1)])
        gates = w.emit("Sigmoid", [_part(w, z, 0, 3 * hidden, 1)])
        new = w.emit("Tanh", [_part(w, z, 3 * hidden, 4 * hidden, 1)])
        let, out, keep = (_part(w, gates, i * hidden, (i + 1) * hidden, 1) for i in range(3))
        new = w.emit("Mul", [let, new])
        new = w.emit("Add", [w.emit("Mul", [keep, c]), new]) if c else new
        c = w.limited(new, -reached, reached)
        h = w.emit("Mul", [out, w.emit("Tanh", [c])])
        states.append(h)
    made = w.emit("Concat", states, axis=0)
    whole = (steps, batch, hidden) if o.TimeMajor() or batch > 1 else (batch, steps, hidden)
    made = w.emit("Reshape", [made, w.whole(*whole)])
    turned = not o.TimeMajor() and batch > 1
    w.put(op, w.emit("Transpose", [made], perm=[1, 0, 2]) if turned else made)


def _check(w: Writer, op: RawOperator) -> None:
    """What would change the formulas."""
    o = options(w, op)
    if len(w.shape(op, 0)) != 3:
        raise w.refuse(f"input {w.shape(op, 0)}, expected batch, steps and numbers")
    if found := [what for what, at in NONE.items() if any(w.has(op, i) for i in at)]:
        raise w.refuse(f"it has {found[0]}, expected none")
    if not w.has(op, WEIGHTS):
        raise w.refuse("it has no weights of an input gate, expected those of four gates")
    kind = ACTIVATION_NAMES.get(o.FusedActivationFunction(), o.FusedActivationFunction())
    if kind != "TANH":
        raise w.refuse(f"activation {kind}, expected TANH")
    if getattr(o, "DiagonalRecurrentTensors", bool)():
        raise w.refuse("diagonal recurrent weights, expected whole ones")


def _of_gates(w: Writer, op: RawOperator, first: int) -> npt.NDArray[np.float32]:
    """The inputs of the four gates, one below the other, as the steps use them."""
    found = [w.weights(op, first + gate, "weights") for gate in GATES]
    if any(each.shape != found[0].shape for each in found) or found[0].ndim > 2:
        raise w.refuse(f"weights of {[each.shape for each in found]}, expected as many of each")
    return np.concatenate(found)


def _first(w: Writer, op: RawOperator, at: int) -> str:
    """A state in front of the first step; "": zeros, which a variable has."""
    if not w.has(op, at) or w.raw(op, at).fault == VARIABLE:
        return ""
    return w.input(op, at)


def _part(w: Writer, x: str, first: int, last: int, axis: int) -> str:
    return w.emit("Slice", [x, *(w.whole(n) for n in (first, last, axis))])


HANDLERS: dict[str, Handler] = {LSTM: lstm}
