# SPDX-License-Identifier: Apache-2.0
"""The decoded layer descriptor: its bit fields (fields.toml) and what they must hold."""

import ast
import operator
import tomllib

from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.checkout import ROOT
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import (
    CHAN,
    Sizes,
    cut_stripes,
    decode_layer,
    pitch_code,
    weight_rows,
)

SOURCE = ROOT / "rtl" / "include" / "fields.toml"
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
    dw, k3, on = arg.depthwise, arg.kernel == 3, decode_layer(arg, sizes)
    vector = c * h * w if arg.fc else c
    size = arg.taps * arg.weight_size(eight_bit)
    rest = (o - (arg.loads - 1) * arg.o_ch_num_coef) * size
    source, result = arg.in_layout, arg.out_layout
    return {
        "mode": on.mode,
        "dw": int(dw),
        "k3": int(k3),
        "sin": arg.signed_in,
        "sout": arg.signed_out,
        "held": int(on.held),
        "wide": int(arg.weight_size(eight_bit) == 2),
        **dict(zip("cowh", (c, o, w, h), strict=True)),
        "ow": ow,
        "oh": oh,
        "kw": on.kw,
        "kh": on.kh,
        "src": arg.image_src_addr,
        "dst": arg.image_dst_addr,
        "ip": pitch_code(w),
        "irl": source.row_len,
        "ics": source.channel_rows,
        "op": pitch_code(ow),
        "orl": result.row_len,
        "ocs": result.channel_rows,
        "stl": stride.bit_length() - 1 if pick else 0,
        "ph": int(arg.pool_type == 6),
        "swl": on.swl,
        "pool": POOL_CODE.get(arg.pool_type, 0),
        "s": on.steps,
        "lastn": (vector - 1) % 9 + 1,
        "g": on.groups,
        "b": on.block,
        "pad": arg.pad_value,
        "argx": arg.arg_x & 0xFFFFFF,
        "shrx": arg.shr_x,
        "argw": arg.arg_w & 0xFFFFFF,
        "shrw": arg.shr_w,
        "addc": arg.arg_add * arg.add_count & ((1 << 36) - 1),
        "waddr": (arg.para_start_addr + (0 if arg.kept_weights else wgt_base)) & 0xFFFFFFFF,
        "kept": arg.kept_weights,
        "flat": int(on.flat),
        "dil": arg.dilation - 1,
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
        "wrows": min(65535, weight_rows(arg, on.steps, sizes.n_z)),
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
    overlap = int(fields["pool"] in (5, 6))  # stride-1 pools see one line and column more
    return cut_stripes(fields["kw"], fields["kh"], fields["swl"], overlap)
