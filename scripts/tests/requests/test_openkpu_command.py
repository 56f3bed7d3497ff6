# SPDX-License-Identifier: Apache-2.0
"""`openkpu COMMAND` and `make`: exit status, help, refused requests, a reader that goes away."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openkpu import __version__
from openkpu.checkout import ROOT, python_path
from openkpu.generators.generate import Limits, random_layer
from openkpu_tools import command, registry
from scripts.tests.checkouts import UNSET, ran

pytestmark = pytest.mark.check

VECTOR = ROOT / "models/tests/data/vectors/raw_pool0.npz"
ENV = {k: v for k, v in os.environ.items() if k not in UNSET}


def openkpu(*args: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, "-m", "openkpu", *args, cwd=cwd, status=None, also=env)


def make(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """From elsewhere, as a user with -C."""
    words = ("make", "--no-print-directory", "-C", ROOT, *args)
    return ran(*words, cwd="/", status=None, env=ENV, also=env or {})


def test_version_and_help() -> None:
    assert openkpu("--version").stdout == f"openkpu {__version__}\n"
    shown = openkpu("--help")
    assert shown.returncode == 0
    for name in registry.commands():
        assert f"\n  {name} " in shown.stdout


@pytest.mark.parametrize("level", ["1", "2"])
def test_python_without_assertions(level: str) -> None:
    """What they check would pass unseen."""
    for words in (["-m", "openkpu", "configs"], ["-m", "pytest", "tb/fifo", "--collect-only"]):
        found = ran(sys.executable, *words, status=None, PYTHONOPTIMIZE=level)
        assert found.returncode in (2, 4) and not found.stdout, found.stdout
        (line,) = found.stderr.strip().splitlines()
        assert "-O or PYTHONOPTIMIZE is set, expected Python with assertions" in line


@pytest.mark.parametrize("name", sorted(registry.commands()))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        registry.dispatch([name, "--help"])
    assert ended.value.code == 0 and "usage:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "no command, expected one of sim, "),
        (["smi"], "unknown command 'smi', did you mean sim?"),
    ],
)
def test_unknown_command(words: list[str], expected: str) -> None:
    result = openkpu(*words)
    assert result.returncode == 2 and result.stderr.startswith(f"error: {expected}")
    assert len(result.stderr.splitlines()) == 1


def test_status_of_a_mismatch_and_its_place(tmp_path: Path) -> None:
    """1 from openkpu, with the place; 2 from make, as make does."""
    with np.load(VECTOR) as data:
        arrays = {key: data[key].copy() for key in data.files if key.startswith("L00_")}
    y = arrays["L00_y"]
    c, row, x = (n - 1 for n in y.shape)
    right = int(y[c, row, x])
    y[c, row, x] ^= 1
    file = tmp_path / "wrong.npz"
    np.savez(file, **arrays)
    result = openkpu("sim", "--golden", "--vectors", str(file), cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    place = f"1 bytes differ, first at c={c} y={row} x={x}:"
    assert f"{place} got 0x{right:02x}, expected 0x{right ^ 1:02x}" in result.stdout
    assert make("sim", "GOLDEN=1", f"VECTORS={file}").returncode == 2
    assert openkpu("sim", "--golden", "--vectors", str(VECTOR)).returncode == 0


def test_largest_random_layers() -> None:
    """The limits of `openkpu vectors` let nothing through that cannot be made."""
    for seed in range(6):
        print(f"seed {seed}")
        limits = Limits(channels=1024, size=4)
        layer = random_layer(np.random.default_rng(seed), limits=limits)
        assert layer.arg.i_ch_num <= 1024


def test_stream_asks_for_its_seed_first() -> None:
    result = openkpu("stream", OPENKPU_SEED="abc")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: OPENKPU_SEED='abc'")


def test_check_leaves_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("before")
    command.check_output(file)
    command.check_output(tmp_path / "new.json")
    assert file.read_text() == "before" and [f.name for f in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("words", [["configs"], ["sim", "--golden"], ["--help"]])
def test_reader_goes_away(words: list[str]) -> None:
    """The end of a pipe that reads one byte: no complaint, the status of SIGPIPE."""
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "openkpu", *words],
        cwd=ROOT,
        env={**ENV, "PYTHONPATH": python_path()},
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    os.close(read)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, "")


RUNNERS = (f"{sys.executable} -m openkpu", "scripts/run.sh -m openkpu", "scripts/run.sh -m pytest")
CLOSED = "error: the standard output is closed, expected it open (> /dev/null drops it)"


def in_shell(line: str) -> subprocess.CompletedProcess[str]:
    return ran("bash", "-c", f"exec {line}", status=None)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("words", ["configs", "sim --golden", "kmodel nothing", "nothing", "-h"])
def test_closed_output(runner: str, words: str) -> None:
    """Nothing runs whose output nobody can see, and no file takes the output's number."""
    result = in_shell(f"{runner} {words} >&-")
    assert (result.returncode, result.stderr) == (2, f"{CLOSED}\n")


@pytest.mark.parametrize("line", ["make help", "make predict", "scripts/setup.sh", "make nothing"])
def test_closed_output_of_what_sets_up(line: str) -> None:
    """Targets and the set-up go through Python that is not the environment's."""
    result = in_shell(f"{line} >&-")
    said = result.stderr.splitlines()
    assert (result.returncode, said[0]) == (2, CLOSED)
    assert all(more.startswith("make: ***") for more in said[1:])


def test_other_streams_closed() -> None:
    """Input and messages are not needed; a bad request has its status."""
    good = in_shell(f"{RUNNERS[0]} configs <&- 2>&-")
    assert good.returncode == 0 and "| nano |" in good.stdout.replace("`", "")
    assert in_shell(f"{RUNNERS[0]} sim --sim=none <&- 2>&-").returncode == 2


@pytest.mark.parametrize("words", ["configs", "sim --golden", "--help"])
def test_output_that_takes_nothing(words: str) -> None:
    result = in_shell(f"{RUNNERS[0]} {words} >/dev/full")
    assert (result.returncode, result.stderr) == (
        2,
        "error: standard output: No space left on device\n",
    )


@pytest.mark.parametrize("words", ["nothing", "predict --config=none", "kmodel nothing", "sim --x"])
def test_messages_that_get_lost(words: str) -> None:
    """The status says the same."""
    assert in_shell(f"{RUNNERS[0]} {words} 2>/dev/full").returncode == 2


def test_outputs_that_are_no_files(tmp_path: Path) -> None:
    """A pipe would wait for a reader."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(command.UsageError, match=r"pipe\.json: expected a file, or a name that"):
        command.check_output(tmp_path / "pipe.json")
    command.check_output(Path("/dev/null"))
