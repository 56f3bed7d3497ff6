// SPDX-License-Identifier: Apache-2.0
//
// mac_submodule: N_X multiply-add units in cascade, the reduction of one pixel.
//
// How it works: the partial sum of a unit feeds the next one; the first gets 0. Unit t must see
// its operands t cycles after unit 0 (the memories are read that much later), then the sum of all
// leaves N_X + 2 cycles after the operands of unit 0 were presented.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_submodule #(
    // units in cascade
    parameter N_X = 9,
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
    // operands, unit t at t*width
    input  wire [            N_X-1:0] valid,
    input  wire [          N_X*9-1:0] pixel,
    input  wire [N_X*WEIGHT_BITS-1:0] weight,
    // the last unit chooses between sum and product, see mac_unit
    input  wire                       best,
    input  wire                       least,
    // sum of products and sum of gated pixels
    output wire [             PW-1:0] psum,
    output wire [               11:0] xsum,
    // lower bits of the products
    output wire [         N_X*19-1:0] product
);

  genvar t;
  generate
    for (t = 0; t < N_X; t = t + 1) begin : g_unit
      wire [PW-1:0] psum_in;
      wire [  11:0] xsum_in;
      wire [PW-1:0] psum_out;
      wire [  11:0] xsum_out;
      if (t == 0) begin : g_first
        assign psum_in = {PW{1'b0}};
        assign xsum_in = 12'd0;
      end else begin : g_next
        assign psum_in = g_unit[t-1].psum_out;
        assign xsum_in = g_unit[t-1].xsum_out;
      end
      mac_unit #(
          .WEIGHT_BITS(WEIGHT_BITS),
          .PW(PW),
          .GATE(GATE),
          .CHOICE((t == N_X - 1) ? 1 : 0),
          .TAP(TAP)
      ) u_unit (
          .clk     (clk),
          .rst     (rst),
          .valid   (valid[t]),
          .pixel   (pixel[t*9+:9]),
          .weight  (weight[t*WEIGHT_BITS+:WEIGHT_BITS]),
          .best    (best),
          .least   (least),
          .psum_in (psum_in),
          .xsum_in (xsum_in),
          .psum_out(psum_out),
          .xsum_out(xsum_out),
          .shown   (product[t*19+:19])
      );
    end
  endgenerate

  assign psum = g_unit[N_X-1].psum_out;
  assign xsum = g_unit[N_X-1].xsum_out;

endmodule

`resetall
