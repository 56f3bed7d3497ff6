// SPDX-License-Identifier: Apache-2.0
//
// mac_array: N_Z kernel modules of N_Y submodules of nine sign-gated units.
//
// How it works: operands arrive column by column: column t carries, for each lane z*N_Y + y, a
// signed pixel with its valid, and for each kernel module z a weight, t cycles after column 0. In
// a convolution the lanes of all kernel modules carry the same N_Y pixels and each kernel module
// has weights of its own; in a depthwise layer every lane carries a pixel of its own.
// The sums leave eleven cycles after column 0 was presented.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_array #(
    // pixels, output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
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
    input  wire                         clk,
    input  wire                         rst,
    // operands: pixel (t, lane) at t*N_Y*N_Z + lane, weight (t, z) at t*N_Z + z
    input  wire [        9*N_Y*N_Z-1:0] valid,
    input  wire [      9*N_Y*N_Z*9-1:0] pixel,
    input  wire [9*N_Z*WEIGHT_BITS-1:0] weight,
    // element-wise layer, see mac_kernel: choice of the last units, operands of each lane
    input  wire                         best,
    input  wire                         least,
    input  wire                         multiply,
    input  wire [        N_Y*N_Z*8-1:0] own,
    // sums of each lane
    output wire [       N_Y*N_Z*PW-1:0] psum,
    output wire [       N_Y*N_Z*12-1:0] xsum,
    // lower bits of the products, those of a lane together
    output wire [     N_Y*N_Z*9*19-1:0] product
);

  localparam L = N_Y * N_Z;
  localparam N_X = 9;  // a cascade: nine taps, or nine channels

  localparam PXW = 9 * N_Y;  // pixels of a column for one kernel module
  localparam PXC = 9 * L;  // pixels of a column
  localparam WTC = WEIGHT_BITS * N_Z;  // weights of a column

  // whole vectors in one assignment each
  genvar z;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_kernel
      mac_kernel #(
          .N_X(N_X),
          .N_Y(N_Y),
          .WEIGHT_BITS(WEIGHT_BITS),
          .PW(PW),
          .GATE(GATE),
          .TAP(TAP)
      ) u_kernel (
          .clk(clk),
          .rst(rst),
          .valid({
            valid[8*L+z*N_Y+:N_Y],
            valid[7*L+z*N_Y+:N_Y],
            valid[6*L+z*N_Y+:N_Y],
            valid[5*L+z*N_Y+:N_Y],
            valid[4*L+z*N_Y+:N_Y],
            valid[3*L+z*N_Y+:N_Y],
            valid[2*L+z*N_Y+:N_Y],
            valid[1*L+z*N_Y+:N_Y],
            valid[0*L+z*N_Y+:N_Y]
          }),
          .pixel({
            pixel[8*PXC+z*PXW+:PXW],
            pixel[7*PXC+z*PXW+:PXW],
            pixel[6*PXC+z*PXW+:PXW],
            pixel[5*PXC+z*PXW+:PXW],
            pixel[4*PXC+z*PXW+:PXW],
            pixel[3*PXC+z*PXW+:PXW],
            pixel[2*PXC+z*PXW+:PXW],
            pixel[1*PXC+z*PXW+:PXW],
            pixel[0*PXC+z*PXW+:PXW]
          }),
          .weight({
            weight[8*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[7*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[6*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[5*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[4*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[3*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[2*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[1*WTC+z*WEIGHT_BITS+:WEIGHT_BITS],
            weight[0*WTC+z*WEIGHT_BITS+:WEIGHT_BITS]
          }),
          .best(best),
          .least(least),
          .multiply(multiply),
          .own(own[z*N_Y*8+:N_Y*8]),
          .psum(psum[z*N_Y*PW+:N_Y*PW]),
          .xsum(xsum[z*N_Y*12+:N_Y*12]),
          .product(product[z*N_Y*N_X*19+:N_Y*N_X*19])
      );
    end
  endgenerate

endmodule

`resetall
