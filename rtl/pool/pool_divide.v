// SPDX-License-Identifier: Apache-2.0
//
// pool_divide: quotient of a sum and a number of pixels, rounded once, halves up.
//
// How it works: half of the divisor is added, then the eight bits of the quotient are found one a
// register, the highest first: where the divisor, moved up, fits, it is taken away. A quotient is a
// byte, for the sum has no more than 255 for each pixel.
// Handshake: none; while move is high everything goes on, and the quotient comes nine moves after its
// operands.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module pool_divide #(
    // bits of the sum, of the divisor
    parameter VW = 16,
    parameter NW = 9
) (
    // clock; everything goes on
    input  wire          clk,
    input  wire          move,
    // operands: the divisor is not 0, the sum at most 255 times as large
    input  wire [VW-1:0] value,
    input  wire [NW-1:0] divisor,
    output wire [   7:0] quotient
);

  // the rest before bit b is found: less than the divisor << b + 1
  localparam integer RW = NW + 8;
  wire [RW*9-1:0] rest;
  wire [NW*9-1:0] by;
  wire [ 8*9-1:0] found;

  reg  [  RW-1:0] rest_0;
  reg  [  NW-1:0] by_0;
  always @(posedge clk) begin
    if (move) begin
      rest_0 <= {{(RW - VW) {1'b0}}, value} + {9'd0, divisor[NW-1:1]};
      by_0   <= divisor;
    end
  end
  assign rest[0+:RW] = rest_0;
  assign by[0+:NW]   = by_0;
  assign found[0+:8] = 8'd0;

  genvar i;
  generate
    for (i = 0; i < 8; i = i + 1) begin : g_bit
      localparam integer W = NW + 8 - i;  // bits of the rest that may be set
      wire [W:0] lower = {1'b0, rest[RW*i+:W]} - {1'b0, by[NW*i+:NW], {(7 - i) {1'b0}}};
      wire fits = !lower[W];
      reg [W-2:0] rest_b;
      reg [NW-1:0] by_b;
      reg [7:0] found_b;
      always @(posedge clk) begin
        if (move) begin
          rest_b  <= fits ? lower[W-2:0] : rest[RW*i+:W-1];
          by_b    <= by[NW*i+:NW];
          found_b <= {found[8*i+:7], fits};
        end
      end
      assign rest[RW*(i+1)+:RW] = {{(i + 1) {1'b0}}, rest_b};
      assign by[NW*(i+1)+:NW]   = by_b;
      assign found[8*(i+1)+:8]  = found_b;
    end
  endgenerate
  assign quotient = found[8*8+:8];

  wire unused = &{1'b0, rest, by, found};

endmodule

`resetall
