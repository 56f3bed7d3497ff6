# SPDX-License-Identifier: Apache-2.0
"""What runs ahead of the array: words, decoder, dispatcher, loaders, the bus behind them.

The array asks for rows of weights, rows of parameters and tables; the front moves on, burst by
burst, until they are there (docs/architecture.md 15.6 to 15.8). It knows what the array has freed
so far: what is not known yet cannot have been released before the array gets what it waits for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from openkpu.configs import Config
from openkpu.layer.layout import map_bytes
from openkpu.prediction.cycles_bus import BEAT, BLOCK_FROM, Bus, Channel, Gear, Groups, Store
from openkpu.prediction.cycles_load import ParamLoader, PixelLoad, PixelWriter, WeightLoader
from openkpu.prediction.cycles_shape import CHAN, FC, POOL, TAPS, Shape
from openkpu.prediction.cycles_words import HostWords, ListWords

# layer_decode: from the last word of a layer to the descriptor, besides the steps of the blocks
DECODE = 25
DECODE_FC = 33  # the vector's length is divided, which is known later
FRESH = 3  # from the end of an inference to the request of pixels that it did not ask for
QUEUE = 4  # layers between decoder and array; cycles from its end to its head
REQUEST = 1  # fetch_ctrl offers requests a cycle after it was given the layer
WINDOW, EIGHT = 18, 8  # bytes of nine 16-bit weights, of a word of lists and tables
PIXELS_FIRST = 2  # from the first layer's descriptor to the request of its pixels
PIXELS_OPEN = 3  # from the request to the first pixels that are taken
PLACE_OPEN = 2  # ... from the place's being free
LINES_FIRST = 2  # line by line: to the first request, besides a cycle for each bit of the height
LINES_OPEN = 1  # ... later than a whole map
KEPT = 2  # weight_keep: the rows of a stream that does not fit are released
LIST_DEPTH = 8  # words of the FIFO of the list channel


@dataclasses.dataclass(frozen=True)
class Tasks:
    """A run as a task list: where things lie in storage; from one inference to the next."""

    list_at: int
    pixels_at: int
    result_at: int
    pixels_stride: int = 0
    result_stride: int = 0


class DeadlockError(RuntimeError):
    """The model waits for something that nobody brings: a fault of the model."""


class Keeping:
    """Whether a stream's weights stay (weight_keep): the rows of all layers are added up."""

    def __init__(self, config: Config, layers: Sequence[Shape], inferences: int) -> None:
        weights = params = 0
        self.over: int | None = None  # the layer with which they do not fit any more
        for number, shape in enumerate(layers):
            weights += shape.weight_rows
            params += shape.param_rows
            fits = weights <= config.wbuf_rows and params <= config.param_chans // config.n_z
            if not fits and self.over is None and inferences > 1:
                self.over = number
        self.reuse = inferences > 1 and self.over is None


