# SPDX-License-Identifier: Apache-2.0
"""Effects of a host's write in every state of the device: the table of docs/programming.md.

The sweeps and the random host derive their expectations from the same table (control_model): a
rule is a name with a text for readers, and the model acts by that name.
"""

import textwrap
from enum import Enum

PROSE = 120  # characters of a line of the page


class State(Enum):
    """The state of the device; the text heads a column."""

    IDLE = "idle"
    PENDING = "reset and start pending"
    HOST = "host layers run"
    LIST = "list runs, single"
    STREAM = "stream, another follows"
    LAST = "stream, last inference"
    HOLD = "error hold"
    RESET = "reset pending"


class Rule(Enum):
    """The effect of a write."""

    STORED = "stored"
    NEXT_START = "for the next start"
    ALIGNED = "for the next start, aligned"
    NEXT_IMAGE = "next image not yet taken"
    NEXT_RESULT = "next result"
    AT_CHANGE = "at the next change"
    STEERS = "steers"
    EXTENDS = "may extend"
    STARTS = "starts"
    BUSY = "START_BUSY"
    LATER = "after the reset"
    LEAVES_HOLD = "starts, hold ends"
    NOTHING = "nothing"
    SINGLE = "single inference"
    RESETS = "resets"
    CANCELS = "resets, no start"
    CLEARS = "clears"
    ENDS_HOLD = "clears, hold ends"
    AT_ONCE = "at once"
    LAST_WORD = "layers pushed from now on"
    RUNS = "runs"
    WAITS = "runs afterwards"
    DISCARDED = "discarded"
    FLUSHES = "drops what waits"
    LOCKABLE = "at once, or LOCKED"
    SPARE = "when no weight waits"


LEGEND = {
    Rule.STORED: "the register holds the value from the next cycle on; nothing else happens",
    Rule.NEXT_START: "stored; the current run continues with the values of its start",
    Rule.ALIGNED: "the same; a value that is no multiple of the bus word: BAD_CONFIG, not stored",
    Rule.NEXT_IMAGE: "the first image that is not yet being fetched (AI_STATUS.npix_taken) "
    "comes from there, later images follow by AI_PIX_STRIDE; each write counts once",
    Rule.NEXT_RESULT: "the result of the next inference goes there, later results follow by "
    "AI_RES_STRIDE; a value that is no multiple of the bus word: BAD_CONFIG, not stored",
    Rule.AT_CHANGE: "used from the next change of inference on; AI_RES_STRIDE that is no multiple "
    "of the bus word: BAD_CONFIG, not stored",
    Rule.STEERS: "decides at the end of the inference at work whether another one follows",
    Rule.EXTENDS: "another inference follows when, at the end of this one, AI_CNN_MODE is 2 and "
    "AI_INF_LEFT not 0; later it is stored",
    Rule.STARTS: "starts, or BAD_CONFIG",
    Rule.BUSY: "START_BUSY, nothing else",
    Rule.LATER: "the start is deferred to the end of the reset",
    Rule.LEAVES_HOLD: "starts; layers that wait in the FIFO are discarded",
    Rule.NOTHING: "no effect",
    Rule.SINGLE: "with a start in the same write: a single inference whatever the mode",
    Rule.RESETS: "everything stops, FIFOs empty, done, errors, interrupts and counters cleared; "
    "no earlier event shows afterwards; the configuration is preserved",
    Rule.CANCELS: "the same, and a deferred start is cancelled",
    Rule.CLEARS: "clears; an event in the same cycle has priority",
    Rule.ENDS_HOLD: "clears the error, and layers pushed from now on run",
    Rule.AT_ONCE: "stored, and acts on the interrupt line or the flags at once",
    Rule.LAST_WORD: "a host's layer samples the value when its last word is pushed",
    Rule.RUNS: "a layer of 12 words runs behind those before it",
    Rule.WAITS: "waits in the FIFO and runs afterwards",
    Rule.DISCARDED: "dropped, layer by layer",
    Rule.FLUSHES: "words in the FIFO and an incomplete layer are dropped, the device is busy for "
    "a few cycles more; a layer whose words are all read, and a list, run to their end",
    Rule.LOCKABLE: "for bursts from now on; once AI_LOCK is set: LOCKED, not stored",
    Rule.SPARE: "stored, and used as soon as no weight waits in the former rows; rows behind the "
    "end of the AI RAM, or more than 32,767 of them: BAD_CONFIG, not stored; a device without "
    "WEIGHT_AHEAD stores 0",
}


def _row(*rules: Rule) -> dict[State, Rule]:
    """A rule for each state: one for all, or one each."""
    return dict(zip(State, rules * len(State) if len(rules) == 1 else rules, strict=True))


