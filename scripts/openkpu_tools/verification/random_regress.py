# SPDX-License-Identifier: Apache-2.0
"""Constrained-random regression: `make regress N=200 SEED=1 SIM=verilator`.

N items (openkpu_tb/runs/regress_items.py), each from a seed of its own that follows from SEED;
some of them in each simulation, a simulation on every core, or on the workers of a dask scheduler
(CLUSTER=tcp://host:port). KIND=product makes all of them products; other kinds: regress_items.
Item 0 has SEED itself, so that a failed item is repeated by N=1 and its seed; what is printed says
so. Report: reports/regress/junit.xml. Exit status: 0 all passed, 1 an item failed,
2 bad request.
"""

import argparse
import os
import re
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent import futures
from pathlib import Path

from openkpu import configs
from openkpu_tb import simrun
from openkpu_tb.runs import launch, regress_items
from openkpu_tools import command, variants
from openkpu_tools.command import option
from openkpu_tools.verification import regress_batch
from openkpu_tools.verification.regress_batch import Batch, ItemOutcome

BATCH = 8  # items of a simulation
REPORTS = simrun.ROOT / "reports" / "regress"
CONFIG = {"verilator": "small", "icarus": "nano"}
REACH = "15 s"  # until a scheduler must have answered
ADDRESS = re.compile(r"(\w+://)?[^\s/:]+:\d{1,5}/?", re.ASCII)  # of a scheduler


def batches(args: argparse.Namespace) -> list[Batch]:
    """The run in pieces; they depend on N, SEED and KIND alone, so that a piece can be repeated."""
    return [
        Batch(args.config, args.sim, args.seed, at, min(BATCH, args.n - at), args.kind, args.params)
        for at in range(0, args.n, BATCH)
    ]


def here(pieces: list[Batch], jobs: int) -> Iterator[list[ItemOutcome]]:
    """Outcomes of the pieces as they come, ``jobs`` simulations at a time on this machine."""
    with futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(regress_batch.run_batch, piece) for piece in pieces]
        try:
            for done in futures.as_completed(running):
                yield done.result()
        except BaseException:  # Ctrl-C, a reader of the output that went away
            pool.shutdown(wait=False, cancel_futures=True)
            regress_batch.PROCESSES.end()
            raise


