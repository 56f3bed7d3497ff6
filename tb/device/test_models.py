# SPDX-License-Identifier: Apache-2.0
"""Small containers of every version on the RTL, by all three ways; a published model when there."""

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, LAYERS, X
from openkpu import configs
from openkpu.arithmetic.activation import ROUNDINGS
from openkpu.kmodel import loads_functions, loads_kmodel, run_kmodel
from openkpu.kmodel.build import build_v1, build_v3, build_v4, build_v5_alone, chain_layers
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import ModelRequest
from openkpu_tb.simrun import SIMS

pytestmark = pytest.mark.fixed  # the same with every seed

WAYS = ("burst", "layers", "tasks")
STORAGE = 4 * launch.LEAST_DEPTH
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass
class Ran:
    """What came of a job."""

    layers: list[dict[str, Any]]
    outputs: Arrays  # run/program/name
    maps: Arrays  # run/layer/batch, as they lay in the AI RAM
    runs: list[dict[str, Any]]  # cycles and host_cycles of each

    @property
    def host_cycles(self) -> int:
        """Of all runs."""
        return sum(run["host_cycles"] for run in self.runs)


def device_run(
    simulator: str,
    file: bytes,
    inputs: list[list[list[np.ndarray]]],
    tmp_path: Path,
    *,
    via: str = "burst",
    layers: tuple[int, int] | None = None,
    rounding: str = "nncase",
    functions: bool = False,
    fast: bool = False,
    config: str = "nano",
    map_moves: str = "dma",
    resident: bool = False,
) -> Ran:
    """Run a model file on tb_top; every failure that is reported fails the test."""
    events: list[dict[str, Any]] = []
    chosen = configs.load_config(config)
    outputs, maps = tmp_path / f"{via}_outputs.npz", tmp_path / f"{via}_maps.npz"
    request = ModelRequest(
        file=file,
        name="test",
        functions=functions,
        inputs=inputs,
        layers=layers,
        via=via,
        fast=fast,
        map_moves=map_moves,
        resident=resident,
        rounding=rounding,
        config=chosen,
        outputs=str(outputs),
        maps=str(maps),
    )
    launch.run_job(
        simulator,
        chosen,
        request,
        events.append,
        storage_bytes=STORAGE,
        rounding=ROUNDINGS.index(rounding),
    )
    bad = [e for e in events if e["event"] in ("failure", "fetch", "rules")]
    assert not bad, bad
    done = [e for e in events if e["event"] == "layer"]
    for event in done:
        assert event["mismatching_bytes"] == 0, event
        counters = event["counters"]
        assert counters["total"] > 0, event
        # the layers here have no pools of stride 1, whose windows are computed twice
        issued, gated = counters["macs_issued"], counters["macs_gated"]
        assert (issued, gated) == (event["macs"], event["macs_gated"]), event
        stalls = sum(v for k, v in counters.items() if k.startswith("stall_"))
        assert counters["total"] == counters["array_busy"] + stalls, event
    runs = [e for e in events if e["event"] == "run"]
    assert [e["run"] for e in runs] == list(range(len(inputs)))
    for one in runs:
        cycles = sum(e["counters"]["total"] for e in done if e["run"] == one["run"])
        whole = layers is None and not fast
        assert cycles > 0 and (not whole or cycles + one["host_cycles"] <= one["cycles"]), one
    with np.load(outputs) as a, np.load(maps) as b:
        return Ran(done, dict(a), dict(b), runs)


def same(a: Arrays, b: Arrays) -> None:
    """The same names, shapes, types and bytes."""
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name]), name


def golden_outputs(file: bytes, x: np.ndarray, rounding: str = "nncase") -> Arrays:
    result = run_kmodel(loads_kmodel(file), x, rounding=rounding)
    return {f"0/0/{name}": value for name, value in result.outputs.items()}


def between() -> tuple[np.ndarray, bytes]:
    """(input, v3 container): table look-up and upload by the CPU between two parts, two outputs."""
    rng = np.random.default_rng(11)
    x = rng.integers(0, 256, (3, 12, 20), dtype=np.uint8)
    point = {"kernel": 1, "pool": 0, "depthwise": False}
    front = chain_layers(
        rng, [{"o": 5, "kernel": 3, "pool": 1, "depthwise": False}, {"o": 4, **point}], x
    )
    table = rng.permutation(256).astype(np.uint8)
    middle = table[front[-1].y]
    back = chain_layers(rng, [{"o": 6, **point}, {"o": 3, **point}], middle)
    size, (c, h, w) = middle.size, middle.shape
    row = back[0].arg.image_src_addr
    operations = [
        (front[0], None),
        (front[1], 0),
        (13, struct.pack("<4I", 0, 0, 2048, size) + table.tobytes()),
        (10243, struct.pack("<6I", 0, 2048, row, w, h, c)),
        (back[0], None),
        (back[1], 4096),
    ]
    return x[None], build_v3(operations, [(4096, back[1].y.size), (0, size)], 8192)


