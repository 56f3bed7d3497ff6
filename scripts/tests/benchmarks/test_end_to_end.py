# SPDX-License-Identifier: Apache-2.0
"""End-to-end figures: parts that add up, and a reason where there is no figure."""

import dataclasses

import numpy as np
import pytest

from openkpu import configs
from openkpu.kmodel.program import KpuLayer
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import MAXIMUM, words_read
from openkpu.prediction.cycles import LayerCycles
from openkpu.prediction.cycles_shape import Shape
from openkpu_tools.commands.end_to_end import BY_HOST, CLOCK, EndToEnd, unmeasured
from openkpu_tools.commands.model_table import Layer, Table
from openkpu_tools.commands.predict import roofline_of


def test_parts_add_up() -> None:
    one = EndToEnd(cycles=1000, layers=300, host_maps=650, what=BY_HOST, clock=CLOCK)
    assert one.parts == {"layers": 300, "host_maps": 650, "other": 50}
    content = one.report(200)
    assert sum(content["parts"].values()) == content["cycles"] == 1000
    assert content["shares"] == {"layers": 0.3, "host_maps": 0.65, "other": 0.05}
    assert (content["roofline_cycles"], content["efficiency"]) == (200, 0.2)
    assert content["what"] == BY_HOST and content["clock"] == CLOCK
    text = "\n".join(one.lines(200))
    for words in (BY_HOST, "layers 30.0 %", "host 65.0 %", "interrupts 5.0 %", "20.0 %"):
        assert words in text


@pytest.mark.parametrize("change", [{"layers": 351}, {"host_maps": 701}, {"host_maps": -1}])
def test_parts_are_no_more_than_the_whole(change: dict[str, int]) -> None:
    good = EndToEnd(cycles=1000, layers=300, host_maps=650, what="", clock="")
    with pytest.raises(ValueError, match="in 1000"):
        dataclasses.replace(good, **change)


def test_no_figure() -> None:
    assert unmeasured("because") == {"cycles": None, "why": "because"}


def test_roofline_has_the_reads_of_pooling_tasks() -> None:
    """As in a prediction: while a pooling task reads its map, the array rests."""
    config = configs.load_config("k210")
    arg = pool_layer((8, 12, 40), MAXIMUM, (1, 1), (2, 2))
    weights, none = np.zeros(0, np.uint8), np.zeros(0, np.uint64)
    op = KpuLayer(offset=0, arg=arg, eight_bit=True, weights=weights, bn=none, act=none)
    table = Table(config)
    counts = dict.fromkeys(("macs", "macs_gated", "mismatching_bytes"), 0)
    table.add("", Layer(0, op, {}), 0, {**counts, "counters": None})
    reads = words_read(arg)
    assert table.figures()["model_roofline_cycles"] == table.whole == reads > 0
    assert roofline_of([LayerCycles(Shape(config, arg), cycles=1, parts={})]) == reads
