// SPDX-License-Identifier: Apache-2.0
//
// fp16_share: lends multipliers of the array to a product of float16 matrices.
//
// How it works: a lane uses two units of a cascade, 2p and 2p + 1: the lower eight and the upper three
// bits of B's mantissa, both times A's mantissa. So the nine units of a cascade serve four lanes, and all
// cascades of a kernel module, which share their weights, serve lanes of one row. Products are tapped
// behind their registers, before the cascade adds them up. In other layers the operands of the array pass
// unchanged.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp16_share #(
    // lanes; columns and rows of a group
    parameter LANES = 8,
    parameter COLS  = 8,
    parameter ROWS  = 1,
    // array: pixels and output channels
    parameter N_Y   = 2,
    parameter N_Z   = 2,
    // derived, not to be set: cascades
    parameter L     = N_Y * N_Z
) (
    // the active layer is a product of float16 matrices; mantissas are valid
    input  wire                lends,
    input  wire                lend_valid,
    input  wire [ 11*ROWS-1:0] lend_a,
    input  wire [ 11*COLS-1:0] lend_b,
    // operands of the array: those of other layers, the selected ones
    input  wire [     9*L-1:0] own_valid,
    input  wire [   9*L*8-1:0] own_pixel,
    input  wire [9*N_Z*16-1:0] own_weight,
    output wire [     9*L-1:0] valid,
    output wire [   9*L*8-1:0] pixel,
    output wire [9*N_Z*16-1:0] weight,
    // products of all units, 19 bits each; of the lanes: lower and upper part
    input  wire [  9*L*19-1:0] unit_products,
    output wire [33*LANES-1:0] products
);

  genvar t, u;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_unit
      for (u = 0; u < L; u = u + 1) begin : g_cascade
        localparam integer LANE = t / 2 * L + u;
        if (t < 8 && LANE < LANES) begin : g_lends
          wire [10:0] b = lend_b[11*(LANE%COLS)+:11];
          wire [ 7:0] mine = (t % 2 == 0) ? b[7:0] : {5'd0, b[10:8]};
          wire [18:0] product = unit_products[(u*9+t)*19+:19];
          assign valid[t*L+u] = lends ? lend_valid : own_valid[t*L+u];
          assign pixel[8*(t*L+u)+:8] = lends ? mine : own_pixel[8*(t*L+u)+:8];
          if (t % 2 == 0) begin : g_low
            assign products[33*LANE+:19] = product;
          end else begin : g_high
            assign products[33*LANE+19+:14] = product[13:0];
            wire unused_top = &{1'b0, product[18:14]};
          end
        end else begin : g_own
          assign valid[t*L+u] = own_valid[t*L+u];
          assign pixel[8*(t*L+u)+:8] = own_pixel[8*(t*L+u)+:8];
          wire unused_product = &{1'b0, unit_products[(u*9+t)*19+:19]};
        end
      end
      for (u = 0; u < N_Z; u = u + 1) begin : g_kernel
        localparam integer LANE = t / 2 * L + u * N_Y;
        if (t < 8 && LANE < LANES) begin : g_lends
          assign weight[16*(t*N_Z+u)+:16] = lends ? {5'd0, lend_a[11*(LANE/COLS)+:11]} :
              own_weight[16*(t*N_Z+u)+:16];
        end else begin : g_own
          assign weight[16*(t*N_Z+u)+:16] = own_weight[16*(t*N_Z+u)+:16];
        end
      end
    end
  endgenerate

endmodule

`resetall
