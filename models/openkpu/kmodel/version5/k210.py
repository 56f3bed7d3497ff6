# SPDX-License-Identifier: Apache-2.0
"""Functions of a v5 "k210" module: upload, conv2d, download, copy (docs/kpu.md 4)."""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import Download, Operation, Upload, View
from openkpu.kmodel.readers.binary import Cursor
from openkpu.kmodel.readers.layers import ARG_BYTES, make_layer, read_arg
from openkpu.kmodel.version5.container5 import DTYPES, KPU_RAM, Function, Model5, Range

UPLOAD, DOWNLOAD, CONV2D, COPY = range(4)


def function_operations(
    model: Model5, function: Function, inputs: list[View], outputs: list[View]
) -> list[Operation]:
    """The function's operations with its inputs and outputs at the given (dense) tensors."""
    text = model.text(function)
    reader = _Reader(model, function, inputs, outputs, text)
    operations = []
    while text.left:
        operations.append(reader.next())
    return operations


@dataclasses.dataclass
class _Reader:
    model: Model5
    function: Function
    inputs: list[View]
    outputs: list[View]
    text: Cursor

    def next(self) -> Operation:
        start = self.text.position
        opcode, _ = self.text.read("B3s", "k210 opcode")
        readers = {
            UPLOAD: self._upload,
            DOWNLOAD: self._download,
            CONV2D: self._conv2d,
            COPY: self._copy,
        }
        if opcode not in readers:
            raise self.text.blob.error(start, f"k210 operation {opcode} is not supported")
        return readers[opcode](start)

    def _range(self, what: str) -> tuple[Range, int]:
        at = self.text.position
        return self.model.read_range(self.text, what), at

    def _view(self, found: tuple[Range, int]) -> View:
        """Where a range lies; its bytes as a vector."""
        place, at = found
        view = self.model.locate(self.function, place, self.inputs, self.outputs)
        if view is None:
            raise self.text.blob.error(at, f"{place} is not in the function's memory")
        return view

    def _shape(self, what: str) -> tuple[int, ...]:
        return self.text.read("4I", what)

    def _bytes(self, found: tuple[Range, int], shape: tuple[int, ...]) -> View:
        view = self._view(found)
        result = dataclasses.replace(view, shape=shape, dtype="u1")
        if result.count > view.size:
            raise self.text.blob.error(found[1], f"{view.size} bytes for shape {list(shape)}")
        return result

    def _row(self, found: tuple[Range, int]) -> int:
        place, at = found
        if place.location != KPU_RAM or place.start % 64:
            raise self.text.blob.error(at, f"{place} is not a row of the AI RAM")
        return place.start // 64

    def _upload(self, start: int) -> Operation:
        src, dst = self._range("input"), self._range("output")
        shape = self._shape("shape")
        return Upload(offset=start, src=self._bytes(src, shape), base=self._row(dst))

    def _download(self, start: int) -> Operation:
        src, dst = self._range("input"), self._range("output")
        shape = self._shape("shape")
        return Download(offset=start, dst=self._bytes(dst, shape), base=self._row(src))

    def _conv2d(self, start: int) -> Operation:
        tables = [self._range(what) for what in ("weights", "batch norm", "activation table")]
        out = self._range("main memory output")
        batches = self.text.u32("batches")
        arg = read_arg(self.text.blob, self.text.take(ARG_BYTES, "layer argument"))
        places = []
        for place, at in tables:
            view = self._view((place, at))
            base = self.model.rdata_offset(self.function.module)
            if not view.space.startswith("rdata") or base is None:
                raise self.text.blob.error(at, f"{place}: tables are expected in .rdata")
            places.append(base + view.start)
        main_out = None
        if out[0].size and batches <= 4096:
            main_out = self._bytes(out, (batches, *arg.out_shape))
        return make_layer(
            self.text.blob,
            start,
            arg,
            weights=places[0],
            bn=places[1],
            act=places[2],
            eight_bit=True,
            main_out=main_out,
            batches=batches,
            title=f"function {self.function.index}",
        )

    def _copy(self, start: int) -> Operation:
        src, dst = self._range("input"), self._range("output")
        shape, in_strides, out_strides = (
            self._shape(what) for what in ("shape", "input strides", "output strides")
        )
        code = src[0].dtype
        if code not in DTYPES:
            raise self.text.blob.error(src[1], f"data type {code} is not supported")
        views = []
        for found, strides in ((src, in_strides), (dst, out_strides)):
            views.append(
                dataclasses.replace(
                    self._view(found), shape=shape, dtype=DTYPES[code], strides=strides
                )
            )
        return Copy(offset=start, src=views[0], dst=views[1])
