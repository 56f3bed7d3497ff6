# SPDX-License-Identifier: Apache-2.0
"""The simulation that runs: is it a slow one, and random numbers of its seed."""

import cocotb
import numpy as np

SLOW = "icarus" in str(getattr(cocotb, "SIM_NAME", "")).lower()  # fewer and smaller runs


def rng(more: int = 0) -> np.random.Generator:
    """Random numbers of the simulation's seed, others for each ``more``."""
    return np.random.default_rng([cocotb.RANDOM_SEED & 0xFFFFFFFF, more])
