# SPDX-License-Identifier: Apache-2.0
"""The decoded layer descriptor: its bit fields (fields.toml) and what they must hold."""

import ast
import operator
import tomllib
from dataclasses import dataclass

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.checkout import ROOT
from openkpu.layer.argument import LayerArg

SOURCE = ROOT / "rtl" / "include" / "fields.toml"
TAPS, CHAN, DWROW, FC = range(4)  # MODE_*
POOL_CODE = {1: 1, 2: 2, 3: 3, 4: 4, 9: 5, 8: 6}  # pool_type -> POOL_*; others 0


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def evaluate(width: str, sizes: dict[str, int]) -> int:
    """A width of fields.toml: sums, differences and products of numbers and of names in ``sizes``
    (a Verilog macro without its backquote)."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
            case ast.Name(name) if name in sizes:
                return sizes[name]
            case ast.Name(name):
                raise KeyError(name)
            case ast.Constant(int(number)):
                return number
        raise ValueError(f"width {width!r}: only + - * of numbers and names")

    return value(ast.parse(width.replace("`", ""), mode="eval").body)


def layout(vector: str, **sizes: int) -> dict[str, tuple[int, int]]:
    """name -> (lowest bit, width) of the fields of a packed vector; ``sizes``: the parameters that
    widths of fields.toml name, and the widths of vectors inside it."""
    found, low = {}, 0
    for name, width, _ in tomllib.loads(SOURCE.read_text())[vector]["fields"]:
        if isinstance(width, str):
            width = evaluate(width, sizes)
        found[name] = low, width
        low += width
    return found


def join_fields(vector: dict[str, tuple[int, int]], values: dict[str, int]) -> int:
    """A packed vector of the named fields; the others 0. ValueError when one does not fit."""
    total = 0
    for name, value in values.items():
        low, width = vector[name]
        if not 0 <= value < 1 << width:
            raise ValueError(f"{name} = {value} does not fit {width} bits")
        total |= value << low
    return total


def split_fields(vector: dict[str, tuple[int, int]], value: int) -> dict[str, int]:
    """The inverse of ``join_fields``."""
    return {n: value >> low & ((1 << width) - 1) for n, (low, width) in vector.items()}


WINDOW, MOVES = layout("ptask"), layout("moves")
FIELDS = layout("desc", MOVES_BITS=sum(width for _, width in MOVES.values()))
TOTAL = sum(width for _, width in FIELDS.values())  # bits of a descriptor


def pack_descriptor(fields: dict[str, int]) -> int:
    """Descriptor of the named fields; the others 0."""
    return join_fields(FIELDS, fields)


def unpack(value: int) -> dict[str, int]:
    """Fields of a descriptor."""
    return split_fields(FIELDS, value)


@dataclass(frozen=True)
class Sizes:
    """Of the device: array, tile entries, rows of weight buffer and AI RAM, bits of a weight, bytes
    of a tile word."""

    n_y: int = 2
    n_z: int = 2
    tile_rows: int = 32
    wbuf_rows: int = 1024
    ram_rows: int = 32768
    weight_bits: int = 16
    tile_word: int = 64
    flat: bool = False  # maps of 1x1 layers may be taken as one line


def _pitch(width: int) -> int:
    return 0 if width <= 16 else 1 if width <= 32 else 2


def stripe_log2(arg: LayerArg, kw: int) -> int:
    """log2 of the width of a stripe's lines."""
    stride = 1 if arg.pool_type in PICKS else POOL_STRIDE[arg.pool_type]
    pools = arg.pool_type != 0 and arg.pool_type not in PICKS
    if arg.fc or kw <= 16 or (pools and stride != 2):
        return 4
    return 5 if pools or kw <= 32 else 6


