// SPDX-License-Identifier: Apache-2.0
//
// list_check: detects that a task list has changed during a stream.
//
// How it works: the signature of a layer is the remainder of its words, lower halves first, divided by
// x^32 + x^7 + x^6 + x^2 + 1. Those of the first inference are stored; the same layer of a later one must
// have the same. Prefetched pixels and kept weights belong to the first list, so a layer that differs must
// not run. The polynomial is primitive and a layer shorter than its period: a change within 32 consecutive
// bits is always detected, and so is the same change of two 32-bit words, an exchange for instance; any
// other one except with a probability of 2^-32.
// Handshake: take strobes with each word, collected with the last one of a layer; changed is a pulse two
// cycles after that, while the decoder still processes the layer. There is no back-pressure.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module list_check (
    // clock, synchronous reset; a run begins
    input  wire        clk,
    input  wire        rst,
    input  wire        start,
    // words of the list as the decoder accepts them
    input  wire        take,
    input  wire [63:0] word,
    // the last word of a layer; its index; it is the last layer of the list
    input  wire        collected,
    input  wire [ 9:0] index,
    input  wire        last,
    // the collected layer differs from that of the first inference; its index
    output reg         changed,
    output reg  [ 9:0] changed_index
);

  reg         later;  // the list was read before
  reg  [31:0] sum;
  reg  [31:0] signature;
  reg         over;  // the signature of a layer is complete
  reg         over_later;
  wire [31:0] stored;
  wire [31:0] lower = on(sum) ^ word[31:0];
  wire [31:0] folded = on(lower) ^ word[63:32];

  // the remainder 32 bits later: the polynomial without its highest term replaces x^32, twice for the bits
  // that it shifts beyond bit 31
  function [31:0] on(input [31:0] value);
    reg [38:0] high;
    begin
      high = {7'd0, value} ^ {5'd0, value, 2'd0} ^ {1'b0, value, 6'd0} ^ {value, 7'd0};
      on = high[31:0] ^ {25'd0, high[38:32]} ^ {23'd0, high[38:32], 2'd0} ^ {19'd0, high[38:32], 6'd0} ^
          {18'd0, high[38:32], 7'd0};
    end
  endfunction

  // one signature for each layer of a list: at most 1023
  ram_1r1w #(
      .WIDTH(32),
      .DEPTH(1024)
  ) u_signatures (
      .clk  (clk),
      .we   (over && !over_later),
      .wlane(1'b1),
      .waddr(changed_index),
      .wdata(signature),
      .re   (collected),
      .raddr(index),
      .rdata(stored)
  );

  always @(posedge clk) begin
    if (rst) begin
      later   <= 1'b0;
      sum     <= 32'd0;
      over    <= 1'b0;
      changed <= 1'b0;
    end else begin
      later   <= start ? 1'b0 : (collected && last) ? 1'b1 : later;
      sum     <= (start || collected) ? 32'd0 : take ? folded : sum;
      over    <= collected;
      changed <= over && over_later && signature != stored;
    end
  end

  always @(posedge clk) begin
    if (collected) begin
      signature     <= folded;
      changed_index <= index;
      over_later    <= later;
    end else begin
      signature     <= signature;
      changed_index <= changed_index;
      over_later    <= over_later;
    end
  end

endmodule

`resetall
