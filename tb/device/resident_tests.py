# SPDX-License-Identifier: Apache-2.0
"""Maps that stay in the AI RAM (docs/performance.md 8) on the whole device: a program without the
CPU, with an element-wise layer, a map read twice, and one between the lines of a larger map.

tb/device/test_driver.py runs this on both simulators.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import cocotb
import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.kmodel import (
    KpuLayer,
    KpuOutcome,
    ModelTensor,
    Program,
    Segment,
    View,
    keep_maps,
    walk,
)
from openkpu.kmodel.operations.moves import Pad
from openkpu.kmodel.operations.operations import QuantBinary
from openkpu.kmodel.program import RAM_BYTES, Operation, Upload
from openkpu.layer import airam
from openkpu.layer.layout import Layout
from openkpu.words import MAPS, WAYS
from openkpu_tb.device.device import Device
from openkpu_tb.device.driver import Driver
from tb.device.checked import checked

LIMIT = 200_000  # cycles of any single wait
SHAPE = (5, 5, 20)
PADDED = (5, 6, 20)
RESULT = (5, 3, 10)
SPACE = 1024  # bytes of main memory for each map


def layer(
    file: bytearray, seed: int, shape: tuple[int, int, int], src: int, dst: int, pool: int = 0
) -> KpuLayer:
    """A 1x1 layer whose tables are appended to ``file``."""
    c, h, w = shape
    made = random_layer(
        np.random.default_rng(seed),
        c=c,
        h=h,
        w=w,
        o=c,
        kernel=1,
        pool=pool,
        depthwise=False,
        fc=False,
        eight_bit=True,
        signed_in=False,
    )
    places = []
    for table in (made.weights, made.bn.astype("<u8"), made.act.astype("<u8")):
        file.extend(bytes(-len(file) % 64))
        places.append(len(file))
        file.extend(table.tobytes())
    names = ("para_start_addr", "bwsx_base_addr", "active_addr")
    fields = dict(zip(names, places, strict=True)) | {"signed_out": 0}
    arg = made.arg.replace(image_src_addr=src, image_dst_addr=dst, **fields)
    return KpuLayer(
        offset=0, arg=arg, eight_bit=True, weights=made.weights, bn=made.bn, act=made.act
    )


def program() -> tuple[Program, bytes]:
    """input -> two layers -> their sum, by the CPU -> two layers that have it uploaded; the second
    one's map is padded by the CPU for a pool. (Program without the CPU, file)."""
    file, rows = bytearray(), Layout(*PADDED).rows
    at = [n * rows for n in range(8)]
    a, b, total, plain = (View("main", n * SPACE, (1, *SHAPE)) for n in range(4))
    padded = View("main", 4 * SPACE, (1, *PADDED))
    results = [View("output0", n * 1024, (1, *shape)) for n, shape in enumerate((SHAPE, RESULT))]

    def leaves(op: KpuLayer, view: View) -> KpuLayer:
        return dataclasses.replace(op, main_out=view)

    params = {"a_param": (-10, 2, 0), "b_param": (-20, 1, 0), "out_param": (5, 1, 1)}
    given = View("input0", 0, (1, *SHAPE))
    operations: list[Operation] = [
        Upload(offset=1, src=given, base=at[0]),
        leaves(layer(file, 1, SHAPE, at[0], at[1]), a),
        leaves(layer(file, 2, SHAPE, at[0], at[1]), b),
        QuantBinary(offset=2, op="add", a=a, b=b, dst=total, **params),
        Upload(offset=3, src=total, base=at[1]),
        leaves(layer(file, 3, SHAPE, at[1], at[2]), results[0]),
        Upload(offset=4, src=total, base=at[3]),
        leaves(layer(file, 4, SHAPE, at[3], at[4]), plain),
        Pad(
            offset=5,
            **{"src": plain, "dst": padded, "value": 3.0},
            pads=((0, 0), (0, 0), (0, 1), (0, 0)),
        ),
        Upload(offset=6, src=padded, base=at[5]),
        leaves(layer(file, 5, PADDED, at[5], at[6], pool=5), results[1]),
    ]
    sizes = {"input0": math.prod(SHAPE), "output0": 2048, "main": 5 * SPACE, "kpu": RAM_BYTES}
    made = Program(
        file="made",
        version=4,
        eight_bit=True,
        sizes=sizes,
        inputs=[ModelTensor("input0", given)],
        outputs=[ModelTensor(f"output{n}", view) for n, view in enumerate(results)],
        operations=operations,
    ).check()
    kept = keep_maps(made, len(file), ram_rows=8 * rows)
    names = [op.title or op.name for op in kept.operations if isinstance(op, KpuLayer)]
    assert len(names) == len(kept.operations) - 1, [op.name for op in kept.operations]
    assert names.count("element-wise") == 1 and any(op.arg.out_strided for op in kept.kpu_layers)
    return kept, bytes(file) + kept.tail


@checked()
async def maps_that_stay(tb: Any) -> None:
    """Every way, with maps that the host or the device moves: each layer's map; no byte but those
    of the input is brought to the AI RAM."""
    kept, file = program()
    x = np.random.default_rng(cocotb.RANDOM_SEED & 0xFFFFFFFF).integers(
        0, 256, (1, *SHAPE), dtype=np.uint8
    )
    for maps in MAPS:
        for way in WAYS:
            device = Device(cocotb.top, cocotb.RANDOM_SEED)
            await device.reset()
            driver = Driver(device, file, maps=maps)
            await driver.load_file()
            walker, answer, count = walk(kept, x), None, 0
            brought = 0
            while True:
                try:
                    asked = walker.send(answer)
                except StopIteration:
                    break
                assert isinstance(asked, Segment)
                before = driver.moved + driver.moved_by_host
                found = await driver.run(way, asked, LIMIT)
                brought += driver.moved + driver.moved_by_host - before
                ram, golden = asked.ram.copy(), []
                for step in asked.steps:
                    y = step.golden(*step.maps(ram))
                    airam.write_rows(ram, step.arg.out_layout, y)
                    golden.append(y)
                for step, y in zip(asked.steps, golden, strict=True):
                    count += 1
                    layout = step.arg.out_layout
                    if not np.array_equal(airam.read_rows(ram, layout), y):
                        continue  # overwritten within the segment
                    seen, unknown = await device.read_map(layout)
                    assert not unknown.any() and np.array_equal(seen, y), (maps, way, step.name)
                    driver.learn(layout, y)
                for number, y in found.items():
                    assert np.array_equal(y, golden[number]), (maps, way, number)
                answer = [KpuOutcome(y) for y in golden]
            assert count == len(kept.kpu_layers)
            if way != "tasks":  # a list brings its first map by itself
                assert brought == sum(map(math.prod, (SHAPE, SHAPE, RESULT))), (maps, way, brought)
            device.check_rules()
