// SPDX-License-Identifier: Apache-2.0
//
// layer_share: the number of output groups of a convolution that must share one read of the input.
//
// How it works: enough groups that the array is the slower side. A reduction step of a 1x1 layer occupies
// the array for ceil(width / N_Y) cycles for each line of the stripe and each group; its nine channels need
// a number of words of the tile buffer per line. The lines of a stripe multiply both and cancel out. The
// narrowest stripe of a line decides; of a flat layer a full stripe, with partial lines at both ends. A
// step of a 3x3 layer needs the words of the three lines that the windows of a line of 64 reach, in a wider
// map one more on either side: one number for each stride. A layer that begins while its map arrives, and
// stores none, reads it for as many groups as can share: it follows the map once. The result is 1, 2, 4 or
// 8, registered in two steps.
// Handshake: none; the fields of a layer are stable for more than two cycles.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module layer_share #(
    // pixels of the array, bytes of a tile word; 1: narrow maps are computed as one line
    parameter N_Y       = 4,
    parameter TILE_WORD = 64,
    parameter FLAT_MAPS = 0
) (
    // clock
    input  wire        clk,
    // 1x1, 3x3; width of the computed grid, log2 of the stripe's line, pitch code, log2 of the stride
    input  wire        chan,
    input  wire        taps,
    input  wire [10:0] kw,
    input  wire [ 2:0] swl,
    input  wire [ 1:0] ip,
    input  wire [ 1:0] stride,
    // the map is computed as one line; width of its own lines
    input  wire        flat,
    input  wire [ 3:0] width_in,
    // the map arrives meanwhile, and none leaves
    input  wire        arrives,
    // groups
    output reg  [ 3:0] share
);

  localparam TB = $clog2(TILE_WORD);

  wire [6:0] mask = (7'd1 << swl) - 7'd1;
  wire [6:0] rest = kw[6:0] & mask;
  wire [6:0] width = (rest == 7'd0) ? mask + 7'd1 : rest;
  wire [6:0] chunks = (width + N_Y[6:0] - 7'd1) >> $clog2(N_Y);
  // at most 64 * 4 bytes
  wire [8:0] words = (({2'd0, width} << stride) + TILE_WORD[8:0] - 9'd1) >> TB;
  wire [3:0] pitch = 4'd4 + {2'd0, ip};
  wire [3:0] packed_l = (pitch < TB[3:0]) ? TB[3:0] - pitch : 4'd0;  // log2 of channels in a word

  // of nine channels: 3, 5 or 9 words; at most 9 * 32
  wire [9:0] lines_array = {3'd0, chunks};
  wire [9:0] lines_fill = (packed_l == 4'd2) ? 10'd3 : (packed_l == 4'd1) ? 10'd5 : {words[6:0], 3'd0} + {1'b0, words};
  wire [9:0] array_now, fill_now;
  generate
    if (FLAT_MAPS != 0) begin : g_flat
      // lines read for a flat stripe: there may be partial ones at both ends
      localparam [6:0] PARTS = 7'd2;
      wire [6:0] whole;
      wire [3:0] left_over;
      flat_lines u_lines (
          .width(width_in),
          .lines(whole),
          .rest (left_over)
      );
      wire [9:0] read = {3'd0, whole + PARTS};
      wire [9:0] flat_fill = read + ((TB == 6) ? read << 1 : (TB == 5) ? read << 2 : read << 3);
      assign array_now = flat ? 10'd64 >> $clog2(N_Y) : lines_array;
      assign fill_now  = flat ? flat_fill : lines_fill;
      wire unused_rest = &{1'b0, left_over};
    end else begin : g_lines
      assign array_now = lines_array;
      assign fill_now  = lines_fill;
      wire unused_flat = &{1'b0, flat, width_in};
    end
  endgenerate

  // groups for a number of array cycles and of words
  function [3:0] groups(input [9:0] cycles, input [9:0] reads);
    groups = (cycles >= reads) ? 4'd1 : ({cycles[8:0], 1'b0} >= reads) ? 4'd2 :
        ({cycles[7:0], 2'b00} >= reads) ? 4'd4 : 4'd8;
  endfunction

  // 3x3: words of a line of 64, for each stride; of several in a line one more on either side
  localparam integer LINE_I = 64 / N_Y;
  localparam integer READ_I = 3 * (64 / TILE_WORD);
  localparam [9:0] LINE = LINE_I[9:0];
  localparam [9:0] READ = READ_I[9:0];
  localparam [9:0] BESIDE = 10'd6;
  wire [9:0] beside = (kw > 11'd64) ? BESIDE : 10'd0;
  wire [9:0] read_taps = (READ << stride) + beside;

  reg  [9:0] array;
  reg  [9:0] fill;
  always @(posedge clk) begin
    array <= taps ? LINE : array_now;
    fill  <= taps ? read_taps : fill_now;
    share <= (chan || taps) ? (arrives ? 4'd8 : groups(array, fill)) : 4'd1;
  end

  wire unused = &{1'b0, kw, words[8:7]};

endmodule

`resetall
