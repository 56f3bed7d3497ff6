// SPDX-License-Identifier: Apache-2.0
//
// activation: piecewise linear function of sixteen segments, result one byte, one lane.
//
// How it works: segment_search finds the segment; the distance from its start is multiplied and shifted
// with rounding, the segment's addend is added and the result is clamped. The rounding modes are those of
// docs/kpu.md section 1.3. Rounding 0, the vendor's simulator: half to even, and a negative value steps
// down whenever the remainder is above one half. Rounding 1: a step on every half, and a value equal to a
// start belongs to that segment. Rounding 2: floor. The distance is signed, negative in segment 0 alone;
// the multiplier is sign and magnitude. act_table has shifted it left, so that the remaining shift is a
// multiple of four, plus three bits. Of the shifted product nine bits, one half bit and two flags are
// kept: a non-zero bit below them, a bit above them, which is beyond the clamp. Eight registers: three of
// the search, distance, products, their sum, most of the shift, byte. Distance and products have no
// enable, so that they can map to the multipliers' own registers; they settle together with the values.
// Handshake: none, a fixed pipeline of eight cycles; valid enables each stage. The table is written while
// no value is in flight.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module activation #(
    // 0: half to even, 1: half away from zero, 2: floor
    parameter ROUNDING = 0,
    // operand width of a multiplier for the distance: 18, or 17 where unsigned operands have one bit less
    parameter PIECE    = 18
) (
    // clock
    input  wire                     clk,
    // stage enables
    input  wire [              7:0] valid,
    // table: starts of entries 4, 8 and 12; write port
    input  wire [             35:0] start_4,
    input  wire [             35:0] start_8,
    input  wire [             35:0] start_12,
    input  wire                     table_we,
    input  wire [              3:0] table_addr,
    input  wire [`SEGMENT_BITS-1:0] table_data,
    // minus the multiplier's magnitude of entry 0, whose distance may be negative
    input  wire [             18:0] less,
    // output is signed (-128..127) instead of unsigned
    input  wire                     sgn,
    // value of the first stage
    input  wire [             35:0] v,
    // out32: a byte of the value bypasses rounding (the table's starts are 0, its multipliers 8); its
    // index; fourth stage
    input  wire                     out32,
    input  wire [              1:0] plane,
    // byte after the eighth stage
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

  // ---- fourth stage: distance, signed, negative in segment 0 alone
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
  reg [36:0] dist_4;
  reg [17:0] mul_4;
  reg neg_4;
  reg [3:0] shift_4;
  reg [7:0] add_4;
  always @(posedge clk) begin
    dist_4 <= diff;
    mul_4  <= entry[`SEGMENT_MUL];
    if (valid[3]) begin
      neg_4   <= entry[`SEGMENT_NEG];
      shift_4 <= out32 ? {1'b0, plane, 1'b0} : entry[`SEGMENT_SHIFT];
      add_4   <= entry[`SEGMENT_ADD];
    end
  end

  // ---- fifth stage: products of two pieces of the distance. For a negative distance they are too large
  // by 2^36 times the multiplier of entry 0.
  wire [PIECE+17:0] low_n = dist_4[PIECE-1:0] * mul_4;
  wire [PIECE+17:0] high_n = dist_4[2*PIECE-1:PIECE] * mul_4;
  reg [PIECE+17:0] low_5, high_5;
  reg [18:0] less_5;
  reg neg_5, below_5;
  reg [3:0] shift_5;
  reg [7:0] add_5;
  always @(posedge clk) begin
    low_5  <= low_n;
    high_5 <= high_n;
    if (valid[4]) begin
      less_5  <= dist_4[36] ? less : 19'd0;
      below_5 <= dist_4[36] && less[18];
      neg_5   <= neg_4;
      shift_5 <= shift_4;
      add_5   <= add_4;
    end
  end

  // ---- sixth stage: product, between -2^54 and 2^54
  wire [53:0] product_n;
  generate
    if (PIECE == 18) begin : g_even
      wire [36:0] upper = {1'b0, high_5} + {less_5, low_5[35:18]};
      assign product_n = {upper[35:0], low_5[17:0]};
      wire unused_upper = &{1'b0, upper[36]};
    end else begin : g_odd
      // two more bits of the distance
      reg [17:0] one_5, two_5;
      always @(posedge clk) begin
        if (valid[4]) begin
          one_5 <= dist_4[34] ? mul_4 : 18'd0;
          two_5 <= dist_4[35] ? mul_4 : 18'd0;
        end
      end
      wire [37:0] upper = {3'd0, high_5} + {less_5, 1'b0, low_5[34:17]};
      wire [20:0] top = upper[37:17] + ({3'd0, one_5} + {2'd0, two_5, 1'b0});
      assign product_n = {top[19:0], upper[16:0], low_5[16:0]};
      wire unused_top = &{1'b0, top[20]};
    end
  endgenerate
  reg [53:0] product;
  reg neg_p, below_p;
  reg [3:0] shift_p;
  reg [7:0] add_p;
  always @(posedge clk) begin
    if (valid[5]) begin
      product <= product_n;
      neg_p   <= neg_5;
      below_p <= below_5;
      shift_p <= shift_5;
      add_p   <= add_5;
    end
  end

  // ---- seventh stage: shifted by 32, 16 and 8. After each step only those bits are kept that a further
  // shift can move into the window. A negative product is kept as its complement, so that zeros are
  // shifted in from above.
  wire [21:0] by_32 = shift_p[3] ? product[53:32] : product[21:0];
  wire [23:0] by_16 = shift_p[2] ? {product[39:22], by_32[21:16]} : {product[23:22], by_32};
  wire lost = shift_p[3] && product[31:0] != 32'd0 || shift_p[2] && by_32[15:0] != 16'd0;
  wire vast = !shift_p[3] && (product[53:40] != {14{below_p}} ||
      !shift_p[2] && product[39:24] != {16{below_p}});
  reg [23:0] part;
  always @* begin
    part = by_16 ^ {24{below_p}};
    if (shift_p[3]) part[23:22] = 2'd0;
    if (shift_p[3:2] == 2'b11) part[21:6] = 16'd0;
  end
  reg [15:0] by_8;
  reg lost_6, vast_6, neg_6, below_6, shift_6;
  reg [7:0] add_6;
  always @(posedge clk) begin
    if (valid[6]) begin
      by_8    <= shift_p[1] ? part[23:8] : part[15:0];
      lost_6  <= lost || shift_p[1] && part[7:0] != {8{below_p}};
      vast_6  <= vast || !shift_p[1] && part[23:16] != 8'd0;
      neg_6   <= neg_p;
      below_6 <= below_p;
      shift_6 <= shift_p[0];
      add_6   <= add_p;
    end
  end

  // ---- eighth stage: the rest of the shift, round, add and clamp. The window: nine bits, the half bit,
  // two bits below it
  wire [11:0] window = shift_6 ? by_8[15:4] : by_8[11:0];
  wire odd = window[3] ^ below_6;
  wire half = window[2] ^ below_6;
  wire rest = lost_6 || shift_6 && by_8[3:0] != {4{below_6}} || window[1:0] != {2{below_6}};
  wire beyond = vast_6 || !shift_6 && by_8[15:12] != 4'd0;
  // the floor of the value is whole or, with a negative multiplier, -whole = ~whole + 1 without a
  // remainder, else ~whole, with 1 minus the remainder as the new remainder.
  // The step away from zero:
  wire step_whole = (ROUNDING == 2) ? 1'b0 : (ROUNDING == 1) ? half : half && (rest || odd);
  wire step_other = (ROUNDING == 2) ? 1'b0 : (ROUNDING == 1) ? half ^ rest :
      rest ? !half : half && !odd;
  wire negative = neg_6 ^ below_6;
  wire step = neg_6 ? step_other : step_whole;
  wire down = step && negative && !out32;
  wire up = (step && !negative || neg_6 && !half && !rest) && !out32;
  wire [10:0] base = {{3{sgn && add_6[7]}}, add_6} + {{2{negative}}, window[11:3] ^ {9{negative}}};
  wire [10:0] sum = base + {{10{down}}, down || up};
  wire under = !out32 && (beyond ? negative : sgn ? sum[10] && sum[9:7] != 3'b111 : sum[10]);
  wire over = !out32 &&
      (beyond ? !negative : sgn ? !sum[10] && sum[9:7] != 3'b000 : !sum[10] && sum[9:8] != 2'b00);
  always @(posedge clk) begin
    if (valid[7]) y <= under ? {sgn, 7'd0} : over ? {!sgn, 7'h7f} : sum[7:0];
  end

endmodule

`resetall
