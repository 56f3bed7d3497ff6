# SPDX-License-Identifier: Apache-2.0
"""The places of a Verilog module that mutation can change, found with pyslang.

A place is an expression or a statement that may become another one while the simulation runs: what
must be constant (ranges, parameters, labels, loop headers, replication counts), what is written to,
and what initial blocks do is left alone. Every change keeps width and sign of the expression.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openkpu_tools.entries.verification import LOGIC as LOGIC
from openkpu_tools.entries.verification import WIRING as WIRING
from openkpu_tools.mutation import mutate_wiring
from openkpu_tools.mutation.mutate_source import (
    SIGNS,
    SKIPPED,
    Node,
    Source,
    bare,
    fold_spaces,
    is_node,
    kind_of,
    nodes,
)
from openkpu_tools.mutation.mutate_walk import Walker
from openkpu_tools.mutation.mutate_wiring import Change

KINDS = (*LOGIC, *WIRING)

BINARY = {
    "AddExpression": ("-",),
    "SubtractExpression": ("+",),
    "MultiplyExpression": ("+",),
    "EqualityExpression": ("!=",),
    "InequalityExpression": ("==",),
    "LessThanExpression": ("<=", ">="),
    "LessThanEqualExpression": ("<", ">"),
    "GreaterThanExpression": (">=", "<="),
    "GreaterThanEqualExpression": (">", "<"),
    "LogicalAndExpression": ("||",),
    "LogicalOrExpression": ("&&",),
    "BinaryAndExpression": ("|",),
    "BinaryOrExpression": ("&",),
    "BinaryXorExpression": ("|",),
    "LogicalShiftLeftExpression": (">>",),
    "LogicalShiftRightExpression": ("<<",),
    "ArithmeticShiftRightExpression": (">>",),
}
COMPARED = {name for name in BINARY if name.partition("Than")[1] or "quality" in name}
REDUCTION = {
    "UnaryBitwiseAndExpression": "|",
    "UnaryBitwiseOrExpression": "&",
    "UnaryBitwiseXorExpression": "|",
    "UnaryBitwiseNandExpression": "~|",
    "UnaryBitwiseNorExpression": "~&",
}


@dataclass(frozen=True)
class Mutation:
    """Bytes ``start`` to ``end`` of a file become ``after``; a statement is dropped instead."""

    module: str
    file: str  # relative to the root
    line: int  # counted from 1
    text: str  # that line, without the space around it
    kind: str  # one of KINDS
    start: int
    end: int
    before: str  # as in the file, space folded
    after: str
    statement: bool = False
    # of a swap, in place of ``after``: (start, end, what it becomes) of each place
    edits: tuple[tuple[int, int, str], ...] = ()
    # (where, text): a declaration that the change refers to
    declares: tuple[int, str] | None = None

    @property
    def shown(self) -> str:
        """What is changed into what."""
        return f"{self.before} -> {self.after}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Its kind; where a term of ``&&`` or ``||`` is left out, that of terms as well."""
        left_out = self.after.startswith(("1'b1 && ", "1'b0 || "))
        return (self.kind, "term") if left_out else (self.kind,)


def find(source: Source, inputs: Mapping[str, frozenset[str]] | None = None) -> list[Mutation]:
    """All mutations of the module in ``source``, those of each place together.

    ``inputs``: input ports of the modules inside of it; a name that is connected to any other port
    is left alone.
    """
    logic = (Change(*change) for change in Logic(source).block(source.module.members, None))
    wiring = mutate_wiring.Wiring(source, inputs or {}).changes()
    found = {}
    for change in (*logic, *wiring):
        mutation = _mutation(source, change)
        if mutation.before != mutation.after:
            found.setdefault((change.start, change.end, change.after, change.edits), mutation)
    return list(found.values())


def _mutation(source: Source, change: Change) -> Mutation:
    edits = change.edits or ((change.start, change.end, change.after),)
    first = source.data.rfind(b"\n", 0, change.start) + 1
    last = source.data.find(b"\n", change.start)
    return Mutation(
        source.called,
        source.name,
        source.data.count(b"\n", 0, change.start) + 1,
        fold_spaces(source.data[first:last].decode()),
        change.kind,
        change.start,
        change.end,
        ", ".join(fold_spaces(source.text(start, end)) for start, end, _ in edits),
        fold_spaces(change.after),
        change.statement,
        change.edits,
        change.declares,
    )


