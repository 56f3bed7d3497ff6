// SPDX-License-Identifier: Apache-2.0
//
// post_lane: from a sum of products to a byte, one lane.
//
// How it works: zero-point terms (two cycles), batch norm (two), activation (four). Each parameter
// is taken in the cycle in which its stage needs it.
// Handshake: none, a fixed pipeline of eight cycles; valid[i] enables stage i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module post_lane #(
    // rounding of the activation, see activation
    parameter ROUNDING = 0,
    // width of the sum of pixels
    parameter XW       = 29
) (
    // clock
    input  wire             clk,
    // stage enables
    input  wire [      7:0] valid,
    // layer: arguments, signed output, activation table
    input  wire [     23:0] arg_x,
    input  wire [      3:0] shr_x,
    input  wire             sgn,
    input  wire [16*36-1:0] t_start,
    input  wire [16*16-1:0] t_mul,
    input  wire [ 16*8-1:0] t_shift,
    input  wire [ 16*8-1:0] t_add,
    // stage 0: sums; stage 1: constant; stage 2: multiplier; stage 3: shift and addend
    input  wire [     35:0] sum,
    input  wire [   XW-1:0] xsum,
    input  wire [     35:0] k,
    input  wire [     23:0] mul,
    input  wire [      3:0] shift,
    input  wire [     31:0] add,
    // byte after stage 7
    output wire [      7:0] y
);

  wire [35:0] alu;
  wire [35:0] v;

  zero_point #(
      .XW(XW)
  ) u_zp (
      .clk  (clk),
      .valid(valid[1:0]),
      .arg_x(arg_x),
      .shr_x(shr_x),
      .sum  (sum),
      .xsum (xsum),
      .k    (k),
      .alu  (alu)
  );

  batch_norm u_bn (
      .clk  (clk),
      .valid(valid[3:2]),
      .alu  (alu),
      .mul  (mul),
      .shift(shift),
      .add  (add),
      .v    (v)
  );

  activation #(
      .ROUNDING(ROUNDING)
  ) u_act (
      .clk    (clk),
      .valid  (valid[7:4]),
      .t_start(t_start),
      .t_mul  (t_mul),
      .t_shift(t_shift),
      .t_add  (t_add),
      .sgn    (sgn),
      .v      (v),
      .y      (y)
  );

endmodule

`resetall
