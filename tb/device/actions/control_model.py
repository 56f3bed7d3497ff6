# SPDX-License-Identifier: Apache-2.0
"""Model of the device under a host that acts at any time: every history that fits the observations.

A ``State`` is one possibility: registers, running work, finished work. The bus does not show when
the device latches the address of the next image, completes an inference or accepts a layer, so the
model tracks a set of states. ``closed`` adds the states that the device may have reached without
the host; a write changes every state; a read drops the states that would have answered with another
value. If the set becomes empty, no history explains the answer. The last step keeps only states
whose results match the memories: an inference or a layer that is neither exact nor reported as lost
matches no state.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from openkpu.layer.argument import WORDS
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI, FIFO_THRESHOLD, INTERRUPT_CLEAR, Ctrl, Err
from openkpu_tb.device.write_rules import Rule, rule
from openkpu_tb.device.write_rules import State as Doing

FIFO_CTRL = FIFO_THRESHOLD + 0x10
CFG_FIFO = 4  # fifo_ctrl: the layer FIFO keeps what it has
BUS = 4  # bytes of a bus word of the build
Work = tuple[int, int, int]  # list, pixels, result


@dataclass(frozen=True)
class State:
    """One possible state of the device; layers have the bench's numbers."""

    # registers
    pix: int = 0
    npix: int = 0
    res: int = 0
    left: int = 0
    mode: int = 0
    pix_stride: int = 0
    res_stride: int = 0
    list: int = 0
    length: int = 0
    err: int = 0
    # an inference or a layer of the host has completed: AI_CNN_DONE, AI_INT_STATUS.done, calc_done
    done: bool = False
    int_done: bool = False
    calc: bool = False
    # a list run: the inference at work; registers that the host has written since it began
    now: Work | None = None
    single: bool = False  # as it began
    taken: int | None = None
    npix_kept: bool = False
    pix_kept: bool = False
    res_kept: bool = False
    stop: bool = False
    # a soft reset in progress, and a start that waits for its end (1, or 2 with stop)
    resetting: bool = False
    kept_start: int = 0
    # the host has closed the read window: any data not fetched by then may fail
    shut: bool = False
    # host layers: words of an incomplete layer, layers in the FIFO, accepted layers; with ``hold``
    # no layer runs until the host has acknowledged the error
    words: int = 0
    flushed: bool = False
    fifo: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()
    hold: bool = False
    # it has, while a layer was being discarded: the hold lasts until that layer's end
    acked: bool = False
    # a run has ended, with an error or without, and its transfers are still being dropped; or words
    # that the host has dropped
    draining: bool = False
    # results that were written, in order; False: a reset may have cut them off
    inferences: tuple[tuple[Work, bool], ...] = ()
    layers: tuple[tuple[int, bool], ...] = ()

    @property
    def follows(self) -> bool:
        """Does another inference come after the present one?"""
        return self.mode == 2 and self.left > 0 and not self.stop

    @property
    def occupied(self) -> bool:
        waiting = bool(self.fifo) and not self.hold
        at_work = self.now or self.resetting or self.draining
        return bool(at_work or self.words or self.inside or waiting)

    @property
    def doing(self) -> Doing:
        """Column of the table of host writes."""
        if self.resetting:
            return Doing.PENDING if self.kept_start else Doing.RESET
        if self.now:
            ends = Doing.LIST if self.single else Doing.LAST
            return Doing.STREAM if self.follows else ends
        idle = Doing.HOLD if self.hold else Doing.IDLE
        return Doing.HOST if self.occupied else idle


