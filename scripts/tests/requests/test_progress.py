# SPDX-License-Identifier: Apache-2.0
"""What a reader sees while a command builds and runs, and how a build is ended."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.checkout import ROOT, python_path
from openkpu.prediction.roofline import network_cycles
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import StreamRequest
from openkpu_tools import rtl
from openkpu_tools.commands import run_stream
from scripts.tests.checkouts import eventually, running


def test_slow_build_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line every so often until it is ready, none after that."""
    monkeypatch.setattr(rtl.Ticker, "EVERY", 0.05)
    monkeypatch.setattr(launch, "build_device", lambda *_a, **_k: time.sleep(0.3))
    rtl.build_reported("verilator", configs.load_config("nano"))
    time.sleep(0.15)
    first, *middle, last = capsys.readouterr().out.splitlines()
    assert first == "building the bench for verilator, configuration nano ..."
    assert last.startswith("ready after 0 s")
    assert 2 <= len(middle) <= 6 and set(middle) == {"  building, 0 s ..."}


def test_failed_build_ends_the_ticker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_a: object, **_k: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(launch, "build_device", fail)
    before = {t.name for t in threading.enumerate()}
    with pytest.raises(ValueError, match="no"):
        rtl.build_reported("verilator", configs.load_config("nano"))
    assert {t.name for t in threading.enumerate()} <= before


def test_stream_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Between hundreds too, when they take their time; the build first."""
    monkeypatch.setattr(run_stream, "EVERY", 0.05)
    monkeypatch.setattr(launch, "build_device", lambda *_a, **_k: None)

    def run_job(
        _sim: str, _config: Any, request: StreamRequest, on_event: Any, **_more: object
    ) -> None:
        run = request.runs[0]
        results = [r.y.view(np.uint8).reshape(-1) for r in map(run.network.run, run.images)]
        for number in range(len(run.images)):
            time.sleep(0.03)
            on_event({"event": "inference", "number": number})
        ends = np.cumsum(np.ones((len(results), len(COUNTERS)), int), axis=0)
        on_event(
            {
                "event": "stream",
                "failure": None,
                "ends": ends.tolist(),
                "wrong": [0] * len(results),
                "results": [r.tolist() for r in results],
                "counters": {"inferences": len(results), "inf_kept": 0},
            }
        )

    monkeypatch.setattr(launch, "run_job", run_job)
    args = run_stream.parse_stream(["--images", "12", "--config", "nano", "--sim", "icarus"])
    assert run_stream.run_stream(args, run_stream.stream_work(args))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("building the bench for icarus") and lines[2].startswith("ready")
    shown = [line for line in lines if "inferences done" in line]
    assert 4 <= len(shown) < 12 and shown[-1].startswith("12 of 12 inferences done, ")
    # a saved network, its two maps in turn, and the figures as JSON
    network = digits.load_network()
    maps = tmp_path / "maps.npy"
    network.save(tmp_path / "net.npz")
    np.save(maps, digits.load_data()[1].pixels[:2])
    words = ["--network", str(tmp_path / "net.npz"), "--input", str(maps), "--images", "3"]
    args = run_stream.parse_stream([*words, "--report", str(tmp_path / "report.json")])
    assert run_stream.run_stream(args, run_stream.stream_work(args))
    totals = json.loads((tmp_path / "report.json").read_text())["totals"]
    assert (totals["inferences"], totals["first_cycles"], totals["cycles"]) == (3, 1, 1)
    assert totals["roofline_cycles"] == network_cycles(args.config, network.layers)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_error_in_a_listener_ends_the_run(handler: Any, tmp_path: Path) -> None:
    """What on_event raises comes out, although another thread called it; in the background too."""
    before = signal.signal(signal.SIGINT, handler)

    def on_event(_event: launch.Event) -> None:
        raise ZeroDivisionError("here")

    try:
        with (
            pytest.raises(ZeroDivisionError, match="here"),
            launch.listener(tmp_path / "pipe", on_event),
        ):
            with open(tmp_path / "pipe", "w") as pipe:
                pipe.write('{"event": "a"}\n{"event": "b"}\n')
            time.sleep(30)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_lost_interrupt_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that hits code whose exceptions Python drops is not the only one."""
    monkeypatch.setattr(launch, "AGAIN", 0.1)
    lost = threading.Event()

    class Swallows:
        def __del__(self) -> None:
            lost.set()
            time.sleep(0.5)  # the first interrupt ends this, and is dropped

    def on_event(_event: launch.Event) -> None:
        assert lost.wait(10)
        time.sleep(0.1)
        raise ZeroDivisionError("here")

    with (
        pytest.raises(ZeroDivisionError, match="here"),
        launch.listener(tmp_path / "pipe", on_event),
    ):
        with open(tmp_path / "pipe", "w") as pipe:
            pipe.write('{"event": "a"}\n')
        Swallows()
        time.sleep(30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_a_build(number: signal.Signals, tmp_path: Path) -> None:
    """The compiler's processes end with the command, and the next build starts anew."""
    program = (
        "import sys\n"
        "from openkpu_tools import command\n"
        "from openkpu_tb import simrun\n"
        f"simrun.builds = lambda: __import__('pathlib').Path({str(tmp_path / 'builds')!r})\n"
        "def main(argv):\n"
        "    simrun.build_bench('verilator', 'fifo_sync',\n"
        "        ['rtl/lib/fifo_sync.v', 'rtl/lib/ram_1r1w_async.v'])\n"
        "    return 0\n"
        "sys.exit(command.run_command(main))\n"
    )
    folder = tmp_path / "tmp"
    folder.mkdir()
    (tmp_path / "builds").mkdir()
    env = {**os.environ, "PYTHONPATH": python_path(), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: "cc1plus" in running(folder).values())
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number and "Traceback" not in err, err
    eventually(lambda: not running(folder), 10)
    assert not list(folder.iterdir())
    (build,) = (tmp_path / "builds").glob("verilator_*")
    assert not (build / ".done").exists()
