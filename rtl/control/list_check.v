// SPDX-License-Identifier: Apache-2.0
//
// list_check: detects that a task list has changed during a stream.
//
// How it works: the words of each layer are folded into a signature of 32 bits. Those of the first
// inference are stored; the same layer of a later one must have the same. Prefetched pixels and kept
// weights belong to the first list, so a layer that differs must not run. Rotation and addition are
// reversible, so a change in one 32-bit word is always detected, any other one except with a probability of
// 2^-32.
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
  wire [31:0] turned = {sum[24:0], sum[31:25]} + word[31:0];
  wire [31:0] folded = {turned[18:0], turned[31:19]} + word[63:32];

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
