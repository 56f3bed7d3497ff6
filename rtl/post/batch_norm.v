// SPDX-License-Identifier: Apache-2.0
//
// batch_norm: v = ((alu * mul) >> shift) + add, one lane, modulo 2^36.
//
// How it works: the multiplier arrives shifted left by 15 - shift bits (param_buffer), so that the shift
// is always 15 and the product matters modulo 2^51. alu arrives with an offset of 2^35, as an unsigned
// number; the offset adds mul * 2^20 to the result, a constant of the channel that is already subtracted
// from the addend. The product is split into pieces of 18 bits of mul and PIECE bits of alu, one FPGA
// multiplier each; three bits of mul, and the remaining bits of alu, are added separately. The shift is a
// floor; whenever the true value fits 36 bits it is exact. Four registers: factors, products, two sums,
// v. Those before and after the multipliers have no enable, so that they can map to the multipliers' own;
// they settle together with the values.
// Handshake: none, a fixed pipeline of four cycles; valid enables the last two.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module batch_norm #(
    // operand width of a multiplier for alu: 18, or 17 where unsigned operands have one bit less
    parameter PIECE = 18
) (
    // clock
    input  wire        clk,
    // stage enables; the first two stages have none
    input  wire [ 3:0] valid,
    // first stage: value plus 2^35, and multiplier shifted left by 15 - shift
    input  wire [35:0] alu,
    input  wire [38:0] mul,
    // third stage: addend less mul * 2^20
    input  wire [35:0] add,
    // result after the fourth stage
    output reg  [35:0] v
);

  localparam HIGH = 33 - PIECE;  // bits of the highest product: its weight is 2^(PIECE + 18)

  // ---- first stage: the factors
  reg [35:0] x;
  reg [38:0] m;
  always @(posedge clk) begin
    x <= alu;
    m <= mul;
  end

  // ---- second stage. Weights: 2^0, 2^PIECE, 2^18, 2^(PIECE + 18); bits from 2^51 on are dropped.
  wire [PIECE+17:0] ll_n = x[PIECE-1:0] * m[17:0];
  wire [PIECE+17:0] hl_n = x[2*PIECE-1:PIECE] * m[17:0];
  wire [PIECE+17:0] lh_n = x[PIECE-1:0] * m[35:18];
  wire [  HIGH-1:0] hh_n = x[PIECE+HIGH-1:PIECE] * m[HIGH+17:18];
  reg  [PIECE+17:0] ll;
  reg  [50-PIECE:0] hl;
  reg  [      32:0] lh;
  reg  [  HIGH-1:0] hh;
  // at 2^36: m[38:36] in twos-complement times x
  reg  [      14:0] one;
  reg  [      13:0] two;
  reg  [      12:0] four;
  always @(posedge clk) begin
    ll   <= ll_n;
    hl   <= hl_n[50-PIECE:0];
    lh   <= lh_n[32:0];
    hh   <= hh_n;
    one  <= m[36] ? x[14:0] : 15'd0;
    two  <= m[37] ? x[13:0] : 14'd0;
    four <= m[38] ? x[12:0] : 13'd0;
  end

  // ---- third and fourth stage: bits 15 to 50 of the product, and the addend. Terms at 2^36 and above
  // share rows with lower terms.
  // (kept apart: synthesis makes a larger circuit of several terms in one sum)
  (* keep *) wire [50-PIECE:0] mid_0;
  (* keep *) wire [32:0] mid_1;
  (* keep *) wire [14:0] high_0;
  (* keep *) wire [14:0] high_1;
  (* keep *) wire [14:0] high_2;
  reg [35:0] from_15;
  reg [32:0] lh_q;
  reg [35:0] rest;  // terms without bits below 2^36, and the addend
  wire [35:0] lowest;
  assign mid_1 = from_15[35:3] + lh_q;
  generate
    if (PIECE == 18) begin : g_even
      assign mid_0  = hl + {one, ll[35:18]};
      assign high_0 = hh;
      assign lowest = {mid_1, from_15[2:0]};
    end else begin : g_odd
      // two bits of the value remain, at 2^34; the highest product lies at 2^35
      reg  [16:0] left_0;
      reg  [15:0] left_1;
      reg  [16:0] odd_q;
      (* keep *)wire [16:0] left;
      (* keep *)wire [16:0] odd;
      always @(posedge clk) begin
        left_0 <= x[34] ? m[16:0] : 17'd0;
        left_1 <= x[35] ? m[15:0] : 16'd0;
        if (valid[2]) odd_q <= odd;
      end
      assign mid_0  = hl + {one, 1'b0, ll[34:17]};
      assign left   = left_0 + {left_1, 1'b0};
      assign odd    = left + {hh, 1'b0};
      assign high_0 = 15'd0;
      assign lowest = {mid_1[32:16] + odd_q, mid_1[15:0], from_15[2:0]};
    end
  endgenerate
  assign high_1 = high_0 + {two - {four, 1'b0}, 1'b0};
  assign high_2 = high_1 + add[35:21];
  always @(posedge clk) begin
    if (valid[2]) begin
      from_15 <= {mid_0, ll[PIECE-1:15]};
      lh_q    <= lh;
      rest    <= {high_2, add[20:0]};
    end
    if (valid[3]) v <= lowest + rest;
  end

  wire unused = &{1'b0, ll[14:0], hl_n, lh_n, valid[1:0]};

endmodule

`resetall