def _share(arg: LayerArg, mode: int, kw: int, swl: int, sizes: Sizes) -> int:
    """Groups that must share a reading of the input for the array to be the slower side."""
    lines = 64 >> swl
    narrowest = kw % (1 << swl) or 1 << swl
    array = ceil_div(narrowest, sizes.n_y) * lines  # cycles of a step
    pitch = 16 << _pitch(arg.i_row_wid)
    stride = POOL_STRIDE[arg.pool_type] if arg.pool_type in PICKS else 1
    # words of nine channels' lines: several channels in a word, or several words a channel
    packed = {4: 3, 2: 5}.get(sizes.tile_word // pitch)
    words = (packed or 9 * ceil_div(narrowest * stride, sizes.tile_word)) * lines
    if mode != CHAN:
        return 1
    if is_flat(arg, sizes):  # a whole stripe, with parts of lines at both ends
        array, words = 64 // sizes.n_y, (packed or 9) * (64 // arg.i_row_wid + 2)
    return next((n for n in (1, 2, 4) if n * array >= words), 8)


def is_flat(arg: LayerArg, sizes: Sizes) -> bool:
    """A 1x1 layer's map is one line: its lines do not fill the array, and reading them does not
    take longer than computing them."""
    width, plain = arg.i_row_wid, not (arg.depthwise or arg.fc or arg.pool_task or arg.kernel == 3)
    if not (sizes.flat and plain) or arg.pool_type or arg.out32 or arg.fp16:
        return False
    if width >= 16 or width % sizes.n_y == 0 or width * arg.i_col_high > 1024:
        return False
    # the array takes longer than the parts of lines that leave
    if arg.i_ch_num < 9 * (64 // width + 5) * sizes.n_y * sizes.n_z // 64:
        return False
    once = arg.i_ch_num <= 9 * (sizes.tile_rows // 2)  # read ahead while the stripe before is used
    return once or (width >= 9 and sizes.tile_word == 64 and sizes.n_y <= 4)


def describe_layer(
    arg: LayerArg,
    sizes: Sizes,
    *,
    eight_bit: bool = True,
    wgt_base: int = 0,
    bias_base: int = 0,
    index: int = 0,
    first: bool = False,
    last: bool = False,
    parity: int = 0,
    place: tuple[int, int] | None = None,
) -> dict[str, int]:
    """Every field of the descriptor of a legal layer.

    ``place``: first row of the inference's input map and the one after its last; a first layer
    sets it.
    """
    c, h, w = arg.in_shape
    o, (_, oh, ow) = arg.o_ch_num, arg.out_shape
    pick = arg.pool_type in PICKS
    stride = POOL_STRIDE[arg.pool_type]
    dw, fc, k3 = arg.depthwise, bool(arg.fc), arg.kernel == 3
    mode = FC if fc else DWROW if dw and not arg.pool_type else TAPS if dw or k3 else CHAN
    kw, kh = (ow, oh) if pick else (w, h) if stride == 1 else (ow * stride, oh * stride)
    kw, kh = (1, 1) if fc else (kw, kh)
    swl = stripe_log2(arg, kw)
    flat = is_flat(arg, sizes)
    kw, kh, swl = (w * h, 1, 6) if flat else (kw, kh, swl)
    vector = c * h * w if fc else c
    steps = {TAPS: c, CHAN: ceil_div(c, 9), DWROW: 1, FC: ceil_div(vector, 9)}[mode]
    entries = ceil_div(steps, 64) if fc else steps
    groups = o if fc else 1 if dw else ceil_div(o, sizes.n_z)
    block = min(groups, _share(arg, mode, kw, swl, sizes), sizes.wbuf_rows // 2 // steps)
    size = arg.taps * arg.weight_size(eight_bit)
    rest = (o - (arg.loads - 1) * arg.o_ch_num_coef) * size
    source, result = arg.in_layout, arg.out_layout
    return {
        "mode": mode,
        "dw": int(dw),
        "k3": int(k3),
        "sin": arg.signed_in,
        "sout": arg.signed_out,
        "held": int(not dw and entries < sizes.tile_rows),
        "wide": int(arg.weight_size(eight_bit) == 2),
        **dict(zip("cowh", (c, o, w, h), strict=True)),
        "ow": ow,
        "oh": oh,
        "kw": kw,
        "kh": kh,
        "src": arg.image_src_addr,
        "dst": arg.image_dst_addr,
        "ip": _pitch(w),
        "irl": source.row_len,
        "ics": source.channel_rows,
        "op": _pitch(ow),
        "orl": result.row_len,
        "ocs": result.channel_rows,
        "stl": stride.bit_length() - 1 if pick else 0,
        "ph": int(arg.pool_type == 6),
        "swl": swl,
        "pool": POOL_CODE.get(arg.pool_type, 0),
        "s": steps,
        "lastn": (vector - 1) % 9 + 1,
        "g": groups,
        "b": groups if fc else 1 if dw else max(1, block),
        "pad": arg.pad_value,
        "argx": arg.arg_x & 0xFFFFFF,
        "shrx": arg.shr_x,
        "argw": arg.arg_w & 0xFFFFFF,
        "shrw": arg.shr_w,
        "addc": arg.arg_add * arg.add_count & ((1 << 36) - 1),
        "waddr": (arg.para_start_addr + (0 if arg.kept_weights else wgt_base)) & 0xFFFFFFFF,
        "kept": arg.kept_weights,
        "flat": int(flat),
        "psize": arg.para_size,
        "loads": arg.loads,
        "wlen": rest if arg.loads == 1 else arg.o_ch_num_coef * size,
        "wlast": rest,
        "baddr": (arg.bwsx_base_addr + bias_base) & 0xFFFFFFFF,
        "aaddr": (arg.active_addr + bias_base) & 0xFFFFFFFF,
        "inten": arg.int_en,
        "send": arg.send_data_out,
        "first": int(first),
        "last": int(last),
        "idx": index,
        "inb": c * h * w,
        "touch": int(first or (place is not None and touches(arg, place))),
        "wrows": min(65535, weight_rows(arg, steps, sizes.n_z)),
        "inf": parity,
        "ew": arg.elementwise,
        "ewop": arg.ew_op,
        "one": arg.ew_one,
        "src2": arg.image_src2_addr,
        "inxor": arg.in_xor,
        "wxor": arg.w_xor,
        "out32": arg.out32,
        "fp16": arg.fp16,
        "fp32": arg.fp16 & arg.fp32,
        "pools": int(bool(arg.pool_task)),
        "moves": moves(arg),
        "ptask": join_fields(WINDOW, {**window(arg), "kind": arg.pool_task, "all": arg.pool_all}),
    }


def moves(arg: LayerArg) -> int:
    """What a descriptor holds of maps from and to the storage."""
    values = {n: getattr(arg, f"{n}_map") for n in ("load", "store")}
    return join_fields(MOVES, values | {f"{n}_adr": getattr(arg, f"map_{n}_addr") for n in values})


def window(arg: LayerArg) -> dict[str, int]:
    """What a descriptor holds of the window of a pooling task."""
    minus = {n: getattr(arg, f"pool_{n}") - 1 for n in ("kh", "kw", "sy", "sx")}
    return {f"{n}_m1": v for n, v in minus.items()} | {
        "top": arg.pool_top,
        "left": arg.pool_left,
    }


def touches(arg: LayerArg, place: tuple[int, int]) -> bool:
    """Does a map of the layer meet the rows ``place``?"""
    maps = *arg.in_layouts, arg.out_layout
    return any(m.base < place[1] and m.base + m.rows > place[0] for m in maps)


def weight_rows(arg: LayerArg, steps: int, n_z: int) -> int:
    """Rows of the weight buffer that all weights of a layer take."""
    if arg.pool_task:
        return 0
    if arg.depthwise:
        return ceil_div(arg.o_ch_num, n_z)
    return ceil_div(steps * arg.o_ch_num, n_z) if arg.fc else steps * ceil_div(arg.o_ch_num, n_z)


def may_be_flat(fields: dict[str, int]) -> bool:
    """The stages can take the layer's map as one line, whether it is faster or not."""
    plain = fields["mode"] == CHAN and not (fields["pool"] or fields["stl"] or fields["out32"])
    return plain and fields["w"] < 16 and fields["w"] * fields["h"] <= 1024


def flattened(fields: dict[str, int]) -> dict[str, int]:
    """The same layer with its map taken as one line."""
    grid = {"kw": fields["w"] * fields["h"], "kh": 1, "swl": 6}
    return {**fields, **grid, "flat": 1}


def origin(fields: dict[str, int], x: int, y: int) -> tuple[int, int]:
    """(column, line) of the output map where a stripe at (x, y) of the grid begins."""
    if not fields["flat"]:
        return x, y
    line, column = divmod(x, fields["w"])
    return column, line


def stripes(fields: dict[str, int]) -> list[tuple[int, int, int, int]]:
    """(x, y, width, lines) of the stripes of the computed grid, in order."""
    wide, high = 1 << fields["swl"], 64 >> fields["swl"]
    overlap = int(fields["pool"] in (5, 6))  # stride-1 pools see one line and column more
    found, y = [], 0
    while True:
        x = 0
        lines = min(high, fields["kh"] - y)
        while True:
            width = min(wide, fields["kw"] - x)
            found.append((x, y, width, lines))
            if x + width == fields["kw"]:
                break
            x += wide - overlap
        if y + lines == fields["kh"]:
            return found
        y += high - overlap