def apart(eight_bit: bool = True) -> tuple[np.ndarray, bytes]:
    """(input, v3 container): two maps of the same input that the CPU concatenates, the first one
    through a table of bytes; a layer reads both, and one map is an output as well."""
    rng = np.random.default_rng(12)
    x = rng.integers(0, 256, (3, 12, 20), dtype=np.uint8)
    point = {"kernel": 1, "pool": 0, "depthwise": False}
    rows = 1000  # of the AI RAM, where the maps lie one behind the other
    makers = [chain_layers(rng, [{"o": o, **point}], x, eight_bit=eight_bit)[0] for o in (4, 6)]
    makers = [
        dataclasses.replace(layer, arg=layer.arg.replace(image_dst_addr=rows * (1 + n)))
        for n, layer in enumerate(makers)
    ]
    table = np.clip(np.arange(256) * 3 // 4 + 11, 0, 255).astype(np.uint8)
    joined = np.concatenate([table[makers[0].y], makers[1].y])
    last = chain_layers(rng, [{"o": 5, **point}], joined, eight_bit=eight_bit)[0]
    arg = last.arg.replace(image_src_addr=3 * rows, image_dst_addr=4 * rows)
    last = dataclasses.replace(last, arg=arg)
    first, second = (layer.y.size for layer in makers)
    c, h, w = joined.shape
    operations = [
        (makers[0], 0),
        (makers[1], 2048),
        (13, struct.pack("<4I", 0, 0, 4096, first) + table.tobytes()),
        (16, struct.pack("<7I", 0, 8192, 2, 4096, first, 2048, second)),
        (10243, struct.pack("<6I", 0, 8192, 3 * rows, w, h, c)),
        (last, 12288),
    ]
    outputs = [(12288, last.y.size), (2048, second)]
    return x[None], build_v3(operations, outputs, 16384, eight_bit=eight_bit)


@pytest.mark.tier(nightly=["icarus-True", "verilator-False", "verilator-True"])
@pytest.mark.parametrize(
    ("simulator", "eight_bit"), [("verilator", True), ("verilator", False), ("icarus", True)]
)
def test_joined_maps(simulator: str, eight_bit: bool, tmp_path: Path) -> None:
    """Concatenated in the AI RAM by layers whose tables lie behind the file, all ways."""
    x, file = apart(eight_bit)
    want = golden_outputs(file, x)
    for via in WAYS if simulator == "verilator" else WAYS[:1]:
        ran = device_run(simulator, file, [[[x]]], tmp_path, via=via, resident=True)
        assert len(ran.layers) == 5, via
        same(ran.outputs, want)
    ran = device_run("verilator", file, [[[x]]], tmp_path)
    assert len(ran.layers) == 3, "joined without being asked"
    same(ran.outputs, want)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-*", "verilator-v[34]*", "verilator-v0*"])
@pytest.mark.parametrize("name", ["v0_16bit", "v3", "v4_upload", "v5"])
@pytest.mark.parametrize("simulator", SIMS)
def test_containers(simulator: str, name: str, tmp_path: Path) -> None:
    """Outputs as the golden model's, whoever runs the layers and whoever moves the maps."""
    file = CONTAINERS[name]
    x = X if name != "v0_16bit" else np.random.default_rng(5).integers(0, 256, X.shape, np.uint8)
    want = golden_outputs(file, x)
    ways = [(via, "dma") for via in WAYS] + [("burst", "window")]
    maps: Arrays | None = None
    for via, moves in ways if simulator == "verilator" else ways[-1:]:
        ran = device_run(simulator, file, [[[x]]], tmp_path, via=via, map_moves=moves)
        assert [e["index"] for e in ran.layers] == [0, 1, 2, 3]
        same(ran.outputs, want)
        same(ran.maps, maps or ran.maps)
        maps = ran.maps
        assert (ran.host_cycles > 0) == (moves == "window"), (via, moves)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("simulator", SIMS)
def test_cpu_between(simulator: str, tmp_path: Path) -> None:
    """Two parts with the CPU's work between them, twice without a reset, by all three ways."""
    x, file = between()
    other = np.ascontiguousarray(x[..., ::-1])
    maps: Arrays | None = None
    for via in WAYS:
        ran = device_run(simulator, file, [[[x]], [[other]]], tmp_path, via=via)
        assert len(ran.layers) == 8
        for number, image in enumerate((x, other)):
            want = golden_outputs(file, image)
            same(
                {k: v for k, v in ran.outputs.items() if k[0] == str(number)},
                {f"{number}{k[1:]}": v for k, v in want.items()},
            )
        same(ran.maps, maps or ran.maps)
        maps = ran.maps
    assert maps is not None
    assert not np.array_equal(maps["0/3/0"], maps["1/3/0"])


@pytest.mark.check
@pytest.mark.parametrize("via", WAYS)
def test_batches(via: str, tmp_path: Path) -> None:
    """A layer for two maps, one behind the other in the AI RAM, both to main memory."""
    layer = LAYERS[0]
    rows = layer.arg.in_layout.rows
    layer = dataclasses.replace(
        layer, arg=layer.arg.replace(image_src_addr=0, image_dst_addr=4 * rows)
    )
    out = (1, 1, 0, 2 * layer.y.size)
    place = (2, 1, 0, 2 * layer.arg.in_layout.bytes)
    file = build_v4([(layer, out)], [(place, (2, *X.shape))], [out], 4096 * 8)
    # batches is the first word behind the output range of the node
    at = file.index(struct.pack("<2i", 1, 0) + layer.arg.encode().tobytes()[:32])
    file = file[:at] + struct.pack("<i", 2) + file[at + 4 :]
    x = np.stack([X, X[:, ::-1]])
    ran = device_run("verilator", file, [[[x]]], tmp_path, via=via)
    assert [(e["index"], e["batch"]) for e in ran.layers] == [(0, 0), (0, 1)]
    same(ran.outputs, golden_outputs(file, x))


@pytest.mark.check
def test_back_door_is_no_different(tmp_path: Path) -> None:
    """Maps past the host's bus: the same bytes, the same cycles of the layers."""
    x, file = between()
    slow = device_run("verilator", file, [[[x]]], tmp_path, map_moves="window")
    fast = device_run("verilator", file, [[[x]]], tmp_path, fast=True)
    same(slow.outputs, fast.outputs)
    same(slow.maps, fast.maps)
    assert slow.host_cycles > 0 and fast.host_cycles == 0
    macs = [[e["counters"]["macs_issued"] for e in ran.layers] for ran in (slow, fast)]
    assert macs[0] == macs[1]


@pytest.mark.check
@pytest.mark.tier(nightly=["layers0", "layers1"])
@pytest.mark.parametrize("layers", [(0, 0), (1, 2), (3, 3)])
def test_part_of_a_model(layers: tuple[int, int], tmp_path: Path) -> None:
    """The golden model supplies the input and goes on behind."""
    for name in ("v3", "v5"):
        file = CONTAINERS[name]
        ran = device_run("verilator", file, [[[X]]], tmp_path, layers=layers)
        assert [e["index"] for e in ran.layers] == list(range(layers[0], layers[1] + 1))
        same(ran.outputs, golden_outputs(file, X))


@pytest.mark.check
def test_functions_one_by_one(tmp_path: Path) -> None:
    """The KPU functions of a v5 file without its byte code."""
    rng = np.random.default_rng(8)
    x = rng.integers(0, 256, (2, 6, 10), dtype=np.uint8)
    shapes = [
        {"o": 4, "kernel": 3, "pool": 1, "depthwise": False},
        {"kernel": 3, "pool": 0, "depthwise": True},
    ]
    file = build_v5_alone(chain_layers(rng, shapes, x))
    programs = loads_functions(file)
    inputs = [[rng.integers(0, 256, t.shape, dtype=np.uint8) for t in p.inputs] for p in programs]
    ran = device_run("verilator", file, [inputs], tmp_path, functions=True)
    assert [e["index"] for e in ran.layers] == [0, 1] and len(ran.outputs) == 2
    for part, (program, values) in enumerate(zip(programs, inputs, strict=True)):
        for name, value in run_kmodel(program, values).outputs.items():
            assert np.array_equal(ran.outputs[f"0/{part}/{name}"], value)


def check_rounding(simulator: str, rounding: str, tmp_path: Path) -> None:
    """One of the other roundings of docs/kpu.md 1.3, a build of its own; it does differ."""
    rng = np.random.default_rng(9)
    x = rng.integers(0, 256, (4, 10, 14), dtype=np.uint8)
    layers = chain_layers(rng, [{"o": 6, "kernel": 1, "pool": 0, "depthwise": False}], x)
    act = layers[0].act.copy()
    # shifts of 1 with odd factors: half of all products are ties
    act[:16] = act[:16] & ~np.uint64(0xFFFFFF) | np.uint64(1 | 1 << 8)
    file = build_v1([dataclasses.replace(layers[0], act=act)])
    want = golden_outputs(file, x, rounding)
    ran = device_run(simulator, file, [[[x]]], tmp_path, rounding=rounding)
    same(ran.outputs, want)
    usual = golden_outputs(file, x)
    assert not np.array_equal(usual["0/0/output0"], want["0/0/output0"])


@pytest.mark.check
@pytest.mark.tier(nightly=["trunc"])
@pytest.mark.parametrize("rounding", ["v01", "trunc"])
def test_roundings(rounding: str, tmp_path: Path) -> None:
    check_rounding("icarus", rounding, tmp_path)
