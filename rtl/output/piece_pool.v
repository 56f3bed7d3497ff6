// SPDX-License-Identifier: Apache-2.0
//
// piece_pool: pools stripes, four bytes in and at most one pixel out per cycle.
//
// How it works: pool_line for small arrays. First the maximum or the sum of two pairs of neighbours: of
// four pixels, or for stride 1 of three, where the pixel behind a line's last one repeats it. Of two
// lines, which arrive in sequence, the first pairs make a pixel, and a cycle later the second ones do. A
// 4x4 window adds both pairs of each line to the result of the previous lines. Signed pixels are made
// unsigned by an offset of 128, which affects neither the maximum nor the floor of the mean.
// Handshake: a read with its control enters with en; the pixel it describes (piece_walk) leaves three
// cycles later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module piece_pool (
    // clock; all stages advance
    input  wire        clk,
    input  wire        en,
    // layer: POOL_* code, signed pixels
    input  wire [ 2:0] pool,
    input  wire        sgn,
    // four bytes of the stripe; first line of a window; stride 1: the first, the second pixel is the last
    // of its line
    input  wire [31:0] bytes,
    input  wire        first,
    input  wire [ 1:0] at_edge,
    // the pixel is the second of two, or that of a 4x4 window
    input  wire        second,
    // pixel
    output wire [ 7:0] pixel
);

  wire s1 = pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
  wire four = pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  wire is_max = pool == `POOL_MAX2 || pool == `POOL_MAX4 || pool == `POOL_MAXS1;

  function [7:0] max2(input [7:0] a, input [7:0] b);
    max2 = (a > b) ? a : b;
  endfunction

  // ---- pairs of neighbours
  wire [31:0] p = bytes ^ {4{sgn, 7'd0}};
  wire [ 7:0] right_0 = at_edge[0] ? p[7:0] : p[15:8];
  wire [ 7:0] left_1 = s1 ? p[15:8] : p[23:16];
  wire [ 7:0] right_1 = !s1 ? p[31:24] : at_edge[1] ? p[15:8] : p[23:16];
  reg [8:0] pair_0, pair_1;
  // ... of the line above: the first pair; the second one is used a cycle later, with its own line's
  reg [8:0] above_0, late_1, above_1;
  // the window begins with this line, one and two cycles after its read
  reg first_1, first_2;
  always @(posedge clk) begin
    if (en) begin
      pair_0  <= is_max ? {1'b0, max2(p[7:0], right_0)} : {1'b0, p[7:0]} + {1'b0, right_0};
      pair_1  <= is_max ? {1'b0, max2(left_1, right_1)} : {1'b0, left_1} + {1'b0, right_1};
      above_0 <= pair_0;
      late_1  <= pair_1;
      above_1 <= late_1;
      first_1 <= first;
      first_2 <= first_1;
    end
  end

  // ---- first pixel, or both pairs of a line of a 4x4 window
  reg  [9:0] sum_0;
  wire [8:0] with_0 = four ? pair_1 : above_0;
  always @(posedge clk) begin
    if (en) begin
      sum_0 <= is_max ? {2'd0, max2(pair_0[7:0], with_0[7:0])} : {1'b0, pair_0} + {1'b0, with_0};
    end
  end

  // ---- second pixel, or a 4x4 window
  reg  [11:0] sum_1;
  wire [11:0] from_1 = four ? sum_1 & {12{!first_2}} : {3'd0, above_1};
  wire [ 9:0] with_1 = four ? sum_0 : {1'b0, late_1};
  always @(posedge clk) begin
    if (en) begin
      sum_1 <= is_max ? {4'd0, max2(from_1[7:0], with_1[7:0])} : from_1 + {2'd0, with_1};
    end
  end

  wire [7:0] one = is_max ? sum_0[7:0] : sum_0[9:2];
  wire [7:0] other = is_max ? sum_1[7:0] : four ? sum_1[11:4] : sum_1[9:2];
  wire [7:0] found = second ? other : one;
  assign pixel = {found[7] ^ sgn, found[6:0]};

endmodule

`resetall
