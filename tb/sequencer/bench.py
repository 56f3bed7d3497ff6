# SPDX-License-Identifier: Apache-2.0
"""Drives the sequencer and predicts each of its outputs in every cycle.

Counters have no width here and are compared with the ports modulo their widths. The resources of an
issue are derived from the inputs of the cycle, the other outputs from issues a fixed number of
cycles ago.
"""

import random
from collections import Counter, deque
from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.decoded import Sizes
from openkpu_tb.core.descriptor import pack_descriptor, split_fields
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.handle import Handle
from tb.sequencer.layers import Layer
from tb.sequencer.reference import PROW_BITS, Array, Issue

COLUMNS = 9
ENTRY_FREED = 10  # cycles from an issue until its entry is released: column 8 has read it
ROW_FREED = ENTRY_FREED + 1  # and the weight row, which is read a cycle later
FILL = 3  # cycles behind a start in which no entry is filled: the first word takes longer
DEEP = COLUMNS + 3  # cycles from an issue to the last control of its columns
INPUTS = ("start", "desc", "prow_base", "keep", "reuse", "tile_filled", "wrow_filled", "row_room")
INPUTS += ("prow_filled", "act_ready", "skip", "skip_to")
OUTPUTS = ("running", "done", "tile_freed", "wrow_freed", "row_take", "issued", "tag_valid", "tag")
OUTPUTS += ("column_re", "column_wre", "column_entry", "column_wrow", "column_control")
OUTPUTS += ("wait_tile", "wait_weight", "wait_output")
RESOURCES = ("tile", "row", "prow", "act", "room")
CAUSES = ("tile", "weight", "output")
HOW = ("all", "some", "one")


@dataclass
class Supply:
    """The supply of each resource: as much as there is room for; some at intervals; one when an
    issue waits for it."""

    tile: str = "all"
    row: str = "all"
    prow: str = "all"
    act: str = "all"
    room: str = "all"

    @classmethod
    def any(cls) -> "Supply":
        """A random supply of each resource."""
        return cls(*random.choices(HOW, (3, 3, 1), k=len(RESOURCES)))


class Drought:
    """Pauses of random length between phases of full supply."""

    def __init__(self) -> None:
        self.left, self.dry = 0, False

    def over(self) -> bool:
        """Advance a cycle: does the resource arrive in it?"""
        if self.left == 0:
            self.dry = not self.dry
            self.left = random.randint(1, 30 if self.dry else 60)
        self.left -= 1
        return not self.dry


