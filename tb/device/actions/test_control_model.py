# SPDX-License-Identifier: Apache-2.0
"""control_model: histories that must be found, and answers and results that none may explain."""

import pytest

from openkpu_tb.core.registers import AI, Ctrl, Err
from tb.device.actions.control_model import FIFO_CTRL, Histories, State

pytestmark = pytest.mark.fixed  # the same with every seed

LIST, STRIDE = 0x100, 0x20
REGISTERS = {
    "AI_LIST_ADR": LIST,
    "AI_LIST_LEN": 1,
    "AI_PIX_ADR": 0x1000,
    "AI_NPIX_ADR": 0x2000,
    "AI_PIX_STRIDE": STRIDE,
    "AI_RES_ADR": 0x8000,
    "AI_RES_STRIDE": 0x40,
    "AI_CNN_MODE": 2,
    "AI_INF_LEFT": 2,
}


def stream(bad: tuple[int, ...] = (), left: int = 2) -> Histories:
    """A stream that was started."""
    histories = Histories(bad, {9: int(Err.BAD_POOL)})
    for name, value in {**REGISTERS, "AI_INF_LEFT": left}.items():
        histories.wrote(AI[name], value)
    histories.wrote(AI["AI_CTRL"], Ctrl.START)
    return histories


def write(histories: Histories, name: str, value: int) -> None:
    histories.wrote(AI[name], value)


def ends(histories: Histories) -> set[tuple[tuple[int, int], ...]]:
    """(image, result) of every inference, in all histories that are over."""
    over = {s for s in histories.closed() if not s.occupied}
    return {tuple(work[1:] for work, _ in s.inferences) for s in over}


def test_plain_stream_has_one_end() -> None:
    three = ((0x1000, 0x8000), (0x2000, 0x8040), (0x2020, 0x8080))
    histories = stream()
    assert ends(histories) == {three}
    assert histories.read(AI["AI_STATUS"], 0)
    assert histories.read(AI["AI_INF_LEFT"], 0) and histories.read(AI["AI_CNN_MODE"], 1)
    assert not histories.read(AI["AI_PIX_ADR"], 0x2000), "the last image is another one"
    assert not histories.read(AI["AI_ERR_CODE"], Err.BUS_ERROR), "an error without a cause"


def test_image_on_the_fly_counts_once() -> None:
    """The written image is the second or the third, or comes too late; never two of them."""
    histories = stream()
    write(histories, "AI_NPIX_ADR", 0x3000)
    images = {tuple(image for image, _ in end) for end in ends(histories)}
    assert images == {
        (0x1000, 0x3000, 0x3020),
        (0x1000, 0x2000, 0x3000),
        (0x1000, 0x2000, 0x2020),
    }
    # two left after the write: it named the next image, or the one after that
    assert histories.read(AI["AI_INF_LEFT"], 2)
    images = {tuple(image for image, _ in end) for end in ends(histories)}
    assert images == {(0x1000, 0x3000, 0x3020), (0x1000, 0x2000, 0x3000)}


def test_start_behind_a_reset_is_not_lost() -> None:
    histories = stream(left=0)
    write(histories, "AI_CTRL", Ctrl.SOFT_RESET)
    write(histories, "AI_CTRL", Ctrl.START)
    assert not histories.read(AI["AI_STATUS"], 2), "START_BUSY is no answer here"
    assert all(s.inferences[-1][1] for s in histories.closed() if not s.occupied)
    assert {len(s.inferences) for s in histories.closed() if not s.occupied} == {2}


def test_bad_image_ends_the_stream_with_an_error() -> None:
    histories = stream(bad=(0x2000,))
    assert ends(histories) == {((0x1000, 0x8000),)}
    assert histories.read(AI["AI_STATUS"], 2)
    assert not histories.read(AI["AI_ERR_CODE"], 0), "the error is not reported"
    assert histories.read(AI["AI_ERR_CODE"], Err.BUS_ERROR)


def push(histories: Histories, number: int) -> None:
    for word in range(12):
        histories.pushed_word(number if word == 11 else None)


@pytest.mark.parametrize("flush", [False, True])
def test_only_a_flush_loses_layers(flush: bool) -> None:
    """Without one all run; with one the first ones, in order."""
    histories = Histories()
    for number in range(3):
        push(histories, number)
    if flush:
        histories.wrote(FIFO_CTRL, 0)
        histories.wrote(FIFO_CTRL, 31)
    ran = {tuple(n for n, _ in s.layers) for s in histories.closed() if not s.occupied}
    assert ran == ({(), (0,), (0, 1), (0, 1, 2)} if flush else {(0, 1, 2)})


