# SPDX-License-Identifier: Apache-2.0
"""Products of float16 matrices as layers (docs/kpu.md 1.12): their rules, and the golden model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.fp16 import HALF, multiply, out_sizes
from openkpu.layer.fields import LayerFields


def fp16_fault(arg: LayerFields) -> tuple[str, str] | None:
    """(error code, what is wrong) with the flags and sizes of a product; None: nothing.

    What holds for every layer (lines that are too long, places of the maps) is not looked at.
    """
    if arg.depth_wise_layer or arg.fc or arg.elementwise or arg.pool_task:
        return "BAD_FLAGS", "fp16 excludes depthwise, fc, elementwise and pool_task"
    if arg.in_xor or arg.w_xor or arg.out32:
        return "BAD_FLAGS", "a product of float16 has neither in_xor nor w_xor nor out32"
    if arg.kernel_type:
        return "BAD_KERNEL", "a product of float16 has kernel_type 0"
    if arg.pool_type:
        return "BAD_POOL", "a product of float16 has pool_type 0"
    _, h, w = arg.in_shape
    _, oh, ow = arg.out_shape
    if w % 2 or (h > 1 and w % 64):
        return "BAD_SIZE", f"{h} x {w}: float16 in one line, or in lines of a multiple of 64 bytes"
    if (oh, ow) not in out_sizes(h, w, bool(arg.fp32)) or ow > 960:
        return "BAD_SIZE", f"output {oh} x {ow} does not follow from {h} x {w} bytes of float16"
    return None


def task(arg: LayerFields, x: npt.NDArray, weights: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Output bytes (M, oh, ow) of a legal layer: map of bytes (K, h, w), weights as bytes."""
    b = np.ascontiguousarray(x).view(np.uint8).reshape(arg.i_ch_num, -1).view(HALF)
    a = np.ascontiguousarray(weights).view(np.uint8).view(HALF).reshape(arg.o_ch_num, -1)
    return multiply(a, b, bool(arg.fp32)).view(np.uint8).reshape(arg.out_shape)