def cluster(pieces: list[Batch], address: str) -> Iterator[list[ItemOutcome]]:
    """The same on the workers of a dask scheduler; a piece whose worker is lost goes to another."""
    import distributed

    try:
        client = distributed.Client(address, timeout=REACH, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise command.UsageError(f"{option('cluster', address)}: no scheduler: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise command.UsageError(f"{option('cluster', address)}: the scheduler has no workers")
        sent = {
            client.submit(regress_batch.run_batch, piece, pure=False): piece for piece in pieces
        }
        for future in distributed.as_completed(sent, loop=client.loop):
            piece = sent[future]
            if future.status == "finished":
                yield future.result()
            else:
                yield [
                    ItemOutcome(
                        *(n, regress_items.seed_of(piece.seed, n), "not run"),
                        *([f"not run: {future.exception()!r}"], {}),
                    )
                    for n in range(piece.number, piece.number + piece.count)
                ]


def _of(args: argparse.Namespace) -> str:
    """Variables of a command that all items share."""
    kind = f" KIND={args.kind}" if args.kind else ""
    return f"SIM={args.sim} CONFIG={args.config}{args.device.typed}{kind}"


def repeat(args: argparse.Namespace, outcome: ItemOutcome) -> list[str]:
    """Commands that repeat an item: alone, and behind the items before it in its simulation."""
    first = outcome.number - outcome.number % BATCH
    end = _of(args)
    alone = f"make regress N=1 SEED={outcome.seed} {end}"
    if first == outcome.number:
        return [alone]
    seed = regress_items.seed_of(args.seed, first)
    return [alone, f"make regress N={outcome.number - first + 1} SEED={seed} {end}"]


def show(args: argparse.Namespace, pieces: Iterable[list[ItemOutcome]]) -> list[ItemOutcome]:
    """Print progress; all outcomes in order."""
    began, found, failed = time.monotonic(), [], 0
    for some in pieces:
        found += some
        for outcome in some:
            if outcome.wrong:
                failed += 1
                print(f"FAIL item {outcome.number}, seed {outcome.seed}: {outcome.title}")
                print("".join(f"  {line}\n" for line in outcome.wrong), end="")
                print("  to repeat: " + "\n         or: ".join(repeat(args, outcome)))
        minutes = (time.monotonic() - began) / 60
        print(
            f"{len(found)} of {args.n} items, {failed} failed, {len(found) / minutes:.0f} a minute",
            flush=True,
        )
    return sorted(found, key=lambda outcome: outcome.number)


def junit(args: argparse.Namespace, found: list[ItemOutcome], path: Path) -> None:
    """The outcomes as JUnit XML."""
    failed = sum(bool(outcome.wrong) for outcome in found)
    suite = ElementTree.Element(
        "testsuite", name="regress", tests=str(len(found)), failures=str(failed)
    )
    for outcome in found:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=".".join(filter(None, ("regress", args.device.stem, args.sim, args.kind))),
            name=f"seed {outcome.seed}: {outcome.title}",
            time=str(outcome.seconds),
        )
        if outcome.wrong:
            text = "\n".join([*outcome.wrong, *repeat(args, outcome)])
            ElementTree.SubElement(case, "failure", message=outcome.wrong[0]).text = text
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def redrawn(found: list[ItemOutcome]) -> str:
    """How many draws were given up, by rule."""
    rules: Counter[str] = Counter()
    for outcome in found:
        rules.update(outcome.redrawn)
    listed = ", ".join(f"{count} {rule}" for rule, count in rules.most_common()) or "none"
    return f"draws that broke a rule and were drawn again: {listed}"


def run_random_items(args: argparse.Namespace) -> int:
    """Run the items; returns the exit status."""
    if args.seed is None:
        raise command.UsageError(f"no {option('seed')}, expected that of the first item")
    if args.tests:
        raise command.UsageError(f"{option('n')} and tests together, expected one of them")
    args.sim = args.sim or "verilator"
    command.apart(args, ("cluster", "jobs"), why="the cluster's workers are as many as it has")
    if args.cluster and not ADDRESS.fullmatch(args.cluster):
        raise command.UsageError(
            f"{option('cluster', args.cluster[:40])}: expected tcp://host:port"
        )
    args.config = args.config or CONFIG[args.sim]
    args.device = variants.requested(args)
    args.device.check_rounding()
    config = args.device.config
    simrun.check_tool(args.sim)
    if args.kind and args.kind not in regress_items.kinds_of(config):
        known = [
            n
            for n in configs.names()
            if args.kind in regress_items.kinds_of(configs.load_config(n))
        ]
        said = f"{option('kind', args.kind)}: {args.device.title} has "
        said += f"{regress_items.NEEDED[args.kind]} = 0, expected "
        said += option("config", "")
        raise command.UsageError(said + ", ".join(known))
    pieces, began = batches(args), time.monotonic()
    if args.cluster:
        source = cluster(pieces, args.cluster)
    else:  # one build for all
        launch.build_device(args.sim, config, regress_items.MOST_STORAGE, **args.device.bench)
        source = here(pieces, args.jobs or os.cpu_count() or 1)
    what = f"{args.n} items" + (f" of kind {args.kind}" if args.kind else "")
    print(f"{what} from seed {args.seed} on, {args.device.title} on {args.sim}", flush=True)
    found = show(args, source)
    REPORTS.mkdir(parents=True, exist_ok=True)
    junit(args, found, REPORTS / "junit.xml")
    failed = sum(bool(outcome.wrong) for outcome in found)
    print(redrawn(found))
    print(f"{len(found) - failed} of {args.n} items passed in {time.monotonic() - began:.0f} s")
    return int(failed > 0 or len(found) != args.n)
