# SPDX-License-Identifier: Apache-2.0
"""Which layers form a chain that is computed in bands, how many bands, and which maps between
chains lie in storage.

A chain of layers ``first`` to ``behind`` computes its outputs band by band; what lies between its
layers exists for one band at a time.  A convolution and the layers that follow it channel by
channel may do so in parts of the channels as well.  Costs are cycles of the array or of the bus,
whichever is more, halo included; the chains of least cost are found by dynamic programming, and
maps change between AI RAM and storage as long as that makes the whole cheaper.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterator

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.arithmetic.params import BN_BYTES
from openkpu.compiler.bands.chains import (
    CHANNELS,
    BandPlan,
    Chain,
    Lines,
    Range,
    Use,
    hull,
    part_channels,
)
from openkpu.compiler.bands.graph import Layers, Map
from openkpu.compiler.bands.lines import Window, window
from openkpu.compiler.form.graph import MOST_LINES
from openkpu.compiler.lowering.device import Place, Spec
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout

LONGEST = 12  # maps that a chain writes
PARTS = (1, 2, 4, 8, 16, 32)  # of the channels of a segment
OVERHEAD = 90  # cycles of a layer, about
ACTIVATION = 144 + 96  # bytes of a layer besides weights and batch norm: its table and its words
MOST_MOVED = 1024  # channels of a map that one layer moves
SHARES = (1, 0.5, 0.25, 0.1, 0)  # of the AI RAM: larger maps lie in storage, at first
NEVER = math.inf


def tall(spec: Spec) -> bool:
    """Has one of a layer's maps more lines than a layer has?"""
    return max(spec.src.shape[1], spec.dst.shape[1]) > MOST_LINES


