# SPDX-License-Identifier: Apache-2.0
"""Signals: maps of one column lie down, and kernels as large as their map are fully connected."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, compiled, equal, layers
from openkpu import configs
from openkpu.compiler import build
from openkpu.compiler.form.graph import Graph, Move
from openkpu.compiler.lowering.nodes import lower_whole
from openkpu.compiler.passes.rewrites import simplified, variants
from openkpu.compiler.program import HostPart, Program
from openkpu.prediction.cycles_model import predict_network


def cycles(program: Program, config: str = "k210") -> int:
    """Predicted cycles of all task lists."""
    found = (predict_network(configs.load_config(config), p.network) for p in program.device_parts)
    return sum(p.cycles for p in found)


def wake_word(rank: int = 4) -> Graph:
    """A chain as wake-word models have it, two branches, an output in its middle."""
    m = Maker(4)
    x = m.input(1, 8, 30, 1)
    x = m.conv(x, 8, (3, 1), groups=8, pads="valid")
    x = m.conv(x, 16, (1, 1))
    y = m.conv(x, 16, (5, 1), groups=16)
    z = m.pool(m.both("add", x, y), "max", (2, 1), (2, 1))
    z = m.move([z, z], (1, 32, 14, 1), "concat", axis=1)
    w = m.conv(z, 32, (14, 1), groups=32, pads="valid")
    flat = m.move([m.conv(w, 12, (1, 1))], (1, 12), "reshape")
    return m.done(m.dense(flat, 5), y) if rank == 4 else m.done(m.dense(flat, 5))


@pytest.mark.parametrize("config", ["k210", "nano"])
def test_signal(config: str) -> None:
    """Every byte exact, the host only orders input and outputs."""
    graph = wake_word()
    program = compiled(graph, config)
    assert alone(program)
    equal(graph, program)


def test_lies() -> None:
    """After the passes no map of the set is left, and each of its layers has one line."""
    graph = wake_word()
    tensors = simplified(graph).tensors
    standing = [n for n in graph.tensors if n in tensors and tensors[n].shape[2:] == (1, 30)]
    assert not standing
    (part,) = compiled(graph).device_parts
    assert {arg.in_shape[1] for arg in part.network.layers} == {1}


def test_stands() -> None:
    """A set with a map of several columns stays as it is."""
    m = Maker(4)
    x = m.conv(m.input(1, 8, 30, 2), 8, (3, 2), pads="valid")
    graph = m.done(m.conv(x, 8, (3, 1)))
    assert str(simplified(graph)) == str(graph)


def spectrum(dtype: str = "int8") -> Graph:
    """A chain as keyword spotting has it: a strided kernel, narrow maps, their mean; a map in its
    middle is an output."""
    m = Maker(5, dtype)
    x = m.conv(m.input(1, 1, 21, 10), 16, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1))
    y = m.conv(x, 16, (3, 3), groups=16)
    y = m.conv(y, 16, (1, 1))
    z = m.pool(y, "average", (11, 5), (11, 5))
    return m.done(m.dense(m.move([z], (1, 16), "reshape"), 6), y)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("config", ["k210", "nano", "small"])
def test_tall_maps(config: str, dtype: str) -> None:
    """Lines of five pixels become lines of eleven where the lists take fewer cycles; each byte of
    both forms is exact, and the host writes the phases of the input in one go."""
    graph = spectrum(dtype)
    upright, lying = (
        build.Builder(form, configs.load_config(config)).run() for form in variants(graph)
    )
    program = compiled(graph, config)
    assert cycles(program, config) == min(cycles(upright, config), cycles(lying, config))
    for form in (upright, lying, program):
        first, _ = form.parts
        assert isinstance(first, HostPart) and all(isinstance(n, Move) for n in first.nodes)
        equal(graph, form)
    widths = [{a.in_shape[2] for a in p.device_parts[0].network.layers} for p in (upright, lying)]
    assert widths == [{5, 1}, {11, 1}]
    if config == "k210":
        assert cycles(lying) < 0.9 * cycles(upright)


@pytest.mark.parametrize(
    ("shape", "forms"),
    [((8, 12, 12), 1), ((8, 12, 20), 1), ((8, 12, 1), 1), ((8, 1, 1), 1), ((8, 80, 60), 2)],
)
def test_maps_that_stay(shape: tuple[int, int, int], forms: int) -> None:
    """Square maps, wide ones, signals have one form; lines of 80 pixels are no better than 60."""
    m = Maker(4)
    graph = m.done(m.conv(m.conv(m.input(1, *shape), 64, (3, 3)), 64, (1, 1)))
    assert len(variants(graph)) == forms
    if forms > 1:
        (part,) = compiled(graph).device_parts
        assert part.network.layers[0].in_shape == shape


def test_upright_readers() -> None:
    """What reads the signal in its own order still does: a transposition, a flattened vector."""
    m = Maker(6)
    x = m.conv(m.input(1, 6, 20, 1), 8, (3, 1))
    turned = m.move([x], (1, 20, 1, 8), "transpose", axes=(0, 2, 3, 1))
    graph = m.done(m.dense(m.move([turned], (1, 160), "reshape"), 7), x)
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


WHOLE = {
    "depthwise": ((32, 7, 7), 32, {"groups": 32, "kernel": (7, 7), "pads": "valid"}),
    "dense": ((6, 7, 5), 10, {"kernel": (7, 5), "pads": "valid"}),
    "groups": ((24, 5, 6), 16, {"groups": 4, "kernel": (5, 6), "pads": "valid"}),
    "padded": ((8, 3, 3), 8, {"kernel": (5, 5), "pads": (1, 1, 1, 1), "groups": 8}),
    "dilated": ((8, 5, 7), 8, {"kernel": (3, 3), "dilation": (2, 3), "pads": "valid"}),
    "multiplier": ((8, 6, 6), 24, {"groups": 8, "kernel": (6, 6), "pads": "valid"}),
    "strided": ((8, 6, 6), 12, {"kernel": (5, 5), "strides": (9, 9), "pads": (2, 2, 1, 1)}),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str, dtype: str) -> None:
    """A single output pixel: fully connected layers where they take fewer cycles, always exact."""
    shape, o, how = WHOLE[name]
    m = Maker(8, dtype)
    graph = m.done(m.conv(m.conv(m.input(1, *shape), shape[0], (1, 1)), o, **how))
    program = compiled(graph)
    assert alone(program) and any("fc" in kind for kind in layers(program)[1:])
    equal(graph, program)


def test_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice is the cheaper one: without it the same graph takes over twice the cycles."""
    graph = wake_word(2)
    best = cycles(compiled(graph))
    monkeypatch.setattr(lower_whole, "possible", lambda state, node: False)
    assert cycles(compiled(graph)) > 2 * best


def test_dense_input_of_a_signal() -> None:
    """A signal that a slice and a padding read lies down with them."""
    m = Maker(3)
    x = m.conv(m.input(1, 4, 24, 1), 8, (1, 1))
    part = m.move([x], (1, 8, 12, 1), "slice", starts=(0, 0, 1, 0), steps=(1, 1, 2, 1))
    wide = m.move(
        [part], (1, 8, 15, 1), "pad", before=(0, 0, 1, 0), after=(0, 0, 2, 0), value=part.zero
    )
    graph = m.done(m.conv(wide, 8, (3, 1), pads="valid"))
    program = compiled(graph)
    assert np.array_equal(program.graph.tensors[graph.outputs[0]].shape, (1, 8, 13, 1))
    equal(graph, program)
