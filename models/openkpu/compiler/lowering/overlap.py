# SPDX-License-Identifier: Apache-2.0
"""A pool over the whole map behind a convolution that waits for its weights: the rule is two parts.

The pool needs no bus, and a late convolution of many channels little else.  So the convolution's
output channels are computed in two layers, and the pool of the first part runs while the weights of
the second one arrive.  Done where the whole list is predicted to be faster.
"""

from __future__ import annotations

import dataclasses

from openkpu.compiler.lowering.device import Spec
from openkpu.compiler.lowering.lower import Unable
from openkpu.compiler.lowering.place import network_of
from openkpu.configs import Config
from openkpu.prediction.cycles_model import predict_network

PARTS = (1 / 2, 3 / 4, 7 / 8)  # of the channels, in the first layer
GROUP = 16  # channels that both parts are multiples of


def moved_apart(specs: list[Spec], config: Config) -> list[Spec]:
    """The same layers, or with a convolution and its pool in two parts."""
    best, least = specs, None
    for number in range(len(specs) - 1):
        if not _fits(specs, number, config):
            continue
        for share in PARTS:
            first = int(specs[number].arg.o_ch_num * share) // GROUP * GROUP
            if not 0 < first < specs[number].arg.o_ch_num:
                continue
            made = [*specs[:number], *_halves(specs, number, first), *specs[number + 2 :]]
            least = _cycles(specs, config) if least is None else least
            if (cycles := _cycles(made, config)) < least:
                best, least = made, cycles
    return best


def _cycles(specs: list[Spec], config: Config) -> int:
    try:
        return predict_network(config, network_of(specs, [], config.ai_ram_rows)).cycles
    except Unable:
        return 1 << 60


def _fits(specs: list[Spec], number: int, config: Config) -> bool:
    """A full convolution whose weights take longer than its work, and a pool of all of its map."""
    conv, pool = specs[number], specs[number + 1]
    arg = conv.arg
    whole = pool.arg.pool_all and pool.src == conv.dst and not conv.stores
    readers = [s for s in specs if conv.dst.buffer in (s.src.buffer, s.src2 and s.src2.buffer)]
    if not whole or conv.given or arg.depthwise or arg.fc or arg.pool_task or len(readers) > 1:
        return False
    work = arg.weight_count * arg.o_col_high * arg.o_row_wid / config.macs
    return arg.weight_count / config.bus_bytes > work


def _halves(specs: list[Spec], number: int, first: int) -> list[Spec]:
    """Convolution and pool of the first channels, then of the others."""
    conv, pool = specs[number], specs[number + 1]
    o, found = conv.arg.o_ch_num, []
    for low, high in ((0, first), (first, o)):
        part, mean = conv.dst.part(low, high - low), pool.dst.part(low, high - low)
        taps = conv.arg.taps
        found.append(
            dataclasses.replace(
                conv,
                arg=conv.arg.replace(o_ch_num=high - low, **_sizes(part.shape)).with_loads(True),
                weights=conv.weights[low * taps : high * taps],
                bn=conv.bn[low:high],
                dst=part,
                loads=conv.loads if not low else "",
            )
        )
        channels = {"i_ch_num": high - low, "o_ch_num": high - low, **_sizes(mean.shape)}
        found.append(
            dataclasses.replace(pool, arg=pool.arg.replace(**channels), src=part, dst=mean)
        )
    return found


def _sizes(shape: tuple[int, int, int]) -> dict[str, int]:
    c, h, w = shape
    return {"dma_total_byte": c * h * w}
