// SPDX-License-Identifier: Apache-2.0
//
// weight_constant: computes a channel's constant from the sum of its weights.
//
// How it works: constant = ((arg_w * sum) >> shr_w) + addc, modulo 2^36. arg_w is scaled to a shift of 15,
// a bit a cycle at the start of a layer; the result is then bits 15 to 50 of its product with the sum.
// With SERIAL one multiplier of 18 x 18 bits computes the partial products one after the other: the sum has
// up to three digits of 17 bits, arg_w two or three. The number of partial products is fixed per layer: two
// for a depthwise kernel of bytes, six at most. Without SERIAL the product is computed at once.
// Handshake: start loads the arguments, the others are stable until busy is low. cycles is the time that a
// sum occupies the multiplier, and is valid while scaling is low; valid delivers a sum at that rate at most.
// The constant is written eight cycles after it at the latest.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module weight_constant #(
    // 1: one multiplier, partial products in sequence; 0: one product per cycle
    parameter SERIAL = 1,
    // widths of a parameter row address, of a bank index
    parameter PAW    = 9,
    parameter ZW     = 1
) (
    // clock and synchronous reset
    input  wire           clk,
    input  wire           rst,
    // layer: start, multiplier, shift, addend; sums may exceed 17 bits, 34 bits
    input  wire           start,
    input  wire [   23:0] arg_w,
    input  wire [    3:0] shr_w,
    input  wire [   35:0] addc,
    input  wire           above_17,
    input  wire           above_34,
    // the multiplier is being shifted; cycles between two sums
    output reg            scaling,
    output wire [    2:0] cycles,
    // sum of a channel, destination of its constant
    input  wire           valid,
    input  wire [   36:0] sum,
    input  wire [PAW-1:0] row,
    input  wire [ ZW-1:0] bank,
    // constant to the parameter buffer
    output reg            kc_we,
    output reg  [PAW-1:0] kc_row,
    output reg  [ ZW-1:0] kc_bank,
    output wire [   35:0] kc_data,
    // a constant is in flight
    output wire           busy
);

  // ---- arg_w, shifted up by 15 bits, then down by shr_w
  reg [38:0] scaled;
  reg [ 3:0] left;
  always @(posedge clk) begin
    if (rst) left <= 4'd0;
    else if (start) left <= shr_w;
    else if (scaling) left <= left - 4'd1;
  end
  // left is not 0
  always @(posedge clk) begin
    if (rst) scaling <= 1'b0;
    else scaling <= start ? shr_w != 4'd0 : left[3:1] != 3'd0;
  end
  always @(posedge clk) begin
    if (start) scaled <= {arg_w, 15'd0};
    else if (scaling) scaled <= {scaled[38], scaled[38:1]};
  end

  generate
    if (SERIAL != 0) begin : g_serial
      // digits of the multiplier: a third one only if the second one, signed, is not enough
      wire narrow = scaled[38:34] == {5{scaled[38]}};
      wire [2:0] parts = above_34 ? 3'd5 : above_17 ? 3'd4 : 3'd2;
      assign cycles = narrow ? parts : parts + 3'd1;

      // ---- partial product: sum digit, multiplier digit: 00, 01, 10, 11, 02, 20
      reg run;
      reg [2:0] part;
      reg [36:0] s;
      reg [PAW-1:0] s_row;
      reg [ZW-1:0] s_bank;
      wire last = part == (above_34 ? 3'd5 : !narrow ? 3'd4 : above_17 ? 3'd3 : 3'd1);
      wire [2:0] next = (part == 3'd1 && !above_17) ? 3'd4 :
          (part == 3'd3 && narrow) ? 3'd5 : part + 3'd1;
      always @(posedge clk) begin
        if (rst) run <= 1'b0;
        else run <= valid || run && !last;
      end
      always @(posedge clk) begin
        if (valid) begin
          part   <= 3'd0;
          s      <= sum;
          s_row  <= row;
          s_bank <= bank;
        end else if (run) begin
          part <= next;
        end
      end

      // ---- its digits and product
      reg x_valid, p_valid, x_first, p_first, x_upper, p_upper, x_last, p_last;
      reg [PAW-1:0] x_row, p_row;
      reg [ZW-1:0] x_bank, p_bank;
      reg signed [17:0] x, y;
      reg signed [35:0] p;
      always @(posedge clk) begin
        if (rst) begin
          x_valid <= 1'b0;
          p_valid <= 1'b0;
          kc_we   <= 1'b0;
        end else begin
          x_valid <= run;
          p_valid <= x_valid;
          kc_we   <= p_valid && p_last;
        end
      end
      always @(posedge clk) begin
        if (run) begin
          x <= {1'b0, (part == 3'd5) ? {14'd0, s[36:34]} : part[1] ? s[33:17] : s[16:0]};
          y <= (part == 3'd4) ? {{13{scaled[38]}}, scaled[38:34]} :
              part[0] && part != 3'd5 ? {narrow && scaled[38], scaled[33:17]} : {1'b0, scaled[16:0]};
          x_first <= part == 3'd0;
          x_upper <= part > 3'd2;
          x_last <= last;
          x_row <= s_row;
          x_bank <= s_bank;
        end
        if (x_valid) begin
          p       <= x * y;
          p_first <= x_first;
          p_upper <= x_upper;
          p_last  <= x_last;
          p_row   <= x_row;
          p_bank  <= x_bank;
        end
      end

      // ---- their sum from bit 15 on, because only the first one has bits below: the next two begin at bit
      // 17, the others at bit 34; addc is the first summand
      reg [35:0] total;
      wire [35:0] part_at = p_first ? {{15{p[35]}}, p[35:15]} : p_upper ? {p[16:0], 19'd0} : {p[33:0], 2'd0};
      always @(posedge clk) begin
        if (p_valid) begin
          total   <= (p_first ? addc : total) + part_at;
          kc_row  <= p_row;
          kc_bank <= p_bank;
        end
      end
      assign kc_data = total;

      assign busy = run || x_valid || p_valid;
    end else begin : g_parallel
      // the sum is an addition that ends in this cycle: a register between it and the product
      assign cycles = 3'd1;
      reg s_valid, p_valid;
      reg [PAW-1:0] s_row, p_row;
      reg [ZW-1:0] s_bank, p_bank;
      reg [36:0] s;
      reg signed [50:0] p;
      reg [35:0] total;
      assign kc_data = total;
      always @(posedge clk) begin
        if (rst) begin
          s_valid <= 1'b0;
          p_valid <= 1'b0;
          kc_we   <= 1'b0;
        end else begin
          s_valid <= valid;
          p_valid <= s_valid;
          kc_we   <= p_valid;
        end
      end
      always @(posedge clk) begin
        if (valid) begin
          s      <= sum;
          s_row  <= row;
          s_bank <= bank;
        end
        if (s_valid) begin
          p      <= $signed(scaled) * $signed({1'b0, s});
          p_row  <= s_row;
          p_bank <= s_bank;
        end
        if (p_valid) begin
          total   <= p[50:15] + addc;
          kc_row  <= p_row;
          kc_bank <= p_bank;
        end
      end
      assign busy = s_valid || p_valid;
      wire unused = &{1'b0, above_17, above_34, p[14:0]};
    end
  endgenerate

endmodule

`resetall
