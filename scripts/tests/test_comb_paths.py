# SPDX-License-Identifier: Apache-2.0
"""Combinational paths: found bit by bit, ended by flip-flops and clocked memories only."""

import json
from pathlib import Path

import pytest

from openkpu_tools.flows import comb_paths, equivalence

pytestmark = [pytest.mark.check, pytest.mark.tool("equivalence")]

VERILOG = """
module top(input wire clk, input wire rst, input wire a_x, input wire [1:0] a_y, input wire other,
           output reg q_kept, output wire q_past, output wire [1:0] q_bits, output wire q_word,
           output wire q_table, output reg q_clocked, output wire plain);
  reg [1:0] held;
  reg table_ [0:1];
  always @(posedge clk) begin
    held <= a_y;
    if (rst) q_kept <= 1'b0; else q_kept <= a_x;
    table_[a_y[0]] <= a_x;
    q_clocked <= table_[a_y[1]];
  end
  assign q_past = HERE;
  assign q_bits = {other, a_x} & {held[0], held[1]};
  assign q_word = |held;
  assign q_table = table_[held[0]];
  assign plain = a_x;
endmodule
"""


def found(tmp_path: Path, here: str, verilog: str = VERILOG) -> list[tuple[str, str]]:
    (tmp_path / "top.v").write_text(verilog.replace("HERE", here))
    words = ["read_verilog top.v", "proc", "flatten", "opt_clean", "write_json top.json"]
    equivalence.yosys_log(words, tmp_path, "read")
    top = json.loads((tmp_path / "top.json").read_text())["modules"]["top"]
    return comb_paths.joined_paths(top, "a_", "q_")


def test_registers_end_paths(tmp_path: Path) -> None:
    assert found(tmp_path, "^held") == [("a_x", "q_bits")]


@pytest.mark.parametrize("here", ["^a_y + held[0]", "a_y[1] ? held[0] : other", "table_[a_y[0]]"])
def test_a_path_is_found(tmp_path: Path, here: str) -> None:
    assert ("a_y", "q_past") in found(tmp_path, here)


def test_bits_are_told_apart(tmp_path: Path) -> None:
    """A bitwise cell passes bit 0 to bit 0 only: the other input's bit reaches no output."""
    apart = VERILOG.replace("{held[0], held[1]};", "2'b11;").replace("HERE", "q_bits[1]")
    assert found(tmp_path, "", apart) == [("a_x", "q_bits")]


def test_an_unknown_cell(tmp_path: Path) -> None:
    cell = {"type": "$odd", "connections": {"A": [2]}, "port_directions": {}, "parameters": {}}
    with pytest.raises(comb_paths.PathError, match=r"cell \$odd: direction of pin A is not known"):
        comb_paths.edges(cell)
