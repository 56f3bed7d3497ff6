# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of every command: one process runs a request on the device.

The request comes in a pickle named by OKPU_JOB; events go out as JSON lines to OKPU_EVENTS.
"""

import os
import pickle
from collections.abc import Awaitable, Callable
from pathlib import Path

import cocotb

from openkpu_tb.device.device import Device
from openkpu_tb.device.events import Events, Say
from openkpu_tb.handle import Handle
from openkpu_tb.runs import requests
from openkpu_tb.runs.run_model import run_model
from openkpu_tb.runs.run_network import run_network
from openkpu_tb.runs.run_random import run_random
from openkpu_tb.runs.run_stream import run_streams
from openkpu_tb.runs.run_vectors import run_vectors

RUNNERS: dict[type, Callable[..., Awaitable[None]]] = {
    requests.NetworkRequest: run_network,
    requests.VectorsRequest: run_vectors,
    requests.ModelRequest: run_model,
    requests.StreamRequest: run_streams,
    requests.RandomRequest: run_random,
}


async def run_request(device: Device, request: requests.Request, say: Say) -> None:
    """Run a request; RequestError when it is of an unknown kind."""
    requests.check_request(request)
    await RUNNERS[type(request)](device, request, say)


@cocotb.test()
async def run_job(tb: Handle) -> None:
    """Run the job; a bus rule that was broken fails the test."""
    request = pickle.loads(Path(os.environ["OKPU_JOB"]).read_bytes())
    say = Events()
    device = Device(tb, seed=cocotb.RANDOM_SEED)
    await device.reset()
    await run_request(device, request, say)
    try:
        device.check_rules()
    except AssertionError as error:
        say("rules", text=str(error))
        raise
    say("end")
