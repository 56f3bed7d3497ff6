# SPDX-License-Identifier: Apache-2.0
"""Fewest cycles of a model as it is run: what its array and its bus need (docs/performance.md 9).

The roofline adds up all multiplications and all bytes and takes the larger sum.  A model of a
compiler is a chain of runs instead, with work of the CPU between them: the maps of a run cannot
come before the run before has stored its own.  ``least`` is a bound for that chain.

Why it is one.  The array makes one issue a cycle (a pooling task reads one piece), layer after
layer, so a layer's issues are over no sooner than those of the layers before and its own together.
The bus moves one word a cycle; what a layer's last issue needs has come before it: maps of its run
since the run began, and weights at any time before.  Bytes of a map exist no sooner than the issues
of the layers before are over, and the next run begins when all of them are stored.  Every maximum
and every sum below is one of these statements; nothing else costs a cycle: no filling, no latency,
no partial word, no wait.

``in_turn`` adds what the device of this project does besides: a layer starts when the one before
it is written and stored, and its map has come, or the first band of it (docs/architecture.md 15.8,
15.10); the parameters of a run come after its start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.layer.pool_tasks import words_read
from openkpu.prediction.cycles import NEXT, LayerCycles
from openkpu.prediction.cycles_array import DRAIN, OUTPUT
from openkpu.prediction.cycles_pool import WRITTEN
from openkpu.prediction.cycles_shape import POOL

WRITE = OUTPUT + 1 + DRAIN  # from the last issue of a layer to the end of its last word's write


@dataclasses.dataclass(frozen=True)
class Work:
    """What a layer needs: cycles of its own, bytes of the bus."""

    busy: int  # issues of the array; pieces that a pooling task reads
    reads: int = 0  # bytes of words, weights and tables
    loads: int = 0  # ... of the map that it loads
    stores: int = 0  # ... of the map that it stores
    write: int = WRITE  # cycles from the last of ``busy`` to the end of the last write
    in_bands: bool = False  # starts with the first lines of the map that it loads


def layer_work(layer: LayerCycles) -> Work:
    """Of a layer of a prediction."""
    shape = layer.shape
    pool = shape.mode == POOL
    return Work(
        busy=words_read(shape.arg) if pool else layer.parts["array"],
        reads=layer.reads,
        loads=layer.loads,
        stores=layer.stores,
        write=WRITTEN if pool else WRITE,
        in_bands=bool(shape.band),
    )


def least(word: int, runs: Iterable[Sequence[Work]]) -> int:
    """Cycles that runs need one after the other, ``word`` bytes of the bus a cycle."""
    end = moved = 0  # the runs so far: cycles, bytes over the bus
    for run in runs:
        end, moved = _run(word, run, end, moved, turns=False)
    return end


def in_turn(word: int, runs: Iterable[Sequence[Work]]) -> int:
    """The same with one layer at a time, each of one inference."""
    end = 0
    for run in runs:
        # an idle device has read nothing ahead: as if the bus had been busy so far
        end, _ = _run(word, run, end, end * word, turns=True)
    return end


def of_runs(config: Config, runs: Iterable[Sequence[LayerCycles]]) -> tuple[int, int]:
    """``least`` and ``in_turn`` of the runs of a prediction, of one inference."""
    works = [[layer_work(layer) for layer in run] for run in runs]
    return least(config.bus_bytes, works), in_turn(config.bus_bytes, works)


def _run(word: int, run: Sequence[Work], begin: int, moved: int, *, turns: bool) -> tuple[int, int]:
    """A run that starts in cycle ``begin``, behind ``moved`` bytes: the same at its end."""
    done, loaded = begin, 0  # issues of the layers so far; bytes of maps of this run
    starts = []
    for layer in run:
        starts.append(done)
        loaded += layer.loads
        moved += layer.loads + layer.reads
        alone = done + (_alone(word, layer) if turns else layer.busy)
        done = max(alone, begin + ceil_div(loaded, word), ceil_div(moved, word))
    end, stored = done, 0
    for start, layer in zip(reversed(starts), reversed(run), strict=True):
        stored += layer.stores
        end = max(end, start + ceil_div(stored, word))
    moved += stored
    return max(end, begin + ceil_div(loaded + stored, word), ceil_div(moved, word)), moved


def _alone(word: int, layer: Work) -> int:
    """From a layer's start to that of the next one."""
    load, store = ceil_div(layer.loads, word), ceil_div(layer.stores, word)
    computed = layer.busy + layer.write
    if layer.in_bands:
        return max(computed, load + store) + NEXT
    return load + max(computed, store) + NEXT
