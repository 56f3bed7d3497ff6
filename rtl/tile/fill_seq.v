// SPDX-License-Identifier: Apache-2.0
//
// fill_seq: reads the AI RAM words that the array needs, in the order of use.
//
// How it works: the nest matches that of loop_nest: block of groups > stripe > pass > unit > line > word of
// the line. A unit is a channel (3x3 and fully connected), the channels that share a word (1x1) or a row
// (depthwise rows). If a stripe's input fits the tile buffer there is one pass for all groups of a block;
// otherwise the input is read once per group. fill_stripe computes the extent of the next stripe while the
// current one is read; fill_addr tracks the lines within it. Of a flat layer's line only the part within the
// stripe is valid. Of an element-wise layer's two maps, each line of the first is followed by that of the
// second. Each word read goes to tile_scatter (fully connected: fc_flatten or fc_serial) with a note of the
// destination of its bytes and the number of entries it completes. Of a dilated layer the lines of each tap
// row are read one after the other. The nest runs one word ahead of the AI RAM: fill_request holds the
// requested word.
// Handshake: start with a stable descriptor, busy until the last word has been read. A word waits for room in
// the tile buffer (fully connected: for fc_ready; taken marks a request), then for its AI RAM read (fill_req
// until fill_gnt); the note is valid READ cycles later, with the data. With PAIR a read of a depthwise line
// of one row may include the line below, when both are in one word of the path.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_seq #(
    // entries of the tile buffer; bytes of a word: 8, 16, 32 or 64
    parameter TILE_ROWS = 32,
    parameter TILE_WORD = 64,
    // 1: the path has two rows; 1: maps of 1x1 layers may be one line; largest dilation; 1: fc_done advances
    // the entry of a vector
    parameter PAIR      = 0,
    parameter FLAT_MAPS = 0,
    parameter DILATION  = 1,
    parameter FC_SERIAL = 0,
    // cycles from a grant to the read data, see ai_ram
    parameter READ      = 1,
    // derived, not to be set: log2 of the word, widths of its address, of a word index in a line (1024 bytes
    // at most), of a quarter-word index in an entry of 64 bytes, of an entry counter
    parameter TB        = $clog2(TILE_WORD),
    parameter AW        = 21 - TB,
    parameter NB        = 10 - TB,
    parameter QB        = 8 - TB,
    parameter TW        = $clog2(TILE_ROWS) + 2
) (
    // clock and synchronous reset
    input wire clk,
    input wire rst,
    // layer start with its descriptor
    input wire start,
    input wire [`DESC_BITS-1:0] desc,
    output wire busy,
    // lines of the map in the AI RAM
    input wire [9:0] lines_there,
    // entries released by the array, entries filled (running counts)
    input wire [TW-1:0] tile_freed,
    input wire [TW-1:0] tile_filled,
    // AI RAM read port
    output wire fill_req,
    output wire [AW-1:0] fill_word,
    input wire fill_gnt,
    // fully connected: request permitted, request issued: valid bytes, last word of the vector; with
    // FC_SERIAL: an entry is complete
    input wire fc_ready,
    output wire taken,
    output wire [TB:0] taken_bytes,
    output wire taken_last,
    input wire fc_done,
    // entry of the next word; with FC_SERIAL the entry that a vector is filling
    output reg [TW-1:0] entry,
    // note, valid in the cycle of the read data
    output wire note_valid,
    output wire [`NOTE_BITS-1:0] note
);

  // ---- descriptor fields; those in the nest's paths are registered: it begins three cycles after start
  wire k3_layer = desc[`DESC_K3] && !desc[`DESC_EW];
  wire [10:0] n_w = desc[`DESC_W];
  reg k3;
  reg [1:0] stl, ip;
  reg [4:0] irl;
  reg [14:0] src, src2;
  reg [13:0] group_rows;
  always @(posedge clk) begin
    {k3, stl, ip, irl} <= {k3_layer, desc[`DESC_STL], desc[`DESC_IP], desc[`DESC_IRL]};
    {src, src2, group_rows} <= {desc[`DESC_SRC], desc[`DESC_SRC2], desc[`DESC_ICS]};
  end
  // the mode, registered in the cycle after start: the longest path of the tile buffer begins here
  wire [1:0] new_mode = desc[`DESC_MODE];
  reg taps_mode, k3_taps, chan_mode, dwrow_mode, fc_mode, ew, two_maps, one_line, far;
  always @(posedge clk) begin
    if (rst)
      {taps_mode, k3_taps, chan_mode, dwrow_mode, fc_mode, ew, two_maps, one_line, far} <= 9'd0;
    else if (start) begin
      {taps_mode, k3_taps} <= {new_mode == `MODE_TAPS, new_mode == `MODE_TAPS && k3_layer};
      chan_mode <= new_mode == `MODE_CHAN;
      dwrow_mode <= new_mode == `MODE_DWROW;
      fc_mode <= new_mode == `MODE_FC;
      {ew, two_maps} <= {desc[`DESC_EW], desc[`DESC_EW] && !desc[`DESC_ONE]};
      one_line <= desc[`DESC_FLAT];
      far <= DILATION > 1 && desc[`DESC_DIL] != 3'd0;
    end
  end
  wire whole = dwrow_mode || fc_mode;

  // ---- the next stripe, and the current one
  wire load, go, stripe_ready;
  wire [`STRIPE_BITS-1:0] following;
  reg [`STRIPE_BITS-1:0] stripe;
  reg [10:0] right;  // last column of the map
  fill_stripe #(
      .TILE_WORD(TILE_WORD),
      .FLAT_MAPS(FLAT_MAPS),
      .DILATION (DILATION)
  ) u_next (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .whole      (whole),
      .k3_taps    (k3_taps),
      .right      (right),
      .lines_there(lines_there),
      .taken      (load),
      .ready      (stripe_ready),
      .stripe     (following)
  );
  always @(posedge clk) if (load) stripe <= following;

  // ---- counters of the nest
  reg active;  // a stripe is being read
  reg [9:0] y_left;  // lines after this one
  reg top;  // first line
  reg [3:0] rel;  // index of the line, see fill_taps: from the one above the stripe's first, 14 at most
  reg map2;  // line of the second map
  reg [NB-1:0] s;  // word index in the line
  reg head;  // first word read of the line
  reg [QB-1:0] place;  // position of its bytes in a line of the stripe, in quarters of a word
  reg [3:0] chmod;  // 1x1: channels already in the entry
  reg [TW-1:0] line_entry;  // entry of the line's first word

  wire line_end, y_last, stripe_end;
  wire unit_end = line_end && y_last;
  wire [2:0] unit_size;
  wire [1:0] unit;
  wire [13:0] chans_left;
  wire unit_last, group_end, pass_last, block_last;
  wire [NB-1:0] whole_last;
  reg started;
  always @(posedge clk) started <= start && !rst;
  fill_units #(
      .TILE_WORD(TILE_WORD)
  ) u_units (
      .clk        (clk),
      .rst        (rst),
      .start      (started),
      .desc       (desc),
      .ip         (ip),
      .dwrow_mode (dwrow_mode),
      .chan_mode  (chan_mode),
      .unit_end   (go && unit_end),
      .stripe_last(stripe[`STRIPE_LAST]),
      .unit_size  (unit_size),
      .unit       (unit),
      .chans_left (chans_left),
      .unit_last  (unit_last),
      .group_end  (group_end),
      .right      (right),
      .whole_last (whole_last),
      .pass_last  (pass_last),
      .block_last (block_last)
  );
  wire [2:0] unit_chans = (TB <= 4) ? 3'd1 : unit_last ? chans_left[2:0] : unit_size;  // 1x1
  wire pass_end = unit_end && unit_last;
  assign stripe_end = pass_end && pass_last;
  wire all_end = stripe_end && stripe[`STRIPE_LAST] && block_last;

  reg [NB-1:0] s_final;
  always @(posedge clk) begin
    right   <= n_w - 11'd1;
    s_final <= whole ? whole_last : load ? following[`STRIPE_FINAL] : stripe[`STRIPE_FINAL];
  end

  // ---- loops that end with this word
  wire s_last = s == s_final;
  wire turn = s_last && two_maps && !map2;
  assign line_end = s_last && !turn;
  wire two;  // the read includes the line below
  wire [1:0] skip_l = two ? 2'd1 : (chan_mode || (taps_mode && !k3)) ? stl :
             (k3_taps && stl == 2'd2 && rel[1:0] == 2'd2) ? 2'd1 : 2'd0;
  wire [2:0] skip = {skip_l == 2'd2, skip_l == 2'd1, skip_l == 2'd0};
  // dilation: the last line of a tap row
  wire hop = far && {1'b0, rel[1:0]} + 3'd1 == stripe[`STRIPE_LINES];
  // flat: pieces of lines; the line continues in the next one
  wire flat, flat_last, flat_more;
  wire [5:0] flat_pos;
  wire [3:0] flat_at;
  wire [4:0] flat_count;
  // last line: counted down, because a comparison would be in every path
  assign y_last = flat ? flat_last :
             y_left[9:2] == 8'd0 && (skip_l[1] || (!y_left[1] && (skip_l[0] || !y_left[0])));

  // ---- room: the highest entry written by this word must be free
  localparam [0:0] FC_AHEAD = FC_SERIAL != 0;
  reg [4:0] reach;  // offset of the highest entry written, for a single line
  always @(posedge clk) reach <= dwrow_mode ? irl : {4'd0, chan_mode || (fc_mode && FC_AHEAD)};
  // two lines have one row each
  wire [TW-1:0] reach_now = {{(TW - 5) {1'b0}}, two ? 5'd2 : reach};
  wire [TW-1:0] ahead = entry + reach_now - tile_freed;
  wire room = (fc_mode && !FC_AHEAD) || ahead < TILE_ROWS[TW-1:0];

  reg working;
  // the grant is late: what the word would begin, if it moves on, is found beside it
  assign go = active && room && (!fc_mode || fc_ready) && (!fill_req || fill_gnt);
  assign taken = go && fc_mode;
  assign busy = working || fill_req;
  wire load_first = stripe_ready && working && !active;
  wire load_next = stripe_ready && working && stripe_end && !all_end;
  assign load = load_first || (go && load_next);
  wire anew = load_first || load_next;  // in a cycle with go or load: load

  // ---- entries completed by this word
  // chmod (8 at most) + unit_chans (1 to 4) is at least 9, is 9: decoded without an adder, because two
  // carry chains in series would delay the next entry
  wire [3:0] chsum = chmod + {1'b0, unit_chans};
  wire ch_wrap = chmod[3] || (chmod[2] && (unit_chans[2] ? chmod[1] || chmod[0] :
             unit_chans[1] && chmod[1] && (unit_chans[0] || chmod[0])));
  wire ch_full = ch_wrap && (unit_chans[2] ? chmod[2:0] == 3'd5 : unit_chans[1] ?
             chmod[2:0] == (unit_chans[0] ? 3'd6 : 3'd7) : chmod[3]);
  wire [3:0] ch_next = ch_wrap ? chsum - 4'd9 : chsum;
  wire [4:0] done_chan = !unit_end ? 5'd0 : {4'd0, ch_wrap} + {4'd0, unit_last && !ch_full};
  wire row_end;  // depthwise rows: last word of a row
  wire [4:0] done_dw = ew ? {4'd0, row_end && (map2 || !two_maps)} :
             {4'd0, row_end && !top} + {4'd0, two} + (unit_end ? irl : 5'd0);
  wire [4:0] done_now = chan_mode ? done_chan : dwrow_mode ? done_dw :
             taps_mode ? {4'd0, unit_end} : 5'd0;
  wire [4:0] entry_step = dwrow_mode ? {3'd0, two, row_end && !two} : done_now;
  wire [TW-1:0] entry_next = entry + {{(TW - 5) {1'b0}}, entry_step};

  // ---- the nest
  wire emit = dwrow_mode || !((stripe[`STRIPE_PRE] && head) || (stripe[`STRIPE_POST] && s_last));
  wire [QB:0] quarters = {{(QB - 2) {1'b0}}, 3'd4 >> stl};
  always @(posedge clk) begin
    if (rst || start) begin
      working <= !rst;
      active <= 1'b0;
      chmod <= 4'd0;
      entry <= tile_filled;
      line_entry <= tile_filled;
      map2 <= 1'b0;
    end else begin
      working <= working && !(go && all_end);
      active  <= load || (active && !(go && stripe_end));
      if (fc_mode && FC_AHEAD) entry <= entry + {{(TW - 1) {1'b0}}, fc_done};
      else if (go) entry <= turn ? line_entry : entry_next;
      if (go) begin
        line_entry <= line_end ? entry_next : line_entry;
        map2 <= turn || (map2 && !line_end);
        chmod <= pass_end ? 4'd0 : unit_end ? ch_next : chmod;
      end
    end
  end

  wire again = anew || y_last;  // the first line is next
  wire [`STRIPE_BITS-1:0] coming = anew ? following : stripe;
  always @(posedge clk) begin
    if (load || go) begin
      s <= (anew || s_last) ? coming[`STRIPE_FIRST] : s + {{(NB - 1) {1'b0}}, 1'b1};
      head <= anew || s_last;
      place <= (anew || s_last) ? {QB{1'b0}} : emit ? place + quarters[QB-1:0] : place;
    end
    if (load || (go && line_end)) begin
      top <= again;
      y_left <= again ? coming[`STRIPE_REACH] : y_left - {7'd0, skip};
      rel <= again ? {1'b0, coming[`STRIPE_INDEX]} : hop ? {rel[3:2] + 2'd1, 2'd0} : rel + {1'b0, skip};
    end
  end

  // ---- address of the word
  wire [14:0] row;
  fill_addr u_addr (
      .clk       (clk),
      .load      (load),
      .first     (following[`STRIPE_ROW]),
      .line_end  (go && line_end),
      .chan_end  (y_last),
      .pass_end  (unit_last),
      .group_end (group_end),
      .turn      (go && turn),
      .src       (src),
      .src2      (src2),
      .group_rows(group_rows),
      .line_rows (irl),
      .skip_l    (skip_l),
      .stay      (flat_more),
      .hop       (hop),
      .hop_rows  (stripe[`STRIPE_HOP]),
      .row       (row)
  );
  // byte offset of the unit's first channel in its row
  wire [9:0] unit_at = {8'd0, unit} << {2'b01, ip};
  wire [NB-1:0] word = s | unit_at[9:TB];

  // ---- flat maps, pairs of lines
  generate
    if (TB == 6) begin : g_row
      assign row_end = 1'b1;
    end else begin : g_words
      assign row_end = s_last || (&s[5-TB:0]);
    end
    if (FLAT_MAPS != 0) begin : g_flat
      wire ends;
      flat_pieces #(
          .WORD(TILE_WORD),
          .JOIN(1)
      ) u_pieces (
          .clk     (clk),
          .load    (load),
          .again   (go && unit_end),
          .next    (go),
          .width   (n_w[4:0]),
          .x_0     (following[`STRIPE_FLAT_X]),
          .pixels  (following[`STRIPE_FLAT_PIXELS]),
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
      wire unused_flat = &{1'b0, one_line};
    end
  endgenerate
  assign two = PAIR != 0 && dwrow_mode && !ew && irl == 5'd1 && !row[0] && y_left != 10'd0;

  // ---- the note of the word
  wire [2:0] ky_on;
  wire [5:0] slots;
  fill_taps u_taps (
      .far  (far),
      .ew   (ew),
      .dwrow(dwrow_mode),
      .stl  (stl),
      .lines(stripe[`STRIPE_LINES]),
      .rel  (rel),
      .first(top),
      .last (y_left == 10'd0),
      .map2 (map2),
      .ky_on(ky_on),
      .slots(slots)
  );
  // flat: byte of the line that is rotated to byte 0
  wire [5:0] turn_at = flat ? {2'd0, flat_at - flat_pos[3:0]} : 6'd0;
  wire [TB:0] tail = {1'b0, right[TB-1:0]} + {{TB{1'b0}}, 1'b1};
  wire [6:0] flat_bytes = {2'd0, flat_count};

  wire [`NOTE_BITS-1:0] asking;
  assign taken_last = pass_end;
  assign taken_bytes = s_last ? tail : TILE_WORD[TB:0];
  assign asking[`NOTE_VECTOR_END] = pass_end;
  assign asking[`NOTE_BYTES] = flat ? flat_bytes[TB:0] : taken_bytes;
  assign asking[`NOTE_LINE_END] = s_last;
  assign asking[`NOTE_CHANS] = unit_chans;
  assign asking[`NOTE_CHMOD] = chmod;
  assign asking[`NOTE_SLOTS] = flat ? flat_pos : slots;
  assign asking[`NOTE_KY_ON] = ky_on;
  assign asking[`NOTE_PLACE] = flat ? flat_pos[5:TB-2] : place;
  assign asking[`NOTE_BASE] = stripe[`STRIPE_SHIFT] | turn_at[TB-1:0] | unit_at[TB-1:0];
  assign asking[`NOTE_EMIT] = emit;
  assign asking[`NOTE_DONE] = done_now;
  assign asking[`NOTE_ENTRY] = entry;
  assign asking[`NOTE_KY_BELOW] = {two, two, two && y_left != 10'd1};

  fill_request #(
      .AW  (AW),
      .NW  (`NOTE_BITS),
      .READ(READ)
  ) u_request (
      .clk       (clk),
      .rst       (rst),
      .go        (go),
      .word      ({row, {(6 - TB) {1'b0}}} + {{(AW - NB) {1'b0}}, word}),
      .about     (asking),
      .fill_req  (fill_req),
      .fill_word (fill_word),
      .fill_gnt  (fill_gnt),
      .note_valid(note_valid),
      .note      (note)
  );

  wire unused = &{1'b0, desc, chans_left, coming, unit_at, quarters, flat_bytes, turn_at};

`ifdef FORMAL_fill_seq
  `include "fill_seq_props.vh"
`endif

endmodule

`resetall
