# SPDX-License-Identifier: Apache-2.0
"""Maps of a segment that the device itself moves between storage and AI RAM (docs/kpu.md 1.13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.layer.airam import bytes_of
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout, map_bytes
from openkpu.layer.pixels import used_layouts

ALIGN = 64  # bytes: a multiple of every bus word


def size_of(layout: Layout) -> int:
    """Bytes of a dense map."""
    return map_bytes((layout.channels, layout.height, layout.width))


def segment_parts(to_main: Sequence[bool]) -> list[range]:
    """Places of a segment's layers, cut behind every one whose map goes to main memory."""
    ends = [place + 1 for place, goes in enumerate(to_main) if goes]
    ends += [len(to_main)] if not ends or ends[-1] < len(to_main) else []
    return [range(a, b) for a, b in zip([0, *ends], ends, strict=False)]


def maps_to_bring(
    args: Sequence[LayerArg],
    lacks: Callable[[npt.NDArray[np.int32]], npt.NDArray[np.bool_]],
    loads: bool,
) -> Iterator[tuple[int, Layout | None, npt.NDArray[np.int32]]]:
    """What layers of a segment read that none of them makes and the AI RAM ``lacks``, in sequence.

    The place of the layer; its map, or None for single bytes of one that is partly the segment's
    own; the bytes of the AI RAM. ``loads``: a layer loads its first map when it runs.
    """
    made = np.zeros(AI_RAM_ROWS * ROW_BYTES, dtype=bool)
    for number, arg in enumerate(args):
        for layout, used in zip(arg.in_layouts, used_layouts(arg), strict=True):
            at = bytes_of(used)
            missing = lacks(at) & ~made[at]
            if missing.any() and made[at].any():
                yield number, None, at[missing]
            elif missing.any():
                at = bytes_of(layout)
                yield number, layout, at
                made[at] |= loads and layout == arg.in_layout
        made[bytes_of(arg.out_layout)] = True


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

    def store_all(
        self, args: Sequence[LayerArg], to_main: Sequence[bool], wanted: Sequence[Layout]
    ) -> None:
        """The maps of a segment that the host starts: those for main memory, and ``wanted``."""
        for number, goes in enumerate(to_main):
            if goes:
                self.store(number, args[number].out_layout)
        self.store_wanted(args, wanted)

    def store_wanted(
        self, args: Sequence[LayerArg], wanted: Sequence[Layout], but: Collection[int] = ()
    ) -> None:
        """Every map that the CPU reads next, as far as a layer of ``args`` leaves it; none of
        layers ``but``, the last ones of task lists, whose maps leave by AI_RES_ADR."""
        for layout in wanted:
            for number in reversed(range(len(args))):
                out = args[number].out_layout
                if out == layout and number not in {*but, *self.stores}:
                    self.store(number, layout)
                if out.meets(layout):
                    break  # what lay there before is overwritten

    def _room(self, layout: Layout) -> int:
        at, self.at = self.at, self.at + round_up(size_of(layout), ALIGN)
        return at
