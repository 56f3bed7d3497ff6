# SPDX-License-Identifier: Apache-2.0
"""Items of the constrained-random regression: each follows from its own seed alone.

An item is a layer by a way (host, task list, stream) on a quiet or a disturbed bus, over all
arguments of docs/kpu.md, weighted to the corners: widths and channels around 16, 32, 64 and their
multiples, one pixel, one channel, 1,024 channels, loads that are not full, odd sizes under every
pool, numbers at the ends of their ranges. One item in five is a network, one in twelve a list of
all kinds of task.

A run may be of one of ITEM_KINDS only. Products are of bytes, and of float16 too where the build
has lanes for them.

A draw that breaks a rule is drawn again with the next numbers of the same generator; how
often, and by which rule, is reported with the item. No item is left out.
"""

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import SEGMENTS, ActTable, BatchNorm
from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_lists import ALL_KINDS, random_list
from openkpu.generators.generate_lists import KINDS as KINDS_OF_TASKS
from openkpu.generators.generate_pools import on_map, random_pool
from openkpu.generators.generate_products import random_product, with_offset
from openkpu.generators.generate_tasks import on_maps, random_elementwise
from openkpu.layer.argument import (
    MANY_CHANNELS,
    PARA_SIZE_MAX,
    LayerArg,
    LayerError,
)
from openkpu.layer.elementwise import OPERATIONS
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import Layout
from openkpu.layer.pool_tasks import KINDS, window_of
from openkpu.layer.vectors import VectorLayer
from openkpu.network import kept
from openkpu.network.network import Network, NetworkError
from openkpu.prediction.roofline import network_cycles
from openkpu_tb.device.spare import draw_spare
from openkpu_tb.runs import graph_items
from openkpu_tb.runs.random_cases import IMAGES, SLACK, TIMES
from openkpu_tb.runs.requests import RandomCase
from openkpu_tb.words import ITEM_KINDS

STEP = 0x9E3779B1  # between the seeds of two items: odd, so that 2^32 items differ
WAYS = ("host", "tasks", "stream")
LISTS = ("network", "list", "graph")  # of several layers: never by the host
MOST_STORAGE = 1 << 20  # bytes of storage of an item: the bench that nearly all tests share
MOST_DRAWS = 400
SHOWN = 12  # layers that a title describes
FEW_ROWS = 1024  # of the AI RAM that a list uses
CHANNELS = (1, 2, 3, 4, 5, 8, 9, 10, 15, 16, 17, 18, 31, 32, 33, 63, 64, 65, 127, 128, 1023, 1024)
WIDTHS = (1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 320, 960)
HEIGHTS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 255, 256, 511, 512)
IGNORED = {  # fields without effect (docs/kpu.md 1.7), and how many values each has
    **dict.fromkeys(("ram_flag", "full_add", "pad_type", "first_stride", "bypass_conv"), 2),
    **dict.fromkeys(("load_para", "load_act", "load_coor"), 2),
    **{"dma_burst_size": 256, "coef_column_offset": 16, "coef_row_offset": 4096, "coef_size": 256},
}
# input channels beyond those of a map elsewhere
LONG = (1025, 1026, 2047, 2048, 4096, 8191, 8192, MANY_CHANNELS - 1, MANY_CHANNELS)


@dataclass(frozen=True)
class Budget:
    """How much an item may cost on a simulator."""

    cycles: int  # roofline of an inference
    channels: int
    long: int  # channels of a 1x1 layer's input
    width: int
    height: int


BUDGETS = {
    "verilator": Budget(cycles=60_000, channels=1024, long=MANY_CHANNELS, width=960, height=512),
    "icarus": Budget(cycles=1_200, channels=64, long=1025, width=65, height=9),
}


