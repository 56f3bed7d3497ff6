# SPDX-License-Identifier: Apache-2.0
"""What every container is read into: memory spaces, tensors in them, and a list of operations.

A space is a named range of bytes: ``main`` (the driver's main memory), ``kpu`` (the 2 MiB AI RAM),
``input0``..., ``output0``..., and for v5 ``data0``, ``rdata1``... of its modules.  Operations run
in order; each has its offset in the file.  Control flow does not exist: the byte code of a
v5 model is followed when the file is read.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.errors import KmodelError, bad
from openkpu.layer.airam import pack_map, unpack_map
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout

RAM_BYTES = AI_RAM_ROWS * ROW_BYTES
SPACE_MAX = 64 << 20  # bytes of one memory space: eight times what the K210 has
MEMORY_MAX = 4 * SPACE_MAX  # bytes of all spaces
ELEMENTS_MAX = 1 << 24  # elements of one tensor
RANK_MAX = 8
Memory = dict[str, npt.NDArray[np.uint8]]


@dataclasses.dataclass(frozen=True)
class View:
    """A tensor in a memory space; ``strides`` in elements, None for dense."""

    space: str
    start: int  # byte offset in the space
    shape: tuple[int, ...]
    dtype: str = "u1"  # numpy name, little endian
    strides: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def item(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Bytes from the first to the last element."""
        if self.count == 0:
            return 0
        if self.strides is None:
            return self.count * self.item
        span = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (span + 1) * self.item

    def meets(self, other: View) -> bool:
        """Whether the two tensors share bytes, or may share some."""
        apart = self.start + self.size <= other.start or other.start + other.size <= self.start
        return self.space == other.space and not apart

    @property
    def dense(self) -> bool:
        """Elements lie one after the other in C order."""
        if self.strides is None:
            return True
        want = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != want:
                return False
            want *= extent
        return True

    def of(self, memory: Memory) -> npt.NDArray:
        """The array in memory (a view: writing to it writes memory)."""
        strides = self.strides and tuple(s * self.item for s in self.strides)
        return np.ndarray(
            self.shape, self.dtype, memory[self.space].data, self.start, strides or None
        )

    def flat(self, *shape: int) -> View:
        """The same elements in another shape; dense tensors only."""
        return dataclasses.replace(self, shape=shape, strides=None)

    @property
    def kind(self) -> str:
        """The type as people write it: u8, f32."""
        return f"{self.dtype[-2]}{8 * self.item}"

    def __str__(self) -> str:
        return f"{self.kind}{list(self.shape)}@{self.space}+{self.start}"

    def problem(self, sizes: dict[str, int]) -> str | None:
        """Why this tensor cannot be, or None: outside its space, or too large."""
        if len(self.shape) > RANK_MAX or any(n < 0 for n in self.shape):
            return f"shape {list(self.shape)} is impossible"
        if self.count > ELEMENTS_MAX:
            return f"{self.count} elements, at most {ELEMENTS_MAX}"
        if self.strides is not None:
            if len(self.strides) != len(self.shape):
                return f"strides {list(self.strides)} for shape {list(self.shape)}"
            if any(s < 0 for s in self.strides):
                return f"strides {list(self.strides)} are negative"
        if self.space not in sizes:
            return f"there is no memory {self.space}"
        if self.start < 0 or self.start + self.size > sizes[self.space]:
            return (
                f"bytes {self.start}..{self.start + self.size - 1} of {self.space}, "
                f"which has {sizes[self.space]}"
            )
        return None


@dataclasses.dataclass(frozen=True)
class Quant:
    """value = stored * scale + bias."""

    scale: float
    bias: float


