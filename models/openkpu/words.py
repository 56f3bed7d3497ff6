# SPDX-License-Identifier: Apache-2.0
"""Words that functions and options accept, and names of options, for code that runs before there is
any package."""

import difflib
from collections.abc import Iterable

ROUNDINGS = ("nncase", "v01", "trunc")  # of the activation (docs/kpu.md 1.3)
WAYS = ("burst", "layers", "tasks")  # as a model's layers are started
MAPS = ("dma", "window")  # who moves maps: the device, or the host through the AI RAM's window
PRODUCTS = ("int8", "uint8", "fp16", "fp16to16")  # types of a product's matrices
METHODS = ("minmax", "percentile", "entropy")  # by which a calibration finds ranges

by_make = False  # messages name options as make's variables


def option(name: str, value: object = None) -> str:
    """An option as the user writes it: ``MODEL`` of make, else ``--model``; with ``=value``."""
    word = name.replace("-", "_").upper() if by_make else f"--{name.replace('_', '-')}"
    if value is True:  # a flag that is given
        return f"{word}=1" if by_make else word
    return word if value is None else f"{word}={value}"


def near(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question for a word that is close to one of the known, or what is said otherwise."""
    found = difflib.get_close_matches(word, [*known], 1, 0.6)
    return f"did you mean {found[0]}?" if found else otherwise
