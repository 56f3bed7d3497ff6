# SPDX-License-Identifier: Apache-2.0
"""C1 two modes, C2 three streams, C3 middle layers stay on chip."""

from itertools import pairwise

import numpy as np

from openkpu.layer.layout import Layout
from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.recording import FLAGS, READS, Recording, word_addresses
from openkpu_tb.device.device import Device
from tb.device.checked import checked


@checked()
async def c1_both_modes(device: Device) -> None:
    """Bus beats of both modes: whose data are read when, and what is written."""
    case = networks.small_case(2)
    single = (await recorder.one_by_one(device, case)).exact()
    assert set(single.trace.mode) == {1} and len(single.trace.at("start")) == 2
    for area in READS:  # nothing is read ahead
        for number, cycles in enumerate(single.reads(area)):
            assert single.starts[number] < cycles[0] and cycles[-1] < single.ends[number], area
    idle = slice(single.ends[0] + 1, single.starts[1])
    assert idle.stop - idle.start > recorder.GAP and not single.trace.data_phase[idle].any()
    stores_last_map_only(single)

    for run in (await recorder.run_small(device), await recorder.large(device)):
        stores_last_map_only(run)
        for now, after in pairwise(range(run.count)):
            own = [run.reads(area)[now] for area in READS if run.reads(area)[now].size]
            ahead = [run.reads(area)[after] for area in ("biases", "pixels")]
            if not run.kept:
                ahead.append(run.reads("weights")[after])
            last = max(cycles[-1] for cycles in own)
            for cycles in ahead:
                assert last < cycles[0] < run.ends[now], (
                    f"next data at {cycles[0]}, own until {last}, inference until {run.ends[now]}"
                )


def stores_last_map_only(run: Recording) -> None:
    """Each inference writes its result once, after its last layer was computed; nothing else."""
    size = run.results.shape[1]
    writes = np.nonzero((run.trace.beat == 1) & (run.trace.write == 1))[0]
    assert writes.tolist() == run.beats("results").tolist(), "writes beside the results"
    begin = 0
    for number, start in enumerate(run.storage.results[: run.count]):
        mine = writes[(writes > begin) & (writes <= run.ends[number])]
        found = run.trace.beat_addr[mine] // 4 * 4
        steps = [a for i, a in enumerate(found) if i == 0 or found[i - 1] != a]
        assert steps == word_addresses(start, size), (
            f"result {number} is not written once, in order"
        )
        computed = run.within("write_back", run.computing(number, run.layers - 1))
        assert mine[0] > computed[-1], "written before it was computed"
        begin = int(run.ends[number])
    assert not (writes > begin).any()


@checked()
async def c2_three_streams(device: Device) -> None:
    """Every word that is read goes into the FIFO of its area and no other, whatever the order."""
    for run in (
        await recorder.run_small(device),
        await recorder.large(device),
        await disturbed(device),
    ):
        trace = run.trace
        for area in READS:
            assert run.beats(area).size, f"nothing was read: {area}"
            pushed = trace.at(f"{FLAGS[area]}_in") - 1  # the word arrives a cycle after its beat
            assert pushed.tolist() == run.beats(area).tolist(), f"FIFO of {area}: other words"
            assert getattr(trace, f"{FLAGS[area]}_out").sum() == pushed.size, f"{area}: words lost"
        together = np.sum([getattr(trace, f"{name}_in") for name in FLAGS.values()], axis=0)
        assert together.max() == 1
        # streams are mixed on the bus, so that it takes a distributor to keep them apart
        owner = np.concatenate([np.full(run.beats(a).size, i) for i, a in enumerate(READS)])
        order = np.argsort(np.concatenate([run.beats(a) for a in READS]))
        changes = int((np.diff(owner[order]) != 0).sum())
        assert changes > 8 * run.count, f"only {changes} changes of stream"


async def disturbed(device: Device) -> Recording:
    """One inference with wait states, lost grants, RETRY and SPLIT."""
    tb = device.tb
    tb.cfg_wait_prob.value, tb.cfg_loss_prob.value = 50, 30
    tb.cfg_retry_prob.value, tb.cfg_split_prob.value = 12, 8
    try:
        run = (await recorder.stream(device, networks.small_case(1))).exact()
    finally:
        for name in ("wait", "loss", "retry", "split"):
            getattr(tb, f"cfg_{name}_prob").value = 0
    assert int(tb.refusals.value) and int(tb.losses.value), "the bus was not disturbed"
    return run


@checked()
async def c3_middle_layers_stay_on_chip(device: Device) -> None:
    """No beat outside the areas; a layer reads the rows that the one before wrote, and after it."""
    for run in (await recorder.run_small(device), await recorder.convolutions(device)):
        trace = run.trace
        known = sum(run.beats(area).size for area in run.areas)
        assert known == int(trace.beat.sum()), f"{int(trace.beat.sum()) - known} other beats"
        assert not trace.beats(*run.areas["results"]).size, "a result was read back"
        stores_last_map_only(run)
        assert run.layers >= 3
        for number in range(run.count):
            rows = set(run.input_rows().tolist())
            ready = 0
            for index, arg in enumerate(run.network.layers):
                span = run.computing(number, index)
                fills, stores = run.within("fill", span), run.within("write_back", span)
                assert set(trace.read_row[fills]) == rows, f"layer {index} reads other rows"
                assert fills[0] > ready, f"layer {index} reads before its input is written"
                rows = set(trace.write_row[stores].tolist())
                layout = Layout(*arg.out_shape, base=arg.image_dst_addr)
                assert rows == set(range(layout.base, layout.base + layout.rows))
                ready = stores[-1]
            sent = run.within("result_read", (ready, run.ends[number]))
            assert set(trace.read_row[sent]) == rows, "the result is not the last layer's map"
