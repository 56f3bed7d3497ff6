# SPDX-License-Identifier: Apache-2.0
"""Equivalence: a netlist that is the RTL is proven, one that is not stays open."""

import json
from pathlib import Path

import pytest

from openkpu_tools.flows import equivalence
from openkpu_tools.flows.equivalence import ModuleVerdict

pytestmark = [pytest.mark.check, pytest.mark.tool("equivalence")]

VERILOG = """
module part(input wire clk, input wire [3:0] d, output reg [3:0] q);
  always @(posedge clk) q <= d;
endmodule
module top(input wire clk, input wire rst, input wire en, input wire [3:0] a, output reg [7:0] sum);
  wire [3:0] q;
  part u_part(.clk(clk), .d(a & {4{en}}), .q(q));
  wire [7:0] p = q * a;
  always @(posedge clk) if (rst) sum <= 8'd0; else if (en) sum <= sum + p;
endmodule
"""


@pytest.fixture
def module(tmp_path: Path) -> dict:
    (tmp_path / "top.v").write_text(VERILOG)
    words = ["read_verilog top.v", "hierarchy -top top", "proc", "write_json device.json"]
    equivalence.yosys_log(words, tmp_path, "read")
    modules = json.loads((tmp_path / "device.json").read_text())["modules"]
    return equivalence.opened(modules["top"], modules)


def test_what_is_cut_out(module: dict) -> None:
    """Ports in place of the pins of instance and product: what drives its net comes in."""
    cut = {n: p["direction"] for n, p in module["ports"].items() if n.startswith("cut")}
    assert sorted(cut.values()).count("input") == 2  # q of the instance, the product
    assert {n.split("_")[1]: d for n, d in cut.items() if n.split("_")[1] in "dqYA"} == {
        "d": "output",
        "q": "input",
        "Y": "input",
        "A": "output",
    }
    assert not any(cell["type"] in ("part", "$mul") for cell in module["cells"].values())


def test_proven(module: dict, tmp_path: Path) -> None:
    found = equivalence.compare_module(module, "top", 0, tmp_path)
    assert found.good and found.proven > 8, found


def test_a_changed_netlist_is_open(
    module: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every and-gate an or-gate."""
    changed = [*equivalence.SYNTH, "chtype -set $_OR_ t:$_AND_ t:$_ANDNOT_"]
    monkeypatch.setattr(equivalence, "SYNTH", changed)
    found = equivalence.compare_module(module, "top", 0, tmp_path)
    assert not found.good and "sum" in found.open, found


def test_no_time_is_no_proof(module: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "SECONDS", 0.01)
    found = equivalence.compare_module(module, "top", 0, tmp_path)
    assert not found.good and "not within" in found.trouble


def test_what_yosys_says_is_the_trouble(
    module: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equivalence, "SYNTH", ["no_such_command"])
    (tmp_path / "01_map.log").write_text("ERROR: of another module\n")
    found = equivalence.compare_module(module, "top", 0, tmp_path)
    assert not found.good and "no_such_command" in found.trouble, found


# ---- a netlist of its own beside the RTL
HEAD = (
    "module compared(input wire clk, input wire rst, input wire [3:0] a, output wire [5:0] q, r);"
)
RTL = """
  reg [5:0] kept, wait_q;
  wire [5:0] inner = kept ^ {2'd0, a};
  assign q = inner + 6'd1;
  assign r = ~q;
  always @(posedge clk) begin
    wait_q <= rst ? 6'd0 : {2'd0, a};
    kept <= a[0] ? wait_q : kept & 6'd15;
  end
endmodule
"""


def beside(rtl: str, other: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleVerdict:
    """Verdict of RTL and of Verilog that stands for its netlist."""
    (folder / "rtl.v").write_text(HEAD + rtl)
    (folder / "other.v").write_text(HEAD + other)
    equivalence.yosys_log(["read_verilog rtl.v", "proc", "write_json rtl.json"], folder, "read")
    found = json.loads((folder / "rtl.json").read_text())["modules"]["compared"]
    words = ["design -reset", "read_verilog other.v", "synth -nofsm -top compared"]
    monkeypatch.setattr(equivalence, "SYNTH", words)
    return equivalence.compare_module(found, "compared", 0, folder)


NARROW = RTL.replace("reg [5:0] kept, wait_q", "reg [3:0] kept, wait_q").replace("6'd", "4'd")
MISNAMED = RTL.replace("inner = kept", "inner = ~kept").replace("q = inner +", "q = ~inner +")


@pytest.mark.parametrize("netlist", [RTL, NARROW, MISNAMED], ids=["same", "narrow", "misnamed"])
def test_other_shapes_are_proven(
    netlist: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upper bits that stay 0 are gone; a name inside belongs to another function."""
    found = beside(RTL, netlist, tmp_path, monkeypatch)
    assert found.good and found.proven >= 12 + 8, found


# the lowest bit of a register that nobody reads; synthesis keeps the name and drops the bit
UNREAD = """
  reg [5:0] kept;
  assign q = {1'b0, kept[5:1]};
  assign r = ~q;
  always @(posedge clk) kept <= rst ? 6'd0 : {2'd0, a};
endmodule
"""
# it is read after all, but nothing drives it in the netlist
READ = UNREAD.replace("{1'b0, kept[5:1]}", "kept")
LOST = READ.replace("[5:0] kept;", "[5:0] whole; wire [5:0] kept; assign kept[5:1] = whole[5:1];")
LOST = LOST.replace("kept <= rst", "whole <= rst")


def test_a_bit_that_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be gone, as long as nothing in the netlist reads it."""
    found = beside(UNREAD, UNREAD, tmp_path, monkeypatch)
    assert found.good, found
    lost = beside(READ, LOST, tmp_path, monkeypatch)
    assert not lost.good, lost


@pytest.mark.tier(
    nightly=[
        "kept ^ {-kept | {-q",
        "kept & 6'd15-kept & 6'd7-kept",
        "a[0] ? wait_q-a[1] ? wait_q-kept",
    ]
)
@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("r = ~q", "r = q", "r"),  # two outputs become one net
        ("kept & 6'd15", "kept & 6'd7", "kept"),  # holds longer than it must
        ("a[0] ? wait_q", "a[1] ? wait_q", "kept"),
        ("rst ? 6'd0", "rst ? 6'd1", "wait_q"),
        ("kept ^ {", "kept | {", "q"),
        ("reg [5:0] kept", "reg [2:0] kept", "q"),  # a bit is lost
    ],
)
def test_other_netlists_are_open(
    old: str, new: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in RTL
    netlist = RTL.replace(old, new)
    found = beside(RTL, netlist, tmp_path, monkeypatch)
    assert not found.good, found
    assert what in found.open or found.trouble, found
