// SPDX-License-Identifier: Apache-2.0
//
// pool_line: one pooled output line of a stripe.
//
// How it works: the stripe's 64 bytes are lines of 32 or 16 pixels. Sixteen units take the maximum
// or the truncated mean of a 2x2 window, of stride 2, or of stride 1 with the edge repeated; four
// more take those of 4x4 windows. Signed pixels are compared as such and the mean of signed pixels
// is the floor. Combinational.
// Handshake: none.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_line (
    // stripe: bytes, log2 of the line width (4 or 5), pixels a line, lines
    input  wire [511:0] stripe,
    input  wire [  2:0] swl,
    input  wire [  6:0] width,
    input  wire [  2:0] lines,
    // what to do: a pool at all, POOL_* code, signed pixels, which output line
    input  wire         enable,
    input  wire [  2:0] pool,
    input  wire         sgn,
    input  wire [  1:0] line,
    // pooled pixels from byte 0 on
    output reg  [127:0] pooled
);

  wire s1 = pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
  wire four = pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  wire is_max = pool == `POOL_MAX2 || pool == `POOL_MAX4 || pool == `POOL_MAXS1;

  // the two lines of a 2x2 window
  wire [1:0] line_a = s1 ? line : {line[0], 1'b0};
  wire [1:0] line_b = !s1 ? {line[0], 1'b1} : ({1'b0, line} + 3'd1 < lines) ? line + 2'd1 : line;
  wire [511:0] from_a = stripe >> ({4'd0, line_a, 3'd0} << swl);
  wire [511:0] from_b = stripe >> ({4'd0, line_b, 3'd0} << swl);

  // signed and unsigned pixels alike as 9-bit signed
  function [8:0] ext(input [7:0] p, input s);
    ext = {s && p[7], p};
  endfunction

  function [8:0] max2(input [8:0] a, input [8:0] b);
    max2 = ($signed(a) > $signed(b)) ? a : b;
  endfunction

  integer j, r, c;
  reg [5:0] ja, jb;
  reg [8:0] a0, a1, b0, b1, m;
  reg signed [12:0] sum;
  always @* begin
    j = 0;  // loops that are skipped would leave these as they were: latches
    r = 0;
    c = 0;
    pooled = 128'd0;
    ja = 6'd0;
    jb = 6'd0;
    a0 = 9'd0;
    a1 = 9'd0;
    b0 = 9'd0;
    b1 = 9'd0;
    m = 9'd0;
    sum = 13'sd0;
    if (enable && four) begin
      for (j = 0; j < 4; j = j + 1) begin
        m   = ext(stripe[8*4*j+:8], sgn);
        sum = 13'sd0;
        for (r = 0; r < 4; r = r + 1) begin
          for (c = 0; c < 4; c = c + 1) begin
            a0  = ext(stripe[8*(16*r+4*j+c)+:8], sgn);
            m   = max2(m, a0);
            sum = sum + {{4{a0[8]}}, a0};
          end
        end
        pooled[8*j+:8] = is_max ? m[7:0] : sum[11:4];
      end
    end else if (enable) begin
      for (j = 0; j < 16; j = j + 1) begin
        ja = s1 ? j[5:0] : {j[4:0], 1'b0};
        jb = !s1 ? {j[4:0], 1'b1} : ({1'b0, j[5:0]} + 7'd1 < width) ? j[5:0] + 6'd1 : j[5:0];
        a0 = ext(from_a[{ja, 3'd0}+:8], sgn);
        a1 = ext(from_a[{jb, 3'd0}+:8], sgn);
        b0 = ext(from_b[{ja, 3'd0}+:8], sgn);
        b1 = ext(from_b[{jb, 3'd0}+:8], sgn);
        m = max2(max2(a0, a1), max2(b0, b1));
        sum = {{4{a0[8]}}, a0} + {{4{a1[8]}}, a1} + {{4{b0[8]}}, b0} + {{4{b1[8]}}, b1};
        pooled[8*j+:8] = is_max ? m[7:0] : sum[9:2];
      end
    end
  end

endmodule

`resetall
