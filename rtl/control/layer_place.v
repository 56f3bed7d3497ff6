// SPDX-License-Identifier: Apache-2.0
//
// layer_place: where the maps of a layer lie in the AI RAM, and whether they may lie there.
//
// How it works: a map takes whole rows from its address on. Refused is a map that ends behind the
// last row, and an output that meets the input: the array reads rows of the input several times
// and in an order of its own, while outputs are written. A layer that reads every row once, in
// order, and writes row r of its output after it has read row r of its input (a depthwise layer
// without a pool) may write to its input's rows or before them: what it overwrites was read. The
// rows of the input of a layer that is marked first are the place of the inference's pixels; touch
// tells whether a later layer's maps meet it. The second map of an element-wise layer has as many rows
// as the first, and the same rules.
// Handshake: in_step, then out_step, each for a cycle in which rows holds the rows of that map; bad
// is valid in the same cycles, touch after the second.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module layer_place #(
    // rows of the AI RAM
    parameter AI_RAM_ROWS = 32768
) (
    // clock and synchronous reset
    input  wire        clk,
    input  wire        rst,
    // a map's rows are there: of the input, of the output
    input  wire        in_step,
    input  wire        out_step,
    input  wire [28:0] rows,
    // layer: addresses, there is a second map, first of its list, reads every row once and in order
    input  wire [14:0] src,
    input  wire        two,
    input  wire [14:0] src2,
    input  wire [14:0] dst,
    input  wire        first,
    input  wire        in_order,
    // the map may not lie there
    output wire        bad,
    // a map meets the place of the inference's pixels
    output reg         touch
);

  localparam [16:0] ROWS_LIMIT = AI_RAM_ROWS[16:0];

  reg [14:0] place_lo;  // rows of the inference's input map, the last one excluded
  reg [15:0] place_hi;
  reg [15:0] in_end, in_end2;  // row behind the layer's input, behind its second map

  // the map of this step: where it begins, the row behind it
  wire [14:0] from = out_step ? dst : src;
  wire [16:0] stop = {2'b00, from} + {1'b0, rows[15:0]};
  wire        long = rows[28:16] != 13'd0 || stop > ROWS_LIMIT;
  wire        meet = {1'b0, dst} < in_end && stop[15:0] > {1'b0, src};
  wire        behind = in_order && dst <= src;

  wire [16:0] stop2 = {2'b00, src2} + {1'b0, rows[15:0]};
  wire        long2 = two && stop2 > ROWS_LIMIT;
  wire        meet2 = two && {1'b0, dst} < in_end2 && stop[15:0] > {1'b0, src2};
  wire        behind2 = in_order && dst <= src2;
  assign bad = (in_step && (long || long2)) ||
      (out_step && (long || (meet && !behind) || (meet2 && !behind2)));

  wire at_place = {1'b0, from} < place_hi && stop[15:0] > {1'b0, place_lo};
  wire at_place2 = two && {1'b0, src2} < place_hi && stop2[15:0] > {1'b0, place_lo};

  always @(posedge clk) begin
    if (rst) begin
      place_lo <= 15'd0;
      place_hi <= 16'd0;
      touch    <= 1'b0;
    end else if (in_step) begin
      place_lo <= first ? src : place_lo;
      place_hi <= first ? stop[15:0] : place_hi;
      touch    <= first || at_place || at_place2;
    end else begin
      touch <= touch || (out_step && at_place);
    end
  end

  always @(posedge clk) begin
    if (in_step) {in_end, in_end2} <= {stop[15:0], stop2[15:0]};
  end

endmodule

`resetall
