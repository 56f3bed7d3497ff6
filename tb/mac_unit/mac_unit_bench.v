// SPDX-License-Identifier: Apache-2.0
//
// mac_unit_bench: two units in cascade, with the operand registers of the first made visible.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_unit_bench #(
    // as in mac_unit
    parameter WEIGHT_BITS   = 16,
    parameter PW   = WEIGHT_BITS + 12,
    parameter GATE = 1
) (
    // clock and synchronous reset
    input  wire              clk,
    input  wire              rst,
    // operands and sums of the first unit
    input  wire              valid,
    input  wire              sgn,
    input  wire        [7:0] pixel,
    input  wire [    WEIGHT_BITS-1:0] weight,
    input  wire [    PW-1:0] psum_in,
    input  wire [      11:0] xsum_in,
    output wire [    PW-1:0] psum_out,
    output wire [      11:0] xsum_out,
    // its operand registers
    output wire [       7:0] pixel_q,
    output wire [    WEIGHT_BITS-1:0] weight_q,
    // the second unit, a last one: choice, operands and what leaves the cascade
    input  wire              best,
    input  wire              least,
    input  wire              valid2,
    input  wire              sgn2,
    input  wire        [7:0] pixel2,
    input  wire [    WEIGHT_BITS-1:0] weight2,
    output wire [    PW-1:0] psum2,
    output wire [      11:0] xsum2
);

  mac_unit #(
      .WEIGHT_BITS  (WEIGHT_BITS),
      .PW  (PW),
      .GATE(GATE)
  ) u_first (
      .clk     (clk),
      .rst     (rst),
      .valid   (valid),
      .sgn     (sgn),
      .pixel   (pixel),
      .weight  (weight),
      .best    (1'b0),
      .least   (1'b0),
      .psum_in (psum_in),
      .xsum_in (xsum_in),
      .psum_out(psum_out),
      .xsum_out(xsum_out)
  );

  mac_unit #(
      .WEIGHT_BITS  (WEIGHT_BITS),
      .PW  (PW),
      .GATE(GATE),
      .CHOICE(1)
  ) u_second (
      .clk     (clk),
      .rst     (rst),
      .valid   (valid2),
      .sgn     (sgn2),
      .pixel   (pixel2),
      .weight  (weight2),
      .best    (best),
      .least   (least),
      .psum_in (psum_out),
      .xsum_in (xsum_out),
      .psum_out(psum2),
      .xsum_out(xsum2)
  );

  assign pixel_q  = u_first.pixel_q;
  assign weight_q = u_first.weight_q;

endmodule

`resetall
