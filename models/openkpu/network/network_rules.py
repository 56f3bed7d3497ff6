# SPDX-License-Identifier: Apache-2.0
"""What a network image must be, for whoever builds, saves or loads one (docs/networks.md).

Each function says what is wrong in one line, or None: tables of a layer that is added, types of the
arrays of an image, and which map a layer reads.  A layer reads a map that lies at its address, all
of it; one that is in ``Network.narrow`` may read a part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout
from openkpu.layer.pixels import used_layouts
from openkpu.network import relay
from openkpu.network.task_list import TaskList

Shape = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class _Map:
    """A map in the AI RAM while a list runs."""

    name: str
    layout: Layout

    @property
    def shape(self) -> Shape:
        return self.layout.channels, self.layout.height, self.layout.width

    def meets(self, other: Layout) -> bool:
        return self.layout.meets(other)


def _wrong(name: str, array: npt.NDArray, dtype: type, shape: tuple[int, ...]) -> str | None:
    have = np.asarray(array)
    if have.dtype == dtype and have.shape == shape:
        return None
    return f"{name}: {have.dtype}{have.shape}, expected {np.dtype(dtype)}{shape}"


def tables_fault(
    arg: LayerArg, eight_bit: bool, weights: npt.NDArray, bn: npt.NDArray, act: npt.NDArray
) -> str | None:
    """Tables that are not those of the layer: type or length."""
    size = arg.weight_count * arg.weight_size(eight_bit)
    lines = [_wrong("weights", weights, np.uint8, (size,))]
    for name, table, words in zip(("bn", "act"), (bn, act), arg.table_words, strict=True):
        lines.append(_wrong(name, table, np.uint64, (words,)))
    return next(filter(None, lines), None)


def parts_fault(network: TaskList) -> str | None:
    """What an image consists of: layers, a width of weights, and of layers that are there."""
    for i, arg in enumerate(network.layers):
        if not isinstance(arg, LayerArg):
            return f"layer {i}: {type(arg).__name__}, expected a LayerArg"
    try:
        width(network.eight_bit)
    except ValueError as err:
        return str(err)
    places = set(range(len(network.layers)))
    for what, named in (("a loaded map", network.loaded), ("a relayed map", network.relayed)):
        if missing := set(named) - places:
            return f"layer {min(missing)}: {what}, but no such layer"
    for i, second in network.seconds.items():
        if i not in places or not network.layers[i].two_maps or not -1 <= second < i:
            return f"layer {i}: second={second}, expected a layer before one that reads two maps"
    return None


def width(value: object) -> bool:
    """Whether weights have 8 bits; ValueError for what is neither yes nor no."""
    array = np.asarray(value)
    if array.shape == () and array.dtype.kind in "biu" and array in (0, 1):
        return bool(array)
    raise ValueError(f"eight_bit: {value!r}, expected 0 or 1")


def layer_numbers(data: Mapping[str, npt.NDArray]) -> Iterator[list]:
    """Rows of ``kept``, ``relayed`` and ``narrow`` of an image: numbers of ``narrow``, else tuples.

    ValueError for what are no whole numbers, or a layer that is there twice.
    """
    for name, columns in (("kept", 2), ("relayed", 3), ("narrow", 0)):
        yield _rows(name, data.get(name, ()), columns)


def _rows(name: str, array: npt.ArrayLike, columns: int) -> list:
    found = np.asarray(array)
    if not found.size:
        return []
    shape = found.shape[1:] == ((columns,) if columns else ())
    if found.dtype.kind not in "iu" or found.ndim != (2 if columns else 1) or not shape:
        wanted = f"(n, {columns})" if columns else "(n,)"
        raise ValueError(f"{name}: {found.dtype}{found.shape}, expected whole numbers {wanted}")
    rows = found.tolist()
    layers = [row[0] if columns else row for row in rows]
    if len(set(layers)) < len(layers):
        raise ValueError(f"{name}: a layer is there twice, expected each once")
    return [tuple(row) for row in rows] if columns else rows


def maps_fault(name: str, maps: npt.NDArray, each: tuple[int, ...], shape: Shape) -> str | None:
    """Maps of another shape than ``shape``, or that are no bytes.

    Of larger numbers the golden model would see the lower eight bits.
    """
    if each != shape:
        return f"{name} {np.shape(maps)}, the network expects {shape}"
    dtype = np.asarray(maps).dtype
    return None if dtype in (np.uint8, np.int8) else f"{name}: {dtype}, expected uint8 or int8"


def arrays_fault(network: TaskList) -> str | None:
    """Arrays of an image that are not bytes."""
    for name, blob in (("weights", network.weights), ("biases", network.biases)):
        if blob.dtype != np.uint8 or blob.ndim != 1:
            return f"{name}: {blob.dtype}{blob.shape}, expected uint8 (n,)"
    for i, x in network.loaded.items():
        if (found := getattr(x, "dtype", type(x).__name__)) != np.uint8:
            return f"layer {i}: loaded map: {found}, expected uint8"
    return None


def moves_fault(network: TaskList, i: int) -> str | None:
    """A layer that names a map of storage which is not there, or not its own."""
    arg = network.layers[i]
    if arg.load_map and i == 0:
        return "load_map: the first layer's map is the network's input"
    if arg.store_map and i == len(network.layers) - 1:
        return "store_map: the last layer's map is the network's result"
    given = np.shape(network.loaded[i]) if i in network.loaded else None
    if i in network.relayed:
        if given is not None:
            return "load_map: two maps, one of an earlier layer and one of its own"
        if fault := relay.relay_fault(network, i):
            return f"load_map: {fault}"
        given = arg.in_shape
    if given != (arg.in_shape if arg.load_map else None):
        return f"load_map is {arg.load_map}, with a map {given}; the layer takes {arg.in_shape}"
    return None


def shape_fault(network: TaskList, arg: LayerArg) -> str | None:
    """A layer to be added that reads a map which no layer before has, whatever its address."""
    shapes = [shape for layer in network.layers for shape in (layer.in_shape, layer.out_shape)]
    if arg.load_map or not shapes or arg.in_shape in shapes:
        return None
    return (
        f"reads {arg.in_shape}, the layer before writes {shapes[-1]};"
        " expected that shape, or narrow=True for a part of a map"
    )


def like_fault(network: TaskList, arg: LayerArg, layer: int, narrow: bool = False) -> str | None:
    """A layer to be added whose tables are not those of an earlier one."""
    if not 0 <= layer < len(network.layers):
        return f"has the tables of layer {layer}, expected one of {len(network.layers)} layers"
    own, given = ((a.weight_count, a.fp16, a.table_words) for a in (arg, network.layers[layer]))
    if own != given:
        return f"has {own[0]} weights, the tables of layer {layer} have {given[0]}"
    return None if narrow else shape_fault(network, arg)


def reads_fault(network: TaskList) -> str | None:
    """A layer that reads what is no map at that time, or a part of one unasked."""
    if missing := network.narrow - set(range(len(network.layers))):
        return f"layer {min(missing)}: a narrow read, but no such layer"
    live = [_Map("the input", network.layers[0].in_layout)]
    for i, arg in enumerate(network.layers):
        if arg.load_map:
            live = _written(live, _Map(f"the map that layer {i} loads", arg.in_layout))
        for layout, used in zip(arg.in_layouts, used_layouts(arg), strict=True):
            if fault := _read_fault(live, layout, used if i in network.narrow else None):
                return f"layer {i}: {fault}"
        live = _written(live, _Map(f"the map of layer {i}", arg.out_layout))
    return None


def _written(live: list[_Map], new: _Map) -> list[_Map]:
    """Maps that are whole once ``new`` is written."""
    return [old for old in live if not old.meets(new.layout)] + [new]


def _covered(there: list[_Map], part: Layout) -> bool:
    """Is every row of ``part`` one of a map that is there?"""
    rows = [mine.layout.row_numbers() for mine in there]
    return bool(np.isin(part.row_numbers(), np.concatenate(rows)).all())


def _read_fault(live: list[_Map], layout: Layout, used: Layout | None) -> str | None:
    """A map that is not there; ``used``: what counts of it where it may be a part of others."""
    at = f"reads {layout.channels, layout.height, layout.width} from row {layout.base} on"
    if any(m.layout == layout for m in live):
        return None
    there = [m for m in live if m.meets(layout)]
    if not there:
        return f"{at}, where no map lies"
    if used is not None and _covered(there, used):
        return None
    found = there[-1]
    return (
        f"{at}, where {found.name} lies: {found.shape} from row {found.layout.base} on;"
        " a part of a map is read by a layer of Network.narrow"
    )
