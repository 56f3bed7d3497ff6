// SPDX-License-Identifier: Apache-2.0
//
// pool_columns: maxima or sums of windows, for the COLS columns of a piece in parallel.
//
// How it works: the lines of a piece arrive one after the other and reduce to a number per column. After
// the last line the numbers move on, and the next piece begins. Lane i then combines the columns to its
// left, one per cycle, as they shift past it: after kw cycles it holds the window that ends in its
// column. The columns of previous pieces shift in behind the first lane, selected one per cycle from the
// last 15 and those of this piece; left of a line's first piece they are columns of padding, which one
// more lane computes from the padding alone. A maximum is a byte, so the comparators are a byte wide and
// only sums use the wide adders; a lane whose maximum does not change keeps its register. A window of
// kh x kw takes the longer of kh and kw cycles per piece.
// Handshake: pieces and sums are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_columns #(
    // columns of a piece: 4, 8 or 16
    parameter COLS = 16,
    // derived, not to be set: bits of a column (16 lines, or a chunk of 31) and of a window
    parameter LB   = (COLS == 16) ? 13 : 12,
    parameter SB   = LB + 4
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer: sums or maxima, negative bytes are 0, XOR mask of the bytes, value outside the map
    input  wire                   sums,
    input  wire                   gate,
    input  wire [            7:0] turn,
    input  wire [            7:0] outside,
    // columns of a window - 1
    input  wire [            3:0] kw_m1,
    // pieces
    input  wire                   piece_valid,
    output wire                   piece_ready,
    input  wire [     8*COLS-1:0] piece_data,
    input  wire [`PIECE_BITS-1:0] piece,
    // windows that end in the columns; their lines inside the map, position in the line
    output wire                   sum_valid,
    input  wire                   sum_ready,
    output wire [    SB*COLS-1:0] sum,
    output reg  [            4:0] sum_lines,
    output reg                    sum_first,
    output reg                    sum_last
);

  localparam integer B = $clog2(COLS);
  localparam integer PARTS = 16 / COLS;
  localparam integer PRIOR = COLS + 15;  // columns of this piece, and to its left

  // ---- columns
  reg full;
  reg [LB*COLS-1:0] column;
  reg [11:0] side;  // the column of padding
  reg [4:0] lines;
  reg line_first, line_last;
  wire take;
  wire push = piece_valid && piece_ready;
  wire first = piece[`PIECE_FIRST];
  wire load = first || !sums;  // a byte, not a sum
  wire [4:0] count = piece[`PIECE_COUNT];
  assign piece_ready = !full || take;

  always @(posedge clk) begin
    if (rst) full <= 1'b0;
    else full <= (push && piece[`PIECE_LAST]) || (full && !take);
  end

  genvar i;
  generate
    for (i = 0; i < COLS; i = i + 1) begin : g_column
      wire [   7:0] got = piece_data[8*i+:8];
      wire [   7:0] seen = (count > i) ? ((gate && got[7]) ? 8'd0 : got) ^ turn : outside;
      wire [LB-1:0] wide = {{(LB - 8) {1'b0}}, seen};
      wire [LB-1:0] old = column[LB*i+:LB];
      wire          more = seen > old[7:0];
      always @(posedge clk) begin
        if (push && (first || sums || more)) column[LB*i+:LB] <= load ? wide : old + wide;
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (push) begin
      side <= load ? {4'd0, outside} : side + {4'd0, outside};
      lines <= (first ? 5'd0 : lines) + {4'd0, piece[`PIECE_ON_MAP]};
      line_first <= piece[`PIECE_LINE_FIRST];
      line_last <= piece[`PIECE_LINE_LAST] && piece[`PIECE_FINAL];
    end
  end

  // ---- windows
  reg busy, complete;  // complete: the last column is included
  reg [3:0] done;
  reg [SB*COLS-1:0] window;
  reg [LB*COLS-1:0] moving;  // columns shifting past the lanes
  reg [12*PRIOR-1:0] prior;  // columns, the last one first; only windows of up to 16 lines use them
  reg [PARTS-1:0] on_line;  // pieces to the left that belong to this line
  reg [11:0] side_now;
  wire [LB*COLS-1:0] next;
  wire step = busy && !sum_valid;
  assign sum_valid = busy && complete;
  assign sum = window;
  assign take = full && (!busy || (sum_valid && sum_ready));

  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= take || (busy && !(sum_valid && sum_ready));
  end

  // the next column: from the previous piece, `done` columns further left
  wire [3:0] distance = done + 4'd1;
  wire [16*16-1:0] lefts;
  wire [PARTS:0] nearer = {on_line, 1'b1};
  wire [PARTS-1:0] further = on_line >> (distance >> B);
  wire [11:0] left = take ? (line_first ? side : prior[11:0]) :
      further[0] ? lefts[16*distance+:12] : side_now;

  always @(posedge clk) begin
    if (take) begin
      done <= 4'd0;
      complete <= kw_m1 == 4'd0;
      {sum_lines, sum_first, sum_last} <= {lines, line_first, line_last};
      on_line <= line_first ? {PARTS{1'b0}} : nearer[PARTS-1:0];
      side_now <= side;
    end else if (step) begin
      done <= distance;
      complete <= distance == kw_m1;
    end
  end
  always @(posedge clk) if (take || step) moving <= next;

  generate
    for (i = 0; i < 16; i = i + 1) begin : g_left
      if (i < 15) begin : g_there
        assign lefts[16*i+:16] = {4'd0, prior[12*(COLS+i)+:12]};
      end else begin : g_none
        assign lefts[16*i+:16] = 16'd0;
      end
    end
    for (i = 0; i < PRIOR; i = i + 1) begin : g_prior
      if (i < COLS) begin : g_now
        always @(posedge clk) if (take) prior[12*i+:12] <= column[LB*(COLS-1-i)+:12];
      end else begin : g_before
        always @(posedge clk) if (take) prior[12*i+:12] <= prior[12*(i-COLS)+:12];
      end
    end
    for (i = 0; i < COLS; i = i + 1) begin : g_window
      wire [SB-1:0] old = window[SB*i+:SB];
      wire [LB-1:0] moved = moving[LB*i+:LB];
      wire [SB-1:0] passing = {{(SB - LB) {1'b0}}, moved};
      wire more = moved[7:0] > old[7:0];
      if (i == 0) begin : g_first
        assign next[LB-1:0] = {{(LB - 12) {1'b0}}, left};
      end else begin : g_next
        assign next[LB*i+:LB] = take ? column[LB*(i-1)+:LB] : moving[LB*(i-1)+:LB];
      end
      always @(posedge clk) begin
        if (take) window[SB*i+:SB] <= {{(SB - LB) {1'b0}}, column[LB*i+:LB]};
        else if (step && (sums || more)) window[SB*i+:SB] <= sums ? old + passing : passing;
      end
    end
  endgenerate

  wire unused = &{1'b0, prior, nearer, further};

endmodule

`resetall
