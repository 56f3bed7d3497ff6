# SPDX-License-Identifier: Apache-2.0
"""control and layer_decode in cycles, and with bits, that random layers rarely meet."""

import pytest

from openkpu_tb.simrun import run_bench
from tb.layer_decode.bench import PARTS


@pytest.mark.parametrize("sim", ["verilator"])
def test_control(sim: str) -> None:
    """Single cycles of the controller, among the neighbours of tb/control."""
    sources = ["rtl/control/*.v", "rtl/lib/*.v"]
    params, public = {"N_Y": 2, "N_Z": 2, "WBUF_ROWS": 64}, "tb/control/public.vlt"
    module = "tb.control_edges.edge_tests"
    run_bench(sim, "control", sources, module, params=params, public=public)


@pytest.mark.parametrize("sim", ["icarus"])
def test_layer_decode(sim: str) -> None:
    """Single bits of layer arguments."""
    sources = ["rtl/control/pool_check.v", "rtl/lib/flat_lines.v", "rtl/lib/ram_1r1w_async.v"]
    sources += [f"rtl/control/layer_{name}.v" for name in PARTS]
    run_bench(sim, "layer_decode", sources, "tb.control_edges.refusal_tests")
