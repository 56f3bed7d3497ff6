# SPDX-License-Identifier: Apache-2.0
"""A Verilog file with one module as a syntax tree of pyslang, with the positions of its nodes."""

from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import pyslang
from pyslang import parsing, syntax

RESETS = ("rst", "rst_n", "hresetn")
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


# Members of a node depend on its kind, which pyslang's types do not say.
Node: TypeAlias = Any


class SyntaxTrouble(ValueError):
    """pyslang cannot parse the file: one line."""


def is_node(thing: Any) -> TypeGuard[Node]:
    """Is it a node, rather than a token, a comma or None?"""
    return isinstance(thing, syntax.SyntaxNode)


def kind_of(node: Node) -> str:
    """Its kind; empty unless it is a node."""
    return node.kind.name if is_node(node) else ""


def fold_spaces(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def bare(node: Node) -> Node:
    """The expression of a connection or an argument, without the property around it."""
    while kind_of(node) in ("SimplePropertyExpr", "SimpleSequenceExpr"):
        node = node.expr
    return node


def nodes(listed: Node) -> list[Node]:
    """The nodes of a list, without its commas."""
    return [node for node in listed if is_node(node)]


class Source:
    """The one module of a file, ``data``.

    ``name``: of the file in messages. ``includes``: folder of the headers. SyntaxTrouble when the
    file does not parse or does not hold exactly one module.
    """

    def __init__(self, data: bytes, name: str, includes: Path) -> None:
        self.name, self.data = name, data
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
        root: Node = self.tree.root
        members = [root] if kind_of(root) == "ModuleDeclaration" else list(root.members)
        modules = [node for node in members if kind_of(node) == "ModuleDeclaration"]
        if len(modules) != 1:
            raise SyntaxTrouble(f"{name}: {len(modules)} modules, expected one")
        self.module: Node = modules[0]
        self.called = self.module.header.name.valueText

    def text(self, start: int, end: int) -> str:
        """The text from ``start`` to ``end``."""
        return self.data[start:end].decode()

    def range(self, node: Node) -> tuple[int, int] | None:
        """The position of a node in the file; None for one inside of a macro."""
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

    def operand(self, node: Node) -> str | None:
        """An operand's text, in brackets unless it needs none."""
        place = self.range(node)
        if place is None:
            return None
        simple = kind_of(node) in PLAIN or kind_of(node) in (
            "ParenthesizedExpression",
            "IntegerVectorExpression",
            "IntegerLiteralExpression",
        )
        text = self.text(*place)
        return text if simple or kind_of(node).startswith("Unary") else f"({text})"

    def written(self, node: Node) -> bool:
        """Whether an output may be connected to it."""
        if kind_of(node) == "ConcatenationExpression":
            return all(self.written(part) for part in nodes(node.expressions))
        return kind_of(node) in PLAIN or kind_of(node) == "ScopedName"

    def sink(self, declarator: Node) -> bool:
        """Whether it is a net that collects unused signals for the linters."""
        return declarator.name.valueText.lstrip("_").startswith("unused")

    def ports(self) -> list[tuple[str, str, Node]]:
        """(name, direction, type) of every port; a port without a header inherits the last one."""
        found, last = [], None
        for port in nodes(getattr(self.module.header.ports, "ports", ())):
            last = port.header if str(port.header).strip() or last is None else last
            found.append((port.declarator.name.valueText, last.direction.valueText, last.dataType))
        return found

    def inputs(self) -> frozenset[str]:
        """Names of its input ports."""
        return frozenset(name for name, direction, _ in self.ports() if direction == "input")