_R = Rule
_ALIGNED_TOO = dict.fromkeys((State.HOST, State.RESET), _R.ALIGNED)
_START_VALUES = _row(_R.NEXT_START) | dict.fromkeys(
    (State.IDLE, State.HOLD, State.RESET), _R.STORED
)


def _stream(single: Rule, follows: Rule, last: Rule) -> dict[State, Rule]:
    """A register that acts while a list runs."""
    states = {State.LIST: single, State.STREAM: follows, State.LAST: last}
    return _START_VALUES | states | {State.PENDING: follows}


# one name a row; "AI_CTRL.start" is a bit of a register
RULES: dict[str, dict[State, Rule]] = {
    "layer_argument_fifo": _row(
        _R.RUNS, _R.WAITS, _R.RUNS, _R.WAITS, _R.WAITS, _R.WAITS, _R.DISCARDED, _R.LATER
    ),
    "interrupt_mask": _row(_R.AT_ONCE),
    "interrupt_clear": _row(_R.CLEARS),
    "fifo_threshold": _row(_R.AT_ONCE),
    "fifo_ctrl": _row(_R.FLUSHES),
    "eight_bit_mode": _START_VALUES | {State.HOST: _R.LAST_WORD},
    "AI_CNN_MODE": _stream(_R.EXTENDS, _R.STEERS, _R.EXTENDS),
    "AI_CNN_DONE": _row(_R.CLEARS),
    "AI_PIX_ADR": _START_VALUES,
    "AI_NPIX_ADR": _stream(_R.NEXT_IMAGE, _R.NEXT_IMAGE, _R.NEXT_IMAGE),
    "AI_WGT_ADR": _START_VALUES,
    "AI_BIAS_ADR": _START_VALUES,
    "AI_LIST_ADR": _START_VALUES,
    "AI_LIST_LEN": _START_VALUES,
    "AI_RES_ADR": _stream(_R.NEXT_RESULT, _R.NEXT_RESULT, _R.NEXT_RESULT) | _ALIGNED_TOO,
    "AI_INF_LEFT": _stream(_R.EXTENDS, _R.STEERS, _R.EXTENDS),
    "AI_PIX_STRIDE": _stream(_R.AT_CHANGE, _R.AT_CHANGE, _R.AT_CHANGE),
    "AI_RES_STRIDE": _stream(_R.AT_CHANGE, _R.AT_CHANGE, _R.AT_CHANGE) | _ALIGNED_TOO,
    "AI_CTRL.start": _row(
        _R.STARTS, _R.BUSY, _R.BUSY, _R.BUSY, _R.BUSY, _R.BUSY, _R.LEAVES_HOLD, _R.LATER
    ),
    "AI_CTRL.soft_reset": _row(_R.RESETS) | {State.PENDING: _R.CANCELS, State.RESET: _R.CANCELS},
    "AI_CTRL.stop": _row(_R.SINGLE)
    | {State.PENDING: _R.STEERS, State.HOST: _R.NOTHING, State.LIST: _R.STEERS}
    | {State.STREAM: _R.STEERS, State.LAST: _R.STEERS},
    "AI_INT_STATUS": _row(_R.CLEARS),
    "AI_INT_MASK": _row(_R.AT_ONCE),
    "AI_ERR_CODE": _row(_R.CLEARS) | {State.HOLD: _R.ENDS_HOLD},
    "AI_READ_FIRST": _row(_R.LOCKABLE),
    "AI_READ_LAST": _row(_R.LOCKABLE),
    "AI_WRITE_FIRST": _row(_R.LOCKABLE),
    "AI_WRITE_LAST": _row(_R.LOCKABLE),
    "AI_LOCK": _row(_R.AT_ONCE),
    "AI_WATCHDOG": _row(_R.AT_ONCE),
    "AI_SPARE_ROWS": _row(_R.SPARE),
}


def rule(name: str, state: State) -> Rule:
    """The effect of a write to a register; ``AI_CTRL`` by its bits."""
    return RULES[name][state]


def write_rules_table() -> str:
    """The table and its legend, Markdown."""
    heads = ["register", *(state.value for state in State)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, by_state in RULES.items():
        lines.append("| " + " | ".join([name, *(by_state[s].value for s in State)]) + " |")
    used = {rule for row in RULES.values() for rule in row.values()}
    notes = [
        textwrap.fill(f"- *{rule.value}*: {text}.", PROSE, subsequent_indent="  ")
        for rule, text in LEGEND.items()
        if rule in used
    ]
    return "\n".join([*lines, "", *notes]) + "\n"
