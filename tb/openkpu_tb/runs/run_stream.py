# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of streams: several runs of networks over images in one process."""

from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import ClockCycles

from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout
from openkpu_tb.device.events import Say
from openkpu_tb.device.inference_stream import StreamRun, run_one_by_one, run_stream
from openkpu_tb.device.trace import read_trace
from openkpu_tb.runs.requests import StreamRequest

# what DISTURB sets: chances in 256 of wait states, lost grants, RETRY, SPLIT, a rival master
DISTURBED = {"wait_prob": 40, "loss_prob": 20, "retry_prob": 6, "split_prob": 6, "rival_prob": 40}


async def run_streams(device: Device, request: StreamRequest, say: Say) -> None:
    """Every run of the request; an event "stream" for each."""
    tb = device.tb
    for index, run in enumerate(request.runs):
        say("start", index=index)
        tb.cfg_rd_wait.value = tb.cfg_wr_wait.value = run.wait
        tb.cfg_seed.value = request.seed
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = value if run.disturb else 0
        tb.trace_on.value = 1
        result, failure = None, None
        limit = request.limit * (1 + run.wait) * (8 if run.disturb else 1)
        try:
            if run.continuous:
                result = await run_stream(
                    device,
                    run.network,
                    run.images,
                    limit=limit,
                    spare=run.spare,
                    on_inference=lambda n, index=index: say("inference", index=index, number=n),
                )
            else:
                result = await run_one_by_one(
                    device, run.network, run.images, limit=limit, spare=run.spare
                )
        except (DeviceError, DeviceTimeout) as error:
            failure = str(error)
        probe = {n: int(getattr(tb, n).value) for n in ("toggles", "idle_toggles", "products")}
        if run.trace:
            (await read_trace(device.back)).save(Path(run.trace))
        tb.trace_on.value = 0
        await ClockCycles(tb.clk, 3)  # trace and counters of the probe begin anew
        say("stream", index=index, failure=failure, probe=probe, **_figures(result))
        if failure:
            await device.reset()


def _figures(run: StreamRun | None) -> dict[str, Any]:
    """A run as JSON: ends is (inferences, COUNTERS), cumulative."""
    if run is None:
        return {"ends": [], "wrong": [], "bus_cycles": 0, "results": [], "counters": {}}
    assert run.ends.shape[1] == len(COUNTERS)
    return {
        "ends": run.ends.astype(np.int64).tolist(),
        "wrong": run.wrong.tolist(),
        "bus_cycles": run.bus_cycles,
        "counters": run.counters,
        "results": run.results.tolist(),
    }
