# SPDX-License-Identifier: Apache-2.0
"""The float digits network -> layers of the device, in the style of the patent.

Every layer writes signed bytes *before* ReLU (``signed_out``); the next one reads them signed and
its gate drops the negative ones (``signed_in``): ReLU costs nothing.  Weights are u8 with zero
point 128 (arg_x = -128), scaled per output channel; batch norm brings all channels to one
fixed-point scale and adds the bias; the activation table is one straight line that rounds to
signed bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.digits import PIXEL_SCALE
from openkpu.digits.float_model import forward, layers
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Network

FRACTION = 10  # bits of v below one step of the output
LOWEST, HIGHEST = -(1 << 35), (1 << 35) - 1
MUL_BITS = 22  # of a batch-norm multiplier, as compilers emit it


def straight_line(zero: int = 0) -> npt.NDArray[np.uint64]:
    """y = v / 2^FRACTION + zero, rounded and clamped to zero - 128..zero + 127.

    ``zero``: 0 for a layer that writes signed bytes, 128 for one that writes unsigned ones around
    their middle.  Entry 0 catches what lies below -128; entry 1 is the line; above the starts of
    the others there is nothing.
    """
    start = np.full(16, HIGHEST)
    start[0], start[1] = LOWEST, -128 << FRACTION
    mul = np.zeros(16, dtype=np.int64)
    mul[1] = 1
    return ActTable.make(start, mul, FRACTION, zero - 128).pack()


def batch_norm(
    scale: npt.NDArray[np.float64], bias: npt.NDArray[np.float64]
) -> npt.NDArray[np.uint64]:
    """Words of v = alu * scale + bias with the largest shift that keeps mul in MUL_BITS."""
    room = MUL_BITS - 1 - np.ceil(np.log2(np.abs(scale)))
    shift = np.clip(room, 0, 15).astype(np.int64)
    mul = np.rint(scale * 2.0**shift).astype(np.int64)
    return BatchNorm.make(mul, shift, np.rint(bias).astype(np.int64)).pack()


def quantise(params: dict[str, npt.NDArray], images: npt.NDArray[np.uint8]) -> Network:
    """The network image; ``images`` (training scans) set the ranges of the outputs."""
    outputs = forward(params, images)
    network = Network()
    c, h, w = images.shape[1:]
    step_in = 1 / (16 * PIXEL_SCALE)  # what one step of a pixel is worth
    names = layers(params)
    for i, name in enumerate(names):
        weight, bias = params[f"{name}_w"], params[f"{name}_b"]
        flat = weight.reshape(len(weight), -1)
        step_w = np.abs(flat).max(axis=1) / 127
        bytes_ = np.rint(flat / step_w[:, None]).astype(np.int64) + 128
        last = name == names[-1]
        # middle layers: only positive values live on; the last: both signs
        top = np.abs(outputs[name]).max() if last else outputs[name].max()
        step_out = top / 127
        step_v = step_out / (1 << FRACTION)
        is_conv = weight.ndim == 4
        arg = LayerArg.make(
            *(c, h, w, len(weight)),
            kernel=3 if is_conv else 1,
            pool=1 if is_conv else 0,
            fc=not is_conv,
            signed_in=int(i > 0),
            signed_out=1,
            arg_x=-128,
        )
        bn = batch_norm(step_in * step_w / step_v, bias / step_v)
        network.add(arg, bytes_.astype(np.uint8).reshape(-1), bn, straight_line())
        (c, h, w), step_in = arg.out_shape, step_out
    network.place()
    network.validate()
    return network
