# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights have 16 bits, chosen within a budget of predicted cycles.

A layer's loss that its weights cause is what 16 bits would take away from its noise (``precision``:
*own* less *wide*).  Within a budget those with the largest are widened first, as long as the task
lists take no more cycles than that; one that would take more is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from openkpu.compiler.build import build_program
from openkpu.compiler.calibration.calibrate import Calibrated
from openkpu.compiler.calibration.precision import measure_precision
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Conv, Dense, Graph
from openkpu.compiler.form.rarer import Deconv
from openkpu.compiler.lowering.costs import UNABLE, lists_cycles
from openkpu.compiler.room import fitting_program
from openkpu.configs import Config
from openkpu.words import option

LEAST_GAIN = 0.1  # dB of a layer below which it is not widened
MOST_TRIALS = 24  # programs that are predicted
MORE = 4  # scales 8-bit numbers beyond 8 bits; only the cycles of the result are used


def within_budget(found: Calibrated, config: Config, one_list: bool = False) -> Calibrated:
    """The model with the layers widened that its request's budget of cycles allows.

    ``one_list`` as for ``build_program``.
    """
    percent = found.request.wide
    assert isinstance(percent, float), "a request with a budget"
    if config.weight_bits < 16:
        what = f"configuration {config.name} has weight_bits = 8, expected one with 16"
        raise CompileError(f"{option('wide')}: {what}", where=found.name)
    before = _cycles(found.graph, (), config, one_list)
    limit, after, least = before * (1 + percent / 100), before, UNABLE
    chosen: tuple[str, ...] = ()
    gains = []
    for row in measure_precision(found).rows:
        own, wide = row.decibels(row.own), row.decibels(row.wide)
        if own is not None and wide is not None and wide >= own + LEAST_GAIN and row.signal:
            gains.append(((row.own - (row.wide or 0.0)) / row.signal, row.node))
    names = [name for _, name in sorted(gains, key=lambda g: -g[0])]
    every = _cycles(found.graph, names, config, one_list)
    if every <= limit:
        chosen, after, names = tuple(names), every, []
    for name in names[:MOST_TRIALS]:
        cycles = _cycles(found.graph, (*chosen, name), config, one_list)
        least = min(least, cycles)
        if cycles <= limit:
            chosen, after = (*chosen, name), cycles
    words = f"{after} cycles predicted on {config.name}, {before} with weights of 8 bits"
    if not chosen:
        words = "no layer gains by weights of 16 bits"
        if gains and least < UNABLE:
            words = f"no layer, the first one would take {100 * (least / before - 1):.1f}% more"
        elif gains:
            words = "no layer that gains can have weights of 16 bits"
    made = found.widened(chosen) if chosen else found
    return dataclasses.replace(made, chosen=f"{option('wide', f'{percent:g}%')}: {words}")


def _cycles(graph: Graph, names: Iterable[str], config: Config, one_list: bool) -> int:
    """Predicted cycles of all task lists with weights of 16 bits in these nodes; no number that is
    reached where it cannot be compiled."""
    wide, nodes = set(names), []
    for node in graph.nodes:
        if node.name in wide and isinstance(node, (Conv, Dense, Deconv)):
            bias = np.clip(node.bias * MORE, -(1 << 31) + 1, (1 << 31) - 1)
            numbers = {"weights": node.weights * MORE, "w_zero": node.w_zero * MORE, "bias": bias}
            node = dataclasses.replace(node, **numbers, w_scale=node.w_scale / MORE)
        nodes.append(node)
    try:
        own = dataclasses.replace(graph, nodes=nodes)
        make = build_program if wide else fitting_program
        program = make(own, config, one_list)
    except CompileError:
        if not wide:
            raise
        return UNABLE
    return lists_cycles(config, [part.network for part in program.device_parts])
