# SPDX-License-Identifier: Apache-2.0
"""Random task lists of every kind of task, in any order (docs/kpu.md 1.7 to 1.11)."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import fits_product, random_fp16
from openkpu.generators.generate_pools import on_map
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import on_maps
from openkpu.layer.argument import LayerError
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network, NetworkError

KINDS = ("convolution", "fully connected", "product", "element-wise", "pool")
ALL_KINDS = (*KINDS, "float16")  # of a build with lanes for products of float16
MOST_CHANNELS = 256  # limit for the input of a product: its output has four times as many


@dataclasses.dataclass
class _Map:
    """A map in the AI RAM."""

    pixels: npt.NDArray[np.uint8]
    signed: bool
    base: int
    stride: int = 0  # rows from a channel group to the next; 0: they follow each other

    @property
    def layout(self) -> Layout:
        return Layout(*self.pixels.shape, base=self.base, stride=self.stride)

    @property
    def rows(self) -> int:
        return self.layout.rows

    def lines(self, rng: np.random.Generator) -> _Map:
        """Some of its lines, as a map with rows between its channel groups."""
        height, layout = self.pixels.shape[1], self.layout
        first = int(rng.integers(0, height))
        behind = int(rng.integers(first, height)) + 1
        base = self.base + first * layout.row_len
        return _Map(self.pixels[:, first:behind], self.signed, base, layout.channel_rows)

    def meets(self, base: int, rows: int) -> bool:
        return base < self.base + self.rows and self.base < base + rows


def every_pair(
    rng: np.random.Generator, first: str = KINDS[0], kinds: tuple[str, ...] = KINDS
) -> list[str]:
    """A random order of tasks, 26 of five kinds: each kind follows each, itself too, exactly once.

    ``first``: kind of the first task, and so of the last one.
    """
    left = {kind: list(rng.permutation(kinds)) for kind in kinds}
    path, tour = [first], []  # Hierholzer: an Eulerian circuit over the pairs
    while path:
        ways = left[path[-1]]
        if ways:
            path.append(str(ways.pop()))
        else:
            tour.append(path.pop())
    return tour[::-1]


def random_list(
    rng: np.random.Generator,
    kinds: list[str],
    shape: tuple[int, ...],
    *,
    limits: Limits | None = None,
    ram_rows: int = AI_RAM_ROWS,
    moves: float = 0.0,
    strides: float = 0.0,
) -> tuple[Network, npt.NDArray[np.uint8]]:
    """A network of 8-bit weights with a task of each of ``kinds``, and an image.

    ``moves``: share of the tasks that load their map from storage, and share of the tasks that
    store theirs.  ``strides``: share of the tasks that read some lines of a map, and share of the
    tasks whose output has rows between its channel groups, where that is legal.

    A task reads the map of the previous task, or any other map that is still in the AI RAM,
    including the image; outputs are placed after the previous output, and from row 0 on where they
    do not fit.  NetworkError if the AI RAM is too small for a task, or holds no map that a product
    of float16 could read.
    """
    lim = dataclasses.replace(limits or Limits(), fully_connected=False, sixteen_bit=False)
    image = rng.integers(0, 256, shape).astype(np.uint8)
    network, maps = Network(eight_bit=True), [_Map(image, False, 0)]
    free = maps[0].rows
    for number, kind in enumerate(kinds):
        source = maps[-1]
        if rng.random() < (0.25 if source.pixels[0].size > 1 else 0.75):
            source = maps[int(rng.integers(0, len(maps)))]
        like = [m for m in maps if m.pixels.shape == source.pixels.shape]
        second = like[int(rng.integers(0, len(like)))]
        if kind == "product" and len(source.pixels) > MOST_CHANNELS:
            source = maps[0]
        if kind == "float16" and not fits_product(source.pixels.shape):
            fits = [m for m in maps if fits_product(m.pixels.shape)]
            if not fits:
                raise NetworkError("no map has the shape of a matrix of float16")
            source = fits[int(rng.integers(0, len(fits)))]
        load = store = False
        if moves:
            load, store = rng.random(2) < moves
            load, store = bool(load and number), bool(store and number < len(kinds) - 1)
        compact = kind in ("fully connected", "product", "float16") or not number or load
        if compact and source.stride:
            plain = [m for m in maps if not m.stride]
            if not plain:
                raise NetworkError("no map whose channel groups follow each other")
            source = second = plain[-1]
            if kind == "float16" and not fits_product(source.pixels.shape):
                raise NetworkError("no map has the shape of a matrix of float16")
        elif strides and not compact and rng.random() < strides:
            source = second = source.lines(rng)
        elif second.stride != source.stride:
            second = source
        if load:
            source.pixels = rng.integers(0, 256, source.pixels.shape, dtype=np.uint8)
            network.loaded[number] = source.pixels
        layer = _task(rng, kind, source, second, lim)
        used = [source, second] if layer.arg.two_maps else [source]
        out = Layout(*layer.arg.out_shape)
        stays = not ((compact and number) or store or number == len(kinds) - 1)
        if strides and stays and rng.random() < strides:
            apart = out.own_rows + int(rng.integers(0, 4))
            out = dataclasses.replace(out, stride=apart)
        base, rows = _place(free, out.rows, used, ram_rows)
        fields = {"image_src_addr": source.base, "image_dst_addr": base}
        if layer.arg.two_maps:
            fields["image_src2_addr"] = second.base
        fields |= {"load_map": int(load), "store_map": int(store)}
        if source.stride:
            fields |= {"in_strided": 1, "channel_switch_addr": source.stride}
        if out.stride:
            fields |= {"out_strided": 1, "wb_channel_switch_addr": out.stride}
        arg = layer.arg.replace(**fields)
        network.add(arg, layer.weights, layer.bn, layer.act, narrow=bool(strides))
        maps = [m for m in maps if not m.meets(base, rows)]
        maps.append(_Map(layer.y.view(np.uint8), bool(layer.arg.signed_out), base, out.stride))
        free = base + rows
    network.validate(ram_rows)
    return network, image


def _place(free: int, rows: int, used: list[_Map], ram_rows: int) -> tuple[int, int]:
    """(first row, rows) of an output: from ``free`` on, or the lowest rows beside ``used``."""
    for base in (free, 0, *(m.base + m.rows for m in used)):
        if base + rows <= ram_rows and not any(m.meets(base, rows) for m in used):
            return base, rows
    raise NetworkError(f"{rows} rows of an output do not fit {ram_rows} rows beside its input")


def _task(
    rng: np.random.Generator, kind: str, source: _Map, second: _Map, lim: Limits
) -> VectorLayer:
    """A task of a kind on these maps; its addresses are not the ones it gets."""
    x = source.pixels
    if kind == "element-wise":
        return on_maps(rng, x, second.pixels, source.signed, eight_bit=True)
    if kind == "float16":
        behind, m = Layout(*x.shape).rows, int(rng.integers(1, min(lim.channels, 8) + 1))
        return random_fp16(rng, x=x, m=m, eight_bit=True, src=0, dst=behind)
    if kind == "pool":
        return on_map(rng, x, source.signed)
    if kind == "product":
        behind = Layout(*x.shape).rows
        most = min(lim.channels, 8)
        o = int(rng.integers(1, most + 1))
        return random_product(rng, x=x, o=o, src=0, dst=behind, limits=lim)
    fc = kind == "fully connected"
    fits = tuple(p for p in lim.pools if POOL_STRIDE[p] <= min(x.shape[1:]))
    while True:
        try:
            return random_layer(
                rng,
                x=x,
                fc=fc,
                pool=0 if fc or not fits else int(rng.choice(fits)),
                kernel=1 if fc else None,
                depthwise=False if fc else None,
                signed_in=source.signed,
                eight_bit=True,
                limits=lim,
            )
        except LayerError:
            continue
