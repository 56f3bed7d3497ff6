# SPDX-License-Identifier: Apache-2.0
"""End-to-end figures: parts that add up, and a reason where there is no figure."""

import dataclasses

import pytest
from openkpu.scripts.end_to_end import BY_HOST, CLOCK, EndToEnd, unmeasured


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