class Logic(Walker[tuple, None]):
    """The mutations of LOGIC, as the values of Change."""

    nothing = None

    def instance(self, module: str, node: Node, scope: None) -> Iterator[tuple]:
        """The values of its ports; what may be an output is left alone."""
        for connection in nodes(node.connections):
            expr = bare(getattr(connection, "expr", None))
            if is_node(expr) and not self.source.written(expr):
                yield from self._expression(expr)

    def cases(self, node: Node, scope: None) -> Iterator[tuple]:
        """What is compared."""
        yield from self._expression(node.expr)

    def driven(self, value: Node, scope: None) -> Iterator[tuple]:
        """The value of a net: stuck at 0, or changed inside. 1'sb0 keeps the sign either way."""
        place = self.range(value)
        if place and not kind_of(value).startswith("Integer"):
            yield "assignment", *place, "1'sb0", False
        yield from self._expression(value)

    def predicate(self, node: Node, scope: None, enable: bool) -> Iterator[tuple]:
        """As a condition."""
        yield from self._condition(node, "enable" if enable else "")

    def assigned(self, node: Node, scope: None, clocked: bool, reset: bool) -> Iterator[tuple]:
        """Dropped, stuck at 0, or another value."""
        expr = node.expr
        place, value = self.range(node), expr.right
        at = self.range(value)
        stays = kind_of(expr) == "NonblockingAssignmentExpression"
        target = self.range(expr.left)
        same = at and target and fold_spaces(self.text(*at)) == fold_spaces(self.text(*target))
        if stays and place:
            if not same:  # `x <= x` says that a register stays, as it does without it
                yield "reset" if reset else "assignment", *place, "(dropped)", True
        elif at and not kind_of(value).startswith("Integer"):
            yield "assignment", *at, "1'sb0", False
        if reset and at:
            changed = list(self._literal(value))
            yield "reset", *at, changed[0][3] if changed else f"~({self.text(*at)})", False
            return
        if stays and at and target and kind_of(value) == "ConditionalExpression":
            yield from self._keeps(value, fold_spaces(self.text(*target)))
        yield from self._expression(value)

    def _keeps(self, node: Node, target: str) -> Iterator[tuple]:
        """``c ? v : x`` as the next value of x: c is an enable."""
        arms = [self.range(node.left), self.range(node.right)]
        place = self.range(node.predicate)
        if not place:
            return
        for arm, stuck in zip(arms, ("1'b0", "1'b1"), strict=True):
            if arm and fold_spaces(self.text(*arm)) == target:
                yield "enable", *place, stuck, False

    # ---- expressions
    def _condition(self, node: Node, enable: str) -> Iterator[tuple]:
        """A predicate: negated, or stuck."""
        place, inner = self.range(node), node
        while kind_of(inner) == "ParenthesizedExpression":
            inner = inner.expression
        if place:
            yield enable or "condition", *place, "1'b1", False
            yield "condition", *place, "1'b0", False
            if kind_of(inner) != "UnaryLogicalNotExpression" and kind_of(inner) not in COMPARED:
                yield "condition", *place, f"!({self.text(*place)})", False
        yield from self._expression(node)

    def _literal(self, node: Node) -> Iterator[tuple]:
        """A number: one more, one less."""
        place = self.range(node)
        if place is None:
            return
        text = self.text(*place)
        if kind_of(node) == "IntegerLiteralExpression" and text.isdigit():
            values = [int(text) + 1, int(text) - 1]
            forms = [str(v) for v in values if v >= 0]
        elif kind_of(node) == "IntegerVectorExpression":
            size, _, rest = text.replace("_", "").replace(" ", "").lower().partition("'")
            sign, rest = ("s", rest[1:]) if rest[:1] == "s" else ("", rest)
            base = {"d": 10, "b": 2, "h": 16, "o": 8}[rest[0]]
            if not size.isdigit() or any(c in "xz?" for c in rest[1:]):
                return
            width, value = int(size), int(rest[1:], base)
            mask = (1 << width) - 1
            values = dict.fromkeys([(value + 1) & mask, (value - 1) & mask])
            write = {"d": "d", "b": f"0{width}b", "h": "x", "o": "o"}[rest[0]]
            forms = [f"{size}'{sign}{rest[0]}{v:{write}}" for v in values]
        else:
            return
        for form in forms:
            yield "constant", *place, form, False

    def _expression(self, node: Node) -> Iterator[tuple]:
        if not is_node(node):
            return
        kind, place = kind_of(node), self.range(node)
        if kind in SKIPPED:
            return
        if kind.startswith("Integer"):
            yield from self._literal(node)
        elif kind == "ConditionalExpression":
            yield from self._condition(node.predicate.conditions[0].expr, "")
            yield from self._expression(node.left)
            yield from self._expression(node.right)
        elif kind in BINARY:
            yield from self._binary(node, place)
        elif kind == "UnaryLogicalNotExpression":
            operand = self.source.operand(node.operand)
            if place and operand:
                yield "operator", *place, f"|{operand}", False
            yield from self._expression(node.operand)
        elif kind in ("UnaryBitwiseNotExpression", "UnaryMinusExpression"):
            operand = self.source.operand(node.operand)
            if place and operand:
                yield "operator", *place, operand, False
            yield from self._expression(node.operand)
        elif kind in REDUCTION:
            operand = self.source.operand(node.operand)
            if place and operand:
                yield "operator", *place, f"{REDUCTION[kind]}{operand}", False
            yield from self._expression(node.operand)
        elif kind == "MultipleConcatenationExpression":
            yield from self._expression(node.concatenation)
        elif kind == "InvocationExpression":
            if node.left.sourceRange and kind_of(node.left) == "SystemName":
                start, end = self.range(node.left) or (0, 0)
                if self.text(start, end) not in SIGNS:
                    return
            for argument in node.arguments.parameters:
                expr = getattr(argument, "expr", None)
                expr = bare(expr)
                yield from self._expression(expr)
        elif kind in ("AscendingRangeSelect", "DescendingRangeSelect"):
            yield from self._expression(node.left)  # the width is constant
        elif kind == "SimpleRangeSelect":
            return
        else:
            for child in node:
                yield from self._expression(child)

    def _binary(self, node: Node, place: tuple[int, int] | None) -> Iterator[tuple]:
        left, right = self.source.operand(node.left), self.source.operand(node.right)
        if place and left and right:
            for operator in BINARY[kind_of(node)]:
                yield "operator", *place, f"{left} {operator} {right}", False
            # without one of the terms; those of a chain are met one by one
            missing = {"LogicalAndExpression": "1'b1 &&", "LogicalOrExpression": "1'b0 ||"}
            if neutral := missing.get(kind_of(node)):
                kind = "enable" if "&&" in neutral else "condition"
                yield kind, *place, f"{neutral} {left}", False
                if kind_of(node.left) != kind_of(node):
                    yield kind, *place, f"{neutral} {right}", False
        yield from self._expression(node.left)
        yield from self._expression(node.right)
