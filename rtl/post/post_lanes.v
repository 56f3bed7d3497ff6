// SPDX-License-Identifier: Apache-2.0
//
// post_lanes: zero-point terms, batch norm and activation for N_Y * N_Z sums a cycle.
//
// How it works: lane z*N_Y + y takes the parameters of kernel module z. In a convolution these are
// the banks of the group's parameter row, in a depthwise layer the bank of the lane's channel, in
// a fully connected layer one bank: one of few that are picked from all once. Parameters arrive
// with the sums and are delayed along the lanes. Sums of pixels agree above bit 11 in lanes of the same y, for these bits are the same for
// every output channel, or zero (depthwise: nine taps have twelve bits); so they are multiplied
// once a y. Twelve registers from sums to bytes.
// Handshake: none, a fixed pipeline; the sender of sums has reserved the room for their bytes.
// Before a layer's first sum load pulses, then all sixteen entries of its table are written;
// until then the layer before has left.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

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
    input  wire                     clk,
    input  wire                     rst,
    // layer: how a kernel module finds its bank, log2 of the slot width (4, 5, 6), arguments
    input  wire                     one_bank,
    input  wire                     by_chan,
    input  wire [              2:0] swl,
    input  wire [             23:0] arg_x,
    input  wire [              3:0] shr_x,
    input  wire                     sgn,
    // activation table: begins, an entry
    input  wire                     load,
    input  wire                     table_we,
    input  wire [              3:0] table_addr,
    input  wire [`SEGMENT_BITS-1:0] table_data,
    // sums, first bank of the issue, parameters of all banks, what travels beside
    input  wire                     in_valid,
    input  wire [         L*36-1:0] in_sum,
    input  wire [         L*XW-1:0] in_xsum,
    input  wire [           ZW-1:0] in_bank,
    input  wire [       N_Z*71-1:0] in_bn,
    input  wire [       N_Z*36-1:0] in_kc,
    input  wire [           MW-1:0] in_meta,
    // bytes
    output wire                     out_valid,
    output wire [          L*8-1:0] out_byte,
    output wire [           MW-1:0] out_meta,
    // nothing in flight
    output wire                     idle
);

  localparam STAGES = 12;
  localparam LOW = 12;  // bits of a lane's own sum of pixels: 9 * 255

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

  // ---- tables: what all lanes share
  reg [35:0] start_4, start_8, start_12;
  always @(posedge clk) begin
    if (table_we && table_addr == 4'd4) start_4 <= table_data[`SEGMENT_START];
    if (table_we && table_addr == 4'd8) start_8 <= table_data[`SEGMENT_START];
    if (table_we && table_addr == 4'd12) start_12 <= table_data[`SEGMENT_START];
  end

  wire [38:0] scaled;
  wire [ 3:0] multiple_addr;
  wire [42:0] multiple;
  zero_point_table u_multiples (
      .clk   (clk),
      .arg_x (arg_x),
      .shr_x (shr_x),
      .load  (load),
      .step  (table_we),
      .scaled(scaled),
      .addr  (multiple_addr),
      .data  (multiple)
  );

  // ---- parameters: {constant 36, batch norm 71} of all banks; those of the first banks from in_bank
  // on. Lanes span as many channels as slots of 16 pixels fit.
  localparam PW = 107;
  localparam SLOTS = (L >= 128) ? 8 : (L >= 32) ? L / 16 : 1;
  localparam SW = (L >= 128) ? 3 : (L >= 64) ? 2 : 1;
  wire [N_Z*PW-1:0] par;
  wire [(1<<SW)*PW-1:0] slots;
  wire shared = one_bank || by_chan;
  genvar b;
  generate
    for (b = 0; b < N_Z; b = b + 1) begin : g_par
      assign par[PW*b+:PW] = {in_kc[36*b+:36], in_bn[71*b+:71]};
    end
    for (b = 0; b < (1 << SW); b = b + 1) begin : g_slot
      if (b < SLOTS && N_Z > 2) begin : g_pick
        wire [ZW-1:0] sel = in_bank + b[ZW-1:0];
        reg  [PW-1:0] picked;
        always @(posedge clk) if (in_valid && shared) picked <= par[PW*sel+:PW];
        assign slots[PW*b+:PW] = picked;
      end else begin : g_none
        assign slots[PW*b+:PW] = {PW{1'b0}};
      end
    end
  endgenerate

  // ---- zero point: upper part of the sum of pixels, once a y
  genvar z, y;
  wire [N_Y*39-1:0] high;
  generate
    for (y = 0; y < N_Y; y = y + 1) begin : g_high
      zero_point_high #(
          .HW(XW - LOW)
      ) u_high (
          .clk   (clk),
          .valid ({valid_q[0], in_valid}),
          .scaled(scaled),
          .x     (in_xsum[XW*y+LOW+:XW-LOW]),
          .high  (high[39*y+:39])
      );
    end

    // ---- lanes
    for (z = 0; z < N_Z; z = z + 1) begin : g_z
      localparam integer LANE_0 = z * N_Y;
      wire [PW-1:0] par_1;
      reg [70:0] bn_2, bn_3;
      reg [31:0] add_4;
      if (N_Z == 2) begin : g_direct
        localparam [6:0] FIRST = LANE_0[6:0];
        wire [   6:0] slot = one_bank ? 7'd0 : FIRST >> swl;
        wire [ZW-1:0] sel = shared ? in_bank + slot[ZW-1:0] : z[ZW-1:0];
        reg  [PW-1:0] picked;
        always @(posedge clk) if (in_valid) picked <= par[PW*sel+:PW];
        assign par_1 = picked;
        wire unused_slot = &{1'b0, slot};
      end else begin : g_own
        reg [PW-1:0] own;
        always @(posedge clk) if (in_valid && !shared) own <= par[PW*z+:PW];
        assign par_1 = !shared ? own : one_bank ? slots[0+:PW] :
            swl[1] ? slots[PW*(LANE_0/64)+:PW] :
            swl[0] ? slots[PW*(LANE_0/32)+:PW] : slots[PW*(LANE_0/16)+:PW];
      end
      always @(posedge clk) begin
        if (valid_q[0]) bn_2 <= par_1[70:0];
        if (valid_q[1]) bn_3 <= bn_2;
        if (valid_q[2]) add_4 <= bn_3[70:39];
      end
      for (y = 0; y < N_Y; y = y + 1) begin : g_y
        localparam I = z * N_Y + y;
        post_lane #(
            .ROUNDING(ROUNDING)
        ) u_lane (
            .clk          (clk),
            .valid        ({valid_q[STAGES-2:0], in_valid}),
            .sgn          (sgn),
            .table_we     (table_we),
            .table_addr   (table_addr),
            .table_data   (table_data),
            .multiple_addr(multiple_addr),
            .multiple     (multiple),
            .start_4      (start_4),
            .start_8      (start_8),
            .start_12     (start_12),
            .sum          (in_sum[36*I+:36]),
            .xsum         (in_xsum[XW*I+:LOW]),
            .k            (par_1[106:71]),
            .high         (high[39*y+:39]),
            .mul          (bn_3[38:0]),
            .add          (add_4),
            .y            (out_byte[8*I+:8])
        );
      end
    end
  endgenerate

  // the upper parts of the other lanes are the same; two banks need no slots
  wire unused = &{1'b0, in_xsum, slots, swl};

endmodule

`resetall
