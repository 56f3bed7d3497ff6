# SPDX-License-Identifier: Apache-2.0
"""A piece of `make regress N=...`: some items in one simulation, or more when one of them ends it.

``run_batch`` is what a thread of this machine and a worker of dask call alike: it starts this
module as a process of its own, which prints a line of JSON for each item.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from openkpu_tb.runs import launch, regress_items
from openkpu_tb.runs.requests import RandomRequest
from openkpu_tb.simrun import SimError
from openkpu_tools import variants

LEFT_OUT = (
    "OPENKPU_SEED",
    "OPENKPU_RESULTS",
)  # of the environment: each would reach the simulation


@dataclass(frozen=True)
class Batch:
    """``count`` items of a run that begins with ``seed``, from item ``number`` on; ``kind``: of all
    of them (regress_items.ITEM_KINDS), None: any; ``params``: changes of the configuration."""

    config: str
    sim: str
    seed: int
    number: int
    count: int
    kind: str | None = None
    params: Sequence[tuple[str, int]] = ()

    @property
    def first(self) -> int:
        """Seed of its first item."""
        return regress_items.seed_of(self.seed, self.number)


@dataclass
class ItemOutcome:
    """What came of an item; ``wrong`` is empty when all bytes are right."""

    number: int
    seed: int
    title: str
    wrong: list[str]
    redrawn: dict[str, int]
    cycles: int = 0
    seconds: float = 0.0


class Processes:
    """The processes that ``run_batch`` has started, so that whoever is interrupted can end them."""

    def __init__(self) -> None:
        self.lock, self.alive, self.over = threading.Lock(), set(), False

    def start(self, words: list[str], env: dict[str, str]) -> subprocess.Popen:
        with self.lock:
            if self.over:
                raise RuntimeError("the run has been ended")
            process = subprocess.Popen(
                words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self.alive.add(process)
            return process

    def end(self) -> None:
        """Terminate all, and let no other start."""
        with self.lock:
            self.over = True
            for process in self.alive:
                if process.poll() is None:
                    process.terminate()


PROCESSES = Processes()


def run_batch(batch: Batch) -> list[ItemOutcome]:
    """All items of a batch; one that was not reached is an outcome that says so."""
    words = [
        sys.executable,
        "-m",
        "openkpu_tools.verification.regress_batch",
        json.dumps(asdict(batch)),
    ]
    env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    process = PROCESSES.start(words, env)
    out, err = process.communicate()
    PROCESSES.alive.discard(process)
    found = [ItemOutcome(**json.loads(line)) for line in out.splitlines() if line.startswith("{")]
    done = {outcome.number for outcome in found}
    why = err.strip().splitlines()[-1:] or [f"its process ended with {process.returncode}"]
    for number in range(batch.number, batch.number + batch.count):
        if number not in done:
            seed = regress_items.seed_of(batch.seed, number)
            found.append(ItemOutcome(number, seed, "not run", [f"not run: {why[0]}"], {}))
    return found


def simulate_batch(batch: Batch) -> None:
    """Draw the items and run them; prints an outcome each as it is known."""
    device = variants.requested(argparse.Namespace(**asdict(batch)))
    items = [
        regress_items.draw_item(
            device.config, batch.sim, regress_items.seed_of(batch.seed, n), batch.kind
        )
        for n in range(batch.number, batch.number + batch.count)
    ]
    at = 0  # items with an outcome
    while at < len(items):
        at += _simulation(batch, device, items, at)


def _simulation(batch: Batch, device: variants.Variant, items: list[Any], at: int) -> int:
    """One simulation of the items from ``at`` on; how many have an outcome now."""
    done, began = 0, time.monotonic()

    def say(wrong: list[str], cycles: int = 0) -> None:
        nonlocal done, began
        item = items[at + done]
        now = time.monotonic()
        outcome = ItemOutcome(
            *(batch.number + at + done, item.seed, item.case.title, wrong, dict(item.redrawn)),
            *(cycles, round(now - began, 2)),
        )
        print(json.dumps(asdict(outcome)), flush=True)
        done, began = done + 1, now

    def event(found: dict[str, Any]) -> None:
        if found["event"] == "case":
            say(found["wrong"], found["cycles"])

    request = RandomRequest([item.case for item in items[at:]])
    try:
        launch.run_job(
            *(batch.sim, device.config, request, event),
            storage_bytes=regress_items.MOST_STORAGE,
            seed=items[at].seed,
            **device.bench,
        )
    except SimError as error:
        ended_early = "of 1 failed" not in str(error)
        if not done or (ended_early and at + done < len(items)):
            say([" ".join(str(error).split())[-2000:]])
    return done


if __name__ == "__main__":
    # who ends this process ends its simulator too, as Ctrl-C does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    simulate_batch(Batch(**json.loads(sys.argv[1])))
