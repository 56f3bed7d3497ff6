# SPDX-License-Identifier: Apache-2.0
"""Stages ahead of the array: words, decoder, tables and weights over the storage bus.

The bus moves a word a cycle. List words, tables and weights are read in the order of the layers;
maps that come go first, a map that leaves alternates with them (docs/architecture.md 15.5 to 15.8,
15.10). The array asks for rows of weights and parameters; the front moves on until they are there.
A resource without a known release time is released only after the array has its data.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Sequence

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import ACT_BYTES, BN_BYTES
from openkpu.configs import Config
from openkpu.layer.argument import LIST_BYTES, WORDS
from openkpu.layer.decoded import CHAN, FC, TAPS
from openkpu.layer.layout import ROW_BYTES
from openkpu.prediction import DeadlockError
from openkpu.prediction.cycles_shape import POOL, Shape

QUEUE = 4  # registers that a layer walks through between decoder and array
DECODER = 34  # cycles from a layer's last word to its descriptor, besides a step for each block
PUSH = 2  # cycles of a word that a host pushes: two accesses
LIST_START = 2  # from the start to the request of the list
LIST_AGAIN = 3  # ... from the last word of a list to the request of the next one
BURST_WORDS = 16  # words of a burst of weights or tables
LIST_BURST = 4  # words of a burst of the list channel
ISSUE = 7  # from a request to its first word on an idle bus: channel, arbiter, master
ARRIVES = 6  # from a word on the bus to its use: address and data phase, FIFO, gearbox
STORE_ISSUE = 12  # from the read of a map's piece in the AI RAM to its word on the bus
LOADED = 5  # from the last word of a layer's weights to the loader's being free
TURNS = 0.5  # share of a map that comes in bands, while the first reads of its layer do
REQUEST_GAP = 3  # cycles of the bus that a request costs besides its words
KEPT_PIECE = 16  # bytes of kept weights that come in a cycle
NONE = -1  # no layer


@dataclasses.dataclass
class Load:
    """A map or table that comes with priority over the reads: cycles, share of the bus."""

    first: float
    end: float
    share: float
    layer: int = NONE  # the layer whose reads, and all before them, take turns with its map
    lost: float = 0.0  # cycles by which such turns have delayed the end


class Bus:
    """Occupation of the bus: reads in their order, at ``now``; maps that come, maps that leave."""

    def __init__(self) -> None:
        self.now = 0.0  # the next word of the reads, at the earliest
        self.loads: list[Load] = []  # maps and tables that come
        self.ends = [0.0, 0.0]  # ... of maps, of tables
        self.complete = 0  # layers whose reads are all out
        self.store_end = 0.0  # a map that leaves has its turns up to there
        self.store_share = 1.0  # ... of the bus, without other requests

    def read(self, ready: float, words: float) -> float:
        """Words that are due in a cycle: the cycle after the last one."""
        now = max(self.now, ready)
        self.loads = [load for load in self.loads if load.end > now]
        if now < self.store_end:  # one burst of each
            turns = min(words, self.store_end - now)
            self.store_end += turns * max(0.0, 2 * self.store_share - 1)
            words += turns / max(0.5, 1 - self.store_share) - turns
        self.now = self._beside(now, words)
        return self.now

    def _beside(self, now: float, words: float) -> float:
        """The cycle after so many words, beside the maps that come. What is read before the last
        read of a layer has turns with this layer's map: the layer lacks what is behind it."""
        while edges := [at for load in self.loads for at in (load.first, load.end) if at > now]:
            at_work = [load for load in self.loads if load.first <= now < load.end]
            turns = [load for load in at_work if self._by_turns(load)]
            left = max(0, 1 - sum(TURNS if load in turns else load.share for load in at_work))
            cycles = min(edges) - now
            if left * cycles >= words:
                cycles = words / left if words else 0
            for load in turns:
                lost = cycles * min(left, load.share - TURNS) / load.share
                load.end, load.lost = load.end + lost, load.lost + lost
                self.ends[0] = max(self.ends[0], load.end)
            words, now = words - left * cycles, now + cycles
            if words <= 0:
                return now
        return now + words

    def _by_turns(self, load: Load) -> bool:
        """Whether reads have turns with a map that would use more of the bus."""
        return load.share > TURNS and load.layer >= self.complete

    def store(self, at: float, cycles: float, words: float) -> None:
        """A part of a map that leaves from a cycle on, within so many cycles."""
        start = max(self.store_end, at)
        turns = max(0, min(words, self.now - start))  # that reads had instead
        self.now += turns
        turns += min(words, max(0, self._beside(start, words) - start - cycles))
        self.store_end, self.store_share = start + cycles + turns, words / cycles

    def ahead(
        self, first: float, cycles: float, words: float, table: bool = False, layer: int = NONE
    ) -> Load:
        """Words with priority over the reads, within so many cycles. A ``table`` follows a map;
        ``layer`` takes turns with its map."""
        first, share = max(first, self.ends[table]), words / cycles
        if table:
            first = max(first, self._beside(first, words) - words)
        end = self.ends[table] = first + cycles
        if self.now > first:  # what was read too early
            self.now += min(1, (self.now - first) / cycles) * words
        self.loads.append(load := Load(first, end, share, layer))
        return load


