# SPDX-License-Identifier: Apache-2.0
"""Files that a user names: regular ones, and no larger than what is read at once may be."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import numpy.typing as npt

LIMIT = 256 << 20  # bytes of a model, a picture or a network
POINTER = b"version https://git-lfs.github.com/spec/"  # begins a file that git has not fetched
CHUNK = 4 << 20  # that are read at once
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def no_file(mode: int) -> str:
    """What ``st_mode`` says a path is when that is no regular file, else ""."""
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "a device")


def parted(text: str) -> tuple[str, str]:
    """(file, name in it): the text itself if there is such a file, else parted at a colon."""
    if not _exists(text):
        for match in re.finditer(":", text):
            if _exists(text[: match.start()]):
                return text[: match.start()], text[match.end() :]
    return text, ""


def _exists(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # a name that is too long, a zero in it
        return False


def said(error: Exception) -> str:
    """What is wrong with the content of a file, from an error of Python or numpy about it, in words
    that are not about Python."""
    text = str(getattr(error, "strerror", None) or error)
    if isinstance(error, KeyError):
        name = str(error.args[0]).removesuffix(" is not a file in the archive")
        return f"no {name!r} in it"
    if isinstance(error, RecursionError):
        return "its parts are nested too deeply"
    if isinstance(error, MemoryError):
        return "it says that it is larger than the memory"
    if isinstance(error, OverflowError) or "integer string conversion" in text:
        return "a number is too large"
    if isinstance(error, (TypeError, AttributeError)):
        return "a part is of another type than expected"
    if isinstance(error, struct.error):
        return "it ends within a number"
    if "allow_pickle" in text:
        return "it holds Python objects, expected numbers"
    return text


def open_file(path: str | Path, error: type[Exception]) -> BinaryIO:
    """A regular file, open for reading; ``error`` with one line for anything else.

    A pipe without a writer does not block.
    """
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as err:  # ValueError: a name with a null character
        raise error(f"{path}: {getattr(err, 'strerror', None) or err}") from None
    if what := no_file(os.fstat(number).st_mode):
        os.close(number)
        raise error(f"{path}: is {what}, expected a file")
    stream = os.fdopen(number, "rb")
    with contextlib.suppress(OSError):  # whoever reads says what is wrong
        if stream.peek(len(POINTER)).startswith(POINTER):
            stream.close()
            raise error(f"{path}: a pointer of Git LFS, expected the file itself (git lfs pull)")
    return stream


def read_bytes(path: str | Path, error: type[Exception], limit: int = LIMIT) -> bytes:
    """All of a regular file of 1 to ``limit`` bytes; ``error`` with one line for another."""
    data = bytearray()
    with open_file(path, error) as stream:
        try:
            # a file of /proc says 0 bytes, another one may grow; memory for no more than there is
            while len(data) <= limit and (part := stream.read(min(limit + 1, CHUNK))):
                data += part
        except OSError as err:
            raise error(f"{path}: {err.strerror or err}") from None
    if len(data) > limit:
        raise error(f"{path}: is larger than {limit >> 20} MiB, expected a file of at most that")
    if not data:
        raise error(f"{path}: is empty")
    return bytes(data)


def read_array(path: str | Path, error: type[Exception]) -> npt.NDArray:
    """The array of a .npy file of any size; ``error`` with one line for anything else."""
    with open_file(path, error) as stream:
        try:
            from numpy.lib import format  # commands that lack numpy say so

            found = format.read_array(stream, allow_pickle=False)
            if stream.read(1):
                raise ValueError("it goes on behind its array")
            return found
        except OSError as err:
            raise error(f"{path}: {err.strerror or err}") from None
        except (ValueError, EOFError, MemoryError, OverflowError, SyntaxError, TypeError) as err:
            raise error(f"{path}: not a complete .npy file: {said(err)}") from None


def save_arrays(
    path: str | Path | BinaryIO, arrays: Mapping[str, npt.ArrayLike], *, packed: bool = False
) -> None:
    """Write arrays by their names, any names, as a .npz file; ``packed``: compressed."""
    import numpy as np  # commands that lack numpy say so
    from numpy.lib import format

    if isinstance(path, (str, Path)) and not str(path).endswith(".npz"):
        path = f"{path}.npz"
    # numpy's savez takes the names file and allow_pickle for its own parameters
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def check_unpacked(path: str | Path, archive: zipfile.ZipFile, error: type[Exception]) -> None:
    """``error`` when the arrays of a .npz file are larger than ``LIMIT``, as it says itself."""
    size = sum(info.file_size for info in archive.infolist())
    if size > LIMIT:
        raise error(f"{path}: holds {size} bytes, expected at most {LIMIT >> 20} MiB")
