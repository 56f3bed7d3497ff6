# SPDX-License-Identifier: Apache-2.0
"""The yardstick: fewest cycles that a layer or a network can take on a configuration.

roofline = max(multiplications needed / MACs of the array, bytes that must move / bytes a bus
cycle); efficiency = roofline / measured cycles.  A pooling task multiplies nothing: it reads its
map in pieces of 16 bytes, one a cycle; a product of float16 takes the lanes that the build has for
it.  For a network all sums are taken first, then the maximum:
weights may travel during earlier layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import BN_BYTES
from openkpu.configs import Config
from openkpu.layer.argument import LIST_BYTES, LayerArg
from openkpu.layer.conv import needed_macs
from openkpu.layer.layout import map_bytes
from openkpu.layer.pool_tasks import words_read


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
    total = arg.weight_count * arg.weight_size(eight_bit) + BN_BYTES * sum(arg.table_words)
    total += LIST_BYTES if task_list else 0
    total += map_bytes(arg.in_shape) if reads_input else 0
    return total + (map_bytes(arg.out_shape) if writes_output else 0)


def array_macs(arg: LayerArg) -> int:
    """Multiplications of the array; those of a product of float16 are counted in its cycles."""
    return 0 if arg.fp16 else needed_macs(arg)


def cycles_beside(config: Config, arg: LayerArg) -> int:
    """Cycles of what goes beside the array: pieces of 16 bytes that a pooling task reads, steps of
    the lanes in a product of float16; other layers: none."""
    if arg.fp16:
        return ceil_div(needed_macs(arg), max(1, config.fp16_lanes))
    return words_read(arg) if arg.pool_task else 0


def roofline_cycles(config: Config, macs: int, bus_bytes: int, more: int = 0) -> int:
    """Roofline cycles of so much work, rounded up; ``more``: those of tasks beside the array."""
    return max(ceil_div(macs, config.macs) + more, ceil_div(bus_bytes, config.bus_bytes))


def layer_cycles(config: Config, arg: LayerArg, **traffic: bool) -> int:
    """Roofline cycles of one layer; ``traffic`` as in ``layer_bytes``."""
    return roofline_cycles(
        config, array_macs(arg), layer_bytes(arg, **traffic), cycles_beside(config, arg)
    )


def network_cycles(
    config: Config, layers: Sequence[LayerArg], *, eight_bit: bool = True, task_list: bool = True
) -> int:
    """Roofline cycles of one inference: its input and output cross the bus, and the other maps that
    layers load from storage or store there."""
    macs = sum(array_macs(arg) for arg in layers)
    total = sum(
        layer_bytes(
            arg,
            eight_bit=eight_bit,
            task_list=task_list,
            reads_input=bool(arg.load_map),
            writes_output=bool(arg.store_map),
        )
        for arg in layers
    )
    total += map_bytes(layers[0].in_shape) + map_bytes(layers[-1].out_shape)
    return roofline_cycles(config, macs, total, sum(cycles_beside(config, arg) for arg in layers))


def efficiency(roofline: int, measured: int) -> float:
    """roofline / measured cycles."""
    return roofline / measured
