# SPDX-License-Identifier: Apache-2.0
"""Layers get addresses: every buffer lies at the lowest rows that are free while it is needed.

A buffer is needed from the first layer that writes or loads it to the last one that reads it.  The
output of a layer that reads every row once, in order, lies on its input where that ends there.
Where there is room the input's place is left to it, so that in a stream the next one may come while
layers compute.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import numpy.typing as npt

from openkpu.compiler.lowering.device import Place, Spec, stored_weights
from openkpu.compiler.lowering.lower import Unable
from openkpu.layer.layout import Layout
from openkpu.network.network import Network, NetworkError

ATTEMPTS = 40  # orders in which buffers are placed


@dataclasses.dataclass
class Life:
    """Rows of a buffer, the layers between which it is needed."""

    rows: int = 0
    first: int = 1 << 30
    last: int = -1

    def use(self, place: Place, layer: int) -> None:
        self.rows = max(self.rows, place.row + place.rows)
        self.first, self.last = min(self.first, layer), max(self.last, layer)


def lives(specs: list[Spec], kept: list[Place]) -> dict[int, Life]:
    """Of each buffer; ``kept`` are needed to the end."""
    found: dict[int, Life] = {}
    for number, spec in enumerate(specs):
        for place in filter(None, (spec.src, spec.src2, spec.dst)):
            found.setdefault(place.buffer, Life()).use(place, number)
    found[specs[0].src.buffer].first = -1
    for place in kept:
        found[place.buffer].use(place, len(specs))
    return found


def placed_rows(specs: list[Spec], kept: list[Place], ram_rows: int) -> dict[int, int]:
    """The first row of each buffer; Unable where they do not fit."""
    alive = lives(specs, kept)
    for held in (True, False):
        found = _rows(specs, alive, held)
        most = max(found[b] + life.rows for b, life in alive.items())
        if most <= ram_rows:
            return found
    found = _packed(specs, alive, ram_rows)
    most = min(most, tall := max(found[b] + life.rows for b, life in alive.items()))
    if tall <= ram_rows:
        return found
    raise Unable(f"the maps that are needed at a time take {most} rows, the AI RAM has {ram_rows}")


def tightest(specs: list[Spec], ram_rows: int) -> dict[int, int]:
    """The first row of each buffer, within ``ram_rows`` where that is found."""
    try:
        return placed_rows(specs, [], ram_rows)
    except Unable:
        return _packed(specs, lives(specs, []), ram_rows)


def reach(specs: list[Spec], rows: dict[int, int]) -> int:
    """The row behind the last one that these layers use."""
    places = [p for s in specs for p in (s.src, s.src2, s.dst) if p is not None]
    return max(rows[p.buffer] + p.row + p.rows for p in places)


def _rows(specs: list[Spec], alive: dict[int, Life], hold: bool) -> dict[int, int]:
    given = specs[0].src.buffer
    ends = {b: life.last for b, life in alive.items()}
    if hold:
        ends[given] = len(specs)
    found: dict[int, int] = {}
    for buffer, life in sorted(alive.items(), key=lambda item: (item[1].first, item[0])):
        on = _in_place(specs, alive, ends, buffer)
        if on is not None and on in found:
            found[buffer] = found[on]
            continue
        taken = sorted(
            (found[other], found[other] + alive[other].rows)
            for other in found
            if ends[other] >= life.first and alive[other].first <= ends[buffer]
        )
        found[buffer] = _lowest(taken, life.rows)
    return found


def _packed(specs: list[Spec], alive: dict[int, Life], ram_rows: int) -> dict[int, int]:
    """Large buffers first, each at the lowest rows that are free while it is needed; one that does
    not fit then is the first one of the next attempt."""
    ends = {b: life.last for b, life in alive.items()}
    root: dict[int, int] = {}
    for buffer in sorted(alive, key=lambda b: (alive[b].first, b)):
        on = _in_place(specs, alive, ends, buffer)
        root[buffer] = root.get(on, buffer) if on is not None else buffer
    joined: dict[int, Life] = {}
    for buffer, on in root.items():
        life, own = joined.setdefault(on, Life()), alive[buffer]
        life.rows, life.first = max(life.rows, own.rows), min(life.first, own.first)
        life.last = max(life.last, own.last)
    order = sorted(joined, key=lambda b: (-joined[b].rows, joined[b].first, b))
    best, least = {}, None
    for _ in range(ATTEMPTS):
        found = _stacked(order, joined)
        worst = max(order, key=lambda b: found[b] + joined[b].rows)
        most = found[worst] + joined[worst].rows
        if least is None or most < least:
            best, least = found, most
        if most <= ram_rows:
            break
        order.remove(worst)
        order.insert(0, worst)
    return {buffer: best[on] for buffer, on in root.items()}


def _stacked(order: list[int], alive: dict[int, Life]) -> dict[int, int]:
    """The lowest free rows for each buffer, one after the other."""
    lives = [alive[b] for b in order]
    first, last = np.array([v.first for v in lives]), np.array([v.last for v in lives])
    found: list[int] = []
    for number, life in enumerate(lives):
        there = (last[:number] >= life.first) & (first[:number] <= life.last)
        taken = sorted((found[n], found[n] + lives[n].rows) for n in np.flatnonzero(there))
        found.append(_lowest(taken, life.rows))
    return dict(zip(order, found, strict=True))


def _lowest(taken: list[tuple[int, int]], rows: int) -> int:
    """The lowest place for ``rows`` beside what is taken, in its order."""
    at = 0
    for first, behind in taken:
        if at + rows <= first:
            break
        at = max(at, behind)
    return at


def _in_place(
    specs: list[Spec], alive: dict[int, Life], ends: dict[int, int], buffer: int
) -> int | None:
    """The buffer on which this one may lie: its maker's input, which nobody reads afterwards."""
    number = alive[buffer].first
    if not 0 <= number < len(specs):
        return None
    spec = specs[number]
    if spec.dst.buffer != buffer or not spec.in_order:
        return None
    for source in filter(None, (spec.src, spec.src2)):
        same = source.row == spec.dst.row and alive[source.buffer].rows == alive[buffer].rows
        if same and ends[source.buffer] == number and source.buffer != buffer:
            return source.buffer
    return None


