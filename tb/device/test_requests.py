# SPDX-License-Identifier: Apache-2.0
"""A request of a kind that nothing runs is refused, on both sides of the simulator."""

import asyncio
from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.network.network import Network
from openkpu_tb.device.device import Device
from openkpu_tb.runs import job, launch, requests
from openkpu_tb.runs.requests import NetworkRequest, RequestError

pytestmark = pytest.mark.fixed  # the same with every seed

KNOWN = "NetworkRequest, VectorsRequest, ModelRequest, StreamRequest, RandomRequest"
UNKNOWN = [({"kind": "walk"}, "dict"), (None, "NoneType"), (NetworkRequest, "type")]


class Walk(NetworkRequest):
    """Looks like digits."""


@pytest.mark.parametrize(
    ("request_", "name"), [*UNKNOWN, (Walk(Network(), np.zeros(0), 1), "Walk")]
)
def test_unknown_kind(request_: Any, name: str) -> None:
    """Neither the command nor the simulator takes it for digits."""
    said = f"unknown request {name}, expected one of {KNOWN}"
    with pytest.raises(RequestError) as outside:
        launch.run_job("icarus", configs.load_config("nano"), request_, print)
    with pytest.raises(RequestError) as inside:
        asyncio.run(job.run_request(Device.__new__(Device), request_, print))
    assert str(outside.value) == str(inside.value) == said


def test_every_kind_has_its_runner() -> None:
    """The runner lies in the module that the request's name says."""
    assert set(job.RUNNERS) == set(requests.KINDS)
    for kind, runner in job.RUNNERS.items():
        name = kind.__name__.removesuffix("Request").lower()
        assert runner.__module__ == f"openkpu_tb.runs.run_{name}"
