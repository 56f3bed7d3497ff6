# SPDX-License-Identifier: Apache-2.0
"""control in certain cycles: the end of a layer, a refusal."""

from openkpu_tb.core.block_bench import block_test
from tb.control.move_tests import mover
from tb.control.neighbours import Neighbours
from tb.control.test_control import bad_layer, begin

OFTEN = 12


@block_test(begin)
async def a_map_that_has_left(n: Neighbours) -> None:
    """A layer whose map left before it was computed ends as long after the array, whatever the
    number of cycles between."""
    seen: set[int] = set()
    for apart in range(OFTEN):
        n.log.clear()
        idle: list[int] = []

        def watch(idle: list[int] = idle) -> None:
            if n.kinds("run") and not n.running and not idle:
                idle.append(n.cycle)

        n.watch = watch
        n.silent = {"seq_done"}
        n.push(mover("vector", store_map=1))
        await n.until(n.times("unload_done", 1))
        await n.steps(apart)
        n.silent = set()
        await n.until(n.times("layer_done", 1))
        seen.add(n.kinds("layer_done")[0].cycle - idle[0])
        await n.idle()
    assert len(seen) == 1, f"a layer ends {sorted(seen)} cycles after the array"


@block_test(begin)
async def busy_until_refused(n: Neighbours) -> None:
    """A refused layer keeps the device busy up to the error, without a cycle of rest."""
    for _ in range(OFTEN):
        n.log.clear()
        rests: list[int] = []

        def watch(rests: list[int] = rests) -> None:
            if not int(n.dut.status_busy.value):
                rests.append(n.cycle)

        layer, _ = bad_layer()
        n.push(layer)
        await n.until(lambda: len(n.words) < 12)
        n.watch = watch
        await n.until(n.times("ev_err", 1))
        assert not rests, f"at rest in cycle {rests[0]}, refused in {n.kinds('ev_err')[0].cycle}"
        n.watch = lambda: None
        await n.until(lambda: not n.words)
        n.pulse("host_ack")
        await n.idle()
