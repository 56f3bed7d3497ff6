# SPDX-License-Identifier: Apache-2.0
"""A model's bytes out of a file or a package, with its words in order (docs/kpu.md 4).

A package (.kfpkg, what flash tools write to a board) is a zip whose flash-list.json names what goes
where.  A file may have the four bytes of every word in reverse, the way some tools keep them for
the flash.
"""

from __future__ import annotations

import dataclasses
import io
import json
import posixpath
import re
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from openkpu import files
from openkpu.kmodel.errors import KmodelError, printable

DIRECTORY_MAX = 1 << 20  # bytes of a package's own table: some ten thousand entries
LIST, LIST_MAX = "flash-list.json", 1 << 20
MAGIC, MAGIC_V0 = 0x4B4D444C, 0x12345678  # "LDMK"
HEAD = 16  # bytes by which a model is known
SWAPPED = "byte-swapped words"
_TROUBLE = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,  # encrypted
    ValueError,
    OSError,
    EOFError,
    struct.error,
    zlib.error,
)


@dataclasses.dataclass(frozen=True)
class ModelFile:
    """A model's bytes in order; ``name`` for messages, ``note``: what was done to them."""

    name: str
    data: bytes
    note: str = ""


def read_model(path: str | Path) -> ModelFile:
    """The model in a file, or in a package: "file.kfpkg", or "file.kfpkg:name" of several.

    KmodelError: no such file, none that is regular, above 256 MiB (in the package as well), a
    damaged package, none or several models in it.
    """
    file, entry = files.parted(str(path))
    data = files.read_bytes(file, KmodelError, files.LIMIT)
    name = file
    if data[:2] == b"PK":
        entry, data = _Package(file, data).take(entry)
        name = f"{file}:{printable(entry)}"
    elif entry:
        raise KmodelError(f"{file}: no package (zip), expected no {entry!r} behind its name")
    data, swapped = in_order(data, name)
    return ModelFile(name, data, SWAPPED if swapped else "")


def in_order(data: bytes, name: str) -> tuple[bytes, bool]:
    """The bytes with every word in order, and whether it was not so."""
    if version_of(data) is not None or version_of(_swapped(data[:HEAD])) is None:
        return data, False
    if len(data) % 4:
        raise KmodelError(f"{name}: {SWAPPED}, but {len(data)} bytes are no whole words")
    return _swapped(data), True


def version_of(data: bytes) -> int | None:
    """The kmodel version that the first bytes say, known or not; None: no kmodel."""
    if len(data) < 8:
        return None
    first, second = struct.unpack_from("<2I", data)
    if first == MAGIC:
        return second
    if first == MAGIC_V0:
        return 0
    return first if first in (1, 3) else None


