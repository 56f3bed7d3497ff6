// SPDX-License-Identifier: Apache-2.0
//
// fp16_number: unpacks a float16.
//
// How it works: the number is mantissa * 2^(exponent - 25), with the hidden bit in the mantissa; a
// subnormal number has no hidden bit, and exponent 1. Infinities and NaN are flagged separately; their
// mantissa is a don't-care.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp16_number (
    // the number
    input  wire [15:0] value,
    // magnitude: bits, 1 to 31
    output wire [10:0] mantissa,
    output wire [ 4:0] exponent,
    // negative, not a number, infinite, zero
    output wire        negative,
    output wire        nan,
    output wire        infinite,
    output wire        zero
);

  wire normal = value[14:10] != 5'd0;
  wire top = value[14:10] == 5'd31;
  wire none = value[9:0] == 10'd0;
  assign mantissa = {normal, value[9:0]};
  assign exponent = normal ? value[14:10] : 5'd1;
  assign negative = value[15];
  assign nan = top && !none;
  assign infinite = top && none;
  assign zero = !normal && none;

endmodule

`resetall