class Front:
    """Decoder, loaders and bus, for the layers of one run."""

    def __init__(
        self,
        config: Config,
        layers: Sequence[Shape],
        *,
        tasks: bool = False,
        inferences: int = 1,
        spare: int = 0,
    ) -> None:
        """``tasks``: they come from a list in storage, for so many ``inferences`` in one continuous
        run; otherwise the host pushes them. Weights may wait in ``spare`` rows of the AI RAM."""
        self.waiting = spare * ROW_BYTES if config.weight_ahead else 0  # bytes
        # requests of the layers of a list that are decoded ahead wait behind each other
        self.gap = REQUEST_GAP if tasks and config.look_ahead <= QUEUE else 0
        self.config, self.length, self.tasks = config, len(layers), tasks
        self.shapes = [*layers] * inferences
        # a stream keeps the weights in their buffer (weight_keep) where the rows of all layers fit
        params = sum(shape.param_rows for shape in layers) <= config.param_chans // config.n_z
        weights = sum(shape.weight_rows for shape in layers) <= config.wbuf_rows
        self.reuse = inferences > 1 and weights and params
        self.bus = Bus()
        self.rows: list[float] = []  # cycle in which each row of weights is there
        self.params: list[float] = []  # ... row of parameters
        self.tables: list[float] = []  # ... table
        self.rows_freed: list[int] = []  # cycle from which on a row may be loaded again
        self.params_freed: list[int] = []
        self.collects: list[float] = []  # the last word of a layer is there
        self.decoded: list[float] = []  # ... its descriptor
        self.pops: list[int] = []  # ... has left it
        self.read_out: list[float] = []  # ... all its reads are out
        self.first_row = self.first_param = self.first_table = 0  # of the layer at work
        self.due: deque[tuple[Shape, int, float]] = deque()  # layers whose tables are to be read
        self.loading = False  # weights of a layer
        self.weights: Iterator[bool] = iter(())
        self.load_free = 0.0  # the loader has brought the layer before
        self.loaded_params = 0  # rows of parameters of the layers before
        self.feed = self._run()

    def advance(self, upto: float) -> None:
        """Read what can be read up to a cycle."""
        while self.bus.now < upto and not next(self.feed):
            pass

    def known(self, found: list[float], number: int) -> bool:
        """Read until ``found`` has ``number``; False: something must be released first."""
        while len(found) <= number:
            if next(self.feed):
                break
        return len(found) > number

    def until(self, found: list[float], number: int) -> int:
        """``found[number]``, once it is known."""
        if not self.known(found, number):
            raise DeadlockError("nothing moves")
        return int(found[number])

    def _run(self) -> Iterator[bool]:
        """Read words, tables and weights, layer by layer; True: before it continues, the caller has
        to release resources."""
        given: float = 0  # all have accepted the layer before
        queue = self.config.look_ahead
        for number, shape in enumerate(self.shapes):
            while len(self.pops) < number - queue:
                yield self._next()
            given = max(given, self.pops[number - queue - 1] + 1 if number > queue else 0)
            while self.bus.now < given and not self._next():
                yield False
            self.collects.append(self._words(number, given))
            block = shape.on.block if shape.mode in (TAPS, CHAN) else 1
            self.decoded.append(decoded := self.collects[-1] + DECODER + block)
            if self.tasks and not number:  # its pixels go first
                yield False
            self.due.append((shape, number, decoded))
            while self.loading:
                yield self._next()
            given = max(decoded, self.load_free)
            self.loading, self.weights = True, self._weights(shape, number, decoded, given)
        while True:
            yield self._next()

    def _next(self) -> bool:
        """The next part of the weights, or tables that are due; True: they wait for a release."""
        loading = self.loading
        waits = next(self.weights, True) and self.loading == loading
        if self.due and (waits or self.bus.now >= self.due[0][2]) and self._tables(*self.due[0]):
            self.due.popleft()
            return False
        return waits

    def _words(self, number: int, given: float) -> float:
        """Cycle of a layer's last word; the decoder is free from cycle ``given`` on."""
        if not self.tasks:
            pushed = WORDS * PUSH * number
            return max(given + WORDS, pushed + PUSH * (WORDS - 1))
        inference, place = divmod(number, self.length)
        size = LIST_BYTES / self.config.bus_bytes
        cycles = max(WORDS, size) + size / LIST_BURST
        if place:
            self.bus.read(given, size)
            return given + cycles
        asked = self.collects[-1] + LIST_AGAIN if inference else LIST_START
        return max(asked + ISSUE + ARRIVES, given) + cycles

    def _tables(self, shape: Shape, number: int, ready: float) -> bool:
        """Table and parameters of a layer; False: it is not known when there is room for them."""
        if shape.bare:
            return True
        word, n_z = self.config.bus_bytes, self.config.n_z
        count = 0 if self._reuses(number) else shape.arg.o_ch_num
        over = len(self.params) + ceil_div(count, n_z) - self.config.param_chans // n_z
        if count and over > 0:
            if len(self.params_freed) < over:
                return False
            ready = max(ready, self.params_freed[over - 1])
        words = self.reads(number)[1] / word + 2 * self.gap
        # behind what fits the FIFO weights have every third burst
        weights = self.reads(number)[0] / word
        behind = max(0, int(words) - self.config.bias_fifo_depth)
        cycles = words + min(BURST_WORDS * ceil_div(behind, 2 * BURST_WORDS), weights)
        end = self.bus.ahead(ready + ISSUE, cycles, words, table=True).end + ARRIVES
        rate = max(1.0, BN_BYTES / word * cycles / words)  # cycles of a channel
        self.tables.append(first := end - rate * count)
        self.params += [first + min(at, count) * rate for at in range(n_z, count + n_z, n_z)]
        return True

    def _weights(self, shape: Shape, number: int, decoded: float, given: float) -> Iterator[bool]:
        """Rows of weights of a layer, a channel or a row at a time."""
        config, arg, word = self.config, shape.arg, self.config.bus_bytes
        if shape.mode == POOL or self._reuses(number):
            self._all_out()
            return
        ready = decoded + ISSUE + 1
        load = given + 2
        params = config.param_chans // config.n_z
        words = 1 if arg.depthwise else shape.on.steps  # of a channel
        total = words * arg.o_ch_num
        if shape.mode == FC or shape.arg.depthwise:  # words dealt over the banks, row by row
            span = each = 1
            parts = [min(config.n_z, total - n) for n in range(0, total, config.n_z)]
        else:  # channel by channel, the last one of a group completes its rows
            span, each, parts = words, config.n_z, [words] * arg.o_ch_num
        size = shape.weight_bytes / total
        ring = config.wbuf_rows + int(self.waiting / (size * config.n_z))  # rows
        for n, part in enumerate(parts):
            group, place = divmod(n, each)
            ends = place == each - 1 or n == len(parts) - 1
            free = load
            if not place and (over := len(self.rows) + span - ring) > 0:
                while len(self.rows_freed) < over:
                    yield True
                free = max(free, self.rows_freed[over - 1] - span)
            over = self.loaded_params + group - params
            # with spare rows weights wait for room for parameters without stopping the bus
            if over >= 0 and shape.mode != FC and not shape.bare and not self.waiting:
                while len(self.params_freed) <= over:
                    yield True
                free = max(free, self.params_freed[over])
            cost = size * part / (KEPT_PIECE if arg.kept_weights else word)
            if arg.kept_weights:
                there = ready
            else:
                due = max(ready, free - config.wgt_fifo_depth)
                there = self.bus.read(due, cost + self.gap * arg.load_time / len(parts)) + ARRIVES
            before = load
            load = max(load + part, there, free + max(part, cost))
            if not arg.kept_weights:
                self.bus.now = max(self.bus.now, load - config.wgt_fifo_depth - ARRIVES)
            if ends:
                step = min((load - before) / part, max(1.0, size / word))
                self.rows += [load - 1 - step * left for left in reversed(range(span))]
            yield False
        self.loaded_params += shape.param_rows
        self.load_free = load + LOADED
        self._all_out()

    def _all_out(self) -> None:
        """The last read of a layer is out."""
        self.loading = False
        self.read_out.append(self.bus.now)
        self.bus.complete = len(self.read_out)

    def _reuses(self, layer: int) -> bool:
        """Weights and parameters of a layer are there from the inference before."""
        return self.reuse and layer >= self.length

    def reads(self, layer: int) -> tuple[int, int]:
        """Bytes of what a layer reads from storage: weights, tables."""
        shape, reuse = self.shapes[layer], self._reuses(layer)
        weights = 0 if reuse or shape.arg.kept_weights else shape.weight_bytes
        tables = 0 if shape.bare else ACT_BYTES + (0 if reuse else BN_BYTES * shape.arg.o_ch_num)
        return weights, tables

    def read_again(self, layer: int, fill: int, cycles: int) -> int:
        """Cycles by which a layer exceeds ``cycles`` because its weights waited in the AI RAM,
        whose words are read between those of the fill."""
        # those of the first layer go directly
        waited = self.reads(layer)[0] if self.waiting and layer else 0
        words = ceil_div(waited, self.config.path_bytes)
        return max(0, fill + words - cycles) if words else 0

    def head(self, layer: int) -> int:
        """Cycle in which a layer is at the head of the queue."""
        at = self.until(self.decoded, layer)
        queue = self.config.look_ahead
        if layer >= queue:
            at = max(at, self.pops[layer - queue] + 1)
        return max(at + QUEUE, self.pops[layer - 1] + 1 if layer else 0)

    def row(self, number: int) -> int:
        """Cycle in which a row of weights of the layer at work was complete."""
        return self.until(self.rows, self.first_row + number)

    def leave(self, shape: Shape, at: int) -> None:
        """The layer at the head of the queue leaves it; the next one's rows follow its own."""
        self.pops.append(at)
        if shape.mode != POOL:
            self.first_table += int(not shape.bare)
            self.first_row += shape.weight_rows
            self.first_param += shape.param_rows
            if not self.reuse:
                self.params_freed.extend([at] * shape.param_rows)
        if self.reuse and len(self.pops) % self.length == 0:
            self.first_row = self.first_param = 0
