// SPDX-License-Identifier: Apache-2.0
//
// accumulator: adds up the reduction steps of a stripe, in two banks, and drains finished groups.
//
// How it works: each lane has 64 / N_Y sums of 36 bits in each bank; 36 bits are enough because
// alu is defined modulo 2^36. Each pixel has a sum of gated pixels of 29 bits, for a fully
// connected layer may add up 2 MiB of them (2^21 * 255). The first step of a group overwrites.
// When the last sum of a group is in, its bank is drained: the drain waits for room in the
// collector and for the parameters and then sends one position a cycle to the post lanes, while
// the array fills the other bank. Depthwise sums need one step only and bypass the banks.
// Handshake: the sequencer waits for bank_free; the drain waits for dr_ok. The post lanes never
// wait.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module accumulator #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // width of the partial sum of the array
    parameter PW  = 28,
    // width of the description of a group
    parameter MW  = 64,
    // width of the sum of pixels
    parameter XW  = 29,
    // lanes
    parameter L   = N_Y * N_Z
) (
    // clock and synchronous reset
    input  wire            clk,
    input  wire            rst,
    // layer: sums pass straight through; log2 of the stripe's line width
    input  wire            direct,
    input  wire [     2:0] swl,
    // sums of the array with the issue they belong to
    input  wire            in_valid,
    input  wire [L*PW-1:0] in_psum,
    input  wire [L*12-1:0] in_xsum,
    input  wire            in_bank,
    input  wire [     5:0] in_idx,
    input  wire            in_first,
    input  wire            in_last,
    input  wire            in_end,
    input  wire [     5:0] in_pos,
    input  wire [  MW-1:0] in_meta,
    // width (1..64) and lines (1..4) of the group, taken with in_end
    input  wire [     6:0] in_width,
    input  wire [     2:0] in_lines,
    // banks that a new group may use; taken when its first issue is made
    output reg  [     1:0] bank_free,
    input  wire            bank_take,
    input  wire            bank_take_n,
    // drain: a group waits with its description, goes when room and parameters are there
    output wire            dr_want,
    output wire [  MW-1:0] dr_meta,
    input  wire            dr_ok,
    // to the post lanes: sums, position in the 64-pixel row, last of the group
    output reg             out_valid,
    output reg  [L*36-1:0] out_sum,
    output reg  [L*XW-1:0] out_xsum,
    output reg  [     5:0] out_pos,
    output reg             out_end,
    output reg  [  MW-1:0] out_meta,
    // a cycle before out_valid: position is being read (the parameters are read with it)
    output wire            rd_valid,
    output wire [  MW-1:0] rd_meta,
    // nothing in flight here
    output wire            idle
);

  localparam DEPTH = 64 / N_Y;
  localparam DW = $clog2(DEPTH);
  localparam SUMS = 36 * L;
  localparam WIDTH = SUMS + XW * N_Y;
  localparam [6:0] CHUNK = N_Y[6:0];

  // ---- groups that are complete wait for the drain, at most one a bank
  reg [1:0] full;
  reg       dr_bank;
  reg [MW-1:0] meta0, meta1;
  reg [6:0] width0, width1;
  reg [2:0] lines0, lines1;

  // ---- drain counters
  reg        draining;
  reg  [5:0] dr_idx;
  reg  [6:0] dr_jj;
  reg  [2:0] dr_line;
  wire [6:0] dr_width = dr_bank ? width1 : width0;
  wire [2:0] dr_lines = dr_bank ? lines1 : lines0;
  wire       dr_line_end = dr_jj + CHUNK >= dr_width;
  wire       dr_done = dr_line_end && dr_line + 3'd1 == dr_lines;
  wire [5:0] dr_pos = ({4'd0, dr_line[1:0]} << swl) + dr_jj[5:0];
  assign dr_meta = dr_bank ? meta1 : meta0;
  assign dr_want = full[dr_bank] && !draining;
  wire dr_go = dr_want && dr_ok;
  wire dr_read = draining;

  // ---- memories: one a bank; the drain and the adder never need the same bank
  wire [WIDTH-1:0] rdata0, rdata1;
  wire    [WIDTH-1:0] acc_old = in_bank ? rdata1 : rdata0;
  reg     [WIDTH-1:0] acc_new;
  wire                acc_we = in_valid && !direct;
  integer             i;
  always @* begin
    i = 0;  // a loop that is skipped would leave it as it was: a latch
    acc_new = {WIDTH{1'b0}};
    if (acc_we) begin
      for (i = 0; i < L; i = i + 1) begin
        acc_new[36*i+:36] = (in_first ? 36'd0 : acc_old[36*i+:36]) +
            {{(36 - PW) {1'b0}}, in_psum[PW*i+:PW]};
      end
      for (i = 0; i < N_Y; i = i + 1) begin
        acc_new[SUMS+XW*i+:XW] = (in_first ? {XW{1'b0}} : acc_old[SUMS+XW*i+:XW]) +
            {{(XW - 12) {1'b0}}, in_xsum[12*i+:12]};
      end
    end
  end

  ram_1r1w_async #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) u_bank0 (
      .clk  (clk),
      .we   (acc_we && !in_bank),
      .waddr(in_idx[DW-1:0]),
      .wdata(acc_new),
      .raddr((dr_read && !dr_bank) ? dr_idx[DW-1:0] : in_idx[DW-1:0]),
      .rdata(rdata0)
  );
  ram_1r1w_async #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) u_bank1 (
      .clk  (clk),
      .we   (acc_we && in_bank),
      .waddr(in_idx[DW-1:0]),
      .wdata(acc_new),
      .raddr((dr_read && dr_bank) ? dr_idx[DW-1:0] : in_idx[DW-1:0]),
      .rdata(rdata1)
  );

  wire [WIDTH-1:0] dr_data = dr_bank ? rdata1 : rdata0;
  wire             group_in = in_valid && in_end && in_last && !direct;

  always @(posedge clk) begin
    if (rst) begin
      full      <= 2'b00;
      bank_free <= 2'b11;
      dr_bank   <= 1'b0;
      draining  <= 1'b0;
      dr_idx    <= 6'd0;
      dr_jj     <= 7'd0;
      dr_line   <= 3'd0;
    end else begin
      draining <= dr_go ? 1'b1 : (dr_read && dr_done) ? 1'b0 : draining;
      if (dr_read) begin
        dr_idx  <= dr_done ? 6'd0 : dr_idx + 6'd1;
        dr_jj   <= dr_line_end ? 7'd0 : dr_jj + CHUNK;
        dr_line <= dr_done ? 3'd0 : dr_line_end ? dr_line + 3'd1 : dr_line;
        dr_bank <= dr_done ? !dr_bank : dr_bank;
      end
      full[0] <= (group_in && !in_bank) ? 1'b1 : (dr_read && dr_done && !dr_bank) ? 1'b0 : full[0];
      full[1] <= (group_in && in_bank) ? 1'b1 : (dr_read && dr_done && dr_bank) ? 1'b0 : full[1];
      bank_free[0] <= (bank_take && !bank_take_n) ? 1'b0 :
          (dr_read && dr_done && !dr_bank) ? 1'b1 : bank_free[0];
      bank_free[1] <= (bank_take && bank_take_n) ? 1'b0 :
          (dr_read && dr_done && dr_bank) ? 1'b1 : bank_free[1];
    end
  end

  always @(posedge clk) begin
    if (group_in && !in_bank) begin
      meta0  <= in_meta;
      width0 <= in_width;
      lines0 <= in_lines;
    end
    if (group_in && in_bank) begin
      meta1  <= in_meta;
      width1 <= in_width;
      lines1 <= in_lines;
    end
  end

  // ---- to the post lanes
  assign rd_valid = direct ? in_valid : dr_read;
  assign rd_meta  = direct ? in_meta : dr_meta;
  assign idle     = full == 2'b00 && !draining && !out_valid && bank_free == 2'b11;

  always @(posedge clk) begin
    if (rst) out_valid <= 1'b0;
    else out_valid <= rd_valid;
  end

  integer k;
  always @(posedge clk) begin
    if (rd_valid) begin
      out_pos  <= direct ? in_pos : dr_pos;
      out_end  <= direct ? in_end : dr_done;
      out_meta <= rd_meta;
      for (k = 0; k < L; k = k + 1) begin
        out_sum[36*k+:36] <= direct ? {{(36 - PW) {1'b0}}, in_psum[PW*k+:PW]} : dr_data[36*k+:36];
        out_xsum[XW*k+:XW] <= direct ? {{(XW - 12) {1'b0}}, in_xsum[12*k+:12]} :
            dr_data[SUMS+XW*(k%N_Y)+:XW];
      end
    end
  end

  wire unused = &{1'b0, in_idx};

endmodule

`resetall
