# SPDX-License-Identifier: Apache-2.0
"""Hex files of the back door: what is written is what is read, unknown bits included."""

import numpy as np
import pytest

from openkpu_tb.core.backdoor import Held, decode_dump, encode

pytestmark = pytest.mark.fixed  # the same with every seed


@pytest.mark.parametrize("width", [4, 8, 16, 64, 128])
def test_there_and_back(width: int) -> None:
    data = np.random.default_rng(width).integers(0, 256, 37 * width, dtype=np.uint8)
    found, unknown = decode_dump(encode(data, width, 5).encode(), width)
    assert np.array_equal(found, data) and not unknown.any()


@pytest.mark.parametrize("comments", [b"", b"// 0x00000000\n", b"@0\n"])
def test_unknown_bytes(comments: bytes) -> None:
    """A byte with an unknown half is unknown; its neighbours are not."""
    text = comments + b"01xZ0a0B\n" + comments + b"ff1zFF00\n"
    found, unknown = decode_dump(text, 4)
    assert unknown.tolist() == [False, False, True, False, False, False, True, False]
    assert found[~unknown].tolist() == [0x0B, 0x0A, 0x01, 0x00, 0xFF, 0xFF]


def test_no_digit() -> None:
    with pytest.raises(ValueError, match="no hexadecimal digit"):
        decode_dump(b"0g000000\n", 4)


@pytest.mark.parametrize("width", [4, 16, 128])
def test_words_that_changed(width: int) -> None:
    """They replace those of their numbers, with what is unknown in them; the others stay."""
    rng = np.random.default_rng(width)
    was = rng.integers(0, 256, (300, width), dtype=np.uint8)
    held = Held(width, was.reshape(-1).copy(), np.zeros(was.size, dtype=np.bool_))
    new = {place: rng.integers(0, 256, width, dtype=np.uint8) for place in (0, 257, 299)}
    lines = {place: word[::-1].tobytes().hex() for place, word in new.items()}
    lines[257] = "x" + lines[257][1:]
    held.change("".join(f"{place:08x} {line}\n" for place, line in lines.items()).encode())
    data, unknown = (a.reshape(-1, width) for a in (held.data, held.unknown))
    assert np.argwhere(unknown).tolist() == [[257, width - 1]]
    for place, word in enumerate(was):
        word = new.get(place, word)
        assert (data[place] == word)[~unknown[place]].all(), place
    held.change(f"{257:08x} {new[257][::-1].tobytes().hex()}\n".encode())
    assert not held.unknown.any() and (held.data.reshape(-1, width)[257] == new[257]).all()
    held.change(b"")
    with pytest.raises(ValueError, match="no hexadecimal digit"):
        held.change(f"{1:08x} {'0g' * width}\n".encode())
