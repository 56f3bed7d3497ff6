# SPDX-License-Identifier: Apache-2.0
"""control: maps of layers that come from the storage and go there, whole or in bands of lines.

Run by test_control, on the same builds.
"""

import random

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import band_lines
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.descriptor import touches
from tb.control.neighbours import ALL_THERE, Event, Neighbours, map_load, map_requests
from tb.control.test_control import Network, begin, check_runs, layer

SOON = 6  # cycles from one event to what it is waited for with
KINDS = ("wide", "narrow", "wide", "narrow", "by channel", "vector", "small", "pooling")
WIDTHS = 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130  # around those of bands of 8, 4, 2, 1 lines


def mover(kind: str, **fields: int) -> LayerArg:
    """A layer on either side of the rule above; maps at random places that do not meet."""
    c, h, o = random.randint(1, 3), random.randint(1, 4), random.randint(1, 4)
    w, kernel = random.choice(WIDTHS), random.choice((1, 3))
    if kind == "small":
        arg = layer()
    elif kind == "pooling":
        arg = LayerArg.make(c, h, w).replace(pool_task=random.randint(1, 4))
    elif kind == "vector":
        arg = LayerArg.make(c, random.randint(1, 12), random.choice(WIDTHS[:8]), o, fc=True)
    elif kind == "by channel":
        pool = random.choice((0, 1, 1))  # pooled it goes through the array as others do
        wide = max(2, w)
        arg = LayerArg.make(c, 9 + pool, wide, kernel=3, depthwise=True, pool=pool)
    elif kind == "wide":
        arg = LayerArg.make(c, h, random.choice(WIDTHS[-3:]), o, kernel=kernel)
    else:
        arg = LayerArg.make(c, random.randint(1, 20), random.choice(WIDTHS[:-3]), o, kernel=kernel)
    names = ("para_start_addr", "bwsx_base_addr", "active_addr", "map_load_addr")
    arg = arg.replace(**{n: random.getrandbits(32) for n in names}, **fields)
    if fields.get("load_map") and random.random() < 0.2:
        arg = arg.replace(map_load_addr=0xFFFFFFFF - random.randrange(40))  # lines beyond the end
    if fields.get("store_map"):
        arg = arg.replace(map_store_addr=random.getrandbits(30) << 2)
    maps = random.randrange(2000), random.randint(2100, 4000)
    far = random.choice((0, 0, 1 << 13, 7 << 12))  # all bits of a row count
    source, target = (far + row for row in random.sample(maps, 2))
    return arg.replace(image_src_addr=source, image_dst_addr=target)


def bands_of(arg: LayerArg) -> int:
    """Bands in which its map comes; 1 if it comes whole."""
    return ceil_div(arg.i_col_high, band_lines(arg) or arg.i_col_high)


class Watch:
    """Checks in every cycle the number of lines reported to the array, and the hold of the
    unload."""

    def __init__(self, n: Neighbours, layers: list[LayerArg]) -> None:
        self.n, self.layers, self.early = n, layers, 0
        self.past = [0, 0, 0]  # lines of the map that had arrived
        n.watch = self

    def __call__(self) -> None:
        """A cycle is over."""
        n, past = self.n, self.past
        there, held = int(n.dut.lines_there.value), int(n.dut.unload_held.value)
        runs, done = n.kinds("run"), n.kinds("layer_done")
        arg = self.layers[(len(runs) - 1) % len(self.layers)] if len(runs) > len(done) else None
        if arg is None or not band_lines(arg) or not self._comes(len(runs) - 1):
            assert there == ALL_THERE and not held, "a layer waits for lines without a map in bands"
            return
        past.append(self._lines(len(runs) - 1))
        del past[0]
        height = arg.i_col_high
        assert not held or int(n.dut.status_waiting_bus.value)
        assert not held or not int(n.dut.pix_ready.value), "taken, and offered once more"
        if n.cycle - runs[-1].cycle > len(past):  # two cycles from a line to the array
            want = past[0] if past[0] < height else ALL_THERE
            assert there == want, f"{there} lines are reported, {past[0]} of {height} are there"
            assert held == (past[1] < height), "the map may leave once it is complete"
            self.early += there < height

    def _comes(self, run: int) -> bool:
        """Does the map of that layer, counted from the start, come from the storage?"""
        return bool(self.layers[run % len(self.layers)].load_map or self._first(run))

    def _first(self, run: int) -> bool:
        return bool(self.n.dut.list_mode.value) and run % len(self.layers) == 0

    def _lines(self, run: int) -> int:
        """Lines of its map that are there."""
        ran = [self.layers[r % len(self.layers)] for r in range(run) if self._comes(r)]
        arg = self.layers[run % len(self.layers)]
        bands = len(self.n.kinds("load_band")) - sum(map(bands_of, ran))
        return min(max(0, bands) * band_lines(arg), arg.i_col_high)


