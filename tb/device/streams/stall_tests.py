# SPDX-License-Identifier: Apache-2.0
"""Where the cycles went: the device's counters against a count of the bench's own.

docs/performance.md 4 says which cause counts. The bench (tb_probe, in builds with PROBE) takes it
from the states of the blocks.
"""

import numpy as np

from openkpu import digits
from openkpu.checkout import ROOT
from openkpu.layer import vectors
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.inference_stream import run_stream
from openkpu_tb.device.simulation import SLOW, rng
from openkpu_tb.handle import Handle
from openkpu_tb.runs.run_stream import DISTURBED
from tb.device.checked import checked

VECTORS = ROOT / "models/tests/data/vectors"
FILES = ("raw_pool7", "raw_depthwise", "rand_5000", "rand_5008")
LIMIT = 400_000  # cycles of a layer, or of an inference
CAUSES = ("weights", "input", "output", "bus", "control")
COUNTED = ("total", "array_busy", *(f"stall_{cause}" for cause in CAUSES))


async def same(tb: Handle, device: Device, seen: set[str], what: str) -> None:
    """The device is idle; its counters are the bench's."""
    found = await device.counters()
    spent = int(tb.spent.value)
    want = {name: spent >> 32 * i & 0xFFFFFFFF for i, name in enumerate(COUNTED)}
    assert {name: found[name] for name in COUNTED} == want, what
    assert want["total"] > 0
    seen |= {name for name in COUNTED if want[name]}


@checked()
async def where_cycles_went(tb: Handle, device: Device) -> None:
    """Layers that the host pushes and streams, with and without disturbance."""
    images = rng().integers(0, 256, (2, 1, 8, 8), dtype=np.uint8)
    seen: set[str] = set()
    files = [VECTORS / f"{name}.npz" for name in FILES[: 1 if SLOW else None]]
    for disturbed in (False, True):
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = value if disturbed else 0
        for case in vectors.load_cases(files, say=lambda _: None):
            tables = Tables(case.weights, case.bn, case.act)
            y, unknown = await device.run_layer(
                case.arg, tables, case.x, eight_bit=case.eight_bit, limit=LIMIT
            )
            assert not unknown.any() and np.array_equal(y, case.y), case.title
            await same(tb, device, seen, case.title)
        if not SLOW:
            run = await run_stream(device, digits.load_network(), images, limit=LIMIT)
            assert not run.wrong.any()
            await same(tb, device, seen, f"stream, disturbed: {disturbed}")
    assert SLOW or seen == set(COUNTED), f"never counted: {set(COUNTED) - seen}"