def network_of(specs: list[Spec], kept: list[Place], ram_rows: int) -> Network:
    """The task list; Unable where the maps do not fit, or a layer is not possible there.

    With a layer that has 16-bit weights all of them have: the device's mode is one for the list.
    """
    rows = placed_rows(specs, kept, ram_rows)
    network = Network(eight_bit=all(spec.weights.itemsize == 1 for spec in specs))
    live: list[Layout] = []
    # the first layer with these weights, and with these other tables: steps of a loop share them
    known: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    numbers = {id(spec): number for number, spec in enumerate(specs)}
    for number, spec in enumerate(specs):
        arg = spec.arg.replace(
            image_src_addr=rows[spec.src.buffer] + spec.src.row,
            image_dst_addr=rows[spec.dst.buffer] + spec.dst.row,
        )
        if spec.src2 is not None:
            arg = arg.replace(image_src2_addr=rows[spec.src2.buffer] + spec.src2.row)
        if not network.eight_bit and arg.weight_count:
            arg = arg.with_loads(False)
        brings = spec.loads or spec.relayed is not None or spec.constant is not None
        loads = number > 0 and bool(brings)
        arg = arg.replace(load_map=int(loads), store_map=int(bool(spec.stores)))
        if number == 0 or loads:
            live = _with(live, arg.in_layout)
        narrow = any(layout not in live for layout in arg.in_layouts)
        try:
            weights = stored_weights(spec.weights, network.eight_bit)
            # The host writes given weights: no other layer shares them.
            own = b"given" + id(spec.weights).to_bytes(8, "little") if spec.given else b""
            keys = own or _digest(weights), _digest(spec.bn, spec.act)
            first = [d.setdefault(key, number) for d, key in zip(known, keys, strict=True)]
            like = tuple(at if at < number else None for at in first)
            network.add(arg, weights, spec.bn, spec.act, narrow=narrow, like=(like[0], like[1]))
        except NetworkError as error:
            raise Unable(str(error)) from None
        live = _with(live, arg.out_layout)
        if spec.constant is not None:
            network.loaded[number] = spec.constant
        if spec.relayed is not None:
            network.relayed[number] = (numbers[id(spec.relayed)], 0)
    return network


def _digest(*tables: npt.NDArray) -> bytes:
    """What stands for the bytes of tables."""
    found = hashlib.sha256()
    for table in tables:
        found.update(np.ascontiguousarray(table).data)
    return found.digest()


def _with(live: list[Layout], new: Layout) -> list[Layout]:
    """Maps that are whole once ``new`` is written."""
    return [m for m in live if not m.meets(new)] + [new]
