// SPDX-License-Identifier: Apache-2.0
//
// byte_walk: walks a feature map in the AI RAM a few bytes a step, channel by channel or in bands of lines.
//
// How it works: rows of 64 bytes (docs/kpu.md section 2.2); width <= 16: four channels share a row, 16
// bytes each; width <= 32: two channels, 32 bytes each; wider: a line has ceil(width / 64) rows of one
// channel. A step has up to four bytes of one line; it ends with a block of 16 bytes, so it lies in one
// word of any path. With planes each channel is four channels of the layout, its planes: four share a
// row, two do, or each has its own rows, `apart` rows from one to the next. A step is then one byte of a
// plane, and the four planes follow in turn before the next pixel; the rows of a channel's planes are
// consecutive, so the next channel begins behind the fourth plane. The order is c, y, x; with BANDS maps
// may be walked in bands of a few lines instead, each band in that order. The groups of channels are then
// `apart` rows from each other, and a band begins behind the lines of the band above it, where the first
// group ended.
// Handshake: start registers the first row; the other inputs of the map must be stable from the next
// cycle on, in which the walk is set up. From the cycle after that block, at, count_m1, full, chan_end,
// band_end and last describe the present step, of most_m1 + 1 bytes at most; next advances.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_walk #(
    // width of a channel index
    parameter CHAN   = 10,
    // 1: maps may have planes; 1: maps may be walked in bands; not both
    parameter PLANES = 0,
    parameter BANDS  = 0
) (
    // clock
    input  wire            clk,
    // start of a new map: first row, channels - 1, height - 1, width - 1; its channels have four planes,
    // rows between planes, or with BANDS between groups of channels; BANDS: lines of a band, a power of two
    // below those of the map, or 0: the map is one band
    input  wire            start,
    input  wire [    14:0] base_row,
    input  wire [CHAN-1:0] chans_m1,
    input  wire [     8:0] height_m1,
    input  wire [     9:0] width_m1,
    input  wire            words,
    input  wire [    13:0] apart,
    input  wire [     3:0] band,
    // advance to the next step; maximum bytes of the present step - 1 (planes: 0)
    input  wire            next,
    input  wire [     1:0] most_m1,
    // present step: 16-byte block of the AI RAM, first byte in it, bytes - 1, bytes are at the maximum;
    // last of its channel (of all its planes) in the band, of the band, of the map
    output wire [    16:0] block,
    output wire [     3:0] at,
    output wire [     1:0] count_m1,
    output wire            full,
    output wire            chan_end,
    output wire            band_end,
    output wire            last
);

  // the map is set up in this cycle
  reg setup;
  // row of the present step; first row of the group of channels that share rows in the band, or, with
  // planes, row of the line in plane 0
  reg [14:0] row, first_row;
  // channel in its row, or plane
  reg [1:0] sub;
  // byte of the line, modulo 64; remaining bytes of the line - 1
  reg [5:0] x;
  reg [9:0] rest;
  reg few;  // four at most
  reg [8:0] line_left;
  reg [CHAN-1:0] chan_left;

  // properties of the map
  reg planes, quarter, half;
  always @(posedge clk) begin
    planes  <= PLANES != 0 && words;
    quarter <= width_m1[9:4] == 6'd0;
    half    <= width_m1[9:5] == 5'd0;
  end
  wire fourth = sub == 2'd3;
  // last channel or plane in this row
  wire sub_last = quarter ? fourth : !half || sub[0];

  // limit: end of the block
  wire [1:0] block_m1 = ~(x[1:0] &{2{&x[3:2]}});
  wire [1:0] limit_m1 = (block_m1 < most_m1) ? block_m1 : most_m1;
  wire line_end = few && rest[1:0] <= block_m1 && rest[1:0] <= most_m1;
  wire [9:0] rest_next = line_end ? width_m1 : rest - {8'd0, limit_m1} - 10'd1;
  wire [6:0] x_next = {1'b0, x} + {5'd0, limit_m1} + 7'd1;
  wire map_end = line_end && line_left == 9'd0;
  // the next pixel is in another row
  wire row_on = line_end || x_next[6];

  // the step completes the pixel; the step completes the row with the last line of its channels
  wire pixel = !planes || fourth;
  wire chan_last = chan_left == {CHAN{1'b0}};
  wire [14:0] from_row = (planes && fourth && !map_end) ? first_row : row;
  wire [14:0] further = pixel ? {14'd0, row_on} : {1'b0, apart & {14{sub_last}}};
  wire [14:0] row_next = from_row + further;

  // ---- bands: lines of the first one - 1, of the present one - 1, of the next one - 1; lines from the first
  // one of the band to the first one of the last band; the first group of channels is walked, last row of
  // its lines in the band
  wire [8:0] first_lines, lines, next_lines, below;
  wire first;
  wire [14:0] first_end;
  generate
    if (BANDS != 0) begin : g_bands
      wire [3:0] line_mask = band - 4'd1;
      wire [8:0] mask = {{6{line_mask[3]}}, line_mask[2:0]};
      reg [8:0] height, lines_below;
      reg first_group;
      reg [14:0] last_row;
      wire [8:0] below_next = lines_below - {5'd0, band};
      assign first_lines = (band == 4'd0) ? height_m1 : mask;
      assign next_lines = mask & (height_m1 | {9{below_next != 9'd0}});
      assign {lines, below} = {height, lines_below};
      assign {first, first_end} = {first_group, last_row};
      always @(posedge clk) begin
        height <= setup ? first_lines : (next && band_end) ? next_lines : height;
        lines_below <= setup ? height_m1 & ~mask : (next && band_end) ? below_next : lines_below;
        first_group <= setup || ((next && map_end) ? chan_last || (first && !sub_last) : first);
        last_row <= first ? row : last_row;
      end
      if (PLANES != 0) begin : g_illegal
        ILLEGAL_PLANES_IN_BANDS u_illegal ();
      end
    end else begin : g_whole
      assign {first_lines, lines, next_lines} = {3{height_m1}};
      assign {below, first, first_end} = {9'd0, 1'b1, 15'd0};
      wire unused_band = &{1'b0, band, below, first, first_end};
    end
  endgenerate
  wire bottom = below == 9'd0;
  // sharing of a row, or the band, ends with the channel; another row than the one below follows, that row
  wire row_last = sub_last || (BANDS != 0 && chan_last);
  wire jump = (BANDS != 0) ? !(chan_last && first) : !planes && !sub_last;
  wire [14:0] next_group = first_row + {1'b0, apart};
  wire [14:0] jump_row = (BANDS == 0 || !row_last) ? first_row : chan_last ? first_end + 15'd1 : next_group;
  wire jumps = map_end && jump;

  wire [5:0] place = quarter ? {sub, x[3:0]} : half ? {sub[0], x[4:0]} : x;
  assign block = {row, place[5:4]};
  assign at = x[3:0];
  assign count_m1 = line_end ? rest[1:0] : limit_m1;
  assign full = block_m1 >= most_m1 && (!few || rest[1:0] >= most_m1);
  assign chan_end = map_end && pixel;
  assign band_end = chan_end && chan_last;
  assign last = band_end && bottom;

  always @(posedge clk) begin
    setup <= start;
  end

  always @(posedge clk) begin
    if (setup || next) row <= setup ? first_row : jumps ? jump_row : row_next;
    if (start || (next && (planes ? fourth : map_end && row_last))) begin
      first_row <= start ? base_row : jumps ? jump_row : row_next;
    end
  end

  always @(posedge clk) begin
    if (setup) begin
      sub       <= 2'd0;
      x         <= 6'd0;
      rest      <= width_m1;
      few       <= width_m1[9:2] == 8'd0;
      line_left <= first_lines;
      chan_left <= chans_m1;
    end else if (next) begin
      if (planes || map_end) sub <= (!planes && row_last) ? 2'd0 : sub + 2'd1;
      if (pixel) begin
        x    <= line_end ? 6'd0 : x_next[5:0];
        rest <= rest_next;
        few  <= rest_next[9:2] == 8'd0;
        if (line_end) line_left <= band_end ? next_lines : map_end ? lines : line_left - 9'd1;
        if (map_end) chan_left <= chan_last ? chans_m1 : chan_left - {{(CHAN - 1) {1'b0}}, 1'b1};
      end
    end
  end

  wire unused = &{1'b0, place[3:0], next_group};

`ifdef FORMAL_byte_walk
  `include "byte_walk_props.vh"
`endif

endmodule

`resetall
