# SPDX-License-Identifier: Apache-2.0
"""Mutations that mistake one signal for another, or one moment for the next.

Five kinds. ``swap``: two signals of one width change places in a statement, in a net's value or at
the inputs of an instance. ``bit``: the top or the lowest bit of a slice, or of a part of a
concatenation, is 0. ``term``: a term of ``&``, ``|``, ``&&`` or ``||`` is left out, at any depth;
mutate_places finds those of the last two, as enables and conditions. ``late``: a signal is read a
cycle late. ``case``: two neighbouring items of a case change their labels.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from openkpu_tools.mutation.mutate_source import (
    PLAIN,
    RESETS,
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

CLOCKS = ("clk", "hclk")
LATE = "mutant_late_"  # prefix of the name of a signal's copy
# operators whose operands may change places: to swap them changes nothing
COMMUTE = {
    f"{name}Expression"
    for name in ("Add", "Multiply", "Equality", "Inequality", "LogicalAnd", "LogicalOr")
} | {f"Binary{name}Expression" for name in ("And", "Or", "Xor")}
PRODUCTS = ("BinaryAndExpression", "BinaryOrExpression")
NEGATIONS = ("UnaryLogicalNotExpression", "UnaryBitwiseNotExpression")
RANGES = ("SimpleRangeSelect", "AscendingRangeSelect", "DescendingRangeSelect")
TRUTHS = {"LogicalAndExpression", "LogicalOrExpression", "UnaryLogicalNotExpression"} | {
    f"{name}Expression"
    for name in ("Equality", "Inequality", "LessThan", "LessThanEqual", "GreaterThan")
}


class Change(NamedTuple):
    """Bytes ``start`` to ``end`` become ``after``."""

    kind: str
    start: int
    end: int
    after: str
    statement: bool = False  # it is dropped instead
    edits: tuple[tuple[int, int, str], ...] = ()  # in place of it: places and what they become
    declares: tuple[int, str] | None = None  # a text that the file must contain for it


@dataclass(frozen=True)
class Signal:
    """A net or register: its range as text, and where a declaration may follow its own."""

    name: str
    range: str
    signed: bool
    width: str
    at: int


@dataclass(frozen=True)
class Use:
    """A signal, or a part of one, that is read."""

    start: int
    end: int
    text: str
    width: str
    signal: Signal
    chain: Node  # the operator that has it and whose operands commute


@dataclass
class Unit:
    """What is read by one statement, by a net's value, or by an instance."""

    uses: list[Use] = field(default_factory=list)


Scope = Mapping[str, Signal]


