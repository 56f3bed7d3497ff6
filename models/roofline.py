# SPDX-License-Identifier: Apache-2.0
"""The yardstick: fewest cycles that a layer or a network can take on a configuration.

roofline = max(multiplications needed / MACs of the array, bytes that must move / bytes a bus
cycle); efficiency = roofline / measured cycles.  A pooling task multiplies nothing: it reads its
map in pieces of 16 bytes, one a cycle.  For a network all sums are taken first, then the maximum:
weights may travel during earlier layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from .configs import Config
from .conv import needed_macs
from .layer import WORDS, LayerArg
from .params import BN_BYTES
from .pool_tasks import words_read

LIST_BYTES = WORDS * 8  # a layer argument of a task list


def map_bytes(shape: tuple[int, int, int]) -> int:
    """Bytes of a dense feature map."""
    return shape[0] * shape[1] * shape[2]


def layer_bytes(
    arg: LayerArg,
    *,
    eight_bit: bool = True,
    task_list: bool = False,
    reads_input: bool = False,
    writes_output: bool = False,
) -> int:
    """Bytes that one run of the layer must move over the bus.

    Weights, batch-norm words and activation table always; the layer words when they come from a
    task list; the maps only where they cross the bus (first and last layer of a network).
    """
    total = arg.weight_count * (1 if eight_bit else 2) + BN_BYTES * sum(arg.table_words)
    total += LIST_BYTES if task_list else 0
    total += map_bytes(arg.in_shape) if reads_input else 0
    return total + (map_bytes(arg.out_shape) if writes_output else 0)


def pieces(arg: LayerArg) -> int:
    """Pieces of 16 bytes that a pooling task reads; other layers: none."""
    return words_read(arg) if arg.pool_task else 0


def cycles(config: Config, macs: int, bus_bytes: int, pooled: int = 0) -> int:
    """Roofline cycles of so much work, rounded up; ``pooled``: ``pieces`` of pooling tasks."""
    return max(-(-macs // config.macs) + pooled, -(-bus_bytes // config.bus_bytes))


def layer_cycles(config: Config, arg: LayerArg, **traffic: bool) -> int:
    """Roofline cycles of one layer; ``traffic`` as in ``layer_bytes``."""
    return cycles(config, needed_macs(arg), layer_bytes(arg, **traffic), pieces(arg))


def network_cycles(
    config: Config, layers: Sequence[LayerArg], *, eight_bit: bool = True, task_list: bool = True
) -> int:
    """Roofline cycles of one inference: input and output maps cross the bus, others do not."""
    macs = sum(needed_macs(arg) for arg in layers)
    total = sum(layer_bytes(arg, eight_bit=eight_bit, task_list=task_list) for arg in layers)
    total += map_bytes(layers[0].in_shape) + map_bytes(layers[-1].out_shape)
    return cycles(config, macs, total, sum(map(pieces, layers)))


def efficiency(roofline: int, measured: int) -> float:
    """roofline / measured cycles."""
    return roofline / measured
