# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 with random weights, of any input size: what tests of bands compile."""

from __future__ import annotations

from models.tests.compiler.compiled_graphs import Maker
from openkpu.compiler.form.graph import Graph, Tensor

# expansion, output channels, repeats, stride of the first: the published table
BLOCKS = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
FIRST, LAST = 32, 1280


def mobilenet_v2(size: int = 224, classes: int = 1000, seed: int = 61) -> Graph:
    """The graph: residual sums, ReLU6 as clamps of 8-bit numbers, global average, classes."""
    m = Maker(seed)
    x = relu6(m, m.input(1, 3, size, size), FIRST, (3, 3), (2, 2))
    for expansion, outputs, repeats, stride in BLOCKS:
        for number in range(repeats):
            x = block(m, x, expansion, outputs, 1 if number else stride)
    x = relu6(m, x, LAST, (1, 1))
    x = m.pool(x, "average", (x.shape[2], x.shape[3]))
    return m.done(m.dense(m.move([x], (1, LAST), "reshape"), classes))


def block(m: Maker, x: Tensor, expansion: int, outputs: int, stride: int) -> Tensor:
    inner, channels = x, x.shape[1] * expansion
    if expansion > 1:
        inner = relu6(m, inner, channels, (1, 1))
    inner = relu6(m, inner, channels, (3, 3), (stride, stride), channels)
    y = m.conv(inner, outputs, (1, 1))
    if y.shape != x.shape:
        return y
    return m.both("add", x, y, scale=float(x.scale or 1) * 1.5)


def relu6(
    m: Maker,
    x: Tensor,
    outputs: int,
    kernel: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Tensor:
    """A convolution limited to the upper half of its bytes: there 0 to 6 lies."""
    y = m.conv(x, outputs, kernel, strides, groups=groups, clamp=(-20, 127))
    return y
