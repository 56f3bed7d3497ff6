# SPDX-License-Identifier: Apache-2.0
"""The issues of a layer, derived from its loop nest (docs/performance.md, section 3).

Tile entries, weight rows and parameter rows are numbered from 0 in each layer. The pixel of the map
that a lane computes determines whether the lane is valid and where it reads padding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.decoded import CHAN, DWROW, FC, TAPS
from openkpu_tb.core.descriptor import layout, origin, stripes

ROW = 64  # positions of a stripe or of an AI RAM row, bytes of a tile entry
PROW_BITS = 13
Pixel = tuple[int, int]  # line and column of the input map
EDGES = ("left", "right", "top", "bot")


@dataclass(frozen=True)
class Array:
    """The array and the words of the tile buffer that it reads."""

    n_y: int
    n_z: int
    word: int = 64  # bytes of an entry that a column reads at once
    pair: bool = False  # a column reads two entries
    planes: bool = False  # bytes 1 to 3 of 32-bit sums leave during its issues
    share: int = 1  # sums that share a post lane

    @property
    def lanes(self) -> int:
        """Pixels times kernel modules."""
        return self.n_y * self.n_z

    @property
    def row_lanes(self) -> int:
        """Bytes of a row that a depthwise issue processes."""
        return min(self.lanes, self.word)

    @property
    def bank_bits(self) -> int:
        """Width of a bank number."""
        return (self.n_z - 1).bit_length()

    @cache  # noqa: B019 (a handful of arrays)
    def column(self) -> dict[str, tuple[int, int]]:
        """Fields of a column's control."""
        return layout("column", L=self.lanes, ZW=self.bank_bits)

    @cache  # noqa: B019
    def tag(self) -> dict[str, tuple[int, int]]:
        """Fields of a tag, including those of meta and job (``job_``)."""
        sizes = {"ZW": self.bank_bits, "PRW": PROW_BITS}
        job = layout("job", **sizes)
        sizes["JOB_BITS"] = sum(width for _, width in job.values())
        meta = layout("meta", **sizes)
        sizes["META_BITS"] = sum(width for _, width in meta.values())
        tag = layout("tag", **sizes)
        low = tag.pop("meta")[0] + meta.pop("job")[0]
        tag |= {name: (low + at, width) for name, (at, width) in meta.items()}
        return tag | {f"job_{name}": (low + at, width) for name, (at, width) in job.items()}


@dataclass(slots=True)
class Issue:
    """An issue; masks: the bits that are defined."""

    entry: int  # tile entry
    entries: int  # number of entries that it reads: 1 or 2
    word: int  # of the entry
    row: int  # weight row
    prow: int  # parameter row
    opens: bool  # first of a sweep over the stripe, or without one
    leaves: bool  # its sums are sent to the post lanes
    control: int
    control_mask: int
    tag: int
    tag_mask: int
    again: int = 0  # so many sums leave three more times after it, during other issues
    frees_entries: int = 0  # entries whose last use it is
    frees_rows: int = 0


@dataclass(frozen=True)
class Piece:
    """A part of a sweep: its position, and for each lane the pixel it computes, if any."""

    pos: int
    pixels: tuple[Pixel | None, ...]

    def lanes(self, d: dict[str, int]) -> dict[str, int]:
        """The valid lanes, and those of them at each edge of the map."""
        found: dict[str, int] = dict.fromkeys(("valid", *EDGES), 0)
        for lane, pixel in enumerate(self.pixels):
            if pixel is None:
                continue
            y, x = pixel
            far = d["dil"] + 1  # lines and columns of padding
            meets = True, x < far, x >= d["w"] - far, y < far, y >= d["h"] - far
            if d["ew"]:  # the first row of the window is the pad value; with one map the last, too
                meets = True, False, False, True, bool(d["one"])
            for name, met in zip(found, meets, strict=True):
                found[name] |= int(met) << lane
        return found


def depthwise_taps(d: dict[str, int]) -> int:
    """Taps that a depthwise layer uses, a bit each: all, or the middle one. With two maps the pad
    value and a pixel of each; a multiplication uses the second map's pixel twice."""
    if d["ew"]:
        return sum(1 << t for t in ((1, 4, 6, 8) if d["ewop"] == 1 else (1, 4, 8)))
    return 511 if d["k3"] else 16


