# SPDX-License-Identifier: Apache-2.0
"""Parameters of the device: what docs/integration.md 3 allows elaborates, all else is named."""

import re
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ran
from scripts.tests.documents.test_docs import DOCS, RTL, blocks, section, table


def elaborate(*arguments: str) -> str:
    """What Icarus says of the device with some changes."""
    command = ["iverilog", "-g2005", "-Wall", "-Wno-sensitivity-entire-array", "-Irtl/include"]
    command += ["-Wno-timescale", "-tnull", *arguments, *map(str, RTL)]
    result = ran(*command, status=None)
    said = (result.stdout + result.stderr).strip()
    assert bool(said) or result.returncode == 0
    return said


def test_template(tmp_path: Path) -> None:
    """The instantiation template elaborates without a word, and connects everything."""
    (text,) = blocks(section(DOCS / "integration.md", "2 Template"), "verilog")
    file = tmp_path / "my_chip.v"
    file.write_text(text)
    assert elaborate("-s", "my_chip", str(file)) == ""
    assert set(re.findall(r"^      \.(\w+)", text, re.MULTILINE)) == {
        row[0]
        for title in ("3 Parameters", "4 Ports")
        for row in table(section(DOCS / "integration.md", title))
    }


@pytest.mark.parametrize("value", [0, 9])
def test_illegal_outstanding(value: int) -> None:
    said = elaborate("-s", "openkpu_axi", f"-Popenkpu_axi.OUTSTANDING={value}")
    assert "ILLEGAL_OUTSTANDING_1_TO_8" in said


SWITCH = [-1, 2, 3]  # neither 0 nor 1
ILLEGAL = {
    "N_Y": [3, 1, 32],
    "N_Z": [1, 6, 64, 128],
    "AHB_W": [16, 48, 256],
    "AI_RAM_ROWS": [15, 32769],
    "WBUF_ROWS": [32, 100, 65536],
    "WEIGHT_BITS": [4, 12],
    "TILE_ROWS": [16, 48, 4096],
    "PARAM_CHANS": [512, 1025, 1536],
    "LOOK_AHEAD": [0, 2, 6, 32],
    "POST_SHARE": [3, 8],
    "POOL_LANES": [-1, 3, 16],
    "FP16_LANES": [-4, 1, 2, 12, 128],
    "KEEP_WEIGHTS": SWITCH,
    "WEIGHT_AHEAD": SWITCH,
    "FLAT_MAPS": SWITCH,
    "DILATION": [0, 9],
    "SUM_PLANES": SWITCH,
    "OUT32": SWITCH,
    "POST_TABLES": SWITCH,
    "MUL_BITS": [16, 19],
    "PATH": [8, 48, 256],
    "PIX_FIFO_DEPTH": [1],
    "WGT_FIFO_DEPTH": [1],
    "BIAS_FIFO_DEPTH": [1],
    "ROUNDING": [-1, 3],
    "GATE": SWITCH,
    "PERF": SWITCH,
    "PRIVILEGED": SWITCH,
}
LEGAL = {
    "N_Y": [2, 16],
    "N_Z": [32, 2],  # not 16 x 32
    "AHB_W": [64, 128],
    "AI_RAM_ROWS": [16, 17, 100],
    "WBUF_ROWS": [64, 32768],
    "WEIGHT_BITS": [8, 16, 16],
    "TILE_ROWS": [64, 2048],
    "PARAM_CHANS": [1024],
    "LOOK_AHEAD": [8, 16],
    "POST_SHARE": [4, 2],
    "POOL_LANES": [0, 1, 2, 8],
    "FP16_LANES": [0, 4, 64],  # beside 16 bits
    "KEEP_WEIGHTS": [1],
    "WEIGHT_AHEAD": [1, 1, 1, 0],  # not with one bus word of 128 bits
    "FLAT_MAPS": [1],
    "DILATION": [2, 8],
    "SUM_PLANES": [1],
    "OUT32": [0],
    "POST_TABLES": [1],
    "MUL_BITS": [17],
    "PATH": [16, 32, 128],
    "PIX_FIFO_DEPTH": [2],
    "WGT_FIFO_DEPTH": [2, 3],
    "BIAS_FIFO_DEPTH": [2],
    "ROUNDING": [1, 2],
    "GATE": [0],
    "PERF": [0],
    "PRIVILEGED": [1],
}


def values(**parameters: int) -> list[str]:
    """Arguments for the device with other parameters."""
    return ["-s", "openkpu_top", *(f"-Popenkpu_top.{n}={v}" for n, v in parameters.items())]


def test_every_parameter_has_limits() -> None:
    """None elaborates with whatever it is given; one with 0 and 1 refuses every other number."""
    rows = table(section(DOCS / "integration.md", "3 Parameters"))
    assert {row[0] for row in rows} == set(LEGAL) == set(ILLEGAL)
    switches = {row[0] for row in rows if row[2] == "0, 1"}
    assert len(switches) == 9
    assert switches == {name for name, illegal in ILLEGAL.items() if illegal is SWITCH}


ROUNDS = max(map(len, LEGAL.values()))


@pytest.mark.check
@pytest.mark.parametrize("number", range(ROUNDS))
def test_legal_values_together(number: int) -> None:
    """Values at the ends of the table's ranges elaborate, one of each parameter at once."""
    assert elaborate(*values(**{n: v[number % len(v)] for n, v in LEGAL.items()})) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEGAL)
