// SPDX-License-Identifier: Apache-2.0
//
// loop_nest: the position of the sequencer in a layer.
//
// How it works: the nest is block of output groups > stripe > group > reduction step > pixels of
// the stripe. Depthwise layers without pooling walk AI RAM rows instead (channel group > line >
// row), and every issue is a finished sum; depthwise layers with pooling walk stripe > channel. A
// fully connected layer walks neuron > step. The outputs describe the present issue: the tile
// entry and the weight row it reads, its place in the nest, and what it is the last use of. With PAIR
// an issue takes two depthwise lines of a row each, where both lie in one word of the output.
// Handshake: start with a stable descriptor; `go` makes the present issue and moves on; running
// until the last one is made, done a cycle later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module loop_nest #(
    // array: pixels and output channels (powers of two)
    parameter N_Y       = 4,
    parameter N_Z       = 4,
    // entries of the tile buffer and rows of the weight buffer (powers of two), bytes of a tile word
    parameter TILE_ROWS = 32,
    parameter WBUF_ROWS = 1024,
    parameter TILE_W    = 64,
    // 1: two depthwise rows an issue
    parameter PAIR      = 0,
    // derived, not to be set: width of a tile entry counter, weight row counter, bank number
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter WW        = $clog2(WBUF_ROWS) + 2,
    parameter ZW        = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; the issue described is made
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  go,
    output reg                   running,
    output reg                   done,
    // first entry of the layer; first weight row of a network whose weights are there already
    input  wire [        TW-1:0] tile_filled,
    input  wire                  repeats,
    input  wire [        WW-1:0] net_base,
    // memories: tile entry, weight row, bank of a weight word (fully connected)
    output reg  [        TW-1:0] entry,
    output wire [        WW-1:0] use_wrow,
    output reg  [        ZW-1:0] wbank,
    // place: group, reduction step (depthwise stripes: channel), place in the accumulators
    output reg  [          10:0] grp,
    output reg  [          17:0] step,
    output reg  [           5:0] idx,
    // place in depthwise rows: line, row of the line, first channel; channel of this pass
    output reg  [           9:0] line,
    output reg  [           3:0] seg,
    output reg  [          10:0] chan,
    output wire [          10:0] pass_chan,
    // stripe: origin, lines of it; position in its 64 pixels; width and slots that count
    output wire [           9:0] stripe_gx,
    output wire [           8:0] stripe_gy,
    output reg  [           6:0] pos,
    output wire [           6:0] wlim,
    output wire [           2:0] slots,
    // last of: the stripe's pixels, steps, rows of a line, lines, group
    output wire                  sweep_done,
    output wire                  step_last,
    output wire                  seg_last,
    output wire                  line_last,
    output wire                  group_end,
    // with PAIR: the issue takes this line and the one below, which is the last one
    output wire                  two,
    output wire                  two_last,
    // entries and weight rows that are not needed after this issue (0 unless go)
    output wire [           1:0] release_tile,
    output wire [           1:0] release_wrows
);

  // depthwise lanes: no more than a tile word has bytes
  localparam integer LANES = (N_Y * N_Z < TILE_W) ? N_Y * N_Z : TILE_W;
  localparam [6:0] CHUNK_N = N_Y[6:0];
  localparam [7:0] CHUNK_D = LANES[7:0];

  // ---- descriptor fields
  wire [ 1:0] mode = desc[`DESC_MODE];
  wire        dw = desc[`DESC_DW];
  wire [10:0] n_c = desc[`DESC_C];
  wire [10:0] n_w = desc[`DESC_W];
  wire [ 9:0] n_h = desc[`DESC_H];
  wire [17:0] n_s = desc[`DESC_S];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire        held = desc[`DESC_HELD];
  wire [ 1:0] ip = desc[`DESC_IP];
  wire [ 4:0] irl = desc[`DESC_IRL];
  wire [13:0] out_rows = desc[`DESC_OCS];
  wire [14:0] dst = desc[`DESC_DST];
  wire        out_first = dst[0];
  wire        taps_mode = mode == `MODE_TAPS;
  wire        dwrow_mode = mode == `MODE_DWROW;
  wire        fc_mode = mode == `MODE_FC;
  wire        dwst_mode = taps_mode && dw;
  wire        overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
  wire [ 2:0] gl = 3'd2 - {1'b0, ip};  // log2 of the channels in an AI RAM row
  wire [ 2:0] g_in = 3'd1 << gl;

  // ---- stripes
  wire        stripe_restart;
  wire        stripe_next;
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

  // ---- counters of the nest
  reg [10:0] blk;  // first group of the block
  reg [TW-1:0] ebase;  // first entry of the stripe
  reg [WW-1:0] wblk;  // first weight row of the block, of the layer (depthwise)
  reg [WW-1:0] wrow;

  // ---- the sweep over the positions of a row
  wire [2:0] swl = dwrow_mode ? 3'd4 + {1'b0, ip} : desc[`DESC_SWL];
  wire [6:0] sw = 7'd1 << swl;
  wire [10:0] seg_left = n_w - {1'b0, seg, 6'd0};
  wire [6:0] row_width = (seg_left > 11'd64) ? 7'd64 : seg_left[6:0];
  assign wlim = dwrow_mode ? row_width : stripe_width;
  wire [10:0] chan_left = n_c - chan;
  wire [ 2:0] row_chans = (chan_left < {8'd0, g_in}) ? chan_left[2:0] : g_in;
  assign slots = dwrow_mode ? row_chans : stripe_lines;
  wire [6:0] jj = pos & (sw - 7'd1);
  wire [6:0] chunk = dw ? CHUNK_D[6:0] : CHUNK_N;
  wire wide_chunk = dw && CHUNK_D >= {1'b0, sw};  // a pass covers whole slots
  wire [7:0] jj_next = {1'b0, jj} + {1'b0, chunk};
  wire slot_done = wide_chunk || jj_next >= {1'b0, wlim};
  wire [7:0] slot_base = {1'b0, pos & ~(sw - 7'd1)};
  wire [7:0] pos_next = wide_chunk ? {1'b0, pos} + CHUNK_D :
             slot_done ? slot_base + {1'b0, sw} : {1'b0, pos} + {1'b0, chunk};
  wire [8:0] pos_end = {6'd0, slots} << swl;
  assign sweep_done = fc_mode || (slot_done && {1'b0, pos_next} >= pos_end);

  // ---- ends of the loops
  wire [10:0] blk_left = n_g - blk;
  wire [10:0] blk_last = blk + ((blk_left < n_b) ? blk_left : n_b) - 11'd1;
  assign step_last = step == n_s - 18'd1;
  wire step_end = sweep_done;
  assign group_end = step_end && step_last && !dwrow_mode;
  wire grp_last = grp == blk_last;
  wire stripe_last = fc_mode || (stripe_last_x && stripe_last_y);
  wire blk_lastest = grp_last && blk_last == n_g - 11'd1;
  wire pass_end = group_end && grp_last;  // all groups of the block saw this stripe
  wire row_end = dwrow_mode && sweep_done;
  assign seg_last  = seg == irl[3:0] - 4'd1 || irl == 5'd1;
  assign line_last = line == n_h - 10'd1;
  assign two_last  = line + 10'd1 == n_h - 10'd1;
  wire rows_end = row_end && seg_last && (two ? two_last : line_last);
  reg  out_odd;  // the row of the output where the channel begins
  generate
    if (PAIR != 0) begin : g_pair
      // one channel a row, one row a line
      assign two = dwrow_mode && ip == 2'd2 && irl == 5'd1 && out_odd == line[0] && !line_last;
    end else begin : g_single
      assign two = 1'b0;
    end
  endgenerate
  wire [TW-1:0] entry_step = {{(TW - 2) {1'b0}}, two, !two};
  wire chan_last = chan_left <= {8'd0, g_in};
  wire all_end = dwrow_mode ? rows_end && chan_last : pass_end && stripe_last && blk_lastest;

  // depthwise: the weight row of the first channel of this pass
  localparam integer LAST_LANE = N_Y * N_Z - 1;
  wire [6:0] pos_0 = pos & ~LAST_LANE[6:0];  // place of lane 0
  assign pass_chan = dwst_mode ? step[10:0] : chan + {8'd0, pos_0[6:4] >> (swl - 3'd4)};
  // widened first and cut then: a small buffer has fewer bits than a channel number; what a layer
  // needs fits the buffer, so nothing is lost
  wire [WW+10-ZW:0] dw_chan_row = {{WW{1'b0}}, pass_chan[10:ZW]};
  wire [WW-1:0] dw_wrow = wblk + dw_chan_row[WW-1:0];
  assign use_wrow = dw ? dw_wrow : wrow;

  assign stripe_restart = start || (go && pass_end && stripe_last);
  assign stripe_next = go && pass_end && !stripe_last;

  // ---- release of entries and weight rows: with this issue their last use is made
  wire release_entry = go && (dwrow_mode ? row_end : fc_mode ?
             (&step[5:0] || step_last) && (!held || grp == n_g - 11'd1) :
             step_end && (!held || grp_last));
  assign release_tile = {release_entry && two, release_entry && !two};
  wire fc_word_last = wbank == {ZW{1'b1}} || (grp == n_g - 11'd1 && step_last);
  wire [10:0] chan_next = chan + {8'd0, g_in};
  // rows of the weight buffer that the channels up to here fill for good
  wire [10:0] dw_rows_all = (n_c + N_Z[10:0] - 11'd1) >> ZW;
  wire [WW+10:0] dw_rows_wide = {{WW{1'b0}}, dw_rows_all};
  wire [WW-1:0] dw_next = wblk + dw_rows_wide[WW-1:0];
  wire [10:0] dw_rows_upto = chan_last ? dw_rows_all : chan_next >> ZW;
  reg [10:0] dw_rows_freed;
  wire [10:0] dw_rows_now = dw_rows_upto - dw_rows_freed;
  wire dwst_row_end = step_end && stripe_last && (&step[ZW-1:0] || step_last);
  wire rel_one = dwst_mode ? dwst_row_end : fc_mode ? fc_word_last : step_end && stripe_last;
  assign     release_wrows = !go ? 2'd0 : dwrow_mode ? (rows_end ? dw_rows_now[1:0] : 2'd0) :
             {1'b0, rel_one};


  // ---- the nest
  always @(posedge clk) begin
    if (rst) begin
      running       <= 1'b0;
      done          <= 1'b0;
      entry         <= {TW{1'b0}};
      ebase         <= {TW{1'b0}};
      wblk          <= {WW{1'b0}};
      wrow          <= {WW{1'b0}};
      blk           <= 11'd0;
      grp           <= 11'd0;
      step          <= 18'd0;
      pos           <= 7'd0;
      idx           <= 6'd0;
      line          <= 10'd0;
      seg           <= 4'd0;
      chan          <= 11'd0;
      wbank         <= {ZW{1'b0}};
      dw_rows_freed <= 11'd0;
      out_odd       <= 1'b0;
    end else begin
      done <= go && all_end;
      if (start) begin
        running       <= 1'b1;
        blk           <= 11'd0;
        grp           <= 11'd0;
        step          <= 18'd0;
        pos           <= 7'd0;
        idx           <= 6'd0;
        line          <= 10'd0;
        seg           <= 4'd0;
        chan          <= 11'd0;
        wbank         <= {ZW{1'b0}};
        dw_rows_freed <= 11'd0;
        out_odd       <= out_first;
        entry         <= tile_filled;
        ebase         <= tile_filled;
        wblk          <= repeats ? net_base : wblk;
        wrow          <= repeats ? net_base : wrow;
      end else if (go) begin
        running <= !all_end;
        if (fc_mode) pos <= (step_last || &step[5:0]) ? 7'd0 : pos + 7'd1;
        else pos <= sweep_done ? 7'd0 : pos_next[6:0];
        idx <= sweep_done ? 6'd0 : idx + 6'd1;
        if (dwrow_mode) begin
          // channel group > line > row; every row is an entry
          if (row_end) begin
            entry <= entry + entry_step;
            ebase <= entry + entry_step;
            seg <= seg_last ? 4'd0 : seg + 4'd1;
            line <= !seg_last ? line : rows_end ? 10'd0 : line + {8'd0, two, !two};
            out_odd <= out_odd ^ (rows_end && out_rows[0]);
            chan <= rows_end ? chan_next : chan;
            dw_rows_freed <= rows_end ? dw_rows_upto : dw_rows_freed;
            if (all_end) begin
              wblk <= dw_next;
              wrow <= dw_next;
            end
          end
        end else if (fc_mode) begin
          // neuron > step; an entry holds 64 steps, a weight row N_Z words
          step  <= step_last ? 18'd0 : step + 18'd1;
          grp   <= step_last ? grp + 11'd1 : grp;
          wbank <= all_end ? {ZW{1'b0}} : wbank + {{(ZW - 1) {1'b0}}, 1'b1};
          if (step_last) begin
            if (held && grp != n_g - 11'd1) entry <= ebase;
            else begin
              entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            end
          end else if (&step[5:0]) entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
          else entry <= entry;
          if (fc_word_last) begin
            wrow <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
            wblk <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
          end
        end else if (step_end) begin
          // block > stripe > group > step
          step <= step_last ? 18'd0 : step + 18'd1;
          if (!step_last) begin
            entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            wrow  <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
          end else begin
            // next group of the block, or the next stripe with the first group
            if (!grp_last) begin
              grp   <= grp + 11'd1;
              entry <= held ? ebase : entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= held ? ebase : entry + {{(TW - 1) {1'b0}}, 1'b1};
              wrow  <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
            end else begin
              entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              if (!stripe_last) begin
                grp  <= blk;
                wrow <= wblk;
              end else begin
                grp  <= blk_last + 11'd1;
                blk  <= blk_last + 11'd1;
                wrow <= dw ? dw_next : wrow + {{(WW - 1) {1'b0}}, 1'b1};
                wblk <= dw ? dw_next : wrow + {{(WW - 1) {1'b0}}, 1'b1};
              end
            end
          end
        end
      end
    end
  end

  wire unused = &{1'b0, desc, dw_rows_now, dw_chan_row, dw_rows_wide, pos_0, out_odd, out_rows, dst};

endmodule

`resetall
