# SPDX-License-Identifier: Apache-2.0
"""Equivalence: a netlist that is the RTL is proven, one that is not stays open."""

import json
from pathlib import Path

import pytest
from openkpu.scripts import equivalence

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
    equivalence.yosys(words, tmp_path, "read")
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
    found = equivalence.compare(module, "top", 0, tmp_path)
    assert found.good and found.proven > 8, found


def test_a_changed_netlist_is_open(
    module: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every and-gate an or-gate."""
    changed = [*equivalence.SYNTH, "chtype -set $_OR_ t:$_AND_ t:$_ANDNOT_"]
    monkeypatch.setattr(equivalence, "SYNTH", changed)
    found = equivalence.compare(module, "top", 0, tmp_path)
    assert not found.good and found.open > 0, found


def test_no_time_is_no_proof(module: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "SECONDS", 0.01)
    found = equivalence.compare(module, "top", 0, tmp_path)
    assert not found.good and "not within" in found.trouble
