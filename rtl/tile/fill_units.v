// SPDX-License-Identifier: Apache-2.0
//
// fill_units: outer loops of the fill: blocks of groups, passes over a stripe, units of channels.
//
// How it works: a unit is a channel (3x3 and fully connected), the channels that share a word (1x1) or a row
// (depthwise rows). The units of all channels form a pass. If a stripe's input fits the tile buffer one pass
// serves all groups of a block, otherwise the input is read once per group. The stripes of the map are read
// for each block. fill_seq has the inner loops: lines of a unit and words of a line. Of a line read as a
// whole the last word follows from the channels of its unit.
// Handshake: none; unit_end marks the request of the current unit's last word, and the next unit follows at
// the clock edge. start comes a cycle after the layer's, when mode and pitch are registered.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_units #(
    // bytes of a word: 8, 16, 32 or 64; derived, not to be set: their log2
    parameter TILE_WORD = 64,
    parameter TB        = $clog2(TILE_WORD)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor, pitch and mode
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           1:0] ip,
    input  wire                  dwrow_mode,
    input  wire                  chan_mode,
    // end of the unit; the stripe is the map's last one
    input  wire                  unit_end,
    input  wire                  stripe_last,
    // channels per unit; first channel of the unit, as an index in its row; channels from it on; it is the
    // last unit; the next unit is in another row
    output wire [           2:0] unit_size,
    output reg  [           1:0] unit,
    output reg  [          13:0] chans_left,
    output reg                   unit_last,
    output wire                  group_end,
    // last column of the map; last word of a line read as a whole, of the unit after this clock edge
    input  wire [          10:0] right,
    output wire [        9-TB:0] whole_last,
    // last pass of the stripe; last block of the layer
    output wire                  pass_last,
    output wire                  block_last
);

  wire [13:0] n_c = desc[`DESC_C];
  wire [10:0] n_b = desc[`DESC_B];
  wire [ 1:0] gl = {ip == 2'd0, ip == 2'd1};  // log2 of the channels in a row
  wire [ 1:0] row_mask = {gl[1], gl[1] || gl[0]};
  wire [ 1:0] gwl;  // log2 of the channels that share a word
  generate
    if (TB == 6) begin : g_share_64
      assign gwl = gl;
    end else if (TB == 5) begin : g_share_32
      assign gwl = {1'b0, ip == 2'd0};
    end else begin : g_alone
      assign gwl = 2'd0;
    end
  endgenerate

  // ---- units: the size of one
  wire [1:0] gu = dwrow_mode ? gl : chan_mode ? gwl : 2'd0;  // log2 of its channels
  assign unit_size = {gu[1], gu == 2'd1, gu == 2'd0};
  wire [ 1:0] unit_next = (unit + unit_size[1:0]) & row_mask;
  wire [13:0] chans_after = chans_left - {11'd0, unit_size};
  assign group_end = unit_next == 2'd0;
  // the last unit is detected one unit ahead
  wire [3:0] two_units = {unit_size, 1'b0};
  wire only_unit = n_c[13:3] == 11'd0 && n_c[2:0] <= unit_size;
  wire next_last = unit_last ? only_unit : chans_left[13:4] == 10'd0 && chans_left[3:0] <= two_units;

  // Words of a line read as a whole, less one: up to the end of the last channel of a full unit, of the last
  // unit. Where several channels share a row, a line is shorter than their pitch.
  wire [1:0] full_less = unit_size[1:0] - 2'd1;  // four channels: 0 - 1 wraps to 3
  wire [1:0] tail_less = (n_c[1:0] - 2'd1) & full_less;
  wire [10:0] full_right = right | ({9'd0, full_less} << (3'd4 + {1'b0, ip}));
  wire [10:0] tail_right = right | ({9'd0, tail_less} << (3'd4 + {1'b0, ip}));
  reg [9-TB:0] full_last, tail_last;
  always @(posedge clk) begin
    full_last <= full_right[9:TB];
    tail_last <= tail_right[9:TB];
  end
  assign whole_last = (unit_end ? next_last : unit_last) ? tail_last : full_last;

  // ---- groups and passes
  reg [10:0] groups_left;  // groups from this block on
  reg [10:0] pass;  // index, from 1
  wire [11:0] groups_after = {1'b0, groups_left} - {1'b0, n_b};
  // (the first unit of a block follows the last unit of the previous block by at least three cycles)
  reg last_groups;
  always @(posedge clk) last_groups <= groups_after[11] || groups_after == 12'd0;
  assign pass_last  = desc[`DESC_HELD] || dwrow_mode || pass == (last_groups ? groups_left : n_b);
  assign block_last = dwrow_mode || last_groups;

  wire pass_end = unit_end && unit_last;
  always @(posedge clk) begin
    if (rst || start) begin
      groups_left <= desc[`DESC_G];
      pass <= 11'd1;
      unit <= 2'd0;
      chans_left <= n_c;
      unit_last <= only_unit;
    end else begin
      groups_left <= (pass_end && pass_last && stripe_last) ? groups_after[10:0] : groups_left;
      pass <= !pass_end ? pass : pass_last ? 11'd1 : pass + 11'd1;
      if (unit_end) begin
        unit <= unit_last ? 2'd0 : unit_next;
        chans_left <= unit_last ? n_c : chans_after;
        unit_last <= next_last;
      end
    end
  end

  wire unused = &{1'b0, desc, full_right, tail_right};

endmodule

`resetall
