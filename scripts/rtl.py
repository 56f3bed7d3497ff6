# SPDX-License-Identifier: Apache-2.0
"""Building and running the whole-device bench for a command, with progress for the reader."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from openkpu.tb import simrun
from openkpu.tb.device import launch
from openkpu.tb.device.requests import Request


class Progress:
    """Lines that stay, and on a terminal one that is overwritten."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self.length = 0

    def show(self, text: str) -> None:
        """A sign of life; only on a terminal."""
        if self.live:
            sys.stdout.write("\r" + text.ljust(self.length))
            sys.stdout.flush()
            self.length = len(text)

    def line(self, text: str) -> None:
        """A line that stays."""
        if self.live and self.length:
            sys.stdout.write("\r" + " " * self.length + "\r")
            self.length = 0
        print(text, flush=True)


def simulate(
    args: argparse.Namespace,
    request: Request,
    on_event: Callable[[launch.Event], None],
    storage_bytes: int,
    rounding: int = 0,
) -> None:
    """Build, run, and say where the waves are; ``rounding`` as the RTL's parameter ROUNDING."""
    began = time.monotonic()
    print(f"building the bench for {args.sim}, configuration {args.config.name} ...", flush=True)
    launch.build(args.sim, args.config, storage_bytes, waves=args.waves, rounding=rounding)
    print(f"ready after {time.monotonic() - began:.0f} s; simulating", flush=True)
    waves = None
    if args.waves:
        kind = "vectors" if args.vectors else "model" if args.model else "digits"
        waves = simrun.ROOT / "waves" / f"{kind}_{args.config.name}_{args.sim}.fst"
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
        )
    finally:
        if waves and waves.exists():
            print(f"waves: {Path(waves).relative_to(simrun.ROOT)}")
