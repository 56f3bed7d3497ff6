# SPDX-License-Identifier: Apache-2.0
"""Predicted cycles (prediction/cycles.py): rules that hold independent of the RTL; its parts."""

import dataclasses
import itertools
import time

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS
from openkpu import configs, digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.generators.generate_lists import random_list
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.kmodel import loads_kmodel
from openkpu.layer.argument import LayerArg
from openkpu.layer.conv import needed_macs
from openkpu.layer.decoded import DWROW
from openkpu.layer.layout import Layout
from openkpu.prediction import cycles, cycles_maps, cycles_pool
from openkpu.prediction.cycles import BOUNDS, LayerCycles
from openkpu.prediction.cycles_front import Bus, Front
from openkpu.prediction.cycles_model import MapMoves, predict_model, predict_network
from openkpu.prediction.cycles_shape import Shape
from openkpu.prediction.roofline import layer_cycles
from openkpu.products.matmul import plan_matmul
from openkpu.products.matmul_lists import network_of

K210 = configs.load_config("k210")


def one(config: Config, *sizes: int, eight_bit: bool = True, **fields: int) -> LayerCycles:
    """A layer alone, started by the host."""
    arg = LayerArg.make(*sizes, eight_bit=eight_bit, **fields)
    arg = arg.replace(para_start_addr=0x100, bwsx_base_addr=0x80000, active_addr=0x90000)
    return cycles.predict_layers(config, [arg], eight_bit=eight_bit).layers[0]


@pytest.mark.parametrize("name", configs.names())
@pytest.mark.parametrize(
    ("sizes", "fields"),
    [
        ((16, 28, 28, 32), {"kernel": 3}),
        ((40, 20, 70, 24), {"kernel": 3, "pool": 1}),
        ((48, 10, 13, 60), {}),
        ((32, 30, 40), {"depthwise": True, "kernel": 3}),
        ((32, 30, 40), {"depthwise": True, "kernel": 3, "pool": 5}),
        ((12, 6, 11, 20), {"fc": True}),
        ((8, 20, 33, 9), {"kernel": 3, "pool": 8}),
    ],
)
def test_no_faster_than_the_array(name: str, sizes: tuple, fields: dict) -> None:
    """The parts add up to the cycles; issues and cycles are never below the array's minimum."""
    config = configs.load_config(name)
    found = one(config, *sizes, **fields)
    assert sum(found.parts.values()) == found.cycles
    assert min(found.parts.values()) >= 0 and found.bound in BOUNDS
    assert found.parts["array"] * config.macs >= needed_macs(found.shape.arg)
    assert found.cycles > found.parts["array"]


def test_more_work_takes_longer() -> None:
    assert one(K210, 16, 20, 20, 32, kernel=3).cycles < one(K210, 16, 20, 20, 48, kernel=3).cycles
    assert one(K210, 16, 20, 20, 32, kernel=3).cycles < one(K210, 24, 20, 20, 32, kernel=3).cycles
    assert one(K210, 16, 20, 20, 32, kernel=3).cycles < one(K210, 16, 30, 20, 32, kernel=3).cycles


def test_a_wider_bus_is_faster_where_weights_bound() -> None:
    """128 channels of a 4x4 map: the load of the weights determines the cycles."""
    found = {}
    for bus in configs.BUSES[:2]:
        config = dataclasses.replace(K210, ahb_width=bus)
        layer = one(config, 128, 4, 4, 128, kernel=3, eight_bit=False)
        assert layer.bound == "bus"
        found[bus] = layer.cycles
    assert 1.9 < found[32] / found[64] < 2.0


def test_what_bounds() -> None:
    assert one(K210, 64, 64, 64, 64, kernel=3).bound == "array"
    # few input channels: sums arrive faster than they are written
    wide = dataclasses.replace(K210, path_bytes=16)
    assert one(wide, 3, 64, 64, 64).bound == "output"
    pool = LayerArg.make(16, 32, 32, depthwise=True, kernel=3, pool=7)
    assert cycles.predict_layers(K210, [pool]).layers[0].parts["input"] > 0


def test_a_layer_behind_another_starts_sooner() -> None:
    """Words, decoder, table and weights of the second one come while the first one computes."""
    first = LayerArg.make(16, 40, 40, 32, kernel=3)
    second = first.replace(para_start_addr=20_000, active_addr=60_000, bwsx_base_addr=70_000)
    alone = cycles.predict_layers(K210, [first]).layers[0].cycles
    both = [layer.cycles for layer in cycles.predict_layers(K210, [first, second]).layers]
    # its table and batch-norm words have priority over the first one's weights
    words = (144 + 8 * 32) // K210.bus_bytes
    assert 0 < both[0] - alone < 1.2 * words and both[1] < alone
    assert alone - both[1] > 24 + 25  # a layer's words, the decoder


