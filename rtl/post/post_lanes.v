// SPDX-License-Identifier: Apache-2.0
//
// post_lanes: zero-point terms, batch norm and activation for N_Y * N_Z sums per cycle.
//
// How it works: lane z*N_Y + y uses the parameters of kernel module z. In a convolution these are the
// banks of the group's parameter row, in a depthwise layer the bank of the lane's channel, in a fully
// connected layer one bank, selected once for all lanes. Parameters arrive with the sums and are delayed
// along the lanes; on its way an addend is reduced by the contribution of the constant's offset behind
// the multiplier (batch_norm).
// Except in depthwise layers all lanes of a y have the same sum of pixels. Nine taps, all that a
// depthwise layer accumulates, need twelve bits; the bits above are multiplied once per y, in the second
// lane of the y, which then uses the first lane's product of the lower ones; without a second lane, in
// zero_point_high.
// Sixteen registers from sums to bytes. SHARE sums may share a lane: then the kernel modules arrive in
// that many parts, one per cycle, and the bytes leave together with the last.
// Handshake: none, a fixed pipeline; the sender of sums has reserved the room for their bytes, and sends
// no others for SHARE - 1 cycles; the parameters are held that long.
// load pulses before a layer's first sum; from the third cycle after it on all sixteen entries of its
// table are written; by then the previous layer has drained.
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
    // width of the metadata that travels with a sum
    parameter MW       = 64,
    // width of the sum of pixels
    parameter XW       = 29,
    // sums that share a lane: 1, 2 or 4
    parameter SHARE    = 1,
    // zero point of a lane: 1 from two multipliers, 0 from memories
    parameter MULTIPLY = 1,
    // bits of a multiplier's wide operand (the other one has 18): 18 or 17
    parameter PIECE    = 18,
    // derived, not to be set: sums and width of a bank index
    parameter L        = N_Y * N_Z,
    parameter ZW       = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // layer: bank selection of a kernel module, depthwise (lanes have their own pixels), log2 of the slot
    // width (4, 5, 6), arguments
    input  wire                     one_bank,
    input  wire                     by_chan,
    input  wire                     by_lane,
    input  wire [              2:0] swl,
    input  wire [             23:0] arg_x,
    input  wire [              3:0] shr_x,
    input  wire                     sgn,
    input  wire                     out32,
    // activation table: load, an entry
    input  wire                     load,
    input  wire                     table_we,
    input  wire [              3:0] table_addr,
    input  wire [`SEGMENT_BITS-1:0] table_data,
    // sums, first bank of the issue, parameters of all banks, metadata
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

  localparam STAGES = 16;
  localparam LOW = 12;  // bits of a lane's own sum of pixels: 9 * 255

  // ---- parts: lanes and kernel modules per part
  localparam LANES = L / SHARE;
  localparam LZ = N_Z / SHARE;
  wire p_valid, p_last;
  wire [1:0] part;
  wire [LANES*36-1:0] p_sum;
  wire [LANES*LOW-1:0] p_low;
  wire [N_Y*(XW-LOW)-1:0] in_high, p_high;
  wire [ZW-1:0] p_bank;
  wire [MW-1:0] p_meta;
  wire [L*LOW-1:0] in_low;
  genvar i;
  generate
    for (i = 0; i < L; i = i + 1) begin : g_low
      assign in_low[LOW*i+:LOW] = in_xsum[XW*i+:LOW];
    end
    for (i = 0; i < N_Y; i = i + 1) begin : g_upper
      assign in_high[(XW-LOW)*i+:XW-LOW] = in_xsum[XW*i+LOW+:XW-LOW];
    end
    if (SHARE == 1) begin : g_whole
      assign part = 2'd0;
      assign {p_valid, p_last} = {in_valid, 1'b1};
      assign {p_sum, p_low, p_high} = {in_sum, in_low, in_high};
      assign {p_bank, p_meta} = {in_bank, in_meta};
    end else begin : g_parts
      localparam integer MORE = SHARE - 1;
      localparam [1:0] END = MORE[1:0];
      reg [1:0] next;  // pending part, 0: none
      reg [(L-LANES)*36-1:0] rest_sum;
      reg [(L-LANES)*LOW-1:0] rest_low;
      reg [N_Y*(XW-LOW)-1:0] high_q;
      reg [ZW-1:0] bank_q;
      reg [MW-1:0] meta_p;
      always @(posedge clk) begin
        if (rst) next <= 2'd0;
        else next <= in_valid ? 2'd1 : (next == 2'd0 || next == END) ? 2'd0 : next + 2'd1;
      end
      always @(posedge clk) begin
        rest_sum <= in_valid ? in_sum[L*36-1:LANES*36] : rest_sum >> LANES * 36;
        rest_low <= in_valid ? in_low[L*LOW-1:LANES*LOW] : rest_low >> LANES * LOW;
        if (in_valid) {high_q, bank_q, meta_p} <= {in_high, in_bank, in_meta};
      end
      assign part    = in_valid ? 2'd0 : next;
      assign p_valid = in_valid || next != 2'd0;
      assign p_last  = part == END;
      assign p_sum   = in_valid ? in_sum[LANES*36-1:0] : rest_sum[LANES*36-1:0];
      assign p_low   = in_valid ? in_low[LANES*LOW-1:0] : rest_low[LANES*LOW-1:0];
      assign p_high  = in_valid ? in_high : high_q;
      assign p_bank  = in_valid ? in_bank : bank_q;
      assign p_meta  = in_valid ? in_meta : meta_p;
    end
  endgenerate

  // ---- the pipeline
  reg [STAGES-1:0] valid_q, last_q;
  reg  [MW*STAGES-1:0] meta_q;
  wire [  LANES*8-1:0] lane_byte;
  always @(posedge clk) begin
    if (rst) valid_q <= {STAGES{1'b0}};
    else valid_q <= {valid_q[STAGES-2:0], p_valid};
  end
  always @(posedge clk) begin
    meta_q <= {meta_q[MW*(STAGES-1)-1:0], p_meta};
    last_q <= {last_q[STAGES-2:0], p_last};
  end
  assign out_valid = valid_q[STAGES-1] && last_q[STAGES-1];
  assign out_meta  = meta_q[MW*STAGES-1-:MW];
  assign idle      = valid_q == {STAGES{1'b0}};
  generate
    if (SHARE == 1) begin : g_out
      assign out_byte = lane_byte;
    end else begin : g_collect
      reg [(L-LANES)*8-1:0] earlier;  // bytes of the previous parts
      assign out_byte = {lane_byte, earlier};
      always @(posedge clk) if (valid_q[STAGES-1]) earlier <= out_byte[L*8-1:LANES*8];
    end
  endgenerate

  // the job is the lowest field of the metadata; here that of a value whose segment is known
  wire [`JOB_BITS-1:0] job_11 = meta_q[MW*10+:`JOB_BITS];

  // ---- tables: values common to all lanes. With out32 v is output: minus 0, times 8, plus 0.
  reg [`SEGMENT_BITS-1:0] segment;
  reg segment_we;
  reg [3:0] segment_addr;
  always @(posedge clk) begin
    if (rst) segment_we <= 1'b0;
    else segment_we <= table_we;
  end
  always @(posedge clk) begin
    segment_addr <= table_addr;
    segment      <= table_data;
    if (out32) begin
      segment[`SEGMENT_START] <= 36'd0;
      segment[`SEGMENT_MUL]   <= 18'd8;
      segment[`SEGMENT_NEG]   <= 1'b0;
      segment[`SEGMENT_ADD]   <= 8'd0;
    end
  end
  reg [35:0] start_4, start_8, start_12;
  reg [18:0] less;  // minus the multiplier of entry 0
  always @(posedge clk) begin
    if (segment_we && segment_addr == 4'd0) less <= 19'd0 - {1'b0, segment[`SEGMENT_MUL]};
    if (segment_we && segment_addr == 4'd4) start_4 <= segment[`SEGMENT_START];
    if (segment_we && segment_addr == 4'd8) start_8 <= segment[`SEGMENT_START];
    if (segment_we && segment_addr == 4'd12) start_12 <= segment[`SEGMENT_START];
  end

  wire [38:0] scaled;
  wire [35:0] coarse;
  wire        fine;
  wire [ 3:0] multiple_addr;
  wire [42:0] multiple;
  zero_point_table u_multiples (
      .clk   (clk),
      .arg_x (arg_x),
      .shr_x (shr_x),
      .load  (load),
      .step  (table_we),
      .scaled(scaled),
      .coarse(coarse),
      .fine  (fine),
      .addr  (multiple_addr),
      .data  (multiple)
  );

  // ---- parameters: {constant 36, batch norm 71} of all banks; those from the part's first bank on.
  // Lanes span as many channels as slots of 16 pixels fit.
  localparam PW = 107;
  localparam SLOTS = (LANES >= 128) ? 8 : (LANES >= 32) ? LANES / 16 : 1;
  localparam SW = (LANES >= 128) ? 3 : (LANES >= 64) ? 2 : 1;
  localparam integer LANES_I = LANES;
  localparam [7:0] STEP = LANES_I[7:0];
  wire [N_Z*PW-1:0] par;
  wire [(1<<SW)*PW-1:0] slots;
  wire shared = one_bank || by_chan;
  // (slots have 16, 32 or 64 pixels: lanes of fewer pixels need no shift)
  // depthwise: channels before those of the part; for a row of one channel the later lanes hold a second
  // row of the same channel
  wire [8:0] part_at = (part == 2'd1) ? {1'b0, STEP} :
      part[1] ? {STEP, 1'b0} + (part[0] ? {1'b0, STEP} : 9'd0) : 9'd0;
  wire [8:0] part_chans = (by_chan && !one_bank) ? (part_at >> 4) >> swl[1:0] : 9'd0;
  wire [ZW-1:0] first_bank = p_bank + part_chans[ZW-1:0];
  genvar b;
  generate
    for (b = 0; b < N_Z; b = b + 1) begin : g_par
      assign par[PW*b+:PW] = {in_kc[36*b+:36], in_bn[71*b+:71]};
    end
    for (b = 0; b < (1 << SW); b = b + 1) begin : g_slot
      if (b < SLOTS && N_Z > 2) begin : g_pick
        wire [ZW-1:0] sel = first_bank + b[ZW-1:0];
        reg  [PW-1:0] picked;
        always @(posedge clk) if (p_valid && shared) picked <= par[PW*sel+:PW];
        assign slots[PW*b+:PW] = picked;
      end else begin : g_none
        assign slots[PW*b+:PW] = {PW{1'b0}};
      end
    end
  endgenerate

  // ---- zero point: upper part of the sum of pixels, once per y
  localparam POOLED = (MULTIPLY != 0 && LZ > 1) ? 1 : 0;
  genvar z, y;
  wire [  N_Y*39-1:0] high;
  wire [LANES*51-1:0] product;  // of each lane's low bits, or of the upper ones
  generate
    for (y = 0; y < N_Y; y = y + 1) begin : g_high
      wire [XW-LOW-1:0] x = p_high[(XW-LOW)*y+:XW-LOW];
      wire [XW-LOW+16:0] wider = {17'd0, x};
      wire unused_wider = &{1'b0, wider};
      if (POOLED != 0) begin : g_pooled
        wire [38:0] upper = product[51*(N_Y+y)+:39];
        reg  [38:0] upper_q;
        always @(posedge clk) begin
          if (valid_q[1]) upper_q <= by_lane ? 39'd0 : fine ? {upper[35:0], 3'd0} : upper;
        end
        assign high[39*y+:39] = upper_q;
      end else begin : g_apart
        zero_point_high #(
            .HW(XW - LOW)
        ) u_high (
            .clk   (clk),
            .valid ({valid_q[1:0], p_valid}),
            .scaled(scaled),
            .x     (x),
            .high  (high[39*y+:39])
        );
      end
    end

    // ---- lanes
    for (z = 0; z < LZ; z = z + 1) begin : g_z
      localparam integer LANE_0 = z * N_Y;
      wire [PW-1:0] par_1;
      reg [70:0] bn_2, bn_3, bn_4;
      reg [35:0] k_2;
      reg [35:0] add_5, add_6;
      if (N_Z == 2) begin : g_direct
        localparam [6:0] FIRST = LANE_0[6:0];
        wire [   6:0] slot = one_bank ? 7'd0 : (FIRST >> 4) >> swl[1:0];
        wire [ZW-1:0] sel = shared ? first_bank + slot[ZW-1:0] : z[ZW-1:0] | part[ZW-1:0];
        reg  [PW-1:0] picked;
        always @(posedge clk) if (p_valid) picked <= par[PW*sel+:PW];
        assign par_1 = picked;
        wire unused_slot = &{1'b0, slot};
      end else begin : g_own
        reg [PW-1:0] own;
        always @(posedge clk) if (p_valid && !shared) own <= par[PW*(z+LZ*part)+:PW];
        assign par_1 = !shared ? own : one_bank ? slots[0+:PW] :
            swl[1] ? slots[PW*(LANE_0/64)+:PW] :
            swl[0] ? slots[PW*(LANE_0/32)+:PW] : slots[PW*(LANE_0/16)+:PW];
      end
      always @(posedge clk) begin
        if (valid_q[0]) {k_2, bn_2} <= par_1;
        if (valid_q[1]) bn_3 <= bn_2;
        if (valid_q[2]) bn_4 <= bn_3;
        if (valid_q[3]) add_5 <= {{4{bn_4[70]}}, bn_4[70:39]} - {bn_4[15:0], 20'd0};
        if (valid_q[4]) add_6 <= add_5;
      end
      for (y = 0; y < N_Y; y = y + 1) begin : g_y
        localparam I = z * N_Y + y;
        localparam SECOND = (POOLED != 0 && z == 1) ? 1 : 0;
        wire [16:0] x_low = {{(17 - LOW) {1'b0}}, p_low[LOW*I+:LOW]};
        wire [16:0] x;
        wire [38:0] low;
        if (SECOND != 0) begin : g_second
          assign x   = by_lane ? x_low : g_high[y].wider[16:0];
          assign low = by_lane ? product[51*I+12+:39] : product[51*y+12+:39];
        end else begin : g_first
          assign x   = x_low;
          assign low = product[51*I+12+:39];
        end
        post_lane #(
            .ROUNDING(ROUNDING),
            .MULTIPLY(MULTIPLY),
            .PIECE   (PIECE)
        ) u_lane (
            .clk          (clk),
            .valid        ({valid_q[STAGES-2:0], p_valid}),
            .sgn          (sgn),
            .coarse       (coarse),
            .fine         ((SECOND != 0) ? fine && by_lane : fine),
            .table_we     (segment_we),
            .table_addr   (segment_addr),
            .table_data   (segment),
            .multiple_we  (table_we),
            .multiple_addr(multiple_addr),
            .multiple     (multiple),
            .start_4      (start_4),
            .start_8      (start_8),
            .start_12     (start_12),
            .less         (less),
            .sum          (p_sum[36*I+:36]),
            .xsum         (x),
            .own          (product[51*I+:51]),
            .low          (low),
            .k            ({!k_2[35], k_2[34:0]}),
            .high         (high[39*y+:39]),
            .mul          (bn_4[38:0]),
            .add          (add_6),
            .out32        (out32),
            .plane        (job_11[`JOB_PLANE]),
            .y            (lane_byte[8*I+:8])
        );
      end
    end
  endgenerate

  generate
    if (SHARE != 1 && SHARE != 2 && SHARE != 4 || SHARE > N_Z) begin : g_illegal
      ILLEGAL_POST_SHARE_1_2_4_UP_TO_N_Z u_illegal ();
    end
    if (ROUNDING < 0 || ROUNDING > 2) begin : g_illegal_rounding
      ILLEGAL_ROUNDING_0_1_2 u_illegal_rounding ();
    end
    if (MULTIPLY != 0 && MULTIPLY != 1) begin : g_illegal_tables
      ILLEGAL_POST_TABLES_0_1 u_illegal_tables ();
    end
    if (PIECE != 17 && PIECE != 18) begin : g_illegal_piece
      ILLEGAL_MUL_BITS_17_18 u_illegal_piece ();
    end
  endgenerate

  // the upper parts of the other lanes are equal; two banks need no slots
  wire unused = &{1'b0, in_xsum, job_11, scaled, product, slots, swl, part_chans, part};

endmodule

`resetall
