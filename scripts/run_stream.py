# SPDX-License-Identifier: Apache-2.0
"""Digits in one continuous run: `make stream IMAGES=1000 DISTURB=1`.

The scans of test and training set, as many as asked for and from the beginning again when they are
used up.  Every result is compared with the golden model's.  With --disturb the storage inserts wait
states at random, grants are taken away, and RETRY and SPLIT are answered.

Exit status: 0 every byte matched and nothing was lost, 1 otherwise, 2 bad request.
"""

import argparse
import sys
import time

import numpy as np
from openkpu.models import configs, digits
from openkpu.models.network import NetworkError
from openkpu.scripts import command, rtl, run_network
from openkpu.scripts.command import Parser, UsageError, complain, whole
from openkpu.tb import seeds, simrun
from openkpu.tb.device import launch
from openkpu.tb.device.requests import Run, StreamRequest

MOST = 100_000  # images of a run: their maps and counters lie in the simulator's memory
EVERY = 5.0  # seconds between lines of progress where lines stay
LIMIT = 50_000  # cycles from one inference to the next, undisturbed


def scans(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(pixels, labels) of ``count`` scans, held-out ones first."""
    training, test = digits.load_data()
    pixels = np.concatenate([test.pixels, training.pixels])
    labels = np.concatenate([test.labels, training.labels])
    order = np.arange(count) % len(labels)
    return pixels[order], labels[order]


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments; UsageError names what is wrong."""
    parser = Parser(prog="stream", description=__doc__.splitlines()[0])
    parser.add_argument("--sim", default="verilator")
    parser.add_argument("--config", default="small")
    parser.add_argument("--images", type=whole(1, MOST), default=1000)
    parser.add_argument("--disturb", action="store_true")
    parser.add_argument("--seed", type=command.SEED, default=1)
    args = parser.parse_args(argv)
    if args.sim not in simrun.SIMS:
        raise UsageError(f"unknown simulator {args.sim!r}, expected one of {list(simrun.SIMS)}")
    args.config = configs.load(args.config)
    return args


def run(args: argparse.Namespace) -> bool:
    """Run the stream; True when every result is right and there."""
    network = digits.load_network()
    run_network.check(network, args.config)
    images, labels = scans(args.images)
    print(
        f"{args.images} digits in one continuous run, {args.config.name} on {args.sim}"
        + (f", disturbed (seed {args.seed})" if args.disturb else "")
    )
    progress, found = rtl.Progress(), {}
    began = said = time.monotonic()

    def on_event(event: launch.Event) -> None:
        nonlocal said
        if event["event"] == "inference":
            now, done = time.monotonic(), event["number"] + 1
            text = f"{done} of {args.images} inferences done, {now - began:.0f} s"
            if done % 100 == 0 or done == args.images or (now - said > EVERY and not progress.live):
                progress.line(text)
                said = now
            else:
                progress.show(text + " ...")
        elif event["event"] == "stream":
            found.update(event)
        elif event["event"] == "rules":
            progress.line(event["text"])

    runs = [Run(network, images, disturb=args.disturb)]
    request = StreamRequest(runs, limit=LIMIT, seed=args.seed)
    size = network.storage(images, continuous=True).data.size
    layers = len(network.layers) * args.images
    depth = max(4096, 1 << (layers - 1).bit_length())
    rtl.build(args.sim, args.config, size, progress, PERF_DEPTH=depth)
    began = said = time.monotonic()
    launch.run_job(
        args.sim,
        args.config,
        request,
        on_event,
        storage_bytes=size,
        seed=args.seed,
        PERF_DEPTH=depth,
    )
    if found["failure"]:
        print(found["failure"])
        return False
    ends = np.array(found["ends"])
    wrong = int(np.count_nonzero(found["wrong"]))
    classes = [digits.classify(np.array(y, dtype=np.uint8)) for y in found["results"]]
    cycles = np.diff(ends[:, 0])
    print(f"results stored    {found['counters']['inferences']}, wrong {wrong}")
    print(f"read as labelled  {np.mean(np.array(classes) == labels):.2%}")
    print(f"cycles            {ends[-1][0]}: first {ends[0][0]}, then {cycles.mean():.0f} each")
    print("                  PERF_TOTAL, from the start to the last byte of the last result;")
    print("                  pixels and results are in storage, the host moves no maps")
    kept = found["counters"]["inf_kept"]
    print(f"weights kept      {kept} inferences did not read them again")
    return found["counters"]["inferences"] == args.images == len(ends) and not wrong


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    began = time.monotonic()
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        seeds.environment()
        simrun.check_tool(args.sim)
        simrun.builds()
        good = run(args)
    except (
        *(UsageError, seeds.SeedError, configs.ConfigError, NetworkError),
        simrun.ToolError,
    ) as error:
        return complain(error)
    except simrun.SimError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{'PASS' if good else 'FAIL'} in {time.monotonic() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run(main))
