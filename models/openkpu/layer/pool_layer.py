# SPDX-License-Identifier: Apache-2.0
"""The layer argument of a pooling task of given windows (docs/kpu.md 1.11)."""

from __future__ import annotations

from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.pool_tasks import PoolWindow

SIDES = ("top", "left", "bottom", "right")


def pool_layer(
    shape: tuple[int, int, int],
    kind: int,
    kernel: tuple[int, int] | None = None,
    stride: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    *,
    src: int = 0,
    dst: int | None = None,
    ram_rows: int = AI_RAM_ROWS,
    **fields: int,
) -> LayerArg:
    """The argument of a pooling task on a map of ``shape`` (C, H, W).

    ``kernel`` (lines, columns), None for the whole map; ``stride`` as it; ``pads`` top, left,
    bottom, right; ``src``/``dst`` in rows, ``dst`` by default as high as it fits.  Raises
    LayerError for a task that the device would refuse.
    """
    c, h, w = shape
    oh, ow = PoolWindow(*(kernel or (h, w)), *stride, *pads).out_size(h, w)
    if min(oh, ow) < 1:
        raise LayerError("BAD_SIZE", f"a window of {kernel} is larger than the padded {h} x {w}")
    source, result = Layout(c, h, w, base=src), Layout(c, oh, ow)
    arg = LayerArg(
        **dict(zip(("i_ch_num", "i_col_high", "i_row_wid"), shape, strict=True)),
        **dict(zip(("o_ch_num", "o_col_high", "o_row_wid"), (c, oh, ow), strict=True)),
        pool_task=kind,
        pool_all=int(kernel is None),
        **dict(zip(("pool_kh", "pool_kw"), kernel or (1, 1), strict=True)),
        **dict(zip(("pool_sy", "pool_sx"), stride, strict=True)),
        **dict(zip((f"pool_{side}" for side in SIDES), pads, strict=True)),
        image_src_addr=src,
        image_dst_addr=max(0, ram_rows - result.rows) if dst is None else dst,
        row_switch_addr=source.row_len,
        channel_switch_addr=source.channel_rows,
        coef_group=source.groups,
        wb_row_switch_addr=result.row_len,
        wb_channel_switch_addr=result.channel_rows,
        wb_group=result.groups,
        channel_byte_num=min(oh * ow, 1 << 16),  # the field holds no more
        dma_total_byte=c * oh * ow,
    ).replace(**fields)
    arg.validate(ram_rows=ram_rows)
    return arg
