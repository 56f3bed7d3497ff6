# SPDX-License-Identifier: Apache-2.0
"""What runs ahead of the array: words, decoder, dispatcher, loaders, the bus behind them.

The array asks for rows of weights, rows of parameters and tables; the front moves on, burst by
burst, until they are there (docs/architecture.md 15.6 to 15.8). It knows what the array has freed
so far: what is not known yet cannot have been released before the array gets what it waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from .configs import Config
from .cycles_bus import BLOCK_FROM, Bus, Channel, Gear
from .cycles_load import ParamLoader, WeightLoader
from .cycles_shape import CHAN, FC, POOL, TAPS, Shape

# layer_decode: from the last word of a layer to the descriptor, besides the steps of the blocks
DECODE = 25
DECODE_FC = 33  # the vector's length is divided, which is known later
QUEUE = 4  # layers between decoder and array; cycles from its end to its head
REQUEST = 1  # fetch_ctrl offers requests a cycle after it was given the layer
WORDS = 12  # of a layer argument
WINDOW = 18  # bytes of nine 16-bit weights
LIST_DEPTH = 8  # words of the FIFO of the list channel


class DeadlockError(RuntimeError):
    """The model waits for something that nobody brings: a fault of the model."""


class HostWords:
    """Layer words that a host pushes, in bursts of so many layers."""

    WORD = 2  # cycles of a word: two accesses
    SEEN = 0  # busy begins with the first word that is seen

    def __init__(self, burst: int) -> None:
        """``burst`` layers are pushed at a time; the next ones when the FIFO is almost empty."""
        self.burst = burst

    def begun(self, layer: int, front: Front) -> int:
        """Cycle of the first word of the burst in which a layer is pushed."""
        part = layer // self.burst
        if not part:
            return 0
        # almost empty: one layer of the burst before is left in the FIFO
        return front.collects[max(0, part * self.burst - 2)] + HOST_SERVES

    def pushed(self, layers: int, front: Front) -> int:
        """Cycle of the host's first look at the status behind the last push."""
        number = (layers - 1) % self.burst + 1
        return self.begun(layers - 1, front) + WORDS * self.WORD * number

    def collected(self, layer: int, free: int, front: Front) -> int | None:
        """Cycle in which the last word of a layer is taken; ``free``: the decoder's."""
        arrive = self.begun(layer, front) + WORDS * self.WORD * (layer % self.burst)
        at = max(free, arrive)
        return max(at + WORDS - 1, arrive + self.WORD * (WORDS - 1))


HOST_SERVES = 12  # cycles from the interrupt to the first word of the next burst of layers


class ListWords:
    """Layer words out of a task list."""

    START = 3  # from the start to the request of the list

    def __init__(self, channel: Channel, address: int, layers: int) -> None:
        self.channel = channel
        channel.submit(self.START, [(address, 8 * WORDS * layers)])
        self.words = 0
        self.at = 0

    def collected(self, layer: int, free: int, front: Front) -> int | None:
        """As HostWords.collected."""
        at = max(free, self.at)
        while self.words < WORDS * (layer + 1):
            got = self.channel.gear.take(8, at)
            if got is None:
                self.at = at
                return None
            self.words += 1
            at = got + 1
        self.at = at
        return at - 1


