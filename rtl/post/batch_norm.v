// SPDX-License-Identifier: Apache-2.0
//
// batch_norm: v = ((alu * mul) >> shift) + add, one lane, modulo 2^36.
//
// How it works: the multiplier comes moved up by 15 - shift bits (param_buffer), so that the shift
// is always 15 and the product matters modulo 2^51. It is cut into products of 18 x 18 unsigned
// bits, one multiplier of an FPGA each; three bits of mul and the sign of alu are added apart. The
// shift is a floor; whenever the true value fits 36 bits it is exact. Two registers: products, v.
// Handshake: none, a fixed pipeline of two cycles; valid enables each stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module batch_norm (
    // clock
    input  wire        clk,
    // stage enables
    input  wire [ 1:0] valid,
    // first stage: value, and multiplier moved up by 15 - shift
    input  wire [35:0] alu,
    input  wire [38:0] mul,
    // second stage: addend
    input  wire [31:0] add,
    // result after the second stage
    output reg  [35:0] v
);

  // ---- first stage. Weights: 2^0, 2^18 twice, 2^36; beyond 2^51 nothing is kept.
  wire [35:0] ll_n = alu[17:0] * mul[17:0];
  wire [35:0] hl_n = alu[35:18] * mul[17:0];
  wire [35:0] lh_n = alu[17:0] * mul[35:18];
  wire [14:0] hh_n = alu[32:18] * mul[32:18];
  reg  [35:0] ll;
  reg  [32:0] hl;
  reg  [32:0] lh;
  reg  [14:0] hh;
  // at 2^36: mul[38:36] in twos-complement times alu, and what a negative alu has too much
  reg  [14:0] one;
  reg  [13:0] two;
  reg  [12:0] four;
  reg  [14:0] sign;
  always @(posedge clk) begin
    if (valid[0]) begin
      ll   <= ll_n;
      hl   <= hl_n[32:0];
      lh   <= lh_n[32:0];
      hh   <= hh_n;
      one  <= mul[36] ? alu[14:0] : 15'd0;
      two  <= mul[37] ? alu[13:0] : 14'd0;
      four <= mul[38] ? alu[12:0] : 13'd0;
      sign <= alu[35] ? mul[14:0] : 15'd0;
    end
  end

  // ---- second stage: bits 15 to 50 of the product, and the addend
  // (kept apart: of several terms in one sum synthesis makes something larger)
  (* keep *)wire [14:0] high_0;
  (* keep *)wire [13:0] high_1;
  (* keep *)wire [32:0] mid_0;
  (* keep *)wire [32:0] mid_1;
  (* keep *)wire [14:0] high_3;
  (* keep *)wire [14:0] high_2;
  (* keep *)wire [14:0] high_4;
  assign high_0 = hh + one;
  assign high_1 = two - {four, 1'b0};
  assign mid_0  = hl + lh;
  assign mid_1  = mid_0 + {15'd0, ll[35:18]};
  assign high_3 = high_0 + {high_1, 1'b0};
  assign high_2 = {{4{add[31]}}, add[31:21]} - sign;
  assign high_4 = high_3 + high_2;
  wire [35:0] lowest = {mid_1, ll[17:15]};
  always @(posedge clk) begin
    if (valid[1]) v <= lowest + {high_4, add[20:0]};
  end

  wire unused = &{1'b0, ll[14:0], hl_n[35:33], lh_n[35:33]};

endmodule

`resetall
