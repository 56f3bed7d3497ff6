# SPDX-License-Identifier: Apache-2.0
"""The comparison of the whole memories: it sees every stray byte, and accesses that do not fit."""

from typing import Any

import numpy as np

from openkpu.layer.layout import ROW_BYTES
from openkpu_tb.core.backdoor import Backdoor, OutOfBounds
from openkpu_tb.device.device import Device
from openkpu_tb.device.shadow import Shadow
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked


@checked()
async def stray_bytes(tb: Any, device: Device) -> None:
    """One byte at either end and at a random place of both memories, behind the copies' back."""
    shadow, other = Shadow(tb), Backdoor(tb)
    await shadow.fill(rng())
    assert await shadow.differences() == []
    size = shadow.ram.size
    for at in (0, size - 1, int(rng().integers(size))):
        row, byte = divmod(at, ROW_BYTES)
        data = shadow.ram[row * ROW_BYTES : (row + 1) * ROW_BYTES].copy()
        was, data[byte] = int(data[byte]), data[byte] ^ 1
        await other.load_ram(row, data)
        (line,) = await shadow.differences()
        said = f"row {row} byte {byte} is {was ^ 1:#04x}, expected {was:#04x}"
        assert line == f"AI RAM: 1 bytes differ: {said}", line
    size = shadow.storage.size
    for at in (0, size - 1, int(rng().integers(size))):
        word = at // 4 * 4
        data = shadow.storage[word : word + 4].copy()
        was, data[at % 4] = int(data[at % 4]), data[at % 4] ^ 0x80
        await other.load_storage(word, data)
        (line,) = await shadow.differences()
        said = f"{at:#x} is {was ^ 0x80:#04x}, expected {was:#04x}"
        assert line == f"storage: 1 bytes differ: {said}", line
    assert await shadow.differences() == []


@checked()
async def two_that_look(tb: Any, device: Device) -> None:
    """What one back door has seen change, another one that looks later finds as well."""
    random, first, second = rng(), Backdoor(tb), Backdoor(tb)
    ram, _ = await first.whole_ram()
    storage, _ = await first.whole_storage()
    for _ in range(3):
        row, word = int(random.integers(first.ram_rows)), int(random.integers(storage.size // 4))
        put = random.integers(0, 256, ROW_BYTES, dtype=np.uint8)
        await second.load_ram(row, put)
        await second.load_storage(4 * word, put[:4])
        ram[ROW_BYTES * row :][:ROW_BYTES], storage[4 * word :][:4] = put, put[:4]
        for back in (first, second):
            for whole, expected in ((back.whole_ram, ram), (back.whole_storage, storage)):
                found, unknown = await whole()
                assert (unknown | (found == expected)).all()
        assert not (await first.read_ram(row, 1))[1].any()
        assert not (await first.whole_ram())[1][ROW_BYTES * row :][:ROW_BYTES].any()
        assert not (await first.whole_storage())[1][4 * word :][:4].any()


@checked()
async def what_does_not_fit(tb: Any) -> None:
    """A load or a dump past the end is refused in one line, and nothing is written."""
    back = Backdoor(tb)
    size, rows = back.storage_bytes, back.ram_rows
    two = np.zeros(2 * ROW_BYTES, dtype=np.uint8)
    tries = {
        f"128 bytes of storage at {size - 124} do not fit: there are {size}": back.load_storage(
            size - 124, two
        ),
        f"5 bytes of storage at {size - 4} do not fit: there are {size}": back.read_storage(
            size - 4, 5
        ),
        f"2 rows of the AI RAM at {rows - 1} do not fit: there are {rows}": back.load_ram(
            rows - 1, two
        ),
        f"1 rows of the AI RAM at {rows} do not fit: there are {rows}": back.read_ram(rows, 1),
    }
    for text, access in tries.items():
        try:
            await access
        except OutOfBounds as error:
            assert str(error) == text, error
        else:
            raise AssertionError(f"no error, expected: {text}")
