# SPDX-License-Identifier: Apache-2.0
"""A network image for the task-list mode: layer arguments, weights, biases; and its execution.

Table addresses inside the arguments are offsets: ``para_start_addr`` into the weights, the others
into the biases.  Both blobs are in the order of the layers, each table 8-byte aligned, so that a
network image can lie anywhere in storage.  Layers may share tables.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import re
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.arithmetic.integers import round_up
from openkpu.arithmetic.params import BN_BYTES
from openkpu.arithmetic.words import from_stored, to_stored
from openkpu.configs import Config
from openkpu.layer import airam
from openkpu.layer.argument import WORDS, LayerArg, LayerError
from openkpu.layer.golden import LayerResult, run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout, map_bytes
from openkpu.layer.vectors import VectorLayer
from openkpu.network import kept, moves, network_rules, relay
from openkpu.network.task_list import NetworkError, TaskList

ALIGN = 8  # bytes, of every table
MOST_LAYERS = 1023  # of a task list (AI_LIST_LEN)
UNWRITTEN = relay.UNWRITTEN  # what AI RAM and result area hold before a run


def alignment(config: Config) -> int:
    """Bytes: what lies in storage for this device is aligned so; results must be to a bus word."""
    return max(ALIGN, config.bus_bytes)


@dataclasses.dataclass
class NetworkRun:
    """One inference."""

    y: npt.NDArray[np.uint8]  # output map of the last layer
    layers: list[LayerResult]
    words: bool = False  # the last layer has out32

    @property
    def stored(self) -> npt.NDArray[np.uint8]:
        """The bytes (n,) of the result, as they leave the device."""
        return to_stored(self.y.view(np.uint8), self.words)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def macs_gated(self) -> int:
        return sum(layer.macs_gated for layer in self.layers)


@dataclasses.dataclass
class Storage:
    """A network and images placed in storage."""

    data: npt.NDArray[np.uint8]  # flat bytes from address ``base`` on
    base: int
    registers: dict[str, int]  # AI_* register values, eight_bit_mode among them
    results: list[int]  # address of every result
    result_shape: tuple[int, int, int]
    words: bool = False  # the results are 32-bit words (out32 of the last layer)
    stored: dict[int, int] = dataclasses.field(default_factory=dict)  # map's address, by layer
    # layers that bring kept weights into the AI RAM, for the host to run before
    bring: list[LayerArg] = dataclasses.field(default_factory=list)

    def result(self, memory: npt.NDArray[np.uint8], i: int) -> npt.NDArray[np.uint8]:
        """Result map ``i`` out of ``memory``, bytes of the storage from ``base`` on."""
        start = self.results[i] - self.base
        stored = memory[start : start + map_bytes(self.result_shape)]
        return from_stored(stored, self.result_shape, self.words)


@dataclasses.dataclass
class Network(TaskList):
    """A task list with its tables; see ``add`` for building one."""

    @classmethod
    def single(cls, layer: VectorLayer) -> Network:
        """A recorded layer as a network of its own, at the AI RAM addresses of its words."""
        network = cls(eight_bit=layer.eight_bit)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        return network

    # ---------------------------------------------------------------- building
    def add(
        self,
        arg: LayerArg,
        weights: npt.NDArray[np.uint8],
        bn: npt.NDArray[np.uint64],
        act: npt.NDArray[np.uint64],
        second: int | None = None,
        *,
        narrow: bool = False,
        like: tuple[int | None, int | None] = (None, None),
    ) -> LayerArg:
        """Append a layer: its tables go to the end of the blobs, its addresses are set to them.

        ``weights``: bytes (n,), ``bn``: (O,), ``act``: (18,), as ``tables`` gives them.
        ``second``: of an element-wise layer with two maps the layer whose output is the second map
        (the first is that of the layer before), -1 for the input.  ``narrow``: it reads a part of
        the map at its address.  ``like``: an earlier layer with the same weights, one with the same
        other tables, whose bytes it reads.  NetworkError, and nothing is appended, for tables that
        are not the layer's and a map that no layer before has.
        """
        number = len(self.layers)
        fault = network_rules.tables_fault(arg, self.eight_bit, weights, bn, act)
        if not narrow:
            fault = fault or network_rules.shape_fault(self, arg)
        if second is not None and not (arg.two_maps and -1 <= second < number):
            fault = fault or f"second={second}, expected a layer before one that reads two maps"
        if fault:
            raise NetworkError(f"layer {number}: {fault}")
        self.narrow |= {number} if narrow else set()
        if second is not None:
            self.seconds[number] = second
        tables = np.concatenate([_bytes(bn), _bytes(act)])
        starts = self.weights.size, self.biases.size
        if like[0] is None:
            self.weights = _aligned(np.concatenate([self.weights, weights]), ALIGN)
        else:
            starts = self.layers[like[0]].para_start_addr, starts[1]
        if like[1] is None:
            self.biases = _aligned(np.concatenate([self.biases, tables]), ALIGN)
        else:
            starts = starts[0], self.layers[like[1]].bwsx_base_addr
        arg = arg.replace(
            para_start_addr=starts[0],
            bwsx_base_addr=starts[1],
            active_addr=starts[1] + BN_BYTES * arg.table_words[0],
        )
        self.layers.append(arg)
        return arg

    def add_like(self, arg: LayerArg, layer: int, *, narrow: bool = False) -> LayerArg:
        """Append a layer that has the tables of an earlier one; the layer with their addresses.

        ``narrow`` and NetworkError as for ``add``.
        """
        if fault := network_rules.like_fault(self, arg, layer, narrow):
            raise NetworkError(f"layer {len(self.layers)}: {fault}")
        self.narrow |= {len(self.layers)} if narrow else set()
        names = ("para_start_addr", "bwsx_base_addr", "active_addr")
        arg = arg.replace(**{name: getattr(self.layers[layer], name) for name in names})
        self.layers.append(arg)
        return arg

    def place(self, ram_rows: int = AI_RAM_ROWS, keep_input: bool = True) -> None:
        """Set the AI RAM addresses: maps in turn at the bottom and at the top.

        ``keep_input``: where there is room the input's place is left to it, so that in a stream the
        next image may come while the layers behind the first one compute.  Maps that a later
        element-wise layer reads keep their place until then; NetworkError where they do not fit.
        No weights are kept in the rows that are left (prediction/keeping.py chooses some).
        """
        if self.in_shape and (fault := network_rules.parts_fault(self)):
            raise NetworkError(fault)
        (self._place_all if self.seconds else self._place_in_turn)(ram_rows, keep_input)
        self.kept = {}

    def _place_in_turn(self, ram_rows: int, keep_input: bool) -> None:
        """A map at the bottom, the next one at the top."""
        rows = [Layout(*arg.in_shape).rows for arg in self.layers]
        rows.append(Layout(*self.layers[-1].out_shape).rows)
        room = ram_rows - rows[0]
        fits = all(a + b <= room for a, b in itertools.pairwise(rows[1:]))
        bottom = rows[0] if keep_input and fits else 0
        low = True  # where the input of the layer lies
        placed = []
        src = 0
        for arg in self.layers:
            dst = ram_rows - Layout(*arg.out_shape).rows if low else bottom
            placed.append(arg.replace(image_src_addr=src, image_dst_addr=dst))
            src, low = dst, not low
        self.layers = placed

    def _place_all(self, ram_rows: int, keep_input: bool) -> None:
        """Every map at the lowest rows that are free while it is needed."""
        maps = [Layout(*self.in_shape).rows]  # rows of the input and of each layer's output
        maps += [Layout(*arg.out_shape).rows for arg in self.layers]
        needed = list(range(len(maps)))  # the last layer that reads it; the result has none
        for layer, second in self.seconds.items():
            needed[second + 1] = max(needed[second + 1], layer)
        for held in (True, False) if keep_input else (False,):
            last = [len(maps) if held else needed[0], *needed[1:]]
            places = [0]
            for number in range(1, len(maps)):
                live = [m for m in range(number) if last[m] >= number - 1]
                taken = sorted((places[m], places[m] + maps[m]) for m in live)
                at = 0
                for first, behind in taken:
                    if at + maps[number] <= first:
                        break
                    at = max(at, behind)
                places.append(at)
            if all(p + n <= ram_rows for p, n in zip(places, maps, strict=True)):
                break
        else:
            raise NetworkError(f"the maps that are needed at a time do not fit {ram_rows} rows")
        for number, arg in enumerate(self.layers):
            fields = {"image_src_addr": places[number], "image_dst_addr": places[number + 1]}
            if number in self.seconds:
                fields["image_src2_addr"] = places[self.seconds[number] + 1]
            self.layers[number] = arg.replace(**fields)

    def _find_seconds(self) -> dict[int, int]:
        """What ``seconds`` was, from the addresses of a network that is placed."""
        found = {}
        for number, arg in enumerate(self.layers):
            outputs = [self.layers[0].image_src_addr, *(a.image_dst_addr for a in self.layers)]
            shapes = [self.in_shape, *(a.out_shape for a in self.layers)]
            for before in range(number, -1, -1) if arg.two_maps else ():
                if (outputs[before], shapes[before]) == (arg.image_src2_addr, arg.in_shape):
                    found[number] = before - 1
                    break
        return found

    def tables(
        self, arg: LayerArg
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """(weight bytes, batch-norm words, activation words) that a layer's addresses name."""
        size = arg.weight_count * arg.weight_size(self.eight_bit)
        bn, act = (8 * words for words in arg.table_words)
        return (
            _slice("weights", self.weights, arg.para_start_addr, size),
            _slice("biases", self.biases, arg.bwsx_base_addr, bn).view("<u8"),
            _slice("biases", self.biases, arg.active_addr, act).view("<u8"),
        )

    def validate(self, ram_rows: int = AI_RAM_ROWS) -> None:
        """NetworkError naming the layer when an argument, an address or a table is illegal.

        What ``save`` and ``load`` ask of a network.
        """
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            raise NetworkError(f"{len(self.layers)} layers, a task list has 1..{MOST_LAYERS}")
        if fault := network_rules.parts_fault(self) or network_rules.arrays_fault(self):
            raise NetworkError(fault)
        for i, arg in enumerate(self.layers):
            try:
                arg.validate(eight_bit=self.eight_bit, ram_rows=ram_rows)
                self.tables(arg)
                if fault := network_rules.moves_fault(self, i):
                    raise NetworkError(fault)
            except (LayerError, NetworkError) as err:
                raise NetworkError(f"layer {i}: {err}") from None
        if fault := network_rules.reads_fault(self) or kept.kept_fault(self, ram_rows):
            raise NetworkError(fault)

    # ----------------------------------------------------------------- running
    def run(
        self,
        x: npt.NDArray,
        *,
        rounding: str = "nncase",
        ram: npt.NDArray[np.uint8] | None = None,
        bring: bool = True,
    ) -> NetworkRun:
        """One inference on the golden model, every map read from and written to an AI RAM.

        ``x``: (C, H, W) bytes.  ``ram``: an AI RAM to work in (a fresh one by default), so that
        a layer with a wrong address reads here what it reads on the device.  ``bring``: first put
        kept weights there, as before the first inference of a stream.  Every layer reads its
        whole input before its output is written, as in the vendor's simulator; LayerError for one
        whose maps share rows so that the device could not do the same.
        """
        ram = airam.new_ram(fill=UNWRITTEN) if ram is None else ram
        if fault := network_rules.maps_fault("input", x, np.shape(x), self.in_shape):
            raise NetworkError(fault)
        first = self.layers[0]
        if bring:
            kept.put(self, ram)
        airam.pack_map(ram, first.image_src_addr, x)
        results = []
        for i, arg in enumerate(self.layers):
            weights, bn, act = self.tables(arg)
            weights = kept.weights(self, i, ram) if i in self.kept else weights
            if arg.load_map:
                own = self.loaded[i] if i in self.loaded else relay.map_of(self, i, results)
                airam.pack_map(ram, arg.image_src_addr, own)
            pixels, *second = (airam.read_rows(ram, m) for m in arg.in_layouts)
            result = run_layer(
                *(arg, pixels, weights, bn, act),
                x2=second[0] if second else None,
                eight_bit=self.eight_bit,
                rounding=rounding,
            )
            airam.write_rows(ram, arg.out_layout, result.y)
            results.append(result)
        last = self.layers[-1]
        y = airam.unpack_map(ram, last.image_dst_addr, last.out_shape)
        return NetworkRun(y, results, self.words)

    def kept_parts(self) -> list[tuple[int, int]]:
        """(first row, rows) of the weights that stay in the AI RAM."""
        return [(row, kept.kept_rows(self, i)) for i, row in self.kept.items()]

    def spare_rows(self, ram_rows: int = AI_RAM_ROWS) -> tuple[int, int]:
        """(first row, rows) in which no map and no kept weights lie, for AI_SPARE_ROWS."""
        return kept.spare_rows(self.layers, ram_rows, self.kept_parts())

    # ----------------------------------------------------------------- storage
    def task_list(self) -> npt.NDArray[np.uint8]:
        """The layer arguments as bytes, 96 each."""
        return _bytes(np.concatenate([arg.encode() for arg in self.layers]))

    def with_moves(self, at: int, align: int) -> tuple[Network, npt.NDArray[np.uint8]]:
        """With maps in storage from ``at`` on, kept weights named by their place; these maps."""
        placed = moves.place_moves(self, at, align)
        return dataclasses.replace(self, layers=placed.layers), placed.maps

    def storage(
        self,
        images: npt.NDArray,
        *,
        base: int = 0,
        continuous: bool = False,
        align: int = ALIGN,
        pixel_offset: int = 0,
    ) -> Storage:
        """Lay out list, weights, biases, images and room for results from address ``base`` on.

        ``images``: (n, C, H, W) bytes.  ``pixel_offset`` moves them off their alignment.  Registers
        are those of the first inference; AI_INF_LEFT says how many follow in continuous mode.
        """
        each = np.shape(images)[1:] if np.size(images) else ()
        if fault := network_rules.maps_fault("images", images, each, self.in_shape):
            raise NetworkError(fault)
        images = np.ascontiguousarray(images).view(np.uint8)
        count = len(images)
        pixels = images.reshape(count, -1)
        pixel_stride = round_up(pixels.shape[1], align)
        result_stride = round_up(map_bytes(self.out_shape), align)
        padded = np.zeros((count, pixel_stride), dtype=np.uint8)
        padded[:, : pixels.shape[1]] = pixels
        result = np.full(count * result_stride, UNWRITTEN, dtype=np.uint8)
        moved, maps = self.with_moves(base, align)
        parts = {
            "AI_LIST_ADR": moved.task_list(),
            "AI_WGT_ADR": self.weights,
            "AI_BIAS_ADR": self.biases,
            "AI_PIX_ADR": np.concatenate([np.zeros(pixel_offset, np.uint8), padded.reshape(-1)]),
            "AI_RES_ADR": result,
        }
        registers, blobs, at = {}, [maps], base + maps.size
        for name, blob in parts.items():
            registers[name] = at
            blobs.append(_aligned(blob, align))
            at += blobs[-1].size
        registers["AI_PIX_ADR"] += pixel_offset
        registers |= {
            "AI_CNN_MODE": 2 if continuous else 1,
            "AI_NPIX_ADR": registers["AI_PIX_ADR"] + pixel_stride,
            "AI_LIST_LEN": len(self.layers),
            "AI_INF_LEFT": count - 1 if continuous else 0,
            "AI_PIX_STRIDE": pixel_stride,
            "AI_RES_STRIDE": result_stride,
            "eight_bit_mode": int(self.eight_bit),
        }
        results = [registers["AI_RES_ADR"] + i * result_stride for i in range(count)]
        data = np.concatenate(blobs)
        stored = {i: arg.map_store_addr for i, arg in enumerate(moved.layers) if arg.store_map}
        bring = kept.bring(self, registers["AI_WGT_ADR"])
        return Storage(data, base, registers, results, self.out_shape, self.words, stored, bring)

    # ------------------------------------------------------------------- files
    def save(self, path: str | Path | BinaryIO) -> None:
        """Write as .npz: words (n, 12) u64, weights, biases, eight_bit u8; loaded_<i> u8 (C, H, W)
        of a layer i with load_map, or relayed (n, 3), layer, the one that stored its map and byte;
        kept (n, 2), layer and row, if weights are kept; narrow (n,), layers that read a part of a
        map.  NetworkError, and no file, for what ``load`` would refuse."""
        self.validate()
        arrays: dict[str, npt.ArrayLike] = {
            "words": np.stack([arg.encode() for arg in self.layers]),
            "weights": self.weights,
            "biases": self.biases,
            "eight_bit": np.uint8(self.eight_bit),
        }
        arrays |= {f"loaded_{i}": x for i, x in self.loaded.items()}
        if self.relayed:
            arrays["relayed"] = [(i, *r) for i, r in sorted(self.relayed.items())]
        if self.kept:
            arrays["kept"] = sorted(self.kept.items())
        if self.narrow:
            arrays["narrow"] = sorted(self.narrow)
        files.save_arrays(path, arrays, packed=True)

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read what ``save`` wrote; NetworkError for anything else."""
        return cls.parse(files.read_bytes(path, NetworkError), path)

    @classmethod
    def parse(cls, content: bytes, path: str | Path) -> Network:
        """The same of the bytes of an image; ``path`` is its name in errors."""
        packed = io.BytesIO(content)
        try:
            if not zipfile.is_zipfile(packed):
                raise ValueError("no .npz (zip) file, or not all of it")
            with np.load(packed, allow_pickle=False) as data:
                files.check_unpacked(path, data.zip, NetworkError)
                words, weights, biases = data["words"], data["weights"], data["biases"]
                eight_bit = network_rules.width(data["eight_bit"])
                found = [name for name in data.files if re.fullmatch(r"loaded_\d+", name)]
                loaded = {int(name.removeprefix("loaded_")): data[name] for name in found}
                stays, relayed, narrow = network_rules.layer_numbers(data)
        except NetworkError:
            raise
        except (
            *(OSError, KeyError, ValueError, TypeError, EOFError, AttributeError, RuntimeError),
            *(NotImplementedError, MemoryError, OverflowError, SyntaxError),
            *(zipfile.BadZipFile, zlib.error),
        ) as err:
            raise NetworkError(f"{path}: not a network image: {files.said(err)}") from None
        if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != WORDS:
            raise NetworkError(f"{path}: words: expected uint64 (n, {WORDS})")
        network = cls([LayerArg.decode(row) for row in words], weights, biases, eight_bit)
        network.loaded, network.kept, network.narrow = loaded, dict(stays), set(narrow)
        network.relayed = {i: (source, at) for i, source, at in relayed}
        network.seconds = network._find_seconds()
        try:
            network.validate()
        except NetworkError as err:
            raise NetworkError(f"{path}: {err}") from None
        return network


def _aligned(blob: npt.NDArray[np.uint8], align: int) -> npt.NDArray[np.uint8]:
    return np.pad(blob, (0, round_up(blob.size, align) - blob.size))


def _bytes(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(words, dtype="<u8").view(np.uint8)


def _slice(name: str, blob: npt.NDArray[np.uint8], start: int, size: int) -> npt.NDArray[np.uint8]:
    if start + size > blob.size:
        raise NetworkError(f"{name}: {size} bytes at {start}, there are {blob.size}")
    return np.ascontiguousarray(blob[start : start + size])
