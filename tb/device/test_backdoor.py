# SPDX-License-Identifier: Apache-2.0
"""Hex files of the back door: what is written is what is read, unknown bits included."""

import numpy as np
import pytest
from openkpu.tb.device.backdoor import decode, encode

pytestmark = pytest.mark.fixed  # the same with every seed


@pytest.mark.parametrize("width", [4, 8, 16, 64, 128])
def test_there_and_back(width: int) -> None:
    data = np.random.default_rng(width).integers(0, 256, 37 * width, dtype=np.uint8)
    found, unknown = decode(encode(data, width, 5).encode(), width)
    assert np.array_equal(found, data) and not unknown.any()


@pytest.mark.parametrize("comments", [b"", b"// 0x00000000\n", b"@0\n"])
def test_unknown_bytes(comments: bytes) -> None:
    """A byte with an unknown half is unknown; its neighbours are not."""
    text = comments + b"01xZ0a0B\n" + comments + b"ff1zFF00\n"
    found, unknown = decode(text, 4)
    assert unknown.tolist() == [False, False, True, False, False, False, True, False]
    assert found[~unknown].tolist() == [0x0B, 0x0A, 0x01, 0x00, 0xFF, 0xFF]


def test_no_digit() -> None:
    with pytest.raises(ValueError, match="no hexadecimal digit"):
        decode(b"0g000000\n", 4)
