# SPDX-License-Identifier: Apache-2.0
"""ONNX models, quantised to int8 or uint8, as graphs of the intermediate form.

``read_onnx`` walks the nodes in the file's order: those whose inputs are known are folded, the
others become what ``float_form`` and the handlers that it collects say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openkpu.compiler.errors import CompileError, ends_before
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import fold
from openkpu.compiler.onnx.file import RawNode, parse_onnx
from openkpu.compiler.onnx.float_form import HANDLERS
from openkpu.compiler.onnx.reader import DAMAGE, OnnxReader
from openkpu.compiler.onnx.values import Const


def read_onnx(
    data: bytes,
    name: str,
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
    ends: Sequence[str] = (),
) -> Graph:
    """The graph of an ONNX file; CompileError with one line for what cannot be read.

    ``shape`` fixes an input's shape that is open (SHAPE=1x3x96x96); ``folder`` holds external data;
    ``ends``: tensors with which the network ends, in place of the file's outputs.
    """
    reader = OnnxReader(parse_onnx(data, name, shape, folder, ends), name)
    for node in reader.file.nodes:
        follow(reader, node)
    return reader.finish()


def follow(reader: OnnxReader, node: RawNode) -> None:
    """One node of the file."""
    reader.at = node
    try:
        _follow(reader, node)
    except CompileError:
        raise
    except DAMAGE as error:
        what = " ".join(str(error).split())[:100] or type(error).__name__
        raise reader.refuse(f"cannot be read, its parts do not go together: {what}") from None


def _follow(reader: OnnxReader, node: RawNode) -> None:
    if fold.is_known(reader, node):
        fold.fold_node(reader, node)
    elif (node.domain, node.operator) in HANDLERS:
        HANDLERS[node.domain, node.operator](reader, node)
    elif ("", node.operator) in HANDLERS and "Linear" in node.operator:
        HANDLERS["", node.operator](reader, node)  # ONNX Runtime has its own of these as well
    else:
        what = "no such operator here; docs/compiler.md has the table of operators"
        computed = [n for n in node.inputs if not isinstance(reader.values.get(n), Const)]
        raise reader.refuse(ends_before(what, computed))
