# SPDX-License-Identifier: Apache-2.0
"""A bitstream for a board: what its serial line sends, its clock, its pins (docs/silicon.md 5)."""

import argparse
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.network.network import NetworkRun
from openkpu_tools.command import UsageError
from openkpu_tools.flows import board, fpga, silicon_record
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


def bit_of(baud: int, clock: float) -> int:
    """Cycles of a bit; UsageError as the command."""
    return board.bit_cycles(argparse.Namespace(baud=baud), clock)


@pytest.mark.parametrize("clock", [10, 12.5, 25, 40, 66.66666, 100, 400])
def test_rates_of_a_clock(clock: float) -> None:
    """A rate is accepted where the line has it within 2 %; the range of a message and the rates
    that it proposes are accepted, and nothing beyond the range is."""
    with pytest.raises(UsageError) as caught:
        bit_of(0, clock)
    least, most = map(int, re.findall(r"expected (\d+) to (\d+)", str(caught.value))[0])
    assert 65000 < bit_of(least, clock) <= 65535 and clock * 1e6 / bit_of(most, clock) >= most
    for beyond in (least - 1, most + 1):
        with pytest.raises(UsageError, match=f"expected {least} to {most} at"):
            bit_of(beyond, clock)
    refused = 0
    for step in range(400):
        rate = int(least * (most / least) ** (step / 399))
        exact = clock * 1e6 / rate
        if min(abs(exact / n - 1) for n in (int(exact), int(exact) + 1)) <= 0.02:
            assert abs(clock * 1e6 / bit_of(rate, clock) / rate - 1) <= 0.02
            continue
        with pytest.raises(UsageError) as caught:
            bit_of(rate, clock)
        proposed = str(caught.value).partition("for example ")[2].split(" or ")
        assert {bit_of(int(one), clock) for one in proposed}
        refused += 1
    assert refused or clock == 400  # whose rates are close to each other


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_words: object, **_more: object) -> None:
        raise AssertionError("it was simulated")

    monkeypatch.setattr(board, "contents", never)
    monkeypatch.setattr(NetworkRun, "__init__", never)


@pytest.mark.usefixtures("nothing_runs")
def test_memories_beyond_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AI RAM that the part cannot hold, and a storage, before anything is computed; a simulation
    of the RTL needs no part."""
    with pytest.raises(UsageError) as caught:
        board.main(["--config", "k210"])
    assert str(caught.value) == (
        "k210: 2,424,832 bytes of memory (AI RAM 2,097,152, weight buffer 294,912, RAM 32,768),"
        " expected 425,984 at most, the block RAM of LFE5U-85F"
    )
    part = dataclasses.replace(board.ECP5.parts["85k"], ram=70)
    monkeypatch.setitem(board.ECP5.parts, "85k", part)
    with pytest.raises(UsageError, match=r"RAM 32,768, storage [\d,]+\), expected 143,360 at most"):
        board.main(["--map"])
    monkeypatch.setitem(board.ECP5.parts, "85k", dataclasses.replace(part, ram=208))
    for words in (["--simulate", "--config", "k210"], []):
        with pytest.raises(AssertionError, match="it was simulated"):
            board.main(words)


def test_memory_of_a_block_ram() -> None:
    """These memories are written byte by byte, or in lanes of bytes: an enable takes nine bits. The
    records of mapped devices have no fewer block RAMs."""
    found = silicon_record.load_figures(fpga.BASELINE)
    for name, figures in found.items():
        least = sum(board.device_memory(configs.load_config(name)).values())
        assert least <= figures["block RAM"] * board.BLOCK_BYTES, name
    assert len(found) > 3


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

    def flipped(args: argparse.Namespace, on: board.Board) -> Job:
        made = original(args, on)
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
    made = board._job(args, BOARD)
    size = board.contents(made, args.config.ahb_width, tmp_path)
    for name, count in (("ram", board.RAM_BYTES), ("store", made.store_bytes)):
        words = (tmp_path / f"{name}.hex").read_text().split()
        assert len(words) == count // 4 and all(re.fullmatch("[0-9a-f]{8}", w) for w in words)
    assert 0 < size <= board.RAM_BYTES - board.STACK
    assert np.count_nonzero(made.store)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--baud", "300", "--mhz", "100"], "baud=300: expected 1526 to 11111111 at 100 MHz"),
        (["--baud", "12000001"], "baud=12000001: expected 611 to 10000000 at 40 MHz"),
        (["--baud", "0", "--simulate"], "baud=0: expected 611 to 10000000 at 40 MHz"),
        (["--baud", "1e6"], "baud='1e6': expected a whole number"),
        (
            ["--mhz", "10", "--baud", "3000000"],
            "baud=3000000: 10 MHz by 3 is 3333333, 11.1 % off, expected 2 % at most, for example"
            " 2500000 or 3333333",
        ),
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
