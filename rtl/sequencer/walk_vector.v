// SPDX-License-Identifier: Apache-2.0
//
// walk_vector: the walker of fully connected layers.
//
// How it works: neuron > reduction step, one issue each. A tile entry holds 64 steps, a weight row N_Z words,
// contiguous from one neuron to the next: the bank counts them. All neurons form one block.
// Handshake: the position describes the current issue, the move its changes; `go` makes it. The bank is zero
// when a layer starts, because the last issue of a layer clears it.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module walk_vector #(
    // derived, not to be set: width of a bank index
    parameter ZW = 2
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer: mode, the vector stays in the tile buffer
    input  wire                  vector,
    input  wire                  held,
    // the current issue is made; last of: steps of the entry, steps, neurons
    input  wire                  go,
    input  wire                  entry_last,
    input  wire                  step_last,
    input  wire                  unit_last,
    // word index in the weight row
    output reg  [        ZW-1:0] bank,
    // changes made by the issue
    output wire [`MOVE_BITS-1:0] move
);

  wire over = step_last && unit_last;
  wire entry_end = entry_last || step_last;
  wire row_end = (&bank) || over;

  always @(posedge clk) begin
    if (rst) bank <= {ZW{1'b0}};
    else bank <= !(go && vector) ? bank : over ? {ZW{1'b0}} : bank + {{(ZW - 1) {1'b0}}, 1'b1};
  end

  assign move[`MOVE_POS_ON]     = 1'b0;
  assign move[`MOVE_STEP_ON]    = !step_last;
  assign move[`MOVE_STEP_CLEAR] = step_last;
  assign move[`MOVE_BACK]       = 1'b0;
  assign move[`MOVE_UNIT_ON]    = step_last;
  assign move[`MOVE_UNIT_BACK]  = 1'b0;
  assign move[`MOVE_GROUP_END]  = 1'b0;
  assign move[`MOVE_PASS_END]   = 1'b0;
  assign move[`MOVE_ENTRY_ON]   = entry_end;
  assign move[`MOVE_ENTRY_BACK] = step_last && held && !unit_last;
  assign move[`MOVE_ROW_ON]     = row_end;
  assign move[`MOVE_ROW_BACK]   = 1'b0;
  assign move[`MOVE_ROW_KEEP]   = row_end;
  assign move[`MOVE_FREE_ENTRY] = entry_end && (!held || unit_last);
  assign move[`MOVE_FREE_ROWS]  = {1'b0, row_end};
  assign move[`MOVE_AGAIN]      = 1'b0;
  assign move[`MOVE_WHOLE]      = 1'b1;
  assign move[`MOVE_OVER]       = over;

endmodule

`resetall
