# SPDX-License-Identifier: Apache-2.0
"""TFLite models, quantised to int8 or uint8, as graphs of the intermediate form.

``read_tflite`` walks the operators in the file's order; ``operators`` has what each becomes.  What
is not implemented is refused: an operator, an attribute, a type, each by name.
"""

from collections.abc import Sequence

from openkpu import files
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.tflite import islands
from openkpu.compiler.tflite.file import DAMAGE, DAMAGED, parse_tflite
from openkpu.compiler.tflite.operators import HANDLERS
from openkpu.compiler.tflite.raw import RawModel, unknown_operator
from openkpu.compiler.tflite.reader import TfliteReader
from openkpu.compiler.tflite.spread import APART, TOGETHER


def read_tflite(
    data: bytes, name: str, shape: Sequence[int] | None = None, ends: Sequence[str] = ()
) -> Graph:
    """The graph of a TFLite file; CompileError with one line for what cannot be read.

    ``shape``: the input's; only its batch may differ from the file's (SHAPE=1x96x96x3). ``ends``:
    tensors with which the network ends, in place of the file's outputs.
    """
    reader = TfliteReader(_tabled(parse_tflite(data, name, shape, ends), name), name)
    for op in reader.model.operators:
        reader.op = op
        if op.table is not None:
            islands.table_node(reader, op)
            continue
        if op.operator not in HANDLERS:
            if op.operator == APART:
                raise reader.refuse(
                    f"expected a convolution of stride 1, {TOGETHER} alone behind it"
                )
            raise reader.refuse(unknown_operator(reader.model, op))
        try:
            HANDLERS[op.operator](reader, op)
        except CompileError as error:
            raise (error if error.node else reader.refuse(error.reason)) from None
        except DAMAGE as error:
            raise reader.refuse(f"{DAMAGED}{files.said(error)}") from None
    return reader.finish()


def _tabled(model: RawModel, name: str) -> RawModel:
    """The model with tables for functions that have no operator of bytes."""
    try:
        return islands.with_tables(model, name)
    except CompileError:
        raise
    except DAMAGE as error:
        raise CompileError(f"{DAMAGED}{files.said(error)}", where=name) from None
