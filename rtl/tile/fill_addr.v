// SPDX-License-Identifier: Apache-2.0
//
// fill_addr: AI RAM row in which the current line begins.
//
// How it works: registers hold the first rows of the stripe, of the group of channels in a row, and of the
// line. At the end of a line fill_seq continues with the next line, with the next group of channels, or with
// the stripe's first line again. Of two maps, each line of the first is followed by that of the second, at a
// fixed distance in rows.
// Handshake: none; the loops that fill_seq ends in a cycle update the registers at the clock edge.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fill_addr (
    // clock
    input  wire        clk,
    // a stripe begins: row of its first line
    input  wire        load,
    input  wire [14:0] first,
    // end of a line, and whether it is the last of a channel; of the last channel; of a group of channels
    input  wire        line_end,
    input  wire        chan_end,
    input  wire        pass_end,
    input  wire        group_end,
    // two maps: end of the first map's line, before that of the second
    input  wire        turn,
    // layer: first rows of the maps, rows per group of channels, rows per line
    input  wire [14:0] src,
    input  wire [14:0] src2,
    input  wire [13:0] group_rows,
    input  wire [ 4:0] line_rows,
    // log2 of the lines to advance; stay on the same line; advance by other rows
    input  wire [ 1:0] skip_l,
    input  wire        stay,
    input  wire        hop,
    input  wire [14:0] hop_rows,
    // first row of the current line
    output reg  [14:0] row
);

  reg [14:0] stripe_row, group_row, line_row;  // in the first map

  wire [14:0] further = stay ? 15'd0 : hop ? hop_rows : {10'd0, line_rows} << skip_l;
  wire [14:0] next_line = line_row + further;
  wire [14:0] next_group = group_row + {1'b0, group_rows};
  wire [14:0] next_chan = pass_end ? stripe_row : group_end ? next_group : group_row;
  wire [14:0] next = load ? first : chan_end ? next_chan : next_line;
  wire [14:0] second = line_row + (src2 - src);

  always @(posedge clk) begin
    if (load) stripe_row <= first;
    if (load || (line_end && chan_end && (pass_end || group_end))) group_row <= next;
    if (load || line_end) line_row <= next;
    if (load || line_end || turn) row <= turn ? second : next;
  end

`ifdef FORMAL_fill_addr
  `include "fill_addr_props.vh"
`endif

endmodule

`resetall
