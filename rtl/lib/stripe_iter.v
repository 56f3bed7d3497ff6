// SPDX-License-Identifier: Apache-2.0
//
// stripe_iter: walks the stripes of a layer, left to right and top to bottom.
//
// How it works: a stripe is 64 pixels of the computed grid: one line of 64, two of 32 or four of 16. The
// 2x2 pools of stride 1 need the pixel to the right and below, so their stripes overlap by one line and
// one column, unless the stripe ends at the edge.
// Handshake: restart selects the first stripe, next the following one (both at the clock edge); the
// outputs describe the present stripe. The grid is stable from the cycle after a restart on.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module stripe_iter (
    // clock and synchronous reset
    input  wire        clk,
    input  wire        rst,
    // to the first stripe; to the next one
    input  wire        restart,
    input  wire        next,
    // grid: width 1..1024, height 1..512, log2 of the line width (4..6), overlap of stride-1 pools
    input  wire [10:0] kw,
    input  wire [ 9:0] kh,
    input  wire [ 2:0] swl,
    input  wire        overlap,
    // origin, size and position of the present stripe
    output reg  [ 9:0] gx,
    output reg  [ 8:0] gy,
    output wire [ 6:0] width,
    output wire [ 2:0] lines,
    output wire        last_x,
    output wire        last_y
);

  wire [ 6:0] sw = 7'd1 << swl;
  wire [ 2:0] nl = (swl == 3'd4) ? 3'd4 : (swl == 3'd5) ? 3'd2 : 3'd1;

  wire [10:0] left_x = kw - {1'b0, gx};
  wire [ 9:0] left_y = kh - {1'b0, gy};

  assign last_x = left_x <= {4'd0, sw};
  assign last_y = left_y <= {7'd0, nl};
  assign width  = last_x ? left_x[6:0] : sw;
  assign lines  = last_y ? left_y[2:0] : nl;

  wire [6:0] step_x = overlap ? sw - 7'd1 : sw;
  wire [2:0] step_y = overlap ? nl - 3'd1 : nl;

  always @(posedge clk) begin
    if (rst || restart) begin
      gx <= 10'd0;
      gy <= 9'd0;
    end else if (next) begin
      gx <= last_x ? 10'd0 : gx + {3'd0, step_x};
      gy <= last_x ? gy + {6'd0, step_y} : gy;
    end
  end

`ifdef FORMAL_stripe_iter
  `include "stripe_iter_props.vh"
`endif

endmodule

`resetall
