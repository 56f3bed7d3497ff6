# SPDX-License-Identifier: Apache-2.0
"""Predictor and scoreboard for a host that acts at any time (control_model.py)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt
from pyuvm import ConfigDB, uvm_component, uvm_env, uvm_subscriber

from openkpu.arithmetic.integers import round_up
from openkpu.generators.generate import Limits, random_layer
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Network
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI_RAM, Err
from openkpu_tb.uvm.agents import HostAgent, Memory
from tb.device.actions.control_model import IDLE, Histories, State, Watcher

Bytes = npt.NDArray[np.uint8]
SHAPE = 2, 3, 5  # of every network's input: any image goes into any network
IMAGES = 24  # the last ones are reached by strides only
FIRST = 12  # images that a host addresses
RESULTS, SLOT, SLOTS = 0x20000, 32, 48
ROOM = 0x4000  # bytes of storage for a network or the layers' tables
LIST_ROWS = 64  # AI RAM rows of the networks
LAYER_ROWS, SCRATCH_ROWS = 128, 100  # first row of the host's layers; rows without another use
SMALL = Limits(channels=3, size=5, sixteen_bit=True)


@dataclass
class Place:
    """The place of a network in storage."""

    network: Network
    registers: dict[str, int]


@dataclass
class Library:
    """Tiny networks and layers, their places and results."""

    networks: dict[int, Place] = field(default_factory=dict)  # by address of the list
    images: dict[int, Bytes] = field(default_factory=dict)  # by address
    layers: list[LayerArg] = field(default_factory=list)
    eight_bit: list[bool] = field(default_factory=list)
    golden: list[Bytes] = field(default_factory=list)  # map of each layer
    refused: dict[int, int] = field(default_factory=dict)  # layer: its code
    storage: list[tuple[int, Bytes]] = field(default_factory=list)
    ram: list[tuple[int, Bytes]] = field(default_factory=list)
    results: dict[tuple[int, int], Bytes] = field(default_factory=dict)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Library":
        """Three networks and eight layers; two more that are refused."""
        lib = cls()
        maps = rng.integers(0, 256, (IMAGES, *SHAPE), dtype=np.uint8)
        for number in range(3):
            network, signed, x = Network(), False, maps[0]
            for i in range(number + 1):
                fc = i == 1
                layer = random_layer(
                    rng, x=x, o=3, kernel=1 if fc else None, pool=0, fc=fc, depthwise=False,
                    eight_bit=True, signed_in=signed, limits=SMALL,
                )  # fmt: skip
                network.add(layer.arg, layer.weights, layer.bn, layer.act)
                x, signed = layer.y, bool(layer.arg.signed_out)
            network.place(LIST_ROWS, keep_input=number != 2)
            placed = network.storage(maps, base=ROOM * (number + 1), align=16)
            lib.storage.append((placed.base, placed.data))
            lib.networks[placed.registers["AI_LIST_ADR"]] = Place(network, placed.registers)
            if number == 0:
                for i, image in enumerate(maps):
                    at = placed.registers["AI_PIX_ADR"] + i * placed.registers["AI_PIX_STRIDE"]
                    lib.images[at] = image
        lib._draw_layers(rng)
        return lib

    def _draw_layers(self, rng: np.random.Generator) -> None:
        at, row = ROOM * 5, LAYER_ROWS
        for number in range(8):
            layer = random_layer(rng, depthwise=number % 3 == 2 or None, limits=SMALL)
            arg = layer.arg.replace(image_src_addr=row)
            row += arg.in_layout.rows
            parts = (layer.weights, layer.bn.view(np.uint8), layer.act.view(np.uint8))
            where = []
            for part in parts:
                where.append(at)
                self.storage.append((at, part))
                at += round_up(part.size, 8)
            names = ("para_start_addr", "bwsx_base_addr", "active_addr")
            arg = arg.replace(image_dst_addr=row, **dict(zip(names, where, strict=True)))
            row += arg.out_layout.rows
            ram = airam.new_ram(arg.in_layout.rows)
            airam.pack_map(ram, 0, layer.x)
            self.ram.append((arg.image_src_addr, ram))
            self.layers.append(arg)
            self.eight_bit.append(layer.eight_bit)
            self.golden.append(layer.y)
        self.rows = row - LAYER_ROWS
        for change, code in (({"pool_type": 12}, Err.BAD_POOL), ({"kernel_type": 5}, 4)):
            self.refused[len(self.layers)] = int(code)
            self.layers.append(self.layers[0].replace(**change))
            self.eight_bit.append(self.eight_bit[0])

    def result(self, tasks: int, pixels: int) -> Bytes:
        """The result of a network for an image."""
        key = tasks, pixels
        if key not in self.results:
            y = self.networks[tasks].network.run(self.images[pixels]).y
            self.results[key] = np.ascontiguousarray(y).view(np.uint8).reshape(-1)
        return self.results[key]


class ControlPredictor(uvm_subscriber):
    """Tracks the histories that explain the transfers on the host's bus."""

    def build_phase(self) -> None:
        self.library = cast(Library, ConfigDB().get(self, "", "LIBRARY"))
        self.numbers = {
            tuple(int(w) for w in arg.encode()): n for n, arg in enumerate(self.library.layers)
        }
        self.wrong: list[str] = []
        self.scratch: dict[int, int] = {}
        self.reads = 0
        self.forget()

    def forget(self) -> None:
        """A hardware reset: registers have their reset values."""
        self.watcher = Watcher(self.numbers, Histories(bad_layers=self.library.refused))

    @property
    def histories(self) -> Histories:
        return self.watcher.histories

    def begin(self, bad_pixels: Sequence[int], bad_lists: Sequence[int]) -> None:
        """Another episode on an idle device; reads of these images and networks get ERROR."""
        fresh = {**IDLE, "err": 0, "inferences": (), "layers": (), "flushed": False, "shut": False}
        states = {replace(s, **fresh) for s in self.histories.states}
        self.forget()
        self.watcher.histories = Histories(bad_pixels, self.library.refused, bad_lists)
        self.histories.states = states

    def write(self, tt: Transfer) -> None:
        """A transfer on the host's bus."""
        if tt.resp:
            self.wrong.append(f"{tt} was answered with response {tt.resp}")
        elif tt.addr >= AI_RAM:
            self._window(tt)
        else:
            self.reads += not tt.write
            wrong = self.watcher.see(tt)
            self.wrong += [wrong] if wrong else []

    def _window(self, tt: Transfer) -> None:
        if tt.write:
            self.scratch[tt.addr] = tt.data
        elif tt.data != self.scratch.get(tt.addr, tt.data):
            self.wrong.append(f"window {tt.addr:#x}: {tt.data:#x}, not {self.scratch[tt.addr]:#x}")


