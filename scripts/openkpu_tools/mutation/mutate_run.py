# SPDX-License-Identifier: Apache-2.0
"""Judge mutants: benches in workers, results kept as they come."""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from openkpu_tools import command
from openkpu_tools.mutation import mutate_benches, mutate_schemata
from openkpu_tools.mutation.mutate_benches import Bench, MutantPlan
from openkpu_tools.mutation.mutate_places import Mutation
from openkpu_tools.mutation.mutate_worker import Answer, Request

BUILD_SECONDS = 1800.0  # limit of a simulation while nothing is known of its length
PATIENCE, LEAST = 8.0, 30.0  # a mutant may take so many times as long as the original, so many s


class BenchError(command.UsageError):
    """A bench cannot judge: it fails on the original, or does not hold the module."""


class Store:
    """Answers of earlier runs and of this one, in a file that only grows.

    ``recorded``: a file of the repository with the answers that an earlier run has used. A key is a
    digest of the answer's inputs, so such an answer is as good as one of this run.
    """

    def __init__(self, file: Path, recorded: Path | None = None) -> None:
        self.file, self.lock = file, threading.Lock()
        self.known: dict[str, Answer] = {}
        self.used: dict[str, Answer] = {}
        self.recorded = _answers(recorded)
        self.known |= self.recorded | _answers(file)

    def get(self, key: str) -> Answer | None:
        """The answer that is known; it counts as used."""
        answer = self.known.get(key)
        if answer is not None:
            self.used[key] = answer
        return answer

    def keep(self, key: str, answer: Answer) -> None:
        """Add an answer; a process that is killed right after it has it in the file."""
        with self.lock:
            self.known[key] = self.used[key] = answer
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.file, "a", encoding="utf-8") as stream:
                stream.write(_line(key, answer))

    def record(self, file: Path, whole: bool) -> None:
        """Write the answers used; after a run that is not ``whole`` the old ones stay, too."""
        rows = self.used if whole else self.recorded | self.used
        file.write_text("".join(_line(k, rows[k]) for k in sorted(rows)), encoding="utf-8")


def _answers(file: Path | None) -> dict[str, Answer]:
    """What a file of answers holds, by key."""
    found = {}
    for text in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else []:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a line cut short
            row = json.loads(text)
            key = row.pop("key")
            found[key] = Answer(**row)
    return found


def _line(key: str, answer: Answer) -> str:
    times = {"seconds": round(answer.seconds, 1), "longest": round(answer.longest, 1)}
    return json.dumps({"key": key, **asdict(answer), **times}) + "\n"


@dataclass
class Original:
    """What a bench does on the unchanged device."""

    lock: threading.Lock
    answer: Answer | None = None


class Judge:
    """Asks benches about mutants of one set of mutated sources."""

    def __init__(
        self, root: Path, plan: MutantPlan, mutants: Sequence[Mutation], store: Store
    ) -> None:
        """``mutants`` in the order of their numbers, from 1 on."""
        self.root, self.plan, self.mutants, self.store = root, plan, mutants, store
        self.rtl: Path | None = None
        self.idle: SimpleQueue[subprocess.Popen] = SimpleQueue()
        self.workers: list[subprocess.Popen] = []
        self.originals = {b: Original(threading.Lock()) for b in plan.benches}
        self.absent: set[tuple[Bench, str]] = set()  # modules that a bench of the device lacks

    @contextlib.contextmanager
    def working(self, folder: Path, jobs: int) -> Iterator[None]:
        """Mutated sources in ``folder`` and ``jobs`` workers, ended with the block."""
        self.rtl = mutate_schemata.write_mutants(self.root, folder, self.mutants)
        environment = {
            k: v for k, v in os.environ.items() if k not in ("OPENKPU_SEED", "OPENKPU_RESULTS")
        }
        words = [sys.executable, "-m", "openkpu_tools.mutation.mutate_worker"]
        with contextlib.ExitStack() as stack:
            for _ in range(jobs):
                process = subprocess.Popen(
                    words,
                    cwd=self.root,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    process_group=0,  # Ctrl-C is for the parent to pass on
                )
                stack.enter_context(command.ending(process))
                self.workers.append(process)
                self.idle.put(process)
            yield

    def stop(self) -> None:
        """End the workers at once, and with them whoever waits for an answer."""
        for process in self.workers:
            process.terminate()

    def _ask(self, bench: Bench, number: int, limit: float) -> Answer:
        process = self.idle.get()
        assert process.stdin is not None and process.stdout is not None
        own = bench.test, bench.choose, limit, bench.seed, bench.further
        request = Request(number, str(self.rtl), *own)
        try:
            process.stdin.write(json.dumps(asdict(request)) + "\n")
            process.stdin.flush()
            text = process.stdout.readline()
        except OSError:
            text = ""
        if not text:
            raise BenchError(f"{bench.name}: the process that ran it has ended")
        self.idle.put(process)
        answer = Answer(**json.loads(text))
        if answer.outcome == "broken":
            raise BenchError(f"{bench.name}: {answer.by}")
        return answer

    def _limit(self, bench: Bench) -> float | None:
        """Seconds that a mutant's simulation may take; None: the bench has no tests.

        The original has to pass first.
        """
        original = self.originals[bench]
        with original.lock:
            if original.answer is None:
                answer = self._ask(bench, 0, BUILD_SECONDS)
                if answer.outcome not in ("passed", "none"):
                    raise BenchError(f"{bench.name} fails on the original RTL: {answer.by}")
                original.answer = answer
                if answer.outcome == "passed":
                    said = f"{bench.name}: passes on the original, {answer.seconds:.0f} s"
                    print(said, flush=True)
        if original.answer.outcome == "none":
            return None
        return max(LEAST, PATIENCE * original.answer.longest)

    def key(self, bench: Bench, mutation: Mutation) -> str:
        """What an answer is kept by: the mutation, its folder of the RTL, the bench."""
        folder = str(Path(mutation.file).parent)
        parts = [
            mutate_benches.sources_digest(self.root, folder),
            mutate_benches.sources_digest(self.root, self.plan.includes),
            mutate_benches.bench_digest(self.root, self.plan, bench),
            *map(str, (mutation.file, mutation.start, mutation.end, mutation.after)),
            *map(str, mutation.edits),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

    def judge(self, number: int, level: str) -> tuple[Answer | None, float]:
        """(answer of the first bench that killed the mutant, else None; seconds it all took)."""
        mutation, seconds = self.mutants[number - 1], 0.0
        for bench in self.plan.judges(mutation.module, level):
            if (bench, mutation.module) in self.absent:
                continue
            key = self.key(bench, mutation)
            answer = self.store.get(key)
            if answer is None:
                limit = self._limit(bench)
                if limit is None:
                    continue
                answer = self._ask(bench, number, limit)
                if answer.outcome == "absent" and bench.modules and not bench.further:
                    raise BenchError(f"{bench.name} does not hold module {mutation.module}")
                self.store.keep(key, answer)
            seconds += answer.seconds
            if answer.outcome == "absent":
                self.absent.add((bench, mutation.module))
            if answer.outcome in ("failed", "hang"):
                return answer, seconds
        return None, seconds
