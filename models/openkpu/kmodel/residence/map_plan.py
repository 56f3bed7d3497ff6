# SPDX-License-Identifier: Apache-2.0
"""Maps of a segment that the device itself moves between storage and AI RAM (docs/kpu.md 1.13)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from openkpu.arithmetic.integers import round_up
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout, map_bytes

ALIGN = 64  # bytes: a multiple of every bus word


def size_of(layout: Layout) -> int:
    """Bytes of a dense map."""
    return map_bytes((layout.channels, layout.height, layout.width))


class MapPlan:
    """Places in storage, and the fields that the arguments of the layers need."""

    def __init__(self, at: int) -> None:
        """``at``: first byte of storage that is free."""
        self.at = at
        self.stores: dict[int, tuple[int, Layout]] = {}  # address and map, by place in the segment
        self._fields: dict[int, dict[str, int]] = {}

    def fields(self, number: int) -> dict[str, int]:
        """Fields of the argument of a layer of the segment."""
        return self._fields.get(number, {})

    def load(self, number: int, layout: Layout) -> int:
        """The layer reads its map from storage; where it has to lie."""
        at = self._room(layout)
        self._fields.setdefault(number, {}).update(load_map=1, map_load_addr=at)
        return at

    def store(self, number: int, layout: Layout) -> None:
        """The layer's map goes to storage."""
        at = self._room(layout)
        self.stores[number] = at, layout
        self._fields.setdefault(number, {}).update(store_map=1, map_store_addr=at, send_data_out=0)

    def store_wanted(
        self, args: Sequence[LayerArg], wanted: Sequence[Layout], but: Collection[int] = ()
    ) -> None:
        """Every map that the CPU reads next, as far as a layer of ``args`` leaves it; none of
        layers ``but``, whose maps leave in another way."""
        for layout in wanted:
            for number in reversed(range(len(args))):
                out = args[number].out_layout
                if out == layout and number not in {*but, *self.stores}:
                    self.store(number, layout)
                if out.base < layout.base + layout.rows and layout.base < out.base + out.rows:
                    break  # what lay there before is overwritten

    def _room(self, layout: Layout) -> int:
        at, self.at = self.at, self.at + round_up(size_of(layout), ALIGN)
        return at
