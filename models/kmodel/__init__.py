# SPDX-License-Identifier: Apache-2.0
"""Unmodified K210 models: kmodel v0, v1, v3, v4 and v5 (docs/kpu.md 4).

``load`` reads a file into a ``Program``; ``run`` executes it on input arrays, with the golden
model or another executor for the KPU layers; ``load_functions`` gives the KPU functions of a v5
file one by one.  Everything wrong with a file is one ``KmodelError`` of one line.
"""

from __future__ import annotations

from pathlib import Path

from .. import files
from .binary import Blob
from .errors import KmodelError
from .execute import (
    Fetch,
    Kpu,
    LayerEvent,
    Outcome,
    Result,
    Segment,
    Step,
    golden_kpu,
    parse_layers,
    run,
    walk,
)
from .program import KpuLayer, Operation, Program, Tensor, View
from .resident import keep_all, keep_maps
from .v0 import MAGIC_V0, read_v0, read_v1
from .v3 import read_v3
from .v4 import read_v4
from .v5 import read_functions, read_v5

MAGIC = b"LDMK"

__all__ = [
    "Fetch",
    "KmodelError",
    "Kpu",
    "KpuLayer",
    "LayerEvent",
    "Operation",
    "Outcome",
    "Program",
    "Result",
    "Segment",
    "Step",
    "Tensor",
    "View",
    "golden_kpu",
    "keep_all",
    "keep_maps",
    "load",
    "load_functions",
    "loads",
    "loads_functions",
    "parse_layers",
    "read_file",
    "run",
    "walk",
]


def loads(data: bytes, name: str = "model") -> Program:
    """The program in a file image; ``name`` is for messages.  KmodelError as in ``load``."""
    blob = Blob(data, name)
    version = _version(blob)
    readers = {0: read_v0, 1: read_v1, 3: read_v3, 4: read_v4, 5: read_v5}
    return readers[version](blob).check()


def load(path: str | Path) -> Program:
    """The program in a model file.

    KmodelError: no such file, wrong magic, unknown version, truncated, tables outside the file,
    impossible sizes, an operation that is not supported.
    """
    return loads(read_file(path), str(path))


def loads_functions(data: bytes, name: str = "model") -> list[Program]:
    """The KPU functions in a v5 file image, each a program with its own inputs and outputs."""
    blob = Blob(data, name)
    version = _version(blob)
    if version != 5:
        raise KmodelError(f"{name}: version {version} has no functions, expected version 5")
    return read_functions(blob)


def load_functions(path: str | Path) -> list[Program]:
    """The same from a file."""
    return loads_functions(read_file(path), str(path))


def read_file(path: str | Path) -> bytes:
    """A model file's bytes; KmodelError when it cannot be read or is too large."""
    return files.read_bytes(path, KmodelError)


def _version(blob: Blob) -> int:
    """The container's version, by magic and version number."""
    if len(blob) < 8:
        raise blob.error(0, f"{len(blob)} bytes are no kmodel")
    first, second = blob.cursor(0, 8, "header").read("2I", "header")
    if blob.data[:4] == MAGIC:
        if second not in (4, 5):
            raise blob.error(4, f"kmodel version {second}, expected 4 or 5 after the magic LDMK")
        return second
    if first == MAGIC_V0:
        return 0
    if first in (1, 3):
        return first
    raise blob.error(
        0, f"magic 0x{first:08x}, expected LDMK, 0x{MAGIC_V0:08x} (v0), or version 1 or 3"
    )