class Moves(Network):
    """A list whose layers load and store maps."""

    def check(self, inferences: int) -> None:
        """So many inferences: every map's requests, loads and results, and their order."""
        n, layers = self.n, self.layers
        assert len(n.kinds("ev_inf_done")) == inferences
        check_runs(n, layers * inferences)
        due = []  # (layer, its address, index, parity) in the order of the moves
        for k, (pixels, _) in enumerate(self.addresses[:inferences]):
            due += [
                (arg, arg.map_load_addr if i else pixels, i, k % 2, k * len(layers) + i)
                for i, arg in enumerate(layers)
                if i == 0 or arg.load_map
            ]
        check_loads(n, due)
        results = n.kinds("result")
        stores = [
            (arg, arg.map_store_addr if i < len(layers) - 1 else result, i, k % 2)
            for k, (_, result) in enumerate(self.addresses[:inferences])
            for i, arg in enumerate(layers)
            if i == len(layers) - 1 or arg.store_map
        ]
        check_results(results, stores)
        assert not n.kinds("ev_err", "ev_calc_done")


def check_results(results: list[Event], stores: list[tuple[LayerArg, int, int, int]]) -> None:
    """Maps that leave for the storage, one for each (layer, address, index, parity)."""
    assert len(results) == len(stores)
    for e, (arg, address, index, parity) in zip(results, stores, strict=True):
        o, oh, ow = arg.out_shape
        names = ("dest", "address", "layer", "inf", "base", "chans_m1", "height_m1", "width_m1")
        want = 1, address, index, parity, arg.image_dst_addr, o - 1, oh - 1, ow - 1
        assert tuple(e.info[k] for k in names) == want
        assert e.info["apart"] == arg.out_layout.channel_rows


def check_loads(n: Neighbours, due: list[tuple[LayerArg, int, int, int, int]]) -> None:
    """Requests and loads of the maps ``due``: (layer, address, index, parity, which run)."""
    asked, loads, bands = n.kinds("pixel_req"), n.kinds("pixels"), n.kinds("load_band")
    runs, done = n.kinds("run"), n.kinds("layer_done")
    assert len(loads) == len(n.kinds("load_done")) == len(due), "maps that nobody needs"
    at, at_ask = 0, 0
    for (arg, address, index, parity, run), write in zip(due, loads, strict=True):
        requests = map_requests(arg, address)
        own = asked[at_ask : at_ask + len(requests)]
        want = [{**request, "layer": index, "inf": parity} for request in requests]
        assert [e.info for e in own] == want, f"layer {index}"
        over = bands[at : at + bands_of(arg)]
        assert write.info == map_load(arg), f"layer {index}"
        if index:  # it asks when its turn has come, and at once
            assert own[0].cycle > done[run - 1].cycle, "a map before the layer before is done"
        assert over[0].cycle < runs[run].cycle, "it begins before the first band"
        assert over[-1].cycle < done[run].cycle, "done before its map is there"
        enough = max(over[0].cycle, done[run - 1].cycle if run else 0)
        assert runs[run].cycle <= enough + SOON or not index, "it waits for more"
        at, at_ask = at + len(over), at_ask + len(requests)
    assert len(asked) == at_ask and len(bands) == at


def mixed(count: int) -> list[LayerArg]:
    """Layers of a list; some load and store their maps."""
    layers = []
    for i in range(count):
        load, store = i > 0 and random.random() < 0.6, i < count - 1 and random.random() < 0.4
        layers.append(mover(random.choice(KINDS), load_map=int(load), store_map=int(store)))
    return layers


@block_test(begin)
async def in_a_list(n: Neighbours) -> None:
    """One inference: maps are asked for when their layer's turn has come, and leave with it."""
    early = 0
    for turn in range(14):
        n.log.clear()
        n.array_time = random.choice((4, 30, 300))
        layers = mixed(random.randint(1, 6))
        if turn < len(KINDS):  # each kind on both ways
            layers = [mover(KINDS[turn]), mover(KINDS[turn], load_map=1, store_map=1), *layers[-1:]]
        net = Moves(n, len(layers), 1, layers)
        watch = Watch(n, layers)
        await net.once(15000)
        early += watch.early
    assert early, "no layer began before its map was there"


