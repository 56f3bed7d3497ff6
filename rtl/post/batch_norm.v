// SPDX-License-Identifier: Apache-2.0
//
// batch_norm: v = ((alu * mul) >> shift) + add, one lane, modulo 2^36.
//
// How it works: the multiplier comes moved up by 15 - shift bits (param_buffer), so that the shift
// is always 15 and the product matters modulo 2^51. alu comes raised by 2^35, an unsigned number;
// what the raise adds to the result, mul * 2^20, is a constant of the channel and has been taken off
// the addend. The product is cut into pieces of 18 bits of mul and PIECE bits of alu, one multiplier
// of an FPGA each; three bits of mul, and of alu what its pieces leave, are added apart. The shift
// is a floor; whenever the true value fits 36 bits it is exact. Two registers: products, v.
// Handshake: none, a fixed pipeline of two cycles; valid enables each stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module batch_norm #(
    // bits of alu that a multiplier takes: 18, or 17 where unsigned operands have a bit less
    parameter PIECE = 18
) (
    // clock
    input  wire        clk,
    // stage enables
    input  wire [ 1:0] valid,
    // first stage: value plus 2^35, and multiplier moved up by 15 - shift
    input  wire [35:0] alu,
    input  wire [38:0] mul,
    // second stage: addend less mul * 2^20
    input  wire [35:0] add,
    // result after the second stage
    output reg  [35:0] v
);

  localparam HIGH = 33 - PIECE;  // bits of the highest product: its weight is 2^(PIECE + 18)

  // ---- first stage. Weights: 2^0, 2^PIECE, 2^18, 2^(PIECE + 18); beyond 2^51 nothing is kept.
  wire [PIECE+17:0] ll_n = alu[PIECE-1:0] * mul[17:0];
  wire [PIECE+17:0] hl_n = alu[2*PIECE-1:PIECE] * mul[17:0];
  wire [PIECE+17:0] lh_n = alu[PIECE-1:0] * mul[35:18];
  wire [  HIGH-1:0] hh_n = alu[PIECE+HIGH-1:PIECE] * mul[HIGH+17:18];
  reg  [PIECE+17:0] ll;
  reg  [50-PIECE:0] hl;
  reg  [      32:0] lh;
  reg  [  HIGH-1:0] hh;
  // at 2^36: mul[38:36] in twos-complement times alu
  reg  [      14:0] one;
  reg  [      13:0] two;
  reg  [      12:0] four;
  always @(posedge clk) begin
    if (valid[0]) begin
      ll   <= ll_n;
      hl   <= hl_n[50-PIECE:0];
      lh   <= lh_n[32:0];
      hh   <= hh_n;
      one  <= mul[36] ? alu[14:0] : 15'd0;
      two  <= mul[37] ? alu[13:0] : 14'd0;
      four <= mul[38] ? alu[12:0] : 13'd0;
    end
  end

  // ---- second stage: bits 15 to 50 of the product, and the addend. What lies at 2^36 and above
  // fills the lines of lower terms.
  // (kept apart: of several terms in one sum synthesis makes something larger)
  (* keep *) wire [50-PIECE:0] mid_0;
  (* keep *) wire [32:0] mid_1;
  (* keep *) wire [14:0] high_0;
  (* keep *) wire [14:0] high_1;
  (* keep *) wire [14:0] high_2;
  wire [35:0] from_15 = {mid_0, ll[PIECE-1:15]};
  wire [35:0] lowest;
  assign mid_1 = from_15[35:3] + lh;
  generate
    if (PIECE == 18) begin : g_even
      assign mid_0  = hl + {one, ll[35:18]};
      assign high_0 = hh;
      assign lowest = {mid_1, from_15[2:0]};
    end else begin : g_odd
      // two bits of alu are left, at 2^34; the highest product lies at 2^35
      reg  [16:0] left_0;
      reg  [15:0] left_1;
      (* keep *)wire [16:0] left;
      (* keep *)wire [16:0] odd;
      always @(posedge clk) begin
        if (valid[0]) begin
          left_0 <= alu[34] ? mul[16:0] : 17'd0;
          left_1 <= alu[35] ? mul[15:0] : 16'd0;
        end
      end
      assign mid_0  = hl + {one, 1'b0, ll[34:17]};
      assign left   = left_0 + {left_1, 1'b0};
      assign odd    = left + {hh, 1'b0};
      assign high_0 = 15'd0;
      assign lowest = {mid_1[32:16] + odd, mid_1[15:0], from_15[2:0]};
    end
  endgenerate
  assign high_1 = high_0 + {two - {four, 1'b0}, 1'b0};
  assign high_2 = high_1 + add[35:21];
  always @(posedge clk) begin
    if (valid[1]) v <= lowest + {high_2, add[20:0]};
  end

  wire unused = &{1'b0, ll[14:0], hl_n, lh_n};

endmodule

`resetall
