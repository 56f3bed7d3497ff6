# SPDX-License-Identifier: Apache-2.0
"""What CI's share leaves out: long sequences, other paths, lanes, roundings (`make coverage`).

tb/coverage/test_share.py has a path of 16 bytes and the usual rounding. Each build here has an
array of few multipliers, for a build with counters takes minutes.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.arithmetic import fp16
from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import fits_product, random_fp16
from openkpu.generators.generate_pools import map_layer
from openkpu.layer import decoded
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import KINDS
from openkpu.layer.vectors import VectorLayer
from openkpu_tb.core import descriptor
from openkpu_tb.coverage.float16 import TARGETS
from openkpu_tb.coverage.model import LINES, NINES, WIDTHS, Bin, classify, crosses
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import draw_cases
from tb.coverage import test_share
from tb.coverage.test_share import list_case, of_every_kind
from tb.device.layers.test_paths import replay, rows
from tb.device.layers.test_random_layers import check
from tb.device.test_models import check_rounding
from tb.uvm.test_uvm import simulate

pytestmark = pytest.mark.nightly

SEED = 1
EVERYTHING = {"sum_planes": 1, "keep_weights": 1, "flat_maps": 1, "fp16_lanes": 4}


def build(n_y: int, n_z: int, path: int, share: int) -> Config:
    """Pixels of a stripe, output channels, bytes of the path, sums that share a post lane."""
    sizes = {"n_y": n_y, "n_z": n_z, "path_bytes": path, "post_share": share}
    return dataclasses.replace(configs.load_config("small"), **sizes, **EVERYTHING)


BUILDS = {
    "32-bytes": build(4, 8, 32, 4),
    "64-bytes": build(4, 4, 64, 2),
    "128-bytes": build(8, 4, 128, 1),
}


# as many lanes as an entry of the tile buffer has bytes: its words are whole entries
WHOLE_ENTRIES = build(4, 16, 64, 4)


def flat_layers(rng: np.random.Generator, config: Config) -> list[VectorLayer]:
    """Narrow maps that are computed as one line: the array is the slower side."""
    lanes = config.n_y * config.n_z
    fields = {"o": 9, "kernel": 1, "depthwise": False, "pool": 0, "fc": False, "eight_bit": True}
    widths = [w for w in range(5, 16) if w % config.n_y]
    return [random_layer(rng, c=3 * lanes, h=w, w=w, **fields) for w in widths]


def test_whole_entries() -> None:
    """64 lanes: several lines in a word, sums and weights of every lane."""
    rng, limits = np.random.default_rng(SEED), Limits(channels=40, size=40)
    shapes = itertools.product((5, 16, 32, 64), (1, 3), (0, 1, 5), (False, True))
    layers = [
        random_layer(rng, c=20, h=5, w=w, o=20, kernel=k, pool=pool, depthwise=dw, fc=False)
        for w, k, pool, dw in shapes
    ]
    layers += of_every_kind(rng, limits, 6)
    replay(WHOLE_ENTRIES, rows() + layers + flat_layers(rng, WHOLE_ENTRIES))


@pytest.mark.parametrize("name", BUILDS)
def test_every_kind(name: str) -> None:
    """Layers alone, random layers three ways on both kinds of bus, lists of all kinds."""
    config, rng, limits = BUILDS[name], np.random.default_rng(SEED), Limits(channels=40, size=70)
    alone = of_every_kind(rng, limits, 8)
    replay(config, rows() + alone + flat_layers(rng, config))
    cases = draw_cases(config, SEED, layers=8, networks=2)
    cases += [list_case(rng, config, number, pairs=False) for number in range(2)]
    check("verilator", config, cases, SEED)


def cocotb_tests(module: str, config: Config, **more: Any) -> None:
    """Tests of a module on this build; ``more`` as of ``run_bench``."""
    launch.run_device("verilator", module, launch.parameters(config, 1 << 20), seed=SEED, **more)


def test_kept_weights() -> None:
    """Weights that stay in the AI RAM: of layers of the host, with errors, over resets."""
    config = BUILDS["32-bytes"]
    cocotb_tests(
        "tb.device.streams.kept_tests",
        config,
        env={"OKPU_BUS": str(config.ahb_width)},
        testcase=("host_layers", "refused", "resets"),
    )


@pytest.mark.parametrize("rounding", ["v01", "trunc"])
def test_roundings(rounding: str, tmp_path: Path) -> None:
    check_rounding("verilator", rounding, tmp_path)


@pytest.mark.parametrize(
    ("module", "test"), [("sequence_tests", "BusSequences"), ("special_tests", "MovedMaps")]
)
def test_uvm(module: str, test: str) -> None:
    """On the build of the share."""
    simulate("verilator", test_share.EVERYTHING, f"tb.uvm.{module}", test, SEED)


NANO = configs.load_config("nano")
# few rows of weights: a layer of a hundred channels is too deep; float16 rows of A by twos
FEW_ROWS = dataclasses.replace(NANO, wbuf_rows=64, tile_rows=32, fp16_lanes=16)
# few rows of pixels: a layer of sixty channels reads them anew for each group of outputs
SHALLOW = dataclasses.replace(NANO, tile_rows=32)


def test_corners() -> None:
    """What no random job meets."""
    cocotb_tests("tb.coverage.corner_tests", FEW_ROWS)


def test_deep_layers() -> None:
    """Reductions of more steps than the tile buffer holds, several groups of outputs."""
    rng = np.random.default_rng(SEED)
    fields = {"pool": 0, "depthwise": False, "fc": False, "eight_bit": True}
    sizes = ((60, 3, 6, 20), (50, 3, 4, 70), (500, 1, 5, 24), (450, 1, 4, 70))
    replay(
        SHALLOW,
        [random_layer(rng, c=c, kernel=k, h=h, w=w, o=9, **fields) for c, k, h, w in sizes],
    )


def test_pools_across_pieces() -> None:
    """Lines whose last windows begin a piece of 16 pixels as they fill the one before."""
    rng = np.random.default_rng(SEED)
    sizes = itertools.product((17, 18, 19, 20, 33, 34, 36, 50), (2, 3, 5))
    layers = []
    for (w, kw), kind in zip(sizes, itertools.cycle(KINDS), strict=False):
        arg = pool_layer((3, 6, w), kind, (2, kw))
        x = rng.integers(0, 256, (3, 6, w), dtype=np.uint8)
        layers.append(map_layer(arg, x, f"{w} columns, window of {kw}", "L00"))
    replay(SHALLOW, layers)


def float16_layer(rng: np.random.Generator, bin: Bin) -> VectorLayer:
    """A product of float16 that falls into this bin of the cross ``float16``."""
    target, lines, width, _, nine = bin
    widths = list(WIDTHS)
    least = 1 + (WIDTHS[widths[widths.index(width) - 1]] if width != widths[0] else 0)
    rows = {NINES[0]: (1,), NINES[1]: (2, 5, 12), NINES[2]: (9, 18)}[nine]
    for _ in range(1000):
        w = int(rng.integers(least, min(WIDTHS[width], 400) + 1))
        h = 1 if lines == LINES[0] else int(rng.integers(2, 6))
        k, wide = int(rng.choice(rows)), target == TARGETS[1]
        if not fits_product((k, h, w)) or not fp16.out_sizes(h, w, wide):
            continue
        x = rng.integers(0, 256, (k, h, w), dtype=np.uint8)
        layer = random_fp16(rng, x=x, m=int(rng.integers(1, 14)), wide=wide, case=" ".join(bin))
        if classify(descriptor.describe_layer(layer.arg, decoded.Sizes())) == ("float16", bin):
            return layer
    raise AssertionError(f"no product in a thousand draws falls into {bin}")


def test_float16_bins() -> None:
    """A product for each bin of target x lines x width x last piece x rows of B."""
    rng = np.random.default_rng(SEED)
    (cross,) = (cross for cross in crosses() if cross.name == "float16")
    replay(FEW_ROWS, [float16_layer(rng, bin) for bin in sorted(cross.bins)])
