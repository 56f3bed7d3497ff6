# SPDX-License-Identifier: Apache-2.0
"""Predicted cycles (prediction/) against those of the RTL (docs/performance.md 4).

Most of the RTL's cycles are records that other tests compare with the RTL to the cycle:
cycles.json, and model_cycles.json for the published models, which the nightly run measures anew
(OPENKPU_RECORD_CYCLES=1 before `make test ALL=1` takes wanted changes over).
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.generators.generate_pools import on_map
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import on_maps
from openkpu.kmodel import loads_kmodel, read_file
from openkpu.layer import vectors
from openkpu.layer.argument import LayerError
from openkpu.layer.decoded import FLAT_PARTS, STRIPE
from openkpu.layer.layout import map_bytes
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network
from openkpu.prediction import cycles, cycles_maps, keeping
from openkpu.prediction.cycles_model import Predicted, predict_model, predict_network
from openkpu.prediction.cycles_shape import Shape
from openkpu.prediction.spare import rows_of_network
from openkpu_tb.device import cycles as records
from openkpu_tb.runs import launch, measured
from openkpu_tb.runs.requests import (
    ModelRequest,
    RequestedRun,
    StreamRequest,
)

pytestmark = pytest.mark.fixed  # the same with every seed

HERE = ROOT / "tb" / "device"
RECORD = json.loads((HERE / "cycles.json").read_text())
MODELS_FILE = HERE / "model_cycles.json"
MODELS = json.loads(MODELS_FILE.read_text())
SHARED = Path(os.environ.get("OPENKPU_SHARED", ROOT.parent / "shared"))
VECTORS = ROOT / "models" / "tests" / "data" / "vectors"
SHARE, CYCLES = 0.03, 50  # how far a layer that runs alone may be off: the larger of the two
WHOLE = 0.02  # ... a model or an inference, or 50 cycles
RANDOM = 0.04  # ... a random list or network of some small tasks
# ... a layer of a run: weights that are read ahead move cycles to the layer behind or before
IN_RUN, IN_RUN_CYCLES = 0.25, 300
MARGIN = 1024  # bytes of storage for a layer besides its maps
LIMIT = 5_000_000  # cycles of a layer or an inference
# changes of a configuration that no file of the project has
ODD = {
    "narrow": ("small", {"n_y": 2, "n_z": 8, "path_bytes": 32, "ahb_width": 64, "wbuf_rows": 512}),
    "wide": ("k210", {"n_y": 8, "n_z": 4, "ahb_width": 128, "tile_rows": 64, "pool_lanes": 8}),
    "many lanes": ("k210", {"path_bytes": 16, "tile_rows": 64}),
    "shared lanes": (
        "nano",
        {"n_z": 4, "post_share": 4, "path_bytes": 64, "pool_lanes": 2, "sum_planes": 1},
    ),
}


def contract(
    names: Sequence[str], found: Sequence[int], rtl: Sequence[int], *, alone: bool = False
) -> None:
    """AssertionError that names the layers which are further off than allowed; ``alone``: each has
    run for itself."""
    assert len(found) == len(rtl)
    share, cycles = (SHARE, CYCLES) if alone else (IN_RUN, IN_RUN_CYCLES)
    bad = [
        f"{name}: {guess} predicted, {right} on the RTL"
        for name, guess, right in zip(names, found, rtl, strict=True)
        if abs(guess - right) > max(cycles, share * right)
    ]
    assert not bad, "\n".join(bad)


def near(found: int, rtl: int, more: int = 0, share: float = WHOLE) -> None:
    """The whole of a model or an inference, ``more`` cycles off at most."""
    assert abs(found - rtl) <= max(CYCLES, share * rtl) + more, (found, rtl)


def changed(name: str) -> Config:
    """A named configuration, or one of ODD."""
    base, values = ODD.get(name, (name, {}))
    return dataclasses.replace(configs.load_config(base), **values)


def alone(config: Config, layers: Sequence[VectorLayer]) -> list[int]:
    """Predicted cycles of layers that the host starts one by one."""
    return [
        cycles.predict_layers(config, [layer.arg], eight_bit=layer.eight_bit).layers[0].cycles
        for layer in layers
    ]


def of_layers(found: Predicted) -> list[int]:
    return [layer.cycles for layer in found.layers]


# ----------------------------------------------------------------------- the records
@pytest.mark.check
@pytest.mark.parametrize("config", ["small", "k210"])
def test_bundled_vectors(config: str) -> None:
    """Each of the 88 layers alone, as test_vectors_verilator recorded them."""
    layers = vectors.load_cases([VECTORS])
    record = RECORD[f"vectors on {config}"]
    rtl = [figures[0] for figures in record.values()]
    contract(list(record), alone(configs.load_config(config), layers), rtl, alone=True)


def test_digits_of_the_record() -> None:
    record = RECORD["digits on small"]
    found = predict_network(configs.load_config("small"), digits.load_network())
    rtl = [record[f"image0/L0{number}"][0] for number in range(4)]
    contract(found.names, of_layers(found), rtl)
    near(found.cycles, record["an inference"][0])


@pytest.mark.parametrize("via", ["burst", "layers", "tasks"])
def test_model_of_the_record(via: str) -> None:
    """A model of four layers in each of the ways that start them, maps by the host as well."""
    file, record = CONTAINERS["v3"], RECORD[f"model v3 on k210, {via}"]
    found = predict_model(
        configs.load_config("k210"), [loads_kmodel(file)], len(file), via, "window"
    )
    rtl = [record[f"layer {number}"][0] for number in range(4)]
    contract(found.names, of_layers(found), rtl)
    near(found.cycles, record["run"][0], cycles_maps.POLL)  # the host may look once more
    assert abs(found.host_maps - record["host"][0]) <= 2


def published(key: str) -> tuple[bytes, str, str, str, Config]:
    """(file, name, way, who moves maps, configuration) of an entry of the record; skips without
    the file."""
    name, via, config, maps = key.split(", ")
    path = SHARED / "real" / name
    if not path.exists():
        pytest.skip(f"{path} is not there; OPENKPU_SHARED names another place")
    return read_file(path), name, via, maps, configs.load_config(config)


@pytest.mark.check
@pytest.mark.parametrize("key", MODELS)
def test_published_models(key: str) -> None:
    """Every layer of a published model, and its end-to-end cycles, as the RTL took them."""
    file, name, via, maps, config = published(key)
    record = MODELS[key]
    found = predict_model(config, [loads_kmodel(file, name)], len(file), via, maps)
    contract(found.names, of_layers(found), record["layers"])
    near(found.cycles, record["end to end"][0])
    near(found.host_maps, record["host maps"][0])


# Configuration, kind, channels, lines, columns, neurons or distance, cycles on the RTL. The last
# entry of a vector is filled sooner than others; a channel of a stripe leaves while others come.
UNEVEN = (
    ("wide", "fc", 4, 1, 304, 2, 483),
    ("wide", "fc", 2, 9, 33, 5, 595),
    ("wide", "fc", 20, 4, 4, 30, 1404),
    ("nano", "depthwise", 9, 5, 70, 5, 1175),
    ("nano", "depthwise", 4, 12, 70, 8, 1184),
    ("nano", "depthwise", 18, 3, 70, 2, 1394),
)


@pytest.mark.parametrize(("name", "kind", "c", "h", "w", "n", "rtl"), UNEVEN)
def test_uneven_parts(name: str, kind: str, c: int, h: int, w: int, n: int, rtl: int) -> None:
    config, rng = dataclasses.replace(changed(name), dilation=8), np.random.default_rng(5)
    kinds: dict[str, Any] = {name: name == kind for name in ("fc", "depthwise")}
    kinds |= {"o": n} if kind == "fc" else {"o": c, "kernel": 3, "dilation": n}
    layer = random_layer(rng, c=c, h=h, w=w, pool=0, eight_bit=True, **kinds)
    contract([kind], alone(config, [layer]), [rtl], alone=True)


# --------------------------------------------------------------------------- the RTL
def compare_network(config: Config, network: Network, more: int = 0, share: float = WHOLE) -> None:
    """The layers of one inference, and the whole, ``more`` cycles off at most."""
    found = predict_network(config, network)
    layers, whole = measured.cycles_of_network(config, network)
    contract(found.names, of_layers(found), layers)
    near(found.cycles, whole, more, share)


@pytest.mark.check
@pytest.mark.parametrize("config", ["nano", "k210"])
def test_digits(config: str) -> None:
    compare_network(configs.load_config(config), digits.load_network())


@pytest.mark.check
@pytest.mark.tier(nightly=["compact", "k210"])
@pytest.mark.parametrize("config", ["small", "compact", "k210"])
def test_first_layers(config: str) -> None:
    """A wide image of few channels comes in bands, and its layer, whose weights fill more or less
    of a FIFO, takes turns with it; the list goes on behind it."""
    rng = np.random.default_rng(7)
    kinds: dict[str, Any] = {"fc": False, "depthwise": False, "eight_bit": True, "signed_in": False}
    for channels, width, outputs, pool in ((3, 96, 8, 1), (2, 139, 5, 6), (4, 80, 26, 0)):
        network = Network(eight_bit=True)
        x = rng.integers(0, 256, (channels, 24, width), dtype=np.uint8)
        for kernel, count, picks in ((3, outputs, pool), (1, 10, 0)):
            layer = random_layer(rng, x=x, o=count, kernel=kernel, pool=picks, **kinds)
            network.add(layer.arg, layer.weights, layer.bn, layer.act)
            x, kinds["signed_in"] = layer.y, bool(layer.arg.signed_out)
        kinds["signed_in"] = False
        network.place()
        # each band of each channel is a request of its own
        compare_network(configs.load_config(config), network, CYCLES)


def in_a_stream(config: Config, network: Network, count: int) -> list[int]:
    """Predicted cycles from each result of a continuous run to the next one."""
    found = predict_network(config, network, inferences=count)
    layers, size = of_layers(found), len(network.layers)
    return [sum(layers[at : at + size]) for at in range(0, len(layers), size)]


@pytest.mark.parametrize("config", ["nano", "small"])
def test_stream_of_the_record(config: str) -> None:
    """Ten digits in one continuous run: from each result to the next."""
    ends = [end for (end,) in RECORD[f"stream of digits on {config}"].values()]
    rtl = np.diff(ends, prepend=0).tolist()
    found = in_a_stream(configs.load_config(config), digits.load_network(), len(ends))
    contract(list(map(str, range(len(ends)))), found, rtl)


@pytest.mark.tier(nightly=["k210"])
@pytest.mark.parametrize("config", ["k210", pytest.param("large", marks=pytest.mark.nightly)])
def test_stream(config: str) -> None:
    """The same where the record has none; a network whose weights do not all fit, read for every
    inference or kept in the AI RAM; short ones, whose first layer or last has no weights."""
    chosen = configs.load_config(config)
    network, images = random_stream(chosen)
    keeps = dataclasses.replace(network, kept={})
    keeps.place()
    keeping.keep_weights(keeps, chosen)
    assert keeps.kept
    runs = [
        (digits.load_network(), digits.load_data()[1].pixels[:6]),
        (network, images),
        (keeps, images),
        *(of_kinds(*kinds) for kinds in (["convolution"], ["convolution", "pool"], ["pool"])),
    ]
    compare_streams(chosen, runs)


def compare_streams(config: Config, runs: Sequence[tuple[Network, np.ndarray]]) -> None:
    """Continuous runs: from each result to the next."""
    events: list[dict] = []
    asked = [
        RequestedRun(network, images, spare=rows_of_network(config, network))
        for network, images in runs
    ]
    launch.run_job("verilator", config, StreamRequest(asked, LIMIT, seed=1), events.append)
    streams = [event for event in events if event["event"] == "stream"]
    for (network, images), event in zip(runs, streams, strict=True):
        assert not event["failure"]
        rtl = np.diff([end[0] for end in event["ends"]], prepend=0).tolist()
        found = in_a_stream(config, network, len(images))
        contract(list(map(str, range(len(images)))), found, rtl)


def random_stream(config: Config) -> tuple[Network, np.ndarray]:
    """A network with more rows of weights than the buffer of ``config``, and three maps."""
    rng, rows = np.random.default_rng(8), 0
    while rows <= config.wbuf_rows:
        network, _ = random_network(rng, shape=(96, 8, 8), layers=4, limits=Limits(channels=200))
        rows = sum(Shape(config, arg).weight_rows for arg in network.layers)
    return network, rng.integers(0, 256, (3, *network.in_shape), dtype=np.uint8)


def of_kinds(*kinds: str) -> tuple[Network, np.ndarray]:
    """A network of a layer of each kind, and five maps."""
    rng = np.random.default_rng(9)
    network, _ = random_list(rng, list(kinds), (6, 20, 24))
    return network, rng.integers(0, 256, (5, *network.in_shape), dtype=np.uint8)


def compare_layers(config: Config, layers: list[VectorLayer]) -> None:
    """Layers that the host starts one by one."""
    found = measured.cycles_alone(config, layers)
    names = [f"{n}: {la.arg.in_shape} -> {la.arg.out_shape}" for n, la in enumerate(layers)]
    contract(names, alone(config, layers), found, alone=True)


def compare_networks(config: Config, seed: int, count: int) -> None:
    """Random networks as task lists, some with residuals and pools."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        network, _ = random_network(
            rng,
            shape=tuple(int(n) for n in rng.integers(6, 40, 3)),
            layers=int(rng.integers(3, 8)),
            fc_last=bool(number % 2),
            eight_bit=bool(number % 3),
            two_maps=on_maps if number % 2 else None,
            one_map=on_map if number % 3 else None,
        )
        compare_network(config, network, share=RANDOM)


