// SPDX-License-Identifier: Apache-2.0
//
// tile_scatter: converts each AI RAM word to the views that the banks of the tile buffer write.
//
// How it works: a window is cut from the word, the byte before it and the word after it; it begins one byte
// before the stripe. Tap column v sees every stride-th byte of the window from byte v on. With dilation the
// outer tap columns see bytes further away. A 1x1 layer uses the view of the middle column (for each channel
// in the word), a depthwise row all three. So bytes reach the banks in position, whole quarters of a word at a
// time; bytes beyond the edges of the map are undefined, and the sequencer masks them as padding. A word of a
// flat layer is rotated, so that each channel's part of a line is in position. So is a word of a vector, which
// passes several times. A word waits for the next one, unless it is the last of its line. Views are
// registered, then written; with words of 8 bytes the window is registered too, because small arrays are built
// of slow LUTs.
// Handshake: no back-pressure; fill_seq has reserved the room. done counts the entries completed by the bank
// writes of the same cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_scatter #(
    // bytes of a word
    parameter TILE_WORD = 64,
    // 1: a second row may accompany the word; 1: maps of 1x1 layers may be one line; largest dilation, not
    // more than TILE_WORD
    parameter PAIR      = 0,
    parameter FLAT_MAPS = 0,
    parameter DILATION  = 1,
    // width of the destination of the bytes
    parameter WW        = 1,
    // derived, not to be set: log2 of the word
    parameter TB        = $clog2(TILE_WORD)
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer: 1x1, element-wise (all tap columns see the same), one line, words of a vector, bytes between tap
    // columns less one, pitch code, log2 of the stride, log2 of the stripe's line width
    input  wire                   chan,
    input  wire                   ew,
    input  wire                   flat,
    input  wire                   vector,
    input  wire [            2:0] apart,
    input  wire [            1:0] ip,
    input  wire [            1:0] stl,
    input  wire [            2:0] swl,
    // word with its note, see [note] of fields.toml
    input  wire                   note_valid,
    input  wire [8*TILE_WORD-1:0] word,
    input  wire [            4:0] note_done,
    input  wire                   note_emit,
    input  wire [         TB-1:0] note_base,
    input  wire [         WW-1:0] note_where,
    input  wire                   note_last,
    // flat: position of its first pixel in the stripe, number of pixels
    input  wire [            5:0] note_first,
    input  wire [            4:0] note_count,
    // second row, tap rows it feeds; unused without PAIR
    input  wire [8*TILE_WORD-1:0] word_b,
    input  wire [            2:0] note_on_b,
    // views of the word by tap column, or by channel where a word holds several, with the note for the banks;
    // flat: number of valid bytes
    output reg                    f_valid,
    output reg  [8*TILE_WORD-1:0] view0,
    output reg  [8*TILE_WORD-1:0] view1,
    output reg  [8*TILE_WORD-1:0] view2,
    output reg  [8*TILE_WORD-1:0] view3,
    output reg  [         WW-1:0] f_where,
    output wire [            6:0] f_upto,
    output wire [8*TILE_WORD-1:0] f_word_b,
    output wire [            2:0] f_on_b,
    // entries completed by the writes of this cycle
    output wire [            4:0] done
);

  // ---- stage E: a word waiting for the next one; last bytes of the previous word
  reg                    e_valid;
  reg  [8*TILE_WORD-1:0] e_word;
  reg  [ 8*DILATION-1:0] e_prev;
  reg  [            4:0] e_done;
  reg                    e_emit;
  reg  [         TB-1:0] e_base;
  reg                    e_last;
  reg  [         WW-1:0] e_where;

  wire                   e_go = e_valid && (e_last || note_valid);

  always @(posedge clk) begin
    if (rst) e_valid <= 1'b0;
    else e_valid <= note_valid || (e_valid && !e_go);
  end

  always @(posedge clk) begin
    if (note_valid) begin
      e_word  <= word;
      e_prev  <= e_word[8*TILE_WORD-1-:8*DILATION];
      e_done  <= note_done;
      e_emit  <= note_emit;
      e_base  <= note_base;
      e_last  <= note_last;
      e_where <= note_where;
    end
  end

  // ---- stage F: the views
  // flat: each channel's 16 bytes are rotated
  wire turns = FLAT_MAPS != 0 && flat;
  wire [16*TILE_WORD+7:0] around = {
    (turns || vector) ? e_word : word, e_word, e_prev[8*DILATION-1-:8]
  };
  wire [16*TILE_WORD+7:0] moved = around >> {e_base, 3'd0};
  wire [8*TILE_WORD+15:0] window;
  // dilated: what the outer tap columns see
  wire far = DILATION > 1 && apart != 3'd0;
  wire [8*TILE_WORD-1:0] left_now, right_now, left_word, right_word;
  wire w_go;
  wire [4:0] w_done;
  wire w_emit;
  wire [WW-1:0] w_where;
  generate
    if (DILATION > 1) begin : g_far
      localparam integer MOST_I = DILATION - 1;
      localparam [2:0] MOST = MOST_I[2:0];
      localparam SPAN = 8 * (2 * TILE_WORD + DILATION);
      wire [2:0] behind = MOST - apart;
      // a stripe begins with a word, or with a channel in it
      wire [SPAN-1:0] lined;
      if (TILE_WORD > 16) begin : g_channels
        assign lined = {word, e_word, e_prev} >> {e_base[TB-1:4], 7'd0};
      end else begin : g_channel
        assign lined = {word, e_word, e_prev};
      end
      wire [SPAN-1:0] leftwards = lined >> {behind, 3'd0};
      wire [SPAN-8*DILATION-1:0] rightwards = lined[SPAN-1:8*DILATION] >> ({1'b0, apart, 3'd0} + 7'd8);
      assign left_now  = leftwards[8*TILE_WORD-1:0];
      assign right_now = rightwards[8*TILE_WORD-1:0];
      wire unused_far = &{1'b0, leftwards, rightwards};
    end else begin : g_near
      assign left_now  = {8 * TILE_WORD{1'b0}};
      assign right_now = {8 * TILE_WORD{1'b0}};
      wire unused_apart = &{1'b0, apart};
    end
    if (TILE_WORD == 8) begin : g_window
      reg go_q, emit_q;
      reg [4:0] done_q;
      reg [WW-1:0] where_q;
      reg [8*TILE_WORD+15:0] window_q;
      reg [8*TILE_WORD-1:0] left_q, right_q;
      always @(posedge clk) begin
        if (rst) go_q <= 1'b0;
        else go_q <= e_go;
      end
      always @(posedge clk) begin
        window_q <= moved[8*TILE_WORD+15:0];
        {left_q, right_q} <= {left_now, right_now};
        {done_q, emit_q, where_q} <= {e_done, e_emit, e_where};
      end
      assign window = window_q;
      assign {left_word, right_word} = {left_q, right_q};
      assign w_go = go_q;
      assign {w_done, w_emit, w_where} = {done_q, emit_q, where_q};
    end else begin : g_at_once
      assign window = moved[8*TILE_WORD+15:0];
      assign {left_word, right_word} = {left_now, right_now};
      assign w_go = e_go;
      assign {w_done, w_emit, w_where} = {e_done, e_emit, e_where};
    end
  endgenerate

  // 1x1 with several channels in a word: channel n is n * 16 or 32 bytes further
  wire [8*TILE_WORD-1:0] from0 = far ? left_word : window[8*TILE_WORD-1:0];
  wire [8*TILE_WORD-1:0] from1;
  genvar b;
  generate
    if (FLAT_MAPS != 0 && TILE_WORD > 16) begin : g_turn
      // the word is rotated as a whole: a byte of the next channel is replaced by the one 16 bytes before it
      wire [15:0] wraps = {16{turns}} & ~(16'hffff >> e_base[3:0]);
      for (b = 0; b < TILE_WORD; b = b + 1) begin : g_byte
        localparam integer BACK = (b + TILE_WORD - 16) % TILE_WORD;
        assign from1[8*b+:8] = wraps[b%16] ? window[8*BACK+8+:8] : window[8*b+8+:8];
      end
    end else begin : g_as_it_is
      assign from1 = window[8*TILE_WORD+7:8];
    end
  endgenerate
  wire [8*TILE_WORD-1:0] from2 = far ? right_word : window[8*TILE_WORD+15:16];
  wire [8*TILE_WORD-1:0] src0, src1, src2, src3;
  generate
    if (TILE_WORD == 64) begin : g_four
      wire [8*TILE_WORD-1:0] half = {from1[255:0], from1[511:256]};
      assign src0 = chan ? from1 : from0;
      assign src1 = !chan ? from1 : ip[0] ? half : {from1[127:0], from1[511:128]};
      assign src2 = chan ? half : from2;
      assign src3 = {from1[383:0], from1[511:384]};
    end else if (TILE_WORD == 32) begin : g_two
      assign src0 = chan ? from1 : from0;
      assign src1 = chan ? {from1[127:0], from1[255:128]} : from1;
      assign src2 = from2;
      assign src3 = {8 * TILE_WORD{1'b0}};
    end else begin : g_one
      assign src0 = (chan || ew) ? from1 : from0;
      assign src1 = from1;
      assign src2 = (chan || ew) ? from1 : from2;
      assign src3 = {8 * TILE_WORD{1'b0}};
    end
  endgenerate

  // every stride-th byte, repeated over the word; so is a stripe line shorter than a word
  function [8*TILE_WORD-1:0] pick(input [8*TILE_WORD-1:0] w, input [1:0] log2s, input [2:0] log2w);
    integer j;
    begin
      pick = w;
      if (log2s == 2'd2) begin
        for (j = 0; j < TILE_WORD; j = j + 1) pick[8*j+:8] = w[8*(4*(j%(TILE_WORD/4)))+:8];
      end else if (log2s == 2'd1) begin
        for (j = 0; j < TILE_WORD; j = j + 1) pick[8*j+:8] = w[8*(2*(j%(TILE_WORD/2)))+:8];
        if (TILE_WORD > 32 && log2w == 3'd4) begin
          for (j = 16; j < TILE_WORD; j = j + 1) pick[8*j+:8] = pick[8*(j%16)+:8];
        end
      end else if (TILE_WORD > 16 && log2w == 3'd4) begin
        for (j = 16; j < TILE_WORD; j = j + 1) pick[8*j+:8] = w[8*(j%16)+:8];
      end else if (TILE_WORD > 32 && log2w == 3'd5) begin
        for (j = 32; j < TILE_WORD; j = j + 1) pick[8*j+:8] = w[8*(j%32)+:8];
      end
    end
  endfunction

  reg [4:0] f_done;
  always @(posedge clk) begin
    if (rst) begin
      f_valid <= 1'b0;
      f_done  <= 5'd0;
    end else begin
      f_valid <= w_go && w_emit;
      f_done  <= w_go ? w_done : 5'd0;
    end
  end

  wire [8*TILE_WORD-1:0] pick0 = pick(src0, stl, swl);
  wire [8*TILE_WORD-1:0] pick1 = pick(src1, stl, swl);
  wire [8*TILE_WORD-1:0] pick2 = pick(src2, stl, swl);
  wire [8*TILE_WORD-1:0] pick3 = (TILE_WORD == 64) ? pick(src3, stl, swl) : {8 * TILE_WORD{1'b0}};
  always @(posedge clk) if (w_go) f_where <= w_where;

  // Flat: a view accumulates a word of the stripe, each pixel in position, as lines arrive. It is written
  // from its first byte on with every line. The part of a line beyond the end of the word begins the next
  // word.
  wire [TILE_WORD-1:0] fresh;  // bytes provided by the line
  wire [8*TILE_WORD-1:0] had0, had1, had2, had3;
  generate
    if (FLAT_MAPS != 0) begin : g_stripe
      reg [TB-1:0] e_first;
      reg [4:0] e_count;
      reg [6:0] upto;
      wire [6:0] e_from = {{(7 - TB) {1'b0}}, e_first};
      wire [6:0] e_upto = e_from + {2'd0, e_count};
      always @(posedge clk) if (note_valid) {e_first, e_count} <= {note_first[TB-1:0], note_count};
      always @(posedge clk) if (e_go) upto <= e_upto;
      for (b = 0; b < TILE_WORD; b = b + 1) begin : g_byte
        localparam [7:0] AT = b;
        assign fresh[b] = !turns || (AT[6:0] >= e_from && AT[6:0] < e_upto);
      end
      if (TILE_WORD == 64) begin : g_one
        // a stripe is one word: no byte is beyond it
        assign {had0, had1, had2, had3} = {view0, view1, view2, view3};
      end else begin : g_more
        // with words of 16 bytes all views are the same
        reg beyond;
        reg [8*TILE_WORD-1:0] over0, over1;
        always @(posedge clk) begin
          if (e_go) begin
            beyond <= turns && e_upto > TILE_WORD[6:0];
            {over0, over1} <= {pick0, pick1};
          end
        end
        assign had0 = beyond ? over0 : view0;
        assign had1 = !beyond ? view1 : (TILE_WORD == 16) ? over0 : over1;
        assign had2 = !beyond ? view2 : (TILE_WORD == 16) ? over0 : view2;
        assign had3 = view3;
      end
      assign f_upto = upto;
      wire unused_first = &{1'b0, note_first};
    end else begin : g_words
      assign fresh = {TILE_WORD{1'b1}};
      assign {had0, had1, had2, had3} = {view0, view1, view2, view3};
      assign f_upto = 7'd0;
      wire unused_note = &{1'b0, note_first, note_count, had0, had1, had2, had3};
    end
    for (b = 0; b < TILE_WORD; b = b + 1) begin : g_view
      always @(posedge clk) begin
        if (w_go) begin
          view0[8*b+:8] <= fresh[b] ? pick0[8*b+:8] : had0[8*b+:8];
          view1[8*b+:8] <= fresh[b] ? pick1[8*b+:8] : had1[8*b+:8];
          view2[8*b+:8] <= fresh[b] ? pick2[8*b+:8] : had2[8*b+:8];
          view3[8*b+:8] <= fresh[b] ? pick3[8*b+:8] : had3[8*b+:8];
        end
      end
    end
  endgenerate

  assign done = f_done;

  // a second row is a whole line: it is not shifted
  generate
    if (PAIR != 0) begin : g_pair
      reg [8*TILE_WORD-1:0] e_word_b, word_b_q;
      reg [2:0] e_on_b, on_b_q;
      always @(posedge clk) begin
        if (note_valid) begin
          e_word_b <= word_b;
          e_on_b   <= note_on_b;
        end
        if (e_go) begin
          word_b_q <= e_word_b;
          on_b_q   <= e_on_b;
        end
      end
      assign f_word_b = word_b_q;
      assign f_on_b   = on_b_q;
    end else begin : g_single
      assign f_word_b = {8 * TILE_WORD{1'b0}};
      assign f_on_b   = 3'd0;
      wire unused_b = &{1'b0, word_b, note_on_b};
    end
  endgenerate

  wire unused = &{1'b0, moved, ip, chan, ew};

endmodule

`resetall