def test_layers_beyond_the_fifo_of_the_host() -> None:
    """Thirty layers in three bursts: all are predicted, each with the same cycles."""
    arg = LayerArg.make(8, 16, 16, 16, kernel=3)
    found = [layer.cycles for layer in cycles.predict_layers(K210, [arg] * 30).layers]
    assert len(found) == 30 and len(set(found[3:])) <= 2


def test_task_list_and_result_in_storage() -> None:
    """Pixels are read before the first layer, or while it computes, the result after the last."""
    words = 8 * 64 * 48 // 8
    for deep, most in ((True, 2 * words), (False, words + 200)):
        arg = LayerArg.make(8, 64, 48, 8, kernel=3, depthwise=deep)
        by_host = cycles.predict_layers(K210, [arg]).layers[0].cycles
        listed = cycles.predict_layers(K210, [arg], tasks=True).layers[0].cycles
        assert words < listed - by_host < most, deep


def test_maps_from_and_to_storage() -> None:
    """A layer of a list loads and stores its maps; the cycles of the others do not change."""
    arg = LayerArg.make(8, 32, 32, 8, kernel=3)
    moves = {"load_map": 1, "map_load_addr": 0x50000, "store_map": 1, "map_store_addr": 0x60000}
    plain = [layer.cycles for layer in cycles.predict_layers(K210, [arg] * 3, tasks=True).layers]
    moved = cycles.predict_layers(K210, [arg, arg.replace(**moves), arg], tasks=True).layers
    words = 8 * 32 * 32 // 8
    assert words < moved[1].cycles - plain[1] < words + 200  # it computes while the map comes
    assert moved[1].parts["bus"] > words
    for number in (0, 2):
        assert abs(moved[number].cycles - plain[number]) < 50


@pytest.mark.parametrize(
    ("c", "width", "kernel"), [(8, 64, 3), (8, 64, 1), (8, 28, 3), (40, 28, 1), (40, 14, 1)]
)
def test_a_map_comes_in_bands(c: int, width: int, kernel: int) -> None:
    """A convolution begins with the first band; neither is faster than the bus, or the array."""
    arg = LayerArg.make(c, 64, width, 32, kernel=kernel)
    alone = cycles.predict_layers(K210, [arg]).layers[0].parts["array"]
    load = {"load_map": 1, "map_load_addr": 0x50000}
    (found,) = cycles.predict_layers(K210, [arg.replace(**load)]).layers
    words = c * 64 * ceil_div(width, 8)  # a line is written in whole words of the bus
    assert max(words, alone) < found.cycles < 1.2 * max(words, alone) + 500
    whole_map = LayerArg.make(c, 64, width, depthwise=True).replace(**load)
    (whole,) = cycles.predict_layers(K210, [whole_map]).layers
    assert whole.parts["bus"] > words


def test_a_store_shares_the_bus_with_reads() -> None:
    """Bursts alternate; alone each uses every cycle."""
    bus = Bus()
    bus.store(0, 640, 640)
    assert bus.read(0, 640) == 1280 and bus.store_end == 1280
    assert bus.read(2000, 100) == 2100
    bus.store(3000, 640, 640)
    assert bus.store_end == 3640 and bus.read(3640, 10) == 3650


def test_ring_of_weights_is_waited_for() -> None:
    """A buffer that holds little more than a group: the bus rests while rows are in use."""
    little = dataclasses.replace(K210, wbuf_rows=64)
    args = (64, 8, 8, 128)
    assert one(little, *args, kernel=3).cycles > one(K210, *args, kernel=3).cycles


@pytest.mark.parametrize("name", configs.names())
def test_digits(name: str) -> None:
    """Every configuration runs the project's network, in less than a second."""
    began, config = time.monotonic(), configs.load_config(name)
    network = digits.load_network(config.ai_ram_rows)
    network.validate(config.ai_ram_rows)
    found = predict_network(config, network)
    least = sum(layer_cycles(la.shape.config, la.shape.arg) for la in found.layers)
    assert found.cycles > 0.8 * least and len(found.layers) == 4
    assert time.monotonic() - began < 10
    assert found == predict_network(config, network)


def test_elementwise_and_products() -> None:
    two = random_elementwise(np.random.default_rng(1), c=16, h=20, w=20, one=False).arg
    found = cycles.predict_layers(K210, [two]).layers[0]
    assert found.shape.mode == DWROW and found.cycles > 2 * 20 * 4  # two maps of 80 rows
    (tile,) = plan_matmul(64, 64, 64)
    zeros = np.zeros((64, 64), np.int8)
    product = predict_network(K210, network_of([tile], zeros, zeros))
    assert product.cycles > 64 * 64 * 4 // 8  # sums of 32 bits over the bus


