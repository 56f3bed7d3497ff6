# SPDX-License-Identifier: Apache-2.0
"""The KPU layer argument: 12 words of 64 bits <-> fields (docs/kpu.md section 2), and its rules.

The fields and the values derived from them are in fields.py.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import POOL_STRIDE, pooled_size
from openkpu.layer import fp16_tasks, pool_tasks
from openkpu.layer.fields import ERROR_CODES, FIELDS, LayerError, LayerFields, whole_number
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout

WORDS = 12
LIST_BYTES = WORDS * 8  # a layer argument of a task list
# Bytes of weights that compilers put into one load: nncase (8 bit) and its 0.1 release (16 bit).
CHANNELS = 1024  # of a map
MANY_CHANNELS = 9216  # of the input of a 1x1 convolution: nine a row of a ring of 1024
LOAD_LIMIT = {True: 30 * 1024, False: 60 * 1024}
PARA_SIZE_MAX = (1 << 17) - 1  # bytes of a load that the field can name
MOST_LOADS = 64
MOST_DILATION = 8  # pixels between taps
MOST_DILATED_POOL = 4  # pool_type
MOST_APART = (1 << 14) - 1  # rows from a channel group to the next


@dataclasses.dataclass(frozen=True)
class LayerArg(LayerFields):
    """One layer argument; see ``make`` for building one and ``validate`` for its rules."""

    # ------------------------------------------------------------------ words
    @classmethod
    def decode(cls, words: Sequence[int] | npt.NDArray[np.uint64]) -> LayerArg:
        """Fields of 12 words; reserved bits are ignored, no rule is checked (see ``validate``)."""
        if len(words) != WORDS:
            raise ValueError(f"a layer argument has {WORDS} words, got {len(words)}")
        raw = [int(w) for w in words]
        values = {}
        for name, (word, low, width, signed, offset) in FIELDS.items():
            value = (raw[word] >> low) & ((1 << width) - 1)
            if signed and value >> (width - 1):
                value -= 1 << width
            values[name] = value + offset
        return cls(**values)

    def encode(self) -> npt.NDArray[np.uint64]:
        """The 12 words (u64); reserved bits 0.  A value that does not fit its field is an error."""
        raw = [0] * WORDS
        for name, (word, low, width, signed, offset) in FIELDS.items():
            value = int(getattr(self, name)) - offset
            least = -(1 << (width - 1)) if signed else 0
            most = (1 << (width - signed)) - 1
            if not least <= value <= most:
                code = _code_of(name)
                raise LayerError(
                    code, f"{name} = {value + offset} is outside {least + offset}..{most + offset}"
                )
            raw[word] |= (value & ((1 << width) - 1)) << low
        return np.array(raw, dtype=np.uint64)

    def replace(self, **changes: int) -> LayerArg:
        """A copy with some fields changed; LayerError for a name that is no field."""
        if unknown := sorted(set(changes) - set(FIELDS)):
            near = difflib.get_close_matches(unknown[0], FIELDS, 1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else "expected one of models/openkpu/layer/fields.py"
            )
            raise LayerError("BAD_FLAGS", f"no field {unknown[0]!r}, {hint}")
        return dataclasses.replace(self, **changes)

    # ------------------------------------------------------------ construction
    @classmethod
    def make(
        cls,
        c: int,
        h: int,
        w: int,
        o: int | None = None,
        *,
        kernel: int = 1,
        pool: int = 0,
        depthwise: bool | int = False,
        fc: bool | int = False,
        eight_bit: bool | int = True,
        per_load: int | None = None,
        src: int = 0,
        dst: int | None = None,
        ram_rows: int = AI_RAM_ROWS,
        **fields: int,
    ) -> LayerArg:
        """A legal argument with the fields that compilers derive filled in (docs/kpu.md section 2).

        ``o`` output channels (default: ``c``); ``kernel`` 1 or 3; ``per_load`` output channels per
        weight load (default: nncase's rule); ``src``/``dst`` in 64-byte rows, ``dst`` by default as
        high as it fits; ``fields`` set any other field (``arg_x``, ``signed_in`` ...).
        Raises LayerError for an impossible request.
        """
        o = c if o is None else o
        sizes = {"c": c, "h": h, "w": w, "o": o, "ram_rows": ram_rows}
        sizes |= {} if per_load is None else {"per_load": per_load}
        others = {"src": src, "dst": dst or 0, "kernel": kernel, "pool": pool}
        others |= {"depthwise": depthwise, "fc": fc}
        for name, value in (sizes | others).items():
            if whole_number(name, value) < (name in sizes):
                raise LayerError(
                    "BAD_SIZE", f"{name} = {value}, expected {int(name in sizes)} or more"
                )
        eight_bit = _width(eight_bit)
        if kernel not in (1, 3):
            raise LayerError("BAD_KERNEL", f"kernel {kernel} is neither 1 nor 3")
        if pool not in POOL_STRIDE:
            raise LayerError("BAD_POOL", f"pool type {pool} is not one of 0..9")
        oh, ow = (1, 1) if fc else pooled_size(pool, h, w)
        if fields.get("fp16"):
            oh = whole_number("o_col_high", fields.pop("o_col_high", oh))
            ow = whole_number("o_row_wid", fields.pop("o_row_wid", ow))
        if oh < 1 or ow < 1:
            raise LayerError("BAD_SIZE", f"pool {pool} leaves nothing of a {h} x {w} map")
        planes = 4 if fields.get("out32") else 1
        source, result = Layout(c, h, w, base=src), Layout(o * planes, oh, ow)
        arg = cls(
            i_ch_num=c,
            i_col_high=h,
            i_row_wid=w,
            o_ch_num=o,
            o_col_high=oh,
            o_row_wid=ow,
            kernel_type=kernel // 2,
            pool_type=pool,
            depth_wise_layer=int(depthwise),
            fc=int(fc),
            image_src_addr=src,
            image_dst_addr=max(0, ram_rows - result.rows) if dst is None else dst,
            row_switch_addr=source.row_len,
            channel_switch_addr=source.channel_rows,
            coef_group=source.groups,
            wb_row_switch_addr=result.row_len,
            wb_channel_switch_addr=result.channel_rows,
            wb_group=result.groups,
            channel_byte_num=min(
                oh * ow, 1 << 16
            ),  # the field holds no more; the device ignores it
            dma_total_byte=result.channels * oh * ow,
        )
        floats = bool(fields.get("fp16"))  # 16-bit weights, whatever the mode
        arg = arg.with_loads(eight_bit and not floats, per_load).replace(**fields)
        arg.validate(eight_bit=eight_bit, ram_rows=ram_rows)
        return arg

    def with_loads(self, eight_bit: bool, per_load: int | None = None) -> LayerArg:
        """The same layer with the load fields of nncase's rule (or ``per_load`` channels)."""
        eight_bit = eight_bit and not self.fp16
        one = self.taps * (1 if eight_bit else 2)
        if self.depthwise or self.pool_task:
            return self.replace(
                o_ch_num_coef=self.o_ch_num, load_time=1, para_size=one * self.o_ch_num
            )
        if per_load is None:
            per_load = LOAD_LIMIT[eight_bit] // one
            # more loads than the field counts: larger chunks, as far as para_size reaches
            per_load = max(per_load, min(ceil_div(self.o_ch_num, MOST_LOADS), PARA_SIZE_MAX // one))
        per_load = max(1, min(self.o_ch_num, per_load))
        loads = ceil_div(self.o_ch_num, per_load)
        return self.replace(o_ch_num_coef=per_load, load_time=loads, para_size=per_load * one)

    # ---------------------------------------------------------------- checking
    def validate(
        self,
        *,
        eight_bit: bool | int | None = None,
        ram_rows: int = AI_RAM_ROWS,
        weight_slots: int | None = None,
        strict: bool = True,
        bus_bytes: int = 1,
    ) -> None:
        """Raise one LayerError for an argument that the device refuses; None when legal.

        Order: flags, kernel, pool, sizes, addresses, weights.  An output map may share rows with
        the input map only where the result is the same as with separate rows.
        ``strict`` also checks the fields that the vendor's simulator ignores because they follow
        from others (layout and load fields).  ``eight_bit`` None means unknown: either width may
        fit.  ``weight_slots``: capacity of the weight buffer, if it is to be checked.
        ``bus_bytes``: bytes of a bus word; map_store_addr must be a multiple.
        """
        eight_bit = None if eight_bit is None else _width(eight_bit)
        if self.store_map and self.send_data_out:
            raise LayerError("BAD_FLAGS", "store_map and send_data_out exclude each other")
        if fault := self._stride_fault():
            raise LayerError("BAD_FLAGS", fault)
        if fault := self._dilation_fault():
            raise LayerError("BAD_FLAGS", fault)
        if self.kept_weights and self.pool_task:
            raise LayerError("BAD_FLAGS", "a pooling task has no weights that could be kept")
        if self.fp16 and (fault := fp16_tasks.fp16_fault(self)):
            raise LayerError(*fault)
        if self.pool_task and (fault := pool_tasks.pool_fault(self)):
            raise LayerError(*fault)
        if self.depthwise and self.fc:
            raise LayerError("BAD_FLAGS", "depthwise and fully connected exclude each other")
        if self.elementwise and not self.depthwise:
            raise LayerError("BAD_FLAGS", "an element-wise layer is a depthwise one")
        if self.out32 and (self.depthwise or self.fc):
            raise LayerError("BAD_FLAGS", "out32 requires a convolution of all input channels")
        if self.kernel_type > 1:
            raise LayerError("BAD_KERNEL", f"kernel_type {self.kernel_type} is reserved")
        if self.elementwise and not self.kernel_type:
            raise LayerError("BAD_KERNEL", "an element-wise layer has kernel_type 1")
        if self.fc and self.kernel_type:
            raise LayerError("BAD_KERNEL", "a fully connected layer has kernel_type 0")
        if self.pool_type not in POOL_STRIDE:
            raise LayerError("BAD_POOL", f"pool_type {self.pool_type} is reserved")
        if self.fc and self.pool_type:
            raise LayerError("BAD_POOL", "a fully connected layer has pool_type 0")
        if self.out32 and self.pool_type:
            raise LayerError("BAD_POOL", "32-bit sums are not pooled: out32 has pool_type 0")
        self._check_sizes(strict)
        self._check_strides()
        names = ("input", "second input") if self.two_maps else ("input",)
        maps = [*zip(names, self.in_layouts, strict=True), ("output", self.out_layout)]
        for name, layout in maps:
            if layout.base + layout.rows > ram_rows:
                raise LayerError(
                    "BAD_ADDR",
                    f"{name} map occupies rows {self._rows(layout)}, AI RAM has {ram_rows}",
                )
        if self.store_map and self.map_store_addr % bus_bytes:
            raise LayerError(
                "BAD_ADDR",
                f"map_store_addr {self.map_store_addr:#x} is no multiple of the bus word,"
                f" {bus_bytes} bytes",
            )
        if self.maps_meet and not self.in_order:
            raise LayerError(
                "BAD_ADDR",
                f"the output map occupies rows {self._rows(self.out_layout)}, "
                f"the input {' and '.join(self._rows(source) for source in self.in_layouts)}",
            )
        if self.w_xor and eight_bit is False:
            raise LayerError("BAD_WEIGHTS", "w_xor requires 8-bit weights")
        if strict and not self.pool_task:
            self._check_loads(eight_bit, weight_slots)
            end = self.weights_end(eight_bit is not False)
            if self.kept_weights and end > ram_rows * ROW_BYTES:
                raise LayerError(
                    "BAD_WEIGHTS", f"kept weights end at byte {end}, AI RAM has {ram_rows} rows"
                )
        self.encode()

    def weights_end(self, eight_bit: bool) -> int:
        """Address after the last byte of weights, according to the load fields."""
        before = self.load_time - 1
        last = (self.o_ch_num - before * self.o_ch_num_coef) * self.taps
        return self.para_start_addr + before * self.para_size + last * self.weight_size(eight_bit)

    def weight_rows(self, n_z: int) -> int:
        """Rows of the weight buffer (9 weights for each of ``n_z`` channels) that the layer needs
        at once: the rows of a group of n_z output channels; all for depthwise layers, none for
        fully connected ones."""
        if self.fc or self.pool_task:
            return 0
        if self.depthwise:
            return ceil_div(self.o_ch_num, n_z)
        return self.i_ch_num if self.kernel == 3 else ceil_div(self.i_ch_num, 9)

    def device_code(
        self,
        *,
        eight_bit: bool = True,
        ram_rows: int = AI_RAM_ROWS,
        weight_bits: int = 16,
        weight_rows: int | None = None,
        n_z: int = 1,
        pools: bool = True,
        sums: bool = True,
        fp16_lanes: int = 0,
        keeps: bool = True,
        dilation: int = MOST_DILATION,
        bus_bytes: int = 4,
        first: bool = False,
        last: bool = False,
    ) -> int:
        """AI_ERR_CODE with which the device refuses this argument; 0 when it runs it.

        The device derives the layout from the sizes, so it ignores layout fields as the vendor's
        simulator does; it checks that the loads cover all channels and that para_size covers a
        load.  ``weight_rows``: rows of its weight buffer, ``n_z`` banks wide; None: no limit.
        ``pools``: it has an engine for pooling tasks, ``sums``: sums of 32 bits, ``fp16_lanes``:
        lanes for products of float16, ``keeps``: a path for weights from the AI RAM.
        ``dilation``: the largest that it has.  ``first``, ``last``: place in a task list;
        registers address the maps that these two layers read and write.
        """
        moves_in, moves_out = self.load_map or self.in_strided, self.store_map or self.out_strided
        if (moves_in and first) or (moves_out and last):
            return ERROR_CODES["BAD_FLAGS"]
        if self.kept_weights and not keeps:
            return ERROR_CODES["BAD_FLAGS"]
        if (self.pool_task and not pools) or (self.fp16 and not fp16_lanes):
            return ERROR_CODES["BAD_FLAGS"]
        if (self.out32 and not sums) or self.dilation > dilation:
            return ERROR_CODES["BAD_FLAGS"]
        try:
            self.validate(strict=False, ram_rows=ram_rows, eight_bit=eight_bit, bus_bytes=bus_bytes)
        except LayerError as err:
            return err.number
        if self.pool_task:  # no weights: the load fields are not checked
            return 0
        per_load, before = self.o_ch_num_coef, (self.load_time - 1) * self.o_ch_num_coef
        size = self.weight_size(eight_bit)
        needed = per_load * self.taps * size
        fits = needed <= self.para_size and (size == 1 or weight_bits >= 16)
        if not fits or not before < self.o_ch_num <= before + per_load:
            return ERROR_CODES["BAD_WEIGHTS"]
        if self.kept_weights and self.weights_end(eight_bit) > ram_rows * ROW_BYTES:
            return ERROR_CODES["BAD_WEIGHTS"]
        if weight_rows is not None and self.weight_rows(n_z) > weight_rows:
            return ERROR_CODES["BAD_WEIGHTS"]
        return 0

    @property
    def loads_text(self) -> str:
        """What is said of loads that do not cover the channels."""
        return (
            f"{self.load_time} loads of {self.o_ch_num_coef} channels and {self.para_size} bytes"
            f" do not make {self.o_ch_num} channels"
        )

    @staticmethod
    def _rows(layout: Layout) -> str:
        return f"{layout.base}..{layout.base + layout.rows - 1}"

    def _dilation_fault(self) -> str | None:
        """A layer whose taps cannot lie apart (docs/kpu.md 1.16)."""
        if self.dilation == 1:
            return None
        if self.fc or self.elementwise or self.pool_task or self.fp16:
            return "dilation excludes fc, elementwise, pool_task and fp16"
        if self.kernel_type != 1:
            return f"dilation with kernel_type {self.kernel_type}, expected 1"
        if self.pool_type > MOST_DILATED_POOL:
            return f"dilation with pool_type {self.pool_type}, expected 0..{MOST_DILATED_POOL}"
        return None

    def _stride_fault(self) -> str | None:
        """A map with rows between its channel groups that the device cannot move or compute."""
        if (self.in_strided or self.out_strided) and (self.fc or self.out32 or self.fp16):
            return "in_strided and out_strided exclude fc, out32 and fp16"
        if self.in_strided and self.load_map:
            return "a map that is loaded has no rows between its channel groups (in_strided)"
        if self.out_strided and (self.store_map or self.send_data_out):
            return "a map that leaves has no rows between its channel groups (out_strided)"
        return None

    def _check_strides(self) -> None:
        """Channel groups that would overlap, or lie too far apart: BAD_ADDR."""
        for name, strided, layout in (
            ("channel_switch_addr", self.in_strided, self.in_layout),
            ("wb_channel_switch_addr", self.out_strided, self.out_layout),
        ):
            found = getattr(self, name)
            if strided and not layout.own_rows <= found <= MOST_APART:
                raise LayerError(
                    "BAD_ADDR",
                    f"{name} {found}, expected {layout.own_rows}..{MOST_APART} rows of a map"
                    " whose channel groups lie apart",
                )

    def _check_sizes(self, strict: bool) -> None:
        """Impossible sizes: each BAD_SIZE."""
        c, h, w = self.in_shape
        o, oh, ow = self.out_shape
        if min(c, h, w, o, oh, ow) < 1:
            raise LayerError("BAD_SIZE", f"zero size: {self.in_shape} -> {self.out_shape}")
        most = MANY_CHANNELS if self.plain_1x1 else CHANNELS
        if c > most:
            raise LayerError("BAD_SIZE", f"{c} input channels, this layer has at most {most}")
        if self.in_layout.row_len > 15:
            raise LayerError("BAD_SIZE", f"a line of {w} pixels needs more than 15 rows")
        if self.depthwise and c != o:
            raise LayerError("BAD_SIZE", f"depthwise needs as many outputs as inputs: {c} -> {o}")
        want = (1, 1) if self.fc else pooled_size(self.pool_type, h, w)
        if not (self.pool_task or self.fp16) and (oh, ow) != want:
            raise LayerError(
                "BAD_SIZE",
                f"output {oh} x {ow}, but pool {self.pool_type} of {h} x {w} gives "
                f"{want[0]} x {want[1]}",
            )
        if not strict:
            return
        rows = self.row_switch_addr, self.channel_switch_addr, self.coef_group
        wb_rows = self.wb_row_switch_addr, self.wb_channel_switch_addr, self.wb_group
        for name, have, layout in (("", rows, self.in_layout), ("wb_", wb_rows, self.out_layout)):
            want3 = layout.row_len, layout.channel_rows, layout.groups
            if have != want3:
                raise LayerError(
                    "BAD_SIZE",
                    f"{name}row/channel switch and group {have}, a {layout.width} wide, "
                    f"{layout.height} high map has {want3}",
                )

    def _check_loads(self, eight_bit: bool | None, weight_slots: int | None) -> None:
        """Load fields that contradict the sizes, or a load larger than the buffer: BAD_WEIGHTS."""
        o, per_load, loads = self.o_ch_num, self.o_ch_num_coef, self.load_time
        if not (loads - 1) * per_load < o <= loads * per_load:
            raise LayerError(
                "BAD_WEIGHTS", f"{loads} loads of {per_load} channels do not make {o} channels"
            )
        widths = {None: (1, 2), True: (1,), False: (2,)}[False if self.fp16 else eight_bit]
        if self.para_size not in [per_load * self.taps * n for n in widths]:
            raise LayerError(
                "BAD_WEIGHTS",
                f"para_size {self.para_size} is not {per_load} channels of {self.taps} weights",
            )
        if weight_slots is not None and per_load * self.taps > weight_slots:
            raise LayerError(
                "BAD_WEIGHTS",
                f"a load of {per_load * self.taps} weights, the buffer holds {weight_slots}",
            )


def _width(eight_bit: object) -> bool:
    """Whether weights have 8 bits; LayerError for a value other than True and False."""
    if isinstance(eight_bit, np.bool_):  # no whole number to numpy
        return bool(eight_bit)
    if (value := whole_number("eight_bit", eight_bit)) not in (0, 1):
        raise LayerError("BAD_WEIGHTS", f"eight_bit = {value}, expected 0 or 1")
    return bool(value)


def _code_of(field: str) -> str:
    """Error code for a value that does not fit into its field."""
    if field in ("kernel_type",):
        return "BAD_KERNEL"
    if field.startswith("pool_"):
        return "BAD_POOL"
    if field in ("para_size", "load_time", "o_ch_num_coef", "shr_w", "shr_x", "arg_w", "arg_x"):
        return "BAD_WEIGHTS"
    if field.endswith("_addr") and "switch" not in field:
        return "BAD_ADDR"
    word, _, width, *_ = FIELDS[field]
    return "BAD_FLAGS" if width == 1 or word == 6 else "BAD_SIZE"
