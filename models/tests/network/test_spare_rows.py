# SPDX-License-Identifier: Apache-2.0
"""Rows of the AI RAM for weights that wait: which ones, and what they save (docs/registers.md,
AI_SPARE_ROWS)."""

import dataclasses

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.generators.generate import Limits, random_network
from openkpu.generators.shapes import benchmark
from openkpu.kmodel import loads_kmodel
from openkpu.kmodel.program import KpuLayer, Upload, layer_arguments, moved_parts
from openkpu.layer.argument import LayerArg
from openkpu.layer.conv import needed_macs
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network import kept
from openkpu.network.network import Network
from openkpu.prediction.cycles import predict_layers
from openkpu.prediction.spare import rows_of_network, rows_of_programs

K210 = configs.load_config("k210")
MAPS = LayerArg.make(1, 4, 64, 1, src=10, dst=20)  # rows 10 to 13, and 20 to 23
MOST = 32767  # rows of the register: 15 bits, as the first row


@pytest.mark.parametrize(
    ("ram_rows", "stays", "parts"),
    [
        (100, [], [(0, 10), (14, 6), (24, 76)]),
        (24, [], [(0, 10), (14, 6)]),
        (100, [(40, 7)], [(0, 10), (14, 6), (24, 16), (47, 53)]),
        (100, [(90, 10), (24, 20)], [(0, 10), (14, 6), (44, 46)]),  # at both ends, in any order
        (100, [(40, 10), (50, 10)], [(0, 10), (14, 6), (24, 16), (60, 40)]),  # side by side
        (100, [(40, 30), (45, 2)], [(0, 10), (14, 6), (24, 16), (70, 30)]),  # one in the other
        (100, [(0, 10), (14, 6), (24, 76)], []),
        (100, [(8, 100)], [(0, 8)]),  # over maps
    ],
)
def test_unused_parts(
    ram_rows: int, stays: list[tuple[int, int]], parts: list[tuple[int, int]]
) -> None:
    """Neither maps nor weights that stay lie there, and all the rest does."""
    assert kept.unused_parts([MAPS], ram_rows, stays) == parts


@pytest.mark.parametrize(
    ("layers", "ram_rows", "stays", "part"),
    [
        ([MAPS], 100, [], (24, 76)),
        ([MAPS], 100, [(40, 7)], (48, 52)),  # from row 47 on: a word of two rows begins at 48
        ([MAPS], 25, [], (0, 10)),
        ([MAPS], 100, [(0, 9), (14, 6), (24, 76)], (0, 0)),  # row 9 alone
        ([MAPS], 100, [(1, 9), (14, 6), (24, 76)], (0, 1)),
        ([MAPS], 100, [(0, 100)], (0, 0)),
        ([], 16, [], (0, 16)),
        ([], AI_RAM_ROWS, [], (0, MOST)),
        ([], AI_RAM_ROWS, [(0, 1)], (2, AI_RAM_ROWS - 2)),
    ],
)
def test_largest_part(
    layers: list[LayerArg], ram_rows: int, stays: list[tuple[int, int]], part: tuple[int, int]
) -> None:
    assert kept.spare_rows(layers, ram_rows, stays) == part


def test_register() -> None:
    """First row in bits 14:0, rows in bits 31:16."""
    assert kept.spare_register((0, 0)) == 0
    assert kept.spare_register((24, 76)) == 0x004C_0018
    assert kept.spare_register((0, MOST)) == 0x7FFF_0000
    assert kept.spare_register((MOST, 1)) == 0x0001_7FFF


