# SPDX-License-Identifier: Apache-2.0
"""Nodes of the rarer operators; ``graph`` has the others, and says how a node rounds.

| node | r |
|---|---|
| Deconv | (sum over c, ky, kx of (x[c, i, j] - zx) * (w[o, c, ky, kx] - zw[o]) + bias[o]) * sx * sw[o] / sy, over all i * sy + ky * dy - top = line, columns alike |
| Prelu | (x - zx) * sx / sy, below zero times the slope of its channel |
| Product | (sum over k of (a - za) * (b - zb)) * sa * sb / sy, of two computed tensors |
"""  # noqa: E501

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Node


@dataclasses.dataclass
class Deconv(Node):
    """Transposed convolution (1, C, H, W) -> (1, O, oh, ow); the output's shape is its tensor's."""

    weights: npt.NDArray[np.int64]  # (O, C / groups, kh, kw), the stored integers
    w_scale: npt.NDArray[np.float64]  # (O,)
    w_zero: npt.NDArray[np.int64]  # (O,)
    bias: npt.NDArray[np.int64]  # (O,), in steps of sx * sw[o]
    clamp: tuple[int, int]
    strides: tuple[int, int] = (1, 1)  # lines, columns
    pads: tuple[int, int] = (0, 0)  # lines and columns of the full result left out in front
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def kernel(self) -> tuple[int, int]:
        return self.weights.shape[2], self.weights.shape[3]

    def full_size(self, height: int, width: int) -> tuple[int, int]:
        """Lines and columns that some input reaches, nothing left out."""
        high, wide = (
            (n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(
                (height, width), self.strides, self.kernel, self.dilation, strict=True
            )
        )
        return high, wide

    def describe(self) -> str:
        kh, kw = self.kernel
        words = [f"transposed {kh}x{kw}", f"stride {self.strides}", f"pads {self.pads}"]
        words += [f"dilation {self.dilation}"] if self.dilation != (1, 1) else []
        words += [f"groups {self.groups}"] if self.groups > 1 else []
        return ", ".join([*words, f"clamp {self.clamp}"])


@dataclasses.dataclass
class Prelu(Node):
    """A leaky ReLU with a slope for each index of ``axis``."""

    slopes: npt.NDArray[np.float64]  # (C,), taken exactly
    axis: int = 1
    step: float = 0.0  # the slopes are multiples of it, where the model has integers; 0: floats

    def describe(self) -> str:
        return f"slopes from {self.slopes.min():.4g} to {self.slopes.max():.4g}"


@dataclasses.dataclass
class Product(Node):
    """Matrix product of two computed tensors: (..., M, K) and (..., K, N) -> (..., M, N)."""

    clamp: tuple[int, int]
    turned: bool = False  # the second one is (..., N, K)

    def describe(self) -> str:
        return f"{'second one turned, ' * self.turned}clamp {self.clamp}"
