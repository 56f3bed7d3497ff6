# SPDX-License-Identifier: Apache-2.0
"""Variables of make: a command receives the text as typed, and no variable from elsewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, X
from openkpu.checkout import ROOT
from openkpu_tools import command, registry
from scripts.tests.checkouts import ran
from scripts.tests.requests.test_openkpu_command import VECTOR, make

pytestmark = pytest.mark.check


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """The one line with the reason, before anything runs; make's own line follows it."""
    assert result.returncode == 2 and not result.stdout, result.stdout
    line, end = result.stderr.splitlines()
    assert line.startswith("error: ") and end.startswith("make: ***")
    return line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sim IMAGS=3", "unknown variable IMAGS, did you mean IMAGES?"),
        ("sim REPROT=x", "unknown variable REPROT, did you mean REPORT?"),
        ("predict MODLE=x", "unknown variable MODLE, did you mean MODEL?"),
        ("lint MODLE=x", "unknown variable MODLE, did you mean MODULE?"),
        ("predict VPATH=1", "unknown variable VPATH, did you mean PART?"),
        ("sim PERF=0", 'PERF is a parameter of the device, expected PARAMS="PERF=0" (make sim, w'),
        ("synth GATE=0", 'GATE is a parameter of the device, expected PARAMS="GATE=0"'),
        ("synth-check PARAMS=GATE=0", "make synth-check takes no PARAMS, expected some of CONFIG"),
        ("waves GOLDEN=1", "make waves takes no GOLDEN, expected some of SIM"),
        ("sim QQQQ=1", "unknown variable QQQQ, 'make help' lists"),
        ("sim a-b=1", "unknown variable a-b, 'make help' lists"),
        ("sim GOLDEN=no", "GOLDEN=no: expected 0 or 1"),
        ("sim FAST=yes", "FAST=yes: expected 0 or 1"),
        ("sim GOLDEN=", "GOLDEN is empty, expected a value"),
        ("predict IMAGES=3", "make predict takes no IMAGES, expected some of CONFIG PARAMS BUS"),
        ("test SIM=icarus", "make test takes no SIM, expected some of TESTS ALL SEED"),
        ("lint CONFIG=nano", "make lint takes no CONFIG, expected no variable"),
        ("regress SEEDS=2 SIM=icarus", "SIM without N, expected a number of random items"),
        ("soak", "no MINUTES, expected a number of minutes"),
        ("lint bench TYPE=int8", "make lint bench takes no TYPE, expected some of QUICK"),
        ("xyzzy CONFIG=nano", "no target 'xyzzy', 'make help' lists"),
        ("configs tset", "no target 'tset', did you mean test?"),
    ],
)
def test_variables_of_make(words: str, expected: str) -> None:
    assert expected in refused(make(*words.split()))


def test_variables_of_several_targets() -> None:
    """Each target has its own variables; a value with a space is neither 0 nor 1."""
    both = make("configs", "predict", "MATMUL=4x4x4", "CONFIG=nano")
    assert both.returncode == 0 and "`nano`" in both.stdout and "configuration nano" in both.stdout
    assert "WAVES=0 1: expected 0 or 1" in refused(make("sim", "WAVES=0 1"))
    assert "no target 'configs predict', " in refused(make("configs predict"))


@pytest.mark.parametrize("name", sorted(registry.COMMANDS))
def test_every_variable_is_an_option(name: str) -> None:
    """make's variables become words of the command's own parser."""
    parser = registry.COMMANDS[name].parser()
    for variable, action in parser.variables().items():
        option = f"--{variable.lower().replace('_', '-')}"
        assert option in action.option_strings or action.dest == variable.lower()
        if action.nargs == 0:
            assert parser.words({variable: "1"}) == [option]
            assert parser.words({variable: "0"}) == []
        elif action.option_strings:
            assert parser.words({variable: "a"}) == [f"{option}=a"]
        else:
            assert parser.words({variable: "a"}) == ["--", "a"]
        # without the value the command would do something else, and succeed
        for empty in ("", " ", "\n"):
            with pytest.raises(command.UsageError, match=f"{variable} is empty"):
                parser.words({variable: empty})
        if action.choices and action.option_strings:
            with pytest.raises(command.UsageError, match=f"{option}='none': expected "):
                parser.parse_args([f"{option}=none"])


