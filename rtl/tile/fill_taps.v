// SPDX-License-Identifier: Apache-2.0
//
// fill_taps: selects the tap rows that the current line feeds, and the line of the stripe for each.
//
// How it works: tap row ky of stripe line l sees map line stride * (gy + l) + ky - 1. rel is the index of the
// current line, counted from the one above the stripe's first; so it feeds tap row ky if rel - ky is the
// stride times a line of the stripe. With dilation rel is four times the tap row plus the line of the stripe:
// each line is read for one tap row. A depthwise row feeds the rows below, at and above it. Of an
// element-wise layer's two maps the first feeds the middle tap row, the second the last one.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fill_taps (
    // layer: dilated windows, element-wise, depthwise rows; log2 of the stride
    input  wire       far,
    input  wire       ew,
    input  wire       dwrow,
    input  wire [1:0] stl,
    // stripe: lines; current line: index, first or last of the map, in the second map
    input  wire [2:0] lines,
    input  wire [3:0] rel,
    input  wire       first,
    input  wire       last,
    input  wire       map2,
    // tap rows it feeds, line of the stripe for each, 2 bits
    output wire [2:0] ky_on,
    output wire [5:0] slots
);

  wire [2:0] feeds;
  genvar ky;
  generate
    for (ky = 0; ky < 3; ky = ky + 1) begin : g_row
      localparam [4:0] KY = ky;
      wire [4:0] below = {1'b0, rel} - KY;
      wire [3:0] line = stl[1] ? {2'd0, below[3:2]} : stl[0] ? {1'b0, below[3:1]} : below[3:0];
      wire met = (stl == 2'd0 || !below[0]) && (!stl[1] || !below[1]);
      assign feeds[ky] = far ? rel[3:2] == KY[1:0] : !below[4] && met && line < {1'b0, lines};
      assign slots[2*ky+:2] = far ? rel[1:0] : line[1:0];
    end
  endgenerate

  wire [2:0] maps = {map2, !map2, 1'b0} & {3{dwrow || feeds[1]}};
  assign ky_on = ew ? maps : dwrow ? {!first, 1'b1, !last} : feeds;

endmodule

`resetall