class Front:
    """Decoder, dispatcher, loaders and bus, for the layers of one run."""

    def __init__(
        self,
        config: Config,
        shapes: Sequence[Shape],
        *,
        burst: int = 12,
        list_at: int | None = None,
        pixels: tuple[int, int] | None = None,
    ) -> None:
        """``burst``: layers that the host pushes at a time.  ``list_at``: address of a task list,
        ``pixels``: (address, bytes) of the map that its first layer reads."""
        word = config.bus_bytes
        self.config, self.shapes = config, shapes
        self.tasks = list_at is not None

        def channel(depth: int, gear: Gear, most: int) -> Channel:
            return Channel(word, depth, gear, block_ram=depth > most)

        eight = Gear(8 + word)
        window = WINDOW + word
        self.list = channel(LIST_DEPTH, Gear(8 + word), LIST_DEPTH)
        self.pixel = channel(config.pix_fifo_depth, Gear(2 * word), BLOCK_FROM)
        self.bias = channel(config.bias_fifo_depth, eight, config.bias_fifo_depth)
        self.weight = channel(config.wgt_fifo_depth, Gear(window), BLOCK_FROM)
        self.bus = Bus([self.list, self.pixel, self.bias, self.weight])
        self.wload = WeightLoader(config, self.weight.gear)
        self.pload = ParamLoader(config, self.bias.gear)
        self.words: HostWords | ListWords = HostWords(burst)
        if list_at is not None:
            self.words = ListWords(self.list, list_at, len(shapes))
        self.pixels = pixels
        self.pixels_asked: int | None = None
        self.first_row = self.first_param = self.first_table = 0  # of the layer at work
        self.collects: list[int] = []
        self.decoded: list[int] = []  # cycle in which a layer's descriptor is there
        self.given: list[int] = []  # ... all have taken it
        self.queued: list[int] = []  # ... it entered the queue of the array
        self.pops: list[int] = []  # ... it left it: told by the runner
        self.fetched: list[int | None] = []  # fetch_ctrl has sent out its requests
        self.requests: list[tuple[int, int]] = []  # of each layer: weight, bias requests so far
        self._fetch = self._weight = self._param = 0  # layers that each has taken
        self._fetch_at = self._weight_at = self._param_at = 0  # when the last of them was
        self._due: deque[tuple[int, int]] = deque()  # first layer's requests: layer, cycle

    # --------------------------------------------------------------- moving on
    def settle(self) -> None:
        """Whatever follows from what is known."""
        moved = True
        while moved:
            moved = self._decode() | self._dispatch()
            for channel in self.bus.channels:
                channel.settle()
            moved |= self.wload.progress() | self.pload.progress()

    def until(self, ready: Callable[[], int | None]) -> int:
        """Move on until ``ready`` gives a cycle."""
        while True:
            self.settle()
            found = ready()
            if found is not None:
                return found
            for channel in self.bus.channels:
                channel.settle()
            if not self.bus.step():
                raise DeadlockError("nothing moves")

    def _decode(self) -> bool:
        layer = len(self.decoded)
        if layer == len(self.shapes) or len(self.given) < layer:
            return False
        if len(self.collects) == layer:
            free = self.given[-1] + 1 if self.given else 0
            at = self.words.collected(layer, free, self)
            if at is None:
                return False
            self.collects.append(at)
        shape = self.shapes[layer]
        take = DECODE_FC if shape.mode == FC else DECODE
        blocks = shape.block if shape.mode in (TAPS, CHAN) and not shape.depthwise else 1
        self.decoded.append(self.collects[layer] + take + max(2, blocks))
        return True

    def _dispatch(self) -> bool:
        """Give the layer that was decoded last to whoever is free."""
        layer = len(self.decoded) - 1
        if layer < 0 or len(self.given) > layer:
            return False
        at, shape, moved = self.decoded[layer], self.shapes[layer], False
        loads = shape.mode != POOL
        if self._fetch == layer and (free := self._fetch_free()) is not None:
            self._fetch_at, self._fetch, moved = max(at, free), layer + 1, True
            self._request(layer, self._fetch_at)
        if self._weight == layer and self.wload.shape is None:
            self._weight_at, self._weight, moved = max(at, self.wload.free), layer + 1, True
            if loads:
                self.wload.start(self._weight_at, shape)
        if self._param == layer and self.pload.shape is None:
            self._param_at, self._param, moved = max(at, self.pload.free), layer + 1, True
            if loads:
                self.pload.start(self._param_at, shape)
        if len(self.queued) == layer:
            before = layer - QUEUE
            if before < 0:
                self.queued.append(at)
                moved = True
            elif before < len(self.pops):
                self.queued.append(max(at, self.pops[before] + 1))
                moved = True
        taken = min(self._fetch, self._weight, self._param, len(self.queued))
        if taken > layer:
            times = self._fetch_at, self._weight_at, self._param_at, self.queued[layer]
            self.given.append(max(times))
            if layer == 0 and self.pixels is not None:
                self.pixels_asked = self.given[0] + 2
                self.pixel.submit(self.pixels_asked, [self.pixels])
            moved = True
        return moved

    def _request(self, layer: int, at: int) -> None:
        """Offer the requests of a layer that fetch_ctrl took in cycle ``at``."""
        shape = self.shapes[layer]
        if shape.mode == POOL:
            self.requests.append((0, 0))
            return
        # the first layer of a list: its reads go out when those before it are, a cycle more
        at += REQUEST + int(self.tasks and layer == 0)
        self.weight.submit(at, shape.loads)
        self.bias.submit(at, shape.tables)
        self.requests.append((len(shape.loads), len(shape.tables)))

    def _fetch_free(self) -> int | None:
        """fetch_ctrl can take a layer: the requests before are in the channels."""
        if not self._fetch:
            return 0
        if self.shapes[self._fetch - 1].mode == POOL:
            return self._fetch_at + 1
        free = self._fetch_at + 1
        for channel, place in ((self.weight, 0), (self.bias, 1)):
            count = sum(r[place] for r in self.requests)
            if len(channel.accepted) < count:
                return None
            if count:
                free = max(free, channel.accepted[count - 1] + 1)
        if self.tasks and self._fetch == 1:  # ... of the first layer of a list all bursts are out
            if not (self.weight.quiet and self.bias.quiet):
                return None
            free = max(free, self.weight.free + 1, self.bias.free + 1)
        return free

    # ------------------------------------------------------- what the array asks
    def head(self, layer: int) -> int:
        """Cycle in which a layer is at the head of the queue."""

        def ready() -> int | None:
            return self.queued[layer] if len(self.queued) > layer else None

        at = self.until(ready) + QUEUE
        return max(at, self.pops[layer - 1] + 1) if layer else at

    def row(self, number: int) -> int:
        """Cycle in which a row of weights of the layer at work was complete."""
        rows, number = self.wload.rows, self.first_row + number
        if number < len(rows):
            return rows[number]
        return self.until(lambda: rows[number] if len(rows) > number else None)

    def param_row(self, number: int) -> int:
        """Cycle in which a row of parameters of the layer at work was complete."""
        rows, number = self.pload.rows, self.first_param + number
        if number < len(rows):
            return rows[number]
        return self.until(lambda: rows[number] if len(rows) > number else None)

    def table(self) -> int:
        """Cycle in which the table of the layer at work was complete."""
        tables, number = self.pload.tables, self.first_table
        return self.until(lambda: tables[number] if len(tables) > number else None)

    # ------------------------------------------------------- what the array tells
    def free_rows(self, at: int, count: int) -> None:
        """The next rows of weights may be loaded again from a cycle on."""
        self.wload.freed.extend([at] * count)

    def free_table(self, at: int) -> None:
        """The table of the layer at work was copied."""
        self.pload.tables_freed.append(at)

    def leave(self, shape: Shape, at: int) -> None:
        """The layer at the head of the queue leaves it; the next one's rows follow its own."""
        self.pops.append(at)
        if shape.mode == POOL:
            return
        self.wload.params_freed.extend([at] * shape.param_rows)
        self.pload.rows_freed.extend([at] * shape.param_rows)
        self.first_row += shape.weight_rows
        self.first_param += shape.param_rows
        self.first_table += 1