class Histories:
    """The states that explain all observations so far."""

    def __init__(
        self,
        bad_pixels: Iterable[int] = (),
        bad_layers: dict[int, int] | None = None,
        bad_lists: Iterable[int] = (),
        spare_most: int | None = None,
    ) -> None:
        """``bad_pixels``: images that the storage answers with ERROR; ``bad_lists``: lists that
        contain such a word, or whose tables or weights do; ``bad_layers``: the error code with
        which the device refuses a layer; ``spare_most``: rows of the AI RAM, in which weights may
        wait; None: they do not."""
        self.bad_pixels, self.bad_lists = set(bad_pixels), set(bad_lists)
        self.bad_layers = bad_layers or {}
        self.spare_most = spare_most
        self.states = {State()}
        self.tail: list[str] = []  # the latest observations, for a message

    def _note(self, text: str) -> None:
        if not self.tail or self.tail[-1] != text:
            self.tail.append(text)

    def seen(self) -> str:
        """The latest transfers on the host's bus."""
        return "; ".join(self.tail[-60:])

    # ------------------------------------------------------------ by itself
    def closed(self) -> set[State]:
        """The current states and the states that the device may have reached without the host."""
        found, todo = set(self.states), list(self.states)
        while todo:
            for state in self._steps(todo.pop()):
                if state not in found:
                    found.add(state)
                    todo.append(state)
        return found

    def _steps(self, s: State) -> Iterator[State]:
        """What may happen next without the host."""
        if s.resetting:
            after = replace(s, resetting=False, kept_start=0)
            if not s.kept_start:
                yield after
            elif after.occupied:
                yield _error(after, Err.START_BUSY)
            else:
                yield self._begin(after, s.kept_start == 2)
            return
        if s.now:
            yield from self._inference_steps(s)
            return
        if s.draining:
            yield replace(s, draining=False)
        bad = s.hold or any(n in self.bad_layers for n in s.inside)
        if s.fifo and not s.flushed:
            head, rest = s.fifo[0], s.fifo[1:]
            if bad:  # discarded
                yield replace(s, fifo=rest, hold=s.hold and not s.acked, acked=False)
            if not s.hold:
                yield replace(s, fifo=rest, inside=(*s.inside, head))
        if s.inside:
            head, rest = s.inside[0], s.inside[1:]
            if head in self.bad_layers:
                over = replace(s, inside=(), hold=True, draining=True)
                yield _error(over, self.bad_layers[head])
            else:
                yield replace(s, inside=rest, layers=(*s.layers, (head, True)), calc=True)

    def _inference_steps(self, s: State) -> Iterator[State]:
        assert s.now
        tasks, pixels, _ = s.now
        if s.follows and s.taken is None:
            yield replace(s, taken=s.npix, npix_kept=False)
        # any further failure, and any failure of the prefetched inference, is dropped with the run
        over = replace(s, now=None, taken=None, hold=True, draining=True)
        cut = replace(over, inferences=(*s.inferences, (s.now, False)))
        if s.shut:
            yield _error(cut, Err.BAD_ACCESS)
        if pixels in self.bad_pixels or tasks in self.bad_lists:
            yield _error(cut if tasks in self.bad_lists else over, Err.BUS_ERROR)
            return
        done = replace(s, inferences=(*s.inferences, (s.now, True)), done=True, int_done=True)
        if not s.follows:
            yield replace(done, now=None, taken=None, stop=False, draining=True)
            return
        following = s.npix if s.taken is None else s.taken
        result = s.res if s.res_kept else s.res + s.res_stride
        yield replace(
            done,
            now=(tasks, following, result),
            pix=s.pix if s.pix_kept else following,
            npix=s.npix if s.npix_kept else s.npix + s.pix_stride,
            res=result,
            left=s.left - 1,
            mode=s.mode if s.left > 1 else 1,
            taken=None,
            npix_kept=False,
            res_kept=False,
        )

    # ---------------------------------------------------------------- writes
    def wrote(self, address: int, value: int) -> None:
        """The host wrote a register."""
        self._note(f"{address:#x} = {value:#x}")
        self.states = {after for s in self.closed() for after in self._write(s, address, value)}
        self._bounded()

    def pushed_word(self, layer: int | None) -> None:
        """The host pushed a word; ``layer``: its number when that was the last of twelve."""
        self._note("word" if layer is None else f"layer {layer}")
        found = set()
        for s in self.closed():
            if s.flushed:  # the FIFO is held empty
                found.add(s)
            elif layer is None:
                found.add(replace(s, words=s.words + 1))
            else:
                found.add(replace(s, words=0, fifo=(*s.fifo, layer)))
        self.states = found
        self._bounded()

    def _write(self, s: State, address: int, value: int) -> Iterator[State]:
        name = NAMES.get(address, "")
        if name == "AI_CTRL":
            yield self._control(s, value)
            refused = value & Ctrl.START and not value & Ctrl.SOFT_RESET and s.occupied
            yield from self._fails(s) if refused else ()
        elif name in ALIGNED and s.occupied and value % BUS:
            yield _error(s, Err.BAD_CONFIG)
            yield from self._fails(s)
        elif name == "AI_SPARE_ROWS" and not spare_stored(value, self.spare_most):
            yield s if self.spare_most is None else _error(s, Err.BAD_CONFIG)
            yield from () if self.spare_most is None else self._fails(s)
        elif name in FIELDS:
            what = rule(name, s.doing)
            after = replace(
                s,
                pix_kept=s.pix_kept or (name == "AI_PIX_ADR" and what is Rule.NEXT_START),
                npix_kept=s.npix_kept or (what is Rule.NEXT_IMAGE and s.taken is not None),
                res_kept=s.res_kept or what is Rule.NEXT_RESULT,
                **{FIELDS[name]: value},
            )
            yield after
            if after.taken is not None and not after.follows:
                yield replace(after, taken=None)
        elif name in ("AI_CNN_DONE", "AI_INT_STATUS"):
            cleared = "done" if name == "AI_CNN_DONE" else "int_done"
            yield replace(s, **{cleared: False}) if value & 1 else s
        elif address == INTERRUPT_CLEAR:
            yield replace(s, calc=s.calc and not value & 1)
        elif name in ("AI_READ_FIRST", "AI_READ_LAST"):
            yield replace(s, shut=True)
        elif name == "AI_ERR_CODE":
            yield replace(s, err=0, hold=False)
            if s.hold and s.fifo:
                yield replace(s, err=0, acked=True)
        elif address == FIFO_CTRL:
            if value & CFG_FIFO:
                yield replace(s, flushed=False)
            else:
                dropped = bool(s.words or s.fifo)  # occupied until the decoder has dropped them too
                yield replace(s, flushed=True, fifo=(), words=0, draining=s.draining or dropped)
        else:
            yield s

    def _fails(self, s: State) -> Iterator[State]:
        """The device fails in the cycle of a refused write: its own error has priority."""
        if not s.err:
            yield from (after for after in self._steps(s) if after.err and after.hold)

    def _control(self, s: State, value: int) -> State:
        stop = bool(value & Ctrl.STOP)
        if value & Ctrl.SOFT_RESET:
            cut = ((s.now, False),) if s.now else ()
            inside = ((n, False) for n in s.inside[:1])
            written = {
                "inferences": (*s.inferences, *cut),
                "layers": (*s.layers, *inside),
            }
            s = replace(s, **{**IDLE, **written, "resetting": True, "err": 0, "calc": False})
        what = rule("AI_CTRL.start", s.doing) if value & Ctrl.START else Rule.NOTHING
        if what is Rule.LATER:
            kept = replace(s, kept_start=2 if stop else 1)
            return kept if self._possible(s) else _error(s, Err.BAD_CONFIG)
        if what is Rule.BUSY:
            s = _error(s, Err.START_BUSY)
        elif what is not Rule.NOTHING:
            return self._begin(s, stop)
        steers = stop and rule("AI_CTRL.stop", s.doing) is Rule.STEERS and s.now is not None
        return replace(s, stop=s.stop or steers)

    @staticmethod
    def _possible(s: State) -> bool:
        return bool(s.mode and s.length) and not s.res % BUS and not s.res_stride % BUS

    def _begin(self, s: State, stop: bool) -> State:
        if not self._possible(s):
            return _error(s, Err.BAD_CONFIG)
        begun = {"err": 0, "now": (s.list, s.pix, s.res), "stop": stop}
        begun["single"] = stop or s.mode != 2 or not s.left
        if s.mode == 2 and not s.left:
            begun["mode"] = 1  # a stream of one
        return replace(s, **{**IDLE, **begun})

    # ----------------------------------------------------------------- reads
    def read(self, address: int, value: int) -> bool:
        """The host read a register: False when no history explains the value."""
        name = NAMES.get(address, "")
        if name not in SEEN:
            return True
        self._note(f"{name} is {value:#x}")
        return self.keep(lambda s: SEEN[name](s, value))

    def keep(self, good: Callable[[State], bool]) -> bool:
        """Drop the states that are not ``good``; False when none is left (they are kept then)."""
        left = {s for s in self.closed() if good(s)}
        self.states = left or self.states
        return bool(left)

    def _bounded(self) -> None:
        assert len(self.states) < 100_000, f"{len(self.states)} histories after {self.seen()}"


