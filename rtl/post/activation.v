// SPDX-License-Identifier: Apache-2.0
//
// activation: sixteen linear segments to one byte, one lane.
//
// How it works: segment_search finds the segment; the distance from its start is multiplied,
// shifted with rounding, the segment's addend is added and the result is clamped. The roundings are
// those of docs/kpu.md section 1.3. Rounding 0, the vendor's simulator: half to even, and a
// negative value steps down whenever the remainder is above one half. Rounding 1: a step on every
// half, and a value equal to a start belongs to that segment. Rounding 2: floor.
// Distance and multiplier are kept as sign and magnitude, which fits multipliers of 18 x 18
// unsigned bits. act_table has moved the multiplier up, so that the shift is a multiple of four and
// three bits. Of the shifted product nine bits, one half and two flags are kept: something
// below them, something above them, which is beyond the clamp. Seven registers: three of the
// search, distance, products, sum with the coarse half of the shift, byte.
// Handshake: none, a fixed pipeline of seven cycles; valid enables each stage. The table is written
// while no value is in flight.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module activation #(
    // 0: half to even, 1: half away from zero, 2: floor
    parameter ROUNDING = 0
) (
    // clock
    input  wire                     clk,
    // stage enables
    input  wire [              6:0] valid,
    // table: starts of entries 4, 8 and 12; write port
    input  wire [             35:0] start_4,
    input  wire [             35:0] start_8,
    input  wire [             35:0] start_12,
    input  wire                     table_we,
    input  wire [              3:0] table_addr,
    input  wire [`SEGMENT_BITS-1:0] table_data,
    // output is signed (-128..127) instead of unsigned
    input  wire                     sgn,
    // value of the first stage
    input  wire [             35:0] v,
    // out32: the byte of the value that leaves instead (the table's multipliers are 0); fourth stage
    input  wire                     out32,
    input  wire [              1:0] plane,
    // byte after the seventh stage
    output reg  [              7:0] y
);

  // ---- first to third stage: segment
  wire [ 3:0] segment;
  wire [35:0] value;
  segment_search #(
      .EQUAL(ROUNDING == 1 ? 1 : 0)
  ) u_search (
      .clk        (clk),
      .valid      (valid[2:0]),
      .start_4    (start_4),
      .start_8    (start_8),
      .start_12   (start_12),
      .table_we   (table_we),
      .table_addr (table_addr),
      .table_start(table_data[`SEGMENT_START]),
      .v          (v),
      .segment    (segment),
      .value      (value)
  );

  // ---- fourth stage: distance. Only in segment 0 it can be negative; then it is one less.
  wire [`SEGMENT_BITS-1:0] entry;
  ram_1r1w_async #(
      .WIDTH(`SEGMENT_BITS),
      .DEPTH(16)
  ) u_entries (
      .clk  (clk),
      .we   (table_we),
      .waddr(table_addr),
      .wdata(table_data),
      .raddr(segment),
      .rdata(entry)
  );
  wire [35:0] start = entry[`SEGMENT_START];
  wire [36:0] diff = {value[35], value} - {start[35], start};
  reg  [35:0] dist_4;
  reg  [17:0] mul_4;
  reg below_4, neg_4;
  reg [3:0] shift_4;
  reg [7:0] add_4;
  always @(posedge clk) begin
    if (valid[3]) begin
      dist_4  <= diff[35:0] ^ {36{diff[36]}};
      below_4 <= diff[36];
      mul_4   <= entry[`SEGMENT_MUL];
      neg_4   <= entry[`SEGMENT_NEG];
      shift_4 <= entry[`SEGMENT_SHIFT];
      add_4   <= out32 ? value[8*plane+:8] : entry[`SEGMENT_ADD];
    end
  end

  // ---- fifth stage: products of both halves, and the multiplier once more for what is one less
  wire [35:0] low_n = dist_4[17:0] * mul_4;
  wire [35:0] high_n = dist_4[35:18] * mul_4;
  reg [35:0] low_5, high_5;
  reg [17:0] more_5;
  reg neg_5;
  reg [3:0] shift_5;
  reg [7:0] add_5;
  always @(posedge clk) begin
    if (valid[4]) begin
      low_5   <= low_n;
      high_5  <= high_n;
      more_5  <= below_4 ? mul_4 : 18'd0;
      neg_5   <= neg_4 ^ below_4;
      shift_5 <= shift_4;
      add_5   <= add_4;
    end
  end

  // ---- sixth stage: product (magnitude, at most 2^54 - 2^36), shifted by 32 and 16. After each
  // step only those bits are kept that a further shift can bring to the window.
  wire [53:0] product = {high_5, low_5[17:0]} + {18'd0, low_5[35:18], more_5};
  wire [39:0] by_32 = shift_5[3] ? {18'd0, product[53:32]} : product[39:0];
  wire [23:0] by_16 = shift_5[2] ? by_32[39:16] : by_32[23:0];
  wire lost = shift_5[3] && product[31:0] != 32'd0 || shift_5[2] && by_32[15:0] != 16'd0;
  wire vast = !shift_5[3] && product[53:40] != 14'd0 || !shift_5[2] && by_32[39:24] != 16'd0;
  reg [23:0] part_6;
  reg lost_6, vast_6, neg_6;
  reg [1:0] shift_6;
  reg [7:0] add_6;
  always @(posedge clk) begin
    if (valid[5]) begin
      part_6  <= by_16;
      lost_6  <= lost;
      vast_6  <= vast;
      neg_6   <= neg_5;
      shift_6 <= shift_5[1:0];
      add_6   <= add_5;
    end
  end

  // ---- seventh stage: the rest of the shift, round, add and clamp. The window: nine bits, the half,
  // two bits below it
  wire [15:0] by_8 = shift_6[1] ? part_6[23:8] : part_6[15:0];
  wire [11:0] window = shift_6[0] ? by_8[15:4] : by_8[11:0];
  wire [8:0] whole = window[11:3];
  wire half = window[2];
  wire rest = lost_6 || shift_6[1] && part_6[7:0] != 8'd0 || shift_6[0] && by_8[3:0] != 4'd0 ||
      window[1:0] != 2'd0;
  wire beyond = vast_6 || !shift_6[1] && part_6[23:16] != 8'd0 || !shift_6[0] && by_8[15:12] != 4'd0;
  // the step away from zero. Of a negative value the floor is a step further from zero than that
  // of its magnitude, and its remainder is what the magnitude's lacks.
  wire up = (ROUNDING == 2) ? 1'b0 : (ROUNDING == 1) ? half : half && (rest || whole[0]);
  wire down = half || rest;
  wire twice = (ROUNDING == 2) ? 1'b0 : (ROUNDING == 1) ? down && !(half && rest) :
      down && (!half || !rest && !whole[0]);
  // neg: -whole - step = ~whole + 1 - step
  wire [10:0] base = {{3{sgn && add_6[7]}}, add_6} + {{2{neg_6}}, whole ^ {9{neg_6}}};
  wire [10:0] sum = base + (neg_6 ? {{10{twice}}, twice || !down} : {10'd0, up});
  wire under = beyond ? neg_6 : sgn ? sum[10] && sum[9:7] != 3'b111 : sum[10];
  wire over = beyond ? !neg_6 : sgn ? !sum[10] && sum[9:7] != 3'b000 : !sum[10] && sum[9:8] != 2'b00;
  always @(posedge clk) begin
    if (valid[6]) y <= under ? {sgn, 7'd0} : over ? {!sgn, 7'h7f} : sum[7:0];
  end

endmodule

`resetall
