# SPDX-License-Identifier: Apache-2.0
"""Formal proofs: what holds is proven, what does not fails, and a bad request is one line."""

import json
import re
from pathlib import Path

import pytest

from openkpu_tools import command
from openkpu_tools.entries import verification
from openkpu_tools.flows import formal, proofs
from scripts.tests.conftest import Refused

pytestmark = [pytest.mark.check, pytest.mark.tool("formal")]

COUNTER = """
module counter(input wire clk, input wire rst, input wire step, output reg [3:0] n);
  always @(posedge clk) if (rst) n <= 4'd0; else if (step) n <= (n == 4'd9) ? 4'd0 : n + 4'd1;
`ifdef FORMAL_counter
`include "counter_props.vh"
`endif
endmodule
"""
PROPERTIES = """
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end
  reg began = 1'b0;
  always @(posedge clk) begin
    began <= 1'b1;
    //: The count is a digit.
    if (began) digit : assert (n <= LIMIT);
    //: It becomes nine.
    nine : cover (began && n == 4'd9);
  end
"""
LIST = """
[[proof]]
module = "counter"
cover_depth = 15
faults = [{ find = "n == 4'd9", put = "n == 4'd10" }]
"""


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A counter with a property of two lines, in a tree of its own."""
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "counter.v").write_text(COUNTER)
    (tmp_path / "rtl" / "counter_props.vh").write_text(PROPERTIES.replace("LIMIT", "9"))
    (tmp_path / proofs.LIST).write_text(LIST)
    monkeypatch.setattr(proofs, "ROOT", tmp_path)
    monkeypatch.setattr(verification, "ROOT", tmp_path)
    monkeypatch.setattr(formal, "OUT", tmp_path / "reports")
    return tmp_path


def test_what_holds_is_proven(design: Path, capsys: pytest.CaptureFixture) -> None:
    assert command.run_command(formal.main, ["counter"]) == 0
    assert "ok   counter: 1 proven, 1 reached" in capsys.readouterr().out
    found = {row["name"]: row for row in json.loads((design / "reports/formal.json").read_text())}
    assert found["digit"]["state"] == "proven" and found["nine"]["state"] == "reached"
    assert found["nine"]["steps"] >= 10, "from zero, nine steps"
    page = (design / "reports" / "formal.md").read_text()
    assert "| digit | The count is a digit. | proven |" in page
    assert "| from_reset | The design is reset first. | assumed |" in page


def test_a_property_that_fails_is_named(design: Path, capsys: pytest.CaptureFixture) -> None:
    (design / "rtl" / "counter_props.vh").write_text(PROPERTIES.replace("LIMIT", "1"))
    (design / proofs.LIST).write_text(LIST.replace("module =", "depth = 8\nmodule ="))
    assert command.run_command(formal.main, ["counter"]) == 1
    assert re.search(r"digit: FAILED in cycle \d+\. The count is a digit", capsys.readouterr().out)
    assert list((design / "reports/formal").glob("counter_*.vcd")), "the trace is kept"


def test_what_is_not_decided_is_no_proof(design: Path, capsys: pytest.CaptureFixture) -> None:
    """Eight is not reached within four cycles, and a count of four to eight leads to it."""
    (design / "rtl" / "counter_props.vh").write_text(PROPERTIES.replace("n <= LIMIT", "n != 4'd8"))
    assert command.run_command(formal.main, ["counter"]) == 1
    assert "digit: UNDECIDED: induction stops at digit" in capsys.readouterr().out


def test_a_name_that_is_not_declared(design: Path, capsys: pytest.CaptureFixture) -> None:
    """Yosys alone would take it for a wire of one bit of any value."""
    rtl = design / "rtl" / "counter.v"
    rtl.write_text("`default_nettype none\n" + COUNTER + "`resetall\n")
    (design / "rtl" / "counter_props.vh").write_text(PROPERTIES.replace("LIMIT", "9 || gone"))
    assert command.run_command(formal.main, ["counter"]) == 1
    assert "gone' is implicitly declared" in capsys.readouterr().out


def test_stages_build_on_each_other(design: Path, capsys: pytest.CaptureFixture) -> None:
    """That no count is twelve follows from digits, not from itself: eleven leads to it."""
    more = "    //: No count is twelve.\n    if (began) near : assert (n != 4'd12);\n"
    text = PROPERTIES.replace("LIMIT", "9").replace(
        "    //: It becomes", more + "    //: It becomes"
    )
    (design / "rtl" / "counter_props.vh").write_text(text)
    staged = LIST.replace("module =", 'stages = [["digit"]]\nmodule =')
    (design / proofs.LIST).write_text(staged)
    assert command.run_command(formal.main, ["counter"]) == 0
    assert "ok   counter: 2 proven, 1 reached" in capsys.readouterr().out
    (design / proofs.LIST).write_text(staged.replace("digit", "near"))
    assert command.run_command(formal.main, ["counter"]) == 1
    said = capsys.readouterr().out
    assert "near: UNDECIDED: induction stops at near" in said
    assert "digit: UNDECIDED: rests on near" in said


def test_a_stage_of_nothing_is_refused(design: Path, refused: Refused) -> None:
    (design / proofs.LIST).write_text(LIST.replace("module =", 'stages = [["digits"]]\nmodule ='))
    refused(["formal"], "counter: no property digits")
    twice = 'stages = [["digit"], ["digit"]]\nmodule ='
    (design / proofs.LIST).write_text(LIST.replace("module =", twice))
    refused(["formal"], "counter: digit in two stages")


def test_what_cannot_be_reached_is_told(design: Path, capsys: pytest.CaptureFixture) -> None:
    (design / proofs.LIST).write_text(LIST.replace("cover_depth = 15", "cover_depth = 5"))
    assert command.run_command(formal.main, ["counter"]) == 1
    assert "nine: UNREACHED: not within 5 cycles" in capsys.readouterr().out


def test_a_fault_is_seen(design: Path, capsys: pytest.CaptureFixture) -> None:
    assert command.run_command(formal.main, ["--mutants", "counter"]) == 0
    assert "1 of 1 faults seen" in capsys.readouterr().out


def test_a_fault_that_nothing_sees(design: Path, capsys: pytest.CaptureFixture) -> None:
    (design / proofs.LIST).write_text(LIST.replace("4'd10", "4'd7"))
    assert command.run_command(formal.main, ["--mutants", "counter"]) == 1
    assert "NOT SEEN" in capsys.readouterr().out


def test_a_fault_of_what_fails_anyway(design: Path, capsys: pytest.CaptureFixture) -> None:
    """It is not seen by a property that fails without it."""
    (design / proofs.LIST).write_text(LIST.replace("module =", "depth = 8\nmodule ="))
    (design / "rtl" / "counter_props.vh").write_text(PROPERTIES.replace("LIMIT", "1"))
    assert command.run_command(formal.main, ["--mutants", "counter"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"counter: without a fault: FAILED in cycle \d+", said)
    assert "SO WITHOUT IT" in said and "0 of 1 faults seen" in said


def test_long_proofs_are_of_what_stands_there(design: Path, capsys: pytest.CaptureFixture) -> None:
    """The short run leaves them out as long as nothing changes that they are of."""
    (design / proofs.LIST).write_text(LIST.replace("module =", "quick = false\nmodule ="))

    def status(*words: str) -> int:
        return command.run_command(formal.main, [*words])

    assert status("--quick") == 1
    said = capsys.readouterr().out
    assert "counter: changed since it was last proven; `make formal MODULE=counter REC" in said
    assert status("--record") == 0 and list(proofs.recorded()) == ["counter"]
    assert status("--quick") == 0
    assert "1 of 1 long proofs are of these files" in capsys.readouterr().out
    rtl, props = design / "rtl" / "counter.v", design / "rtl" / "counter_props.vh"
    rtl.write_text("// a comment\n" + COUNTER)
    assert status("--quick") == 0
    rtl.write_text(COUNTER.replace("step)", "step && !rst)"))
    assert status("--quick") == 1
    rtl.write_text(COUNTER)
    props.write_text(PROPERTIES.replace("LIMIT", "1"))
    assert status("--quick") == 1
    assert status("--record") == 1 and status("--quick") == 1, "what fails is not recorded"


def test_bad_requests_are_one_line(
    design: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(["formal", "fifo"], "'fifo': expected a module or a folder of the RTL")
    (design / "rtl" / "fifo.v").touch()
    refused(["formal", "fifo"], "no proof of module 'fifo', expected one of counter")
    fault = LIST.replace("n == 4'd9", "n == 4'd8")
    (design / proofs.LIST).write_text(fault)
    refused(["formal", "--mutants"], "is not there once")
    (design / proofs.LIST).write_text(LIST + "deep = 4\n")
    refused(["formal"], "deep")
    (design / proofs.LIST).write_text(LIST)
    bare = PROPERTIES.replace("    //: It becomes nine.\n", "")
    (design / "rtl" / "counter_props.vh").write_text(bare)
    refused(["formal"], "a property without a meaning")
    monkeypatch.setattr(formal, "SOLVER", "yices-that-is-not-there")
    refused(["formal"], "yices-that-is-not-there is missing; `make setup`")


def test_every_proof_is_well_formed() -> None:
    """Properties parse, faults find their place, and each module has one."""
    every, files = proofs.load_proofs(), proofs.sources()
    for proof in every:
        kinds = [each.kind for each in proofs.properties(proof.module, files)]
        assert "assert" in kinds and "assume" in kinds, proof.name
        text = files[proof.module].read_text()
        assert f"`ifdef FORMAL_{proof.module}\n" in text, proof.name
        for fault in proof.faults:
            fault.planted((proofs.ROOT / fault.file).read_text())
    with_fault = {proof.module for proof in every if proof.faults}
    assert with_fault == {proof.module for proof in every}
