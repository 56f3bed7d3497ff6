# SPDX-License-Identifier: Apache-2.0
"""What layers take on a configuration, predicted (docs/performance.md), so that ways compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from openkpu.compiler.form.graph import Node
from openkpu.compiler.lowering import place
from openkpu.compiler.lowering.device import Spec
from openkpu.compiler.lowering.lower import State, Unable
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.network.network import Network, NetworkError
from openkpu.prediction.cycles_model import predict_network

UNABLE = 1 << 60


def list_cycles(config: Config, args: Sequence[LayerArg]) -> int:
    """Cycles of these layers in one list, input and result included; UNABLE for what is none."""
    network = Network()
    try:
        for arg in args:
            bn, act = (np.zeros(n, np.uint64) for n in arg.table_words)
            network.add(arg, np.zeros(arg.weight_count, np.uint8), bn, act)
        network.place(config.ai_ram_rows, keep_input=False)
        return predict_network(config, network).cycles
    except (LayerError, NetworkError):
        return UNABLE


def lists_cycles(config: Config, lists: Iterable[Network]) -> int:
    """Cycles of task lists, one after the other."""
    return sum(predict_network(config, network).cycles for network in lists)


def taken(config: Config, specs: Sequence[Spec]) -> int:
    """Cycles of layers as a list of their own; UNABLE where they do not fit the configuration."""
    copies = [dataclasses.replace(s, loads="", stores="", constant=None) for s in specs]
    if not copies:
        return 0
    try:
        network = place.network_of(copies, [], config.ai_ram_rows)
        return predict_network(config, network).cycles
    except (LayerError, NetworkError, Unable):
        return UNABLE


def fewest(state: State, node: Node, ways: Sequence[Callable[[State, Any], None]]) -> None:
    """Lower a node in the way that is predicted to take fewest cycles, the first one of equals.

    A way that raises Unable is none; where all are, the last one's Unable counts.
    """
    found, failure, mark = [], Unable("no way"), state.mark()
    for way in ways:
        before = len(state.specs)
        try:
            way(state, node)
            found.append((taken(state.config, state.specs[before:]), way))
        except Unable as error:
            failure = error
        state.back(mark)
        mark = state.mark()
    if not found:
        raise failure
    min(found, key=lambda f: f[0])[1](state, node)
