# SPDX-License-Identifier: Apache-2.0
"""Containers of every version: what is read, how layers run, and every kind of damage."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from openkpu.kmodel import (
    KmodelError,
    KpuOutcome,
    KpuStep,
    LayerEvent,
    golden_kpu,
    load_functions,
    load_kmodel,
    loads_kmodel,
    parse_layers,
    run_kmodel,
)
from openkpu.kmodel.build import (
    Assembler,
    Range,
    build_v0,
    build_v1,
    build_v3,
    build_v4,
    build_v5,
    build_v5_alone,
    chain_layers,
)
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.version5.v5 import read_functions
from openkpu.layer.airam import pack_map, unpack_map
from openkpu.layer.vectors import VectorLayer

SHAPES = [
    {"o": 6, "kernel": 3, "pool": 1, "depthwise": False, "per_load": 4},
    {"kernel": 3, "pool": 0, "depthwise": True},
    {"o": 5, "kernel": 1, "pool": 5, "depthwise": False},
    {"o": 3, "kernel": 1, "pool": 0, "depthwise": False},
]
S = struct.pack


def network(
    eight_bit: bool = True, c: int = 3, w: int = 40
) -> tuple[np.ndarray, list[VectorLayer]]:
    """An input and four layers that feed each other."""
    rng = np.random.default_rng(5 + eight_bit)
    x = rng.integers(0, 256, (c, 16, w), dtype=np.uint8)
    return x, chain_layers(rng, SHAPES, x, eight_bit=eight_bit)


X, LAYERS = network()
LAST = LAYERS[-1].y


def v3_bytes() -> bytes:
    """The middle map and the last one go to main memory; the last is also made float."""
    operations = [(LAYERS[0], None), (LAYERS[1], 1024), (LAYERS[2], None), (LAYERS[3], 0)]
    tail = (12, S("<4I2f", 1, 0, 8192, LAST.size, 0.5, -3.0))
    return build_v3([*operations, tail], [(8192, 4 * LAST.size), (1024, LAYERS[1].y.size)], 65536)


def v4_bytes(input_space: int = 2) -> bytes:
    """Input in the AI RAM, or in main memory with an upload of its own."""
    none = (0, 0, 0, 0)
    nodes: list[tuple[int, bytes] | tuple[VectorLayer, Range]]
    nodes = [*((layer, none) for layer in LAYERS[:-1]), (LAYERS[-1], (1, 1, 64, LAST.size))]
    layout = LAYERS[0].arg.in_layout
    place = (2, 1, 0, layout.bytes)
    if input_space == 1:
        source = (1, 1, 4096, X.size)
        nodes.insert(0, (0x2001, S("<4I4I4i", *source, *place, 1, *X.shape)))
        place = source
    return build_v4(nodes, [(place, (1, *X.shape))], [(1, 1, 64, LAST.size)], 65536)


def v5_bytes() -> bytes:
    """The byte code calls a function per layer and makes the last map float."""
    a = Assembler()
    starts = [0, *np.cumsum([layer.y.size for layer in LAYERS])[:-1]]
    for index, layer in enumerate(LAYERS):
        source = (0, 0) if index == 0 else (3, int(starts[index - 1]))
        for base, place, shape in (
            (0, source, layer.x.shape),
            (2, (3, int(starts[index])), layer.y.shape),
        ):
            a.at(*place).push(4).strided(base, 1, *shape).push(base, base + 1)
        a.tensor("CALL", index, 1, 1, 1)
    a.at(3, int(starts[-1])).at(1, 0).strided(0, 1, *LAST.shape).push(0.5, -3.0)
    a.tensor("DEQUANTIZE", 4, 9, 0, 1, 1)
    return build_v5(
        a.code,
        [((0, 4, 0, X.size), (1, *X.shape))],
        [((1, 9, 0, 4 * LAST.size), (1, *LAST.shape))],
        LAYERS,
        data=int(starts[-1]) + LAST.size,
    )


CONTAINERS = {
    "v0": build_v0(LAYERS),
    "v0_16bit": build_v0(network(False)[1]),
    "v1": build_v1(LAYERS),
    "v3": v3_bytes(),
    "v4": v4_bytes(),
    "v4_upload": v4_bytes(1),
    "v5": v5_bytes(),
}


# ------------------------------------------------------------------------------------ what runs
@pytest.mark.parametrize("name", CONTAINERS)
def test_network_gives_the_golden_result(name: str) -> None:
    x, layers = network(name != "v0_16bit")
    program = loads_kmodel(CONTAINERS[name], name)
    events: list[LayerEvent] = []
    result = run_kmodel(program, x, hook=events.append, compare=True)
    assert [e.name for e in events] == ["L00", "L01", "L02", "L03"]
    assert result.layers == len(program.kpu_layers) == 4 and result.wrong == 0
    for event, layer in zip(events, layers, strict=True):
        assert np.array_equal(event.x, layer.x) and np.array_equal(event.y, layer.y)
        if name == "v5":  # every function uploads its map again
            continue
        assert event.arg.image_dst_addr == layer.arg.image_dst_addr
    last = layers[-1].y
    want = last[None] if name.startswith("v4") else last[None] * np.float32(0.5) - np.float32(3)
    assert result.output.shape == want.shape and np.array_equal(result.output, want)
    ram = unpack_map(result.memory["kpu"], layers[-1].arg.image_dst_addr, last.shape)
    assert np.array_equal(ram, last)


def test_versions_and_fields() -> None:
    versions = [loads_kmodel(data).version for data in CONTAINERS.values()]
    assert versions == [0, 0, 1, 3, 4, 4, 5]
    assert not loads_kmodel(CONTAINERS["v0_16bit"]).eight_bit
    v3 = loads_kmodel(CONTAINERS["v3"])
    assert [len(part) for part in v3.segments()] == [2, 2]
    assert [t.shape for t in v3.outputs] == [(1, *LAST.shape), (1, *LAYERS[1].y.shape)]
    result = run_kmodel(v3, X)
    assert np.array_equal(result.outputs["output1"], LAYERS[1].y[None])
    for name in ("v0", "v1", "v4"):
        assert [len(part) for part in loads_kmodel(CONTAINERS[name]).segments()] == [4]
    assert "nncase 1.9" in loads_kmodel(CONTAINERS["v5"]).detail


@pytest.mark.parametrize("name", CONTAINERS)
def test_tables_lie_where_the_addresses_say(name: str) -> None:
    """An image of the file in memory makes every layer runnable."""
    data = CONTAINERS[name]
    for op in loads_kmodel(data).kpu_layers:
        for offset, table in (
            (op.arg.para_start_addr, op.weights),
            (op.arg.bwsx_base_addr, op.bn),
            (op.arg.active_addr, op.act),
        ):
            assert data[offset : offset + table.nbytes] == table.tobytes()


def test_functions_of_v5() -> None:
    functions = load_functions_from(CONTAINERS["v5"])
    assert len(functions) == 4
    for program, layer in zip(functions, LAYERS, strict=True):
        assert np.array_equal(run_kmodel(program, layer.x).output, layer.y[None])
    broken = CONTAINERS["v5"].replace(b"\x5e\x03\x00", b"\x5e\x0e\x00")  # calls become hardmax
    with pytest.raises(KmodelError, match="is not supported"):
        loads_kmodel(broken)
    assert len(load_functions_from(broken)) == 4


def load_functions_from(data: bytes) -> list:
    return read_functions(Blob(data, "model"))


def test_lone_k210_module() -> None:
    result = run_kmodel(loads_kmodel(build_v5_alone(LAYERS[:1])), X)
    assert np.array_equal(result.output, LAYERS[0].y[None])


def test_call_with_gaps_goes_through_a_copy() -> None:
    """A caller's tensor with strides of its own."""
    layer = LAYERS[0]
    c, h, w = layer.x.shape
    wide = np.random.default_rng(1).integers(0, 256, (1, c, h, w + 8), dtype=np.uint8)
    a = Assembler()
    a.at(0, 0).push(4).shape(0, 1, c, h, w).shape(1, wide.size, h * (w + 8), w + 8, 1).push(0, 1)
    a.at(1, 0).push(4).strided(2, 1, *layer.y.shape).push(2, 3).tensor("CALL", 0, 1, 1, 1)
    data = build_v5(
        a.code,
        [((0, 4, 0, wide.size), wide.shape)],
        [((1, 4, 0, layer.y.size), (1, *layer.y.shape))],
        [layer],
    )
    program = loads_kmodel(data)
    assert program.sizes["temp"] == layer.x.size
    want = run_kmodel(load_functions_from(data)[0], wide[..., :w].copy()).output
    assert np.array_equal(run_kmodel(program, wide).output, want)


