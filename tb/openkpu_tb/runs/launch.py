# SPDX-License-Identifier: Apache-2.0
"""Start a simulation of the whole device for a request, and pass on its events while it runs."""

import contextlib
import json
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu_tb import simrun
from openkpu_tb.coverage import fsm
from openkpu_tb.runs import requests
from openkpu_tb.runs.requests import Request

SOURCES = [
    "rtl/**/*.v",
    "tb/openkpu_tb/device/tb_*.v",
    fsm.BENCH,
    "tb/openkpu_tb/ahb/fabric/*.v",
    "tb/openkpu_tb/ahb/checkers/*.v",
]
# the device behind AXI4-Lite and AXI4: tb_top with AXI defined
AXI_SOURCES = [*SOURCES, "tb/openkpu_tb/axi/*.v"]
AXI_DEFINES = {"AXI": 1}
PUBLIC = "tb/openkpu_tb/device/public.vlt"
LEAST_DEPTH = 1 << 18  # words of storage: 1 MiB
# what every build has room for (tb_top's ROOM and LAYERS), so that all work shares one: words of
# storage; layers whose counters are recorded
BUILT_DEPTH = {"icarus": 1 << 20, "verilator": 1 << 24}
BUILT_LAYERS = {"icarus": 1 << 12, "verilator": 1 << 17}
SIGNAL = signal.SIGUSR1  # interrupts the main thread
AGAIN = 1.0  # seconds after which the main thread is interrupted once more
Event = dict[str, Any]


def storage_depth(size: int) -> int:
    """Words of storage for ``size`` bytes: a power of two."""
    return max(LEAST_DEPTH, 1 << (ceil_div(size, 4) - 1).bit_length())


def parameters(
    config: Config,
    storage_bytes: int = 0,
    rounding: int = 0,
    *,
    layers: int = 0,
    sim: str = "verilator",
    **more: int,
) -> dict[str, int]:
    """Parameters of tb_top.

    ``storage_bytes`` and ``layers``, whose counters are recorded, are parameters only where they
    are beyond what every build has room for. ``more``: PROBE, GATE, CHECK, PERF. Commands read the
    counters: without PERF the build has them, and is the device in all else.
    """
    own = {name: value for name, value in config.parameters.items() if name != "PERF"}
    found = {**own, "ROUNDING": rounding, "STORE_DEPTH": LEAST_DEPTH, **more}
    if storage_depth(storage_bytes) > BUILT_DEPTH[sim]:
        found["STORE_DEPTH"] = storage_depth(storage_bytes)
    if layers > BUILT_LAYERS[sim]:
        found["PERF_DEPTH"] = 1 << (layers - 1).bit_length()
    return found


def build_device(
    sim: str,
    config: Config,
    storage_bytes: int = 0,
    waves: bool = False,
    rounding: int = 0,
    axi: bool = False,
    **more: int,
) -> Path:
    """Build the bench unless it is there; ``rounding`` as the RTL's parameter ROUNDING.

    ``axi``: the device is openkpu_axi, behind its buses.
    """
    return simrun.build_bench(
        sim,
        "tb_top",
        AXI_SOURCES if axi else SOURCES,
        defines=AXI_DEFINES if axi else None,
        params=parameters(config, storage_bytes, rounding, sim=sim, **more),
        public=PUBLIC,
        random_start=False,
        waves=waves,
    )


def run_device(
    sim: str,
    module: str,
    params: Mapping[str, int],
    *,
    axi: bool = False,
    apb: bool = False,
    **more: Any,
) -> None:
    """Cocotb tests of a module on the device with these parameters of tb_top.

    ``axi`` as of ``build_device``; ``apb``: the device is openkpu_apb. ``more`` and SimError as of
    ``simrun.run_bench``.
    """
    simrun.run_bench(
        sim,
        "tb_top",
        AXI_SOURCES if axi else SOURCES,
        module,
        params=params,
        defines=AXI_DEFINES if axi else {"APB": 1} if apb else None,
        public=PUBLIC,
        random_start=False,
        **more,
    )


def run_job(
    sim: str,
    config: Config,
    request: Request,
    on_event: Callable[[Event], None],
    *,
    storage_bytes: int = 0,
    waves: Path | None = None,
    seed: int = 1,
    rounding: int = 0,
    axi: bool | int = False,
    **more: int,
) -> None:
    """Run a request in one simulator process (openkpu_tb.runs.job); ``axi`` as in ``build``.

    SimError when it fails, RequestError for a request of an unknown kind.
    """
    requests.check_request(request)
    with tempfile.TemporaryDirectory(prefix="openkpu_job_") as tmp:
        work = Path(tmp)
        (work / "job.pickle").write_bytes(pickle.dumps(request))
        with listener(work / "events", on_event):
            run_device(
                sim,
                "openkpu_tb.runs.job",
                parameters(config, storage_bytes, rounding, sim=sim, **more),
                axi=bool(axi),
                waves=waves,
                seed=seed,
                plusargs=[f"+store_words={storage_depth(storage_bytes)}"],
                env={"OKPU_JOB": str(work / "job.pickle"), "OKPU_EVENTS": str(work / "events")},
            )


@contextlib.contextmanager
def listener(pipe: Path, on_event: Callable[[Event], None]) -> Iterator[None]:
    """Call ``on_event`` for every JSON line that is written into the named pipe.

    What ``on_event`` raises ends the block and comes out of it.
    """
    os.mkfifo(pipe)
    # opened for writing too, so that neither side waits for the other and a reader never sees EOF
    handle = os.open(pipe, os.O_RDWR)

    failed: list[Exception] = []
    over = threading.Event()

    main = threading.main_thread().ident
    assert main is not None, "the main thread runs"

    def interrupt() -> None:
        # again and again: a KeyboardInterrupt in a destructor or in a callback of the garbage
        # collector is dropped by Python
        while not over.is_set():
            signal.pthread_kill(main, SIGNAL)
            over.wait(AGAIN)

    def listen() -> None:
        with open(handle, closefd=False) as stream:
            for line in stream:
                event = json.loads(line)
                if event["event"] == "_closed":
                    return
                if failed:
                    continue  # the simulator must not wait for a reader until it is ended
                try:
                    on_event(event)
                except Exception as error:
                    failed.append(error)
                    threading.Thread(target=interrupt, daemon=True).start()

    def wake(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    # not SIGINT: a shell's background job ignores that one
    before = signal.signal(SIGNAL, wake)
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        over.set()
        if failed:
            raise failed[0] from None
        raise
    finally:
        over.set()
        os.write(handle, b'{"event": "_closed"}\n')
        thread.join()
        os.close(handle)
        signal.signal(SIGNAL, before)
