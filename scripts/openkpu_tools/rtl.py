# SPDX-License-Identifier: Apache-2.0
"""Building and running the whole-device bench for a command, with progress for the reader."""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from openkpu import terminal
from openkpu.configs import Config
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import Request


class Progress:
    """Lines that stay, and on a terminal one that is overwritten."""

    def __init__(self) -> None:
        self.stream = sys.stdout  # libraries are silenced by another one in its place
        self.live = terminal.columns() > 0
        self.length = 0

    def show(self, text: str) -> None:
        """A sign of life; only on a terminal."""
        if self.live:
            text = text[: terminal.columns() - 1]  # a line that wraps cannot be overwritten
            self.stream.write("\r" + text.ljust(self.length))
            self.stream.flush()
            self.length = len(text)

    def clear(self) -> None:
        """Take the sign of life away."""
        if self.live and self.length:
            self.stream.write("\r" + " " * self.length + "\r")
            self.length = 0

    def line(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, file=self.stream, flush=True)


class Bar:
    """How far a simulation is, and the seconds that are left at its pace so far."""

    WIDTH = 24  # characters

    def __init__(self, total: float, progress: Progress) -> None:
        self.total, self.progress, self.began = total, progress, time.monotonic()

    def show(self, done: float, text: str) -> None:
        """``done`` of ``total``, in any unit; ``text`` says what is at work."""
        share = min(done / self.total, 1.0) if self.total else 0.0
        full = int(share * self.WIDTH)
        left = (time.monotonic() - self.began) * (1 - share) / share if share else None
        rest = "" if left is None else f", {left:.0f} s left"
        bar = "#" * full + "." * (self.WIDTH - full)
        self.progress.show(f"[{bar}] {100 * share:3.0f} %{rest}  {text}")


class Silence(Progress):
    """For steps that run in parallel: each would overwrite the line of the others."""

    def show(self, text: str) -> None:
        """Nothing."""

    def line(self, text: str) -> None:
        """Nothing."""


class Ticker:
    """Reports the elapsed time of a step at intervals, for a user who waits."""

    EVERY = 15.0  # seconds between lines where they stay
    LIVE = 1.0  # ... and where they are overwritten

    def __init__(self, what: str, progress: Progress | None = None) -> None:
        self.what, self.progress = what, progress or Progress()
        self.began, self.ended = time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        live = self.progress.live
        while not self.ended.wait(self.LIVE if live else self.EVERY):
            text = f"  {self.what}, {self.seconds:.0f} s ..."
            try:
                (self.progress.show if live else self.progress.line)(text)
            except OSError:  # nobody reads: the main thread finds out itself
                return

    @property
    def seconds(self) -> float:
        """Since the step began."""
        return time.monotonic() - self.began

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.progress.clear()


def build_reported(
    sim: str, config: Config, storage_bytes: int = 0, progress: Progress | None = None, **more: Any
) -> None:
    """Build the bench unless it is there, and say so; ``more`` as for ``launch.build_device``."""
    progress = progress or Progress()
    progress.line(f"building the bench for {sim}, configuration {config.name} ...")
    with Ticker("building", progress) as ticker:
        launch.build_device(sim, config, storage_bytes, **more)
    progress.line(f"ready after {ticker.seconds:.0f} s; simulating")


def simulate_request(
    args: argparse.Namespace,
    request: Request,
    on_event: Callable[[launch.Event], None],
    storage_bytes: int,
    rounding: int = 0,
) -> None:
    """Build, run, and say where the waves are; ``rounding`` as the RTL's parameter ROUNDING.

    The checkers of the bus rules cost Icarus time, Verilator a build of its own to leave out: on
    Icarus they are there with ``args.check`` alone.
    """
    more = args.device.bench
    more |= {} if args.check or args.sim != "icarus" else {"CHECK": 0}
    build_reported(
        args.sim, args.config, storage_bytes, None, waves=args.waves, rounding=rounding, **more
    )
    waves = None
    if args.waves:
        kind = next((k for k in ("vectors", "model", "network") if getattr(args, k)), "digits")
        # beside the builds: the checkout, or a place that can be written and has no space
        waves = simrun.builds().parent / "waves" / f"{kind}_{args.device.stem}_{args.sim}.fst"
        waves.parent.mkdir(exist_ok=True)
    try:
        launch.run_job(
            args.sim,
            args.config,
            request,
            on_event,
            storage_bytes=storage_bytes,
            waves=waves,
            rounding=rounding,
            **more,
        )
    finally:
        if waves and waves.exists():
            here = waves.is_relative_to(simrun.ROOT)
            print(f"waves: {waves.relative_to(simrun.ROOT) if here else waves}")
