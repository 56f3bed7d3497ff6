// SPDX-License-Identifier: Apache-2.0
//
// row_sequencer: walks a feature map in the AI RAM in c, y, x order, word by word.
//
// How it works: rows of 64 bytes (docs/kpu.md section 2.2); width <= 16: four channels share a row, 16
// bytes each; width <= 32: two channels, 32 bytes each; wider: a line has ceil(width / 64) rows of one
// channel. A word is PATH bytes of a row. A step is the part of one line of one channel that lies in one
// word. Its offset is counted in blocks of 16 bytes.
// Handshake: start loads a map; word, lane, size_m1, chan_end, last describe the present step; next
// advances.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module row_sequencer #(
    // bytes of a word: 16, 32 or 64
    parameter PATH = 64,
    // width of a channel index
    parameter CHAN = 10,
    // derived, not to be set
    parameter PB   = $clog2(PATH)
) (
    // clock
    input  wire            clk,
    // start of a new map: first row, channels - 1, height - 1, width - 1
    input  wire            start,
    input  wire [    14:0] base_row,
    input  wire [CHAN-1:0] chans_m1,
    input  wire [     8:0] height_m1,
    input  wire [     9:0] width_m1,
    // advance to the next step
    input  wire            next,
    // present step: word, first byte in it in units of 16, bytes - 1, last of its channel, of the map
    output wire [ 20-PB:0] word,
    output wire [     1:0] lane,
    output wire [  PB-1:0] size_m1,
    output wire            chan_end,
    output wire            last
);

  localparam [9:0] PATH_C = PATH[9:0];
  localparam [9-PB:0] ONE_WORD = 1;
  // blocks of a word; bits of a block index that are inside a word
  localparam [2:0] BLOCKS = PATH_C[6:4];
  localparam [1:0] INSIDE = BLOCKS[1:0] - 2'd1;

  // row and block of the present step; row of the group of channels, first block of its line
  reg  [    14:0] row;
  reg  [     1:0] block;
  reg  [    14:0] group_row;
  reg  [     1:0] line_block;
  reg  [CHAN-1:0] chan_left;
  reg  [     8:0] height;
  reg  [     8:0] line_left;
  reg  [     9:0] width;
  // remaining bytes of the present line, minus one
  reg  [     9:0] rest;
  // they lie in one word
  reg             line_end;

  wire            quarter = (width[9:4] == 6'd0);
  wire            half = (width[9:5] == 5'd0);
  // first block of the next channel; zero: it starts a new group of channels
  wire [     1:0] block_next = quarter ? line_block + 2'd1 : half ? line_block + 2'd2 : 2'd0;
  wire            same_group = (block_next != 2'd0);
  // first block of the word after this one; zero: in the next row
  wire [     2:0] block_on = {1'b0, block & ~INSIDE} + BLOCKS;
  wire [    14:0] row_1 = row + 15'd1;
  wire [    20:0] place = {row, block, 4'd0};

  assign chan_end = line_end && (line_left == 9'd0);
  assign word = place[20:PB];
  assign lane = block & INSIDE;
  assign size_m1 = rest[PB-1:0] | {PB{!line_end}};
  assign last = chan_end && (chan_left == {CHAN{1'b0}});

  always @(posedge clk) begin
    if (start) begin
      row <= base_row;
      block <= 2'd0;
      group_row <= base_row;
      line_block <= 2'd0;
      chan_left <= chans_m1;
      height <= height_m1;
      line_left <= height_m1;
      width <= width_m1;
      rest <= width_m1;
      line_end <= width_m1[9:PB] == {(10 - PB) {1'b0}};
    end else if (next) begin
      rest <= line_end ? width : rest - PATH_C;
      line_end <= line_end ? width[9:PB] == {(10 - PB) {1'b0}} : rest[9:PB] == ONE_WORD;
      row <= (chan_end && same_group) ? group_row : (line_end || block_on[2]) ? row_1 : row;
      block <= chan_end ? block_next : line_end ? line_block : block_on[1:0];
      if (line_end) begin
        line_left <= chan_end ? height : line_left - 9'd1;
      end
      if (chan_end) begin
        chan_left  <= chan_left - {{(CHAN - 1) {1'b0}}, 1'b1};
        line_block <= block_next;
        group_row  <= same_group ? group_row : row_1;
      end
    end
  end

  generate
    if (PATH != 16 && PATH != 32 && PATH != 64) begin : g_illegal
      ILLEGAL_PATH_16_32_OR_64 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, place, block_on};

`ifdef FORMAL_row_sequencer
  `include "row_sequencer_props.vh"
`endif

endmodule

`resetall
