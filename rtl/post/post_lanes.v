// SPDX-License-Identifier: Apache-2.0
//
// post_lanes: zero-point terms, batch norm and activation for N_Y * N_Z sums a cycle.
//
// How it works: lane z*N_Y + y takes the parameters of kernel module z. In a convolution these are
// the banks of the group's parameter row, in a depthwise layer the bank of the lane's channel, in
// a fully connected layer one bank. Parameters arrive with the sums and are delayed along the
// lanes. Eight registers from sums to bytes.
// Handshake: none, a fixed pipeline; the sender of sums has reserved the room for their bytes.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module post_lanes #(
    // array: pixels and output channels
    parameter N_Y      = 4,
    parameter N_Z      = 4,
    // rounding of the activation, see activation
    parameter ROUNDING = 0,
    // width of what travels beside a sum
    parameter MW       = 64,
    // width of the sum of pixels
    parameter XW       = 29,
    // lanes and width of a bank number
    parameter L        = N_Y * N_Z,
    parameter ZW       = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire              clk,
    input  wire              rst,
    // layer: how a kernel module finds its bank, log2 of the slot width, arguments, table
    input  wire              one_bank,
    input  wire              by_chan,
    input  wire [       2:0] swl,
    input  wire [      23:0] arg_x,
    input  wire [       3:0] shr_x,
    input  wire              sgn,
    input  wire [ 16*36-1:0] t_start,
    input  wire [ 16*16-1:0] t_mul,
    input  wire [  16*8-1:0] t_shift,
    input  wire [  16*8-1:0] t_add,
    // sums, first bank of the issue, parameters of all banks, what travels beside
    input  wire              in_valid,
    input  wire [  L*36-1:0] in_sum,
    input  wire [  L*XW-1:0] in_xsum,
    input  wire [    ZW-1:0] in_bank,
    input  wire [N_Z*60-1:0] in_bn,
    input  wire [N_Z*36-1:0] in_kc,
    input  wire [    MW-1:0] in_meta,
    // bytes
    output wire              out_valid,
    output wire [   L*8-1:0] out_byte,
    output wire [    MW-1:0] out_meta,
    // nothing in flight
    output wire              idle
);

  localparam STAGES = 8;

  reg [STAGES-1:0] valid_q;
  reg [MW*STAGES-1:0] meta_q;
  always @(posedge clk) begin
    if (rst) valid_q <= {STAGES{1'b0}};
    else valid_q <= {valid_q[STAGES-2:0], in_valid};
  end
  always @(posedge clk) begin
    meta_q <= {meta_q[MW*(STAGES-1)-1:0], in_meta};
  end
  assign out_valid = valid_q[STAGES-1];
  assign out_meta  = meta_q[MW*STAGES-1-:MW];
  assign idle      = valid_q == {STAGES{1'b0}};

  genvar z, y;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_z
      localparam integer LANE_0 = z * N_Y;
      localparam [6:0] FIRST = LANE_0[6:0];
      wire [6:0] slot = FIRST >> swl;
      wire [ZW-1:0] sel = one_bank ? in_bank : by_chan ? in_bank + slot[ZW-1:0] : z[ZW-1:0];
      wire [59:0] bn = in_bn[60*sel+:60];
      wire unused_slot = &{1'b0, slot};
      reg [35:0] kc_1;
      reg [59:0] bn_1, bn_2;
      reg [35:0] bn_3;
      always @(posedge clk) begin
        if (in_valid) begin
          kc_1 <= in_kc[36*sel+:36];
          bn_1 <= bn;
        end
        if (valid_q[0]) bn_2 <= bn_1;
        if (valid_q[1]) bn_3 <= bn_2[59:24];
      end
      for (y = 0; y < N_Y; y = y + 1) begin : g_y
        localparam I = z * N_Y + y;
        post_lane #(
            .ROUNDING(ROUNDING),
            .XW      (XW)
        ) u_lane (
            .clk    (clk),
            .valid  ({valid_q[6:0], in_valid}),
            .arg_x  (arg_x),
            .shr_x  (shr_x),
            .sgn    (sgn),
            .t_start(t_start),
            .t_mul  (t_mul),
            .t_shift(t_shift),
            .t_add  (t_add),
            .sum    (in_sum[36*I+:36]),
            .xsum   (in_xsum[XW*I+:XW]),
            .k      (kc_1),
            .mul    (bn_2[23:0]),
            .shift  (bn_3[35:32]),
            .add    (bn_3[31:0]),
            .y      (out_byte[8*I+:8])
        );
      end
    end
  endgenerate

endmodule

`resetall
