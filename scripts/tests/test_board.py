# SPDX-License-Identifier: Apache-2.0
"""A bitstream for a board: what its serial line sends, its clock, its pins (docs/silicon.md 5)."""

import re
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools.command import UsageError
from openkpu_tools.flows import board
from openkpu_tools.flows.soc_job import Job

BOARD = board.KNOWN["ulx3s-85f"]
EXACT = "the RTL's results are as in the golden model"


@pytest.mark.parametrize("mhz", [10, 12.5, 25, 33, 40, 48, 50, 66, 75, 100])
def test_clock_of_the_pll(mhz: float) -> None:
    """Up to what is asked for, close to it, phase detector and VCO within the part's bounds."""
    found = board.pll(BOARD, mhz)
    clock = BOARD.mhz * found["PLL_FEEDBACK"] / found["PLL_INPUT"]
    assert 0.95 * mhz <= clock <= mhz
    assert 400 <= clock * found["PLL_OUTPUT"] <= 800
    assert BOARD.mhz / found["PLL_INPUT"] >= 3.125
    assert all(1 <= value <= 128 for value in found.values())


def test_pins_are_those_of_the_module() -> None:
    """Every bit of a port has one place, no place is of two, none is of nothing."""
    text = (ROOT / "soc/board/ulx3s.v").read_text().split(") (", 1)[1].split(");", 1)[0]
    ports = []
    for match in re.finditer(r"(?:in|out)put\s+wire\s+(?:\[(\d+):0\])?\s*(\w+)", text):
        wide = range(int(match[1]) + 1) if match[1] else None
        ports += [f"{match[2]}[{i}]" for i in wide] if wide else [match[2]]
    lines = (ROOT / BOARD.pins).read_text()
    places = re.findall(r'LOCATE COMP "([^"]+)" SITE "(\w+)";', lines)
    assert sorted(name for name, _ in places) == sorted(ports)
    assert len({site for _, site in places}) == len(places)
    assert set(re.findall(r'IOBUF PORT "([^"]+)"', lines)) == set(ports)


@pytest.mark.parametrize("top", ["soc/soc.v", "soc/soc_axi.v", "soc/board/ulx3s.v"])
def test_every_parameter_of_a_configuration_reaches_the_device(top: str) -> None:
    text = (ROOT / top).read_text()
    declared = set(re.findall(r"^ *parameter +(\w+) +=", text, re.MULTILINE))
    connected = {a for a, b in re.findall(r"\.(\w+) *\((\w+)\)", text) if a == b}
    for name in configs.names():
        assert set(configs.load_config(name).parameters) <= declared & connected, name


@pytest.fixture
def needs_soc() -> None:
    for name in ("pythondata_cpu_picorv32", "ziglang"):
        pytest.importorskip(name, reason="make setup GROUPS=soc brings them")


@pytest.mark.check
@pytest.mark.usefixtures("needs_soc")
def test_digits_on_the_serial_line(capsys: pytest.CaptureFixture[str]) -> None:
    """More characters than wait at once: the firmware waits for room, and none is lost."""
    assert board.main(["--simulate", "--images", "12", "--baud", "2000000"]) == 0
    said = capsys.readouterr().out
    assert EXACT in said and len(re.findall(r"^result 0 \d+: ", said, re.MULTILINE)) == 12
    assert sum(len(line) + 1 for line in said.splitlines() if re.match("result|cycles", line)) > 512


@pytest.mark.check
@pytest.mark.usefixtures("needs_soc")
def test_a_wrong_byte_is_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit of the storage flips between the golden model and the board."""
    original = board._job

    def flipped(args: object) -> Job:
        made = original(args)  # type: ignore[arg-type]
        image = made.images[0]
        made.store[image.input + 20] ^= 0x80
        return made

    monkeypatch.setattr(board, "_job", flipped)
    assert board.main(["--simulate"]) == 1
    said = capsys.readouterr().out
    assert "device 0, inference 0" in said and "FAIL" in said and EXACT not in said


@pytest.mark.check
@pytest.mark.usefixtures("needs_soc")
def test_contents_fill_the_memories(tmp_path: Path) -> None:
    """Words for every place: an FPGA loads no unknown bits."""
    args = board.registry.parse_command("board", ["--images", "3"])
    args.config = board.configs.load_config(args.config)
    made = board._job(args)
    size = board.contents(made, args.config.ahb_width, tmp_path)
    for name, count in (("ram", board.RAM_BYTES), ("store", made.store_bytes)):
        words = (tmp_path / f"{name}.hex").read_text().split()
        assert len(words) == count // 4 and all(re.fullmatch("[0-9a-f]{8}", w) for w in words)
    assert 0 < size <= board.RAM_BYTES - board.STACK
    assert np.count_nonzero(made.store)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--baud", "300", "--mhz", "100"], "expected 2 to 65535"),
        (["--map", "--out", "x.bit"], "together"),
        (["--simulate", "--netlist"], "together"),
        (["--board", "de10"], "ulx3s-85f"),
        (["--images", "0"], "images"),
        (["--mhz", "3"], "mhz"),
    ],
)
def test_refusals(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with what was expected."""
    try:
        status = board.main(words)
    except UsageError as error:
        said = str(error)
    except SystemExit as ended:
        assert ended.code == 2
        said = capsys.readouterr().err
    else:
        pytest.fail(f"status {status}")
    assert expected in said
