# SPDX-License-Identifier: Apache-2.0
"""Record the ports of boxes of the RTL while it computes digits, for runs of their netlists."""

import json
import os
from pathlib import Path

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from openkpu import digits
from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import finish_stream, golden_results, prepare_stream

LIMIT = 100_000  # cycles of an inference


class Recorder:
    """Words of 32 bits of a box's ports, a row a cycle, written to a file."""

    def __init__(self, tb, job: dict) -> None:
        box = tb.dut.u_core
        for name in job["instance"].split("."):
            box = getattr(box, name)
        self.ports = [(getattr(box, name), ceil_div(width, 32)) for name, width in job["ports"]]
        self.clk = tb.clk
        self.rows: list[bytes] = []
        self.path = Path(job["file"])

    async def run(self) -> None:
        """Sample in the middle of every cycle, when all has settled."""
        while True:
            await FallingEdge(self.clk)
            row = [int(port.value).to_bytes(4 * words, "little") for port, words in self.ports]
            self.rows.append(b"".join(row))

    def write(self) -> None:
        self.path.write_bytes(b"".join(self.rows))


@cocotb.test()
async def recorded_digits(tb) -> None:
    """Digits one after the other; cycles of the window, multiplications and exact results."""
    job = json.loads(Path(os.environ["OKPU_RECORDING"]).read_text())
    network, pixels = digits.load_network(), digits.load_data()[1].pixels[: job["images"]]
    device = Device(tb, cocotb.RANDOM_SEED)
    recorders = [Recorder(tb, box) for box in job["boxes"]]
    tasks = [cocotb.start_soon(one.run()) for one in recorders]
    await device.reset()
    network.place(device.back.ram_rows)
    storage = await prepare_stream(device, network, pixels)
    before = len(recorders[0].rows)
    await device.start()
    await finish_stream(device, len(pixels), LIMIT)
    after = len(recorders[0].rows)
    for task in tasks:
        task.cancel()
    for number, expected in enumerate(await golden_results(network, pixels)):
        data, _ = await device.back.read_storage(storage.results[number], expected.size)
        assert np.array_equal(data, expected), f"digit {number} differs"
    counters = await device.counters()
    for one in recorders:
        one.write()
    found = {"first": before, "last": after, **{n: int(counters[n]) for n in COUNTERS}}
    Path(job["result"]).write_text(json.dumps(found))
