# SPDX-License-Identifier: Apache-2.0
"""Functional coverage model: what should happen to the device at least once.

Twelve crosses:

* ``layer``: kernel x pool x width of the input map x bits of a weight x weight loads;
* ``dilation``: pixels between the taps of a window x kind of the layer x pool;
* ``elementwise``: operation x maps x pool x width of the maps;
* ``pooling``: kind of a pooling task x window x width of the map;
* ``product``: kernel of a layer with 32-bit sums x operands x width of the map;
* ``float16``: target of a product of float16 x lines and width of its map x what the last piece
  and the last group of nine hold;
* ``float16_values``: target x value of an element (``float16.VALUES``) x its place in C;
* ``waits``: how weights come to the loader while a layer works x how it is started x bits of a
  weight; on a build whose weights may wait;
* ``moves``: kind of a task x how its map moves x how it is started x address in storage;
* ``order``: kind of a task x kind of the one before it x how they are started;
* ``run``: how layers are started x state of the bus x error that the host reads;
* ``register``: every 32-bit register word x kind of access.

Bins that the specification makes impossible are left out by rule, never by name:

* a bin of a layer needs a legal layer argument: ``LayerArg.make``, which fills in the fields as
  compilers do, builds one whose descriptor falls into the bin, at the widest map of its class;
* a reset value can be read where a word has a field that is readable and not a constant, or no
  field at all (reads 0).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable

from openkpu.arithmetic import fp16
from openkpu.generators.generate_lists import ALL_KINDS
from openkpu.generators.generate_lists import KINDS as TASKS
from openkpu.layer import decoded
from openkpu.layer.argument import MOST_DILATION, LayerArg, LayerError
from openkpu.layer.elementwise import OPERATIONS
from openkpu.layer.pool_tasks import KINDS
from openkpu_tb.core import descriptor
from openkpu_tb.core.registers import Err
from openkpu_tb.coverage import float16

Bin = tuple[str, ...]

KERNELS = ("1x1", "3x3", "1x1 dw", "3x3 dw", "fc")
POOLS = (
    *("none", "max 2/2", "mean 2/2", "max 4/4", "mean 4/4"),
    *("left top 2/2", "right top 2/2", "left top 4/4", "mean 2/1", "max 2/1"),
)  # by pool_type
WIDTHS = {"1": 1, "2-16": 16, "17-32": 32, "33-64": 64, "65-960": 960}  # class: widest
BITS = ("8", "16")
LOADS = ("1", "2", "3 or more")
DISTANCES = tuple(str(far) for far in range(2, MOST_DILATION + 1))  # of taps
DILATED = ("3x3", "3x3 dw", "3x3 sums")
# into the rows of AI_SPARE_ROWS; all but the first by bits of tb_top's ring_ran
ROUTES = ("go directly", "wait", "wait around the end", "wait until the rows are full")
MAPS = ("one map", "two maps")
WINDOWS = ("window", "padded window", "whole map")
OPERANDS = ("unsigned", "signed pixels", "signed weights", "both signed")  # 2 w_xor + in_xor
MODES = ("host", "list", "stream")
TRAFFIC = ("immediate", "wait states", "lost or refused")
LINES = ("one line", "several lines")
PIECE = 16  # bytes: the narrowest word of the AI RAM
ENDS = ("whole pieces", "part of a piece")  # of a line
NINES = ("one", "part of nine", "whole nines")  # rows of B
MOVES = ("load", "load in bands", "store")
ADDRESSES = ("multiple of 64", "multiple of 4", "any byte")
ERRORS = tuple(error.name for error in Err)
ACCESSES = ("read", "write", "read reset value", "read while busy", "write while busy")

_POOL_OF_CODE = {code: pool for pool, code in descriptor.POOL_CODE.items()}
_POOL_OF_PICK = {(1, 0): 5, (1, 1): 6, (2, 0): 7}  # log2 of the stride, column phase


@dataclasses.dataclass(frozen=True)
class Cross:
    """Named points, their values in order, and the bins that the specification allows."""

    name: str
    title: str
    points: dict[str, tuple[str, ...]]
    possible: Callable[[Bin], bool] = lambda bin: True

    @functools.cached_property
    def bins(self) -> list[Bin]:
        """The bins that count, in order."""
        return [bin for bin in itertools.product(*self.points.values()) if self.possible(bin)]

    @functools.cached_property
    def excluded(self) -> frozenset[Bin]:
        """The bins that the specification excludes."""
        return frozenset(itertools.product(*self.points.values())) - frozenset(self.bins)


@dataclasses.dataclass(frozen=True)
class Word:
    """A 32-bit word of the register map."""

    name: str
    reset: int
    has_reset: bool  # the reset value can be read


def classify(fields: dict[str, int]) -> tuple[str, Bin]:
    """Cross and bin of a layer by its descriptor (``openkpu_tb.core.descriptor.unpack``)."""
    pool = _POOL_OF_CODE.get(fields["pool"]) or _POOL_OF_PICK.get((fields["stl"], fields["ph"]), 0)
    width = next((n for n, widest in WIDTHS.items() if fields["w"] <= widest), "wider")
    if fields["pools"]:
        found = descriptor.split_fields(descriptor.WINDOW, fields["ptask"])
        window = 2 if found["all"] else int(bool(found["top"] or found["left"]))
        return "pooling", (KINDS[found["kind"]], WINDOWS[window], width)
    if fields["ew"]:
        return "elementwise", (
            *(OPERATIONS[fields["ewop"]], MAPS[1 - fields["one"]]),
            *(POOLS[pool], width),
        )
    if fields["fp16"]:
        nine = NINES[0] if fields["c"] == 1 else NINES[1 + (fields["lastn"] == 9)]
        return "float16", (
            *(float16.TARGETS[fields["fp32"]], LINES[fields["h"] > 1], width),
            *(ENDS[fields["w"] % PIECE > 0], nine),
        )
    if fields["out32"]:
        operands = OPERANDS[2 * fields["wxor"] + fields["inxor"]]
        return "product", ("3x3" if fields["k3"] else "1x1", operands, width)
    if fields["mode"] == decoded.FC:
        kernel = "fc"
    else:
        kernel = ("3x3" if fields["k3"] else "1x1") + (" dw" if fields["dw"] else "")
    return "layer", (
        *(kernel, POOLS[pool], width),
        *(BITS[fields["wide"]], LOADS[min(fields["loads"], len(LOADS)) - 1]),
    )


def task(cross: str, bin: Bin) -> str:
    """Kind of task, by the cross and bin of its layer."""
    if cross == "layer":
        return "fully connected" if bin[0] == "fc" else "convolution"
    return {"elementwise": "element-wise", "pooling": "pool"}.get(cross, cross)


def move_bins(fields: dict[str, int], kind: str, mode: str) -> list[Bin]:
    """Bins of the cross ``moves``: what a layer of a kind has loaded and stored by itself."""
    moved = descriptor.split_fields(descriptor.MOVES, fields["moves"])
    convolves = fields["mode"] in (decoded.TAPS, decoded.CHAN) and not fields["dw"]
    plain = convolves and not fields["pools"] and not fields["fp16"]
    bands = plain and fields["h"] > decoded.lines_of_band(fields["w"])
    found = []
    for name in ("load", "store"):
        at = moved[f"{name}_adr"]
        address = ADDRESSES[0 if at % 64 == 0 else 1 if at % 4 == 0 else 2]
        move = MOVES[2] if name == "store" else MOVES[int(bands)]
        found += [(kind, move, mode, address)] * moved[name]
    return found


def dilation_bins(fields: dict[str, int]) -> list[Bin]:
    """Bins of the cross ``dilation``: one of a dilated layer, none of others."""
    if not fields["dil"]:
        return []
    kind = DILATED[2 if fields["out32"] else fields["dw"]]
    pool = _POOL_OF_CODE.get(fields["pool"], 0)
    return [(str(fields["dil"] + 1), kind, POOLS[pool])]


def wait_bins(fields: dict[str, int], mode: str, ways: int) -> list[Bin]:
    """Bins of the cross ``waits``: what weights did while a layer that has some worked; ``ways``:
    tb_top's ``ring_ran``."""
    if fields["pools"]:
        return []
    bits = BITS[int(bool(fields["wide"] or fields["fp16"]))]
    routes = [route for bit, route in enumerate(ROUTES[1:]) if ways >> bit & 1]
    return [(route, mode, bits) for route in routes or ROUTES[:1]]


