# SPDX-License-Identifier: Apache-2.0
"""What layers take on a configuration, predicted (docs/performance.md), so that ways compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
