# SPDX-License-Identifier: Apache-2.0
"""Rows of the AI RAM in which weights may wait (AI_SPARE_ROWS), where that saves cycles.

Weights that waited have crossed the AI RAM twice. That is worth it for a model whose bytes need
more cycles of the bus than its multiplications need of the array (docs/performance.md 4): its wide
layers then leave the bus idle, and its narrow ones wait for it. In any other model the weight
buffer is enough, and these accesses would only delay those of the array.
"""

from __future__ import annotations

from collections.abc import Sequence

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.kmodel.program import Program, layer_arguments, moved_parts
from openkpu.layer.argument import LayerArg
from openkpu.network.kept import spare_rows
from openkpu.network.network import Network
from openkpu.prediction.roofline import array_macs, cycles_beside, layer_bytes

NONE = (0, 0)


def rows_of_network(config: Config, network: Network) -> tuple[int, int]:
    """(first row, rows) for a task list; NONE where they would save nothing."""
    return rows_of_layers(config, network.layers, network.kept_parts(), eight_bit=network.eight_bit)


def rows_of_layers(
    config: Config,
    layers: Sequence[LayerArg],
    kept: Sequence[tuple[int, int]] = (),
    *,
    eight_bit: bool,
) -> tuple[int, int]:
    """The same for the layers of a list; ``kept``: parts (first row, rows) with kept weights."""
    free = spare_rows(layers, config.ai_ram_rows, kept)
    bus = sum(layer_bytes(arg, eight_bit=eight_bit) for arg in layers)
    return free if _pays(config, layers, bus) else NONE


def rows_of_programs(config: Config, programs: Sequence[Program]) -> tuple[int, int]:
    """(first row, rows) for all programs of a K210 model; NONE where they would save nothing."""
    args = layer_arguments(programs)
    free = spare_rows(args, config.ai_ram_rows, moved_parts(programs))
    layers = [op for program in programs for run in program.segments() for op in run]
    bus = sum(op.batches * layer_bytes(op.arg, eight_bit=op.eight_bit) for op in layers)
    return free if _pays(config, args, bus) else NONE


def _pays(config: Config, layers: Sequence[LayerArg], bus_bytes: int) -> bool:
    """Whether parameters alone need more cycles of the bus than the layers need of the array."""
    if not config.weight_ahead or not layers:
        return False
    busy = ceil_div(sum(map(array_macs, layers)), config.macs)
    busy += sum(cycles_beside(config, arg) for arg in layers)
    return ceil_div(bus_bytes, config.bus_bytes) > busy
