# SPDX-License-Identifier: Apache-2.0
"""The bench of test_layer_decode: layers of all kinds, the same with one thing spoilt, answers."""

import random
from dataclasses import dataclass

from cocotb.triggers import ClockCycles, RisingEdge

from openkpu.arithmetic import fp16
from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.layer.argument import (
    ERROR_CODES,
    FIELDS,
    MOST_DILATED_POOL,
    MOST_DILATION,
    PARA_SIZE_MAX,
    LayerArg,
    LayerError,
)
from openkpu.layer.decoded import FC, Sizes
from openkpu.layer.layout import ROW_BYTES
from openkpu.layer.pool_layer import pool_layer
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.descriptor import describe_layer, unpack

# taken with the last word, but for the table offsets, which are there all the time
BASES = ("wgt_base", "bias_base")
SIDE = ("eight_bit", "wgt_base", "bias_base", "index", "first", "last", "parity")
LATENCY = 80  # cycles from the last word to the descriptor or the refusal
RESERVED = [
    sum(((1 << width) - 1) << low for w, low, width, *_ in FIELDS.values() if w == word)
    ^ ((1 << 64) - 1)
    for word in range(12)
]
IGNORED = ("ram_flag", "full_add", "pad_type", "first_stride", "bypass_conv", "load_para")
IGNORED += ("dma_burst_size", "load_coor", "coef_column_offset", "coef_row_offset", "load_act")
IGNORED += ("channel_switch_addr", "row_switch_addr", "coef_size", "coef_group")
IGNORED += ("wb_channel_switch_addr", "wb_row_switch_addr", "wb_group")


WINDOW = ("all", "kh", "kw", "sy", "sx", "top", "left", "bottom", "right")  # pool_*
# what a pooling task needs of its descriptor: the array's part may be anything
OF_TASKS = {
    *("c", "o", "w", "h", "ow", "oh", "src", "dst", "ip", "irl", "ics", "op", "orl", "ocs"),
    *("sin", "sout", "pad", "inten", "send", "first", "last", "idx", "inb", "touch", "wrows"),
    *("inf", "pools", "ptask", "moves"),
}
PARTS = ("decode", "fields", "flags", "moves", "share", "sizes", "steps", "alu")
BUS_BYTES = 4


@dataclass
class Case:
    arg: LayerArg
    side: dict[str, int]

    def code(self, sizes: Sizes) -> int:
        """The refusal that is due, 0 for a legal layer."""
        eight_bit = bool(self.side["eight_bit"])
        code = self.arg.device_code(
            eight_bit=eight_bit,
            fp16_lanes=floats,
            keeps=keeps,
            sums=sums,
            dilation=dilation,
            ram_rows=sizes.ram_rows,
            weight_bits=sizes.weight_bits,
            bus_bytes=BUS_BYTES,
            first=bool(self.side["first"]),
            last=bool(self.side["last"]),
        )
        if code or self.arg.pool_task:
            return code
        d = self.fields(sizes)
        rows = ceil_div(self.arg.i_ch_num, sizes.n_z) if d["dw"] else d["s"]
        return ERROR_CODES["BAD_WEIGHTS"] if d["mode"] != FC and rows > sizes.wbuf_rows else 0

    def fields(self, sizes: Sizes, place: tuple[int, int] | None = None) -> dict[str, int]:
        side = {**self.side, "eight_bit": bool(self.side["eight_bit"])}
        return describe_layer(self.arg, sizes, place=place, **side)

    def words(self) -> list[int]:
        """The twelve words, with noise where the KPU keeps bits to itself."""
        return [
            int(w) | (random.getrandbits(64) & RESERVED[i] if random.getrandbits(1) else 0)
            for i, w in enumerate(self.arg.encode())
        ]


def number(most: int) -> int:
    """1..most, small ones as often as large ones, the ends too."""
    return random.choice((1, most, random.randint(1, most), min(most, 1 << random.randrange(10))))


def noise_fields(arg: LayerArg) -> LayerArg:
    """Numbers in all fields that may hold any; what is ignored holds anything."""
    names = ("arg_x", "arg_w", "shr_x", "shr_w", "arg_add", "pad_value", "para_start_addr")
    names += ("bwsx_base_addr", "active_addr", "int_en", "send_data_out", "signed_in", "signed_out")
    names += ("ew_op", "ew_one", "image_src2_addr", "map_load_addr", "map_store_addr")
    if not (arg.pool_task or arg.fp16):
        names += ("in_xor", "w_xor", *(f"pool_{name}" for name in WINDOW))
    changes = {}
    for name in (*names, *IGNORED):
        _, _, width, signed, offset = FIELDS[name]
        value = random.choice((0, (1 << width) - 1, random.getrandbits(width)))
        changes[name] = (
            value - (1 << width) if signed and value >> (width - 1) else value
        ) + offset
    return arg.replace(**changes)


