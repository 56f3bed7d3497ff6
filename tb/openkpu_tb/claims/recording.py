# SPDX-License-Identifier: Apache-2.0
"""Recorded runs: bus traffic by area and inference, and the final contents of the storage."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import ACT_BYTES, BN_BYTES
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import band_lines
from openkpu.layer.layout import Layout, map_bytes
from openkpu.network.network import Network, Storage
from openkpu_tb.device.trace import Trace, Values

Span = tuple[int, int]
READS = ("list", "biases", "weights", "pixels")
FLAGS = {"list": "list", "biases": "bias", "weights": "weight", "pixels": "pixel"}  # in a Trace


def word_addresses(address: int, size: int) -> list[int]:
    """Addresses of the bus words (32 bits) that hold ``size`` bytes from ``address`` on."""
    return list(range(address // 4 * 4, address + size, 4))


@dataclass
class Recording:
    """A recorded run of ``count`` inferences."""

    network: Network
    kept: bool  # weights and batch-norm words are read by the first inference of a stream only
    storage: Storage
    trace: Trace
    images: list[int]  # which image each inference was to take
    counters: dict[str, int]  # of the device, at the end
    toggles: int  # operand bits of multipliers that changed; while no product was wanted; products
    idle_toggles: int
    products: int
    results: npt.NDArray[np.uint8]  # (count, bytes)
    wrong: npt.NDArray[np.int64]  # bytes of each result that are not the golden model's
    spoilt: npt.NDArray[np.int64]  # addresses outside the results that hold something else now
    _cache: dict[str, list[Values]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.images)

    @property
    def layers(self) -> int:
        return len(self.network.layers)

    # ------------------------------------------------------------------ storage
    @property
    def areas(self) -> dict[str, Span]:
        """Bus addresses (first, behind the last) of list, biases, weights, pixels, results."""
        r = self.storage.registers
        images = max(*self.images, self.count - 1) + 1
        sizes = {
            "list": ("AI_LIST_ADR", 96 * self.layers),
            "biases": ("AI_BIAS_ADR", self.network.biases.size),
            "weights": ("AI_WGT_ADR", self.network.weights.size),
            "pixels": ("AI_PIX_ADR", images * r["AI_PIX_STRIDE"]),
            "results": ("AI_RES_ADR", self.count * r["AI_RES_STRIDE"]),
        }
        return {name: (r[reg], r[reg] + size) for name, (reg, size) in sizes.items()}

    def table(self, arg: LayerArg, area: str, first: bool = True) -> list[Span]:
        """Requests (address, bytes) that bring a layer's words of ``area``, in their order.

        ``first``: of the first inference; the others of a stream read no weights that are kept.
        """
        r = self.storage.registers
        again = self.kept and not first
        if area == "biases":
            act = r["AI_BIAS_ADR"] + arg.active_addr, ACT_BYTES
            bn = r["AI_BIAS_ADR"] + arg.bwsx_base_addr, BN_BYTES * arg.o_ch_num
            return [act] if again else [act, bn]
        if again:
            return []
        start = r["AI_WGT_ADR"] + arg.para_start_addr
        size = arg.weight_count * (1 if self.network.eight_bit else 2)
        steps = range(0, size, arg.para_size)
        return [(start + at, min(arg.para_size, size - at)) for at in steps]

    def expected(self, area: str, number: int) -> list[int]:
        """Addresses that inference ``number`` has to read in an area, in order."""
        r = self.storage.registers
        if area == "list":
            return word_addresses(r["AI_LIST_ADR"], 96 * self.layers)
        if area == "pixels":
            at = r["AI_PIX_ADR"] + self.images[number] * r["AI_PIX_STRIDE"]
            return [a for size, part in self.map_parts() for a in word_addresses(at + part, size)]
        first = number == 0 or not self.streamed
        tables = [t for arg in self.network.layers for t in self.table(arg, area, first)]
        return [a for at, size in tables for a in word_addresses(at, size)]

    def map_parts(self) -> list[Span]:
        """(bytes, place) of the requests of an input map (docs/architecture.md 3): the whole, or
        the lines of a band of a channel each."""
        c, h, w = self.network.in_shape
        band = band_lines(self.network.layers[0])
        if not band:
            return [(map_bytes(self.network.in_shape), 0)]
        order = [(y, i) for y in range(0, h, band) for i in range(c)]
        return [(min(band, h - y) * w, (i * h + y) * w) for y, i in order]

    @property
    def streamed(self) -> bool:
        """One start for all inferences."""
        return len(self.trace.at("start")) == 1

    # --------------------------------------------------------------------- bus
    def beats(self, area: str) -> Values:
        """Cycles of the beats in an area: reads, in the results' area writes."""
        return self.trace.beats(*self.areas[area], write=int(area == "results"))

    def reads(self, area: str) -> list[Values]:
        """The same cut into inferences; the addresses must be the expected ones, in order."""
        if area not in self._cache:
            cycles = self.beats(area)
            found = self.trace.beat_addr[cycles]
            want = [self.expected(area, n) for n in range(self.count)]
            flat = np.array([a for w in want for a in w], dtype=np.int64)
            assert len(found) == len(flat), f"{area}: {len(found)} words read, not {len(flat)}"
            bad = np.nonzero(found != flat)[0]
            if bad.size:
                at = bad[0]
                text = f"{area}: word {at} was {found[at]:#x}, not {flat[at]:#x}"
                raise AssertionError(text)
            cuts = np.cumsum([len(w) for w in want])[:-1]
            self._cache[area] = np.split(cycles, cuts)
        return self._cache[area]

    def read_of(self, tables: list[Span], number: int) -> Values:
        """Cycles in which inference ``number`` reads the words of some tables."""
        wanted = {a for at, size in tables for a in word_addresses(at, size)}
        cycles = np.concatenate([self.reads(area)[number] for area in ("biases", "weights")])
        hit = [c for c in cycles if int(self.trace.beat_addr[c]) in wanted]
        return np.array(sorted(hit), dtype=np.int64)

    # -------------------------------------------------------------------- time
    @property
    def starts(self) -> Values:
        """Cycles in which the inferences begin: start of the host, AI_CFG moves on."""
        return np.sort(np.concatenate([self.trace.at("start"), self.trace.at("inf_next")]))

    @property
    def ends(self) -> Values:
        """Cycles in which the inferences finish (AI_CNN_DONE is set)."""
        return self.trace.at("inf_done")

    def computing(self, number: int, layer: int) -> Span:
        """Cycles from the start of a layer's computation to its end."""
        index = number * self.layers + layer
        return int(self.trace.at("run_start")[index]), int(self.trace.at("layer_done")[index])

    def within(self, name: str, span: Span) -> Values:
        """Cycles of a span in which a signal is high."""
        cycles = self.trace.at(name)
        return cycles[(cycles >= span[0]) & (cycles <= span[1])]

    def input_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the AI RAM where the first layer's input map lies."""
        first = self.network.layers[0]
        return first.image_src_addr + np.arange(Layout(*first.in_shape).rows)

    def place_free(self, number: int) -> int:
        """Last cycle in which inference ``number`` reads or writes a row of the input map."""
        span = self.computing(number, 0)[0], self.computing(number, self.layers - 1)[1]
        last = 0
        for grant, row in (
            ("fill", "read_row"),
            ("write_back", "write_row"),
            ("result_read", "read_row"),
        ):
            cycles = self.within(grant, span)
            touched = np.isin(getattr(self.trace, row)[cycles], self.input_rows())
            last = max([last, *cycles[touched]])
        assert last, "nothing has read the input map"
        return int(last)

    # ----------------------------------------------------------------- verdict
    def exact(self) -> "Recording":
        """Every result is the golden model's, everything else in storage as it was."""
        assert len(self.ends) == self.count, f"{len(self.ends)} inferences, not {self.count}"
        assert not self.wrong.any(), f"wrong bytes of the results: {self.wrong.tolist()}"
        where = [hex(a) for a in self.spoilt[:4]]
        assert not self.spoilt.size, f"{self.spoilt.size} bytes beside the results, {where} ..."
        return self
