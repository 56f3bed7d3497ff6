// SPDX-License-Identifier: Apache-2.0
//
// post_lane: converts a sum of products to a byte, one lane.
//
// How it works: zero-point terms (four cycles), batch norm (four), activation (eight). Each parameter is
// sampled in the cycle in which its stage needs it. The tables are small memories of the lane. The
// constant has an offset of 2^35, so that batch norm multiplies unsigned numbers; the addend compensates
// its product.
// Handshake: none, a fixed pipeline of sixteen cycles; valid[i] enables stage i. The tables are written
// while no sum is in flight.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module post_lane #(
    // rounding of the activation, see activation
    parameter ROUNDING = 0,
    // zero point: 1 from multipliers, 0 from memories
    parameter MULTIPLY = 0,
    // bits of a multiplier's wide operand (the other one has 18): 18 or 17
    parameter PIECE    = 18
) (
    // clock
    input  wire                     clk,
    // stage enables
    input  wire [             15:0] valid,
    // layer: signed output
    input  wire                     sgn,
    // layer: argument of the zero point for multipliers
    input  wire [             35:0] coarse,
    input  wire                     fine,
    // tables: write ports of the activation and of the zero point; activation values common to all lanes:
    // starts, minus the multiplier of entry 0
    input  wire                     table_we,
    input  wire [              3:0] table_addr,
    input  wire [`SEGMENT_BITS-1:0] table_data,
    input  wire                     multiple_we,
    input  wire [              3:0] multiple_addr,
    input  wire [             42:0] multiple,
    input  wire [             35:0] start_4,
    input  wire [             35:0] start_8,
    input  wire [             35:0] start_12,
    input  wire [             18:0] less,
    // stage 0: sums; stage 2: product of the lane, product of the low bits, constant plus 2^35; stage
    // 3: product of the upper part of the sum of pixels; stage 4: multiplier; stage 6: addend less
    // multiplier * 2^20
    input  wire [             35:0] sum,
    input  wire [             16:0] xsum,
    output wire [             50:0] own,
    input  wire [             38:0] low,
    input  wire [             35:0] k,
    input  wire [             38:0] high,
    input  wire [             38:0] mul,
    input  wire [             35:0] add,
    // out32, stage 11: index of the byte of v to output
    input  wire                     out32,
    input  wire [              1:0] plane,
    // byte after stage 15
    output wire [              7:0] y
);

  wire [35:0] alu;
  wire [35:0] v;

  zero_point #(
      .MULTIPLY(MULTIPLY)
  ) u_zp (
      .clk       (clk),
      .valid     (valid[3:0]),
      .coarse    (coarse),
      .fine      (fine),
      .table_we  (multiple_we),
      .table_addr(multiple_addr),
      .table_data(multiple),
      .sum       (sum),
      .xsum      (xsum),
      .own       (own),
      .low       (low),
      .k         (k),
      .high      (high),
      .alu       (alu)
  );

  batch_norm #(
      .PIECE(PIECE)
  ) u_bn (
      .clk  (clk),
      .valid(valid[7:4]),
      .alu  (alu),
      .mul  (mul),
      .add  (add),
      .v    (v)
  );

  activation #(
      .ROUNDING(ROUNDING),
      .PIECE   (PIECE)
  ) u_act (
      .clk       (clk),
      .valid     (valid[15:8]),
      .start_4   (start_4),
      .start_8   (start_8),
      .start_12  (start_12),
      .table_we  (table_we),
      .table_addr(table_addr),
      .table_data(table_data),
      .less      (less),
      .sgn       (sgn),
      .v         (v),
      .out32     (out32),
      .plane     (plane),
      .y         (y)
  );

endmodule

`resetall