class Front:
    """Decoder, dispatcher, loaders and bus, for the layers of one run."""

    def __init__(
        self,
        config: Config,
        layers: Sequence[Shape],
        *,
        burst: int = 12,
        tasks: Tasks | None = None,
        inferences: int = 1,
    ) -> None:
        """``burst``: layers that the host pushes at a time.  ``tasks``: they come from a list in
        storage, for so many ``inferences`` in one continuous run."""
        word = config.bus_bytes
        self.config, self.length, self.tasks = config, len(layers), tasks
        self.shapes = [*layers] * inferences

        def channel(depth: int, room: int, block_ram: bool = False) -> Channel:
            return Channel(word, depth, Gear(room), block_ram=block_ram)

        wide = config.pix_fifo_depth > BLOCK_FROM, config.wgt_fifo_depth > BLOCK_FROM
        self.list = channel(LIST_DEPTH, EIGHT + word)
        self.pixel = channel(config.pix_fifo_depth, 2 * word, wide[0])
        self.bias = channel(config.bias_fifo_depth, EIGHT + word)
        self.weight = channel(config.wgt_fifo_depth, WINDOW + word, wide[1])
        if config.ahb_width == 32:
            self.weight.gear = Groups()
        self.bus = Bus([self.list, self.pixel, self.bias, self.weight])
        self.wload = WeightLoader(config, self.weight.gear)
        self.pload = ParamLoader(config, self.bias.gear)
        self.words: HostWords | ListWords = HostWords(burst)
        if tasks:
            self.words = ListWords(self.list, tasks.list_at, len(layers), inferences)
        self.keeping = Keeping(config, layers, inferences)
        self.pixel_in = PixelWriter(self.pixel.gear)
        self.first_row = self.first_param = self.first_table = 0  # of the layer at work
        self.collects: list[int] = []
        self.decoded: list[int] = []  # cycle in which a layer's descriptor is there
        self.given: list[int] = []  # ... all have taken it
        self.queued: list[int] = []  # ... it entered the queue of the array
        self.pops: list[int] = []  # ... it left it: told by the runner
        self.first_outs: list[int] = []  # the reads of an inference's first layer are out
        self.requests = [0, 0]  # weights, biases: asked for so far
        self._fetch = self._weight = self._param = 0  # layers that each has taken
        self._fetch_at = self._weight_at = self._param_at = 0  # when the last of them was
        self._boundary: tuple[int, int] | None = None  # a first layer that waits: number, cycle
        self._pixels_due: tuple[int, int] | None = None  # inference whose pixels may be asked for
        self._free: list[int | None] = [0]  # by inference: the place of its pixels is free

    # --------------------------------------------------------------- moving on
    def settle(self) -> None:
        """Whatever follows from what is known."""
        moved = True
        while moved:
            self.words.ask(self)
            moved = self._decode() | self._dispatch() | self._begin() | self._pixels()
            for channel in self.bus.channels:
                channel.settle()
            moved |= self.wload.progress() | self.pload.progress() | self.pixel_in.progress()

    def until(self, ready: Callable[[], int | None]) -> int:
        """Move on until ``ready`` gives a cycle."""
        while True:
            self.settle()
            found = ready()
            if found is not None:
                return found
            for channel in self.bus.channels:
                channel.settle()
            if not self.bus.step() and not self._pixels(late=True):
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
        if layer == self.keeping.over:
            self.wload.held = self.decoded[layer] + KEPT
        return True

    def _dispatch(self) -> bool:
        """Give the layer that was decoded last to whoever is free."""
        layer = len(self.decoded) - 1
        if layer < 0 or len(self.given) > layer:
            return False
        at, shape, moved = self.decoded[layer], self.shapes[layer], False
        loads, reuse = shape.mode != POOL, self._reuses(layer)
        if self._fetch == layer and (free := self._fetch_free()) is not None:
            self._fetch_at, self._fetch, moved = max(at, free), layer + 1, True
            if self.tasks and layer % self.length == 0:
                self._boundary = (layer, self._fetch_at)
            else:
                self._request(layer, self._fetch_at + REQUEST)
        if self._weight == layer and self.wload.shape is None:
            self._weight_at, self._weight, moved = max(at, self.wload.free), layer + 1, True
            if loads and not reuse:
                self.wload.start(self._weight_at, shape)
        if self._param == layer and self.pload.shape is None:
            self._param_at, self._param, moved = max(at, self.pload.free), layer + 1, True
            if not shape.bare:
                self.pload.start(self._param_at, shape, table_only=reuse)
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
            if layer == 0 and self.tasks:
                self.load(self.shapes[0], self.given[0] + PIXELS_FIRST, self.tasks.pixels_at, 0)
            moved = True
        return moved

    def _begin(self) -> bool:
        """Offer the requests of an inference's first layer: all reads before it are out."""
        if self._boundary is None or not (self.weight.quiet and self.bias.quiet):
            return False
        layer, at = self._boundary
        self._boundary = None
        self._request(layer, max(at + 1, self.weight.free, self.bias.free) + REQUEST)
        return True

    def _reuses(self, layer: int) -> bool:
        """Weights and parameters of a layer are there from the inference before."""
        return self.keeping.reuse and layer >= self.length

    def reads(self, layer: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """(address, bytes) of what a layer reads from storage: weights, tables."""
        shape, reuse = self.shapes[layer], self._reuses(layer)
        loads = [] if reuse or shape.arg.kept_weights else shape.loads
        return loads, shape.tables[:1] if reuse else shape.tables

    def _request(self, layer: int, at: int) -> None:
        """Offer the requests of a layer from a cycle on."""
        shape = self.shapes[layer]
        if shape.arg.kept_weights:
            self.wload.bring_kept(at, [] if self._reuses(layer) else shape.loads)
        asked = self.reads(layer)
        for n, channel in enumerate((self.weight, self.bias)):
            channel.submit(at, asked[n])
            self.requests[n] += len(asked[n])

    def _fetch_free(self) -> int | None:
        """fetch_ctrl can take a layer: the requests before are in the channels."""
        if not self._fetch:
            return 0
        first = self.tasks is not None and (self._fetch - 1) % self.length == 0
        free = self._fetch_at + 1
        if self._boundary is not None:
            return None
        if self.shapes[self._fetch - 1].mode != POOL:
            for channel, count in zip((self.weight, self.bias), self.requests, strict=True):
                if len(channel.accepted) < count:
                    return None
                if count:
                    free = max(free, channel.accepted[count - 1] + 1)
        if first:  # ... of the first layer of a list all bursts are out
            if not (self.weight.quiet and self.bias.quiet):
                return None
            out = max(free, self.weight.free, self.bias.free)
            if len(self.first_outs) == (self._fetch - 1) // self.length:
                self.first_outs.append(out)
            return out + 1
        return free

    def _pixels(self, late: bool = False) -> bool:
        """Ask for the pixels of the next inference, once its first reads are out, or when the
        inference before is over (``late``: these reads wait for rows that are not released before).
        """
        due = self._pixels_due
        if due is None or self.tasks is None:
            return False
        number, since = due
        if self._fetch == number * self.length + 1:
            self._fetch_free()
        known, over = len(self.first_outs) > number, len(self.pops) >= number * self.length
        if not known and not (late and over):
            return False
        at = max(since, self.first_outs[number] + 1) + 1 if known else 0
        if over:
            begins = self.pops[number * self.length - 1] + FRESH
            at = min(at, begins) if known else begins
        address = self.tasks.pixels_at + number * self.tasks.pixels_stride
        self._pixels_due = None
        self.load(self.shapes[0], at, address, number)
        return True

    def load(self, shape: Shape, at: int, address: int, inference: int | None = None) -> PixelLoad:
        """Ask for a map from a cycle on; ``inference``: whose pixels they are, which wait for their
        place."""
        layout, lines = shape.arg.in_layout, shape.by_lines
        load = PixelLoad(self.config, layout, lines)
        asked = [(address, map_bytes(shape.arg.in_shape))]
        later, since = int(lines), at
        if lines:
            plane = layout.height * layout.width
            asked = [
                (address + y * layout.width + c * plane, layout.width)
                for y in range(layout.height)
                for c in range(layout.channels)
            ]
            since = at + LINES_FIRST + layout.height.bit_length()
        self.pixel.submit(since, asked)

        def opens() -> int | None:
            free = self._free[inference] if inference else 0
            if free is None:
                return None
            return max(at + PIXELS_OPEN, free + PLACE_OPEN) + later * LINES_OPEN

        load.opens = opens
        self.pixel_in.loads.append(load)
        return load

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

    def loaded(self, number: int) -> PixelLoad:
        """A map that was asked for, of so many before; its first line is there, or all of it."""

        def ready() -> int | None:
            if len(self.pixel_in.loads) <= number:
                return None
            load = self.pixel_in.loads[number]
            return load.lines[0] if load.lines else load.end

        self.until(ready)
        return self.pixel_in.loads[number]

    def line(self, load: PixelLoad, number: int) -> int:
        """Cycle in which a line of a map was written."""
        lines = load.lines
        if number < len(lines):
            return lines[number]
        return self.until(lambda: lines[number] if len(lines) > number else None)

    def store(self, store: Store) -> int:
        """Cycle of the answer to the last beat of a map that goes to storage."""
        self.bus.store = store
        end = self.until(lambda: store.end if not store.bursts else None)
        self.bus.store = None
        return end + BEAT

    # ------------------------------------------------------- what the array tells
    def free_rows(self, at: int, count: int) -> None:
        """The next rows of weights may be loaded again from a cycle on."""
        self.wload.freed.extend([at] * count)

    def free_table(self, at: int) -> None:
        """The table of the layer at work was copied."""
        self.pload.tables_freed.append(at)

    def pixels(self, at: int, inference: int) -> None:
        """The pixels of an inference may be asked for from a cycle on."""
        self._pixels_due = inference, at

    def place_free(self, at: int | None) -> None:
        """No layer to come uses the place of the input map; None: an inference begins."""
        if at is None:
            self._free.append(None)
        else:
            self._free[-1] = at

    def leave(self, shape: Shape, at: int) -> None:
        """The layer at the head of the queue leaves it; the next one's rows follow its own."""
        self.pops.append(at)
        if shape.mode != POOL:
            self.first_table += int(not shape.bare)
            self.first_row += shape.weight_rows
            self.first_param += shape.param_rows
            if not self.keeping.reuse:
                self.wload.params_freed.extend([at] * shape.param_rows)
                self.pload.rows_freed.extend([at] * shape.param_rows)
        if self.keeping.reuse and len(self.pops) % self.length == 0:
            self.first_row = self.first_param = 0
