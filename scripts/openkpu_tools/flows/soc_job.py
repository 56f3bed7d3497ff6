# SPDX-License-Identifier: Apache-2.0
"""What a run of the computer in soc/ needs: memory, the header job.h, and the golden maps."""

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.configs import Config
from openkpu.export.image import Image, image
from openkpu.export.source import Source
from openkpu.layer import airam
from openkpu.layer.layout import ROW_BYTES, Layout
from openkpu.network.network import NetworkRun

STORE = 0x8000_0000
LEAST_STORE = 1 << 20  # one simulator serves all that fits
PLACE = 4096  # images of further networks begin at multiples
CHECKED = 1 << 15  # bytes of an image whose checksum the processor computes in reasonable time
LIMIT = 100_000  # passes of a wait


@dataclasses.dataclass
class Job:
    """Networks in the storage, an image for each device, and what they must give."""

    images: list[Image]
    golden: list[list[NetworkRun]]  # for each device each inference
    order: list[list[int]]  # for each device the inputs that its inferences have, as they come
    store: npt.NDArray[np.uint8]

    @property
    def store_bytes(self) -> int:
        return self.store.size

    def results(self) -> dict[tuple[int, int], tuple[int, npt.NDArray[np.uint8]]]:
        """(device, inference as it comes) -> checksum and bytes of the result."""
        found = {}
        for d, order in enumerate(self.order):
            for number, i in enumerate(order):
                y = self.golden[d][i].stored.reshape(-1)
                found[d, number] = (zlib.crc32(y.tobytes()), y)
        return found


def job(
    sources: list[Source],
    config: Config,
    inputs: list[npt.NDArray],
    order: list[list[int]],
    least: int = LEAST_STORE,
    fits: Callable[[int], None] = lambda _size: None,
) -> Job:
    """Place a network for each device, and run the golden model on its ``inputs`` (n, C, H, W).

    ``least``: bytes of the storage at least; it has a power of two. ``fits`` is called with them
    before the golden model runs, which takes its time, and raises an error where they are too many.
    """
    at, images = STORE, []
    for source, x in zip(sources, inputs, strict=True):
        made = image(source.network, config, at, source.tensors, len(x))
        images.append(made)
        at += round_up(made.memory, PLACE)
    size = max(least, 1 << (at - STORE - 1).bit_length())
    fits(size)
    store = np.zeros(size, dtype=np.uint8)
    for made, x in zip(images, inputs, strict=True):
        start = made.base - STORE
        store[start : start + made.data.size] = made.data
        for i, one in enumerate(x):
            place = start + made.input + i * made.input_stride
            store[place : place + one.size] = np.ascontiguousarray(one).view(np.uint8).reshape(-1)
    golden = [
        [source.network.run(one) for one in x] for source, x in zip(sources, inputs, strict=True)
    ]
    return Job(images, golden, order, store)


def soc_header(made: Job, check: str = "") -> str:
    """job.h: what the firmware is compiled with; ``check``: HEAD or ALL, by size unless given."""
    first, bases = made.images[0], [f"{i.base:#x}u" for i in made.images]
    layout = first.network.layers[0].in_layout
    place = [layout.base, layout.channels, layout.height, layout.width]
    small = max(i.data.size for i in made.images) <= CHECKED
    check = check or ("ALL" if small else "HEAD")
    values = {
        "DEVICES": len(made.images),
        "COUNT": f"{len(made.order[0])}u",
        "LIMIT": f"{LIMIT}u",
        "STORE_BYTES": f"{made.store_bytes:#x}u",
        "RESULT_BYTES": f"{first.result_bytes}u",
        "IMAGES_AT": f"{{{', '.join(bases)}}}",
        "INPUT_PLACE": f"{{{', '.join(map(str, place))}}}",
        "CHECK": f"OPENKPU_CHECK_{check}",
    }
    lines = [f"#define JOB_{name} {value}" for name, value in values.items()]
    lines += ["#ifndef JOB_DISTURB", "#define JOB_DISTURB 1", "#endif"]
    return "\n".join(["#ifndef JOB_H", "#define JOB_H", *lines, "#endif", ""])


def maps(made: Job) -> bytes:
    """The file of soc/main.cpp: places and values of every layer's map."""
    words: list[npt.NDArray] = [np.array([len(made.images)])]
    for d, one in enumerate(made.images):
        words.append(np.array([len(one.network.layers), len(made.order[d])]))
        places = [_places(arg.out_layout) for arg in one.network.layers]
        for i in made.order[d]:
            for place, layer in zip(places, made.golden[d][i].layers, strict=True):
                values = layer.y.view(np.uint8).reshape(-1)
                both = np.stack([place, values.astype(np.int64)], axis=1).reshape(-1)
                words += [np.array([values.size]), both]
    return np.concatenate(words).astype("<u4").tobytes()


def _places(layout: Layout) -> npt.NDArray[np.int64]:
    """Bytes of the AI RAM that a map takes, in its dense order."""
    index = np.arange((layout.base + layout.rows) * ROW_BYTES, dtype=np.int64)
    return airam.unpack_map(
        index, layout.base, (layout.channels, layout.height, layout.width)
    ).reshape(-1)
