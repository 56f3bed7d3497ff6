// SPDX-License-Identifier: Apache-2.0
//
// activation: sixteen linear segments to one byte, one lane.
//
// How it works: the largest segment whose start is below v is taken (segment 0 when none is), the
// difference is multiplied, shifted with rounding, the segment's addend is added and the result is
// clamped. The roundings are those of docs/kpu.md section 1.3. Rounding 0, the vendor's simulator:
// half to even, and a negative value steps down whenever the remainder is above one half. Rounding
// 1: a step on every half, and a value equal to a start belongs to that segment. Rounding 2:
// floor. Four registers: segment, product, rounded value, byte.
// Handshake: none, a fixed pipeline of four cycles; valid enables each stage.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module activation #(
    // 0: half to even, 1: half away from zero, 2: floor
    parameter ROUNDING = 0
) (
    // clock
    input  wire                    clk,
    // stage enables
    input  wire        [      3:0] valid,
    // table: entry i at i*width
    input  wire        [16*36-1:0] t_start,
    input  wire        [16*16-1:0] t_mul,
    input  wire        [ 16*8-1:0] t_shift,
    input  wire        [ 16*8-1:0] t_add,
    // output is signed (-128..127) instead of unsigned
    input  wire                    sgn,
    // value of the first stage
    input  wire signed [     35:0] v,
    // byte after the fourth stage
    output reg         [      7:0] y
);

  // ---- first stage: segment
  wire [15:0] above;  // v lies above the start of the segment
  genvar i;
  generate
    for (i = 1; i < 16; i = i + 1) begin : g_segment
      wire signed [35:0] s = t_start[36*i+:36];
      assign above[i] = (ROUNDING == 1) ? v >= s : v > s;
    end
  endgenerate
  assign above[0] = 1'b1;

  // the largest of them
  reg [3:0] sel;
  integer k;
  always @* begin
    sel = 4'd0;
    for (k = 1; k < 16; k = k + 1) if (above[k]) sel = k[3:0];
  end

  wire [35:0] start = t_start[36*sel+:36];
  wire [15:0] mul_n = t_mul[16*sel+:16];
  wire [7:0] shift_n = t_shift[8*sel+:8];
  wire [7:0] add_n = t_add[8*sel+:8];

  reg signed [36:0] diff_q;
  reg signed [15:0] mul_q;
  reg [5:0] shift_q;
  reg [7:0] add_q;
  always @(posedge clk) begin
    if (valid[0]) begin
      diff_q  <= {v[35], v} - {start[35], start};
      mul_q   <= mul_n;
      // beyond 54 the result stays what it is at 54: the product has 53 bits
      shift_q <= (shift_n > 8'd54) ? 6'd54 : shift_n[5:0];
      add_q   <= add_n;
    end
  end

  // ---- second stage: product
  reg signed [52:0] prod_q;
  reg [5:0] shift_qq;
  reg [7:0] add_qq;
  always @(posedge clk) begin
    if (valid[1]) begin
      prod_q   <= diff_q * mul_q;
      shift_qq <= shift_q;
      add_qq   <= add_q;
    end
  end

  // ---- third stage: shift and round
  wire signed [54:0] wide = {{2{prod_q[52]}}, prod_q};
  wire [5:0] less = (shift_qq == 6'd0) ? 6'd0 : shift_qq - 6'd1;
  wire signed [54:0] to_half = wide >>> less;  // one fraction bit left, unless the shift is 0
  wire signed [54:0] floored = (shift_qq == 6'd0) ? wide : to_half >>> 1;
  wire half = shift_qq != 6'd0 && to_half[0];
  wire rest = |(wide & ~({55{1'b1}} << less));
  wire away = (ROUNDING == 2) ? 1'b0 : (ROUNDING == 1) ? half : half && (rest || floored[0]);
  wire signed [54:0] rounded = !away ? floored : prod_q[52] ? floored - 55'sd1 : floored + 55'sd1;
  reg signed [54:0] round_q;
  reg [7:0] add_qqq;
  always @(posedge clk) begin
    if (valid[2]) begin
      round_q <= rounded;
      add_qqq <= add_qq;
    end
  end

  // ---- fourth stage: addend and clamp
  wire signed [54:0] added = round_q + {{47{sgn && add_qqq[7]}}, add_qqq};
  wire signed [54:0] low = sgn ? -55'sd128 : 55'sd0;
  wire signed [54:0] high = sgn ? 55'sd127 : 55'sd255;
  always @(posedge clk) begin
    if (valid[3]) y <= (added < low) ? low[7:0] : (added > high) ? high[7:0] : added[7:0];
  end

endmodule

`resetall
