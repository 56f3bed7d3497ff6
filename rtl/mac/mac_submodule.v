// SPDX-License-Identifier: Apache-2.0
//
// mac_submodule: N_X multiply-add units in cascade, the reduction of one pixel.
//
// How it works: the partial sum of a unit feeds the next one; the first gets 0. Unit t must see
// its operands t cycles after unit 0 (the memories are read that much later), then the sum of all
// leaves N_X + 1 cycles after the operands of unit 0 were presented.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_submodule #(
    // units in cascade
    parameter N_X  = 9,
    // width of a weight
    parameter WB   = 16,
    // width of the partial sum
    parameter PW   = WB + 12,
    // operand gating, see mac_unit
    parameter GATE = 1
) (
    // clock and synchronous reset
    input  wire            clk,
    input  wire            rst,
    // operands, unit t at t*width
    input  wire [N_X-1:0]  valid,
    input  wire [N_X*9-1:0] pixel,
    input  wire [N_X*WB-1:0] weight,
    // sum of products and sum of gated pixels
    output wire [PW-1:0]   psum,
    output wire [  11:0]   xsum
);

  wire [PW*(N_X+1)-1:0] psum_chain;
  wire [12*(N_X+1)-1:0] xsum_chain;

  assign psum_chain[PW-1:0] = {PW{1'b0}};
  assign xsum_chain[11:0] = 12'd0;

  genvar t;
  generate
    for (t = 0; t < N_X; t = t + 1) begin : g_unit
      mac_unit #(
          .WB  (WB),
          .PW  (PW),
          .GATE(GATE)
      ) u_unit (
          .clk     (clk),
          .rst     (rst),
          .valid   (valid[t]),
          .pixel   (pixel[t*9+:9]),
          .weight  (weight[t*WB+:WB]),
          .psum_in (psum_chain[t*PW+:PW]),
          .xsum_in (xsum_chain[t*12+:12]),
          .psum_out(psum_chain[(t+1)*PW+:PW]),
          .xsum_out(xsum_chain[(t+1)*12+:12])
      );
    end
  endgenerate

  assign psum = psum_chain[N_X*PW+:PW];
  assign xsum = xsum_chain[N_X*12+:12];

endmodule

`resetall
