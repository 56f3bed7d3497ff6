// SPDX-License-Identifier: Apache-2.0
//
// batch_norm: v = ((alu * mul) >> shift) + add, one lane, modulo 2^36.
//
// How it works: the 60-bit product is shifted arithmetically (floor), the addend is added and the
// low 36 bits are kept; whenever the true value fits 36 bits it is exact. Two registers.
// Handshake: none, a fixed pipeline of two cycles; valid enables each stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module batch_norm (
    // clock
    input  wire               clk,
    // stage enables
    input  wire        [ 1:0] valid,
    // first stage: value and multiplier
    input  wire signed [35:0] alu,
    input  wire signed [23:0] mul,
    // second stage: shift and addend
    input  wire        [ 3:0] shift,
    input  wire signed [31:0] add,
    // result after the second stage
    output reg         [35:0] v
);

  reg signed  [59:0] product;
  wire signed [59:0] shifted = product >>> shift;

  always @(posedge clk) begin
    if (valid[0]) product <= alu * mul;
    if (valid[1]) v <= shifted[35:0] + {{4{add[31]}}, add};
  end

  wire unused = &{1'b0, shifted[59:36]};

endmodule

`resetall
