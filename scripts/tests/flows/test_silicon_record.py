# SPDX-License-Identifier: Apache-2.0
"""What `make fpga` and `make asic` record, and which requests they refuse before they begin."""

import json
from pathlib import Path

import pytest

from openkpu_tools.documents import silicon_table
from openkpu_tools.flows import eda, fpga, silicon_record, synth
from openkpu_tools.flows.asic import flow as asic
from scripts.tests.conftest import Refused

NANO = {"config": "nano_fpga", "family": "ecp5"}
FIGURES = {"LUT": 1000, "flip-flops": 500, "DSP": 7, "block RAM": 9}


def never(*_words: object) -> dict:
    raise AssertionError("the flow began")


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A record of both flows with `nano_fpga` only; neither flow may begin."""
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"nano_fpga": FIGURES | {"mhz": 60.0, "gates": 100}}))
    for flow, measure in ((fpga, "measure_fpga"), (asic, "measure_asic")):
        monkeypatch.setattr(flow, "BASELINE", file)
        monkeypatch.setattr(flow, measure, never)
    monkeypatch.setattr(asic.shutil, "which", lambda name: name)
    monkeypatch.setattr(asic, "LIBRARY", file)
    return file


@pytest.mark.parametrize("flow", [fpga, asic])
def test_no_record(flow, record: Path, refused: Refused) -> None:
    """Said before the flow, not after the hour that it takes."""
    text = "no figures are recorded for k210, expected one of nano_fpga"
    refused(["--config=k210", "--baseline"], text, main=flow.main)


@pytest.mark.parametrize("what", ["baseline", "record"])
def test_other_part(what: str, record: Path, refused: Refused) -> None:
    """A record is of one part; its own may be named."""
    before = record.read_text()
    words = ["fpga", "--config=nano_fpga", "--part=85k", f"--{what}"]
    refused(words, "the record of nano_fpga is of LFE5U-45F")
    assert record.read_text() == before
    with pytest.raises(AssertionError, match="the flow began"):
        fpga.main(["--config=nano_fpga", "--part=45k", f"--{what}"])


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["--config=nano_fpga"], "routed"),
        (["--config=nano_fpga", "--place-only", "--seed=3"], "placed"),
        (["--config=nano_fpga", "--map-only"], "mapped"),
        (["--config=compact_fpga"], "placed"),
        (["--config=compact_fpga", "--route"], "routed"),
        (["--config=k210"], "mapped"),
    ],
)
def test_how_far(words: list[str], end: str, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nextpnr routes what it is known to route, or what it is asked to."""
    asked: list[str] = []

    def began(*args: object) -> dict:
        asked.append(str(args[-1]))
        raise eda.ToolError("the flow began")

    monkeypatch.setattr(fpga, "measure_fpga", began)
    assert fpga.main(words) == 1
    assert asked == [end]


def test_mapping_keeps_the_clock(record: Path) -> None:
    """A run that places nothing leaves the MHz of the same netlist, but not those of another."""
    asked = fpga.fpga_arguments(["--record", "--map-only"])
    for netlist, clock in ((FIGURES, {"mhz": 60.0}), (FIGURES | {"LUT": 900}, {})):
        assert fpga.fpga_judged(NANO | netlist, asked) == 0
        kept = json.loads(record.read_text())["nano_fpga"]
        assert kept == netlist | clock | {"gates": 100}


def test_worse(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3 % more LUTs or less clock, one DSP or block RAM more."""
    asked, found = fpga.fpga_arguments(["--baseline"]), NANO | FIGURES
    assert fpga.fpga_judged(found | {"LUT": 1030, "mhz": 58.3}, asked) == 0
    for more in ({"LUT": 1031}, {"DSP": 8}, {"block RAM": 10}, {"mhz": 58.2}):
        assert fpga.fpga_judged(found | more, asked) == 1
        (title,) = more
        assert f"worse than recorded: {title}: ".lower() in capsys.readouterr().out.lower()


def test_not_routed(record: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An estimate is recorded, compared and shown as one, and gives way to a routed clock."""
    found = {"config": "compact_fpga", "family": "ecp5", "mhz_placed": 41.7} | FIGURES
    assert fpga.fpga_judged(found, fpga.fpga_arguments(["--record"])) == 0
    asked = fpga.fpga_arguments(["--baseline"])
    assert fpga.fpga_judged(found | {"mhz_placed": 40.5}, asked) == 0
    assert fpga.fpga_judged(found | {"mhz_placed": 40.4}, asked) == 1
    assert "worse than recorded: MHz before routing: 40.4, rec" in capsys.readouterr().out
    monkeypatch.setattr(fpga, "BASELINE", record)
    assert any("| 41.7, not routed | 6.0 | 6.00 |" in row for row in silicon_table.fpga_table())
    assert fpga.fpga_judged(found | {"mhz": 40.0}, fpga.fpga_arguments(["--record"])) == 0
    assert any("| 40.0 | 5.8 | 5.76 |" in row for row in silicon_table.fpga_table())


@pytest.mark.parametrize("file", [asic.BASELINE, fpga.BASELINE, synth.RECORD])
def test_records_are_there(file: Path) -> None:
    """A record that is not found counts as empty, and so would the tables that are made of it."""
    assert silicon_record.load_figures(file)
