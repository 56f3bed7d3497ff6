# SPDX-License-Identifier: Apache-2.0
"""The container of kmodel v5 (nncase 1.x): modules, functions, sections (docs/kpu.md 4)."""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import View
from openkpu.kmodel.readers.binary import Blob, Cursor

DTYPES = {
    0: "i1",
    1: "<i2",
    2: "<i4",
    3: "<i8",
    4: "u1",
    5: "<u2",
    6: "<u4",
    7: "<u8",
    8: "<f2",
    9: "<f4",
    10: "<f8",
}
INPUT, OUTPUT, RDATA, DATA, SHARED, KPU_RAM = 0, 1, 2, 3, 4, 64
PLACES = {0: "input", 1: "output", 2: ".rdata", 3: "data", 4: "shared memory", 64: "AI RAM"}


@dataclasses.dataclass(frozen=True)
class Range:
    """A memory range: location, data type, first byte, number of bytes."""

    location: int
    dtype: int
    start: int
    size: int

    def __str__(self) -> str:
        place = PLACES.get(self.location, f"memory {self.location}")
        return f"bytes {self.start}..{self.start + self.size - 1} of {place}"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An input or output of a function."""

    range: Range
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Function:
    """One function; ``entry`` counts from the module's .text."""

    module: int
    index: int
    offset: int
    entry: int
    size: int
    inputs: list[Parameter]
    outputs: list[Parameter]


@dataclasses.dataclass(frozen=True)
class Module:
    """One module: kind ("stackvm", "k210"), memory pools, functions, sections."""

    kind: str
    offset: int
    pools: dict[int, int]  # location: bytes
    functions: list[Function]
    sections: dict[str, tuple[int, int]]  # name: file offset, bytes


@dataclasses.dataclass
class Model5:
    """The parsed container."""

    blob: Blob
    modules: list[Module]
    entry: tuple[int, int]

    def function(self, module: int, index: int, at: int) -> Function:
        """A function; the error names ``at``, where it is called."""
        if module >= len(self.modules) or index >= len(self.modules[module].functions):
            raise self.blob.error(at, f"call of function {index} of module {module}: none such")
        return self.modules[module].functions[index]

    def text(self, function: Function) -> Cursor:
        """Cursor over the code of a function."""
        start, size = self.modules[function.module].sections.get(".text", (0, 0))
        if function.entry + function.size > size:
            raise self.blob.error(
                function.offset,
                f"code at {function.entry} of {function.size} bytes, .text has {size}",
            )
        return self.blob.cursor(start + function.entry, function.size, "code")

    def rdata_offset(self, module: int) -> int | None:
        """File offset of a module's .rdata."""
        place = self.modules[module].sections.get(".rdata")
        return None if place is None else place[0]

    def read_range(self, cursor: Cursor, what: str) -> Range:
        location, dtype, _, start, size = cursor.read("BBHII", what)
        return Range(location, dtype, start, size)

    def locate(
        self, function: Function, place: Range, inputs: list[View], outputs: list[View]
    ) -> View | None:
        """Where a range lies when parameters are at these tensors; None when nowhere."""
        start, size = place.start, place.size
        if place.location in (INPUT, OUTPUT):
            parameters, views = function.inputs, inputs
            if place.location == OUTPUT:
                parameters, views = function.outputs, outputs
            for parameter, view in zip(parameters, views, strict=True):
                inside = start - parameter.range.start
                if inside >= 0 and inside + size <= parameter.range.size:
                    return View(view.space, view.start + inside, (size,))
            return None
        if place.location == KPU_RAM:
            return View("kpu", start, (size,))
        space = {RDATA: "rdata", DATA: "data"}.get(place.location)
        return None if space is None else View(f"{space}{function.module}", start, (size,))

    def spaces(self) -> tuple[dict[str, int], dict]:
        """(sizes, constants) of every module's memory."""
        sizes, constants = {}, {}
        for index, module in enumerate(self.modules):
            sizes[f"data{index}"] = module.pools.get(DATA, 0)
            start, size = module.sections.get(".rdata", (0, 0))
            constants[f"rdata{index}"] = self.blob.bytes(start, size, ".rdata")
            sizes[f"rdata{index}"] = size
        return sizes, constants


