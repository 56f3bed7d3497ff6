# SPDX-License-Identifier: Apache-2.0
"""Small containers of every version, for tests and experiments without a published model."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.kmodel.package import MAGIC_V0
from openkpu.kmodel.version5.bytecode import DIALECTS, PLAIN, TENSOR, Dialect
from openkpu.layer.airam import AI_RAM_ROWS
from openkpu.layer.layout import Layout
from openkpu.layer.vectors import VectorLayer

Range = tuple[int, int, int, int]  # v5: location, dtype, start, size; v4: type, dtype, start, size


def chain_layers(
    rng: np.random.Generator, shapes: Sequence[dict], x: np.ndarray, *, eight_bit: bool = True
) -> list[VectorLayer]:
    """Layers that feed each other through the AI RAM, ping-pong as the old compiler places them.

    ``shapes``: arguments of ``random_layer`` for each (o, kernel, pool ...); ``x`` the first map.
    """
    layers: list[VectorLayer] = []
    for index, shape in enumerate(shapes):
        # the first map lies at the bottom, its result as high as it fits, the next one swapped
        src = 0 if index % 2 == 0 else AI_RAM_ROWS - Layout(*x.shape).rows
        layer = random_layer(
            rng,
            x=x,
            src=src,
            signed_in=False,
            signed_out=False,
            fc=False,
            eight_bit=eight_bit,
            plain=True,
            **shape,
        )
        rows = layer.arg.out_layout.rows
        dst = AI_RAM_ROWS - rows if index % 2 == 0 else 0
        arg = layer.arg.replace(image_dst_addr=dst, image_src_addr=src)
        layers.append(
            VectorLayer(
                **{**vars(layer), "arg": arg, "words": arg.encode(), "name": f"L{index:02d}"}
            )
        )
        x = layer.y
    return layers


def _tables(layer: VectorLayer) -> tuple[bytes, bytes, bytes]:
    """weights, batch norm, activation."""
    return (
        layer.weights.tobytes(),
        layer.bn.astype("<u8").tobytes(),
        layer.act.astype("<u8").tobytes(),
    )


def _words(layer: VectorLayer, **fields: int) -> bytes:
    return layer.arg.replace(**fields).encode().astype("<u8").tobytes()


def build_v0(layers: Sequence[VectorLayer], scale: float = 0.5, bias: float = -3.0) -> bytes:
    """model.bin of the old Model Compiler."""
    eight_bit = int(layers[0].eight_bit)
    head = struct.pack("<4I2f", MAGIC_V0, len(layers), 64, eight_bit, scale, bias).ljust(64, b"\0")
    position = 64 + 24 * len(layers)
    table, body = b"", b""
    for layer in layers:
        weights, bn, act = _tables(layer)
        places = [position + len(body)]
        for part in (_words(layer), act, bn, weights):
            body += part
            places.append(position + len(body))
        reg, at_act, at_bn, at_weights, _ = places
        table += struct.pack("<6I", reg, at_act, at_bn, len(bn), at_weights, len(weights))
    return head + table + body


def build_v1(layers: Sequence[VectorLayer], scale: float = 0.5, bias: float = -3.0) -> bytes:
    """What the oldest SDK loads."""
    meta_end = 20 + 28 * len(layers)
    arguments = meta_end
    body = b"".join(_words(layer) for layer in layers)
    meta = b""
    for layer in layers:
        places = []
        for part in _tables(layer):
            body += b"\0" * (-(meta_end + len(body)) % 128)
            places.append(meta_end + len(body))
            body += part
        meta += struct.pack("<3I4f", *places, 1.0, 0.0, scale, bias)
    flags = int(layers[0].eight_bit)
    return struct.pack("<5I", 1, flags, len(layers), 0, arguments) + meta + body


def build_v3(
    operations: Iterable[tuple[int, bytes] | tuple[VectorLayer, int | None]],
    outputs: Sequence[tuple[int, int]],
    main: int,
    *,
    eight_bit: bool = True,
) -> bytes:
    """nncase 0.1: (type, body) pairs, or (layer, address of its output in main memory or None)."""
    items = list(operations)
    head = struct.pack("<7I", 3, int(eight_bit), 0, len(items), 0, main, len(outputs))
    head += b"".join(struct.pack("<2I", *o) for o in outputs)
    position = len(head) + 8 * len(items)
    headers, bodies = b"", b""
    for item in items:
        match item:
            case (VectorLayer() as layer, out):
                kind, body = 10240, _conv_body_v3(layer, out, position + len(bodies))
            case (kind, body):
                pass
        headers += struct.pack("<2I", kind, len(body))
        bodies += body
    return head + headers + bodies


def _conv_body_v3(layer: VectorLayer, out: int | None, start: int) -> bytes:
    body, places = b"\0" * 24, []
    for part in (_words(layer), *_tables(layer)):
        body += b"\0" * (-(start + len(body)) % 128)
        places.append(start + len(body))
        body += part
    return struct.pack("<6I", int(out is not None), out or 0, *places) + body[24:]


def build_v4(
    nodes: Iterable[tuple[int, bytes] | tuple[VectorLayer, Range]],
    inputs: Sequence[tuple[Range, tuple[int, int, int, int]]],
    outputs: Sequence[Range],
    main: int,
    constants: bytes = b"",
) -> bytes:
    """nncase 0.2: (opcode, body) pairs, or (layer, main memory range of its output)."""
    items = list(nodes)
    counts = len(constants), main, len(items), len(inputs), len(outputs), 0
    head = struct.pack("<4s9I", b"LDMK", 4, 0, 1, *counts)
    head += b"".join(struct.pack("<4I", *r) for r, _ in inputs)
    head += b"".join(struct.pack("<4i", *s) for _, s in inputs)
    head += b"".join(struct.pack("<4I", *r) for r in outputs) + constants
    position = len(head) + 8 * len(items)
    headers, bodies = b"", b""
    for item in items:
        match item:
            case (VectorLayer() as layer, out):
                opcode, body = 0x2002, _conv_body_v4(layer, out, position + len(bodies))
            case (opcode, body):
                pass
        headers += struct.pack("<2I", opcode, len(body))
        bodies += body
    return head + headers + bodies


def _conv_body_v4(layer: VectorLayer, out: Range, start: int) -> bytes:
    weights, bn, act = _tables(layer)
    position, skips, tail = start + 24 + 96, [], b""
    for part in (bn, act, weights):
        skip = -(position + len(tail)) % 256
        skips.append(skip)
        tail += b"\0" * skip + part
    words = _words(layer, bwsx_base_addr=skips[0], active_addr=skips[1], para_start_addr=skips[2])
    return struct.pack("<4I2i", *out, 1, 0) + words + tail


# ------------------------------------------------------------------------------------------- v5
def range5(location: int, dtype: int, start: int, size: int) -> bytes:
    """A memory range of v5."""
    return struct.pack("<BBHII", location, dtype, 0, start, size)


def function5(
    inputs: Sequence[tuple[Range, tuple[int, ...]]],
    outputs: Sequence[tuple[Range, tuple[int, ...]]],
    entry: int,
    size: int,
) -> bytes:
    """A function's header."""
    body = b""
    for group in (inputs, outputs):
        body += b"".join(range5(*r) for r, _ in group)
        body += b"".join(struct.pack(f"<I{len(s)}I", len(s), *s) for _, s in group)
    sizes = [sum(r[3] for r, _ in group) for group in (inputs, outputs)]
    head = struct.pack("<8I", 32, 32 + len(body), *sizes, len(inputs), len(outputs), entry, size)
    return head + body