@pytest.mark.parametrize(
    ("window", "cycles"),
    [
        ({"pool_kh": 2, "pool_kw": 2, "pool_sy": 2, "pool_sx": 2}, (8, 4, 2, 2)),
        ({"pool_kh": 4, "pool_kw": 4, "pool_sy": 4, "pool_sx": 4}, (16, 8, 4, 4)),
        ({"pool_kh": 5, "pool_kw": 5, "pool_top": 2, "pool_left": 2}, (20, 10, 5, 5)),
        ({"pool_kh": 1, "pool_kw": 1, "pool_sy": 2, "pool_sx": 2}, (8, 4, 2, 1)),
    ],
)
def test_pooling_tasks(window: dict, cycles: tuple[int, ...]) -> None:
    """The table of docs/architecture.md 14: a block of 16 columns with 1, 2, 4 and 8 lanes."""
    height = 16 // window.get("pool_sy", 1)
    arg = LayerArg(
        i_ch_num=64,
        i_col_high=16,
        i_row_wid=64,
        o_ch_num=64,
        o_col_high=height,
        o_row_wid=64 // window.get("pool_sx", 1) - (4 - 2 if "pool_top" in window else 0),
        pool_task=1,
        **window,
    )
    for lanes, each in zip((1, 2, 4, 8), cycles, strict=True):
        config = dataclasses.replace(K210, pool_lanes=lanes)
        took, _ = cycles_pool.predict_pool_task(config, arg, 0)
        pieces = 64 * height * len(cycles_pool.picks(arg, lanes))
        blocks = pieces * min(4 * lanes, 16) / 16
        assert abs(took - blocks * each) < 0.02 * took + 60
    with pytest.raises(ValueError, match="a pooling task, configuration k210 has pool_lanes = 0"):
        cycles_pool.predict_pool_task(dataclasses.replace(K210, pool_lanes=0), arg, 0)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_streams_with_pooling_tasks(length: int) -> None:
    """Kept weights begin at their first row in each inference, wherever the pools are."""
    for kinds in itertools.product(("convolution", "pool"), repeat=length):
        network, _ = random_list(np.random.default_rng(3), list(kinds), (5, 12, 20))
        layers = predict_network(K210, network, inferences=6).layers
        each = [sum(layer.cycles for layer in layers[at * length :][:length]) for at in range(6)]
        assert len(layers) == 6 * length
        assert max(each[1:]) <= each[0] and min(each) > 0


def test_stream_whose_first_layer_does_not_fit() -> None:
    """Its weights for the next inference are never all requested before its pixels arrive."""
    rng, small = np.random.default_rng(60), configs.load_config("small")
    network, _ = random_list(rng, ["fully connected"], (19, 8, 86))
    assert Shape(small, network.layers[0]).weight_rows > small.wbuf_rows
    layers = predict_network(small, network, inferences=4).layers
    assert len(layers) == 4
    bytes_read = network.layers[0].o_ch_num * 19 * 8 * 86
    assert all(layer.cycles >= bytes_read / small.bus_bytes for layer in layers)


def test_a_model_in_three_ways() -> None:
    file = CONTAINERS["v3"]
    found = {
        via: predict_model(K210, [loads_kmodel(file)], len(file), via, "window")
        for via in ("burst", "tasks")
    }
    moved = predict_model(K210, [loads_kmodel(file)], len(file))
    assert moved.host_maps == 0 and moved.cycles < found["burst"].cycles
    assert found["tasks"].host_maps == 0 < found["burst"].host_maps
    assert [len(one.layers) for one in found.values()] == [4, 4]
    with pytest.raises(ValueError, match="unknown way 'fast', expected one of burst"):
        predict_model(K210, [loads_kmodel(file)], len(file), "fast")
    with pytest.raises(ValueError, match="unknown maps 'cpu', expected one of dma, window"):
        predict_model(K210, [loads_kmodel(file)], len(file), "burst", "cpu")


# ------------------------------------------------------------------------------ parts
def test_reads_are_a_word_a_cycle() -> None:
    """In sequence; never before their request."""
    bus = Bus()
    assert [bus.read(10, 20), bus.read(0, 5), bus.read(100, 1)] == [30, 35, 101]


def test_a_map_goes_before_reads() -> None:
    """Reads use the cycles that the map leaves: a quarter of them, then all."""
    bus = Bus()
    assert bus.ahead(100, 400, 300).end == 500
    assert bus.read(50, 50) == 100 and bus.read(0, 50) == 300 and bus.read(0, 60) == 510


