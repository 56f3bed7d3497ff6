# SPDX-License-Identifier: Apache-2.0
"""The places of a Verilog module that mutation can change, found with pyslang.

A place is an expression or a statement that may become another one while the simulation runs: what
must be constant (ranges, parameters, labels, loop headers, replication counts), what is written to,
and what initial blocks do is left alone. Every change keeps width and sign of the expression.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyslang
from pyslang import parsing, syntax

KINDS = ("operator", "constant", "condition", "assignment", "enable", "reset")
RESETS = ("rst", "rst_n", "hresetn")

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
# names, selects of them and concatenations of both: may be written to
PLAIN = {"IdentifierName", "IdentifierSelectName", "ConcatenationExpression"}
SIGNS = ("$signed", "$unsigned")  # system functions whose argument is an expression like others
SKIPPED = {
    "ModuleHeader",
    "ParameterDeclarationStatement",
    "GenvarDeclaration",
    "InitialBlock",
    "VariableDimension",
    "ParameterValueAssignment",
    "ScopedName",
    "ForLoopHeader",
    "ImplicitEventControl",
    "EventControlWithExpression",
    "StringLiteralExpression",
}


class SyntaxTrouble(ValueError):
    """The file is no Verilog that pyslang takes: one line."""


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

    @property
    def shown(self) -> str:
        """What is changed into what."""
        return f"{self.before} -> {self.after}"


def _fold(text: str) -> str:
    return " ".join(text.split())


def find(file: Path, name: str, includes: Path) -> list[Mutation]:
    """All mutations of the module in ``file``, in the order of their places.

    ``name``: how the file is called in the results. ``includes``: folder of the headers.
    SyntaxTrouble when the file does not parse or holds another number of modules than one.
    """
    return list(_Finder(file, name, includes).mutations())


class _Finder:
    def __init__(self, file: Path, name: str, includes: Path) -> None:
        self.name, self.data = name, file.read_bytes()
        self.sources = pyslang.SourceManager()
        options = parsing.PreprocessorOptions()
        options.additionalIncludePaths = [str(includes)]
        bag = pyslang.Bag()
        bag.preprocessorOptions = options
        text = self.data.decode("utf-8")
        self.tree = syntax.SyntaxTree.fromText(text, self.sources, name, name, bag)
        wrong = [d for d in self.tree.diagnostics if d.isError()]
        if wrong:
            line = self.sources.getLineNumber(wrong[0].location)
            raise SyntaxTrouble(f"{name}:{line}: cannot be parsed")
        root = self.tree.root
        members = [root] if _kind(root) == "ModuleDeclaration" else list(root.members)
        modules = [node for node in members if _kind(node) == "ModuleDeclaration"]
        if len(modules) != 1:
            raise SyntaxTrouble(f"{name}: {len(modules)} modules, expected one")
        self.module = modules[0]
        self.called = self.module.header.name.valueText

    def mutations(self) -> Iterator[Mutation]:
        seen = set()
        for kind, start, end, after, statement in self._members(self.module.members):
            before = self._text(start, end)
            key = start, end, after
            if key in seen or _fold(before) == _fold(after):
                continue
            seen.add(key)
            first = self.data.rfind(b"\n", 0, start) + 1
            last = self.data.find(b"\n", start)
            yield Mutation(
                self.called,
                self.name,
                self.data.count(b"\n", 0, start) + 1,
                _fold(self.data[first:last].decode()),
                kind,
                start,
                end,
                _fold(before),
                _fold(after),
                statement,
            )

    # ---- places in the text
    def _text(self, start: int, end: int) -> str:
        return self.data[start:end].decode()

    def _range(self, node: syntax.SyntaxNode) -> tuple[int, int] | None:
        """Where a node stands in the file; None for one inside of a macro."""
        start, end = node.sourceRange.start, node.sourceRange.end
        ranges = []
        for at in (start, end):
            if self.sources.isMacroLoc(at):
                ranges.append(self.sources.getExpansionRange(at))
        if len(ranges) == 2 and ranges[0].start.offset == ranges[1].start.offset:
            return None
        if self.sources.isMacroLoc(start):
            start = self.sources.getExpansionRange(start).start
        if self.sources.isMacroLoc(end):
            end = self.sources.getExpansionRange(end).end
        if not (self.sources.isFileLoc(start) and self.sources.isFileLoc(end)):
            return None
        return start.offset, end.offset

    def _operand(self, node: syntax.SyntaxNode) -> str | None:
        """An operand's text, in brackets unless it needs none."""
        place = self._range(node)
        if place is None:
            return None
        text = self._text(*place)
        simple = _kind(node) in PLAIN or _kind(node) in (
            "ParenthesizedExpression",
            "IntegerVectorExpression",
            "IntegerLiteralExpression",
        )
        return text if simple or _kind(node).startswith("Unary") else f"({text})"

    # ---- members and statements
    def _members(self, members: object) -> Iterator[tuple]:
        for node in members:
            yield from self._member(node)

    def _member(self, node: object) -> Iterator[tuple]:
        if not isinstance(node, syntax.SyntaxNode):
            return
        kind = _kind(node)
        if kind in SKIPPED:
            return
        if kind in ("GenerateRegion", "GenerateBlock"):
            yield from self._members(node.members)
        elif kind == "LoopGenerate":
            yield from self._member(node.block)
        elif kind == "IfGenerate":
            yield from self._member(node.block)
            if node.elseClause:
                yield from self._member(node.elseClause.clause)
        elif kind == "CaseGenerate":
            for item in node.items:
                if hasattr(item, "clause"):
                    yield from self._member(item.clause)
        elif kind == "HierarchyInstantiation":
            for instance in node.instances:
                for connection in instance.connections:
                    yield from self._connection(connection)
        elif kind in ("NetDeclaration", "DataDeclaration"):
            for declarator in node.declarators:
                if not isinstance(declarator, syntax.SyntaxNode):  # a comma
                    continue
                value = getattr(declarator, "initializer", None)
                # a net that takes what linters would call unused
                sink = declarator.name.valueText.lstrip("_").startswith("unused")
                if value and kind == "NetDeclaration" and not sink:
                    yield from self._driven(value.expr)
        elif kind == "ContinuousAssign":
            for assignment in node.assignments:
                if isinstance(assignment, syntax.SyntaxNode):
                    yield from self._driven(assignment.right)
        elif kind == "AlwaysBlock":
            timed = node.statement
            clocked = _kind(timed.timingControl) == "EventControlWithExpression"
            yield from self._statement(timed.statement, clocked, False)
        elif kind == "FunctionDeclaration":
            for item in node.items:
                yield from self._statement(item, False, False)

    def _connection(self, node: object) -> Iterator[tuple]:
        expr = getattr(node, "expr", None)
        if not isinstance(expr, syntax.SyntaxNode):
            return
        while _kind(expr) in ("SimplePropertyExpr", "SimpleSequenceExpr"):
            expr = expr.expr
        if not self._written(expr):
            yield from self._expression(expr)

    def _written(self, node: syntax.SyntaxNode) -> bool:
        """An output may be connected to it."""
        if _kind(node) == "ConcatenationExpression":
            parts = [e for e in node.expressions if isinstance(e, syntax.SyntaxNode)]
            return all(self._written(part) for part in parts)
        return _kind(node) in PLAIN or _kind(node) == "ScopedName"

    def _driven(self, value: syntax.SyntaxNode) -> Iterator[tuple]:
        """The value of a net: stuck at 0, or changed inside. 1'sb0 keeps the sign either way."""
        place = self._range(value)
        if place and not _kind(value).startswith("Integer"):
            yield "assignment", *place, "1'sb0", False
        yield from self._expression(value)

    def _statement(self, node: object, clocked: bool, reset: bool) -> Iterator[tuple]:
        if not isinstance(node, syntax.SyntaxNode):
            return
        kind = _kind(node)
        if kind == "SequentialBlockStatement":
            for item in node.items:
                yield from self._statement(item, clocked, reset)
        elif kind == "ConditionalStatement":
            predicate = node.predicate.conditions[0].expr
            resets = clocked and self._resets(predicate)
            yield from self._condition(predicate, "enable" if clocked and not resets else "")
            yield from self._statement(node.statement, clocked, resets)
            if node.elseClause:
                yield from self._statement(node.elseClause.clause, clocked, reset)
        elif kind == "CaseStatement":
            yield from self._expression(node.expr)
            for item in node.items:
                yield from self._statement(item.clause, clocked, reset)
        elif kind in ("ForLoopStatement", "LoopStatement"):
            yield from self._statement(node.statement, clocked, reset)
        elif kind == "ExpressionStatement":
            yield from self._assignment(node, clocked, reset)

    def _assignment(self, node: syntax.SyntaxNode, clocked: bool, reset: bool) -> Iterator[tuple]:
        expr = node.expr
        if _kind(expr) not in ("AssignmentExpression", "NonblockingAssignmentExpression"):
            return
        place, value = self._range(node), expr.right
        at = self._range(value)
        stays = _kind(expr) == "NonblockingAssignmentExpression"
        target = self._range(expr.left)
        same = at and target and _fold(self._text(*at)) == _fold(self._text(*target))
        if stays and place:
            if not same:  # `x <= x` says that a register stays, as it does without it
                yield "reset" if reset else "assignment", *place, "(dropped)", True
        elif at and not _kind(value).startswith("Integer"):
            yield "assignment", *at, "1'sb0", False
        if reset and at:
            changed = list(self._literal(value))
            yield "reset", *at, changed[0][3] if changed else f"~({self._text(*at)})", False
            return
        if stays and at and target and _kind(value) == "ConditionalExpression":
            yield from self._keeps(value, _fold(self._text(*target)))
        yield from self._expression(value)

    def _keeps(self, node: syntax.SyntaxNode, target: str) -> Iterator[tuple]:
        """``c ? v : x`` as the next value of x: c is an enable."""
        arms = [self._range(node.left), self._range(node.right)]
        place = self._range(node.predicate)
        if not place:
            return
        for arm, stuck in zip(arms, ("1'b0", "1'b1"), strict=True):
            if arm and _fold(self._text(*arm)) == target:
                yield "enable", *place, stuck, False

    def _resets(self, predicate: syntax.SyntaxNode) -> bool:
        place = self._range(predicate)
        words = self._text(*place).replace("(", " ").replace(")", " ") if place else ""
        return any(word in RESETS for word in words.replace("!", " ").split())

    # ---- expressions
    def _condition(self, node: syntax.SyntaxNode, enable: str) -> Iterator[tuple]:
        """A predicate: negated, or stuck."""
        place, inner = self._range(node), node
        while _kind(inner) == "ParenthesizedExpression":
            inner = inner.expression
        if place:
            yield enable or "condition", *place, "1'b1", False
            yield "condition", *place, "1'b0", False
            if _kind(inner) != "UnaryLogicalNotExpression" and _kind(inner) not in COMPARED:
                yield "condition", *place, f"!({self._text(*place)})", False
        yield from self._expression(node)

    def _literal(self, node: syntax.SyntaxNode) -> Iterator[tuple]:
        """A number: one more, one less."""
        place = self._range(node)
        if place is None:
            return
        text = self._text(*place)
        if _kind(node) == "IntegerLiteralExpression" and text.isdigit():
            values = [int(text) + 1, int(text) - 1]
            forms = [str(v) for v in values if v >= 0]
        elif _kind(node) == "IntegerVectorExpression":
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

    def _expression(self, node: object) -> Iterator[tuple]:
        if not isinstance(node, syntax.SyntaxNode):
            return
        kind, place = _kind(node), self._range(node)
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
            operand = self._operand(node.operand)
            if place and operand:
                yield "operator", *place, f"|{operand}", False
            yield from self._expression(node.operand)
        elif kind in ("UnaryBitwiseNotExpression", "UnaryMinusExpression"):
            operand = self._operand(node.operand)
            if place and operand:
                yield "operator", *place, operand, False
            yield from self._expression(node.operand)
        elif kind in REDUCTION:
            operand = self._operand(node.operand)
            if place and operand:
                yield "operator", *place, f"{REDUCTION[kind]}{operand}", False
            yield from self._expression(node.operand)
        elif kind == "MultipleConcatenationExpression":
            yield from self._expression(node.concatenation)
        elif kind == "InvocationExpression":
            if node.left.sourceRange and _kind(node.left) == "SystemName":
                start, end = self._range(node.left) or (0, 0)
                if self._text(start, end) not in SIGNS:
                    return
            for argument in node.arguments.parameters:
                expr = getattr(argument, "expr", None)
                while _kind(expr) in ("SimplePropertyExpr", "SimpleSequenceExpr"):
                    expr = expr.expr
                yield from self._expression(expr)
        elif kind in ("AscendingRangeSelect", "DescendingRangeSelect"):
            yield from self._expression(node.left)  # the width is constant
        elif kind == "SimpleRangeSelect":
            return
        else:
            for child in node:
                yield from self._expression(child)

    def _binary(self, node: syntax.SyntaxNode, place: tuple[int, int] | None) -> Iterator[tuple]:
        left, right = self._operand(node.left), self._operand(node.right)
        if place and left and right:
            for operator in BINARY[_kind(node)]:
                yield "operator", *place, f"{left} {operator} {right}", False
            # without one of the terms; those of a chain are met one by one
            missing = {"LogicalAndExpression": "1'b1 &&", "LogicalOrExpression": "1'b0 ||"}
            if neutral := missing.get(_kind(node)):
                kind = "enable" if "&&" in neutral else "condition"
                yield kind, *place, f"{neutral} {left}", False
                if _kind(node.left) != _kind(node):
                    yield kind, *place, f"{neutral} {right}", False
        yield from self._expression(node.left)
        yield from self._expression(node.right)


def _kind(node: object) -> str:
    return node.kind.name if isinstance(node, syntax.SyntaxNode) else ""
