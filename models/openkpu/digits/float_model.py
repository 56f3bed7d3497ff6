# SPDX-License-Identifier: Apache-2.0
"""The digits CNNs in floating point: each convolution 3x3 with max 2x2 behind it, ReLU in between.

Small (the main job): conv 1->16 -> conv 16->32 -> fc 128->48 -> fc 48->10 on scans (n, 1, 8, 8).
Large (68 MMAC, for streams): conv 1->16->32->64->128->128, fc 2048->10 on (n, 1, 128, 128).
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
LARGE_SHAPES = {
    "conv1": (16, 1, 3, 3),
    "conv2": (32, 16, 3, 3),
    "conv3": (64, 32, 3, 3),
    "conv4": (128, 64, 3, 3),
    "conv5": (128, 128, 3, 3),
    "fc": (10, 2048),
}


def layers(params: dict[str, Array]) -> list[str]:
    """Names of a network's layers, in order."""
    return [key[:-2] for key in params if key.endswith("_w")]


def windows(x: Array) -> Array:
    """3x3 windows with zero padding: (n, C, H, W) -> (n, H, W, C*9) in c, ky, kx order."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return view.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def conv3x3(x: Array, weight: Array, bias: Array) -> Array:
    """Same-size 3x3 convolution: (n, C, H, W) -> (n, O, H, W)."""
    y = windows(x) @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2)


def max_pool(x: Array) -> Array:
    """2x2, stride 2."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def forward(params: dict[str, Array], images: npt.NDArray[np.uint8]) -> dict[str, Array]:
    """Outputs of every layer before ReLU and after pooling; the last holds the logits (n, 10).

    ``images``: (n, 1, H, W), 0..16.  Max pooling commutes with ReLU, so the quantised
    network, which leaves ReLU to the next layer's gate, computes the same function.
    """
    x = images / params["conv1_w"].dtype.type(16)
    out = {}
    for name in layers(params):
        weight, bias = params[f"{name}_w"], params[f"{name}_b"]
        if weight.ndim == 4:
            out[name] = max_pool(conv3x3(x, weight, bias))
        else:
            out[name] = x.reshape(len(x), -1) @ weight.T + bias
        x = np.maximum(out[name], 0)
    return out


def predict_classes(
    params: dict[str, Array], images: npt.NDArray[np.uint8]
) -> npt.NDArray[np.intp]:
    """Classes (n,)."""
    return forward(params, images)[layers(params)[-1]].argmax(axis=1)
