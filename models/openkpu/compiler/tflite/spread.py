# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions that a converter left in three parts (docs/compiler.md 2).

TensorFlow computes one as SPACE_TO_BATCH_ND, a convolution of neighbours, and BATCH_TO_SPACE_ND:
every d-th pixel becomes an image of its own. Those of signals have a reshape on either side of the
convolution. The three become one dilated convolution with explicit padding; the results are the
same, because what is put around the images is the zero of the tensor, and crops of the result are
lines and columns less of padding.
"""

from __future__ import annotations

import dataclasses

from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor, Spread

APART, TOGETHER = "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"
CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
RESHAPES = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
SAME = 0  # of a convolution's padding
Pairs = list[list[int]]


def without_batches(model: RawModel) -> RawModel:
    """The model with one convolution in place of the three parts, where they are these three and
    nothing else reads what is between them; others stay as they are."""
    merger = _Merger(model)
    for op in model.operators:
        if op.operator == APART:
            merger.merge(op)
    return merger.model


class _Merger:
    def __init__(self, model: RawModel) -> None:
        self.model = dataclasses.replace(
            model, tensors=list(model.tensors), operators=list(model.operators)
        )

    def merge(self, first: RawOperator) -> None:
        """Replace the parts that begin with ``first``."""
        chain = self._chain(first)
        if chain is None:
            return
        conv, last = chain
        block, pads = self._numbers(first)
        again, crops = self._numbers(last)
        if block is None or again != block or pads is None or crops is None:
            return
        x, y = self._tensor(first, "inputs"), self._tensor(last, "outputs")
        maps = [x, y]
        if len(x.shape) == 3:
            at = self._new_axis(conv)
            if at is None:
                return
            block.insert(at, 1)
            pads.insert(at, [0, 0])
            crops.insert(at, [0, 0])
            maps = [
                dataclasses.replace(t, shape=(*t.shape[: 1 + at], 1, *t.shape[1 + at :]))
                for t in maps
            ]
        spread = self._spread(conv, block, pads, crops)
        if spread is not None and self._fits(conv, spread, maps):
            self._put(first, dataclasses.replace(conv, spread=spread), last, maps)

    # ----------------------------------------------------------------------- the parts
    def _chain(self, first: RawOperator) -> tuple[RawOperator, RawOperator] | None:
        """The convolution behind ``first`` and the end, with reshapes alone between."""
        conv, op = None, first
        for _ in range(4):
            op = self._only_reader(op)
            if op is None:
                return None
            if op.operator == TOGETHER:
                return None if conv is None else (conv, op)
            if op.operator in CONVOLUTIONS and conv is None:
                conv = op
            elif op.operator not in RESHAPES:
                return None
        return None

    def _only_reader(self, op: RawOperator) -> RawOperator | None:
        """The operator whose first input is all that reads the output."""
        if len(op.outputs) != 1 or op.outputs[0] in self.model.outputs:
            return None
        number = op.outputs[0]
        found = [o for o in self.model.operators for n in o.inputs if n == number]
        return found[0] if len(found) == 1 and found[0].inputs[0] == number else None

    def _tensor(self, op: RawOperator, end: str) -> RawTensor:
        return self.model.tensors[getattr(op, end)[0]]

    def _numbers(self, op: RawOperator) -> tuple[list[int] | None, Pairs | None]:
        """Sizes of a block, and pairs of numbers; None for what is computed or not possible."""
        raw = [self.model.tensors[n] for n in op.inputs[1:3] if n >= 0]
        rank = len(self._tensor(op, "outputs").shape)
        if len(raw) != 2 or rank not in (3, 4):
            return None, None
        if any(t.data is None or t.fault or t.dtype not in ("int32", "int64") for t in raw):
            return None, None
        block, pairs = ([int(n) for n in t.values.reshape(-1)] for t in raw)
        if len(block) != rank - 2 or len(pairs) != 2 * len(block) or min(block) < 1:
            return None, None
        return block, [pairs[i : i + 2] for i in range(0, len(pairs), 2)]

    def _new_axis(self, conv: RawOperator) -> int | None:
        """Where a map of one line (0) or column (1) was made of a signal."""
        x, y = self._tensor(conv, "inputs").shape, self._tensor(conv, "outputs").shape
        if len(x) != 4 or len(y) != 4:
            return None
        return next((at for at in (0, 1) if x[1 + at] == y[1 + at] == 1), None)

    def _spread(
        self, conv: RawOperator, block: list[int], pads: Pairs, crops: Pairs
    ) -> Spread | None:
        """Taps a block apart; None where that is another result."""
        o = conv.options
        numbers = [n for pair in (*pads, *crops) for n in pair]
        if o is None or len(conv.inputs) < 2 or min(numbers) < 0:
            return None
        steps = (o.StrideH(), o.StrideW(), o.DilationHFactor(), o.DilationWFactor())
        weights = self.model.tensors[conv.inputs[1]].shape
        if steps != (1, 1, 1, 1) or len(weights) != 4:
            return None
        around = []
        for i, (size, own, less) in enumerate(zip(block, pads, crops, strict=True)):
            total = weights[1 + i] - 1 if o.Padding() == SAME else 0
            same = total // 2, total - total // 2
            around.append([own[j] - less[j] + size * same[j] for j in (0, 1)])
        if min(map(min, around)) < 0:
            return None
        (top, bottom), (left, right) = around
        return Spread((block[0], block[1]), (top, left, bottom, right))

    def _fits(self, conv: RawOperator, spread: Spread, maps: list[RawTensor]) -> bool:
        """Does the result have the size that the convolution gives, and each side one scale?"""
        x, y = maps
        weights = self.model.tensors[conv.inputs[1]].shape
        top, left, bottom, right = spread.pads
        grown = (x.shape[1] + top + bottom, x.shape[2] + left + right)
        spans = [(weights[1 + i] - 1) * spread.dilation[i] for i in (0, 1)]
        sizes = [n - span for n, span in zip(grown, spans, strict=True)]
        inner = self._tensor(conv, "inputs"), self._tensor(conv, "outputs")
        same = all(_same_numbers(*pair) for pair in zip(maps, inner, strict=True))
        return same and len(x.shape) == 4 and list(y.shape[1:3]) == sizes

    # --------------------------------------------------------------------- the new ones
    def _put(
        self, first: RawOperator, conv: RawOperator, last: RawOperator, maps: list[RawTensor]
    ) -> None:
        """The convolution, and reshapes of a signal around it, in place of all from ``first``."""
        ends = [first.inputs[0], last.outputs[0]]
        numbers = list(ends)
        around: list[list[RawOperator]] = [[], []]
        if len(self._tensor(first, "inputs").shape) == 3:
            for i, tensor in enumerate(maps):
                numbers[i] = len(self.model.tensors)
                self.model.tensors.append(dataclasses.replace(tensor, name=f"{tensor.name}/map"))
                way = [ends[i], numbers[i]][:: 1 - 2 * i]
                op = dataclasses.replace((first, last)[i], operator="RESHAPE", options=None)
                around[i] = [dataclasses.replace(op, inputs=way[:1], outputs=way[1:])]
        inputs, outputs = [numbers[0], *conv.inputs[1:]], numbers[1:]
        made = dataclasses.replace(conv, inputs=inputs, outputs=outputs, name=last.name)
        gone = [first]
        while gone[-1] is not last:
            gone.append(next(o for o in self.model.operators if gone[-1].outputs[0] in o.inputs))
        kept = [o for o in self.model.operators if not any(o is g for g in gone[:-1])]
        at = next(i for i, o in enumerate(kept) if o is last)
        kept[at : at + 1] = [*around[0], made, *around[1]]
        self.model.operators = kept


def _same_numbers(one: RawTensor, other: RawTensor) -> bool:
    return (
        one.dtype == other.dtype
        and one.scale.tolist() == other.scale.tolist()
        and one.zero.tolist() == other.zero.tolist()
    )
