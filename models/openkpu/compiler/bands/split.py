# SPDX-License-Identifier: Apache-2.0
"""Maps that are one only because a layer has at most 1,024 channels become maps of their own, and
what reads a part of them follows its writer."""

from __future__ import annotations

import dataclasses

from openkpu.compiler.lowering.device import Place, Spec

Uses = list[tuple[int, str, Place]]  # number of a layer, which of its maps, where that lies


def split_order(specs: list[Spec], wanted: set[int]) -> list[tuple[int, Spec]]:
    """(number, layer) in an order in which fewer maps are needed at a time."""
    made = [dataclasses.replace(spec) for spec in specs]
    _parted(made)
    used = _uses(made)
    fresh = max(used) + 1
    for uses in used.values():
        written = [place for _, name, place in uses if name == "dst"]
        read = {place for _, name, place in uses if name != "dst"}
        kept = any(number in wanted and name == "dst" for number, name, _ in uses)
        if len(written) < 2 or kept or len(set(written)) < len(written) or not read <= set(written):
            continue
        names = {place: Place(fresh + i, 0, place.shape) for i, place in enumerate(written)}
        fresh += len(written)
        for number, name, place in uses:
            made[number] = dataclasses.replace(made[number], **{name: names[place]})
    return _ordered(list(enumerate(made)))


def _uses(specs: list[Spec]) -> dict[int, Uses]:
    """The maps of all layers, by buffer."""
    used: dict[int, Uses] = {}
    for number, spec in enumerate(specs):
        for name, place in (("src", spec.src), ("src2", spec.src2), ("dst", spec.dst)):
            if place is not None:
                used.setdefault(place.buffer, []).append((number, name, place))
    return used


def _parted(specs: list[Spec]) -> None:
    """Give maps of a buffer that share no rows a buffer each, which begins with its first map: of
    a concatenation some parts may be written by other lists."""
    used = _uses(specs)
    fresh = max(used) + 1
    for uses in used.values():
        end = first = -1
        for number, name, place in sorted(uses, key=lambda use: use[2].row):
            if place.row >= end:
                fresh, first = fresh + 1, place.row
            end = max(end, place.row + place.rows)
            moved = dataclasses.replace(place, buffer=fresh - 1, row=place.row - first)
            specs[number] = dataclasses.replace(specs[number], **{name: moved})


def _ordered(layers: list[tuple[int, Spec]]) -> list[tuple[int, Spec]]:
    """A pooling task or depthwise layer directly behind the layer whose map it alone reads."""
    readers: dict[int, list[int]] = {}
    writers: dict[int, list[int]] = {}
    for number, spec in layers:
        writers.setdefault(spec.dst.buffer, []).append(number)
        for place in filter(None, (spec.src, spec.src2)):
            readers.setdefault(place.buffer, []).append(number)
    found: list[tuple[int, Spec]] = []
    for number, spec in layers:
        made_by = writers.get(spec.src.buffer, [])
        follows = spec.arg.depthwise or spec.arg.pool_task
        alone = len(made_by) == 1 and readers[spec.src.buffer] == [number]
        one_map = spec.src2 is None and spec.constant is None
        # the last layer stays the last one: its map is a result
        if follows and alone and one_map and number + 1 < len(layers):
            at = [n for n, _ in found].index(made_by[0])
            found.insert(at + 1, (number, spec))
        else:
            found.append((number, spec))
    return found
