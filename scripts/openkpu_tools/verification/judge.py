# SPDX-License-Identifier: Apache-2.0
"""A quantised model in LiteRT or ONNX Runtime beside the exact reference, node by node.

    openkpu judge net.tflite            nodes that differ, how often, and why
    openkpu judge --table               the table of docs/judges.md, of the models that are there
    openkpu judge --floats              float models that are quantised here beside published ones

The inputs are random bytes, for the models of MLPerf Tiny and the digits also real ones. Exit
status 1 when a difference has no explanation (docs/judges.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu import digits, files
from openkpu.checkout import ROOT
from openkpu.compiler import source
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.tflite.file import is_tflite
from openkpu.judges import JudgedNode, Judgement, agreement, litert, mlperf, ort
from openkpu_tools import command, marked, registry

PAGE = ROOT / "docs" / "judges.md"
TABLE, FLOATS = "judged", "float-models"  # marks of the page's tables
RANDOM, REAL = 3, 8  # inputs of each kind
SEED = 5
SHORT = {
    "two": "two roundings",
    "float32": "float32",
    "half": "near a half",
    "fixed": "fixed point",
    "function": "function",
    "none": "**not explained**",
}
Values = dict[str, npt.NDArray]


def shared() -> Path:
    """Where the models of MLPerf Tiny may be."""
    return Path(os.environ.get("OPENKPU_SHARED", ROOT.parent / "shared")) / mlperf.FOLDER


def read(path: Path) -> tuple[bytes, Graph]:
    """A TFLite or ONNX file, and its graph."""
    return files.read_bytes(path, CompileError), source.read_graph(path)


def random_inputs(graph: Graph, count: int) -> Iterator[Values]:
    """All bytes, or floats of 0..1."""
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        found = {}
        for name in graph.inputs:
            tensor = graph.tensors[name]
            if tensor.dtype == "float32":
                found[name] = rng.uniform(0, 1, tensor.shape).astype(np.float32)
            else:
                found[name] = rng.integers(*tensor.limits, tensor.shape, endpoint=True)
        yield found


def real_inputs(path: Path, graph: Graph) -> Iterator[Values]:
    """Of models that are known by name."""
    (first, *_) = graph.inputs
    if path.name in mlperf.MODELS and (path.parent / mlperf.MODELS[path.name][1]).exists():
        for x in mlperf.samples(path.name, graph, path.parent)[:REAL]:
            yield {first: x}
    elif path.parent == digits.FOLDER:
        for image in digits.load_data()[1].images[:REAL]:
            tensor = graph.tensors[first]
            if tensor.dtype == "float32":
                yield {first: image[None].astype(np.float32) / 16}
            else:
                yield {first: image[None].astype(np.int64) * digits.PIXEL_SCALE + tensor.limits[0]}


def judge(path: Path) -> Iterator[Judgement]:
    """A judgement for each set of kernels of the model's runtime."""
    data, graph = read(path)
    inputs = [*real_inputs(path, graph), *random_inputs(graph, RANDOM)]
    kinds = litert.KERNELS if is_tflite(data) else ort.WAYS
    runtime = "LiteRT" if is_tflite(data) else "ONNX Runtime"
    for kind, reasons in kinds.items():
        lite = is_tflite(data)
        runner = litert.LitertRunner(data, kind) if lite else ort.OrtRunner(data, kind, graph)
        found = Judgement(path.name, f"{runtime}, {kind}", reasons)
        for values in inputs:
            found.take(graph, values, runner.run(graph, values))
        yield found


def judge_table(paths: list[Path], say: Callable[[str], None] = lambda line: None) -> list[str]:
    """Lines of the table in docs/judges.md; ``say`` gets each as it is made."""
    head = ["model", "runtime, kernels", "values", "differ", *SHORT.values(), "outputs"]
    lines = [_line(head), _line(["---"] * 2 + ["---:"] * (len(head) - 2))]
    for path in paths:
        for found in judge(path):
            total = found.total
            ends = f"{found.ends.differ:,} of {found.ends.values:,}"
            ends += f", {found.ends.worst} steps" if found.ends.differ else ""
            counts = [f"{total.reasons[reason]:,}" for reason in SHORT]
            words = [found.model, found.runtime, f"{total.values:,}", f"{total.differ:,}"]
            lines.append(_line([*words, *counts, ends]))
            say(lines[-1])
    return lines


def _line(words: list[str]) -> str:
    return f"| {' | '.join(words)} |"


def show(found: Judgement) -> None:
    """The nodes that differ, and the sum."""
    print(f"{found.model}: {found.runtime}")
    rows = [row for row in found.rows.values() if row.differ]
    for row in [*rows, found.total]:
        print(f"  {_name(row):<44} {row.differ:>7} of {row.values:>9} differ{_why(row)}")
    ends = found.ends
    print(f"  {'outputs end to end':<44} {ends.differ:>7} of {ends.values:>9} differ", end="")
    print(f" by up to {ends.worst} steps" if ends.differ else "")


def _name(row: JudgedNode) -> str:
    name = f"{row.operator} {row.node[-40:]}" if row.operator else row.node
    return name[:44]


def _why(row: JudgedNode) -> str:
    """Reasons and their counts."""
    words = [f"{n} {SHORT[k].strip('*')}" for k, n in row.reasons.items() if n]
    return f": {', '.join(words)}" if words else ""


def models() -> list[Path]:
    """The models of the table whose files exist."""
    published = [shared() / name for name in mlperf.MODELS]
    return [p for p in published if p.exists()] + [digits.FOLDER / name for name in digits.MODELS]


def floats(say: Callable[[str], None] = lambda line: None) -> list[str]:
    """Lines of the table of float models; ``say`` gets each as it is made."""
    measures = ["same class", "signal to noise", "at most", "mean"]
    head = ["float model", *measures, *(f"int8 file: {m}" for m in measures)]
    lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
    for cells in agreement.agreement_table(shared()):
        lines.append(_line(cells))
        say(lines[-1])
    return lines


def main(argv: list[str] | None = None) -> int:
    """See above."""
    options = registry.parse_command("judge", argv)
    tables = options.table or options.write or options.floats
    if (options.model is None) == (not tables):
        given = ("table", "floats", "write")
        others = command.any_of(command.option(name, True) for name in given)
        raise command.UsageError(f"expected a model, {others}")
    if options.model is None:
        wanted = [*mlperf.MODELS, *(n for n in agreement.PAIRS.values() if n)]
        missing = [n for n in wanted if not (shared() / n).exists()]
        if missing and options.write:
            raise command.UsageError(
                f"{shared() / missing[0]} is not there; OPENKPU_SHARED names the folder"
            )
        lines = floats(print) if options.floats else judge_table(models(), print)
        if options.write:
            marked.fill(PAGE, FLOATS if options.floats else TABLE, "\n".join(lines))
        return 0
    files.read_bytes(options.model, command.UsageError, files.LIMIT)
    worst = 0
    for found in judge(options.model):
        show(found)
        worst |= bool(found.total.reasons["none"])
    print("docs/judges.md says what explains a difference")
    return command.MISMATCH if worst else 0
