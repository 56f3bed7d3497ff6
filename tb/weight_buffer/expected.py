# SPDX-License-Identifier: Apache-2.0
"""Layers with their streams, and the expected contents of the weight buffer."""

import random
from dataclasses import dataclass

import numpy as np

from openkpu.arithmetic.params import ActTable
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import CHAN, FC, TAPS
from openkpu_tb.core.pipeline_bench import signed
from tb.weight_loader.test_weight_loader import Layer, layer_of, make

LOW, HIGH = -(1 << 35), (1 << 35) - 1


def make_table() -> ActTable:
    """Random, or with ends of the ranges; sorted, equal or in any order."""
    ends = random.random() < 0.3
    start = [random.choice((LOW, HIGH, 0, -1)) if ends else random.randint(LOW, HIGH)] * 16
    if random.random() < 0.8:
        scale = 1 << random.choice((2, 20, 35))
        start = [random.randrange(-scale, scale) for _ in range(16)]
        if random.random() < 0.5:
            start.sort()
    mul = [random.choice((0, 1, -1, -32768, 32767, random.randint(-32768, 32767))) for _ in start]
    shift = [random.choice((0, 53, 54, 55, 63, 64, 255, random.randrange(64))) for _ in start]
    return ActTable.make(start, mul, shift, [random.randrange(256) for _ in start])


@dataclass
class Work:
    """A layer; without ``weights`` it is one whose weights and parameters are kept."""

    table: ActTable
    weights: Layer | None
    norms: list[int]  # words of the batch-norm table

    def biases(self) -> bytes:
        """Bytes of the bias stream; bits above an entry of the table are not defined."""
        words = [int(word) for word in self.table.pack()]
        words = [word | random.getrandbits(4) << 60 for word in words[:16]] + words[16:]
        return b"".join(word.to_bytes(8, "little") for word in words + self.norms)


@dataclass
class ParamRow:
    """Parameters of the channels of a row; ``after``: the weight row with their last weights."""

    norms: list[int]
    constants: list[int]
    after: int


def norm_word() -> int:
    """A word of a batch-norm table, at the ends of its ranges now and then."""
    mul = random.choice((random.getrandbits(24), 1 << 23, (1 << 23) - 1, (1 << 24) - 1, 0))
    shift = random.choice((0, 15, random.getrandbits(4)))
    add = random.choice((random.getrandbits(32), 1 << 31, (1 << 31) - 1))
    return random.getrandbits(4) << 60 | shift << 56 | add << 24 | mul


def kept_norm(word: int) -> int:
    """The lanes' values of it: addend, multiplier for a shift of 15."""
    mul, add, shift = signed(word, 24), word >> 24 & 0xFFFFFFFF, word >> 56 & 15
    return add << 39 | (mul << (15 - shift)) & ((1 << 39) - 1)


def work(weights: Layer | None) -> Work:
    """A layer with a random table and random batch norm."""
    count = len(weights.constants) if weights else 0
    return Work(make_table(), weights, [norm_word() for _ in range(count)])


def param_rows(todo: list[Work], n_z: int) -> list[ParamRow]:
    """Rows of the parameter buffer, all layers one behind the other."""
    found, first = [], 0
    for item in todo:
        if not item.weights:
            continue
        d, constants = item.weights.desc, item.weights.constants
        for at in range(0, len(constants), n_z):
            end = min(at + n_z, len(constants))
            if d["dw"]:
                last = at // n_z
            elif d["mode"] == FC:  # words are dealt over the banks
                last = (end * d["s"] - 1) // n_z
            else:
                last = (at // n_z + 1) * d["s"] - 1
            norms = [kept_norm(word) for word in item.norms[at:end]]
            found.append(ParamRow(norms, constants[at:end], first + last))
        first += len(item.weights.rows)
    return found


def layers(n_z: int, wb: int, count: int, rows: int = 0) -> list[Work]:
    """Small layers of all kinds: so many at least, with more weight rows; three more are kept."""
    rng, found = np.random.default_rng(random.getrandbits(32)), []
    total = 0
    while len(found) < count or total <= rows:
        kind = (TAPS, CHAN, 2, FC)[len(found) % 4]
        made = make(rng, n_z, wb == 8 or random.random() < 0.6, kind)
        total += len(made.rows)
        found.append(work(made))
    for _ in range(3):
        found.insert(random.randrange(len(found) + 1), work(None))
    return found


def wide_layer(n_z: int, wb: int, outputs: int) -> Work:
    """A depthwise 1x1 layer of many channels: a weight each."""
    eight_bit = wb == 8 or random.random() < 0.5
    arg = LayerArg.make(outputs, 4, 4, outputs, depthwise=True, eight_bit=eight_bit)
    arg = arg.replace(arg_w=random.randint(-(1 << 23), (1 << 23) - 1), shr_w=random.randrange(16))
    rng = np.random.default_rng(random.getrandbits(32))
    weights = rng.integers(0, 256 if eight_bit else 65536, (outputs, arg.taps))
    return work(layer_of(arg, weights, n_z, eight_bit))
