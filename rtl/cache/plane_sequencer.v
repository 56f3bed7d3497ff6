// SPDX-License-Identifier: Apache-2.0
//
// plane_sequencer: walks a map whose channels are four planes each, in the byte order of its 32-bit sums.
//
// How it works: as row_sequencer, but a step is a quarter of a word, read from each of the four planes of
// its channel before the next quarter. Planes are channels of the layout: four share a row, two do, or
// each has its own rows, `apart` rows from one group to the next. The rows of a channel's planes are
// consecutive, so the next channel begins behind the last row of the fourth plane.
// Handshake: start loads a map; the outputs describe the present step; next advances.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module plane_sequencer #(
    // bytes of a word: 16, 32 or 64
    parameter PATH = 64,
    // derived, not to be set
    parameter PB   = $clog2(PATH)
) (
    // clock
    input  wire           clk,
    // start of a new map: first row, channels - 1, height - 1, width - 1, rows of a channel group
    input  wire           start,
    input  wire [   14:0] base_row,
    input  wire [    9:0] chans_m1,
    input  wire [    8:0] height_m1,
    input  wire [    9:0] width_m1,
    input  wire [   13:0] apart,
    // advance to the next step
    input  wire           next,
    // present step: word, quarter of it, plane, bytes of all four planes - 1, last of its channel, of the
    // map
    output wire [20-PB:0] word,
    output wire [    1:0] piece,
    output reg  [    1:0] plane,
    output wire [ PB-1:0] size_m1,
    output wire           chan_end,
    output wire           last
);

  localparam QB = PB - 2;  // log2 of the pixels of a step
  localparam [9:0] STEP = PATH[9:0] >> 2;

  // row of the present step; of its line in plane 0; offset in the row; rows between planes
  reg [14:0] row;
  reg [14:0] row_0;
  reg [5:0] x;
  reg [14:0] between;
  reg [9:0] chan_left;
  reg [8:0] height;
  reg [8:0] line_left;
  reg [9:0] width;
  // remaining pixels of the present line, minus one
  reg [9:0] rest;

  wire by_four = width[9:4] == 6'd0;  // planes in a row
  wire by_two = width[9:5] == 5'd0;
  wire line_end = rest[9:QB] == {(10 - QB) {1'b0}};
  wire map_end = line_end && line_left == 9'd0;
  wire fourth = plane == 2'd3;
  wire [5:0] x_next = x + STEP[5:0];
  wire [14:0] row_on = row_0 + {14'd0, line_end || x_next == 6'd0};
  wire [5:0] at = by_four ? {plane, x[3:0]} : by_two ? {plane[0], x[4:0]} : x;
  wire [20:0] place = {row, at};

  assign word = place[20:PB];
  assign piece = at[PB-1:QB];
  assign size_m1 = {line_end ? rest[QB-1:0] : {QB{1'b1}}, 2'b11};
  assign chan_end = map_end && fourth;
  assign last = chan_end && chan_left == 10'd0;

  always @(posedge clk) begin
    if (start) begin
      row       <= base_row;
      row_0     <= base_row;
      x         <= 6'd0;
      plane     <= 2'd0;
      between   <= {1'b0, apart};
      chan_left <= chans_m1;
      height    <= height_m1;
      line_left <= height_m1;
      width     <= width_m1;
      rest      <= width_m1;
    end else if (next) begin
      plane <= plane + 2'd1;
      if (!fourth) begin
        if (!by_four && (!by_two || plane[0])) row <= row + between;
      end else begin
        row   <= map_end ? row + 15'd1 : row_on;
        row_0 <= map_end ? row + 15'd1 : row_on;
        x     <= line_end ? 6'd0 : x_next;
        rest  <= line_end ? width : rest - STEP;
        if (line_end) line_left <= map_end ? height : line_left - 9'd1;
        if (map_end) chan_left <= chan_left - 10'd1;
      end
    end
  end

  generate
    if (PATH != 16 && PATH != 32 && PATH != 64) begin : g_illegal
      ILLEGAL_PATH_16_32_OR_64 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, place, at};

endmodule

`resetall
