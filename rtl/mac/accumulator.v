// SPDX-License-Identifier: Apache-2.0
//
// accumulator: adds up the reduction steps of a stripe and outputs the sums of the last one.
//
// How it works: each lane has 64 / N_Y sums of 36 bits; 36 bits are enough because alu is defined modulo
// 2^36. Each pixel has a sum of gated pixels of 29 bits, because a fully connected layer may add up 2 MiB of
// them (2^21 * 255). The first step of a group overwrites. The result of the last step goes directly to the
// post lanes, so that no second bank has to be drained. Depthwise sums need one step only, which is both
// first and last. With SUM_PLANES finished sums of 32 bits are also stored: their other bytes leave from
// sum_planes while the next group's steps are added up. by_lane is registered here: it changes only while no
// sum is in flight, so the register is settled before the first one.
// Handshake: none, the post lanes never stall. The sequencer makes the last step's issues when the group's
// parameters, the table and room in the collector are available.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module accumulator #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // width of the partial sum of the array
    parameter PW = 28,
    // width of the description of a group
    parameter MW = 64,
    // width of the sum of pixels
    parameter XW = 29,
    // 1: finished sums can leave again
    parameter SUM_PLANES = 0,
    // lanes
    parameter L = N_Y * N_Z
) (
    // clock and synchronous reset
    input  wire            clk,
    input  wire            rst,
    // layer: every step is both first and last, each lane has its own pixel; stable from a cycle before the
    // first in_valid of a layer to the last one
    input  wire            by_lane,
    // layer: finished sums are kept; the next kept sums leave again
    input  wire            keeps,
    input  wire            in_again,
    // the next cycle has a first step; sums of the array with their issue: index of the sums, last step, end
    // of the group, position in the 64-pixel row, description of the group
    input  wire            next_first,
    input  wire            in_valid,
    input  wire [L*PW-1:0] in_psum,
    input  wire [L*12-1:0] in_xsum,
    input  wire [     5:0] in_idx,
    input  wire            in_last,
    input  wire            in_end,
    input  wire [     5:0] in_pos,
    input  wire [  MW-1:0] in_meta,
    // to the post lanes: sums, position, last of the group, its description; index of the byte of kept sums
    output reg             out_valid,
    output reg  [L*36-1:0] out_sum,
    output reg  [L*XW-1:0] out_xsum,
    output reg  [     5:0] out_pos,
    output reg             out_end,
    output reg  [  MW-1:0] out_meta,
    output reg  [     1:0] out_plane,
    // a cycle before out_valid (the parameters are read)
    output wire            rd_valid,
    output wire [  MW-1:0] rd_meta
);

  localparam DEPTH = 64 / N_Y;
  localparam DW = $clog2(DEPTH);
  localparam SUMS = 36 * L;
  localparam WIDTH = SUMS + XW * N_Y;

  // registered, because they reach every sum
  reg direct, fresh;
  always @(posedge clk) begin
    direct <= by_lane;
    fresh  <= next_first || by_lane;
  end

  wire    [WIDTH-1:0] old;
  reg     [WIDTH-1:0] sum;
  integer             i;
  always @* begin
    sum = {WIDTH{1'b0}};
    for (i = 0; i < L; i = i + 1) begin
      sum[36*i+:36] = (fresh ? 36'd0 : old[36*i+:36]) + {{(36 - PW) {1'b0}}, in_psum[PW*i+:PW]};
    end
    for (i = 0; i < N_Y; i = i + 1) begin
      sum[SUMS+XW*i+:XW] = (fresh ? {XW{1'b0}} : old[SUMS+XW*i+:XW]) +
          {{(XW - 12) {1'b0}}, in_xsum[12*i+:12]};
    end
  end

  ram_1r1w_async #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) u_sums (
      .clk  (clk),
      .we   (in_valid && !in_last),
      .waddr(in_idx[DW-1:0]),
      .wdata(sum),
      .raddr(in_idx[DW-1:0]),
      .rdata(old)
  );

  // ---- to the post lanes
  wire [WIDTH-1:0] leaving;
  wire [5:0] pos;
  wire ends;
  wire [1:0] plane;
  generate
    if (SUM_PLANES != 0) begin : g_planes
      wire [WIDTH-1:0] kept;
      wire [5:0] kept_pos;
      wire kept_end;
      wire [MW-1:0] kept_meta;
      wire [1:0] kept_plane;
      sum_planes #(
          .WIDTH(WIDTH),
          .DEPTH(DEPTH),
          .MW   (MW)
      ) u_planes (
          .clk      (clk),
          .rst      (rst),
          .keep     (in_valid && in_last && keeps),
          .keep_at  (in_idx[DW-1:0]),
          .keep_sum (sum),
          .keep_pos (in_pos),
          .keep_end (in_end),
          .keep_meta(in_meta),
          .take     (in_again),
          .sum      (kept),
          .pos      (kept_pos),
          .last     (kept_end),
          .meta     (kept_meta),
          .plane    (kept_plane)
      );
      assign leaving = in_again ? kept : sum;
      assign pos     = in_again ? kept_pos : in_pos;
      assign ends    = in_again ? kept_end : in_end;
      assign rd_meta = in_again ? kept_meta : in_meta;
      assign plane   = in_again ? kept_plane : 2'd0;
    end else begin : g_once
      assign leaving = sum;
      assign pos     = in_pos;
      assign ends    = in_end;
      assign rd_meta = in_meta;
      assign plane   = 2'd0;
      wire unused_keeps = keeps;
    end
  endgenerate
  assign rd_valid = (in_valid && (in_last || direct)) || in_again;

  always @(posedge clk) begin
    if (rst) out_valid <= 1'b0;
    else out_valid <= rd_valid;
  end

  integer k;
  always @(posedge clk) begin
    if (rd_valid) begin
      out_pos   <= pos;
      out_end   <= ends;
      out_meta  <= rd_meta;
      out_plane <= plane;
      out_sum   <= leaving[SUMS-1:0];
      for (k = 0; k < L; k = k + 1) begin
        // lanes of other kernel modules differ in depthwise layers only, and only in twelve bits
        out_xsum[XW*k+:XW] <= (k < N_Y) ? leaving[SUMS+XW*(k%N_Y)+:XW] :
            {{(XW - 12) {1'b0}}, direct ? in_xsum[12*k+:12] : leaving[SUMS+XW*(k%N_Y)+:12]};
      end
    end
  end

  wire unused = &{1'b0, in_idx};

endmodule

`resetall
