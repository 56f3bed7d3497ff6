// SPDX-License-Identifier: Apache-2.0
//
// nest_places: tracks the tile entry and the weight row of the current issue.
//
// How it works: both are running counts, each with the value it may have to return to: the first entry of the
// stripe, the first weight row of the block. A layer consumes all entries and rows filled for it. Where
// reduction steps alternate, both go back by the number of alternating steps. Weight rows consumed by another
// unit are skipped.
// Handshake: go makes the current issue, and move selects its changes; a jump comes between layers and takes
// effect two cycles later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module nest_places #(
    // widths of a tile entry counter, of a weight row counter
    parameter TW = 7,
    parameter WW = 12
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // the current issue is made; its changes; it uses two entries
    input  wire                  go,
    input  wire [`MOVE_BITS-1:0] move,
    input  wire                  two,
    // the first of the alternating steps is next; their number, less one
    input  wire                  step_back,
    input  wire [           1:0] turns_m1,
    // the next weight row read is jump_to, not the one after the previous layer
    input  wire                  jump,
    input  wire [        WW-1:0] jump_to,
    // entry and row of the issue; first weight row of its block
    output reg  [        TW-1:0] entry,
    output reg  [        WW-1:0] wrow,
    output reg  [        WW-1:0] block_row
);

  reg [TW-1:0] stripe_entry;
  reg jump_q, jump_qq;  // registered, because a start has a long path
  reg [WW-1:0] jump_row;
  wire [TW-1:0] entry_turn = {{(TW - 2) {turns_m1 != 2'd0}}, ~turns_m1 + 2'd1};
  wire [WW-1:0] row_turn = {{(WW - 2) {turns_m1 != 2'd0}}, ~turns_m1 + 2'd1};
  wire [TW-1:0] entry_next = entry + (step_back ? entry_turn : {{(TW - 2) {1'b0}}, two, !two});
  wire [WW-1:0] row_next = wrow + (step_back ? row_turn : {{(WW - 1) {1'b0}}, 1'b1});
  // changes by the issue, and whether it is made: go arrives late
  wire entry_back = move[`MOVE_ENTRY_BACK];
  wire row_back = jump_qq || move[`MOVE_ROW_BACK];
  wire entry_moves = go && (entry_back || move[`MOVE_ENTRY_ON] || step_back);
  wire row_moves = jump_qq || (go && (move[`MOVE_ROW_BACK] || move[`MOVE_ROW_ON] || step_back));
  // first entry of the next stripe: after the last one of a stripe, or of the layer
  wire entry_keep = go && ((move[`MOVE_STEP_CLEAR] && !move[`MOVE_ENTRY_BACK]) || move[`MOVE_OVER]);
  always @(posedge clk) begin
    if (rst) begin
      jump_q       <= 1'b0;
      jump_qq      <= 1'b0;
      entry        <= {TW{1'b0}};
      stripe_entry <= {TW{1'b0}};
      wrow         <= {WW{1'b0}};
      block_row    <= {WW{1'b0}};
    end else begin
      jump_q       <= jump;
      jump_qq      <= jump_q;
      entry        <= !entry_moves ? entry : entry_back ? stripe_entry : entry_next;
      stripe_entry <= entry_keep ? entry_next : stripe_entry;
      wrow         <= !row_moves ? wrow : row_back ? block_row : row_next;
      block_row    <= jump_q ? jump_row : (go && move[`MOVE_ROW_KEEP]) ? row_next : block_row;
    end
  end

  always @(posedge clk) jump_row <= jump_to;

  wire unused = &{1'b0, move};

endmodule

`resetall
