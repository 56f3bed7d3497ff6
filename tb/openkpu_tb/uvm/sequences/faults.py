# SPDX-License-Identifier: Apache-2.0
"""ERROR answers on each kind of transfer, and resets in any cycle; the next job is exact."""

from dataclasses import dataclass

import numpy as np

from openkpu.arithmetic.params import ACT_BYTES, BN_BYTES
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Storage
from openkpu_tb.core.registers import AI, Ctrl, Err
from openkpu_tb.device.inference_stream import stream_error
from openkpu_tb.uvm.items import WINDOWS
from openkpu_tb.uvm.sequences.bus import BusSequence
from openkpu_tb.uvm.sequences.job import LIMIT, LayerSequence, NetworkSequence, StreamSequence

# transfer: what AI_ERR_INFO.stream says of it
STREAM = {"list": 0, "parameters": 1, "bias": 1, "weights": 2, "pixels": 3, "result": 4}
WORD = 96 // 12


DATA = ("parameters", "bias", "weights", "pixels")
WHILE_RESULTS_LEAVE = {"bias", "weights", "pixels"}  # of the last layer, of a later group or line


@dataclass(frozen=True)
class BadWord:
    """A word of the storage with an ERROR response, and the owner of its transfer."""

    kind: str
    layer: int
    inference: int  # the first one that reads it
    addr: int


def first_to_count(bad: list[BadWord], layers: int) -> list[BadWord]:
    """The words that the host may find reported (docs/programming.md 3), all of the first affected
    inference: data of layers before the first missing layer of its list, else the list, else the
    result. Results leave while the last of the ``layers`` still reads data for later ones."""
    first = min(word.inference for word in bad)
    mine = [word for word in bad if word.inference == first]
    lists = [word for word in mine if word.kind == "list"]
    lacks = min((word.layer for word in lists), default=1 << 10)
    data = [word for word in mine if word.kind in DATA and word.layer < lacks]
    if any(word.layer < layers - 1 or word.kind not in WHILE_RESULTS_LEAVE for word in data):
        return data
    if data:
        return [*data, *(word for word in mine if word.kind == "result")]
    return lists or mine


class TransferErrorSequence(StreamSequence):
    """A stream in which up to three words of the storage answer ERROR, each of another kind: of a
    list, of a layer's activation table ("parameters"), batch norm ("bias") or weights, of an image,
    of a result.

    Code, address, stream, layer and number of the inference of the first one that counts must be
    reported; results of the inferences before are exact.
    """

    def __init__(self, name: str = "error", kind: str | None = None) -> None:
        super().__init__(name)
        self.kinds = [kind] if kind else None

    async def body(self) -> None:
        storage = await self.prepare()
        if self.kinds is None:
            order = [list(STREAM)[n] for n in self.rng.permutation(len(STREAM))]
            self.kinds = order[: self.n(1, len(WINDOWS) + 1)]
        bad = [self.target(kind, storage) for kind in self.kinds]
        windows = {}
        for (low, high), word in zip(WINDOWS, bad, strict=False):
            windows |= {low: word.addr, high: word.addr + 4}
        bus = self.sequencer.bus
        await BusSequence("error", True, **windows).start(bus)
        error = await stream_error(self.device, len(self.images), LIMIT)
        found = error.code, error.stream, error.addr & ~3, error.inference
        expected: dict[tuple[int, int, int, int], BadWord] = {
            (Err.BUS_ERROR, STREAM[word.kind], word.addr, word.inference): word
            for word in first_to_count(bad, len(self.network.layers))
        }
        assert found in expected, f"{error}, of {bad}"
        word = expected[found]
        if word.kind not in ("pixels", "result"):
            assert error.layer == word.layer, f"{error}, of {bad}"
        await BusSequence("no error", True, **dict.fromkeys(windows, 0)).start(bus)
        await self.device.soft_reset()
        await self.device.clear()

    def target(self, kind: str, storage: Storage) -> BadWord:
        """A random word of a kind; of the list for tables that no layer has."""
        network, r = self.network, storage.registers
        with_tables = [i for i, arg in enumerate(network.layers) if not arg.pool_task]
        if kind in ("parameters", "bias", "weights") and not with_tables:
            kind = "list"
        layers = range(len(network.layers)) if kind == "list" else with_tables or [0]
        layer = layers[self.n(0, len(layers))]
        arg: LayerArg = network.layers[layer]
        image = self.n(0, len(self.images))
        weights = arg.weight_count * (1 if network.eight_bit else 2)
        result = int(np.prod(network.out_shape))
        pixels = r["AI_PIX_ADR"] + image * r["AI_PIX_STRIDE"]
        layer, inference, first, size = {
            "list": (layer, 0, r["AI_LIST_ADR"] + 12 * WORD * layer, 12 * WORD),
            "parameters": (layer, 0, r["AI_BIAS_ADR"] + arg.active_addr, ACT_BYTES),
            "bias": (layer, 0, r["AI_BIAS_ADR"] + arg.bwsx_base_addr, BN_BYTES * arg.o_ch_num),
            "weights": (layer, 0, r["AI_WGT_ADR"] + arg.para_start_addr, weights),
            "pixels": (0, image, pixels, int(np.prod(network.in_shape))),
            "result": (0, image, storage.results[image], result),
        }[kind]
        word = (first + self.n(0, size)) & ~3
        return BadWord(kind, layer, inference, max(word, first & ~3))


class SoftResetSequence(NetworkSequence):
    """A job, ended by a soft reset in any cycle: a layer, a list or a stream."""

    latest = 6000  # cycles after the start

    async def body(self) -> None:
        await self.begin()
        await self.device.wait_at_most(self.n(1, self.latest))
        await self.end()

    async def begin(self) -> None:
        """Start something."""
        self.continuous = bool(self.rng.random() < 0.5)
        if self.rng.random() < 0.3:
            push = LayerSequence("layer to be cut")
            push.sequencer = self.sequencer
            await self.device.push(await push.prepare(push.draw_layer(), int_en=1))
        else:
            await self.prepare()
            await self.device.start()

    async def end(self) -> None:
        """The reset; afterwards the device is idle and nothing is pending."""
        await self.device.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
        await self.idle()
        await self.device.clear()
        assert not int(self.device.tb.irq.value), "an interrupt after a soft reset"


class HardResetSequence(SoftResetSequence):
    """The same with the hardware reset: registers begin anew, as the register model says."""

    async def end(self) -> None:
        await self.device.reset(cycles=self.n(1, 6))
        for name in ("AI_PIX_ADR", "AI_LIST_LEN", "AI_CNN_MODE", "AI_STATUS", "AI_ERR_CODE"):
            expected = getattr(self.registers, name).get_reset()
            found = await self.device.look(name)
            assert found == expected, f"{name} after reset: {found:#x}, not {expected:#x}"
