// SPDX-License-Identifier: Apache-2.0
//
// pool_columns: maxima or sums of windows, for the 16 columns of a piece at a time.
//
// How it works: the lines of a piece come one after the other and make a number of each column. When
// the last one is in, the 16 numbers go on, and the lines of the next piece begin. Lane i then adds
// the columns to its left, one a cycle, as they are shifted past it: after kw cycles it holds the
// window that ends in its column. The 16 columns of the piece before stand ready for that; left of
// a line's first piece they are columns of padding, which one more lane makes of the padding alone.
// A window of kh x kw takes the longer of kh and kw cycles a piece.
// Handshake: pieces and sums are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_columns (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer: sums or maxima, negative bytes are 0, what is exclusive-ored, what stands outside
    input  wire                   sums,
    input  wire                   gate,
    input  wire [            7:0] turn,
    input  wire [            7:0] outside,
    // columns of a window - 1
    input  wire [            3:0] kw_m1,
    // pieces
    input  wire                   piece_valid,
    output wire                   piece_ready,
    input  wire [          127:0] piece_data,
    input  wire [`PIECE_BITS-1:0] piece,
    // windows that end in the 16 columns, 21 bits each; lines of them inside the map, place in the line
    output wire                   sum_valid,
    input  wire                   sum_ready,
    output wire [      16*21-1:0] sum,
    output reg  [            4:0] sum_lines,
    output reg                    sum_first,
    output reg                    sum_last
);

  // ---- columns: 17 bits hold 512 lines
  reg full;
  reg [16*17-1:0] column;
  reg [11:0] side;  // the column of padding
  reg [4:0] lines;
  reg line_first, line_last;
  wire take;
  wire push = piece_valid && piece_ready;
  wire first = piece[`PIECE_FIRST];
  wire [4:0] count = piece[`PIECE_COUNT];
  assign piece_ready = !full || take;

  always @(posedge clk) begin
    if (rst) full <= 1'b0;
    else full <= (push && piece[`PIECE_LAST]) || (full && !take);
  end

  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : g_column
      wire [ 7:0] got = piece_data[8*i+:8];
      wire [ 7:0] seen = (count > i) ? ((gate && got[7]) ? 8'd0 : got) ^ turn : outside;
      wire [16:0] old = first ? 17'd0 : column[17*i+:17];
      wire        more = {9'd0, seen} > old;
      always @(posedge clk) begin
        if (push) column[17*i+:17] <= sums ? old + {9'd0, seen} : more ? {9'd0, seen} : old;
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (push) begin
      side <= (first || !sums) ? {4'd0, outside} : side + {4'd0, outside};
      lines <= (first ? 5'd0 : lines) + {4'd0, piece[`PIECE_ON_MAP]};
      line_first <= piece[`PIECE_LINE_FIRST];
      line_last <= piece[`PIECE_LINE_LAST];
    end
  end

  // ---- windows
  reg busy;
  reg [3:0] done;
  reg [16*21-1:0] window;
  reg [16*17-1:0] moving;  // columns on their way past the lanes, 16 of them
  reg [16*12-1:0] prior;  // the columns of the piece before
  reg [15*12-1:0] behind;  // of these, what is still to come; only windows up to 16 lines need them
  wire [16*12-1:0] left = line_first ? {16{side}} : prior;
  assign sum_valid = busy && done == kw_m1;
  assign sum = window;
  assign take = full && (!busy || (sum_valid && sum_ready));

  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= take || (busy && !(sum_valid && sum_ready));
  end

  always @(posedge clk) begin
    if (take) begin
      done <= 4'd0;
      {sum_lines, sum_first, sum_last} <= {lines, line_first, line_last};
      moving <= {column[16*17-18:0], 5'd0, left[15*12+:12]};
      behind <= left[15*12-1:0];
    end else if (busy && !sum_valid) begin
      done   <= done + 4'd1;
      moving <= {moving[16*17-18:0], 5'd0, behind[14*12+:12]};
      behind <= {behind[14*12-1:0], 12'd0};
    end
  end

  generate
    for (i = 0; i < 16; i = i + 1) begin : g_window
      wire [20:0] old = window[21*i+:21];
      wire [20:0] next = {4'd0, moving[17*i+:17]};
      wire        more = next > old;
      always @(posedge clk) begin
        if (take) begin
          window[21*i+:21] <= {4'd0, column[17*i+:17]};
          prior[12*i+:12]  <= column[17*i+:12];
        end else if (busy && !sum_valid) begin
          window[21*i+:21] <= sums ? old + next : more ? next : old;
        end
      end
    end
  endgenerate

endmodule

`resetall