def read_container(blob: Blob) -> Model5:
    """The container of a v5 file; KmodelError for what is wrong with it."""
    head = blob.cursor(8, None, "header")
    header_size, _, _ = head.read("3I", "header")
    if header_size != 32:
        raise blob.error(
            8,
            f"v5 header of {header_size} bytes, expected 32 (pre-release compilers are not "
            "supported)",
        )
    count = head.count("module count", 48)
    entry = head.read("2I", "entry function")
    position = header_size
    modules = []
    for index in range(count):
        module, position = _read_module(blob, index, position)
        modules.append(module)
    if entry[0] >= len(modules) or entry[1] >= len(modules[entry[0]].functions):
        raise blob.error(24, f"entry function {entry[1]} of module {entry[0]}: none such")
    return Model5(blob, modules, entry)


def _read_module(blob: Blob, index: int, start: int) -> tuple[Module, int]:
    head = blob.cursor(start, None, f"module {index}")
    raw, version, header_size, size = head.read("16s3I", "module header")
    kind = raw.split(b"\0")[0].decode("ascii", "replace")
    pool_count, shared_count, section_count, function_count, _ = head.read("5I", "module header")
    if header_size != 48 or version != 1:
        raise blob.error(
            start,
            f"module {kind!r} version {version} with a header of {header_size}, expected 1, 48",
        )
    if size < header_size:
        raise blob.error(start, f"module {kind!r} of {size} bytes")
    end = start + size
    # the last module may be stated a few bytes longer than the file
    blob.need(start, min(size, max(0, size - 7)), f"module {kind!r}")
    body = blob.cursor(start + 48, min(end, len(blob)) - start - 48, f"module {kind!r}")
    for what, n, item in (
        ("memory pools", pool_count, 8),
        ("shared memory pools", shared_count, 8),
        ("sections", section_count, 32),
        ("functions", function_count, 32),
    ):
        if n * item > body.left:
            raise blob.error(start, f"module {kind!r}: {n} {what} do not fit it")
    pools = {}
    for _ in range(pool_count):
        location, _, bytes_ = body.read("B3sI", "memory pool")
        pools[location] = bytes_
    body.take(8 * shared_count, "shared memory pools")
    functions = [_read_function(body, index, i) for i in range(function_count)]
    sections = {}
    for _ in range(section_count):
        at = body.position
        name, flags, body_start, body_size, _ = body.read("16s4I", "section")
        title = name.split(b"\0")[0].decode("ascii", "replace")
        if flags & 1:  # its bytes are part of .rdata
            continue
        body.take(body_start, f"padding of section {title!r}")
        offset = body.take(body_size, f"section {title!r}")
        if title in sections:
            raise blob.error(at, f"section {title!r} twice")
        sections[title] = (offset, body_size)
    return Module(kind, start, pools, functions, sections), end


def _read_function(body: Cursor, module: int, index: int) -> Function:
    start = body.position
    what = f"function {index}"
    header, size, _, _, in_count, out_count, entry, text = body.read("8I", what)
    if header != 32 or size < 32 or size - 32 > body.left:
        raise body.blob.error(start, f"{what} of {size} bytes with a header of {header}")
    if (in_count + out_count) * 16 > size:
        raise body.blob.error(
            start, f"{what}: {in_count} inputs and {out_count} outputs in {size} bytes"
        )
    inside = Cursor(body.blob, body.position, start + size, what)
    groups = []
    for count in (in_count, out_count):
        ranges = [inside.read("BBHII", "parameter") for _ in range(count)]
        shapes = []
        for _ in range(count):
            rank = inside.u32("rank")
            if rank > 8:
                raise inside.error(f"rank {rank}")
            shapes.append(inside.read(f"{rank}I", "shape"))
        groups.append(
            [
                Parameter(Range(r[0], r[1], r[3], r[4]), shape)
                for r, shape in zip(ranges, shapes, strict=True)
            ]
        )
    body.take(size - 32, what)
    return Function(module, index, start, entry, text, groups[0], groups[1])


def parameter_view(blob: Blob, function: Function, parameter: Parameter, space: str) -> View:
    """A function's parameter as a dense tensor at the start of ``space``."""
    dtype = DTYPES.get(parameter.range.dtype)
    if dtype is None:
        raise blob.error(function.offset, f"data type {parameter.range.dtype} is not supported")
    view = View(space, 0, parameter.shape, dtype)
    if view.count * view.item != parameter.range.size:
        raise blob.error(
            function.offset,
            f"parameter of {parameter.range.size} bytes for {dtype}{list(parameter.shape)}",
        )
    return view


__all__ = ["KmodelError", "Model5", "parameter_view", "read_container"]
