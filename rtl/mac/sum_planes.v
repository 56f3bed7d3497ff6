// SPDX-License-Identifier: Apache-2.0
//
// sum_planes: finished sums of 32 bits, kept until all of their bytes have left.
//
// How it works: what the last step adds up is written here as it leaves with byte 0, with the
// position of its pixels and whether it ends the group; the description of the group is in a
// register. Then the sums are read in the same order once for each of bytes 1 to 3.
// Handshake: none; the sequencer begins to read when all of a group is written, and the next group's
// last step comes when all is read three times. A word is there in the cycle of take.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module sum_planes #(
    // width of the sums of all lanes, places of them (a power of two from 4)
    parameter WIDTH = 692,
    parameter DEPTH = 16,
    // width of the description of a group; derived, not to be set: of a place
    parameter MW    = 64,
    parameter AW    = $clog2(DEPTH)
) (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    // sums that leave with byte 0: place, position, end of the group, description of it
    input  wire             keep,
    input  wire [   AW-1:0] keep_at,
    input  wire [WIDTH-1:0] keep_sum,
    input  wire [      5:0] keep_pos,
    input  wire             keep_end,
    input  wire [   MW-1:0] keep_meta,
    // the next ones, and which of their bytes
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