def test_batches_of_v4() -> None:
    """Two maps, one behind the other in the AI RAM."""
    layer = LAYERS[0]
    rows = layer.arg.in_layout.rows
    arg = layer.arg.replace(image_dst_addr=4 * rows, image_src_addr=0)
    layer = VectorLayer(**{**vars(layer), "arg": arg})
    out = (1, 1, 0, 2 * layer.y.size)
    data = build_v4(
        [(layer, out)],
        [((2, 1, 0, 2 * layer.arg.in_layout.bytes), (2, *X.shape))],
        [out],
        4096 * 8,
    )
    # batches is the first word behind the output range of the node
    at = data.index(S("<2i", 1, 0) + layer.arg.encode().tobytes()[:32])
    data = data[:at] + S("<i", 2) + data[at + 4 :]
    other = X[:, ::-1].copy()
    events: list[LayerEvent] = []
    result = run_kmodel(loads_kmodel(data), np.stack([X, other]), hook=events.append)
    assert [e.name for e in events] == ["L00", "L00.1"]
    assert events[1].arg.image_src_addr == rows
    assert events[1].arg.image_dst_addr == 4 * rows + layer.arg.out_layout.rows
    flipped = run_kmodel(loads_kmodel(build_v5_alone([layer])), other).output
    assert np.array_equal(result.output.reshape(2, -1)[0], layer.y.reshape(-1))
    assert np.array_equal(result.output.reshape(2, -1)[1], flipped.reshape(-1))


