// SPDX-License-Identifier: Apache-2.0
//
// mac_unit: one sign-gated multiply-add unit.
//
// How it works: the condition circuit tests the signed pixel. Only a pixel above zero loads the operand
// registers and lets the selector pass pixel * weight; otherwise the operands do not toggle and the selector
// passes 0. The selector is the synchronous reset of the product's register, which costs no logic and
// separates the multiplier from the adder. An adder adds the partial sum of the previous unit, a register
// holds the result. In parallel the sum of the gated pixels is formed, which the zero-point terms need. Both
// sums are as wide as the products so far can make them, and share one carry chain: the lower one never
// carries into the upper one. An element-wise layer's maximum of a and b is b + max(a - b, 0), its minimum
// b + min(a - b, 0). A unit with CHOICE = 1 computes the second term: the pixel is negated, and the register
// of the sum is reset when the difference is on the wrong side of zero. The next unit, CHOICE = 2, adds b; it
// alone counts the pixel. Latency: operands to psum_out three cycles; psum_in to psum_out one cycle.
// Handshake: none, a fixed pipeline; valid marks valid operands.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_unit #(
    // width of a weight
    parameter WEIGHT_BITS = 16,
    // number of products in psum_in; width of psum_in and psum_out, whose upper bits are zero
    parameter NTH = 8,
    parameter PW = WEIGHT_BITS + 12,
    // 1: operands of a gated multiplication do not toggle; 0: they do; 2: no gate, a pixel below zero is
    // multiplied as zero (0 and 2: to measure the saving)
    parameter GATE = 1,
    // 1: the unit can subtract, and keep only one sign of the difference; 2: psum_in may be such a difference
    parameter CHOICE = 0,
    // 1: the product is output
    parameter TAP = 0
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // pixel and weight (unsigned) with their valid; pixels of the layer are signed
    input  wire                   valid,
    input  wire                   sgn,
    input  wire [            7:0] pixel,
    input  wire [WEIGHT_BITS-1:0] weight,
    // subtract: differences above zero are kept, or with least those below; used with CHOICE = 1 only
    input  wire                   best,
    input  wire                   least,
    // sums of the previous unit
    input  wire [         PW-1:0] psum_in,
    input  wire [           11:0] xsum_in,
    // sums including this unit
    output reg  [         PW-1:0] psum_out,
    output reg  [           11:0] xsum_out,
    // lower bits of the product, a cycle after its operands were loaded; 0 without TAP
    output wire [           18:0] shown
);

  localparam integer SW = WEIGHT_BITS + 8 + $clog2(NTH + 1);
  localparam integer XS = 8 + $clog2(NTH + 1);
  localparam integer FB = (CHOICE == 1) ? 9 : 8;  // 9: signed factor

  // condition circuit: sign bit clear and pixel not zero
  wire                      enable = valid && ((GATE == 2) || (!(sgn && pixel[7]) && (|pixel)));
  wire [               7:0] operand = pixel & {8{(GATE != 2) || !(sgn && pixel[7])}};

  // the added product and pixel are zero unless the condition holds
  reg                       enable_q;
  reg  [            FB-1:0] pixel_q;
  reg  [   WEIGHT_BITS-1:0] weight_q;
  reg  [WEIGHT_BITS+FB-1:0] product_q;
  reg  [               7:0] gated_q;
  wire [            FB-1:0] factor;
  wire [WEIGHT_BITS+FB-1:0] result;
  wire                      adds_pixel;
  wire                      zero;
  wire [            PW-1:0] psum;
  wire [              11:0] xsum;

  // one block, because an event-driven simulator wakes every block in every cycle
  always @(posedge clk) begin
    if (rst) enable_q <= 1'b0;
    else enable_q <= enable;
    if (enable || (GATE == 0)) begin
      pixel_q  <= factor;
      weight_q <= weight;
    end
    if (!enable_q) product_q <= {(WEIGHT_BITS + FB) {1'b0}};
    else product_q <= result;
    if (!adds_pixel) gated_q <= 8'd0;
    else gated_q <= pixel_q[7:0];
    if (zero) psum_out <= {PW{1'b0}};
    else psum_out <= psum;
    xsum_out <= xsum;
  end

  generate
    if (TAP != 0) begin : g_tap
      assign shown = product_q[18:0];
    end else begin : g_closed
      assign shown = 19'd0;
    end

    if (CHOICE == 1) begin : g_difference
      // a gated unit multiplies pixels above zero only
      assign factor = best ? {(GATE != 2) || (|operand), -operand} : {1'b0, operand};
      assign result = $signed(pixel_q) * $signed({1'b0, weight_q});
      assign adds_pixel = enable_q && !best;
      assign psum = psum_in + {{(PW - WEIGHT_BITS - FB) {product_q[WEIGHT_BITS+FB-1]}}, product_q};
      assign zero = best && psum[PW-1] != least;
      assign xsum = xsum_in + {4'd0, gated_q};
    end else begin : g_sum
      assign factor = operand;
      assign result = pixel_q * weight_q;
      assign adds_pixel = enable_q;
      assign zero = 1'b0;
      if (CHOICE == 0) begin : g_joint
        wire [XS+SW-1:0] sums = {xsum_in[XS-1:0], psum_in[SW-1:0]} +
            {{(XS - 8) {1'b0}}, gated_q, {(SW - WEIGHT_BITS - 8) {1'b0}}, product_q};
        assign psum = {{(PW - SW) {1'b0}}, sums[SW-1:0]};
        assign xsum = {{(12 - XS) {1'b0}}, sums[XS+SW-1:SW]};
        wire unused_upper = &{1'b0, psum_in, xsum_in};
      end else begin : g_apart
        assign psum = psum_in + {{(PW - WEIGHT_BITS - 8) {1'b0}}, product_q};
        assign xsum = xsum_in + {4'd0, gated_q};
      end
      wire unused_choice = &{1'b0, best, least};
    end
  endgenerate

`ifdef FORMAL_mac_unit
  `include "mac_unit_props.vh"
`endif

endmodule

`resetall
