# SPDX-License-Identifier: Apache-2.0
"""The other half of C6: a build without the gate (GATE=0)."""

import cocotb

from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.recorder import option
from openkpu_tb.device.device import Device
from openkpu_tb.handle import Handle


@cocotb.test()
async def ungated_operands_toggle(tb: Handle) -> None:
    """A build without the gate: operands toggle for nothing, the results are the same.

    The other half of C6: the counter that has to stay at 0 there can count.
    """
    assert option("GATE", 1) == 0
    device = Device(tb, seed=cocotb.RANDOM_SEED)
    await device.reset()
    run = (await recorder.stream(device, networks.small_case(2))).exact()
    wanted = run.counters["macs_issued"] - run.counters["macs_gated"]
    assert run.products == wanted and run.idle_toggles > 0
    assert run.idle_toggles > run.toggles // 10, f"{run.idle_toggles} of {run.toggles}"
