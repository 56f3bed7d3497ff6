# SPDX-License-Identifier: Apache-2.0
"""`openkpu COMMAND` and `make`: exit status, help, refused requests, a reader that goes away."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from openkpu.checkout import ROOT
from openkpu.digits import load_network
from openkpu_tools import command

from openkpu import __main__, __version__

pytestmark = pytest.mark.check

VECTOR = ROOT / "models/tests/data/vectors/raw_pool0.npz"
UNSET = ("SEED", "MAKEFLAGS", "MAKELEVEL", "PYTHONUNBUFFERED")
ENV = {k: v for k, v in os.environ.items() if k not in UNSET}


def openkpu(*args: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "openkpu", *args],
        cwd=cwd,
        env={**ENV, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
    )


def make(*args: str) -> subprocess.CompletedProcess[str]:
    """From elsewhere, as a user with -C."""
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), *args],
        cwd="/",
        env=ENV,
        capture_output=True,
        text=True,
    )


def test_version_and_help() -> None:
    assert openkpu("--version").stdout == f"openkpu {__version__}\n"
    assert __version__.startswith("0.2.")
    shown = openkpu("--help")
    assert shown.returncode == 0
    for name in __main__.COMMANDS:
        assert f"\n  {name} " in shown.stdout


@pytest.mark.parametrize("name", sorted(__main__.COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.dispatch([name, "--help"])
    assert ended.value.code == 0 and "usage:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], "no command, expected one of sim, "), (["smi"], "unknown command 'smi', did you mean")],
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("IMAGS=3", "unknown variable IMAGS, did you mean IMAGES?"),
        ("REPROT=x", "unknown variable REPROT, did you mean REPORT?"),
        ("QQQQ=1", "unknown variable QQQQ, 'make help' lists"),
        ("GOLDEN=no", "GOLDEN=no: expected 0 or 1"),
        ("FAST=yes", "FAST=yes: expected 0 or 1"),
        ("WAVES=0 1", "WAVES=0 1: expected 0 or 1"),
    ],
)
def test_variables_of_make(words: str, expected: str) -> None:
    result = make("sim", words)
    assert result.returncode == 2 and not result.stdout
    (line,) = result.stderr.strip().splitlines()
    assert expected in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("predict IMAGES=3", "make predict takes no IMAGES, expected some of CONFIG BUS"),
        ("test SIM=icarus", "make test takes no SIM, expected some of TESTS ALL SEED"),
        ("lint CONFIG=nano", "make lint takes no CONFIG, expected no variable"),
        ("regress SEEDS=2 SIM=icarus", "make regress takes no SIM, expected some of SEEDS"),
        ("lint configs TYPE=int8", "make lint configs takes no TYPE, expected no variable"),
        ("nope CONFIG=nano", "No rule to make target 'nope'"),
    ],
)
def test_variables_that_would_be_ignored(words: str, expected: str) -> None:
    result = make(*words.split())
    assert result.returncode == 2 and not result.stdout
    (line,) = result.stderr.strip().splitlines()
    assert expected in line


def test_every_recipe_takes_what_it_says() -> None:
    """The lists in the Makefile and what the recipes read are the same, SEED aside, which tests and
    benches read from the environment."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    takes = dict(re.findall(r"^TAKES_([a-z-]+) *:= (.*)$", text, re.M))
    (known,) = re.findall(r"^VARIABLES := \$\(FLAGS\) (.*)$", text, re.M)
    (flags,) = re.findall(r"^FLAGS +:= (.*)$", text, re.M)
    (targets,) = re.findall(r"^TARGETS := (.*)$", text, re.M)
    (sim,) = re.findall(r"^SIM_ARGS = (.*)$", text, re.M)
    (everywhere,) = re.findall(r"^EVERYWHERE := (.*)$", text, re.M)
    words = {*known.split(), *flags.split()}
    missing = []
    for target in targets.split():
        (recipe,) = re.findall(rf"^{target}: .*\n((?:\t.*\n)*)", text, re.M)
        recipe = recipe.replace("$(SIM_ARGS)", sim)
        read = set(re.findall(r"(?:\$\(|,)([A-Z]+)\b", recipe)) & words - {*everywhere.split()}
        said = takes.get(target, "").replace("$(TAKES_sim)", takes["sim"])
        listed = set(re.findall(r"\b[A-Z]+\b", said))
        if target == "waves":
            read = listed  # all of them, through sim
        missing += [(target, name) for name in read ^ listed if name != "SEED"]
    assert not missing


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sim", "IMAGES=99999"], ["'99999'", "1 to 360"]),
        (["sim", "LAYERS=-1"], ["'-1'", "3-7"]),
        (["sim", "SCALE=nan"], ["'nan'", "from -1e+06 to 1e+06"]),
        (["sim", "SCALE=-inf"], ["'-inf'", "from -1e+06 to 1e+06"]),
        (["sim", "SCALE=0"], ["'0'", "not so close to 0"]),
        (["sim", "BIAS=nan"], ["'nan'", "from -1e+06 to 1e+06"]),
        (["sim", "REPORT=/proc/report.json"], ["/proc/report.json", "cannot be written"]),
        (["sim", "REPORT=rtl"], ["rtl", "is a folder"]),
        (["sim", "SEED=abc"], ["SEED='abc'", "whole number"]),
        (["sim", "INPUT=x.npy"], ["INPUT without NETWORK"]),
        (["sim", "NUMBERING=1.3.0"], ["NUMBERING without MODEL"]),
        (["predict", "NUMBERING=1.3.0"], ["NUMBERING without MODEL"]),
        (["sim", "MODEL=x", "IMAGE=y", "NUMBERING=0.9"], ["'0.9'", "a release of nncase", "1.9.0"]),
        (["sim", "MODEL=Makefile:n", "IMAGE=y"], ["Makefile: no package", "'n'"]),
        (["sim", "NETWORK=Makefile"], ["Makefile", "not a network image"]),
        (["sim", "NETWORK=none.npz"], ["none.npz", "No such file"]),
        (["sim", "NETWORK=a.npz", "VECTORS=b.npz"], ["VECTORS and NETWORK together"]),
        (["stalls", "REPORT="], ["report"]),
        # without the value another thing would run, and end well
        (["sim", "MODEL="], ["--model: ''", "expected a name"]),
        (["sim", "VECTORS="], ["--vectors: ''", "expected a name"]),
        (["sim", "VECTORS= "], ["--vectors: ''", "expected a name"]),
        (["sim", "NETWORK=", "IMAGES=2"], ["--network: ''", "expected a name"]),
        (["sim", "MATMUL="], ["--matmul: ''", "expected a name"]),
        (["sim", "MODEL=x", "IMAGE="], ["--image: ''", "expected a name"]),
        (["sim", "IMAGES="], ["--images: ''", "1 to 360"]),
        (["sim", "REPORT="], ["--report: ''", "expected a name"]),
        (["sim", "BUS="], ["--bus: ''", "32, 64 or 128"]),
        (["predict", "NETWORK="], ["--network: ''", "expected a name"]),
        # what the shell would read
        (
            ["sim", "MODEL=a\"b'c$$(echo d)`echo e`\\f", "IMAGE=y"],
            ["a\"b'c$(echo d)`echo e`\\f: No"],
        ),
        (["sim", 'CONFIG=na"no'], ["unknown configuration 'na\"no'"]),
        (["predict", "CONFIG=na'no"], ['unknown configuration "na\'no"']),
        (["stalls", "REPORT=a'$$(echo b)"], ["a'$(echo b): No such file"]),
        (["fpga", "CONFIG=k210", "PLACE=1"], ["k210 has no part", "neither PLACE nor ROUTE"]),
        (["stalls", "REPORT=Makefile"], ["Makefile", "not a JSON file"]),
    ],
)
def test_values_of_make(words: list[str], expected: list[str]) -> None:
    """Refused in one line, before anything runs."""
    result = make(*words, *(["GOLDEN=1"] if words[0] == "sim" else []))
    assert result.returncode == 2 and not result.stdout
    line = result.stderr.splitlines()[0]
    assert line.startswith("error: ") and "Traceback" not in result.stderr, result.stderr
    for word in expected:
        assert word in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stream", "--images", "2000000000000"], ["2000000000000", "1 to 100000"]),
        (["stream", "--seed", "abc"], ["'abc'", "whole number"]),
        (["stream", "--input", "maps.npy"], ["--input", "expected --network"]),
        (["stream", "--network", "missing.npz"], ["missing.npz"]),
        (["stream", "--bus", "48"], ["48"]),
        (["stream", "--report", "/proc/x.json"], ["/proc/x.json"]),
        (["vectors", "out", "--channels", "99999"], ["'99999'", "1 to 1024"]),
        (
            ["vectors", "out", "--set", "random", "--channels", "1024", "--size", "512"],
            ["--channels 1024 with --size 512", "32768"],
        ),
        (["vectors", "out", "--seed", "-1"], ["'-1'"]),
        (["vectors", "/proc/out"], ["/proc/out"]),
        (["claims", "Q1"], ["'Q1' is no claim"]),
        (["synth", "--json", "/proc/x.json"], ["/proc/x.json"]),
        (["synth", "nanoo"], ["'nanoo'", "nano, compact"]),
        (["coverage", "--jobs", "0"], ["'0'"]),
        (["mutate", "--n=1", "--plan=/dev/zero"], ["/dev/zero: is a device, expected a file"]),
        (["testplan", "--results", str(ROOT / "Makefile"), "--out", "/proc/x"], ["/proc/x"]),
        (["bench", "--quick", "--reports", str(ROOT / "Makefile")], ["Makefile: File exists"]),
    ],
)
def test_values_of_commands(words: list[str], expected: list[str], tmp_path: Path) -> None:
    result = openkpu(*words, cwd=tmp_path)
    assert result.returncode == 2 and not result.stdout, result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in expected:
        assert word in line
    assert not list(tmp_path.iterdir())


