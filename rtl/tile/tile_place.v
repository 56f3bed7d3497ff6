// SPDX-License-Identifier: Apache-2.0
//
// tile_place: computes where the bytes of a word go in the banks of the tile buffer.
//
// How it works: three places are enough for nine banks. Taps and depthwise rows have one for each tap row:
// its line of the stripe, or the output line below, at or above the row. The channels of a word that holds
// several have one in this entry (places 1 and 2) and one in the next (place 0), for banks whose channel is
// beyond the ninth; otherwise all places are in this entry. Of an element-wise layer's two maps the first
// goes to the middle tap row, the second to the last one, both as seen by the middle column. A place is a
// word address and the quarters of the word to write.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_place #(
    // entries of the tile buffer; bytes of a word
    parameter TILE_ROWS = 32,
    parameter TILE_WORD = 64,
    // derived, not to be set, see tile_bank
    parameter TB        = $clog2(TILE_WORD),
    parameter QB        = 8 - TB,
    parameter EW        = $clog2(TILE_ROWS),
    parameter AW        = EW + 6 - TB
) (
    // layer: mode, element-wise, one line, log2 of the stripe's line width, of the stride, rows per line
    input  wire [     1:0] mode,
    input  wire            ew,
    input  wire            flat,
    input  wire [     2:0] swl,
    input  wire [     1:0] stl,
    input  wire [     4:0] irl,
    // note of the word, see [note] of fields.toml
    input  wire [  EW-1:0] entry,
    input  wire [  QB-1:0] first,
    input  wire [     2:0] ky_on,
    input  wire [     5:0] ky_slot,
    input  wire [     3:0] chmod,
    input  wire [     2:0] chans,
    // banks written, banks written at place 0, selected views
    output wire [     8:0] on,
    output wire [     8:0] zero,
    output wire [    17:0] pick,
    // the three places: word address, quarters of the word
    output wire [3*AW-1:0] addr,
    output wire [    11:0] quarters
);

  wire chan_mode = mode == `MODE_CHAN;
  wire dwrow_mode = mode == `MODE_DWROW;

  // ---- entries
  wire [EW-1:0] rows = ew ? {EW{1'b0}} : {{(EW - 5) {1'b0}}, irl};
  wire [EW-1:0] up = dwrow_mode ? rows : {{(EW - 1) {1'b0}}, chan_mode && TILE_WORD > 16};
  wire [EW-1:0] entry_0 = entry + up;
  wire [EW-1:0] entry_2 = entry - (dwrow_mode ? rows : {EW{1'b0}});

  // ---- quarters: their number, their offset in the line of the stripe
  wire [2:0] line_quarters = (TB[2:0] > 3'd4 && swl < TB[2:0]) ? 3'd4 >> (TB[2:0] - swl) : 3'd4;
  wire [2:0] pick_quarters = 3'd4 >> stl;
  wire [2:0] count = (line_quarters < pick_quarters) ? line_quarters : pick_quarters;
  wire [3:0] there = count[2] ? 4'hf : count[1] ? 4'h3 : 4'h1;
  genvar r;
  generate
    for (r = 0; r < 3; r = r + 1) begin : g_place
      wire [EW-1:0] mine = (r == 0) ? entry_0 : (r == 2) ? entry_2 : entry;
      wire [1:0] slot = flat ? 2'd0 : (chan_mode || ew) ? ky_slot[3:2] : ky_slot[2*r+:2];
      wire [6:0] line = {5'd0, slot} << (swl - TB[2:0] + 3'd2);
      wire [QB-1:0] at = first | (dwrow_mode ? {QB{1'b0}} : line[QB-1:0]);
      assign quarters[4*r+:4] = there << at[1:0];
      if (TB == 6) begin : g_entry
        assign addr[AW*r+:AW] = mine;
      end else begin : g_word
        assign addr[AW*r+:AW] = {mine, at[QB-1:2]};
      end
      wire unused = &{1'b0, line};
    end
  endgenerate

  // ---- banks
  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      localparam [3:0] T = t;
      localparam integer ROW = t / 3;
      localparam integer COL = t % 3;
      localparam [1:0] KX = COL[1:0];
      if (TILE_WORD > 16) begin : g_many
        // the bank holds channel nth of the word, possibly in the next entry
        wire wraps = T < chmod;
        wire [3:0] nth = T - chmod + (wraps ? 4'd9 : 4'd0);
        assign on[t] = chan_mode ? nth < {1'b0, chans} : ky_on[ROW];
        assign zero[t] = chan_mode ? wraps : ROW == 0;
        assign pick[2*t+:2] = chan_mode ? nth[1:0] : ew ? 2'd1 : KX;
      end else begin : g_one
        // a word has one channel
        assign on[t] = chan_mode ? T == chmod : ky_on[ROW];
        assign zero[t] = ROW == 0;
        assign pick[2*t+:2] = ew ? 2'd1 : KX;
      end
    end
  endgenerate

  wire unused = &{1'b0, chans, chmod, count};

endmodule

`resetall
