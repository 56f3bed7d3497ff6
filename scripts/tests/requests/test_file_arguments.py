# SPDX-License-Identifier: Apache-2.0
"""Every file argument of every command, with what is no file or no good one: one line, status 2."""

import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from openkpu_tools.command import file_there, path, there
from openkpu_tools.command import folder as folder_type
from openkpu_tools.registry import COMMANDS
from scripts.tests.conftest import Refused

pytestmark = pytest.mark.fixed  # the same with every seed

SECONDS = 60  # a command that waits for its file would do so for ever
MODEL = ["--model", "m.kmodel"]
GOOD = {  # what else a command needs to get to a file: by command and argument
    ("sim", "model"): ["--golden", "--image", "p.png"],
    ("sim", "image"): ["--golden", *MODEL],
    ("sim", "detector"): ["--golden", *MODEL, "--image", "p.png"],
    ("sim", "vectors"): ["--golden"],
    ("sim", "network"): ["--golden"],
    ("sim", "input"): ["--golden", "--network", "n.npz"],
    ("sim", "matmul"): ["--golden"],
    ("sim", "labels"): ["--golden", "--model", "q.onnx"],
    ("sim", "calibration"): ["--golden", "--model", "f.onnx"],
    ("compile", "model"): [],
    ("compile", "calibration"): ["f.onnx"],
    ("quantise", "model"): ["--calibration", "p.png"],
    ("quantise", "calibration"): ["f.onnx"],
    ("export", "model"): [],
    ("soc", "model"): [],
    ("board", "model"): [],
    ("judge", "model"): [],
    ("predict", "model"): [],
    ("predict", "calibration"): ["--model", "f.onnx"],
    ("predict", "network"): [],
    ("stream", "calibration"): ["--model", "f.onnx"],
    ("predict", "matmul"): [],
    ("stream", "network"): [],
    ("stream", "model"): [],
    ("stream", "input"): ["--network", "n.npz"],
    ("stalls", "report"): [],
    ("kmodel", "file"): [],
    ("kmodel", "image"): ["m.kmodel"],
    ("kmodel", "detector"): ["m.kmodel", "--image", "p.png"],
    ("testplan", "results"): [],
    ("gates", "netlist"): ["--config=nano_fpga"],
}
LARGE = {("sim", "matmul"), ("predict", "matmul"), ("sim", "input"), ("stream", "input")}
LARGE |= {("sim", "vectors"), ("gates", "netlist"), ("testplan", "results")}
# files that are written, folders, and what is no file
OTHERS = {
    *(("sim", name) for name in ("png", "report", "output", "html")),
    *(("compile", name) for name in ("output", "html")),
    ("board", "out"),
    *(("quantise", name) for name in ("output", "report")),
    *(("export", "output"), ("register-formats", "out")),
    *(("predict", "report"), ("stream", "report"), ("stalls", "png"), ("kmodel", "png")),
    *(("testplan", "out"), ("gates", "keep"), ("vectors", "out"), ("mutate", "reports")),
    *(("bench", "reports"), ("synth", "report"), ("register-formats", "out"), ("page", "out")),
    *(("site", "out"), ("site", "page"), ("reports", "folder")),
}
WRONG = ("pipe", "folder", "device", "zeros", "empty", "missing", "unreadable", "text", "large")


def test_every_file_argument_is_here() -> None:
    words = {"file", "model", "image", "detector", "vectors", "network", "input", "matmul"}
    words |= {
        "report",
        "reports",
        "results",
        "netlist",
        "png",
        "output",
        "out",
        "keep",
        "json",
    }
    kinds = (Path, there, file_there, path, folder_type)
    found = {
        (name, action.dest)
        for name, entry in COMMANDS.items()
        if entry.options.__name__ not in ("waves", "synth_check")  # the same again
        for action in entry.parser()._actions
        if action.nargs != 0 and (action.type in kinds or action.dest in words)
    }
    assert found == {*GOOD, *OTHERS}


@pytest.fixture(scope="module")
def folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good files and wrong ones."""
    place = Path(shutil.copytree(samples, tmp_path_factory.mktemp("files") / "all"))
    os.mkfifo(place / "pipe")
    (place / "device").symlink_to("/dev/null")
    (place / "zeros").symlink_to("/dev/zero")
    (place / "unreadable").symlink_to("/proc/self/mem")  # for root, too
    (place / "text").write_text("nothing of that kind\n")
    with (place / "large").open("wb") as stream:
        stream.truncate((256 << 20) + 1)
    return place


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"still at work after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def wrong_files() -> Iterator[tuple[str, str, str]]:
    """(command, argument, file) that has to be refused."""
    for (name, argument), wrong in itertools.product(GOOD, WRONG):
        large = wrong == "large" and (name, argument) in LARGE
        # of results a line that is none is left out
        left_out = name == "testplan" and wrong in ("text", "empty", "unreadable")
        if not large and not left_out:
            yield name, argument, wrong


@pytest.mark.parametrize(("name", "argument", "wrong"), [*wrong_files()], ids=lambda value: value)
def test_one_line(
    name: str,
    argument: str,
    wrong: str,
    folder: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    action = next(a for a in COMMANDS[name].parser()._actions if a.dest == argument)
    files = [wrong, wrong] if argument == "matmul" else [wrong]
    line = refused(
        [name, *GOOD[name, argument], *action.option_strings[:1], *files],
        f"{wrong}: ",
        printed=True,
    )
    if wrong in ("pipe", "folder", "device", "zeros") and (name, argument) != ("sim", "vectors"):
        assert "expected a" in line
