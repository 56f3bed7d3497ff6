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
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import map_layer, random_pool
from openkpu.generators.generate_products import random_offset, random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.layer.elementwise import OPERATIONS
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import AVERAGE, AVERAGE_INSIDE, MAXIMUM, MINIMUM
from openkpu.layer.vectors import VectorLayer, save_file
from openkpu.products.matmul import map_of
from openkpu_tools import command, registry

MOST_STRIDE = 4  # of a pool: a smaller map leaves nothing

# (name, C, H, W, O, kernel, depthwise, pool, eight_bit)
Shape = tuple[str, int, int, int, int, int, bool, int, bool]

TARGETS: list[Shape] = [
    ("conv3x3_64_64_64x64", 64, 64, 64, 64, 3, False, 0, True),
    ("conv1x1_64_64_64x64", 64, 64, 64, 64, 1, False, 0, True),
    ("depthwise_64_64x64", 64, 64, 64, 64, 3, True, 0, True),
]
# width x height of bbs.sipeed.com/t/topic/691; 256x256 and 128x128 do not fit 2 MiB
K210_SIZES = ((4, 4), (16, 4), (16, 16), (32, 16), (32, 32), (64, 32), (64, 64), (128, 64))
K210_ROWS: list[Shape] = [
    (f"k210_{w}x{h}", 128, h, w, 128, 3, False, 0, False) for w, h in K210_SIZES
]


def chain(
    name: str, size: tuple[int, int, int], rows: Iterable[tuple[int, int, int]]
) -> list[Shape]:
    """Layers one behind the other, from a map of ``size`` (C, H, W); a row: (O, kernel, pool).

    3x3 layers behind the first are depthwise; pools 1 and 5 halve the map.
    """
    shapes, (c, h, w) = [], size
    for i, (o, kernel, pool) in enumerate(rows):
        shapes.append((f"{name}_{i:02d}", c, h, w, o, kernel, kernel == 3 and i > 0, pool, True))
        c = o
        if pool in (1, 5):
            h, w = h // 2, w // 2
    return shapes


def yolo20() -> list[Shape]:
    """A depthwise-separable 20-class yolo at 320x240."""
    rows = [(16, 3, 1), (16, 3, 0), (32, 1, 1), (32, 3, 0), (64, 1, 1), (64, 3, 0), (128, 1, 1)]
    rows += [(128, 3, 0), (256, 1, 1), (256, 3, 0), (512, 1, 9), (512, 3, 0), (1024, 1, 0)]
    rows += [(1024, 3, 0), (512, 1, 0), (125, 1, 0)]
    return chain("yolo20", (3, 240, 320), rows)


def mobilenet075() -> list[Shape]:
    """The 27 convolutions of a MobileNet of width 0.75 at 224x224.

    The KPU's convolutions have stride 1: as in published kmodels, a depthwise layer of stride 2
    computes every pixel, and the 1x1 layer behind it keeps every second one.
    """
    rows, wide = [(24, 3, 5)], 24
    pairs = [(48, 0), (96, 5), (96, 0), (192, 5), (192, 0), (384, 5), *[(384, 0)] * 5]
    for o, pool in [*pairs, (768, 5), (768, 0)]:
        rows += [(wide, 3, 0), (o, 1, pool)]
        wide = o
    return chain("mobilenet075", (3, 224, 224), rows)


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
SETS = {
    "targets": TARGETS,
    "k210_rows": K210_ROWS,
    "yolo20": yolo20(),
    "mobilenet075": mobilenet075(),
}


def benchmark(shape: Shape, seed: int = 1) -> VectorLayer:
    """A layer of that shape with the numbers of a compiled network."""
    name, c, h, w, o, kernel, depthwise, pool, eight_bit = shape
    return random_layer(
        np.random.default_rng(seed),
        c=c,
        h=h,
        w=w,
        o=o,
        kernel=kernel,
        depthwise=depthwise,
        pool=pool,
        eight_bit=eight_bit,
        fc=False,
        signed_in=False,
        signed_out=False,
        src=0,
        plain=True,
        case=name,
    )


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
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for layer in layers(options):
            save_file(options.out / f"{layer.case}.npz", [layer])
            shape = f"{layer.arg.in_shape} -> {layer.arg.out_shape}"
            print(f"{options.out / layer.case}.npz  {shape}", flush=True)
    except OSError as err:
        if isinstance(err, BrokenPipeError):
            raise
        return command.complain(f"{options.out}: {err.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