def test_tables_go_behind_a_map_and_before_reads() -> None:
    bus = Bus()
    bus.ahead(0, 100, 100)
    assert bus.ahead(10, 20, 20, table=True).end == 120
    assert bus.read(0, 10) == 130


def test_a_layer_takes_turns_with_its_map() -> None:
    """One for one up to the layer's last read, list words of the next layer among them; the map
    ends so much later. Then the map goes first again."""
    bus = Bus()
    load = bus.ahead(100, 300, 300, layer=0)
    assert bus.read(100, 20) == 140 and load.end == 420  # of the list
    assert bus.read(100, 30) == 200 and load.end == 450
    bus.complete = 1
    assert bus.read(200, 10) == 460 and load.end == 450


def test_a_store_waits_for_what_goes_before() -> None:
    """Loads of maps and tables have priority, where the store leaves no cycles free for them."""
    bus = Bus()
    bus.ahead(0, 100, 100)
    bus.store(0, 100, 100)
    assert bus.store_end == 200
    bus = Bus()
    bus.ahead(0, 40, 40, table=True)
    bus.store(0, 100, 60)
    assert bus.store_end == 100


def test_a_map_of_words_needs_a_read_of_each_plane() -> None:
    """Lines of 14 sums of 32 bits: sixteen reads on a path of 16 bytes, small arrays one a byte."""
    found = {}
    for name in ("small", "nano"):
        config = configs.load_config(name)
        for width in (14, 16):
            arg = LayerArg.make(1, 3, width, 100, out32=1, kernel=1, pool=0)
            leaving = cycles_maps.Leaving(Front(config, [Shape(config, arg)]), arg)
            found[name, width] = leaving.cycles
    assert found == {("small", 14): 48, ("small", 16): 48, ("nano", 14): 168, ("nano", 16): 192}


def test_a_long_word_after_a_short_one() -> None:
    """fc_flatten: lines of 82 bytes in words of 64, eight and two cycles of work, need twelve."""
    taken = {}
    for lines in (20, 40):
        found = one(K210, 18, lines, 82, 6, fc=True)
        taken[lines] = found.parts["input"] + found.parts["array"]
    assert abs(taken[40] - taken[20] - 6 * 18 * 20 * 12) < 0.01 * taken[20]


def test_what_was_read_too_early_is_late_afterwards() -> None:
    """A map that was requested in the past: later reads wait for the words that it moved."""
    bus = Bus()
    bus.read(0, 1000)
    assert bus.ahead(900, 100, 100).end == 1000
    assert bus.read(0, 10) == 1110


@pytest.mark.parametrize(
    ("layout", "accesses"),
    [
        (Layout(2, 3, 64), 2 * 3 * 16),  # lines that fill their rows are one block
        (Layout(2, 3, 20), 2 * 3 * 5),
        (Layout(2, 3, 7), 2 * 3 * (1 + 1 + 1)),  # a word, a half-word, a byte
        (Layout(1, 1, 1), 1),
    ],
)
def test_maps_by_the_host(layout: Layout, accesses: int) -> None:
    assert cycles_maps.host_moves(layout) == 2 * accesses + 1


def test_stripes_cover_the_grid() -> None:
    """Every pixel once; twice only where windows of stride 1 overlap."""
    for sizes, fields in [
        ((3, 37, 100, 8), {}),
        ((3, 37, 23, 8), {"kernel": 3}),
        ((3, 9, 9, 2), {}),
    ]:
        shape = Shape(K210, LayerArg.make(*sizes, **fields))
        covered = sum(stripe.width * stripe.lines for stripe in shape.stripes)
        assert covered == shape.on.kw * shape.on.kh
    lapped = Shape(K210, LayerArg.make(3, 20, 40, 8, pool=9))
    assert sum(s.width * s.lines for s in lapped.stripes) > 20 * 40


def test_single_bytes_by_the_host() -> None:
    """A layer of the segment makes a part of a map: the host moves the other bytes one by one, two
    cycles each (docs/architecture.md 15.10); bytes that are there are not moved again."""
    made = LayerArg.make(4, 8, 16, 4, dst=8)  # rows 8 to 15
    joined = LayerArg.make(12, 8, 16, 4, src=8, dst=64)  # rows 8 to 31: a third is its own
    moves = MapMoves()
    moves.bring_up([made, joined])
    assert moves.cycles == cycles_maps.host_moves(made.in_layout) + 2 * 8 * 8 * 16 + 1
    before = moves.cycles
    moves.bring_up([made, joined])
    assert moves.cycles == before
