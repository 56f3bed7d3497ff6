# SPDX-License-Identifier: Apache-2.0
"""Combinational paths between ports are found, and ended by flip-flops and memory writes only."""

from pathlib import Path

import pytest

from openkpu_tools.flows import eda, synth

pytestmark = [pytest.mark.check, pytest.mark.tool("equivalence")]

VERILOG = """
module top(input wire clk, input wire rst, input wire a_x, input wire [1:0] a_y, input wire other,
           output reg q_kept, output wire q_past, output wire q_word, output wire q_table,
           output reg q_clocked, output wire plain);
  reg [1:0] held;
  reg table_ [0:1];
  always @(posedge clk) begin
    held <= a_y;
    if (rst) q_kept <= 1'b0; else q_kept <= a_x;
    table_[a_y[0]] <= a_x;
    q_clocked <= table_[a_y[1]];
  end
  assign q_past = HERE;
  assign q_word = |held;
  assign q_table = table_[held[0]];
  assign plain = a_x;
endmodule
"""


def look(folder: Path, here: str) -> None:
    """ToolError when a path joins an input a_ and an output q_."""
    (folder / "top.v").write_text(VERILOG.replace("HERE", here))
    joined = synth.JOINED.format("i:a_*", "o:q_*")
    read = "read_verilog top.v\nproc\nflatten\nopt_clean\n"
    eda.run_yosys(f"{read}select -assert-none {joined}", folder, "")


def test_registers_end_paths(tmp_path: Path) -> None:
    look(tmp_path, "^held ^ other")


@pytest.mark.parametrize("here", ["^a_y + held[0]", "a_y[1] ? held[0] : other", "table_[a_y[0]]"])
def test_a_path_is_found(tmp_path: Path, here: str) -> None:
    with pytest.raises(eda.ToolError, match="selection is not empty"):
        look(tmp_path, here)
