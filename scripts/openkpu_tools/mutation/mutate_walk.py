# SPDX-License-Identifier: Apache-2.0
"""The way through a module that all mutations share, to whatever may become another expression."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from openkpu_tools.mutation.mutate_source import (
    RESETS,
    SKIPPED,
    Node,
    Source,
    is_node,
    kind_of,
    nodes,
)

ASSIGNMENTS = ("AssignmentExpression", "NonblockingAssignmentExpression")
Found = TypeVar("Found")  # a change
Scope = TypeVar("Scope")  # facts about the signals at the place of a node


class Walker(Generic[Found, Scope]):
    """Visits members and statements of a module; what it meets there is for the methods below that
    yield nothing here. ``nothing``: the scope of a function, whose names are its own."""

    nothing: Scope

    def __init__(self, source: Source) -> None:
        self.source = source
        self.range, self.text = source.range, source.text

    # ---- what is met
    def declared(self, members: Node, scope: Scope) -> Scope:
        """The scope of a block's members."""
        return scope

    def instance(self, module: str, node: Node, scope: Scope) -> Iterator[Found]:
        """An instance of a module."""
        yield from ()

    def driven(self, value: Node, scope: Scope) -> Iterator[Found]:
        """The value of a net."""
        yield from ()

    def predicate(self, node: Node, scope: Scope, enable: bool) -> Iterator[Found]:
        """What an if asks; ``enable``: in a clocked process, and no reset."""
        yield from ()

    def cases(self, node: Node, scope: Scope) -> Iterator[Found]:
        """A case, its statements aside."""
        yield from ()

    def assigned(self, node: Node, scope: Scope, clocked: bool, reset: bool) -> Iterator[Found]:
        """An assignment as a statement; ``reset``: under a reset."""
        yield from ()

    # ---- the way there
    def block(self, members: Node, scope: Scope) -> Iterator[Found]:
        """All members of a module or of a generate block."""
        scope = self.declared(members, scope)
        for node in members:
            yield from self._member(node, scope)

    def _member(self, node: Node, scope: Scope) -> Iterator[Found]:
        kind = kind_of(node)
        if not kind or kind in SKIPPED:
            return
        if kind in ("GenerateRegion", "GenerateBlock"):
            yield from self.block(node.members, scope)
        elif kind == "LoopGenerate":
            yield from self._member(node.block, scope)
        elif kind == "IfGenerate":
            yield from self._member(node.block, scope)
            if node.elseClause:
                yield from self._member(node.elseClause.clause, scope)
        elif kind == "CaseGenerate":
            for item in node.items:
                yield from self._member(getattr(item, "clause", None), scope)
        elif kind == "HierarchyInstantiation":
            for instance in nodes(node.instances):
                yield from self.instance(node.type.valueText, instance, scope)
        elif kind == "NetDeclaration":
            for declarator in nodes(node.declarators):
                if declarator.initializer and not self.source.sink(declarator):
                    yield from self.driven(declarator.initializer.expr, scope)
        elif kind == "ContinuousAssign":
            for assignment in nodes(node.assignments):
                yield from self.driven(assignment.right, scope)
        elif kind == "AlwaysBlock":
            timed = node.statement
            clocked = kind_of(timed.timingControl) == "EventControlWithExpression"
            yield from self._statement(timed.statement, scope, clocked)
        elif kind == "FunctionDeclaration":
            for item in node.items:
                yield from self._statement(item, self.nothing)

    def _statement(
        self, node: Node, scope: Scope, clocked: bool = False, reset: bool = False
    ) -> Iterator[Found]:
        if not is_node(node):
            return
        kind = kind_of(node)
        if kind == "SequentialBlockStatement":
            for item in node.items:
                yield from self._statement(item, scope, clocked, reset)
        elif kind == "ConditionalStatement":
            predicate = node.predicate.conditions[0].expr
            resets = clocked and self._resets(predicate)
            yield from self.predicate(predicate, scope, clocked and not resets)
            yield from self._statement(node.statement, scope, clocked, resets)
            if node.elseClause:
                yield from self._statement(node.elseClause.clause, scope, clocked, reset)
        elif kind == "CaseStatement":
            yield from self.cases(node, scope)
            for item in node.items:
                yield from self._statement(item.clause, scope, clocked, reset)
        elif kind in ("ForLoopStatement", "LoopStatement"):
            yield from self._statement(node.statement, scope, clocked, reset)
        elif kind == "ExpressionStatement" and kind_of(node.expr) in ASSIGNMENTS:
            yield from self.assigned(node, scope, clocked, reset)

    def _resets(self, predicate: Node) -> bool:
        place = self.range(predicate)
        words = self.text(*place).replace("(", " ").replace(")", " ") if place else ""
        return any(word in RESETS for word in words.replace("!", " ").split())
