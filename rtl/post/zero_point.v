// SPDX-License-Identifier: Apache-2.0
//
// zero_point: alu = s + ((arg_x * sx) >> shr_x) + k, one lane, modulo 2^36.
//
// How it works: s is the sum of products, sx the sum of gated pixels, k the constant of the output
// channel ((arg_w * sw) >> shr_w) + arg_add * n, which the weight loader prepares. The shift is
// the floor of the complete product. Two registers: product, sum.
// Handshake: none, a fixed pipeline of two cycles; valid enables each stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module zero_point #(
    // width of the sum of pixels: 29 bits for a vector of 2 MiB
    parameter XW = 29
) (
    // clock
    input  wire                 clk,
    // stage enables
    input  wire        [   1:0] valid,
    // layer arguments
    input  wire signed [  23:0] arg_x,
    input  wire        [   3:0] shr_x,
    // first stage: sum of products, sum of pixels; second stage: constant of the channel
    input  wire        [  35:0] sum,
    input  wire        [XW-1:0] xsum,
    input  wire        [  35:0] k,
    // result after the second stage
    output reg         [  35:0] alu
);

  wire signed [XW:0] xsum_s = {1'b0, xsum};
  reg signed [XW+24:0] product;
  reg [35:0] sum_q;
  wire signed [XW+24:0] shifted = product >>> shr_x;
  wire signed [63:0] extended = {{(39 - XW) {shifted[XW+24]}}, shifted};

  always @(posedge clk) begin
    if (valid[0]) begin
      product <= arg_x * xsum_s;
      sum_q   <= sum;
    end
    if (valid[1]) alu <= sum_q + extended[35:0] + k;
  end

  wire unused = &{1'b0, extended[63:36]};

endmodule

`resetall