class TooMuch(ValueError):
    """A draw that breaks a rule; ``rule`` is its name."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@dataclass
class Item:
    """A case, its seed, and the rules by which draws before it were given up."""

    seed: int
    case: RandomCase
    redrawn: Counter[str] = field(default_factory=Counter)


def seed_of(first: int, number: int) -> int:
    """Seed of item ``number`` of a run that begins with ``first``; item 0 has ``first`` itself.

    So item n alone is the run of one item that begins with its seed, and the items from n on are
    the run that begins with it.
    """
    return (first + number * STEP) & 0xFFFFFFFF


# kind -> key of a configuration that has what the kind needs
NEEDED = {"float16": "fp16_lanes", "product": "out32", "pool": "pool_lanes", "graph": "pool_lanes"}


def kinds_of(config: Config) -> list[str]:
    """Those of ITEM_KINDS that a configuration runs."""
    return [kind for kind in ITEM_KINDS if kind not in NEEDED or getattr(config, NEEDED[kind])]


def draw_item(
    config: Config, sim: str, seed: int, kind: str | None = None, budget: Budget | None = None
) -> Item:
    """The item of a seed, on a configuration and a simulator ("verilator" or "icarus").

    ``kind``: one that ``kinds_of`` names; None: any. ``budget``: other than the simulator's.
    """
    rng, budget, redrawn = np.random.default_rng(seed), budget or BUDGETS[sim], Counter()
    for _ in range(MOST_DRAWS):
        try:
            return Item(seed, _case(rng, config, budget, seed, kind), redrawn)
        except TooMuch as why:
            redrawn[why.rule] += 1
        except LayerError as why:
            redrawn[why.code] += 1
    raise AssertionError(f"seed {seed}: no legal item in {MOST_DRAWS} draws: {dict(redrawn)}")


def _case(
    rng: np.random.Generator, config: Config, budget: Budget, seed: int, kind: str | None
) -> RandomCase:
    ways = WAYS[1:] if kind in LISTS else WAYS
    way = ways[int(rng.integers(0, len(ways)))]
    disturb = bool(rng.random() < 0.6)
    title = kind or _any_kind(rng, way)
    if title == "graph":
        try:
            drawn = graph_items.draw(rng, config, small=budget.cycles < 10_000)
        except graph_items.Refused:
            raise TooMuch("refused graph") from None
        network, image, title = drawn.network, drawn.image, drawn.words
    elif title in LISTS:
        network = (_list if title == "list" else _network)(rng, config, budget)
        image = rng.integers(0, 256, network.in_shape, dtype=np.uint8)
    else:
        layer = _one(rng, config, budget, kind)
        network, title, image = Network.single(layer), "layer", layer.x.view(np.uint8)
    if config.keep_weights and config.pool_lanes and way != "host" and rng.random() < 0.3:
        network.kept = kept.scatter(rng, network, config.ai_ram_rows, 0.7)
    count = 1 if way == "host" else IMAGES
    more = rng.integers(0, 256, (count - 1, *network.in_shape), dtype=np.uint8)
    images = np.concatenate([image[None], more])
    roof = network_cycles(config, network.layers, eight_bit=network.eight_bit)
    if roof > budget.cycles:
        raise TooMuch("cycles")
    if network.storage(images, continuous=True, align=16).data.size > MOST_STORAGE - (1 << 15):
        raise TooMuch("storage")
    for number, arg in enumerate(network.layers):
        code = arg.device_code(
            eight_bit=network.eight_bit,
            ram_rows=config.ai_ram_rows,
            weight_bits=config.weight_bits,
            weight_rows=config.wbuf_rows,
            n_z=config.n_z,
            pools=config.pool_lanes > 0,
            sums=config.out32 > 0,
            bus_bytes=config.bus_bytes,
            first=number == 0,
            last=number == len(network.layers) - 1,
            fp16_lanes=config.fp16_lanes,
            keeps=config.keep_weights > 0,
            dilation=config.dilation,
        )
        if code:
            raise TooMuch(f"refused {code}")
    shown = "; ".join(describe(arg, network.eight_bit) for arg in network.layers[:SHOWN])
    shown += f"; and {len(network.layers) - SHOWN} more" * (len(network.layers) > SHOWN)
    shown += f"; weights of {sorted(network.kept)} kept" if network.kept else ""
    title = f"{title} {shown}, {way}" + (", disturbed" if disturb else "")
    case = RandomCase(title, way, network, images, disturb, SLACK + TIMES * roof, seed)
    if config.weight_ahead:  # with numbers of its own, so that other builds have the same items
        unused = kept.unused_parts(network.layers, config.ai_ram_rows, network.kept_parts())
        own = np.random.default_rng([seed, 1])
        case.spare = draw_spare(own, unused, config.ai_ram_rows)
        case.title += f", {case.spare}"
    return case


def _any_kind(rng: np.random.Generator, way: str) -> str:
    share = rng.random() if way != "host" else 1.0
    return "list" if share < 0.12 else "network" if share < 0.45 else "layer"


def _one(rng: np.random.Generator, config: Config, budget: Budget, kind: str | None) -> VectorLayer:
    """A random layer of a kind, or of any."""
    floats = {None: 0.3, "product": 0.5, "float16": 1.0}.get(kind, 0.0)
    if floats and config.fp16_lanes and rng.random() < floats:
        return _float16(rng, config, budget)
    make = {"product": _product, "elementwise": _elementwise, "pool": _pooling, "layer": _plain}
    return make.get(kind or "", _layer)(rng, config, budget)


def describe(arg: LayerArg, eight_bit: bool) -> str:
    """A layer in a few words."""
    if arg.fp16:
        to = "float32" if arg.fp32 else "float16"
        return f"float16 {arg.i_ch_num} rows of {arg.in_shape[1:]}, {arg.o_ch_num} of {to}"
    if arg.pool_task:
        return f"{KINDS[arg.pool_task]} {window_of(arg)} of {arg.in_shape}"
    apart = f" by {arg.dilation}" if arg.dilation > 1 else ""
    kind = (
        "fc"
        if arg.fc
        else OPERATIONS[arg.ew_op]
        if arg.elementwise
        else f"{arg.kernel}x{arg.kernel}{apart}" + (" dw" if arg.depthwise else "")
    )
    marks = (name for name in ("in_xor", "w_xor", "out32") if getattr(arg, name))
    kind = " ".join((kind, *marks))
    c, h, w = arg.in_shape
    return (
        f"{kind} {c}x{h}x{w} to {arg.o_ch_num}, pool {arg.pool_type}, {arg.loads} loads, "
        f"{8 if eight_bit else 16} bits"
    )


def _around(rng: np.random.Generator, corners: tuple[int, ...], most: int) -> int:
    """Mostly a corner, otherwise anything up to ``most``; large values are rare."""
    fits = [value for value in corners if value <= most]
    if rng.random() < 0.7:
        return fits[int(rng.integers(0, len(fits)))]
    return int(np.exp(rng.uniform(0, np.log(most + 1))))


def _elementwise(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random element-wise layer; the second map is what the AI RAM holds."""
    c = _around(rng, CHANNELS, budget.channels)
    h, w = _around(rng, HEIGHTS, budget.height), _around(rng, WIDTHS, min(960, budget.width))
    pool = 0 if rng.random() < 0.5 else int(rng.integers(1, 10))
    h, w = max(h, POOL_STRIDE[pool]), max(w, POOL_STRIDE[pool])
    if 3 * Layout(c, h, w).rows > config.ai_ram_rows:
        raise TooMuch("AI RAM")
    if c * h * w // 4 > budget.cycles:
        raise TooMuch("cycles")
    eight_bit = config.weight_bits < 16 or bool(rng.random() < 0.65)
    layer = random_elementwise(
        rng, c=c, h=h, w=w, pool=pool, eight_bit=eight_bit, ram_rows=config.ai_ram_rows
    )
    return extreme(rng, layer) if rng.random() < 0.35 else layer