@block_test(begin)
async def in_a_stream(n: Neighbours) -> None:
    """The next inference's pixels come behind the last layer that loads, or uses their place; in a
    list that does not load they are asked for from its first fully connected layer on."""
    n.array_time = 300
    ahead = 0
    for turn in range(10):
        n.log.clear()
        layers = mixed(random.randint(2, 5))
        if turn % 2:  # its last layers are for the prefetch alone, whatever their maps would be
            ways = ("wide", "by channel") if turn % 4 == 1 else ("small", "narrow")
            layers[0] = mover(ways[0])
            layers[1:] = [*mixed(3)[:-1], *(mover(ways[1]) for _ in range(2))]
        net = Moves(n, len(layers), 2, layers)
        Watch(n, layers)
        await net.stream(3, limit=30000)
        place = layers[0].image_src_addr, layers[0].image_src_addr + layers[0].in_layout.rows
        users = [i for i, arg in enumerate(layers) if i == 0 or arg.load_map or touches(arg, place)]
        ends, count = n.kinds("layer_done"), len(layers)
        per = [
            len(map_requests(arg, 0)) if not i or arg.load_map else 0
            for i, arg in enumerate(layers)
        ]
        connected = [i for i, arg in enumerate(layers) if arg.fc]
        waits = [arg.load_map for arg in layers[1:]]
        for k in (1, 2):
            free = ends[(k - 1) * count + users[-1]].cycle
            first = n.kinds("pixel_req")[k * sum(per)].cycle
            written = n.kinds("pixels")[k * (1 + sum(waits))].cycle
            since = free
            if connected and not any(waits):
                since = n.kinds("run")[(k - 1) * count + connected[0]].cycle
            assert first > since, "pixels of the next inference too early"
            assert written > free, "pixels of the next inference over a map in use"
            ahead += first < n.kinds("ev_inf_done")[k - 1].cycle
    assert ahead, "no pixels were asked for ahead of time"


@block_test(begin)
async def pixels_that_come_late(n: Neighbours) -> None:
    """The reads of the inference after next are out before the next one has its pixels.

    No pixels are asked for while a layer in front of them is still to load its map, which comes
    through the same channel.
    """
    inferences, waited = 5, 0
    for _ in range(3):
        n.log.clear()
        n.array_time = random.choice((4, 100))
        layers = [mover("small"), mover("small", load_map=1)]
        net = Moves(n, 2, 2, layers)

        def hold() -> None:
            """A load of first pixels is over when the reads of the inference behind it are out."""
            nonlocal waited
            load, last = divmod(len(n.kinds("pixels")) - 1, 2)
            early = 0 <= load < inferences - 1 and not last and len(n.kinds("first_out")) < load + 2
            (n.silent.add if early else n.silent.discard)("load_done")
            waited += early

        n.watch = hold
        await net.stream(inferences, limit=30000)
        n.silent.clear()
    assert waited > 100, "the pixels were never last"


@block_test(begin)
async def of_the_host(n: Neighbours) -> None:
    """Layers of the host load and store as well; their maps go by their own addresses."""
    n.dut.cfg_res_adr.value = random.getrandbits(32)
    for _ in range(8):
        n.log.clear()
        n.array_time = random.choice((4, 100))
        flags = [
            (random.getrandbits(1), random.getrandbits(1)) for _ in range(random.randint(1, 6))
        ]
        layers = [mover(random.choice(KINDS), load_map=i, store_map=s) for i, s in flags]
        Watch(n, layers)
        n.push(*layers)
        await n.until(n.times("layer_done", len(layers)), limit=15000)
        await n.idle()
        check_runs(n, layers)
        loads = [(a, a.map_load_addr, i, 0, i) for i, a in enumerate(layers) if a.load_map]
        check_loads(n, loads)
        stores = [(a, a.map_store_addr, i, 0) for i, a in enumerate(layers) if a.store_map]
        check_results(n.kinds("result"), stores)
        stored = [e for e in n.log if e.kind in ("unload_done", "layer_done")]
        assert len([e for e in stored if e.kind == "unload_done"]) == len(stores)
        assert not n.kinds("ev_err", "ev_inf_done", "list_req", "npix_take")


@block_test(begin)
async def dropped(n: Neighbours) -> None:
    """A soft reset while a map comes, in bands or whole: the next list is right."""
    for turn in range(24):
        n.log.clear()
        n.array_time = 60
        kind = ("wide", "by channel", "narrow")[turn % 3]
        layers = [mover(kind), mover(kind, load_map=1, store_map=1), mover("small")]
        Moves(n, 3, 1, layers)
        n.pulse("host_start")
        await n.until(n.times("pixel_req" if turn % 3 else "run", 1 + turn % 2))
        await n.steps(random.randint(0, 40))
        n.pulse("host_soft_reset")
        n.pulse("arg_flush")
        await n.idle()
        n.log.clear()
        layers = [mover("wide" if turn % 4 < 2 else "small"), mover("narrow", load_map=1)]
        net = Moves(n, 2, 1, layers)
        await net.once(15000)
