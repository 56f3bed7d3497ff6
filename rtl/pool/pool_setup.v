// SPDX-License-Identifier: Apache-2.0
//
// pool_setup: computes the layer constants of a pooling task at its start.
//
// How it works: products are computed in parallel, one bit of the second factor per cycle: pixels of the
// map for a whole-map window, otherwise the column of the last window, whose second factor has five bits
// instead of ten; pixels of a window, and rows of the AI RAM. Bytes are mapped so that all kinds compute
// a maximum or a sum of numbers from 0 to 255: turn is XORed to the bytes read and to the result; it
// complements for a minimum, and moves -128 to 0 for signed bytes.
// Handshake: start with a descriptor that is held; ready is high from the end of the computation until
// the next start.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_setup #(
    // columns of a piece
    parameter COLS = 16
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    output wire                  ready,
    // the window is the whole map; sums instead of maxima; only pixels of the map count
    output reg                   all,
    output reg                   sums,
    output reg                   map_only,
    // negative bytes count as 0; XOR mask of the bytes; value outside the map
    output reg                   gate,
    output reg  [           7:0] turn,
    output reg  [           7:0] outside,
    // lines of a window - 1, columns that are combined - 1, columns from one window to the next
    output reg  [           8:0] kh_m1,
    output reg  [           3:0] kw_m1,
    output reg  [           4:0] sx,
    // rows of the AI RAM per step between windows, of the lines above the map
    output reg  [           8:0] step_rows,
    output reg  [           6:0] top_rows,
    // column where the first and the last window end
    output reg  [           3:0] first_end,
    output reg  [          10:0] last_end,
    // divisor of all windows: pixels of one, 1 for a maximum
    output reg  [          18:0] pixels,
    // the divisor exceeds 256 pixels
    output reg                   of_many
);

  localparam [3:0] STEPS = 4'd12;
  localparam integer B = $clog2(COLS);
  localparam [3:0] LAST_COLUMN = COLS[3:0] - 4'd1;

  wire [`PTASK_BITS-1:0] task_arg = desc[`DESC_PTASK];
  wire [2:0] kind = task_arg[`PTASK_KIND];
  wire [3:0] kern_y = task_arg[`PTASK_KH_M1];
  wire [3:0] kern_x = task_arg[`PTASK_KW_M1];
  wire [3:0] step_y = task_arg[`PTASK_SY_M1];
  wire [3:0] step_x = task_arg[`PTASK_SX_M1];
  wire [2:0] pad_y = task_arg[`PTASK_TOP];
  wire [2:0] pad_x = task_arg[`PTASK_LEFT];
  wire [9:0] lines_m1 = desc[`DESC_H] - 10'd1;
  wire [10:0] columns = desc[`DESC_W];
  wire [10:0] columns_m1 = columns - 11'd1;
  wire [10:0] out_m1 = desc[`DESC_OW] - 11'd1;
  wire wide = columns_m1[10:B] != {(11 - B) {1'b0}};

  wire whole = task_arg[`PTASK_ALL];
  wire sgn = desc[`DESC_SIN] || desc[`DESC_SOUT];
  wire [4:0] columns_on = {1'b0, step_x} + 5'd1;

  wire [4:0] lines_on = {1'b0, step_y} + 5'd1;
  wire [4:0] irl = desc[`DESC_IRL];
  wire [7:0] pad = desc[`DESC_PAD];
  wire [7:0] pad_seen = (gate && pad[7]) ? 8'd0 : pad;

  // ---- products, a bit of the second factor per cycle; for a whole map only the first one matters
  reg [3:0] steps;
  reg [18:0] product;
  reg [9:0] factor;
  reg [8:0] area;  // pixels of a window
  reg [4:0] kern_bits, irl_bits;
  assign ready = steps == STEPS;
  always @(posedge clk) begin
    if (rst) steps <= 4'd0;
    else if (start) steps <= whole ? 4'd0 : 4'd5;
    else steps <= ready ? steps : steps + 4'd1;
  end
  always @(posedge clk) begin
    if (start) begin
      product <= 19'd0;
      factor <= whole ? desc[`DESC_H] : {columns_on, 5'd0};
      {area, step_rows, top_rows} <= 25'd0;
      {kern_bits, irl_bits} <= {{1'b0, kern_x} + 5'd1, irl};
    end else if (steps < 4'd10) begin
      product <= {product[17:0], 1'b0} + (factor[9] ? {8'd0, all ? columns : out_m1} : 19'd0);
      factor <= {factor[8:0], 1'b0};
      area <= {area[7:0], 1'b0} + (kern_bits[4] ? {5'd0, kern_y} + 9'd1 : 9'd0);
      step_rows <= {step_rows[7:0], 1'b0} + (irl_bits[4] ? {4'd0, lines_on} : 9'd0);
      top_rows <= {top_rows[5:0], 1'b0} + (irl_bits[4] ? {4'd0, pad_y} : 7'd0);
      {kern_bits, irl_bits} <= {kern_bits[3:0], 1'b0, irl_bits[3:0], 1'b0};
    end
  end
  // registered although short: sums and comparisons of pool_pick begin with them
  always @(posedge clk) begin
    {all, gate} <= {whole, desc[`DESC_SIN]};
    sums        <= kind != 3'd1 && kind != 3'd2;
    map_only    <= kind == 3'd4;
    turn        <= {sgn, 7'd0} ^ {8{kind == 3'd2}};
    kh_m1       <= all ? lines_m1[8:0] : {5'd0, kern_y};
    kw_m1       <= !all ? kern_x : wide ? LAST_COLUMN : columns_m1[3:0];
    sx          <= columns_on;
    first_end   <= kern_x - {1'b0, pad_x};
    last_end    <= all ? columns_m1 : product[10:0] + {7'd0, first_end};
    pixels      <= !sums ? 19'd1 : all ? product : {10'd0, area};
    of_many     <= pixels[18:9] != 10'd0 || (pixels[8] && pixels[7:0] != 8'd0);
    outside     <= (kind == 3'd3 && !all) ? pad_seen ^ turn : 8'd0;
  end

  wire unused = &{1'b0, desc, task_arg, lines_m1[9]};

endmodule

`resetall
