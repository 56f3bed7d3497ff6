# SPDX-License-Identifier: Apache-2.0
"""Every command that a page shows is one that its parser accepts; help names a default once."""

import argparse
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tools import command, registry
from openkpu_tools.setup.help import of_variable

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)  # code in a line
SHOWN = re.compile(r"(?:[A-Z_]+=\S+ )?(make|(?:scripts/run\.sh -m )?openkpu) ([a-z].*)")
MODULE = re.compile(r"(\S+)\s-m\s(openkpu[\w.]*)")  # of this project, started as Python's


def shown(text: str) -> Iterator[tuple[bool, list[str]]]:
    """(by make, words) of each command in a page's code."""
    blocks = [block.replace("\\\n", " ") for block in FENCE.findall(text)]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    plain = FENCE.sub("", text)
    lines += [" ".join(code.split()) for _, code in SPAN.findall(plain)]
    for line in lines:
        if found := SHOWN.match(line):
            yield found[1] == "make", shlex.split(found[2], comments=True)


def parse(by_make: bool, words: list[str]) -> None:
    """UsageError unless a parser accepts a command, files aside; a name without words, or with a
    variable that has no value (``MODEL=``), stands for all of its kind."""
    if not by_make:
        name, *rest = words
        if name not in registry.COMMANDS:
            raise command.UsageError(f"no command {name}")
        if rest:
            registry.parse_command(name, rest)
        return
    goals = [word for word in words if "=" not in word]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    for goal in goals:
        if "" in given.values():
            lacking = set(given) - set(registry.COMMANDS[goal].parser().variables())
            if lacking:
                raise command.UsageError(f"{goal} has no {lacking}")
        elif given:
            found = registry.words_of(goal, goals, given)
            registry.parse_command(goal, found)
        else:
            registry.words_of(goal, goals, given)


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are there."""
    monkeypatch.setattr(command, "there", str)
    monkeypatch.setattr(command, "path", Path)
    monkeypatch.delenv("OPENKPU_SEED", raising=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENKPU_SEED", "1")  # parsing a command may set it
    wrong = []
    for by_make, words in shown(page.read_text(encoding="utf-8")):
        try:
            parse(by_make, words)
        except command.UsageError as error:
            wrong.append(f"{' '.join(words)}: {error}")
    assert not wrong


PROSE = [*PAGES, *(p for f in ("models", "sw", "soc", "tb") for p in (ROOT / f).rglob("*.md"))]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_pages_start(page: Path) -> None:
    """A checkout is not installed: its modules are found by scripts/run.sh alone."""
    for python, module in MODULE.findall(page.read_text(encoding="utf-8")):
        assert python.strip("`(") == "scripts/run.sh", f"{python} -m {module}"
        assert importlib.util.find_spec(module), module


def test_commands_are_found() -> None:
    """The pages' commands are seen, and wrong ones refused."""
    found = list(shown((ROOT / "README.md").read_text(encoding="utf-8")))
    names = {words[0] for _, words in found}
    assert {"sim", "predict", "compile", "export", "soc", "stream", "test"} <= names
    for text in (
        "make sim CONFG=k210",
        "make nosuch",
        "openkpu quantize",
        "openkpu soc --device 2",
    ):
        ((by_make, words),) = shown(f"`{text}`")
        with pytest.raises(command.UsageError):
            parse(by_make, words)


# that take a second; what some of them would write is compared instead
CHEAP = {"configs": [], "silicon": [], "predict": [], "fields": ["--check"]}
CHEAP |= {"registers": ["--check"], "integration": ["--check"]}


def cheap() -> list[list[str]]:
    """Command lines of the pages that need no file and take no time."""
    found = []
    for page in PAGES:
        for by_make, (name, *rest) in shown(page.read_text(encoding="utf-8")):
            if by_make and name in CHEAP and all("=" in word for word in rest):
                given = dict(word.split("=", 1) for word in rest)
                if "" in given.values() or any("." in value for value in given.values()):
                    continue
                rest = registry.words_of(name, [name], given)
            if name in CHEAP and not any("." in word or word.isupper() for word in rest):
                found.append([name, *rest, *CHEAP[name]])
    return [*map(list, dict.fromkeys(map(tuple, found)))]


@pytest.mark.parametrize("words", cheap(), ids=" ".join)
def test_cheap_commands_run(words: list[str]) -> None:
    assert registry.dispatch(words) == 0


def test_cheap_commands_are_found() -> None:
    assert {words[0] for words in cheap()} == set(CHEAP)


@pytest.mark.parametrize("name", sorted(registry.COMMANDS))
def test_help_of_every_variable(name: str) -> None:
    """A meaning, apart from the name, with the default once."""
    for word, action in registry.COMMANDS[name].parser().variables().items():
        line = of_variable(word, action)
        assert re.fullmatch(r"  \S+  +\S.*", line), line
        usual = action.default not in (None, False, "", [], argparse.SUPPRESS)
        assert not (usual and "default:" in (action.help or "")), line