def test_several_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Split like a shell does, but the name of an existing file is one word."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.npz", "b.npz", "x y.npz", "[1].npz"):
        (tmp_path / name).touch()
    words = registry.COMMANDS["sim"].parser().words
    for value, expected in {
        "a.npz b.npz": ["a.npz", "b.npz"],
        "'x y.npz' a.npz": ["x y.npz", "a.npz"],
        "x\\ y.npz a.npz": ["x y.npz", "a.npz"],
        "?.npz": ["a.npz", "b.npz"],
        "none*.npz b.npz": ["none*.npz", "b.npz"],
        "~/a b": [
            str(Path("~/a").expanduser()) if Path("~/a").expanduser().exists() else "~/a",
            "b",
        ],
    }.items():
        assert words({"VECTORS": value}) == ["--vectors", *expected]
    for one in ("x y.npz", "[1].npz", "--golden"):
        assert words({"VECTORS": one}) == [f"--vectors={one}"]
    with pytest.raises(command.UsageError, match="VECTORS='a: No closing quotation"):
        words({"VECTORS": "'a"})


HOSTILE = "$(shell touch {0})`touch {0}`$$(touch {0});touch {0}|\"'#%\\ü 你\n$@"


@pytest.mark.parametrize("name", ["MODEL", "NETWORK", "CONFIG", "VECTORS", "REPORT", "IMAGES"])
def test_a_value_is_text(name: str, tmp_path: Path) -> None:
    """Neither make nor a shell expands what a user has typed."""
    mark = tmp_path / "mark"
    for value in ("$(shell touch {0})", "`touch {0}`", "$$(touch {0})", HOSTILE):
        text = value.format(mark)
        said = refused(make("sim", "GOLDEN=1", f"{name}={text}"))
        assert name in said
        if name in ("MODEL", "NETWORK") and "\n" not in text:
            assert text in said
        assert not mark.exists(), f"{name}={text}"


def test_files_with_a_space(tmp_path: Path) -> None:
    """VECTORS, MATMUL, IMAGE and MODEL are files of any name."""
    from PIL import Image

    folder = tmp_path / "x $(y) `z` 'q'"
    folder.mkdir()
    vectors, model, picture = (folder / n for n in ("v e.npz", "m o.kmodel", "p i.png"))
    vectors.write_bytes(VECTOR.read_bytes())
    model.write_bytes(CONTAINERS["v3"])
    Image.fromarray(np.ascontiguousarray(X.transpose(1, 2, 0))).save(picture)
    report = folder / "r e.json"
    found = make("sim", "GOLDEN=1", f"VECTORS={vectors}", f"REPORT={report}")
    assert found.returncode == 0 and report.is_file(), found.stderr
    found = make("sim", "GOLDEN=1", f"MODEL={model}", f"IMAGE={picture}")
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip(), found.stdout
    a = folder / "a b.npy"
    np.save(a, np.ones((4, 4), np.int8))
    quoted = f"MATMUL={shlex.quote(str(a))} {shlex.quote(str(a))}"
    found = make("predict", quoted)
    assert found.returncode == 0 and "4x4 by 4x4" in found.stdout, found.stderr


@pytest.mark.parametrize(
    "name",
    ["MAKEX", "v", "GIVEN", "-x", "PYTHON", "OPENKPU_SHARD", "OPENKPU_GIVEN", "OPENKPU_GOALS"],
)
def test_names_beside_makes_own(name: str) -> None:
    """A variable is unknown whatever its name resembles: make's own, the Makefile's, ours."""
    assert f"unknown variable {name}, " in refused(make("configs", "--", f"{name}=MODEL"))


@pytest.mark.parametrize(
    "word",
    [".given=CONFIG", ".refused=", ".run=echo x", ".run=$$(.run)", ".v=1", ".self=/x",
     "SHELL=/bin/true", "PATH=/none", "MAKEFILE_LIST=", ".SHELLFLAGS=-x", ".RECIPEPREFIX=x",
     ".VARIABLES=CONFIG"],
)  # fmt: skip
def test_names_that_rule_make(word: str) -> None:
    """With one of these make would run something else: it is refused before anything runs."""
    found = make("configs", word)
    name = word.partition("=")[0]
    assert found.returncode == 2 and not found.stdout
    said = f"Makefile:[0-9]+: [*]{{3}} unknown variable {re.escape(name)}, 'make help' lists those"
    assert re.match(said, found.stderr), found.stderr


