# SPDX-License-Identifier: Apache-2.0
"""Where a running bench begins to count its functional bins."""

import os

from openkpu_tb.coverage.instrument import BINS
from openkpu_tb.handle import Handle


def observe(tb: Handle) -> None:
    """Fill the functional bins from what happens on ``tb``, if this simulation is to leave them."""
    if os.environ.get(BINS):
        from openkpu_tb.coverage import collector  # needs cocotb-coverage

        collector.attach(tb)
