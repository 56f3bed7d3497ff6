// SPDX-License-Identifier: Apache-2.0
//
// tile_bank: one of the nine banks of the tile buffer, the operands of one unit of the cascade.
//
// How it works: an entry is one reduction step. Bank t of an entry holds, for each of the 64 pixels
// of a stripe, the operand of multiply-add unit t: tap t of a 3x3 window, or channel t of nine, or
// (fully connected) element t of nine of 64 steps. The bank takes its bytes from the views of
// tile_scatter: taps by tap column and tap row, channels by their number modulo nine,
// depthwise rows for the output line above, at or below the row. An entry is 64 / TILE_W words. With
// PAIR a second row goes to the next entry, and two entries are read at once: even and odd ones are
// in memories of their own.
// Handshake: none; the fill and the sequencer of the array count entries.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_bank #(
    // which bank (0..8)
    parameter BANK   = 0,
    // entries; bytes of a word
    parameter ROWS   = 32,
    parameter TILE_W = 64,
    // 1: two entries at once
    parameter PAIR   = 0,
    // derived, not to be set: log2 of the word, widths of a place in an entry (in quarters of a
    // word), of an entry counter, of an entry number, of a word's address
    parameter TB     = $clog2(TILE_W),
    parameter QB     = 8 - TB,
    parameter TW     = $clog2(ROWS) + 2,
    parameter EW     = $clog2(ROWS),
    parameter AW     = EW + 6 - TB
) (
    // clock
    input  wire                        clk,
    // layer: mode, log2 of the stripe's line width, of the stride, rows a line
    input  wire [                 1:0] mode,
    input  wire [                 2:0] swl,
    input  wire [                 1:0] stl,
    input  wire [                 4:0] irl,
    // views of a word, see tile_scatter
    input  wire                        f_valid,
    input  wire [        8*TILE_W-1:0] view0,
    input  wire [        8*TILE_W-1:0] view1,
    input  wire [        8*TILE_W-1:0] view2,
    input  wire [        8*TILE_W-1:0] view3,
    input  wire [        8*TILE_W-1:0] f_word_b,
    input  wire [                 2:0] f_on_b,
    input  wire [              TW-1:0] f_entry,
    input  wire [              QB-1:0] f_place,
    input  wire [                 2:0] f_ky_on,
    input  wire [                 5:0] f_ky_slot,
    input  wire [                 3:0] f_chmod,
    input  wire [                 2:0] f_chans,
    // a byte of the flattener
    input  wire                        fc_we,
    input  wire [              EW-1:0] fc_entry,
    input  wire [                 5:0] fc_at,
    input  wire [                 7:0] fc_byte,
    // read port: enable, word, its bytes one cycle later; with PAIR those of the next entry above
    input  wire                        re,
    input  wire [              AW-1:0] raddr,
    output wire [8*(TILE_W<<PAIR)-1:0] rdata
);

  localparam integer TAP_ROW = BANK / 3;
  localparam integer TAP_COL = BANK % 3;
  localparam integer AFTER = BANK + 9;
  localparam [1:0] KY = TAP_ROW[1:0];
  localparam [1:0] KX = TAP_COL[1:0];
  localparam [4:0] CHAN_0 = AFTER[4:0];

  wire chan_mode = mode == `MODE_CHAN;
  wire dwrow_mode = mode == `MODE_DWROW;

  // taps and depthwise rows: the view of the tap column, if the line feeds the tap row
  wire ky_on = f_ky_on[TAP_ROW];
  wire [1:0] ky_slot = chan_mode ? f_ky_slot[3:2] : f_ky_slot[2*TAP_ROW+:2];
  wire [TW-1:0] rows = {{(TW - 5) {1'b0}}, irl};
  wire [TW-1:0] dw_entry = (KY == 2'd0) ? f_entry + rows : (KY == 2'd2) ? f_entry - rows : f_entry;

  // channels: this bank holds channel number nth of the word, perhaps in the next entry
  wire [4:0] gap = CHAN_0 - {1'b0, f_chmod};
  wire wraps = gap < 5'd9;
  wire [4:0] nth = wraps ? gap : gap - 5'd9;

  wire on = f_valid && (chan_mode ? nth < {2'd0, f_chans} : ky_on);
  wire [TW-1:0] at = chan_mode ? f_entry + {{(TW - 1) {1'b0}}, wraps} : dwrow_mode ? dw_entry : f_entry;

  // place in quarters of a word: the line of the stripe, the word of the line; how many there are
  wire [6:0] slot_place = {5'd0, ky_slot} << (swl - TB[2:0] + 3'd2);
  wire [QB-1:0] place = f_place | (dwrow_mode ? {QB{1'b0}} : slot_place[QB-1:0]);
  wire [2:0] line_quarters = (TB[2:0] > 3'd4 && swl < TB[2:0]) ? 3'd4 >> (TB[2:0] - swl) : 3'd4;
  wire [2:0] pick_quarters = 3'd4 >> stl;
  wire [2:0] quarters = (line_quarters < pick_quarters) ? line_quarters : pick_quarters;
  wire [3:0] quarter_on = (quarters[2] ? 4'hf : quarters[1] ? 4'h3 : 4'h1) << place[1:0];

  wire [8*TILE_W-1:0] wide;
  generate
    if (TILE_W > 16) begin : g_many
      wire [1:0] pick = chan_mode ? nth[1:0] : KX;
      wire [8*TILE_W-1:0] low = pick[0] ? view1 : view0;
      wire [8*TILE_W-1:0] high = pick[0] ? view3 : view2;
      assign wide = pick[1] ? high : low;
    end else begin : g_one
      wire [8*TILE_W-1:0] tap = (KX == 2'd0) ? view0 : (KX == 2'd1) ? view1 : view2;
      assign wide = chan_mode ? view1 : tap;
    end
  endgenerate

  reg we;
  reg [TILE_W-1:0] wlane;
  reg [AW-1:0] waddr;
  reg [8*TILE_W-1:0] wdata;
  integer i;
  always @* begin
    i = 0;  // a loop that is skipped would leave it as it was: a latch
    we = on || fc_we;
    wlane = {TILE_W{1'b0}};
    if (fc_we) begin
      wlane[fc_at[TB-1:0]] = 1'b1;
      wdata = {TILE_W{fc_byte}};
    end else begin
      for (i = 0; i < TILE_W; i = i + 1) wlane[i] = quarter_on[i/(TILE_W/4)];
      wdata = wide;
    end
  end

  // the word of the entry, which there is none of when a word is an entry
  generate
    if (TB == 6) begin : g_entry
      always @* waddr = fc_we ? fc_entry : at[EW-1:0];
    end else begin : g_word
      always @* waddr = fc_we ? {fc_entry, fc_at[5:TB]} : {at[EW-1:0], place[QB-1:2]};
    end
  endgenerate

  genvar h;
  generate
    if (PAIR == 0) begin : g_single
      ram_1r1w #(
          .WIDTH(8 * TILE_W),
          .DEPTH(ROWS * 64 / TILE_W),
          .LANE (8)
      ) u_ram (
          .clk  (clk),
          .we   (we),
          .wlane(wlane),
          .waddr(waddr),
          .wdata(wdata),
          .re   (re),
          .raddr(raddr),
          .rdata(rdata)
      );
      wire unused_b = &{1'b0, f_word_b, f_on_b};
    end else begin : g_pair
      // the second row, moved as the view of the tap column is
      wire on_b = f_valid && f_on_b[TAP_ROW];
      wire [TW-1:0] at_b = at + {{(TW - 1) {1'b0}}, 1'b1};
      wire [8*TILE_W-1:0] wide_b = (KX == 2'd0) ? f_word_b << 8 : (KX == 2'd2) ? f_word_b >> 8 : f_word_b;
      for (h = 0; h < 2; h = h + 1) begin : g_half
        localparam [0:0] ODD = h;
        wire first = waddr[0] == ODD;
        // of an odd entry and the next one the even one is further on
        wire [AW-2:0] at_read = raddr[AW-1:1] + {{(AW - 2) {1'b0}}, raddr[0] && !ODD};
        wire [8*TILE_W-1:0] half;
        ram_1r1w #(
            .WIDTH(8 * TILE_W),
            .DEPTH(ROWS / 2),
            .LANE (8)
        ) u_ram (
            .clk  (clk),
            .we   (first ? we : on_b),
            .wlane(first ? wlane : {TILE_W{1'b1}}),
            .waddr(first ? waddr[AW-1:1] : at_b[AW-1:1]),
            .wdata(first ? wdata : wide_b),
            .re   (re),
            .raddr(at_read),
            .rdata(half)
        );
      end
      reg odd;
      always @(posedge clk) if (re) odd <= raddr[0];
      assign rdata = odd ? {g_half[0].half, g_half[1].half} : {g_half[1].half, g_half[0].half};
      wire unused_b = &{1'b0, at_b};
    end
  endgenerate

  wire unused = &{1'b0, at, nth, slot_place, fc_at, f_chans, f_ky_slot, quarters, view3};

endmodule

`resetall
