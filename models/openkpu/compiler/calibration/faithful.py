# SPDX-License-Identifier: Apache-2.0
"""Does the network that is quantised compute what the file computes?

Opsets are converted, batches become single inferences, and operators are spelled in others before
anything is quantised (``prepare``). Each of these steps can lose a meaning, and the report compares
with the network behind them. So the file itself runs once in ONNX Runtime, on samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.prepare import fix_sizes
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.onnx import file

LEAST_DB = 30.0  # files of float16 have about 60
SMALL = 1e-4  # of the greatest number: not looked at
FAR = -1e5  # what masks put below it may lie anywhere there (``spelling.masks``)


def check_faithful(
    net: Net,
    data: bytes,
    name: str,
    samples: Sequence[Values],
    shape: Sequence[int] | None = None,
    folder: Path | None = None,
    ends: Sequence[str] = (),
) -> None:
    """CompileError where a result on samples is not the file's; the rest as for ``prepared``."""
    parsed = file.parse_onnx(data, name, shape, folder, ends)
    model = file.load_onnx(data, name, folder, ends, as_written=True)
    batch = parsed.batch
    fix_sizes(model, {v.name: (v.shape[0] * batch, *v.shape[1:]) for v in parsed.inputs})
    given = [samples[i % len(samples)] for i in range(batch)]
    feeds = {v.name: np.concatenate([s[v.name] for s in given]) for v in parsed.inputs}
    try:
        want = _results(model, feeds)
    except Exception:  # what ONNX Runtime cannot run as it is, there is nothing to compare with
        return
    runner = FloatRunner(net, net.floats, name)
    found = [runner.run(sample) for sample in given]
    for output in net.outputs:
        apart = _apart(want[output], [np.asarray(one[output]) for one in found])
        if apart and batch > 1:
            raise CompileError(
                f"it mixes the {batch} inferences of a batch (output {output!r}: {apart}), expected"
                " results that depend on one inference each; a model with a batch of 1 runs",
                where=name,
            )
        if apart:
            raise CompileError(
                f"output {output!r} would be another than in ONNX Runtime before anything is"
                f" quantised: {apart}; expected a model whose operators keep their meaning in a"
                " later opset",
                where=name,
            )


def _results(model: Any, feeds: Values) -> dict[str, npt.NDArray]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4  # an error is raised
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, map(np.asarray, session.run(None, feeds)), strict=True))


def _apart(want: npt.NDArray, found: Sequence[npt.NDArray]) -> str:
    """How a result differs; "" where it does not."""
    single = found[0].shape
    both = f"{'x'.join(map(str, want.shape))} there, {'x'.join(map(str, single))} for one inference"
    if len(found) == 1:
        mine = found[0]
    elif not single or single[0] != 1:
        return both
    else:
        mine = np.concatenate(found)
    if mine.shape != want.shape:
        return both
    if want.dtype.kind != "f":
        off = float((mine != want).mean()) if want.size else 0.0
        return f"{100 * off:.0f} % of its numbers differ" if off > 1 / 2 else ""
    masked = want < FAR
    if (mine[masked] >= FAR).any():
        return "what a mask puts far below the others is not"
    known = np.isfinite(want) & ~masked  # a result that is finite there alone is apart
    one, two = want[known].astype(np.float64), mine[known].astype(np.float64)
    error = np.abs(one - two)
    most, far = np.abs(one).max(initial=0.0), error.max(initial=0.0)
    if far <= SMALL * most or (error**2).sum() <= (one**2).sum() * 10 ** (-LEAST_DB / 10):
        return ""
    return f"numbers differ by up to {far:.3g}, of up to {most:.3g}"
