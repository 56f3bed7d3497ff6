// SPDX-License-Identifier: Apache-2.0
//
// fill_seq: reads the rows of the AI RAM that the array needs, in the order it needs them.
//
// How it works: the nest follows that of loop_nest: block of groups > stripe > pass > unit > line >
// row of the line. A unit is a channel (3x3 and fully connected) or the channels that share an AI
// RAM row (1x1 and depthwise rows). When a stripe's input fits the tile buffer there is one pass,
// and the groups of a block all use it; otherwise the input is read once for each group. Each row
// that is read goes to tile_scatter (fully connected: fc_flatten) with a note of where its bytes
// belong and how many entries are complete with it.
// Handshake: start with a stable descriptor, busy until the last row was read. A read waits for
// room in the tile buffer and for the AI RAM (fill_req until fill_gnt); data follow a cycle later,
// the note is registered with them. Fully connected rows also wait for fc_flatten.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_seq #(
    // entries of the tile buffer
    parameter TILE_ROWS = 32,
    // width of an entry counter
    parameter TW        = $clog2(TILE_ROWS) + 2
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    output reg                   busy,
    // entries released by the array, and complete (running counts)
    input  wire [        TW-1:0] tile_freed,
    input  wire [        TW-1:0] tile_filled,
    // AI RAM read port
    output wire                  fill_req,
    output wire [          14:0] fill_row,
    input  wire                  fill_gnt,
    // fully connected: the flattener can take a row
    input  wire                  fc_ready,
    // note, valid in the cycle of the read data
    output reg                   note_valid,
    output reg  [        TW-1:0] note_entry,
    output reg  [           4:0] note_done,      // entries complete with this row
    output reg  [           5:0] note_base,      // byte of the row where the stripe begins
    output reg  [           2:0] note_segrel,    // row of the line relative to that (-1..4)
    output reg  [           2:0] note_ky_on,     // tap rows that the line feeds
    output reg  [           5:0] note_ky_slot,   // their lines in the stripe, 2 bits each
    output reg  [           3:0] note_chmod,     // 1x1: channels already in the entry
    output reg  [           2:0] note_chans,     // 1x1: channels in the row
    output reg                   note_lastseg,   // last row of its line
    output reg                   note_firstseg,  // first row of its line
    output reg  [           6:0] note_bytes,     // fully connected: bytes that count
    output reg                   note_lastrow    // fully connected: last row of the vector
);

  // ---- descriptor fields
  wire [ 1:0] mode = desc[`DESC_MODE];
  wire        k3 = desc[`DESC_K3];
  wire [10:0] n_c = desc[`DESC_C];
  wire [10:0] n_w = desc[`DESC_W];
  wire [ 9:0] n_h = desc[`DESC_H];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire        held = desc[`DESC_HELD];
  wire [ 1:0] stl = desc[`DESC_STL];
  wire        ph = desc[`DESC_PH];
  wire [ 1:0] ip = desc[`DESC_IP];
  wire [ 4:0] irl = desc[`DESC_IRL];
  wire        taps_mode = mode == `MODE_TAPS;
  wire        chan_mode = mode == `MODE_CHAN;
  wire        dwrow_mode = mode == `MODE_DWROW;
  wire        fc_mode = mode == `MODE_FC;
  wire        k3_taps = taps_mode && k3;
  wire        overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
  wire [ 2:0] gl = 3'd2 - {1'b0, ip};
  wire [ 2:0] g_in = 3'd1 << gl;

  // ---- stripes
  wire        stripe_next;
  wire        stripe_restart;
  wire [ 9:0] stripe_gx;
  wire [ 8:0] stripe_gy;
  wire [ 6:0] stripe_width;
  wire [ 2:0] stripe_lines;
  wire        stripe_last_x;
  wire        stripe_last_y;
  stripe_iter u_stripe (
      .clk    (clk),
      .rst    (rst),
      .restart(stripe_restart),
      .next   (stripe_next),
      .kw     (desc[`DESC_KW]),
      .kh     (desc[`DESC_KH]),
      .swl    (desc[`DESC_SWL]),
      .overlap(overlap),
      .gx     (stripe_gx),
      .gy     (stripe_gy),
      .width  (stripe_width),
      .lines  (stripe_lines),
      .last_x (stripe_last_x),
      .last_y (stripe_last_y)
  );

  // ---- what the present stripe needs: lines first_y..last_y, rows first_s..last_s of a line
  wire [9:0] y_top = {1'b0, stripe_gy} << stl;
  wire [9:0] y_end = ({1'b0, stripe_gy} + {7'd0, stripe_lines} - 10'd1) << stl;
  wire [10:0] x_lo = ({1'b0, stripe_gx} << stl) + {10'd0, ph};
  wire [10:0] x_hi = (({1'b0, stripe_gx} + {4'd0, stripe_width} - 11'd1) << stl) + {10'd0, ph};
  wire whole = dwrow_mode || fc_mode;
  wire [9:0] first_y = whole ? 10'd0 : (k3_taps && y_top != 10'd0) ? y_top - 10'd1 : y_top;
  wire [9:0] last_y = whole ? n_h - 10'd1 : (k3_taps && y_end != n_h - 10'd1) ? y_end + 10'd1 : y_end;
  wire [10:0] x_first = (k3_taps && x_lo != 11'd0) ? x_lo - 11'd1 : x_lo;
  wire [10:0] x_last = (k3_taps && x_hi != n_w - 11'd1) ? x_hi + 11'd1 : x_hi;
  wire [3:0] first_s = whole ? 4'd0 : x_first[9:6];
  wire [3:0] last_s = whole ? irl[3:0] - 4'd1 : x_last[9:6];

  // ---- counters of the nest
  reg [10:0] blk;
  reg [10:0] pass;
  reg [10:0] unit;  // first channel of the unit
  reg [14:0] ubase;  // AI RAM row of the unit's channel group
  reg fresh;  // the line and row counters are to be set for a new unit
  reg [9:0] y_q;
  reg [3:0] s_q;
  reg [3:0] chmod;
  reg [TW-1:0] entry;

  wire [9:0] y = fresh ? first_y : y_q;
  wire [3:0] s = fresh ? first_s : s_q;

  wire [10:0] blk_left = n_g - blk;
  wire [10:0] blk_groups = (blk_left < n_b) ? blk_left : n_b;
  wire [10:0] passes = held ? 11'd1 : blk_groups;
  wire [10:0] unit_step = (taps_mode || fc_mode) ? 11'd1 : {8'd0, g_in};
  wire [10:0] unit_next = unit + unit_step;

  wire s_last = s == last_s;
  wire [9:0] y_skip = (chan_mode || (taps_mode && !k3)) ? 10'd1 << stl :
             (k3_taps && stl == 2'd2 && y[1:0] == 2'd1) ? 10'd2 : 10'd1;
  wire y_last = y + y_skip > last_y;
  wire unit_end = s_last && y_last;
  wire unit_last = unit_next >= n_c;
  wire pass_end = unit_end && unit_last;
  wire pass_last = (pass == passes - 11'd1) || dwrow_mode;
  wire stripe_end = pass_end && pass_last;
  wire stripe_last = whole || (stripe_last_x && stripe_last_y);
  wire blk_last = whole && !fc_mode ? 1'b1 : blk + blk_groups >= n_g;
  wire all_end = stripe_end && stripe_last && blk_last;

  // ---- room: the highest entry that this row writes to must be free
  wire [TW-1:0] reach = dwrow_mode ? {{(TW - 5) {1'b0}}, irl} :
             chan_mode ? {{(TW - 1) {1'b0}}, 1'b1} : {TW{1'b0}};
  wire [TW-1:0] ahead = entry + reach - tile_freed;
  wire room = fc_mode ? fc_ready && !note_valid : ahead < TILE_ROWS[TW-1:0];

  wire [14:0] line_rows = y * irl;
  assign fill_req = busy && room;
  assign fill_row = ubase + line_rows + {11'd0, s};
  wire go = fill_req && fill_gnt;

  assign stripe_restart = start || (go && stripe_end && stripe_last);
  assign stripe_next    = go && stripe_end && !stripe_last;

  // ---- entries complete with this row
  wire [10:0] chans_left = n_c - unit;
  wire [2:0] row_chans = (chans_left < {8'd0, g_in}) ? chans_left[2:0] : g_in;
  wire [4:0] chsum = {1'b0, chmod} + {2'd0, row_chans};
  wire ch_wrap = chsum >= 5'd9;
  wire [3:0] ch_next = ch_wrap ? chsum[3:0] - 4'd9 : chsum[3:0];
  wire [4:0] done_chan = !unit_end ? 5'd0 : {4'd0, ch_wrap} + {4'd0, unit_last && ch_next != 4'd0};
  wire [4:0] done_dw = {4'd0, y != 10'd0} + (unit_end ? irl : 5'd0);
  wire [4:0] done_now = chan_mode ? done_chan : dwrow_mode ? done_dw :
             taps_mode ? {4'd0, unit_end} : 5'd0;

  always @(posedge clk) begin
    if (rst) begin
      busy  <= 1'b0;
      blk   <= 11'd0;
      pass  <= 11'd0;
      unit  <= 11'd0;
      ubase <= 15'd0;
      fresh <= 1'b1;
      y_q   <= 10'd0;
      s_q   <= 4'd0;
      chmod <= 4'd0;
      entry <= {TW{1'b0}};
    end else if (start) begin
      busy  <= 1'b1;
      blk   <= 11'd0;
      pass  <= 11'd0;
      unit  <= 11'd0;
      ubase <= desc[`DESC_SRC];
      fresh <= 1'b1;
      chmod <= 4'd0;
      entry <= tile_filled;
    end else if (go) begin
      busy  <= !all_end;
      fresh <= unit_end;
      s_q   <= s_last ? first_s : s + 4'd1;
      y_q   <= s_last ? y + y_skip : y;
      if (dwrow_mode) entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
      else entry <= entry + {{(TW - 5) {1'b0}}, done_now};
      if (unit_end) begin
        unit <= unit_last ? 11'd0 : unit_next;
        // the next channel group begins when the next unit is its first channel
        ubase <= unit_last ? desc[`DESC_SRC] :
            ((unit_next[1:0] & (g_in[1:0] - 2'd1)) == 2'd0) ? ubase + {1'b0, desc[`DESC_ICS]} : ubase;
        chmod <= unit_last ? 4'd0 : ch_next;
      end
      if (pass_end) pass <= pass_last ? 11'd0 : pass + 11'd1;
      if (stripe_end && stripe_last) blk <= blk + blk_groups;
    end
  end

  // ---- the note
  wire [ 9:0] x_base = stripe_gx << stl;
  wire [ 1:0] sub = unit[1:0] & (g_in[1:0] - 2'd1);
  wire [ 5:0] sub_at = {4'd0, sub} << (3'd4 + {1'b0, ip});
  wire [ 3:0] seg0 = x_base[9:6];
  wire [10:0] row_left = n_w - {1'b0, s, 6'd0};

  // tap row ky of stripe line l sees input line stride * (gy + l) + ky - 1
  function [2:0] slot_of(input [9:0] line, input [9:0] top, input [1:0] ky, input [1:0] log2s,
                         input [2:0] lines);
    reg [9:0] d;
    reg [9:0] q;
    begin
      d = line + 10'd1 - {8'd0, ky} - top;
      q = d >> log2s;
      // bit 2: the line feeds this tap row
      slot_of = {!d[9] && ((q << log2s) == d) && q < {7'd0, lines}, q[1:0]};
    end
  endfunction

  wire [2:0] slot0 = slot_of(y, y_top, 2'd0, stl, stripe_lines);
  wire [2:0] slot1 = slot_of(y, y_top, 2'd1, stl, stripe_lines);
  wire [2:0] slot2 = slot_of(y, y_top, 2'd2, stl, stripe_lines);

  always @(posedge clk) begin
    if (rst) note_valid <= 1'b0;
    else note_valid <= go;
  end

  always @(posedge clk) begin
    if (go) begin
      note_entry <= entry;
      note_done <= done_now;
      note_base <= fc_mode ? sub_at : taps_mode ? x_base[5:0] + sub_at : x_base[5:0];
      note_segrel <= s[2:0] - seg0[2:0];
      note_ky_on    <= dwrow_mode ? {y != 10'd0, 1'b1, y != n_h - 10'd1} : {slot2[2], slot1[2], slot0[2]};
      note_ky_slot <= {slot2[1:0], slot1[1:0], slot0[1:0]};
      note_chmod <= chmod;
      note_chans <= row_chans;
      note_lastseg <= dwrow_mode ? s_last : 1'b1;
      note_firstseg <= s == 4'd0;
      note_bytes <= (row_left > 11'd64) ? 7'd64 : row_left[6:0];
      note_lastrow <= pass_end;
    end
  end

  wire unused = &{1'b0, desc, x_first, x_last, seg0};

endmodule

`resetall