class ControlScoreboard(uvm_component):
    """Checks at the end of an episode that the memories match the results of a history."""

    def build_phase(self) -> None:
        self.library = cast(Library, ConfigDB().get(self, "", "LIBRARY"))
        self.wrong: list[str] = []
        self.exact = {"inferences": 0, "layers": 0, "cut": 0}

    def judge(self, histories: Histories, results: Memory, maps: Memory, empty: Memory) -> None:
        """Compare the result area and the maps with the results of each history.

        ``empty``: contents of the result area and the maps (in this order) before the episode.
        """
        found = np.concatenate([results.data, maps.data])
        assert results.unknown is not None and maps.unknown is not None, "both were read"
        unknown = np.concatenate([results.unknown, maps.unknown]).astype(bool)

        def explains(s: State) -> bool:
            want, loose = self._leaves(s, empty.data)
            return not s.occupied and bool(((want == found) & ~unknown | loose).all())

        idle = {s for s in histories.closed() if not s.occupied}
        if histories.keep(explains):
            best = min(histories.states, key=lambda s: (len(s.inferences), len(s.layers)))
            whole = [*best.inferences, *best.layers]
            self.exact["cut"] += sum(not kept for _, kept in whole)
            self.exact["inferences"] += sum(kept for _, kept in best.inferences)
            self.exact["layers"] += sum(kept for _, kept in best.layers)
            return
        misses = [(int((self._leaves(s, empty.data)[0] != found).sum()), s) for s in idle]
        closest = min(misses, key=lambda pair: pair[0], default=(0, None))
        self.wrong.append(
            f"no history leaves these results; {len(idle)} idle ones, the closest differs in "
            f"{closest[0]} bytes: {closest[1]}; last seen: {histories.seen()}"
        )

    def _leaves(self, s: State, empty: Bytes) -> tuple[Bytes, npt.NDArray[np.bool_]]:
        """Results of a history, and the bytes that may differ."""
        want, loose = empty.copy(), np.zeros(empty.size, dtype=bool)
        for (tasks, pixels, result), kept in s.inferences:
            at = result - RESULTS
            if pixels not in self.library.images or not 0 <= at < SLOT * SLOTS:
                loose[:] = False
                return ~want, loose  # the bench has no expected results for this history
            y = self.library.result(tasks, pixels)
            if kept:
                want[at : at + y.size], loose[at : at + y.size] = y, False
            else:
                loose[at : at + y.size] = True
        ram = want[SLOT * SLOTS :]
        for number, kept in s.layers:
            arg, touched = self.library.layers[number], np.zeros(ram.size, dtype=np.uint8)
            row = arg.image_dst_addr - LAYER_ROWS
            airam.pack_map(touched, row, np.ones(arg.out_shape, dtype=np.uint8))
            if kept:
                airam.pack_map(ram, row, self.library.golden[number].view(np.uint8))
            loose[SLOT * SLOTS :][touched.astype(bool)] = not kept
        return want, loose


class ControlEnv(uvm_env):
    """Host agent, the predictor for a host that acts at any time, and its scoreboard."""

    def build_phase(self) -> None:
        self.host = HostAgent("host", self)
        self.control = ControlPredictor("control", self)
        self.judge = ControlScoreboard("judge", self)

    def connect_phase(self) -> None:
        self.host.monitor.ap.connect(self.control.analysis_export)
