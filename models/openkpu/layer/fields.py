# SPDX-License-Identifier: Apache-2.0
"""The values that a layer argument holds (docs/kpu.md section 2), and what follows from them.

Fields carry the names of the vendor's structures and hold *true* values: where a word stores
"minus one", the attribute holds the number itself (``i_ch_num`` is the number of channels).
Bits that the KPU leaves reserved extend it (docs/kpu.md 1.8): ``signed_in``, ``signed_out``,
``fc``, ``elementwise`` and ``pool_task`` with what belongs to them, ``in_xor``, ``w_xor``,
``out32`` of products, ``fp16`` and ``fp32`` of float16 ones, ``dilation``, ``load_map`` and
``store_map`` with their addresses, ``kept_weights``, ``in_strided`` and ``out_strided``. Words,
construction and rules are in argument.py.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from openkpu.layer import regmap
from openkpu.layer.layout import Layout

# Error codes of the device (AI_ERR_CODE) that an argument can raise: those before the bus errors.
_BUS_ERROR = regmap.ERROR_CODES["BUS_ERROR"]
ERROR_CODES = {n: code for n, code in regmap.ERROR_CODES.items() if 0 < code < _BUS_ERROR}
FIELDS = regmap.LAYER_FIELDS


class LayerError(ValueError):
    """An illegal layer argument; ``code`` is the name of the device's error code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.number = ERROR_CODES[code]


