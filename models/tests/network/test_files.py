# SPDX-License-Identifier: Apache-2.0
"""Regular files of a bounded size, and one line for anything else."""

from __future__ import annotations

import json
import os
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu import files


class WrongFileError(Exception):
    """What the tests ask for."""


def line(read: Callable[[], object]) -> str:
    with pytest.raises(WrongFileError) as caught:
        read()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert files.read_bytes(path, WrongFileError) == b"abc"
    assert files.read_bytes(path, WrongFileError, limit=3) == b"abc"
    assert files.read_bytes("/proc/self/status", WrongFileError).startswith(b"Name:")
    said = line(lambda: files.read_bytes(path, WrongFileError, limit=2))
    assert said == f"{path}: is larger than 0 MiB, expected a file of at most that"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("x")
    assert files.read_bytes(tmp_path / "link", WrongFileError) == b"abc"
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links" in line(lambda: files.read_bytes(tmp_path / "loop", WrongFileError))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        wrong = {
            tmp_path: "is a folder, expected a file",
            tmp_path / "pipe": "is a pipe, expected a file",
            tmp_path / "socket": "No such device or address",
            Path("/dev/zero"): "is a device, expected a file",
            Path("/dev/null"): "is a device, expected a file",
            tmp_path / "empty": "is empty",
            tmp_path / "none": "No such file or directory",
            Path("/proc/self/mem"): "Input/output error",
            Path("a\0b"): "embedded null byte",
        }
        for path, said in wrong.items():
            assert line(lambda p=path: files.read_bytes(p, WrongFileError)) == f"{path}: {said}"


def test_a_pipe_with_a_writer_is_none_either(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"abc")
    path = f"/proc/self/fd/{read}"
    assert line(lambda: files.read_bytes(path, WrongFileError)).endswith(
        "is a pipe, expected a file"
    )
    assert os.read(read, 3) == b"abc", "untouched"
    os.close(read)
    os.close(write)


def test_arrays_may_be_larger_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LIMIT", 100)
    path = tmp_path / "a.npy"
    np.save(path, np.arange(1000))
    assert (files.read_array(path, WrongFileError) == np.arange(1000)).all()
    path.write_bytes(path.read_bytes()[:200])
    assert "not a complete .npy file" in line(lambda: files.read_array(path, WrongFileError))


def test_what_an_archive_says_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes that would become many."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(1 << 20, np.uint8))
    assert path.stat().st_size < 1 << 14
    with zipfile.ZipFile(path) as archive:
        files.check_unpacked(path, archive, WrongFileError)
        monkeypatch.setattr(files, "LIMIT", 1 << 20)
        said = line(lambda: files.check_unpacked(path, archive, WrongFileError))
    assert said == f"{path}: holds 1048704 bytes, expected at most 1 MiB"


def test_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    """A file that git has not fetched, whatever it should be."""
    path = tmp_path / "net.tflite"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    for read in (files.read_bytes, files.read_array, files.open_file):
        said = line(lambda read=read: read(path, WrongFileError))
        assert said == f"{path}: a pointer of Git LFS, expected the file itself (git lfs pull)"


PICKLED = "Object arrays cannot be loaded when allow_pickle=False"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("words is not a file in the archive"), "no 'words' in it"),
        (KeyError("config"), "no 'config' in it"),
        (TypeError("'int' object is not iterable"), "a part is of another type than expected"),
        (AttributeError("'list' object has no 'get'"), "a part is of another type than expected"),
        (RecursionError("maximum recursion depth"), "its parts are nested too deeply"),
        (MemoryError("Unable to allocate 9 EiB"), "it says that it is larger than the memory"),
        (OverflowError("too large to convert"), "a number is too large"),
        (struct.error("unpack_from requires a buffer of"), "it ends within a number"),
        (ValueError(PICKLED), "it holds Python objects, expected numbers"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (ValueError("expected 3"), "expected 3"),
    ],
)
def test_errors_of_python_in_words(error: Exception, text: str) -> None:
    assert files.said(error) == text


def test_a_number_with_thousands_of_digits() -> None:
    with pytest.raises(ValueError) as caught:
        json.loads("9" * 5000)
    assert files.said(caught.value) == "a number is too large"
