// SPDX-License-Identifier: Apache-2.0
//
// above: a signed value exceeds a bound (EQUAL: or equals it).
//
// How it works: the sign of one subtraction; for a comparison operator synthesis may add a test for
// equality.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module above #(
    // 1: a value equal to the bound counts
    parameter EQUAL = 0
) (
    // value and bound, signed
    input  wire [35:0] value,
    input  wire [35:0] bound,
    // the value exceeds the bound
    output wire        yes
);

  wire [36:0] v = {value[35], value};
  wire [36:0] b = {bound[35], bound};
  wire [36:0] diff = (EQUAL == 1) ? v - b : b - v;
  assign yes = diff[36] ^ (EQUAL == 1);

  wire unused = &{1'b0, diff[35:0]};

endmodule

`resetall
