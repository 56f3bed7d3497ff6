// SPDX-License-Identifier: Apache-2.0
//
// row_sequencer: walks a feature map in the AI RAM word by word, channel by channel or in bands of lines.
//
// How it works: rows of 64 bytes (docs/kpu.md section 2.2); width <= 16: four channels share a row, 16
// bytes each; width <= 32: two channels, 32 bytes each; wider: a line has ceil(width / 64) rows of one
// channel. A word is PATH bytes of a row. A step is the part of one line of one channel that lies in one
// word. Its offset is counted in blocks of 16 bytes. The order is c, y, x; with BANDS a map may be walked
// in bands of a few lines instead, each band in that order. A band begins behind the lines of the band
// above it, where the first group of channels ended.
// Handshake: start loads a map; word, lane, size_m1, chan_end, band_end, last describe the present step;
// next advances. With BANDS the inputs of the map are stable until the last step.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module row_sequencer #(
    // bytes of a word: 16, 32 or 64
    parameter PATH = 64,
    // width of a channel index
    parameter CHAN = 10,
    // 1: maps may be walked in bands
    parameter BANDS = 0,
    // derived, not to be set
    parameter PB = $clog2(PATH)
) (
    // clock
    input  wire            clk,
    // start of a new map: first row, channels - 1, height - 1, width - 1
    input  wire            start,
    input  wire [    14:0] base_row,
    input  wire [CHAN-1:0] chans_m1,
    input  wire [     8:0] height_m1,
    input  wire [     9:0] width_m1,
    // BANDS: lines of a band, a power of two below those of the map, or 0: the map is one band; rows from
    // one group of channels to the next
    input  wire [     3:0] band,
    input  wire [    13:0] apart,
    // advance to the next step
    input  wire            next,
    // present step: word, first byte in it in units of 16, bytes - 1, last of its channel in the band, of
    // the band, of the map
    output wire [ 20-PB:0] word,
    output wire [     1:0] lane,
    output wire [  PB-1:0] size_m1,
    output wire            chan_end,
    output wire            band_end,
    output wire            last
);

  localparam [9:0] PATH_C = PATH[9:0];
  localparam [9-PB:0] ONE_WORD = 1;
  // blocks of a word; bits of a block index that are inside a word
  localparam [2:0] BLOCKS = PATH_C[6:4];
  localparam [1:0] INSIDE = BLOCKS[1:0] - 2'd1;

  // row and block of the present step; first row of the group of channels in the band, first block of its
  // line
  reg  [    14:0] row;
  reg  [     1:0] block;
  reg  [    14:0] group_row;
  reg  [     1:0] line_block;
  reg  [CHAN-1:0] chan_left;
  // lines of the band - 1, those after this one
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
  wire chan_last = chan_left == {CHAN{1'b0}};
  assign band_end = chan_end && chan_last;

  // ---- bands: lines of the first one - 1, of the next one - 1; lines from the first one of the band to the
  // first one of the last band; first row of the next group of channels; the first group is walked; row
  // behind its lines of the band
  wire [8:0] first_lines, next_lines, below;
  wire [14:0] next_group, behind;
  wire first;
  generate
    if (BANDS != 0) begin : g_bands
      wire [3:0] line_mask = band - 4'd1;
      wire [8:0] mask = {{6{line_mask[3]}}, line_mask[2:0]};
      reg [8:0] lines_below;
      reg first_group;
      reg [14:0] row_behind;
      wire [8:0] below_next = lines_below - {5'd0, band};
      assign first_lines = (band == 4'd0) ? height_m1 : mask;
      assign next_lines = mask & (height_m1 | {9{below_next != 9'd0}});
      assign next_group = group_row + {1'b0, apart};
      assign {below, first, behind} = {lines_below, first_group, row_behind};
      always @(posedge clk) begin
        lines_below <= start ? height_m1 & ~mask : (next && band_end) ? below_next : lines_below;
        first_group <= start || ((next && chan_end) ? band_end || (first && same_group) : first);
        row_behind  <= (next && chan_end && first) ? row_1 : row_behind;
      end
    end else begin : g_whole
      assign {first_lines, next_lines} = {height_m1, height};
      assign {below, first} = {9'd0, 1'b1};
      assign {next_group, behind} = {2{row_1}};
      wire unused_bands = &{1'b0, band, apart};
    end
  endgenerate
  wire bottom = below == 9'd0;
  wire [14:0] next_band = first ? row_1 : behind;
  assign last = band_end && bottom;
  // where the next channel, or the next band, begins
  wire [14:0] chan_row = chan_last ? next_band : same_group ? group_row : next_group;
  wire [ 1:0] chan_block = block_next & {2{!chan_last}};

  always @(posedge clk) begin
    if (start) begin
      row <= base_row;
      block <= 2'd0;
      group_row <= base_row;
      line_block <= 2'd0;
      chan_left <= chans_m1;
      height <= first_lines;
      line_left <= first_lines;
      width <= width_m1;
      rest <= width_m1;
      line_end <= width_m1[9:PB] == {(10 - PB) {1'b0}};
    end else if (next) begin
      rest <= line_end ? width : rest - PATH_C;
      line_end <= line_end ? width[9:PB] == {(10 - PB) {1'b0}} : rest[9:PB] == ONE_WORD;
      row <= chan_end ? chan_row : (line_end || block_on[2]) ? row_1 : row;
      block <= chan_end ? chan_block : line_end ? line_block : block_on[1:0];
      if (line_end) begin
        line_left <= band_end ? next_lines : chan_end ? height : line_left - 9'd1;
      end
      if (chan_end) begin
        chan_left  <= chan_last ? chans_m1 : chan_left - {{(CHAN - 1) {1'b0}}, 1'b1};
        height     <= chan_last ? next_lines : height;
        line_block <= chan_block;
        group_row  <= chan_row;
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
