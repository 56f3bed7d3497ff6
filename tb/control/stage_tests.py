# SPDX-License-Identifier: Apache-2.0
"""control: AI_STATUS.fc_layer, and pixels that take turns with weights (docs/architecture.md 3).

Run by test_control, on the same builds.
"""

import random

from openkpu.layer.argument import LayerArg
from openkpu_tb.core.block_bench import block_test
from tb.control.move_tests import mover
from tb.control.neighbours import Neighbours
from tb.control.test_control import Network, begin, layer, network_layers

SETTLED = 3  # cycles from an event to what the status says of it
TURNS = 63  # cycles in which pixels take turns, from the last one that lacks weights


class Stage:
    """Compares fc_layer with the events in every cycle; ``seen`` counts cycles of both kinds."""

    def __init__(self, n: Neighbours, layers: list[LayerArg], *, of_list: bool) -> None:
        """``of_list``: the stage lasts to the end of the inference, else while the array works."""
        self.n, self.layers, self.of_list, self.seen = n, layers, of_list, [0, 0]
        self.edge = self.events = self.ran = self.stage = 0
        n.watch = self

    def __call__(self) -> None:
        n, before = self.n, self.stage
        for event in n.log[self.events :]:
            if event.kind == "run":
                dense = self.layers[self.ran % len(self.layers)].fc
                self.ran += 1
                self.stage |= dense
            elif event.kind == "ev_inf_done":
                self.stage = 0
        self.events = len(n.log)
        self.stage &= int(self.of_list or n.running)
        if self.stage != before:
            self.edge = n.cycle
        if n.cycle > self.edge + SETTLED:
            assert int(n.dut.status_fc_layer.value) == self.stage
            self.seen[self.stage] += 1


@block_test(begin)
async def fully_connected_stage(n: Neighbours) -> None:
    """In a list, from the first such layer to the end of the inference; of the host's, while
    one runs."""
    for mode in (1, 2):
        n.log.clear()
        n.array_time = 60
        # behind a fully connected layer another one that is none
        layers = [*network_layers(4, 2), layer()]
        layers[-1] = layers[-1].replace(image_src_addr=3000, image_dst_addr=3400)
        net = Network(n, len(layers), mode, layers)
        watch = Stage(n, layers, of_list=True)
        await (net.stream(3, limit=40000) if mode == 2 else net.once())
        assert min(watch.seen) > 50, "both stages last for a while"
    n.log.clear()
    dense = LayerArg.make(3, 4, 5, 6, fc=True)
    layers = [layer(), dense, layer(), dense, dense, layer()]
    watch = Stage(n, layers, of_list=False)
    n.push(*layers)
    await n.until(n.times("layer_done", len(layers)))
    await n.idle()
    assert min(watch.seen) > 50, "both stages last for a while"


@block_test(begin)
async def pixels_take_turns(n: Neighbours) -> None:
    """63 cycles from the last one in which a layer lacks weights, of a map that comes in bands."""
    dut = n.dut
    for lacks in (1, 5, 90):
        n.log.clear()
        n.array_time = 2000
        image = mover("narrow")
        while image.i_col_high < 16:  # several bands
            image = mover("narrow")
        net = Network(n, 1, 1, [image])
        shared: list[int] = []
        n.watch = lambda shared=shared: shared.append(int(dut.pixel_share.value))
        dut.starves.value = 1  # counts while the layer runs
        n.pulse("host_start")
        await n.until(n.times("load_band", 1))
        assert not any(shared), "nothing lacks weights before the layer runs"
        n.silent.add("load_done")  # the other bands
        dut.starves.value = 0
        await n.until(n.times("run", 1))
        await n.steps(random.randint(5, 40))
        assert not any(shared), "the layer has weights"
        dut.starves.value = 1
        await n.steps(lacks)
        dut.starves.value = 0
        await n.steps(3 * TURNS)
        turns = "".join(map(str, shared)).strip("0")
        assert set(turns) == {"1"}, f"{turns}: one time of taking turns"
        assert len(turns) == lacks + TURNS - 1, f"{len(turns)} cycles after {lacks}"
        n.silent.discard("load_done")
        await n.until(n.times("ev_inf_done", 1))
        await n.idle()
        net.check(1)
