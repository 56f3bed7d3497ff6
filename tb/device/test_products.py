# SPDX-License-Identifier: Apache-2.0
"""Matrix products through the whole device: C in storage is numpy's, row by row."""

from pathlib import Path

import numpy as np
import pytest
from openkpu.tb.device.test_device import replay


@pytest.mark.parametrize(
    ("simulator", "config", "sizes", "kind"),
    [
        ("verilator", "nano", "9x30x70", "int8"),  # planes in rows of their own
        ("verilator", "nano", "4x36x16", "uint8"),  # four in a row
        ("verilator", "small", "21x100x48", "int8"),
        ("icarus", "nano", "3x10x20", "int8"),  # two in a row
    ],
)
def test_product(simulator: str, config: str, sizes: str, kind: str, tmp_path: Path) -> None:
    words = ["--sim", simulator, "--config", config, "--matmul", sizes, "--type", kind]
    content = replay(tmp_path, *words, "--output", str(tmp_path / "c.npy"))
    m, k, n = (int(size) for size in sizes.split("x"))
    (layer,) = content["layers"]
    assert layer["macs"] == m * k * n
    assert np.load(tmp_path / "c.npy").shape == (m, n)