def module5(
    kind: str,
    functions: Sequence[bytes],
    sections: dict[str, bytes],
    pools: dict[int, int],
    align: int = 8,
    start: int = 0,
) -> bytes:
    """A module; section bodies are aligned in the file, which begins ``start`` bytes before."""
    body = b"".join(struct.pack("<B3xI", *p) for p in pools.items()) + b"".join(functions)
    for name, data in sections.items():
        pad = -(start + 48 + len(body) + 32) % align
        head = struct.pack("<16s4I", name.encode(), 0, pad, len(data), 0)
        body += head + b"\0" * pad + data
    body += b"\0" * (-len(body) % 8)
    counts = len(pools), 0, len(sections), len(functions), 0
    return struct.pack("<16s8I", kind.encode(), 1, 48, 48 + len(body), *counts) + body


def k210_text(layer: VectorLayer, places: tuple[int, int, int]) -> bytes:
    """Upload, one layer, download; tables at these offsets of .rdata."""
    arg = layer.arg
    n_in, n_out = layer.x.size, layer.y.size
    tables = [len(part) for part in _tables(layer)]
    text = struct.pack("<B3x", 0) + range5(0, 4, 0, n_in)
    text += range5(64, 4, arg.image_src_addr * 64, arg.in_layout.bytes)
    text += struct.pack("<4I", 1, *arg.in_shape)
    text += struct.pack("<B3x", 2)
    text += b"".join(range5(2, 4, at, n) for at, n in zip(places, tables, strict=True))
    text += range5(0, 0, 0, 0) + struct.pack("<I", 1) + _words(layer)
    text += struct.pack("<B3x", 1)
    text += range5(64, 4, arg.image_dst_addr * 64, arg.out_layout.bytes)
    text += range5(1, 4, 0, n_out) + struct.pack("<4I", 1, *arg.out_shape)
    return text