def test_networks() -> None:
    """No row of a map or of weights that stay, and no larger part from an even row on."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        network, _ = random_network(rng, layers=4, limits=Limits(channels=30))
        rows = int(rng.integers(600, 3000))
        network.place(rows)
        network.kept = kept.scatter(rng, network, rows, 0.7)
        used = np.zeros(rows + 1, dtype=bool)
        used[rows] = True
        for arg in network.layers:
            for m in (*arg.in_layouts, arg.out_layout):
                used[m.base : m.base + m.rows] = True
        for number, row in network.kept.items():
            used[row : row + kept.kept_rows(network, number)] = True
        most = max(int(np.argmax(used[at:])) for at in range(0, rows, 2))
        first, count = network.spare_rows(rows)
        assert count == most and first % 2 == 0 and not used[first : first + count].any()


@pytest.mark.parametrize("name", ["v1", "v3"])
def test_programs(name: str) -> None:
    """Every layer of a model, one after the other; maps of the CPU are left alone as well."""
    program = loads_kmodel(CONTAINERS[name])
    layers = [op for op in program.operations if isinstance(op, KpuLayer)]
    assert layer_arguments([program, program]) == 2 * [op.arg for op in layers]
    twice = dataclasses.replace(layers[0], batches=3)
    rows = layers[0].arg.in_layout.rows
    batches = layer_arguments([dataclasses.replace(program, operations=[twice])])
    first = layers[0].arg.image_src_addr
    assert [arg.image_src_addr for arg in batches] == [first, first + rows, first + 2 * rows]
    (upload, *_) = [op for op in program.operations if isinstance(op, Upload)]
    far = dataclasses.replace(upload, base=20000)
    parts = moved_parts([dataclasses.replace(program, operations=[far])])
    assert parts == [(20000, upload.src.shape[0] * upload.layout.rows)]
    assert kept.spare_rows([], AI_RAM_ROWS, parts) == (0, 20000)


def test_what_waiting_saves() -> None:
    """Wide layers leave the bus idle; then narrow ones have more weights than the buffer holds."""
    wide = LayerArg.make(16, 60, 128, 16, kernel=3)
    narrow = [LayerArg.make(128, 4, 4, 128, kernel=3) for _ in range(3)]
    layers = [
        arg.replace(para_start_addr=1 << 20, bwsx_base_addr=0, active_addr=0x8000)
        for arg in (wide, *narrow)
    ]
    size = sum(arg.weight_count for arg in layers)
    rows = ceil_div(size, 64)

    def total(config: configs.Config, spare: int) -> int:
        return sum(layer.cycles for layer in predict_layers(config, layers, spare=spare).layers)

    none, some, all_rows = (total(K210, spare) for spare in (0, rows // 16, 2 * rows))
    assert all_rows < some < none
    beyond = (size - 9 * K210.n_z * K210.wbuf_rows) / K210.bus_bytes
    assert none - all_rows <= beyond, "saves more than the bus needs for what did not fit"
    without = dataclasses.replace(K210, weight_ahead=0)
    assert total(without, 2 * rows) == total(without, 0) == none
    few = dataclasses.replace(K210, look_ahead=4)
    assert total(few, 2 * rows) <= total(few, 0)


@pytest.mark.parametrize(("size", "pays"), [(4, True), (8, True), (9, False), (20, False)])
def test_where_waiting_pays(size: int, pays: bool) -> None:
    """256 to 256 channels, 1x1: 64 KiB of weights are 8,192 cycles of a bus of 64 bits, and a pixel
    is 65,536 multiplications, 114 cycles of 576: 64 pixels are 7,282 cycles, 81 are 9,216."""
    shape = ("wide", 256, size, size, 256, 1, False, 0, True)
    network = Network(eight_bit=True)
    layer = benchmark(shape)
    network.add(layer.arg, layer.weights, layer.bn, layer.act)
    network.place()
    free = network.spare_rows(K210.ai_ram_rows)
    assert free[1] > 20000
    assert rows_of_network(K210, network) == (free if pays else (0, 0))
    assert rows_of_network(dataclasses.replace(K210, weight_ahead=0), network) == (0, 0)
    sixteen = dataclasses.replace(network, eight_bit=False)
    assert rows_of_network(K210, sixteen) == (free if size < 20 else (0, 0))


def test_where_waiting_pays_for_programs() -> None:
    """A batch reads its weights again for every map; rows are what no program's map uses."""
    program = loads_kmodel(CONTAINERS["v3"])
    layers = [op for op in program.operations if isinstance(op, KpuLayer)]
    for batches in (1, 4):
        twice = [
            dataclasses.replace(op, batches=batches) if op is layers[0] else op
            for op in program.operations
        ]
        changed = dataclasses.replace(program, operations=twice)
        found = rows_of_programs(K210, [changed])
        free = kept.spare_rows(layer_arguments([changed]), AI_RAM_ROWS, moved_parts([changed]))
        bus = sum(
            op.batches * (op.arg.weight_count + 8 * op.arg.out_shape[0] + 128)
            for op in changed.operations
            if isinstance(op, KpuLayer)
        )
        macs = sum(map(needed_macs, layer_arguments([changed])))
        assert found == (free if bus / 8 > macs / 576 + 2 else (0, 0))
