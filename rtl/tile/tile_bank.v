// SPDX-License-Identifier: Apache-2.0
//
// tile_bank: one of the nine banks of the tile buffer: the operands of one unit of the cascade.
//
// How it works: an entry is one reduction step. Bank t of an entry holds, for each of the 64 pixels of a
// stripe, the operand of multiply-add unit t: tap t of a 3x3 window, or channel t of nine, or (fully
// connected) element t of nine of 64 steps. A write stores bytes of a view of tile_scatter, or one byte of
// fc_flatten, at one of two places. An entry is 64 / TILE_WORD words. With PAIR a second row goes to the next
// entry, and two entries are read at once: even and odd entries are in separate memories. Read data are
// registered again, because a block RAM takes half a cycle.
// Handshake: none; the fill and the sequencer of the array count entries.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module tile_bank #(
    // index of the bank (0..8); 1: writes may go to place 0 as well as to its own place
    parameter BANK      = 0,
    parameter TWO       = 1,
    // entries; bytes of a word
    parameter ROWS      = 32,
    parameter TILE_WORD = 64,
    // 1: two entries at once
    parameter PAIR      = 0,
    // derived, not to be set: width of a word address
    parameter AW        = $clog2(ROWS) + 6 - $clog2(TILE_WORD)
) (
    // clock
    input  wire                           clk,
    // write; at place 0; the two places: word address, byte enables
    input  wire                           we,
    input  wire                           zero,
    input  wire [                 AW-1:0] addr_0,
    input  wire [                 AW-1:0] addr_own,
    input  wire [          TILE_WORD-1:0] lanes_0,
    input  wire [          TILE_WORD-1:0] lanes_own,
    // views of a word, see tile_scatter; selected view, where any may be written (TILE_WORD > 16)
    input  wire [        8*TILE_WORD-1:0] view0,
    input  wire [        8*TILE_WORD-1:0] view1,
    input  wire [        8*TILE_WORD-1:0] view2,
    input  wire [        8*TILE_WORD-1:0] view3,
    input  wire [                    1:0] pick,
    // with PAIR: second row, its write enable
    input  wire [        8*TILE_WORD-1:0] word_b,
    input  wire                           on_b,
    // fully connected layer: byte to write
    input  wire                           fc,
    input  wire [                    7:0] fc_byte,
    // read port: enable, word address, data two cycles later; with PAIR the next entry in the upper half
    input  wire                           re,
    input  wire [                 AW-1:0] raddr,
    output reg  [8*(TILE_WORD<<PAIR)-1:0] rdata
);

  localparam integer TAP_COL = BANK % 3;
  localparam [1:0] KX = TAP_COL[1:0];

  wire [8*TILE_WORD-1:0] wide;
  generate
    if (TILE_WORD > 16) begin : g_many
      wire [8*TILE_WORD-1:0] low = pick[0] ? view1 : view0;
      wire [8*TILE_WORD-1:0] high = pick[0] ? view3 : view2;
      assign wide = pick[1] ? high : low;
    end else begin : g_one
      assign wide = (KX == 2'd0) ? view0 : (KX == 2'd1) ? view1 : view2;
    end
  endgenerate

  wire [8*TILE_WORD-1:0] wdata = fc ? {TILE_WORD{fc_byte}} : wide;
  wire at_0 = TWO != 0 && zero;
  wire [AW-1:0] waddr = at_0 ? addr_0 : addr_own;
  wire [TILE_WORD-1:0] wlane = at_0 ? lanes_0 : lanes_own;
  wire [8*(TILE_WORD<<PAIR)-1:0] word;
  always @(posedge clk) rdata <= word;

  genvar h;
  generate
    if (PAIR == 0) begin : g_single
      ram_1r1w #(
          .WIDTH(8 * TILE_WORD),
          .DEPTH(ROWS * 64 / TILE_WORD),
          .LANE (8)
      ) u_ram (
          .clk  (clk),
          .we   (we),
          .wlane(wlane),
          .waddr(waddr),
          .wdata(wdata),
          .re   (re),
          .raddr(raddr),
          .rdata(word)
      );
      wire unused_b = &{1'b0, word_b, on_b};
    end else begin : g_pair
      // the second row, shifted like the view of the tap column
      wire [AW-1:0] waddr_b = waddr + {{(AW - 1) {1'b0}}, 1'b1};
      wire [8*TILE_WORD-1:0] wide_b = (KX == 2'd0) ? word_b << 8 : (KX == 2'd2) ? word_b >> 8 : word_b;
      for (h = 0; h < 2; h = h + 1) begin : g_half
        localparam [0:0] ODD = h;
        wire first = waddr[0] == ODD;
        // with an odd entry first, the even one is the next
        wire [AW-2:0] at = raddr[AW-1:1] + {{(AW - 2) {1'b0}}, raddr[0] && !ODD};
        wire [8*TILE_WORD-1:0] half;
        ram_1r1w #(
            .WIDTH(8 * TILE_WORD),
            .DEPTH(ROWS / 2),
            .LANE (8)
        ) u_ram (
            .clk  (clk),
            .we   (first ? we : on_b),
            .wlane(first ? wlane : {TILE_WORD{1'b1}}),
            .waddr(first ? waddr[AW-1:1] : waddr_b[AW-1:1]),
            .wdata(first ? wdata : wide_b),
            .re   (re),
            .raddr(at),
            .rdata(half)
        );
      end
      reg odd;
      always @(posedge clk) if (re) odd <= raddr[0];
      assign word = odd ? {g_half[0].half, g_half[1].half} : {g_half[1].half, g_half[0].half};
      wire unused_b = &{1'b0, waddr_b};
    end
  endgenerate

  wire unused = &{1'b0, view0, view1, view2, view3, pick, zero, addr_0, lanes_0};

endmodule

`resetall
