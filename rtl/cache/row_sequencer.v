// SPDX-License-Identifier: Apache-2.0
//
// row_sequencer: walks through a feature map in the AI RAM in c, y, x order, row by row.
//
// Layout (docs/kpu.md section 2.2): rows of 64 bytes; width <= 16: four channels share a row, 16
// bytes each; width <= 32: two channels, 32 bytes each; wider: a line takes ceil(width / 64) rows
// of one channel. A step is the piece of one line of one channel that lies in one row.
// Handshake: start loads a map; row, lane, len, last describe the present step; next goes on.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module row_sequencer (
    input  wire        clk,
    // start with a new map: first row, channels - 1, height - 1, width - 1
    input  wire        start,
    input  wire [14:0] base_row,
    input  wire [ 9:0] chans_m1,
    input  wire [ 8:0] height_m1,
    input  wire [ 9:0] width_m1,
    // go to the next step
    input  wire        next,
    // present step: row, first byte in it in units of 16, number of bytes (1..64), last of the map
    output reg  [14:0] row,
    output reg  [ 1:0] lane,
    output wire [ 6:0] len,
    output wire        last
);

  reg  [14:0] group_row;
  reg  [ 9:0] chan_left;
  reg  [ 8:0] height;
  reg  [ 8:0] line_left;
  reg  [ 9:0] width;
  // bytes of the present line from this step on, minus one
  reg  [ 9:0] rest;

  wire        quarter = (width[9:4] == 6'd0);
  wire        half = (width[9:5] == 5'd0);
  wire        line_end = (rest[9:6] == 4'd0);
  wire        chan_end = line_end && (line_left == 9'd0);
  // lane of the next channel; zero: it starts a new group of channels
  wire [ 1:0] lane_next = quarter ? lane + 2'd1 : half ? lane + 2'd2 : 2'd0;
  wire        same_group = (lane_next != 2'd0);

  assign len  = line_end ? {1'b0, rest[5:0]} + 7'd1 : 7'd64;
  assign last = chan_end && (chan_left == 10'd0);

  always @(posedge clk) begin
    if (start) begin
      row <= base_row;
      group_row <= base_row;
      lane <= 2'd0;
      chan_left <= chans_m1;
      height <= height_m1;
      line_left <= height_m1;
      width <= width_m1;
      rest <= width_m1;
    end else if (next) begin
      rest <= line_end ? width : rest - 10'd64;
      row  <= (chan_end && same_group) ? group_row : row + 15'd1;
      if (line_end) begin
        line_left <= chan_end ? height : line_left - 9'd1;
      end
      if (chan_end) begin
        chan_left <= chan_left - 10'd1;
        lane <= lane_next;
        group_row <= same_group ? group_row : row + 15'd1;
      end
    end
  end

endmodule

`resetall