# ----------------------------------------------------------------------------- other executors
def test_executor_sees_layers_in_range_only() -> None:
    program, seen = loads_kmodel(CONTAINERS["v1"]), []

    def kpu(step: KpuStep, ram: np.ndarray) -> KpuOutcome:
        seen.append(step.index)
        before = unpack_map(ram, step.arg.image_src_addr, step.arg.in_shape)
        assert np.array_equal(before, LAYERS[step.index].x)
        return KpuOutcome(golden_kpu(step, ram).y, info=step.name)

    infos = []
    run_kmodel(
        program, X, kpu=kpu, layers=parse_layers("1-2", 4), hook=lambda e: infos.append(e.info)
    )
    assert seen == [1, 2] and infos == [None, "L01", "L02", None]


def test_wrong_executor_is_noticed_and_its_map_used() -> None:
    program = loads_kmodel(CONTAINERS["v4"])

    def kpu(step: KpuStep, ram: np.ndarray) -> KpuOutcome:
        y = golden_kpu(step, ram).y
        assert y is not None
        y = y.copy()
        if step.index == 1:
            y[0, 0, :2] ^= 1
        pack_map(ram, step.arg.image_dst_addr, y)
        return KpuOutcome(None, ram)  # the map is read from the AI RAM

    events: list[LayerEvent] = []
    result = run_kmodel(program, X, kpu=kpu, compare=True, hook=events.append)
    assert [e.wrong for e in events] == [0, 2, 0, 0] and result.wrong == 2
    assert np.count_nonzero(events[2].x != LAYERS[2].x) == 2


def test_rounding_reaches_the_layers() -> None:
    program = loads_kmodel(CONTAINERS["v1"])
    outputs = [run_kmodel(program, X, rounding=r).memory["kpu"] for r in ("nncase", "trunc")]
    assert np.count_nonzero(outputs[0] != outputs[1])


@pytest.mark.parametrize(
    ("text", "want"),
    [("3-7", range(3, 8)), ("5", range(5, 6)), ("8-", range(8, 10)), ("-2", range(3))],
)
def test_layer_ranges(text: str, want: range) -> None:
    assert parse_layers(text, 10) == want


@pytest.mark.parametrize("text", ["", "-", "a", "7-3", "10", "3-10", "1,2"])
def test_bad_layer_ranges(text: str) -> None:
    with pytest.raises(KmodelError, match="layers"):
        parse_layers(text, 10)


def test_inputs_are_checked() -> None:
    program = loads_kmodel(CONTAINERS["v1"])
    for value in (X[:2], X.astype(np.float32), [X, X], {"other": X}):
        with pytest.raises(KmodelError, match="input"):
            run_kmodel(program, value)
    with pytest.raises(KmodelError, match="steps to run"):
        run_kmodel(program, X, work_max=1000)


def test_device_limits() -> None:
    program = loads_kmodel(CONTAINERS["v0_16bit"])
    program.check_device(weight_rows=3, n_z=4)
    for limits, text in (
        ({"ram_rows": 100}, "BAD_ADDR"),
        ({"weight_rows": 2, "n_z": 4}, "3 rows of weights at once"),
        ({"weight_rows": 3, "n_z": 1}, "6 rows of weights at once"),  # depthwise
        ({"weight_bits": 8}, "16-bit weights"),
    ):
        with pytest.raises(KmodelError, match=rf"offset 0x.*layer \d does not fit.*{text}"):
            program.check_device(**limits)