def test_a_target_is_text(tmp_path: Path) -> None:
    """No shell sees a target."""
    mark = tmp_path / "mark"
    for target in (f"'$(touch {mark})'", "a'b", f"x;touch {mark}"):
        assert "no target" in refused(make(target))
        assert not mark.exists()


def test_makefile_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT / "Makefile")
    for file in (ROOT / "Makefile", "link"):
        found = ran("make", "-f", file, "configs", cwd=tmp_path)
        assert found.stdout == make("configs").stdout


def test_checkout_in_a_folder_with_spaces(tmp_path: Path) -> None:
    """make splits its own list of files at each of them."""
    folder = tmp_path / "a  b 'c"
    folder.symlink_to(ROOT)
    expected = make("configs").stdout
    for words in (["-f", folder / "Makefile"], ["-C", folder]):
        found = ran("make", "--no-print-directory", *words, "configs", cwd=tmp_path)
        assert found.returncode == 0 and found.stdout == expected, found.stderr


def test_a_python_that_is_none() -> None:
    found = make("configs", env={"OPENKPU_PYTHON": "/bin/true"})
    said = "error: OPENKPU_PYTHON=/bin/true: expected Python 3.11 or later\n"
    assert found.returncode == 2 and found.stderr.startswith(said) and not found.stdout
    assert make("configs", env={"PYTHON": "/bin/true"}).returncode == 0


EXPORTED = {
    "GOLDEN": "1", "IMAGE": "x", "IMAGES": "0", "CONFIG": "y", "TYPE": "z", "OUTPUT": "/proc/o",
    "MODEL": "m", "NETWORK": "n", "VECTORS": "v", "SEED": "abc", "BUS": "1", "REPORT": "r",
    "MATMUL": "2x2x2", "MHZ": "fast", "JOBS": "-1", "ACTIONS": "none", "TESTS": "t", "N": "0",
    "PYTHONHOME": "/none", "PYTHONOPTIMIZE": "2", "PYTHONPATH": "/none", "VIRTUAL_ENV": "/none",
    "COCOTB_TESTCASE": "none", "COCOTB_TEST_FILTER": "none", "COCOTB_LOG_LEVEL": "none",
    "COCOTB_TEST_MODULES": "none", "COCOTB_RANDOM_SEED": "none", "COCOTB_TOPLEVEL": "none",
    "GPI_USERS": "none", "GPI_EXTRA": "none", "PYGPI_USERS": "none,none", "SIM_CMD_PREFIX": "false",
    "OPENKPU_GIVEN": "GOLDEN", "OPENKPU_GOALS": "nope", "OPENKPU_BY_MAKE": "",
}  # fmt: skip


@pytest.mark.parametrize("words", [[], ["-e"]])
def test_exported_variables_are_not_looked_at(words: list[str]) -> None:
    """Variables exported by CI and shells have no effect: the output equals that without them."""
    plain = make("predict", "CONFIG=nano", "MATMUL=4x4x4")
    found = make(*words, "predict", "CONFIG=nano", "MATMUL=4x4x4", env=EXPORTED)
    assert found.returncode == 0, found.stderr
    assert found.stdout == plain.stdout and found.stderr == ""


def test_exported_golden_runs_the_rtl() -> None:
    """An exported GOLDEN must not turn a run of the RTL into a pass without it."""
    found = make("sim", "SIM=icarus", "CONFIG=nano", f"VECTORS={VECTOR}", env=EXPORTED)
    assert found.returncode == 0, found.stderr
    assert "3 of 3 layers run, 0 mismatching bytes" in found.stdout
    assert "on icarus" in found.stdout and "the golden model ran alone" not in found.stdout


