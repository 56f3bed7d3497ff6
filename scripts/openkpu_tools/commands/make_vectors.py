# SPDX-License-Identifier: Apache-2.0
"""Write layer vectors: benchmark layers of known shapes, or random ones (layer/vectors.py format).

    openkpu vectors OUT --set targets     three 64 -> 64 layers at 64x64
    openkpu vectors OUT --set k210_rows   the eight rows of the published K210 table
    openkpu vectors OUT --set yolo20      the 16 layers of a 20-class yolo, 166 MMAC
    openkpu vectors OUT --set mobilenet075   the 27 of a MobileNet at 224x224
    openkpu vectors OUT --set elementwise two 64x56x56 maps, each operation
    openkpu vectors OUT --set pools       pools of networks: 3x3, 5x5, whole maps ...
    openkpu vectors OUT --set random --count 20 --seed 5
    openkpu vectors OUT --set random_elementwise --count 20 --seed 5
    openkpu vectors OUT --set random_product --count 20 --seed 5    32-bit sums
    openkpu vectors OUT --set random_offset --count 20 --seed 5     XOR 0x80
    openkpu vectors OUT --set product     4x36x16, 64x64x64 and 512x512x512
    openkpu vectors OUT --set random_pool --count 20 --seed 5

One .npz per layer in folder OUT, ready for VECTORS=OUT.  Outputs are the golden model's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import map_layer, random_pool
from openkpu.generators.generate_products import random_offset, random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.generators.shapes import SETS, benchmark
from openkpu.layer.elementwise import OPERATIONS
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import AVERAGE, AVERAGE_INSIDE, MAXIMUM, MINIMUM
from openkpu.layer.vectors import VectorLayer, save_file
from openkpu.products.matmul import map_of
from openkpu_tools import command, registry

MOST_STRIDE = 4  # of a pool: a smaller map leaves nothing

ELEMENTWISE = 64, 56, 56  # the shape of a residual
PRODUCTS = (4, 36, 16), (64, 64, 64), (512, 512, 512)  # rows of A, rows of B, columns of B
# name, (C, H, W), kind, kernel (None: the whole map), stride, padding on all sides
POOLS = [
    ("max3x3_s2_64_112x112", (64, 112, 112), MAXIMUM, (3, 3), (2, 2), 1),
    ("max5x5_s1_64_20x20", (64, 20, 20), MAXIMUM, (5, 5), (1, 1), 2),
    ("max2x2_s2_32_64x64", (32, 64, 64), MAXIMUM, (2, 2), (2, 2), 0),
    ("min3x3_s1_16_64x64", (16, 64, 64), MINIMUM, (3, 3), (1, 1), 1),
    ("average2x2_s1_16_64x64", (16, 64, 64), AVERAGE, (2, 2), (1, 1), 0),
    ("average3x3_s1_64_28x28", (64, 28, 28), AVERAGE_INSIDE, (3, 3), (1, 1), 1),
    ("average4x4_s4_32_64x64", (32, 64, 64), AVERAGE, (4, 4), (4, 4), 0),
    ("average_1024_7x7", (1024, 7, 7), AVERAGE, None, (1, 1), 0),
]
RANDOM = {
    "random": random_layer,
    "random_elementwise": random_elementwise,
    "random_product": random_product,
    "random_offset": random_offset,
    "random_pool": random_pool,
    "random_fp16": random_fp16,
}


def layers(options: argparse.Namespace) -> Iterator[VectorLayer]:
    """What was asked for, one after the other."""
    if options.set in RANDOM:
        limits = Limits(channels=options.channels, size=options.size)
        for i in range(options.count):
            seed = options.seed + i
            yield RANDOM[options.set](
                np.random.default_rng(seed), limits=limits, case=f"{options.set}_{seed}"
            )
    elif options.set == "elementwise":
        c, h, w = ELEMENTWISE
        for op, name in enumerate(OPERATIONS):
            rng, case = np.random.default_rng(options.seed), f"{name}_{c}_{w}x{h}"
            kind = {"one": False, "pool": 0, "eight_bit": True, "plain": True}
            yield random_elementwise(rng, c=c, h=h, w=w, op=op, case=case, **kind)
    elif options.set == "product":
        for m, k, n in PRODUCTS:
            shape = map_of(m, k, n)
            assert shape is not None, "a layer holds each of PRODUCTS"
            h, w = shape
            rng, case = np.random.default_rng(options.seed), f"product_{m}x{k}x{n}"
            at: dict[str, Any] = {"src": 0, "dst": Layout(k, h, w).rows}
            yield random_product(rng, c=k, h=h, w=w, o=m, kernel=1, exact=True, case=case, **at)
    elif options.set == "product_fp16":
        for m, k, n in PRODUCTS:
            rng, case = np.random.default_rng(options.seed), f"product_fp16_{m}x{k}x{n}"
            yield random_fp16(rng, m=m, k=k, n=n, wide=True, case=case)
    elif options.set == "pools":
        for name, shape, kind, kernel, stride, pad in POOLS:
            arg = pool_layer(shape, kind, kernel, stride, (pad,) * 4)
            x = np.random.default_rng(options.seed).integers(0, 256, shape, dtype=np.uint8)
            yield map_layer(arg, x, name)
    else:
        for shape in SETS[options.set]:
            yield benchmark(shape, options.seed)


def check_fits(options: argparse.Namespace) -> None:
    """UsageError when the largest random layer would find no room in the AI RAM."""
    c, size = options.channels, options.size
    maps = {"random_elementwise": 3, "random_product": 5}.get(options.set, 2)
    rows = maps * Layout(c, size, size).rows
    if rows > AI_RAM_ROWS:
        raise command.UsageError(
            f"{command.option('channels', c)} with {command.option('size', size)}:"
            f" {maps} maps of {c}x{size}x{size} need {rows} rows"
            f" of the AI RAM, which has {AI_RAM_ROWS}"
        )


def main(argv: list[str] | None = None) -> int:
    options = registry.parse_command("vectors", argv)
    for name, usual in (("count", 10), ("channels", 24), ("size", 40)):
        if getattr(options, name) is None:
            setattr(options, name, usual)
        elif options.set not in RANDOM:
            raise command.UsageError(
                f"{command.option(name)} is of random layers,"
                f" expected {command.option('set')} {', '.join(RANDOM)}"
            )
    if options.set in RANDOM:
        check_fits(options)
    options.out.mkdir(parents=True, exist_ok=True)
    for layer in layers(options):
        save_file(options.out / f"{layer.case}.npz", [layer])
        shape = f"{layer.arg.in_shape} -> {layer.arg.out_shape}"
        print(f"{options.out / layer.case}.npz  {shape}", flush=True)
    return 0