# the fields of the previous run that a reset or a start clears
IDLE = {
    "done": False,
    "int_done": False,
    "now": None,
    "single": False,
    "taken": None,
    "npix_kept": False,
    "pix_kept": False,
    "res_kept": False,
    "stop": False,
    "resetting": False,
    "kept_start": 0,
    "words": 0,
    "fifo": (),
    "inside": (),
    "hold": False,
    "acked": False,
    "draining": False,
}
# fields that are registers; registers that a busy device accepts as multiples of a bus word only
FIELDS = {"AI_PIX_ADR": "pix", "AI_NPIX_ADR": "npix", "AI_RES_ADR": "res", "AI_INF_LEFT": "left"}
FIELDS |= {"AI_CNN_MODE": "mode", "AI_PIX_STRIDE": "pix_stride", "AI_RES_STRIDE": "res_stride"}
FIELDS |= {"AI_LIST_ADR": "list", "AI_LIST_LEN": "length"}
ALIGNED = ("AI_RES_ADR", "AI_RES_STRIDE")
NAMES = {offset: name for name, offset in AI.items()}


def spare_stored(value: int, most: int | None) -> bool:
    """Does AI_SPARE_ROWS hold what is written? ``most``: rows of the AI RAM in which weights may
    wait; None: they do not."""
    first, rows = value & 0x7FFF, value >> 16
    return most is not None and (not rows or first + rows <= most)