@dataclasses.dataclass(frozen=True)
class ModelTensor:
    """An input or output of the model."""

    name: str
    view: View
    quant: Quant | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    @property
    def dtype(self) -> str:
        return self.view.dtype


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operation:
    """One step; ``offset`` is its place in the file."""

    offset: int
    name: ClassVar[str] = ""

    @property
    def views(self) -> tuple[View, ...]:
        """Every tensor that is read or written."""
        found: list[View] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, View):
                found.append(value)
            elif isinstance(value, tuple):
                found += [item for item in value if isinstance(item, View)]
        return tuple(found)

    @property
    def work(self) -> int:
        """Elementary steps, roughly: what bounds the time."""
        return sum(view.count for view in self.views)

    def problem(self) -> str | None:
        """Why this operation is impossible, or None; tensors are checked by the program."""
        return None

    def run(self, memory: Memory) -> None:
        """Compute; ``memory`` holds every space as uint8."""
        raise NotImplementedError

    def describe(self) -> str:
        """Tensors of the operation in one line."""
        return ", ".join(str(view) for view in self.views)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Upload(Operation):
    """Dense (N, C, H, W) bytes into the AI RAM layout from row ``base`` on (docs/kpu.md 2.2)."""

    name: ClassVar[str] = "upload"
    src: View
    base: int
    implicit: bool = False  # the driver's upload of the model input, not in the file

    @property
    def layout(self) -> Layout:
        return Layout(*self.src.shape[1:], base=self.base)

    def problem(self) -> str | None:
        return kpu_problem(self.src, self.base)

    def run(self, memory: Memory) -> None:
        for n, image in enumerate(self.src.of(memory)):
            pack_map(memory["kpu"], self.base + n * self.layout.rows, image)

    def describe(self) -> str:
        return f"{self.src} -> row {self.base}" + (" (model input)" if self.implicit else "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Download(Operation):
    """The reverse of an upload."""

    name: ClassVar[str] = "download"
    dst: View
    base: int

    @property
    def layout(self) -> Layout:
        return Layout(*self.dst.shape[1:], base=self.base)

    @property
    def layouts(self) -> list[Layout]:
        """Of every map of the batch, one after the other."""
        return self.layout.batches(self.dst.shape[0])

    def problem(self) -> str | None:
        return kpu_problem(self.dst, self.base)

    def run(self, memory: Memory) -> None:
        rows = self.layout.rows
        out = self.dst.of(memory)
        count, c, h, w = self.dst.shape
        for n in range(count):
            out[n] = unpack_map(memory["kpu"], self.base + n * rows, (c, h, w))

    def describe(self) -> str:
        return f"row {self.base} -> {self.dst}"


def kpu_problem(view: View, base: int) -> str | None:
    """Why maps (N, C, H, W) cannot lie in the AI RAM from row ``base`` on, or None."""
    if len(view.shape) != 4 or view.dtype != "u1" or min(view.shape) < 1:
        return f"a map of bytes (N, C, H, W) is expected, found {view}"
    rows = base + view.shape[0] * Layout(*view.shape[1:]).rows
    if base < 0 or rows > AI_RAM_ROWS:
        return f"rows {base}..{rows - 1} of the AI RAM, which has {AI_RAM_ROWS}"
    return None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class KpuLayer(Operation):
    """One layer for the KPU.

    The three address fields of ``arg`` hold the tables' offsets in the file, so an image of the
    file at address A makes the layer runnable once A is added.  ``main_out``: the output map goes
    to main memory too (through the FIFO, dense, docs/kpu.md 2.3).
    """

    name: ClassVar[str] = "kpu_conv2d"
    arg: LayerArg
    weights: npt.NDArray[np.uint8]  # bytes in memory order
    bn: npt.NDArray[np.uint64]  # (O,)
    act: npt.NDArray[np.uint64]  # (18,)
    eight_bit: bool
    main_out: View | None = None
    batches: int = 1
    title: str = ""  # where it belongs, e.g. the function of a v5 model

    @property
    def views(self) -> tuple[View, ...]:
        return () if self.main_out is None else (self.main_out,)

    @property
    def work(self) -> int:
        c, h, w = self.arg.in_shape
        return self.batches * (self.arg.weight_count * h * w + (c + self.arg.o_ch_num) * h * w)

    def argument(self, batch: int) -> LayerArg:
        """The argument for one batch: addresses move on by the rows of a map."""
        src, dst = self.arg.in_layout, self.arg.out_layout
        return self.arg.replace(
            image_src_addr=src.base + batch * src.rows, image_dst_addr=dst.base + batch * dst.rows
        )

    def describe(self) -> str:
        arg = self.arg
        kind = f"{arg.kernel}x{arg.kernel}" + (" dw" if arg.depthwise else "")
        pool = f" pool {arg.pool_type}" if arg.pool_type else ""
        out = f", -> {self.main_out}" if self.main_out else ""
        batches = f" x{self.batches}" if self.batches > 1 else ""
        return (
            f"{kind}{pool} {arg.in_shape}@{arg.image_src_addr} -> "
            f"{arg.out_shape}@{arg.image_dst_addr}{batches}, {arg.loads} load(s){out}"
        )


@dataclasses.dataclass
class Program:
    """A model: its spaces, inputs, outputs and operations."""

    file: str
    version: int
    eight_bit: bool
    sizes: dict[str, int]  # bytes of every space
    inputs: list[ModelTensor]
    outputs: list[ModelTensor]
    operations: list[Operation]
    constants: Memory = dataclasses.field(default_factory=dict)  # initial content of spaces
    detail: str = ""  # e.g. which release of the compiler the byte code is of
    tail: bytes = b""  # tables of layers that are not in the file, which lie behind it

    @property
    def kpu_layers(self) -> list[KpuLayer]:
        return [op for op in self.operations if isinstance(op, KpuLayer)]

    def segments(self) -> list[list[KpuLayer]]:
        """Runs of KPU layers with nothing for the CPU in between, in order."""
        found: list[list[KpuLayer]] = [[]]
        for op in self.operations:
            if isinstance(op, KpuLayer):
                found[-1].append(op)
                if op.main_out is None:
                    continue
            if found[-1]:
                found.append([])
        return [run for run in found if run]

    def new_memory(self) -> Memory:
        """Fresh memory: constants in place, everything else 0."""
        memory = {name: np.zeros(size, np.uint8) for name, size in self.sizes.items()}
        for name, data in self.constants.items():
            memory[name] = data.copy()
        return memory

    def check(self) -> Program:
        """KmodelError unless every operation fits memory; returns itself."""
        for name, size in self.sizes.items():
            if size > SPACE_MAX:
                raise KmodelError(
                    f"{self.file}: memory {name} of {size} bytes, at most {SPACE_MAX}"
                )
        if sum(self.sizes.values()) > MEMORY_MAX:
            raise KmodelError(
                f"{self.file}: {sum(self.sizes.values())} bytes of memory, at most {MEMORY_MAX}"
            )
        for tensor in (*self.inputs, *self.outputs):
            if problem := tensor.view.problem(self.sizes):
                raise KmodelError(f"{self.file}: {tensor.name}: {problem}")
        for op in self.operations:
            for view in op.views:
                if problem := view.problem(self.sizes):
                    raise self._error(op, problem)
            if problem := op.problem():
                raise self._error(op, problem)
        return self

    def check_device(
        self,
        *,
        ram_rows: int = AI_RAM_ROWS,
        weight_bits: int = 16,
        weight_rows: int | None = None,
        n_z: int = 1,
    ) -> None:
        """KmodelError for the first layer that a device of these sizes refuses.

        ``weight_rows``: rows of its weight buffer, 9 weights for each of ``n_z`` channels; None:
        not looked at.
        """
        for index, op in enumerate(self.kpu_layers):
            arg = op.argument(op.batches - 1)
            need = arg.weight_rows(n_z)
            try:
                arg.validate(strict=False, ram_rows=ram_rows)
                if not op.eight_bit and weight_bits < 16:
                    raise ValueError(f"16-bit weights, the device has {weight_bits}-bit ones")
                if weight_rows is not None and need > weight_rows:
                    raise ValueError(
                        f"{need} rows of weights at once, its buffer has {weight_rows}"
                    )
                if arg.device_code(eight_bit=op.eight_bit, ram_rows=ram_rows):
                    raise ValueError(arg.loads_text)
            except ValueError as err:
                raise self._error(op, f"layer {index} does not fit the device: {err}") from None

    def _error(self, op: Operation, text: str) -> KmodelError:
        return bad(self.file, op.offset, f"{op.name}: {text}")


def layer_arguments(programs: Iterable[Program]) -> list[LayerArg]:
    """Every layer of the programs, batch by batch."""
    return [
        op.argument(batch)
        for program in programs
        for op in program.operations
        if isinstance(op, KpuLayer)
        for batch in range(op.batches)
    ]


def moved_parts(programs: Iterable[Program]) -> list[tuple[int, int]]:
    """(first row, rows) in the AI RAM of the maps that the CPU puts there or reads back."""
    return [
        (op.base, (op.src if isinstance(op, Upload) else op.dst).shape[0] * op.layout.rows)
        for program in programs
        for op in program.operations
        if isinstance(op, Upload | Download)
    ]
