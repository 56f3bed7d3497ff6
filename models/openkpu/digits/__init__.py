# SPDX-License-Identifier: Apache-2.0
"""The digits network: real scans, a small CNN trained on them, and its quantised image.

Everything is committed (see README.md here); ``openkpu_tools.foreign.train_digits`` makes it again.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network.network import Network

FOLDER = Path(__file__).resolve().parent
DATA = FOLDER / "digits.npz"
FLOAT = FOLDER / "float.npz"
NETWORK = FOLDER / "network.npz"
LARGE_NETWORK = FOLDER / "large_network.npz"
MODELS = tuple(sorted(f.name for kind in ("*.tflite", "*.onnx") for f in FOLDER.glob(kind)))
LARGE = 128  # lines and columns of the large network's input
PIXEL_SCALE = 15  # a scan's 0..16 becomes a pixel byte 0..240


@dataclasses.dataclass(frozen=True)
class Digits:
    """Scans (n, 1, 8, 8) uint8 0..16 with labels (n,) uint8."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def pixels(self) -> npt.NDArray[np.uint8]:
        """Images as the device takes them: (n, 1, 8, 8) bytes 0..240."""
        return self.images * np.uint8(PIXEL_SCALE)


def load_data() -> tuple[Digits, Digits]:
    """(training set, held-out test set), always the same split."""
    with np.load(DATA, allow_pickle=False) as data:
        images, labels, test = data["images"][:, None], data["labels"], data["test"]
    return Digits(images[~test], labels[~test]), Digits(images[test], labels[test])


def load_network(ram_rows: int = AI_RAM_ROWS) -> Network:
    """The quantised network, its maps placed in an AI RAM of ``ram_rows``; its output map
    (10, 1, 1) holds signed logits."""
    network = Network.load(NETWORK)
    if ram_rows != AI_RAM_ROWS:
        network.place(ram_rows)
    return network


def enlarge(pixels: npt.NDArray[np.uint8], size: int = LARGE) -> npt.NDArray[np.uint8]:
    """(n, 1, h, w) bytes as (n, 1, size, size), bilinear between the pixels' centres."""

    def weights(old: int) -> npt.NDArray[np.float64]:
        at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
        low = np.minimum(at.astype(int), old - 2)
        matrix = np.zeros((size, old))
        matrix[np.arange(size), low] = 1 - (at - low)
        matrix[np.arange(size), low + 1] = at - low
        return matrix

    rows, columns = weights(pixels.shape[2]), weights(pixels.shape[3])
    return np.rint(rows @ pixels.astype(np.float64) @ columns.T).astype(np.uint8)


def load_large() -> Network:
    """The quantised large network: 68 MMAC, for scans enlarged to 128 x 128."""
    return Network.load(LARGE_NETWORK)


def load_float() -> dict[str, npt.NDArray[np.float64]]:
    """Parameters of the float model, see ``float_model``."""
    with np.load(FLOAT, allow_pickle=False) as data:
        return {key: data[key].astype(np.float64) for key in data.files}


def classify(y: npt.NDArray[np.uint8]) -> int:
    """Class of an output map: the largest signed logit, the first of equals."""
    return int(np.argmax(y.view(np.int8).reshape(-1)))