def _error(s: State, code: int) -> State:
    """The first error is kept."""
    return s if s.err else replace(s, err=int(code))


def _busy(s: State, value: int) -> bool:
    if value >> 24 & 31 != len(s.fifo):  # complete layers in the layer FIFO
        return False
    if s.hold and not s.resetting and not s.now and not s.draining:
        return bool(value & 2) == bool(s.err)  # words that are being discarded
    taken = s.taken is not None and bool(s.now)
    ending = s.draining or (
        bool(s.now) and not s.follows
    )  # the pixels of an image that is given up
    good = bool(value & 64) == taken or ending
    return good and bool(value & 1) == s.occupied and bool(value & 2) == bool(s.err)


SEEN: dict[str, Callable[[State, int], bool]] = {
    "AI_STATUS": _busy,
    "AI_ERR_CODE": lambda s, value: value == s.err,
    "AI_CNN_DONE": lambda s, value: value == s.done,
    "AI_INT_STATUS": lambda s, value: value & 1 == s.int_done,
    **{name: lambda s, value, f=own: value == getattr(s, f) for name, own in FIELDS.items()},
}


@dataclass
class Watcher:
    """Passes the transfers on the host's bus to the histories."""

    numbers: dict[tuple[int, ...], int]  # of the layers that the host may push
    histories: Histories = field(default_factory=Histories)
    low: int = 0
    words: list[int] = field(default_factory=list)

    def see(self, tt: Transfer) -> str:
        """Process a transfer and its answer; a message if no history explains it, else empty."""
        if not tt.write:
            if self.histories.read(tt.addr, tt.data):
                return ""
            some = min(map(repr, self.histories.states), key=len)
            return f"nothing explains the last of {self.histories.seen()}: {some}"
        if tt.addr == 0:
            self.low = tt.data
        elif tt.addr == 4:
            self.words.append(tt.data << 32 | self.low)
            full = len(self.words) == WORDS
            number = self.numbers.get(tuple(self.words)) if full else None
            self.histories.pushed_word(number)
            self.words = [] if full else self.words
            if full and number is None:
                return "a layer that nobody has: words were mixed up"
        else:
            flush = tt.addr == FIFO_CTRL and not tt.data & CFG_FIFO
            if flush or (tt.addr == AI["AI_CTRL"] and tt.data & Ctrl.SOFT_RESET):
                self.words = []
            self.histories.wrote(tt.addr, tt.data)
        return ""
