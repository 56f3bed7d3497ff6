// SPDX-License-Identifier: Apache-2.0
//
// zero_point: alu = s + ((arg_x * sx) >> shr_x) + k, one lane, modulo 2^36.
//
// How it works: s is the sum of products, sx the sum of gated pixels, k the constant of the output
// channel ((arg_w * sw) >> shr_w) + arg_add * n, computed by the weight loader. The lane forms the
// product with twelve bits of sx, enough for nine taps: with two multipliers (MULTIPLY), or with three
// small memories of the multiples of arg_x (zero_point_table). The product is output, and it or that of
// another lane returns; the product of the upper bits of sx comes from outside. The shift is always 15
// and the floor of the complete product: arg_x arrives shifted left. The multipliers provide 36 bits for
// it; where it would need more it is shifted by three bits less, and sx by three more. Four registers:
// sx, multiples or products, their sum, alu. Those before and after a multiplier have no enable, so that
// they can map to the multiplier's own; they settle together with the sums.
// Handshake: none, a fixed pipeline of four cycles; valid enables each stage. Arguments are held, and
// memories are written while no sum is in flight.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module zero_point #(
    // 1: multipliers, 0: memories
    parameter MULTIPLY = 0
) (
    // clock
    input  wire        clk,
    // stage enables
    input  wire [ 3:0] valid,
    // multipliers: arg_x shifted left; sx is shifted left by three bits
    input  wire [35:0] coarse,
    input  wire        fine,
    // memories: write port of the multiples
    input  wire        table_we,
    input  wire [ 3:0] table_addr,
    input  wire [42:0] table_data,
    // first stage: sum of products, low bits of the sum of pixels (multipliers: up to 17)
    input  wire [35:0] sum,
    input  wire [16:0] xsum,
    // third stage: product of the lane; bits 12 to 50 of that of the low bits; constant of the channel
    output wire [50:0] own,
    input  wire [38:0] low,
    input  wire [35:0] k,
    // fourth stage: product of the high bits of the sum of pixels, from bit 12 on
    input  wire [38:0] high,
    // result after the fourth stage
    output reg  [35:0] alu
);

  generate
    if (MULTIPLY != 0) begin : g_multiply
      // ---- first stage: the factors; second stage: products of both halves of arg_x
      reg [16:0] x;
      reg [35:0] arg;
      wire [34:0] lower_n = x * arg[17:0];
      wire signed [17:0] upper_half = arg[35:18];
      wire signed [17:0] upper_x = {1'b0, x};
      wire signed [35:0] upper_n = upper_half * upper_x;
      reg [34:0] lower;
      reg [32:0] upper;
      always @(posedge clk) begin
        // (no multiplexer: synthesis would map it to a reset of the lowest bits, which the others do not
        // have)
        x     <= ({xsum[13:0], 3'd0} & {17{fine}}) | (xsum & ~{17{fine}});
        arg   <= coarse;
        lower <= lower_n;
        upper <= upper_n[32:0];
      end

      // ---- third stage
      wire [32:0] both = upper + {16'd0, lower[34:18]};
      assign own = {both, lower[17:0]};

      wire unused = &{1'b0, upper_n[35:33], table_we, table_addr, table_data};
    end else begin : g_look_up
      // ---- second stage: a multiple for each digit. Bits 0 to 3 of the first one meet no others and are
      // below the shift's cut: they are dropped.
      reg  [11:0] x;
      wire [38:0] m_0;
      wire [42:0] m_1, m_2;
      ram_1r1w_async #(
          .WIDTH(39),
          .DEPTH(16)
      ) u_digit_0 (
          .clk  (clk),
          .we   (table_we),
          .waddr(table_addr),
          .wdata(table_data[42:4]),
          .raddr(x[3:0]),
          .rdata(m_0)
      );
      ram_1r1w_async #(
          .WIDTH(43),
          .DEPTH(16)
      ) u_digit_1 (
          .clk  (clk),
          .we   (table_we),
          .waddr(table_addr),
          .wdata(table_data),
          .raddr(x[7:4]),
          .rdata(m_1)
      );
      ram_1r1w_async #(
          .WIDTH(43),
          .DEPTH(16)
      ) u_digit_2 (
          .clk  (clk),
          .we   (table_we),
          .waddr(table_addr),
          .wdata(table_data),
          .raddr(x[11:8]),
          .rdata(m_2)
      );
      reg [38:0] m_0q;
      reg [42:0] m_1q, m_2q;
      always @(posedge clk) begin
        if (valid[0]) x <= xsum[11:0];
        if (valid[1]) begin
          m_0q <= m_0;
          m_1q <= m_1;
          m_2q <= m_2;
        end
      end

      // ---- third stage: bits 4 to 46 of two digits, bits 8 to 50 of three
      wire [42:0] two = {{4{m_0q[38]}}, m_0q} + m_1q;
      wire [42:0] three = {{4{two[42]}}, two[42:4]} + m_2q;
      assign own = {three[42:4], 12'd0};

      wire unused = &{1'b0, two[3:0], three[3:0], coarse, fine, xsum[16:12]};
    end
  endgenerate

  reg [35:0] sum_q, sum_qq;
  reg [38:0] low_q;  // from bit 12 on
  reg [35:0] sum_k;
  always @(posedge clk) begin
    if (valid[0]) sum_q <= sum;
    if (valid[1]) sum_qq <= sum_q;
    if (valid[2]) begin
      low_q <= low;
      sum_k <= sum_qq + k;
    end
  end

  // ---- fourth stage: the bits from 15 on remain after the shift
  wire [38:0] product = low_q + high;
  always @(posedge clk) begin
    if (valid[3]) alu <= sum_k + product[38:3];
  end

  wire unused_bits = &{1'b0, product[2:0]};

endmodule

`resetall
