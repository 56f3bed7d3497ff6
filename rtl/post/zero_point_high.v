// SPDX-License-Identifier: Apache-2.0
//
// zero_point_high: arg_x times the upper bits of a sum of pixels, for all lanes of a pixel.
//
// How it works: in a convolution the sum of pixels does not depend on the output channel, so its bits
// beyond the lanes' own tables, bit 12 and above, are multiplied once per pixel. In a depthwise layer
// these bits are zero. The product is kept modulo 2^39: with the 12 bits below it this makes 51 bits, and
// 36 after a shift of 15. Three registers: factors, products, sum; only the last one has an enable, the
// others can map to the multipliers' own.
// Handshake: none, a fixed pipeline of three cycles; valid enables the last stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module zero_point_high #(
    // width of the upper bits of a sum of pixels
    parameter HW = 17
) (
    // clock
    input  wire          clk,
    // stage enables; the first two stages have none
    input  wire [   2:0] valid,
    // arg_x shifted left
    input  wire [  38:0] scaled,
    // upper bits of the sum
    input  wire [HW-1:0] x,
    // product after the third stage
    output reg  [  38:0] high
);

  generate
    if (HW < 3 || HW > 17) begin : g_illegal_width
      ILLEGAL_HW_3_TO_17 u_illegal_width ();
    end
  endgenerate

  // three partial products: 18, 18 and 3 bits of the multiplier
  reg  [HW-1:0] x_q;
  reg  [  38:0] arg;
  wire [  35:0] low_n = {{(18 - HW) {1'b0}}, x_q} * arg[17:0];
  wire [  35:0] mid_n = {{(18 - HW) {1'b0}}, x_q} * arg[35:18];
  reg  [  34:0] low;
  reg  [  20:0] mid;
  reg  [   2:0] top;

  always @(posedge clk) begin
    x_q <= x;
    arg <= scaled;
    low <= low_n[34:0];
    mid <= mid_n[20:0];
    top <= (arg[36] ? x_q[2:0] : 3'd0) + (arg[37] ? {x_q[1:0], 1'b0} : 3'd0) +
        (arg[38] ? {x_q[0], 2'b00} : 3'd0);
    if (valid[2]) begin
      high <= {{4'd0, low[34:18]} + mid + {top, 18'd0}, low[17:0]};
    end
  end

  wire unused = &{1'b0, low_n[35], mid_n[35:21], valid[1:0]};

endmodule

`resetall
