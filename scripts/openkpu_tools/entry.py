# SPDX-License-Identifier: Apache-2.0
"""An entry of the list of commands: what a command is called, runs, accepts and needs.

A function with ``@entry`` is one: its name is the command's, the first line of its text what
`make help` says, and it adds the options to a parser. The packages that it needs are groups of
pyproject.toml, and tools that setup/setup_env.py names.
"""

import argparse
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from openkpu_tools.arguments import Parser

Groups = str | Callable[[argparse.Namespace], str]  # names with spaces between them
COMMANDS: dict[str, "Entry"] = {}


@dataclass(frozen=True)
class Entry:
    """A command; ``text`` is what it does."""

    name: str
    text: str
    module: str  # with main(argv), or module:function; "": setting up is all that it does
    options: Callable[[Parser], None]
    needs: Groups = ""
    words: tuple[str, ...] = ()  # come before the user's, where it is another command's module
    checkout: bool = True  # it needs the checkout: an installed package has no such command
    bare: bool = False  # this machine's own Python runs it, with the standard library alone

    def parser(self) -> Parser:
        """Of its command line."""
        parser = Parser(
            prog=f"openkpu {self.name}", description=f"{self.text[0].upper()}{self.text[1:]}."
        )
        self.options(parser)
        return parser

    def run(self, words: list[str]) -> int:
        """Import and run it with the user's words; its exit status."""
        if self.words:  # its options are some of the module's
            self.parser().parse_args(words)
        module, _, function = self.module.partition(":")
        return getattr(importlib.import_module(module), function or "main")([*self.words, *words])

    def groups(self, args: argparse.Namespace) -> list[str]:
        """Packages and tools that it needs with these arguments."""
        return (self.needs if isinstance(self.needs, str) else self.needs(args)).split()


def entry(
    module: str,
    needs: Groups = "",
    *,
    words: tuple[str, ...] = (),
    checkout: bool = True,
    bare: bool = False,
) -> Callable[[Callable[[Parser], None]], Callable[[Parser], None]]:
    """Put a function into the list; the arguments are the attributes of Entry."""

    def put(options: Callable[[Parser], None]) -> Callable[[Parser], None]:
        name = options.__name__.strip("_").replace("_", "-")
        text = (options.__doc__ or "").splitlines()[0]
        text = (text if text[1].isupper() else f"{text[0].lower()}{text[1:]}").rstrip(".")
        COMMANDS[name] = Entry(name, text, module, options, needs, words, checkout, bare)
        return options

    return put
