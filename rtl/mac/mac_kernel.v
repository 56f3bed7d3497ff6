// SPDX-License-Identifier: Apache-2.0
//
// mac_kernel: N_Y submodules that share their weights, the pixels of one output channel.
//
// How it works: submodule y reduces pixel y; unit t of all of them takes weight t. Where an element-wise
// layer multiplies, unit OWN takes a byte of its own in each submodule instead: the other operand.
// Handshake: none, a fixed pipeline (see mac_submodule).
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_kernel #(
    // units in cascade
    parameter N_X = 9,
    // submodules
    parameter N_Y = 4,
    // width of a weight
    parameter WEIGHT_BITS = 16,
    // width of the partial sum
    parameter PW = WEIGHT_BITS + 12,
    // operand gating, see mac_unit
    parameter GATE = 1,
    // 1: products are shown, see mac_unit
    parameter TAP = 0
) (
    // clock and synchronous reset
    input  wire                       clk,
    input  wire                       rst,
    // operands: pixel (t, y) at t*N_Y + y, weight t
    input  wire [        N_Y*N_X-1:0] valid,
    input  wire [      N_Y*N_X*9-1:0] pixel,
    input  wire [N_X*WEIGHT_BITS-1:0] weight,
    // element-wise layer: the last units choose (see mac_unit), units OWN multiply by these bytes
    input  wire                       best,
    input  wire                       least,
    input  wire                       multiply,
    input  wire [          N_Y*8-1:0] own,
    // sums of each pixel
    output wire [         N_Y*PW-1:0] psum,
    output wire [         N_Y*12-1:0] xsum,
    // lower bits of the products, those of a submodule together
    output wire [     N_Y*N_X*19-1:0] product
);

  localparam integer OWN = 6;
  genvar y;
  generate
    for (y = 0; y < N_Y; y = y + 1) begin : g_sub
      wire [15:0] wide = {8'd0, own[8*y+:8]};
      wire [WEIGHT_BITS-1:0] operand = wide[WEIGHT_BITS-1:0];
      mac_submodule #(
          .N_X(N_X),
          .WEIGHT_BITS(WEIGHT_BITS),
          .PW(PW),
          .GATE(GATE),
          .TAP(TAP)
      ) u_sub (
          .clk(clk),
          .rst(rst),
          .valid({
            valid[8*N_Y+y],
            valid[7*N_Y+y],
            valid[6*N_Y+y],
            valid[5*N_Y+y],
            valid[4*N_Y+y],
            valid[3*N_Y+y],
            valid[2*N_Y+y],
            valid[1*N_Y+y],
            valid[0*N_Y+y]
          }),
          .pixel({
            pixel[(8*N_Y+y)*9+:9],
            pixel[(7*N_Y+y)*9+:9],
            pixel[(6*N_Y+y)*9+:9],
            pixel[(5*N_Y+y)*9+:9],
            pixel[(4*N_Y+y)*9+:9],
            pixel[(3*N_Y+y)*9+:9],
            pixel[(2*N_Y+y)*9+:9],
            pixel[(1*N_Y+y)*9+:9],
            pixel[(0*N_Y+y)*9+:9]
          }),
          .weight({
            weight[N_X*WEIGHT_BITS-1:(OWN+1)*WEIGHT_BITS],
            multiply ? operand : weight[OWN*WEIGHT_BITS+:WEIGHT_BITS],
            weight[OWN*WEIGHT_BITS-1:0]
          }),
          .best(best),
          .least(least),
          .psum(psum[y*PW+:PW]),
          .xsum(xsum[y*12+:12]),
          .product(product[y*N_X*19+:N_X*19])
      );
      wire unused_wide = &{1'b0, wide};
    end
  endgenerate

endmodule

`resetall