def possible_dilation(bin: Bin) -> bool:
    """A legal layer argument falls into this bin."""
    far, kind, pool = bin
    try:
        arg = LayerArg.make(
            *(1, 4, 16),
            kernel=3,
            pool=POOLS.index(pool),
            depthwise=kind == DILATED[1],
            out32=int(kind == DILATED[2]),
            dilation=int(far),
        )
    except LayerError:
        return False
    return dilation_bins(descriptor.describe_layer(arg, decoded.Sizes())) == [bin]


def possible_move(bin: Bin) -> bool:
    """Maps of convolutions and products alone come in bands; words are stored, not bytes."""
    kind, move, _, address = bin
    in_bands = move != MOVES[1] or kind in ("convolution", "product")
    return in_bands and (move != MOVES[2] or address != ADDRESSES[2])


def possible_float16(bin: Bin) -> bool:
    """A product of float16 with a map of this bin: the sizes that there are, by size."""
    target, lines, width, _, nine = bin
    widths, h = list(WIDTHS), 1 if lines == LINES[0] else 2
    narrowest = 1 + (WIDTHS[widths[widths.index(width) - 1]] if width != widths[0] else 0)
    k = {NINES[0]: 1, NINES[1]: 5, NINES[2]: 9}[nine]
    for w in range(narrowest, WIDTHS[width] + 1):
        for oh, ow in fp16.out_sizes(h, w, target == float16.TARGETS[1]):
            fields = {"o_col_high": oh, "o_row_wid": ow, "fp16": 1}
            fields["fp32"] = float16.TARGETS.index(target)
            if in_bin("float16", bin, k, h, w, 1, **fields):
                return True
    return False


