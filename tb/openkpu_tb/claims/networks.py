# SPDX-License-Identifier: Apache-2.0
"""Networks for the claims: random tables in fixed shapes, and the digits.

The shapes are made for configuration nano with 64 rows of weight buffer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import digits
from openkpu.generators.generate import random_layer
from openkpu.layer.layout import Layout
from openkpu.network.network import Network
from openkpu_tb.device.simulation import rng

Bytes = npt.NDArray[np.uint8]


@dataclass
class ClaimCase:
    """A network with its images (n, C, H, W)."""

    name: str
    network: Network
    images: Bytes
    kept: bool  # all weights fit the buffer: a stream reads them once


def conv(o: int, pool: int = 0, kernel: int = 3, **more: Any) -> dict[str, Any]:
    """A convolution for ``chain``."""
    return {"o": o, "pool": pool, "kernel": kernel, "depthwise": False, "fc": False, **more}


def dense(o: int) -> dict[str, Any]:
    """A fully connected layer for ``chain``."""
    return {"o": o, "pool": 0, "kernel": 1, "depthwise": False, "fc": True}


def chain(
    name: str,
    shape: tuple[int, int, int],
    layers: list[dict[str, Any]],
    count: int,
    *,
    kept: bool = True,
    apart: bool = False,
) -> ClaimCase:
    """Layers one after the other, each made for what the one before gives.

    ``apart``: every map has rows of the AI RAM for itself; otherwise maps lie in turn at the bottom
    and at the top.
    """
    random = rng()
    images = random.integers(0, 256, (count, *shape), dtype=np.uint8)
    network, x, signed, row = Network(), images[0], False, 0
    for spec in layers:
        layer = random_layer(random, x=x, eight_bit=True, signed_in=signed, **spec)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
    network.place(keep_input=False)
    if apart:
        placed = []
        for arg in network.layers:
            after = row + Layout(*arg.in_shape).rows
            placed.append(arg.replace(image_src_addr=row, image_dst_addr=after))
            row = after
        network.layers = placed
    network.validate()
    return ClaimCase(name, network, images, kept)


def small_case(count: int) -> ClaimCase:
    """Weights fit the buffer; ends in fully connected layers."""
    layers = [conv(4, pool=1, signed_out=True), conv(6, signed_out=True), dense(5), dense(4)]
    return chain("small", (2, 8, 8), layers, count)


def large(count: int) -> ClaimCase:
    """Weights do not fit the buffer of 64 rows; ends in fully connected layers."""
    layers = [conv(4, pool=1), conv(10), dense(8), dense(20)]
    return chain("large", (2, 6, 6), layers, count, kept=False)


def convolutions(count: int) -> ClaimCase:
    """No fully connected layer; images larger than the pixel FIFO, in a place of their own."""
    layers = [conv(4, pool=1), conv(6), conv(3, kernel=1)]
    return chain("convolutions", (2, 6, 20), layers, count, apart=True)


def jam(count: int) -> ClaimCase:
    """Images that take long to come; layers of more channels than there are parameters.

    While the array waits for the pixels of the second image the loaders stall: both FIFOs fill up.
    """
    layers = [conv(2, kernel=1, pool=3), conv(1016, kernel=1, pool=3), conv(24, kernel=1)]
    layers += [conv(2, kernel=1), conv(4, kernel=1)]
    for layer in layers:  # weights in one load: the traffic is the same for every seed
        layer["per_load"] = layer["o"]
    return chain("jam", (2, 20, 48), layers, count, kept=False)


def tail(count: int) -> ClaimCase:
    """Ends in a layer whose weights fill buffer and FIFO, and then some."""
    return chain("tail", (2, 6, 6), [conv(4, pool=1), dense(50)], count, kept=False)


def real(count: int) -> ClaimCase:
    """The digits network with real scans; its weights do not fit."""
    return ClaimCase("digits", digits.load_network(), digits.load_data()[1].pixels[:count], False)
