// SPDX-License-Identifier: Apache-2.0
//
// fill_stripe: works out what the next stripe needs of the input, while the one before it is read.
//
// How it works: stripe_iter walks the stripes of the computed grid; in three steps a stripe becomes the
// lines and words of the map that its windows meet, and the row of the AI RAM where they begin.
// Depthwise rows and fully connected layers have one stripe, the whole map. A flat layer's stripe is
// 64 pixels from anywhere in a line on, and ends at the latest where the next one begins.
// Handshake: ready once the stripe is there, and its lines are in the AI RAM; taken takes it, and the
// next one is worked out.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_stripe #(
    // bytes of a word: 8, 16, 32 or 64; 1: maps of 1x1 layers may be one line
    parameter TILE_W = 64,
    parameter FLAT   = 0,
    // derived, not to be set: log2 of it, width of a word of a line (1024 bytes at most)
    parameter TB     = $clog2(TILE_W),
    parameter NB     = 10 - TB
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; one stripe for the whole map, windows of 3x3
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  whole,
    input  wire                  k3_taps,
    // lines of the map that are in the AI RAM
    input  wire [           9:0] lines_there,
    // the stripe is taken, it is there
    input  wire                  taken,
    output wire                  ready,
    // the word before the first that gives bytes is read too; last stripe; a line above the first one
    output reg                   pre,
    output reg                   last,
    output reg                   up,
    // first and last line of the map, lines of the stripe
    output reg  [           9:0] first_y,
    output reg  [           9:0] last_y,
    output reg  [           2:0] lines,
    // words of a line: the first, the last, how many give bytes, less one; byte that comes first
    output reg  [        NB-1:0] first_s,
    output reg  [        NB-1:0] last_s,
    output reg  [        NB-1:0] k_last,
    output reg  [        TB-1:0] shift,
    // flat: column where the stripe begins, its pixels
    output wire [           3:0] flat_x,
    output wire [           6:0] flat_pixels,
    // row of the AI RAM where the first line begins
    output wire [          14:0] row
);

  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [1:0] stl = desc[`DESC_STL];
  wire ph = desc[`DESC_PH];
  wire [4:0] irl = desc[`DESC_IRL];
  wire overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;

  wire stripe_last_x, stripe_last_y;
  wire [9:0] stripe_gx;
  wire [8:0] stripe_gy;
  wire [6:0] stripe_width;
  wire [2:0] stripe_lines;
  stripe_iter u_stripe (
      .clk    (clk),
      .rst    (rst),
      .restart(start || (taken && last)),
      .next   (taken && !last),
      .kw     (desc[`DESC_KW]),
      .kh     (desc[`DESC_KH]),
      .swl    (desc[`DESC_SWL]),
      .overlap(overlap),
      .gx     (stripe_gx),
      .gy     (stripe_gy),
      .width  (stripe_width),
      .lines  (stripe_lines),
      .last_x (stripe_last_x),
      .last_y (stripe_last_y)
  );

  // three steps, the last one for the address of a line below the first
  reg [1:0] steps;
  always @(posedge clk) begin
    if (rst || start || taken) steps <= 2'd0;
    else steps <= (steps == 2'd3) ? 2'd3 : steps + 2'd1;
  end

  reg  [9:0] p_gx;
  reg  [8:0] p_gy;
  reg  [6:0] p_reach;  // width - 1
  reg  [2:0] p_lines;
  reg        p_last;
  // flat: the line where it begins and the one where the next begins
  wire       flat;
  wire [8:0] flat_y, flat_reach;
  generate
    if (FLAT != 0) begin : g_flat
      wire [3:0] x;
      reg [3:0] p_x, q_x;
      reg [6:0] p_pixels, q_pixels;
      reg  [8:0] p_reach_y;
      wire [8:0] y_next;
      flat_origin u_origin (
          .clk    (clk),
          .restart(start || (taken && last)),
          .next   (taken && !last),
          .width  (n_w[4:0]),
          .x      (x),
          .y      (flat_y),
          .y_next (y_next)
      );
      always @(posedge clk) begin
        {p_x, q_x} <= {x, p_x};
        {p_pixels, q_pixels} <= {stripe_width, p_pixels};
        p_reach_y <= y_next;
      end
      assign flat = desc[`DESC_FLAT];
      assign flat_x = q_x;
      assign flat_pixels = q_pixels;
      assign flat_reach = p_reach_y;
    end else begin : g_lines
      assign {flat, flat_y, flat_x, flat_pixels, flat_reach} = 30'd0;
    end
  endgenerate

  always @(posedge clk) begin
    p_gx    <= flat ? 10'd0 : stripe_gx;
    p_gy    <= flat ? flat_y : stripe_gy;
    p_reach <= flat ? 7'd0 : stripe_width - 7'd1;
    p_lines <= stripe_lines;
    p_last  <= whole || (stripe_last_x && stripe_last_y);
  end

  wire [9:0] y_top = {1'b0, p_gy} << stl;
  wire [9:0] y_end = ({1'b0, p_gy} + {7'd0, p_lines} - 10'd1) << stl;
  wire [9:0] x_base = p_gx << stl;
  wire [8:0] x_reach = {2'd0, p_reach} << stl;  // at most 63 * 4
  wire [10:0] x_lo = {1'b0, x_base} + {10'd0, ph};
  wire up_tap = k3_taps && y_top != 10'd0;
  wire left_tap = k3_taps && x_lo != 11'd0;
  wire [10:0] x_first = x_lo - {10'd0, left_tap};
  wire [10:0] x_next = x_lo + {2'd0, x_reach} + {10'd0, k3_taps};
  wire [10:0] x_last = (x_next >= n_w) ? n_w - 11'd1 : x_next;

  always @(posedge clk) begin
    first_y <= whole ? 10'd0 : y_top - {9'd0, up_tap};
    last_y  <= (whole || (flat && p_last)) ? n_h - 10'd1 : flat ? {1'b0, flat_reach} : y_end + {9'd0, k3_taps && y_end != n_h - 10'd1};
    up <= up_tap;
    lines <= p_lines;
    last <= p_last;
    // the words before the first that gives bytes, the last that does, the last that is read
    pre <= !whole && x_first[10:TB] != {1'b0, x_base[9:TB]};
    first_s <= whole ? {NB{1'b0}} : x_first[9:TB];
    last_s <= x_last[9:TB];
    k_last <= {1'b0, x_reach[8:TB]};
    shift <= whole ? {TB{1'b0}} : x_base[TB-1:0] | {{(TB - 1) {1'b0}}, ph};
  end

  // rows above the first line; adders, for a multiplier would take one from the array
  reg  [14:0] rows;
  wire [14:0] y_15 = {5'd0, first_y};
  wire [14:0] rows_low = (irl[0] ? y_15 : 15'd0) + (irl[1] ? y_15 << 1 : 15'd0);
  wire [14:0] rows_high = (irl[2] ? y_15 << 2 : 15'd0) + (irl[3] ? y_15 << 3 : 15'd0);
  always @(posedge clk) rows <= rows_low + rows_high;
  assign ready = (steps == 2'd3 || (steps == 2'd2 && first_y == 10'd0)) && last_y < lines_there;
  assign row   = desc[`DESC_SRC] + ((steps == 2'd3) ? rows : 15'd0);

  wire unused = &{1'b0, desc, x_first, x_last, irl};

`ifdef FORMAL_fill_stripe
  `include "fill_stripe_props.vh"
`endif

endmodule

`resetall