def test_dropped_words_occupy_the_device() -> None:
    """For some cycles: a result address that is no multiple of the bus word is refused, or not."""
    for code, held in ((Err.BAD_CONFIG, 0x200A0), (0, 0x20002)):
        histories = Histories()
        write(histories, "AI_RES_ADR", 0x200A0)
        histories.pushed_word(None)
        histories.wrote(FIFO_CTRL, 0)
        histories.wrote(FIFO_CTRL, 31)
        write(histories, "AI_RES_ADR", 0x20002)
        assert histories.read(AI["AI_ERR_CODE"], code)
        assert histories.read(AI["AI_RES_ADR"], held)
        assert histories.read(AI["AI_STATUS"], 2 * bool(code)), "idle soon"


def test_refused_layer() -> None:
    """Layers before it run; layers behind it do not, until the host acknowledges the error."""
    histories = Histories(bad_layers={9: int(Err.BAD_POOL)})
    for number in (0, 9, 1):
        push(histories, number)
    over = {s for s in histories.closed() if not s.occupied}
    assert over and all(s.layers == ((0, True),) and s.err == Err.BAD_POOL for s in over)
    assert histories.read(AI["AI_ERR_CODE"], Err.BAD_POOL)
    histories.wrote(AI["AI_ERR_CODE"], 0)
    push(histories, 2)
    rest = (s for s in histories.closed() if not s.occupied and not s.acked)
    assert {tuple(n for n, _ in s.layers) for s in rest} == {(0, 2), (0, 1, 2)}
    assert State() not in histories.states


def test_a_start_that_meets_a_refusal() -> None:
    """Both in one cycle: the layer's error is kept, the start is refused all the same."""
    for code in (Err.BAD_POOL, Err.START_BUSY):
        histories = Histories(bad_layers={9: int(Err.BAD_POOL)})
        for name, value in REGISTERS.items():
            write(histories, name, value)
        histories.pushed_word(9)
        assert histories.read(AI["AI_STATUS"], 1)
        write(histories, "AI_CTRL", int(Ctrl.START))
        assert not histories.read(AI["AI_ERR_CODE"], Err.BUS_ERROR), "an error without a cause"
        assert histories.read(AI["AI_ERR_CODE"], code)
        assert ends(histories) == {()}, "the start ran"


def test_a_closed_window_may_end_a_run() -> None:
    """From then on reads may fail: the present inference may be cut off, no later one runs."""
    histories = stream()
    write(histories, "AI_READ_LAST", 0)
    over = {s for s in histories.closed() if not s.occupied}
    assert {(s.err, len(s.inferences)) for s in over} == {
        (int(Err.BAD_ACCESS), n) for n in (1, 2, 3)
    } | {(0, 3)}
    assert all(s.inferences[-1][1] == (not s.err) for s in over)
    assert histories.read(AI["AI_ERR_CODE"], Err.BAD_ACCESS)
    assert not histories.read(AI["AI_ERR_CODE"], 0)


def test_a_device_is_busy_until_all_is_dropped() -> None:
    """Behind an error a start, or an address, may still be refused; not once it was seen idle."""
    histories = stream(bad=(0x1000,))
    assert histories.read(AI["AI_STATUS"], 3)
    write(histories, "AI_RES_ADR", 0x8001)
    assert {s.res for s in histories.states} == {0x8000, 0x8001}
    histories = stream(bad=(0x1000,))
    assert histories.read(AI["AI_STATUS"], 2)
    write(histories, "AI_RES_ADR", 0x8001)
    assert {s.res for s in histories.states} == {0x8001}


def test_a_bad_list_ends_every_run() -> None:
    """No inference of it is over, whatever else is bad."""
    histories = Histories((0x1000,), {}, (LIST,))
    for name, value in REGISTERS.items():
        histories.wrote(AI[name], value)
    histories.wrote(AI["AI_CTRL"], Ctrl.START)
    over = {s for s in histories.closed() if not s.occupied}
    assert {(s.err, s.inferences[0][1]) for s in over} == {(int(Err.BUS_ERROR), False)}


def test_a_mode_of_a_cycle_may_end_a_stream() -> None:
    """AI_CNN_MODE 1, and 2 again at once: the run has ended in between, or goes on."""
    histories = stream()
    write(histories, "AI_CNN_MODE", 1)
    write(histories, "AI_CNN_MODE", 2)
    assert {len(end) for end in ends(histories)} == {1, 2, 3}
    assert histories.read(AI["AI_STATUS"], 1), "what was fetched ahead is being dropped"
    assert histories.read(AI["AI_STATUS"], 0) and histories.read(AI["AI_INF_LEFT"], 2)
    assert {len(s.inferences) for s in histories.states} == {1}
