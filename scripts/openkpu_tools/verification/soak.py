# SPDX-License-Identifier: Apache-2.0
"""Random networks, streams, errors and resets in one simulation until the time is over.

`make soak MINUTES=60 SEED=7`. Everything is compared byte for byte (openkpu_tb/uvm/soak_run.py),
and the memory of the process must stay flat: its resident size may grow by less than GROWTH bytes
after the warm-up. A line of progress every half minute. An item that fails is repeated alone by the
command that is printed. The configuration's bus has 32 bits here. Exit status: 0 all exact and
flat, 1 not, 2 bad request.
"""

import argparse
import os
import secrets
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from openkpu_tb import simrun, watchdog
from openkpu_tb.runs import launch
from openkpu_tools import command, registry, variants

GROWTH = 64 << 20  # bytes that the process may grow by after the warm-up
WARM_UP = 0.1  # share of the time, and at least ITEMS items
ITEMS = 3
EVERY = 30.0  # seconds between two lines of progress
SPARE = 900  # seconds that the last item may take
NEEDED = ("pool_lanes", "out32")  # keys of configs.toml
BUS = 32  # bits: the predictor and its sequences count in words of these
LONGEST = 10_000  # minutes
MIB = 1 << 20


class Watch:
    """Reports of the simulation: progress, the first failure, how the memory grew."""

    def __init__(self, seconds: float) -> None:
        self.began = self.said = time.monotonic()
        self.seconds = seconds
        self.items = self.cycles = self.resident = 0
        self.warm: int | None = None  # resident bytes at the end of the warm-up
        self.used: Counter[str] = Counter()
        self.failure: dict[str, Any] | None = None

    def event(self, found: dict[str, Any]) -> None:
        """An event of tb/openkpu_tb/uvm/soak_run.py."""
        if found["event"] == "failed":
            self.failure = found
        if found["event"] != "item":
            return
        now = time.monotonic()
        self.items += 1
        self.cycles, self.resident = found["cycles"], found["resident"]
        self.used.update(found["used"])
        warm = self.items >= ITEMS and now - self.began >= WARM_UP * self.seconds
        if warm and self.warm is None:
            self.warm = self.resident
        if now - self.said >= EVERY:
            self.said = now
            print(self.line(), flush=True)

    @property
    def growth(self) -> int:
        """Bytes since the warm-up."""
        return self.resident - (self.resident if self.warm is None else self.warm)

    def line(self) -> str:
        """Progress."""
        return (
            f"{time.monotonic() - self.began:.0f} s: {self.items} items, "
            f"{self.used.total()} sequences, {self.cycles:,} cycles, "
            f"{self.resident / MIB:.0f} MiB resident"
        )


def soak(args: argparse.Namespace, seed: int) -> Watch:
    """Run the simulation; SimError when it fails, with its reports until then in the watch."""
    config, more = args.device.config, args.device.bench
    seconds = 60 * args.minutes
    launch.build_device("verilator", config, **more)
    watch = Watch(seconds)
    os.environ.pop("OPENKPU_SEED", None)  # it would go before the seed that is given
    os.environ[watchdog.VARIABLE] = str(int(seconds) + SPARE)
    with tempfile.TemporaryDirectory(prefix="openkpu_soak_") as tmp:
        pipe = Path(tmp) / "events"
        env = {"OKPU_EVENTS": str(pipe), "SOAK_SECONDS": str(seconds), "SOAK_PLANT": args.plant}
        if args.item is not None:
            env["SOAK_ITEM"] = str(args.item)
        with launch.listener(pipe, watch.event):
            try:
                launch.run_device(
                    "verilator",
                    "openkpu_tb.uvm.soak_run",
                    launch.parameters(config, **more),
                    seed=seed,
                    env=env,
                )
            except simrun.SimError as error:
                text = str(error).strip().splitlines()[0]
                watch.failure = watch.failure or {"number": watch.items, "text": text}
    return watch


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("soak", argv)
    if (bits := dict(args.params).get("AHB_W", BUS)) != BUS:
        given = command.option("params", f"AHB_W={bits}")
        raise command.UsageError(f"{given}: its bus has {BUS} bits, expected AHB_W={BUS}")
    args.bus = BUS
    args.device = variants.requested(args)
    args.device.check_rounding()
    for key in NEEDED:
        if not getattr(args.device.config, key):
            said = "its sequences run pooling tasks and products of matrices"
            raise command.UsageError(f"{args.device.title} has {key} = 0: {said}")
    simrun.check_tool("verilator")
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    print(f"soak on {args.device.title} with a bus of {BUS} bits, SEED={seed}", flush=True)
    watch = soak(args, seed)
    print(watch.line())
    if watch.failure:
        number = watch.failure["number"]
        print(f"FAIL item {number}: {watch.failure['text'].splitlines()[0]}")
        typed = f"SEED={seed} CONFIG={args.config}{args.device.typed} ITEM={number}"
        print(f"  to repeat: make soak MINUTES=1 {typed}")
        return 1
    print(", ".join(f"{count} {name}" for name, count in sorted(watch.used.items())))
    if args.item is None:
        allowed = f"{watch.growth / MIB:+.0f} MiB since the warm-up, {GROWTH // MIB} allowed"
        if watch.warm is None or watch.growth >= GROWTH:
            why = "ended before the warm-up did" if watch.warm is None else allowed
            print(f"FAIL memory: {why}")
            return 1
        print(f"memory: {allowed}")
    print("every byte is exact")
    return 0