class Wiring(Walker[Change, Scope]):
    """The mutations of a module; ``inputs``: names of the input ports of modules inside of it."""

    nothing = MappingProxyType({})

    def __init__(self, source: Source, inputs: Mapping[str, frozenset[str]]) -> None:
        super().__init__(source)
        self.inputs = inputs
        ports = source.ports()
        self.clock = next((name for name, *_ in ports if name in CLOCKS), None)

    def changes(self) -> Iterator[Change]:
        """All of them, in the order of the file as far as it goes."""
        header = self.source.module.header
        at = self.source.range(header)
        scope = {}
        for name, _, kind in self.source.ports():
            if at and (signal := self._signal(name, kind, at[1])):
                scope[name] = signal
        yield from self.block(self.source.module.members, scope)

    # ---- what signals there are
    def _signal(self, name: str, kind: Node, at: int) -> Signal | None:
        if kind_of(kind) not in ("ImplicitType", "RegType", "LogicType"):
            return None
        ranges = nodes(kind.dimensions)
        if name in (*CLOCKS, *RESETS) or len(ranges) > 1:
            return None
        place = self.source.range(ranges[0]) if ranges else None
        if ranges and place is None:
            return None
        text = self.source.text(*place) if place else ""
        signed = bool(kind.signing.valueText)
        width = self._width(ranges[0].specifier.selector) if ranges else "1"
        return Signal(name, text, signed, f"{width}{' signed' * signed}", at)

    def _width(self, select: Node) -> str:
        """Width of a select: a number where it is constant, else its text."""
        if kind_of(select) == "BitSelect":
            return "1"
        if kind_of(select) == "SimpleRangeSelect":
            high, low = _value(select.left), _value(select.right)
            if high is not None and low is not None:
                return str(high - low + 1)
            return fold_spaces(str(select))
        return f"+:{fold_spaces(str(select.right))}"

    def declared(self, members: Node, scope: Scope) -> dict[str, Signal]:
        """The scope with what is declared among these members."""
        found = dict(scope)
        for node in members:
            if kind_of(node) not in ("NetDeclaration", "DataDeclaration"):
                continue
            place = self.source.range(node)
            for declarator in nodes(node.declarators):
                name = declarator.name.valueText
                found.pop(name, None)
                if place is None or nodes(declarator.dimensions):  # a memory
                    continue
                if signal := self._signal(name, node.type, place[1]):
                    found[name] = signal
        return found

    # ---- members and statements
    def instance(self, module: str, node: Node, scope: Scope) -> Iterator[Change]:
        """The values of its inputs, together."""
        known, values = self.inputs.get(module, frozenset()), []
        for connection in nodes(node.connections):
            expr = bare(getattr(connection, "expr", None))
            if not is_node(expr):
                continue
            name = getattr(connection, "name", None)
            if not self.source.written(expr) or (name and name.valueText in known):
                values.append(expr)
        yield from self._unit(values, scope)

    def driven(self, value: Node, scope: Scope) -> Iterator[Change]:
        """By itself."""
        yield from self._unit([value], scope)

    def predicate(self, node: Node, scope: Scope, enable: bool) -> Iterator[Change]:
        """By itself."""
        yield from self._unit([node], scope)

    def cases(self, node: Node, scope: Scope) -> Iterator[Change]:
        """What is compared, and the labels."""
        yield from self._unit([node.expr], scope)
        yield from self._labels(node)

    def assigned(self, node: Node, scope: Scope, clocked: bool, reset: bool) -> Iterator[Change]:
        """The value by itself."""
        yield from self._unit([node.expr.right], scope)

    def _labels(self, node: Node) -> Iterator[Change]:
        """Neighbouring items with one label each; casez would take z for a value here."""
        if node.caseKeyword.valueText != "case":
            return
        places = []
        for item in node.items:
            if kind_of(item) != "StandardCaseItem" or len(nodes(item.expressions)) != 1:
                continue
            start, end = item.sourceRange.start, item.colon.location
            if self.source.sources.isMacroLoc(start):
                start = self.source.sources.getExpansionRange(start).start
            text = self.source.text(start.offset, end.offset).rstrip()
            places.append((start.offset, start.offset + len(text.encode())))
        for one, other in itertools.pairwise(places):
            yield self._swapped("case", one, other)

    def _swapped(self, kind: str, one: tuple[int, int], other: tuple[int, int]) -> Change:
        first, second = sorted((one, other))
        texts = self.source.text(*first), self.source.text(*second)
        edits = (*first, texts[1]), (*second, texts[0])
        return Change(kind, first[0], second[1], f"{texts[1]}, {texts[0]}", edits=edits)

    # ---- expressions
    def _unit(self, values: list[Node], scope: Scope) -> Iterator[Change]:
        unit = Unit()
        for value in values:
            yield from self._expression(value, scope, unit, value)
        for use in unit.uses:
            yield from self._late(use)
        for number, use in enumerate(unit.uses):
            other = next(
                (
                    o
                    for o in unit.uses[number + 1 :]
                    if o.width == use.width and o.text != use.text and o.chain != use.chain
                    if o.start >= use.end
                ),
                None,
            )
            if other:
                yield self._swapped("swap", (use.start, use.end), (other.start, other.end))

    def _late(self, use: Use) -> Iterator[Change]:
        if self.clock is None:
            return
        s = use.signal
        signed = "signed " if s.signed else ""
        copy = f"reg {signed}{s.range} {LATE}{s.name};"
        copy += f" always @(posedge {self.clock}) {LATE}{s.name} <= {s.name};"
        after = f"{LATE}{use.text}"
        yield Change("late", use.start, use.end, after, declares=(s.at, f"\n  {copy}\n"))

    def _expression(self, node: Node, scope: Scope, unit: Unit, chain: Node) -> Iterator[Change]:
        """``chain``: the outermost of operators that commute, down to this node, else the node;
        with a negation in between, as operands that both have one may change places, too."""
        kind = kind_of(node)
        if not kind or kind in SKIPPED or kind.startswith("Integer"):
            return
        place = self.source.range(node)
        if kind in ("IdentifierName", "IdentifierSelectName"):
            yield from self._name(node, place, scope, unit, chain)
        elif kind == "ConcatenationExpression":
            for part in nodes(node.expressions):
                yield from self._part(part, scope)
                yield from self._expression(part, scope, unit, part)
        elif kind == "MultipleConcatenationExpression":
            yield from self._expression(node.concatenation, scope, unit, node.concatenation)
        elif kind == "ParenthesizedExpression":
            yield from self._expression(node.expression, scope, unit, chain)
        elif kind in NEGATIONS:
            yield from self._expression(node.operand, scope, unit, (chain, kind))
        elif kind == "InvocationExpression":
            called = self.source.range(node.left)
            if kind_of(node.left) == "SystemName" and (
                not called or self.source.text(*called) not in SIGNS
            ):
                return
            for argument in nodes(node.arguments.parameters):
                inner = bare(getattr(argument, "expr", None))
                yield from self._expression(inner, scope, unit, inner)
        elif kind in COMMUTE:
            yield from self._product(node, place)
            same = kind_of(chain) == kind and chain is not node
            for child in (node.left, node.right):
                yield from self._expression(child, scope, unit, chain if same else node)
        else:
            for child in node:
                yield from self._expression(child, scope, unit, child)

    def _product(self, node: Node, place: tuple[int, int] | None) -> Iterator[Change]:
        """Without one of the terms; those of a chain are met one by one."""
        if place is None or kind_of(node) not in PRODUCTS:
            return
        left, right = self.source.operand(node.left), self.source.operand(node.right)
        if left:
            yield Change("term", *place, left)
        if right and kind_of(node.left) != kind_of(node):
            yield Change("term", *place, right)

    def _name(
        self,
        node: Node,
        place: tuple[int, int] | None,
        scope: Scope,
        unit: Unit,
        chain: Node,
    ) -> Iterator[Change]:
        """A signal: what may be mistaken for it is decided when all of the unit are known."""
        selects = nodes(node.selectors) if kind_of(node) == "IdentifierSelectName" else []
        selectors = [s.selector for s in selects if s.selector]
        signal = scope.get(node.identifier.valueText)
        if place and signal and len(selects) < 2:
            width = self._width(selectors[0]) if selectors else signal.width
            unit.uses.append(Use(*place, self.source.text(*place), width, signal, chain))
        if place and len(selectors) == 1 and kind_of(selectors[0]) in RANGES:
            yield from self._less(place, self._width(selectors[0]))
        for selector in selectors:
            if kind_of(selector) == "SimpleRangeSelect":  # constant
                continue
            inner = selector.expr if kind_of(selector) == "BitSelect" else selector.left
            yield from self._expression(inner, scope, unit, inner)

    def _less(self, place: tuple[int, int], width: str) -> Iterator[Change]:
        """A value without its top bit, without its lowest one; a single bit is 0."""
        text = self.source.text(*place)
        text = text if width else f"({text})"  # it may bind less than a shift
        if width == "1":
            yield Change("bit", *place, "1'b0")
            return
        yield Change("bit", *place, f"({{{text} << 1}} >> 1)")
        yield Change("bit", *place, f"({{{text} >> 1}} << 1)")

    def _part(self, node: Node, scope: Scope) -> Iterator[Change]:
        """A part of a concatenation; slices are met as such."""
        place, kind = self.source.range(node), kind_of(node)
        if place is None or kind.startswith("Integer") or kind == "MultipleConcatenationExpression":
            return
        if kind == "IdentifierName":
            signal = scope.get(node.identifier.valueText)
            if signal:
                yield from self._less(place, signal.width.split()[0])
        elif kind == "IdentifierSelectName":
            selects = nodes(node.selectors)
            if kind_of(selects[-1].selector) == "BitSelect":
                yield Change("bit", *place, "1'b0")
        elif kind in TRUTHS:
            yield Change("bit", *place, "1'b0")
        elif kind not in PLAIN:
            yield from self._less(place, "")


def _value(node: Node) -> int | None:
    """A constant expression of numbers, + and -; None for others."""
    kind = kind_of(node)
    if kind == "ParenthesizedExpression":
        return _value(node.expression)
    if kind == "IntegerLiteralExpression":
        text = str(node).strip().rpartition("\n")[2].strip()
        return int(text) if text.isdigit() else None
    if kind in ("AddExpression", "SubtractExpression"):
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None:
            return None
        return left + right if kind == "AddExpression" else left - right
    return None
