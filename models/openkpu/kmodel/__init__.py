# SPDX-License-Identifier: Apache-2.0
"""Unmodified K210 models: kmodel v0, v1, v3, v4 and v5 (docs/kpu.md 4).

``load_kmodel`` reads a file into a ``Program``; ``run_kmodel`` executes it on input arrays, with
the golden model or another executor for the KPU layers; ``load_functions`` gives the KPU functions
of a v5 file one by one.  Everything wrong with a file is one ``KmodelError`` of one line.
"""

from __future__ import annotations

from pathlib import Path

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.execute import (
    Fetch,
    Kpu,
    KpuOutcome,
    KpuStep,
    LayerEvent,
    ModelResult,
    Segment,
    golden_kpu,
    parse_layers,
    run_kmodel,
    walk,
)
from openkpu.kmodel.package import (
    MAGIC,
    MAGIC_V0,
    SWAPPED,
    ModelFile,
    in_order,
    read_model,
    version_of,
)
from openkpu.kmodel.program import KpuLayer, ModelTensor, Operation, Program, View
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.readers.v0 import read_v0, read_v1
from openkpu.kmodel.readers.v3 import read_v3
from openkpu.kmodel.readers.v4 import read_v4
from openkpu.kmodel.residence.resident import keep_all, keep_maps
from openkpu.kmodel.version5.v5 import read_functions, read_v5

__all__ = [
    "Fetch",
    "KmodelError",
    "Kpu",
    "KpuLayer",
    "KpuOutcome",
    "KpuStep",
    "LayerEvent",
    "ModelFile",
    "ModelResult",
    "ModelTensor",
    "Operation",
    "Program",
    "Segment",
    "View",
    "golden_kpu",
    "keep_all",
    "keep_maps",
    "load_functions",
    "load_kmodel",
    "loads_functions",
    "loads_kmodel",
    "parse_layers",
    "read_file",
    "read_model",
    "run_kmodel",
    "walk",
]


def loads_kmodel(data: bytes, name: str = "model", numbering: str | None = None) -> Program:
    """The program in a file image; ``name`` is for messages.  KmodelError as in ``load_kmodel``.

    Offsets of layers' tables count from the image with its words in order (``package.in_order``).
    """
    data, swapped = in_order(data, name)
    blob = Blob(data, name)
    version = _version(blob)
    if version == 5:
        program = read_v5(blob, numbering)
    elif numbering is not None:
        raise KmodelError(f"{name}: version {version} has no numbering, expected version 5")
    else:
        program = {0: read_v0, 1: read_v1, 3: read_v3, 4: read_v4}[version](blob).check()
    return _noted(program, SWAPPED if swapped else "")


def load_kmodel(path: str | Path, numbering: str | None = None) -> Program:
    """The program in a model file, or in a package ("file.kfpkg:name", ``read_model``).

    ``numbering``: the release of nncase whose numbers a v5 model's byte code has ("1.3.0"); None:
    found out, and said in ``detail``.

    KmodelError: no such file, wrong magic, unknown version, truncated, tables outside the file,
    impossible sizes, an operation that is not supported, byte code that no numbering fits.
    """
    file = read_model(path)
    return _noted(loads_kmodel(file.data, file.name, numbering), file.note)


def loads_functions(data: bytes, name: str = "model") -> list[Program]:
    """The KPU functions in a v5 file image, each a program with its own inputs and outputs."""
    blob = Blob(in_order(data, name)[0], name)
    version = _version(blob)
    if version != 5:
        raise KmodelError(f"{name}: version {version} has no functions, expected version 5")
    return read_functions(blob)


def load_functions(path: str | Path) -> list[Program]:
    """The same from a file or package."""
    file = read_model(path)
    return [_noted(program, file.note) for program in loads_functions(file.data, file.name)]


def read_file(path: str | Path) -> bytes:
    """The bytes of a model file or of the model in a package, in order; KmodelError."""
    return read_model(path).data


def _noted(program: Program, note: str) -> Program:
    program.detail = ", ".join(part for part in (program.detail, note) if part)
    return program


def _version(blob: Blob) -> int:
    """The container's version, by magic and version number."""
    if len(blob) < 8:
        raise blob.error(0, f"{len(blob)} bytes are no kmodel")
    version = version_of(blob.data)
    if version in (0, 1, 3):
        return version
    first, second = blob.cursor(0, 8, "header").read("2I", "header")
    if first == MAGIC and second in (4, 5):
        return second
    if first == MAGIC:
        raise blob.error(4, f"kmodel version {second}, expected 4 or 5 after the magic LDMK")
    raise blob.error(
        0,
        f"magic 0x{first:08x}, expected LDMK, 0x{MAGIC_V0:08x} (v0), version 1 or 3, or a package"
        " (zip)",
    )
