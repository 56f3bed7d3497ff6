# SPDX-License-Identifier: Apache-2.0
"""The benchmark vectors, and the golden model's speed on a whole network of them."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from openkpu.generators.shapes import K210_ROWS, SETS, TARGETS, benchmark
from openkpu.layer.conv import needed_macs
from openkpu.layer.golden import run_layer
from openkpu.layer.vectors import load_cases
from openkpu_tools.commands.make_vectors import main


def test_random_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [str(out), "--set", "random", "--count", "3", "--size", "12", "--seed", "40"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.count("random_4") == 3
    layers = load_cases([out])
    assert [layer.case for layer in layers] == ["random_40", "random_41", "random_42"]
    for layer in layers:
        y = run_layer(
            layer.arg, layer.x, layer.weights, layer.bn, layer.act, eight_bit=layer.eight_bit
        ).y
        assert (y == layer.y).all()


def test_shapes_are_the_published_ones() -> None:
    assert [row[1:5] for row in TARGETS] == [(64, 64, 64, 64)] * 3
    assert len(K210_ROWS) == 8
    largest = benchmark(K210_ROWS[-1]).arg  # fills the AI RAM to the last byte
    assert (largest.in_shape, largest.loads) == ((128, 64, 128), 5)
    assert largest.in_layout.rows + largest.out_layout.rows == 32768
    small = benchmark(K210_ROWS[0])
    assert not small.eight_bit and len(np.unique(small.y)) > 100


def test_mobilenet_halves_maps_in_1x1_layers() -> None:
    """27 layers, 7x7 pixels at the end; pools follow depthwise layers, as in kmodels."""
    shapes = SETS["mobilenet075"]
    assert len(shapes) == 27 and shapes[-1][1:6] == (768, 7, 7, 768, 1)
    pooled = [number for number, shape in enumerate(shapes) if shape[7]]
    assert pooled == [0, 4, 8, 12, 24]
    assert [shapes[number - 1][6] for number in pooled[1:]] == [True] * 4
    for before, after in itertools.pairwise(shapes):
        assert after[1] == before[4] and after[2] * (2 if before[7] else 1) == before[2]


def test_whole_network_in_a_second_and_a_half() -> None:
    """The 20-class yolo without dropped lines; time of the processor, whatever else it does."""
    layers = [benchmark(shape) for shape in SETS["yolo20"]]
    assert sum(needed_macs(layer.arg) for layer in layers) / 1e6 == pytest.approx(165.2, abs=0.1)
    times = []
    for _ in range(3):
        start = time.thread_time()
        for layer in layers:
            run_layer(layer.arg, layer.x, layer.weights, layer.bn, layer.act)
        times.append(time.thread_time() - start)
    print(f"165.2 MMAC in {min(times):.2f} s")
    assert min(times) < 1.5
