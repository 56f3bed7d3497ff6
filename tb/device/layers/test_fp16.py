# SPDX-License-Identifier: Apache-2.0
"""Products of float16 matrices through the whole device: alone, in streams, among other tasks."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.arithmetic import fp16
from openkpu.generators.generate import Limits
from openkpu.generators.generate_lists import ALL_KINDS, random_list
from openkpu_tb import seeds
from openkpu_tb.runs.random_cases import case_of, draw_cases, images_of
from openkpu_tb.runs.requests import RandomCase
from tb.device.layers.test_random_layers import check
from tb.device.test_device import replay

SEED = seeds.chosen_seeds()[0][0]
FP16 = configs.load_config("nano_fp16")


@pytest.mark.check
def test_product_of_files(tmp_path: Path) -> None:
    """Any bits, infinities and NaN among them; what is saved is the golden model's, bit by bit."""
    rng = np.random.default_rng(SEED)
    a, b = (
        rng.integers(0, 1 << 16, s).astype(np.uint16).view(np.float16) for s in ((6, 5), (5, 9))
    )
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    words = ["--sim", "verilator", "--config", "nano_fp16", "--type", "fp16", "--matmul"]
    words += [str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--output", str(tmp_path / "c.npy")]
    replay(tmp_path, *words)
    assert np.load(tmp_path / "c.npy").tobytes() == fp16.multiply(a, b).tobytes()


@pytest.mark.tier(nightly=["icarus-3-0", "verilator-48-4"])
@pytest.mark.parametrize(("sim", "layers", "networks"), [("verilator", 48, 4), ("icarus", 3, 0)])
def test_random_products(sim: str, layers: int, networks: int) -> None:
    """By the host, as lists and in streams, quiet and disturbed; streams keep their weights."""
    slow = sim == "icarus"
    cases = draw_cases(FP16, SEED, layers, networks, slow=slow)
    events = check(sim, FP16, cases, SEED)
    kept = [event["kept"] for event in events if event["event"] == "case"]
    floats = [any(arg.fp16 for arg in case.network.layers) for case in cases]
    assert slow or max(k for k, fp in zip(kept, floats, strict=True) if fp) == 2


@pytest.mark.check
def test_beginnings() -> None:
    """Each ordered pair of kinds at the start of a stream that keeps its weights.

    The weights of the second image begin at the first row of the ring, whatever the first task that
    has weights is, and however many without weights precede it.
    """
    rng = np.random.default_rng(SEED)
    shape, limits = (3, 1, 8), Limits(channels=6, size=12)
    cases: list[RandomCase] = []
    for kinds in itertools.product(ALL_KINDS, repeat=2):
        network, image = random_list(rng, [*kinds, "convolution"], shape, limits=limits)
        each = np.concatenate([image[None], images_of(rng, shape, 2)])
        cases.append(case_of(FP16, " ".join(kinds), "stream", network, each, rng))
    events = check("verilator", FP16, cases, SEED)
    assert [event["kept"] for event in events if event["event"] == "case"] == [2] * len(cases)
