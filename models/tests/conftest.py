# SPDX-License-Identifier: Apache-2.0
"""What holds for every test of the models: its random numbers are its own."""

import zlib

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _own_numbers(request: pytest.FixtureRequest) -> None:
    """A module's generator begins anew, whatever other tests this process has run before."""
    rng = getattr(request.module, "RNG", None)
    if isinstance(rng, np.random.Generator):
        seed = zlib.crc32(request.node.nodeid.encode())
        rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
