// SPDX-License-Identifier: Apache-2.0
//
// mac_unit: one sign-gated multiply-add unit.
//
// How it works: the condition circuit looks at the signed pixel. Only for a pixel above zero the
// operand registers are loaded and the selector passes pixel * weight; otherwise the operands do
// not toggle and the selector passes 0. The selector is the synchronous reset of the product's
// register, which costs no logic and parts the multiplier from the adder. An adder adds the partial
// sum of the unit before, a register keeps the result. Next to it runs the sum of the gated pixels,
// which the zero-point terms need. The last unit of a cascade can give the larger or the smaller
// one of partial sum and product instead, for element-wise layers. Latency: operands to psum_out
// three cycles; psum_in to psum_out one cycle.
// Handshake: none, a fixed pipeline; valid marks operands that count.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_unit #(
    // width of a weight
    parameter WEIGHT_BITS = 16,
    // width of the partial sum: 9 * 255 * (2^WB - 1) fits WB + 12
    parameter PW = WEIGHT_BITS + 12,
    // 1: operands of a gated multiplication do not toggle; 0: they do; 2: no test of the pixel, for layers of
    // unsigned pixels only (0 and 2: to measure the saving)
    parameter GATE = 1,
    // 1: the unit can choose between sum and product instead of adding them
    parameter CHOICE = 0,
    // 1: the product is shown
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
    // the larger one of partial sum and product leaves, or the smaller one; not looked at without CHOICE
    input  wire                   best,
    input  wire                   least,
    // sums of the unit before
    input  wire [         PW-1:0] psum_in,
    input  wire [           11:0] xsum_in,
    // sums including this unit
    output reg  [         PW-1:0] psum_out,
    output reg  [           11:0] xsum_out,
    // lower bits of the product, a cycle after its operands were taken; 0 without TAP
    output wire [           18:0] shown
);

  // condition circuit: sign bit clear and not zero
  wire                   enable = valid && ((GATE == 2) || (!(sgn && pixel[7]) && (|pixel)));

  // the product and the pixel as they are added are zero unless the condition holds
  reg                    enable_q;
  reg  [            7:0] pixel_q;
  reg  [WEIGHT_BITS-1:0] weight_q;
  reg  [WEIGHT_BITS+7:0] product_q;
  reg  [            7:0] gated_q;
  wire [         PW-1:0] joined;

  // one block: an event-driven simulator wakes each of them in every cycle
  always @(posedge clk) begin
    if (rst) enable_q <= 1'b0;
    else enable_q <= enable;
    if (enable || (GATE == 0)) begin
      pixel_q  <= pixel;
      weight_q <= weight;
    end
    if (!enable_q) begin
      product_q <= {(WEIGHT_BITS + 8) {1'b0}};
      gated_q   <= 8'd0;
    end else begin
      product_q <= pixel_q * weight_q;
      gated_q   <= pixel_q;
    end
    psum_out <= joined;
    xsum_out <= xsum_in + {4'd0, gated_q};
  end

  generate
    if (TAP != 0) begin : g_tap
      assign shown = product_q[18:0];
    end else begin : g_closed
      assign shown = 19'd0;
    end
  endgenerate

  wire [PW-1:0] addend = {{(PW - WEIGHT_BITS - 8) {1'b0}}, product_q};
  generate
    if (CHOICE != 0) begin : g_choice
      wire keeps = (psum_in > addend) != least;
      assign joined = !best ? psum_in + addend : keeps ? psum_in : addend;
    end else begin : g_sum
      assign joined = psum_in + addend;
      wire unused_choice = &{1'b0, best, least};
    end
  endgenerate

`ifdef FORMAL_mac_unit
  `include "mac_unit_props.vh"
`endif

endmodule

`resetall
