# SPDX-License-Identifier: Apache-2.0
"""A pass that makes transposed convolutions ordinary ones.

A transposed convolution with stride s computes s interleaved results along each axis: the outputs
s * u + v of one phase v read pixels around u, each through every s-th tap of the kernel.  So a
phase is a convolution with stride 1 of the small map, and all of them together are one convolution
with s * s times the output channels, whose kernel is about s times smaller: with stride 2 a 2x2
kernel becomes 1x1, 3x3 becomes 2x2, and 4x4 becomes 3x3.  Phases with fewer taps have the weight 0
for the others.  Behind it channels become pixels, which is an index; a device layer behind that has
the host put them in order.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.form.graph import Conv, Graph, Move, Node, Tensor
from openkpu.compiler.form.rarer import Deconv


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis of a transposed convolution as phases: output s * u + v reads pixels around u."""

    taps: int  # of a phase
    first: int  # pixel that its first tap reads, less u
    after: int  # padding of the input behind its end
    count: int  # outputs of each phase
    reads: dict[int, tuple[int, int]]  # of a tap of the kernel: its phase v, and its place there

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, top: int, outputs: int) -> Axis:
        """``kernel``: the span of its taps, dilation included."""
        phase = {k: (k - top) % stride for k in range(kernel)}
        apart = {k: (v + top - k) // stride for k, v in phase.items()}
        first, last = min(0, *apart.values()), max(apart.values())
        taps, count = last - first + 1, ceil_div(outputs, stride)
        count = max(count, size - last)  # so that no padding is negative
        reads = {k: (phase[k], apart[k] - first) for k in phase}
        return cls(taps, first, last + count - size, count, reads)


def phases(graph: Graph) -> None:
    """Deconv -> Conv of all phases, channels to pixels."""
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _phases(graph, node) if isinstance(node, Deconv) else [node]
    graph.nodes = nodes


def _phases(graph: Graph, node: Deconv) -> list[Node]:
    x, y = (graph.tensors[n] for n in (node.inputs[0], node.outputs[0]))
    weights = spread(node)
    o, inner, *spans = weights.shape
    sy, sx = node.strides
    lines, columns = (
        Axis.of(*each) for each in zip(x.size, spans, node.strides, node.pads, y.size, strict=True)
    )
    made = np.zeros((o, sy, sx, inner, lines.taps, columns.taps), dtype=np.int64)
    made += node.w_zero[:, None, None, None, None, None]
    for ky in range(spans[0]):
        for kx in range(spans[1]):
            (vy, ty), (vx, tx) = lines.reads[ky], columns.reads[kx]
            made[:, vy, vx, :, ty, tx] = weights[:, :, ky, kx]
    count, (h, w) = o * sy * sx, (lines.count, columns.count)
    shapes = [
        (1, count, h, w),
        (o, sy, sx, h, w),
        (o, h, sy, w, sx),
        (1, o, h * sy, w * sx),
    ]
    names = []
    for shape in shapes:
        like = Tensor(graph.fresh(y.name), y.dtype, shape, y.scale, y.zero)
        names.append(graph.add_tensor(like).name)
    names_of = ("w_scale", "w_zero", "bias")
    each: dict[str, Any] = {n: np.repeat(getattr(node, n), sy * sx) for n in names_of}
    conv = Conv(
        *(node.name, node.operator, node.inputs, (names[0],)),
        weights=made.reshape(count, inner, lines.taps, columns.taps),
        **each,
        clamp=node.clamp,
        pads=(-lines.first, -columns.first, lines.after, columns.after),
        groups=node.groups,
    )
    hows: list[dict[str, Any]] = [
        {"how": "reshape"},
        {"how": "transpose", "axes": (0, 3, 1, 4, 2)},
        {"how": "reshape"},
        {"how": "slice", "starts": (0, 0, 0, 0), "steps": (1, 1, 1, 1)},
    ]
    ends = [*names[1:], y.name]
    moves = [
        Move(f"{node.name}/pixels{i}", "phases", (names[i],), (ends[i],), **how)
        for i, how in enumerate(hows)
    ]
    return [conv, *moves]


def spread(node: Deconv) -> npt.NDArray[np.int64]:
    """The weights with their dilation filled up by the weight 0."""
    o, inner, kh, kw = node.weights.shape
    (dy, dx) = node.dilation
    made = np.zeros((o, inner, (kh - 1) * dy + 1, (kw - 1) * dx + 1), dtype=np.int64)
    made += node.w_zero[:, None, None, None]
    made[:, :, ::dy, ::dx] = node.weights
    return made