def _swapped(data: bytes) -> bytes:
    return np.frombuffer(data, "<u4", len(data) // 4).byteswap().tobytes()


class _Package:
    """The entries of a zip that may be models."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        self._check_directory(data)
        try:
            self.archive = zipfile.ZipFile(io.BytesIO(data))
            found = [info for info in self.archive.infolist() if not info.is_dir()]
        except _TROUBLE as err:
            raise KmodelError(f"{file}: damaged package: {err}") from None
        self.infos = {info.filename: info for info in found}
        if len(self.infos) < len(found):
            names = [info.filename for info in found]
            twice = [name for name in self.infos if names.count(name) > 1]
            raise KmodelError(
                f"{file}: {_listing(twice)} twice in the package, expected names of one entry each"
            )
        self.names, self.missing = self._listed()

    def _check_directory(self, data: bytes) -> None:
        """zipfile makes an object of every entry, so their number is bounded first."""
        tail = data[-(22 + 0xFFFF) :]
        for match in re.finditer(re.escape(b"PK\5\6"), tail):
            size = int.from_bytes(tail[match.start() + 12 : match.start() + 16], "little")
            if size > DIRECTORY_MAX:
                raise KmodelError(
                    f"{self.file}: damaged package: a directory of {size} bytes, "
                    f"at most {DIRECTORY_MAX}"
                )
            if tail[: match.start()][-20:].startswith(b"PK\6\7"):
                raise KmodelError(f"{self.file}: a package of the 64-bit kind is not supported")

    def _listed(self) -> tuple[dict[str, zipfile.ZipInfo], list[str]]:
        """Entries by the names that flash-list.json has, or all when there is none; and names of
        the list that are not there."""
        lists = [name for name in self.infos if posixpath.basename(name) == LIST]
        if not lists:
            return self.infos, []
        place = min(lists, key=_depth)
        if len(alike := [name for name in lists if _depth(name) == _depth(place)]) > 1:
            raise KmodelError(f"{self.file}: {_listing(alike)}, expected one {LIST}")
        text = self._read(self.infos[place], LIST_MAX)
        try:
            names = [entry["bin"] for entry in json.loads(text.decode("utf-8-sig"))["files"]]
            if not all(isinstance(name, str) for name in names):
                raise ValueError("names are strings")
        except (ValueError, TypeError, KeyError, RecursionError) as err:
            raise KmodelError(
                f"{self.file}: {place} is no list of files ({files.said(err)}), expected"
                ' {"files": [{"bin": NAME}]}'
            ) from None
        found, missing = {}, []
        known = {posixpath.normpath(n): info for n, info in self.infos.items()}
        for name in names:
            path = posixpath.normpath(name.replace("\\", "/"))
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
            if info := known.get(inside) or known.get(path):
                found[name] = info
            else:
                missing.append(name)
        return found, missing

    def take(self, wanted: str) -> tuple[str, bytes]:
        """(name, bytes) of the model of that name, or of the only one."""
        if wanted:
            return self._named(wanted)
        heads = {name: self._read(info, HEAD, head=True) for name, info in self.names.items()}
        # one that cannot be read may be the one that is wanted
        models = [
            name
            for name, head in heads.items()
            if _looks_like_model(head) or (not head and name.endswith(".kmodel"))
        ]
        if not models:  # a damaged one says itself what is wrong
            models = [name for name in self.names if name.endswith(".kmodel")]
        if len(models) == 1 and not self.missing:
            return models[0], self._read(self.names[models[0]], files.LIMIT)
        if self.missing:
            hint = f"; there are {_listing(models)}: {self._option()}" if models else ""
            raise KmodelError(
                f"{self.file}: {LIST} names {_listing(self.missing)}, not in the package{hint}"
            )
        if not models:
            held = f"it holds {_listing(list(self.names))}" if self.names else "it holds nothing"
            raise KmodelError(f"{self.file}: a package without a kmodel, {held}")
        raise KmodelError(f"{self.file}: {_listing(models)}, expected one: {self._option()}")

    def _option(self) -> str:
        return f"{self.file}:name"

    def _named(self, wanted: str) -> tuple[str, bytes]:
        names = {**self.infos, **self.names}
        alike = [n for n in names if posixpath.basename(n) == wanted]
        name = wanted if wanted in names or len(alike) != 1 else alike[0]
        if name not in names:
            raise KmodelError(
                f"{self.file}: no {wanted!r} in the package, expected one of "
                f"{_listing(list(self.names) or list(self.infos))}"
            )
        return name, self._read(names[name], files.LIMIT)

    def _read(self, info: zipfile.ZipInfo, most: int, *, head: bool = False) -> bytes:
        """The whole of an entry, which has at most ``most`` bytes, or its ``head``."""
        where = f"{self.file}: {_listing([info.filename])} in the package"
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            if head:
                return b""
            kind = info.compress_type
            raise KmodelError(f"{where}: compressed by method {kind}, expected 0 or 8 (deflate)")
        try:
            with self.archive.open(info) as stream:
                data = stream.read(most if head else most + 1)
        except _TROUBLE as err:
            if head:
                return b""  # taken by name it says what is wrong
            raise KmodelError(f"{where}: damaged: {err}") from None
        if len(data) > most:
            raise KmodelError(f"{where}: more than {most} bytes")
        return data


def _depth(name: str) -> int:
    return posixpath.normpath(name).count("/")


def _looks_like_model(head: bytes) -> bool:
    """Whether these are the first bytes of a kmodel, in order or not."""
    return version_of(head) is not None or version_of(_swapped(head)) is not None


def _listing(names: list[str]) -> str:
    most = 12
    more = f" and {len(names) - most} more" if len(names) > most else ""
    short = [name if len(name) <= 80 else f"{name[:77]}..." for name in names[:most]]
    return ", ".join(short) + more
