# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of vectors: every layer alone, pushed by the host.

Events: ``start``, ``beat``, ``layer`` with its differences from the recorded output and the golden
model, counters and what failed.
"""

import numpy as np
from openkpu.layer.golden import run_layer
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout, Tables
from openkpu_tb.device.events import Say, counts, mismatches
from openkpu_tb.runs.requests import VectorsRequest


async def run_vectors(device: Device, request: VectorsRequest, say: Say) -> None:
    """Every layer of the request; after a failure the device is reset."""
    before = np.zeros(len(COUNTERS), dtype=np.uint64)
    for number, (layer, limit) in enumerate(zip(request.layers, request.limits, strict=True)):
        say("start", index=number)
        golden = run_layer(
            *(layer.arg, layer.x, layer.weights, layer.bn, layer.act),
            x2=layer.x2,
            eight_bit=layer.eight_bit,
        )
        tables = Tables(layer.weights, layer.bn, layer.act)
        failure, first = None, None
        try:
            y, unknown = await device.run_layer(
                layer.arg,
                tables,
                layer.x,
                x2=layer.x2,
                eight_bit=layer.eight_bit,
                limit=limit,
                beat=lambda cycles, number=number: say("beat", index=number, cycles=cycles),
            )
            wrong, first = mismatches(y, unknown, layer.y, golden.y)
        except (DeviceError, DeviceTimeout) as error:
            failure, wrong = str(error), int(layer.y.size)
        records = await device.back.perf_records()
        await device.back.forget_perf()
        counters = counts(records[-1], before) if len(records) == 1 else None
        if failure is None and counters is None:
            failure = f"{len(records)} layers finished instead of one"
        before = records[-1] if len(records) else before
        say(
            "layer",
            index=number,
            mismatching_bytes=wrong,
            first=first,
            counters=counters,
            failure=failure,
            golden_differs=int((golden.y != layer.y).sum()),
            macs=golden.macs,
            macs_gated=golden.macs_gated,
        )
        if failure:
            await device.reset()
            before = np.zeros(len(COUNTERS), dtype=np.uint64)
