# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of layer vectors: .npz files with a layer's words, tables, input and output.

Keys per layer: Lii_words u64[12], Lii_weights u8[n], Lii_bn u64[O], Lii_act u64[18],
Lii_x u8[C,H,W], Lii_y u8[O,oh,ow]; Lii_x2 u8[C,H,W] for an element-wise layer of two maps.  A
pooling task has no weights and no tables: empty arrays.  Other keys are not read.  Nothing is ever
unpickled.
"""

from __future__ import annotations

import dataclasses
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.layer.argument import WORDS, LayerArg, LayerError

PARTS = {
    "words": np.uint64,
    "weights": np.uint8,
    "bn": np.uint64,
    "act": np.uint64,
    "x": np.uint8,
    "y": np.uint8,
}
KEY = re.compile(r"(L\d+)_(words|weights|bn|act|x|y)")


class VectorError(ValueError):
    """A vector file that cannot be used: one line with file, key and what was expected."""


@dataclasses.dataclass(frozen=True)
class VectorLayer:
    """One recorded layer."""

    case: str  # file name without .npz
    name: str  # L00, L01 ...
    words: npt.NDArray[np.uint64]  # (12,)
    arg: LayerArg  # the words, decoded
    weights: npt.NDArray[np.uint8]  # bytes in memory order
    bn: npt.NDArray[np.uint64]  # (O,)
    act: npt.NDArray[np.uint64]  # (18,)
    x: npt.NDArray[np.uint8]  # (C, H, W)
    y: npt.NDArray[np.uint8]  # (O, oh, ow), expected
    eight_bit: bool  # by the length of the weights
    x2: npt.NDArray[np.uint8] | None = None  # (C, H, W), second map of an element-wise layer

    @property
    def maps(self) -> list[npt.NDArray[np.uint8]]:
        """The input maps, in the order of ``arg.in_layouts``."""
        return [self.x] if self.x2 is None else [self.x, self.x2]

    @property
    def title(self) -> str:
        return f"{self.case}/{self.name}"


def load_cases(
    paths: Iterable[str | Path], say: Callable[[str], None] | None = None
) -> list[VectorLayer]:
    """All layers of files and folders, in order; folders are read sorted, not their subfolders.

    A file without layers is skipped and reported by ``say`` (print, for example).  VectorError for
    a path that is not there, a damaged file, or when nothing at all was found.
    """
    paths = [Path(path) for path in paths]
    say = say or (lambda _line: None)
    found: list[VectorLayer] = []
    for path in paths:
        if not path.exists():
            raise VectorError(f"{path}: no such file or folder")
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_dir() or file.suffix != ".npz":
                say(f"skipped {file}: not an .npz file")
                continue
            layers = load_file(file)
            if not layers:
                say(f"skipped {file}: no layers in it")
            found += layers
    if not found:
        raise VectorError(f"{', '.join(map(str, paths)) or 'no path'}: no layer found")
    return found


def load_file(path: str | Path) -> list[VectorLayer]:
    """The layers of one .npz file; an empty list when it holds none.  VectorError as above."""
    path = Path(path)
    stream = files.open_file(path, VectorError)
    try:
        archive = zipfile.ZipFile(stream)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as err:
        stream.close()
        raise VectorError(f"{path}: not a complete .npz (zip) file: {err}") from None
    with stream, archive:
        files.check_unpacked(path, archive, VectorError)
        names = sorted({m[1] for n in archive.namelist() if (m := KEY.fullmatch(n[:-4]))})
        return [_load_layer(archive, path, name) for name in names]


def _load_layer(archive: zipfile.ZipFile, path: Path, name: str) -> VectorLayer:
    data = {}
    for part, dtype in PARTS.items():
        key = f"{name}_{part}"
        data[part] = _read(archive, path, key)
        if data[part].dtype != dtype:
            _fail(path, key, f"expected {np.dtype(dtype)}, found {data[part].dtype}")
    _shape(path, f"{name}_words", data["words"], (WORDS,))
    arg = LayerArg.decode(data["words"])
    try:
        arg.validate(strict=False)
    except LayerError as err:
        _fail(path, f"{name}_words", f"expected a legal layer argument, found {err}")
    for part, count in zip(("bn", "act"), arg.table_words, strict=True):
        _shape(path, f"{name}_{part}", data[part], (count,))
    _shape(path, f"{name}_x", data["x"], arg.in_shape)
    _shape(path, f"{name}_y", data["y"], arg.out_shape)
    if arg.two_maps:
        data["x2"] = _bytes(archive, path, f"{name}_x2", arg.in_shape)
    count = arg.weight_count
    if data["weights"].shape not in ((count,), (2 * count,)):
        _fail(
            path,
            f"{name}_weights",
            f"expected {count} bytes (8-bit) or {2 * count} (16-bit), "
            f"found shape {data['weights'].shape}",
        )
    return VectorLayer(
        case=path.stem, name=name, arg=arg, eight_bit=data["weights"].size == count, **data
    )


def _bytes(
    archive: zipfile.ZipFile, path: Path, key: str, shape: tuple[int, ...]
) -> npt.NDArray[np.uint8]:
    array = _read(archive, path, key)
    if array.dtype != np.uint8:
        _fail(path, key, f"expected uint8, found {array.dtype}")
    _shape(path, key, array, shape)
    return array


def _fail(path: Path, key: str, what: str) -> NoReturn:
    raise VectorError(f"{path}: {key}: {what}")


def _shape(path: Path, key: str, array: npt.NDArray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        _fail(path, key, f"expected shape {shape}, found {array.shape}")


def _read(archive: zipfile.ZipFile, path: Path, key: str) -> npt.NDArray:
    """One array; the header is checked against the stored size before anything is allocated."""
    try:
        info = archive.getinfo(f"{key}.npy")
    except KeyError:
        raise VectorError(f"{path}: {key}: expected in the file, but missing") from None
    try:
        with archive.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read_header is None:
                _fail(path, key, f"expected .npy version 1.0 or 2.0, found {version}")
            shape, fortran, dtype = read_header(stream)
            if dtype.hasobject:
                _fail(path, key, "expected numbers, found Python objects")
            count = 1
            for extent in shape:
                count *= extent
            raw = stream.read()
        if min(shape, default=0) < 0 or len(raw) != count * dtype.itemsize:
            _fail(path, key, f"expected {count * dtype.itemsize} bytes of data, found {len(raw)}")
        return np.frombuffer(raw, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    except VectorError:
        raise
    except (
        OSError,
        ValueError,
        TypeError,
        EOFError,
        SyntaxError,
        RuntimeError,
        NotImplementedError,
        MemoryError,
        OverflowError,
        zipfile.BadZipFile,
        zlib.error,
    ) as err:
        reason = str(err).splitlines()[0] if str(err) else type(err).__name__
        raise VectorError(f"{path}: {key}: damaged array: {reason}") from None


def save_file(
    path: str | Path,
    layers: Iterable[VectorLayer],
    more: dict[str, npt.NDArray] | None = None,
) -> None:
    """Write layers as one vector file, renamed L00, L01 ... in order; ``more`` arrays beside."""
    arrays = dict(more or {})
    for i, layer in enumerate(layers):
        for part, dtype in PARTS.items():
            arrays[f"L{i:02d}_{part}"] = np.asarray(getattr(layer, part), dtype=dtype)
        if layer.x2 is not None:
            arrays[f"L{i:02d}_x2"] = layer.x2
    files.save_arrays(path, arrays, packed=True)