def test_legal_values(name: str) -> None:
    """The same beside the defaults of all others."""
    for value in LEGAL[name]:
        assert elaborate(*values(**{name: value})) == "", value


# modules that stop the elaboration, where their name does not begin with the parameter's
STOPS = {"N_Z": "ILLEGAL_N_Z|ILLEGAL_N_Y_N_Z"}


@pytest.mark.check
@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_values(name: str) -> None:
    """Values beyond the table's ranges stop with a name."""
    for value in ILLEGAL[name]:
        said = elaborate(*values(**{name: value}))
        stop = f"Unknown module type: ({STOPS.get(name, f'ILLEGAL_{name}')})"
        assert re.search(stop, said), f"{name} = {value}: {said or 'accepted'}"


def lint(*arguments: str) -> list[str]:
    """Errors and warnings of Verilator with every warning on, in their order."""
    command = ["verilator", "--lint-only", "-Wall", "-f", "rtl/openkpu.f"]
    result = ran(*command, "--top-module", "openkpu_top", *arguments, cwd=ROOT, status=None)
    found = [line for line in result.stderr.splitlines() if line.startswith(("%Error", "%Warning"))]
    assert bool(found) == bool(result.returncode)
    return found


@pytest.mark.check
@pytest.mark.parametrize("name", ILLEGAL)
def test_the_parameter_is_named_first(name: str) -> None:
    """Whatever else is wrong with an illegal value, Verilator names its parameter first."""
    for value in (ILLEGAL[name][0], ILLEGAL[name][-1]):
        first = lint(f"-G{name}={value}")[0]
        assert re.search(f"'({STOPS.get(name, f'ILLEGAL_{name}')})", first), f"{value}: {first}"


@pytest.mark.check
@pytest.mark.parametrize("value", [0, -2])
@pytest.mark.parametrize("name", ["N_Y", "N_Z", "POST_SHARE", "PATH", "TILE_ROWS"])
def test_nothing_and_less(name: str, value: int) -> None:
    """Values that would end the tools themselves, or loops of the RTL."""
    assert f"'ILLEGAL_{name}_" in lint(f"-G{name}={value}")[0]
    assert f"Unknown module type: ILLEGAL_{name}_" in elaborate(*values(**{name: value}))


@pytest.mark.parametrize(
    ("change", "stop"),
    [
        ({"N_Y": 16, "N_Z": 16}, "N_Y_N_Z_MORE_THAN_128_LANES"),
        ({"N_Y": 4, "N_Z": 2, "POST_SHARE": 4}, "POST_SHARE_UP_TO_N_Z"),
        ({"N_Y": 2, "N_Z": 4, "FLAT_MAPS": 1}, "FLAT_MAPS_BELOW_16_LANES"),
        ({"FP16_LANES": 4, "WEIGHT_BITS": 8}, "FP16_LANES_WITHOUT_16_BIT_WEIGHTS"),
        ({"FP16_LANES": 128, "PATH": 128}, "FP16_LANES_UP_TO_4_N_Y_N_Z"),
        (
            {"FP16_LANES": 64, "N_Y": 16, "N_Z": 2, "PATH": 32},
            "FP16_LANES_UP_TO_HALF_PATH_OR_32_N_Z",
        ),
        (
            {"FP16_LANES": 4, "N_Y": 16, "N_Z": 2, "PATH": 16},
            "FP16_LANES_N_Y_UP_TO_HALF_PATH",
        ),
    ],
)
def test_values_that_do_not_go_together(change: dict[str, int], stop: str) -> None:
    """Each is legal by itself: the name has the parameters."""
    assert f"type: ILLEGAL_{stop}" in elaborate(*values(**change))
    assert f"'ILLEGAL_{stop}'" in lint(*(f"-G{name}={value}" for name, value in change.items()))[0]


@pytest.mark.check
@pytest.mark.parametrize(
    "change",
    [
        {"N_Y": 2, "N_Z": 2, "PATH": 16, "FP16_LANES": 16},
        {"N_Y": 8, "N_Z": 2, "PATH": 16, "FP16_LANES": 16},
    ],
)
def test_legal_values_without_a_warning(change: dict[str, int]) -> None:
    """The most lanes that the table allows beside few output channels."""
    assert lint(*(f"-G{name}={value}" for name, value in change.items())) == []


def test_a_ring_of_bus_words() -> None:
    """Weights wait in words of the AI RAM of at least two bus words."""
    short = {"WEIGHT_AHEAD": 1, "PATH": 16, "AHB_W": 128}
    assert "type: ILLEGAL_WEIGHT_AHEAD_PATH_BELOW_TWO_BUS_WORDS" in elaborate(*values(**short))
    for change in ({"WEIGHT_AHEAD": 0}, {"PATH": 32}, {"AHB_W": 64}):
        assert elaborate(*values(**short | change)) == "", change


@pytest.mark.parametrize(("n_y", "n_z"), [(2, 64), (8, 16), (16, 8)])
def test_most_lanes(n_y: int, n_z: int) -> None:
    """As many as there may be, in the shapes that the defaults of the others allow."""
    assert elaborate(*values(N_Y=n_y, N_Z=n_z, PATH=128, POST_SHARE=4)) == ""
