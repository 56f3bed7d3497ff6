# SPDX-License-Identifier: Apache-2.0
"""KPU layers out of a file: argument words and the three tables, checked against each other."""

from __future__ import annotations

import numpy as np

from openkpu.arithmetic.params import ACT_WORDS
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import KpuLayer, View
from openkpu.kmodel.readers.binary import Blob
from openkpu.layer.argument import WORDS, LayerArg, LayerError

ARG_BYTES = WORDS * 8
ACT_BYTES = ACT_WORDS * 8


def read_arg(blob: Blob, offset: int) -> LayerArg:
    """The argument at ``offset``; KmodelError when no device could run it."""
    arg = LayerArg.decode(blob.array("<u8", offset, WORDS, "layer argument"))
    try:
        arg.validate(strict=False)
    except LayerError as err:
        raise blob.error(offset, f"layer argument: {err}") from None
    return arg


def table_bytes(arg: LayerArg, eight_bit: bool) -> tuple[int, int]:
    """Bytes of the (weights, batch-norm) tables."""
    return arg.weight_count * (1 if eight_bit else 2), arg.o_ch_num * 8


def make_layer(
    blob: Blob,
    offset: int,
    arg: LayerArg,
    *,
    weights: int,
    bn: int,
    act: int,
    eight_bit: bool,
    main_out: View | None = None,
    batches: int = 1,
    title: str = "",
) -> KpuLayer:
    """A layer whose tables are at these file offsets; ``offset`` is the operation's."""
    weight_bytes, _ = table_bytes(arg, eight_bit)
    layer = KpuLayer(
        offset=offset,
        arg=arg.replace(para_start_addr=weights, bwsx_base_addr=bn, active_addr=act),
        weights=blob.bytes(weights, weight_bytes, "weights"),
        bn=_words(blob, bn, arg.o_ch_num, "batch norm"),
        act=_words(blob, act, ACT_WORDS, "activation table"),
        eight_bit=eight_bit,
        main_out=main_out,
        batches=batches,
        title=title,
    )
    if main_out is not None and main_out.count != batches * np.prod(arg.out_shape):
        raise blob.error(
            offset,
            f"output of {main_out.count} bytes for {batches} map(s) {arg.out_shape}",
        )
    _check_batches(blob, layer)
    return layer


def _words(blob: Blob, offset: int, count: int, what: str) -> np.ndarray:
    return blob.array("<u8", offset, count, what).astype(np.uint64)


def _check_batches(blob: Blob, layer: KpuLayer) -> None:
    """Every batch must lie in the AI RAM."""
    if not 1 <= layer.batches <= 4096:
        raise blob.error(layer.offset, f"{layer.batches} batches, expected 1..4096")
    try:
        layer.argument(layer.batches - 1).validate(strict=False)
    except LayerError as err:
        raise blob.error(layer.offset, f"batch {layer.batches - 1}: {err}") from None


__all__ = ["ACT_BYTES", "ARG_BYTES", "KmodelError", "make_layer", "read_arg", "table_bytes"]