def in_bin(cross: str, bin: Bin, *sizes: int, **fields: int) -> bool:
    """``LayerArg.make`` builds a layer that falls into this bin."""
    try:
        arg = LayerArg.make(*sizes, **fields)
    except LayerError:
        return False
    eight_bit = bool(fields.get("eight_bit", True))
    described = descriptor.describe_layer(arg, decoded.Sizes(), eight_bit=eight_bit)
    return classify(described) == (cross, bin)


def possible_layer(bin: Bin) -> bool:
    """A legal layer argument falls into this bin of the cross ``layer``."""
    kernel, pool, width, bits, loads = bin
    channels = 1 + LOADS.index(loads)
    return in_bin(
        *("layer", bin, channels, 4, WIDTHS[width], channels),
        kernel=3 if kernel.startswith("3x3") else 1,
        pool=POOLS.index(pool),
        depthwise=kernel.endswith("dw"),
        fc=kernel == "fc",
        eight_bit=bits == "8",
        per_load=1,
    )


def possible_elementwise(bin: Bin) -> bool:
    """The same for the cross ``elementwise``."""
    op, maps, pool, width = bin
    return in_bin(
        *("elementwise", bin, 1, 4, WIDTHS[width]),
        kernel=3,
        pool=POOLS.index(pool),
        depthwise=True,
        elementwise=1,
        ew_op=OPERATIONS.index(op),
        ew_one=1 - MAPS.index(maps),
        src=1000,
    )


@functools.cache
def register_words() -> dict[int, Word]:
    """Register words of rtl/host/openkpu.rdl by byte offset; upper halves end in ``_hi``."""
    from openkpu.layer.regdesc import compile_map, field_reset  # needs systemrdl

    found = {}
    for node in compile_map("openkpu").registers():
        for word in range(node.get_property("regwidth") // 32):
            fields = [f for f in node.fields() if f.low < 32 * word + 32 and f.high >= 32 * word]
            readable = [f for f in fields if f.is_sw_readable]
            reset = sum(field_reset(f) << f.low for f in readable)
            changes = any(f.is_sw_writable or f.is_hw_writable for f in readable)
            found[node.address_offset + 4 * word] = Word(
                node.inst_name + ("_hi" if word else ""),
                reset >> (32 * word) & 0xFFFFFFFF,
                changes or not fields,
            )
    return found


def possible_run(bin: Bin) -> bool:
    """A list is compared with itself: only in a stream is it read more than once."""
    mode, _, error = bin
    return mode == "stream" or error != Err.LIST_CHANGED.name


@functools.cache
def crosses() -> tuple[Cross, ...]:
    """The model."""
    widths, words = tuple(WIDTHS), register_words().values()
    pools = {"pool": POOLS, "width": widths}
    constant = {word.name for word in words if not word.has_reset}
    return (
        Cross(
            "layer",
            "kernel x pool x width x bits x weight loads",
            {"kernel": KERNELS, **pools, "bits": BITS, "loads": LOADS},
            possible_layer,
        ),
        Cross(
            "dilation",
            "distance of taps x kind of layer x pool",
            {"distance": DISTANCES, "kind": DILATED, "pool": POOLS},
            possible_dilation,
        ),
        Cross(
            "elementwise",
            "operation x maps x pool x width",
            {"operation": OPERATIONS, "maps": MAPS, **pools},
            possible_elementwise,
        ),
        Cross(
            "pooling",
            "kind x window x width",
            {"kind": tuple(KINDS.values()), "window": WINDOWS, "width": widths},
        ),
        Cross(
            "product",
            "kernel x operands x width",
            {"kernel": ("1x1", "3x3"), "operands": OPERANDS, "width": widths},
        ),
        Cross(
            "float16",
            "target x lines x width x last piece x rows of B",
            {
                **{"target": float16.TARGETS, "lines": LINES, "width": widths},
                **{"end": ENDS, "rows": NINES},
            },
            possible_float16,
        ),
        Cross(
            "float16_values",
            "target x value of an element x place in C",
            {"target": float16.TARGETS, "value": float16.VALUES, "place": float16.PLACES},
            float16.possible_value,
        ),
        Cross(
            "waits",
            "weights that wait x mode x bits",
            {"weights": ROUTES, "mode": MODES, "bits": BITS},
        ),
        Cross(
            "moves",
            "task x move of a map x mode x address",
            {"task": ALL_KINDS, "move": MOVES, "mode": MODES, "address": ADDRESSES},
            possible_move,
        ),
        Cross(
            "order",
            "task x task before it x mode",
            {"task": TASKS, "before": TASKS, "mode": MODES[1:]},
        ),
        Cross(
            "run",
            "mode x bus x error",
            {"mode": MODES, "bus": TRAFFIC, "error": ERRORS},
            possible_run,
        ),
        Cross(
            "register",
            "register word x access",
            {"word": tuple(word.name for word in words), "access": ACCESSES},
            lambda bin: bin[1] != ACCESSES[2] or bin[0] not in constant,
        ),
    )
