# SPDX-License-Identifier: Apache-2.0
"""Operator names by their number in the files."""

from __future__ import annotations

from typing import get_args

from openkpu.kmodel.operations.kernels import PadMode


def split_names(text: str, separator: str | None = None) -> tuple[str, ...]:
    """Names out of one string."""
    return tuple(text.split(separator))


REDUCE = split_names("mean min max sum")
BINARY_V4 = split_names("add sub mul div min max")
BINARY_V5 = split_names(
    "add sub mul div min max pow floor_div floor_mod bitwise_and bitwise_or bitwise_xor "
    "logical_and logical_or logical_xor"
)
UNARY_V4 = split_names("abs ceil cos exp floor log neg rsqrt sin square")
PAD_MODES: tuple[PadMode, ...] = get_args(PadMode)
RESIZE_MODES = split_names("bilinear nearest")