def compare_lists(
    config: Config,
    seed: int,
    count: int,
    kinds: Sequence[str] = KINDS,
    width: int | None = None,
    strides: float = 0.0,
) -> None:
    """Lists of tasks of these kinds; half of the tasks load or store their maps; ``width``: of the
    first map, None: random; ``strides``: share of maps with rows between channel groups."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        order = [str(kind) for kind in rng.permutation(kinds)]
        sizes = (int(rng.integers(3, 20)), int(rng.integers(8, 30)), int(rng.integers(60, 90)))
        shape = (*sizes[:2], width or sizes[2])
        network, _ = random_list(
            rng, order, shape, ram_rows=config.ai_ram_rows, moves=0.5, strides=strides
        )
        compare_network(config, network, share=RANDOM)


@pytest.mark.tier(nightly=["k210"])
@pytest.mark.parametrize("config", ["k210", pytest.param("large", marks=pytest.mark.nightly)])
def test_lists_with_maps_of_storage(config: str) -> None:
    compare_lists(configs.load_config(config), 6, 2)


@pytest.mark.tier(check=["nano-*", "small-*"], nightly=["*-70-*"])
@pytest.mark.parametrize(
    ("config", "count", "seeds"),
    # more of them on configurations that the model was not compared with when it was made
    [*((name, 14, (12, 5)) for name in ("nano", "small"))]
    + [(name, 70, (3, 4)) for name in ("medium", "k210", "large", *ODD)],
)
def test_random_layers(config: str, count: int, seeds: tuple[int, int]) -> None:
    """Layers of all kinds, each alone, and networks."""
    chosen = changed(config)
    compare_layers(chosen, measured.random_layers(chosen, seeds[0], count))
    if chosen.ahb_width < 128:  # lists of such a bus are aligned otherwise
        compare_networks(chosen, seeds[1], count // 11)


def narrow_layers(config: Config, seed: int, count: int) -> list[VectorLayer]:
    """1x1 layers: ``count`` with maps that are computed as one line, as many that just are not."""
    rng = np.random.default_rng(seed)
    found: dict[bool, list[VectorLayer]] = {True: [], False: []}
    while min(len(layers) for layers in found.values()) < count:
        width = int(rng.integers(1, 17))
        high = int(rng.choice([1, 64 // width, 64 // width + 1, int(rng.integers(1, 30)), 60]))
        edge = 9 * (STRIPE // width + FLAT_PARTS) * config.n_y * config.n_z // STRIPE
        channels = int(rng.choice([9, 40, 300, 800, edge - 1, edge, edge + 10]))
        sizes = {"c": min(channels, 1024), "o": int(rng.integers(1, 40))}
        kind = {"kernel": 1, "depthwise": False, "fc": False, "pool": 0}
        try:
            layer = random_layer(rng, h=high, w=width, **sizes, **kind)
        except LayerError:
            continue
        fits = layer.arg.weight_rows(config.n_z) <= config.wbuf_rows
        same = found[Shape(config, layer.arg).on.flat]
        if len(same) < count and fits and (layer.eight_bit or config.weight_bits == 16):
            same.append(layer)
    return found[True] + found[False]


@pytest.mark.check
@pytest.mark.tier(nightly=["k210"])
@pytest.mark.parametrize(
    "config",
    [
        *("small", "k210"),
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("medium", "large", "wide")),
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("narrow", "many lanes")),
    ],
)
def test_flat_maps(config: str) -> None:
    """Exact, and as fast as predicted."""
    chosen = changed(config)
    compare_layers(chosen, narrow_layers(chosen, 29, 12))


@pytest.mark.tier(nightly=["small"])
@pytest.mark.parametrize("config", ["small", pytest.param("k210", marks=pytest.mark.nightly)])
def test_long_reductions(config: str) -> None:
    """1x1 layers with more channels than a map has elsewhere: exact, and as fast as predicted."""
    rng, chosen, layers = np.random.default_rng(31), configs.load_config(config), []
    sizes = (
        (1025, 1, 1, 20),
        (9216, 2, 3, 5),
        (9215, 1, 17, 3),
        (3000, 5, 13, 9),
        (2050, 1, 70, 2),
    )
    for number, (c, h, w, o) in enumerate(sizes):
        kind = {"kernel": 1, "pool": (0, 1)[h % 2 == 0], "depthwise": False, "fc": False}
        layers.append(random_layer(rng, c=c, h=h, w=w, o=o, eight_bit=number % 3 > 0, **kind))
        layers.append(random_product(rng, c=c, h=h, w=w, o=o, kernel=1, case=f"product {number}"))
    compare_layers(chosen, layers)


# (M, K, N): few steps a group, whole and cut groups, rows of weights that fill the buffer
FLOATS = ((1, 1, 1), (3, 5, 7), (16, 100, 32), (17, 64, 33), (9, 10, 96), (40, 300, 64), (70, 9, 4))
BESIDE = ("float16", "convolution", "pool", "float16", "product")  # tasks of a list
DEEP_FLOATS = (5, 9216, 8)  # M is more than n_z of ``nano_fp16``: rows of weights are used anew


@pytest.mark.check
@pytest.mark.parametrize(
    "config", ["nano_fp16", pytest.param("k210_fp16", marks=pytest.mark.nightly)]
)
def test_products_of_float16(config: str) -> None:
    """Each alone; in lists with other tasks, where half of the tasks load or store their maps."""
    rng, chosen = np.random.default_rng(41), configs.load_config(config)
    layers = [
        random_fp16(rng, m=m, k=k, n=n, wide=wide)
        for m, k, n in (*FLOATS, DEEP_FLOATS)
        for wide in ((True, False) if k < 9216 else (True,))
    ]
    compare_layers(chosen, layers)
    compare_lists(chosen, 43, 3, BESIDE, width=64)  # rows of 32 numbers


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [1024, 64])
def test_stream_with_float16(rows: int) -> None:
    """A product in a continuous run, whose weights stay, or are read for every inference."""
    chosen = dataclasses.replace(configs.load_config("nano_fp16"), wbuf_rows=rows)
    rng, needed, kinds = np.random.default_rng(44), 0, ["convolution", "float16", "float16"]
    while not 64 < needed <= 1024:
        network, _ = random_list(rng, kinds, (40, 8, 64), limits=Limits(channels=60))
        needed = sum(Shape(chosen, arg, network.eight_bit).weight_rows for arg in network.layers)
    images = rng.integers(0, 256, (4, *network.in_shape), dtype=np.uint8)
    compare_streams(chosen, [(network, images)])


@pytest.mark.nightly
@pytest.mark.parametrize("key", MODELS)
def test_published_models_on_the_rtl(key: str, tmp_path: Path) -> None:
    """The record of the published models, to the cycle; their maps are random ones."""
    file, name, via, maps, config = published(key)
    program, rng = loads_kmodel(file, name), np.random.default_rng(210)
    inputs = [
        rng.integers(0, 256, tensor.shape, dtype=np.uint8).view(tensor.dtype)
        if np.dtype(tensor.dtype).itemsize == 1
        else rng.random(tensor.shape).astype(tensor.dtype)
        for tensor in program.inputs
    ]
    request = ModelRequest(
        file=file,
        name=name,
        inputs=[[inputs]],
        config=config,
        outputs=str(tmp_path / "outputs.npz"),
        via=via,
        map_moves=maps,
        resident=maps == "dma",
    )
    events: list[dict] = []
    moved = sum(
        layer.batches * (map_bytes(layer.arg.in_shape) + map_bytes(layer.arg.out_shape) + MARGIN)
        for layer in program.kpu_layers
    )
    storage = 2 * len(file) + moved
    launch.run_job("verilator", config, request, events.append, storage_bytes=storage)
    assert not [e for e in events if e["event"] in ("failure", "fetch", "rules")]
    (ran,) = [event for event in events if event["event"] == "run"]
    layers = [event["counters"]["total"] for event in events if event["event"] == "layer"]
    figures = {"layers": layers, "end to end": [ran["cycles"]], "host maps": [ran["host_cycles"]]}
    records.check_cycles(key, figures, MODELS_FILE)
