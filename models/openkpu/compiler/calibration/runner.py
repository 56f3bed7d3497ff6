# SPDX-License-Identifier: Apache-2.0
"""A float network in ONNX Runtime, with all of its tensors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError

NODE = re.compile(r"Name:'([^']*)' Status Message: (.*)")
MOST_TEXT = 160  # characters of a message, whose end says what is wrong


class FloatRunner:
    """The network with the tensors that are wanted as outputs, besides its own."""

    def __init__(self, net: Net, wanted: Iterable[str], name: str = "") -> None:
        """``name``: of the model, in messages; CompileError for one that does not load."""
        import onnx
        import onnxruntime as ort

        self.name = name
        model = net.done()
        made = {name for node in net.nodes for name in node.output} & net.floats
        there = {value.name for value in model.graph.output}
        for name in sorted((made & set(wanted)) - there):
            value = onnx.ValueInfoProto()
            value.name = name
            model.graph.output.append(value)
        options = ort.SessionOptions()
        options.log_severity_level = 4  # an error is raised
        options.intra_op_num_threads = 1  # others would only wait
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        data_, providers = model.SerializeToString(), ["CPUExecutionProvider"]
        with _one_line(name):
            self.session: Any = ort.InferenceSession(data_, options, providers)
        self.names = [value.name for value in self.session.get_outputs()]

    def run(self, feeds: Values) -> Values:
        """All tensors by name, the inputs among them; CompileError where a node fails."""
        with _one_line(self.name):
            found = self.session.run(None, feeds)
        return {**feeds, **dict(zip(self.names, found, strict=True))}


@contextlib.contextmanager
def _one_line(name: str) -> Iterator[None]:
    """ONNX Runtime's errors, of many lines, as a CompileError of one."""
    try:
        yield
    except Exception as error:  # they have no base class but this
        what = " ".join(str(error).split())
        if found := NODE.search(what):
            text = found[2] if len(found[2]) <= MOST_TEXT else f"...{found[2][-MOST_TEXT:]}"
            what = f"node {found[1]!r}: {text}"
        raise CompileError(f"ONNX Runtime cannot run it: {what}", where=name) from None