def _join(fields: dict[str, tuple[int, int]], values: dict[str, int]) -> tuple[int, int]:
    """(packed values, mask of their bits)."""
    value = mask = 0
    for name, number in values.items():
        low, width = fields[name]
        assert 0 <= number < 1 << width, f"{name} = {number} in {width} bits"
        value |= number << low
        mask |= ((1 << width) - 1) << low
    return value, mask


class Nest:
    """The issues of the layer with descriptor ``d``, in order, and the resources it consumes."""

    def __init__(self, d: dict[str, int], array: Array) -> None:
        self.d, self.array = d, array
        self.issues: list[Issue] = []
        self._entry_end: dict[int, int] = {}  # the last issue that uses an entry
        self._row_end: dict[int, int] = {}
        walk = {TAPS: self._stripes if d["dw"] else self._convolution, CHAN: self._convolution}
        (walk | {DWROW: self._rows, FC: self._neurons})[d["mode"]]()
        for frees, ends in (("entries", self._entry_end), ("rows", self._row_end)):
            assert sorted(ends) == list(range(len(ends))), f"{frees} are left out"
            in_order = [ends[number] for number in range(len(ends))]
            assert in_order == sorted(in_order), f"{frees} are not released in order"
            for at in in_order:
                name = f"frees_{frees}"
                setattr(self.issues[at], name, getattr(self.issues[at], name) + 1)
        self.entries, self.rows = len(self._entry_end), len(self._row_end)
        self.prows = ceil_div(d["o"], array.n_z)

    # ------------------------------------------------------------------ loops
    def _convolution(self) -> None:
        """block > stripe > group > step > pixels; the input is read for each group or held."""
        d, n_z, entry = self.d, self.array.n_z, 0
        *_, final = stripes(d)
        for block in range(0, d["g"], d["b"]):
            for stripe in stripes(d):
                begin = entry
                for group in range(block, min(block + d["b"], d["g"])):
                    entry = begin if d["held"] else entry
                    chans = min(n_z, d["o"] - group * n_z)
                    sweep = self._sweep(self._pieces(stripe, chans))
                    about = self._place(stripe, group * n_z, chans)
                    for step in range(d["s"]):
                        last = step == d["s"] - 1
                        share = d["mode"] == CHAN and last
                        control = {"taps": (1 << d["lastn"]) - 1 if share else 511}
                        tag = {**about, "first": int(step == 0), "last": int(last)}
                        again = d["out32"] and last
                        made_again = again and not self.array.planes
                        tag["job_whole"] = int(stripe == final and not made_again)
                        row = group * d["s"] + step
                        self._issue(sweep, entry, row, group, control, tag, leaves=last)
                        if again and self.array.planes:
                            self.issues[-1].again = len(sweep)
                        elif again:
                            tag["job_whole"] = int(stripe == final)
                            self._again(sweep, entry, row, group, control, tag)
                        entry += 1
                    if self.array.planes or not d["out32"]:
                        self._take_turns(len(sweep))

    def _take_turns(self, pixels: int) -> None:
        """The last steps of a group, as many as sums share a lane, alternate: pixels > step."""
        steps = min(self.array.share, self.d["s"])
        first = len(self.issues) - steps * pixels
        made = self.issues[first:]
        self.issues[first:] = [made[s * pixels + p] for p in range(pixels) for s in range(steps)]
        for number, issue in enumerate(self.issues[-steps:], len(self.issues) - steps):
            self._entry_end[issue.entry] = self._row_end[issue.row] = number

    def _again(self, sweep, entry: int, row: int, group: int, control, tag) -> None:
        """The last step for bytes 1 to 3 of the sums; its multiplications are already counted."""
        quiet = [(pos, {**lanes, "count": 0}) for pos, lanes in sweep]
        for plane in (1, 2, 3):
            there = {**tag, "job_plane": plane}
            there["job_whole"] = tag["job_whole"] * int(plane == 3)
            self._issue(quiet, entry, row, group, control, there, leaves=True)

    def _stripes(self) -> None:
        """Depthwise with a pool: stripe > channel."""
        d, n_z, entry = self.d, self.array.n_z, 0
        *_, final = stripes(d)
        for stripe in stripes(d):
            sweep = self._sweep(self._row_pieces(lambda at, s=stripe: self._stacked(s, at)))
            for chan in range(d["c"]):
                row, bank = divmod(chan, n_z)
                control = {"taps": depthwise_taps(d), "wsel": bank}
                tag = {**self._place(stripe, chan, 1), "pbank": bank}
                tag["job_whole"] = int(stripe == final)
                self._issue(sweep, entry, row, row, control, tag, leaves=True)
                entry += 1

    def _rows(self) -> None:
        """Depthwise without a pool: channels of an AI RAM row > line > row; maybe two lines."""
        d, entry = self.d, 0
        pitch = 16 << d["ip"]
        for chan in range(0, d["c"], ROW // pitch):
            count = min(ROW // pitch, d["c"] - chan)
            line = 0
            rows = set()
            while line < d["h"]:
                lines = 1 + int(self._pairs_lines(chan, line))
                for x in range(0, d["w"], ROW):
                    job = {"lines": count, "width": min(ROW, d["w"] - x), "gy": line, "gx": x}
                    job |= {"nz": lines, "chan": chan}
                    job["whole"] = int(x + ROW >= d["w"] and line + lines >= d["h"])
                    rows |= self._row(entry, chan, lines, job)
                    entry += lines
                line += lines
            for row in rows:  # released with the last line
                self._row_end[row] = len(self.issues) - 1

    def _row(self, entry: int, chan: int, lines: int, job: dict[str, int]) -> set[int]:
        """The issues of an AI RAM row; the weight rows they need."""
        rows = set()
        pitch = 16 << self.d["ip"]
        sweep = self._sweep(
            self._row_pieces(lambda at: self._in_row(chan, job["gy"], job["gx"], at, lines))
        )
        for number, part in enumerate(sweep):
            # lane 0 is at a multiple of the lanes; the channels of the other lanes follow
            pos = part[0] // self.array.lanes * self.array.lanes
            row, bank = divmod(chan + pos // pitch, self.array.n_z)
            control = {"taps": depthwise_taps(self.d), "wsel": bank}
            tag = {"pbank": bank, **{f"job_{n}": v for n, v in job.items()}}
            last = number == len(sweep) - 1
            where = {"entries": lines, "opens": number == 0, "ends": last}
            self._issue([part], entry, row, row, control, tag, leaves=True, **where)
            rows.add(row)
        return rows

    def _neurons(self) -> None:
        """Fully connected: neuron > step, 64 steps an entry, N_Z words a weight row."""
        d, n_z = self.d, self.array.n_z
        whole = ceil_div(d["s"], ROW)
        valid = {"valid": 1, "count": 1}
        for neuron in range(d["o"]):
            begin = 0 if d["held"] else neuron * whole
            prow, pbank = divmod(neuron, n_z)
            about = self._place((0, 0, 1, 1), neuron, 1)
            for step in range(d["s"]):
                row, bank = divmod(neuron * d["s"] + step, n_z)
                last = step == d["s"] - 1
                control = {"taps": (1 << d["lastn"]) - 1 if last else 511, "wsel": bank}
                tag = {**about, "first": int(step == 0), "last": int(last), "pbank": pbank}
                tag["job_whole"] = 1
                sweep = [(step % ROW, valid)]
                entry = begin + step // ROW
                self._issue(sweep, entry, row, prow, control, tag, leaves=last)

    # ------------------------------------------------------------- one sweep
    def _issue(
        self,
        sweep: list[tuple[int, dict[str, int]]],
        entry: int,
        row: int,
        prow: int,
        control: dict[str, int],
        tag: dict[str, int],
        *,
        leaves: bool,
        entries: int = 1,
        opens: bool = True,
        ends: bool = True,
    ) -> None:
        """Record the issues of a sweep with their common fields; ``opens``, ``ends``: they are the
        first or the last ones."""
        columns, tags = self.array.column(), self.array.tag()
        control_0, mask_0 = _join(columns, control)
        tag_0, tag_mask = _join(tags, tag)
        fc, dw = self.d["mode"] == FC, bool(self.d["dw"])
        for number, (pos, lanes) in enumerate(sweep):
            last = number == len(sweep) - 1
            here = {"pos": 0 if fc else pos, "end": int(ends and last and leaves)}
            here |= {} if dw else {"idx": number}  # depthwise sums have no place
            value, mask = _join(tags, here)
            more, more_mask = _join(columns, {"pos": pos, **lanes})
            # an invalid lane is at no edge; flat: pixels are not at their places
            for name in () if fc else EDGES:
                low = columns[name][0]
                more_mask &= ~(((1 << self.array.lanes) - 1) << low)
                more_mask |= 0 if self.d["flat"] else lanes["valid"] << low
            self.issues.append(
                Issue(
                    entry=entry,
                    entries=entries,
                    word=pos // self.array.word,
                    row=row,
                    prow=prow,
                    opens=opens and number == 0,
                    leaves=leaves,
                    control=control_0 | more,
                    control_mask=mask_0 | more_mask,
                    tag=tag_0 | value,
                    tag_mask=tag_mask | mask,
                )
            )
        for number in range(entry, entry + entries):
            self._entry_end[number] = len(self.issues) - 1
        self._row_end[row] = len(self.issues) - 1

    def _sweep(self, pieces: Iterator[Piece]) -> list[tuple[int, dict[str, int]]]:
        """Position and lanes of the pieces with a valid lane."""
        found = []
        for piece in pieces:
            lanes = piece.lanes(self.d)
            if lanes["valid"]:
                found.append((piece.pos, {**lanes, "count": lanes["valid"].bit_count()}))
        return found

    def _pieces(self, stripe: tuple[int, int, int, int], chans: int) -> Iterator[Piece]:
        """Convolution: N_Y pixels of the stripe, the same for all kernel modules."""
        n_y = self.array.n_y
        for pos in range(0, ROW, n_y):
            own = [self._stacked(stripe, pos + y) for y in range(n_y)]
            lanes = range(self.array.lanes)
            yield Piece(pos, tuple(own[i % n_y] if i // n_y < chans else None for i in lanes))

    def _row_pieces(self, pixel: Callable[[int], Pixel | None]) -> Iterator[Piece]:
        """Depthwise: a lane reads the byte at its own place in the row, if it is in the word."""
        lanes, size = self.array.lanes, self.array.row_lanes
        for pos in range(0, ROW, size):
            places = [pos // lanes * lanes + lane for lane in range(lanes)]
            inside = [at // size == pos // size or at >= ROW for at in places]
            yield Piece(
                pos, tuple(pixel(at) if i else None for at, i in zip(places, inside, strict=True))
            )

    def _stacked(self, stripe: tuple[int, int, int, int], at: int) -> Pixel | None:
        """Pixel of the map at a place of the stripe; None outside the computed grid."""
        d = self.d
        line, column = divmod(at, 1 << d["swl"])
        x, y = stripe[0] + column, stripe[1] + line
        if at >= ROW or x >= d["kw"] or y >= d["kh"]:
            return None
        return y << d["stl"], (x << d["stl"]) + d["ph"]

    def _in_row(self, chan: int, y: int, x: int, at: int, lines: int) -> Pixel | None:
        """Pixel of the map at a place of an AI RAM row; places from 64 on: of the next line."""
        second, at = divmod(at, ROW)
        slot, column = divmod(at, 16 << self.d["ip"])
        if second >= lines or chan + slot >= self.d["c"] or x + column >= self.d["w"]:
            return None
        return y + second, x + column

    def _pairs_lines(self, chan: int, line: int) -> bool:
        """One row a line, one channel a row, and both lines are in a word of two output rows."""
        d = self.d
        if not self.array.pair or d["ew"] or not 32 < d["w"] <= 64 or line + 1 >= d["h"]:
            return False
        return (d["dst"] + chan * d["h"] + line) % 2 == 0

    def _place(self, stripe: tuple[int, int, int, int], chan: int, chans: int) -> dict[str, int]:
        """The fields of a group that the write-back uses."""
        x, y, width, lines = stripe
        gx, gy = origin(self.d, x, y)
        job = {"lines": lines, "width": width, "gy": gy, "gx": gx, "nz": chans, "chan": chan}
        job["plane"] = 0
        return {f"job_{name}": value for name, value in job.items()}
