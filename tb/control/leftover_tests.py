# SPDX-License-Identifier: Apache-2.0
"""control: what a stream leaves behind for the layers that the host pushes after it.

Run by test_control, on the same builds.
"""

import random
from itertools import product

from openkpu_tb.core.block_bench import block_test
from tb.control.fault_tests import BIAS, CODES, STORE, WEIGHT, the_error
from tb.control.neighbours import Neighbours
from tb.control.test_control import Network, begin, check_runs, layer

ENDS = ("itself", "a stop", "a reset", "an error")  # of a stream


async def streamed(n: Neighbours, end: str, count: int) -> None:
    """A stream of ``count`` inferences that ends in one of ENDS."""
    n.log.clear()
    net = Network(n, 2, 1 if end == "itself" and count == 1 else 2)
    if end == "itself":
        await net.stream(count, limit=60000)
        return
    n.pulse("host_start")
    await n.until(n.times("inf_next", count - 1), limit=60000)
    await n.until(n.times("run", 2 * count - 1))
    if end == "a stop":
        net.stop()
    elif end == "a reset":
        n.pulse("host_soft_reset")
    else:
        n.fail(BIAS, 0, n.parity)
    await n.idle()
    n.pulse("host_ack")
    n.on_inf_next = lambda: None


@block_test(begin)
async def host_layers_behind_a_stream(n: Neighbours) -> None:
    """A transfer of a host's layer counts at once, whatever ran before it and however that ended:
    there is no start in between that would put anything back."""
    for count, end in product((1, 2, 3), ENDS):
        await streamed(n, end, count)
        for chan in random.sample((BIAS, WEIGHT, STORE), 3):
            n.log.clear()
            n.silent = {"seq_done"}
            n.push(layer(), layer())
            await n.until(n.times("run", 1))
            fetched = n.kinds("fetch")[0].info
            address = n.fail(chan, fetched["idx"], fetched["inf"])
            await n.until(n.times("ev_err", 1), limit=5)
            n.silent = set()
            await n.until(lambda: not n.words)
            await n.idle()
            want = {"code": CODES[0], "layer": 0, "stream": chan, "waits": 0, "addr": address}
            assert the_error(n) == want, f"{count} inferences, ended by {end}"
            n.pulse("host_ack")
            await streamed(n, end, count)
        n.log.clear()
        layers = [layer() for _ in range(3)]
        n.push(*layers)
        await n.until(n.times("layer_done", 3))
        await n.idle()
        check_runs(n, layers)
