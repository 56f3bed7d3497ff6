# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: never over what they read, under the name that was given, and a
failure names the file."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu.checkout import python_path
from openkpu_tools import command
from openkpu_tools.registry import dispatch
from scripts.tests.conftest import Refused

pytestmark = pytest.mark.fixed  # the same with every seed

MODEL = ["--golden", "--model", "m.kmodel", "--image", "p.png"]
READ = {  # a file that is read, by the words of a command; what it may write is put behind
    "m.kmodel": [["sim", *MODEL, "--report"], ["predict", "--model", "m.kmodel", "--report"]],
    "p.png": [
        ["sim", *MODEL, "--png"],
        ["sim", *MODEL, "--report"],
        ["kmodel", "m.kmodel", "--image", "p.png", "--png"],
    ],
    "n.npz": [
        ["sim", "--golden", "--network", "n.npz", "--report"],
        ["predict", "--network", "n.npz", "--report"],
        ["stream", "--network", "n.npz", "--report"],
    ],
    "i.npy": [["sim", "--golden", "--network", "n.npz", "--input", "i.npy", "--output"]],
    "eye.npy": [
        ["sim", "--golden", "--matmul", "eye.npy", "eye.npy", "--output"],
        ["predict", "--matmul", "eye.npy", "eye.npy", "--report"],
    ],
    "v/v.npz": [
        ["sim", "--golden", "--vectors", "v/v.npz", "--report"],
        ["sim", "--golden", "--vectors", "v", "--report"],
    ],
}
CASES = [(file, words) for file, commands in READ.items() for words in commands]


@pytest.fixture
def folder(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = Path(shutil.copytree(samples, tmp_path / "files"))
    (place / "v").mkdir()
    shutil.copy(place / "v.npz", place / "v")
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("name", [str, os.link, os.symlink], ids=["itself", "hard", "soft"])
@pytest.mark.parametrize(("file", "words"), CASES)
def test_what_is_read_is_not_written(
    file: str,
    words: list[str],
    name: Callable[..., object],
    folder: Path,
    refused: Refused,
) -> None:
    before, out = Path(file).read_bytes(), file
    if name is not str:
        out = f"other{Path(file).suffix}"
        name(folder / file, folder / out)
    assert f"{out}: would be read and written" in refused([*words, out])
    assert Path(file).read_bytes() == before


def test_two_names_of_one_output(folder: Path, refused: Refused) -> None:
    Path("c.npy").touch()
    os.link("c.npy", "r.json")
    words = ["sim", "--golden", "--matmul", "2x2x2", "--output", "c.npy", "--report", "r.json"]
    assert "named for two outputs" in refused(words)


def test_a_report_beside_vectors(folder: Path) -> None:
    assert (
        command.run_command(dispatch, ["sim", "--golden", "--vectors", "v", "--report", "v/r.json"])
        == 0
    )


@pytest.mark.parametrize("source", [["--matmul", "2x2x2"], ["--network", "n.npz"]])
def test_results_lie_under_the_name_that_was_given(source: list[str], folder: Path) -> None:
    """numpy would make C.NPY.npy of C.NPY, and of a file of that name that is there already."""
    kept = Path("C.NPY.npy")
    kept.write_text("of somebody else")
    assert command.run_command(dispatch, ["sim", "--golden", *source, "--output", "C.NPY"]) == 0
    assert kept.read_text() == "of somebody else"
    assert np.load("C.NPY").ndim in (2, 4)


@pytest.mark.parametrize(
    "words",
    [
        ["sim", *MODEL, "--report"],
        ["sim", *MODEL, "--png"],
        ["sim", "--golden", "--images", "1", "--report"],
        ["sim", "--golden", "--images", "1", "--png"],
        ["sim", "--golden", "--network", "n.npz", "--png"],
        ["sim", "--golden", "--network", "n.npz", "--output"],
        ["sim", "--golden", "--matmul", "2x2x2", "--output"],
        ["sim", "--golden", "--vectors", "v", "--report"],
        ["predict", "--report"],
    ],
)
def test_a_full_disk_is_named(words: list[str], folder: Path, refused: Refused) -> None:
    out = "full" + {"--png": ".png", "--output": ".npy"}.get(words[-1], ".json")
    os.symlink("/dev/full", out)
    line = refused([*words, out], printed=True)
    assert line == f"error: {out}: cannot be written: No space left on device"


def test_an_option_may_come_again_in_the_next_run(folder: Path) -> None:
    for _ in range(2):
        assert command.run_command(dispatch, ["predict", "--model", "m.kmodel"]) == 0


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_is_printed_is_not_mixed_with_a_report(stream: str, folder: Path) -> None:
    """`openkpu predict --report r.json > r.json`, or --report /dev/stdout > r.json."""
    words = [sys.executable, "-m", "openkpu", "predict", "--report", "r.json"]
    paths = {**os.environ, "PYTHONPATH": python_path()}
    with open("r.json", "wb") as out:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: out}
        result = subprocess.run(words, env=paths, **pipes, check=False)
    assert result.returncode == 2
    said = Path("r.json").read_bytes() if stream == "stderr" else result.stderr
    assert said == b"error: r.json: what is printed goes there, expected another file\n"
