# SPDX-License-Identifier: Apache-2.0
"""The parser of all commands: argparse with one-line messages, and the variables of make."""

import argparse
import glob
import itertools
import os
import re
import shlex
from collections.abc import Mapping
from typing import NoReturn

from openkpu import words
from openkpu.words import near, option
from openkpu_tb import seeds
from openkpu_tools.command import UsageError, any_of

GIVEN = "_given"  # attribute of a namespace while it is filled: the options given so far


class _Once(argparse.Action):
    """Store a value, or several; a second option is an error, not a silent replacement."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        given = vars(namespace).setdefault(GIVEN, set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "given twice, expected once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Seed(_Once):
    """Keep a seed in the environment, where simulations and tests look for it."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        super().__call__(parser, namespace, values, option_string)
        os.environ["OPENKPU_SEED"] = str(values)


class Parser(argparse.ArgumentParser):
    """argparse with one-line messages, which accepts a value that begins with a dash.

    An option is given once, by its whole name; a message names it as the user did.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, allow_abbrev=False, **kwargs)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def parse_known_args(self, args=None, namespace=None):
        own = {a.dest for a in self._actions if not a.option_strings}
        for word in itertools.takewhile(lambda word: word != "--", args or ()):
            name = word.partition("=")[0]
            if name[:2] == "--" and name[2:] in own and name not in self._option_string_actions:
                raise UsageError(f"unknown option {name}, expected its value alone")
        found, rest = super().parse_known_args(args, namespace)
        vars(found).pop(GIVEN, None)
        return found, rest

    def _parse_optional(self, arg_string: str):
        """Options are words with two dashes, and -h; a word with one is a value."""
        if re.match(r"-[^-]", arg_string) and arg_string[:2] not in self._option_string_actions:
            return None
        return super()._parse_optional(arg_string)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]):
        """``--`` behind ``=`` is a value, too, which argparse drops."""
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if value == "":  # would count as an option that is not given
            raise argparse.ArgumentError(action, "'': expected a value")
        if action.choices is not None and value not in action.choices:
            known = any_of(word for word in action.choices if word)
            raise argparse.ArgumentError(action, f"{seeds.shown(str(value))}: expected {known}")

    def _called(self, name: str) -> str:
        """An option or argument, from its name in argparse's message, as the user writes it."""
        names = name.split("/")
        name = next((n for n in names if n.startswith("--")), names[0])
        return option(name.removeprefix("--")) if words.by_make or name.startswith("--") else name

    def error(self, message: str) -> NoReturn:
        if flag := re.fullmatch(r"argument (\S+): ignored explicit argument (.*)", message):
            raise UsageError(f"{self._called(flag[1])}={flag[2]}: expected no value")
        if of := re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL):
            join = "=" if of[2][0] in "'\"" else ": "
            raise UsageError(f"{self._called(of[1])}{join}{of[2]}")
        if missing := re.fullmatch(r"the following arguments are required: (.*)", message):
            lacking = missing[1].split(", ")
            what = {_word(a): a.help for a in self._actions}
            texts = "; ".join(str(what.get(name.partition("/")[0], "")) for name in lacking)
            raise UsageError(f"no {' and '.join(map(self._called, lacking))}, expected {texts}")
        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            known = [word for a in self._actions for word in a.option_strings]
            hint = near(unknown[1], known, f"{self.prog} --help lists those there are")
            raise UsageError(f"unknown option {unknown[1]}, {hint}")
        raise UsageError(message)

    # ---- variables of make
    def variables(self) -> dict[str, argparse.Action]:
        """make's names of the options and arguments, in their order."""
        return {
            _word(action).strip("-").replace("-", "_").upper(): action
            for action in self._actions
            if action.dest != "help" and action.help != argparse.SUPPRESS
        }

    def words(self, given: Mapping[str, str]) -> list[str]:
        """The command line for variables and their values; UsageError for a value that no option
        accepts."""
        known = self.variables()
        found, last = [], []
        for name, value in given.items():
            action = known[name]
            if not value.strip():
                raise UsageError(f"{name} is empty, expected a value")
            option = _word(action) if action.option_strings else ""
            several = _several(name, value) if action.nargs in ("+", "*") else [value]
            if action.nargs == 0:
                if value not in ("0", "1"):
                    raise UsageError(f"{name}={value}: expected 0 or 1")
                found += [option] * int(value)
            elif not option:
                last += several
            elif len(several) == 1:  # together, so that one with dashes stays a value
                found.append(f"{option}={several[0]}")
            else:
                found += [option, *several]
        return [*found, "--", *last] if last else found


def _word(action: argparse.Action) -> str:
    """The first long name of an option, the name of an argument."""
    long = (word for word in action.option_strings if word.startswith("--"))
    return next(long, action.dest)


def _several(name: str, value: str) -> list[str]:
    """The words of a variable that has several, as a shell reads them: quoted, with ``*``.

    The name of an existing file is one word, whatever characters it has.
    """
    if os.path.exists(value):
        return [value]
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise UsageError(f"{name}={value}: {error}") from None
    found = []
    for word in words:
        there = [] if os.path.exists(word) else sorted(glob.glob(os.path.expanduser(word)))
        found += there or [word]
    return found
