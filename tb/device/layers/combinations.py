# SPDX-License-Identifier: Apache-2.0
"""Random legal combinations of the parameters in docs/integration.md 3, and the work for each.

Values lie on the corners: the least and the most of each parameter, odd sizes, and what is one more
or less than a power of two. Small arrays are the most frequent, for a build takes longer than its
work. ROUNDING and PRIVILEGED keep their defaults: benches of their own have the others.
``scripts/run.sh -m tb.device.layers.combinations`` lists the ones that the tests build.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from openkpu import configs
from openkpu.configs import Config
from openkpu_tb.runs import regress_items
from openkpu_tb.runs.regress_items import Budget
from openkpu_tb.runs.requests import RandomCase

SEED, COUNT = 1, 40  # of the tests
ITEMS = 20  # of each kind
BUDGET = Budget(cycles=2_500, channels=130, long=1025, width=200, height=40)
ARRAYS = {4: 6, 8: 6, 16: 6, 32: 4, 64: 3, 128: 5}  # lanes: weight
VALUES: dict[str, Sequence[int]] = {
    "ahb_width": configs.BUSES,
    # any number is legal; lists take a thousand rows
    "ai_ram_rows": (511, 512, 1023, 1024, 1025, 2047, 4096, 32767, 32768),
    "wbuf_rows": (64, 128, 512, 1024),
    "weight_bits": (8, 16, 16),
    "path_bytes": (16, 32, 64, 128, 128),
    "param_chans": (1024, 2048),
    "look_ahead": (4, 8, 16),
    "tile_rows": (32, 64, 128, 256),
    "post_share": (1, 2, 4),
    "pool_lanes": (0, 1, 2, 4, 8),
    "keep_weights": (0, 1),
    "weight_ahead": (0, 1),
    "flat_maps": (0, 1),
    "sum_planes": (0, 1),
    "post_tables": (0, 1),
    "mul_bits": (17, 18, 18),
    **dict.fromkeys(
        ("pix_fifo_depth", "wgt_fifo_depth", "bias_fifo_depth"), (2, 3, 7, 16, 31, 33, 64)
    ),
    "out32": (0, 1, 1, 1),
    "dilation": (1, 3, 8),
}


@dataclasses.dataclass(frozen=True)
class Combination:
    """A build: its configuration, and the parameter that none has."""

    config: Config
    gate: int

    def __str__(self) -> str:
        given = {"N_Y": 0, "N_Z": 0, **self.config.parameters, "GATE": self.gate}
        return " ".join(f"{name}={value}" for name, value in given.items())


def draw(seed: int, number: int) -> Combination:
    """Combination ``number`` of a seed: legal, whatever the others are."""
    rng = np.random.default_rng((seed, number))

    def one(values: Sequence[int], weights: Sequence[int] | None = None) -> int:
        share = None if weights is None else np.array(weights) / sum(weights)
        return int(rng.choice(values, p=share))

    while True:
        lanes = one(list(ARRAYS), list(ARRAYS.values()))
        n_y = one([n for n in (2, 4, 8, 16) if 2 <= lanes // n <= 64])
        found: dict[str, Any] = {"n_y": n_y, "n_z": lanes // n_y}
        found |= {name: one(values) for name, values in VALUES.items()}
        found["perf"] = 1  # every check of a layer reads the counters
        most = configs.fp16_most(found)
        lanes16 = [n for n in (4, 8, 16, 32, 64, 128, 256, 512) if n <= most]
        found["fp16_lanes"] = one([0, 0, *lanes16[:1], *lanes16[-1:]])
        gate = one((0, 1, 1))
        # named configurations have powers of two, which the RTL does not ask for
        wide_enough = found["path_bytes"] >= found["ahb_width"] // 8
        if wide_enough and configs.illegal(found | {"ai_ram_rows": 1024}) is None:
            return Combination(Config(name=f"combination {number} of {seed}", **found), gate)


def cases(config: Config, seed: int) -> list[RandomCase]:
    """ITEMS of every kind that the build runs, then a stream."""
    kinds = [kind for kind in regress_items.kinds_of(config) for _ in range(ITEMS)]
    found = [item(config, seed, number, kind) for number, kind in enumerate(kinds)]
    more = (item(config, seed, number, "network") for number in itertools.count(len(kinds)))
    return [*found, next(case for case in more if case.way == "stream")]


def item(config: Config, seed: int, number: int, kind: str) -> RandomCase:
    """Item ``number``, of a kind."""
    seed = regress_items.seed_of(seed, number)
    return regress_items.draw_item(config, "verilator", seed, kind, BUDGET).case


if __name__ == "__main__":
    for combination in range(COUNT):
        print(combination, draw(SEED, combination))
