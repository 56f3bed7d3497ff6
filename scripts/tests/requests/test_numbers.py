# SPDX-License-Identifier: Apache-2.0
"""Every number that a command or a target takes: what is none, or none that can be met."""

import argparse
import math

import pytest

from openkpu_tools.registry import COMMANDS
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.fixed  # the same with every seed

NAMES = {"jobs", "seed", "seeds", "n", "images", "minutes", "item", "mhz", "scale", "bias", "bus"}
NAMES |= {"count", "channels", "size"}
SIGNED = {"scale", "bias"}
ZERO = {"seed", "item", "bias"}  # that 0 is good for
NONE = ["", " ", "x", "nan", "inf", "-inf", "1e300", "-1e300", "0x10", "1_0", "٣", "9" * 5000]
FOUND = [
    (name, action)
    for name in COMMANDS
    for action in COMMANDS[name].parser()._actions
    if action.dest in NAMES and not isinstance(action.type, type(None))
]


def test_every_number_has_a_type() -> None:
    texts = [
        (name, action.dest)
        for name in COMMANDS
        for action in COMMANDS[name].parser()._actions
        if action.dest in NAMES and action.type is None
    ]
    assert not texts
    types = {action.type for name in COMMANDS for action in COMMANDS[name].parser()._actions}
    assert not types & {int, float}, "takes everything that Python does"
    assert len(FOUND) > 20


@pytest.mark.parametrize(("name", "action"), FOUND, ids=[f"{n}-{a.dest}" for n, a in FOUND])
def test_what_is_no_number(name: str, action: argparse.Action) -> None:
    convert = action.type
    assert callable(convert)
    refused = NONE + ([] if action.dest in SIGNED else ["-1", "-0.5"])
    refused += [] if action.dest in ZERO or name == "kmodel" else ["0"]
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError) as caught:
            convert(text)
        said = str(caught.value)
        assert repr(text[:40])[:-1] in said and "expected " in said and len(said) < 140
    assert any(_is_good(convert, text) for text in ("1", "10", "64"))


def _is_good(convert, text: str) -> bool:
    try:
        return math.isfinite(convert(text))
    except argparse.ArgumentTypeError:
        return False


@pytest.mark.parametrize("name", ["JOBS", "ACTIONS"])
@pytest.mark.parametrize("text", ["-3", "0", "x", "nan", "1e3", "3 4", "'", "9" * 5000])
def test_numbers_of_make(name: str, text: str) -> None:
    """Before anything is set up or built; the other ones go to commands as they are."""
    result = ran("make", "--no-print-directory", "control", f"{name}={text}", status=2)
    assert not result.stdout
    line, end = result.stderr.splitlines()
    assert line.startswith(f"error: {name}=") and end.startswith("make: ***")
    assert repr(text[:40])[:-1] in line and "expected a whole number from 1 to " in line