def whole_number(name: str, value: Any) -> int:
    """The value of a field; LayerError for what is no whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise LayerError("BAD_SIZE", f"{name} = {value!r}, expected a whole number") from None


@dataclasses.dataclass(frozen=True)
class LayerFields:
    """The values of a layer argument, and what follows from them.

    Defaults are what every published layer holds (docs/kpu.md 1.7).
    """

    i_ch_num: int = 1
    i_col_high: int = 1
    i_row_wid: int = 1
    o_ch_num: int = 1
    o_col_high: int = 1
    o_row_wid: int = 1
    kernel_type: int = 0
    pool_type: int = 0
    depth_wise_layer: int = 0
    signed_in: int = 0
    signed_out: int = 0
    fc: int = 0
    elementwise: int = 0
    ew_op: int = 0
    ew_one: int = 0
    in_xor: int = 0
    w_xor: int = 0
    out32: int = 0
    fp16: int = 0
    fp32: int = 0
    dilation: int = 1
    load_map: int = 0
    store_map: int = 0
    kept_weights: int = 0
    in_strided: int = 0
    out_strided: int = 0
    map_load_addr: int = 0
    map_store_addr: int = 0
    image_src2_addr: int = 0
    pool_task: int = 0
    pool_all: int = 0
    pool_kh: int = 1
    pool_kw: int = 1
    pool_sy: int = 1
    pool_sx: int = 1
    pool_top: int = 0
    pool_left: int = 0
    pool_bottom: int = 0
    pool_right: int = 0
    pad_value: int = 0
    arg_x: int = 0
    shr_x: int = 0
    arg_w: int = 0
    shr_w: int = 0
    arg_add: int = 0
    image_src_addr: int = 0
    image_dst_addr: int = 0
    para_start_addr: int = 0
    bwsx_base_addr: int = 0
    active_addr: int = 0
    o_ch_num_coef: int = 1
    load_time: int = 1
    para_size: int = 0
    row_switch_addr: int = 0
    channel_switch_addr: int = 0
    coef_group: int = 0
    wb_row_switch_addr: int = 0
    wb_channel_switch_addr: int = 0
    wb_group: int = 0
    send_data_out: int = 0
    channel_byte_num: int = 1
    dma_total_byte: int = 1
    int_en: int = 0
    load_coor: int = 1
    load_para: int = 1
    load_act: int = 1
    dma_burst_size: int = 15
    ram_flag: int = 0
    full_add: int = 0
    pad_type: int = 0
    first_stride: int = 0
    bypass_conv: int = 0
    coef_column_offset: int = 0
    coef_row_offset: int = 0
    coef_size: int = 0

    def __post_init__(self) -> None:
        """LayerError for a value that is no whole number."""
        for name, value in vars(self).items():
            whole_number(name, value)

    @property
    def kernel(self) -> int:
        """K: 3 or 1 (reserved kernel types are caught by ``validate``)."""
        return 3 if self.kernel_type == 1 else 1

    @property
    def edge(self) -> int:
        """P: pixels of padding on each side of the map."""
        return self.dilation * (self.kernel // 2)

    @property
    def depthwise(self) -> bool:
        return bool(self.depth_wise_layer)

    @property
    def in_shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the input map."""
        return self.i_ch_num, self.i_col_high, self.i_row_wid

    @property
    def out_shape(self) -> tuple[int, int, int]:
        """(O, oh, ow) of the output map, after pooling; with out32 (4 * O, oh, ow)."""
        planes = 4 if self.out32 else 1
        return self.o_ch_num * planes, self.o_col_high, self.o_row_wid

    @property
    def plain_1x1(self) -> bool:
        """Is it a 1x1 convolution of all input channels, which may have more than 1024 of them?"""
        other = self.depthwise or self.fc or self.pool_task
        return self.kernel_type == 0 and not other

    @property
    def two_maps(self) -> bool:
        """Does the layer read a second map?"""
        return bool(self.elementwise and not self.ew_one)

    @property
    def conv_shape(self) -> tuple[int, int, int]:
        """(O, H, W) before pooling; (O, 1, 1) for a fully connected layer."""
        return (self.o_ch_num, 1, 1) if self.fc else (self.o_ch_num, *self.in_shape[1:])

    @property
    def taps(self) -> int:
        """Weights of one output channel: K*K*C, depthwise K*K, fully connected C*H*W; of a pooling
        task none."""
        if self.pool_task:
            return 0
        if self.fc:
            return self.i_ch_num * self.i_col_high * self.i_row_wid
        return self.kernel**2 * (1 if self.depthwise else self.i_ch_num)

    @property
    def weight_count(self) -> int:
        """Weights of the layer."""
        return self.taps * self.o_ch_num

    def weight_size(self, eight_bit: bool) -> int:
        """Bytes of a weight: 1 or 2, by eight_bit_mode; of a product of float16 2."""
        return 1 if eight_bit and not self.fp16 else 2

    @property
    def table_words(self) -> tuple[int, int]:
        """Words of the batch-norm and the activation table: O and 18; none of a pooling task, or
        of a product of float16."""
        return (0, 0) if self.pool_task or self.fp16 else (self.o_ch_num, 18)

    @property
    def add_count(self) -> int:
        """The factor of ``arg_add``: C, or 1 for depthwise and fully connected layers."""
        return 1 if self.depthwise or self.fc else self.i_ch_num

    @property
    def loads(self) -> int:
        """Weight loads."""
        return self.load_time

    @property
    def in_layout(self) -> Layout:
        """Layout of the input map in AI RAM, by the widths (docs/kpu.md 2.2)."""
        return Layout(*self.in_shape, base=self.image_src_addr, stride=self.in_stride)

    @property
    def in_layouts(self) -> list[Layout]:
        """Layouts of the input maps: one, or the two of an element-wise layer."""
        first = self.in_layout
        second = [dataclasses.replace(first, base=self.image_src2_addr)] if self.two_maps else []
        return [first, *second]

    @property
    def out_layout(self) -> Layout:
        """Layout of the output map in AI RAM."""
        return Layout(*self.out_shape, base=self.image_dst_addr, stride=self.out_stride)

    @property
    def in_stride(self) -> int:
        """Rows from a channel group of the input to the next; 0: they follow each other."""
        return self.channel_switch_addr if self.in_strided else 0

    @property
    def out_stride(self) -> int:
        """The same of the output."""
        return self.wb_channel_switch_addr if self.out_strided else 0

    @property
    def maps_meet(self) -> bool:
        """Has the output map rows in common with an input map?"""
        return any(self._meets(source) for source in self.in_layouts)

    def _meets(self, source: Layout) -> bool:
        result = self.out_layout
        return source.base < result.base + result.rows and result.base < source.base + source.rows

    @property
    def in_order(self) -> bool:
        """Is every row that the output map overwrites read before, and never again?

        So it is in a depthwise layer without a pool or dilation whose output begins at the input
        that it meets or before it, and whose channel groups are no farther apart.
        """
        rows_once = self.depthwise and self.pool_type == 0 and self.dilation == 1
        rows_once = rows_once and self.out_layout.channel_rows <= self.in_layout.channel_rows
        met = [source for source in self.in_layouts if self._meets(source)]
        return rows_once and all(self.image_dst_addr <= source.base for source in met)