def test_a_make_in_a_command_has_no_variables_of_its_caller() -> None:
    """`make check SEED=7` runs targets that have no SEED: MAKEFLAGS ends with the command."""
    env = {"MAKEFLAGS": " -- SEED=7", "MAKELEVEL": "1", "OPENKPU_GIVEN": "SEED", "MFLAGS": "-k"}
    found = ran(sys.executable, "-c", LAUNCHED, SEED="7", also=env)
    assert "MAKEFLAGS" not in found.stdout and "MFLAGS" not in found.stdout
    assert "MAKELEVEL" not in found.stdout and "'OPENKPU_SEED': '7'" in found.stdout, found.stdout


LAUNCHED = """
import os
from openkpu_tools.setup import launch, setup_env
setup_env.main = lambda words: 0
os.execv = lambda file, words: print(words[1:], dict(os.environ), flush=True)
launch.main("/nowhere", "predict")
"""


def test_the_makefile_is_short() -> None:
    """It names no variable and no target."""
    text = (ROOT / "Makefile").read_text()
    assert len(text.splitlines()) <= 120
    for name in registry.variables() - {"N"}:
        assert not re.search(rf"\b{name}\b", text)


def test_help_lists_every_target() -> None:
    shown = make("help").stdout
    for name, entry in registry.COMMANDS.items():
        assert re.search(rf"^  make {name} +{re.escape(entry.text)}$", shown, re.M)
    assert make().stdout == shown
    one = make("help", "COMMAND=sim").stdout
    for name in registry.COMMANDS["sim"].parser().variables():
        assert f"\n  {name}" in one
    assert "no target 'smi', did you mean sim?" in refused(make("help", "COMMAND=smi"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sim", "LAYERS=-1"], ["LAYERS='-1'", "3-7"]),
        (["sim", "REPORT=/proc/report.json"], ["/proc/report.json", "cannot be written"]),
        (["sim", "REPORT=rtl"], ["rtl", "is a folder"]),
        (["sim", "SEED=abc"], ["SEED='abc'", "whole number"]),
        (["sim", "SIM=modelsim"], ["SIM='modelsim': expected icarus or verilator"]),
        (["sim", "INPUT=Makefile"], ["INPUT without NETWORK"]),
        (["sim", "NUMBERING=1.3.0"], ["NUMBERING without MODEL"]),
        (["sim", "MATMUL=4x4x4", "VIA=tasks"], ["VIA without MODEL"]),
        (["predict", "NUMBERING=1.3.0"], ["NUMBERING without MODEL"]),
        (["sim", "MODEL=README.md"], ["MODEL without IMAGE"]),
        (
            ["sim", "MODEL=README.md", "IMAGE=README.md", "NUMBERING=0.9"],
            ["'0.9'", "a release of nncase", "1.9.0"],
        ),
        (["sim", "MODEL=Makefile:n", "IMAGE=README.md"], ["Makefile: no package", "'n'"]),
        (["sim", "NETWORK=Makefile", "VECTORS=rtl"], ["VECTORS and NETWORK together"]),
        (["sim", "WAVES=1"], ["GOLDEN and WAVES together"]),
        (["fpga", "CONFIG=k210", "PLACE=1"], ["k210 has no part", "neither PLACE nor ROUTE"]),
        (["fpga", "MAP=1", "ROUTE=1"], ["MAP and ROUTE together"]),
        (["fpga", "PARAMS=POOL_LANES=0 POOL_LANE=1"], ["PARAMS=POOL_LANE=1: unknown parameter"]),
        (["synth", "CONFIG=nano", "PARAMS=POST_SHARE=4"], ["PARAMS: POST_SHARE = 4, expected N_Z"]),
        (["sim", "PARAMS=POOL_LANES=0 OUT32"], ["PARAMS='OUT32': expected NAME=VALUE"]),
        (["predict", "PARAMS=OUT32=0", "MATMUL=4x4x4"], ["small, OUT32=0 has out32 = 0"]),
        (["predict", "BUS=32", "PARAMS=AHB_W=64"], ["BUS=32 and PARAMS=AHB_W=64 together"]),
        (["mutate", "MODULE=fifo_sync nothere"], ["MODULE='nothere': expected a module"]),
    ],
)
def test_values_of_make(words: list[str], expected: list[str]) -> None:
    """Refused in one line that names the variable as typed, before anything runs."""
    line = refused(make(*words, *(["GOLDEN=1"] if words[0] == "sim" else [])))
    for word in expected:
        assert word in line
