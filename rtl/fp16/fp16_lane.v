// SPDX-License-Identifier: Apache-2.0
//
// fp16_lane: the exact sum of products of float16 numbers.
//
// How it works: a product of two mantissas arrives as two products of the array's multipliers, of the
// lower eight and the upper three bits of one mantissa. Their 22-bit sum is shifted into a fixed-point
// number whose LSB weighs 2^-48, the smallest product, and added to a 96-bit accumulator: the largest
// product is below 2^32, so 2^15 of them fit. No bit is lost, so the order does not matter. The addition
// is split into two halves, a cycle apart. Infinities and NaN only set two sticky bits for the rest of
// the sum: a +infinity occurred, a -infinity occurred; NaN sets both. After the last product the sum
// moves to a holding register, from which the lanes shift out their sums while the next ones accumulate.
// Handshake: none, a fixed pipeline: `valid`, `first` and `last` describe the content of each stage. The
// sum is held from the cycle after last[1] on.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp16_lane (
    // clock
    input  wire        clk,
    // shift of the product, 0 for 2^-48; its sign; kind if not finite: bit 0 +infinity, bit 1 -infinity
    input  wire [18:0] low,
    input  wire [13:0] high,
    input  wire [ 4:0] exponent_a,
    input  wire [ 4:0] exponent_b,
    input  wire        negative,
    input  wire [ 1:0] special,
    // low half, high half: a product is valid, first of a sum; move the halves of the sum to the holding
    // register
    input  wire [ 1:0] valid,
    input  wire [ 1:0] first,
    input  wire [ 1:0] last,
    // the holding registers shift
    input  wire        shift,
    input  wire [97:0] next,
    output wire [97:0] sum
);

  // ---- the product and its shift
  reg [21:0] product;
  reg [ 5:0] by;
  always @(posedge clk) begin
    product <= {3'd0, low} + {high, 8'd0};
    by      <= {1'b0, exponent_a} + {1'b0, exponent_b} - 6'd2;
  end

  // ---- shift by up to 15, then by a multiple of 16
  reg  [36:0] fine;
  reg  [ 1:0] coarse;
  reg  [79:0] placed;
  wire [84:0] moved = {48'd0, fine} << {coarse, 4'd0};
  always @(posedge clk) begin
    fine   <= {15'd0, product} << by[3:0];
    coarse <= by[5:4];
    placed <= moved[79:0];
  end

  // sign and kind travel along
  reg [2:0] tag_1, tag_2, tag_3;
  always @(posedge clk) {tag_1, tag_2, tag_3} <= {{negative, special}, tag_1, tag_2};
  wire minus = tag_3[2];

  // ---- the sum: lower half, the upper half a cycle later
  reg [47:0] sum_low, sum_high;
  reg carry, minus_q;
  reg [1:0] kind, kind_q;
  reg [31:0] upper;
  wire [48:0] add_low = {1'b0, first[0] ? 48'd0 : sum_low} + {1'b0, placed[47:0] ^ {48{minus}}} +
      {48'd0, minus};
  always @(posedge clk) begin
    if (valid[0]) {carry, sum_low} <= add_low;
    else {carry, sum_low} <= {carry, sum_low};
    upper <= placed[79:48];
    {minus_q, kind_q} <= tag_3;
  end
  wire [47:0] add_high = (first[1] ? 48'd0 : sum_high) + ({16'd0, upper} ^ {48{minus_q}}) +
      {47'd0, carry};
  always @(posedge clk) begin
    if (valid[1]) {sum_high, kind} <= {add_high, (first[1] ? 2'd0 : kind) | kind_q};
    else {sum_high, kind} <= {sum_high, kind};
  end

  // ---- holding registers
  reg [47:0] held_low;
  reg [49:0] held_high;
  always @(posedge clk) begin
    if (last[0]) held_low <= sum_low;
    else if (shift) held_low <= next[47:0];
    else held_low <= held_low;
    if (last[1]) held_high <= {kind, sum_high};
    else if (shift) held_high <= next[97:48];
    else held_high <= held_high;
  end
  assign sum = {held_high, held_low};

  wire unused = &{1'b0, moved[84:80]};

endmodule

`resetall
