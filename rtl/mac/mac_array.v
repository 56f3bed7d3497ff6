// SPDX-License-Identifier: Apache-2.0
//
// mac_array: N_Z kernel modules of N_Y submodules of N_X sign-gated units.
//
// How it works: operands arrive column by column: column t carries, for each lane z*N_Y + y, a
// signed pixel with its valid, and for each kernel module z a weight, t cycles after column 0. In
// a convolution the lanes of all kernel modules carry the same N_Y pixels and each kernel module
// has weights of its own; in a depthwise layer every lane carries a pixel of its own.
// The sums leave N_X + 1 cycles after column 0 was presented.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_array #(
    // reduction, pixels, output channels
    parameter N_X  = 9,
    parameter N_Y  = 4,
    parameter N_Z  = 4,
    // width of a weight
    parameter WB   = 16,
    // width of the partial sum
    parameter PW   = WB + 12,
    // operand gating, see mac_unit
    parameter GATE = 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // operands: pixel (t, lane) at t*N_Y*N_Z + lane, weight (t, z) at t*N_Z + z
    input  wire [N_X*N_Y*N_Z-1:0]   valid,
    input  wire [N_X*N_Y*N_Z*9-1:0] pixel,
    input  wire [N_X*N_Z*WB-1:0]    weight,
    // sums of each lane
    output wire [N_Y*N_Z*PW-1:0]    psum,
    output wire [N_Y*N_Z*12-1:0]    xsum
);

  localparam L = N_Y * N_Z;

  genvar z;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_kernel
      // from columns of lanes to lanes of columns
      reg [  N_Y*N_X-1:0] k_valid;
      reg [N_Y*N_X*9-1:0] k_pixel;
      reg [   N_X*WB-1:0] k_weight;
      integer y, t;
      always @* begin
        for (t = 0; t < N_X; t = t + 1) begin
          k_weight[t*WB+:WB] = weight[(t*N_Z+z)*WB+:WB];
          for (y = 0; y < N_Y; y = y + 1) begin
            k_valid[y*N_X+t] = valid[t*L+z*N_Y+y];
            k_pixel[(y*N_X+t)*9+:9] = pixel[(t*L+z*N_Y+y)*9+:9];
          end
        end
      end
      mac_kernel #(
          .N_X (N_X),
          .N_Y (N_Y),
          .WB  (WB),
          .PW  (PW),
          .GATE(GATE)
      ) u_kernel (
          .clk   (clk),
          .rst   (rst),
          .valid (k_valid),
          .pixel (k_pixel),
          .weight(k_weight),
          .psum  (psum[z*N_Y*PW+:N_Y*PW]),
          .xsum  (xsum[z*N_Y*12+:N_Y*12])
      );
    end
  endgenerate

endmodule

`resetall