def test_largest_random_layers() -> None:
    """The limits of `openkpu vectors` let nothing through that cannot be made."""
    from openkpu.generators.generate import Limits, random_layer

    for seed in range(6):
        print(f"seed {seed}")
        limits = Limits(channels=1024, size=4)
        layer = random_layer(np.random.default_rng(seed), limits=limits)
        assert layer.arg.i_ch_num <= 1024


def test_stream_asks_for_its_seed_first() -> None:
    result = openkpu("stream", SEED="abc")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: SEED='abc'")


def test_scale_for_bytes(tmp_path: Path) -> None:
    """A model whose input is u8 takes no SCALE."""
    from PIL import Image

    from models.tests.test_kmodel_containers import CONTAINERS, X

    model, picture = tmp_path / "m.kmodel", tmp_path / "p.png"
    model.write_bytes(CONTAINERS["v3"])
    Image.fromarray(np.ascontiguousarray(X.transpose(1, 2, 0))).save(picture)
    words = ["sim", "--golden", "--model", str(model), "--image", str(picture)]
    assert openkpu(*words).returncode == 0
    for option in ("--scale=0.5", "--bias=0"):
        result = openkpu(*words, option)
        assert result.returncode == 2 and "is uint8, not float" in result.stderr, result.stderr


def test_two_outputs_in_one_file(tmp_path: Path) -> None:
    net = tmp_path / "net.npz"
    load_network().save(net)
    words = ["--golden", "--network", str(net), "--report", "a.npy", "--output", "a.npy"]
    result = openkpu("sim", *words, cwd=tmp_path)
    assert result.returncode == 2 and "two outputs" in result.stderr


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
        env={**ENV, "PYTHONPATH": str(ROOT)},
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
    env = {**ENV, "PYTHONPATH": str(ROOT)}
    words = ["bash", "-c", f"exec {line}"]
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("words", ["configs", "sim --golden", "kmodel nothing", "nothing", "-h"])
def test_closed_output(runner: str, words: str) -> None:
    """Nothing runs whose output nobody can see, and no file takes the output's number."""
    result = in_shell(f"{runner} {words} >&-")
    assert (result.returncode, result.stderr) == (2, f"{CLOSED}\n")


def test_other_streams_closed() -> None:
    """Input and messages are not needed; a bad request has its status."""
    good = in_shell(f"{RUNNERS[0]} configs <&- 2>&-")
    assert good.returncode == 0 and "| nano |" in good.stdout.replace("`", "")
    assert in_shell(f"{RUNNERS[0]} sim --sim=none <&- 2>&-").returncode == 2


@pytest.mark.parametrize("words", ["configs", "sim --golden", "--help"])
def test_output_that_takes_nothing(words: str) -> None:
    result = in_shell(f"{RUNNERS[0]} {words} >/dev/full")
    assert (result.returncode, result.stderr) == (2, "error: No space left on device\n")


def test_outputs_that_are_no_files(tmp_path: Path) -> None:
    """A pipe would wait for a reader."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(command.UsageError, match=r"pipe\.json: expected a file, or a name that"):
        command.check_output(tmp_path / "pipe.json")
    command.check_output(Path("/dev/null"))
