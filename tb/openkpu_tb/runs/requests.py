# SPDX-License-Identifier: Apache-2.0
"""What a command asks of the simulated device: one type for each kind of run.

A command makes a request and gives it to ``launch.run_job``; inside the simulator ``job.py`` hands
it to the module of the same name: NetworkRequest to run_network.py, and so on. The docstring of the
module lists the events that come back.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openkpu.configs import Config
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import ALIGN, Network
from openkpu_tb.device.spare import SpareRows


class RequestError(TypeError):
    """A request of a kind that nothing runs."""


@dataclass
class NetworkRequest:
    """A network in task-list mode, image after image."""

    network: Network
    images: np.ndarray  # (n, C, H, W) bytes
    limit: int  # cycles of an inference
    align: int = ALIGN  # bytes, of all that lies in storage
    spare: tuple[int, int] | None = None  # rows for weights that wait; None: as many as there are


@dataclass
class VectorsRequest:
    """Layers, each alone, pushed by the host."""

    layers: list[VectorLayer]
    limits: list[int]  # cycles of each


@dataclass
class ModelRequest:
    """A K210 model, or its KPU functions one by one."""

    file: bytes
    name: str
    inputs: list[list[list[np.ndarray]]]  # by run, by program, by input
    config: Config
    outputs: str  # .npz file to write: "run/program/name"
    maps: str | None = None  # .npz file for the map of every layer: "run/layer/batch"
    layers: tuple[int, int] | None = None  # first and last that the device runs; None: all
    via: str = "burst"  # one of openkpu.words.WAYS
    rounding: str = "nncase"
    functions: bool = False
    numbering: str | None = None  # of a v5 model's byte code; None: found out
    fast: bool = False  # maps through the back door
    map_moves: str = "dma"  # one of openkpu.words.MAPS: who moves maps
    resident: bool = False  # maps stay in the AI RAM where they can (openkpu.kmodel.keep_maps)


@dataclass
class RequestedRun:
    """Images through a network, in a stream or one by one."""

    network: Network
    images: np.ndarray  # (n, C, H, W) bytes
    continuous: bool = True
    wait: int = 0  # wait states of the first beat of a burst, and of every write
    disturb: bool = False
    trace: str = ""  # file for the rows of tb_probe
    spare: tuple[int, int] | None = None  # rows for weights that wait; None: as many as there are
    info: dict[str, Any] = field(default_factory=dict)  # for whoever asked


@dataclass
class StreamRequest:
    """Streams, one after the other."""

    runs: list[RequestedRun]
    limit: int  # cycles from one inference to the next, undisturbed
    seed: int = 1  # of the disturbance


@dataclass
class RandomCase:
    """Images through a network; by the host it is a network of one layer, with one image."""

    title: str
    way: str  # "host", "tasks" or "stream"
    network: Network
    images: np.ndarray  # (n, C, H, W) bytes
    disturb: bool  # wait states, lost grants, RETRY, SPLIT, a rival on the bus
    limit: int  # cycles of an undisturbed inference
    seed: int | None = None  # of the disturbance and of where things lie; None: goes on from before
    spare: SpareRows | None = None  # rows in which weights may wait; None: as many as there are


@dataclass
class RandomRequest:
    """Cases, each by its way, with both memories compared after every one."""

    cases: list[RandomCase]


Request = NetworkRequest | VectorsRequest | ModelRequest | StreamRequest | RandomRequest
KINDS = (NetworkRequest, VectorsRequest, ModelRequest, StreamRequest, RandomRequest)


def check_request(request: object) -> None:
    """RequestError unless ``request`` is of a kind that the device's bench runs."""
    if type(request) not in KINDS:
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise RequestError(f"unknown request {type(request).__name__}, expected one of {known}")
