// SPDX-License-Identifier: Apache-2.0
//
// tile_buffer: nine banks of 64-byte operand rows, one bank per position of the reduction.
//
// How it works: an entry is one reduction step. Bank t of an entry holds, for each of the 64
// pixels of a stripe, the operand of multiply-add unit t: tap t of a 3x3 window, or channel t of
// nine. Writes are byte-wise and may address another entry in every bank; reads address every bank
// by itself too, because unit t of the cascade works t cycles after unit 0.
// Handshake: none; the fill and the sequencer of the array count entries.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module tile_buffer #(
    // number of entries
    parameter ROWS = 32,
    // width of an entry address
    parameter AW   = $clog2(ROWS)
) (
    // clock
    input  wire            clk,
    // write port of each bank: byte enables, entry, data
    input  wire [9*64-1:0] wbe,
    input  wire [9*AW-1:0] waddr,
    input  wire [9*512-1:0] wdata,
    // read port of each bank: enable, entry, data one cycle later
    input  wire [     8:0] re,
    input  wire [9*AW-1:0] raddr,
    output wire [9*512-1:0] rdata
);

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      ram_1r1w #(
          .WIDTH(512),
          .DEPTH(ROWS),
          .LANE (8)
      ) u_ram (
          .clk  (clk),
          .we   (|wbe[t*64+:64]),
          .wlane(wbe[t*64+:64]),
          .waddr(waddr[t*AW+:AW]),
          .wdata(wdata[t*512+:512]),
          .re   (re[t]),
          .raddr(raddr[t*AW+:AW]),
          .rdata(rdata[t*512+:512])
      );
    end
  endgenerate

endmodule

`resetall
