# SPDX-License-Identifier: Apache-2.0
"""The small stack language that v4 models use for activations the compiler did not know."""

from __future__ import annotations

import dataclasses
import struct
from typing import ClassVar

import numpy as np

from openkpu.kmodel.operations import kernels as k
from openkpu.kmodel.program import Memory, Operation, View
from openkpu.kmodel.readers.names import BINARY_V4, UNARY_V4

CONSTANTS = {4: 0.0, 5: 1.0}
UNARY = dict(enumerate(UNARY_V4, start=0x20))
BINARY = dict(enumerate(BINARY_V4, start=0x40))
DUP, POP, ARGUMENT, LITERAL, CLAMP, RETURN = 1, 2, 3, 6, 0x80, 0xA0
Code = tuple[tuple[int, float], ...]


def decode_nnil(body: bytes) -> Code | str:
    """(opcode, literal) pairs, or what is wrong; the stack is checked."""
    code, depth, at = [], 0, 0
    while at < len(body):
        op = body[at]
        at += 1
        value = CONSTANTS.get(op, 0.0)
        if op == LITERAL:
            if at + 4 > len(body):
                return "truncated literal"
            value = struct.unpack_from("<f", body, at)[0]
            at += 4
        need, gain = _effect(op)
        if gain is None:
            return f"unknown instruction 0x{op:02x}"
        if depth < need:
            return f"instruction 0x{op:02x} on an empty stack"
        depth += gain
        if depth > 64:
            return "stack overflow"
        code.append((op, value))
        if op == RETURN:
            return tuple(code)
    return "no return"


def _effect(op: int) -> tuple[int, int | None]:
    """(values needed, change of depth); None for an unknown instruction."""
    if op in (0,):
        return 0, 0
    if op in (ARGUMENT, LITERAL, *CONSTANTS):
        return 0, 1
    if op in UNARY:
        return 1, 0
    if op in BINARY:
        return 2, -1
    return {DUP: (1, 1), POP: (1, -1), CLAMP: (3, -2), RETURN: (1, -1)}.get(op, (0, None))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NnilUnary(Operation):
    """A decoded function applied to every element."""

    name: ClassVar[str] = "nnil_unary_method"
    src: View
    dst: View
    code: Code

    @property
    def work(self) -> int:
        return self.src.count * len(self.code)

    def problem(self) -> str | None:
        return None if self.src.shape == self.dst.shape else f"{self.src} to {self.dst}"

    def run(self, memory: Memory) -> None:
        x = self.src.of(memory).astype(np.float32)
        stack: list[np.ndarray | np.float32] = []
        with np.errstate(all="ignore"):
            for op, value in self.code:
                if op == ARGUMENT:
                    stack.append(x)
                elif op == LITERAL or op in CONSTANTS:
                    stack.append(np.float32(value))
                elif op == DUP:
                    stack.append(stack[-1])
                elif op == POP:
                    stack.pop()
                elif op in UNARY:
                    stack.append(k.UNARY[UNARY[op]](stack.pop()))
                elif op in BINARY:
                    b, a = stack.pop(), stack.pop()
                    stack.append(k.BINARY[BINARY[op]](a, b))
                elif op == CLAMP:
                    high, low, v = stack.pop(), stack.pop(), stack.pop()
                    stack.append(np.clip(v, low, high))
        self.dst.of(memory)[...] = stack[-1]
