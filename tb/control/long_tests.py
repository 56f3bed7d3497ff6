# SPDX-License-Identifier: Apache-2.0
"""control: a list of more layers than half of what AI_LIST_LEN counts to.

Run by test_control, on the same builds.
"""

import random

from openkpu.layer.argument import LayerArg
from openkpu_tb.core.block_bench import block_test
from tb.control.test_control import Neighbours, Network, begin, check_prefetch, layer

COUNT = 530  # layers
FAR = 2000  # rows: no layer's maps lie there but those of the first and the last user
TOUCHED = (3, 514, 528)  # layers after the first that write where the input map lies


def long_list() -> list[LayerArg]:
    """Small layers; the input map's place is used again late."""
    layers = []
    for index in range(COUNT):
        arg = layer().replace(image_dst_addr=random.randrange(500, 900))
        if index == 0:
            arg = arg.replace(image_src_addr=FAR)
        if index in TOUCHED:
            arg = arg.replace(image_dst_addr=FAR)
        assert not arg.device_code()
        layers.append(arg)
    return layers


@block_test(begin)
async def long_stream(n: Neighbours) -> None:
    """Two inferences: every layer runs in its turn, with its index; the next image is written when
    the last layer that uses its place is done, and not only when the inference is over."""
    net = Network(n, COUNT, 2, long_list())

    def advance() -> None:
        net.advance()
        net.stop()

    def slower() -> None:
        n.array_time = 900 if int(n.dut.status_layer.value) >= TOUCHED[1] else 30

    n.on_inf_next, n.watch = advance, slower
    n.pulse("host_start")
    await n.steps(10)
    await n.until(lambda: not int(n.dut.status_busy.value), limit=400_000)
    await n.idle()
    net.check(2)
    assert check_prefetch(net, 2) == 1, "the next image could come while layers run"