def _product(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random layer with sums of 32 bits."""
    c, o = (_around(rng, CHANNELS, budget.channels) for _ in range(2))
    h, w = _around(rng, HEIGHTS, budget.height), _around(rng, WIDTHS, min(960, budget.width))
    kernel = 1 if rng.random() < 0.8 else 3
    if kernel == 1 and rng.random() < 0.1:  # a long reduction
        c = min(_around(rng, LONG, budget.long), 9 * config.wbuf_rows)
    if Layout(c, h, w).rows + Layout(4 * o, h, w).rows > config.ai_ram_rows:
        raise TooMuch("AI RAM")
    if kernel**2 * c * h * w * o // config.macs > budget.cycles:
        raise TooMuch("cycles")
    how: dict[str, Any] = {
        "limits": Limits(dilation=config.dilation),
        "ram_rows": config.ai_ram_rows,
    }
    return random_product(rng, c=c, h=h, w=w, o=o, kernel=kernel, **how)


def _float16(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random product of float16 matrices."""
    k, m = (_around(rng, CHANNELS, budget.channels) for _ in range(2))
    if rng.random() < 0.1:  # a long sum
        k = min(_around(rng, LONG, budget.long), 9 * config.wbuf_rows)
    n = _around(rng, (1, 4, 8, 16, 31, 32, 64, 96, 240), min(240, budget.width))
    if k * m * n // config.fp16_lanes > budget.cycles:
        raise TooMuch("cycles")
    eight_bit = bool(rng.random() < 0.5)
    return random_fp16(rng, m=m, k=k, n=n, eight_bit=eight_bit, ram_rows=config.ai_ram_rows)


def _pooling(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random pooling task."""
    c = _around(rng, CHANNELS, budget.channels)
    h, w = _around(rng, HEIGHTS, budget.height), _around(rng, WIDTHS, min(960, budget.width))
    if Layout(c, h, w).rows > config.ai_ram_rows:
        raise TooMuch("AI RAM")
    if c * h * w // 16 > budget.cycles:
        raise TooMuch("cycles")
    return random_pool(rng, c=c, h=h, w=w, ram_rows=config.ai_ram_rows)


def _layer(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random layer; TooMuch or LayerError for a draw to be given up."""
    kind = rng.random()
    if kind < 0.12:
        return _product(rng, config, budget)
    if kind < 0.24:
        return _pooling(rng, config, budget)
    layer = _elementwise(rng, config, budget) if kind < 0.37 else _plain(rng, config, budget)
    return with_offset(rng, layer) if rng.random() < 0.15 else layer


def _plain(rng: np.random.Generator, config: Config, budget: Budget) -> VectorLayer:
    """A random layer of a KPU, with the extensions of its operands."""
    choice: dict[str, Any] = {"fc": bool(rng.random() < 0.12)}
    choice["depthwise"] = not choice["fc"] and bool(rng.random() < 0.3)
    choice["kernel"] = 1 if choice["fc"] else int(rng.choice([1, 3]))
    pool = 0 if choice["fc"] or rng.random() < 0.3 else int(rng.integers(1, 10))
    choice["pool"] = pool
    limits = Limits(dilation=config.dilation)
    choice["dilation"] = limits.draw_dilation(rng, choice["kernel"], pool)
    c = _around(rng, CHANNELS, budget.channels)
    o = c if choice["depthwise"] else _around(rng, CHANNELS, budget.channels)
    h, w = _around(rng, HEIGHTS, budget.height), _around(rng, WIDTHS, budget.width)
    if pool and rng.random() < 0.5:  # a line and a column that no window covers
        h, w = h | 1, w | 1
    w = min(w, 960)
    least = POOL_STRIDE[pool]
    h, w = max(h, least), max(w, least)
    sixteen = config.weight_bits >= 16 and bool(rng.random() < 0.35)
    # checks that need no number drawn
    rows = Layout(c, h, w).rows + Layout(o, h // least, w // least).rows
    if rows > config.ai_ram_rows:
        raise TooMuch("AI RAM")
    arg = LayerArg.make(
        c, h, w, o, **{k: choice[k] for k in ("kernel", "pool", "depthwise", "fc", "dilation")},
        eight_bit=not sixteen, ram_rows=config.ai_ram_rows,
    )  # fmt: skip
    if network_cycles(config, [arg], eight_bit=not sixteen) > budget.cycles:
        raise TooMuch("cycles")
    if arg.weight_count * (1 + sixteen) > MOST_STORAGE // 2:
        raise TooMuch("storage")
    one = arg.taps * (1 + sixteen)
    if one > PARA_SIZE_MAX:
        raise TooMuch("weight load")
    if not choice["depthwise"] and o > 1 and rng.random() < 0.5:  # a last load that is not full
        most = min(o, PARA_SIZE_MAX // one)
        choice["per_load"] = int(rng.integers(max(1, ceil_div(o, 64)), max(2, most + 1)))
        if choice["per_load"] > most:
            raise TooMuch("weight load")
    layer = random_layer(
        rng, c=c, h=h, w=w, o=o, eight_bit=not sixteen, ram_rows=config.ai_ram_rows,
        limits=limits, **choice,
    )  # fmt: skip
    fields = {name: int(rng.integers(0, count)) for name, count in IGNORED.items()}
    arg = layer.arg.replace(**fields)
    layer = dataclasses.replace(layer, arg=arg, words=arg.encode())
    return extreme(rng, layer) if rng.random() < 0.35 else layer


def _end(rng: np.random.Generator, bits: int) -> int:
    """An end of the range of a signed number, or near it."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return int(rng.choice([low, low + 1, -1, 0, 1, high - 1, high, int(rng.integers(low, high))]))


def extreme(rng: np.random.Generator, layer: VectorLayer) -> VectorLayer:
    """The same layer with numbers at the ends of their ranges: some of them, or all."""
    arg, o = layer.arg, layer.arg.o_ch_num
    some = rng.random() < 0.5

    def chosen() -> bool:
        return not some or bool(rng.random() < 0.4)

    fields: dict[str, int] = {}
    for name, bits in (("arg_x", 24), ("arg_w", 24), ("arg_add", 40)):
        if chosen():
            fields[name] = _end(rng, bits)
    for name in ("shr_x", "shr_w"):
        if chosen():
            fields[name] = int(rng.choice([0, 1, 14, 15]))
    if chosen():
        fields["pad_value"] = int(rng.choice([0, 1, 127, 128, 255]))
    weights, x, bn, act = layer.weights, layer.x, layer.bn, layer.act
    if chosen():
        weights = rng.choice(np.array([0, 1, 127, 128, 255], np.uint8), weights.size)
    if chosen():
        x = rng.choice(np.array([0, 1, 127, 128, 255], np.uint8), x.shape)
    if chosen():
        mul = np.array([_end(rng, 24) for _ in range(o)])
        add = np.array([_end(rng, 32) for _ in range(o)])
        bn = BatchNorm.make(mul, rng.choice([0, 1, 14, 15], o), add).pack()
    if chosen():
        start = np.array([_end(rng, 36) for _ in range(SEGMENTS)])
        mul = np.array([_end(rng, 16) for _ in range(SEGMENTS)])
        low = -128 if arg.signed_out else 0
        act = ActTable.make(
            start,
            mul,
            rng.choice([0, 1, 15, 36, 53, 54, 55, 255], SEGMENTS),
            rng.integers(low, low + 256, SEGMENTS),
        ).pack()
    arg = arg.replace(**fields)
    y = run_layer(arg, x, weights, bn, act, x2=layer.x2, eight_bit=layer.eight_bit).y
    return dataclasses.replace(
        layer, words=arg.encode(), arg=arg, weights=weights, bn=bn, act=act, x=x, y=y
    )


def _network(rng: np.random.Generator, config: Config, budget: Budget) -> Network:
    """Some layers, each made for what the one before gives."""
    small = budget.cycles < 10_000
    most = (4, 9, 12) if small else (9, 30, 70)
    shape = tuple(int(rng.integers(least, n)) for least, n in zip((1, 4, 4), most, strict=True))
    limits = Limits(channels=6, size=12) if small else Limits(channels=20)
    network, _ = random_network(
        rng,
        shape=shape,
        layers=int(rng.integers(2, 4 if small else 7)),
        fc_last=bool(rng.random() < 0.5),
        eight_bit=config.weight_bits < 16 or bool(rng.random() < 0.6),
        limits=dataclasses.replace(limits, dilation=config.dilation),
        two_maps=on_maps if rng.random() < 0.5 else None,
        one_map=on_map if rng.random() < 0.5 and config.pool_lanes else None,
    )
    if (
        rng.random() < 0.2 and config.out32
    ):  # sums of 32 bits at the end, or between: planes are channels
        _add_product(rng, network, shape)
    network.place(config.ai_ram_rows)
    return network


def _list(rng: np.random.Generator, config: Config, budget: Budget) -> Network:
    """Tasks of any kind in any order; in half of the lists outputs lie where older maps were."""
    small = budget.cycles < 10_000
    most = (4, 6, 10) if small else (9, 13, 66)
    shape = tuple(int(rng.integers(1, n)) for n in most)
    all_kinds = ALL_KINDS if config.fp16_lanes else KINDS_OF_TASKS
    needs = {"pool": config.pool_lanes, "product": config.out32}
    all_kinds = [kind for kind in all_kinds if needs.get(kind, 1)]
    kinds = [str(kind) for kind in rng.choice(all_kinds, int(rng.integers(2, 13)))]
    rows = config.ai_ram_rows if rng.random() < 0.5 else min(FEW_ROWS, config.ai_ram_rows)
    try:
        limits = Limits(channels=4, size=8) if small else Limits(channels=12)
        limits = dataclasses.replace(limits, dilation=config.dilation)
        moves = float(rng.choice((0.0, 0.4)))
        shares = {"moves": moves, "strides": float(rng.choice((0.0, 0.4)))}
        return random_list(rng, kinds, shape, limits=limits, ram_rows=rows, **shares)[0]
    except NetworkError as error:
        raise TooMuch("AI RAM") from error


def _add_product(rng: np.random.Generator, network: Network, shape: tuple[int, ...]) -> None:
    """One more layer, with sums of 32 bits, and maybe one behind it."""
    image = rng.integers(0, 256, shape, dtype=np.uint8)
    network.place()
    last = network.run(image).y
    if 4 * last.shape[0] > 1024 or not network.eight_bit:
        raise TooMuch("channels")
    place = Layout(*last.shape).rows
    layer = random_product(rng, x=last, o=int(rng.integers(1, 10)), src=0, dst=place)
    network.add(layer.arg, layer.weights, layer.bn, layer.act)
    if rng.random() < 0.4:
        behind = random_layer(rng, x=layer.y, eight_bit=True, kernel=1, pool=0, fc=False)
        network.add(behind.arg, behind.weights, behind.bn, behind.act)
