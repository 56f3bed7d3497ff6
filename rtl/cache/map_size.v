// SPDX-License-Identifier: Apache-2.0
//
// map_size: bytes of a feature map, height * width * channels, bit by bit.
//
// How it works: one adder forms the height times the width, and that product times the channels, one bit
// of the multiplier per cycle, up to the highest set bit: 22 cycles at most.
// Handshake: start is a pulse; the map must be stable for the next cycles. valid falls with start and
// rises when bytes holds the product, which is stable until the next start.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module map_size (
    // clock, synchronous reset
    input  wire        clk,
    input  wire        rst,
    // the map: channels - 1, height - 1, width - 1
    input  wire        start,
    input  wire [ 9:0] chans_m1,
    input  wire [ 8:0] height_m1,
    input  wire [ 9:0] width_m1,
    // its bytes
    output reg         valid,
    output reg  [23:0] bytes
);

  // next addend, remaining bits of the multiplier, whether they are the channels'
  reg [23:0] part;
  reg [10:0] left;
  reg by_chans;
  wire through = left == 11'd0;

  always @(posedge clk) begin
    if (rst) begin
      valid    <= 1'b1;
      by_chans <= 1'b0;
    end else begin
      valid    <= !start && (valid || (through && by_chans));
      by_chans <= !start && (by_chans || through);
    end
  end

  // the product of the first two factors becomes the second addend
  always @(posedge clk) begin
    part <= start ? {14'd0, {1'b0, height_m1} + 10'd1} : (through && !by_chans) ? bytes : part << 1;
    left <= start ? {1'b0, width_m1} + 11'd1 :
        (through && !by_chans) ? {1'b0, chans_m1} + 11'd1 : left >> 1;
  end

  always @(posedge clk) begin
    if (start || (through && !by_chans)) bytes <= 24'd0;
    else if (left[0]) bytes <= bytes + part;
  end

endmodule

`resetall
