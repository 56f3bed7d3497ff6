// SPDX-License-Identifier: Apache-2.0
//
// layer_place: where the maps of a layer lie in the AI RAM, and whether they may lie there.
//
// How it works: a map takes whole rows from its address on. Its channel groups follow each other,
// or lie as many rows apart as words 7 and 8 say, which may not be fewer than they have. Refused is
// a map that ends behind the last row, and an output that meets the input: the array reads rows of
// the input several times and in an order of its own, while outputs are written. A layer that reads
// every row once, in order, and writes row r of its output after it has read row r of its input (a
// depthwise layer without a pool) may write to its input's rows or before them, with groups no
// farther apart: what it overwrites was read. The rows of the input of a layer that is marked first
// are the place of the inference's pixels; touch tells whether a later layer's maps meet it. The
// second map of an element-wise layer has as many rows as the first, and the same rules.
// Handshake: the bits of step from the lowest to the highest, each for a cycle. product holds the rows of
// a channel group with the first and third, when group_rows is valid, and those of all groups
// but the last one with the others, when bad is valid; touch is valid after the last one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module layer_place #(
    // rows of the AI RAM
    parameter AI_RAM_ROWS = 32768
) (
    // clock and synchronous reset
    input  wire        clk,
    input  wire        rst,
    // words 8 and 7 come; distances of theirs are used, of the output's, the input's channel groups
    input  wire [ 1:0] words,
    input  wire [63:0] w_data,
    input  wire [ 1:0] apart,
    // steps, of the output and the input: rows of a map, of a channel group; the product that is there,
    // rows of the groups in front of the last one, or of a group; log2 of the groups of an output channel
    input  wire [ 3:0] step,
    input  wire [28:0] product,
    input  wire [ 1:0] planes,
    // rows from one group, or channel of several, to the next: now; and from then on
    output wire [17:0] group_rows,
    output reg  [13:0] ics,
    output reg  [13:0] ocs,
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

  wire in_group, in_step, out_group, out_step, in_apart, out_apart;
  assign {out_step, out_group, in_step, in_group} = step;
  assign {out_apart, in_apart} = apart;
  reg [14:0] f_ics, f_ocs;
  reg  [15:0] own;  // rows of a channel group; with planes of all groups of a channel
  wire [13:0] ics_now = in_apart ? f_ics[13:0] : product[13:0];
  wire [13:0] ocs_now = out_apart ? f_ocs[13:0] : product[13:0];
  assign group_rows = out_group ? {4'd0, ocs_now} << planes : {4'd0, ics_now};
  always @(posedge clk) begin
    f_ics <= words[0] ? w_data[`ARG_CHANNEL_SWITCH_ADDR] : f_ics;
    f_ocs <= words[1] ? w_data[`ARG_WB_CHANNEL_SWITCH_ADDR] : f_ocs;
    ics   <= in_group ? ics_now : ics;
    ocs   <= out_group ? ocs_now : ocs;
    own   <= in_group ? {2'b00, product[13:0]} : out_group ? {2'b00, product[13:0]} << planes : own;
  end
  wire near = out_step ? out_apart && (f_ocs[14] || {2'b00, f_ocs[13:0]} < own) :
      in_apart && (f_ics[14] || {2'b00, f_ics[13:0]} < own);
  wire [28:0] rows = product + {13'd0, own};

  // the map of this step: where it begins, the row behind it
  wire [14:0] from = out_step ? dst : src;
  wire [16:0] stop = {2'b00, from} + {1'b0, rows[15:0]};
  wire long = rows[28:16] != 13'd0 || stop > ROWS_LIMIT;
  wire meet = {1'b0, dst} < in_end && stop[15:0] > {1'b0, src};
  wire ordered = in_order && ocs <= ics;
  wire behind = ordered && dst <= src;

  wire [16:0] stop2 = {2'b00, src2} + {1'b0, rows[15:0]};
  wire long2 = two && stop2 > ROWS_LIMIT;
  wire meet2 = two && {1'b0, dst} < in_end2 && stop[15:0] > {1'b0, src2};
  wire behind2 = ordered && dst <= src2;
  assign bad = (in_step && (near || long || long2)) ||
      (out_step && (near || long || (meet && !behind) || (meet2 && !behind2)));

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

  wire unused = &{1'b0, w_data};

endmodule

`resetall
