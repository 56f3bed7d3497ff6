// SPDX-License-Identifier: Apache-2.0
//
// fp16_round: rounds an exact sum once, to nearest even, to float32 or float16.
//
// How it works: first sign and magnitude, in two halves. Then the leading one is normalized to the top,
// in seven halving steps. A float16 below 2^-14 has its LSB at 2^-24 whatever its leading one: a one
// inserted at 2^-14 stops the search there, and is removed again. The bits below the LSB round; exponent
// and mantissa are one number to which a one is added, so that a carry gives the next exponent, and the
// largest numbers overflow to infinity. A zero sum is +0, all NaN have the same code.
// Handshake: six stages that advance with `move`.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fp16_round (
    // clock; all stages advance
    input  wire        clk,
    input  wire        move,
    // float32, not float16: the same for a whole layer
    input  wire        wide,
    // sum in units of 2^-48; bits 97:96: a -infinity, a +infinity occurred
    input  wire [97:0] sum,
    // the number, a float16 in the lower half
    output reg  [31:0] value
);

  // ---- sign and magnitude
  reg [47:0] low_1, high_1, low_2, high_2;
  reg carry_1, minus_1, minus_2;
  reg [1:0] kind_1, kind_2;
  wire minus = sum[95];
  always @(posedge clk) begin
    if (move) begin
      {carry_1, low_1} <= {1'b0, sum[47:0] ^ {48{minus}}} + {48'd0, minus};
      {high_1, minus_1, kind_1} <= {sum[95:48], minus, sum[97:96]};
      high_2 <= (high_1 ^ {48{minus_1}}) + {47'd0, carry_1};
      {low_2, minus_2, kind_2} <= {low_1, minus_1, kind_1};
    end else begin
      high_2 <= high_2;
    end
  end

  // ---- normalize
  wire below = !wide && high_2 == 48'd0 && low_2[47:34] == 14'd0;
  wire [95:0] marked = {high_2, low_2[47:35], low_2[34] || below, low_2[33:0]};
  wire by_64 = marked[95:32] == 64'd0;
  wire [95:0] after_64 = by_64 ? {marked[31:0], 64'd0} : marked;
  wire by_32 = after_64[95:64] == 32'd0;
  reg [95:0] top_3, top_4, top_5;
  reg [1:0] up_3;
  reg [3:0] up_4;
  reg [6:0] up_5;
  reg below_3, below_4, below_5, minus_3, minus_4, minus_5;
  reg [1:0] kind_3, kind_4, kind_5;
  wire by_16 = top_3[95:80] == 16'd0;
  wire [95:0] after_16 = by_16 ? {top_3[79:0], 16'd0} : top_3;
  wire by_8 = after_16[95:88] == 8'd0;
  wire by_4 = top_4[95:92] == 4'd0;
  wire [95:0] after_4 = by_4 ? {top_4[91:0], 4'd0} : top_4;
  wire by_2 = after_4[95:94] == 2'd0;
  wire [95:0] after_2 = by_2 ? {after_4[93:0], 2'd0} : after_4;
  wire by_1 = !after_2[95];
  always @(posedge clk) begin
    if (move) begin
      top_3 <= by_32 ? {after_64[63:0], 32'd0} : after_64;
      top_4 <= by_8 ? {after_16[87:0], 8'd0} : after_16;
      top_5 <= by_1 ? {after_2[94:0], 1'b0} : after_2;
      up_3 <= {by_64, by_32};
      up_4 <= {up_3, by_16, by_8};
      up_5 <= {up_4, by_4, by_2, by_1};
      {below_3, minus_3, kind_3} <= {below, minus_2, kind_2};
      {below_4, minus_4, kind_4} <= {below_3, minus_3, kind_3};
      {below_5, minus_5, kind_5} <= {below_4, minus_4, kind_4};
    end else begin
      top_3 <= top_3;
    end
  end

  // ---- exponent and mantissa as one number; the hidden bit adds one to the exponent
  wire none = !top_5[95];  // float32 only: a float16 has the inserted one
  wire [6:0] left = 7'd61 - up_5;  // of a float16: exponent less one
  wire [7:0] left_32 = 8'd173 - {1'b0, up_5};
  wire half = wide ? top_5[71] : top_5[84];
  wire rest = (|top_5[70:0]) || (!wide && (|top_5[83:71]));
  wire odd = wide ? top_5[72] : top_5[85];
  wire up = half && (rest || odd);
  wire [31:0] plain_32 = {1'b0, left_32, 23'd0} + {8'd0, top_5[95:72]} + {31'd0, up};
  wire [17:0] plain_16 = {1'b0, left, 10'd0} + {7'd0, top_5[95] && !below_5, top_5[94:85]} +
      {17'd0, up};
  wire huge = plain_16[17:10] > 8'd30;
  wire [31:0] made_32 = (kind_5 == 2'd3) ? 32'h7fc00000 :
      (kind_5 != 2'd0) ? {kind_5[1], 31'h7f800000} :
      none ? 32'd0 : {minus_5, plain_32[30:0]};
  wire [15:0] made_16 = (kind_5 == 2'd3) ? 16'h7e00 :
      (kind_5 != 2'd0) ? {kind_5[1], 15'h7c00} :
      {minus_5, huge ? 15'h7c00 : plain_16[14:0]};
  always @(posedge clk) begin
    if (move) value <= wide ? made_32 : {16'd0, made_16};
    else value <= value;
  end

  wire unused = &{1'b0, plain_32[31], plain_16[15]};

endmodule

`resetall
