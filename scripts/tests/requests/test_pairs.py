# SPDX-License-Identifier: Apache-2.0
"""Options that cannot go together: one line that names both, before anything runs."""

import itertools
from pathlib import Path

import pytest

from openkpu_tools import command
from openkpu_tools.commands import sim
from openkpu_tools.registry import COMMANDS

pytestmark = pytest.mark.fixed  # the same with every seed

GOOD = {  # every option of sim with a value that is good by itself
    "vectors": ["v.npz"],
    "model": ["m.kmodel"],
    "image": ["p.png"],
    "layers": ["0-1"],
    "via": ["layers"],
    "maps": ["window"],
    "rounding": ["v01"],
    "functions": [],
    "detector": ["d.json"],
    "png": ["o.png"],
    "bgr": [],
    "scale": ["0.5"],
    "bias": ["1"],
    "fast": [],
    "golden": [],
    "report": ["r.json"],
    "waves": [],
    "check": [],
    "images": ["2"],
    "network": ["n.npz"],
    "input": ["i.npy"],
    "output": ["c.npy"],
    "matmul": ["2x3x4"],
    "type": ["int8"],
    "config": ["nano"],
    "bus": ["64"],
    "params": ["PERF=0"],
    "sim": ["verilator"],
    "mean": ["0.5"],
    "labels": ["l.txt"],
    "raw": [],
    "html": ["p.html"],
    "shape": ["1x1x8x8"],
    "ends": ["t"],
    "calibration": ["i.npy"],
    "samples": ["1"],
    "method": ["minmax"],
    "wide": ["10%"],
}
QUANTISED = ["--model", "q.onnx"]
OF_IMAGE = {"mean", "scale", "bgr"}
OF_FOUND = {"detector", "png"}  # of a picture, not of the calibration's
ANYWHERE = {"report", "config", "bus", "params", "sim"}
OF_MODEL = {"image", "layers", "via", "maps", "rounding", "functions", "detector", "png"}
OF_MODEL |= {"bgr", "scale", "bias", "fast", "golden", "waves", "check"} | ANYWHERE
MAY = {  # what each thing to run takes besides
    None: {"golden", "waves", "check", "images", "png"} | ANYWHERE,  # digits
    "vectors": {"golden", "waves", "check"} | ANYWHERE,
    "network": {"golden", "waves", "check", "images", "input", "output", "png"} | ANYWHERE,
    "matmul": {"golden", "waves", "check", "output", "type"} | ANYWHERE,
    "model": OF_MODEL,
    "quantised": {"golden", "waves", "check", "image", "images", "input", "output", "labels"}
    | {
        "raw",
        "html",
        "shape",
        "ends",
        "calibration",
        "samples",
        "method",
        "wide",
        "detector",
        "png",
    }
    | OF_IMAGE
    | ANYWHERE,
}
NEVER = {
    *(("golden", name) for name in ("waves", "check", "fast", "via")),
    *(("functions", name) for name in ("image", "detector", "png", "bgr", "scale", "bias")),
    ("input", "images"),
}
NOT_QUANTISED = {("image", "input"), ("image", "images")}


def cases() -> list[tuple[str | None, tuple[str, str]]]:
    """Every pair of options with every thing to run; whether it may be is MAY's and NEVER's."""
    others = [name for name in GOOD if name not in MAY]
    return [(what, pair) for what in MAY for pair in itertools.combinations(others, 2)]


def given(name: str) -> list[str]:
    """The words of an option, or of a thing to run."""
    return QUANTISED if name == "quantised" else [f"--{name}", *GOOD[name]]


def test_every_option_is_here() -> None:
    found = {action.dest for action in COMMANDS["sim"].parser()._actions} - {"help"}
    # what NUMBERING goes with is the file's version: test_kmodel_numbering.py
    assert found == set(GOOD) | {"numbering", "seed"} and len(cases()) > 1000


@pytest.mark.check
def test_every_pair(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed only: what fits is taken, the rest is refused with a word of the pair."""
    monkeypatch.chdir(samples)
    taken = 0
    for what, pair in cases():
        names = [*([what] if what else []), *pair]
        needs = what == "model" and not {"functions", "image"} & set(pair)
        never = NEVER
        if what == "quantised":
            needs = bool((OF_IMAGE | OF_FOUND) & set(pair)) and "image" not in pair
            names += ["output"] * ("raw" in pair and "output" not in pair)
            of_samples = {"samples", "method", "wide"} & set(pair)
            names += ["calibration"] * bool(of_samples and "calibration" not in pair)
            never = NEVER | NOT_QUANTISED
        names += ["image"] * needs
        words = [word for name in names for word in given(name)]
        fits = set(names) - {what} <= MAY[what]
        fits &= not any(set(two) <= set(names) for two in never)
        try:
            sim.parse_sim(words)
        except command.UsageError as error:
            assert not fits, f"{words}: {error}"
            assert any(given(name)[0] in str(error) for name in names), f"{words}: {error}"
            assert "\n" not in str(error)
        else:
            assert fits, f"{words} was taken"
            taken += 1
    assert taken > 100
