// SPDX-License-Identifier: Apache-2.0
//
// pool_line: pools a stripe, PATH bytes per cycle.
//
// How it works: PATH / 16 units compute the maximum and the sum of eight pairs of neighbours each: of 16
// pixels in steps of two, or, for a pool of stride 1, of 8 windows of a line, where the pixel behind its
// last one repeats it. Then two lines are combined. With PATH = 64 both are in the word (slots 0, 1 and
// 2, 3 of it, or 0 and 1 when lines have 16 pixels); with less the lines arrive in sequence, and the
// result of the previous lines is kept, cleared to 0 after the last line of a window. A 4x4 window
// combines the rest from its columns. Signed pixels are made unsigned by an offset of 128, which affects
// neither the maximum nor the floor of the mean. Registers follow each of these steps.
// Handshake: a word with its control enters with en; the pixels it completes leave after the fourth en.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_line #(
    // bytes of a word
    parameter PATH = 64,
    // derived, not to be set: slots of 16 bytes; maximum of output pixels
    parameter NS   = PATH / 16,
    parameter OUT  = (PATH == 16) ? 8 : 16
) (
    // clock; all stages advance
    input  wire              clk,
    input  wire              en,
    // layer: POOL_* code, lines of 16 pixels (not 32), signed pixels
    input  wire [       2:0] pool,
    input  wire              narrow,
    input  wire              sgn,
    // word of the stripe; it ends a window (PATH < 64); stride 1: pixels up to the end of the line;
    // stride 1 with PATH = 64: slot of the line below (0: none)
    input  wire [8*PATH-1:0] word,
    input  wire              last,
    input  wire [       4:0] width,
    input  wire [       1:0] below,
    // pooled pixels from byte 0 on
    output reg  [ 8*OUT-1:0] pooled
);

  localparam integer COLS = OUT;  // kept columns
  localparam integer EDGE = (PATH == 16) ? 8 : 15;  // last pixel that may lie behind the line
  localparam integer SW = (PATH == 16) ? 11 : 10;  // sum of 8 or 4 pixels

  wire s1 = pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
  wire four = pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  wire is_max = pool == `POOL_MAX2 || pool == `POOL_MAX4 || pool == `POOL_MAXS1;
  wire together = narrow && !s1 && !four;  // both lines lie in slots 0 and 1

  function [7:0] max2(input [7:0] a, input [7:0] b);
    max2 = (a > b) ? a : b;
  endfunction

  // ---- the word, unsigned
  wire [8*PATH-1:0] q_word;
  wire [EDGE:1] q_edge;
  wire [1:0] q_below = below;
  reg h_last, q_last;
  always @(posedge clk) begin
    if (en) begin
      h_last <= last;
      q_last <= h_last;
    end
  end
  genvar t, j;
  generate
    for (j = 0; j < PATH; j = j + 1) begin : g_byte
      assign q_word[8*j+:8] = {word[8*j+7] ^ sgn, word[8*j+:7]};
    end
    for (j = 1; j <= EDGE; j = j + 1) begin : g_edge
      assign q_edge[j] = width == j;
    end
  endgenerate

  // ---- lines of stride 1: that of the window, and with PATH = 64 the one below
  localparam integer LINES = (PATH == 64) ? 2 : 1;
  wire [128*LINES-1:0] line;
  wire [136*LINES-1:8] right;  // byte i: right neighbour of pixel i - 1
  generate
    assign line[127:0] = q_word[127:0];
    if (LINES == 2) begin : g_below
      assign line[255:128] = q_below == 2'd0 ? q_word[127:0] : q_below[1] ? q_word[511:384] :
          q_word[255:128];
    end
    for (t = 0; t < LINES; t = t + 1) begin : g_line
      for (j = 1; j <= 16; j = j + 1) begin : g_right
        if (j == 16) begin : g_end
          assign right[136*t+8*j+:8] = line[128*t+120+:8];
        end else if (j > EDGE) begin : g_any
          assign right[136*t+8*j+:8] = line[128*t+8*j+:8];
        end else begin : g_edge
          assign right[136*t+8*j+:8] = q_edge[j] ? line[128*t+8*j-8+:8] : line[128*t+8*j+:8];
        end
      end
      if (t > 0) begin : g_gap
        assign right[136*t+:8] = 8'd0;
      end
    end
  endgenerate

  // ---- pairs of neighbours
  reg [64*NS-1:0] h_max;
  reg [72*NS-1:0] h_sum;
  generate
    for (t = 0; t < NS; t = t + 1) begin : g_unit
      for (j = 0; j < 8; j = j + 1) begin : g_pair
        localparam integer LINE = t / 2;
        localparam integer AT = 8 * (t % 2) + j;
        wire [7:0] a_in = s1 ? line[128*LINE+8*AT+:8] : q_word[128*t+16*j+:8];
        wire [7:0] b_in = s1 ? right[136*LINE+8*AT+8+:8] : q_word[128*t+16*j+8+:8];
        reg [7:0] a, b;
        always @(posedge clk) begin
          if (en) begin
            a <= a_in;
            b <= b_in;
            h_max[64*t+8*j+:8] <= max2(a, b);
            h_sum[72*t+9*j+:9] <= {1'b0, a} + {1'b0, b};
          end
        end
      end
    end
  endgenerate

  // ---- lines
  wire [ 8*COLS-1:0] v_max;
  wire [SW*COLS-1:0] v_sum;
  reg  [ 8*COLS-1:0] p_max;
  reg  [SW*COLS-1:0] p_sum;
  generate
    for (t = 0; t < COLS / 8; t = t + 1) begin : g_lines
      for (j = 0; j < 8; j = j + 1) begin : g_column
        localparam integer C = 8 * t + j;
        wire [7:0] here_max = h_max[8*C+:8];
        wire [SW-1:0] here_sum = {{(SW - 9) {1'b0}}, h_sum[9*C+:9]};
        wire [7:0] with_max;
        wire [SW-1:0] with_sum;
        if (PATH == 64) begin : g_word
          localparam integer D = (t == 0) ? 8 + j : 24 + j;
          assign with_max = together ? h_max[8*D+:8] : h_max[8*(C+16)+:8];
          assign with_sum = {1'b0, together ? h_sum[9*D+:9] : h_sum[9*(C+16)+:9]};
        end else begin : g_stream
          reg [7:0] kept_max;
          reg [SW-1:0] kept_sum;
          always @(posedge clk) begin
            if (en) begin
              kept_max <= q_last ? 8'd0 : v_max[8*C+:8];
              kept_sum <= q_last ? {SW{1'b0}} : v_sum[SW*C+:SW];
            end
          end
          if (PATH == 32 && t == 0) begin : g_both
            assign with_max = together ? h_max[8*(C+8)+:8] : kept_max;
            assign with_sum = together ? {1'b0, h_sum[9*(C+8)+:9]} : kept_sum;
          end else begin : g_kept
            assign with_max = kept_max;
            assign with_sum = kept_sum;
          end
        end
        assign v_max[8*C+:8]   = max2(here_max, with_max);
        assign v_sum[SW*C+:SW] = here_sum + with_sum;
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (en) begin
      p_max <= v_max;
      p_sum <= v_sum;
    end
  end

  // ---- windows of 4x4
  wire [31:0] f_max;
  wire [31:0] f_mean;
  generate
    for (j = 0; j < 4; j = j + 1) begin : g_four
      wire [7:0] left_max, right_max;
      wire [10:0] left_sum, right_sum;
      wire [11:0] sum = {1'b0, left_sum} + {1'b0, right_sum};
      if (PATH == 16) begin : g_one
        assign left_max  = p_max[16*j+:8];
        assign right_max = p_max[16*j+8+:8];
        assign left_sum  = p_sum[2*SW*j+:SW];
        assign right_sum = p_sum[2*SW*j+SW+:SW];
      end else begin : g_two
        assign left_max  = max2(p_max[16*j+:8], p_max[64+16*j+:8]);
        assign right_max = max2(p_max[16*j+8+:8], p_max[72+16*j+:8]);
        assign left_sum  = {1'b0, p_sum[2*SW*j+:SW]} + {1'b0, p_sum[SW*(2*j+8)+:SW]};
        assign right_sum = {1'b0, p_sum[SW*(2*j+1)+:SW]} + {1'b0, p_sum[SW*(2*j+9)+:SW]};
      end
      assign f_max[8*j+:8]  = max2(left_max, right_max);
      assign f_mean[8*j+:8] = sum[11:4];
      wire unused_sum = &{1'b0, sum[3:0]};
    end
  endgenerate

  // ---- pixels
  generate
    for (j = 0; j < OUT; j = j + 1) begin : g_pixel
      wire [7:0] two = is_max ? p_max[8*j+:8] : p_sum[SW*j+2+:8];
      wire [7:0] p;
      if (j < 4) begin : g_any
        assign p = !four ? two : is_max ? f_max[8*j+:8] : f_mean[8*j+:8];
      end else begin : g_two
        assign p = two;
      end
      always @(posedge clk) begin
        if (en) pooled[8*j+:8] <= {p[7] ^ sgn, p[6:0]};
      end
    end
  endgenerate

  wire unused = &{1'b0, p_sum, q_below, q_last, right, together};

endmodule

`resetall
