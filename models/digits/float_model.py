# SPDX-License-Identifier: Apache-2.0
"""The digits CNN in floating point.

conv 3x3 1->16, ReLU, max 2x2 -> conv 3x3 16->32, ReLU, max 2x2 -> fc 128->48, ReLU -> fc 48->10.
Input (n, 1, 8, 8), scans scaled to 0..1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
SHAPES = {
    "conv1": (16, 1, 3, 3),
    "conv2": (32, 16, 3, 3),
    "fc1": (48, 128),
    "fc2": (10, 48),
}
LAYERS = tuple(SHAPES)


def windows(x: Array) -> Array:
    """3x3 windows with zero padding: (n, C, H, W) -> (n, H, W, C*9) in c, ky, kx order."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return view.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def conv(x: Array, weight: Array, bias: Array) -> Array:
    """Same-size 3x3 convolution: (n, C, H, W) -> (n, O, H, W)."""
    y = windows(x) @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2)


def max_pool(x: Array) -> Array:
    """2x2, stride 2."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def forward(params: dict[str, Array], images: npt.NDArray[np.uint8]) -> dict[str, Array]:
    """Outputs of every layer before ReLU and after pooling; "fc2" holds the logits (n, 10).

    ``images``: scans (n, 1, 8, 8), 0..16.  Max pooling commutes with ReLU, so the quantised
    network, which leaves ReLU to the next layer's gate, computes the same function.
    """
    x = images / 16.0
    out = {}
    for name in LAYERS:
        weight, bias = params[f"{name}_w"], params[f"{name}_b"]
        if weight.ndim == 4:
            out[name] = max_pool(conv(x, weight, bias))
        else:
            out[name] = x.reshape(len(x), -1) @ weight.T + bias
        x = np.maximum(out[name], 0)
    return out


def predict(params: dict[str, Array], images: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Classes (n,)."""
    return forward(params, images)["fc2"].argmax(axis=1)
