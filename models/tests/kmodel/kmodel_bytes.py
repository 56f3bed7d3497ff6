# SPDX-License-Identifier: Apache-2.0
"""v3 and v4 files put together word by word from the structures that the vendor published.

Not the project's own writer (openkpu.kmodel.build): what these files say was taken from kpu.h of
kendryte-standalone-sdk, and from model.h, runtime_op.def and the *_ops_body.h of nncase 0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

HIGHEST = float(np.finfo(np.float32).max)
FREE = (-HIGHEST, HIGHEST)  # value_range<float>::full()
CONST, MAIN, KPU = 0, 1, 2  # memory_type_t
F32, U8 = 0, 1  # datatype_t


def words(*values: float | bytes) -> bytes:
    """Whole numbers as 32-bit integers, others as floats, bytes as they are."""
    parts = []
    for value in values:
        if isinstance(value, bytes):
            parts.append(value)
        elif isinstance(value, float):
            parts.append(struct.pack("<f", value))
        else:
            parts.append(struct.pack("<I", value & 0xFFFFFFFF))
    return b"".join(parts)


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def aligned(body: bytes) -> bytes:
    return body + bytes(-len(body) % 8)


def file4(
    nodes: Sequence[tuple[int, bytes]],
    inputs: Sequence[tuple[bytes, tuple[int, ...]]],
    outputs: Sequence[bytes],
    main: int,
    constants: bytes = b"",
    target: int = 1,
) -> bytes:
    """model_header, input ranges, input shapes, output ranges, constants, node headers, bodies."""
    bodies = [aligned(body) for _, body in nodes]
    counts = len(constants), main, len(nodes), len(inputs), len(outputs), 0
    head = words(0x4B4D444C, 4, 0, target, *counts)
    head += b"".join(r for r, _ in inputs) + b"".join(words(*s) for _, s in inputs)
    head += b"".join(outputs) + constants
    for (opcode, _), body in zip(nodes, bodies, strict=True):
        head += words(opcode, len(body))
    return head + b"".join(bodies)


def file3(
    layers: Sequence[tuple[int, bytes]],
    outputs: Sequence[tuple[int, int]],
    main: int,
    count: int,
) -> bytes:
    """kpu_kmodel_header_t, outputs, layer headers, bodies.

    The first layer is a fully connected one that leaves ``count`` floats at 0 as they are: the
    driver starts a model with that or with a convolution.
    """
    one = np.eye(count, dtype="<f4").tobytes() + bytes(4 * count)
    bodies = [words(1, 0, 0, count, count, 0) + one, *(aligned(body) for _, body in layers)]
    kinds = [18, *(kind for kind, _ in layers)]
    head = words(3, 1, 0, len(kinds), 0, main, len(outputs))
    head += b"".join(words(*output) for output in outputs)
    for kind, body in zip(kinds, bodies, strict=True):
        head += words(kind, len(body))
    return head + b"".join(bodies)


def doubling_layer(src: int, dst: int, bn: int = 0, act: int = 0, weights: int = 0) -> bytes:
    """kpu_layer_argument_t of a 1x1 layer on one 4 x 4 map; the last three are the addresses."""
    row = 4  # 64-byte rows that a map of four lines takes
    fields = [
        0,  # interrupt_enabe
        src | dst << 32,  # image_addr
        0,  # image_channel_num: 1 in, 1 out, 1 a load
        3 | 3 << 10 | 3 << 32 | 3 << 42,  # image_size
        1 << 10 | 15 << 16 | bn << 32,  # kernel_pool_type_cfg: load_para, dma_burst_size
        1 | 1 << 15 | weights << 32,  # kernel_load_cfg: load_coor, 1 load of 1 byte
        0,  # kernel_offset
        row | 1 << 16 | 4 << 28 | 1 << 31 | act << 32,  # kernel_calc_type_cfg
        row | 1 << 16 | 4 << 20,  # write_back_cfg
        0,  # conv_value
        0,  # conv_value2
        15 << 16 | 15 << 32,  # dma_parameter
    ]
    return struct.pack("<12Q", *fields)


DOUBLING_BN = struct.pack("<Q", 1 | 0 << 24 | 0 << 56)  # mul 1, add 0, shift 0
# entry 0: nothing; entry 1 from 0 on: slope 1, plus 3; the others are out of reach
DOUBLING_ACT = struct.pack(
    "<16Q16B",
    0x800000000 << 24,
    0 << 24 | 1 << 8,
    *[0x7FFFFFFFF << 24] * 14,
    *[0, 3, *[0] * 14],
)
DOUBLING_WEIGHTS = bytes([2])
