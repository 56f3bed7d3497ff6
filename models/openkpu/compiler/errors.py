# SPDX-License-Identifier: Apache-2.0
"""The error of everything that reads, checks or compiles a quantised network."""

from __future__ import annotations


class CompileError(ValueError):
    """A model that cannot be compiled, in one line.

    ``node`` and ``operator`` name what is refused, where it is one node: the line then begins with
    both.  ``where`` is the file, or the part of it.
    """

    def __init__(self, text: str, *, node: str = "", operator: str = "", where: str = "") -> None:
        named = f"node {node!r} ({operator})" if node and operator else node or operator
        super().__init__(" ".join(": ".join(filter(None, (where, named, text))).split()))
        self.node, self.operator, self.where, self.reason = node, operator, where, text

    def within(self, where: str) -> CompileError:
        """The same error, in the file ``where``."""
        return CompileError(self.reason, node=self.node, operator=self.operator, where=where)


class FloatModelError(CompileError):
    """A float model without samples of its inputs."""