# --------------------------------------------------------------------------------------- damage
def complaint(data: bytes) -> str:
    """The one line for a file that cannot be used."""
    with pytest.raises(KmodelError) as caught:
        loads_kmodel(data, "bad.kmodel")
    line = str(caught.value)
    assert line.startswith("bad.kmodel:") and "\n" not in line
    return line


def patched(name: str, offset: int, value: bytes) -> bytes:
    data = CONTAINERS[name]
    return data[:offset] + value + data[offset + len(value) :]


@pytest.mark.parametrize("name", CONTAINERS)
def test_truncated_anywhere(name: str) -> None:
    data = CONTAINERS[name]
    whole = loads_kmodel(data)
    assert whole.operations
    spare = 7 if name == "v5" else 0  # the last module may miss its padding
    for length in [*range(0, 80), *range(80, len(data) - 1 - spare, 61), len(data) - 1 - spare]:
        complaint(data[:length])


@pytest.mark.parametrize(
    ("name", "offset", "value", "text"),
    [
        ("v0", 0, b"\xff", "magic"),
        ("v4", 0, b"X", "magic"),
        ("v4", 4, b"\x06", "kmodel version 6"),
        ("v0", 4, S("<I", 1 << 30), "layer count"),
        ("v0", 8, S("<I", 1 << 30), "layer table"),
        ("v0", 12, S("<I", 2), "eight_bit_mode = 2"),
        ("v0", 12, S("<I", 0), "bytes of weights"),
        ("v0", 64, S("<I", 0xFFFFFFF0), "layer argument takes 96 bytes"),
        ("v0", 68, S("<I", 0x7FFFFFFF), "activation table"),
        ("v0", 80, S("<I", 0x7FFFFFFF), "weights takes"),
        ("v0", 84, S("<I", 7), "7 bytes of weights"),
        ("v1", 8, S("<I", 0), "without layers"),
        ("v1", 16, S("<I", 1 << 30), "layer argument"),
        ("v1", 20, S("<I", 1 << 30), "weights"),
        ("v3", 8, S("<I", 1), "architecture 1"),
        ("v3", 20, S("<I", 128 << 20), "memory main of"),
        ("v3", 20, S("<I", 64), "which has 64"),
        ("v3", 48, S("<I", 1 << 30), "body of layer 0"),
        ("v4", 12, S("<I", 3), "target 3"),
        ("v4", 16, S("<I", 1 << 30), "constants"),
        ("v4", 20, S("<I", 64), "which has 64"),
        ("v4", 28, S("<I", 1 << 19), "input count"),
        ("v4", 40, S("<I", 7), "in memory 7"),
        ("v4", 48, S("<I", 3), "not a row"),
        ("v5", 8, S("<I", 40), "header of 40 bytes"),
        ("v5", 20, S("<I", 9), "module"),
        ("v5", 24, S("<I", 9), "entry function"),
        ("v5", 32, b"x", "'xtackvm' is not supported"),
        ("v5", 48, S("<I", 9), "version 9"),
        ("v5", 56, S("<I", 1 << 30), "module 'stackvm' takes"),
        ("v5", 68, S("<I", 1 << 30), "sections do not fit"),
    ],
)
def test_one_line_for(name: str, offset: int, value: bytes, text: str) -> None:
    assert text in complaint(patched(name, offset, value))


def test_illegal_layer_argument() -> None:
    at = CONTAINERS["v1"].index(LAYERS[2].arg.encode().tobytes())
    wrong = LAYERS[2].arg.replace(pool_type=11).encode().tobytes()
    line = complaint(patched("v1", at, wrong))
    assert f"offset 0x{at:x}: layer argument: BAD_POOL" in line
    wrong = LAYERS[2].arg.replace(image_dst_addr=32767).encode().tobytes()
    assert "BAD_ADDR" in complaint(patched("v1", at, wrong))


def test_files(tmp_path: Path) -> None:
    with pytest.raises(KmodelError, match="No such file"):
        load_kmodel(tmp_path / "absent")
    with pytest.raises(KmodelError, match="folder"):
        load_kmodel(tmp_path)
    (tmp_path / "v1").write_bytes(CONTAINERS["v1"])
    assert load_kmodel(tmp_path / "v1").version == 1
    with pytest.raises(KmodelError, match="version 1 has no functions"):
        load_functions(tmp_path / "v1")
    (tmp_path / "v5").write_bytes(CONTAINERS["v5"])
    assert len(load_functions(tmp_path / "v5")) == 4
