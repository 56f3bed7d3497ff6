// SPDX-License-Identifier: Apache-2.0
//
// walk_rows: the walker of depthwise layers without a pool, and of element-wise ones.
//
// How it works: channels of an AI RAM row > line > row of the line > pixels of the row. A row is a tile
// entry, and every issue completes its sums. The channels of a row lie in one weight row, except that four of
// them may take two rows of two: the sweep then switches to the second one halfway. With PAIR an issue covers
// two lines of one row each, where both lie in one word of the output.
// Handshake: the position describes the current issue, the move its changes; `go` makes it. The counters are
// zero when a layer starts, because each one ends with its loop.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module walk_rows #(
    // output channels of the array; 1: two rows per issue
    parameter N_Z  = 4,
    parameter PAIR = 0
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer: start, the cycle after it, mode, element-wise, pitch code, rows per line, odd first row and odd
    // rows per channel group of the output, index of the last line
    input  wire                  start,
    input  wire                  begins,
    input  wire                  rows,
    input  wire                  ew,
    input  wire [           1:0] ip,
    input  wire [           4:0] irl,
    input  wire                  dst_odd,
    input  wire                  group_odd,
    input  wire [           9:0] line_end,
    // the current issue is made; it is the last one of its row, of the first two channels; last channels of a
    // weight row, of the layer; a third channel of the row is in use
    input  wire                  go,
    input  wire                  sweep_end,
    input  wire                  half_end,
    input  wire                  bank_last,
    input  wire                  unit_last,
    input  wire                  third,
    // position: row of the line, line; last row, last line; the line below is included, and is the last one
    output reg  [           3:0] seg,
    output reg  [           9:0] line,
    output reg                   seg_last,
    output reg                   line_last,
    output wire                  two,
    output wire                  two_last,
    // changes made by the issue
    output wire [`MOVE_BITS-1:0] move
);

  reg [3:0] seg_end;
  always @(posedge clk) seg_end <= irl[3:0] - 4'd1;

  // four channels in two weight rows
  wire halves = N_Z == 2 && ip == 2'd0;
  wire row_end = go && rows && sweep_end;
  wire below = two ? two_last : line_last;
  wire map_end = sweep_end && seg_last && below;
  wire row_on = map_end ? bank_last || unit_last : halves && half_end && !sweep_end;

  always @(posedge clk) begin
    if (rst) begin
      seg  <= 4'd0;
      line <= 10'd0;
    end else begin
      seg  <= !row_end ? seg : seg_last ? 4'd0 : seg_next;
      line <= !line_over ? line : below ? 10'd0 : line_next;
    end
  end

  // computed a cycle ahead
  wire [3:0] seg_next = seg + 4'd1;
  wire one_seg = seg_end == 4'd0;
  wire one_line = line_end == 10'd0;
  wire [9:0] line_next = line + {8'd0, two, !two};
  wire line_over = row_end && seg_last;
  always @(posedge clk) begin
    seg_last <= (begins || line_over) ? one_seg : row_end ? seg_next == seg_end : seg_last;
    line_last <= (begins || (line_over && below)) ? one_line : line_over ? line_next == line_end : line_last;
  end

  generate
    if (PAIR != 0) begin : g_pair
      reg odd;  // the channel's first output row is odd
      always @(posedge clk) begin
        if (rst) odd <= 1'b0;
        else odd <= start ? dst_odd : odd ^ (row_end && map_end && group_odd);
      end
      // one channel per row, one row per line
      assign two = rows && !ew && ip == 2'd2 && irl == 5'd1 && odd == line[0] && !line_last;
      assign two_last = line + 10'd1 == line_end;
    end else begin : g_single
      assign two = 1'b0;
      assign two_last = 1'b0;
      wire unused = &{1'b0, start, ew, dst_odd, group_odd};
    end
  endgenerate

  assign move[`MOVE_POS_ON]     = 1'b1;
  assign move[`MOVE_STEP_ON]    = 1'b0;
  assign move[`MOVE_STEP_CLEAR] = 1'b0;
  assign move[`MOVE_BACK]       = 1'b0;
  assign move[`MOVE_UNIT_ON]    = map_end;
  assign move[`MOVE_UNIT_BACK]  = 1'b0;
  assign move[`MOVE_GROUP_END]  = 1'b0;
  assign move[`MOVE_PASS_END]   = 1'b0;
  assign move[`MOVE_ENTRY_ON]   = sweep_end;
  assign move[`MOVE_ENTRY_BACK] = 1'b0;
  assign move[`MOVE_ROW_ON]     = row_on;
  assign move[`MOVE_ROW_BACK]   = N_Z == 2 && sweep_end && !map_end;
  assign move[`MOVE_ROW_KEEP]   = map_end && row_on;
  assign move[`MOVE_FREE_ENTRY] = sweep_end;
  assign move[`MOVE_FREE_ROWS]  = !(map_end && row_on) ? 2'd0 : (halves && third) ? 2'd2 : 2'd1;
  assign move[`MOVE_AGAIN]      = 1'b0;
  assign move[`MOVE_WHOLE]      = seg_last && below;
  assign move[`MOVE_OVER]       = map_end && unit_last;

  wire unused_row = &{1'b0, irl[4], half_end, third};

endmodule

`resetall
