# SPDX-License-Identifier: Apache-2.0
"""Lower bound of a model's cycles in a run (bound.py): worked out by hand, and never above the
prediction or the RTL."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from models.tests.kmodel.test_kmodel_real import shared
from openkpu import configs, digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import ACT_BYTES, BN_BYTES
from openkpu.configs import Config
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.kmodel import loads_kmodel, read_file
from openkpu.layer.argument import WORDS, LayerArg
from openkpu.network.network import NetworkError
from openkpu.prediction import bound, cycles
from openkpu.prediction.bound import WRITE, Work
from openkpu.prediction.cycles import NEXT
from openkpu.prediction.cycles_array import DRAIN, OUTPUT
from openkpu.prediction.cycles_model import Predicted, predict_model, predict_network
from openkpu.words import MAPS, WAYS

K210 = configs.load_config("k210")
ROOT = Path(__file__).resolve().parents[3]
RTL = json.loads((ROOT / "tb" / "device" / "model_cycles.json").read_text())
PUBLISHED = [
    "detect5_v3.kmodel",
    "face_detect_v0_16bit.model.bin",
    "face_detect_v3_8bit.kmodel",
    "face_rfb320_v4.kmodel",
    "mnist_sipeed_v3.kmodel",
    "mobilenet025_v4.kmodel",
    "yolox_nano_224_v5.kmodel",
]


def below(config: Config, found: Predicted) -> tuple[int, int]:
    """The bounds of a prediction, after the check that they do not exceed it."""
    assert [layer for run in found.runs for layer in run] == found.layers
    least, in_turn = bound.of_runs(config, found.runs)
    assert 0 < least <= in_turn <= found.cycles
    return least, in_turn


# ------------------------------------------------------------------------ by hand, a bus of 8 bytes
@pytest.mark.parametrize(
    ("run", "cycles"),
    [
        ([Work(100)], 100),
        ([Work(100, reads=801)], 101),  # weights: 100 words and a part of one
        ([Work(100, loads=400)], 100),  # half of the map's time is left over
        ([Work(100, loads=1600)], 200),
        ([Work(100, loads=800, stores=800)], 200),  # one bus for both
        ([Work(100), Work(50)], 150),
        # the first map comes before the first layer's last issue; the second layer's meanwhile
        ([Work(100, loads=1600), Work(50)], 250),
        ([Work(100), Work(50, loads=1200)], 150),
        ([Work(100), Work(50, loads=1208)], 151),
        # a map to store exists once the layers before it are done, and may leave after its layer
        ([Work(100), Work(50, stores=1600)], 300),
        ([Work(100, stores=1600), Work(50)], 200),
        ([Work(100, stores=1600), Work(50, stores=800)], 300),
        # weights of a layer arrive before its end; those of other layers do not affect it
        ([Work(10, reads=800), Work(50)], 150),
        ([Work(50), Work(10, reads=800)], 100),
    ],
)
def test_a_run(run: list[Work], cycles: int) -> None:
    assert bound.least(8, [run]) == cycles


@pytest.mark.parametrize(
    ("runs", "cycles"),
    [
        ([[Work(100)], [Work(50)]], 150),
        # the second run loads maps that the first one stores: they do not overlap
        ([[Work(100, stores=1600)], [Work(50, loads=1600)]], 400),
        ([[Work(100, loads=1600)], [Work(50, stores=1600)]], 400),
        # ... even where the bus had nothing to do before
        ([[Work(100)], [Work(50, loads=1600), Work(50)]], 350),
        ([[Work(100)], [Work(50, loads=800, stores=800)]], 300),
        # weights of the second run are read during the first one, as far as the bus is free
        ([[Work(100)], [Work(50, reads=1200)]], 150),
        ([[Work(100)], [Work(50, reads=1600)]], 200),
        ([[Work(100, stores=800)], [Work(50, reads=800)]], 200),
        ([[Work(100, loads=1600)], [Work(150, reads=800)]], 350),
    ],
)
def test_runs(runs: list[list[Work]], cycles: int) -> None:
    assert bound.least(8, runs) == cycles


@pytest.mark.parametrize(
    ("runs", "cycles"),
    [
        ([[Work(100)]], 100 + WRITE + NEXT),
        ([[Work(100), Work(50)]], 150 + 2 * (WRITE + NEXT)),
        # first the map, then the issues, which a store overlaps
        ([[Work(100, loads=1600)]], 200 + 100 + WRITE + NEXT),
        ([[Work(100, loads=1600, in_bands=True)]], 200 + NEXT),
        ([[Work(100, stores=1600)]], 200 + NEXT),
        ([[Work(100, stores=1600), Work(50)]], 200 + 50 + WRITE + 2 * NEXT),
        ([[Work(100, loads=800, stores=1600, in_bands=True)]], 300 + NEXT),
        # weights are not read before the run
        ([[Work(100)], [Work(50, reads=1600)]], 100 + WRITE + NEXT + 200),
    ],
)
def test_one_layer_at_a_time(runs: list[list[Work]], cycles: int) -> None:
    assert bound.in_turn(8, runs) == cycles


def test_the_way_of_a_word() -> None:
    """Latency of 32 cycles from an issue to its bytes, one for the word, three to the write."""
    assert (WRITE, OUTPUT, DRAIN) == (36, 32, 3)


POOL = {"pool_task": 1, "pool_kh": 2, "pool_kw": 2, "pool_sy": 2, "pool_sx": 2}


@pytest.mark.parametrize(
    ("sizes", "fields", "busy"),
    [
        # 4 groups, 8 steps of nine channels, 64 lines of 16 issues
        ((64, 64, 64, 64), {}, 4 * 8 * 64 * 16),
        # 22 pixels a line are 6 issues; 40 channels are 3 groups
        ((8, 10, 22, 40), {"kernel": 3}, 3 * 8 * 10 * 6),
        # one issue per row of the AI RAM: a line of 40 pixels, or lines of 20 of two channels
        ((8, 30, 40), {"depthwise": True, "kernel": 3}, 8 * 30),
        ((8, 30, 20), {"depthwise": True, "kernel": 3}, 8 // 2 * 30),
        # 12 x 6 x 11 elements are 88 steps of nine, for each neuron
        ((12, 6, 11, 20), {"fc": True}, 88 * 20),
    ],
)
def test_layers_on_k210(sizes: tuple, fields: dict, busy: int) -> None:
    """Issues and bytes of a layer whose maps the device moves; the bound is at least either."""
    moves = {"load_map": 1, "map_load_addr": 0x50000, "store_map": 1, "map_store_addr": 0x90000}
    arg = LayerArg.make(*sizes, **fields).replace(**({} if arg_fc(fields) else moves))
    (layer,) = cycles.predict_layers(K210, [arg]).layers
    found = bound.layer_work(layer)
    (c, h, w), (o, oh, ow) = arg.in_shape, arg.out_shape
    maps = (0, 0) if arg_fc(fields) else (c * h * w, o * oh * ow)
    weights = arg.weight_count + ACT_BYTES + BN_BYTES * o
    assert (found.busy, found.reads, found.loads, found.stores) == (busy, weights, *maps)
    words = ceil_div(weights + sum(maps), 8)
    least, in_turn = bound.of_runs(K210, [[layer]])
    assert least == max(busy, words) and least <= in_turn <= layer.cycles


def arg_fc(fields: dict) -> bool:
    """Fully connected layers move no maps here."""
    return "fc" in fields


def test_a_pooling_task() -> None:
    """Two lines of 64 columns in pieces of 16 for each line of windows; no weights, no tables."""
    arg = LayerArg(
        i_ch_num=16, i_col_high=16, i_row_wid=64, o_ch_num=16, o_col_high=8, o_row_wid=32, **POOL
    )
    (layer,) = cycles.predict_layers(K210, [arg]).layers
    found = bound.layer_work(layer)
    assert (found.busy, found.reads, found.write) == (16 * 8 * 2 * 4, 0, 16)
    assert bound.of_runs(K210, [[layer]])[1] <= layer.cycles


def test_words_of_a_list_and_what_stays() -> None:
    """The words of a list are read over the bus; in a stream weights that fit are read once."""
    (first, *_), *_ = predict_network(K210, digits.load_network()).runs
    (alone,) = cycles.predict_layers(K210, [first.shape.arg]).layers
    assert first.reads - alone.reads == 8 * WORDS
    layers = predict_network(K210, digits.load_network(), inferences=3).layers
    reads = [sum(layer.reads for layer in layers[at : at + 4]) for at in (0, 4, 8)]
    assert reads[1] == reads[2] == 4 * (8 * WORDS + ACT_BYTES) < reads[0]


# ------------------------------------------------------------------------------- never above
@pytest.mark.tier(
    nightly=[
        "?-compact",
        "?-small",
        "?-medium",
        "?-*_fp16",
        "?-*_fpga",
        "0-large",
        "1-k210",
        "2-nano",
        "3-large",
    ]
)
@pytest.mark.parametrize("name", configs.names())
@pytest.mark.parametrize("seed", range(4))
def test_random_lists(name: str, seed: int) -> None:
    """Layers of all kinds in any order; half of them load or store maps; every bus."""
    rng = np.random.default_rng(seed)
    for bus in configs.BUSES:
        config = dataclasses.replace(configs.load_config(name), ahb_width=bus)
        lacks = {"pool": not config.pool_lanes, "product": not config.out32}
        kinds = [str(kind) for kind in rng.choice([k for k in KINDS if not lacks.get(k)], 6)]
        shape = tuple(int(n) for n in rng.integers(1, 40, 3))
        try:
            network, _ = random_list(rng, kinds, shape, moves=0.5)
            found = predict_network(config, network)
        except NetworkError:
            continue
        below(config, found)
        stream = predict_network(config, network, inferences=3)
        assert bound.of_runs(config, stream.runs)[0] <= stream.cycles


@pytest.mark.parametrize("name", configs.names())
def test_networks_of_the_project(name: str) -> None:
    below(
        configs.load_config(name), predict_network(configs.load_config(name), digits.load_network())
    )


@pytest.mark.parametrize("maps", MAPS)
@pytest.mark.parametrize("via", WAYS)
def test_a_model(via: str, maps: str) -> None:
    """Runs are single layers, or sequences without CPU work between the layers."""
    file = CONTAINERS["v3"]
    found = predict_model(K210, [loads_kmodel(file)], len(file), via, maps)
    below(K210, found)
    assert found.sizes == [1, 1, 1, 1] if via == "layers" else len(found.sizes) < 4


@pytest.mark.tier(
    nightly=["face_detect_v0_16bit.model.bin-burst", "yolox_nano_224_v5.kmodel-burst"]
)
@pytest.mark.parametrize(
    "via", [pytest.param(way, marks=() if way == "burst" else pytest.mark.nightly) for way in WAYS]
)
@pytest.mark.parametrize("model", PUBLISHED)
def test_published_models(model: str, via: str) -> None:
    """In every mode; the RTL needs no fewer cycles either."""
    file = read_file(shared(f"real/{model}"))
    for maps in MAPS:
        found = predict_model(K210, [loads_kmodel(file, model)], len(file), via, maps)
        _, in_turn = below(K210, found)
        record = RTL.get(f"{model}, {via}, k210, {maps}")
        assert record is None or in_turn <= record["end to end"][0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["medium", "large"])
@pytest.mark.parametrize("model", PUBLISHED)
def test_published_models_on_others(model: str, name: str) -> None:
    file, config = read_file(shared(f"real/{model}")), configs.load_config(name)
    below(config, predict_model(config, [loads_kmodel(file, model)], len(file)))


def test_published_models_have_records() -> None:
    """The comparison above has something to compare with."""
    found = {key.partition(",")[0] for key in RTL if key.endswith("k210, dma")}
    assert found == set(PUBLISHED)