def k210_module(layers: Sequence[VectorLayer], start: int = 0) -> bytes:
    """A module with a function for every layer."""
    rdata, text, functions = b"", b"", []
    for layer in layers:
        places = []
        for part in _tables(layer):
            rdata += b"\0" * (-len(rdata) % 256)
            places.append(len(rdata))
            rdata += part
        code = k210_text(layer, tuple(places))
        source, result = (
            [((i, 4, 0, m.size), (1, *m.shape))] for i, m in enumerate((layer.x, layer.y))
        )
        functions.append(function5(source, result, len(text), len(code)))
        text += code
    return module5("k210", functions, {".rdata": rdata, ".text": text}, {64: 2 << 20}, 256, start)


class Assembler:
    """Writes byte code of one numbering."""

    def __init__(self, dialect: Dialect = DIALECTS[-1]) -> None:
        self.dialect = dialect
        self.code = b""

    def op(self, name: str, *operands: float) -> Assembler:
        """A plain instruction."""
        number = next(i for i, (n, _) in enumerate(PLAIN) if n == name)
        self.code += struct.pack("<B" + PLAIN[number][1], number, *operands)
        return self

    def tensor(self, name: str, *operands: float) -> Assembler:
        """A tensor function."""
        number = self.dialect.functions.index(name)
        form = "<BH" + self.dialect.formats[name]
        self.code += struct.pack(form, TENSOR, number, *operands)
        return self

    def push(self, *values: float) -> Assembler:
        """Constants."""
        for value in values:
            self.op("LDC_R4" if isinstance(value, float) else "LDC_I4", value)
        return self

    def shape(self, register: int, *values: int) -> Assembler:
        """A shape register."""
        return self.push(*values).op("STSHAPE", register, len(values))

    def pads(self, register: int, *pairs: tuple[int, int]) -> Assembler:
        """A padding register."""
        for pair in pairs:
            self.push(*pair, *([0] if self.dialect.interior else []))
        return self.op("STPADDINGS", register, len(pairs))

    def at(self, location: int, offset: int) -> Assembler:
        """An address."""
        return self.op("LEA_BUFFER", location, 0, offset)

    def strided(self, register: int, *shape: int) -> Assembler:
        """Shape in ``register``, its dense strides in the next one."""
        return self.shape(register, *shape).strides(register + 1, *shape)

    def strides(self, register: int, *shape: int) -> Assembler:
        """The dense strides of a shape."""
        return self.shape(register, *(math.prod(shape[i + 1 :]) for i in range(len(shape))))


def build_v5(
    code: bytes,
    inputs: Sequence[tuple[Range, tuple[int, ...]]],
    outputs: Sequence[tuple[Range, tuple[int, ...]]],
    layers: Sequence[VectorLayer] = (),
    data: int = 0,
    rdata: bytes = b"",
) -> bytes:
    """nncase 1.x: byte code as the entry function and a k210 module of one function per layer."""
    head = function5(inputs, outputs, 0, len(code))
    modules = module5("stackvm", [head], {".rdata": rdata, ".text": code}, {2: len(rdata), 3: data})
    count = 1
    if layers:
        modules += k210_module(layers, 32 + len(modules))
        count = 2
    return struct.pack("<4s7I", b"LDMK", 5, 32, 0, 256, count, 0, 0) + modules


def build_v5_alone(layers: Sequence[VectorLayer]) -> bytes:
    """Only a k210 module, whose first function is the entry (docs/kpu.md 5.1)."""
    return struct.pack("<4s7I", b"LDMK", 5, 32, 0, 256, 1, 0, 0) + k210_module(layers, 32)
