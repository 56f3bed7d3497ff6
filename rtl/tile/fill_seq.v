// SPDX-License-Identifier: Apache-2.0
//
// fill_seq: reads the words of the AI RAM that the array needs, in the order it needs them.
//
// How it works: the nest follows that of loop_nest: block of groups > stripe > pass > unit > line >
// word of the line. A unit is a channel (3x3 and fully connected), the channels that share a word
// (1x1) or a row (depthwise rows). When a stripe's input fits the tile buffer there is one pass,
// and the groups of a block all use it; otherwise the input is read once for each group. What a
// stripe needs fill_stripe works out while the one before it is read; addresses only move by steps
// from there. Of a flat layer's line the part that lies in the stripe counts. Of an element-wise layer's two maps a line of the first is followed by that of the second. Each word that is read goes to tile_scatter (fully connected: fc_flatten) with a note of
// where its bytes belong and how many entries are complete with it. The nest works a word ahead of
// the AI RAM, so that the request and its address come from registers.
// Handshake: start with a stable descriptor, busy until the last word was read. A word waits for
// room in the tile buffer (fully connected: in fc_flatten, told with taken), then its read for the
// AI RAM (fill_req until fill_gnt); the note is valid in the cycle after, with the data. With PAIR a read of a
// depthwise line of one row may be for the line below as well, when both are in a word of the path.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_seq #(
    // entries of the tile buffer; bytes of a word: 8, 16, 32 or 64
    parameter TILE_ROWS = 32,
    parameter TILE_W    = 64,
    // 1: the path has two rows; 1: maps of 1x1 layers may be one line
    parameter PAIR      = 0,
    parameter FLAT      = 0,
    // derived, not to be set: log2 of the word, widths of its address, of a word of a line (1024
    // bytes at most), of a piece of a quarter word in an entry of 64 bytes, of an entry counter, of a
    // note
    parameter TB        = $clog2(TILE_W),
    parameter AW        = 21 - TB,
    parameter NB        = 10 - TB,
    parameter QB        = 8 - TB,
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter NOTE      = TW + TB + QB + TB + 28
) (
    // clock and synchronous reset
    input wire clk,
    input wire rst,
    // layer start with its descriptor
    input wire start,
    input wire [`DESC_BITS-1:0] desc,
    output wire busy,
    // lines of the map that are in the AI RAM
    input wire [9:0] lines_there,
    // entries released by the array, and complete (running counts)
    input wire [TW-1:0] tile_freed,
    input wire [TW-1:0] tile_filled,
    // AI RAM read port
    output reg fill_req,
    output reg [AW-1:0] fill_word,
    input wire fill_gnt,
    // fully connected: the flattener can take a word; a word that it will get
    input wire fc_ready,
    output wire taken,
    // note, valid in the cycle of the read data: see its fields below
    output reg note_valid,
    output reg [NOTE-1:0] note
);

  // ---- descriptor fields
  wire k3 = desc[`DESC_K3] && !desc[`DESC_EW];
  wire [13:0] n_c = desc[`DESC_C];
  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire held = desc[`DESC_HELD];
  wire [1:0] stl = desc[`DESC_STL];
  wire [1:0] ip = desc[`DESC_IP];
  wire [4:0] irl = desc[`DESC_IRL];
  // the mode from registers from the cycle after start on: it begins the longest path of the tile
  wire [1:0] new_mode = desc[`DESC_MODE];
  wire new_dwrow = new_mode == `MODE_DWROW;
  wire new_chan = new_mode == `MODE_CHAN;
  reg taps_mode, k3_taps, chan_mode, dwrow_mode, fc_mode, ew, two_maps, one_line;
  always @(posedge clk) begin
    if (rst) {taps_mode, k3_taps, chan_mode, dwrow_mode, fc_mode, ew, two_maps, one_line} <= 8'd0;
    else if (start) begin
      {taps_mode, k3_taps} <= {new_mode == `MODE_TAPS, new_mode == `MODE_TAPS && k3};
      {chan_mode, dwrow_mode, fc_mode} <= {new_chan, new_dwrow, new_mode == `MODE_FC};
      {ew, two_maps} <= {desc[`DESC_EW], desc[`DESC_EW] && !desc[`DESC_ONE]};
      one_line <= desc[`DESC_FLAT];
    end
  end
  wire whole = dwrow_mode || fc_mode;
  wire [1:0] gl = {ip == 2'd0, ip == 2'd1};  // log2 of the channels in a row
  wire [3:0] pl = {2'b01, ip};  // log2 of the bytes of a channel in it
  wire shared;  // channels share a word
  wire [1:0] gwl;  // log2 of how many
  wire [2:0] pwl;  // log2 of the words of a channel in a row
  generate
    if (TB == 6) begin : g_share_64
      assign shared = !ip[1];
      assign gwl = gl;
      assign pwl = 3'd0;
    end else if (TB == 5) begin : g_share_32
      assign shared = ip == 2'd0;
      assign gwl = {1'b0, shared};
      assign pwl = {2'b00, ip[1]};
    end else begin : g_alone
      assign shared = 1'b0;
      assign gwl = 2'd0;
      assign pwl = (TB == 4) ? {1'b0, ip} : {1'b0, ip != 2'd0, ip != 2'd1};
    end
  endgenerate

  // ---- the stripe after the one at work: lines first_y..last_y, words of a line from first_s on
  wire load;
  wire a_ready, a_pre, a_last, a_up;
  wire [9:0] a_first_y, a_last_y;
  wire [2:0] a_lines;
  wire [NB-1:0] a_first_s, a_last_s, a_k_last;
  wire [TB-1:0] a_shift;
  wire [3:0] a_flat_x;
  wire [6:0] a_flat_pixels;
  wire [14:0] a_row;
  fill_stripe #(
      .TILE_W(TILE_W),
      .FLAT  (FLAT)
  ) u_next (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .whole      (whole),
      .k3_taps    (k3_taps),
      .lines_there(lines_there),
      .taken      (load),
      .ready      (a_ready),
      .pre        (a_pre),
      .last       (a_last),
      .up         (a_up),
      .first_y    (a_first_y),
      .last_y     (a_last_y),
      .lines      (a_lines),
      .first_s    (a_first_s),
      .last_s     (a_last_s),
      .k_last     (a_k_last),
      .shift      (a_shift),
      .flat_x     (a_flat_x),
      .flat_pixels(a_flat_pixels),
      .row        (a_row)
  );

  // ---- the stripe at work
  reg active, c_pre, c_last;
  reg [9:0] c_first_y, c_reach;  // first line, lines to the last one
  reg c_up;
  reg [3:0] rel;  // line of the input below the one above the stripe's first: 14 at most
  reg [2:0] c_lines;
  reg [NB-1:0] c_n_last, c_k_last;
  reg [TB-1:0] c_shift;
  reg [AW-1:0] saddr;  // its first word

  // ---- counters of the nest
  reg [10:0] grps_left;  // groups from this block on
  reg [10:0] pass;  // from 1 on
  reg [13:0] chans_left;  // channels from this unit on
  reg [1:0] unit;  // first channel of the unit, place in its row
  reg [9:0] y, y_left;  // line, lines to the last one
  reg [NB-1:0] n;  // word of the line
  reg [3:0] chmod;
  reg [TW-1:0] entry, line_entry;  // of the word, of the line's first word
  reg map2;  // the line of the second map
  // addresses: of the word, where the line, the unit, the group of channels in a row begins
  reg [AW-1:0] addr, laddr, uaddr, gaddr;

  wire [11:0] grps_after = {1'b0, grps_left} - {1'b0, n_b};
  wire blk_end = grps_after[11] || grps_after == 12'd0;
  wire [10:0] blk_groups = blk_end ? grps_left : n_b;
  wire [1:0] gu = dwrow_mode ? gl : chan_mode ? gwl : 2'd0;  // log2 of the channels of a unit
  wire [2:0] unit_size = {gu[1], gu == 2'd1, gu == 2'd0};
  // ... and in the cycle of start
  wire [1:0] new_gu = new_dwrow ? gl : new_chan ? gwl : 2'd0;
  wire [2:0] new_size = {new_gu[1], new_gu == 2'd1, new_gu == 2'd0};
  wire [1:0] unit_next = unit + unit_size[1:0];
  wire [13:0] chans_after = chans_left - {11'd0, unit_size};
  // the unit at work is the last one: worked out a unit ahead
  reg unit_last;
  wire [3:0] two_units = {unit_size, 1'b0};
  wire only_unit = n_c[13:3] == 11'd0 && n_c[2:0] <= new_size;
  wire next_last = unit_last ? only_unit : chans_left[13:4] == 10'd0 && chans_left[3:0] <= two_units;
  wire [2:0] unit_chans = unit_last ? chans_left[2:0] : unit_size;
  wire [1:0] row_mask = {gl[1], gl[1] || gl[0]};
  wire group_next = (unit_next & row_mask) == 2'd0;

  // depthwise rows: words up to the end of the last channel of a whole unit, of the last one
  wire [1:0] full_less = unit_size[1:0] - 2'd1;  // of four channels 3 as well
  wire [1:0] tail_less = (n_c[1:0] - 2'd1) & full_less;
  wire [10:0] dw_full = n_w - 11'd1 + ({7'd0, full_less, 2'd0} << (3'd2 + {1'b0, ip}));
  wire [10:0] dw_tail = n_w - 11'd1 + ({7'd0, tail_less, 2'd0} << (3'd2 + {1'b0, ip}));
  wire [NB-1:0] fc_last = n_w[NB+TB-1:TB] - {{(NB - 1) {1'b0}}, n_w[TB-1:0] == {TB{1'b0}}};
  // of the layer, from registers
  reg [NB-1:0] l_full, l_tail;
  always @(posedge clk) begin
    l_full <= fc_mode ? fc_last : dw_full[9:TB];
    l_tail <= fc_mode ? fc_last : dw_tail[9:TB];
  end
  wire [NB-1:0] n_last = !whole ? c_n_last : unit_last ? l_tail : l_full;

  // of two maps a line of the first is followed by that of the second
  wire s_last = n == n_last;
  wire turn = s_last && two_maps && !map2;
  wire line_end = s_last && !turn;
  wire two;  // this line and the one below
  wire [1:0] skip_l = two ? 2'd1 : (chan_mode || (taps_mode && !k3)) ? stl :
             (k3_taps && stl == 2'd2 && y[1:0] == 2'd1) ? 2'd1 : 2'd0;
  wire [9:0] y_next = y + (10'd1 << skip_l);
  // flat: pieces of lines; the line goes on in the next one
  wire flat, flat_last, flat_more;
  wire [5:0] flat_pos;
  wire [3:0] flat_at;
  wire [4:0] flat_count;
  // none is left: counted down, for a comparison would be in every path
  wire y_last = flat ? flat_last : y_left[9:2] == 8'd0 && (skip_l[1] || (!y_left[1] && (skip_l[0] || !y_left[0])));
  wire [9:0] a_reach = a_last_y - a_first_y;
  wire unit_end = line_end && y_last;
  wire pass_end = unit_end && unit_last;
  wire pass_last = held || dwrow_mode || pass == blk_groups;
  wire stripe_end = pass_end && pass_last;
  wire blk_last = dwrow_mode || blk_end;
  wire all_end = stripe_end && c_last && blk_last;

  // ---- room: the highest entry that this word writes to must be free
  wire [TW-1:0] reach = dwrow_mode ? {{(TW - 5) {1'b0}}, irl} + {{(TW - 1) {1'b0}}, two} :
             chan_mode ? {{(TW - 1) {1'b0}}, 1'b1} : {TW{1'b0}};
  wire [TW-1:0] ahead = entry + reach - tile_freed;
  wire room = fc_mode ? fc_ready : ahead < TILE_ROWS[TW-1:0];

  reg working;
  wire go = active && room && (!fill_req || fill_gnt);
  assign taken = go;
  assign busy  = working || fill_req;
  assign load  = a_ready && working && (!active || (go && stripe_end && !all_end));

  // ---- the next address: a word, a line, a unit or a group further
  wire [AW-1:0] line_w = flat_more ? {AW{1'b0}} : ({{(AW - 5) {1'b0}}, irl} << (6 - TB)) << skip_l;
  wire [AW-1:0] group_w = {{(AW - 14) {1'b0}}, desc[`DESC_ICS]} << (6 - TB);
  wire same_word = shared && !chan_mode && (unit_next & {gwl[1], gwl[1] || gwl[0]}) != 2'd0;
  wire [AW-1:0] unit_w = same_word ? {AW{1'b0}} : {{(AW - 1) {1'b0}}, 1'b1} << pwl;
  wire [AW-1:0] line_at = laddr + line_w;
  wire [AW-1:0] group_at = gaddr + group_w;
  wire [AW-1:0] unit_at = group_next ? group_at : uaddr + unit_w;
  wire [AW-1:0] stripe_at;
  wire [AW-1:0] line_next = load ? stripe_at : !y_last ? line_at : unit_last ? saddr : unit_at;
  wire [14:0] rows_apart = desc[`DESC_SRC2] - desc[`DESC_SRC];
  wire [AW-1:0] apart = {{(AW - 15) {1'b0}}, rows_apart} << (6 - TB);
  assign stripe_at = ({{(AW - 15) {1'b0}}, a_row} << (6 - TB)) + {{(AW - NB) {1'b0}}, a_first_s};

  always @(posedge clk) begin
    if (load) saddr <= stripe_at;
    if (load || go)
      addr <= (load || line_end) ? line_next : turn ? laddr + apart : addr + {{(AW - 1) {1'b0}}, 1'b1};
    if (load || (go && line_end)) laddr <= line_next;
    if (load || (go && unit_end)) uaddr <= line_next;
    if (load || (go && unit_end && (unit_last || group_next))) gaddr <= line_next;
  end

  // ---- entries complete with this word
  // chmod (8 at most) + unit_chans (1 to 4) is 9 or more, is 9: written out, for two carry chains one
  // behind the other are in the way of the next entry
  wire [3:0] chsum = chmod + {1'b0, unit_chans};
  wire ch_wrap = chmod[3] || (chmod[2] && (unit_chans[2] ? chmod[1] || chmod[0] :
             unit_chans[1] && chmod[1] && (unit_chans[0] || chmod[0])));
  wire ch_full = ch_wrap && (unit_chans[2] ? chmod[2:0] == 3'd5 : unit_chans[1] ?
             chmod[2:0] == (unit_chans[0] ? 3'd6 : 3'd7) : chmod[3]);
  wire [3:0] ch_next = ch_wrap ? chsum - 4'd9 : chsum;
  wire [4:0] done_chan = !unit_end ? 5'd0 : {4'd0, ch_wrap} + {4'd0, unit_last && !ch_full};
  wire row_end;  // depthwise rows: last word of a row
  wire [4:0] done_dw = ew ? {4'd0, row_end && (map2 || !two_maps)} :
      {4'd0, row_end && y != 10'd0} + {4'd0, two} + (unit_end ? irl : 5'd0);
  wire [4:0] done_now = chan_mode ? done_chan : dwrow_mode ? done_dw :
             taps_mode ? {4'd0, unit_end} : 5'd0;
  wire [4:0] entry_step = dwrow_mode ? {3'd0, two, row_end && !two} : done_now;

  wire [TW-1:0] entry_next = entry + {{(TW - 5) {1'b0}}, entry_step};
  always @(posedge clk) begin
    if (rst || start) begin
      working <= !rst;
      active <= 1'b0;
      grps_left <= n_g;
      pass <= 11'd1;
      unit <= 2'd0;
      chans_left <= n_c;
      unit_last <= only_unit;
      chmod <= 4'd0;
      entry <= tile_filled;
      line_entry <= tile_filled;
      map2 <= 1'b0;
    end else begin
      working <= working && !(go && all_end);
      active  <= load || (active && !(go && stripe_end));
      if (go) begin
        entry <= turn ? line_entry : entry_next;
        line_entry <= line_end ? entry_next : line_entry;
        map2 <= turn || (map2 && !line_end);
        if (unit_end) begin
          unit <= unit_last ? 2'd0 : unit_next;
          chans_left <= unit_last ? n_c : chans_after;
          unit_last <= next_last;
          chmod <= unit_last ? 4'd0 : ch_next;
        end
        if (pass_end) pass <= pass_last ? 11'd1 : pass + 11'd1;
        if (stripe_end && c_last) grps_left <= grps_after[10:0];
      end
    end
  end

  always @(posedge clk) begin
    if (load) begin
      c_pre     <= a_pre;
      c_last    <= a_last;
      c_first_y <= a_first_y;
      c_reach   <= a_reach;
      c_up      <= a_up;
      rel       <= {3'd0, !a_up};
      c_lines   <= a_lines;
      c_n_last  <= a_last_s - a_first_s;
      c_k_last  <= a_k_last;
      c_shift   <= a_shift;
      y         <= a_first_y;
      y_left    <= a_reach;
      n         <= {NB{1'b0}};
    end else if (go) begin
      y <= !line_end ? y : y_last ? c_first_y : y_next;
      y_left <= !line_end ? y_left : y_last ? c_reach : y_left - (10'd1 << skip_l);
      rel <= !line_end ? rel : y_last ? {3'd0, !c_up} : rel + {1'b0, skip_l == 2'd2, skip_l == 2'd1, skip_l == 2'd0};
      n <= s_last ? {NB{1'b0}} : n + {{(NB - 1) {1'b0}}, 1'b1};
    end
  end

  // ---- the note
  generate
    if (TB == 6) begin : g_row
      assign row_end = 1'b1;
    end else begin : g_words
      assign row_end = s_last || (&n[5-TB:0]);
    end
    if (FLAT != 0) begin : g_flat
      wire ends;
      flat_pieces #(
          .WORD(TILE_W),
          .JOIN(1)
      ) u_pieces (
          .clk     (clk),
          .load    (load),
          .again   (go && unit_end),
          .next    (go),
          .width   (n_w[4:0]),
          .x_0     (a_flat_x),
          .pixels  (a_flat_pixels),
          .pos     (flat_pos),
          .x       (flat_at),
          .count   (flat_count),
          .line_end(ends),
          .last    (flat_last)
      );
      assign flat = one_line;
      assign flat_more = one_line && !ends;
    end else begin : g_lines
      assign {flat, flat_last, flat_more, flat_pos, flat_at, flat_count} = 18'd0;
      wire unused_flat = &{1'b0, a_flat_x, a_flat_pixels, one_line};
    end
    if (PAIR != 0) begin : g_pair
      assign two = dwrow_mode && !ew && irl == 5'd1 && !addr[0] && y_left != 10'd0;
    end else begin : g_single
      assign two = 1'b0;
    end
  endgenerate
  wire [9:0] y_below = y + 10'd1;
  wire [NB-1:0] k = n - {{(NB - 1) {1'b0}}, c_pre};
  wire [NB+1:0] k_quarters = {2'd0, k} << (2'd2 - stl);
  wire [NB+1:0] n_quarters = {n, 2'd0};
  wire [1:0] sub = chan_mode ? 2'd0 : unit & {gwl[1], gwl[1] || gwl[0]};
  wire [5:0] sub_at = {4'd0, sub} << pl;
  wire [10:0] line_left = n_w - {{(11 - NB - TB) {1'b0}}, n, {TB{1'b0}}};

  // tap row ky of stripe line l sees input line stride * (gy + l) + ky - 1
  function [2:0] slot_of(input [3:0] d, input there, input [1:0] log2s, input [2:0] lines);
    reg [3:0] q;
    begin
      q = log2s[1] ? {2'd0, d[3:2]} : log2s[0] ? {1'b0, d[3:1]} : d;
      // bit 2: the line feeds this tap row
      slot_of = {
        there && (log2s == 2'd0 || !d[0]) && (!log2s[1] || !d[1]) && q < {1'b0, lines}, q[1:0]
      };
    end
  endfunction

  wire [2:0] slot0 = slot_of(rel, 1'b1, stl, c_lines);
  wire [2:0] slot1 = slot_of(rel - 4'd1, rel != 4'd0, stl, c_lines);
  wire [2:0] slot2 = slot_of(rel - 4'd2, rel[3:1] != 3'd0, stl, c_lines);

  wire word_emit = dwrow_mode || (n >= {{(NB - 1) {1'b0}}, c_pre} && k <= c_k_last);
  wire [6:0] flat_bytes = {2'd0, flat_count};
  // flat: the byte of the line that comes to byte 0
  wire [5:0] turn_at = flat ? {2'd0, flat_at - flat_pos[3:0]} : 6'd0;
  wire [TB-1:0] word_base = c_shift | turn_at[TB-1:0] | (dwrow_mode ? {TB{1'b0}} : sub_at[TB-1:0]);
  wire [QB-1:0] word_place = flat ? flat_pos[5:TB-2] : dwrow_mode ? n_quarters[QB-1:0] : k_quarters[QB-1:0];
  wire [2:0] ky_on = ew ? {map2, !map2, 1'b0} & {3{dwrow_mode || slot1[2]}} : dwrow_mode ? {y != 10'd0, 1'b1, y != n_h - 10'd1} : {slot2[2], slot1[2], slot0[2]};
  wire [TB:0] word_bytes = (line_left > TILE_W[10:0]) ? TILE_W[TB:0] : line_left[TB:0];

  always @(posedge clk) begin
    if (rst) begin
      fill_req   <= 1'b0;
      note_valid <= 1'b0;
    end else begin
      fill_req   <= go || (fill_req && !fill_gnt);
      note_valid <= fill_req && fill_gnt;
    end
  end

  // the note of the word that is asked for
  reg [NOTE-1:0] asked;
  always @(posedge clk) begin
    if (go) begin
      fill_word <= addr;
      asked <= {
        {
          two, two, two && y_below != n_h - 10'd1
        },  // tap rows that the line below feeds, if it comes as well
        entry,
        done_now,  // entries complete with this word
        word_emit,  // the word gives bytes to the entry
        word_base,  // its byte that the first of them is
        word_place,  // where they go in a line of the stripe, in quarters
        ky_on,  // tap rows that the line feeds
        flat ? flat_pos : {slot2[1:0], slot1[1:0], slot0[1:0]},  // their lines in the stripe, 2 bits each; flat: the first pixel
        chmod,  // 1x1: channels already in the entry
        unit_chans,  // 1x1: channels in the word
        s_last,  // last word of its line
        flat ? flat_bytes[TB:0] : word_bytes,  // fully connected: bytes that count; flat: pixels
        pass_end  // fully connected: last word of the vector
      };
    end
    if (fill_req && fill_gnt) note <= asked;
  end

  wire unused = &{1'b0, desc, dw_full, dw_tail, irl, sub_at, k_quarters, n_quarters, gwl, flat_bytes, turn_at};

`ifdef FORMAL_fill_seq
  `include "fill_seq_props.vh"
`endif

endmodule

`resetall