class Bench:
    """The device with its environment; ``cycle`` advances one and checks all outputs."""

    def __init__(self, dut: Handle) -> None:
        self.dut = dut
        names = ("N_Y", "N_Z", "TILE_ROWS", "WBUF_ROWS", "TILE_W", "POST_SHARE", "SUM_PLANES")
        n_y, n_z, tile_rows, wbuf_rows, tile_w, self.share, planes = (
            int(getattr(dut, name).value) for name in names
        )
        flat = bool(int(dut.FLAT_MAPS.value))
        self.dilation = int(dut.DILATION.value)
        self.sizes = Sizes(n_y, n_z, tile_rows, wbuf_rows, tile_word=min(64, tile_w), flat=flat)
        self.array = Array(n_y, n_z, min(64, tile_w), tile_w > 64, planes != 0, self.share)
        self.par_rows = 2048 // n_z
        self.widths = {name: len(getattr(dut, name)) for name in INPUTS}
        self.entry_bits = len(dut.column_entry) // COLUMNS
        self.row_bits = len(dut.column_wrow) // COLUMNS
        self.handles = {name: getattr(dut, name) for name in (*INPUTS, *OUTPUTS)}
        self.control_bits = len(dut.column_control) // COLUMNS
        rests = [self.array.column()[name] for name in ("valid", "count")]
        self.idle_mask = sum(((1 << width) - 1) << low for low, width in rests)
        self.met: Counter[str] = Counter()  # conditions that the rounds have covered
        self._forget()

    def _forget(self) -> None:
        """The state after a reset."""
        self.driven: dict[str, int] = {}
        self.layer: Layer | None = None
        self.at = 0  # number of the layer's next issue
        self.running, self.young = False, 0  # young: first cycles of a layer that are left
        self.base = {"tile": 0, "row": 0, "prow": (1 << PROW_BITS) - random.randint(1, 9)}
        self.filled = dict(self.base)
        self.there = {"prow": self.base["prow"]}  # a cycle before
        self.limit = dict(self.base)  # demand of the layers so far
        self.freed = {"tile": 0, "row": 0}
        self.act = self.act_there = self.room = 0
        self.keep = self.reuse = 0
        self.net = dict(self.base)  # start of the network whose weights are kept
        self.made: deque[Issue | None] = deque([None] * (DEEP + 1), DEEP + 1)
        self.again: deque[bool] = deque()  # further sums to send: True where a byte begins
        self.was_again = False
        self.sent: deque[bool] = deque([False] * 3, 3)  # such sums left
        self.tags: deque[int] = deque([0, 0, 0], 3)
        self.entries = self.entries_mask = self.rows = self.rows_mask = 0
        self.control = self.control_mask = 0
        self.since_sums = self.share  # cycles since sums left
        self.done = False
        self.lacks: frozenset[str] = frozenset()  # resources missing in the previous cycle
        self.came: set[str] = set()  # resources that arrived in the previous cycle
        self.droughts = {name: Drought() for name in RESOURCES}

    async def reset(self) -> None:
        """Reset the device in any state."""
        await reset(self.dut, *INPUTS)
        self._forget()
        self._drive(**{f"{name}_filled": n for name, n in self._ports().items()})

    # ----------------------------------------------------------------- inputs
    def _drive(self, **values: int) -> None:
        for name, value in values.items():
            value &= (1 << self.widths[name]) - 1
            if self.driven.get(name) != value:
                self.driven[name] = value
                self.handles[name].value = value

    def _ports(self) -> dict[str, int]:
        return {{"row": "wrow"}.get(name, name): count for name, count in self.filled.items()}

    def _more(self, name: str, how: str, room: int) -> int:
        """How many of a resource arrive in this cycle."""
        if room <= 0:
            return 0
        if how == "all":
            return room
        if how == "some":
            return random.randint(1, min(room, 4)) if self.droughts[name].over() else 0
        # the device may not have sampled the arrival of the previous cycle yet
        return int(name in self.lacks and name not in self.came and random.getrandbits(1))

    def _supply(self, supply: Supply) -> None:
        """The resources of this cycle."""
        room = {
            "tile": self.freed["tile"] + self.sizes.tile_rows - self.filled["tile"],
            "row": self._row_freed() + self.sizes.wbuf_rows - self.filled["row"],
            "prow": (self.net if self.keep else self.base)["prow"] + self.par_rows,
        }
        room["prow"] -= self.filled["prow"]
        before = dict(self.filled)
        for name in room:
            if name == "tile" and (self.young or not self.running):
                continue  # a fill has a latency of some cycles
            left = min(room[name], self.limit[name] - self.filled[name])
            self.filled[name] += self._more(name, getattr(supply, name), left)
        self.came = {name for name in before if before[name] != self.filled[name]}
        if not self.act:
            self.act = int(
                self.running
                and (
                    supply.act == "all"
                    or (supply.act == "one" and "act" in self.lacks and random.random() < 0.3)
                    or (supply.act == "some" and random.random() < 0.05)
                )
            )
        wanted = "room" in self.lacks or bool(self.again and self.again[0])
        self.room = int(
            supply.room == "all"
            or (supply.room == "one" and wanted and random.random() < 0.3)
            or (supply.room == "some" and self.droughts["room"].over())
        )
        filled = {f"{name}_filled": count for name, count in self._ports().items()}
        self._drive(**filled, act_ready=self.act, row_room=self.room)
        self._drive(keep=self.keep, reuse=self.reuse)

    def _row_freed(self) -> int:
        return self.net["row"] if self.keep else self.freed["row"]

    # ----------------------------------------------------------------- a cycle
    async def cycle(self, supply: Supply, start: Layer | None = None) -> bool:
        """Advance a cycle; was there an issue?"""
        self._drive(start=int(start is not None))
        if start is not None:
            self._drive(desc=pack_descriptor(start.d), prow_base=self.base["prow"])
        self._supply(supply)
        await RisingEdge(self.dut.clk)
        self.was_again = bool(self.again)
        issue, cause = self._decide()
        take = issue is not None and issue.leaves and issue.opens
        sends = bool(self.again) and self.since_sums >= self.share
        sends = sends and (self.room == 1 or not self.again[0])
        if sends:
            assert not (issue is not None and issue.leaves), "sums of two at once"
            take = self.again.popleft()
            self.met["other bytes beside an issue"] += issue is not None
            self.met["other bytes are all that is left"] += not self.running
        self.sent.appendleft(sends)
        self._advance(issue)
        self._check(issue, cause, take)
        self.done = False
        if issue is not None:
            assert self.layer is not None, "an issue is of a layer"
            self.at += 1
            self.running = self.at < len(self.layer.nest.issues)
            self.again += ([True] + [False] * (issue.again - 1)) * 3 if issue.again else []
        if sends or (issue is not None and issue.leaves):
            self.since_sums = 0
        if (sends or issue is not None) and not self.running and not self.again:
            self.done = True
        self.since_sums += 1
        self.young = FILL if start is not None else max(0, self.young - 1)
        if start is not None:
            self.layer, self.at, self.running = start, 0, True
            self.act = 0  # the table is copied again
            self.act_there = 0
        else:
            self.act_there = self.act
        self.there = {name: self.filled[name] for name in self.there}
        return issue is not None

    def _decide(self) -> tuple[Issue | None, str]:
        """The issue of this cycle, or the reason why there is none."""
        self.lacks = frozenset()
        if not self.running or self.layer is None:
            return None, ""
        issue = self.layer.nest.issues[self.at]
        dw = self.layer.d["dw"]
        lacks = set()
        if issue.opens and self.filled["tile"] < self.base["tile"] + issue.entry + issue.entries:
            lacks.add("tile")
        # a depthwise row may need another weight row in the middle
        if (issue.opens or dw) and self.filled["row"] <= self.base["row"] + issue.row:
            lacks.add("row")
        if issue.leaves and (issue.opens or dw):
            if self.there["prow"] <= self.base["prow"] + issue.prow:
                lacks.add("prow")
            if not self.act_there:
                lacks.add("act")
        if issue.leaves and issue.opens and not self.room:
            lacks.add("room")
        if issue.leaves and issue.opens and self.was_again:
            lacks.add("planes")
        if issue.leaves and self.since_sums < self.share:
            lacks.add("lanes")
        if not lacks:
            return issue, ""
        if "tile" in lacks:
            self.lacks, cause = frozenset(("tile",)), "tile"
        elif lacks & {"row", "prow", "act"}:
            self.lacks, cause = frozenset(lacks & {"row", "prow", "act"}), "weight"
        else:
            self.lacks, cause = frozenset(lacks), "output"
        if self.young:  # nothing can be there yet
            self.lacks = frozenset()
        for name in self.lacks:
            self.met[f"waits for {name}"] += 1
            self.met[f"waits for {name} in a sweep"] += not issue.opens
        if "tile" in self.lacks and self.filled["tile"] == self.base["tile"] + issue.entry + 1:
            self.met["waits for the second entry"] += 1
        return None, cause

    def _advance(self, issue: Issue | None) -> None:
        """Update the state derived from the issues of this and earlier cycles."""
        self.made.appendleft(issue)
        entry, row = self.made[1], self.made[2]
        words = 64 // self.array.word
        full = (1 << COLUMNS * self.entry_bits) - 1
        mask = (1 << self.entry_bits) - 1
        address = 0
        if entry is not None:
            address = (self.base["tile"] + entry.entry) % self.sizes.tile_rows * words + entry.word
        self.entries = (self.entries << self.entry_bits | address) & full
        active = mask if entry is not None else 0
        self.entries_mask = (self.entries_mask << self.entry_bits | active) & full
        full = (1 << COLUMNS * self.row_bits) - 1
        mask = (1 << self.row_bits) - 1 if row is not None else 0
        address = (self.base["row"] + row.row) % self.sizes.wbuf_rows if row is not None else 0
        self.rows = (self.rows << self.row_bits | address) & full
        self.rows_mask = (self.rows_mask << self.row_bits | mask) & full
        control, bits = self.made[3], self.control_bits
        full = (1 << COLUMNS * bits) - 1
        if control is None:  # lanes are idle, and none is counted
            value, mask = 0, self.idle_mask
        else:
            value, mask = control.control, control.control_mask
        self.control = (self.control << bits | value & mask) & full
        self.control_mask = (self.control_mask << bits | mask) & full
        self.tags.appendleft(self.base["prow"])
        if (gone := self.made[ENTRY_FREED]) is not None:
            self.freed["tile"] += gone.frees_entries
        if (gone := self.made[ROW_FREED]) is not None:
            self.freed["row"] += gone.frees_rows

    # ------------------------------------------------------------------ checks
    def _check(self, issue: Issue | None, cause: str, take: bool) -> None:
        lag = [made is not None for made in self.made]
        want = {
            "running": int(self.running or self.was_again),
            "done": int(self.done),
            "issued": int(lag[1]),
            "tag_valid": int(lag[2]) | int(self.sent[2]) << 1,
            "row_take": int(take),
            "tile_freed": self.freed["tile"] % (4 * self.sizes.tile_rows),
            "wrow_freed": self._row_freed() % (4 * self.sizes.wbuf_rows),
            "column_re": sum(lag[1 + t] << t for t in range(COLUMNS)),
            "column_wre": sum(lag[2 + t] << t for t in range(COLUMNS)),
            **{f"wait_{name}": int(cause == name) for name in CAUSES},
        }
        for name, value in want.items():
            got, unknown = _bits(self.handles[name])
            if got != value or unknown:
                raise AssertionError(self._text(name, str(self.handles[name].value), value))
        vectors = {
            "column_entry": (self.entries, self.entries_mask),
            "column_wrow": (self.rows, self.rows_mask),
            "column_control": (self.control, self.control_mask),
        }
        if (tagged := self.made[2]) is not None:
            low, width = self.array.tag()["prow"]
            mask = (1 << width) - 1
            prow = (self.tags[2] + tagged.prow) & mask
            vectors["tag"] = tagged.tag | prow << low, tagged.tag_mask | mask << low
        for name, (value, mask) in vectors.items():
            got, unknown = _bits(self.handles[name])
            if (got ^ value | unknown) & mask:
                raise AssertionError(self._differs(name, got, unknown, value, mask))

    def _text(self, name: str, got: object, want: int) -> str:
        where = self.layer.name if self.layer else "before any layer"
        if self.layer and self.running:
            where += f", issue {self.at} of {len(self.layer.nest.issues)}"
        return f"{where}: {name} is {got}, expected {want}"

    def _differs(self, name: str, got: int, unknown: int, want: int, mask: int) -> str:
        """The first column, or the fields, in which a vector is wrong."""
        column = ""
        layout = {"tag": self.array.tag(), "column_control": self.array.column()}.get(name)
        if name != "tag":
            width = len(self.handles[name]) // COLUMNS
            wrong = (got ^ want | unknown) & mask
            t = next(t for t in range(COLUMNS) if wrong >> t * width & ((1 << width) - 1))
            part = (1 << width) - 1
            got, unknown, want, mask = (v >> t * width & part for v in (got, unknown, want, mask))
            column = f"[{t}]"
        if layout is None:
            return self._text(name + column, got, want)
        fields = [split_fields(layout, v) for v in (got, unknown, want, mask)]
        bad = [
            f"{field}: {hex(fields[0][field])} instead of {hex(fields[2][field])}"
            for field in layout
            if (fields[0][field] ^ fields[2][field] | fields[1][field]) & fields[3][field]
        ]
        return self._text(name + column, "; ".join(bad), want)

    # ------------------------------------------------------------------ layers
    async def rest(self, cycles: int) -> None:
        """Cycles in which no layer runs."""
        for _ in range(cycles):
            assert not await self.cycle(Supply(room=random.choice(HOW)))

    async def begin(self, layer: Layer, supply: Supply, ahead: int = 0) -> None:
        """Start a layer; ``ahead``: weight rows of later layers that may already arrive."""
        nest = layer.nest
        if self.reuse and layer.d["first"]:  # the network is repeated
            self.base = {**self.net, "tile": self.base["tile"]}
            self.freed["row"] = self.net["row"]
        self.limit["tile"] = self.base["tile"] + nest.entries
        for name, own in (("row", nest.rows + ahead), ("prow", nest.prows)):
            self.limit[name] = max(self.limit[name], self.base[name] + own)
        await self.cycle(supply, layer)

    async def play(
        self, layer: Layer, supply: Supply, ahead: int = 0, release: int = -1, known: int = -1
    ) -> int:
        """Run a layer; cycles from its first issue to its last.

        ``ahead`` as of begin(). ``release``, ``known``: cycle of the layer in which keep falls, in
        which reuse rises; -1: in none.
        """
        await self.begin(layer, supply, ahead)
        nest, sizes = layer.nest, self.sizes
        first = last = 0
        for number in range(1, 400 + 60 * len(nest.issues) + 40 * nest.rows):
            if number == release:
                self.keep = 0
                self.met["kept rows are given back"] += self.freed["row"] != self.net["row"]
            self.reuse |= int(number == known)
            if await self.cycle(supply):
                first, last = first or number, number
            if not self.running and not self.again:
                break
        else:
            raise AssertionError(self._text("the layer", "stuck", len(nest.issues)))
        await self.rest(random.randint(ROW_FREED + 1, 40))
        for name, count in (("tile", nest.entries), ("row", nest.rows), ("prow", nest.prows)):
            before, self.base[name] = self.base[name], self.base[name] + count
            rounds = {"tile": sizes.tile_rows, "row": sizes.wbuf_rows, "prow": 1 << PROW_BITS}
            laps = 4 * rounds[name] if name != "prow" else rounds[name]
            self.met[f"{name} count wraps"] += before // laps != self.base[name] // laps
        assert self.freed["tile"] == self.base["tile"] == self.filled["tile"]
        assert self.keep or self.freed["row"] == self.base["row"]
        self._note(layer)
        return last - first + 1

    def _note(self, layer: Layer) -> None:
        """Count the properties of the layer."""
        d = layer.d
        self.met[f"mode {d['mode']} pool {d['pool']} stride {d['stl']} dw {d['dw']}"] += 1
        blocks = ceil_div(d["g"], d["b"])
        self.met["several groups, held"] += d["held"] and d["b"] > 1
        self.met["several groups, read again"] += not d["held"] and d["b"] > 1
        self.met["several blocks"] += blocks > 1
        self.met["a smaller last block"] += blocks > 1 and d["g"] % d["b"] > 0
        self.met["two lines an issue"] += any(i.entries == 2 for i in layer.nest.issues)


def _bits(handle: Handle) -> tuple[int, int]:
    """(known bits, mask of the unknown ones) of a port."""
    text = str(handle.value)
    try:
        return int(text, 2), 0
    except ValueError:
        known = "".join(bit if bit in "01" else "0" for bit in text)
        unknown = "".join("0" if bit in "01" else "1" for bit in text)
        return int(known, 2), int(unknown, 2)
