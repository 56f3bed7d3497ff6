// SPDX-License-Identifier: Apache-2.0
//
// pool_divide: quotient of a sum and a number of pixels, rounded once, halves up.
//
// How it works: half of the divisor is added, then each register computes one of the eight quotient bits,
// MSB first. The register holds the remainder, less than the divisor, above the bits of the sum still to
// be consumed; a step shifts the next of them into the remainder, subtracts the divisor if possible, and
// puts the quotient bit into the freed position.
// Handshake: none; all stages advance while move is high, and the quotient leaves nine moves after its
// operands enter.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module pool_divide (
    // clock; all stages advance
    input  wire        clk,
    input  wire        move,
    // operands: the divisor is 1 to 256, the sum at most 255 times as large
    input  wire [15:0] value,
    input  wire [ 8:0] divisor,
    output wire [ 7:0] quotient
);

  localparam integer STEPS = 8;
  wire [   16*STEPS+7:0] rest;  // of the last stage only the quotient is used
  wire [9*(STEPS+1)-1:0] by;

  reg  [           15:0] rest_0;
  reg  [            8:0] by_0;
  always @(posedge clk) begin
    if (move) begin
      rest_0 <= value + {8'd0, divisor[8:1]};
      by_0   <= divisor;
    end
  end
  assign rest[15:0] = rest_0;
  assign by[8:0]    = by_0;

  genvar i;
  generate
    for (i = 0; i < STEPS; i = i + 1) begin : g_bit
      wire [15:0] old = rest[16*i+:16];
      wire [ 8:0] divisor_i = by[9*i+:9];
      wire [ 9:0] lower = {1'b0, old[15:7]} - {1'b0, divisor_i};
      wire        fits = !lower[9];
      wire [15:0] next = {fits ? lower[7:0] : old[14:7], old[6:0], fits};
      localparam integer KEPT = (i == STEPS - 1) ? 8 : 16;
      reg [KEPT-1:0] rest_b;
      reg [     8:0] by_b;
      always @(posedge clk) begin
        if (move) begin
          rest_b <= next[KEPT-1:0];
          by_b   <= divisor_i;
        end
      end
      assign rest[16*(i+1)+:KEPT] = rest_b;
      assign by[9*(i+1)+:9]       = by_b;
      wire unused_step = &{1'b0, lower[8], next};
    end
  endgenerate
  assign quotient = rest[16*STEPS+:8];

  wire unused = &{1'b0, rest, by};

endmodule

`resetall
