# SPDX-License-Identifier: Apache-2.0
"""TFLite models, quantised to int8 or uint8, as graphs of the intermediate form.

``read_tflite`` walks the operators in the file's order; ``operators`` has what each becomes.  What
is not implemented is refused: an operator, an attribute, a type, each by name.
"""

from collections.abc import Sequence

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.tflite.file import parse_tflite
from openkpu.compiler.tflite.operators import HANDLERS
from openkpu.compiler.tflite.reader import TfliteReader
from openkpu.compiler.tflite.spread import APART, TOGETHER

CONTROL = ("IF", "WHILE", "CALL", "CALL_ONCE")


def read_tflite(data: bytes, name: str, shape: Sequence[int] | None = None) -> Graph:
    """The graph of a TFLite file; CompileError with one line for what cannot be read.

    ``shape``: the input's; only its batch may differ from the file's (SHAPE=1x96x96x3).
    """
    reader = TfliteReader(parse_tflite(data, name, shape), name)
    for op in reader.model.operators:
        reader.op = op
        if op.operator not in HANDLERS:
            if op.operator.startswith("CUSTOM"):
                raise reader.refuse("a custom operator, expected one of TFLite's own")
            what = "control flow" if op.operator in CONTROL else "no such operator here"
            if op.operator == APART:
                what = f"expected a convolution of stride 1 and {TOGETHER} alone behind it"
            raise reader.refuse(f"{what}; docs/compiler.md has the table of operators")
        try:
            HANDLERS[op.operator](reader, op)
        except CompileError as error:
            raise (error if error.node else reader.refuse(error.reason)) from None
    return reader.finish()
