# SPDX-License-Identifier: Apache-2.0
"""C4 the DMAC's parts and its order of reads, C5 the stage of the fully connected layers."""

from itertools import pairwise

import numpy as np

from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.recorder import option
from openkpu_tb.claims.recording import FLAGS, Recording
from openkpu_tb.device.device import Device
from tb.device.checked import checked

DEPTHS = {"weight": "WGT_FIFO_DEPTH", "bias": "BIAS_FIFO_DEPTH", "pixel": "PIX_FIFO_DEPTH"}


@checked()
async def c4_distributor_fifos_and_read_order(device: Device) -> None:
    """Full flags against the words in the FIFOs, each FIFO full by itself, order of the reads."""
    for run in (await recorder.large(device), await recorder.run_small(device)):
        fifos_are_sound(run)
    # a FIFO that is full stops its own stream and no other
    small = await recorder.run_small(device)
    assert goes_on(small, "pixel", "list"), "no word of the list while the pixel FIFO is full"

    tail = (await recorder.stream(device, networks.tail(2))).exact()
    for run in (await recorder.large(device), tail):
        for now, after in pairwise(range(run.count)):
            own = max(run.reads(area)[now][-1] for area in ("biases", "weights"))
            for area in ("biases", "weights"):
                ahead = run.reads(area)[after]
                assert own < ahead[0], f"next {area} at {ahead[0]}, own reads until {own}"
                assert ahead[0] < run.reads("pixels")[after][0], f"pixels before the first {area}"


@checked()
async def full_fifos(device: Device) -> None:
    """The other half of C4: weight and bias FIFO full, each alone and both; neither stops the
    other's words."""
    jam = (await recorder.stream(device, networks.jam(2))).exact()
    fifos_are_sound(jam)
    weight, bias = jam.trace.weight_full == 1, jam.trace.bias_full == 1
    seen = {(int(w), int(b)) for w, b in zip(weight, bias, strict=True)}
    assert seen == {(0, 0), (0, 1), (1, 0), (1, 1)}, f"full flags (weight, bias) seen: {seen}"
    for full, other in (("weight", "bias"), ("bias", "weight")):
        assert goes_on(jam, full, other), f"no word for {other} while the {full} FIFO is full"


def fifos_are_sound(run: Recording) -> None:
    """Each of them, and the flag of two."""
    both = run.trace.weight_full & run.trace.bias_full
    assert (run.trace.wb_fifo_full == both).all(), "WB_FIFO_FULL is not the AND of the two flags"
    for name in DEPTHS:
        fifo_is_sound(run, name)


def fifo_is_sound(run: Recording, name: str) -> None:
    """Never more words than places, the flag says what it should, every word leaves."""
    words_in = getattr(run.trace, f"{name}_in")
    words_out = getattr(run.trace, f"{name}_out")
    held = np.cumsum(words_in) - np.cumsum(words_out)
    before = np.concatenate([[0], held[:-1]])  # a word is there from the next cycle on
    depth = option(DEPTHS[name], 0)
    assert words_in.any() and held[-1] == 0, f"{name}: {held[-1]} words left behind"
    assert before.min() >= 0 and before.max() <= depth, f"{name}: {before.max()} words of {depth}"
    burst = min(16, 1 << (depth // 2).bit_length() - 1)
    full = (before > depth - burst).astype(int)
    wrong = np.nonzero(full != getattr(run.trace, f"{name}_full"))[0]
    assert not wrong.size, f"{name}: full flag wrong in {wrong.size} cycles, first {wrong[0]}"


def goes_on(run: Recording, full: str, other: str) -> bool:
    """Words come into one FIFO while another one has been full for as long as reads may last."""
    flag = getattr(run.trace, f"{full}_full")
    steady = np.convolve(flag, np.ones(24), "full")[: flag.size] >= 24
    return bool((steady & (getattr(run.trace, f"{other}_in") == 1)).any())


@checked()
async def c5_pixels_from_the_fc_stage_on(device: Device) -> None:
    """Reads before and after FC_layer: weights that stay, weights that do not, no FC layer."""
    small, large = await recorder.run_small(device), await recorder.large(device)
    for run in (small, large):
        for now, after in pairwise(range(run.count)):
            # from its first layer on: at its start the flag may still be that of the one before
            reached = run.within("fc_reached", (run.computing(now, 0)[0], run.ends[now]))
            pixels = run.reads("pixels")[after]
            assert reached.size and reached[-1] == run.ends[now]
            assert reached[0] < pixels[0] < run.ends[now], (
                f"pixels at {pixels[0]}, FC at {reached[0]}, end at {run.ends[now]}"
            )
            before = [
                tables_read(run, [a for a in run.network.layers if a.fc], now),
                tables_read(run, run.network.layers[:1], after),
            ]
            for cycles in before:
                assert cycles.size and cycles[0] < pixels[0], "pixels before weights and biases"
            assert before[0][-1] < pixels[0], "pixels before the last FC weights and biases"
    # weights that stay are read once in the stream, others by every inference
    assert small.kept and small.counters["inf_kept"] == small.count - 1
    assert not small.reads("weights")[1].size and small.reads("weights")[0].size
    assert not large.kept and large.counters["inf_kept"] == 0
    assert large.reads("weights")[1].size == large.reads("weights")[0].size

    convolutions = await recorder.convolutions(device)
    assert not convolutions.trace.fc_reached.any()
    for run in (small, large, convolutions):
        for now, after in pairwise(range(run.count)):
            free = run.place_free(now)
            window = free, int(run.trace.at("run_start")[after * run.layers])
            wrote = run.within("pixel_write", (run.starts[now] + 1, window[1]))
            # the inference's own map may still come when its first layer has begun
            wrote = wrote[wrote > run.reads("pixels")[after][0]]
            assert wrote.size and wrote[0] > free, f"pixels written at {wrote[0]}, used to {free}"
            assert set(run.trace.write_row[wrote]) == set(run.input_rows().tolist())
            if run is convolutions:
                first = run.reads("pixels")[after][0]
                assert free < first < run.ends[now], f"pixels at {first}, place free at {free}"
    # until there is room they wait in the pixel FIFO
    assert small.trace.pixel_full.any() and FLAGS["pixels"] == "pixel"


def tables_read(run: Recording, layers: list, number: int) -> np.ndarray:
    """Cycles in which an inference reads the weights and biases of some layers."""
    first = number == 0
    areas = ("biases", "weights")
    return run.read_of([t for a in layers for n in areas for t in run.table(a, n, first)], number)