def moving(arg: LayerArg, side: dict[str, int]) -> LayerArg:
    """Maps from and to the storage, where the layer may have them."""
    load = random.getrandbits(1) and not side["first"]
    store = random.getrandbits(1) and not side["last"]
    at = arg.map_store_addr - arg.map_store_addr % (BUS_BYTES if store else 1)
    send = 0 if store else arg.send_data_out
    arg = arg.replace(
        load_map=int(load), store_map=int(store), map_store_addr=at, send_data_out=send
    )
    arg = keeping(arg, bool(side["eight_bit"])) if random.random() < 0.3 else arg
    return striding(arg, side)


def striding(arg: LayerArg, side: dict[str, int]) -> LayerArg:
    """Often rows between the channel groups of a map that does not move, as far as it has room."""
    if arg.fc or arg.out32 or arg.fp16:
        return arg
    stays_in = not (arg.load_map or side["first"])
    stays_out = not (arg.store_map or side["last"] or arg.send_data_out)
    for name, field, layout, may in (
        ("in_strided", "channel_switch_addr", arg.in_layout, stays_in),
        ("out_strided", "wb_channel_switch_addr", arg.out_layout, stays_out),
    ):
        groups = ceil_div(layout.channels, layout.groups)
        room = case_rows - layout.base - layout.own_rows
        most = min((1 << 14) - 1, room // (groups - 1) if groups > 1 else 1 << 14)
        if may and random.getrandbits(1) and most >= layout.own_rows:
            near = min(most, layout.own_rows + random.choice((0, 1, 2, 20)))
            apart = random.choice((near, near, most, random.randint(layout.own_rows, most)))
            arg = arg.replace(**{name: 1, field: apart})
    return arg


def keeping(arg: LayerArg, eight_bit: bool, over: int = 0) -> LayerArg:
    """Its weights in the AI RAM, often at its end or ``over`` bytes behind; unless it has none, or
    the device no way for them."""
    size = arg.replace(para_start_addr=0).weights_end(eight_bit)
    room = case_rows * ROW_BYTES - size + over
    if arg.pool_task or not keeps or room < 0:
        return arg
    at = random.choice((0, room, room, random.randint(0, room)))
    return arg.replace(kept_weights=1, para_start_addr=room if over else at)


def pooling(sizes: Sizes) -> LayerArg | None:
    """A pooling task of any size, if a window fits and the memory holds its maps."""
    pads = [random.choice((0, 7, random.randrange(8))) for _ in range(4)]
    kh, kw, sy, sx = (random.choice((1, 16, random.randint(1, 16))) for _ in range(4))
    shape = number(1024), number(512), number(960)
    whole = random.random() < 0.2
    top, left, bottom, right = (
        0 if whole else min(n, size - 1) for n, size in zip(pads, (kh, kw) * 2, strict=True)
    )
    src = random.choice((0, random.randrange(sizes.ram_rows)))
    try:
        arg = pool_layer(
            *(shape, random.randint(1, 4), None if whole else (kh, kw)),
            *((1, 1) if whole else (sy, sx), (top, left, bottom, right)),
            src=src,
            ram_rows=sizes.ram_rows,
        )
    except LayerError:
        return None
    loads = {"load_time": number(64), "o_ch_num_coef": number(1024)}  # not looked at
    return noise_fields(arg.replace(para_size=random.randrange(PARA_SIZE_MAX + 1), **loads))


def floating(sizes: Sizes) -> LayerArg | None:
    """A product of float16 of any size, if the memory holds its maps."""
    h, w = (1, 2 * number(480)) if random.getrandbits(1) else (number(512), 64 * number(15))
    if random.getrandbits(1):
        h = min(h, 8)
    wide = random.getrandbits(1)
    src = random.choice((0, random.randrange(sizes.ram_rows)))
    oh, ow = random.choice(fp16.out_sizes(h, w, bool(wide)) or [(1, 1)])
    try:
        arg = LayerArg.make(
            *(number(1024), h, w, number(1024)),
            src=src,
            ram_rows=sizes.ram_rows,
            fp16=1,
            fp32=wide,
            o_col_high=oh,
            o_row_wid=ow,
        )
    except LayerError:
        return None
    return noise_fields(arg)


def legal(sizes: Sizes) -> Case:
    """A layer of any size that the device can run."""
    while True:
        fc, depthwise = random.random() < 0.15, random.random() < 0.25
        pool = 0 if fc else random.choice(tuple(POOL_STRIDE))
        side = {
            "eight_bit": int(random.random() < 0.7 or sizes.weight_bits == 8),
            "wgt_base": random.getrandbits(32),
            "bias_base": random.getrandbits(32),
            "index": random.getrandbits(10),
            "first": random.getrandbits(1),
            "last": random.getrandbits(1),
            "parity": random.getrandbits(1),
        }
        if floats and random.random() < 0.4:
            if (task := floating(sizes)) is not None and not Case(task, side).code(sizes):
                return Case(task, side)
            continue
        if random.random() < 0.2:
            task = pooling(sizes)
            # groups that lie apart may make the output meet the input
            if task is not None and not (case := Case(moving(task, side), side)).code(sizes):
                return case
            continue
        kernel = random.choice((1, 3))
        c, h, w, o = number(1024), number(512), number(960), number(1024)
        if random.random() < 0.5:
            c, h, w = min(c, 40), min(h, 30), min(w, random.choice((16, 32, 70)))
        if random.random() < 0.1:  # groups share the input as far as their weights have room
            c, w, pool, fc, depthwise = number(1024), random.randint(65, 70), 0, False, False
            h, kernel = number(8), 1
        if random.random() < 0.15:  # a map that may be one line
            w, h = random.randint(1, 16), random.choice((number(70), number(512)))
            pool, fc, depthwise, kernel = 0, False, False, 1
            c = random.choice((c, random.randint(1, 400)))
        if random.random() < 0.1:  # more channels than a map has elsewhere
            c = random.choice((1025, 9216, random.randint(1, 9216), 9 * sizes.wbuf_rows))
            c, h, w = min(c, 9216), min(h, 4), min(w, 40)
            pool, fc, depthwise, kernel = 0, False, False, 1
        if depthwise:
            o, fc = c, False
        kernel = 1 if fc else kernel
        try:
            arg = LayerArg.make(
                *(c, h, w, o),
                kernel=kernel,
                pool=pool,
                depthwise=depthwise,
                fc=fc,
                eight_bit=bool(side["eight_bit"]),
                per_load=random.choice((None, None, number(o), ceil_div(o, 64))),
                src=random.choice((0, random.randrange(sizes.ram_rows))),
                ram_rows=sizes.ram_rows,
            )
        except LayerError:
            continue
        if arg.loads == 1 and random.getrandbits(1):  # a load may be larger than what is left
            per_load = min(1024, arg.o_ch_num + random.randrange(4))
            size = per_load * arg.taps * (1 if side["eight_bit"] else 2)
            arg = arg.replace(o_ch_num_coef=per_load, para_size=min(size, PARA_SIZE_MAX))
        more = random.choice((0, 0, 1, random.randrange(1000)))
        arg = noise_fields(arg.replace(para_size=min(PARA_SIZE_MAX, arg.para_size + more)))
        if depthwise and not pool and random.getrandbits(1):  # onto the input, or towards row 0
            before = random.choice((0, 0, 1, random.randrange(100)))
            arg = arg.replace(image_dst_addr=max(0, arg.image_src_addr - before))
        if depthwise and kernel == 3 and random.getrandbits(1):
            before = random.choice((0, 1, random.randrange(100), -arg.in_layout.rows))
            near = max(0, min(32767, arg.image_src_addr - before))
            other = random.choice((near, random.randrange(sizes.ram_rows)))
            arg = arg.replace(elementwise=1, image_src2_addr=other)
        if kernel == 3 and pool <= MOST_DILATED_POOL and not arg.elementwise:
            arg = arg.replace(dilation=random.choice((1, random.randint(1, dilation), dilation)))
        if not side["eight_bit"]:
            arg = arg.replace(w_xor=0)
        if not (depthwise or fc or pool) and random.getrandbits(1):  # four planes a channel
            rows = arg.replace(out32=1).out_layout.rows
            arg = arg.replace(out32=1, image_dst_addr=max(0, arg.image_dst_addr - rows))
        case = Case(moving(arg, side), side)
        if case.code(sizes) == 0:
            return case


def spoilt(arg: LayerArg, side: dict[str, int], change: int) -> dict[str, int] | None:
    """Fields with one thing that may be wrong; None: it is the width of weights."""

    def step(size: int, most: int) -> int:
        return min(most, max(1, size + random.choice((-1, 1))))

    def row(number: int) -> int:
        return max(0, min(32767, number))

    def behind(rows: int) -> int:
        """So many rows that end with the AI RAM, or some rows behind it."""
        return row(case_rows - rows + random.choice((0, 1, 5)))

    def near(place: int) -> int:
        return row(place + random.randrange(-3, 4))

    width = random.choice((960, 961, 1024))
    wide = 1 if arg.fc else width // POOL_STRIDE.get(arg.pool_type, 1)
    channels = random.choice((arg.i_ch_num % 1024 + 1, 1024, 1025, 9216, 9217, 10241, 16384))
    load = arg.o_ch_num_coef * arg.taps * (1 if side["eight_bit"] else 2) - random.choice((0, 1))
    second = random.choice((behind(arg.in_layout.rows), near(arg.image_dst_addr)))
    return {
        0: {"depth_wise_layer": 1, "fc": 1},
        1: {"kernel_type": random.randrange(1, 8)},
        2: {"pool_type": random.randrange(1, 16)},
        3: {"o_row_wid": step(arg.o_row_wid, 1024)},
        4: {"o_col_high": step(arg.o_col_high, 512)},
        5: {"i_row_wid": width, "o_row_wid": wide},
        6: {"i_ch_num": channels},
        7: {"image_src_addr": behind(arg.in_layout.rows)},
        8: {"image_dst_addr": behind(arg.out_layout.rows)},
        9: {"para_size": max(0, min(PARA_SIZE_MAX, load))},
        10: {"load_time": arg.load_time % 64 + 1},
        11: {"load_time": max(1, arg.load_time - 1)},
        12: {"image_dst_addr": near(arg.image_src_addr)},
        13: {"o_ch_num_coef": max(1, arg.o_ch_num_coef - 1)},
        14: {"elementwise": 1},
        15: {"image_src2_addr": second},
        16: {"out32": 1},
        17: {"w_xor": 1},
    }.get(change)


def spoil(case: Case) -> Case:
    """One thing that may be wrong, or several."""
    arg, side = case.arg, dict(case.side)
    for _ in range(random.choice((1, 1, 2))):
        if floats and random.random() < 0.2:
            name, value = random.choice((("fp16", 1), ("fp16", 0), ("fp32", 1 - arg.fp32)))
            arg = arg.replace(**{name: value})
            continue
        if arg.fp16 and random.random() < 0.3:
            names = ("in_xor", "w_xor", "out32", "fc", "elementwise", "depth_wise_layer")
            sizes = {"i_row_wid": arg.i_row_wid - 1 or 2, "i_col_high": arg.i_col_high % 512 + 1}
            sizes["o_col_high"] = arg.o_col_high * 2 % 512 + 1
            name, value = random.choice((*((n, 1) for n in names), *sizes.items()))
            arg = arg.replace(**{name: value})
            continue
        if (
            random.random() < 0.1
        ):  # channel groups on each other, too far apart, or of a map that moves
            name, field, own = random.choice(
                (
                    ("in_strided", "channel_switch_addr", arg.in_layout.own_rows),
                    ("out_strided", "wb_channel_switch_addr", arg.out_layout.own_rows),
                )
            )
            apart = random.choice((own - 1, own, own + 1, (1 << 14) - 1, 1 << 14))
            arg = arg.replace(**{name: 1, field: min(32767, max(0, apart))})
            continue
        if random.random() < 0.1:  # of a layer that excludes dilation, or beyond the device's
            pools = {"pool_type": random.choice((4, 5, 9))}
            beside = random.choice(({}, pools, pools, {"kernel_type": random.choice((0, 2))}))
            far = random.choice((2, MOST_DILATION, dilation, min(8, dilation + 1)))
            arg = arg.replace(dilation=far, **beside)
            continue
        change = random.randrange(30)
        if (
            change > 27
        ):  # kept weights: behind the AI RAM, of a pooling task, without a way for them
            arg = keeping(arg, bool(side["eight_bit"]), random.choice((1, 2, 64, 1 << 20)))
            arg = arg.replace(kept_weights=1) if arg.pool_task or not keeps else arg
            continue
        if change > 23:  # what moves: flags that exclude each other, a place between bus words
            ways = ({"load_map": 1}, {"store_map": 1}, {"store_map": 1, "send_data_out": 1})
            odd = {"store_map": 1, "map_store_addr": random.choice((1, 2, 3, 4, 6, 8, 0x101))}
            arg = arg.replace(**random.choice((*ways, odd)))
            continue
        if change > 18:  # of a pooling task, or what would be one
            name = "pool_" + random.choice((*WINDOW, "task", "task"))
            _, _, width, _, offset = FIELDS[name]
            near = getattr(arg, name) - offset + random.choice((-1, 1))
            value = random.choice((near, near, random.getrandbits(width))) % (1 << width)
            arg = arg.replace(**{name: value + offset})
            continue
        one = spoilt(arg, side, change)
        if one is None:
            side["eight_bit"] ^= 1
        else:
            side["eight_bit"] &= change != 17
            arg = arg.replace(**one)
    return Case(arg, side)


case_rows = 32768  # AI RAM rows of the device under test
floats = 0  # it has lanes for products of float16
keeps = True  # it has a way for weights from the AI RAM
sums = True  # they may leave as 32 bits
dilation = 1  # the largest


class Bench(BlockBench):
    inputs = "drop", "w_valid", "w_data", "d_ready", *SIDE

    def __init__(self, dut) -> None:
        global case_rows, floats, keeps, sums, dilation
        super().__init__(dut)
        names = ("N_Y", "N_Z", "TILE_ROWS", "WBUF_ROWS", "AI_RAM_ROWS", "WEIGHT_BITS", "TILE_WORD")
        flat = bool(int(dut.FLAT_MAPS.value))
        self.sizes = Sizes(*(int(getattr(dut, name).value) for name in names), flat=flat)
        case_rows, floats = self.sizes.ram_rows, int(dut.FP16.value)
        keeps, sums = bool(int(dut.KEEP_WEIGHTS.value)), bool(int(dut.OUT32.value))
        dilation = int(dut.DILATION.value)
        # rows of the input map of the layer that was last marked first; None: not known
        self.place: tuple[int, int] | None = None

    async def decode(self, case: Case, p_word: float, wait: int) -> int:
        """Give the words, wait for the answer and check it; returns the code of the refusal."""
        dut = self.dut
        words = case.words()
        while words:
            dut.w_valid.value = int(random.random() < p_word)
            dut.w_data.value = words[0]
            for name in SIDE:
                width = len(getattr(dut, name))
                last = len(words) == 1 or name in BASES
                value = case.side[name] if last else random.getrandbits(width)
                getattr(dut, name).value = value
            await RisingEdge(dut.clk)
            assert int(dut.w_ready.value) and not int(dut.d_valid.value)
            assert not int(dut.err.value), "a second refusal of the layer before"
            assert int(dut.idle.value) == int(len(words) == 12)
            given = int(dut.w_valid.value)
            assert int(dut.collected.value) == int(given and len(words) == 1)
            if given:
                words.pop(0)
        code = case.code(self.sizes)
        # a word that waits must not be taken; after a refusal it would be
        dut.w_valid.value, dut.w_data.value = int(not code), random.getrandbits(64)
        for _ in range(LATENCY):
            dut.d_ready.value, dut.drop.value = 0, random.getrandbits(1)  # collected, so it stays
            await RisingEdge(dut.clk)
            if int(dut.err.value):
                dut.drop.value = 0
                self.place = None if case.side["first"] else self.place
                assert code, f"refused with {int(dut.err_code.value)}: {case.arg}"
                assert int(dut.err_code.value) == code, f"{case.arg}"
                return code
            if int(dut.d_valid.value):
                break
        else:
            raise AssertionError("neither a descriptor nor a refusal")
        assert not code, f"accepted, code {code} expected: {case.arg}"
        if case.side["first"]:
            src = case.arg.image_src_addr
            self.place = src, src + case.arg.in_layout.rows
        want = case.fields(self.sizes, self.place)
        await ClockCycles(dut.clk, wait)
        dut.drop.value = 0
        got = unpack(int(dut.desc.value))
        if self.place is None:
            del got["touch"]
        if case.arg.pool_task:
            got = {name: got[name] for name in got if name in OF_TASKS}
        wrong = {n: (got[n], want[n]) for n in got if got[n] != want[n]}
        assert not wrong, f"field: (got, expected) {wrong} of {case.arg} {case.side}"
        assert int(dut.d_valid.value) and not int(dut.idle.value) and not int(dut.w_ready.value)
        dut.d_ready.value, dut.w_valid.value = 1, 0
        await RisingEdge(dut.clk)
        dut.d_ready.value = 0
        return 0
