# SPDX-License-Identifier: Apache-2.0
"""What the entries of the tile buffer must hold, pixel by pixel, and the reads that it takes."""

from collections.abc import Iterator

import numpy as np

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.decoded import CHAN, DWROW, FC, TAPS
from openkpu_tb.core.descriptor import stripes

ANY = -1  # a byte that does not count
Maps = list[np.ndarray]


def _window(x: np.ndarray, chan: int, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Pixels (len(ys), len(xs)) of a channel; ANY outside the map."""
    inside = ((ys >= 0) & (ys < x.shape[1]))[:, None] & ((xs >= 0) & (xs < x.shape[2]))[None, :]
    picked = x[chan][np.clip(ys, 0, x.shape[1] - 1)][:, np.clip(xs, 0, x.shape[2] - 1)]
    return np.where(inside, picked.astype(np.int16), ANY)


def _place(entry: np.ndarray, bank: int, swl: int, slot: int, pixels: np.ndarray) -> None:
    """Lines of pixels into the slots of a bank from ``slot`` on."""
    for line, row in enumerate(pixels):
        at = (slot + line) << swl
        entry[bank, at : at + len(row)] = row


def _window_of(d: dict[str, int], maps: Maps) -> list[tuple[int, np.ndarray, int, int]]:
    """(bank, map, lines below the pixel, columns right of it) of the taps that a layer uses."""
    if d["ew"]:
        banks = [(bank, maps[0], 0, 0) for bank in (3, 4, 5)]
        return banks + [(bank, second, 0, 0) for second in maps[1:] for bank in (6, 7, 8)]
    far = d["dil"] + 1
    taps = range(9) if d["k3"] else (4,)
    return [(t, maps[0], (t // 3 - 1) * far, (t % 3 - 1) * far) for t in taps]


def _taps(maps: Maps, d: dict[str, int], stripe, chan: int) -> np.ndarray:
    gx, gy, width, lines = stripe
    entry = np.full((9, 64), ANY, dtype=np.int16)
    ys = (gy + np.arange(lines)) << d["stl"]
    xs = ((gx + np.arange(width)) << d["stl"]) + d["ph"]
    for bank, x, below, right in _window_of(d, maps):
        _place(entry, bank, d["swl"], 0, _window(x, chan, ys + below, xs + right))
    return entry


def _chans(maps: Maps, d: dict[str, int], stripe, step: int) -> np.ndarray:
    (x,) = maps
    gx, gy, width, lines = stripe
    entry = np.full((9, 64), ANY, dtype=np.int16)
    x = x.reshape(x.shape[0], 1, -1) if d["flat"] else x
    ys = (gy + np.arange(lines)) << d["stl"]
    xs = ((gx + np.arange(width)) << d["stl"]) + d["ph"]
    for bank in range(min(9, x.shape[0] - 9 * step)):
        _place(entry, bank, d["swl"], 0, _window(x, 9 * step + bank, ys, xs))
    return entry


def _rows(maps: Maps, d: dict[str, int]) -> Iterator[np.ndarray]:
    per_row = 4 >> d["ip"]
    for first in range(0, d["c"], per_row):
        for line in range(d["h"]):
            for left in range(0, d["w"], 64):
                entry = np.full((9, 64), ANY, dtype=np.int16)
                xs = left + np.arange(min(64, d["w"] - left))
                for bank, x, below, right in _window_of(d, maps):
                    ys = np.array([line + below])
                    for slot in range(min(per_row, d["c"] - first)):
                        pixels = _window(x, first + slot, ys, xs + right)
                        _place(entry, bank, 4 + d["ip"], slot, pixels)
                yield entry


def _vector(x: np.ndarray) -> Iterator[np.ndarray]:
    flat = x.reshape(-1).astype(np.int16)
    flat = np.concatenate([flat, np.full(-len(flat) % 576, ANY, dtype=np.int16)])
    for part in flat.reshape(-1, 64, 9):
        yield part.T


def entries(maps: Maps, d: dict[str, int]) -> Iterator[np.ndarray]:
    """Entries (9, 64) in the order in which the array uses them; ANY where nothing counts.

    ``maps``: the input, and an element-wise layer's second map if it has one.
    """
    if d["mode"] == DWROW:
        yield from _rows(maps, d)
        return
    if d["mode"] == FC:
        for _ in range(1 if d["held"] else d["g"]):
            yield from _vector(maps[0])
        return
    make = {TAPS: _taps, CHAN: _chans}[d["mode"]]
    for block in range(0, d["g"], d["b"]):
        groups = min(d["b"], d["g"] - block)
        for stripe in stripes(d):
            for _ in range(1 if d["held"] else groups):
                for step in range(d["s"]):
                    yield make(maps, d, stripe, step)


def reads(d: dict[str, int], word: int = 64) -> int:
    """AI RAM reads when each word that holds a pixel in use is read once for each pass, of a
    dilated layer once for each tap row.

    ``word``: its bytes.
    """
    both = 2 if d["ew"] and not d["one"] else 1
    pitch = 16 << d["ip"]
    groups = [min(64 // pitch, d["c"] - first) for first in range(0, d["c"], 64 // pitch)]
    if d["mode"] == DWROW:
        return both * d["h"] * sum(ceil_div((chans - 1) * pitch + d["w"], word) for chans in groups)
    if d["mode"] == FC:
        return (1 if d["held"] else d["g"]) * d["c"] * d["h"] * ceil_div(d["w"], word)
    reach = (d["dil"] + 1) * int(d["mode"] == TAPS and d["k3"] and not d["ew"])
    total = 0
    for gx, gy, width, lines in stripes(d):
        if d["flat"]:
            first, last = gx // d["w"], (gx + width - 1) // d["w"]
            begins = max(gx, last * d["w"])  # of the last line's part, cut where a word ends
            cut = (begins - gx) // word != (width - 1) // word
            total += last - first + 1 + int(cut)
            continue
        rows = (-reach, 0, reach) if reach else (0,)
        used = [((gy + n) << d["stl"]) + k for n in range(lines) for k in rows]
        ys = [y for y in (used if d["dil"] else set(used)) if 0 <= y < d["h"]]
        low = max(0, (gx << d["stl"]) + d["ph"] - reach)
        high = min(d["w"] - 1, ((gx + width - 1) << d["stl"]) + d["ph"] + reach)
        total += len(ys) * (high // word - low // word + 1)
    shared = sum(ceil_div(chans, max(1, word // pitch)) for chans in groups)
    units = d["c"] if d["mode"] == TAPS else shared
    passes = 0
    for block in range(0, d["g"], d["b"]):
        passes += 1 if d["held"] else min(d["b"], d["g"] - block)
    return both * total * units * passes