class Planner:
    """Plans for one list on one configuration."""

    def __init__(self, layers: Layers, config: Config, ram_rows: int) -> None:
        self.layers, self.config, self.ram_rows = layers, config, ram_rows
        self.bandable = [layers.bandable(n) for n in range(len(layers.specs))]
        self.fixed = [self._bytes(spec.arg) / config.bus_bytes for spec in layers.specs]
        self.tall = frozenset(b for b, m in layers.maps.items() if m.shape[1] > MOST_LINES)
        self.in_place = [s.in_order and s.src2 is None and s.constant is None for s in layers.specs]
        self.finer = 0  # counts of bands that are passed over, for smaller pieces in storage
        self.extra: dict[Range, int] = {}  # rows that chains turned out to need besides
        self.uses: dict[tuple[int, int, frozenset[int]], tuple[int, list[Use]]] = {}
        self.windows: dict[tuple[int, int, int], Window] = {}
        self.known: dict[tuple[int, int, frozenset[int]], tuple[float, Chain] | None] = {}
        self.lines: dict[tuple[int, int, int, int], Lines] = {}
        self.works: dict[Chain, float] = {}
        self.split: dict[Range, list[Range]] = {}

    # -------------------------------------------------------------------- lines
    def ranges(self, chain: Chain, band: int) -> Lines:
        """Lines that are read and computed for a band."""
        key = chain.first, chain.behind, chain.bands, band
        if key not in self.lines:
            self.lines[key] = self._ranges(chain, band)
        return self.lines[key]

    def _ranges(self, chain: Chain, band: int) -> Lines:
        wanted: dict[int, Range] = {}
        windows: dict[int, Window] = {}
        inside = range(chain.first, chain.behind)
        for number in inside:
            place = self.layers.specs[number].dst
            found = self.layers.of(place)
            if self.leaves(found, chain):
                height = found.shape[1]
                wanted[place.buffer] = (
                    height * band // chain.bands,
                    height * (band + 1) // chain.bands,
                )
        own = dict(wanted)
        needs: dict[int, Range] = {}
        reads: dict[int, list[tuple[Place, Range]]] = {}
        for number in reversed(inside):
            spec = self.layers.specs[number]
            buffer, need = spec.dst.buffer, own.get(spec.dst.buffer)
            for place, lines in reads.get(buffer, ()):
                if (
                    place.row < spec.dst.row + spec.dst.rows
                    and spec.dst.row < place.row + place.rows
                ):
                    need = hull(need, lines)
            needs[number] = need = need or wanted.get(buffer, (0, spec.dst.shape[1]))
            key = number, *need
            if key not in self.windows:
                self.windows[key] = window(spec.arg, *need)
            windows[number] = seen = self.windows[key]
            for place in self.layers.sources(number):
                lines = seen.low, seen.high
                wanted[place.buffer] = hull(wanted.get(place.buffer), lines)
                reads.setdefault(place.buffer, []).append((place, lines))
        there = dict(wanted)
        for number, seen in windows.items():
            buffer = self.layers.specs[number].dst.buffer
            there[buffer] = hull(there.get(buffer), (seen.first, seen.behind))
        return Lines(wanted, windows, there, needs)

    def leaves(self, found: Map, chain: Chain) -> bool:
        """Is a map that the chain writes needed behind it, or written by one before as well?"""
        split = found.writers and found.first < chain.first <= found.writers[-1]
        return found.wanted or found.last >= chain.behind or bool(split)

    # -------------------------------------------------------------------- costs
    def _bytes(self, arg: LayerArg) -> int:
        bn = BN_BYTES * arg.table_words[0]
        return arg.weight_count + bn + (ACTIVATION if not arg.pool_task else 96)

    def _work(self, number: int, seen: Window) -> float:
        """Cycles of the array for the lines of a window."""
        arg, config = self.layers.specs[number].arg, self.config
        lines, width = seen.behind - seen.first, arg.o_row_wid
        if arg.pool_task:
            bytes_ = arg.i_ch_num * (seen.high - seen.low) * round_up(arg.i_row_wid, 16)
            return bytes_ / min(16, config.path_bytes)
        if arg.fc:
            return arg.weight_count / 9 / config.n_z
        if arg.depthwise:
            maps = 2 if arg.two_maps else 1
            lanes = config.n_y * (1 if arg.pool_type or arg.dilation > 1 else config.n_z)
            return maps * arg.o_ch_num * lines * width / min(lanes, config.path_bytes)
        steps = arg.i_ch_num if arg.kernel == 3 else ceil_div(arg.i_ch_num, 9)
        groups = ceil_div(arg.o_ch_num, config.n_z)
        reads = arg.i_ch_num * (seen.high - seen.low) * round_up(arg.i_row_wid, 16)
        return max(steps * groups * lines * ceil_div(width, config.n_y), reads / config.path_bytes)

    def _moved(self, found: Map) -> float:
        return found.bytes / self.config.bus_bytes + OVERHEAD

    # -------------------------------------------------------------------- rows
    def _around(self, chain: Chain, stored: frozenset[int]) -> tuple[int, list[Use]]:
        """(rows of maps that only wait meanwhile, the maps that the chain uses)."""
        key = chain.first, chain.behind, stored
        if key not in self.uses:
            held, uses = 0, []
            for buffer, found in self.layers.maps.items():
                if found.first >= chain.behind or found.last < chain.first:
                    continue
                inside = [n for n in found.all if chain.first <= n < chain.behind]
                if inside:
                    here, leaves = found.first >= chain.first, self.leaves(found, chain)
                    low, high = min(inside), max(inside)
                    uses.append(Use(buffer, found, here, leaves, buffer in stored, low, high))
                elif buffer not in stored:
                    held += found.rows
            self.uses[key] = held, uses
        return self.uses[key]

    def rows(self, chain: Chain, stored: frozenset[int]) -> int:
        """Rows of the AI RAM that the chain needs at a time, about."""
        held, uses = self._around(chain, stored)
        wanted, windows, there, _ = self.ranges(chain, chain.bands // 2)
        spread = self._spread(chain)
        inner: dict[int, tuple[int, int, int]] = {}  # rows, first, last layer, by buffer
        for use in uses:
            buffer, found, since, until = use.buffer, use.found, use.first, use.last
            if (use.here and not use.leaves) or use.stored:
                lines = there[buffer] if use.here else wanted[buffer]
                rows = self._lines(found, lines)
                if buffer in spread:
                    channels = part_channels(found.shape[0], chain.parts)
                    rows = Layout(channels, lines[1] - lines[0], found.shape[2]).rows
                elif use.stored and not use.here:  # what arrives stays for the next band
                    since = chain.first
                    until = until if chain.bands == 1 else chain.behind
            else:
                alone = chain.bands == 1 and not use.here and not use.leaves
                until = until if alone else chain.behind
                since = since if use.here and chain.bands == 1 else chain.first
                rows = found.rows
                if use.here and self._vain(found, windows):
                    held += self._lines(found, wanted[buffer])
            inner[buffer] = rows, since, until
        for start, end in self.segments(chain) if chain.parts > 1 else ():
            for buffer, (rows, first, last) in inner.items():
                if buffer not in spread and first < end and last >= start:
                    inner[buffer] = rows, min(first, start), max(last, end - 1)
        steps = [0] * (chain.behind - chain.first + 1)  # rows more than for the layer before
        for rows, first, last in inner.values():
            steps[first - chain.first] += rows
            if last < chain.behind:
                steps[last + 1 - chain.first] -= rows
        most = 0
        waiting = itertools.accumulate(steps)
        for number, now in zip(range(chain.first, chain.behind), waiting, strict=False):
            spec = self.layers.specs[number]
            if self.in_place[number]:
                a, b = inner.get(spec.src.buffer), inner.get(spec.dst.buffer)
                free = spec.src.buffer not in spread and spec.dst.buffer not in spread
                if free and a and b and a[0] == b[0] and a[2] == number and b[1] == number:
                    now -= a[0]
            if spec.constant is not None:
                seen = windows[number]
                now += Layout(spec.src.shape[0], seen.high - seen.low, spec.src.shape[2]).rows
            most = max(most, now)
        return held + most + self.extra.get((chain.first, chain.behind), 0)

    def _vain(self, found: Map, windows: dict[int, Window]) -> bool:
        """Does a layer compute lines beyond the requested ones?"""
        return any(
            self.layers.specs[n].arg.kernel == 3 and not self.layers.specs[n].arg.elementwise
            for n in found.writers
            if n in windows and (windows[n].first, windows[n].behind) != (0, found.shape[1])
        )

    @staticmethod
    def _lines(found: Map, lines: Range) -> int:
        groups, row_len = found.line_rows
        return groups * row_len * (lines[1] - lines[0])

    def _spread(self, chain: Chain) -> set[int]:
        """Buffers that exist for a part of the channels at a time."""
        if chain.parts == 1:
            return set()
        return {
            self.layers.specs[n].dst.buffer
            for start, end in self.segments(chain)
            for n in range(start, end - 1)
        }

    def segments(self, chain: Chain) -> list[Range]:
        """Segments of more than one layer in a chain."""
        key = chain.first, chain.behind
        if key not in self.split:
            found, number = [], chain.first
            while number < chain.behind:
                end = min(self.layers.segments[number], chain.behind)
                found.append((number, end))
                number = end
            self.split[key] = [(start, end) for start, end in found if end > start + 1]
        return self.split[key]

    # -------------------------------------------------------------------- chains
    def cost(self, chain: Chain, stored: frozenset[int]) -> float:
        """Cycles of a chain, maps of ``stored`` near to it that it loads and stores included."""
        if chain not in self.works:
            self.works[chain] = self._cycles(chain)
        total, bands = self.works[chain], chain.bands
        inside = range(chain.first, chain.behind)
        for buffer in stored:
            found = self.layers.maps[buffer]
            reads = any(n in inside for n in found.readers) and found.first < chain.first
            writes = any(n in inside for n in found.writers)
            if reads or writes:
                total += self._moved(found) + bands * OVERHEAD * (3 if reads else 1)
        return total

    def _cycles(self, chain: Chain) -> float:
        """... without transfers from and to storage."""
        total, bands = 0.0, chain.bands
        parts = dict(self.segments(chain)) if chain.parts > 1 else {}
        many = {n for start, end in parts.items() for n in range(start, end)}
        samples = (
            {0: 1, 1: bands - 2, bands - 1: 1} if bands > 2 else dict.fromkeys(range(bands), 1)
        )
        for band, times in samples.items():
            for number, seen in self.ranges(chain, band).windows.items():
                layers = chain.parts if number in many else 1
                work = self._work(number, seen) + OVERHEAD * layers
                total += times * max(work, self.fixed[number])
        return total

    def best(self, first: int, behind: int, stored: frozenset[int]) -> tuple[float, Chain] | None:
        """The cheapest way for these layers; None where they do not fit."""
        near = self._near(first, behind, stored)
        key = first, behind, near
        if key not in self.known:
            self.known[key] = self._best(first, behind, near)
        return self.known[key]

    def _near(self, first: int, behind: int, stored: frozenset[int]) -> frozenset[int]:
        maps = self.layers.maps
        return frozenset(b for b in stored if maps[b].first < behind and maps[b].last >= first)

    def _best(self, first: int, behind: int, stored: frozenset[int]) -> tuple[float, Chain] | None:
        found: list[tuple[float, Chain]] = []
        if self._torn(first, behind, stored):
            return None
        outputs = [
            self.layers.maps[b].shape[1]
            for n in range(first, behind)
            if self.leaves(
                self.layers.maps[b := self.layers.specs[n].dst.buffer], Chain(first, behind)
            )
        ]
        most = min(outputs, default=1)
        counts = list(self._counts(first, behind, most, stored))
        for parts in self._parts(first, behind):
            chains = [Chain(first, behind, bands, parts) for bands in counts]
            fits = functools.partial(self._fits, stored)
            if fits(chains[-1]):
                at = bisect.bisect_left(chains, True, key=fits)
                if chains[at].bands > 1:
                    at = min(len(chains) - 1, at + self.finer)
                found.append((self.cost(chains[at], stored), chains[at]))
            if found and found[-1][1].bands == 1:
                break
        return min(found, key=lambda f: f[0], default=None)

    def _parts(self, first: int, behind: int) -> list[int]:
        """Numbers of parts of the channels that are tried."""
        segments = self.segments(Chain(first, behind))
        outputs = min((self.layers.specs[start].arg.o_ch_num for start, _ in segments), default=0)
        return [parts for parts in PARTS if parts == 1 or parts * CHANNELS <= outputs]

    def _fits(self, stored: frozenset[int], chain: Chain) -> bool:
        return self._low(chain) and self.rows(chain, stored) <= self.ram_rows

    def _low(self, chain: Chain) -> bool:
        """Has no layer of a chain more lines than the device's have?"""
        if not self.tall:
            return True
        middle = chain.bands // 2  # most likely too tall, so it comes first
        for band in (middle, *range(chain.bands)):
            for seen in self.ranges(chain, band).windows.values():
                if max(seen.high - seen.low, seen.behind - seen.first) > MOST_LINES:
                    return False
        return True

    def _torn(self, first: int, behind: int, stored: frozenset[int]) -> bool:
        """Is a map of storage written by this chain and by another one?"""
        inside = range(first, behind)
        for number in inside:
            buffer = self.layers.specs[number].dst.buffer
            writers = self.layers.maps[buffer].writers
            if buffer in stored and any(n not in inside for n in writers):
                return True
        return False

    def _counts(self, first: int, behind: int, most: int, stored: frozenset[int]) -> Iterator[int]:
        """Numbers of bands that are tried; results that leave in bands lie in storage."""
        yield 1
        results = {s.dst.buffer for s in self.layers.specs[first:behind]}
        whole = any(self.layers.maps[b].wanted and b not in stored for b in results)
        if not whole and all(self.bandable[first:behind]):
            count = 2
            while count <= most:
                yield count
                count += 1 if count < 16 else count // 8

    def least(self, number: int, *, waiting: bool = False) -> int:
        """Fewest rows of a chain with this layer, or those of a chain that fits; 0 where there is
        none.  ``waiting``: the chain begins with the layer, and maps that only wait count too."""
        found = [0]
        for first in range(number, -1 if not waiting else number - 1, -1):
            if number - first >= LONGEST:
                break
            ends = [behind for behind in self._ends(first) if behind > number]
            for behind, stored in itertools.product(ends, self._starts()):
                near = self._near(first, behind, stored)
                if self._torn(first, behind, near):
                    continue
                height = self.layers.specs[behind - 1].dst.shape[1]
                *_, bands = self._counts(first, behind, height, near)
                for parts, count in itertools.product(self._parts(first, behind), (bands, 1)):
                    chain = Chain(first, behind, count, parts)
                    held = 0 if waiting else self._around(chain, near)[0]
                    found.append(self.rows(chain, near) - held)
                    if found[-1] <= self.ram_rows:
                        return found[-1]
        return min(found[1:], default=0)

    # -------------------------------------------------------------------- plans
    def plan(self, stored: frozenset[int]) -> BandPlan | int:
        """The cheapest chains with these maps in storage; the first layer that does not fit."""
        count = len(self.layers.specs)
        costs: list[tuple[float, Chain | None]] = [(0.0, None), *((NEVER, None),) * count]
        reached = 0
        for first in range(count):
            if costs[first][0] == NEVER:
                continue
            for behind in self._ends(first):
                way = self.best(first, behind, stored)
                if way is not None and costs[first][0] + way[0] < costs[behind][0]:
                    costs[behind] = costs[first][0] + way[0], way[1]
                    reached = max(reached, behind)
        if costs[count][0] == NEVER:
            return reached
        chains, at = [], count
        while at:
            chain = costs[at][1]
            assert chain is not None
            chains.append(chain)
            at = chain.first
        return BandPlan(chains[::-1], stored, costs[count][0])

    def _ends(self, first: int) -> Iterator[int]:
        """Behind the chains that begin with a layer; all that write one map count as one."""
        written: set[int] = set()
        for behind, spec in enumerate(self.layers.specs[first:], first + 1):
            written.add(spec.dst.buffer)
            more = behind == first + 1 or self._joined(first, behind)
            if len(written) > LONGEST or not more:
                break
            yield behind

    def _joined(self, first: int, behind: int) -> bool:
        """May these layers form a chain: in bands, or as a segment?"""
        whole = self.layers.segments[first] >= behind
        return whole or all(self.bandable[first:behind])

    def needs(self, chain: Chain, rows: int) -> None:
        """Record that a chain needs so many rows more than estimated."""
        key = chain.first, chain.behind
        self.extra[key] = self.extra.get(key, 0) + rows
        self.known = {k: v for k, v in self.known.items() if k[:2] != key}

    def refine(self) -> None:
        """Start again, with more bands than the rows ask for."""
        self.finer = 2 * self.finer + 1
        self.extra.clear()
        self.known.clear()

    def found(self, before: BandPlan | None = None) -> BandPlan | int:
        """The cheapest plan, whatever lies in storage; the first layer that no chain holds.

        ``before``: a plan of a time when less was known of what chains need; its maps stay where
        they are.
        """
        if before is not None and isinstance(again := self.plan(before.stored), BandPlan):
            return again
        able = self._able()
        best: BandPlan | int = 0
        for stored in self._starts():
            best = _better(best, self.plan(stored))
        if isinstance(best, int):
            return best
        more = True
        while more:
            more = False
            for buffer in self._between(best, able):
                changed = self.plan(best.stored ^ {buffer})
                if _better(best, changed) is changed:
                    assert isinstance(changed, BandPlan)
                    best, more = changed, True
        return best

    def _able(self) -> list[int]:
        """Maps that may lie in storage."""
        return [b for b, m in self.layers.maps.items() if m.even and m.shape[0] <= MOST_MOVED]

    def _starts(self) -> list[frozenset[int]]:
        """Maps of storage that are tried first."""
        rows = {b: self.layers.maps[b].rows for b in self._able()}
        shares = [self.ram_rows * share for share in SHARES]
        return [self.tall | {b for b in rows if rows[b] > share} for share in shares]

    def _between(self, plan: BandPlan, able: list[int]) -> list[int]:
        """Maps between chains."""
        inner = set()
        for chain in plan.chains:
            for number in range(chain.first, chain.behind):
                buffer = self.layers.specs[number].dst.buffer
                if not self.leaves(self.layers.maps[buffer], chain):
                    inner.add(buffer)
        return [b for b in able if b not in inner and b not in self.tall]


def _better(old: BandPlan | int, new: BandPlan | int) -> BandPlan | int:
    """The cheaper plan; of two failures the later one."""
    if isinstance(new, int):
        return max(old, new) if isinstance(old, int) else old
    if isinstance(old, int):
        return new
    return new if new.cost < old.cost else old
