// SPDX-License-Identifier: Apache-2.0
//
// sum_planes: stores finished sums of 32 bits until all of their bytes have left.
//
// How it works: the sums of the last step are written here as they leave with byte 0, with the position of
// their pixels and the end-of-group flag; the description of the group is registered. Then the sums are read
// in the same order once for each of bytes 1 to 3.
// Handshake: none; the sequencer starts reading when a whole group is written, and the next group's last step
// comes when all sums have been read three times. A word is valid in the cycle of take.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module sum_planes #(
    // width of the sums of all lanes, words (a power of two from 4)
    parameter WIDTH = 692,
    parameter DEPTH = 16,
    // width of the description of a group; derived, not to be set: width of an address
    parameter MW    = 64,
    parameter AW    = $clog2(DEPTH)
) (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    // sums leaving with byte 0: address, position, end of the group, its description
    input  wire             keep,
    input  wire [   AW-1:0] keep_at,
    input  wire [WIDTH-1:0] keep_sum,
    input  wire [      5:0] keep_pos,
    input  wire             keep_end,
    input  wire [   MW-1:0] keep_meta,
    // next sums, and the index of their byte
    input  wire             take,
    output wire [WIDTH-1:0] sum,
    output wire [      5:0] pos,
    output wire             last,
    output reg  [   MW-1:0] meta,
    output reg  [      1:0] plane
);

  reg [AW-1:0] at;

  ram_1r1w_async #(
      .WIDTH(WIDTH + 7),
      .DEPTH(DEPTH)
  ) u_kept (
      .clk  (clk),
      .we   (keep),
      .waddr(keep_at),
      .wdata({keep_end, keep_pos, keep_sum}),
      .raddr(at),
      .rdata({last, pos, sum})
  );

  always @(posedge clk) begin
    if (keep) meta <= keep_meta;
    else meta <= meta;
  end

  always @(posedge clk) begin
    if (rst || keep) begin
      at    <= {AW{1'b0}};
      plane <= 2'd1;
    end else if (take) begin
      at    <= last ? {AW{1'b0}} : at + {{(AW - 1) {1'b0}}, 1'b1};
      plane <= last ? plane + 2'd1 : plane;
    end else begin
      at    <= at;
      plane <= plane;
    end
  end

endmodule

`resetall
