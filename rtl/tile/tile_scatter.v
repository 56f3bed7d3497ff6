// SPDX-License-Identifier: Apache-2.0
//
// tile_scatter: puts the bytes of an AI RAM row where the banks of the tile buffer want them.
//
// How it works: four views of a row are made. In a convolution, view v is the row as tap column v
// sees it: rotated to the stripe's first pixel, moved by v - 1, every stride-th byte kept. In a
// 1x1 layer, view v is the v-th channel of the row. In a depthwise row, the views are the row moved
// by one byte to either side, the byte beyond its end taken from the neighbouring rows of the
// line (so a row waits for the one after it, unless it is the last). Each bank (tile_bank)
// takes the view and the bytes that concern it. Views are registered, then written.
// Handshake: no back-pressure; fill_seq has reserved the room. done counts the entries that are
// complete with what the banks write in the same cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_scatter #(
    // entries of the tile buffer
    parameter TILE_ROWS = 32,
    // width of an entry counter
    parameter TW        = $clog2(TILE_ROWS) + 2
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // layer: mode, log2 of the stride, column phase, log2 of the stripe's line width, pitch code
    input  wire [   1:0] mode,
    input  wire [   1:0] stl,
    input  wire          ph,
    input  wire [   2:0] swl,
    input  wire [   1:0] ip,
    // row with its note, see fill_seq
    input  wire          note_valid,
    input  wire [ 511:0] row,
    input  wire [TW-1:0] note_entry,
    input  wire [   4:0] note_done,
    input  wire [   5:0] note_base,
    input  wire [   2:0] note_segrel,
    input  wire [   2:0] note_ky_on,
    input  wire [   5:0] note_ky_slot,
    input  wire [   3:0] note_chmod,
    input  wire [   2:0] note_chans,
    input  wire          note_lastseg,
    input  wire          note_firstseg,
    // views of the row and the bytes of them that come from this row, with the note for the banks
    output reg           f_valid,
    output reg  [ 511:0] view0,
    output reg  [ 511:0] view1,
    output reg  [ 511:0] view2,
    output reg  [ 511:0] view3,
    output reg  [  63:0] mask0,
    output reg  [  63:0] mask1,
    output reg  [  63:0] mask2,
    output reg  [TW-1:0] f_entry,
    output reg  [   2:0] f_ky_on,
    output reg  [   5:0] f_ky_slot,
    output reg  [   3:0] f_chmod,
    output reg  [   2:0] f_chans,
    // entries complete with what is written in this cycle
    output wire [   4:0] done
);

  wire          chan_mode = mode == `MODE_CHAN;
  wire          dwrow_mode = mode == `MODE_DWROW;
  wire          taps_mode = mode == `MODE_TAPS;

  // ---- stage E: a row, perhaps waiting for the next one
  reg           e_valid;
  reg  [ 511:0] e_row;
  reg  [   7:0] e_prev;  // last byte of the row before it in the line
  reg  [TW-1:0] e_entry;
  reg  [   4:0] e_done;
  reg  [   5:0] e_base;
  reg  [   2:0] e_segrel;
  reg  [   2:0] e_ky_on;
  reg  [   5:0] e_ky_slot;
  reg  [   3:0] e_chmod;
  reg  [   2:0] e_chans;
  reg           e_lastseg;

  wire          e_go = e_valid && (e_lastseg || note_valid);

  always @(posedge clk) begin
    if (rst) e_valid <= 1'b0;
    else e_valid <= note_valid || (e_valid && !e_go);
  end

  always @(posedge clk) begin
    if (note_valid) begin
      e_row     <= row;
      e_prev    <= note_firstseg ? 8'd0 : e_row[511:504];
      e_entry   <= note_entry;
      e_done    <= note_done;
      e_base    <= note_base;
      e_segrel  <= note_segrel;
      e_ky_on   <= note_ky_on;
      e_ky_slot <= note_ky_slot;
      e_chmod   <= note_chmod;
      e_chans   <= note_chans;
      e_lastseg <= note_lastseg;
    end
  end

  // ---- stage F: the views
  reg [4:0] f_done;

  wire [1023:0] turned_2 = {e_row, e_row} >> {e_base, 3'd0};
  wire [511:0] turned = turned_2[511:0];  // row from the stripe's start on
  wire [511:0] m1 = {turned[503:0], turned[511:504]};
  wire [511:0] p1 = {turned[7:0], turned[511:8]};
  wire [511:0] p2 = {turned[15:0], turned[511:16]};
  // tap columns -1, 0, 1 (phase 1: 0, 1, 2), or the channels of the row
  wire [511:0] s0 = chan_mode ? (ph ? p1 : turned) : (ph ? turned : m1);
  wire [511:0] s1 = chan_mode ? turn_chan(ph ? p1 : turned, ip[0], 2'd1) : (ph ? p1 : turned);
  wire [511:0] s2 = chan_mode ? turn_chan(ph ? p1 : turned, ip[0], 2'd2) : (ph ? p2 : p1);
  wire [511:0] s3 = turn_chan(ph ? p1 : turned, ip[0], 2'd3);

  function [511:0] turn_chan(input [511:0] r, input pitch, input [1:0] n);
    begin
      // by n times 16 or 32 bytes (one channel a row: not used)
      case ({
        pitch, n
      })
        3'b0_01: turn_chan = {r[127:0], r[511:128]};
        3'b0_10: turn_chan = {r[255:0], r[511:256]};
        3'b0_11: turn_chan = {r[383:0], r[511:384]};
        3'b1_01: turn_chan = {r[255:0], r[511:256]};
        default: turn_chan = r;
      endcase
    end
  endfunction

  // every stride-th byte, repeated over the lines of the stripe
  function [511:0] pick(input [511:0] r, input [1:0] log2s, input [2:0] log2w);
    reg [511:0] k;
    integer j;
    begin
      k = r;
      if (log2s == 2'd1) begin
        for (j = 0; j < 32; j = j + 1) k[8*j+:8] = r[16*j+:8];
        k[511:256] = k[255:0];
      end else if (log2s == 2'd2) begin
        for (j = 0; j < 16; j = j + 1) k[8*j+:8] = r[32*j+:8];
        k[255:128] = k[127:0];
        k[511:256] = k[255:0];
      end
      pick = (log2w == 3'd4) ? {4{k[127:0]}} : (log2w == 3'd5) ? {2{k[255:0]}} : k;
    end
  endfunction

  // bytes of a view that come from this row of the line: position start + stride * jj lies in it
  function [63:0] covers(input signed [8:0] first, input [1:0] log2s, input [2:0] log2w,
                         input [2:0] segrel);
    integer j;
    reg signed [9:0] at;
    reg [6:0] jj;
    begin
      for (j = 0; j < 64; j = j + 1) begin
        jj = j[6:0] & ((7'd1 << log2w) - 7'd1);
        at = {first[8], first} + ({3'd0, jj} << log2s);
        covers[j] = ((at >>> 6) & 10'sd7) == {7'd0, segrel};
      end
    end
  endfunction

  wire signed [8:0] base_s = {3'd0, e_base};
  wire signed [8:0] ph_s = {8'd0, ph};
  // 1x1: in a narrow map all channels of the row lie in the one row of the line
  wire signed [8:0] chan_s = {3'd0, e_base} + ph_s;

  always @(posedge clk) begin
    if (rst) f_valid <= 1'b0;
    else f_valid <= e_go;
  end

  wire [7:0] next_byte = row[7:0];

  always @(posedge clk) begin
    if (e_go) begin
      f_entry   <= e_entry;
      f_done    <= e_done;
      f_ky_on   <= e_ky_on;
      f_ky_slot <= e_ky_slot;
      f_chmod   <= e_chmod;
      f_chans   <= e_chans;
      if (dwrow_mode) begin
        view0 <= {e_row[503:0], e_prev};
        view1 <= e_row;
        view2 <= {next_byte, e_row[511:8]};
        mask0 <= {64{1'b1}};
        mask1 <= {64{1'b1}};
        mask2 <= {64{1'b1}};
      end else if (chan_mode) begin
        view0 <= pick(s0, stl, swl);
        view1 <= pick(s1, stl, swl);
        view2 <= pick(s2, stl, swl);
        view3 <= pick(s3, stl, swl);
        mask0 <= covers(chan_s, stl, swl, e_segrel);
        mask1 <= {64{1'b1}};
        mask2 <= {64{1'b1}};
      end else begin
        view0 <= pick(s0, stl, swl);
        view1 <= pick(s1, stl, swl);
        view2 <= pick(s2, stl, swl);
        mask0 <= covers(base_s + ph_s - 9'sd1, stl, swl, e_segrel);
        mask1 <= covers(base_s + ph_s, stl, swl, e_segrel);
        mask2 <= covers(base_s + ph_s + 9'sd1, stl, swl, e_segrel);
      end
    end
  end

  assign done = f_valid ? f_done : 5'd0;

  wire unused = &{1'b0, taps_mode, turned_2, ip[1]};

endmodule

`resetall
