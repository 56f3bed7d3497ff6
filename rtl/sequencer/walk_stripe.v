// SPDX-License-Identifier: Apache-2.0
//
// walk_stripe: the current stripe: its origin, its lines and their width.
//
// How it works: stripe_iter is one ahead, so the next stripe is available when the current one ends. The
// stripe of a flat layer begins within a line of the map, which flat_origin tracks; its origin is a position
// in the map. After the last stripe comes the first one, for the next block of groups.
// Handshake: load advances to the next stripe; the first load comes a cycle after start.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module walk_stripe #(
    // 1: maps of 1x1 layers may be one line
    parameter FLAT_MAPS = 0
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; advance to the next stripe
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  load,
    // origin; pixels per line, lines, both also less one; last stripe
    output wire [           9:0] gx,
    output wire [           8:0] gy,
    output reg  [           6:0] width,
    output reg  [           2:0] lines,
    output reg  [           5:0] width_m1,
    output reg  [           1:0] lines_m1,
    output reg                   last
);

  // registered fields of the layer: the first load comes a cycle after the start
  reg overlap;
  reg [10:0] kw;
  reg [9:0] kh;
  reg [2:0] swl;
  always @(posedge clk) begin
    overlap <= desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
    {kw, kh, swl} <= {desc[`DESC_KW], desc[`DESC_KH], desc[`DESC_SWL]};
  end
  wire [9:0] next_gx;
  wire [8:0] next_gy;
  wire [6:0] next_width;
  wire [2:0] next_lines;
  wire last_x, last_y;
  wire next_last = last_x && last_y;
  wire restart = start || (load && next_last);
  wire further = load && !next_last;
  stripe_iter u_iter (
      .clk    (clk),
      .rst    (rst),
      .restart(restart),
      .next   (further),
      .kw     (kw),
      .kh     (kh),
      .swl    (swl),
      .overlap(overlap),
      .gx     (next_gx),
      .gy     (next_gy),
      .width  (next_width),
      .lines  (next_lines),
      .last_x (last_x),
      .last_y (last_y)
  );

  reg [9:0] own_gx;
  reg [8:0] own_gy;
  always @(posedge clk) begin
    if (load) begin
      own_gx   <= next_gx;
      own_gy   <= next_gy;
      width    <= next_width;
      lines    <= next_lines;
      width_m1 <= next_width[5:0] - 6'd1;
      lines_m1 <= next_lines[1:0] - 2'd1;
      last     <= next_last;
    end
  end

  generate
    if (FLAT_MAPS != 0) begin : g_flat
      wire [10:0] map_width = desc[`DESC_W];
      wire [ 3:0] next_x;
      wire [8:0] next_y, y_after;
      reg [3:0] own_x;
      reg [8:0] own_y;
      flat_origin u_origin (
          .clk    (clk),
          .restart(restart),
          .next   (further),
          .width  (map_width[4:0]),
          .x      (next_x),
          .y      (next_y),
          .y_next (y_after)
      );
      always @(posedge clk) if (load) {own_x, own_y} <= {next_x, next_y};
      assign gx = desc[`DESC_FLAT] ? {6'd0, own_x} : own_gx;
      assign gy = desc[`DESC_FLAT] ? own_y : own_gy;
      wire unused_y = &{1'b0, y_after, map_width};
    end else begin : g_lines
      assign gx = own_gx;
      assign gy = own_gy;
    end
  endgenerate

  wire unused = &{1'b0, desc};

endmodule

`resetall
